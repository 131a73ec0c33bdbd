//! Fanouts between threads: every message, or every lost one, is accounted for; readers that stop
//! in the middle; and words with arbitrary values.

const std = @import("std");
const builtin = @import("builtin");
const millrace = @import("../root.zig");
const fixture = @import("fixture.zig");
const Fanout = millrace.Fanout;
const layout = millrace.layout;
const expectEqual = std.testing.expectEqual;

const reader_count = 2;
/// Longer than any of these tests takes.
const patience: millrace.Timeout = .ms(20_000);

/// A fanout whose ends are on threads of their own.
const Hall = struct {
    memory: []align(layout.segment_align) u8,
    channels: [1]millrace.Channel = undefined,
    segment: millrace.Segment = undefined,
    capacity: u32,

    fn init(hall: *Hall, mode: Fanout.Mode, start: u32) !void {
        const geometry = [_]millrace.Channel{Fanout.channel(.{
            .writer = 0,
            .readers = reader_count,
            .capacity = hall.capacity,
            .mode = mode,
            .start = start,
        })};
        const all: millrace.Geometry = .{ .endpoint_count = 3, .channels = &geometry };
        try millrace.Segment.format(hall.memory, all);
        hall.segment = try .attach(hall.memory, &hall.channels, .none);
    }
};

/// What one reader has seen.
const Seen = struct {
    taken: u64 = 0,
    lost: u64 = 0,
    err: ?anyerror = null,
};

/// Each message holds its number again and again, so that a torn one shows.
fn fill(payload: []u8, number: u64) void {
    for (payload, 0..) |*byte, index| byte.* = @truncate(number >> @intCast(8 * (index % 8)));
}

fn sizeOf(number: u64, most: u32) usize {
    return @intCast(8 + 8 * ((number *% 0x9e37_79b9_7f4a_7c15 >> 40) % (most / 8)));
}

fn check(payload: []const u8) !u64 {
    if (payload.len < 8) return error.Torn;
    const number = std.mem.readInt(u64, payload[0..8], .little);
    for (payload, 0..) |byte, index| {
        if (byte != @as(u8, @truncate(number >> @intCast(8 * (index % 8))))) return error.Torn;
    }
    return number;
}

fn readAll(
    hall: *Hall,
    index: u32,
    spin_us: u32,
    joined: *std.atomic.Value(u32),
    seen: *Seen,
) void {
    readChecked(hall, index, spin_us, joined, seen) catch |err| {
        seen.err = err;
    };
}

fn readChecked(
    hall: *Hall,
    index: u32,
    spin_us: u32,
    joined: *std.atomic.Value(u32),
    seen: *Seen,
) !void {
    var endpoint: millrace.Endpoint = try .attach(&hall.segment, index, .{ .spin_us = spin_us });
    defer endpoint.close();
    var reader: Fanout.Reader = .init(&endpoint, &hall.segment, 0, .tail);
    _ = joined.fetchAdd(1, .seq_cst);
    var storage: [4096]u8 = undefined;
    var random: std.Random.DefaultPrng = .init(index);
    while (true) {
        const read = reader.read(&storage, patience) catch |err| {
            if (err != error.MessageLost) return err;
            seen.lost += reader.lost();
            continue;
        };
        const message = read orelse {
            if (reader.ended()) return;
            return error.NothingCame;
        };
        const number = try check(message.payload);
        if (number != seen.taken + seen.lost) return error.OutOfOrder;
        if (message.number) |told| if (told != number) return error.OutOfOrder;
        seen.taken += 1;
        if (random.random().uintLessThan(u32, 400) == 0) millrace.Host.native.pause(50_000);
    }
}

/// Waits until so many readers have joined. Fails if they do not.
fn awaitReaders(joined: *const std.atomic.Value(u32), count: u32) !void {
    for (0..20_000) |_| {
        if (joined.load(.seq_cst) >= count) return;
        millrace.Host.native.pause(1_000_000);
    }
    return error.NobodyJoined;
}

fn writeAll(
    endpoint: *millrace.Endpoint,
    hall: *Hall,
    count: usize,
    joined: *const std.atomic.Value(u32),
) !void {
    var seats: [reader_count]Fanout.Writer.Seat = undefined;
    var writer: Fanout.Writer = .init(endpoint, &hall.segment, 0, &seats);
    try awaitReaders(joined, reader_count);
    var payload: [4096]u8 = undefined;
    for (0..count) |number| {
        const size = sizeOf(number, writer.sizeMax());
        fill(payload[0..size], number);
        try writer.write(payload[0..size], .{}, patience);
    }
    try writer.end();
}

fn play(mode: Fanout.Mode, capacity: u32, count: usize, spin_us: u32, start: u32) ![2]Seen {
    const gpa = std.testing.allocator;
    const memory = try gpa.alignedAlloc(u8, .fromByteUnits(layout.segment_align), 4096 + capacity);
    defer gpa.free(memory);
    var hall: Hall = .{ .memory = memory, .capacity = capacity };
    try hall.init(mode, start);
    var seen: [reader_count]Seen = @splat(.{});
    var joined: std.atomic.Value(u32) = .init(0);
    var threads: [reader_count]std.Thread = undefined;
    var endpoint: millrace.Endpoint = try .attach(&hall.segment, 0, .{ .spin_us = spin_us });
    for (&threads, &seen, 1..) |*thread, *each, index| {
        const of: u32 = @intCast(index);
        thread.* = try .spawn(.{}, readAll, .{ &hall, of, spin_us, &joined, each });
    }
    const written = writeAll(&endpoint, &hall, count, &joined);
    // Also after a failure, because the threads use the memory of this function.
    for (threads) |thread| thread.join();
    endpoint.close();
    try written;
    for (seen) |each| {
        if (each.err) |err| return err;
        try expectEqual(count, each.taken + each.lost);
    }
    return seen;
}

test "Fanout: [fanout.room] on threads, in mode hold nobody misses anything" {
    const starts = [_]u32{ 0, 0xffff_f000 };
    for (starts, [_]u32{ 256, 4096 }, [_]u32{ 0, 20 }) |start, capacity, spin_us| {
        const seen = try play(.hold, capacity, 4_000, spin_us, start);
        for (seen) |each| try expectEqual(@as(u64, 0), each.lost);
    }
}

test "Fanout: [fanout.validate] on threads, in mode lose no message is torn, and losses add up" {
    // A copy may race with the writer that overwrites it: the floor then decides whether it counts.
    if (builtin.sanitize_thread) return error.SkipZigTest;
    const starts = [_]u32{ 0, 0x7fff_f000 };
    for (starts, [_]u32{ 256, 8192 }, [_]u32{ 0, 20 }) |start, capacity, spin_us| {
        _ = try play(.lose, capacity, 100_000, spin_us, start);
    }
}

/// A reader that joins, reads a little, and then stands still, as a thread that is stopped.
fn stall(hall: *Hall, joined: *std.atomic.Value(u32), release: *std.atomic.Value(bool)) void {
    var endpoint = millrace.Endpoint.attach(&hall.segment, 2, .{}) catch unreachable;
    var reader: Fanout.Reader = .init(&endpoint, &hall.segment, 0, .tail);
    var storage: [256]u8 = undefined;
    _ = joined.fetchAdd(1, .seq_cst);
    _ = reader.read(&storage, patience) catch {};
    while (!release.load(.seq_cst)) millrace.Host.native.pause(1_000_000);
}

fn failLater(hall: *Hall) void {
    millrace.Host.native.pause(20_000_000);
    hall.segment.fail(hall.segment.ownerOf(2), .peer_lost, .native);
}

test "Fanout: [fanout.gone] a reader that stands still holds the writer until it is marked failed" {
    // A writer that is not woken notices by the end of a slice, every time. On a busy machine, one
    // that is woken may do so now and then.
    for (0..20) |_| {
        if (try lateRelease() == 0) break;
    } else return error.NeverWoken;
}

/// Returns how often the writer noticed only by the end of a slice that it was no longer held back.
fn lateRelease() !u64 {
    var memory: [4096]u8 align(layout.segment_align) = undefined;
    var hall: Hall = .{ .memory = &memory, .capacity = 256 };
    try hall.init(.hold, 0);
    var joined: std.atomic.Value(u32) = .init(0);
    var release: std.atomic.Value(bool) = .init(false);
    const stalled: std.Thread = try .spawn(.{}, stall, .{ &hall, &joined, &release });
    defer stalled.join();
    defer release.store(true, .seq_cst);
    var endpoint: millrace.Endpoint = try .attach(&hall.segment, 0, .{ .spin_us = 0 });
    defer endpoint.close();
    var seats: [reader_count]Fanout.Writer.Seat = undefined;
    var writer: Fanout.Writer = .init(&endpoint, &hall.segment, 0, &seats);
    try awaitReaders(&joined, 1);
    for (0..20) |_| writer.write("held", .{}, .ms(50)) catch |err| {
        try expectEqual(error.Timeout, err);
        break;
    } else return error.NobodyHeld;
    const supervisor: std.Thread = try .spawn(.{}, failLater, .{&hall});
    defer supervisor.join();
    for (0..100) |_| try writer.write("free", .{}, patience);
    return endpoint.stats.late_wakes;
}

test "Fanout: whatever stands in the control area, calls end, and errors are those of the API" {
    var random: std.Random.DefaultPrng = .init(11);
    const rand = random.random();
    for (0..3_000) |round| {
        var memory: [4096]u8 align(layout.segment_align) = undefined;
        const mode: Fanout.Mode = if (round % 2 == 0) .hold else .lose;
        var hall: Hall = .{ .memory = &memory, .capacity = 256 };
        try hall.init(mode, 0);
        const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        var endpoints: [3]millrace.Endpoint = undefined;
        for (&endpoints, 0..) |*endpoint, index| {
            endpoint.* = try .attach(&hall.segment, @intCast(index), options);
        }
        var seats: [reader_count]Fanout.Writer.Seat = undefined;
        var writer: Fanout.Writer = .init(&endpoints[0], &hall.segment, 0, &seats);
        var readers: [reader_count]Fanout.Reader = undefined;
        for (&readers, endpoints[1..]) |*reader, *endpoint| {
            reader.* = .init(endpoint, &hall.segment, 0, .tail);
        }
        // Memory after the segment must not change.
        @memset(memory[hall.segment.size..], 0x5a);
        var storage: [64]u8 = undefined;
        const control = hall.channels[0].control_offset;
        for (0..30) |_| {
            const area = if (rand.boolean()) 512 else hall.segment.size - control;
            const offset = control + rand.uintLessThan(u32, area / 4) * 4;
            const word: *u32 = @ptrCast(@alignCast(memory[offset..]));
            const near = rand.uintLessThan(u32, 40) * 16 + 1;
            const value = if (rand.boolean()) rand.int(u32) else near;
            if (rand.uintLessThan(u32, 3) == 0) @atomicStore(u32, word, value, .seq_cst);
            _ = writer.tryWrite(storage[0..rand.uintAtMost(usize, 32)], .{}) catch |err|
                try expectEqual(error.PipeFailed, err);
            for (&readers) |*reader| _ = reader.tryRead(&storage) catch |err| switch (err) {
                error.Corrupt, error.PeerFailed, error.PipeFailed => {},
                error.MessageLost, error.MessageKind, error.MessageSize => {},
                else => return err,
            };
        }
        for (memory[hall.segment.size..]) |byte| try expectEqual(@as(u8, 0x5a), byte);
    }
}
