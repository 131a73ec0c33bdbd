//! The writing end of a fanout [spec/fanout.md].
//!
//! Invariant: a byte of the area is written only if every reader that counts has given it back
//! (mode `hold`), or if it is below a floor that was stored before (mode `lose`).

const std = @import("std");
const layout = @import("../memory/layout.zig");
const fanout = @import("fanout.zig");
const frame = @import("../ring/frame.zig");
const host_file = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const ring_file = @import("../ring/side.zig");
const segment_file = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const wait = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Bytes = ring_file.Bytes;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Envelope = pipe.Envelope;
const Peer = wait.Peer;
const Place = fanout.Place;
const Record = fanout.Record;
const Segment = segment_file.Segment;
const State = segment_record.State;
const Timeout = host_file.Timeout;
const WriteError = fanout.Fanout.WriteError;

const whole = layout.frame_flag_first | layout.frame_flag_last;
const joined: u32 = layout.fanout_joined;

/// The writing end of a fanout.
///
/// Thread safety: belongs to the thread of its endpoint.
pub const Writer = struct {
    endpoint: *Endpoint,
    place: Place,
    /// What the writer knows of each reader, in the caller's storage.
    seats: []Seat,
    /// The position after the last finished frame.
    tail: u32,
    /// The `tail` that was last stored.
    published: u32,
    /// Mode `hold`: the position that the slowest reader holds, as it was found last, or the
    /// published `tail` if no reader counts. Mode `lose`: the floor.
    oldest: u32,
    /// The record of the slowest reader.
    slowest: ?u32 = null,
    era: u32,
    /// The number of the next message, in mode `lose`.
    number: u64 = 0,
    ended: bool = false,

    /// What the writer knows of one reader.
    pub const Seat = struct {
        peer: Peer = undefined,
        /// The position of the first byte that the reader holds, or may start at.
        held: u32 = 0,
        /// Whether the state of its endpoint was found final: it never counts again [fanout.gone].
        gone: bool = false,
    };

    /// Returns the channel for `init`: the named one, or the first that endpoint `index` writes.
    /// Call it before `Endpoint.attach`.
    pub fn find(
        segment: *const Segment,
        index: u32,
        named: ?u32,
    ) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
        return fanout.find(segment, index, named, .writer);
    }

    /// Creates the writer. It keeps using `seats`; 255 always suffice.
    ///
    /// Asserts that `find` has returned this channel for this endpoint, and that there is a seat
    /// for each record. `endpoint` must not move while the writer is used.
    pub fn init(
        endpoint: *Endpoint,
        segment: *const Segment,
        channel_index: u32,
        seats: []Seat,
    ) Writer {
        const place: Place = .init(segment, channel_index);
        const plan = place.plan;
        assert(plan.writer == endpoint.index);
        assert(seats.len >= plan.record_count);
        for (seats[0..plan.record_count], 0..) |*seat, record| {
            seat.* = .{
                .peer = .init(segment, endpoint.index, plan.endpointOf(@intCast(record))),
                .held = plan.position,
            };
        }
        return .{
            .endpoint = endpoint,
            .place = place,
            .seats = seats[0..plan.record_count],
            .tail = plan.position,
            .published = plan.position,
            .oldest = plan.position,
            .era = plan.eraOf(),
        };
    }

    /// Returns the payload size of the largest message.
    pub fn sizeMax(writer: *const Writer) u32 {
        return writer.place.plan.sizeMax();
    }

    /// Writes a message to all readers. In mode `hold`, waits for room for as long as the timeout
    /// allows; in mode `lose`, never waits.
    ///
    /// Asserts that the kind is that of a message.
    pub fn write(
        writer: *Writer,
        payload: []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!void {
        const written = try writer.writeMany(&.{payload}, envelope, timeout);
        if (written == 0) return error.Timeout;
    }

    /// Writes a message, or returns false if a reader has not made room for it yet.
    pub fn tryWrite(writer: *Writer, payload: []const u8, envelope: Envelope) WriteError!bool {
        return try writer.writeMany(&.{payload}, envelope, .none) == 1;
    }

    /// Writes many messages, and makes them visible with as few stores as the room allows. Returns
    /// how many were written before the deadline passed.
    pub fn writeMany(
        writer: *Writer,
        payloads: []const []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!usize {
        var deadline: Deadline = .init(timeout);
        return writer.writeManyBy(payloads, envelope, &deadline);
    }

    /// `writeMany` with a deadline that several calls share.
    pub fn writeManyBy(
        writer: *Writer,
        payloads: []const []const u8,
        envelope: Envelope,
        deadline: *Deadline,
    ) WriteError!usize {
        assert(envelope.valid());
        try writer.check();
        for (payloads) |payload| {
            if (payload.len > writer.sizeMax()) return error.MessageSize; // [fanout.size]
        }
        defer writer.flush();
        for (payloads, 0..) |payload, index| {
            while (!writer.placeMessage(payload, envelope)) {
                if (deadline.over(writer.endpoint.host)) return index;
                switch (writer.awaitRoom(@intCast(payload.len), deadline)) {
                    .found => try writer.check(),
                    .timeout => return index,
                    .forbidden => return error.WaitForbidden,
                }
            }
        }
        return payloads.len;
    }

    /// Ends the stream: every reader gets everything written so far, and then the end. Never waits.
    /// Ending again does nothing.
    pub fn end(writer: *Writer) WriteError!void {
        if (writer.ended) return;
        try writer.check();
        writer.flush();
        const header: frame.Header = .{ .size = 0, .kind = layout.frame_kind_end };
        header.store(writer.headerAt(writer.tail));
        writer.tail +%= layout.frame_header_size;
        // [fanout.ended] Before `tail`: a reader that begins at that one must find this word.
        const word = &writer.place.control.ended;
        @atomicStore(u32, word, writer.tail | layout.fanout_joined, .seq_cst);
        writer.flush();
        writer.ended = true;
    }

    /// Returns the reason for the last `error.PipeFailed` [pipe.failed_reason].
    pub fn reason(writer: *const Writer) ?layout.Reason {
        return writer.endpoint.behind;
    }

    /// [fanout.first_answer]
    fn check(writer: *Writer) WriteError!void {
        if (writer.endpoint.closedHere()) return writer.endpoint.whyClosed();
        try pipe.checkOwn(writer.endpoint);
        if (writer.ended) return error.PipeEnded;
    }

    /// Places a message, or returns false if there is no room. In that case, everything finished is
    /// published, and the words of every reader were loaded.
    fn placeMessage(writer: *Writer, payload: []const u8, envelope: Envelope) bool {
        const plan = writer.place.plan;
        const prefix: u32 = if (plan.loses) layout.header_extension_size else 0;
        const size = prefix + @as(u32, @intCast(payload.len));
        const extent = frame.extentOf(size);
        if (plan.loses and writer.tail -% writer.published > plan.capacity / 4) {
            writer.flush(); // [fanout.unpublished]
        }
        const pad = writer.padFor(extent);
        if (plan.loses) {
            writer.raiseFloor(pad + extent);
        } else if (!writer.fits(pad + extent)) {
            writer.flush(); // [ring.publish_all]
            writer.countReaders();
            if (!writer.fits(pad + extent)) return false;
        }
        if (pad > 0) writer.placePad(pad);
        const bytes = writer.payloadAt(writer.tail, size);
        if (plan.loses) {
            writer.placeNumber(bytes[0..layout.header_extension_size]);
            writer.number += 1;
        }
        ring_file.copyBytes(bytes[prefix..], payload);
        const extended: u8 = if (plan.loses) layout.frame_flag_extended else 0;
        envelope.header(size, whole | extended).store(writer.headerAt(writer.tail));
        writer.tail +%= extent;
        return true;
    }

    /// [ring.pad]
    fn padFor(writer: *const Writer, extent: u32) u32 {
        const to_end = writer.place.plan.capacity - writer.offsetOf(writer.tail);
        return if (extent > to_end) to_end else 0;
    }

    /// Whether so many bytes are free, and 16 more.
    fn fits(writer: *const Writer, need: u32) bool {
        const limit = writer.place.plan.capacity - layout.ring_reserve;
        return writer.tail -% writer.oldest + need <= limit;
    }

    /// Makes every finished frame visible, and rings the readers that asked for it [fanout.wake].
    fn flush(writer: *Writer) void {
        if (writer.tail == writer.published) return;
        writer.published = writer.tail;
        const control = writer.place.control;
        @atomicStore(u32, &control.tail, writer.tail, .seq_cst);
        var first: u32 = 0;
        while (first < writer.seats.len) : (first += @bitSizeOf(u32)) {
            const word = &control.readers_want[first / @bitSizeOf(u32)];
            if (@atomicLoad(u32, word, .seq_cst) == 0) {
                @branchHint(.likely);
                writer.endpoint.stats.wakes_elided +%= 1;
                continue;
            }
            var bits = @atomicRmw(u32, word, .Xchg, 0, .seq_cst);
            while (bits != 0) : (bits &= bits - 1) {
                const record = first + @ctz(bits);
                if (record < writer.seats.len) writer.ring(record);
            }
        }
    }

    fn ring(writer: *Writer, record: u32) void {
        writer.endpoint.stats.wakes +%= 1;
        const peer = writer.seats[record].peer.record;
        segment_record.ring(peer, writer.endpoint.index, writer.endpoint.host);
    }

    /// Loads the words of all readers [fanout.count]. Call it when everything is published.
    fn countReaders(writer: *Writer) void {
        assert(writer.tail == writer.published);
        writer.oldest = writer.published;
        writer.slowest = null;
        for (writer.seats, 0..) |*seat, record| {
            if (!writer.counts(seat, &writer.place.records[record])) continue;
            const used = writer.published -% seat.held;
            const most = writer.published -% writer.oldest;
            if (writer.slowest != null and used <= most) continue;
            writer.oldest = seat.held;
            writer.slowest = @intCast(record);
        }
    }

    /// Whether a reader counts. If it does, `seat.held` is set.
    fn counts(writer: *Writer, seat: *Seat, record: *Record) bool {
        if (seat.gone) return false;
        switch (seat.peer.state()) {
            .attached => {},
            .vacant => {
                seat.held = writer.published;
                return false;
            },
            .closed, .failed, .invalid => {
                seat.gone = true;
                return false;
            },
        }
        const head = @atomicLoad(u32, &record.head, .seq_cst);
        if (head == 0) {
            // A reader that joins after this load starts at what is published now, or later.
            seat.held = writer.published;
            return false;
        }
        if (head == layout.fanout_joining) return true;
        const position = head -% joined;
        const is_valid = position % layout.frame_align == 0 and
            writer.published -% position <= writer.published -% seat.held;
        if (!is_valid) { // [fanout.head] [fanout.head_fault]
            seat.gone = true;
            seat.peer.fail(writer.endpoint, .ring_cursor);
            return false;
        }
        seat.held = position;
        return true;
    }

    /// Waits until the slowest reader has made room for a payload of this size. Another reader may
    /// then still hold the room.
    fn awaitRoom(writer: *Writer, size: u32, deadline: *Deadline) Endpoint.Outcome {
        const slowest = writer.slowest orelse return .found;
        const extent = frame.extentOf(size);
        const room: Room = .{
            .endpoint = writer.endpoint,
            .seat = &writer.seats[slowest],
            .record = &writer.place.records[slowest],
            .tail = writer.tail,
            .capacity = writer.place.plan.capacity,
            .position = writer.tail +% writer.padFor(extent) +% extent +% layout.ring_reserve -%
                writer.place.plan.capacity,
        };
        return writer.endpoint.wait(&room, deadline);
    }

    /// Frees the bytes that the next frame needs, by giving up the oldest messages [fanout.floor].
    fn raiseFloor(writer: *Writer, need: u32) void {
        if (writer.fits(need)) return;
        const before = writer.oldest;
        while (!writer.fits(need)) writer.oldest = writer.behindFloor(); // [fanout.floor_step]
        const control = writer.place.control;
        @atomicStore(u32, &control.floor, writer.oldest, .seq_cst);
        if ((before ^ writer.oldest) & layout.fanout_era_size != 0) {
            writer.era +%= 1;
            @atomicStore(u32, &control.era, writer.era, .seq_cst);
        }
        fanout.fence(&control.floor);
    }

    /// Returns the position after the frame at the floor. Any endpoint may have changed the header
    /// [fanout.floor_check].
    fn behindFloor(writer: *const Writer) u32 {
        const available = writer.published -% writer.oldest;
        const to_end = writer.place.plan.capacity - writer.offsetOf(writer.oldest);
        const header: frame.Header = .load(writer.headerAt(writer.oldest));
        // 64 bits wide, so that no size in the header can overflow it.
        const extent = layout.frame_header_size +
            std.mem.alignForward(u64, header.size, layout.frame_align);
        if (extent > @min(available, to_end)) return writer.published;
        return writer.oldest +% @as(u32, @intCast(extent));
    }

    /// [frame.pad]
    fn placePad(writer: *Writer, extent: u32) void {
        const header: frame.Header = .{
            .size = extent - layout.frame_header_size,
            .kind = layout.frame_kind_pad,
        };
        header.store(writer.headerAt(writer.tail));
        writer.tail +%= extent;
    }

    /// [fanout.number]
    fn placeNumber(writer: *const Writer, place: *[layout.header_extension_size]u8) void {
        std.mem.writeInt(u32, place[0..4], layout.header_extension_size, .little);
        std.mem.writeInt(u32, place[4..8], layout.extension_kind_number, .little);
        std.mem.writeInt(u64, place[8..16], writer.number, .little);
    }

    fn offsetOf(writer: *const Writer, position: u32) u32 {
        return position & (writer.place.plan.capacity - 1);
    }

    fn headerAt(
        writer: *const Writer,
        position: u32,
    ) *align(layout.frame_align) [layout.frame_header_size]u8 {
        const offset = writer.offsetOf(position);
        return @alignCast(writer.place.area[offset..][0..layout.frame_header_size]);
    }

    fn payloadAt(writer: *const Writer, position: u32, size: u32) Bytes {
        const offset = writer.offsetOf(position) + layout.frame_header_size;
        assert(offset + size <= writer.place.plan.capacity);
        return @alignCast(writer.place.area[offset..][0..size]);
    }
};

/// What a writer waits for: one reader gives back enough room, or no longer counts. The `condition`
/// of `Endpoint.wait` [fanout.writer_asks].
const Room = struct {
    endpoint: *Endpoint,
    seat: *Writer.Seat,
    record: *Record,
    tail: u32,
    capacity: u32,
    /// The position that the reader must reach to make room.
    position: u32,

    pub fn glance(room: *const Room, comptime order: std.lang.AtomicOrder) bool {
        const head = @atomicLoad(u32, &room.record.head, order);
        if (head == layout.fanout_joining) return false;
        // The reader has left, or the word is at fault, which the writer finds when it counts.
        if (head % layout.frame_align != joined) return true;
        const position = head -% joined;
        if (room.tail -% position > room.tail -% room.seat.held) return true;
        return @as(i32, @bitCast(position -% room.position)) >= 0;
    }

    pub fn look(room: *const Room, comptime order: std.lang.AtomicOrder) bool {
        if (room.glance(order)) return true;
        return room.endpoint.state().final() or room.seat.peer.state() != .attached;
    }

    pub fn arm(room: *const Room, first: bool) bool {
        // [wait.writer_more] In the first round only, so that a full ring does not trade one frame
        // per wake.
        const more = if (first) @min(room.tail -% room.position, room.capacity / 4) else 0;
        const position = room.position +% more;
        @atomicStore(u32, &room.record.writer_wants, position | layout.wants_armed, .seq_cst);
        return more > 0;
    }

    pub fn disarm(room: *const Room) void {
        @atomicStore(u32, &room.record.writer_wants, 0, .seq_cst);
    }

    pub fn slice(room: *const Room, mechanism: u32) u64 {
        return room.seat.peer.slice(mechanism);
    }
};
