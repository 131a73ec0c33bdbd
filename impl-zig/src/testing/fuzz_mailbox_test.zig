//! Fuzz targets: any words and bytes in a mailbox, stored step by step between the calls of one
//! side. Each call answers as the table of spec/mailbox.md says.

const std = @import("std");
const fixture = @import("fixture.zig");
const fuzz = @import("fuzz_fixture.zig");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Reason = layout.Reason;

const capacity_max = 256;
const step_max = 40;
const minus_one: u32 = 0xffff_ffff;

test "fuzz: the reader of a mailbox answers as the table says" {
    try fuzz.fuzz(ReaderTarget, 20_000);
    try ReaderTarget.reached.expect(&.{
        .mailbox_signal, .mailbox_length, .mailbox_part, .peer_closed,
        .message_size,   .message_text,   .message_json,
    });
    try testing.expect(@import("builtin").fuzz or ReaderTarget.joined > 100);
}

test "fuzz: the writer of a mailbox answers as the table says" {
    try fuzz.fuzz(WriterTarget, 20_000);
    try WriterTarget.reached.expect(&.{ .mailbox_signal, .peer_closed, .wait_timeout });
}

/// A mailbox, and the peer's stores, which come from an input.
const World = struct {
    memory: [32 + capacity_max]u8 align(4),
    section: []align(4) u8,

    fn init(world: *World, capacity: usize) void {
        world.memory = @splat(0);
        world.section = world.memory[0 .. 32 + capacity];
    }

    fn word(world: *const World, index: usize) u32 {
        return fuzz.wordAt(world.section, 4 * index);
    }

    /// Bits 0 to 4 say which words are stored, and bit 5 whether bytes are. Bit 6 says that the
    /// numbers are signed bytes, because most numbers here are small.
    fn store(world: *World, source: *fuzz.Source) void {
        const mask = source.int(u8);
        for (0..5) |index| {
            if (mask >> @intCast(index) & 1 == 0) continue;
            const small = mask & 64 != 0;
            const number = if (small) @as(i32, source.int(i8)) else source.int(i32);
            fuzz.putWord(world.section, 4 * index, @bitCast(number));
        }
        if (mask & 32 == 0) return;
        const size = @min(source.int(u8), source.rest.len, world.section.len - 32);
        @memcpy(world.section[32..][0..size], source.rest[0..size]);
        source.rest = source.rest[size..];
    }

    /// What both sides check first [mailbox.turn]; null if they go on.
    fn judgeTurn(world: *const World) ?Reason {
        const signal = world.word(1);
        if (signal > 1 and signal != minus_one) return .mailbox_signal;
        if (signal == minus_one) return .peer_closed;
        const status = world.word(0);
        if (status != 0 and status != minus_one) return .mailbox_signal;
        return if (status == minus_one) .peer_closed else null;
    }

    fn expectClosed(world: *const World) !void {
        try testing.expectEqual(minus_one, world.word(0));
        try testing.expectEqual(minus_one, world.word(1));
    }

    /// Writes the state that the case has, and then the next part of the same payload.
    fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (case.memory.len < 33) return null;
        const capacity = @min(case.memory.len - 32, capacity_max);
        target[0] = @intCast(capacity - 1);
        std.mem.writeInt(u16, target[1..3], @intCast(@min(case.limit, 400)), .little);
        target[3] = 63;
        @memcpy(target[4..24], case.memory[0..20]);
        target[24] = @intCast(@min(capacity, 255));
        const part = case.memory[32..][0..target[24]];
        @memcpy(target[25..][0..part.len], part);
        const more = target[25 + part.len ..];
        more[0..3].* = .{ 64 + 32 + 16 + 2, 1, case.memory[16] +% 1 };
        more[3] = target[24];
        @memcpy(more[4..][0..part.len], part);
        return 25 + part.len + 4 + part.len;
    }
};

/// What a call has returned.
const Said = union(enum) { payload: usize, nothing, code: Reason };

const ReaderTarget = struct {
    pub const name = "mailbox reader";
    pub const quiet = false;
    pub const size_max = 1024;
    /// A payload in three parts, and one in two parts, of which the second comes late.
    pub const more: []const []const u8 = &.{
        &(.{ 7, 99, 0 } ++ part(0, 3, "[1,\"") ++ part(1, 3, "abcdefgh") ++ part(2, 3, "\"]")),
        &(.{ 15, 99, 0 } ++ part(0, 2, "[{\"a\":1}") ++ [_]u8{0} ++ part(1, 2, ",2,3]")),
    };

    /// The stores by which a writer gives the turn to the reader.
    fn part(index: u8, count: u8, comptime bytes: []const u8) [6 + bytes.len]u8 {
        return .{ 64 + 32 + 16 + 8 + 4 + 2, 1, bytes.len, count, index, bytes.len } ++ bytes[0..].*;
    }

    var reached: fuzz.Reached = .{};
    /// Payloads that came in more than one part.
    var joined: u64 = 0;

    pub fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (case.role != .mailbox_reader and case.role != .mailbox_writer) return null;
        return World.seed(case, target);
    }

    pub fn check(input: []const u8) !void {
        var source: fuzz.Source = .{ .rest = input };
        var world: World = undefined;
        world.init(@as(usize, source.int(u8)) + 1);
        var storage: [400]u8 = undefined;
        const kept = storage[0..source.below(storage.len + 1)];
        var model: Model = .{ .world = &world, .limit = kept.len };
        var reader: millrace.MailboxReader = try .init(world.section, .{
            .host = &fixture.clockwork,
            .spin_us = 0,
        });
        for (0..step_max) |_| {
            if (source.rest.len == 0) break;
            world.store(&source);
            const before = world.memory;
            const faulty = model.fault != null;
            const expected = model.read();
            const said = read(&reader, kept);
            try testing.expectEqual(expected, said);
            switch (said) {
                .payload => |size| {
                    try testing.expectEqualSlices(u8, model.parts[0..size], kept[0..size]);
                    if (model.part_count > 1) joined += 1;
                },
                .nothing => {},
                .code => |why| reached.add(why),
            }
            // The reader stores nothing but turns and closes.
            try testing.expectEqualSlices(u8, before[8..], world.memory[8..]);
            if (model.fault != null and !faulty) try world.expectClosed();
            if (expected != .code) try testing.expectEqual(model.part_index > 0 and
                !model.dropping, reader.partial());
        }
        reader.close();
        try world.expectClosed();
        try testing.expectEqual(Said{ .code = .pipe_closed }, read(&reader, kept));
    }

    fn read(reader: *millrace.MailboxReader, kept: []u8) Said {
        const payload = reader.tryRead(kept) catch |err|
            return .{ .code = millrace.reasonOf(err) orelse reader.reason().? };
        return if (payload) |bytes| .{ .payload = bytes.len } else .nothing;
    }

    /// The reader of mailbox.md, with one part per call.
    const Model = struct {
        world: *const World,
        limit: usize,
        closed: bool = false,
        fault: ?Reason = null,
        part_index: u32 = 0,
        part_count: u32 = 0,
        size: usize = 0,
        dropping: bool = false,
        parts: [400]u8 = undefined,

        fn read(model: *Model) Said {
            if (model.fault) |why| return .{ .code = why };
            if (model.closed) return .{ .code = .peer_closed };
            if (model.judge()) |why| {
                if (why == .peer_closed) model.closed = true else model.fault = why;
                return .{ .code = why };
            }
            if (model.world.word(1) != 1) return .nothing;
            return model.take();
        }

        fn judge(model: *const Model) ?Reason {
            const world = model.world;
            if (world.judgeTurn()) |why| return why;
            if (world.word(1) != 1) return null;
            const length = world.word(2);
            if (length < 1 or length > world.section.len - 32) return .mailbox_length;
            const count = world.word(3);
            const index = world.word(4);
            if (count < 1 or count > 0x7fff_ffff) return .mailbox_part;
            if (index != model.part_index or index >= count) return .mailbox_part;
            if (index > 0 and count != model.part_count) return .mailbox_part;
            return null;
        }

        fn take(model: *Model) Said {
            const world = model.world;
            const length = world.word(2);
            const last = model.part_index + 1 == world.word(3);
            const large = !model.dropping and model.size + length > model.limit;
            model.dropping = model.dropping or large;
            if (!model.dropping) {
                @memcpy(model.parts[model.size..][0..length], world.section[32..][0..length]);
                model.size += length;
            }
            const size = model.size;
            const dropped = model.dropping;
            model.part_count = world.word(3);
            model.part_index = if (last) 0 else model.part_index + 1;
            if (last) {
                model.dropping = false;
                model.size = 0;
            }
            if (large) return .{ .code = .message_size };
            if (dropped or !last) return .nothing;
            const payload = model.parts[0..size];
            if (!isUtf8(payload)) return .{ .code = .message_text };
            const text = std.mem.trim(u8, payload, " \t\r\n");
            const brackets = text.len > 2 and text[0] == '[' and text[text.len - 1] == ']';
            if (!brackets or std.mem.trim(u8, text[1 .. text.len - 1], " \t\r\n").len == 0) {
                return .{ .code = .message_json };
            }
            return .{ .payload = size };
        }
    };
};

const WriterTarget = struct {
    pub const name = "mailbox writer";
    pub const quiet = false;
    pub const size_max = 1024;
    var reached: fuzz.Reached = .{};

    pub const seed = ReaderTarget.seed;

    pub fn check(input: []const u8) !void {
        var source: fuzz.Source = .{ .rest = input };
        var world: World = undefined;
        const capacity = @as(usize, source.int(u8)) + 1;
        world.init(capacity);
        var payload: [300]u8 = @splat('x');
        const text = payload[0 .. 5 + source.below(payload.len - 4)];
        @memcpy(text[0..2], "[\"");
        @memcpy(text[text.len - 2 ..], "\"]");
        var writer: millrace.MailboxWriter = try .init(world.section, .{
            .host = &fixture.clockwork,
            .spin_us = 0,
        });
        const part_count = (text.len + capacity - 1) / capacity;
        var part_index: usize = 0;
        var final: ?Reason = null;
        for (0..step_max) |_| {
            if (source.rest.len == 0) break;
            world.store(&source);
            const before = world.memory;
            const turn = world.word(1);
            const faulty = final != null;
            final = final orelse world.judgeTurn();
            if (final) |why| {
                try testing.expectEqual(why, said(&writer, text).?);
                reached.add(why);
                if (why == .mailbox_signal and !faulty) try world.expectClosed();
                try testing.expect(!writer.partial());
                try testing.expectEqualSlices(u8, before[8..], world.memory[8..]);
                continue;
            }
            const code = said(&writer, text);
            if (turn == 1) {
                reached.add(code.?);
                try testing.expectEqual(.wait_timeout, code.?);
                try testing.expectEqualSlices(u8, &before, &world.memory);
                continue;
            }
            // One part, where it belongs.
            const begin = part_index * capacity;
            const part = text[begin..@min(begin + capacity, text.len)];
            try testing.expectEqualSlices(u8, part, world.section[32..][0..part.len]);
            const rest = 32 + part.len;
            try testing.expectEqualSlices(u8, before[rest..], world.memory[rest..]);
            try testing.expectEqual(1, world.word(1));
            try testing.expectEqual(part.len, world.word(2));
            try testing.expectEqual(part_count, world.word(3));
            try testing.expectEqual(part_index, world.word(4));
            part_index += 1;
            const complete = part_index == part_count;
            if (complete) part_index = 0;
            try testing.expectEqual(if (complete) null else Reason.wait_timeout, code);
            try testing.expectEqual(!complete, writer.partial());
        }
        writer.close();
        try world.expectClosed();
        try testing.expectEqual(.pipe_closed, said(&writer, text).?);
    }

    /// Returns what a call without waiting must report; null if it writes the payload.
    fn said(writer: *millrace.MailboxWriter, text: []const u8) ?Reason {
        const done = writer.tryWrite(text) catch |err|
            return millrace.reasonOf(err) orelse writer.reason().?;
        return if (done) null else .wait_timeout;
    }
};

// Fuzz targets: any bytes as a payload. A batch is cut where a JSON parser says that its elements
// end, and text is what RFC 3629 calls UTF-8.

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
