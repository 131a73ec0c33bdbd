//! The reading side of a mailbox: checks parts and puts payloads together [spec/mailbox.md].
//!
//! Invariant: nothing of a part is used before all its checks passed, and the turn is passed on
//! only when its last byte was copied [mailbox.copy].

const std = @import("std");
const layout = @import("layout.zig");
const host_file = @import("host.zig");
const mailbox = @import("mailbox.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const MailboxError = mailbox.MailboxError;
const MailboxReadError = mailbox.MailboxReadError;
const Side = mailbox.Side;
const Timeout = host_file.Timeout;

/// The reading side of a mailbox.
///
/// Thread safety: belongs to one thread, but for `close`.
pub const MailboxReader = struct {
    side: Side,
    /// Parts of the payload under way that were taken, and what they must have in common.
    part_index: u32 = 0,
    part_count: u32 = 0,
    /// Where they are kept; null between payloads, and while one is dropped.
    parts: ?[]u8 = null,
    /// Bytes of them.
    size: usize = 0,
    /// Whether the rest of the payload is dropped, and was reported.
    dropping: bool = false,

    /// How a side sleeps.
    pub const Options = Side.Options;

    /// Asserts nothing of the memory, which must be blank before the first use of either side: a
    /// section that is not aligned or too short is `error.MailboxSize`.
    pub fn init(memory: []u8, options: Options) error{MailboxSize}!MailboxReader {
        return .{ .side = try .init(memory, mailbox.may_read, options) };
    }

    /// Reads the next payload into `storage`, and waits for it as long as the timeout allows.
    /// Returns null when it was not complete by the deadline. With `.none`, at most one part is
    /// taken.
    ///
    /// A payload larger than `storage` costs `error.MessageSize` once and is dropped
    /// [mailbox.limit]; so does one that is not UTF-8, or in no brackets, or has nothing between
    /// them [mailbox.bad_payload]. What is between them is for `codec.Batch` to cut and for a
    /// parser to judge: a failure there costs that payload too, and the mailbox goes on.
    ///
    /// A call that returns null or fails with `error.WaitForbidden` in the middle of a payload
    /// keeps its parts in `storage` [mailbox.keep_parts]: while `partial()`, leave its bytes alone
    /// and pass it again.
    ///
    /// Asserts that.
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
            // Where the writer keeps up, no wait ends the call.
            if (deadline.passed(side.manner.host)) return null;
        }
    }

    /// Reads the next payload if it, or its last part, is there: `read` without waiting.
    pub fn tryRead(reader: *MailboxReader, storage: []u8) MailboxReadError!?[]u8 {
        return reader.read(storage, .none);
    }

    /// Whether parts of an unfinished payload are kept in the storage of the last `read`.
    pub fn partial(reader: *const MailboxReader) bool {
        return reader.parts != null;
    }

    /// Whether this storage may be passed now: any, or the one in which parts are kept.
    pub fn fits(reader: *const MailboxReader, storage: []const u8) bool {
        const parts = reader.parts orelse return true;
        return parts.ptr == storage.ptr and parts.len == storage.len;
    }

    /// Closes the mailbox: every call of either side ends, and a part under way is lost. Closing
    /// again does nothing.
    ///
    /// Thread-safe.
    pub fn close(reader: *MailboxReader) void {
        reader.side.close();
    }

    /// Whether either side has closed the mailbox.
    pub fn closed(reader: *const MailboxReader) bool {
        return reader.side.closed();
    }

    /// What is behind the last `error.Corrupt` or `error.PeerClosed`.
    pub fn reason(reader: *const MailboxReader) ?layout.Reason {
        return reader.side.reason();
    }

    // What follows is what `read` does with a part, for tests to act between the two.

    /// The words of a part, loaded once.
    pub const Part = struct {
        length: u32,
        part_count: u32,
        part_index: u32,
        /// Loaded behind the others [mailbox.read_status].
        status: u32,

        pub fn load(header: *const mailbox.Header) Part {
            // Acquire, which keeps the load of `status` behind them: whoever reads the −1 of a
            // close of the original here must find it there too.
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

    /// Takes a part that was found when it was this side's turn. Returns the payload that it
    /// completes.
    pub fn take(reader: *MailboxReader, part: Part, storage: []u8) MailboxReadError!?[]u8 {
        const side = &reader.side;
        reader.check(part) catch |err| return reader.ended(err);
        const begin = reader.size;
        const large = !reader.dropping and part.length > storage.len - begin;
        if (!reader.dropping and !large) {
            @memcpy(storage[begin..][0..part.length], side.area[0..part.length]);
            reader.size += part.length;
        }
        // A failure is a close, which the next look reports: what is whole is delivered first
        // [mailbox.complete].
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
        if (!mailbox.arrayShaped(payload)) return error.MessageJson;
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

    /// Nothing more comes from a mailbox that is closed, so its parts are of no use.
    fn ended(reader: *MailboxReader, err: MailboxError) MailboxError {
        reader.parts = null;
        return err;
    }
};
