//! The library for C and for everything that speaks its ABI; `include/millrace.h` describes it.
//!
//! Invariant: nothing is allocated. Objects lie in the caller's storage. A call checks every
//! argument that can be checked before it does anything, so that no caller can reach an assertion
//! of the core.

const std = @import("std");
const layout = @import("memory/layout.zig");
const arguments = @import("c/arguments.zig");
const reasons = @import("c/reasons.zig");

comptime {
    _ = @import("c/segment.zig");
    _ = @import("c/port.zig");
    _ = @import("c/codec.zig");
    _ = @import("c/mailbox.zig");
    _ = @import("c/property.zig");
    _ = @import("c/fanout.zig");
    _ = @import("c/call.zig");
    _ = @import("c/call_make.zig");
    _ = @import("c/stream.zig");
    _ = @import("c/digest.zig");
    _ = @import("c/meter.zig");
}

/// Traps. Only a mistake of the library's own can lead there, never one of a caller or a peer.
pub const panic = std.debug.no_panic;

pub export fn millrace_version() u32 {
    return layout.version_major << 16 | layout.version_minor;
}

pub export fn millrace_reason_name(reason: u32) [*:0]const u8 {
    return @as(layout.Reason, @fromBackingInt(reason)).name();
}

pub export fn millrace_reason_text(reason: u32) [*:0]const u8 {
    return reasons.text(@fromBackingInt(reason));
}

pub export fn millrace_status_text(status: i32) [*:0]const u8 {
    return switch (status) {
        arguments.done => "Done.",
        arguments.nothing => "Nothing yet, or the time was over before the call could be done.",
        arguments.end => "The stream has ended.",
        arguments.invalid => "An argument is wrong, or the call does not fit what was done before.",
        arguments.unsupported => "This system has no segments in files, or no streams.",
        arguments.not_found => "A directory of the path is missing.",
        arguments.access_denied => "The system denied access to the file.",
        arguments.name_too_long => "The path is too long.",
        arguments.no_space => "The file system is full, or the user's share of it.",
        arguments.no_resources => "Too many open files, or no memory.",
        arguments.system => "The system refused for a reason that is not foreseen.",
        else => reasons.text(@fromBackingInt(if (status < 0) @abs(status) else 0)),
    };
}

// Tests.

const builtin = @import("builtin");
const segments = @import("c/segment.zig");
const ports = @import("c/port.zig");
const mailboxes = @import("c/mailbox.zig");
const fixture = @import("c/fixture.zig");
const SegmentFile = @import("host/segment_file.zig").SegmentFile;
const testing = std.testing;
const Message = ports.Message;
const Pair = fixture.Pair;
const Storage = fixture.Storage;
const expectRead = fixture.expectRead;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;
const write = fixture.write;

test {
    _ = @import("testing/c_fuzz_test.zig");
    if (SegmentFile.supported) _ = @import("testing/c_fork_test.zig");
}

fn claim(port: *anyopaque, size: u32, place: *?*anyopaque) arguments.Status {
    return ports.millrace_port_claim(port, size, 0, @ptrCast(place));
}

fn expectNone(port: *anyopaque, status: arguments.Status) !void {
    var storage: [1024]u8 = undefined;
    var message: Message = undefined;
    const found = ports.millrace_port_read(port, &storage, storage.len, 0, &message);
    try expectStatus(status, found);
    try testing.expectEqual(std.mem.zeroes(Message), message);
}

test "c_abi: a message goes there and back, and the stream ends" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    const b = pair.side(1);
    try expectStatus(1, write(a, "{\"a\":1}", 7));
    try expectRead(b, "{\"a\":1}", 7);
    try expectNone(b, 0);
    try expectStatus(1, write(b, "", 8));
    try expectRead(a, "", 8);
    try expectStatus(1, ports.millrace_port_end(a));
    try expectStatus(1, ports.millrace_port_end(a));
    try expectStatus(reasonStatus(.pipe_ended), write(a, "x", 0));
    try expectNone(b, 2);
    // The other direction goes on.
    try expectStatus(1, write(b, "still", 9));
    try expectRead(a, "still", 9);
    pair.leave();
}

test "c_abi: an object is refused where it was moved, has left, or never was" {
    var pair: Pair = .{};
    try pair.open();
    var moved: Storage align(8) = pair.storage[0];
    try expectStatus(-256, ports.millrace_port_end(&moved));
    var blank: Storage align(8) = @splat(0);
    try expectStatus(-256, ports.millrace_port_end(&blank));
    try expectStatus(-256, ports.millrace_port_end(null));
    try expectStatus(-256, ports.millrace_port_end(@ptrFromInt(@intFromPtr(&pair.storage[0]) + 4)));
    try expectStatus(-256, ports.millrace_port_end(pair.segment()));
    try expectStatus(-256, mailboxes.millrace_mailbox_close(pair.side(0)));
    try testing.expectEqual(0, ports.millrace_port_reason(&blank));
    // Storage that holds an object cannot become another one, also not one of another kind.
    try expectStatus(-256, ports.millrace_port_attach(pair.side(0), pair.segment(), 0));
    try expectStatus(-256, mailboxes.millrace_mailbox_attach_reader(pair.side(0), &moved, 64));
    try expectStatus(1, ports.millrace_port_leave(pair.side(0)));
    try expectStatus(-256, ports.millrace_port_leave(pair.side(0)));
    pair.leave();
    try expectStatus(-256, segments.millrace_segment_leave(pair.segment()));
}

test "c_abi: a segment stays while a port is attached through it" {
    var pair: Pair = .{};
    try pair.open();
    try expectStatus(-256, segments.millrace_segment_leave(pair.segment()));
    try expectStatus(1, ports.millrace_port_leave(pair.side(0)));
    try expectStatus(-256, segments.millrace_segment_leave(pair.segment()));
    try expectStatus(1, ports.millrace_port_leave(pair.side(1)));
    try expectStatus(1, segments.millrace_segment_leave(pair.segment()));
}

test "c_abi: an attachment that fails leaves nothing behind" {
    var pair: Pair = .{};
    try pair.open();
    var storage: Storage align(8) = undefined;
    const vacant = reasonStatus(.segment_endpoint);
    try expectStatus(vacant, ports.millrace_port_attach(&storage, pair.segment(), 1));
    try expectStatus(vacant, ports.millrace_port_attach(&storage, pair.segment(), 2));
    try expectStatus(vacant, ports.millrace_port_attach_reader(&storage, pair.segment(), 2, 0));
    try expectStatus(-256, ports.millrace_port_attach(&storage, pair.side(0), 1));
    try expectStatus(-256, ports.millrace_port_leave(&storage));
    pair.leave();
}

test "c_abi: mistakes of the caller's are refused before anything is done" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    var bytes: [512]u8 align(8) = @splat(0);
    var message: Message = undefined;
    var place: ?*anyopaque = undefined;
    var count: usize = 1;
    const w = ports.millrace_port_write;
    try expectStatus(-256, w(a, null, 1, 0, 0, 0));
    try expectStatus(-256, w(a, &bytes, std.math.maxInt(usize), 0, 0, 0));
    try expectStatus(-256, w(a, &bytes, 1, 256, 0, 0));
    try expectStatus(-256, w(a, &bytes, 1, 0, 0, -2));
    // A message larger than the ring, without waiting; and a batch larger than a frame.
    try expectStatus(-256, w(a, &bytes, 129, 0, 0, 0));
    try expectStatus(-256, w(a, &bytes, 113, layout.codec_json_batch, 0, 1));
    try expectStatus(1, w(a, null, 0, 255, 0, 0));
    try expectStatus(-256, ports.millrace_port_read(a, null, 1, 0, &message));
    try expectStatus(-256, ports.millrace_port_read(a, &bytes, 1, 0, null));
    try expectStatus(-256, ports.millrace_port_read(a, &bytes, 1, 0, bytes[1..]));
    try expectStatus(-256, ports.millrace_port_read(a, &bytes, 1, -2, &message));
    try expectStatus(-256, claim(a, 113, &place));
    try expectStatus(-256, ports.millrace_port_claim(a, 1, 0, null));
    try expectStatus(-256, ports.millrace_port_publish(a, 0, 0, 0));
    try expectStatus(-256, ports.millrace_port_abandon(a));
    try expectStatus(-256, ports.millrace_port_release(a));
    try expectStatus(-256, ports.millrace_port_peek(a, 0, null));
    try expectStatus(-256, ports.millrace_port_stats(a, null));
    try expectStatus(-256, ports.millrace_port_set_inbox(a, null, 16));
    try expectStatus(-256, ports.millrace_port_write_many(a, null, 1, 0, 0, 0, &count));
    try testing.expectEqual(0, count);
    try expectStatus(-256, ports.millrace_port_write_many(a, null, 0, 0, 0, 0, null));
    pair.leave();
}

test "c_abi: a claim is filled where it lies, and excludes other writing" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    var place: ?*anyopaque = null;
    try expectStatus(1, claim(a, 10, &place));
    try expectStatus(-256, claim(a, 10, &place));
    try testing.expectEqual(null, place);
    try expectStatus(-256, write(a, "x", 0));
    try expectStatus(-256, ports.millrace_port_end(a));
    try expectStatus(-256, ports.millrace_port_publish(a, 17, 2, 5));
    try expectStatus(-256, ports.millrace_port_publish(a, 1, 256, 5));
    try expectStatus(1, ports.millrace_port_abandon(a));
    try expectNone(pair.side(1), 0);
    try expectStatus(1, claim(a, 10, &place));
    @memcpy(@as([*]u8, @ptrCast(place.?))[0..4], "four");
    try expectStatus(1, ports.millrace_port_publish(a, 4, 2, 5));
    try expectRead(pair.side(1), "four", 5);
    pair.leave();
}

test "c_abi: a frame is lent until it is released" {
    var pair: Pair = .{};
    try pair.open();
    const b = pair.side(1);
    var message: Message = undefined;
    try expectStatus(0, ports.millrace_port_peek(b, 0, &message));
    try expectStatus(1, write(pair.side(0), "lent", 6));
    try expectStatus(1, ports.millrace_port_peek(b, 0, &message));
    try testing.expectEqualStrings("lent", @as([*]const u8, @ptrCast(message.payload))[0..4]);
    try testing.expectEqual(3, message.flags);
    try expectStatus(-256, ports.millrace_port_peek(b, 0, &message));
    try expectNone(b, -256);
    try expectStatus(1, ports.millrace_port_release(b));
    try expectNone(b, 0);
    pair.leave();
}

test "c_abi: a message of 0 bytes lies in the caller's storage, in the ring or in the inbox" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    const b = pair.side(1);
    var message: Message = undefined;
    var storage: [8]u8 = undefined;
    // The pointer that the caller has passed, also NULL: the library must not return any other one.
    for ([_]?*anyopaque{ null, &storage }) |given| {
        for ([_]usize{ 0, storage.len }) |capacity| {
            if (given == null and capacity > 0) continue;
            try expectStatus(1, write(a, "", 1));
            try expectStatus(1, ports.millrace_port_read(b, given, capacity, 0, &message));
            try testing.expectEqual(given, @constCast(message.payload));
            try testing.expectEqual(0, message.size);
        }
    }
    // 64 of the 256 bytes were read, so the last of these messages ends at the end of the byte
    // area.
    for (0..12) |_| {
        var place: ?*anyopaque = null;
        try expectStatus(1, claim(a, 0, &place));
        try testing.expect(liesIn(&pair.memory, place));
        try expectStatus(1, ports.millrace_port_publish(a, 0, 0, 0));
        try expectStatus(1, ports.millrace_port_peek(b, 0, &message));
        try testing.expect(liesIn(&pair.memory, message.payload));
        try testing.expectEqual(place, @constCast(message.payload));
        try expectStatus(1, ports.millrace_port_release(b));
    }
    // From the inbox, which the message fills.
    var inbox: [16]u8 align(16) = undefined;
    try expectStatus(1, ports.millrace_port_set_inbox(a, &inbox, inbox.len));
    const payload: [400]u8 = @splat(0);
    for ([_]bool{ false, true }) |lends| {
        try expectStatus(1, write(b, "", 1));
        try expectStatus(0, ports.millrace_port_write(a, &payload, payload.len, 0, 0, 1));
        if (lends) {
            try expectStatus(1, ports.millrace_port_peek(a, 0, &message));
            try testing.expect(liesIn(&inbox, message.payload));
            try expectStatus(1, ports.millrace_port_release(a));
        } else {
            try expectStatus(1, ports.millrace_port_read(a, null, 0, 0, &message));
            try testing.expectEqual(null, message.payload);
        }
    }
    pair.leave();
}

/// Whether an address lies in these bytes, or right after them, as C allows.
fn liesIn(bytes: []const u8, address: ?*const anyopaque) bool {
    return @intFromPtr(address) -% @intFromPtr(bytes.ptr) <= bytes.len;
}

test "c_abi: the storage of a message in parts must be passed again" {
    var pair: Pair = .{};
    try pair.open();
    const payload: [400]u8 = @splat('p');
    var message: Message = undefined;
    var storage: [400]u8 = undefined;
    // The time is over in the middle of the message, so the rest never comes.
    const a = pair.side(0);
    try expectStatus(0, ports.millrace_port_write(a, &payload, payload.len, 0, 0, 1));
    const b = pair.side(1);
    try expectStatus(0, ports.millrace_port_read(b, &storage, storage.len, 0, &message));
    try expectNone(b, -256);
    try expectStatus(-256, ports.millrace_port_peek(b, 0, &message));
    try expectStatus(1, write(a, "next", 1));
    const cancelled = reasonStatus(.message_cancelled);
    try expectStatus(cancelled, ports.millrace_port_read(b, &storage, storage.len, 0, &message));
    try expectRead(b, "next", 1);
    // The size of the storage is the limit.
    try expectStatus(1, write(a, "12345", 1));
    const large = reasonStatus(.message_size);
    try expectStatus(large, ports.millrace_port_read(b, &storage, 4, 0, &message));
    try expectNone(b, 0);
    pair.leave();
}

test "c_abi: many messages are written until there is no room" {
    var pair: Pair = .{};
    try pair.open();
    const piece: ports.Piece = .{ .address = "", .size = 0 };
    const pieces: [100]ports.Piece = @splat(piece);
    var written: usize = 0;
    const many = ports.millrace_port_write_many;
    // 15 headers of 16 bytes, and the reserve.
    try expectStatus(0, many(pair.side(0), &pieces, pieces.len, 2, 3, 0, &written));
    try testing.expectEqual(15, written);
    for (0..written) |_| try expectRead(pair.side(1), "", 3);
    try expectStatus(1, many(pair.side(0), &pieces, 3, 2, 3, 1, &written));
    try testing.expectEqual(3, written);
    // All payloads are checked before the first one is written.
    var bad = pieces;
    bad[99] = .{ .address = null, .size = 1 };
    try expectStatus(-256, many(pair.side(0), &bad, bad.len, 2, 3, 1, &written));
    try testing.expectEqual(0, written);
    for (0..3) |_| try expectRead(pair.side(1), "", 3);
    try expectNone(pair.side(1), 0);
    pair.leave();
}

test "c_abi: more than fits one slice is written slice by slice" {
    const rings: [1]segments.Ring = .{.{ .writer = 0, .reader = 1, .capacity = 8192 }};
    var memory: [16 * 1024]u8 align(128) = @splat(0);
    var storage: [3]Storage align(8) = @splat(@splat(0));
    const size = segments.millrace_memory_size(2, &rings, 1);
    try testing.expectEqual(128 + 2 * 128 + 128 + 512 + 8192, size);
    try expectStatus(1, segments.millrace_memory_format(&memory, size, 2, &rings, 1));
    try expectStatus(1, segments.millrace_segment_attach(&storage[0], &memory, size, 0));
    const first = std.math.maxInt(u32);
    try expectStatus(1, ports.millrace_port_attach_writer(&storage[1], &storage[0], 0, first));
    try expectStatus(1, ports.millrace_port_attach_reader(&storage[2], &storage[0], 1, 0));
    const pieces: [150]ports.Piece = @splat(.{ .address = "payload", .size = 7 });
    for ([_]i32{ 0, 1_000, -1 }) |timeout_ms| {
        var written: usize = 0;
        const status = ports.millrace_port_write_many(
            &storage[1],
            &pieces,
            pieces.len,
            2,
            4,
            timeout_ms,
            &written,
        );
        try expectStatus(1, status);
        try testing.expectEqual(150, written);
        for (0..written) |_| try expectRead(&storage[2], "payload", 4);
        try expectNone(&storage[2], 0);
    }
    try expectStatus(1, ports.millrace_port_leave(&storage[1]));
    try expectNone(&storage[2], reasonStatus(.peer_closed));
    try expectStatus(1, ports.millrace_port_leave(&storage[2]));
    try expectStatus(1, segments.millrace_segment_leave(&storage[0]));
}

test "c_abi: a port of one direction refuses the other" {
    var pair: Pair = .{};
    try pair.open();
    pair.leave();
    @memset(&pair.memory, 0);
    const segment = pair.segment();
    const create = segments.millrace_segment_create;
    try expectStatus(1, create(segment, &pair.memory, 4096, 2, &fixture.both, 2, 0));
    const channel = reasonStatus(.segment_channel);
    const writer = pair.side(0);
    const reader = pair.side(1);
    // Channel 1 leads the other way, and there is no channel 2.
    try expectStatus(channel, ports.millrace_port_attach_writer(writer, segment, 0, 1));
    try expectStatus(channel, ports.millrace_port_attach_writer(writer, segment, 0, 2));
    try expectStatus(1, ports.millrace_port_attach_writer(writer, segment, 0, 0));
    try expectStatus(1, ports.millrace_port_attach_reader(reader, segment, 1, 0));
    try expectStatus(1, write(writer, "one way", 1));
    try expectNone(writer, -256);
    var message: Message = undefined;
    try expectStatus(-256, ports.millrace_port_peek(writer, 0, &message));
    try expectStatus(-256, ports.millrace_port_release(writer));
    try expectStatus(-256, ports.millrace_port_set_inbox(writer, null, 0));
    try expectStatus(-256, write(reader, "x", 0));
    try expectStatus(-256, ports.millrace_port_end(reader));
    try expectStatus(-256, ports.millrace_port_abandon(reader));
    try expectStatus(1, ports.millrace_port_peek(reader, 0, &message));
    try expectNone(reader, -256);
    try expectStatus(1, ports.millrace_port_release(reader));
    pair.leave();
}

test "c_abi: a supervisor fails and closes endpoints" {
    var pair: Pair = .{};
    try pair.open();
    const segment = pair.segment();
    const fail = segments.millrace_segment_fail_endpoint;
    const close = segments.millrace_segment_close_endpoint;
    const terminated = @backingInt(layout.Reason.peer_terminated);
    try testing.expectEqual(0, segments.millrace_segment_owner(segment, 0));
    try testing.expectEqual(0, segments.millrace_segment_owner(segment, 2));
    try expectStatus(-256, fail(segment, 0, 0, 0));
    try expectStatus(-256, fail(segment, 0, 0, @backingInt(layout.Reason.peer_closed)));
    try expectStatus(-256, fail(segment, 2, 0, terminated));
    try expectStatus(-256, fail(segment, 0, 1 << 24, terminated));
    try expectStatus(-256, close(segment, 2, 0));
    try expectStatus(-256, close(segment, 0, 1 << 24));
    // The owner that is named is not that of the endpoint [segment.state_owner].
    try expectStatus(1, fail(segment, 0, 1, terminated));
    try expectStatus(1, close(segment, 0, 1));
    try expectNone(pair.side(1), 0);
    try expectStatus(1, fail(segment, 0, 0, terminated));
    try expectNone(pair.side(1), reasonStatus(.peer_failed));
    try testing.expectEqual(terminated, ports.millrace_port_reason(pair.side(1)));
    try expectNone(pair.side(0), reasonStatus(.pipe_failed));
    try testing.expectEqual(terminated, ports.millrace_port_reason(pair.side(0)));
    try expectStatus(1, close(segment, 1, segments.millrace_segment_owner(segment, 1)));
    try expectNone(pair.side(1), reasonStatus(.pipe_closed));
    pair.leave();
}

test "c_abi: any thread may close, which ends the owner's wait" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = .{};
    try pair.open();
    const other = struct {
        fn close(port: *anyopaque) void {
            _ = ports.millrace_port_close(port);
        }
    };
    const thread: std.Thread = try .spawn(.{}, other.close, .{pair.side(1)});
    var storage: [16]u8 = undefined;
    var message: Message = undefined;
    const status = ports.millrace_port_read(pair.side(1), &storage, 16, 10_000, &message);
    thread.join();
    try expectStatus(reasonStatus(.pipe_closed), status);
    try expectNone(pair.side(0), reasonStatus(.peer_closed));
    pair.leave();
}

test "c_abi: the options of a port" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    var message: Message = undefined;
    var stats: ports.Stats = undefined;
    var storage: [8]u8 = undefined;
    try expectStatus(1, ports.millrace_port_check_peers(a));
    try expectStatus(1, ports.millrace_port_set_spin(a, 0));
    try expectStatus(0, ports.millrace_port_read(a, &storage, 8, 1, &message));
    try expectStatus(1, ports.millrace_port_stats(a, &stats));
    try testing.expect(stats.parks > 0);
    try expectStatus(1, ports.millrace_port_set_blocking(a, 0));
    const forbidden = reasonStatus(.wait_forbidden);
    try expectStatus(forbidden, ports.millrace_port_read(a, &storage, 8, 1_000, &message));
    try expectStatus(1, ports.millrace_port_set_blocking(a, 1));
    // While there is no room, arriving messages go into the inbox, whatever its address.
    var inbox: [65]u8 align(16) = undefined;
    try expectStatus(1, ports.millrace_port_set_inbox(a, inbox[1..], 64));
    try expectStatus(1, write(pair.side(1), "arrived", 1));
    const payload: [400]u8 = @splat(0);
    try expectStatus(0, ports.millrace_port_write(a, &payload, payload.len, 0, 0, 1));
    try expectStatus(-256, ports.millrace_port_set_inbox(a, null, 0));
    try expectRead(a, "arrived", 1);
    try expectStatus(1, ports.millrace_port_set_inbox(a, null, 0));
    pair.leave();
}

test "c_abi: geometries and memories that no reader would accept are refused" {
    var memory: [4096]u8 align(128) = @splat(0);
    var storage: Storage align(8) = @splat(0);
    const good = fixture.both[0];
    const size = segments.millrace_memory_size;
    try testing.expectEqual(2048, size(2, &fixture.both, 2));
    try testing.expectEqual(256, size(1, null, 0));
    try testing.expectEqual(0, size(0, null, 0));
    try testing.expectEqual(0, size(257, null, 0));
    try testing.expectEqual(0, size(2, null, 1));
    try testing.expectEqual(0, size(2, @ptrFromInt(@intFromPtr(&fixture.both) + 1), 1));
    try testing.expectEqual(0, size(2, &fixture.both, 1025));
    const five: [5]segments.Ring = @splat(.{ .writer = 0, .reader = 1, .capacity = 1 << 30 });
    try testing.expectEqual(0, size(2, &five, 5));
    var bad: [5]segments.Ring = @splat(good);
    bad[0].writer = 2;
    bad[1].reader = 2;
    bad[2].reader = 0;
    bad[3].capacity = 300;
    bad[4].start = 8;
    for (&bad) |*ring| {
        try testing.expectEqual(0, size(2, ring, 1));
        const format = segments.millrace_memory_format;
        try expectStatus(-256, format(&memory, memory.len, 2, ring, 1));
    }
    const small = reasonStatus(.segment_size);
    const create = segments.millrace_segment_create;
    try expectStatus(small, create(&storage, &memory, 2047, 2, &fixture.both, 2, 0));
    try expectStatus(small, create(&storage, memory[64..], 4000, 2, &fixture.both, 2, 0));
    try expectStatus(small, create(&storage, &memory, 0, 2, &fixture.both, 2, 0));
    try expectStatus(-256, create(&storage, null, 4096, 2, &fixture.both, 2, 0));
    try expectStatus(-256, create(null, &memory, 4096, 2, &fixture.both, 2, 0));
    try expectStatus(-256, create(&storage, &memory, 4096, 2, &fixture.both, 2, -2));
    try testing.expect(std.mem.allEqual(u8, &memory, 0));
    const attach = segments.millrace_segment_attach;
    try expectStatus(reasonStatus(.segment_unready), attach(&storage, &memory, 4096, 0));
    try expectStatus(1, create(&storage, &memory, 4096, 2, &fixture.both, 2, 0));
    try expectStatus(1, segments.millrace_segment_leave(&storage));
    const geometry = reasonStatus(.segment_geometry);
    try expectStatus(geometry, create(&storage, &memory, 4096, 2, &fixture.both, 1, 0));
}

test "c_abi: a mailbox" {
    var section: [32 + 8]u8 align(4) = @splat(0);
    var storage: [2]Storage align(8) = @splat(@splat(0));
    var bytes: [64]u8 = undefined;
    var size: usize = 1;
    const small = reasonStatus(.mailbox_size);
    const attach_writer = mailboxes.millrace_mailbox_attach_writer;
    try expectStatus(small, attach_writer(&storage[0], &section, 32));
    try expectStatus(small, attach_writer(&storage[0], section[1..], 33));
    try expectStatus(-256, attach_writer(&storage[0], null, 0));
    try expectStatus(1, attach_writer(&storage[0], &section, section.len));
    const attach_reader = mailboxes.millrace_mailbox_attach_reader;
    try expectStatus(1, attach_reader(&storage[1], &section, section.len));
    const put = mailboxes.millrace_mailbox_write;
    const get = mailboxes.millrace_mailbox_read;
    try expectStatus(1, mailboxes.millrace_mailbox_set_spin(&storage[0], 0));
    try expectStatus(-256, put(&storage[1], "[1]", 3, 0));
    try expectStatus(-256, get(&storage[0], &bytes, bytes.len, 0, &size));
    try expectStatus(-256, put(&storage[0], "{}", 2, 0));
    try expectStatus(0, get(&storage[1], &bytes, bytes.len, 0, &size));
    const payload = "[1,2,3,4,5]";
    try expectStatus(0, put(&storage[0], payload, payload.len, 0));
    try expectStatus(1, mailboxes.millrace_mailbox_partial(&storage[0]));
    try expectStatus(-256, put(&storage[0], "[1]", 3, 0));
    try expectStatus(0, get(&storage[1], &bytes, bytes.len, 0, &size));
    try expectStatus(-256, get(&storage[1], &bytes, bytes.len - 1, 0, &size));
    try expectStatus(1, put(&storage[0], payload, payload.len, 0));
    try expectStatus(0, mailboxes.millrace_mailbox_partial(&storage[0]));
    try expectStatus(1, get(&storage[1], &bytes, bytes.len, 0, &size));
    try testing.expectEqualStrings(payload, bytes[0..size]);
    try expectStatus(1, mailboxes.millrace_mailbox_close(&storage[0]));
    const closed = reasonStatus(.peer_closed);
    try expectStatus(closed, get(&storage[1], &bytes, bytes.len, 0, &size));
    try expectStatus(1, mailboxes.millrace_mailbox_leave(&storage[0]));
    try expectStatus(1, mailboxes.millrace_mailbox_leave(&storage[1]));
    try expectStatus(-256, mailboxes.millrace_mailbox_leave(&storage[1]));
}

test "c_abi: every status and reason has a text, unknown ones too" {
    const c_abi = @import("c.zig");
    try testing.expectEqual(0x1_0000, c_abi.millrace_version());
    try testing.expectEqualStrings("peer.lost", std.mem.span(c_abi.millrace_reason_name(67)));
    try testing.expectEqualStrings("unknown", std.mem.span(c_abi.millrace_reason_name(0xff_ffff)));
    for (std.enums.values(layout.Reason)) |reason| {
        const code: u32 = @backingInt(reason);
        try testing.expectEqualStrings(
            std.mem.span(c_abi.millrace_reason_text(code)),
            std.mem.span(c_abi.millrace_status_text(-@as(i32, @intCast(code)))),
        );
        const name = std.mem.span(c_abi.millrace_reason_name(code));
        try testing.expectEqualStrings(reason.name(), name);
    }
    const unknown = c_abi.millrace_reason_text(0);
    for ([_]i32{ 3, -255, -264, std.math.minInt(i32), std.math.maxInt(i32) }) |status| {
        try testing.expectEqual(unknown, c_abi.millrace_status_text(status));
    }
}
