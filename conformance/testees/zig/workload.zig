//! The messages that a seed stands for, and the transcript by which two sides compare what they
//! wrote and read. Both are told in `conformance/protocol/`, and nothing but the seed passes
//! between those who compare.

const std = @import("std");
const assert = std.debug.assert;
const Crc32 = std.hash.crc.@"CRC-32/ISO-HDLC";

/// One message: `tag` counts them, `first` is the payload's first byte, or its first letter's place
/// in the alphabet.
pub const Message = struct {
    size: u32,
    tag: u32,
    first: u8,

    /// Fills the first `size` bytes of `into` and returns them. Asserts that they fit.
    pub fn fill(message: Message, into: []u8) []u8 {
        const payload = into[0..message.size];
        for (payload, 0..) |*place, index| {
            // The shift makes pages of 256 bytes differ, so that a lost one shows.
            place.* = @truncate(message.first + index + (index >> 8));
        }
        return payload;
    }

    /// The same with letters, for a mailbox.
    pub fn fillLetters(message: Message, into: []u8) []u8 {
        const text = into[0..message.size];
        for (text, 0..) |*place, index| {
            const letter: u8 = @intCast((message.first + index) % 26);
            place.* = 'a' + letter;
        }
        return text;
    }
};

/// A sequence of messages around a ring's limits: empty ones, single bytes, some that fill half the
/// ring to the byte, and some of several times its capacity.
pub const Workload = struct {
    /// Of Marsaglia's xorshift32.
    state: u32,
    capacity: u32,
    tag: u32 = 0,

    /// Asserts that the seed is not 0, for which all would be 0.
    pub fn init(seed: u32, capacity: u32) Workload {
        assert(seed != 0);
        return .{ .state = seed, .capacity = capacity };
    }

    /// The largest message of any sequence.
    pub fn sizeMax(capacity: u32) usize {
        return 3 * @as(usize, capacity);
    }

    /// Returns the next message of the sequence.
    pub fn next(workload: *Workload) Message {
        const kind = workload.random() % 8;
        const size = workload.sizeOf(kind, workload.random());
        const tag = workload.tag;
        workload.tag +%= 1;
        return .{ .size = size, .tag = tag, .first = @truncate(workload.random()) };
    }

    fn sizeOf(workload: *const Workload, kind: u32, draw: u32) u32 {
        const whole = workload.capacity / 2 - 16;
        return switch (kind) {
            0 => 0,
            1 => 1 + draw % 16,
            2 => draw % (whole + 1),
            3 => whole,
            4 => whole + 1,
            5 => draw % (3 * workload.capacity + 1),
            else => draw % 64,
        };
    }

    /// The next number of the sequence.
    pub fn random(workload: *Workload) u32 {
        var x = workload.state;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        workload.state = x;
        return x;
    }
};

/// What was written or read, in order: tags, sizes and payloads.
pub const Transcript = struct {
    count: u64 = 0,
    size: u64 = 0,
    crc: Crc32 = .init(),
    /// Each message, where they are wanted: its tag, its size, and its own checksum.
    record: ?std.ArrayList([3]u32) = null,

    /// Stands for the size of an entry without a message.
    pub const no_message = std.math.maxInt(u32);

    /// Adds a message; `arena` keeps the record.
    pub fn add(
        transcript: *Transcript,
        arena: std.mem.Allocator,
        tag: u32,
        payload: []const u8,
    ) !void {
        const size: u32 = @intCast(payload.len);
        transcript.addHead(tag, size);
        transcript.crc.update(payload);
        transcript.size += size;
        if (transcript.record) |*record| {
            try record.append(arena, .{ tag, size, Crc32.hash(payload) });
        }
    }

    /// Adds an entry without a message: a version without a value, or how many messages were lost.
    pub fn addNone(transcript: *Transcript, arena: std.mem.Allocator, tag: u32) !void {
        transcript.addHead(tag, no_message);
        if (transcript.record) |*record| try record.append(arena, .{ tag, no_message, 0 });
    }

    fn addHead(transcript: *Transcript, tag: u32, size: u32) void {
        var words: [8]u8 = undefined;
        std.mem.writeInt(u32, words[0..4], tag, .little);
        std.mem.writeInt(u32, words[4..8], size, .little);
        transcript.crc.update(&words);
        transcript.count += 1;
    }

    pub fn crc32(transcript: *const Transcript) u32 {
        var copy = transcript.crc;
        return copy.final();
    }
};

test "Workload and Transcript: the table of the protocol" {
    const expected = [_][4]u32{
        .{ 2, 197, 2236831345, 1791528435 },
        .{ 17, 208, 1008317658, 183319393 },
        .{ 73, 37, 4044189015, 1231154416 },
        .{ 113, 55, 1041754357, 462738427 },
        .{ 11, 245, 4240599467, 2148741020 },
        .{ 9, 8, 721557101, 10692941 },
    };
    var workload: Workload = .init(1, 256);
    var transcript: Transcript = .{};
    var storage: [Workload.sizeMax(256)]u8 = undefined;
    for (expected, 0..) |line, index| {
        const message = workload.next();
        const payload = message.fill(&storage);
        try transcript.add(std.testing.failing_allocator, message.tag, payload);
        const got = [_]u32{ message.size, message.first, Crc32.hash(payload), transcript.crc32() };
        try std.testing.expectEqual(line, got);
        try std.testing.expectEqual(index, message.tag);
    }
}

test "Message.fillLetters counts through the alphabet" {
    var storage: [4]u8 = undefined;
    const message: Message = .{ .size = 4, .tag = 0, .first = 24 };
    try std.testing.expectEqualStrings("yzab", message.fillLetters(&storage));
}
