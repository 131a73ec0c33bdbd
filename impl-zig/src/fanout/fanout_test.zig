//! Fanouts on one thread; `fanout_thread_test.zig` has tests with several threads.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const Fanout = millrace.Fanout;
const layout = millrace.layout;
const expectEqual = std.testing.expectEqual;

/// A fanout with its writer and two readers on one thread. Must not move after it was initialized.
const Trio = struct {
    memory: [4096]u8 align(layout.segment_align),
    channels: [1]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [3]millrace.Endpoint,
    seats: [2]Fanout.Writer.Seat,
    writer: Fanout.Writer,
    readers: [2]Fanout.Reader,

    fn init(trio: *Trio, mode: Fanout.Mode, start: u32) !void {
        @memset(&trio.memory, 0xa5);
        const geometry = [_]millrace.Channel{Fanout.channel(.{
            .writer = 0,
            .readers = 2,
            .capacity = 256,
            .mode = mode,
            .start = start,
        })};
        const all: millrace.Geometry = .{ .endpoint_count = 3, .channels = &geometry };
        try millrace.Segment.format(&trio.memory, all);
        trio.segment = try .attach(&trio.memory, &trio.channels, .none);
        const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        for (&trio.endpoints, 0..) |*endpoint, index| {
            endpoint.* = try .attach(&trio.segment, @intCast(index), options);
        }
        trio.writer = .init(&trio.endpoints[0], &trio.segment, 0, &trio.seats);
        for (&trio.readers, trio.endpoints[1..]) |*reader, *endpoint| {
            reader.* = .init(endpoint, &trio.segment, 0, .tail);
        }
    }

    fn expect(trio: *Trio, index: usize, payload: []const u8) !void {
        var storage: [256]u8 = undefined;
        const message = (try trio.readers[index].tryRead(&storage)) orelse return error.NoMessage;
        try std.testing.expectEqualSlices(u8, payload, message.payload);
    }
};

test "Fanout: a reader gives back each message while the writer waits [fanout.release]" {
    var trio: Trio = undefined;
    try trio.init(.hold, 0);
    for (0..6) |_| try trio.writer.write("text", .{}, .none);
    const record = trio.readers[1].record;
    try trio.expect(1, "text");
    try expectEqual(0 | 1, @atomicLoad(u32, &record.head, .seq_cst));
    @atomicStore(u32, &record.writer_wants, 4 * 32 | layout.wants_armed, .seq_cst);
    for (2..4) |count| {
        try trio.expect(1, "text");
        const held: u32 = @intCast(32 * count);
        try expectEqual(held | 1, @atomicLoad(u32, &record.head, .seq_cst));
    }
}

test "Fanout: in mode hold every reader gets every message, and the slowest holds it back" {
    var trio: Trio = undefined;
    try trio.init(.hold, 0xffff_ff80);
    var written: u32 = 0;
    while (try trio.writer.tryWrite(std.mem.asBytes(&written), .{})) written += 1;
    try expectEqual(@as(u32, 7), written);
    for (0..7) |each| {
        const value: u32 = @intCast(each);
        try trio.expect(0, std.mem.asBytes(&value));
    }
    try expectEqual(false, try trio.writer.tryWrite("more", .{}));
    try std.testing.expectError(error.Timeout, trio.writer.write("more", .{}, .ms(300)));
    const zero: u32 = 0;
    try trio.expect(1, std.mem.asBytes(&zero));
    try trio.expect(1, &.{ 1, 0, 0, 0 });
    try expectEqual(true, try trio.writer.tryWrite("more", .{}));
    try trio.expect(0, "more");
}

test "Fanout: [fanout.late] a reader that begins after the end is told of it" {
    for ([_]Fanout.Mode{ .hold, .lose }) |mode| {
        var trio: Trio = undefined;
        try trio.init(mode, 0xffff_fff0);
        const reader = &trio.readers[0];
        reader.leave();
        try trio.writer.end();
        if (mode == .hold) reader.join() else {
            reader.* = .init(&trio.endpoints[1], &trio.segment, 0, .tail);
        }
        var storage: [256]u8 = undefined;
        try expectEqual(null, try reader.read(&storage, .ms(300)));
        try expectEqual(true, reader.ended());
    }
}

test "Fanout: [fanout.count] a reader that leaves, or is marked failed, is not waited for" {
    for ([_]bool{ true, false }) |leaves| {
        var trio: Trio = undefined;
        try trio.init(.hold, 0);
        while (try trio.writer.tryWrite("full", .{})) {}
        for (0..7) |_| try trio.expect(0, "full");
        if (leaves) {
            trio.readers[1].leave();
        } else {
            const owner = trio.segment.ownerOf(2);
            trio.segment.fail(owner, .peer_terminated, &fixture.clockwork);
        }
        for (0..7) |_| try trio.writer.write("on", .{}, .none);
        for (0..7) |_| try trio.expect(0, "on");
        var storage: [256]u8 = undefined;
        if (leaves) {
            trio.readers[1].join();
            try trio.writer.write("again", .{}, .none);
            try trio.expect(1, "again");
        } else {
            // No byte is used that the writer may be overwriting [fanout.held].
            try std.testing.expectError(error.PipeFailed, trio.readers[1].tryRead(&storage));
            try expectEqual(layout.Reason.peer_terminated, trio.readers[1].reason().?);
        }
    }
}

test "Fanout: [fanout.overrun] in mode lose a reader is told how many messages it lost" {
    var trio: Trio = undefined;
    try trio.init(.lose, 0x7fff_ff00);
    var storage: [256]u8 = undefined;
    var next: [2]u64 = .{ 0, 0 };
    var random: std.Random.DefaultPrng = .init(7);
    for (0..20_000) |number| {
        const value: u64 = number;
        var payload: [32]u8 = @splat(@truncate(value));
        const size = random.random().intRangeAtMost(usize, 8, 32);
        std.mem.writeInt(u64, payload[0..8], value, .little);
        try trio.writer.write(payload[0..size], .{}, .none);
        for (&trio.readers, &next) |*reader, *expected| {
            if (random.random().uintLessThan(u32, 6) != 0) continue;
            while (true) {
                const read = reader.tryRead(&storage) catch |err| {
                    try expectEqual(error.MessageLost, err);
                    expected.* += reader.lost();
                    continue;
                };
                const message = read orelse break;
                try expectEqual(expected.*, message.number.?);
                try expectEqual(expected.*, std.mem.readInt(u64, message.payload[0..8], .little));
                expected.* += 1;
            }
            try expectEqual(value + 1, expected.*);
        }
    }
    try trio.writer.end();
    for (&trio.readers) |*reader| {
        while (!reader.ended()) _ = reader.tryRead(&storage) catch |err|
            try expectEqual(error.MessageLost, err);
    }
}
