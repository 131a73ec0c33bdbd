//! The incoming direction of a stream: checks its preface and its frames, and puts the frames into
//! the ring that the port reads [spec/stream.md].
//!
//! Invariant: however the bytes are cut into pieces, a frame is used when its last byte has
//! arrived, and a fault in a header is found when the header has arrived [stream.pieces]
//! [stream.whole].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const stream_outlet = @import("outlet.zig");
const assert = std.debug.assert;
const Bytes = ring_file.Bytes;
const Header = frame.Header;
const Preface = stream_outlet.Preface;
const Reason = layout.Reason;
const RingWriter = ring_file.RingWriter;
const Sizes = stream_outlet.Sizes;

const header_size = layout.frame_header_size;
const magic_size = layout.stream_magic_size;

/// What arriving bytes can lead to, apart from messages.
pub const Event = union(enum) {
    /// Nothing.
    none,
    /// The preface of the peer has arrived.
    preface: Sizes,
    /// A frame of kind `credit`, with its tag.
    credit: u32,
    close,
    /// A frame of kind `fail`, with its tag.
    fail: u32,
    fault: Reason,
};

pub const Intake = struct {
    /// The ring that the port reads.
    ring: RingWriter,
    own: Sizes,
    state: State = .preface,
    /// The preface or the header that has arrived in part.
    begun: [layout.stream_preface_size]u8 align(@alignOf(Preface)) = undefined,
    begun_size: u32 = 0,
    /// The header of the frame that is arriving.
    header: Header = undefined,
    /// The bytes after that header, and how many of them have arrived.
    body_size: u32 = 0,
    body_come: u32 = 0,
    /// Where those bytes go; null if they are dropped.
    body: ?Bytes = null,
    /// The position after all frames whose header has arrived, as the peer counts.
    position: u32 = layout.stream_start,
    end_come: bool = false,
    /// The position in the ring up to which the frames that the port has given back were counted.
    counted: u32,
    /// The position up to which the port has given back, as the peer counts.
    given: u32 = layout.stream_start,
    /// Bytes of frames after `end`, which nobody reads.
    passed: u32 = 0,
    /// Whether messages are dropped, because this side has closed.
    dropping: bool = false,

    const State = enum { preface, header, body };

    pub fn init(ring: RingWriter, own: Sizes) Intake {
        return .{ .ring = ring, .own = own, .counted = ring.head };
    }

    /// Takes bytes from the front of `bytes`, up to the first ones that lead to an event. `told` is
    /// the position of the last credit that was sent to the peer.
    pub fn take(intake: *Intake, bytes: *[]const u8, told: u32) Event {
        while (bytes.len > 0) {
            const event = switch (intake.state) {
                .preface => intake.takePreface(bytes),
                .header => intake.takeHeader(bytes, told),
                .body => intake.takeBody(bytes),
            };
            if (event != .none) return event;
        }
        return .none;
    }

    /// Makes visible to the port what has arrived.
    pub fn publish(intake: *Intake) void {
        intake.ring.flush();
    }

    /// From now on, drops the frames for the port. Other frames still lead to events.
    pub fn drop(intake: *Intake) void {
        if (intake.dropping) return;
        intake.dropping = true;
        if (intake.body != null) intake.ring.abandon();
        intake.body = null;
    }

    /// Counts what the port has given back. Call it before anything is written into the ring, while
    /// the headers of those frames are still there.
    pub fn count(intake: *Intake) void {
        const ring = &intake.ring;
        // The cursor of our own port, in private memory: it cannot be hostile.
        ring.refresh() catch unreachable;
        while (intake.counted != ring.head) {
            const offset = intake.counted & (ring.capacity - 1);
            const header: Header = .load(@alignCast(ring.area[offset..][0..header_size]));
            const extent = frame.extentOf(header.size);
            intake.counted +%= extent;
            switch (header.kind) {
                layout.frame_kind_pad, layout.frame_kind_end => {},
                else => intake.given +%= extent,
            }
        }
        if (ring.head != ring.tail) return;
        intake.given +%= intake.passed;
        intake.passed = 0;
    }

    /// Has the port give back, and ring, when it has released so many bytes more, so that the
    /// credit that is due then is sent at once [stream.credit_told].
    pub fn arm(intake: *Intake, due: u32) void {
        // Frames after `end` count when the ring is empty.
        const least = if (intake.passed > 0) 0 else due;
        const position = intake.ring.head +% @max(layout.frame_align, least);
        const wants = &intake.ring.control.writer_wants;
        @atomicStore(u32, wants, position | layout.wants_armed, .seq_cst);
    }

    /// Moves bytes into `begun` until it holds `size` bytes. Returns whether it does.
    fn fill(intake: *Intake, bytes: *[]const u8, size: u32) bool {
        const taken = @min(size - intake.begun_size, bytes.len);
        @memcpy(intake.begun[intake.begun_size..][0..taken], bytes.*[0..taken]);
        intake.begun_size += @intCast(taken);
        bytes.* = bytes.*[taken..];
        return intake.begun_size == size;
    }

    /// [stream.preface_check]
    fn takePreface(intake: *Intake, bytes: *[]const u8) Event {
        if (intake.begun_size < magic_size) {
            if (!intake.fill(bytes, magic_size)) return .none;
            const is_stream = std.mem.eql(u8, intake.begun[0..magic_size], Preface.magic_bytes);
            if (!is_stream) return .{ .fault = .stream_magic };
        }
        if (!intake.fill(bytes, layout.stream_preface_size)) return .none;
        const preface: *const Preface = @ptrCast(&intake.begun);
        if (preface.version_major != layout.version_major) return .{ .fault = .stream_version };
        if (preface.required_features != 0) return .{ .fault = .stream_feature };
        const sizes: Sizes = .{ .largest = preface.largest, .window = preface.window };
        if (!sizes.valid()) return .{ .fault = .stream_preface };
        intake.begun_size = 0;
        intake.state = .header;
        return .{ .preface = sizes };
    }

    fn takeHeader(intake: *Intake, bytes: *[]const u8, told: u32) Event {
        if (!intake.fill(bytes, header_size)) return .none;
        intake.begun_size = 0;
        const bytes_of_it: [header_size]u8 align(layout.frame_align) =
            intake.begun[0..header_size].*;
        const header: Header = .load(&bytes_of_it);
        if (intake.check(header, told)) |reason| return .{ .fault = reason };
        switch (header.kind) {
            layout.stream_kind_credit => return .{ .credit = header.tag },
            layout.stream_kind_close => return .close,
            layout.stream_kind_fail => return .{ .fail = header.tag },
            layout.frame_kind_end => {
                intake.end_come = true;
                if (!intake.dropping) intake.ring.end();
                return .none;
            },
            else => {},
        }
        const extent = frame.extentOf(header.size);
        intake.position +%= extent;
        intake.header = header;
        intake.body_size = extent - header_size;
        intake.body_come = 0;
        intake.body = null;
        if (intake.end_come) {
            intake.passed += extent;
        } else if (!intake.dropping) {
            intake.count();
            // There is room: `StreamLink.capacityFor` allows for the window, and for the reserve
            // for `end`.
            intake.body = (intake.ring.claim(header.size) catch unreachable).?;
        }
        intake.state = .body;
        return if (intake.body_size == 0) intake.finishBody() else .none;
    }

    /// The rows of the table of checks that need only the header [stream.check].
    fn check(intake: *const Intake, header: Header, told: u32) ?Reason {
        const is_extension = header.kind >= layout.frame_kind_extension_min;
        const is_empty = switch (header.kind) {
            layout.frame_kind_data,
            layout.frame_kind_call,
            layout.frame_kind_return,
            layout.frame_kind_throw,
            => false,
            layout.frame_kind_end,
            layout.stream_kind_credit,
            layout.stream_kind_close,
            layout.stream_kind_fail,
            => true,
            else => if (is_extension) false else return .frame_kind,
        };
        const is_message = !is_extension and !is_empty;
        if (!is_extension and header.reserved != 0) return .frame_reserved;
        if (is_empty and header.flags != 0) return .frame_flags;
        if (is_message and !frame.flagsValid(header)) return .frame_flags;
        if (is_empty and header.size != 0) return .frame_size;
        // 64 bits wide, so that the peer's size cannot overflow it.
        const extent = header_size +
            std.mem.alignForward(u64, header.size, layout.frame_align);
        if (extent > intake.own.largest) return .frame_size;
        const is_end = header.kind == layout.frame_kind_end;
        if ((is_message or is_end) and intake.end_come) return .frame_sequence;
        if (is_empty) return null;
        const left = intake.own.window - (intake.position -% told);
        return if (extent > left) .stream_credit else null;
    }

    fn takeBody(intake: *Intake, bytes: *[]const u8) Event {
        const taken = @min(intake.body_size - intake.body_come, bytes.len);
        if (intake.body) |body| {
            // The fill bytes go after the payload, within the extent that was claimed.
            const all: [*]u8 = body.ptr;
            @memcpy(all[intake.body_come..][0..taken], bytes.*[0..taken]);
        }
        intake.body_come += @intCast(taken);
        bytes.* = bytes.*[taken..];
        return if (intake.body_come == intake.body_size) intake.finishBody() else .none;
    }

    fn finishBody(intake: *Intake) Event {
        intake.state = .header;
        const body = intake.body orelse return .none;
        intake.body = null;
        const header = intake.header;
        if (header.kind < layout.frame_kind_extension_min) {
            const all: [*]u8 = body.ptr;
            for (all[header.size..intake.body_size]) |byte| {
                if (byte == 0) continue;
                intake.ring.abandon();
                return .{ .fault = .frame_reserved };
            }
        }
        intake.ring.finish(header);
        return .none;
    }
};
