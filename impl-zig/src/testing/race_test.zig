//! Two correct peers, and a third thread that closes one of them or marks it failed at any moment
//! of the traffic. They run plainly with the other tests, and longer under ThreadSanitizer (`zig
//! build test-race`). It reports every access that the memory order of the specification does not
//! keep apart from an access of another thread.
//!
//! The counters that tell the third thread when to act are relaxed: if the test synchronized its
//! threads, that would hide missing synchronization in the implementation.

const std = @import("std");
const builtin = @import("builtin");
const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Atomic = std.atomic.Value;
const Port = millrace.Port;

/// Longer than any wait of a test.
const patience: millrace.Timeout = .ms(20_000);
/// How many messages one side writes in a life that nobody ends.
const message_count = 600;
const life_count = if (builtin.sanitize_thread) 48 else 6;

/// What the third thread does.
const Act = enum { nothing, close, close_endpoint, fail };

/// A port from its first byte to its end, with a thread for each side.
const Life = struct {
    memory: [8192]u8 align(128) = @splat(0),
    inboxes: [2][2048]u8 align(16) = undefined,
    ports: [2]Port = undefined,
    attached: [2]Atomic(bool) = @splat(.init(false)),
    results: [2]anyerror!void = @splat({}),
    received: Atomic(u32) = .init(0),
    act: Act,
    /// The side that the third thread acts on, and when.
    target: u1,
    moment: u32,
    spin_us: u32,

    const rings: millrace.Rings = .{
        .capacities = .{ 512, 1024 },
        .starts = .{ 0xffff_f000, 0 },
    };

    fn run(life: *Life) !void {
        var threads: [3]std.Thread = undefined;
        threads[0] = try .spawn(.{}, Life.side, .{ life, 0 });
        threads[1] = try .spawn(.{}, Life.side, .{ life, 1 });
        threads[2] = try .spawn(.{}, Life.interfere, .{life});
        for (threads) |thread| thread.join();
        for (life.results, 0..) |result, index| {
            const own = index == life.target;
            switch (life.act) {
                .nothing => try result,
                .close, .close_endpoint => {
                    const expected = if (own) error.PipeClosed else error.PeerClosed;
                    try testing.expectError(expected, result);
                },
                .fail => {
                    const expected = if (own) error.PipeFailed else error.PeerFailed;
                    try testing.expectError(expected, result);
                },
            }
        }
    }

    fn side(life: *Life, index: u1) void {
        life.results[index] = life.play(index);
    }

    fn play(life: *Life, index: u1) !void {
        const port = &life.ports[index];
        // Either may come first.
        try port.create(&life.memory, rings, index, .{
            .endpoint = .{ .spin_us = life.spin_us },
            .inbox = &life.inboxes[index],
        });
        life.attached[index].store(true, .release);
        var tag: u32 = 0;
        // If the third thread is to end the life, the traffic goes on until it has.
        while (life.act != .nothing or tag < message_count) : (tag += burst) {
            for (0..burst) |offset| try send(port, tag + @as(u32, @intCast(offset)));
            for (0..burst) |offset| {
                try receive(port, tag + @as(u32, @intCast(offset)));
                _ = life.received.fetchAdd(1, .monotonic);
            }
        }
        try port.end();
        var storage: [1]u8 = undefined;
        try testing.expectEqual(null, try port.read(&storage, patience));
        try testing.expect(port.ended());
    }

    fn interfere(life: *Life) void {
        for (&life.attached) |*attached| {
            while (!attached.load(.acquire)) std.Thread.yield() catch {};
        }
        while (life.received.load(.monotonic) < life.moment) std.Thread.yield() catch {};
        switch (life.act) {
            .nothing => {},
            .close => life.ports[life.target].close(),
            .close_endpoint => life.ports[life.target].endpoint.close(),
            .fail => {
                var storage: [2]millrace.Channel = undefined;
                const supervised = millrace.Segment.attach(&life.memory, &storage, .none);
                const segment = supervised catch unreachable;
                segment.fail(segment.ownerOf(life.target), .peer_terminated, .native);
            },
        }
    }
};

/// How many messages one side writes before it reads as many. A power of two.
const burst = 4;

/// Some messages are larger than a ring.
fn sizeOf(tag: u32) u32 {
    return switch (tag % burst) {
        0 => tag % 50,
        1 => if (tag % 3 == 0) 1500 else 200,
        2 => 17,
        else => 0,
    };
}

fn send(port: *Port, tag: u32) !void {
    var storage: [1500]u8 = undefined;
    const payload = storage[0..sizeOf(tag)];
    fixture.pattern(payload, tag);
    switch (tag % burst) {
        0 => {
            @memcpy(try port.claim(sizeOf(tag), patience), payload);
            port.finish(sizeOf(tag), .{ .tag = tag });
            port.publish();
        },
        2 => try testing.expectEqual(1, try port.writeMany(&.{payload}, .{ .tag = tag }, patience)),
        else => try port.write(payload, .{ .tag = tag }, patience),
    }
}

fn receive(port: *Port, tag: u32) !void {
    var storage: [1500]u8 = undefined;
    var expected: [1500]u8 = undefined;
    const wanted = expected[0..sizeOf(tag)];
    fixture.pattern(wanted, tag);
    if (tag % burst == 2) {
        const lent = (try port.peek(patience)) orelse return error.Timeout;
        defer port.release();
        try testing.expectEqual(tag, lent.tag);
        try testing.expectEqualSlices(u8, wanted, lent.payload);
    } else {
        const message = (try port.read(&storage, patience)) orelse return error.Timeout;
        try testing.expectEqual(tag, message.tag);
        try testing.expectEqualSlices(u8, wanted, message.payload);
    }
}

test "race: two peers of a port, and a third thread that ends one of them at any moment" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var random: std.Random.DefaultPrng = .init(7);
    const life = try testing.allocator.create(Life);
    defer testing.allocator.destroy(life);
    var received: u32 = 0;
    for (0..life_count) |number| {
        life.* = .{
            .act = @fromBackingInt(@as(u2, @truncate(number))),
            .target = @truncate(number / 4),
            .moment = random.random().uintLessThan(u32, 2 * message_count),
            .spin_us = if (number % 3 == 0) 0 else 50,
        };
        life.run() catch |err| {
            const which = .{ number, life.act, life.target, life.moment };
            std.debug.print("life {}: {t} {} at {}\n", which);
            return err;
        };
        received += life.received.raw;
    }
    std.debug.print("race: {} lives, {} messages\n", .{ life_count, received });
}

/// Both sides of a mailbox, each with a thread.
const Letters = struct {
    memory: [32 + 64]u8 align(4) = @splat(0),
    writer: millrace.MailboxWriter = undefined,
    reader: millrace.MailboxReader = undefined,
    results: [2]anyerror!void = @splat({}),
    read: Atomic(u32) = .init(0),
    closes_writer: bool,
    moment: u32,

    /// Three parts of 64 bytes.
    const payload = "[\"" ++ @as([150]u8, @splat('x')) ++ "\"]";

    fn run(letters: *Letters, spin_us: u32) !void {
        letters.writer = try .init(&letters.memory, .{ .spin_us = spin_us });
        letters.reader = try .init(&letters.memory, .{ .spin_us = spin_us });
        var threads: [3]std.Thread = undefined;
        threads[0] = try .spawn(.{}, write, .{letters});
        threads[1] = try .spawn(.{}, readAll, .{letters});
        threads[2] = try .spawn(.{}, interfere, .{letters});
        for (threads) |thread| thread.join();
        const own = @intFromBool(!letters.closes_writer);
        try testing.expectError(error.PipeClosed, letters.results[own]);
        try testing.expectError(error.PeerClosed, letters.results[1 - own]);
    }

    fn write(letters: *Letters) void {
        letters.results[0] = while (true) {
            letters.writer.write(payload, patience) catch |err| break err;
        };
    }

    fn readAll(letters: *Letters) void {
        var storage: [payload.len]u8 = undefined;
        letters.results[1] = while (true) {
            const found = letters.reader.read(&storage, patience) catch |err| break err;
            if (!std.mem.eql(u8, found orelse break error.Timeout, payload)) break error.Differs;
            _ = letters.read.fetchAdd(1, .monotonic);
        };
    }

    fn interfere(letters: *Letters) void {
        while (letters.read.load(.monotonic) < letters.moment) std.Thread.yield() catch {};
        if (letters.closes_writer) letters.writer.close() else letters.reader.close();
    }
};

test "race: two sides of a mailbox, and a third thread that closes one of them" {
    if (builtin.single_threaded) return error.SkipZigTest;
    for (0..life_count) |number| {
        var letters: Letters = .{
            .closes_writer = number % 2 == 0,
            .moment = @intCast(20 + 13 * number % 100),
        };
        try letters.run(if (number % 3 == 0) 0 else 50);
    }
}
