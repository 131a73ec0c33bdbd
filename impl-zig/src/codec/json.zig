//! Zig values as payloads of codec `json`, converted by `std.json` [codec.json].

const std = @import("std");
const codec = @import("codec.zig");
const Codec = codec.Codec;

/// Writes a value as JSON into the caller's storage, and returns the payload of a message of codec
/// `json`. Fails with `error.MessageSize` if the storage is too small.
///
///     const payload = try millrace.json.stringify(&storage, task);
///     try port.write(payload, .{ .codec = .json }, .ms(100));
pub fn stringify(storage: []u8, value: anytype) error{MessageSize}![]const u8 {
    var writer: std.Io.Writer = .fixed(storage);
    std.json.Stringify.value(value, .{}, &writer) catch return error.MessageSize;
    return writer.buffered();
}

/// Why a payload cannot be read as a value of the wanted type.
pub const ParseError = error{
    /// The codec of the message is not `json`.
    MessageCodec,
    /// The payload is not well-formed UTF-8 [codec.bad_text].
    MessageText,
    /// The payload is not JSON, or not the JSON of such a value [codec.bad_json].
    MessageJson,
    OutOfMemory,
};

/// Reads a value from the payload of a message of codec `json`. The payload must be a private copy,
/// such as `read` returns [codec.copy]. `parsed.value` is valid until `parsed.deinit()`, and does
/// not refer to the payload. A member that `T` does not have is an error.
///
///     const parsed = try millrace.json.parse(Task, allocator, message.codec, message.payload);
///     defer parsed.deinit();
pub fn parse(
    comptime T: type,
    allocator: std.mem.Allocator,
    payload_codec: Codec,
    payload: []const u8,
) ParseError!std.json.Parsed(T) {
    if (payload_codec != .json) return error.MessageCodec;
    try codec.checkText(payload);
    const options: std.json.ParseOptions = .{ .allocate = .alloc_always };
    return std.json.parseFromSlice(T, allocator, payload, options) catch |err| switch (err) {
        error.OutOfMemory => |out| out,
        else => error.MessageJson,
    };
}

// Tests.

const Task = struct { name: []const u8, priority: u8 = 3, parts: []const i64 };

test "a value comes back as it was written" {
    var storage: [96]u8 = undefined;
    const task: Task = .{ .name = "gr\u{fc}n \"x\"", .parts = &.{ -1, 9_007_199_254_740_991 } };
    const payload = try stringify(&storage, task);
    const parsed = try parse(Task, std.testing.allocator, .json, payload);
    defer parsed.deinit();
    // The value does not refer to the storage any more.
    @memset(&storage, 0);
    try std.testing.expectEqualDeep(task, parsed.value);
}

test "stringify refuses a value that the storage has no room for" {
    var storage: [4]u8 = undefined;
    try std.testing.expectEqualStrings("1234", try stringify(&storage, 1234));
    try std.testing.expectError(error.MessageSize, stringify(&storage, 12345));
}

test "parse refuses other codecs, bad text, bad JSON and other values" {
    const bad = [_]struct { ParseError, Codec, []const u8 }{
        .{ error.MessageCodec, .text, "1" },
        .{ error.MessageCodec, .json_batch, "[1]" },
        .{ error.MessageText, .json, "\"\xff\"" },
        .{ error.MessageJson, .json, "" },
        .{ error.MessageJson, .json, "1 2" },
        .{ error.MessageJson, .json, "1x" },
        .{ error.MessageJson, .json, "256" },
    };
    for (bad) |case| {
        const expected, const payload_codec, const payload = case;
        const parsed = parse(u8, std.testing.allocator, payload_codec, payload);
        try std.testing.expectError(expected, parsed);
    }
    const parsed = try parse(u8, std.testing.allocator, .json, " 255\n");
    defer parsed.deinit();
    try std.testing.expectEqual(255, parsed.value);
    var none: [0]u8 = undefined;
    var empty: std.heap.FixedBufferAllocator = .init(&none);
    const list = parse([]u8, empty.allocator(), .json, "[1]");
    try std.testing.expectError(error.OutOfMemory, list);
}
