//! The two sides of a mailbox: the writing one cuts payloads into parts, and the reading one checks
//! parts and puts payloads together [spec/mailbox.md].
//!
//! Invariant of the writing side: a payload whose first part was written is written to its end
//! before any other [mailbox.write_all], unless the mailbox is closed.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const mailbox_side = @import("side.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const MailboxError = mailbox_side.MailboxError;
const MailboxReadError = mailbox_side.MailboxReadError;
const MailboxWriteError = mailbox_side.MailboxWriteError;
pub const Side = mailbox_side.Side;
const Timeout = host_file.Timeout;

/// The writing side of a mailbox.
///
/// Thread safety: belongs to one thread, except for `close`.
pub const MailboxWriter = struct {
    side: Side,
    /// How much of the payload under way was written; null between payloads.
    progress: ?Progress = null,

    /// How a side waits.
    pub const Options = Side.Options;

    /// Fails with `error.MailboxSize` if the memory is not aligned or is too short; checks nothing
    /// else of it. The memory must be blank before the first use of either side.
    pub fn init(memory: []u8, options: Options) error{MailboxSize}!MailboxWriter {
        return .{ .side = try .init(memory, mailbox_side.may_write, options) };
    }

    /// Writes one payload, a JSON array of at least one message in well-formed UTF-8. Waits for its
    /// turns for as long as the timeout allows. Returns when the last part is in the mailbox, not
    /// when it was read.
    ///
    /// A payload cannot be given up after its first part. After `error.Timeout` or
    /// `error.WaitForbidden`, `partial()` says whether it is under way. If it is, the next call
    /// must pass the same payload again, and goes on after the part that was written
    /// [mailbox.begun].
    ///
    /// Asserts that the same payload is passed, that it has brackets with something between them,
    /// and that it has at most 2^31 − 1 parts. The caller has to make sure that it is valid JSON
    /// [mailbox.payload].
    pub fn write(
        writer: *MailboxWriter,
        payload: []const u8,
        timeout: Timeout,
    ) MailboxWriteError!void {
        assert(mailbox_side.arrayShaped(payload));
        return writer.writePieces(.{ .texts = &.{payload}, .joined = false }, timeout);
    }

    /// Writes what can be written without waiting, at most one part. Returns whether that completed
    /// the payload. If not, pass the same payload again.
    ///
    /// Asserts what `write` asserts.
    pub fn tryWrite(writer: *MailboxWriter, payload: []const u8) MailboxWriteError!bool {
        writer.write(payload, .none) catch |err| switch (err) {
            error.Timeout => return false,
            else => |other| return other,
        };
        return true;
    }

    /// Writes one payload that consists of these messages, each one JSON text. Adds brackets and
    /// commas, and copies the texts only into the mailbox. Otherwise does what `write` does; to
    /// pass the same payload again means to pass the same texts.
    ///
    /// Asserts that there is at least one text and that none is empty.
    pub fn writeMessages(
        writer: *MailboxWriter,
        texts: []const []const u8,
        timeout: Timeout,
    ) MailboxWriteError!void {
        assert(texts.len > 0);
        for (texts) |text| assert(text.len > 0);
        return writer.writePieces(.{ .texts = texts, .joined = true }, timeout);
    }

    /// Whether a payload is under way that must be passed again.
    pub fn partial(writer: *const MailboxWriter) bool {
        return writer.progress != null;
    }

    /// Whether this payload may be passed now: any payload, or only the one that is under way.
    pub fn fits(writer: *const MailboxWriter, payload: []const u8) bool {
        if (!mailbox_side.arrayShaped(payload)) return false;
        const pieces: Pieces = .{ .texts = &.{payload}, .joined = false };
        const source: Source = .of(pieces);
        if (writer.partCount(source) > layout.mailbox_part_count_max) return false;
        const progress = writer.progress orelse return true;
        return progress.source.equals(source);
    }

    /// Closes the mailbox: every call of either side ends, and a part that was not taken is lost.
    /// Closing again does nothing.
    ///
    /// Thread-safe.
    pub fn close(writer: *MailboxWriter) void {
        writer.side.close();
    }

    /// Whether either side has closed the mailbox.
    pub fn closed(writer: *const MailboxWriter) bool {
        return writer.side.closed();
    }

    /// Returns the reason for the last `error.Corrupt` or `error.PeerClosed`.
    pub fn reason(writer: *const MailboxWriter) ?layout.Reason {
        return writer.side.reason();
    }

    fn writePieces(
        writer: *MailboxWriter,
        pieces: Pieces,
        timeout: Timeout,
    ) MailboxWriteError!void {
        const side = &writer.side;
        const source: Source = .of(pieces);
        var progress: Progress = writer.progress orelse .{ .source = source };
        assert(progress.source.equals(source));
        const part_count = writer.partCount(source);
        assert(part_count <= layout.mailbox_part_count_max);
        var deadline: Deadline = .init(timeout);
        while (true) {
            switch (side.awaitTurn(&deadline) catch |err| return writer.ended(err)) {
                .found => {},
                .timeout => return error.Timeout,
                .forbidden => return error.WaitForbidden,
            }
            try writer.givePart(pieces, &progress, @intCast(part_count));
            if (progress.part_index == part_count) break;
            writer.progress = progress;
            // If the reader keeps up, no wait ends the call.
            if (deadline.passed(side.manner.host)) return error.Timeout;
        }
        writer.progress = null;
    }

    // The steps of `write` in its turn; public so that tests can act before them.

    /// Copies the next part to the byte area, stores its size and number, and then passes the turn,
    /// which is this side's until then [mailbox.write].
    pub fn givePart(
        writer: *MailboxWriter,
        pieces: Pieces,
        progress: *Progress,
        part_count: u32,
    ) MailboxError!void {
        const header = writer.side.header;
        const left = progress.source.size - progress.written;
        // [mailbox.parts] [mailbox.full_parts]
        const size = @min(left, writer.partSizeMax());
        assert(size > 0);
        pieces.copy(&progress.place, writer.side.area[0..size]);
        // The exchange of `signal` comes after these stores and releases them [mailbox.metadata].
        @atomicStore(u32, &header.part_count, part_count, .monotonic);
        @atomicStore(u32, &header.part_index, progress.part_index, .monotonic);
        @atomicStore(u32, &header.length, @intCast(size), .monotonic);
        // The part was written, but nobody will read it.
        if (!writer.side.pass()) return writer.ended(writer.side.closedError());
        progress.written += size;
        progress.part_index += 1;
        assert((progress.part_index == part_count) == (progress.written == progress.source.size));
    }

    /// The original reads `length` as a signed word.
    fn partSizeMax(writer: *const MailboxWriter) usize {
        return @min(writer.side.area.len, std.math.maxInt(i32));
    }

    fn partCount(writer: *const MailboxWriter, source: Source) usize {
        return std.math.divCeil(usize, source.size, writer.partSizeMax()) catch unreachable;
    }

    /// Forgets the payload under way: nothing is owed to a closed mailbox.
    fn ended(writer: *MailboxWriter, err: MailboxError) MailboxError {
        writer.progress = null;
        return err;
    }
};

/// How much of a payload was written.
pub const Progress = struct {
    source: Source,
    place: Pieces.Place = .{},
    written: usize = 0,
    part_index: u32 = 0,
};

/// Identifies a payload without looking at its bytes. The pointer is never dereferenced.
pub const Source = struct {
    first: [*]const u8,
    text_count: usize,
    size: usize,

    pub fn of(pieces: Pieces) Source {
        var size: usize = 0;
        for (0..pieces.count()) |index| size += pieces.at(index).len;
        return .{ .first = pieces.texts[0].ptr, .text_count = pieces.texts.len, .size = size };
    }

    fn equals(source: Source, other: Source) bool {
        return std.meta.eql(source, other);
    }
};

/// The bytes of a payload, piece by piece: one text as it is, or several texts with brackets and
/// commas.
pub const Pieces = struct {
    texts: []const []const u8,
    joined: bool,

    pub const Place = struct {
        piece_index: usize = 0,
        /// The offset in that piece.
        offset: usize = 0,
    };

    fn count(pieces: Pieces) usize {
        return if (pieces.joined) 2 * pieces.texts.len + 1 else pieces.texts.len;
    }

    fn at(pieces: Pieces, index: usize) []const u8 {
        if (!pieces.joined) return pieces.texts[index];
        if (index % 2 == 1) return pieces.texts[index / 2];
        if (index == 0) return "[";
        return if (index == 2 * pieces.texts.len) "]" else ",";
    }

    /// Fills `target` with the bytes from the place on, and moves the place to the end of them.
    ///
    /// Asserts that there are enough bytes.
    fn copy(pieces: Pieces, place: *Place, target: []u8) void {
        var filled: usize = 0;
        while (filled < target.len) {
            const rest = pieces.at(place.piece_index)[place.offset..];
            const size = @min(rest.len, target.len - filled);
            @memcpy(target[filled..][0..size], rest[0..size]);
            filled += size;
            place.offset += size;
            if (size == rest.len) place.* = .{ .piece_index = place.piece_index + 1 };
        }
    }
};

// The reading side. Invariant: nothing of a part is used before all its checks passed, and the turn
// is passed only after its last byte was copied [mailbox.copy].

/// The reading side of a mailbox.
///
/// Thread safety: belongs to one thread, except for `close`.
pub const MailboxReader = struct {
    side: Side,
    /// How many parts of the payload under way were taken, and the `part_count` that all must
    /// state.
    part_index: u32 = 0,
    part_count: u32 = 0,
    /// The storage that holds the parts; null between payloads, and while a payload is dropped.
    parts: ?[]u8 = null,
    /// How many bytes the parts have.
    size: usize = 0,
    /// Whether the rest of the payload is dropped; its loss is reported already.
    dropping: bool = false,

    /// How a side waits.
    pub const Options = Side.Options;

    /// Fails with `error.MailboxSize` if the memory is not aligned or is too short; checks nothing
    /// else of it. The memory must be blank before the first use of either side.
    pub fn init(memory: []u8, options: Options) error{MailboxSize}!MailboxReader {
        return .{ .side = try .init(memory, mailbox_side.may_read, options) };
    }

    /// Reads the next payload into `storage`. Waits for it for as long as the timeout allows.
    /// Returns null if it was not complete by the deadline. With `.none`, takes at most one part.
    ///
    /// A payload larger than `storage` fails with `error.MessageSize` once and is dropped
    /// [mailbox.limit]. A payload that is not UTF-8, has no brackets, or has nothing between them
    /// fails in the same way [mailbox.bad_payload]. `codec.Batch` cuts the array, and a parser
    /// judges its elements: an error there costs that payload too, and the mailbox goes on.
    ///
    /// If a call returns null, or fails with `error.WaitForbidden`, in the middle of a payload, its
    /// parts stay in `storage` [mailbox.keep_parts]: while `partial()`, leave its bytes alone and
    /// pass the same storage again.
    ///
    /// Asserts that it is passed again.
    pub fn read(reader: *MailboxReader, storage: []u8, timeout: Timeout) MailboxReadError!?[]u8 {
        assert(reader.fits(storage));
        const side = &reader.side;
        var deadline: Deadline = .init(timeout);
        while (true) {
            switch (side.awaitTurn(&deadline) catch |err| return reader.ended(err)) {
                .found => {},
                .timeout => return null,
                .forbidden => return error.WaitForbidden,
            }
            const part: Part = .load(side.header);
            if (try reader.take(part, storage)) |payload| return payload;
            // If the writer keeps up, no wait ends the call.
            if (deadline.passed(side.manner.host)) return null;
        }
    }

    /// Reads the next payload if it, or its last part, has arrived: `read` without waiting.
    pub fn tryRead(reader: *MailboxReader, storage: []u8) MailboxReadError!?[]u8 {
        return reader.read(storage, .none);
    }

    /// Whether the storage of the last `read` holds parts of an unfinished payload.
    pub fn partial(reader: *const MailboxReader) bool {
        return reader.parts != null;
    }

    /// Whether this storage may be passed now: any storage, or only the one that holds parts.
    pub fn fits(reader: *const MailboxReader, storage: []const u8) bool {
        const parts = reader.parts orelse return true;
        return parts.ptr == storage.ptr and parts.len == storage.len;
    }

    /// Closes the mailbox: every call of either side ends, and a part that was not taken is lost.
    /// Closing again does nothing.
    ///
    /// Thread-safe.
    pub fn close(reader: *MailboxReader) void {
        reader.side.close();
    }

    /// Whether either side has closed the mailbox.
    pub fn closed(reader: *const MailboxReader) bool {
        return reader.side.closed();
    }

    /// Returns the reason for the last `error.Corrupt` or `error.PeerClosed`.
    pub fn reason(reader: *const MailboxReader) ?layout.Reason {
        return reader.side.reason();
    }

    // The steps of `read` with a part; public so that tests can act between them.

    /// The words of a part, each loaded once.
    pub const Part = struct {
        length: u32,
        part_count: u32,
        part_index: u32,
        /// Loaded after the others [mailbox.read_status].
        status: u32,

        pub fn load(header: *const mailbox_side.Header) Part {
            // Acquire, so that the load of `status` stays after them: a reader that loads the −1 of
            // a close of the original here must find it there too.
            const length = @atomicLoad(u32, &header.length, .acquire);
            const part_count = @atomicLoad(u32, &header.part_count, .acquire);
            const part_index = @atomicLoad(u32, &header.part_index, .acquire);
            return .{
                .length = length,
                .part_count = part_count,
                .part_index = part_index,
                .status = @atomicLoad(u32, &header.status, .seq_cst),
            };
        }
    };

    /// Takes a part that was found in this side's turn. Returns the payload, if the part completes
    /// it.
    pub fn take(reader: *MailboxReader, part: Part, storage: []u8) MailboxReadError!?[]u8 {
        const side = &reader.side;
        reader.check(part) catch |err| return reader.ended(err);
        const begin = reader.size;
        const large = !reader.dropping and part.length > storage.len - begin;
        if (!reader.dropping and !large) {
            @memcpy(storage[begin..][0..part.length], side.area[0..part.length]);
            reader.size += part.length;
        }
        // If this fails, the mailbox was closed, which the next look reports. A payload that is
        // complete is delivered first [mailbox.complete].
        _ = side.pass();
        const dropped = large or reader.dropping;
        const last = part.part_index + 1 == part.part_count;
        const size = reader.size;
        reader.part_index = if (last) 0 else part.part_index + 1;
        reader.part_count = part.part_count;
        reader.parts = if (last or dropped) null else storage;
        reader.dropping = dropped and !last;
        if (last or dropped) reader.size = 0;
        if (large) return error.MessageSize;
        if (dropped or !last) return null;
        const payload = storage[0..size];
        if (!std.unicode.utf8ValidateSlice(payload)) return error.MessageText;
        if (!mailbox_side.arrayShaped(payload)) return error.MessageJson;
        return payload;
    }

    /// [mailbox.check]
    fn check(reader: *MailboxReader, part: Part) MailboxError!void {
        const side = &reader.side;
        try side.judgeStatus(part.status);
        if (part.length == 0 or part.length > side.area.len) return side.faulted(.mailbox_length);
        const counted = part.part_count >= 1 and part.part_count <= layout.mailbox_part_count_max;
        const expected = part.part_index == reader.part_index and part.part_index < part.part_count;
        const same = reader.part_index == 0 or part.part_count == reader.part_count;
        if (!counted or !expected or !same) return side.faulted(.mailbox_part);
    }

    /// Drops the parts, because nothing more comes from a closed mailbox.
    fn ended(reader: *MailboxReader, err: MailboxError) MailboxError {
        reader.parts = null;
        return err;
    }
};

test {
    _ = @import("side.zig");
    _ = @import("../testing/mailbox_thread_test.zig");
}

// Tests.
//
// The mailbox: its words, every check, payloads in every cut, limits and deadlines.

const fixture = @import("../testing/fixture.zig");
const mailbox_fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Pair = mailbox_fixture.Pair;

const spoken = "[\"gr\u{fc}n \u{20ac}\",{\"clef\":\"\u{1d11e}\"},null]";

test "a section is refused unless it is aligned and holds a byte [mailbox.section]" {
    var memory: [64]u8 align(8) = @splat(0);
    for (0..5) |offset| for (0..40) |size| {
        const section = memory[offset..][0..size];
        const valid = offset % 4 == 0 and size >= 33;
        if (valid) {
            _ = try MailboxWriter.init(section, .{});
            _ = try MailboxReader.init(section, .{});
        } else {
            try testing.expectError(error.MailboxSize, MailboxWriter.init(section, .{}));
            try testing.expectError(error.MailboxSize, MailboxReader.init(section, .{}));
        }
    };
    try testing.expectEqual(.mailbox_size, millrace.reasonOf(error.MailboxSize).?);
}

test "the words after each step are those of the chapter's example" {
    var pair: Pair = undefined;
    try pair.init(16);
    const payload = "[\"hello\",[1,2,3]]";
    try expectWords(&pair, "00000000 00000000 00000000 00000000 00000000", "");
    try testing.expect(!try pair.writer.tryWrite(payload));
    const full = "[\"hello\",[1,2,3]";
    try expectWords(&pair, "00000000 01000000 10000000 02000000 00000000", full);
    try pair.expectNothing();
    try expectWords(&pair, "00000000 00000000 10000000 02000000 00000000", full);
    try testing.expect(try pair.writer.tryWrite(payload));
    try expectWords(&pair, "00000000 01000000 01000000 02000000 01000000", "]");
    try pair.expectPayload(payload);
    try expectWords(&pair, "00000000 00000000 01000000 02000000 01000000", "]");
    pair.writer.close();
    try expectWords(&pair, "ffffffff ffffffff 01000000 02000000 01000000", "]");
}

fn expectWords(pair: *Pair, words: []const u8, area: []const u8) !void {
    var expected: [20]u8 = undefined;
    var compact: [40]u8 = undefined;
    const size = std.mem.replace(u8, words, " ", "", &compact);
    try testing.expectEqual(4, size);
    _ = try std.fmt.hexToBytes(&expected, &compact);
    try testing.expectEqualSlices(u8, &expected, pair.section[0..20]);
    try testing.expectEqualSlices(u8, &@as([12]u8, @splat(0)), pair.section[20..32]);
    try testing.expectEqualSlices(u8, area, pair.section[32..][0..area.len]);
}

test "signal and status hold their three and two values or end the mailbox" {
    const minus_two: u32 = @bitCast(@as(i32, -2));
    for ([_]u32{ 2, 7, minus_two, 0x8000_0000, 0x7fff_ffff }) |value| {
        inline for (.{ "signal", "status" }) |name| inline for (.{ .writer, .reader }) |side| {
            var pair: Pair = undefined;
            try pair.init(16);
            @field(pair.header(), name) = value;
            try expectFault(&pair, side, .mailbox_signal);
        };
    }
    for ([_]u32{ 0, 1 }) |value| {
        var pair: Pair = undefined;
        try pair.init(16);
        pair.put("[1]", 0, 1);
        pair.header().signal = value;
        if (value == 1) try pair.expectPayload("[1]") else try pair.expectNothing();
    }
}

/// Expects that this side reports this fault, again and again. The mailbox is closed, its other
/// words are unchanged, and the other side takes it for a close.
fn expectFault(pair: *Pair, comptime side: mailbox_fixture.Side, reason: millrace.Reason) !void {
    const before = pair.section[8..32].*;
    const faulty = &@field(pair, @tagName(side));
    for (0..2) |_| {
        try testing.expectError(error.Corrupt, pair.verdict(side));
        try testing.expectEqual(reason, faulty.reason().?);
        try testing.expect(faulty.closed());
        // Nothing that is stored later counts.
        pair.header().signal = mailbox_side.may_write;
        pair.header().status = mailbox_side.active;
        try testing.expectError(error.Corrupt, pair.verdict(side));
        pair.header().status = mailbox_side.disposed;
        pair.header().signal = mailbox_side.disposed;
    }
    try testing.expectEqualSlices(u8, &before, pair.section[8..32]);
    const other: mailbox_fixture.Side = if (side == .writer) .reader else .writer;
    try testing.expectError(error.PeerClosed, pair.verdict(other));
    try testing.expectEqual(.peer_closed, @field(pair, @tagName(other)).reason().?);
    faulty.close(); // [mailbox.first_answer]
    try testing.expectError(error.PipeClosed, pair.verdict(side));
}

/// Parts that come one after the other. Only the last one may be wrong.
const Words = struct { length: u32 = 3, index: u32 = 0, count: u32 };

test "every check of a part accepts its neighbours [mailbox.check]" {
    const max: u32 = 0x7fff_ffff;
    const all: u32 = 0xffff_ffff;
    const Case = struct { parts: []const Words, reason: ?millrace.Reason };
    const cases = [_]Case{
        .{ .parts = &.{.{ .length = 0, .count = 2 }}, .reason = .mailbox_length },
        .{ .parts = &.{.{ .length = 1, .count = 2 }}, .reason = null },
        .{ .parts = &.{.{ .length = 16, .count = 2 }}, .reason = null },
        .{ .parts = &.{.{ .length = 17, .count = 2 }}, .reason = .mailbox_length },
        .{ .parts = &.{.{ .length = all, .count = 2 }}, .reason = .mailbox_length },
        .{ .parts = &.{.{ .count = 0 }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .count = 1 }}, .reason = null },
        .{ .parts = &.{.{ .count = max }}, .reason = null },
        .{ .parts = &.{.{ .count = max + 1 }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .count = all }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .index = 1, .count = 2 }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .index = all, .count = 2 }}, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 0, .count = 3 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 3 } }, .reason = null },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 2, .count = 3 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 4 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 2 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 1 } }, .reason = .mailbox_part },
        // After a last part comes a first one, with any count.
        .{ .parts = &.{ .{ .count = 1 }, .{ .index = 1, .count = 2 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 1 }, .{ .index = 0, .count = 2 } }, .reason = null },
        // The first check that fails determines the reason.
        .{ .parts = &.{.{ .length = 0, .index = 9, .count = 0 }}, .reason = .mailbox_length },
    };
    for (cases) |case| {
        var pair: Pair = undefined;
        try pair.init(16);
        @memcpy(pair.section[32..], "[1][1][1][1][1][");
        for (case.parts, 1..) |part, number| {
            pair.describe(part.length, part.index, part.count);
            if (number < case.parts.len or case.reason == null) {
                _ = try pair.tryRead();
                try testing.expectEqual(mailbox_side.may_write, pair.header().signal);
            } else try expectFault(&pair, .reader, case.reason.?);
            try testing.expect(!pair.reader.partial() or case.reason == null or
                number < case.parts.len);
        }
    }
}

test "a payload comes back whole through every capacity, gathered or in one piece" {
    const texts = [_][]const u8{ "\"gr\u{fc}n \u{20ac}\"", "{\"clef\":\"\u{1d11e}\"}", "null" };
    for (1..spoken.len + 2) |capacity| {
        for ([_]bool{ false, true }) |gathered| {
            var pair: Pair = undefined;
            try pair.init(capacity);
            const parts = std.math.divCeil(usize, spoken.len, capacity) catch unreachable;
            for (1..parts + 1) |number| {
                const call = if (gathered)
                    pair.writer.writeMessages(&texts, .none)
                else
                    pair.writer.write(spoken, .none);
                if (number < parts) {
                    try testing.expectError(error.Timeout, call);
                    // [mailbox.full_parts]
                    try testing.expectEqual(capacity, pair.header().length);
                    try testing.expect(pair.writer.partial());
                    try pair.expectNothing();
                    try testing.expect(pair.reader.partial());
                } else try call;
            }
            try testing.expect(!pair.writer.partial());
            try pair.expectPayload(spoken);
            try testing.expect(!pair.reader.partial());
            try pair.expectNothing();
        }
    }
    var batch: millrace.codec.Batch = .init(spoken);
    for (texts) |text| try testing.expectEqualStrings(text, (try batch.next()).?);
    try testing.expectEqual(null, try batch.next());
}

test "a reader takes parts of any size: every two cuts, inside characters too" {
    for (1..spoken.len - 1) |first| for (first + 1..spoken.len) |second| {
        var pair: Pair = undefined;
        try pair.init(64);
        pair.put(spoken[0..first], 0, 3);
        try pair.expectNothing();
        pair.put(spoken[first..second], 1, 3);
        try pair.expectNothing();
        pair.put(spoken[second..], 2, 3);
        try pair.expectPayload(spoken);
    };
}

test "a payload larger than the storage costs itself, once [mailbox.limit]" {
    for ([_]usize{ 1, 2, 5, 16, 64 }) |capacity| for (0..20) |size| {
        var pair: Pair = undefined;
        try pair.init(capacity);
        const payload = "[\"hello\",[1,2,3]]";
        const storage = pair.kept[0..size];
        var sizes: u32 = 0;
        var payloads: u32 = 0;
        for (0..2) |_| {
            var written = false;
            while (!written) {
                written = try pair.writer.tryWrite(payload);
                const found = pair.reader.tryRead(storage) catch |err| {
                    try testing.expectEqual(error.MessageSize, err);
                    try testing.expect(!pair.reader.partial());
                    sizes += 1;
                    continue;
                };
                if (found) |whole| try testing.expectEqualStrings(payload, whole);
                if (found != null) payloads += 1;
            }
        }
        const fits = size >= payload.len;
        try testing.expectEqual(if (fits) @as(u32, 0) else 2, sizes);
        try testing.expectEqual(if (fits) @as(u32, 2) else 0, payloads);
        // Smaller payloads fit again, in other storage.
        while (!try pair.writer.tryWrite("[1]")) try pair.expectNothing();
        try pair.expectPayload("[1]");
    };
}

test "a payload that is no UTF-8 or no array costs itself, once [mailbox.bad_payload]" {
    const texts = [_][]const u8{ "[\"\xff\"]", "[\"\xed\xa0\x80\"]", "[\"\xc3\"]", "\xfe" };
    const others = [_][]const u8{ "[]", "[ \n]", "{}", "1", "[1", "1]", "[", "]", "\"[1]\"", " " };
    const arrays = [_][]const u8{ "[1]", " [1] ", "[ 1\n]\r\n\t", "[[]]" };
    var pair: Pair = undefined;
    try pair.init(16);
    for (texts ++ others ++ arrays, 0..) |payload, index| {
        pair.put(payload, 0, 1);
        if (index < texts.len) {
            try testing.expectError(error.MessageText, pair.tryRead());
        } else if (index < texts.len + others.len) {
            try testing.expectError(error.MessageJson, pair.tryRead());
        } else try pair.expectPayload(payload);
        try pair.expectNothing();
    }
    // A fault that only cutting or parsing finds is found there, and costs only that payload.
    pair.put("[1,,2]", 0, 1);
    var batch: millrace.codec.Batch = .init((try pair.tryRead()).?);
    try testing.expectEqualStrings("1", (try batch.next()).?);
    try testing.expectError(error.MessageJson, batch.next());
    pair.put("[1]", 0, 1);
    try pair.expectPayload("[1]");
}

test "both sides keep their place over deadlines [mailbox.keep_parts] [mailbox.write_all]" {
    var pair: Pair = undefined;
    try pair.init(4);
    const payload = "[12345678]";
    // Nothing was written: another payload may come.
    pair.header().signal = mailbox_side.may_read;
    try testing.expectError(error.Timeout, pair.writer.write("[0]", .ms(250)));
    try testing.expectEqual(3, pair.writer.side.parks); // in slices of 100 ms
    try testing.expect(!pair.writer.partial());
    pair.header().signal = mailbox_side.may_write;
    for (0..3) |part| {
        try testing.expectEqual(null, try pair.reader.read(&pair.kept, .ms(1)));
        try testing.expectEqual(part > 0, pair.reader.partial());
        if (part < 2) {
            for (0..2) |_| {
                try testing.expectError(error.Timeout, pair.writer.write(payload, .ms(1)));
                try testing.expectEqual(part, pair.header().part_index);
                try testing.expect(pair.writer.partial());
                try testing.expect(pair.writer.fits(payload));
                try testing.expect(!pair.writer.fits("[1]"));
            }
        } else try pair.writer.write(payload, .ms(1));
    }
    try testing.expect(pair.writer.fits("[1]"));
    const found = (try pair.reader.read(&pair.kept, .ms(1))).?;
    try testing.expectEqualStrings(payload, found);
}

test "Side.late_wakes counts slices that end with the turn there, and nothing else" {
    const Met = struct {
        var pair: Pair = undefined;
        fn put() void {
            pair.put("[1]", 0, 1);
        }
    };
    try Met.pair.initOn(16, &mailbox_fixture.scripted);
    const side = &Met.pair.reader.side;
    mailbox_fixture.act = Met.put;
    defer mailbox_fixture.act = null;
    try testing.expect(try Met.pair.reader.read(&Met.pair.kept, .ms(250)) != null);
    try testing.expectEqual(1, side.late_wakes);
    // The deadline ended that call.
    try testing.expect(try Met.pair.reader.read(&Met.pair.kept, .ms(50)) != null);
    mailbox_fixture.act = null;
    try testing.expectEqual(null, try Met.pair.reader.read(&Met.pair.kept, .ms(250)));
    try testing.expectEqual(1, side.late_wakes);
}

test "a peer that keeps up does not hold a call beyond its deadline" {
    const Met = struct {
        var pair: Pair = undefined;
        /// When it is notified, the peer acts at once; the clock moves 1 ms with each part.
        fn notify(_: *const u32) void {
            fixture.clockwork.pause(1_000_000);
            const header = pair.header();
            if (header.signal == mailbox_side.may_read) {
                header.signal = mailbox_side.may_write;
            } else pair.describe(1, header.part_index + 1, header.part_count);
        }
    };
    var host = fixture.clockwork;
    host.notify = Met.notify;
    try Met.pair.initOn(1, &host);
    const long = "[\"" ++ @as([200]u8, @splat('x')) ++ "\"]";
    try testing.expectError(error.Timeout, Met.pair.writer.write(long, .ms(20)));
    const written = Met.pair.header().part_index;
    try testing.expect(written > 10 and written < 25);
    // A peer that sends for ever; its payloads are kept or dropped.
    for ([_]usize{ 1024, 4 }) |size| {
        try Met.pair.initOn(1, &host);
        Met.pair.describe(1, 0, millrace.layout.mailbox_part_count_max);
        const storage = Met.pair.kept[0..size];
        if (size == 4) try testing.expectError(
            error.MessageSize,
            Met.pair.reader.read(storage, .ms(20)),
        );
        try testing.expectEqual(null, try Met.pair.reader.read(storage, .ms(20)));
        try testing.expect(Met.pair.header().part_index < 30);
    }
}

test "on a thread that must not block, a wait is forbidden and loses nothing" {
    var pair: Pair = undefined;
    try pair.init(4);
    for ([_]u64{ 0, 1_000_000_000 }) |spin_ns| {
        pair.writer.side.manner.blocking = false;
        pair.reader.side.manner.blocking = false;
        pair.writer.side.manner.spin_ns = spin_ns;
        pair.reader.side.manner.spin_ns = spin_ns;
        const begin_ns = fixture.clockwork.now();
        try testing.expectError(error.WaitForbidden, pair.reader.read(&pair.kept, .ms(50)));
        try testing.expectError(error.WaitForbidden, pair.writer.write("[1234]", .forever));
        try testing.expectError(error.WaitForbidden, pair.reader.read(&pair.kept, .forever));
        try pair.writer.write("[1234]", .forever);
        try pair.expectPayload("[1234]");
        try testing.expectEqual(null, try pair.reader.read(&pair.kept, .none));
        try testing.expect(fixture.clockwork.now() - begin_ns < 100_000);
        try testing.expectEqual(0, pair.writer.side.parks + pair.reader.side.parks);
    }
}
