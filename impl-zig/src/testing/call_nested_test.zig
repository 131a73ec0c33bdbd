//! Tests of calls within calls: two threads whose methods call one another.

const std = @import("std");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Calls = millrace.Calls;
const Serving = millrace.Serving;

const patient: Calls.CallOptions = .{ .timeout = .ms(60_000) };

/// What both sides serve.
const Api = struct {
    /// Goes down to 0 by calling the peer, and counts the way back.
    pub fn down(serving: *Serving, left: u32) !u32 {
        if (left == 0) return 0;
        return 1 + try serving.calls.call(u32, "down", .{left - 1}, patient);
    }

    /// Answers what a tree of calls has summed up, which its seed decides alone.
    pub fn tree(serving: *Serving, seed: u64, depth: u32) !u64 {
        var random: std.Random.DefaultPrng = .init(seed);
        var sum = random.next();
        if (depth > 0) for (0..@intCast(random.next() % 4)) |_| {
            const way = random.next() % 16;
            const child = random.next();
            sum = sum *% 31 +% switch (way) {
                0 => try givenUp(serving),
                1 => try caught(serving.calls.call(u64, "broken", .{child}, patient)),
                else => try caught(serving.calls.call(u64, "tree", .{ child, depth - 1 }, patient)),
            };
        };
        if (random.next() % 8 == 0) return serving.fail("Tree", "", sum);
        return sum;
    }

    /// The same where no peer is asked.
    fn grown(seed: u64, depth: u32) u64 {
        var random: std.Random.DefaultPrng = .init(seed);
        var sum = random.next();
        if (depth > 0) for (0..@intCast(random.next() % 4)) |_| {
            const way = random.next() % 16;
            const child = random.next();
            sum = sum *% 31 +% switch (way) {
                0 => 7,
                1 => 9,
                else => grown(child, depth - 1),
            };
        };
        return if (random.next() % 8 == 0) 11 else sum;
    }

    fn caught(result: millrace.CallError!u64) !u64 {
        return result catch |err| switch (err) {
            error.CallThrown => 11,
            error.CallMethod => 9,
            else => err,
        };
    }

    fn givenUp(serving: *Serving) !u64 {
        const call = try serving.calls.begin("tree", .{ 5, 0 }, patient);
        defer call.release();
        call.giveUp();
        try testing.expectError(error.Aborted, call.result(u64));
        return 7;
    }
};

/// Two sides that serve `Api`, each on a thread of its own, and do something.
const World = struct {
    memory: [64 * 1024]u8 align(layout.segment_align) = @splat(0),
    capacity: u32,
    trees: usize = 0,
    depth: u32 = 0,
    /// What a call of so many nested ones is to end with.
    expected: millrace.CallError!u32 = 0,
    plain: u32 = 0,

    fn run(world: *World, index: u32) !void {
        const rings: millrace.Rings = .{ .capacities = .{ world.capacity, world.capacity } };
        var port: millrace.Port = undefined;
        try port.create(&world.memory, rings, index, .{});
        defer port.close();
        var calls: Calls = undefined;
        calls.init(&port, testing.allocator, .{ .inbox_size = 1 << 20 });
        defer calls.deinit();
        calls.serve(Api);
        if (world.trees == 0) {
            const found = calls.call(u32, "down", .{world.depth}, patient);
            try testing.expectEqual(world.expected, found);
        }
        for (0..world.trees) |tree| {
            const seed = 2 * tree + index;
            if (world.plain > 0) try calls.write("plain", .{ .tag = @truncate(tree) }, .ms(60_000));
            const found = Api.caught(calls.call(u64, "tree", .{ seed, 5 }, patient));
            try testing.expectEqual(Api.grown(seed, 5), try found);
        }
        try calls.end(.ms(60_000));
        var storage: [16]u8 = undefined;
        var count: u32 = 0;
        while (try calls.read(&storage, .ms(60_000))) |message| : (count += 1) {
            try testing.expectEqual(count, message.tag);
        }
        try testing.expectEqual(world.plain, count);
        try testing.expectEqual(0, calls.under_way_count);
        try testing.expectEqual(0, calls.served_count);
        try testing.expectEqual(0, calls.stack.depth);
    }

    fn play(world: *World) !void {
        const thread: std.Thread = try .spawn(.{}, World.runOther, .{world});
        defer thread.join();
        try world.run(0);
    }

    fn runOther(world: *World) !void {
        return world.run(1);
    }
};

test "Calls: 64 deep in both directions at once, in the smallest rings [call.serve_waiting]" {
    var world: World = .{ .capacity = 256, .depth = 64, .expected = 64 };
    try world.play();
}

test "Calls: 128 methods stand on a stack, and no more [call.depth]" {
    // Half of them on each side: of each of the two that go down at once.
    var fits: World = .{ .capacity = 4096, .depth = 127, .expected = 127 };
    try fits.play();
    var deep: World = .{ .capacity = 4096, .depth = 400, .expected = error.CallDepth };
    try deep.play();
}

test "Calls: random trees of calls, throws and cancels give what a local run gives" {
    var world: World = .{ .capacity = 1024, .trees = 400, .plain = 400 };
    try world.play();
}
