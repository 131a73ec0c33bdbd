//! What a call reports if several facts hold at once, which reason it states for a failure, and
//! what a stopped pipe leaves unchanged.

const std = @import("std");
const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Pair = fixture.Pair;

/// Bit n of `mask` says whether fact n holds.
fn holds(mask: u32, comptime Fact: type, fact: Fact) bool {
    return mask >> @backingInt(fact) & 1 != 0;
}

test "a call to write or to end answers by the first row that holds [pipe.first_answer]" {
    const Fact = enum(u5) {
        closed,
        fault,
        ended,
        own_closed,
        own_failed,
        peer_closed,
        peer_failed,
    };
    for (0..1 << 7) |number| {
        const mask: u32 = @intCast(number);
        var pair: Pair = undefined;
        try pair.init(256, 0);
        if (holds(mask, Fact, .ended)) try pair.writer.end();
        if (holds(mask, Fact, .fault)) pair.writer.fault = .ring_cursor;
        // Of two final states of one endpoint, the first one stays.
        if (holds(mask, Fact, .own_closed)) pair.segment.record(0).state = 2;
        if (holds(mask, Fact, .own_failed)) pair.fail(0, .peer_lost);
        if (holds(mask, Fact, .peer_closed)) pair.endpoints[1].close();
        if (holds(mask, Fact, .peer_failed)) pair.fail(1, .peer_lost);
        if (holds(mask, Fact, .closed)) pair.endpoints[0].close();
        const answers = [_]anyerror{
            error.PipeClosed, error.Corrupt,    error.PipeEnded,  error.PipeClosed,
            error.PipeFailed, error.PeerClosed, error.PeerFailed,
        };
        const expected: ?anyerror = if (mask == 0) null else answers[@ctz(mask)];
        const tail = pair.writer.ring.control.tail;
        if (expected) |answer| {
            try testing.expectError(answer, pair.writer.write("x", .{}, .ms(1)));
            try testing.expectError(answer, pair.writer.tryWrite("x", .{}));
            try testing.expectError(answer, pair.writer.writeMany(&.{"x"}, .{}, .none));
            try testing.expectError(answer, pair.writer.writeParts(&.{"x"}, .{}, .none));
            try testing.expectError(answer, pair.writer.claim(1, .none));
            try testing.expectEqual(tail, pair.writer.ring.control.tail);
        } else try pair.writer.write("x", .{}, .ms(1));
        // A second end does nothing, whatever has happened since. Nor does a first one if either
        // state is final, after which this end has ended its stream [pipe.end_closed].
        const final = mask != 0 and switch (@as(Fact, @fromBackingInt(@intCast(@ctz(mask))))) {
            .own_closed, .own_failed, .peer_closed, .peer_failed => true,
            .closed, .fault, .ended => false,
        };
        if (expected == null or final or holds(mask, Fact, .ended)) {
            for (0..2) |_| try pair.writer.end();
        } else try testing.expectError(expected.?, pair.writer.end());
        if (!final) continue;
        try testing.expectEqual(tail, pair.writer.ring.control.tail);
        try testing.expectError(error.PipeEnded, pair.writer.write("x", .{}, .ms(1)));
    }
}

test "a call to read answers by the first row that holds [pipe.first_answer]" {
    const Fact = enum(u5) { closed, fault, ended, message, own_closed, own_failed, peer_failed };
    for (0..1 << 7) |number| {
        const mask: u32 = @intCast(number);
        var pair: Pair = undefined;
        try pair.init(256, 0);
        if (holds(mask, Fact, .ended)) {
            try pair.writer.end();
            try pair.expectNothing();
        }
        if (holds(mask, Fact, .message)) pair.put(.{ .size = 0, .kind = 1, .flags = 3 }, "");
        if (holds(mask, Fact, .fault)) pair.reader.fault = .frame_kind;
        if (holds(mask, Fact, .own_closed)) pair.segment.record(1).state = 2;
        if (holds(mask, Fact, .own_failed)) pair.fail(1, .peer_lost);
        if (holds(mask, Fact, .peer_failed)) pair.fail(0, .peer_lost);
        if (holds(mask, Fact, .closed)) pair.endpoints[1].close();
        const answers = [_]?anyerror{
            error.PipeClosed, error.Corrupt,    null,             null,
            error.PipeClosed, error.PipeFailed, error.PeerFailed,
        };
        var storage: [16]u8 = undefined;
        const found = pair.reader.read(&storage, .ms(1));
        if (mask == 0 or answers[@ctz(mask)] == null) {
            const is_message = mask != 0 and @ctz(mask) == @backingInt(Fact.message);
            try testing.expectEqual(is_message, try found != null);
        } else {
            try testing.expectError(answers[@ctz(mask)].?, found);
        }
        try testing.expectEqual(holds(mask, Fact, .ended), pair.reader.ended());
    }
}

test "what an inbox holds comes before a fault in the ring, and behind an own close" {
    for ([_]bool{ false, true }) |closed| {
        var memory: [4096]u8 align(128) = @splat(0);
        var inbox: [64]u8 align(16) = undefined;
        const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
        const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        var a: millrace.Port = undefined;
        var b: millrace.Port = undefined;
        try a.create(&memory, rings, 0, .{ .endpoint = endpoint, .inbox = &inbox });
        try b.create(&memory, rings, 1, .{ .endpoint = endpoint });
        try b.write("one", .{}, .none);
        _ = (try b.writer.ring.claim(0)).?;
        b.writer.ring.finish(.{ .size = 0, .kind = 1, .flags = 7 });
        b.publish();
        while (try a.tryWrite("full", .{})) {}
        // [port.inbox_fault]
        try testing.expectError(error.PeerFailed, a.write("full", .{}, .ms(1)));
        try testing.expectEqual(.frame_flags, a.reason().?);
        if (closed) a.close();
        var storage: [16]u8 = undefined;
        if (!closed) try testing.expectEqualStrings("one", (try a.tryRead(&storage)).?.payload);
        const expected: millrace.ReadError = if (closed) error.PipeClosed else error.Corrupt;
        for (0..2) |_| try testing.expectError(expected, a.tryRead(&storage));
        const writes: millrace.WriteError = if (closed) error.PipeClosed else error.PeerFailed;
        try testing.expectError(writes, a.write("full", .{}, .ms(1)));
    }
}

/// On this machine, an extension frame is published whenever room is given back.
const Flood = struct {
    var pair: Pair = undefined;
    var host = fixture.clockwork;

    fn notify(_: *const u32) void {
        pair.put(.{ .size = 0, .kind = 255 }, "");
        arm();
    }

    fn arm() void {
        const control = pair.reader.ring.control;
        @atomicStore(u32, &control.writer_wants, pair.reader.ring.head | 1, .seq_cst);
    }
};

test "a final state is reported behind one more look, whatever goes on [pipe.look_again]" {
    Flood.host.notify = Flood.notify;
    for ([_]millrace.Timeout{ .none, .ms(5), .forever }) |timeout| for (0..2) |index| {
        try Flood.pair.init(256, 0);
        // The peer's state, or the own one, as a supervisor changes it.
        Flood.pair.segment.record(@intCast(index)).state = layout.endpoint_state_closed;
        Flood.pair.endpoints[1].host = &Flood.host;
        Flood.pair.put(.{ .size = 0, .kind = 255 }, "");
        Flood.arm();
        var storage: [16]u8 = undefined;
        const expected: millrace.ReadError = if (index == 0) error.PeerClosed else error.PipeClosed;
        try testing.expectError(expected, Flood.pair.reader.read(&storage, timeout));
        // Two loads, each of which showed one frame.
        try testing.expectEqual(2 * 16, Flood.pair.reader.ring.tail);
    };
}

test "what a failure has for a reason is handed out as it stands [pipe.failed_reason]" {
    const Case = struct { word: u32, own: ?u32, peer: ?u32 };
    for ([_]Case{
        .{ .word = 67 << 8 | 3, .own = 67, .peer = 67 },
        .{ .word = 0x12_3456 << 8 | 3, .own = 0x12_3456, .peer = 0x12_3456 },
        .{ .word = 3, .own = null, .peer = null },
        .{ .word = 67 << 8 | 4, .own = null, .peer = 10 },
    }) |case| {
        for (0..2) |index| {
            var pair: Pair = undefined;
            try pair.init(256, 0);
            pair.segment.record(@intCast(index)).state = case.word;
            const own = [_]bool{ index == 0, index == 1 };
            const failed = [_]anyerror{ error.PeerFailed, error.PipeFailed };
            const reasons = [_]?u32{ case.peer, case.own };
            const writer_fails = failed[@intFromBool(own[0])];
            try testing.expectError(writer_fails, pair.writer.write("x", .{}, .none));
            try expectReason(reasons[@intFromBool(own[0])], pair.writer.reason());
            var storage: [16]u8 = undefined;
            const reader_fails = failed[@intFromBool(own[1])];
            try testing.expectError(reader_fails, pair.reader.tryRead(&storage));
            try expectReason(reasons[@intFromBool(own[1])], pair.reader.reason());
        }
    }
}

fn expectReason(expected: ?u32, found: ?millrace.Reason) !void {
    try testing.expectEqual(expected, if (found) |reason| @backingInt(reason) else null);
}

test "the upper bits of a peer's state mean nothing but behind failed [segment.state_low]" {
    for ([_]u32{ 0x101, 0xffff_ff01 }) |word| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        pair.segment.record(1).state = word;
        try pair.writer.write("x", .{ .tag = 1 }, .none);
        pair.segment.record(1).state = layout.endpoint_state_attached;
        pair.segment.record(0).state = word;
        try pair.expectMessage("x", 1);
        pair.segment.record(0).state = word & ~@as(u32, 0xff) | 2;
        try pair.expectFailure(error.PeerClosed);
    }
}

test "close drops what is finished and not published [pipe.close]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    _ = try pair.writer.claim(1, .none);
    pair.writer.finish(1, .{});
    _ = try pair.writer.claim(1, .none);
    pair.endpoints[0].close();
    pair.writer.publish();
    try testing.expectEqual(0, pair.writer.ring.control.tail);
    try testing.expectError(error.PipeClosed, pair.writer.end());
    pair.writer.abandon();
    try pair.expectFailure(error.PeerClosed);

    var memory: [4096]u8 align(128) = @splat(0);
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    var port: millrace.Port = undefined;
    try port.create(&memory, rings, 0, .{ .endpoint = .{ .host = &fixture.clockwork } });
    _ = try port.claim(1, .none);
    port.finish(1, .{});
    port.close();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.PipeClosed, port.read(&storage, .ms(1)));
    try testing.expectEqual(0, port.writer.ring.control.tail);
}

test "close takes back what is lent or claimed, and nothing is stored for it [pipe.close]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    try pair.writer.write("one", .{}, .none);
    try testing.expect(!pair.reader.isLent());
    _ = (try pair.reader.peek(.none)).?;
    try testing.expect(pair.reader.isLent());
    const place = try pair.writer.claim(1, .none);
    try testing.expect(pair.writer.isClaimed());
    for (&pair.endpoints) |*endpoint| endpoint.close();
    const before = pair.memory;
    try testing.expect(!pair.reader.isLent());
    try testing.expectError(error.PipeClosed, pair.reader.peek(.none));
    try pair.expectFailure(error.PipeClosed);
    pair.reader.release();
    pair.reader.flush();
    try testing.expect(!pair.writer.isClaimed());
    try testing.expectError(error.PipeClosed, pair.writer.write("x", .{}, .none));
    try testing.expectError(error.PipeClosed, pair.writer.claim(1, .none));
    try testing.expectError(error.PipeClosed, pair.writer.end());
    place[0] = before[1024 + 48];
    pair.writer.finish(1, .{});
    pair.writer.publish();
    try testing.expectEqualSlices(u8, &before, &pair.memory);
}

test "publish does nothing where nothing is finished [pipe.publish_none]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    @atomicStore(u32, &pair.writer.ring.control.reader_wants, 1, .seq_cst);
    const before = pair.memory;
    pair.writer.publish();
    _ = try pair.writer.claim(1, .none);
    pair.writer.publish();
    pair.writer.abandon();
    pair.writer.publish();
    try testing.expectEqualSlices(u8, &before, &pair.memory);
    _ = try pair.writer.claim(1, .none);
    pair.writer.finish(1, .{});
    for (0..2) |_| pair.writer.publish();
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes);
}

test "behind a fault nothing is stored in the channel any more [ring.fault]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    while (try pair.writer.tryWrite("", .{})) {}
    for (0..3) |_| try pair.expectMessage("", 0);
    pair.reader.flush();
    _ = try pair.writer.claim(1, .none);
    pair.writer.finish(1, .{});
    const control = pair.writer.ring.control;
    @atomicStore(u32, &control.head, 8, .seq_cst);
    try testing.expectError(error.Corrupt, pair.writer.claim(100, .none));
    const before = control.*;
    pair.writer.publish();
    try testing.expectError(error.Corrupt, pair.writer.end());
    try testing.expectError(error.Corrupt, pair.writer.write("", .{}, .ms(1)));
    try testing.expectEqual(before, control.*);

    // Frames that are released, and whose room is not given back yet.
    try pair.init(1024, 0);
    for (0..3) |_| {
        _ = (try pair.writer.ring.claim(0)).?;
        pair.writer.ring.finish(.{ .size = 0, .kind = 1, .flags = 3 });
    }
    pair.put(.{ .size = 0, .kind = 1, .flags = 7 }, "");
    for (0..3) |_| try pair.expectMessage("", 0);
    try pair.expectCorrupt(.frame_flags);
    pair.reader.flush();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.Corrupt, pair.reader.read(&storage, .ms(1)));
    try testing.expectEqual(0, pair.reader.ring.control.head);
    try testing.expectEqual(0, pair.reader.ring.control.reader_wants);
}

test "the cancel that a writer owes is published, whatever becomes of the claim [pipe.owed]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    for (0..3) |_| try pair.writer.write("", .{}, .none);
    const payload: [600]u8 = @splat(1);
    try testing.expectError(error.Timeout, pair.writer.write(&payload, .{}, .ms(1)));
    for (0..3) |_| try pair.expectPartial("", 0);
    try pair.expectNothingPartial();
    _ = try pair.writer.claim(1, .none);
    pair.writer.abandon();
    try testing.expectError(error.MessageCancelled, pair.readPartial());
}

test "parts that were dropped for a state do not excuse the rest [pipe.keep_parts]" {
    for ([_]u8{ 24, 25 }) |rest| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        var preamble: [32]u8 = @splat(0);
        preamble[0] = 40;
        pair.put(.{ .size = 32, .kind = 1, .flags = 1 }, &preamble);
        try pair.expectNothingPartial();
        pair.fail(1, .peer_lost);
        try testing.expectError(error.PipeFailed, pair.readPartial());
        try testing.expect(!pair.reader.partial());
        const part: [25]u8 = @splat(1);
        pair.put(.{ .size = rest, .kind = 1, .flags = 2 }, part[0..rest]);
        if (rest == 24) {
            try pair.expectFailure(error.PipeFailed);
        } else try pair.expectCorrupt(.frame_total);
    }
}

test "find: the named ring, or the first, of an endpoint that is vacant [pipe.find]" {
    const Found = error{ SegmentEndpoint, SegmentChannel }!u32;
    const Case = struct { index: u32, named: ?u32 = null, writer: Found, reader: Found };
    const none = error.SegmentChannel;
    var memory: [8192]u8 align(128) = undefined;
    const channels = [_]millrace.Channel{
        .{ .kind = .property, .writer = 0, .reader = 1, .control_size = 128, .data_size = 128 },
        .{ .writer = 2, .reader = 0, .data_size = 256 },
        .{ .writer = 0, .reader = 1, .data_size = 256 },
        .{ .writer = 0, .reader = 2, .data_size = 256 },
    };
    try millrace.Segment.format(&memory, .{ .endpoint_count = 4, .channels = &channels });
    var storage: [4]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(&memory, &storage, .none);
    for ([_]Case{
        .{ .index = 0, .writer = 2, .reader = 1 },
        .{ .index = 0, .named = 3, .writer = 3, .reader = none },
        .{ .index = 0, .named = 0, .writer = none, .reader = none },
        .{ .index = 0, .named = 4, .writer = none, .reader = none },
        .{ .index = 1, .writer = none, .reader = 2 },
        .{ .index = 3, .writer = none, .reader = none },
        .{ .index = 4, .writer = error.SegmentEndpoint, .reader = error.SegmentEndpoint },
    }) |case| {
        const writer = millrace.Writer.find(&segment, case.index, case.named);
        try testing.expectEqual(case.writer, writer);
        const reader = millrace.Reader.find(&segment, case.index, case.named);
        try testing.expectEqual(case.reader, reader);
    }
    // [pipe.find_none] The endpoint is checked first, and nothing has changed.
    for (0..4) |index| try testing.expectEqual(0, segment.record(@intCast(index)).state);
    segment.record(3).state = layout.endpoint_state_closed;
    try testing.expectError(error.SegmentEndpoint, millrace.Writer.find(&segment, 3, null));
}
