//! Vacating endpoints: when it is allowed, what it stores, and how both sides go on.

const std = @import("std");
const millrace = @import("../root.zig");
const file_fixture = @import("../host/fixture.zig");
const fixture = @import("../testing/fixture.zig");
const segment_record = @import("../wait/state.zig");
const testing = std.testing;
const layout = millrace.layout;
const Port = millrace.Port;
const Segment = millrace.Segment;

const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };

/// A port with both ends on one thread. Must not move after it was initialized.
const Duo = struct {
    memory: [4096]u8 align(128),
    storage: [2]millrace.Channel,
    segment: Segment,
    ports: [2]Port,
    inbox: [512]u8 align(16),
    kept: [512]u8,

    fn init(duo: *Duo) !void {
        const starts: [2]u32 = .{ 0, 0xffff_ff80 };
        try Port.format(&duo.memory, .{ .capacities = .{ 256, 256 }, .starts = starts });
        duo.segment = try .attach(&duo.memory, &duo.storage, .none);
        try duo.ports[0].init(&duo.segment, 0, .{ .endpoint = options });
        const all: Port.Options = .{ .endpoint = options, .inbox = &duo.inbox };
        try duo.ports[1].init(&duo.segment, 1, all);
    }

    /// Attaches the next owner of endpoint 0.
    fn attachNext(duo: *Duo) !void {
        try duo.ports[0].init(&duo.segment, 0, .{ .endpoint = options });
    }

    fn expectRead(duo: *Duo, index: usize, expected: ?[]const u8) !void {
        const found = try duo.ports[index].tryRead(&duo.kept);
        if (expected) |text| {
            try testing.expectEqualStrings(text, (found orelse return error.Nothing).payload);
        } else try testing.expectEqual(null, found);
    }

    fn expectClosed(duo: *Duo) !void {
        try testing.expectError(error.PeerClosed, duo.ports[1].tryRead(&duo.kept));
    }

    fn record(duo: *Duo) *segment_record.Record {
        return duo.segment.record(0);
    }
};

test "vacate: what the dead one wrote is read first, and the next one gets what is written for it" {
    var duo: Duo = undefined;
    try duo.init();
    const survivor = &duo.ports[1];
    for (0..5) |generation| {
        // Both rings wrap around, in the middle of a message, and one of them is full.
        while (try duo.ports[0].tryWrite("last words", .{})) {}
        while (try survivor.tryWrite("never read", .{})) {}
        try testing.expect(!survivor.vacate());
        duo.ports[0].close();
        duo.record().features = 8;
        try testing.expect(!survivor.vacate());
        while (true) duo.expectRead(1, "last words") catch |err| {
            try testing.expectEqual(error.PeerClosed, err);
            break;
        };
        try testing.expect(survivor.vacate());
        try testing.expect(!survivor.vacate());
        const next: u32 = @intCast(generation + 1);
        try testing.expectEqual(next, duo.record().generation);
        try testing.expectEqual(next << layout.reason_shift, duo.record().state);
        const record = duo.record();
        for ([_]u32{ record.wakes, record.agent, record.features }) |word| {
            try testing.expectEqual(0, word);
        }
        try survivor.write("welcome", .{}, .none);
        try duo.attachNext();
        try testing.expectEqual(next << layout.reason_shift | 1, duo.record().state);
        try duo.expectRead(0, "welcome");
        try duo.expectRead(0, null);
        try duo.ports[0].write("thanks", .{}, .none);
        try duo.expectRead(1, "thanks");
        try duo.expectRead(1, null);
    }
}

test "vacate: an owner that was replaced may not act, and nobody marks the next one for it" {
    var duo: Duo = undefined;
    try duo.init();
    const owner = duo.segment.ownerOf(0);
    duo.segment.fail(owner, .peer_terminated, &fixture.clockwork);
    try testing.expectError(error.PeerFailed, duo.ports[1].tryRead(&duo.kept));
    try testing.expect(duo.ports[1].vacate());
    var old = duo.ports[0].writer;
    var endpoint = duo.ports[0].endpoint;
    old.ring.endpoint = &endpoint;
    try testing.expectError(error.PipeFailed, old.write("late", .{}, .none));
    try duo.attachNext();
    try testing.expectError(error.PipeFailed, old.write("late", .{}, .none));
    const before = duo.record().state;
    endpoint.close();
    duo.segment.fail(owner, .peer_terminated, &fixture.clockwork);
    try testing.expectEqual(before, duo.record().state);
    try duo.expectRead(1, null);
}

test "vacate: a fault, an end, parts, an owed cancel and claims are the last owner's" {
    var duo: Duo = undefined;
    try duo.init();
    const survivor = &duo.ports[1];
    // Two frames of a message that has three.
    var large: [150]u8 = @splat('a');
    var send: @import("../pipe/ends.zig").Send = .init(&.{&large}, .{}, .forever);
    const Twice = struct {
        left: u32 = 1,
        pub fn waitForRoom(waiter: *@This(), _: u32, _: anytype) millrace.Endpoint.Outcome {
            waiter.left -= 1;
            return .timeout;
        }
    };
    _ = try duo.ports[0].tryWrite(large[0..100], .{});
    var waiter: Twice = .{};
    var deadline: millrace.host.Deadline = .init(.forever);
    const given_up = duo.ports[0].writer.writeWith(&send, &deadline, &waiter);
    try testing.expectError(error.Timeout, given_up);
    try duo.expectRead(1, large[0..100]);
    try duo.expectRead(1, null);
    try testing.expect(survivor.reader.partial());
    // The survivor gives up a message as well, and finishes another one.
    while (try survivor.tryWrite("", .{})) {}
    survivor.writer.owed = .{ .tag = 7 };
    try survivor.end();
    duo.ports[0].close();
    try duo.expectClosed();
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.reader.inProgress());
    try testing.expectEqual(null, survivor.writer.owed);
    _ = try survivor.claim(1, .none);
    survivor.finish(1, .{});
    _ = try survivor.claim(2, .none);
    try duo.attachNext();
    @atomicStore(u32, &survivor.reader.ring.control.tail, 3, .seq_cst);
    try testing.expectError(error.Corrupt, survivor.tryRead(&duo.kept));
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.writer.isClaimed());
    survivor.publish();
    try duo.attachNext();
    try duo.expectRead(0, null);
    try survivor.write("new", .{}, .none);
    try duo.expectRead(0, "new");
    try duo.ports[0].write("new", .{}, .none);
    try duo.expectRead(1, "new");
    // The end of the last owner's stream is not that of the next owner's.
    try duo.ports[0].end();
    duo.ports[0].close();
    try duo.expectRead(1, null);
    try testing.expect(survivor.ended());
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.ended());
}

test "vacate: what stands in the inbox is read, and a message that was begun there is not" {
    var duo: Duo = undefined;
    try duo.init();
    const survivor = &duo.ports[1];
    try duo.ports[0].write("one", .{}, .none);
    const ring = &duo.ports[0].writer.ring;
    const first = (try ring.claim(20)).?;
    @memset(first, 0);
    first[0] = 9;
    ring.finish(.{ .size = 20, .kind = 1, .flags = 1 });
    ring.publish();
    while (try survivor.tryWrite("full", .{})) {}
    try testing.expectError(error.Timeout, survivor.write("full", .{}, .ms(1)));
    try testing.expect(survivor.inbox.filling);
    duo.ports[0].close();
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.inbox.filling);
    try duo.attachNext();
    try duo.ports[0].write("two", .{}, .none);
    for ([_]?[]const u8{ "one", "two", null }) |expected| try duo.expectRead(1, expected);
}

test "vacate: refused while a frame is lent, and when this end has closed" {
    var duo: Duo = undefined;
    try duo.init();
    try duo.ports[0].write("one", .{}, .none);
    _ = (try duo.ports[1].peek(.none)).?;
    duo.ports[0].close();
    try testing.expect(!duo.ports[1].vacate());
    duo.ports[1].release();
    const before = duo.record().*;
    const generation = &duo.record().generation;
    generation.* = std.math.maxInt(u32);
    try testing.expect(!duo.ports[1].vacate());
    generation.* = 0;
    duo.ports[1].close();
    try testing.expect(!duo.ports[1].vacate());
    try testing.expectEqual(before.state, duo.record().state);
}

test "vacate: every ring of a client of a hub, and no endpoint that has another peer" {
    var memory: [8192]u8 align(128) = undefined;
    const unknown: layout.ChannelKind = @fromBackingInt(9);
    var channels = [_]millrace.Channel{
        .{ .writer = 1, .reader = 0, .data_size = 256 },
        .{ .writer = 1, .reader = 0, .data_size = 256 },
        .{ .writer = 0, .reader = 1, .data_size = 256 },
        .{ .writer = 2, .reader = 0, .data_size = 256 },
        .{ .kind = unknown, .writer = 2, .reader = 5, .data_size = 0, .control_size = 0 },
    };
    for ([_]u32{ 5, 1 }) |other| {
        channels[4].reader = other;
        try Segment.format(&memory, .{ .endpoint_count = 3, .channels = &channels });
        var storage: [channels.len]millrace.Channel = undefined;
        const segment: Segment = try .attach(&memory, &storage, .none);
        var endpoints: [3]millrace.Endpoint = undefined;
        for (&endpoints, 0..) |*end, index| end.* = try .attach(&segment, @intCast(index), options);
        var readers: [3]millrace.Reader = undefined;
        for (&readers, [_]u32{ 0, 1, 3 }) |*reader, channel| {
            reader.* = try .init(&endpoints[0], &segment, channel);
        }
        var writer: millrace.Writer = try .init(&endpoints[0], &segment, 2);
        for (endpoints[1..]) |*end| end.close();
        const both: []const *millrace.Reader = &.{ &readers[0], &readers[1] };
        try testing.expect(!millrace.vacate(both, &.{}));
        try testing.expect(!millrace.vacate(both[0..1], &.{&writer}));
        try testing.expect(!millrace.vacate(&.{ both[0], both[0] }, &.{&writer}));
        const alone = other == 5;
        try testing.expectEqual(alone, millrace.vacate(both, &.{&writer}));
        // A channel of another kind, whichever endpoints it leads to.
        try testing.expect(!millrace.vacate(&.{&readers[2]}, &.{}));
        if (alone) endpoints[1] = try .attach(&segment, 1, options);
    }
}

test "vacate: in a file not while the record is locked" {
    if (!millrace.SegmentFile.supported) return error.SkipZigTest;
    var directory: file_fixture.Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var ends: [2]file_fixture.End = undefined;
    for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
    defer ends[1].close();
    var storage: [16]u8 = undefined;
    ends[0].port.close();
    try testing.expectError(error.PeerClosed, ends[1].port.tryRead(&storage));
    try testing.expect(!ends[1].port.vacate());
    ends[0].die();
    try testing.expect(ends[1].port.vacate());
    try ends[0].open(path, 0);
    defer ends[0].close();
    try ends[0].port.write("again", .{}, .none);
    try ends[1].expectMessage("again", .none);
}
