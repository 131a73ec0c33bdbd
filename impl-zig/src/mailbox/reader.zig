//! The reading side of a mailbox: it checks parts and puts payloads together [spec/mailbox.md].
//!
//! Invariant: nothing of a part is used before all its checks passed, and the turn is passed only
//! after its last byte was copied [mailbox.copy].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const mailbox = @import("side.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const MailboxError = mailbox.MailboxError;
const MailboxReadError = mailbox.MailboxReadError;
const Side = mailbox.Side;
const Timeout = host_file.Timeout;

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
        return .{ .side = try .init(memory, mailbox.may_read, options) };
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

        pub fn load(header: *const mailbox.Header) Part {
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

    /// Drops the parts, because nothing more comes from a closed mailbox.
    fn ended(reader: *MailboxReader, err: MailboxError) MailboxError {
        reader.parts = null;
        return err;
    }
};
