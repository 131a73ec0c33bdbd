//! Mailboxes between two real threads, both ways: ours and the original at either end; spinning,
//! parked and polling; read to the end, and closed in the middle.

const std = @import("std");
const builtin = @import("builtin");
const mailbox_fixture = @import("../mailbox/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Memory = mailbox_fixture.Memory;
const Original = mailbox_fixture.Original;
const Timeout = millrace.Timeout;

/// Longer than any wait of a test that passes.
const patience: Timeout = .ms(5_000);

const Kind = enum {
    spinning,
    parked,
    polling,
    original,

    fn options(kind: Kind) millrace.MailboxWriter.Options {
        return .{
            .host = if (kind == .polling) &millrace.host.polling else .native,
            .spin_us = if (kind == .spinning) 50 else 0,
        };
    }
};

/// One end of a port: it writes one mailbox and reads another.
const End = union(enum) {
    ours: struct { writer: millrace.MailboxWriter, reader: millrace.MailboxReader },
    original: struct { writer: Original, reader: Original },

    fn init(kind: Kind, outgoing: Memory, incoming: Memory) !End {
        if (kind == .original) return .{ .original = .{
            .writer = .init(outgoing),
            .reader = .init(incoming),
        } };
        return .{ .ours = .{
            .writer = try .init(outgoing, kind.options()),
            .reader = try .init(incoming, kind.options()),
        } };
    }

    fn write(end: *End, payload: []const u8) anyerror!void {
        switch (end.*) {
            .ours => |*ours| try ours.writer.write(payload, patience),
            .original => |*original| try original.writer.write(payload),
        }
    }

    fn read(end: *End, storage: []u8) anyerror![]u8 {
        return switch (end.*) {
            .ours => |*ours| (try ours.reader.read(storage, patience)) orelse error.Stuck,
            .original => |*original| try original.reader.read(storage),
        };
    }

    /// May be called from any thread.
    fn close(end: *End) void {
        switch (end.*) {
            inline else => |*both| {
                both.writer.close();
                both.reader.close();
            },
        }
    }

    /// Whether a side reports this after a close.
    fn expects(end: *const End, own: bool, found: anyerror) bool {
        if (end.* == .original) return found == error.Closed;
        return found == if (own) error.PipeClosed else error.PeerClosed;
    }
};

const Port = struct {
    memory: [2][32 + capacity_max]u8 align(4),
    ends: [2]End,
    seed: u64,
    count: usize,
    results: [2]?anyerror,

    const capacity_max = 256;

    fn init(port: *Port, kinds: [2]Kind, seed: u64, count: usize) !void {
        port.memory = @splat(@splat(0));
        var prng: std.Random.DefaultPrng = .init(seed);
        const sizes = [_]usize{ 5, 16, 61, capacity_max };
        const size = 32 + sizes[prng.random().uintLessThan(usize, sizes.len)];
        const one: Memory = @alignCast(port.memory[0][0..size]);
        const two: Memory = @alignCast(port.memory[1][0..size]);
        port.ends = .{ try .init(kinds[0], one, two), try .init(kinds[1], two, one) };
        port.seed = seed;
        port.count = count;
        port.results = .{ null, null };
    }

    /// Writes payloads and reads each one back. Then writes many, one after the other, without an
    /// answer.
    fn lead(port: *Port) void {
        const Work = struct {
            fn run(work: *Port) !void {
                const end = &work.ends[0];
                var storages: [2][1024]u8 = undefined;
                for (0..work.count) |index| {
                    const payload = mailbox_fixture.payloadOf(&storages[0], work.seed +% index);
                    try end.write(payload);
                    const found = try end.read(&storages[1]);
                    if (!std.mem.eql(u8, payload, found)) return error.Different;
                }
                for (0..work.count) |index| {
                    try end.write(mailbox_fixture.payloadOf(&storages[0], work.seed +% index));
                }
                _ = try end.read(&storages[1]);
            }
        };
        Work.run(port) catch |err| {
            port.results[0] = err;
        };
    }

    fn follow(port: *Port) void {
        const Work = struct {
            fn run(work: *Port) !void {
                const end = &work.ends[1];
                var storages: [2][1024]u8 = undefined;
                for (0..work.count) |_| try end.write(try end.read(&storages[0]));
                for (0..work.count) |index| {
                    const payload = mailbox_fixture.payloadOf(&storages[0], work.seed +% index);
                    const found = try end.read(&storages[1]);
                    if (!std.mem.eql(u8, payload, found)) return error.Different;
                }
                try end.write("[null]");
            }
        };
        Work.run(port) catch |err| {
            port.results[1] = err;
        };
    }
};

const pairs = [_][2]Kind{
    .{ .spinning, .spinning },
    .{ .parked, .parked },
    .{ .spinning, .parked },
    .{ .polling, .polling },
    .{ .original, .spinning },
    .{ .spinning, .original },
    .{ .original, .parked },
    .{ .parked, .original },
};

test "two threads exchange payloads both ways, whatever their kinds" {
    if (builtin.single_threaded) return error.SkipZigTest;
    for (pairs, 0..) |kinds, index| {
        var port: Port = undefined;
        const slow = kinds[0] == .polling;
        try port.init(kinds, 0x5eed_0000 + index, if (slow) 20 else 150);
        const thread = try std.Thread.spawn(.{}, Port.follow, .{&port});
        port.lead();
        thread.join();
        errdefer std.debug.print("{any}\n", .{kinds});
        try testing.expectEqual(.{ null, null }, port.results);
    }
}

test "a close in the middle of the traffic, by either end, stops both and is no fault" {
    if (builtin.single_threaded) return error.SkipZigTest;
    for (pairs, 0..) |kinds, index| for (0..12) |round| {
        var port: Port = undefined;
        const seed = 0xc105_0000 + 100 * index + round;
        try port.init(kinds, seed, 1_000_000);
        const threads = [2]std.Thread{
            try std.Thread.spawn(.{}, Port.lead, .{&port}),
            try std.Thread.spawn(.{}, Port.follow, .{&port}),
        };
        var prng: std.Random.DefaultPrng = .init(seed);
        millrace.Host.native.pause(prng.random().uintLessThan(u64, 2_000_000));
        const closer = round % 2;
        port.ends[closer].close();
        for (threads) |thread| thread.join();
        errdefer std.debug.print("{any} {any} {d}\n", .{ kinds, port.results, round });
        for (&port.ends, port.results, 0..) |*end, found, which| {
            try testing.expect(end.expects(which == closer, found.?));
        }
    };
}
