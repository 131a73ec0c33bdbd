//! Messages as values: texts, JSON, and the elements of batches, by what the implementation offers
//! for that and the standard library's parser.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const Allocator = std.mem.Allocator;
const Batch = millrace.codec.Batch;
const Item = protocol.Item;

/// What the elements of a batch have in common.
pub const Rest = struct {
    kind: u32,
    tag: u32,
    elements: Batch,
};

/// Makes an item of a message as an application sees it. Of a batch it is the first element, and
/// `rest` is left to give the others.
pub fn decode(arena: Allocator, message: millrace.Message, rest: *?Rest) !Item {
    const payload = message.payload;
    var item: Item = .{
        .kind = @backingInt(message.kind),
        .codec = @backingInt(message.codec),
        .tag = message.tag,
    };
    switch (message.codec) {
        .text, .json, .json_batch => try millrace.codec.checkText(payload), // [codec.bad_text]
        else => {},
    }
    switch (message.codec) {
        .text => item.text = payload,
        .json => item.json = .{ .text = try minify(arena, payload) },
        .json_batch => {
            rest.* = try begin(arena, payload, item.kind, item.tag);
            return (try next(arena, rest)).?;
        },
        else => item.hex = .{ .bytes = payload },
    }
    return item;
}

/// Checks all of a batch, or of a mailbox's payload, before the first element is told
/// [codec.bad_json].
pub fn begin(arena: Allocator, payload: []const u8, kind: u32, tag: u32) !Rest {
    if (!try std.json.validate(arena, payload)) return error.MessageJson;
    const elements: Batch = .init(payload);
    var checked = elements;
    while (try checked.next()) |_| {}
    return .{ .kind = kind, .tag = tag, .elements = elements };
}

/// Returns the next element, or null after the last.
pub fn next(arena: Allocator, rest: *?Rest) !?Item {
    const batch = if (rest.*) |*there| there else return null;
    const element = (try batch.elements.next()) orelse {
        rest.* = null;
        return null;
    };
    return .{
        .kind = batch.kind,
        .codec = @backingInt(millrace.Codec.json),
        .tag = batch.tag,
        .json = .{ .text = try minify(arena, element) },
    };
}

/// Checks a JSON text, and returns it on one line. Its numbers and strings stay as they are
/// written: what they mean is for those to say who compare them.
pub fn minify(arena: Allocator, text: []const u8) ![]const u8 {
    if (!try std.json.validate(arena, text)) return error.MessageJson;
    const line = try arena.alloc(u8, text.len);
    var size: usize = 0;
    var in_string = false;
    var escaped = false;
    for (text) |byte| {
        const is_white = byte == ' ' or byte == '\t' or byte == '\r' or byte == '\n';
        if (is_white and !in_string) continue;
        line[size] = byte;
        size += 1;
        if (byte == '"' and !escaped) in_string = !in_string;
        escaped = byte == '\\' and !escaped;
    }
    return line[0..size];
}

test "decode gives the elements of a batch one by one, on one line" {
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    var payload = " [ {\"a b\\\" \":\n[1, 2]}, 3 ] ".*;
    var rest: ?Rest = null;
    const first = try decode(arena.allocator(), .{
        .payload = &payload,
        .kind = .data,
        .codec = .json_batch,
        .tag = 7,
    }, &rest);
    try std.testing.expectEqualStrings("{\"a b\\\" \":[1,2]}", first.json.?.text);
    const second = (try next(arena.allocator(), &rest)).?;
    try std.testing.expectEqualStrings("3", second.json.?.text);
    try std.testing.expectEqual(@as(u32, 2), second.codec);
    try std.testing.expectEqual(@as(u32, 7), second.tag);
    try std.testing.expectEqual(null, try next(arena.allocator(), &rest));
    try std.testing.expectEqual(null, rest);
}

test "decode refuses a batch of which any element is no JSON" {
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    for ([_][]const u8{ "[]", "1", "[1,x]", "[1,2", "[1,,2]", "[01]" }) |text| {
        var rest: ?Rest = null;
        const payload = try arena.allocator().dupe(u8, text);
        try std.testing.expectError(error.MessageJson, decode(arena.allocator(), .{
            .payload = payload,
            .kind = .data,
            .codec = .json_batch,
            .tag = 0,
        }, &rest));
        try std.testing.expectEqual(null, rest);
    }
}
