//! The 16-byte header of every frame, and what a reader checks in it [spec/frame.md].
//!
//! Invariant: a header is loaded once, into a local; everything here works on that local.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const assert = std.debug.assert;

/// What is wrong with a frame. `reasonOf` in `root.zig` gives the reason code of each.
pub const Error = error{
    FrameKind,
    FrameFlags,
    FrameReserved,
    FrameSize,
    FramePad,
    FrameSequence,
    FrameTotal,
    FrameExtension,
};

const first = layout.frame_flag_first;
const last = layout.frame_flag_last;
const cancel = layout.frame_flag_cancel;
const extended = layout.frame_flag_extended;

/// The `total` of a message whose size is not known when it begins. No other message has it.
pub const total_unknown: u64 = std.math.maxInt(u64);

pub const Header = extern struct {
    size: u32,
    kind: u8,
    flags: u8 = 0,
    codec: u8 = 0,
    reserved: u8 = 0,
    tag: u32 = 0,
    time: u32 = 0,

    const Words = @Vector(4, u32);

    /// Loads the header once. Volatile, so that the compiler cannot load a part of it again after
    /// it was checked: a hostile writer may change the bytes at any time. The load takes two words,
    /// which stay in registers, where a vector would go through the stack.
    pub inline fn load(
        place: *align(layout.frame_align) const [layout.frame_header_size]u8,
    ) Header {
        const words: [2]u64 = .{
            @as(*const volatile u64, @ptrCast(place[0..8])).*,
            @as(*const volatile u64, @ptrCast(place[8..16])).*,
        };
        return .{
            .size = @truncate(words[0]),
            .kind = @truncate(words[0] >> 32),
            .flags = @truncate(words[0] >> 40),
            .codec = @truncate(words[0] >> 48),
            .reserved = @truncate(words[0] >> 56),
            .tag = @truncate(words[1]),
            .time = @truncate(words[1] >> 32),
        };
    }

    /// Returns the second word: kind, flags, codec and reserved byte.
    inline fn second(header: Header) u32 {
        return header.kind | @as(u32, header.flags) << 8 | @as(u32, header.codec) << 16 |
            @as(u32, header.reserved) << 24;
    }

    /// Writes every field [frame.header].
    pub inline fn store(
        header: Header,
        place: *align(layout.frame_align) [layout.frame_header_size]u8,
    ) void {
        // The words are put together by hand, because the compiler builds the vector byte by byte,
        // which costs time on every target and size in WebAssembly.
        const words: Words = .{ header.size, header.second(), header.tag, header.time };
        @as(*Words, @ptrCast(place)).* = words;
    }
};

/// The first 16 bytes of the payload of a message's first chunk.
pub const Preamble = extern struct {
    total: u64,
    reserved: u64 = 0,

    const Words = @Vector(4, u32);

    pub fn load(place: *align(layout.frame_align) const [layout.message_preamble_size]u8) Preamble {
        const words: Words = @as(*const volatile Words, @ptrCast(place)).*;
        return @as(*const Preamble, @ptrCast(&words)).*;
    }

    pub fn store(
        preamble: Preamble,
        place: *align(layout.frame_align) [layout.message_preamble_size]u8,
    ) void {
        @as(*Words, @ptrCast(place)).* = @as(*align(4) const Words, @ptrCast(&preamble)).*;
    }
};

comptime {
    assert(@sizeOf(Header) == layout.frame_header_size);
    assert(@offsetOf(Header, "size") == layout.frame_size_offset);
    assert(@offsetOf(Header, "kind") == layout.frame_kind_offset);
    assert(@offsetOf(Header, "flags") == layout.frame_flags_offset);
    assert(@offsetOf(Header, "codec") == layout.frame_codec_offset);
    assert(@offsetOf(Header, "reserved") == layout.frame_reserved_offset);
    assert(@offsetOf(Header, "tag") == layout.frame_tag_offset);
    assert(@offsetOf(Header, "time") == layout.frame_time_offset);
    assert(@sizeOf(Preamble) == layout.message_preamble_size);
    assert(@offsetOf(Preamble, "total") == layout.preamble_total_offset);
    assert(@offsetOf(Preamble, "reserved") == layout.preamble_reserved_offset);
    assert(layout.frame_header_size == layout.frame_align);
    assert(layout.header_extension_size == layout.frame_align);
    assert(layout.extension_size_offset == 0);
}

/// Returns the bytes that a frame with this payload takes in the ring [frame.extent].
///
/// Asserts that this side may have chosen the size: at most half the largest ring.
pub inline fn extentOf(size: u32) u32 {
    assert(size <= layout.ring_capacity_max / 2);
    return layout.frame_header_size + std.mem.alignForward(u32, size, layout.frame_align);
}

/// The state of the multipart message that a reader has received in part.
pub const Progress = struct {
    kind: u8,
    codec: u8,
    tag: u32,
    /// The time of the first frame; the times of the others are ignored.
    time: u32 = 0,
    /// `total_unknown` if the writer did not know the size when it began the message.
    total: u64,
    /// The sum of the parts so far; not kept up to date if `uncounted`.
    received: u64,
    /// [frame.check_total] Whether the reader drops this message because of its size or kind, and
    /// no longer compares the sum with the total.
    uncounted: bool = false,
};

/// Where a frame stands in the ring, and how far it may reach.
pub const Place = struct {
    /// Published bytes, from the start of the frame on.
    available: u32,
    /// Bytes from the start of the frame to the end of the byte area.
    to_end: u32,
    capacity: u32,
    /// Where the payload of the frame would start.
    payload: [*]align(layout.frame_align) const u8,
};

pub const Class = enum {
    /// A pad, or an extension frame [frame.skip].
    skip,
    end,
    /// A message of one frame.
    whole,
    /// A frame of a message that has several.
    first,
    middle,
    last,
    cancel,
};

pub const Checked = struct {
    class: Class,
    extent: u32,
    /// Bytes of the header extension, which stands at the start of the payload. They count in the
    /// size of the frame, but not in that of the message [frame.skip_extension].
    extension_size: u32 = 0,

    /// Returns how many bytes of the payload follow the header extension.
    pub inline fn contentSize(checked: Checked, header: Header) u32 {
        return header.size - checked.extension_size;
    }
};

/// Returns the extent of a whole data message that passes all checks while no message is in
/// progress. Nearly every frame takes this path, which needs no table. Null decides nothing: the
/// caller then calls `check`. Always null where the size of the module counts more.
pub inline fn wholeExtent(header: Header, place: Place) ?u32 {
    if (builtin.mode == .small) return null;
    const any_codec = @as(u32, std.math.maxInt(u8)) << 16;
    const whole = layout.frame_kind_data | @as(u32, first | last) << 8;
    if (header.second() & ~any_codec != whole) return null;
    // 64 bits wide, so that the peer's size cannot overflow it.
    const extent = layout.frame_header_size +
        std.mem.alignForward(u64, header.size, layout.frame_align);
    const most = @min(place.available, place.to_end, place.capacity / 2);
    return if (extent <= most) @intCast(extent) else null;
}

/// Makes all checks of frame.md in its order, except those of the preamble and the total
/// [frame.check].
pub fn check(header: Header, place: Place, progress: ?*const Progress) Error!Checked {
    assert(place.available > 0);
    assert(place.to_end > 0);
    const class = try classOf(header);
    // 64 bits wide, so that the peer's size cannot overflow it.
    const extent = layout.frame_header_size +
        std.mem.alignForward(u64, header.size, layout.frame_align);
    if (extent > place.available) return error.FrameSize;
    if (extent > place.to_end) return error.FrameSize;
    const is_pad = header.kind == layout.frame_kind_pad;
    if (!is_pad and extent > place.capacity / 2) return error.FrameSize;
    if (is_pad and extent != place.to_end) return error.FramePad;
    if (class == .end and header.size != 0) return error.FrameSize;
    var checked: Checked = .{ .class = class, .extent = @intCast(extent) };
    if (isExtended(header)) checked.extension_size = try extensionSize(header, place);
    const content_size = checked.contentSize(header);
    const size_valid = switch (class) {
        .skip, .end, .whole => true,
        .cancel => content_size == 0,
        .first => content_size >= layout.message_preamble_size,
        .middle, .last => content_size >= 1,
    };
    if (!size_valid) return error.FrameSize;
    switch (class) {
        .skip, .end => {},
        .whole, .first => if (progress != null) return error.FrameSequence,
        .middle, .last, .cancel => {
            const message = progress orelse return error.FrameSequence;
            if (header.kind != message.kind) return error.FrameSequence;
            if (header.codec != message.codec) return error.FrameSequence;
            if (header.tag != message.tag) return error.FrameSequence;
        },
    }
    return checked;
}

/// Whether the frame is one of a message and says that its payload starts with a header extension.
/// An extension frame may use its flags as it likes.
fn isExtended(header: Header) bool {
    return header.kind < layout.frame_kind_extension_min and header.flags & extended != 0;
}

/// Loads the size of the header extension once, and checks it [frame.extension]. This version knows
/// nothing else that an extension may hold.
fn extensionSize(header: Header, place: Place) error{FrameExtension}!u32 {
    if (header.size < layout.header_extension_size) return error.FrameExtension;
    const size = @as(*const volatile u32, @ptrCast(place.payload)).*;
    if (size < layout.header_extension_size) return error.FrameExtension;
    if (size % layout.header_extension_size != 0) return error.FrameExtension;
    if (size > header.size) return error.FrameExtension;
    return size;
}

/// Whether the combination of flags is one that a message may have.
///
/// Asserts that the kind is that of a message.
pub fn flagsValid(header: Header) bool {
    _ = classOf(header) catch |err| {
        assert(err == error.FrameFlags);
        return false;
    };
    return true;
}

/// The first four rows of the table of checks: kind, reserved byte and flags.
fn classOf(header: Header) Error!Class {
    switch (header.kind) {
        layout.frame_kind_data,
        layout.frame_kind_call,
        layout.frame_kind_return,
        layout.frame_kind_throw,
        => {
            if (header.reserved != 0) return error.FrameReserved;
            const class: Class = switch (header.flags) {
                first | last, first | last | extended => return .whole,
                first, first | extended => .first,
                0, extended => .middle,
                last, last | extended => .last,
                last | cancel => .cancel,
                else => return error.FrameFlags,
            };
            // A part of a JSON array is of no use to a reader [frame.batch_whole].
            if (header.codec == layout.codec_json_batch) return error.FrameFlags;
            return class;
        },
        layout.frame_kind_end, layout.frame_kind_pad => {
            if (header.reserved != 0) return error.FrameReserved;
            if (header.flags != 0) return error.FrameFlags;
            return if (header.kind == layout.frame_kind_end) .end else .skip;
        },
        layout.frame_kind_extension_min...255 => return .skip,
        else => return error.FrameKind,
    }
}

/// Checks the preamble of a first chunk and begins a message with it. `content_size` is the size of
/// the payload after the header extension.
///
/// Asserts that `check` passed the header as `.first`.
pub fn begin(header: Header, content_size: u32, preamble: Preamble) Error!Progress {
    assert(header.flags & ~@as(u8, extended) == first);
    assert(content_size >= layout.message_preamble_size);
    if (preamble.reserved != 0) return error.FrameReserved;
    const received = content_size - layout.message_preamble_size;
    if (received > preamble.total) return error.FrameTotal;
    return .{
        .kind = header.kind,
        .codec = header.codec,
        .tag = header.tag,
        .time = header.time,
        .total = preamble.total,
        .received = received,
    };
}

/// Adds the part of a later chunk to the message in progress, and compares the sum with the total
/// if that is known.
///
/// Asserts that `check` passed the chunk as `.middle` or `.last`.
pub fn advance(progress: *Progress, part_size: u32, class: Class) Error!void {
    assert(class == .middle or class == .last);
    assert(part_size > 0);
    if (progress.uncounted) return;
    const received = progress.received +| part_size;
    if (progress.total != total_unknown) {
        if (received > progress.total) return error.FrameTotal;
        if (class == .last and received != progress.total) return error.FrameTotal;
    }
    progress.received = received;
}

// Tests.
//
// Frames: every row of the table of checks, each with a neighbour that is accepted.

const testing = std.testing;

const Payload = [1024]u8;
/// For frames whose payload is not looked at.
const blank: Payload align(16) = @splat(0);
const roomy = placeIn(&blank);
const begun: Progress = .{ .kind = 1, .codec = 2, .tag = 9, .total = 100, .received = 40 };

fn placeIn(payload: *align(16) const Payload) Place {
    return .{ .available = 1024, .to_end = 1024, .capacity = 2048, .payload = payload };
}

fn expectClass(expected: anyerror!Class, header: Header, place: Place, in: bool) !void {
    errdefer std.debug.print("header: {}\n", .{header});
    const checked = check(header, place, if (in) &begun else null);
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
        const place: Place = .{
            .available = case.available,
            .to_end = case.to_end,
            .capacity = case.capacity,
            .payload = &blank,
        };
        for ([_]u8{ 1, 128 }) |kind| {
            const class: Class = if (kind == 1) .whole else .skip;
            const expected: anyerror!Class = if (case.ok) class else error.FrameSize;
            const header: Header = .{ .size = case.size, .kind = kind, .flags = 3 };
            try expectClass(expected, header, place, false);
        }
    }
}

test "check: a pad reaches exactly to the end, and may be larger than half the capacity" {
    const place: Place = .{
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
    const Case = struct { flags: u8, size: u32, in: bool, expected: anyerror!Class };
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

test "check: a header extension, and what has to be after it" {
    const Case = struct {
        flags: u8,
        size: u32,
        extension: u32,
        in: bool = false,
        expected: anyerror!Class,
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
            const progress = if (case.in) &begun else null;
            const checked = try check(header, placeIn(&payload), progress);
            try testing.expectEqual(case.size - case.extension, checked.contentSize(header));
        } else |_| {}
        // An extension frame may use its flags as it likes.
        var own = header;
        own.kind = 200;
        try expectClass(.skip, own, placeIn(&payload), case.in);
    }
}

test "begin and advance: the preamble and the total" {
    const opening: Header = .{ .size = 56, .kind = 1, .flags = 1 };
    const strange: Preamble = .{ .total = 24, .reserved = 1 };
    try testing.expectError(error.FrameReserved, begin(opening, 40, strange));
    try testing.expectError(error.FrameTotal, begin(opening, 40, .{ .total = 23 }));
    const full = try begin(opening, 40, .{ .total = 24 });
    var progress = full;
    try testing.expectError(error.FrameTotal, advance(&progress, 1, .middle));
    progress = try begin(opening, 40, .{ .total = 30 });
    try advance(&progress, 4, .middle);
    var short = progress;
    try testing.expectError(error.FrameTotal, advance(&short, 1, .last));
    try advance(&progress, 2, .last);
    progress = try begin(opening, 40, .{ .total = std.math.maxInt(u64) - 1 });
    progress.received = std.math.maxInt(u64) - 2;
    try advance(&progress, 1, .last);
    try testing.expectError(error.FrameTotal, advance(&progress, 1, .middle));
    progress = try begin(opening, 40, .{ .total = 24 });
    progress.uncounted = true;
    try advance(&progress, 1000, .middle);
}

test "advance: a total that is not known is compared with nothing" {
    const opening: Header = .{ .size = 40, .kind = 1, .flags = 1 };
    var progress = try begin(opening, 40, .{ .total = total_unknown });
    try advance(&progress, 1, .middle);
    try advance(&progress, 1, .last);
    try testing.expectEqual(26, progress.received);
}
