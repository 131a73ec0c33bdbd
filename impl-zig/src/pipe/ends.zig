//! Whole messages, one way, over a ring [spec/pipe.md]: multipart messages, deadlines, the end of
//! the stream, closing, and what happens when the peer fails.
//!
//! Invariant: whatever bytes the peer writes, a call returns a result or one of the errors below.
//! An error that costs one message (`error.Message…`) is reported once, and the pipe goes on. A
//! fault of the structure (`error.Corrupt`) is kept, and every later call reports it again.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const wait = @import("../wait/endpoint.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const segment_file = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const Bytes = ring_file.Bytes;
const Endpoint = wait.Endpoint;
const Peer = wait.Peer;
const Segment = segment_file.Segment;
const State = segment_record.State;
const hot = ring_file.hot;
const reasonOf = @import("../error.zig").reasonOf;

pub const Writer = @import("outgoing.zig").Writer;
pub const Send = @import("outgoing.zig").Send;
pub const SendWith = @import("outgoing.zig").SendWith;
pub const Reader = @import("incoming.zig").Reader;

/// What ends every use of a pipe, in the order in which a call checks for it [pipe.first_answer].
/// `reason()` of the pipe says more about the errors that mean a failure.
pub const PipeError = error{
    /// This process was forked from the one that attached this endpoint: attach to another
    /// endpoint.
    PipeForked,
    /// This endpoint is closed.
    PipeClosed,
    /// A word or a frame that the peer wrote breaks the layout. The peer is now marked failed, and
    /// this end stores nothing in the channel any more.
    Corrupt,
    /// This endpoint was marked failed by its peer or its supervisor.
    PipeFailed,
    /// The peer closed without an `end`, or has stopped reading.
    PeerClosed,
    /// The peer's endpoint is marked failed.
    PeerFailed,
};

/// Why a message was not written.
pub const WriteError = PipeError || error{
    /// This writer has ended its stream.
    PipeEnded,
    /// The message was not written by its deadline.
    Timeout,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

/// Why no message was read.
pub const ReadError = PipeError || error{
    /// The writer gave up in the middle of a message; the parts of it are dropped.
    MessageCancelled,
    /// The stream ended in the middle of a message; the parts of it are dropped.
    MessageTruncated,
    /// A message was larger than the storage, and was dropped.
    MessageSize,
    /// A call, return or throw came to a reader that does not offer them, and was dropped.
    MessageKind,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

/// What a message carries besides its payload.
pub const Envelope = struct {
    kind: layout.FrameKind = .data,
    codec: layout.Codec = .bytes,
    /// The application's number of a data message, or the id of a call.
    tag: u32 = 0,

    /// Returns the header of a frame of such a message.
    pub fn header(envelope: Envelope, size: u32, flags: u8) frame.Header {
        return .{
            .size = size,
            .kind = @intCast(@backingInt(envelope.kind)),
            .flags = flags,
            .codec = @intCast(@backingInt(envelope.codec)),
            .tag = envelope.tag,
        };
    }

    /// Whether a writer may write such a message: the kind is that of a message, and the codec is a
    /// byte.
    pub fn valid(envelope: Envelope) bool {
        if (@backingInt(envelope.codec) > std.math.maxInt(u8)) return false;
        return switch (envelope.kind) {
            .data, .call, .@"return", .throw => true,
            else => false,
        };
    }
};

/// A message that was read: a copy in the reader's storage.
pub const Message = struct {
    payload: []u8,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
};

/// A frame that is lent where it lies, until `release`. The peer can change its bytes at any time.
pub const Lent = struct {
    payload: Bytes,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
    /// Whether this frame is the first one of its message, and whether it is the last one.
    first: bool,
    last: bool,
    /// Bytes of the whole message; 2^64 - 1 if the writer did not know its size when it began.
    total: u64,
};

/// Returns the channel on which endpoint `index` writes or reads: the named one, or else the first
/// such ring of the segment [pipe.find]. Call it before the endpoint is attached, so that a segment
/// that is refused is left as it was found [pipe.find_none].
pub fn find(
    segment: *const Segment,
    index: u32,
    named: ?u32,
    end: enum { writer, reader },
) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
    try segment.checkVacant(index);
    for (segment.channels, 0..) |channel, channel_index| {
        if (named) |wanted| if (wanted != channel_index) continue;
        if (channel.kind != .ring) continue;
        const found = if (end == .writer) channel.writer else channel.reader;
        if (found == index) return @intCast(channel_index);
    }
    return error.SegmentChannel;
}

/// The errors by which the state of the own endpoint ends a call.
pub const OwnError = error{ PipeForked, PipeClosed, PipeFailed };

/// Refuses a call if the state of the own endpoint is final.
pub fn checkOwn(endpoint: *Endpoint) callconv(hot) OwnError!void {
    const state = endpoint.marked();
    if (state == .attached) return;
    if (state == .closed) return endpoint.whyClosed();
    blame(endpoint, state);
    return error.PipeFailed;
}

/// Refuses a call if the state of the peer is final.
pub fn checkPeer(endpoint: *Endpoint, peer: *Peer) error{ PeerClosed, PeerFailed }!void {
    const state = peer.state();
    switch (state) {
        .vacant, .attached => {},
        .closed => return error.PeerClosed,
        .failed, .invalid => {
            // [segment.state_invalid]
            blame(endpoint, state);
            if (state == .invalid) endpoint.behind = .segment_state;
            return error.PeerFailed;
        },
    }
}

/// [pipe.failed_reason]
noinline fn blame(endpoint: *Endpoint, state: State) void {
    endpoint.behind = state.reason();
}

/// Marks the peer failed because of a fault in one of its words or frames [ring.fault]. Returns the
/// reason, for the caller to keep.
pub noinline fn fault(endpoint: *Endpoint, peer: *Peer, err: anyerror) layout.Reason {
    const why = reasonOf(err).?;
    peer.fail(endpoint, why);
    return why;
}

test {
    _ = @import("incoming.zig");
}

// Tests.
//
// Pipes: multipart messages, errors that cost one message, the end of a stream, and deadlines.

const builtin = @import("builtin");
const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Pair = fixture.Pair;

test "a message of every size comes back whole through every capacity" {
    const gpa = testing.allocator;
    const payload = try gpa.alloc(u8, 3000);
    defer gpa.free(payload);
    var storage: [3000]u8 = undefined;
    for ([_]u32{ 256, 1024, 4096 }) |capacity| {
        var pair: Pair = undefined;
        try pair.init(capacity, 0xffff_f000);
        var size: usize = 0;
        while (size <= payload.len) : (size += if (size < 300) 1 else 97) {
            const part = payload[0..size];
            fixture.pattern(part, @intCast(size));
            const envelope: millrace.Envelope = .{ .tag = @intCast(size), .codec = .text };
            // One thread plays both sides: a write that has no room goes on after a read.
            const halves = [_][]const u8{ part[0 .. size / 3], part[size / 3 ..] };
            var send: Send = .init(&halves, envelope, .forever);
            var got: ?millrace.Message = null;
            var pump: Pump = .{ .pair = &pair, .storage = &storage, .got = &got };
            var deadline: millrace.host.Deadline = .init(.forever);
            try pair.writer.writeWith(&send, &deadline, &pump);
            while (got == null) got = try pair.reader.tryRead(&storage);
            try testing.expectEqualSlices(u8, part, got.?.payload);
            try testing.expectEqual(envelope.tag, got.?.tag);
            try testing.expectEqual(.text, got.?.codec);
            try pair.expectNothing();
        }
    }
}

/// Reads while the writer waits for room.
const Pump = struct {
    pair: *Pair,
    storage: []u8,
    got: *?millrace.Message,

    pub fn waitForRoom(pump: *Pump, _: u32, _: anytype) millrace.Endpoint.Outcome {
        std.debug.assert(pump.got.* == null);
        pump.got.* = pump.pair.reader.tryRead(pump.storage) catch unreachable;
        return .found;
    }
};

test "a reader puts a message together whatever its cut, pads and extensions between" {
    var payload: [60]u8 = undefined;
    fixture.pattern(&payload, 1);
    for (0..60) |first| for (first + 1..61) |second| {
        var pair: Pair = undefined;
        try pair.init(512, 0xffff_fe00);
        var chunk: [16 + 60]u8 = @splat(0);
        std.mem.writeInt(u64, chunk[0..8], payload.len, .little);
        @memcpy(chunk[16..][0..first], payload[0..first]);
        var header: frame.Header = .{ .size = 0, .kind = 1, .flags = 1, .tag = 3 };
        header.size = @intCast(16 + first);
        pair.put(header, chunk[0 .. 16 + first]);
        pair.put(.{ .size = 5, .kind = 255, .flags = 0xff, .reserved = 1 }, "?????");
        const middle = payload[first..second];
        const is_last = second == 60;
        header.size = @intCast(middle.len);
        header.flags = if (is_last) 2 else 0;
        pair.put(header, middle);
        if (!is_last) {
            try pair.expectNothingPartial();
            const rest = payload[second..];
            pair.put(.{ .size = @intCast(rest.len), .kind = 1, .flags = 2, .tag = 3 }, rest);
        } else {
            try pair.expectMessage(&payload, 3);
            continue;
        }
        try pair.expectPartial(&payload, 3);
        try pair.expectNothing();
    };
}

test "a timeout in the middle of a message leaves a cancel, before the next message" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    // With these, three chunks of a quarter fill the ring to its reserve.
    for (0..3) |_| try pair.writer.write("", .{}, .none);
    var payload: [600]u8 = undefined;
    fixture.pattern(&payload, 2);
    try testing.expectError(error.Timeout, pair.writer.write(&payload, .{ .tag = 1 }, .ms(1)));
    try testing.expect(pair.writer.owed != null);
    // There is no room even for the cancel, so nothing changes.
    const tail = pair.writer.ring.tail;
    try testing.expectEqual(false, try pair.writer.tryWrite("later", .{ .tag = 2 }));
    try testing.expectEqual(tail, pair.writer.ring.tail);
    for (0..3) |_| try pair.expectPartial("", 0);
    try pair.expectNothingPartial();
    try testing.expect(pair.reader.partial());
    try testing.expect(try pair.writer.tryWrite("later", .{ .tag = 2 }));
    try testing.expectEqual(null, pair.writer.owed);
    try testing.expectError(error.MessageCancelled, pair.readPartial());
    try pair.expectMessage("later", 2);
    try pair.expectNothing();
}

test "tryWrite places all frames of a message or none, in every position" {
    var payload: [4096]u8 = undefined;
    fixture.pattern(&payload, 3);
    for ([_]u32{ 256, 512, 2048 }) |capacity| {
        var position: u32 = 0;
        while (position < capacity) : (position += 16) {
            var pair: Pair = undefined;
            try pair.init(capacity, position);
            const most = pair.writer.trySizeMax();
            for ([_]u32{ most, most - 1, capacity / 2 - 15, capacity / 2 - 16 }) |size| {
                if (size > most) continue;
                try testing.expect(try pair.writer.tryWrite(payload[0..size], .{}));
                const tail = pair.writer.ring.tail;
                if (try pair.writer.tryWrite(payload[0..size], .{})) {
                    try pair.expectMessage(payload[0..size], 0);
                } else {
                    try testing.expectEqual(tail, pair.writer.ring.tail);
                    try testing.expectEqual(null, pair.writer.owed);
                }
                try pair.expectMessage(payload[0..size], 0);
                try pair.expectNothing();
            }
        }
    }
}

test "end in the middle of a message: truncated once, then the end of the stream" {
    for ([_]bool{ false, true }) |room_for_cancel| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        var payload: [600]u8 = undefined;
        for (0..3) |_| try pair.writer.write("", .{}, .none);
        try testing.expectError(error.Timeout, pair.writer.write(&payload, .{}, .ms(1)));
        if (room_for_cancel) for (0..3) |_| try pair.expectPartial("", 0);
        if (room_for_cancel) try pair.expectNothingPartial();
        try pair.writer.end();
        try pair.writer.end(); // does nothing
        if (!room_for_cancel) for (0..3) |_| try pair.expectPartial("", 0);
        const expected: millrace.ReadError =
            if (room_for_cancel) error.MessageCancelled else error.MessageTruncated;
        try testing.expectError(expected, pair.readPartial());
        for (0..2) |_| try pair.expectNothing();
        try testing.expect(pair.reader.ended());
        // [pipe.end_once]
        pair.endpoints[0].close();
        try pair.expectNothing();
    }
}

test "what costs one message is reported once, and the pipe goes on" {
    var pair: Pair = undefined;
    try pair.init(4096, 0);
    var large: [300]u8 = undefined;
    var storage: [100]u8 = undefined;
    const Case = struct { size: u32, kind: millrace.layout.FrameKind, expected: ?anyerror };
    for ([_]Case{
        .{ .size = 100, .kind = .data, .expected = null },
        .{ .size = 101, .kind = .data, .expected = error.MessageSize },
        .{ .size = 5, .kind = .call, .expected = error.MessageKind },
        .{ .size = 5, .kind = .@"return", .expected = error.MessageKind },
        .{ .size = 300, .kind = .throw, .expected = error.MessageKind },
        .{ .size = 0, .kind = .data, .expected = null },
    }) |case| {
        try pair.writer.write(large[0..case.size], .{ .kind = case.kind }, .none);
        try pair.writer.write("next", .{}, .none);
        if (case.expected) |expected| {
            try testing.expectError(expected, pair.reader.tryRead(&storage));
        } else {
            try testing.expectEqual(case.size, (try pair.reader.tryRead(&storage)).?.payload.len);
        }
        try pair.expectMessage("next", 0);
        try pair.expectNothing();
    }
    pair.reader.calls = true;
    try pair.writer.write("now", .{ .kind = .call, .tag = 8 }, .none);
    try testing.expectEqual(.call, (try pair.reader.tryRead(&storage)).?.kind);
}

test "a message of many frames above the limit is skipped without adding up, its cancel unheard" {
    for ([_]u8{ 2, 6 }) |how| {
        var pair: Pair = undefined;
        try pair.init(4096, 0);
        var storage: [100]u8 = undefined;
        var preamble: [16]u8 = @splat(0);
        std.mem.writeInt(u64, preamble[0..8], std.math.maxInt(u64) - 1, .little);
        pair.put(.{ .size = 16, .kind = 1, .flags = 1 }, &preamble);
        pair.put(.{ .size = 3, .kind = 1 }, "abc");
        const ending = if (how == 2) "def" else "";
        pair.put(.{ .size = @intCast(ending.len), .kind = 1, .flags = how }, ending);
        pair.put(.{ .size = 1, .kind = 1, .flags = 3, .tag = 4 }, "x");
        try testing.expectError(error.MessageSize, pair.reader.tryRead(&storage));
        try testing.expectEqual(4, (try pair.reader.tryRead(&storage)).?.tag);
        try pair.expectNothing();
    }
}

test "a message of unknown size is dropped at the frame with which it is above the limit" {
    const parts = [_][]const u8{ "abc", "def", "g" };
    for (0..9) |limit| {
        var pair: Pair = undefined;
        try pair.init(4096, 0);
        var storage: [8]u8 = undefined;
        var first: [16 + 3]u8 = @splat(0);
        @memset(first[0..8], 0xff);
        first[16..].* = parts[0][0..3].*;
        pair.put(.{ .size = first.len, .kind = 1, .flags = 1 }, &first);
        pair.put(.{ .size = 3, .kind = 1 }, parts[1]);
        const kept = storage[0..limit];
        if (limit < 3 + 3) {
            try testing.expectError(error.MessageSize, pair.reader.tryRead(kept));
            try testing.expect(!pair.reader.partial());
        }
        pair.put(.{ .size = 1, .kind = 1, .flags = 2 }, parts[2]);
        pair.put(.{ .size = 1, .kind = 1, .flags = 3, .tag = 4 }, "x");
        if (limit == 3 + 3) try testing.expectError(error.MessageSize, pair.reader.tryRead(kept));
        if (limit > 3 + 3) {
            const message = (try pair.reader.tryRead(kept)).?;
            try testing.expectEqualStrings("abcdefg", message.payload);
        }
        try pair.expectMessage("x", 4);
    }
}

test "an inbox leaves a message of unknown size in the ring, after what it takes in" {
    var memory: [8192]u8 align(millrace.layout.segment_align) = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 1024, 256 } };
    try millrace.Port.format(&memory, rings);
    var inbox: [512]u8 align(16) = undefined;
    const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
    var ports: [2]millrace.Port = undefined;
    try ports[0].attach(&memory, 0, .{ .endpoint = endpoint });
    try ports[1].attach(&memory, 1, .{ .endpoint = endpoint, .inbox = &inbox });
    try ports[0].write("one", .{}, .none);
    const ring = &ports[0].writer.ring;
    const place = (try ring.claim(17)).?;
    @memset(place[0..8], 0xff);
    @memset(place[8..16], 0);
    place[16] = 'a';
    ring.finish(.{ .size = 17, .kind = 1, .flags = 1 });
    ring.publish();
    // The ring is full, so the next write waits, and takes in what it can.
    while (try ports[1].tryWrite("fill", .{})) {}
    try testing.expectError(error.Timeout, ports[1].write("wait", .{}, .ms(1)));
    try testing.expectEqual(1, ports[1].inbox.count);
    var storage: [600]u8 = undefined;
    try testing.expectEqualStrings("one", (try ports[1].tryRead(&storage)).?.payload);
    try testing.expectEqual(null, try ports[1].tryRead(&storage));
    const rest = (try ring.claim(400)).?;
    @memset(rest, 'b');
    ring.finish(.{ .size = 400, .kind = 1, .flags = 2 });
    ring.publish();
    try testing.expectEqual(401, (try ports[1].tryRead(&storage)).?.payload.len);
}

test "a header extension is skipped, whether the message is read or lent" {
    var pair: Pair = undefined;
    try pair.init(4096, 0);
    var bytes: [32 + 16 + 2]u8 = @splat(0);
    std.mem.writeInt(u32, bytes[0..4], 32, .little);
    std.mem.writeInt(u32, bytes[4..8], millrace.layout.extension_application_min, .little);
    bytes[32] = 5; // the total
    bytes[48..].* = "he".*;
    var last: [16 + 3]u8 = @splat(0);
    last[0] = 16;
    last[16..].* = "llo".*;
    for (0..2) |_| {
        pair.put(.{ .size = bytes.len, .kind = 1, .flags = 9 }, &bytes);
        pair.put(.{ .size = last.len, .kind = 1, .flags = 10 }, &last);
        pair.put(.{ .size = last.len, .kind = 1, .flags = 11 }, &last);
    }
    var storage: [5]u8 = undefined;
    const message = (try pair.reader.tryRead(&storage)).?;
    try testing.expectEqualStrings("hello", message.payload);
    try testing.expectError(error.MessageSize, pair.reader.tryRead(storage[0..2]));
    for ([_][]const u8{ "he", "llo", "llo" }, [_]u64{ 5, 5, 3 }) |part, total| {
        const lent = (try pair.reader.peek(.none)).?;
        try testing.expectEqualStrings(part, lent.payload);
        try testing.expectEqual(total, lent.total);
        pair.reader.release();
    }
    try pair.expectNothing();
}

test "faults of a frame end the pipe, mark the writer, and are reported again" {
    const Case = struct { header: frame.Header, reason: millrace.Reason };
    for ([_]Case{
        .{ .header = .{ .size = 0, .kind = 0 }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = 7, .flags = 3 }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = 1, .flags = 7 }, .reason = .frame_flags },
        .{
            .header = .{ .size = 0, .kind = 1, .flags = 3, .reserved = 1 },
            .reason = .frame_reserved,
        },
        .{ .header = .{ .size = 1, .kind = 1, .flags = 3 }, .reason = .frame_size },
        .{ .header = .{ .size = 0, .kind = 6 }, .reason = .frame_pad },
        .{ .header = .{ .size = 0, .kind = 1, .flags = 6 }, .reason = .frame_sequence },
    }) |case| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        pair.put(case.header, "");
        try pair.expectCorrupt(case.reason);
    }
    var pair: Pair = undefined;
    try pair.init(256, 0);
    var preamble: [16]u8 = @splat(0);
    preamble[15] = 1;
    pair.put(.{ .size = 16, .kind = 1, .flags = 1 }, &preamble);
    try pair.expectCorrupt(.frame_reserved);
    try pair.init(256, 0);
    preamble[15] = 0;
    preamble[0] = 4;
    pair.put(.{ .size = 16, .kind = 1, .flags = 1 }, &preamble);
    pair.put(.{ .size = 3, .kind = 1, .flags = 2 }, "abc");
    try pair.expectCorrupt(.frame_total);
    // The writer has noticed, and nothing is written any more.
    try testing.expectError(error.PipeFailed, pair.writer.write("", .{}, .none));
}

test "close: a reader gets everything published, then peer.closed; a writer peer.closed" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    try pair.writer.write("last", .{}, .none);
    pair.endpoints[0].close();
    try testing.expectError(error.PipeClosed, pair.writer.write("", .{}, .none));
    try pair.expectMessage("last", 0);
    for (0..2) |_| try pair.expectFailure(error.PeerClosed);
    try pair.init(256, 0);
    pair.endpoints[1].close();
    try testing.expectError(error.PeerClosed, pair.writer.write("", .{}, .none));
    try pair.writer.end(); // [pipe.end_closed]
    try testing.expectError(error.PipeEnded, pair.writer.write("", .{}, .none));
    try pair.expectFailure(error.PipeClosed);
}

test "failure: the same with peer.failed and the supervisor's reason" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    try pair.writer.write("last", .{}, .none);
    pair.fail(0, .peer_terminated);
    try testing.expectError(error.PipeFailed, pair.writer.write("", .{}, .none));
    try pair.expectMessage("last", 0);
    try pair.expectFailure(error.PeerFailed);
    try testing.expectEqual(.peer_terminated, pair.reader.reason().?);
    try pair.init(256, 0);
    pair.segment.record(0).state = 0x77; // a state that no endpoint may store
    try pair.expectFailure(error.PeerFailed);
    try testing.expectEqual(.segment_state, pair.reader.reason().?);
}

test "timeouts: read returns null, write fails, both after their time" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    var storage: [16]u8 = undefined;
    const host = &fixture.clockwork;
    const begin = host.now();
    try testing.expectEqual(null, try pair.reader.read(&storage, .ms(2_500)));
    const passed = host.now() - begin;
    try testing.expect(passed >= 2_500_000_000 and passed < 2_501_000_000);
    // [wait.slice] 2.5 s are three sleeps.
    try testing.expectEqual(3, pair.endpoints[1].stats.parks);
    for (0..15) |_| try pair.writer.write("", .{}, .none);
    try testing.expectError(error.Timeout, pair.writer.write("", .{}, .ms(50)));
    try testing.expectEqual(0, pair.writer.ring.control.writer_wants);
    try testing.expectEqual(0, pair.reader.ring.control.reader_wants);
    pair.endpoints[1].blocking = false;
    for (0..15) |_| try pair.expectMessage("", 0);
    try testing.expectError(error.WaitForbidden, pair.reader.read(&storage, .ms(50)));
    try testing.expectEqual(null, try pair.reader.read(&storage, .none));
}

test "writeMany publishes once, and returns how many it wrote by the deadline" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    const payloads: [20][]const u8 = @splat("x");
    try testing.expectEqual(3, try pair.writer.writeMany(payloads[0..3], .{}, .none));
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes_elided);
    try testing.expectEqual(4, try pair.writer.writeMany(&payloads, .{ .tag = 1 }, .none));
    for (0..3) |_| try pair.expectMessage("x", 0);
    for (0..4) |_| try pair.expectMessage("x", 1);
    try pair.expectNothing();
}

test "peek lends whole messages and chunks, release gives them back" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    var payload: [128]u8 = undefined;
    fixture.pattern(&payload, 9);
    try pair.writer.write("one", .{ .tag = 1 }, .none);
    const lent = (try pair.reader.peek(.none)).?;
    try testing.expectEqualStrings("one", lent.payload);
    try testing.expect(lent.first and lent.last and lent.total == 3);
    try testing.expectEqual(0, pair.reader.ring.control.head); // [pipe.lend]
    pair.reader.release();
    try testing.expectEqual(32, pair.reader.ring.control.head);
    try testing.expect(try pair.writer.tryWrite(&payload, .{ .tag = 2 }));
    var offset: usize = 0;
    while (offset < payload.len) {
        const chunk = (try pair.reader.peek(.none)).?;
        try testing.expectEqual(offset == 0, chunk.first);
        try testing.expectEqual(128, chunk.total);
        try testing.expectEqualSlices(u8, payload[offset..][0..chunk.payload.len], chunk.payload);
        offset += chunk.payload.len;
        try testing.expectEqual(offset == payload.len, chunk.last);
        pair.reader.release();
    }
    try testing.expectEqual(null, try pair.reader.peek(.none));
}

test "close from another thread frees a wait without an end" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.init(256, 0);
    for (&pair.endpoints) |*endpoint| endpoint.host = .native;
    const Late = struct {
        fn close(endpoint: *millrace.Endpoint) void {
            millrace.Host.native.pause(20_000_000);
            endpoint.close();
        }
    };
    const begin = millrace.Host.native.now();
    var storage: [16]u8 = undefined;
    const thread = try std.Thread.spawn(.{}, Late.close, .{&pair.endpoints[1]});
    defer thread.join();
    try testing.expectError(error.PipeClosed, pair.reader.read(&storage, .ms(10_000)));
    try testing.expect(millrace.Host.native.now() - begin < 5_000_000_000);
}
