//! Fuzz targets: any bytes as a payload. A batch is cut where a JSON parser says that its elements
//! end, and text is what RFC 3629 calls UTF-8.

const std = @import("std");
const fuzz = @import("fuzz_fixture.zig");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;

test "fuzz: a batch is cut where its elements end, and only a text is one" {
    Target.arrays = 0;
    try fuzz.fuzz(Target, 60_000);
    try Target.reached.expect(&.{ .message_text, .message_json });
    if (@import("builtin").fuzz) return;
    try testing.expect(Target.arrays > 1_000);
}

const Target = struct {
    pub const name = "codec";
    pub const quiet = false;
    pub const size_max = 512;
    pub const more: []const []const u8 = &.{
        "[1]",
        " [ {\"a\":[1,2]} , \"x,]\\\"\" ,null] ",
        "[\"\\\\\",[[],{\"[\":\"]\"}],-1.5e+3,true,\"\\ud800\"]",
    };
    pub const tokens: []const []const u8 = &.{
        ",",         "[",    "]",       "{",        "}",        ":",            "\"",       "\\",
        "0",         "[1]",  ",1",      "\"a\"",    ",\"]\"",   " ",            "\n",       ",null",
        "{\"a\":1}", "\\\"", "\\u00e9", "\u{20ac}", "\u{feff}", "\xed\xa0\x80", "\xf4\x90",
    };
    var reached: fuzz.Reached = .{};
    /// Inputs that are an array of at least one element.
    var arrays: u64 = 0;

    /// Writes the last payload in the ring of a case of codecs, or the payload in a mailbox.
    pub fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (case.role == .mailbox_reader) {
            const size = @min(fuzz.wordAt(case.memory, 8), case.memory.len - 32, target.len);
            @memcpy(target[0..size], case.memory[32..][0..size]);
            return size;
        }
        if (!std.mem.startsWith(u8, case.id, "codec/") or case.role != .reader) return null;
        if (fuzz.judge(case.memory) != null) return null;
        if (fuzz.wordAt(case.memory, layout.segment_channel_count_offset) == 0) return null;
        const channel = fuzz.channelAt(case.memory, 0);
        const area = channel.areas[1];
        if (area.size > 4096) return null;
        const control: usize = @intCast(channel.areas[0].offset);
        var model: fuzz.Model = .{
            .area = case.memory[@intCast(area.offset)..][0..@intCast(area.size)],
            .head = channel.start,
            .tail = fuzz.wordAt(case.memory, control + layout.ring_tail_offset),
            .limit = target.len,
            .calls = true,
        };
        var size: ?usize = null;
        while (true) switch (model.next()) {
            .message => |message| {
                size = message.payload.len;
                @memcpy(target[0..message.payload.len], message.payload);
            },
            .report => {},
            else => return size,
        };
    }

    pub fn check(input: []const u8) !void {
        const is_text = if (millrace.codec.checkText(input)) true else |_| false;
        try testing.expectEqual(isUtf8(input), is_text);
        if (!is_text) return reached.add(.message_text);
        var memory: [16 * 1024]u8 = undefined;
        const expected = try countOf(&memory, input);
        const found = try cut(&memory, input);
        // If every element that was cut is JSON, the whole is an array of these elements; and the
        // reverse.
        try testing.expectEqual(expected, found);
        if (expected == null) reached.add(.message_json) else arrays += 1;
    }

    /// Counts the elements of a JSON array. Returns null if it is not an array, or is empty.
    fn countOf(memory: []u8, text: []const u8) !?usize {
        if (!try isJson(memory, text)) return null;
        var fixed: std.heap.FixedBufferAllocator = .init(memory);
        var scanner: std.json.Scanner = .initCompleteInput(fixed.allocator(), text);
        if (try scanner.next() != .array_begin) return null;
        var count: usize = 0;
        while (try scanner.peekNextTokenType() != .array_end) : (count += 1) {
            try scanner.skipValue();
        }
        return if (count == 0) null else count;
    }

    fn isJson(memory: []u8, text: []const u8) !bool {
        var fixed: std.heap.FixedBufferAllocator = .init(memory);
        return std.json.validate(fixed.allocator(), text);
    }

    /// Counts the elements that a batch is cut into. Returns null if it is refused, or an element
    /// is not JSON.
    fn cut(memory: []u8, text: []const u8) !?usize {
        var batch: millrace.codec.Batch = .init(text);
        var end = @intFromPtr(text.ptr);
        var count: usize = 0;
        while (count <= text.len) : (count += 1) {
            const element = batch.next() catch |err| {
                try testing.expectEqual(error.MessageJson, err);
                try testing.expectError(error.MessageJson, batch.next());
                return null;
            } orelse {
                try testing.expectEqual(null, try batch.next());
                return count;
            };
            // Within the text, after the element before.
            try testing.expect(element.len > 0);
            try testing.expect(@intFromPtr(element.ptr) > end);
            end = @intFromPtr(element.ptr) + element.len;
            try testing.expect(end < @intFromPtr(text.ptr) + text.len);
            if (!try isJson(memory, element)) return null;
        }
        return error.Endless;
    }
};

/// The table of RFC 3629, section 4.
pub fn isUtf8(text: []const u8) bool {
    var rest = text;
    while (rest.len > 0) {
        const low: u8, const high: u8, const size: usize = switch (rest[0]) {
            0x00...0x7f => .{ 0, 0, 1 },
            0xc2...0xdf => .{ 0x80, 0xbf, 2 },
            0xe0 => .{ 0xa0, 0xbf, 3 },
            0xe1...0xec, 0xee, 0xef => .{ 0x80, 0xbf, 3 },
            0xed => .{ 0x80, 0x9f, 3 },
            0xf0 => .{ 0x90, 0xbf, 4 },
            0xf1...0xf3 => .{ 0x80, 0xbf, 4 },
            0xf4 => .{ 0x80, 0x8f, 4 },
            else => return false,
        };
        if (rest.len < size) return false;
        if (size > 1 and (rest[1] < low or rest[1] > high)) return false;
        if (size > 2 and rest[2] & 0xc0 != 0x80) return false;
        if (size > 3 and rest[3] & 0xc0 != 0x80) return false;
        rest = rest[size..];
    }
    return true;
}
