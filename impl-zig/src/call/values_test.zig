//! Tests of lists of values.

const std = @import("std");
const call_values = @import("values.zig");
const testing = std.testing;
const Builder = call_values.Builder;
const List = call_values.List;
const Value = call_values.Value;

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
