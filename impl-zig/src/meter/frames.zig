//! Counts the messages in a ring, from one of its ends.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const RingReader = ring_file.RingReader;
const RingWriter = ring_file.RingWriter;

/// The messages that wait to be read.
pub const Queue = struct {
    /// Complete messages.
    messages: u64 = 0,
    /// With headers and pads.
    bytes: u64 = 0,
};

/// Counts what was published and is not given back.
pub fn ofWriter(ring: *const RingWriter) Queue {
    const head = @atomicLoad(u32, &ring.control.head, .acquire);
    const is_sound = head % layout.frame_align == 0 and
        ring.published -% head <= ring.published -% ring.head;
    // Any other cursor is a fault, which the call that uses it next finds [ring.cursor].
    return count(ring, if (is_sound) head else ring.head, ring.published);
}

/// Counts what was published and is not taken out.
pub fn ofReader(ring: *const RingReader) Queue {
    const tail = @atomicLoad(u32, &ring.control.tail, .acquire);
    const available = tail -% ring.head;
    const is_sound = tail % layout.frame_align == 0 and available <= ring.capacity and
        available >= ring.tail -% ring.head;
    return count(ring, ring.head, if (is_sound) tail else ring.tail);
}

/// Looks at every header between the two positions. The peer may have stored anything there: a size
/// is only believed if it leads onward and not beyond `tail`.
fn count(ring: anytype, head: u32, tail: u32) Queue {
    var queue: Queue = .{ .bytes = tail -% head };
    var position = head;
    while (position != tail) {
        const offset = position & (ring.capacity - 1);
        const header: frame.Header = .load(@alignCast(ring.area[offset..][0..16]));
        const extent = layout.frame_header_size +
            std.mem.alignForward(u64, header.size, layout.frame_align);
        if (extent > tail -% position or extent > ring.capacity - offset) break;
        queue.messages += @intFromBool(completes(header));
        position +%= @intCast(extent);
    }
    return queue;
}

/// Whether the frame is the last of a message that was not given up.
fn completes(header: frame.Header) bool {
    switch (header.kind) {
        layout.frame_kind_data,
        layout.frame_kind_call,
        layout.frame_kind_return,
        layout.frame_kind_throw,
        => {},
        else => return false,
    }
    const bits = header.flags & (layout.frame_flag_last | layout.frame_flag_cancel);
    return bits == layout.frame_flag_last;
}
