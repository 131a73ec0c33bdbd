//! What stands in a ring, counted by one of its ends.

const std = @import("std");
const layout = @import("layout.zig");
const frame = @import("frame.zig");
const ring_file = @import("ring.zig");
const RingReader = ring_file.RingReader;
const RingWriter = ring_file.RingWriter;

/// What waits to be read.
pub const Queue = struct {
    /// Complete messages.
    messages: u64 = 0,
    /// Headers and pads included.
    bytes: u64 = 0,
};

/// What was published, and has not been given back.
pub fn ofWriter(ring: *const RingWriter) Queue {
    const head = @atomicLoad(u32, &ring.control.head, .acquire);
    const is_sound = head % layout.frame_align == 0 and
        ring.published -% head <= ring.published -% ring.head;
    // A cursor that cannot be is a fault that the next use finds [ring.cursor].
    return count(ring, if (is_sound) head else ring.head, ring.published);
}

/// What was published, and not taken out.
pub fn ofReader(ring: *const RingReader) Queue {
    const tail = @atomicLoad(u32, &ring.control.tail, .acquire);
    const available = tail -% ring.head;
    const is_sound = tail % layout.frame_align == 0 and available <= ring.capacity and
        available >= ring.tail -% ring.head;
    return count(ring, ring.head, if (is_sound) tail else ring.tail);
}

/// Looks at every header in between. What the peer may have stored there is believed no further
/// than that the look stays in between, and moves on.
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

/// Whether a message ends with this frame, and was not given up.
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
