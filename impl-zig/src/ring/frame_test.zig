//! Frames: every row of the table of checks, each with a neighbour that is accepted.

const std = @import("std");
const frame = @import("frame.zig");
const testing = std.testing;
const Header = frame.Header;

const Payload = [1024]u8;
/// For frames whose payload is not looked at.
const blank: Payload align(16) = @splat(0);
const roomy = placeIn(&blank);
const message: frame.Progress = .{ .kind = 1, .codec = 2, .tag = 9, .total = 100, .received = 40 };

fn placeIn(payload: *align(16) const Payload) frame.Place {
    return .{ .available = 1024, .to_end = 1024, .capacity = 2048, .payload = payload };
}

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
            // With `extended`, the flags are valid, but there is no extension.
            8...11 => error.FrameExtension,
            else => error.FrameFlags,
        }, header, roomy, true);
        var batch = header;
        batch.codec = 3;
        try expectClass(switch (flags) {
            3 => .whole,
            11 => error.FrameExtension,
            else => error.FrameFlags,
        }, batch, roomy, false);
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
            .payload = &blank,
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
    const place: frame.Place = .{
        .available = 208,
        .to_end = 208,
        .capacity = 256,
        .payload = &blank,
    };
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
    // Pads, extension frames and the end may come in the middle of a message.
    try expectClass(.skip, .{ .size = 0, .kind = 200, .tag = 8 }, roomy, true);
    try expectClass(.end, .{ .size = 0, .kind = 2 }, roomy, true);
}

test "check: a header extension, and what has to be behind it" {
    const Case = struct {
        flags: u8,
        size: u32,
        extension: u32,
        in: bool = false,
        expected: anyerror!frame.Class,
    };
    for ([_]Case{
        .{ .flags = 11, .size = 16, .extension = 16, .expected = .whole },
        .{ .flags = 11, .size = 15, .extension = 16, .expected = error.FrameExtension },
        .{ .flags = 11, .size = 48, .extension = 48, .expected = .whole },
        .{ .flags = 11, .size = 47, .extension = 48, .expected = error.FrameExtension },
        .{ .flags = 11, .size = 64, .extension = 0, .expected = error.FrameExtension },
        .{ .flags = 11, .size = 64, .extension = 24, .expected = error.FrameExtension },
        .{ .flags = 11, .size = 64, .extension = 0xffff_fff0, .expected = error.FrameExtension },
        .{ .flags = 9, .size = 32, .extension = 16, .expected = .first },
        .{ .flags = 9, .size = 31, .extension = 16, .expected = error.FrameSize },
        .{ .flags = 8, .size = 17, .extension = 16, .in = true, .expected = .middle },
        .{ .flags = 8, .size = 16, .extension = 16, .in = true, .expected = error.FrameSize },
        .{ .flags = 10, .size = 17, .extension = 16, .in = true, .expected = .last },
        .{ .flags = 10, .size = 16, .extension = 16, .in = true, .expected = error.FrameSize },
        .{ .flags = 8, .size = 17, .extension = 16, .expected = error.FrameSequence },
        .{ .flags = 14, .size = 0, .extension = 16, .in = true, .expected = error.FrameFlags },
    }) |case| {
        var payload: Payload align(16) = @splat(0xaa);
        std.mem.writeInt(u32, payload[0..4], case.extension, .little);
        const header: Header = .{
            .size = case.size,
            .kind = 1,
            .flags = case.flags,
            .codec = 2,
            .tag = 9,
        };
        try expectClass(case.expected, header, placeIn(&payload), case.in);
        if (case.expected) |_| {
            const progress = if (case.in) &message else null;
            const checked = try frame.check(header, placeIn(&payload), progress);
            try testing.expectEqual(case.size - case.extension, checked.contentSize(header));
        } else |_| {}
        // An extension frame may use its flags as it likes.
        var own = header;
        own.kind = 200;
        try expectClass(.skip, own, placeIn(&payload), case.in);
    }
}

test "begin and advance: the preamble and the total" {
    const first: Header = .{ .size = 56, .kind = 1, .flags = 1 };
    const strange: frame.Preamble = .{ .total = 24, .reserved = 1 };
    try testing.expectError(error.FrameReserved, frame.begin(first, 40, strange));
    try testing.expectError(error.FrameTotal, frame.begin(first, 40, .{ .total = 23 }));
    const full = try frame.begin(first, 40, .{ .total = 24 });
    var progress = full;
    try testing.expectError(error.FrameTotal, frame.advance(&progress, 1, .middle));
    progress = try frame.begin(first, 40, .{ .total = 30 });
    try frame.advance(&progress, 4, .middle);
    var short = progress;
    try testing.expectError(error.FrameTotal, frame.advance(&short, 1, .last));
    try frame.advance(&progress, 2, .last);
    progress = try frame.begin(first, 40, .{ .total = std.math.maxInt(u64) - 1 });
    progress.received = std.math.maxInt(u64) - 2;
    try frame.advance(&progress, 1, .last);
    try testing.expectError(error.FrameTotal, frame.advance(&progress, 1, .middle));
    progress = try frame.begin(first, 40, .{ .total = 24 });
    progress.uncounted = true;
    try frame.advance(&progress, 1000, .middle);
}

test "advance: a total that is not known is compared with nothing" {
    const first: Header = .{ .size = 40, .kind = 1, .flags = 1 };
    var progress = try frame.begin(first, 40, .{ .total = frame.total_unknown });
    try frame.advance(&progress, 1, .middle);
    try frame.advance(&progress, 1, .last);
    try testing.expectEqual(26, progress.received);
}
