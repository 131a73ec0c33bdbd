//! What calls do at their limits: with a peer that is hostile, gone, or just fast, or that can only
//! poll.

const std = @import("std");
const builtin = @import("builtin");
const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const Port = millrace.Port;

/// A machine whose clock moves 1 ms at every reading and every notify, and on which a peer acts at
/// that moment.
const meddling: millrace.Host = blk: {
    var host = fixture.clockwork;
    const functions = struct {
        fn now() u64 {
            time_ns += 1_000_000;
            if (meddle) |act| act();
            return time_ns;
        }

        fn notify(_: *const u32) void {
            _ = now();
        }
    };
    host.now = functions.now;
    host.notify = functions.notify;
    break :blk host;
};
var time_ns: u64 = 1;
var meddle: ?*const fn () void = null;
var pair_met: *Pair = undefined;
var port_met: *Port = undefined;

test "a writer whose reader keeps up still gives up at its deadline" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    pair.endpoints[0].host = &meddling;
    pair.endpoints[0].spin_ns = 1_000_000_000;
    pair_met = &pair;
    meddle = struct {
        fn drain() void {
            const control = pair_met.writer.ring.control;
            @atomicStore(u32, &control.head, pair_met.writer.ring.published, .seq_cst);
            @atomicStore(u32, &control.reader_wants, pair_met.writer.ring.published | 1, .seq_cst);
        }
    }.drain;
    meddle.?();
    defer meddle = null;
    const payload: [64 * 1024]u8 = @splat(1);
    const begin_ns = time_ns;
    try testing.expectError(error.Timeout, pair.writer.write(&payload, .{}, .ms(20)));
    try testing.expect(time_ns - begin_ns < 100_000_000);
    try testing.expect(pair.writer.owed != null);
    // [ring.one_load] Without waiting, a call returns what one load shows, though the reader would
    // make room for more.
    const many: [100][]const u8 = @splat("x");
    meddle = null;
    try testing.expect(try pair.writer.writeMany(&many, .{}, .none) < 8);
}

test "an own state that this endpoint never stored ends every call" {
    // [segment.own_state] Vacant, unknown.
    for ([_]u32{ 0, 0x100, 4, 0xff, 0x1ff }) |word| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        for (0..2) |index| pair.segment.record(@intCast(index)).state = word;
        try testing.expectError(error.PipeFailed, pair.writer.write("x", .{}, .none));
        try testing.expectEqual(null, pair.writer.reason());
        try pair.expectFailure(error.PipeFailed);
        try testing.expectEqual(null, pair.reader.reason());
    }
}

test "a peer that leaves in the middle of a message gives the reader its storage back" {
    for ([_]bool{ false, true }) |own| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        var preamble: [16]u8 = @splat(0);
        preamble[0] = 40;
        pair.put(.{ .size = 16, .kind = 1, .flags = 1 }, &preamble);
        try pair.expectNothingPartial();
        try testing.expect(pair.reader.partial());
        pair.endpoints[@intFromBool(own)].close();
        const expected: millrace.ReadError = if (own) error.PipeClosed else error.PeerClosed;
        try testing.expectError(expected, pair.readPartial());
        try testing.expect(!pair.reader.partial());
        // Other storage, and the rest of a message that comes late: the same error is reported
        // again.
        pair.put(.{ .size = 40, .kind = 1, .flags = 2 }, &(@as([40]u8, @splat(1))));
        for (0..2) |_| try pair.expectFailure(expected);
    }
}

test "setSpin does not make a thread spin that must not block" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    const endpoint = &pair.endpoints[1];
    endpoint.blocking = false;
    endpoint.setSpin(1_000_000);
    var storage: [16]u8 = undefined;
    const begin_ns = fixture.clockwork.now();
    try testing.expectError(error.WaitForbidden, pair.reader.read(&storage, .ms(50)));
    try testing.expect(fixture.clockwork.now() - begin_ns < 20_000);
}

/// Both ends of a port on one thread.
const Both = struct {
    memory: [4096]u8 align(128) = @splat(0),
    inbox: [512]u8 align(16) = undefined,
    a: Port = undefined,
    b: Port = undefined,

    fn init(both: *Both, host: *const millrace.Host) !void {
        const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
        const endpoint: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
        try both.a.create(&both.memory, rings, 0, .{ .endpoint = endpoint, .inbox = &both.inbox });
        try both.b.create(&both.memory, rings, 1, .{ .endpoint = endpoint });
    }

    /// b publishes the first chunk of a message, and a takes it into its inbox.
    fn fillPartly(both: *Both) !void {
        while (try both.a.tryWrite("full", .{})) {}
        const ring = &both.b.writer.ring;
        const bytes = (try ring.claim(16)).?;
        @memset(bytes, 0);
        bytes[0] = 40;
        ring.finish(.{ .size = 16, .kind = 1, .flags = 1 });
        ring.publish();
        try testing.expectError(error.Timeout, both.a.write("full", .{}, .ms(1)));
        try testing.expect(both.a.inbox.filling);
    }
};

test "a port that is closed while its inbox holds half a message can still be read" {
    var both: Both = .{};
    try both.init(&meddling);
    try both.fillPartly();
    // The ring has room for two messages. One is finished and not published; the write publishes it
    // before it waits.
    var storage: [100]u8 = undefined;
    for (0..2) |_| try testing.expect((try both.b.tryRead(&storage)) != null);
    _ = try both.a.claim(32, .none);
    both.a.finish(32, .{});
    @atomicStore(u32, &both.a.writer.ring.control.reader_wants, 1, .seq_cst);
    port_met = &both.a;
    meddle = struct {
        fn close() void {
            port_met.close();
        }
    }.close;
    defer meddle = null;
    try testing.expectError(error.PipeClosed, both.a.write("full", .{}, .ms(5)));
    try testing.expect(both.a.inbox.stopped);
    for (0..2) |_| try testing.expectError(error.PipeClosed, both.a.read(&storage, .none));
}

test "peek is allowed while half a message stands in the inbox" {
    var both: Both = .{};
    try both.init(&fixture.clockwork);
    try both.fillPartly();
    try testing.expect(both.a.peekFits());
    try testing.expectEqual(null, try both.a.peek(.none));
}

test "a final state that only one of a port's pipes saw does not turn its waits into a loop" {
    var both: Both = .{};
    try both.init(&fixture.clockwork);
    while (try both.a.tryWrite("full", .{})) {}
    const state = &both.a.writer.ring.peer.record.state;
    var storage: [16]u8 = undefined;
    @atomicStore(u32, state, 2, .seq_cst);
    try testing.expectError(error.PeerClosed, both.a.read(&storage, .none));
    @atomicStore(u32, state, 1, .seq_cst);
    const parks = both.a.stats().parks;
    try testing.expectError(error.Timeout, both.a.write("full", .{}, .ms(250)));
    try testing.expect(both.a.stats().parks > parks);
}

test "reading publishes what is finished, though a claim is open" {
    var both: Both = .{};
    try both.init(&fixture.clockwork);
    (try both.a.claim(3, .none))[0..3].* = "one".*;
    both.a.finish(3, .{ .tag = 1 });
    (try both.a.claim(3, .none))[0..3].* = "two".*;
    var storage: [16]u8 = undefined;
    try testing.expectEqual(null, try both.a.read(&storage, .ms(1)));
    try testing.expectEqualStrings("one", (try both.b.tryRead(&storage)).?.payload);
    both.a.finish(3, .{ .tag = 2 });
    both.a.publish();
    try testing.expectEqualStrings("two", (try both.b.tryRead(&storage)).?.payload);
}

test "a fault found while a port writes: the ring is left alone, its space is not given back" {
    var both: Both = .{};
    try both.init(&meddling);
    while (try both.a.tryWrite("full", .{})) {}
    const ring = &both.b.writer.ring;
    for ([_]u8{ 3, 7 }) |flags| {
        _ = (try ring.claim(0)).?;
        ring.finish(.{ .size = 0, .kind = 1, .flags = flags });
    }
    ring.publish();
    // A hostile owner removes the mark while the writer waits.
    meddle = struct {
        fn undo() void {
            @atomicStore(u32, &port_met.writer.ring.peer.record.state, 1, .seq_cst);
        }
    }.undo;
    port_met = &both.a;
    defer meddle = null;
    try testing.expectError(error.Timeout, both.a.write("full", .{}, .ms(20)));
    try testing.expectEqual(.frame_flags, both.a.reader.fault.?);
    try testing.expectEqual(0, both.a.reader.ring.control.head);
}

test "echo between two threads of which one or both can only poll" {
    if (builtin.single_threaded) return error.SkipZigTest;
    const kinds = [_]*const millrace.Host{ .native, &millrace.host.polling };
    for ([_][2]usize{ .{ 0, 1 }, .{ 1, 0 }, .{ 1, 1 } }) |hosts| {
        var memory: [4096]u8 align(128) = @splat(0);
        const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
        var a: Port = undefined;
        const options: millrace.Endpoint.Options = .{ .host = kinds[hosts[0]], .spin_us = 0 };
        try a.create(&memory, rings, 0, .{ .endpoint = options });
        const shared: millrace.Memory = &memory;
        const thread = try std.Thread.spawn(.{}, pollEcho, .{ shared, kinds[hosts[1]] });
        defer thread.join();
        defer a.close();
        var storage: [1000]u8 = undefined;
        var payload: [1000]u8 = undefined;
        for (0..20) |index| {
            const part = payload[0 .. index * 50];
            fixture.pattern(part, @intCast(index));
            try a.write(part, .{}, .ms(10_000));
            const message = (try a.read(&storage, .ms(10_000))) orelse return error.NoMessage;
            try testing.expectEqualSlices(u8, part, message.payload);
        }
        try a.end();
        try testing.expectEqual(null, try a.read(&storage, .ms(10_000)));
        try testing.expect(a.ended());
    }
}

fn pollEcho(memory: millrace.Memory, host: *const millrace.Host) !void {
    var b: Port = undefined;
    try b.attach(memory, 1, .{ .endpoint = .{ .host = host, .spin_us = 0 } });
    var storage: [1000]u8 = undefined;
    while (try b.read(&storage, .ms(10_000))) |message| {
        try b.write(message.payload, .{}, .ms(10_000));
    }
    try b.end();
}
