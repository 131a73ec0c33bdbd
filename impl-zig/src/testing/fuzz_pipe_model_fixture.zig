//! What a reader must find in a ring, by the tables of spec/frame.md, spec/ring.md and
//! spec/pipe.md, row by row: slow and obvious, to be compared with the implementation.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const Reason = layout.Reason;

/// The total of a message whose size the writer did not know.
const unknown = 0xffff_ffff_ffff_ffff;

pub const Message = struct { payload: []const u8, kind: u8, codec: u8, tag: u32 };

/// What one call finds.
pub const Found = union(enum) {
    message: Message,
    /// A message that was lost.
    report: Reason,
    nothing,
    ended,
    fault: Reason,
};

/// A reader of a ring whose `tail` does not move.
pub const Model = struct {
    area: []const u8,
    /// The position of the next frame, and the end of what was published.
    head: u32,
    tail: u32,
    /// The largest message that is accepted.
    limit: u64,
    calls: bool,
    ended: bool = false,
    fault: ?Reason = null,
    progress: ?Progress = null,
    parts: [8192]u8 = undefined,
    /// Where the first frames that passed all checks start, in order.
    begins: [256]u32 = undefined,
    begin_count: usize = 0,

    const Progress = struct {
        kind: u8,
        codec: u8,
        tag: u32,
        total: u64,
        size: u64,
        /// Dropped, with its loss reported.
        dropped: bool,
    };

    const Frame = struct {
        size: u32,
        kind: u8,
        flags: u8,
        codec: u8,
        reserved: u8,
        tag: u32,
        offset: u32,

        fn isMessage(frame: Frame) bool {
            return frame.kind == 1 or frame.kind >= 3 and frame.kind <= 5;
        }

        fn extent(frame: Frame) u64 {
            return 16 + (@as(u64, frame.size) + 15) / 16 * 16;
        }

        /// The flags without `extended`.
        fn part(frame: Frame) u8 {
            return frame.flags & ~@as(u8, 8);
        }
    };

    pub fn next(model: *Model) Found {
        if (model.fault) |why| return .{ .fault = why };
        if (model.ended) return .ended;
        if (cursorFault(model.head, model.tail, model.area.len)) {
            model.fault = .ring_cursor;
            return model.next();
        }
        while (model.head != model.tail) {
            const frame = model.frameAt();
            if (model.judge(frame)) |why| {
                model.fault = why;
                return model.next();
            }
            if (model.begin_count < model.begins.len) {
                model.begins[model.begin_count] = model.head;
                model.begin_count += 1;
            }
            model.head +%= @intCast(frame.extent());
            if (model.take(frame)) |found| return found;
        }
        return .nothing;
    }

    fn cursorFault(head: u32, tail: u32, capacity: usize) bool {
        return tail % 16 != 0 or tail -% head > capacity;
    }

    fn frameAt(model: *const Model) Frame {
        const offset: u32 = @intCast(model.head % model.area.len);
        const header = model.area[offset..][0..16];
        return .{
            .size = std.mem.readInt(u32, header[0..4], .little),
            .kind = header[4],
            .flags = header[5],
            .codec = header[6],
            .reserved = header[7],
            .tag = std.mem.readInt(u32, header[8..12], .little),
            .offset = offset,
        };
    }

    /// The table of frame.md, in its order.
    fn judge(model: *const Model, frame: Frame) ?Reason {
        const capacity = model.area.len;
        const available = model.tail -% model.head;
        const to_end = capacity - frame.offset;
        const kind = frame.kind;
        if (!(kind >= 1 and kind <= 6 or kind >= 128)) return .frame_kind;
        if (kind <= 6 and frame.reserved != 0) return .frame_reserved;
        if ((kind == 2 or kind == 6) and frame.flags != 0) return .frame_flags;
        if (frame.isMessage()) {
            switch (frame.flags) {
                0, 1, 2, 3, 6, 8, 9, 10, 11 => {},
                else => return .frame_flags,
            }
            if (frame.codec == 3 and frame.part() != 3) return .frame_flags;
        }
        if (frame.extent() > available or frame.extent() > to_end) return .frame_size;
        if (kind != 6 and frame.extent() > capacity / 2) return .frame_size;
        if (kind == 6 and frame.extent() != to_end) return .frame_pad;
        if (kind == 2 and frame.size != 0) return .frame_size;
        if (!frame.isMessage()) return null;
        if (frame.flags & 8 != 0) {
            if (frame.size < 16) return .frame_extension;
            const extension = model.extensionOf(frame);
            if (extension < 16 or extension % 16 != 0) return .frame_extension;
            if (extension > frame.size) return .frame_extension;
        }
        const size = frame.size - model.extensionOf(frame);
        switch (frame.part()) {
            6 => if (size != 0) return .frame_size,
            1 => if (size < 16) return .frame_size,
            0, 2 => if (size < 1) return .frame_size,
            else => {},
        }
        const is_first = frame.flags & 1 != 0;
        if (is_first != (model.progress == null)) return .frame_sequence;
        if (!is_first) {
            const progress = model.progress.?;
            if (kind != progress.kind) return .frame_sequence;
            if (frame.codec != progress.codec) return .frame_sequence;
            if (frame.tag != progress.tag) return .frame_sequence;
        }
        if (frame.part() == 1) {
            const preamble = model.payloadOf(frame);
            if (!std.mem.allEqual(u8, preamble[8..16], 0)) return .frame_reserved;
            const total = std.mem.readInt(u64, preamble[0..8], .little);
            if (total != unknown and size - 16 > total) return .frame_total;
        }
        if ((frame.part() == 0 or frame.part() == 2) and !model.progress.?.dropped) {
            const sum = model.progress.?.size + size;
            const total = model.progress.?.total;
            if (total != unknown and sum > total) return .frame_total;
            if (total != unknown and frame.part() == 2 and sum != total) return .frame_total;
        }
        return null;
    }

    /// Bytes of the header extension.
    fn extensionOf(model: *const Model, frame: Frame) u32 {
        if (frame.flags & 8 == 0) return 0;
        return std.mem.readInt(u32, model.area[frame.offset + 16 ..][0..4], .little);
    }

    /// Returns the payload without its header extension.
    fn payloadOf(model: *const Model, frame: Frame) []const u8 {
        return model.area[frame.offset + 16 ..][0..frame.size][model.extensionOf(frame)..];
    }

    /// Handles a valid frame. Returns null if the caller learns nothing of it.
    fn take(model: *Model, frame: Frame) ?Found {
        if (frame.kind == 6 or frame.kind >= 128) return null;
        if (frame.kind == 2) {
            model.ended = true;
            const progress = model.progress orelse return .ended;
            model.progress = null;
            return if (progress.dropped) .ended else .{ .report = .message_truncated };
        }
        const payload = model.payloadOf(frame);
        const strange = frame.kind != 1 and !model.calls;
        switch (frame.part()) {
            3 => {
                if (strange) return .{ .report = .message_kind };
                if (payload.len > model.limit) return .{ .report = .message_size };
                return model.deliver(frame, payload);
            },
            1 => {
                const total = std.mem.readInt(u64, payload[0..8], .little);
                const known = if (total == unknown) payload.len - 16 else total;
                const why: ?Reason = if (strange)
                    .message_kind
                else if (known > model.limit) .message_size else null;
                model.progress = .{
                    .kind = frame.kind,
                    .codec = frame.codec,
                    .tag = frame.tag,
                    .total = total,
                    .size = 0,
                    .dropped = why != null,
                };
                if (why) |reason| return .{ .report = reason };
                model.keep(payload[16..]);
                return null;
            },
            6 => {
                const dropped = model.progress.?.dropped;
                model.progress = null;
                return if (dropped) null else .{ .report = .message_cancelled };
            },
            else => {
                const last = frame.part() == 2;
                const before = model.progress.?;
                const large = before.total == unknown and before.size + payload.len > model.limit;
                if (large and !before.dropped) {
                    if (last) model.progress = null else model.progress.?.dropped = true;
                    return .{ .report = .message_size };
                }
                if (!before.dropped) model.keep(payload);
                if (!last) return null;
                const progress = model.progress.?;
                model.progress = null;
                if (progress.dropped) return null;
                return model.deliver(frame, model.parts[0..@intCast(progress.size)]);
            },
        }
    }

    fn keep(model: *Model, part: []const u8) void {
        const progress = &model.progress.?;
        @memcpy(model.parts[@intCast(progress.size)..][0..part.len], part);
        progress.size += part.len;
    }

    fn deliver(_: *const Model, frame: Frame, payload: []const u8) Found {
        return .{ .message = .{
            .payload = payload,
            .kind = frame.kind,
            .codec = frame.codec,
            .tag = frame.tag,
        } };
    }
};
