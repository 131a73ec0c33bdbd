//! Lists of values, codec `values` [spec/call.md, "A list of values"]: what a call and an answer
//! carry. Each value has a codec of its own.
//!
//! Invariant: nothing of a list is used before all checks of the table have passed.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const codec_file = @import("../codec/codec.zig");
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const Codec = layout.Codec;

/// Most values of a list.
pub const count_max = layout.values_count_max;

const header_size = layout.values_header_size;
const entry_size = layout.value_entry_size;

/// One value of a list, as it is written.
pub const Value = struct {
    codec: Codec,
    payload: []const u8,

    /// What stands for an argument that is left out, and for no result.
    pub const absent: Value = .{ .codec = .json, .payload = "" };

    /// Whether it stands for nothing.
    pub fn isAbsent(value: Value) bool {
        return value.codec == .json and value.payload.len == 0;
    }

    /// A text, which must be well-formed UTF-8 where it is written.
    pub fn text(payload: []const u8) Value {
        return .{ .codec = .text, .payload = payload };
    }
};

/// Why a payload is no list.
pub const ListError = error{
    /// It is not made as the chapter says.
    MessageValues,
    /// A value has a codec that nobody knows.
    MessageCodec,
    /// A text, or JSON, is not well-formed UTF-8.
    MessageText,
    /// A value of codec `json` is no JSON text.
    MessageJson,
    OutOfMemory,
};

/// A list whose checks have all passed, in a private copy of the payload.
pub const List = struct {
    payload: []const u8,
    count: u32,

    pub const empty: List = .{ .payload = "", .count = 0 };

    /// Makes all checks, in the order of the table [call.values_check]. The payload must be a
    /// private copy. Memory is needed only while JSON is checked that nests.
    pub fn check(gpa: Allocator, payload: []const u8) ListError!List {
        if (payload.len == 0) return .empty;
        if (payload.len < header_size) return error.MessageValues;
        const count = word(payload, layout.values_count_offset);
        if (count == 0 or count > layout.values_count_max) return error.MessageValues;
        if (word(payload, layout.values_reserved_offset) != 0) return error.MessageValues;
        if (header_size + entry_size * count > payload.len) return error.MessageValues;
        var end: u64 = header_size + entry_size * count;
        for (0..count) |index| {
            const entry = payload[header_size + entry_size * index ..][0..entry_size];
            const reserved = word(entry, layout.value_codec_offset) & 0xffff_ff00;
            if (reserved != 0) return error.MessageValues;
            switch (codecOf(entry)) {
                .json_batch, .values => return error.MessageValues,
                else => {},
            }
            // 64 bits wide, so that the peer's size cannot overflow it.
            end = std.mem.alignForward(u64, end, layout.values_align);
            end += word(entry, layout.value_size_offset);
            if (end > payload.len) return error.MessageValues;
        }
        if (end != payload.len) return error.MessageValues;
        const list: List = .{ .payload = payload, .count = count };
        var values = list.iterator();
        while (values.next()) |value| try checkValue(gpa, value);
        return list;
    }

    /// The values in order.
    pub fn iterator(list: List) Iterator {
        const begin = if (list.count == 0) 0 else header_size + entry_size * list.count;
        return .{ .list = list, .end = begin };
    }

    /// The value at an index; absent after the last.
    pub fn at(list: List, index: usize) Value {
        var values = list.iterator();
        for (0..index) |_| _ = values.next() orelse return .absent;
        return values.next() orelse .absent;
    }

    pub const Iterator = struct {
        list: List,
        index: u32 = 0,
        end: usize,

        pub fn next(values: *Iterator) ?Value {
            if (values.index == values.list.count) return null;
            const payload = values.list.payload;
            const entry = payload[header_size + entry_size * values.index ..][0..entry_size];
            const begin = std.mem.alignForward(usize, values.end, layout.values_align);
            values.end = begin + word(entry, layout.value_size_offset);
            values.index += 1;
            return .{ .codec = codecOf(entry), .payload = payload[begin..values.end] };
        }
    };

    fn word(bytes: []const u8, offset: usize) u32 {
        return std.mem.readInt(u32, bytes[offset..][0..4], .little);
    }

    fn codecOf(entry: []const u8) Codec {
        return @fromBackingInt(entry[layout.value_codec_offset]);
    }
};

comptime {
    assert(layout.values_reserved_offset + 4 == header_size);
    assert(layout.value_reserved_offset == layout.value_codec_offset + 1);
    assert(layout.value_codec_offset + 4 == entry_size);
}

/// The last three rows of the table, which a writer owes its reader as well
/// [call.values_encoded].
pub fn checkValue(gpa: Allocator, value: Value) ListError!void {
    switch (value.codec) {
        .bytes => {},
        .text => try codec_file.checkText(value.payload),
        .json => {
            if (value.isAbsent() or isPlainJson(value.payload)) return;
            try codec_file.checkText(value.payload);
            if (!try std.json.validate(gpa, value.payload)) return error.MessageJson;
        },
        .json_batch, .values => return error.MessageValues,
        else => |other| {
            if (@backingInt(other) < layout.codec_application_min) return error.MessageCodec;
        },
    }
}

/// Whether this is an integer in few digits, or one of the three names: most of what calls carry.
/// False says nothing.
fn isPlainJson(payload: []const u8) bool {
    if (payload.len == 0) return false;
    const digits = payload[@intFromBool(payload[0] == '-')..];
    const all_digits = digits.len > 0 and for (digits) |byte| {
        if (!std.ascii.isDigit(byte)) break false;
    } else true;
    if (all_digits) return digits.len == 1 or digits[0] != '0';
    for ([_][]const u8{ "null", "true", "false" }) |name| {
        if (std.mem.eql(u8, payload, name)) return true;
    }
    return false;
}

/// Puts a list together [call.values].
///
/// The number of values is said at first; each is then added, in order.
pub const Builder = struct {
    gpa: Allocator,
    bytes: *std.ArrayList(u8),
    count: u32,
    added: u32 = 0,

    /// Begins a list in `bytes`, whose content is dropped.
    ///
    /// Asserts that there are at most `values_count_max`.
    pub fn init(gpa: Allocator, bytes: *std.ArrayList(u8), count: u32) Allocator.Error!Builder {
        assert(count <= layout.values_count_max);
        bytes.clearRetainingCapacity();
        if (count > 0) {
            const size = header_size + entry_size * count;
            @memset(try bytes.addManyAsSlice(gpa, size), 0);
            std.mem.writeInt(u32, bytes.items[layout.values_count_offset..][0..4], count, .little);
        }
        return .{ .gpa = gpa, .bytes = bytes, .count = count };
    }

    /// Adds a value that is encoded already.
    pub fn add(builder: *Builder, value: Value) error{ OutOfMemory, MessageSize }!void {
        const start = try builder.begin();
        try builder.bytes.appendSlice(builder.gpa, value.payload);
        try builder.end(start, value.codec);
    }

    /// Adds a value as JSON.
    pub fn addJson(builder: *Builder, value: anytype) error{ OutOfMemory, MessageSize }!void {
        const start = try builder.begin();
        var writer: std.Io.Writer.Allocating = .fromArrayList(builder.gpa, builder.bytes);
        const written = switch (@typeInfo(@TypeOf(value))) {
            // As JSON writes it, without its machinery.
            .int => writer.writer.printInt(value, 10, .lower, .{}),
            else => std.json.Stringify.value(value, .{}, &writer.writer),
        };
        builder.bytes.* = writer.toArrayList();
        written catch return error.OutOfMemory;
        try builder.end(start, .json);
    }

    /// What was added last.
    pub fn last(builder: *const Builder) Value {
        const index = builder.added - 1;
        const entry = builder.bytes.items[header_size + entry_size * index ..][0..entry_size];
        const size = List.word(entry, layout.value_size_offset);
        const bytes = builder.bytes.items;
        return .{ .codec = List.codecOf(entry), .payload = bytes[bytes.len - size ..] };
    }

    /// The list.
    ///
    /// Asserts that all its values were added.
    pub fn finish(builder: *const Builder) []const u8 {
        assert(builder.added == builder.count);
        return builder.bytes.items;
    }

    fn begin(builder: *Builder) Allocator.Error!usize {
        assert(builder.added < builder.count);
        const size = builder.bytes.items.len;
        const start = std.mem.alignForward(usize, size, layout.values_align);
        try builder.bytes.appendNTimes(builder.gpa, 0, start - size);
        return start;
    }

    fn end(builder: *Builder, start: usize, codec: Codec) error{MessageSize}!void {
        const size = std.math.cast(u32, builder.bytes.items.len - start) orelse
            return error.MessageSize;
        const place = builder.bytes.items[header_size + entry_size * builder.added ..];
        std.mem.writeInt(u32, place[layout.value_size_offset..][0..4], size, .little);
        place[layout.value_codec_offset] = @intCast(@backingInt(codec));
        builder.added += 1;
    }
};

// Tests.
//
// Tests of lists of values.

const testing = std.testing;

fn build(bytes: *std.ArrayList(u8), values: []const Value) ![]const u8 {
    var builder: Builder = try .init(testing.allocator, bytes, @intCast(values.len));
    for (values) |value| try builder.add(value);
    return builder.finish();
}

test "Builder writes the list of the chapter's example, byte for byte" {
    var bytes: std.ArrayList(u8) = .empty;
    defer bytes.deinit(testing.allocator);
    var builder: Builder = try .init(testing.allocator, &bytes, 3);
    try builder.add(.text("add"));
    try builder.addJson(@as(i32, 1));
    try builder.addJson(@as(u8, 2));
    try testing.expectEqualStrings("\x03\x00\x00\x00\x00\x00\x00\x00" ++
        "\x03\x00\x00\x00\x01\x00\x00\x00" ++ "\x01\x00\x00\x00\x02\x00\x00\x00" ++
        "\x01\x00\x00\x00\x02\x00\x00\x00" ++ "add\x00\x00\x00\x00\x00" ++
        "1\x00\x00\x00\x00\x00\x00\x00" ++ "2", builder.finish());
    const none: Builder = try .init(testing.allocator, &bytes, 0);
    try testing.expectEqualStrings("", none.finish());
}

test "List gives back what Builder was given, whatever the sizes" {
    var bytes: std.ArrayList(u8) = .empty;
    defer bytes.deinit(testing.allocator);
    const values = [_]Value{
        .text(""),
        .absent,
        .{ .codec = .bytes, .payload = "\xff" },
        .{ .codec = .json, .payload = "[1, 2]" },
        .text("eight by"),
        .text("nine byte"),
        .{ .codec = @fromBackingInt(200), .payload = "x" },
        .absent,
    };
    const payload = try build(&bytes, &values);
    const list: List = try .check(testing.allocator, payload);
    var iterator = list.iterator();
    for (values, 0..) |value, index| {
        try testing.expectEqualDeep(value, iterator.next().?);
        try testing.expectEqualDeep(value, list.at(index));
    }
    try testing.expectEqual(null, iterator.next());
    try testing.expect(list.at(values.len).isAbsent());
    try testing.expect(List.empty.at(0).isAbsent());
}

test "List.check refuses every list that differs from a good one in a byte of header or entries" {
    var bytes: std.ArrayList(u8) = .empty;
    defer bytes.deinit(testing.allocator);
    const values = [_]Value{ .text("ab"), .{ .codec = .bytes, .payload = "0123456789" } };
    const good = try build(&bytes, &values);
    _ = try List.check(testing.allocator, good);
    for (0..good.len) |size| {
        const cut = List.check(testing.allocator, good[0..size]);
        if (size > 0) try testing.expectError(error.MessageValues, cut);
    }
    for (0..24) |offset| {
        // The codec of a value may be another one.
        if (offset == 12 or offset == 20) continue;
        for ([_]u8{ 1, 2, 0x80 }) |bit| {
            const copy = try testing.allocator.dupe(u8, good);
            defer testing.allocator.free(copy);
            copy[offset] ^= bit;
            // Two bytes of text or three: the next value begins at the same place.
            const same = offset == 8 and bit == 1;
            const found = List.check(testing.allocator, copy);
            if (same) _ = try found else try testing.expectError(error.MessageValues, found);
        }
    }
}

test "List.check names what is wrong with a value" {
    const cases = [_]struct { anyerror, Value }{
        .{ error.MessageText, .text("\xff") },
        .{ error.MessageText, .{ .codec = .json, .payload = "\"\xff\"" } },
        .{ error.MessageJson, .{ .codec = .json, .payload = " " } },
        .{ error.MessageJson, .{ .codec = .json, .payload = "01" } },
        .{ error.MessageJson, .{ .codec = .json, .payload = "-" } },
        .{ error.MessageJson, .{ .codec = .json, .payload = "1 2" } },
        .{ error.MessageCodec, .{ .codec = @fromBackingInt(5), .payload = "" } },
        .{ error.MessageCodec, .{ .codec = @fromBackingInt(127), .payload = "" } },
        .{ error.MessageValues, .{ .codec = .json_batch, .payload = "[1]" } },
        .{ error.MessageValues, .{ .codec = .values, .payload = "" } },
    };
    var bytes: std.ArrayList(u8) = .empty;
    defer bytes.deinit(testing.allocator);
    for (cases) |case| {
        const payload = try build(&bytes, &.{ .absent, case[1] });
        try testing.expectError(case[0], List.check(testing.allocator, payload));
    }
    const good = [_][]const u8{
        "0", "-1", "1.5e3", " {\"a\":[null, true]} ", "\"\\u0041\"", "-0",
    };
    for (good) |text| {
        const payload = try build(&bytes, &.{.{ .codec = .json, .payload = text }});
        _ = try List.check(testing.allocator, payload);
    }
}

test "Builder and List.check leak nothing where memory ends" {
    try testing.checkAllAllocationFailures(testing.allocator, struct {
        fn run(gpa: std.mem.Allocator) !void {
            var bytes: std.ArrayList(u8) = .empty;
            defer bytes.deinit(gpa);
            var builder: Builder = try .init(gpa, &bytes, 2);
            try builder.addJson(.{ .a = [_]u8{ 1, 2, 3 }, .b = "text" });
            try builder.add(.{ .codec = .json, .payload = "[[[[]]]]" });
            _ = try List.check(gpa, builder.finish());
        }
    }.run, .{});
}
