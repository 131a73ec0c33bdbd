//! A hostile peer. Seeded scribbles over control words, records and frames, between the operations
//! of a port, and during them whenever they read the clock, sleep or ring. Every call must return a
//! result or one of its errors. Safe modes, and the end of the test itself, show that nothing
//! crashes, loops or reads out of bounds.

const std = @import("std");
const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Port = millrace.Port;

const seed_count = 3_000;

test "whatever a peer scribbles, every call returns" {
    var outcomes: Outcomes = .{};
    for (0..seed_count) |seed| {
        errdefer std.debug.print("seed {}\n", .{seed});
        try play(seed, &outcomes);
    }
    // The scribbles lead to messages as well as to errors; otherwise they test nothing.
    try testing.expect(outcomes.messages > seed_count);
    try testing.expect(outcomes.corrupt > seed_count / 10);
    try testing.expect(outcomes.other > seed_count / 10);
}

/// A machine on which the peer scribbles at every other opportunity.
const meddling: millrace.Host = blk: {
    var host = fixture.clockwork;
    host.now = Meddler.now;
    host.sleep = Meddler.sleep;
    host.notify = Meddler.notify;
    break :blk host;
};

const Meddler = struct {
    var at_work: ?struct { random: std.Random, memory: *[4096]u8 } = null;

    fn meddle() void {
        const at = at_work orelse return;
        if (at.random.boolean()) scribble(at.random, at.memory);
    }

    fn now() u64 {
        meddle();
        return fixture.clockwork.now();
    }

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        meddle();
        return fixture.clockwork.sleep(word, expected, limit_ns);
    }

    fn notify(_: *const u32) void {
        meddle();
    }
};

const Outcomes = struct { messages: u64 = 0, corrupt: u64 = 0, other: u64 = 0 };

fn play(seed: usize, outcomes: *Outcomes) !void {
    var prng: std.Random.DefaultPrng = .init(seed);
    const random = prng.random();
    var memory: [4096]u8 align(128) = @splat(0);
    var inboxes: [2][1024]u8 align(16) = undefined;
    const starts = [_]u32{ 0, 0xffff_ff80, 0xffff_fff0 };
    const rings: millrace.Rings = .{
        .capacities = .{ 256, 512 },
        .starts = .{ starts[seed % 3], starts[seed / 3 % 3] },
    };
    var ports: [2]Port = undefined;
    for (&ports, 0..) |*port, index| try port.create(&memory, rings, @intCast(index), .{
        .endpoint = .{ .host = &meddling, .spin_us = random.uintLessThan(u32, 3) },
        .inbox = if (seed % 2 == 0) @alignCast(&inboxes[index]) else &.{},
        .timeout = .none,
    });
    if (seed % 4 >= 2) Meddler.at_work = .{ .random = random, .memory = &memory };
    defer Meddler.at_work = null;
    var hands: [2]Hand = .{ .{ .port = &ports[0] }, .{ .port = &ports[1] } };
    for (0..60) |_| {
        if (random.uintLessThan(u32, 100) < seed % 40) scribble(random, &memory);
        hands[random.uintLessThan(usize, 2)].act(random, outcomes);
    }
}

/// One side, which keeps its storage while a message is in progress.
const Hand = struct {
    port: *Port,
    storage: [300]u8 = undefined,

    fn act(hand: *Hand, random: std.Random, outcomes: *Outcomes) void {
        const port = hand.port;
        const timeout: millrace.Timeout = if (random.boolean()) .none else .ms(2);
        var payload: [600]u8 = undefined;
        random.bytes(&payload);
        switch (random.uintLessThan(u32, 16)) {
            0...4 => {
                const most = if (timeout == .none) port.writer.trySizeMax() else payload.len;
                const size = random.uintAtMost(usize, @min(most, payload.len));
                const envelope: millrace.Envelope = .{
                    .kind = if (random.uintLessThan(u32, 8) == 0) .call else .data,
                    .tag = random.int(u32),
                };
                port.write(payload[0..size], envelope, timeout) catch |err| note(outcomes, err);
            },
            5...10 => {
                if (!port.storageFits(&hand.storage)) return;
                const message = port.read(&hand.storage, timeout) catch |err|
                    return note(outcomes, err);
                if (message != null) outcomes.messages += 1;
            },
            11...13 => {
                if (!port.peekFits()) return;
                const lent = port.peek(timeout) catch |err| return note(outcomes, err);
                if (lent == null) return;
                outcomes.messages += 1;
                std.mem.doNotOptimizeAway(std.hash.Crc32.hash(lent.?.payload));
                port.release();
            },
            14 => {
                const size = random.uintAtMost(u32, port.writer.frameSizeMax());
                const bytes = port.claim(size, timeout) catch |err| return note(outcomes, err);
                @memset(bytes, 1);
                if (random.boolean()) return port.abandon();
                port.finish(size, .{});
                port.publish();
            },
            else => switch (random.uintLessThan(u32, 12)) {
                0 => port.end() catch |err| note(outcomes, err),
                1 => port.close(),
                else => {},
            },
        }
    }

    fn note(outcomes: *Outcomes, err: anyerror) void {
        switch (err) {
            error.Corrupt => outcomes.corrupt += 1,
            else => outcomes.other += 1,
        }
    }
};

fn scribble(random: std.Random, memory: *[4096]u8) void {
    // Endpoint records, the control words of both rings, or their byte areas.
    const places = [_][2]usize{
        .{ 128, 16 }, .{ 256, 16 }, .{ 512, 4 },    .{ 640, 4 },    .{ 768, 4 },   .{ 896, 4 },
        .{ 1280, 4 }, .{ 1408, 4 }, .{ 1024, 256 }, .{ 1792, 512 }, .{ 1024, 64 }, .{ 1792, 64 },
    };
    const place = places[random.uintLessThan(usize, places.len)];
    const offset = place[0] + random.uintLessThan(usize, place[1] / 4) * 4;
    const old = std.mem.readInt(u32, memory[offset..][0..4], .little);
    const new = switch (random.uintLessThan(u32, 6)) {
        0 => random.int(u32),
        1 => old +% 16,
        2 => old -% 16,
        3 => old ^ (@as(u32, 1) << random.int(u5)),
        4 => random.uintLessThan(u32, 8),
        else => 0xffff_ffff - random.uintLessThan(u32, 32),
    };
    std.mem.writeInt(u32, memory[offset..][0..4], new, .little);
}
