//! The outgoing direction of a stream: sends the preface, the frames of the port, and between two
//! of those the frames `credit`, `close` and `fail` [spec/stream.md].
//!
//! Invariant: `at` is the start of a frame or a pad in the ring that the port writes, and `sent`
//! bytes of that frame were sent. A control frame is sent only while `sent` is 0.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const assert = std.debug.assert;
const RingReader = ring_file.RingReader;
const Transport = @import("transport.zig").Transport;

const header_size = layout.frame_header_size;
const kind_offset = layout.frame_kind_offset;

/// What a side states about the frames that it accepts.
pub const Sizes = struct {
    /// The largest extent of a frame.
    largest: u32,
    /// Bytes of frames that may be sent beyond those that were given back.
    window: u32,

    pub fn valid(sizes: Sizes) bool {
        if (sizes.largest % layout.frame_align != 0) return false;
        if (sizes.window % layout.frame_align != 0) return false;
        if (sizes.largest < layout.stream_largest_min) return false;
        return sizes.largest <= sizes.window and sizes.window <= layout.stream_window_max;
    }
};

pub const Preface = extern struct {
    magic: [layout.stream_magic_size]u8,
    version_major: u16,
    version_minor: u16,
    largest: u32,
    window: u32,
    required_features: u32,
    optional_features: u32,
    reserved: [4]u8,

    pub const magic_bytes = "MILL\xff\r\n\n";

    pub fn of(sizes: Sizes) Preface {
        return .{
            .magic = magic_bytes.*,
            .version_major = layout.version_major,
            .version_minor = layout.version_minor,
            .largest = sizes.largest,
            .window = sizes.window,
            .required_features = 0,
            .optional_features = 0,
            .reserved = @splat(0),
        };
    }
};

comptime {
    assert(@sizeOf(Preface) == layout.stream_preface_size);
    assert(@offsetOf(Preface, "magic") == layout.stream_magic_offset);
    assert(@offsetOf(Preface, "version_major") == layout.stream_version_major_offset);
    assert(@offsetOf(Preface, "version_minor") == layout.stream_version_minor_offset);
    assert(@offsetOf(Preface, "largest") == layout.stream_largest_offset);
    assert(@offsetOf(Preface, "window") == layout.stream_window_offset);
    assert(@offsetOf(Preface, "required_features") == layout.stream_required_features_offset);
    assert(@offsetOf(Preface, "optional_features") == layout.stream_optional_features_offset);
    assert(@offsetOf(Preface, "reserved") == layout.stream_reserved_offset);
    assert(Preface.magic_bytes.len == layout.stream_magic_size);
}

/// About how many bytes of frames one write passes at most, so that a credit need not wait for
/// more.
const run_size_max = 256 * 1024;

pub const Outlet = struct {
    /// The ring that the port writes.
    ring: RingReader,
    at: u32,
    sent: u32 = 0,
    /// The end of the frames that there is credit for; they lie one after the other from `at` on.
    limit: u32,
    /// The position after those frames, as the peer counts.
    position: u32 = layout.stream_start,
    /// The preface, or the control frame that is sent next; its size; and how many of its bytes
    /// were sent.
    control: [layout.stream_preface_size]u8 align(@alignOf(Preface)) = undefined,
    control_size: u32,
    control_sent: u32 = 0,
    /// The position of the last credit that was sent to the peer.
    told: u32 = layout.stream_start,
    /// How many bytes may be given back beyond that position before a credit is due.
    spare: u32,
    state: State = .open,

    const State = enum {
        open,
        /// Everything published is still sent, and then `close`.
        closing,
        /// A `fail` is sent at the next boundary between frames, and nothing after it.
        failing,
        /// `control` holds the last frame.
        last,
        /// The byte stream has ended.
        ended,
    };

    pub fn init(ring: RingReader, own: Sizes) Outlet {
        var outlet: Outlet = .{
            .ring = ring,
            .at = ring.head,
            .limit = ring.head,
            .control_size = layout.stream_preface_size,
            .spare = own.window - own.largest,
        };
        @as(*Preface, @ptrCast(&outlet.control)).* = .of(own); // [stream.preface]
        return outlet;
    }

    /// Sends `close` after everything that was published [stream.close].
    pub fn close(outlet: *Outlet) void {
        if (outlet.state == .open) outlet.state = .closing;
    }

    /// Sends a `fail`, and nothing after it [stream.fail].
    pub fn fail(outlet: *Outlet) void {
        if (outlet.state == .open or outlet.state == .closing) outlet.state = .failing;
    }

    /// Sends nothing more, not even the rest of a frame.
    pub fn stop(outlet: *Outlet, transport: Transport) void {
        if (outlet.state == .ended) return;
        outlet.state = .ended;
        transport.end();
    }

    pub fn hasEnded(outlet: *const Outlet) bool {
        return outlet.state == .ended;
    }

    /// Whether there is nothing left to send now, as far as there is credit.
    pub fn isIdle(outlet: *const Outlet) bool {
        if (outlet.state == .ended) return true;
        return outlet.control_size == 0 and outlet.at == outlet.limit;
    }

    /// Whether everything that the port has published was sent.
    pub fn isEmpty(outlet: *const Outlet) bool {
        return outlet.at == outlet.ring.tail;
    }

    /// What this side has to tell its peer.
    pub const News = struct {
        /// The position up to which everything was given back, as the peer counts.
        given: u32,
        /// The reason for the peer's failure, if a `fail` is sent.
        reason: layout.Reason,
        /// The position up to which the peer lets us write.
        allowed_end: u32,
    };

    /// Passes to the transport what it takes. Returns false if it took less than there was.
    pub fn give(outlet: *Outlet, transport: Transport, news: News) error{Broken}!bool {
        while (outlet.state != .ended) {
            outlet.refresh();
            outlet.extend(news.allowed_end);
            outlet.nextControl(news);
            var pieces: [Transport.piece_count_max][]const u8 = undefined;
            const count = outlet.gather(&pieces);
            if (count == 0) return true;
            var total: usize = 0;
            for (pieces[0..count]) |piece| total += piece.len;
            const taken = try transport.write(pieces[0..count]);
            assert(taken <= total);
            outlet.advance(taken);
            if (outlet.state == .last and outlet.control_size == 0) outlet.stop(transport);
            if (taken < total) return false;
        }
        return true;
    }

    fn refresh(outlet: *Outlet) void {
        // The cursor of our own port, in private memory: it cannot be hostile.
        outlet.ring.refresh() catch unreachable;
    }

    /// Moves `limit` over the frames that there is credit for [stream.credit_kept], up to the end
    /// of the byte area or to a pad.
    fn extend(outlet: *Outlet, allowed_end: u32) void {
        if (outlet.state == .failing or outlet.state == .last) return;
        if (outlet.at == outlet.limit) outlet.skipPads();
        while (outlet.limit != outlet.ring.tail) {
            const size = outlet.limit -% outlet.at;
            const is_wrapped = size > 0 and outlet.offsetOf(outlet.limit) == 0;
            if (is_wrapped or size >= run_size_max) return;
            const header = outlet.headerAt(outlet.limit);
            if (header.kind == layout.frame_kind_pad) return;
            const extent = frame.extentOf(header.size);
            if (header.kind != layout.frame_kind_end) {
                const left: i32 = @bitCast(allowed_end -% outlet.position);
                if (left < @as(i32, @intCast(extent))) return;
                outlet.position +%= extent;
            }
            // [stream.frames] The port does not write the fill bytes, so they are set to 0 here.
            const fill = extent - header_size - header.size;
            const behind = outlet.offsetOf(outlet.limit) + extent;
            @memset(outlet.ring.area[behind - fill .. behind], 0);
            outlet.limit +%= extent;
        }
    }

    fn skipPads(outlet: *Outlet) void {
        while (outlet.at != outlet.ring.tail) {
            const header = outlet.headerAt(outlet.at);
            if (header.kind != layout.frame_kind_pad) break;
            outlet.at +%= frame.extentOf(header.size);
        }
        outlet.limit = outlet.at;
        outlet.giveBack();
    }

    /// Chooses the control frame that is sent at the next boundary. One that is chosen already
    /// stays, unless it is a credit of which the transport has taken no byte [stream.one_credit].
    fn nextControl(outlet: *Outlet, news: News) void {
        const is_waiting = outlet.control_size > 0;
        const is_credit = outlet.control[kind_offset] == layout.stream_kind_credit;
        if (is_waiting and (!is_credit or outlet.control_sent > 0)) return;
        switch (outlet.state) {
            .open, .closing => {},
            .failing => {
                outlet.setControl(layout.stream_kind_fail, @backingInt(news.reason));
                outlet.state = .last;
                return;
            },
            .last, .ended => return,
        }
        const is_empty = outlet.at == outlet.ring.tail;
        if (outlet.state == .closing and is_empty and outlet.sent == 0) {
            outlet.setControl(layout.stream_kind_close, 0);
            outlet.state = .last;
            return;
        }
        // [stream.credit_told]
        const more = news.given -% outlet.told;
        if (more == 0 or more <= outlet.spare and !is_waiting) return;
        outlet.told = news.given;
        outlet.setControl(layout.stream_kind_credit, news.given);
    }

    /// Returns how many bytes more have to be given back before a credit is due.
    pub fn dueIn(outlet: *const Outlet, given: u32) u32 {
        return outlet.spare + layout.frame_align -| (given -% outlet.told);
    }

    fn setControl(outlet: *Outlet, kind: u8, tag: u32) void {
        const header: frame.Header = .{ .size = 0, .kind = kind, .tag = tag }; // [stream.control]
        var bytes: [header_size]u8 align(layout.frame_align) = undefined;
        header.store(&bytes);
        outlet.control[0..header_size].* = bytes;
        outlet.control_size = header_size;
        outlet.control_sent = 0;
    }

    /// Collects what is sent next: first the rest of a frame that the transport has taken in part,
    /// then the control frame, then the frames after that [stream.unhindered].
    fn gather(outlet: *const Outlet, pieces: *[Transport.piece_count_max][]const u8) usize {
        var count: usize = 0;
        var begin = outlet.at +% outlet.sent;
        const control = outlet.control[outlet.control_sent..outlet.control_size];
        if (control.len > 0) {
            if (outlet.sent > 0) {
                const frame_end = outlet.at +% outlet.extentAt(outlet.at);
                pieces[count] = outlet.bytesOf(begin, frame_end);
                count += 1;
                begin = frame_end;
            }
            pieces[count] = control;
            count += 1;
            if (outlet.state == .last) return count;
        }
        if (begin != outlet.limit) {
            pieces[count] = outlet.bytesOf(begin, outlet.limit);
            count += 1;
        }
        return count;
    }

    /// Notes that the transport has taken so many bytes of what was collected.
    fn advance(outlet: *Outlet, taken: usize) void {
        var left = taken;
        while (left > 0) {
            const control_left = outlet.control_size - outlet.control_sent;
            if (outlet.sent == 0 and control_left > 0) {
                const size: u32 = @intCast(@min(left, control_left));
                outlet.control_sent += size;
                left -= size;
                if (outlet.control_sent == outlet.control_size) outlet.control_size = 0;
                if (outlet.control_size == 0) outlet.control_sent = 0;
                continue;
            }
            const extent = outlet.extentAt(outlet.at);
            const size: u32 = @intCast(@min(left, extent - outlet.sent));
            outlet.sent += size;
            left -= size;
            if (outlet.sent < extent) continue;
            outlet.at +%= extent;
            outlet.sent = 0;
        }
        outlet.giveBack();
    }

    /// Gives back to the port the room of what was sent.
    fn giveBack(outlet: *Outlet) void {
        const done = outlet.at -% outlet.ring.head;
        if (done > 0) outlet.ring.release(done);
        outlet.ring.flush();
    }

    fn extentAt(outlet: *const Outlet, position: u32) u32 {
        return frame.extentOf(outlet.headerAt(position).size);
    }

    fn headerAt(outlet: *const Outlet, position: u32) frame.Header {
        return .load(@alignCast(outlet.ring.area[outlet.offsetOf(position)..][0..header_size]));
    }

    fn bytesOf(outlet: *const Outlet, begin: u32, behind: u32) []const u8 {
        return outlet.ring.area[outlet.offsetOf(begin)..][0 .. behind -% begin];
    }

    fn offsetOf(outlet: *const Outlet, position: u32) u32 {
        return position & (outlet.ring.capacity - 1);
    }
};
