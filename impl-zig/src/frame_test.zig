//! Frames: every row of the table of checks, each with the neighbour that is accepted.

const std = @import("std");
const frame = @import("frame.zig");
const testing = std.testing;
const Header = frame.Header;

const roomy: frame.Place = .{ .available = 1024, .to_end = 1024, .capacity = 2048 };
const message: frame.Progress = .{ .kind = 1, .codec = 2, .tag = 9, .total = 100, .received = 40 };

fn expectClass(expected: anyerror!frame.Class, header: Header, place: frame.Place, in: bool) !void {
    errdefer std.debug.print("header: {}\n", .{header});
    const checked = frame.check(header, place, if (in) &message else null);
    if (expected) |class| {
        try testing.expectEqual(class, (try checked).class);
    } else |err| {
        try testing.expectError(err, checked);
    }
}

test "check: kind" {
    for (0..256) |value| {
        const kind: u8 = @intCast(value);
        const header: Header = .{ .size = 1008, .kind = kind, .flags = 3 };
        try expectClass(switch (kind) {
            1, 3, 4, 5 => .whole,
            2, 6 => error.FrameFlags,
            128...255 => .skip,
            else => error.FrameKind,
        }, header, roomy, false);
    }
}

test "check: reserved byte, for kinds below 128 only" {
    for ([_]u8{ 1, 2, 3, 4, 5, 6 }) |kind| {
        const header: Header = .{ .size = 0, .kind = kind, .reserved = 1 };
        try expectClass(error.FrameReserved, header, roomy, false);
    }
    try expectClass(.skip, .{ .size = 0, .kind = 128, .reserved = 1, .flags = 0xff }, roomy, false);
}

test "check: flags" {
    for (0..256) |value| {
        const flags: u8 = @intCast(value);
        const size: u32 = if (flags == 6) 0 else 16;
        const header: Header = .{ .size = size, .kind = 1, .flags = flags, .codec = 2, .tag = 9 };
        try expectClass(switch (flags) {
            0 => .middle,
            1 => error.FrameSequence,
            2 => .last,
            3 => error.FrameSequence,
            6 => .cancel,
            else => error.FrameFlags,
        }, header, roomy, true);
        var batch = header;
        batch.codec = 3;
        try expectClass(if (flags == 3) .whole else error.FrameFlags, batch, roomy, false);
    }
}

test "check: size against what was published, the end of the area and half the capacity" {
    const Case = struct { size: u32, available: u32, to_end: u32, capacity: u32, ok: bool };
    for ([_]Case{
        .{ .size = 112, .available = 128, .to_end = 128, .capacity = 256, .ok = true },
        .{ .size = 113, .available = 256, .to_end = 256, .capacity = 256, .ok = false },
        .{ .size = 112, .available = 112, .to_end = 128, .capacity = 256, .ok = false },
        .{ .size = 112, .available = 128, .to_end = 112, .capacity = 256, .ok = false },
        .{ .size = 0, .available = 16, .to_end = 16, .capacity = 256, .ok = true },
        .{ .size = 1, .available = 16, .to_end = 256, .capacity = 256, .ok = false },
        .{ .size = 0xffff_ffff, .available = 256, .to_end = 256, .capacity = 256, .ok = false },
        .{ .size = 0xffff_fff0, .available = 256, .to_end = 256, .capacity = 256, .ok = false },
        .{ .size = 0xffff_fff1, .available = 256, .to_end = 256, .capacity = 256, .ok = false },
    }) |case| {
        const place: frame.Place = .{
            .available = case.available,
            .to_end = case.to_end,
            .capacity = case.capacity,
        };
        for ([_]u8{ 1, 128 }) |kind| {
            const class: frame.Class = if (kind == 1) .whole else .skip;
            const expected: anyerror!frame.Class = if (case.ok) class else error.FrameSize;
            const header: Header = .{ .size = case.size, .kind = kind, .flags = 3 };
            try expectClass(expected, header, place, false);
        }
    }
}

test "check: a pad reaches exactly to the end, and may be larger than half the capacity" {
    const place: frame.Place = .{ .available = 208, .to_end = 208, .capacity = 256 };
    const pad: Header = .{ .size = 192, .kind = 6, .tag = 5, .time = 5, .codec = 5 };
    try expectClass(.skip, pad, place, false);
    try expectClass(.skip, .{ .size = 191, .kind = 6 }, place, false); // the extent counts
    try expectClass(error.FramePad, .{ .size = 176, .kind = 6 }, place, false);
    try expectClass(error.FrameSize, .{ .size = 193, .kind = 6 }, place, false);
    try expectClass(error.FrameFlags, .{ .size = 192, .kind = 6, .flags = 1 }, place, false);
}

test "check: sizes that go with the kind" {
    try expectClass(.end, .{ .size = 0, .kind = 2, .tag = 1, .codec = 9, .time = 1 }, roomy, false);
    try expectClass(error.FrameSize, .{ .size = 1, .kind = 2 }, roomy, false);
    const m: Header = .{ .size = 0, .kind = 1, .codec = 2, .tag = 9 };
    const Case = struct { flags: u8, size: u32, in: bool, expected: anyerror!frame.Class };
    for ([_]Case{
        .{ .flags = 3, .size = 0, .in = false, .expected = .whole },
        .{ .flags = 1, .size = 15, .in = false, .expected = error.FrameSize },
        .{ .flags = 1, .size = 16, .in = false, .expected = .first },
        .{ .flags = 0, .size = 0, .in = true, .expected = error.FrameSize },
        .{ .flags = 0, .size = 1, .in = true, .expected = .middle },
        .{ .flags = 2, .size = 0, .in = true, .expected = error.FrameSize },
        .{ .flags = 2, .size = 1, .in = true, .expected = .last },
        .{ .flags = 6, .size = 0, .in = true, .expected = .cancel },
        .{ .flags = 6, .size = 1, .in = true, .expected = error.FrameSize },
        .{ .flags = 1, .size = 16, .in = true, .expected = error.FrameSequence },
        .{ .flags = 3, .size = 16, .in = true, .expected = error.FrameSequence },
        .{ .flags = 0, .size = 1, .in = false, .expected = error.FrameSequence },
        .{ .flags = 2, .size = 1, .in = false, .expected = error.FrameSequence },
        .{ .flags = 6, .size = 0, .in = false, .expected = error.FrameSequence },
    }) |case| {
        var header = m;
        header.flags = case.flags;
        header.size = case.size;
        try expectClass(case.expected, header, roomy, case.in);
    }
}

test "check: later frames have the kind, codec and tag of the first" {
    const same: Header = .{ .size = 1, .kind = 1, .codec = 2, .tag = 9 };
    try expectClass(.middle, same, roomy, true);
    var other = same;
    other.kind = 3;
    try expectClass(error.FrameSequence, other, roomy, true);
    other = same;
    other.codec = 1;
    try expectClass(error.FrameSequence, other, roomy, true);
    other = same;
    other.tag = 8;
    try expectClass(error.FrameSequence, other, roomy, true);
    // Pads, extensions and the end may stand in the middle of a message.
    try expectClass(.skip, .{ .size = 0, .kind = 200, .tag = 8 }, roomy, true);
    try expectClass(.end, .{ .size = 0, .kind = 2 }, roomy, true);
}

test "begin and advance: the preamble and the total" {
    const first: Header = .{ .size = 40, .kind = 1, .flags = 1 };
    const strange: frame.Preamble = .{ .total = 24, .reserved = 1 };
    try testing.expectError(error.FrameReserved, frame.begin(first, strange));
    try testing.expectError(error.FrameTotal, frame.begin(first, .{ .total = 23 }));
    const full = try frame.begin(first, .{ .total = 24 });
    var progress = full;
    try testing.expectError(error.FrameTotal, frame.advance(&progress, .{ .size = 1, .kind = 1 }));
    progress = try frame.begin(first, .{ .total = 30 });
    try frame.advance(&progress, .{ .size = 4, .kind = 1 });
    var short = progress;
    try testing.expectError(
        error.FrameTotal,
        frame.advance(&short, .{ .size = 1, .kind = 1, .flags = 2 }),
    );
    try frame.advance(&progress, .{ .size = 2, .kind = 1, .flags = 2 });
    progress = try frame.begin(first, .{ .total = std.math.maxInt(u64) });
    progress.received = std.math.maxInt(u64) - 1;
    try frame.advance(&progress, .{ .size = 1, .kind = 1, .flags = 2 });
    progress = try frame.begin(first, .{ .total = 24 });
    progress.uncounted = true;
    try frame.advance(&progress, .{ .size = 1000, .kind = 1 });
}
