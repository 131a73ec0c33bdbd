//! Ports: echo both ways between real threads, the inbox, and how a port ends. Every wait is
//! bounded.

const std = @import("std");
const builtin = @import("builtin");
const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Port = millrace.Port;

const patience: millrace.Timeout = .ms(20_000);

const Setup = struct {
    capacity: u32,
    start: u32 = 0,
    spin_us: u32,
    count: u32,
    size_max: u32,
    inbox: bool = false,
};

fn echo(memory: millrace.Memory, setup: Setup) !void {
    var inbox: [16_384]u8 align(16) = undefined;
    var b: Port = undefined;
    try b.attach(memory, 1, .{
        .endpoint = .{ .spin_us = setup.spin_us },
        .inbox = if (setup.inbox) &inbox else &.{},
    });
    var storage: [65_536]u8 = undefined;
    while (try b.read(&storage, patience)) |message| {
        try b.write(message.payload, .{ .tag = message.tag, .codec = message.codec }, patience);
    }
    try testing.expect(b.ended());
    try b.end();
}

/// Exchanges messages of seeded sizes, one after the other, there and back.
fn echoTest(setup: Setup, seed: u64) !void {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [64 * 1024]u8 align(128) = @splat(0);
    const rings: millrace.Rings = .{
        .capacities = .{ setup.capacity, setup.capacity },
        .starts = .{ setup.start, setup.start +% 16 },
    };
    var a: Port = undefined;
    try a.create(&memory, rings, 0, .{ .endpoint = .{ .spin_us = setup.spin_us } });
    const thread = try std.Thread.spawn(.{}, echo, .{ @as(millrace.Memory, &memory), setup });
    defer thread.join();
    defer a.close();
    var random: std.Random.DefaultPrng = .init(seed);
    var storage: [65_536]u8 = undefined;
    var payload: [65_536]u8 = undefined;
    for (0..setup.count) |index| {
        const size = random.random().uintAtMost(u32, setup.size_max);
        fixture.pattern(payload[0..size], @intCast(index));
        try a.write(payload[0..size], .{ .tag = @intCast(index), .codec = .text }, patience);
        const message = (try a.read(&storage, patience)) orelse return error.NoMessage;
        try testing.expectEqual(index, message.tag);
        try testing.expectEqual(.text, message.codec);
        try testing.expect(std.mem.eql(u8, payload[0..size], message.payload));
    }
    try a.end();
    try testing.expectEqual(null, try a.read(&storage, patience));
    try testing.expect(a.ended());
}

test "echo between two threads that spin" {
    try echoTest(.{
        .capacity = 4096,
        .start = 0xffff_f000,
        .spin_us = 1000,
        .count = 5000,
        .size_max = 200,
    }, 1);
}

test "echo between two threads that sleep at once" {
    try echoTest(.{
        .capacity = 1024,
        .start = 0xffff_ff00,
        .spin_us = 0,
        .count = 1500,
        .size_max = 200,
    }, 2);
}

test "echo of messages larger than the rings, spinning and sleeping" {
    try echoTest(.{ .capacity = 256, .spin_us = 100, .count = 300, .size_max = 3000 }, 3);
    try echoTest(.{ .capacity = 1024, .spin_us = 0, .count = 100, .size_max = 30_000 }, 4);
}

test "a stream of seeded sizes from thread to thread, one after the other and in batches" {
    if (builtin.single_threaded) return error.SkipZigTest;
    for ([_]u32{ 0, 200 }) |spin_us| {
        var memory: [16 * 1024]u8 align(128) = undefined;
        const geometry = fixture.pipeGeometry(2048, 0xffff_fc00);
        try millrace.Segment.format(&memory, .{ .endpoint_count = 2, .channels = &geometry });
        const shared: millrace.Memory = &memory;
        const thread = try std.Thread.spawn(.{}, produce, .{ shared, spin_us });
        defer thread.join();
        var channels: [1]millrace.Channel = undefined;
        const segment: millrace.Segment = try .attach(&memory, &channels, patience);
        var endpoint: millrace.Endpoint = try .attach(&segment, 1, .{ .spin_us = spin_us });
        defer endpoint.close();
        var reader: millrace.Reader = try .init(&endpoint, &segment, 0);
        var storage: [4096]u8 = undefined;
        var payload: [4096]u8 = undefined;
        var expected: u32 = 0;
        while (try reader.read(&storage, patience)) |message| : (expected += 1) {
            try testing.expectEqual(expected, message.tag);
            fixture.pattern(payload[0..message.payload.len], expected);
            try testing.expect(std.mem.eql(u8, payload[0..message.payload.len], message.payload));
        }
        try testing.expect(reader.ended());
        try testing.expectEqual(stream_count, expected);
    }
}

const stream_count = 20_000;

fn produce(memory: millrace.Memory, spin_us: u32) !void {
    var channels: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(memory, &channels, patience);
    var endpoint: millrace.Endpoint = try .attach(&segment, 0, .{ .spin_us = spin_us });
    var writer: millrace.Writer = try .init(&endpoint, &segment, 0);
    var random: std.Random.DefaultPrng = .init(5);
    var payload: [4096]u8 = undefined;
    for (0..stream_count) |index| {
        const shift = random.random().int(u4);
        const size = random.random().uintLessThan(u32, @as(u32, 1) << @min(shift, 12));
        fixture.pattern(payload[0..size], @intCast(index));
        if (size < 900 and size % 3 == 0) {
            const bytes = try writer.claim(size, patience);
            @memcpy(bytes, payload[0..size]);
            writer.finish(size, .{ .tag = @intCast(index) });
            if (size % 2 == 0) writer.publish();
        } else {
            try writer.write(payload[0..size], .{ .tag = @intCast(index) }, patience);
        }
    }
    try writer.end();
}

test "two floods pass one another through the inboxes" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [16 * 1024]u8 align(128) = @splat(0);
    var a: Port = undefined;
    var inbox: [8192]u8 align(16) = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    try a.create(&memory, rings, 0, .{ .inbox = &inbox, .endpoint = .{ .spin_us = 0 } });
    const thread = try std.Thread.spawn(.{}, floodOther, .{@as(millrace.Memory, &memory)});
    defer thread.join();
    defer a.close();
    try flood(&a);
    try testing.expect(a.stats().parks < 10_000);
}

fn floodOther(memory: millrace.Memory) !void {
    var b: Port = undefined;
    var inbox: [8192]u8 align(16) = undefined;
    try b.attach(memory, 1, .{ .inbox = &inbox, .endpoint = .{ .spin_us = 0 } });
    try flood(&b);
}

/// Writes far more than the ring holds before it reads anything.
fn flood(port: *Port) !void {
    var payload: [300]u8 = undefined;
    for (0..20) |index| {
        const size = index * 15;
        fixture.pattern(payload[0..size], @intCast(index));
        try port.write(payload[0..size], .{ .tag = @intCast(index) }, patience);
    }
    var storage: [300]u8 = undefined;
    for (0..20) |index| {
        const message = (try port.read(&storage, patience)) orelse return error.NoMessage;
        try testing.expectEqual(index, message.tag);
        fixture.pattern(payload[0 .. index * 15], @intCast(index));
        try testing.expectEqualSlices(u8, payload[0 .. index * 15], message.payload);
    }
}

/// Both ends of a port on one thread.
const Both = struct {
    memory: [8192]u8 align(128) = @splat(0),
    inbox: [512]u8 align(16) = undefined,
    a: Port = undefined,
    b: Port = undefined,

    fn init(both: *Both, inbox_size: usize) !void {
        const rings: millrace.Rings = .{ .capacities = .{ 256, 1024 } };
        const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        try both.a.create(&both.memory, rings, 0, .{
            .endpoint = endpoint,
            .inbox = @alignCast(both.inbox[0..inbox_size]),
        });
        try both.b.create(&both.memory, rings, 1, .{ .endpoint = endpoint });
    }

    /// Waits for room, in vain.
    fn stall(both: *Both) !void {
        while (try both.a.tryWrite("full", .{})) {}
        try testing.expectError(error.Timeout, both.a.write("full", .{}, .ms(1)));
    }
};

test "the inbox keeps messages and the errors among them in order, up to its limit" {
    var both: Both = .{};
    try both.init(512);
    try both.b.write("one", .{ .tag = 1 }, .none);
    try both.b.write("call", .{ .kind = .call }, .none);
    try both.b.write("", .{ .tag = 2 }, .none);
    const large: [500]u8 = @splat(7);
    try both.b.write(&large, .{ .tag = 3 }, .none);
    try both.stall();
    try testing.expectEqual(3, both.a.inbox.count);
    try both.b.end();
    var storage: [600]u8 = undefined;
    try testing.expectEqualStrings("one", (try both.a.tryRead(&storage)).?.payload);
    try testing.expectError(error.MessageKind, both.a.tryRead(&storage));
    try testing.expectEqual(2, (try both.a.tryRead(&storage)).?.tag);
    try testing.expectEqualSlices(u8, &large, (try both.a.tryRead(&storage)).?.payload);
    try testing.expectEqual(null, try both.a.tryRead(&storage));
    try testing.expect(both.a.ended());
}

test "a message whose parts come while the port writes is completed in the inbox" {
    var both: Both = .{};
    try both.init(512);
    var payload: [400]u8 = undefined;
    fixture.pattern(&payload, 4);
    // b places the first chunks of a message that does not fit a's ring at once.
    const filler: [400]u8 = @splat(1);
    for (0..2) |_| try both.b.write(&filler, .{}, .none);
    var storage: [600]u8 = undefined;
    try testing.expect((try both.a.tryRead(&storage)) != null);
    try testing.expect((try both.a.tryRead(&storage)) != null);
    const ring = &both.b.writer.ring;
    var chunk: [216]u8 = @splat(0);
    std.mem.writeInt(u64, chunk[0..8], 400, .little);
    @memcpy(chunk[16..], payload[0..200]);
    @memcpy((try ring.claim(216)).?, &chunk);
    ring.finish(.{ .size = 216, .kind = 1, .flags = 1, .tag = 9 });
    ring.publish();
    try both.stall();
    try testing.expect(both.a.inbox.filling);
    try testing.expectEqual(null, try both.a.tryRead(&storage));
    @memcpy((try ring.claim(200)).?, payload[200..]);
    ring.finish(.{ .size = 200, .kind = 1, .flags = 2, .tag = 9 });
    ring.publish();
    const lent = (try both.a.peek(.none)).?;
    try testing.expectEqualSlices(u8, &payload, lent.payload);
    try testing.expectEqual(9, lent.tag);
    both.a.release();
    try testing.expectEqual(null, try both.a.tryRead(&storage));
}

test "a port without an inbox times out, and loses nothing" {
    var both: Both = .{};
    try both.init(0);
    try both.b.write("one", .{ .tag = 1 }, .none);
    try both.stall();
    var storage: [16]u8 = undefined;
    try testing.expectEqual(1, (try both.a.tryRead(&storage)).?.tag);
    try both.a.end();
    try testing.expectError(error.PipeEnded, both.a.write("x", .{}, .none));
    both.b.close();
    try testing.expectError(error.PeerClosed, both.a.tryRead(&storage));
}

test "a port refuses a segment without its two rings, and leaves it as it was" {
    var memory: [4096]u8 align(128) = undefined;
    const geometry = fixture.pipeGeometry(256, 0);
    try millrace.Segment.format(&memory, .{ .endpoint_count = 3, .channels = &geometry });
    var port: Port = undefined;
    for (0..3) |index| {
        const attached = port.attach(&memory, @intCast(index), .{ .timeout = .none });
        try testing.expectError(error.SegmentChannel, attached);
    }
    try testing.expectError(error.SegmentEndpoint, port.attach(&memory, 3, .{ .timeout = .none }));
    const three = [_]millrace.Channel{
        .{ .writer = 0, .reader = 1, .data_size = 256 },
        .{ .writer = 2, .reader = 0, .data_size = 256 },
    };
    try millrace.Segment.format(&memory, .{ .endpoint_count = 3, .channels = &three });
    try testing.expectError(error.SegmentChannel, port.attach(&memory, 0, .{ .timeout = .none }));
    try testing.expectEqual(0, std.mem.readInt(u32, memory[132..136], .little));
}

test "a peer that dies while a thread sleeps: its supervisor wakes the sleeper" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [8192]u8 align(128) = @splat(0);
    var a: Port = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    try a.create(&memory, rings, 0, .{ .endpoint = .{ .spin_us = 0 } });
    const Supervisor = struct {
        fn run(bytes: millrace.Memory) !void {
            var channels: [2]millrace.Channel = undefined;
            const segment: millrace.Segment = try .attach(bytes, &channels, patience);
            millrace.Host.native.pause(20_000_000);
            segment.fail(segment.ownerOf(1), .peer_terminated, .native);
        }
    };
    const thread = try std.Thread.spawn(.{}, Supervisor.run, .{@as(millrace.Memory, &memory)});
    defer thread.join();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.PeerFailed, a.read(&storage, patience));
    try testing.expectEqual(.peer_terminated, a.reason().?);
}
