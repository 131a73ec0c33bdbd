//! The writing side of a mailbox: it cuts payloads into parts [spec/mailbox.md].
//!
//! Invariant: a payload whose first part was written is written to its end before any other
//! [mailbox.write_all], unless the mailbox is closed.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const mailbox = @import("side.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const MailboxError = mailbox.MailboxError;
const MailboxWriteError = mailbox.MailboxWriteError;
const Side = mailbox.Side;
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
        return .{ .side = try .init(memory, mailbox.may_write, options) };
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
        assert(mailbox.arrayShaped(payload));
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
        if (!mailbox.arrayShaped(payload)) return false;
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
