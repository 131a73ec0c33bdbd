//! Takes messages out of the ring of a port with calls, each into memory of its own.
//!
//! Invariant: what was dropped, for its size or because its writer gave it up, is still told, with
//! kind, tag and why: whose call it was must hear of it [call.refused] [call.bad_answer].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const frame = @import("../ring/frame.zig");
const Serving = @import("serving.zig").Serving;
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const Lent = pipe.Lent;
const Reader = pipe.Reader;

/// A message that was taken, or the report of one that was lost.
pub const Note = struct {
    /// Aligned as a payload is that is lent.
    next: ?*Note align(layout.frame_align) = null,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
    /// Why it was dropped, if it was.
    fault: ?layout.Reason = null,
    /// Whether its writer has not completed it.
    broken: bool = false,
    /// Of a call or a notice: what serves it.
    serving: ?*Serving = null,
    /// It lies behind this structure.
    payload: []u8,

    const alignment: std.mem.Alignment = .of(Note);

    pub fn create(gpa: Allocator, lent: Lent, size: usize) Allocator.Error!*Note {
        const block = try gpa.alignedAlloc(u8, alignment, @sizeOf(Note) + size);
        const note: *Note = @ptrCast(block.ptr);
        note.* = .{
            .kind = lent.kind,
            .codec = lent.codec,
            .tag = lent.tag,
            .payload = block[@sizeOf(Note)..],
        };
        return note;
    }

    pub fn destroy(note: *Note, gpa: Allocator) void {
        const begin: [*]align(alignment.toByteUnits()) u8 = @ptrCast(note);
        gpa.free(begin[0 .. @sizeOf(Note) + note.payload.len]);
    }

    /// The same without its payload, whose memory is given back where that is possible.
    pub fn emptied(note: *Note, gpa: Allocator) *Note {
        const begin: [*]align(alignment.toByteUnits()) u8 = @ptrCast(note);
        const block = begin[0 .. @sizeOf(Note) + note.payload.len];
        const left = gpa.realloc(block, @sizeOf(Note)) catch return note;
        const moved: *Note = @ptrCast(left.ptr);
        moved.payload = left[@sizeOf(Note)..];
        return moved;
    }

    pub fn id(note: *const Note) u32 {
        return note.tag & layout.call_id_max;
    }
};

/// First in, first out.
pub fn Queue(comptime T: type, comptime link: []const u8) type {
    return struct {
        first: ?*T = null,
        last: ?*T = null,
        count: u32 = 0,

        const Self = @This();

        pub fn push(queue: *Self, item: *T) void {
            @field(item, link) = null;
            if (queue.last) |last| @field(last, link) = item else queue.first = item;
            queue.last = item;
            queue.count += 1;
        }

        pub fn pop(queue: *Self) ?*T {
            const item = queue.first orelse return null;
            queue.first = @field(item, link);
            if (queue.first == null) queue.last = null;
            queue.count -= 1;
            return item;
        }
    };
}

pub const Intake = struct {
    gpa: Allocator,
    reader: *Reader,
    /// The largest message that is taken.
    limit: usize,
    /// The message of many frames that is being taken, unless nobody needs to hear of it any more.
    note: ?*Note = null,
    received: usize = 0,

    pub const Taken = union(enum) {
        nothing,
        /// What is there was not admitted, and stays.
        left,
        note: *Note,
    };

    /// Takes the next message as far as one load of the cursor shows it; `loaded` says whether that
    /// was made. `gate.admits(lent)` is asked with the first frame of each. Where memory ends, the
    /// message stays.
    pub fn take(
        intake: *Intake,
        loaded: *bool,
        gate: anytype,
    ) (pipe.ReadError || Allocator.Error)!Taken {
        const reader = intake.reader;
        while (true) {
            const found = reader.peekNow(loaded) catch |err| {
                if (intake.broken(err)) |note| return .{ .note = note };
                switch (err) {
                    error.MessageCancelled, error.MessageTruncated => continue,
                    else => |other| return other,
                }
            };
            const lent = found orelse return .nothing;
            if (lent.first) {
                if (!gate.admits(lent)) {
                    reader.leave(lent);
                    return .left;
                }
                intake.begin(lent) catch |err| {
                    reader.leave(lent);
                    return err;
                };
            }
            intake.add(lent);
            reader.release();
            const note = intake.note orelse continue;
            // A plain message that is dropped is reported at once [pipe.limit].
            const told = note.fault != null and note.kind == .data;
            if (!lent.last and !told) continue;
            intake.note = null;
            return .{ .note = note };
        }
    }

    /// Whether parts of a message were taken whose rest has not come yet.
    pub fn partial(intake: *const Intake) bool {
        return intake.reader.inProgress();
    }

    /// Forgets the message of which parts were taken.
    pub fn drop(intake: *Intake) void {
        const note = intake.note orelse return;
        intake.note = null;
        intake.free(note);
    }

    /// Gives back a message and what was to serve it.
    pub fn free(intake: *Intake, note: *Note) void {
        if (note.serving) |serving| intake.gpa.destroy(serving);
        note.destroy(intake.gpa);
    }

    fn begin(intake: *Intake, lent: Lent) Allocator.Error!void {
        assert(intake.note == null);
        const known = lent.total != frame.total_unknown;
        const least: u64 = if (known) lent.total else lent.payload.len;
        const large = least > intake.limit;
        const note = try Note.create(intake.gpa, lent, if (large) 0 else @intCast(least));
        errdefer note.destroy(intake.gpa);
        const is_served = lent.kind == .call and lent.tag & layout.call_mark_all == 0;
        if (is_served) note.serving = try intake.gpa.create(Serving);
        if (large) intake.tooLarge(note);
        intake.note = note;
        intake.received = 0;
    }

    fn tooLarge(intake: *Intake, note: *Note) void {
        note.fault = .message_size; // [pipe.limit]
        intake.reader.uncount();
    }

    fn add(intake: *Intake, lent: Lent) void {
        const note = intake.note orelse return;
        if (note.fault != null) return;
        const end = intake.received + lent.payload.len;
        if (end > note.payload.len) {
            intake.grow(end) catch return;
        }
        @memcpy(intake.note.?.payload[intake.received..end], lent.payload);
        intake.received = end;
    }

    /// Of a message whose size its writer did not know [pipe.limit_unknown].
    fn grow(intake: *Intake, size: usize) error{TooLarge}!void {
        const old = intake.note.?;
        const begin_size = @sizeOf(Note) + old.payload.len;
        const bytes: [*]align(Note.alignment.toByteUnits()) u8 = @ptrCast(old);
        const grown = if (size > intake.limit)
            null
        else
            intake.gpa.realloc(bytes[0..begin_size], @sizeOf(Note) + size) catch null;
        if (grown) |block| {
            const note: *Note = @ptrCast(block.ptr);
            note.payload = block[@sizeOf(Note)..];
            intake.note = note;
            return;
        }
        intake.tooLarge(old);
        return error.TooLarge;
    }

    /// The message in progress that its writer gave up, or did not complete; null where nobody has
    /// to hear of it [pipe.report_once].
    fn broken(intake: *Intake, err: pipe.ReadError) ?*Note {
        const note = intake.note orelse return null;
        intake.note = null;
        const why: layout.Reason = switch (err) {
            error.MessageCancelled => .message_cancelled,
            error.MessageTruncated => .message_truncated,
            else => {
                intake.free(note);
                return null;
            },
        };
        note.broken = true;
        if (note.fault == null) {
            note.fault = why;
            return note;
        }
        // A call that was dropped before was never made, and nobody hears of it.
        if (note.kind != .call) return note;
        intake.free(note);
        return null;
    }
};
