//! One writer, one reader, two cursors over a byte area [spec/ring.md].
//!
//! Invariant: each side works on private copies of both cursors. It touches the other side's cache
//! line only when its copy shows nothing to read, or no room. It checks the bounds of what it loads
//! there before it uses it.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const segment_file = @import("../memory/segment.zig");
const wait = @import("../wait/endpoint.zig");
const frame = @import("frame.zig");
const assert = std.debug.assert;
const Endpoint = wait.Endpoint;
const Link = @import("../wait/link.zig").Link;
const Peer = wait.Peer;
const Segment = segment_file.Segment;

pub const Error = error{RingCursor};

/// The control words, each on a cache line of its own. Atomic access only.
pub const Control = extern struct {
    tail: u32 align(line),
    head: u32 align(line),
    reader_wants: u32 align(line),
    writer_wants: u32 align(line),

    const line = layout.segment_align;
};

comptime {
    assert(@sizeOf(Control) == layout.ring_control_size);
    assert(@alignOf(Control) == layout.ring_control_align);
    assert(@offsetOf(Control, "tail") == layout.ring_tail_offset);
    assert(@offsetOf(Control, "head") == layout.ring_head_offset);
    assert(@offsetOf(Control, "reader_wants") == layout.ring_reader_wants_offset);
    assert(@offsetOf(Control, "writer_wants") == layout.ring_writer_wants_offset);
}

/// Returns the position at which an endpoint starts with its own cursor and with its copy of the
/// peer's [ring.start]. An endpoint that was vacated before starts at its own cursor as it stands
/// in the ring, where the peer has stored it. The low bits, which no valid cursor has set, are
/// cleared; the next check finds any other fault of the word [ring.start_again].
fn beginOf(endpoint: *const Endpoint, channel: segment_file.Channel, cursor: *const u32) u32 {
    if (endpoint.generation == 0) return channel.start;
    const low: u32 = layout.frame_align - 1;
    return @atomicLoad(u32, cursor, .seq_cst) & ~low;
}

/// For functions on the path of nearly every message: inlined, except where the size of the module
/// counts more (inlining takes 5 KB of 29 in `millrace.wasm`).
pub const hot: std.builtin.CallingConvention =
    if (builtin.mode == .small) .auto else .@"inline";

/// Whether to prefetch cache lines of the byte area: only on the processors where it was measured.
const asks = builtin.target.cpu.arch == .x86_64;
/// The size of a cache line, the unit in which bytes move between cores.
const line_size = 64;
/// How far ahead of `tail` a writer prefetches lines of the byte area: about as many messages as it
/// writes while a line comes from the reader's cache.
const ahead_size = 512;

/// Prefetches two lines of the byte area: a frame of 64 bytes lies in two, and the processor
/// fetches the lines after them by itself.
inline fn askFor(
    ring: anytype,
    position: u32,
    comptime purpose: std.lang.PrefetchOptions.Rw,
) void {
    if (!asks) return;
    inline for (.{ 0, line_size }) |step| {
        const offset = (position +% step) & (ring.capacity - 1);
        @prefetch(&ring.area[offset], .{ .rw = purpose, .locality = 3, .cache = .data });
    }
}

/// A place in the byte area, lent to the caller. Payloads start at multiples of 16.
pub const Bytes = []align(layout.frame_align) u8;

/// Copies a payload. Sizes of 16 to 128 bytes are copied with moves that may overlap instead of a
/// call of `memcpy`, by which an echo of 64 bytes gains 2 to 6 % (measured, x86-64).
pub inline fn copyBytes(target: []u8, source: []const u8) void {
    assert(target.len == source.len);
    const size = source.len;
    if (builtin.mode == .small) return @memcpy(target, source);
    switch (size) {
        16...31 => copyEnds(16, target, source),
        32...64 => copyEnds(32, target, source),
        65...128 => copyEnds(64, target, source),
        else => @memcpy(target, source),
    }
}

/// Copies the first and the last `count` bytes: all of the payload if it has at most twice as many.
inline fn copyEnds(comptime count: usize, target: []u8, source: []const u8) void {
    const Piece = @Vector(count, u8);
    const behind = source.len - count;
    const begin: Piece = source[0..count].*;
    const end: Piece = source[behind..][0..count].*;
    target[0..count].* = begin;
    target[behind..][0..count].* = end;
}

pub const RingWriter = struct {
    endpoint: *Endpoint,
    peer: Peer,
    control: *Control,
    area: [*]align(layout.segment_align) u8,
    capacity: u32,
    /// The position after the last finished frame.
    tail: u32,
    /// The `tail` that was last stored.
    published: u32,
    /// The private copy of the reader's `head`: the value that was checked and accepted last.
    head: u32,
    /// Whether `head` was loaded since the call began, or since the call last looked at its
    /// deadline. It is not loaded again before the next such look [ring.one_load].
    loaded: bool = false,
    /// The position of the open claim's frame.
    place: u32 = 0,
    /// The extent of the open claim; 0 when none is open.
    claimed: u32 = 0,
    /// How many waits the endpoint had begun when this ring was last published.
    waits: u32 = 0,
    /// How many bytes may be used without asking anybody: 0 where a link has to be asked first.
    limit: u32,
    /// Bytes of the pads before `tail`, except the last: where it stood, and its size. A smaller
    /// frame may have replaced that pad. Only where there is a link.
    padded: u32 = 0,
    pad_place: u32 = 0,
    pad_size: u32 = 0,
    /// Whether the frames of the message under way may go beyond the credit of a stream.
    granted: bool = false,

    /// Asserts that the channel is a ring of this segment that `endpoint` writes.
    pub fn init(endpoint: *Endpoint, segment: *const Segment, channel_index: u32) RingWriter {
        const channel = segment.channels[channel_index];
        assert(channel.kind == .ring);
        assert(channel.writer == endpoint.index);
        assert(segment_file.capacityValid(channel.data_size));
        const control: *Control = @ptrCast(@alignCast(segment.base + channel.control_offset));
        const begin = beginOf(endpoint, channel, &control.tail);
        return .{
            .endpoint = endpoint,
            .peer = .init(segment, endpoint.index, channel.reader),
            .control = control,
            .area = @alignCast(segment.base + channel.data_offset),
            .capacity = channel.data_size,
            .limit = channel.data_size - layout.ring_reserve,
            .tail = begin,
            .published = begin,
            .head = begin,
        };
    }

    /// Returns the largest payload of one frame. With its header, a frame takes at most half the
    /// capacity, or at most what the peer of a link accepts.
    pub fn sizeMax(ring: *const RingWriter) u32 {
        const half = ring.capacity / 2;
        const link = if (ring.limit > 0) null else ring.endpoint.linked();
        const most = if (link) |there| @min(half, there.largest.load(.monotonic)) else half;
        return most - layout.frame_header_size;
    }

    /// Returns the bytes from `tail` to the end of the byte area.
    pub fn toEnd(ring: *const RingWriter) u32 {
        return ring.capacity - (ring.tail & (ring.capacity - 1));
    }

    /// Lends the place of a payload, or returns null when there is no room.
    ///
    /// Asserts that no claim is open and that the size is at most `sizeMax`.
    pub fn claim(ring: *RingWriter, size: u32) callconv(hot) Error!?Bytes {
        assert(ring.claimed == 0);
        assert(size <= ring.sizeMax());
        const extent = frame.extentOf(size);
        const to_end = ring.toEnd();
        // [ring.pad] A frame is contiguous, so a pad fills what is left before the end of the area.
        const pad = if (extent > to_end) to_end else 0;
        if (!try ring.room(pad, extent)) return null;
        if (pad > 0) ring.placePad(pad);
        ring.place = ring.tail +% pad;
        ring.claimed = extent;
        return ring.payloadAt(ring.place, size);
    }

    /// Takes the open claim back. The reader sees nothing of it, because `tail` was not stored.
    pub fn abandon(ring: *RingWriter) void {
        assert(ring.claimed > 0);
        ring.claimed = 0;
    }

    /// Completes the claimed frame with its header. A smaller payload keeps its place.
    ///
    /// Asserts that a claim is open that the payload fits.
    pub fn finish(ring: *RingWriter, header: frame.Header) callconv(hot) void {
        const extent = frame.extentOf(header.size);
        assert(extent <= ring.claimed);
        header.store(ring.headerAt(ring.place));
        ring.tail = ring.place +% extent;
        ring.claimed = 0;
    }

    /// Makes every finished frame visible to the reader, and wakes it if it asked for that.
    ///
    /// Stores `tail` once, for any number of frames [ring.batch]. An open claim stays open, because
    /// its frame lies after `tail`.
    ///
    /// Asserts that at least one frame was finished since the last publish.
    pub fn publish(ring: *RingWriter) callconv(hot) void {
        assert(ring.tail != ring.published);
        ring.published = ring.tail;
        // [ring.publish] Payload first, cursor second: a reader that sees this cursor must also see
        // the payload. Sequentially consistent, because `wake` loads `reader_wants` next. Apart
        // from `beginAnew`, nothing else stores this word [ring.tail_owner].
        @atomicStore(u32, &ring.control.tail, ring.tail, .seq_cst);
        ring.endpoint.wake(&ring.control.reader_wants, ring.tail, ring.peer.record);
        ring.askAhead();
    }

    /// Prefetches the lines of the next frame. A write calls it early, because the lines are in the
    /// cache of a reader that waits for this frame and looks at them all the time. An echo of 64
    /// bytes gains 5 % by it (measured, x86-64).
    pub inline fn askNext(ring: *const RingWriter) void {
        askFor(ring, ring.tail, .write);
    }

    /// Prefetches lines that will be written soon and that the reader's cache still holds from the
    /// last time round. Otherwise each store of `tail` waits for them at its fence: a stream of 64
    /// bytes then takes 120 to 280 ns a message, and 40 with this (measured, x86-64). Not done
    /// where unread frames may lie, which the reader is about to need; nor after a wait, because a
    /// writer that waits between messages needs the lines much later, and an echo takes 5 % longer.
    inline fn askAhead(ring: *RingWriter) void {
        const waits = ring.endpoint.waits;
        defer ring.waits = waits;
        if (ring.waits != waits) return;
        if (ring.tail -% ring.head + ahead_size + 2 * line_size > ring.capacity) return;
        askFor(ring, ring.tail +% ahead_size, .write);
    }

    /// Publishes the frames that are finished, if there are any [ring.publish_all].
    pub fn flush(ring: *RingWriter) void {
        if (ring.tail != ring.published) ring.publish();
    }

    /// Places and publishes the `end` frame [frame.end], in the 16 bytes that no other frame may
    /// take, so that it never has to wait [pipe.end_now].
    pub fn end(ring: *RingWriter) void {
        assert(ring.claimed == 0);
        assert(ring.tail -% ring.head <= ring.capacity - layout.ring_reserve);
        const header: frame.Header = .{ .size = 0, .kind = layout.frame_kind_end };
        header.store(ring.headerAt(ring.tail));
        ring.tail +%= layout.frame_header_size;
        ring.publish();
    }

    /// Whether so many bytes of pads and frames are free after `tail`, and 16 more [ring.room].
    /// Loads the reader's cursor if that is needed and was not done yet.
    pub fn room(ring: *RingWriter, pads: u32, extents: u32) callconv(hot) Error!bool {
        if (ring.tail -% ring.head + pads + extents <= ring.limit) return true;
        return ring.roomElse(pads, extents);
    }

    fn roomElse(ring: *RingWriter, pads: u32, extents: u32) callconv(hot) Error!bool {
        if (ring.endpoint.linked()) |link| return ring.roomFor(link, pads, extents);
        if (ring.loaded) return false;
        try ring.refresh();
        return ring.tail -% ring.head + pads + extents <= ring.limit;
    }

    noinline fn roomFor(ring: *RingWriter, link: *Link, pads: u32, extents: u32) Error!bool {
        ring.countPad();
        if (ring.fits(link, pads, extents)) return true;
        if (ring.loaded) return false;
        try ring.refresh();
        return ring.fits(link, pads, extents);
    }

    /// `room` for all frames of one message, where each frame but the last has the size that
    /// `chunkSize` of the writer gives it.
    pub fn roomForMany(ring: *RingWriter, pads: u32, extents: u32) Error!bool {
        const link = ring.endpoint.linked() orelse return ring.room(pads, extents);
        if (!ring.loaded) try ring.refresh();
        ring.granted = true;
        defer ring.granted = false;
        return ring.fits(link, pads, extents) and link.allowsMany(ring.placed(), extents);
    }

    fn fits(ring: *const RingWriter, link: *const Link, pads: u32, extents: u32) bool {
        const limit = ring.capacity - layout.ring_reserve;
        if (ring.tail -% ring.head + pads + extents > limit) return false;
        return ring.granted or link.allows(ring.placed(), extents);
    }

    /// Returns the bytes of the frames before `tail` since the ring began. Pads do not count.
    pub fn placed(ring: *const RingWriter) u32 {
        return ring.tail -% ring.padded -% ring.uncounted();
    }

    fn countPad(ring: *RingWriter) void {
        if (ring.tail == ring.pad_place) return;
        ring.padded +%= ring.uncounted();
        ring.pad_size = 0;
    }

    /// Returns the bytes of the last pad, if it stands before `tail`. The claim that it was placed
    /// for may have been abandoned, and another frame may stand there.
    fn uncounted(ring: *const RingWriter) u32 {
        if (ring.pad_size == 0 or ring.tail == ring.pad_place) return 0;
        const header: frame.Header = .load(ring.headerAt(ring.pad_place));
        return if (header.kind == layout.frame_kind_pad) ring.pad_size else 0;
    }

    /// Loads the reader's cursor once, and checks it [ring.cursor].
    pub fn refresh(ring: *RingWriter) Error!void {
        ring.loaded = true;
        if (ring.endpoint.linked()) |link| link.pump();
        const head = @atomicLoad(u32, &ring.control.head, .acquire);
        const used = ring.published -% head;
        if (head % layout.frame_align != 0) return error.RingCursor;
        if (used > ring.capacity) return error.RingCursor;
        if (used > ring.published -% ring.head) return error.RingCursor;
        ring.head = head;
    }

    /// Returns the `head` at which a frame of this size has room [wait.writer_asks].
    pub fn headFor(ring: *const RingWriter, size: u32) u32 {
        const extent = frame.extentOf(size);
        const to_end = ring.toEnd();
        const pad = if (extent > to_end) to_end else 0;
        return ring.tail +% (pad + extent + layout.ring_reserve) -% ring.capacity;
    }

    /// Starts again at the last published position, for the next owner of the reader's endpoint,
    /// which is being vacated. Frames that are claimed, finished, or published and unread are
    /// dropped [segment.vacate_words].
    pub fn beginAnew(ring: *RingWriter) void {
        ring.tail = ring.published;
        ring.head = ring.published;
        ring.claimed = 0;
        ring.loaded = false;
        makeEqual(ring.control, ring.published);
        @atomicStore(u32, &ring.control.reader_wants, 0, .seq_cst);
    }

    /// [frame.pad]
    fn placePad(ring: *RingWriter, extent: u32) void {
        const header: frame.Header = .{
            .size = extent - layout.frame_header_size,
            .kind = layout.frame_kind_pad,
        };
        header.store(ring.headerAt(ring.tail));
        ring.pad_place = ring.tail;
        ring.pad_size = extent;
    }

    inline fn headerAt(
        ring: *const RingWriter,
        position: u32,
    ) *align(layout.frame_align) [layout.frame_header_size]u8 {
        assert(position % layout.frame_align == 0);
        const offset = position & (ring.capacity - 1);
        return @alignCast(ring.area[offset..][0..layout.frame_header_size]);
    }

    inline fn payloadAt(ring: *const RingWriter, position: u32, size: u32) Bytes {
        const offset = (position & (ring.capacity - 1)) + layout.frame_header_size;
        assert(offset + size <= ring.capacity);
        return @alignCast(ring.area[offset..][0..size]);
    }
};

pub const RingReader = struct {
    endpoint: *Endpoint,
    peer: Peer,
    control: *Control,
    area: [*]align(layout.segment_align) u8,
    capacity: u32,
    /// The position of the next frame to read.
    head: u32,
    /// The `head` that was last stored.
    stored: u32,
    /// The private copy of the writer's `tail`: the value that was checked and accepted last.
    tail: u32,
    /// What a wait for many rings knows of `reader_wants`, which it leaves armed between two calls.
    asked: Asked = .no,

    pub const Asked = enum {
        /// The word is not armed, or the writer has rung: the wait has to look at the ring.
        no,
        /// The word is armed, and the wait has to look at the ring once more.
        now,
        /// The word is armed, and a look after that found nothing: the writer rings for more.
        before,
    };

    /// Asserts that the channel is a ring of this segment that `endpoint` reads.
    pub fn init(endpoint: *Endpoint, segment: *const Segment, channel_index: u32) RingReader {
        const channel = segment.channels[channel_index];
        assert(channel.kind == .ring);
        assert(channel.reader == endpoint.index);
        assert(segment_file.capacityValid(channel.data_size));
        const control: *Control = @ptrCast(@alignCast(segment.base + channel.control_offset));
        const begin = beginOf(endpoint, channel, &control.head);
        return .{
            .endpoint = endpoint,
            .peer = .init(segment, endpoint.index, channel.writer),
            .control = control,
            .area = @alignCast(segment.base + channel.data_offset),
            .capacity = channel.data_size,
            .head = begin,
            .stored = begin,
            .tail = begin,
        };
    }

    /// Whether everything up to the last accepted `tail` was read.
    pub inline fn empty(ring: *const RingReader) bool {
        return ring.head == ring.tail;
    }

    /// Loads the writer's cursor once, and checks it [ring.cursor].
    pub fn refresh(ring: *RingReader) callconv(hot) Error!void {
        // [ring.acquire] The bytes that the cursor covers are read after this load.
        var tail = @atomicLoad(u32, &ring.control.tail, .acquire);
        if (tail == ring.tail) if (ring.endpoint.linked()) |link| {
            link.pump();
            tail = @atomicLoad(u32, &ring.control.tail, .acquire);
        };
        const available = tail -% ring.head;
        if (tail % layout.frame_align != 0) return error.RingCursor;
        if (available > ring.capacity) return error.RingCursor;
        if (available < ring.tail -% ring.head) return error.RingCursor;
        ring.tail = tail;
    }

    /// Loads the header of the next frame, once.
    ///
    /// Asserts that there is a frame.
    pub inline fn header(ring: *const RingReader) frame.Header {
        assert(!ring.empty());
        const offset = ring.head & (ring.capacity - 1);
        return .load(@alignCast(ring.area[offset..][0..layout.frame_header_size]));
    }

    /// Prefetches the lines of the next frame while the load of `tail` is under way. Otherwise the
    /// two transfers between the cores come one after the other, and an echo of 64 bytes takes 1.2
    /// to 1.4 times as long (measured, x86-64). What the lines hold by then is not used.
    inline fn askNext(ring: *const RingReader) void {
        askFor(ring, ring.head, .read);
    }

    pub inline fn framePlace(ring: *const RingReader) frame.Place {
        const offset = ring.head & (ring.capacity - 1);
        return .{
            .available = ring.tail -% ring.head,
            .to_end = ring.capacity - offset,
            .capacity = ring.capacity,
            .payload = @alignCast(ring.area + offset + layout.frame_header_size),
        };
    }

    /// Returns the payload of the next frame where it lies. The peer can write there at any time.
    ///
    /// Asserts that the size was checked.
    pub inline fn payload(ring: *const RingReader, size: u32) Bytes {
        const offset = (ring.head & (ring.capacity - 1)) + layout.frame_header_size;
        assert(offset + size <= ring.capacity);
        return @alignCast(ring.area[offset..][0..size]);
    }

    /// Releases the next frame. Stores `head` at once if nothing is left to read, or if the writer
    /// waits, and otherwise when a quarter of the capacity is released [ring.release_early].
    pub fn release(ring: *RingReader, extent: u32) callconv(hot) void {
        assert(extent > 0);
        assert(extent <= ring.tail -% ring.head);
        ring.head +%= extent;
        const is_much = ring.head -% ring.stored >= ring.capacity / 4;
        if (ring.empty() or is_much or isAsked(&ring.control.writer_wants)) ring.flush();
    }

    /// Gives back the room of all released frames, if there are any [ring.release_all].
    pub fn flush(ring: *RingReader) callconv(hot) void {
        if (ring.head == ring.stored) return;
        ring.stored = ring.head;
        // [ring.release] The last access to these bytes came before. Sequentially consistent,
        // because `wake` loads `writer_wants` next. Apart from `beginAnew`, nothing else stores
        // this word [ring.head_owner].
        @atomicStore(u32, &ring.control.head, ring.head, .seq_cst);
        ring.endpoint.wake(&ring.control.writer_wants, ring.head, ring.peer.record);
    }

    /// Starts again at the position up to which it has read, for the next owner of the writer's
    /// endpoint, which is being vacated [segment.vacate_words].
    pub fn beginAnew(ring: *RingReader) void {
        ring.tail = ring.head;
        ring.stored = ring.head;
        makeEqual(ring.control, ring.head);
        @atomicStore(u32, &ring.control.writer_wants, 0, .seq_cst);
    }
};

/// Whether the writer waits for room, so that each frame is given back at once
/// [ring.release_asked]. While it does not wait, nobody stores the word, and the load costs next to
/// nothing.
pub inline fn isAsked(writer_wants: *const u32) bool {
    return @atomicLoad(u32, writer_wants, .monotonic) != 0;
}

/// Called by the side that vacates: stores both cursors [ring.tail_owner] [ring.head_owner].
fn makeEqual(control: *Control, position: u32) void {
    @atomicStore(u32, &control.tail, position, .seq_cst);
    @atomicStore(u32, &control.head, position, .seq_cst);
}

/// What an endpoint waits for: data, room, or both, and always a change of a state. It is the
/// `condition` of `Endpoint.wait`.
pub const Wait = struct {
    endpoint: *Endpoint,
    /// Waits for data in this ring.
    reader: ?*RingReader = null,
    /// Waits for room in this ring, for a frame with a payload of `size`.
    writer: ?*RingWriter = null,
    size: u32 = 0,

    /// Whether a cursor has moved so that there is something to do. Its value is not checked here.
    pub inline fn glance(condition: *const Wait, comptime order: std.lang.AtomicOrder) bool {
        // One copy of the code where size counts: the strongest order is right for every caller.
        return condition.glanceIn(if (builtin.mode == .small) .seq_cst else order);
    }

    fn glanceIn(condition: *const Wait, comptime order: std.lang.AtomicOrder) callconv(hot) bool {
        if (condition.reader) |ring| {
            const tail = @atomicLoad(u32, &ring.control.tail, order);
            ring.askNext();
            if (tail != ring.tail) return true;
        }
        if (condition.writer) |ring| {
            const used = ring.published -% @atomicLoad(u32, &ring.control.head, order);
            const allowed = if (ring.endpoint.linked()) |link|
                link.allows(ring.placed(), frame.extentOf(condition.size))
            else
                true;
            if (allowed and used <= ring.published -% ring.headFor(condition.size)) return true;
            // A cursor that went back is a fault, which the call that uses it next finds.
            if (used > ring.published -% ring.head) return true;
        }
        return false;
    }

    /// Whether anything can end the wait: a cursor or a state [wait.recheck].
    pub fn look(condition: *const Wait, comptime order: std.lang.AtomicOrder) bool {
        if (condition.glance(order)) return true;
        return condition.lookAtStates();
    }

    fn lookAtStates(condition: *const Wait) bool {
        if (condition.endpoint.state().final()) return true;
        // The call that waits asks this private record of the peer afterwards. A state that only
        // another record has seen must not end the wait, because the call would then wait again at
        // once.
        return condition.peer().state().final();
    }

    pub fn arm(condition: *const Wait, first: bool) bool {
        if (condition.reader) |ring| {
            // [wait.reader_asks]
            armWord(&ring.control.reader_wants, ring.head +% layout.frame_align);
        }
        const ring = condition.writer orelse return false;
        var position = ring.headFor(condition.size);
        // [wait.writer_more] Asking for more room keeps a full ring from trading one frame per
        // wake. Only in the first round, because the reader may be waiting for this very frame.
        const most = ring.tail -% position;
        const more = if (first) @min(most, ring.capacity / 4) else 0;
        position +%= more;
        armWord(&ring.control.writer_wants, position);
        return more > 0;
    }

    pub fn disarm(condition: *const Wait) void {
        if (condition.reader) |ring| {
            @atomicStore(u32, &ring.control.reader_wants, 0, .seq_cst);
            ring.asked = .no;
        }
        if (condition.writer) |ring| @atomicStore(u32, &ring.control.writer_wants, 0, .seq_cst);
    }

    pub fn slice(condition: *const Wait, mechanism: u32) u64 {
        return condition.peer().slice(mechanism);
    }

    /// The private record of the waiting call. With two rings, both peers are one endpoint.
    fn peer(condition: *const Wait) *Peer {
        return if (condition.writer) |ring| &ring.peer else &condition.reader.?.peer;
    }

    fn armWord(wants: *u32, position: u32) void {
        assert(position % layout.frame_align == 0);
        // [wait.store_order] `wants` is stored before the cursor is loaded again.
        @atomicStore(u32, wants, position | layout.wants_armed, .seq_cst);
    }
};

// Tests.
//
// Rings: the example's bytes, room, pads, wrap-around at 2^32, and the bounds of both cursors.

const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Pair = fixture.Pair;

const data: frame.Header = .{ .size = 0, .kind = 1, .flags = 3 };

fn word(pair: *Pair, offset: usize) u32 {
    return std.mem.readInt(u32, pair.memory[512 + offset ..][0..4], .little);
}

test "the example: a frame after 2^32, and a reader that asked for it" {
    var pair: Pair = undefined;
    try pair.init(256, 0xffff_ff80);
    const filler: [112]u8 = @splat(1);
    try pair.writer.write(&filler, .{}, .none);
    try pair.expectMessage(&filler, 0);
    try testing.expectEqual(0, word(&pair, 0));
    try testing.expectEqual(0, word(&pair, 128));

    const condition: Wait = .{
        .endpoint = &pair.endpoints[1],
        .reader = &pair.reader.ring,
    };
    _ = condition.arm(true);
    try testing.expectEqual(0x11, word(&pair, 256));
    const bell = pair.segment.record(1).bell;
    try pair.writer.write("hello", .{}, .none);
    try testing.expectEqual(0x20, word(&pair, 0));
    try testing.expectEqual(0, word(&pair, 256)); // exchanged
    try testing.expectEqual(bell +% 1, pair.segment.record(1).bell);
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes);
    const bytes = [_]u8{ 5, 0, 0, 0, 1, 3, 0, 0 };
    try testing.expectEqualSlices(u8, &bytes, pair.memory[1024..1032]);
    try testing.expectEqualSlices(u8, "hello", pair.memory[1040..1045]);

    // The next frame, of extent 128, starts at 32. One more of them follows after a pad of extent
    // 96.
    try pair.writer.write(filler[0..112], .{}, .none);
    try testing.expectEqual(160, word(&pair, 0));
    try testing.expectEqual(false, try pair.writer.tryWrite(&filler, .{}));
    try pair.expectMessage("hello", 0);
    try pair.expectMessage(&filler, 0);
    try testing.expect(try pair.writer.tryWrite(&filler, .{}));
    const pad = pair.memory[1024 + 160 ..][0..8];
    try testing.expectEqualSlices(u8, &.{ 80, 0, 0, 0, 6, 0, 0, 0 }, pad);
    try pair.expectMessage(&filler, 0);
    try pair.expectNothing();
}

test "a ring takes frames until 16 bytes are left, and the end takes those" {
    for ([_]u32{ 0, 16, 240, 0xffff_ff00, 0xffff_fff0 }) |start| {
        var pair: Pair = undefined;
        try pair.init(256, start);
        for (0..15) |index| try pair.writer.write("", .{ .tag = @intCast(index) }, .none);
        try testing.expectEqual(false, try pair.writer.tryWrite("", .{}));
        try pair.writer.end();
        try testing.expectEqual(start +% 256, word(&pair, 0));
        try testing.expectError(error.PipeEnded, pair.writer.write("", .{}, .none));
        for (0..15) |index| try pair.expectMessage("", @intCast(index));
        for (0..2) |_| try pair.expectNothing();
        try testing.expect(pair.reader.ended());
    }
}

test "every size fits an empty ring in every position, and comes back whole" {
    var payload: [112]u8 = undefined;
    for (0..16) |place| for (0..113) |size| {
        var pair: Pair = undefined;
        try pair.init(256, @as(u32, 0xffff_ff00) +% @as(u32, @intCast(place * 16)));
        fixture.pattern(payload[0..size], @intCast(size));
        for (0..3) |round| {
            const envelope: millrace.Envelope = .{ .tag = @intCast(round) };
            try testing.expect(try pair.writer.tryWrite(payload[0..size], envelope));
            try pair.expectMessage(payload[0..size], @intCast(round));
        }
        try pair.expectNothing();
    };
}

test "a ring that is exactly full with a pad" {
    var pair: Pair = undefined;
    try pair.init(256, 128 + 16);
    const filler: [112]u8 = @splat(7);
    // There are 112 bytes to the end. The frame of 128 needs the pad, and both together leave the
    // reserve.
    try testing.expect(try pair.writer.tryWrite(&filler, .{}));
    try testing.expectEqual(144 + 112 + 128, word(&pair, 0));
    try testing.expectEqual(false, try pair.writer.tryWrite("", .{}));
    try pair.expectMessage(&filler, 0);
    try testing.expect(try pair.writer.tryWrite("", .{}));
}

test "ring.cursor: the reader accepts a tail between its head and the capacity, multiples of 16" {
    const start: u32 = 0xffff_ffe0;
    const Case = struct { tail: u32, ok: bool };
    for ([_]Case{
        .{ .tail = start, .ok = true },
        .{ .tail = start +% 16, .ok = true },
        .{ .tail = start +% 256, .ok = true },
        .{ .tail = start +% 8, .ok = false },
        .{ .tail = start +% 1, .ok = false },
        .{ .tail = start +% 272, .ok = false },
        .{ .tail = start -% 16, .ok = false },
        .{ .tail = start +% 0x8000_0000, .ok = false },
    }) |case| {
        var pair: Pair = undefined;
        try pair.init(256, start);
        @atomicStore(u32, &pair.reader.ring.control.tail, case.tail, .seq_cst);
        if (case.ok) {
            try pair.reader.ring.refresh();
        } else {
            try pair.expectCorrupt(.ring_cursor);
        }
    }
}

test "ring.cursor: a tail that goes back within bounds is a fault" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    for (0..4) |_| try pair.writer.write("", .{}, .none);
    try pair.expectMessage("", 0); // has seen 64
    @atomicStore(u32, &pair.reader.ring.control.tail, 48, .seq_cst);
    for (0..3) |_| try pair.expectMessage("", 0);
    try pair.expectCorrupt(.ring_cursor);
}

test "ring.cursor: the writer accepts a head that advances up to its tail" {
    const Case = struct { head: u32, ok: bool };
    const start: u32 = 0xffff_ff80;
    for ([_]Case{
        .{ .head = start, .ok = true },
        .{ .head = start +% 128, .ok = true },
        .{ .head = start +% 240, .ok = true },
        .{ .head = start +% 256, .ok = false },
        .{ .head = start -% 16, .ok = false },
        .{ .head = start +% 4, .ok = false },
        .{ .head = start +% 0x7fff_fff0, .ok = false },
    }) |case| {
        var pair: Pair = undefined;
        try pair.init(256, start);
        for (0..15) |_| try pair.writer.write("", .{}, .none);
        @atomicStore(u32, &pair.writer.ring.control.head, case.head, .seq_cst);
        const written = pair.writer.tryWrite("", .{});
        if (case.ok) {
            try testing.expectEqual(case.head != start, try written);
            // The same cursor is valid; a cursor that goes back is a fault.
            if (case.head == start) continue;
            while (try pair.writer.tryWrite("", .{})) {}
            @atomicStore(u32, &pair.writer.ring.control.head, start, .seq_cst);
            try testing.expectError(error.Corrupt, pair.writer.tryWrite("", .{}));
        } else {
            for (0..2) |_| {
                try testing.expectError(error.Corrupt, written);
                try testing.expectEqual(millrace.Reason.ring_cursor, pair.writer.reason().?);
            }
            try testing.expectEqual(16 << 8 | 3, pair.segment.record(1).state);
        }
    }
}

test "many finished frames, one publish; abandon takes back; a claim may shrink" {
    var pair: Pair = undefined;
    try pair.init(512, 0xffff_fff0);
    for (0..3) |index| {
        const bytes = try pair.writer.claim(10, .none);
        @memset(bytes, @intCast(index));
        pair.writer.finish(@intCast(index), .{ .tag = @intCast(index) });
        try pair.expectNothing();
    }
    _ = try pair.writer.claim(200, .none);
    pair.writer.abandon();
    pair.writer.publish();
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes_elided);
    try pair.expectMessage("", 0);
    try pair.expectMessage("\x01", 1);
    try pair.expectMessage("\x02\x02", 2);
    try pair.expectNothing();
}

test "the reader stores head when it has read what it saw, or a quarter of the capacity" {
    var pair: Pair = undefined;
    try pair.init(1024, 0);
    for (0..40) |_| try pair.writer.write("", .{}, .none);
    for (1..41) |read| {
        try pair.expectMessage("", 0);
        const all_read: u32 = 640;
        const stored = if (read < 40) @as(u32, @intCast(read)) / 16 * 256 else all_read;
        try testing.expectEqual(stored, word(&pair, 128));
    }
}

test "the reader stores head with each frame while the writer waits [ring.release_asked]" {
    var pair: Pair = undefined;
    try pair.init(1024, 0xffff_fff0);
    const begin = pair.reader.ring.head;
    for (0..40) |_| try pair.writer.write("", .{}, .none);
    const condition: Wait = .{
        .endpoint = &pair.endpoints[0],
        .writer = &pair.writer.ring,
        .size = 496,
    };
    // For whatever the writer asks: this needs 144 bytes, and first asks for a quarter more.
    for ([_]bool{ true, false }) |asks_more| {
        try testing.expectEqual(asks_more, condition.arm(asks_more));
        for (0..4) |_| {
            try pair.expectMessage("", 0);
            try testing.expectEqual(pair.reader.ring.head, word(&pair, 128));
        }
        condition.disarm();
        try pair.expectMessage("", 0);
        try testing.expect(pair.reader.ring.head != word(&pair, 128));
    }
    try testing.expectEqual(begin +% 10 * 16, pair.reader.ring.head);
}

test "a writer that waits asks first for more, then for exactly what it needs" {
    var pair: Pair = undefined;
    try pair.init(1024, 0);
    for (0..63) |_| try pair.writer.write("", .{}, .none);
    const condition: Wait = .{
        .endpoint = &pair.endpoints[0],
        .writer = &pair.writer.ring,
        .size = 100,
    };
    // tail 1008 plus pad 16, extent 128 and reserve 16, minus the capacity: head must reach 144.
    try testing.expect(condition.arm(true));
    try testing.expectEqual(144 + 256 + 1, word(&pair, 384));
    try testing.expect(!condition.arm(false));
    try testing.expectEqual(144 + 1, word(&pair, 384));
    try testing.expect(!condition.look(.seq_cst));
    condition.disarm();
    try testing.expectEqual(0, word(&pair, 384));
    for (0..16) |_| try pair.expectMessage("", 0);
    try testing.expect(condition.look(.seq_cst));
}
