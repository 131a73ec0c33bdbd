//! A peer that changes a word between two loads of it. While a reader reads, a word flips between
//! two values, of which one or both are valid. Whatever the reader returns, it must be entirely
//! what one of the two values means.

const std = @import("std");
const builtin = @import("builtin");
const fixture = @import("fixture.zig");
const layout = @import("../memory/layout.zig");
const millrace = @import("../root.zig");
const FrameHeader = @import("../ring/frame.zig").Header;
const testing = std.testing;
const Atomic = std.atomic.Value;

const read_count = 5_000;
/// How many rounds are played if the word has to stand still between two, which takes long on a
/// busy machine.
const held_count = 500;

/// Stores two values in a word in turn, until it is told to stop.
const Flipper = struct {
    word: *u32,
    values: [2]u32,
    /// Null while the word stands still.
    thread: ?std.Thread = null,
    stop: Atomic(bool) = .init(false),
    pause: Atomic(bool) = .init(true),
    paused: Atomic(bool) = .init(false),

    fn start(flipper: *Flipper) !void {
        @atomicStore(u32, flipper.word, flipper.values[0], .monotonic);
        flipper.thread = try .spawn(.{}, flip, .{flipper});
    }

    fn end(flipper: *Flipper) void {
        flipper.stop.store(true, .release);
        flipper.thread.?.join();
    }

    fn flip(flipper: *Flipper) void {
        while (!flipper.stop.load(.acquire)) {
            if (flipper.pause.load(.acquire)) {
                flipper.paused.store(true, .release);
                std.Thread.yield() catch {};
                continue;
            }
            for (flipper.values) |value| {
                @atomicStore(u32, flipper.word, value, .monotonic);
                std.atomic.spinLoopHint();
            }
        }
    }

    /// Stops the word while everything is set up again.
    fn hold(flipper: *Flipper) void {
        flipper.paused.store(false, .release);
        flipper.pause.store(true, .release);
        while (!flipper.paused.load(.acquire)) std.Thread.yield() catch {};
    }

    fn go(flipper: *Flipper) void {
        flipper.pause.store(false, .release);
    }
};

/// How many times each of two results was seen. Unless both were, nothing is proved.
const Seen = struct {
    counts: [2]u64 = @splat(0),

    fn add(seen: *Seen, index: u1) void {
        seen.counts[index] += 1;
    }

    fn both(seen: *const Seen) bool {
        return seen.counts[0] > 0 and seen.counts[1] > 0;
    }
};

/// A ring of 512 bytes, in which every frame that could be found has its own tag.
const Scene = struct {
    pair: fixture.Pair,

    fn init(scene: *Scene) !void {
        try scene.pair.init(512, 0);
        scene.pair.reader.calls = true;
    }

    /// Makes a reader that has read nothing yet, and a writer whose state it has not touched.
    fn again(scene: *Scene) !void {
        const pair = &scene.pair;
        pair.endpoints[1].behind = null;
        pair.segment.record(0).state = 1;
        pair.segment.record(1).state = 1;
        pair.reader = try .init(&pair.endpoints[1], &pair.segment, 0);
        pair.reader.calls = true;
        @atomicStore(u32, &pair.reader.ring.control.head, 0, .seq_cst);
    }

    fn put(scene: *Scene, offset: usize, header: FrameHeader) void {
        header.store(@alignCast(scene.pair.reader.ring.area[offset..][0..16]));
    }

    fn word(scene: *Scene, offset: usize) *u32 {
        return @ptrCast(@alignCast(scene.pair.reader.ring.area[offset..][0..4]));
    }

    fn publish(scene: *Scene, tail: u32) void {
        @atomicStore(u32, &scene.pair.reader.ring.control.tail, tail, .seq_cst);
    }

    fn read(scene: *Scene, storage: []u8) millrace.ReadError!?millrace.Message {
        return scene.pair.reader.tryRead(storage);
    }
};

const whole = layout.frame_flag_first | layout.frame_flag_last;

/// Places two frames that could follow one of 16 or of 96 bytes: at 32, and at 112.
fn makeSizes(scene: *Scene) void {
    scene.put(0, .{ .size = 16, .kind = 1, .flags = whole, .tag = 7 });
    // The frame at 32 is payload if the first frame is long. Both ways end at 128.
    scene.put(32, .{ .size = 80, .kind = 1, .flags = whole, .tag = 32 });
    scene.put(112, .{ .size = 0, .kind = 1, .flags = whole, .tag = 112 });
}

test "scribble: a size that changes is used once, for the check, the copy and the way on" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var scene: Scene = undefined;
    try scene.init();
    makeSizes(&scene);
    scene.publish(128);
    var flipper: Flipper = .{ .word = scene.word(0), .values = .{ 16, 96 } };
    try flipper.start();
    defer flipper.end();
    var seen: Seen = .{};
    var round: usize = 0;
    while (round < read_count or (!seen.both() and round < 100 * read_count)) : (round += 1) {
        try scene.again();
        flipper.go();
        var storage: [16 + 80]u8 = @splat(0xee);
        // In some rounds there is room only for the short message; then the long one is dropped.
        const room: usize = if (round % 2 == 0) 96 else 16;
        const long = if (scene.read(storage[0..room])) |message| long: {
            const size = message.?.payload.len;
            try testing.expect(size == 16 or size == 96);
            // Nothing was copied beyond the message.
            for (storage[size..]) |byte| try testing.expectEqual(0xee, byte);
            break :long size == 96;
        } else |err| long: {
            try testing.expectEqual(error.MessageSize, err);
            try testing.expectEqual(16, room);
            break :long true;
        };
        seen.add(@intFromBool(long));
        var rest: [80]u8 = undefined;
        const next = (try scene.read(&rest)).?;
        try testing.expectEqual(@as(u32, if (long) 112 else 32), next.tag);
        try testing.expectEqual(null, try scene.read(&rest));
    }
    try testing.expect(seen.both());
}

test "scribble: a size that changes after the check is caught where a reader loads it twice" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var scene: Scene = undefined;
    try scene.init();
    makeSizes(&scene);
    var flipper: Flipper = .{ .word = scene.word(0), .values = .{ 16, 96 } };
    try flipper.start();
    defer flipper.end();
    flipper.go();
    for (0..20 * read_count) |_| {
        // The canary: a reader that checks one load of a word and uses another. It is a little
        // slow, so that finding its fault needs no luck.
        const checked = @atomicLoad(u32, flipper.word, .monotonic);
        std.Thread.yield() catch {};
        const used = @atomicLoad(u32, flipper.word, .monotonic);
        if (checked != used) return;
    }
    return error.NotCaught;
}

test "scribble: kind, flags, codec and tag that change are those of one load" {
    if (builtin.single_threaded) return error.SkipZigTest;
    const Way = struct { offset: usize, values: [2]u32, reports: [2]?anyerror };
    const data: u32 = 1 | whole << 8;
    const ways = [_]Way{
        // Data and a call, to a reader that does not offer calls.
        .{
            .offset = 4,
            .values = .{ data, 3 | whole << 8 },
            .reports = .{ null, error.MessageKind },
        },
        // Data and an unknown kind; data and a kind that is skipped.
        .{ .offset = 4, .values = .{ data, 7 | whole << 8 }, .reports = .{ null, error.Corrupt } },
        .{ .offset = 4, .values = .{ data, 200 | whole << 8 }, .reports = .{ null, null } },
        // A whole message, and a later chunk without a message.
        .{ .offset = 4, .values = .{ data, 1 }, .reports = .{ null, error.Corrupt } },
        .{ .offset = 8, .values = .{ 7, 8 }, .reports = .{ null, null } },
    };
    for (ways) |way| {
        var scene: Scene = undefined;
        try scene.init();
        scene.put(0, .{ .size = 16, .kind = 1, .flags = whole, .tag = 7 });
        scene.put(32, .{ .size = 0, .kind = 1, .flags = whole, .tag = 32 });
        scene.publish(48);
        var flipper: Flipper = .{ .word = scene.word(way.offset), .values = way.values };
        try flipper.start();
        defer flipper.end();
        for (0..read_count) |_| {
            try scene.again();
            scene.pair.reader.calls = false;
            flipper.go();
            var storage: [32]u8 = undefined;
            const message = scene.read(&storage) catch |err| {
                try testing.expectEqual(way.reports[1].?, err);
                continue;
            };
            try testing.expectEqual(.data, message.?.kind);
            const skipped = message.?.tag == 32;
            if (skipped) continue;
            try testing.expectEqual(16, message.?.payload.len);
            try testing.expect(message.?.tag == 7 or message.?.tag == 8);
            try testing.expectEqual(32, (try scene.read(&storage)).?.tag);
        }
    }
}

test "scribble: a total that changes is the one that was checked against the storage" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var scene: Scene = undefined;
    try scene.init();
    scene.put(0, .{ .size = 16 + 16, .kind = 1, .flags = layout.frame_flag_first });
    @memset(scene.pair.reader.ring.area[16..48], 0);
    scene.put(48, .{ .size = 32, .kind = 1, .flags = layout.frame_flag_last });
    scene.publish(96);
    var flipper: Flipper = .{ .word = scene.word(16), .values = .{ 48, 4_000 } };
    try flipper.start();
    defer flipper.end();
    for (0..read_count) |_| {
        try scene.again();
        flipper.go();
        var storage: [64]u8 = @splat(0xee);
        const message = scene.read(storage[0..48]) catch |err| {
            try testing.expectEqual(error.MessageSize, err);
            try testing.expectEqual(null, try scene.read(storage[0..48]));
            continue;
        };
        try testing.expectEqual(48, message.?.payload.len);
        for (storage[48..]) |byte| try testing.expectEqual(0xee, byte);
    }
}

test "scribble: of a cursor that changes nothing is read beyond the value that was accepted" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var scene: Scene = undefined;
    try scene.init();
    scene.put(0, .{ .size = 16, .kind = 1, .flags = whole, .tag = 7 });
    scene.put(32, .{ .size = 16, .kind = 1, .flags = whole, .tag = 32 });
    // One of each: nothing yet, one frame, beyond the ring, misaligned.
    for ([_][2]u32{ .{ 0, 32 }, .{ 32, 1_040 }, .{ 32, 33 }, .{ 32, 64 } }) |values| {
        const word = &scene.pair.reader.ring.control.tail;
        var flipper: Flipper = .{ .word = word, .values = values };
        try flipper.start();
        defer flipper.end();
        for (0..held_count) |_| {
            flipper.hold();
            @atomicStore(u32, word, values[0], .seq_cst);
            try scene.again();
            flipper.go();
            var storage: [16]u8 = undefined;
            var count: u32 = 0;
            for (0..3) |_| {
                const message = scene.read(&storage) catch |err| {
                    try testing.expectEqual(error.Corrupt, err);
                    try testing.expectEqual(.ring_cursor, scene.pair.reader.reason().?);
                    break;
                } orelse continue;
                try testing.expectEqual(@as(u32, if (count == 0) 7 else 32), message.tag);
                count += 1;
            }
            try testing.expect(count <= if (values[1] == 64) @as(u32, 2) else 1);
        }
    }
}

test "scribble: a mailbox part's words that change are those of one load" {
    if (builtin.single_threaded) return error.SkipZigTest;
    const Way = struct { word: usize, values: [2]u32, why: ?layout.Reason };
    const ways = [_]Way{
        .{ .word = 2, .values = .{ 3, 5 }, .why = null },
        .{ .word = 2, .values = .{ 3, 500 }, .why = .mailbox_length },
        .{ .word = 2, .values = .{ 3, 0xffff_fff0 }, .why = .mailbox_length },
        .{ .word = 3, .values = .{ 1, 0 }, .why = .mailbox_part },
        .{ .word = 4, .values = .{ 0, 5 }, .why = .mailbox_part },
    };
    for (ways) |way| {
        var memory: [32 + 64]u8 align(4) = @splat(0);
        const words: *[8]u32 = @ptrCast(&memory);
        memory[32..37].* = "[1]  ".*;
        var flipper: Flipper = .{ .word = &words[way.word], .values = way.values };
        try flipper.start();
        defer flipper.end();
        for (0..held_count) |_| {
            flipper.hold();
            inline for (.{ 0, 1, 3, 1, 0 }, 0..) |value, index| {
                @atomicStore(u32, &words[index], value, .seq_cst);
            }
            var reader: millrace.MailboxReader = try .init(&memory, .{
                .host = &fixture.clockwork,
                .spin_us = 0,
            });
            flipper.go();
            var storage: [16]u8 = @splat(0xee);
            const payload = reader.tryRead(storage[0..5]) catch |err| {
                try testing.expectEqual(error.Corrupt, err);
                try testing.expectEqual(way.why, reader.reason());
                continue;
            };
            const size = payload.?.len;
            try testing.expect(size == 3 or size == way.values[1]);
            for (storage[size..]) |byte| try testing.expectEqual(0xee, byte);
        }
    }
}
