//! Rings: the example's bytes, room, pads, wrap-around at 2^32, and the bounds of both cursors.

const std = @import("std");
const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const frame = @import("frame.zig");
const testing = std.testing;
const Pair = fixture.Pair;

const data: frame.Header = .{ .size = 0, .kind = 1, .flags = 3 };

fn word(pair: *Pair, offset: usize) u32 {
    return std.mem.readInt(u32, pair.memory[512 + offset ..][0..4], .little);
}

test "the example: a frame behind 2^32, and a reader that asked for it" {
    var pair: Pair = undefined;
    try pair.init(256, 0xffff_ff80);
    const filler: [112]u8 = @splat(1);
    try pair.writer.write(&filler, .{}, .none);
    try pair.expectMessage(&filler, 0);
    try testing.expectEqual(0, word(&pair, 0));
    try testing.expectEqual(0, word(&pair, 128));

    const condition: @import("side.zig").Wait = .{
        .endpoint = &pair.endpoints[1],
        .reader = &pair.reader.ring,
    };
    _ = condition.arm(true);
    try testing.expectEqual(0x11, word(&pair, 256));
    const bell = pair.segment.record(1).bell;
    try pair.writer.write("hello", .{}, .none);
    try testing.expectEqual(0x20, word(&pair, 0));
    try testing.expectEqual(0, word(&pair, 256)); // exchanged
    try testing.expectEqual(bell +% 1, pair.segment.record(1).bell);
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes);
    const bytes = [_]u8{ 5, 0, 0, 0, 1, 3, 0, 0 };
    try testing.expectEqualSlices(u8, &bytes, pair.memory[1024..1032]);
    try testing.expectEqualSlices(u8, "hello", pair.memory[1040..1045]);

    // The next frame, of extent 128, starts at 32. One more of them follows after a pad of extent
    // 96.
    try pair.writer.write(filler[0..112], .{}, .none);
    try testing.expectEqual(160, word(&pair, 0));
    try testing.expectEqual(false, try pair.writer.tryWrite(&filler, .{}));
    try pair.expectMessage("hello", 0);
    try pair.expectMessage(&filler, 0);
    try testing.expect(try pair.writer.tryWrite(&filler, .{}));
    const pad = pair.memory[1024 + 160 ..][0..8];
    try testing.expectEqualSlices(u8, &.{ 80, 0, 0, 0, 6, 0, 0, 0 }, pad);
    try pair.expectMessage(&filler, 0);
    try pair.expectNothing();
}

test "a ring takes frames until 16 bytes are left, and the end takes those" {
    for ([_]u32{ 0, 16, 240, 0xffff_ff00, 0xffff_fff0 }) |start| {
        var pair: Pair = undefined;
        try pair.init(256, start);
        for (0..15) |index| try pair.writer.write("", .{ .tag = @intCast(index) }, .none);
        try testing.expectEqual(false, try pair.writer.tryWrite("", .{}));
        try pair.writer.end();
        try testing.expectEqual(start +% 256, word(&pair, 0));
        try testing.expectError(error.PipeEnded, pair.writer.write("", .{}, .none));
        for (0..15) |index| try pair.expectMessage("", @intCast(index));
        for (0..2) |_| try pair.expectNothing();
        try testing.expect(pair.reader.ended());
    }
}

test "every size fits an empty ring in every position, and comes back whole" {
    var payload: [112]u8 = undefined;
    for (0..16) |place| for (0..113) |size| {
        var pair: Pair = undefined;
        try pair.init(256, @as(u32, 0xffff_ff00) +% @as(u32, @intCast(place * 16)));
        fixture.pattern(payload[0..size], @intCast(size));
        for (0..3) |round| {
            const envelope: millrace.Envelope = .{ .tag = @intCast(round) };
            try testing.expect(try pair.writer.tryWrite(payload[0..size], envelope));
            try pair.expectMessage(payload[0..size], @intCast(round));
        }
        try pair.expectNothing();
    };
}

test "a ring that is exactly full with a pad" {
    var pair: Pair = undefined;
    try pair.init(256, 128 + 16);
    const filler: [112]u8 = @splat(7);
    // There are 112 bytes to the end. The frame of 128 needs the pad, and both together leave the
    // reserve.
    try testing.expect(try pair.writer.tryWrite(&filler, .{}));
    try testing.expectEqual(144 + 112 + 128, word(&pair, 0));
    try testing.expectEqual(false, try pair.writer.tryWrite("", .{}));
    try pair.expectMessage(&filler, 0);
    try testing.expect(try pair.writer.tryWrite("", .{}));
}

test "ring.cursor: the reader accepts a tail between its head and the capacity, multiples of 16" {
    const start: u32 = 0xffff_ffe0;
    const Case = struct { tail: u32, ok: bool };
    for ([_]Case{
        .{ .tail = start, .ok = true },
        .{ .tail = start +% 16, .ok = true },
        .{ .tail = start +% 256, .ok = true },
        .{ .tail = start +% 8, .ok = false },
        .{ .tail = start +% 1, .ok = false },
        .{ .tail = start +% 272, .ok = false },
        .{ .tail = start -% 16, .ok = false },
        .{ .tail = start +% 0x8000_0000, .ok = false },
    }) |case| {
        var pair: Pair = undefined;
        try pair.init(256, start);
        @atomicStore(u32, &pair.reader.ring.control.tail, case.tail, .seq_cst);
        if (case.ok) {
            try pair.reader.ring.refresh();
        } else {
            try pair.expectCorrupt(.ring_cursor);
        }
    }
}

test "ring.cursor: a tail that goes back within bounds is a fault" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    for (0..4) |_| try pair.writer.write("", .{}, .none);
    try pair.expectMessage("", 0); // has seen 64
    @atomicStore(u32, &pair.reader.ring.control.tail, 48, .seq_cst);
    for (0..3) |_| try pair.expectMessage("", 0);
    try pair.expectCorrupt(.ring_cursor);
}

test "ring.cursor: the writer accepts a head that advances up to its tail" {
    const Case = struct { head: u32, ok: bool };
    const start: u32 = 0xffff_ff80;
    for ([_]Case{
        .{ .head = start, .ok = true },
        .{ .head = start +% 128, .ok = true },
        .{ .head = start +% 240, .ok = true },
        .{ .head = start +% 256, .ok = false },
        .{ .head = start -% 16, .ok = false },
        .{ .head = start +% 4, .ok = false },
        .{ .head = start +% 0x7fff_fff0, .ok = false },
    }) |case| {
        var pair: Pair = undefined;
        try pair.init(256, start);
        for (0..15) |_| try pair.writer.write("", .{}, .none);
        @atomicStore(u32, &pair.writer.ring.control.head, case.head, .seq_cst);
        const written = pair.writer.tryWrite("", .{});
        if (case.ok) {
            try testing.expectEqual(case.head != start, try written);
            // The same cursor is valid; a cursor that goes back is a fault.
            if (case.head == start) continue;
            while (try pair.writer.tryWrite("", .{})) {}
            @atomicStore(u32, &pair.writer.ring.control.head, start, .seq_cst);
            try testing.expectError(error.Corrupt, pair.writer.tryWrite("", .{}));
        } else {
            for (0..2) |_| {
                try testing.expectError(error.Corrupt, written);
                try testing.expectEqual(millrace.Reason.ring_cursor, pair.writer.reason().?);
            }
            try testing.expectEqual(16 << 8 | 3, pair.segment.record(1).state);
        }
    }
}

test "many finished frames, one publish; abandon takes back; a claim may shrink" {
    var pair: Pair = undefined;
    try pair.init(512, 0xffff_fff0);
    for (0..3) |index| {
        const bytes = try pair.writer.claim(10, .none);
        @memset(bytes, @intCast(index));
        pair.writer.finish(@intCast(index), .{ .tag = @intCast(index) });
        try pair.expectNothing();
    }
    _ = try pair.writer.claim(200, .none);
    pair.writer.abandon();
    pair.writer.publish();
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes_elided);
    try pair.expectMessage("", 0);
    try pair.expectMessage("\x01", 1);
    try pair.expectMessage("\x02\x02", 2);
    try pair.expectNothing();
}

test "the reader stores head when it has read what it saw, or a quarter of the capacity" {
    var pair: Pair = undefined;
    try pair.init(1024, 0);
    for (0..40) |_| try pair.writer.write("", .{}, .none);
    for (1..41) |read| {
        try pair.expectMessage("", 0);
        const all_read: u32 = 640;
        const stored = if (read < 40) @as(u32, @intCast(read)) / 16 * 256 else all_read;
        try testing.expectEqual(stored, word(&pair, 128));
    }
}

test "the reader stores head with each frame while the writer waits [ring.release_asked]" {
    var pair: Pair = undefined;
    try pair.init(1024, 0xffff_fff0);
    const begin = pair.reader.ring.head;
    for (0..40) |_| try pair.writer.write("", .{}, .none);
    const condition: @import("side.zig").Wait = .{
        .endpoint = &pair.endpoints[0],
        .writer = &pair.writer.ring,
        .size = 496,
    };
    // For whatever the writer asks: this needs 144 bytes, and first asks for a quarter more.
    for ([_]bool{ true, false }) |asks_more| {
        try testing.expectEqual(asks_more, condition.arm(asks_more));
        for (0..4) |_| {
            try pair.expectMessage("", 0);
            try testing.expectEqual(pair.reader.ring.head, word(&pair, 128));
        }
        condition.disarm();
        try pair.expectMessage("", 0);
        try testing.expect(pair.reader.ring.head != word(&pair, 128));
    }
    try testing.expectEqual(begin +% 10 * 16, pair.reader.ring.head);
}

test "a writer that waits asks first for more, then for exactly what it needs" {
    var pair: Pair = undefined;
    try pair.init(1024, 0);
    for (0..63) |_| try pair.writer.write("", .{}, .none);
    const condition: @import("side.zig").Wait = .{
        .endpoint = &pair.endpoints[0],
        .writer = &pair.writer.ring,
        .size = 100,
    };
    // tail 1008 plus pad 16, extent 128 and reserve 16, minus the capacity: head must reach 144.
    try testing.expect(condition.arm(true));
    try testing.expectEqual(144 + 256 + 1, word(&pair, 384));
    try testing.expect(!condition.arm(false));
    try testing.expectEqual(144 + 1, word(&pair, 384));
    try testing.expect(!condition.look(.seq_cst));
    condition.disarm();
    try testing.expectEqual(0, word(&pair, 384));
    for (0..16) |_| try pair.expectMessage("", 0);
    try testing.expect(condition.look(.seq_cst));
}
