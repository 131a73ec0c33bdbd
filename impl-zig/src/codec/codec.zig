//! Payload formats [spec/codec.md].
//!
//! This implementation moves bytes. It passes payload and codec on as they are, and a batch as one
//! message. The caller of a writer has to make sure that text is well-formed and that JSON is JSON
//! [codec.text] [codec.json] [codec.batch]. This file has what an application needs to look inside
//! a payload that it has copied.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const assert = std.debug.assert;

/// The format of a payload. Codecs from `layout.codec_application_min` on belong to the
/// application.
pub const Codec = layout.Codec;

/// Checks that a payload is well-formed UTF-8, without overlong forms or surrogates
/// [codec.bad_text]: the payload of a message of codec `text`, `json` or `json_batch`, a batch as a
/// whole. Call it on a private copy [codec.copy].
pub fn checkText(payload: []const u8) error{MessageText}!void {
    if (!std.unicode.utf8ValidateSlice(payload)) return error.MessageText;
}

/// The elements of a payload of codec `json_batch`. Each is one message of codec `json`, with the
/// kind and the tag of the batch; they come in order [codec.batch_read].
///
/// It cuts the array and does not parse its elements: pass each to a JSON parser. Valid JSON cannot
/// be cut at a wrong place; invalid JSON fails either here or in the parser [codec.bad_json]. After
/// an error, `next` reports that error again.
pub const Batch = struct {
    rest: []const u8,
    begun: bool = false,
    failed: bool = false,

    pub fn init(payload: []const u8) Batch {
        return .{ .rest = payload };
    }

    /// Returns the next element without the white space around it, or null after the last one.
    pub fn next(batch: *Batch) error{MessageJson}!?[]const u8 {
        if (batch.failed) return error.MessageJson;
        errdefer batch.failed = true;
        if (!batch.begun) {
            batch.rest = trim(batch.rest);
            if (batch.rest.len < 2) return error.MessageJson;
            if (batch.rest[0] != '[') return error.MessageJson;
            if (batch.rest[batch.rest.len - 1] != ']') return error.MessageJson;
            batch.rest = batch.rest[1 .. batch.rest.len - 1];
            batch.begun = true;
        } else if (batch.rest.len == 0) {
            return null;
        } else {
            assert(batch.rest[0] == ',');
            batch.rest = batch.rest[1..];
        }
        const size = try elementSize(batch.rest);
        const element = trim(batch.rest[0..size]);
        if (element.len == 0) return error.MessageJson;
        batch.rest = batch.rest[size..];
        return element;
    }

    /// Returns the number of bytes before the next comma outside any string, object or array.
    fn elementSize(rest: []const u8) error{MessageJson}!usize {
        var depth: usize = 0;
        var index: usize = 0;
        while (index < rest.len) : (index += 1) switch (rest[index]) {
            '[', '{' => depth += 1,
            ']', '}' => {
                if (depth == 0) return error.MessageJson;
                depth -= 1;
            },
            ',' => if (depth == 0) return index,
            '"' => index = try stringEnd(rest, index),
            else => {},
        };
        if (depth != 0) return error.MessageJson;
        return index;
    }

    /// Returns the index of the quote that ends the string that begins at `begin`.
    fn stringEnd(rest: []const u8, begin: usize) error{MessageJson}!usize {
        assert(rest[begin] == '"');
        var index = begin + 1;
        while (index < rest.len) : (index += 1) switch (rest[index]) {
            '\\' => index += 1,
            '"' => return index,
            else => {},
        };
        return error.MessageJson;
    }

    fn trim(text: []const u8) []const u8 {
        return std.mem.trim(u8, text, " \t\r\n");
    }
};

// Tests.

test "Batch cuts elements at top-level commas only" {
    var batch: Batch = .init(" [ {\"a\":[1,2]} , \"x,]\\\"\" ,null] ");
    try std.testing.expectEqualStrings("{\"a\":[1,2]}", (try batch.next()).?);
    try std.testing.expectEqualStrings("\"x,]\\\"\"", (try batch.next()).?);
    try std.testing.expectEqualStrings("null", (try batch.next()).?);
    try std.testing.expectEqual(null, try batch.next());
}

test "Batch refuses what is no array of at least one element" {
    const bad = [_][]const u8{
        "",            "[", "]", "[]", "[ ]", "{}", "[1,]", "[,1]", "[1]]", "[\"]", "[{]",
        "\u{FEFF}[1]",
    };
    for (bad) |payload| {
        var batch: Batch = .init(payload);
        const failed = while (true) {
            const element = batch.next() catch break true;
            if (element == null) break false;
        };
        if (!failed) std.debug.print("accepted: {s}\n", .{payload});
        try std.testing.expect(failed);
        try std.testing.expectError(error.MessageJson, batch.next());
    }
}

test "checkText refuses surrogates and overlong forms" {
    try checkText("");
    try checkText("\u{FEFF}gr\u{fc}n \u{10FFFF}");
    try std.testing.expectError(error.MessageText, checkText("\xed\xa0\x80"));
    try std.testing.expectError(error.MessageText, checkText("\xc0\xaf"));
    try std.testing.expectError(error.MessageText, checkText("\xf4\x90\x80\x80"));
    try std.testing.expectError(error.MessageText, checkText("a\xff"));
}
