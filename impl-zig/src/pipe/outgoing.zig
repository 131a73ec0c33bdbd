//! The writing end of a pipe: it cuts messages into frames and waits for room [spec/pipe.md].
//!
//! Invariant: a message whose first frame was published is either completed, or its cancel is owed.
//! So the frames of two messages never mix [pipe.order] [frame.contiguous].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const segment_file = @import("../memory/segment.zig");
const wait = @import("../wait/endpoint.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const pipe = @import("ends.zig");
const hot = ring_file.hot;
const assert = std.debug.assert;
const Bytes = ring_file.Bytes;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Envelope = pipe.Envelope;
const PipeError = pipe.PipeError;
const RingWriter = ring_file.RingWriter;
const Segment = segment_file.Segment;
const Timeout = host_file.Timeout;
const Wait = ring_file.Wait;
const WriteError = pipe.WriteError;

const flag_first = layout.frame_flag_first;
const flag_last = layout.frame_flag_last;
const flag_cancel = layout.frame_flag_cancel;

/// The writing end of a pipe.
///
/// Thread safety: belongs to the thread of its endpoint.
pub const Writer = struct {
    ring: RingWriter,
    /// A message that was given up after its first frame, and whose cancel is owed [pipe.owed].
    owed: ?Envelope = null,
    ended: bool = false,
    fault: ?layout.Reason = null,

    /// Returns the channel for `init`: the named one, or the first that endpoint `index` writes.
    /// Call it before `Endpoint.attach` [pipe.find] [pipe.find_none].
    pub fn find(
        segment: *const Segment,
        index: u32,
        named: ?u32,
    ) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
        return pipe.find(segment, index, named, .writer);
    }

    /// Asserts that the channel exists. `endpoint` must not move while the writer is used.
    pub fn init(
        endpoint: *Endpoint,
        segment: *const Segment,
        channel_index: u32,
    ) error{SegmentChannel}!Writer {
        const channel = segment.channels[channel_index];
        if (channel.kind != .ring) return error.SegmentChannel;
        if (channel.writer != endpoint.index) return error.SegmentChannel;
        return .{ .ring = .init(endpoint, segment, channel_index) };
    }

    /// Returns the payload size of the largest message that fits one frame.
    pub fn frameSizeMax(writer: *const Writer) u32 {
        return writer.ring.sizeMax();
    }

    /// Returns the size of the largest message that `tryWrite` accepts: in an empty ring, it has
    /// room at any position. At worst, the pad takes 16 bytes, the reserve 16 and the preamble 16,
    /// and the five frames are three quarters of the capacity and two remainders.
    ///
    /// Over a stream, it is the size that fits half the ring, whatever the peer accepts. A message
    /// above the largest frame of the peer goes into the ring in frames of at least 128 bytes, of
    /// which 112 are payload, and leaves the ring as there is credit.
    pub fn trySizeMax(writer: *const Writer) u32 {
        if (writer.ring.endpoint.linked() != null) {
            return writer.ring.capacity / 2 - layout.frame_header_size;
        }
        return @max(writer.ring.sizeMax(), writer.ring.capacity - 128);
    }

    /// Writes a message. Waits for room for as long as the timeout allows.
    ///
    /// A message larger than `frameSizeMax` is cut into frames. If the deadline passes in the
    /// middle of it, it is cancelled, and the reader drops the part that it has. With `.none`,
    /// either all frames of the message are placed or none [pipe.try_write].
    ///
    /// Asserts that the kind is that of a message, that a `json_batch` is at most `frameSizeMax`,
    /// and, if the timeout is `.none`, what `tryWrite` asserts.
    pub fn write(
        writer: *Writer,
        payload: []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!void {
        if (try writer.writeNow(payload, envelope)) return;
        var send: Send = .init(&.{payload}, envelope, timeout);
        var deadline: Deadline = .init(timeout);
        return writer.writeWith(&send, &deadline, writer);
    }

    /// Writes a message, or returns false if there is no room for all of it now.
    ///
    /// Asserts that the message is at most `trySizeMax`: a larger one might never have room
    /// [pipe.try_never].
    pub fn tryWrite(writer: *Writer, payload: []const u8, envelope: Envelope) WriteError!bool {
        writer.write(payload, envelope, .none) catch |err| switch (err) {
            error.Timeout => return false,
            else => |other| return other,
        };
        return true;
    }

    /// Writes one message that is given in several pieces, as `write` does.
    pub fn writeParts(
        writer: *Writer,
        parts: []const []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!void {
        writer.ring.loaded = false;
        var send: Send = .init(parts, envelope, timeout);
        var deadline: Deadline = .init(timeout);
        return writer.writeWith(&send, &deadline, writer);
    }

    /// Writes many messages, and makes them visible with as few stores as the room allows.
    ///
    /// Returns how many were written before the deadline passed. If the next one was begun, it is
    /// cancelled.
    pub fn writeMany(
        writer: *Writer,
        payloads: []const []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!usize {
        var deadline: Deadline = .init(timeout);
        return writer.writeManyWith(payloads, envelope, &deadline, writer);
    }

    /// Lends the place for a message of one frame. Waits for room for as long as the timeout
    /// allows. The message counts after `finish`, and is visible after `publish`; one `publish` may
    /// cover many.
    ///
    /// Asserts that the size is at most `frameSizeMax` and that no claim is open.
    pub fn claim(writer: *Writer, size: u32, timeout: Timeout) WriteError!Bytes {
        return writer.claimWith(size, timeout, writer);
    }

    /// Completes the message in the claimed place with its final size and envelope. If this end was
    /// closed meanwhile, drops it, because a closed end stores nothing [pipe.close].
    ///
    /// Asserts that a claim of at least this size is open [pipe.claim_one].
    pub fn finish(writer: *Writer, size: u32, envelope: Envelope) void {
        writer.finishAt(size, envelope, 0);
    }

    /// Makes all finished messages visible to the reader. Does nothing if there are none, or if a
    /// close [pipe.close] or a fault [ring.fault] has dropped them, which the next call reports
    /// [pipe.publish_none]. A call that waits publishes by itself [ring.publish_all].
    pub fn publish(writer: *Writer) void {
        if (!writer.stopped()) writer.ring.flush();
    }

    /// Takes the open claim back.
    ///
    /// Asserts that a claim is open.
    pub fn abandon(writer: *Writer) void {
        writer.ring.abandon();
    }

    /// Whether a claim is open, so that nothing may be claimed, written or ended [pipe.claim_one].
    /// False after the own close, which every call then reports.
    pub fn isClaimed(writer: *const Writer) bool {
        return writer.ring.claimed > 0 and !writer.ring.endpoint.closedHere();
    }

    /// Ends the stream: the reader gets everything written so far, and then the end. Never waits.
    /// Ending again does nothing, whatever has happened since [pipe.end_again]. Ending also does
    /// nothing if the reader has closed or failed, or if somebody else has closed this end or
    /// marked it failed: nobody is left to be told [pipe.end_closed]. So `error.PeerClosed`,
    /// `error.PeerFailed` and `error.PipeFailed` are never returned.
    ///
    /// Asserts that no claim is open.
    pub fn end(writer: *Writer) PipeError!void {
        if (writer.ended) return;
        writer.check() catch |err| switch (err) {
            error.PipeEnded, error.Timeout, error.WaitForbidden => unreachable,
            error.PipeForked,
            error.PipeClosed,
            error.PipeFailed,
            error.PeerClosed,
            error.PeerFailed,
            => {
                const endpoint = writer.ring.endpoint;
                if (endpoint.closedHere()) return endpoint.whyClosed();
                writer.ended = true;
                return;
            },
            else => |other| return other,
        };
        assert(writer.ring.claimed == 0);
        writer.ring.loaded = false;
        // [pipe.owed_end] If there is no room for both frames, the reader reports the message as
        // truncated, which it is.
        _ = writer.placeOwed() catch |err| return writer.faulted(err);
        writer.ring.end();
        writer.ended = true; // [pipe.end]
    }

    /// Returns the reason for the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed` of
    /// its endpoint: the number that was found, known or not, or null if there was none
    /// [pipe.failed_reason].
    pub fn reason(writer: *const Writer) ?layout.Reason {
        return writer.ring.endpoint.behind;
    }

    // The functions from here on are for ports, which do something else while they wait, and for
    // meters.

    /// Does what `finish` does, with a time that the frame then states [meter.time]; 0 states none.
    pub fn finishAt(writer: *Writer, size: u32, envelope: Envelope, time: u32) void {
        assert(envelope.valid());
        if (writer.stopped()) return writer.ring.abandon();
        writer.finishFrameAt(envelope, size, flag_first | flag_last, time);
    }

    fn stopped(writer: *const Writer) bool {
        return writer.fault != null or writer.ring.endpoint.closedHere();
    }

    /// Starts again for the next owner of the reader's endpoint, which is being vacated
    /// [pipe.vacated].
    pub fn beginAnew(writer: *Writer) void {
        writer.owed = null;
        writer.ended = false;
        writer.fault = null;
        writer.ring.beginAnew();
    }

    /// Places a message of one frame if there is room at once. Nearly every message takes this
    /// path.
    pub fn writeNow(
        writer: *Writer,
        payload: []const u8,
        envelope: Envelope,
    ) callconv(hot) WriteError!bool {
        assert(envelope.valid());
        writer.ring.askNext();
        writer.ring.loaded = false;
        try writer.check();
        if (payload.len > writer.ring.sizeMax() or writer.owed != null) return false;
        const size: u32 = @intCast(payload.len);
        const claimed = writer.ring.claim(size) catch |err| return writer.faulted(err);
        const place = claimed orelse return false;
        // The header is written before the payload, so that the lines are touched in order, and
        // each comes from the reader's cache once.
        writer.finishFrame(envelope, size, flag_first | flag_last);
        ring_file.copyBytes(place, payload);
        writer.ring.publish();
        return true;
    }

    /// `write` with the caller's own way to wait: calls `waiter.waitForRoom` while there is no
    /// room.
    pub fn writeWith(
        writer: *Writer,
        send: anytype,
        deadline: *Deadline,
        waiter: anytype,
    ) WriteError!void {
        try writer.placeWith(send, deadline, waiter);
        writer.publish();
    }

    /// `writeWith`, except that the caller has to publish what is finished.
    pub fn placeWith(
        writer: *Writer,
        send: anytype,
        deadline: *Deadline,
        waiter: anytype,
    ) WriteError!void {
        assert(writer.fits(send.total, send.envelope, deadline.timeout));
        while (true) {
            try writer.check();
            const size = (try writer.placeSend(send)) orelse return;
            writer.awaitRoom(size, deadline, waiter) catch |err| {
                if (send.sent_any) writer.owed = send.envelope;
                return err;
            };
        }
    }

    /// Places as much of an accepted message as there is room for, and waits for nothing
    /// [port.posted]. Returns null when the message is complete, and otherwise the payload size of
    /// the frame that has no room.
    pub fn placeAccepted(writer: *Writer, send: *Send) WriteError!?u32 {
        assert(writer.fits(send.total, send.envelope, .forever));
        writer.ring.loaded = false;
        try writer.check();
        const size = try writer.placeSend(send);
        writer.publish();
        return size;
    }

    /// Whether this writer can write such a message; at once, if the timeout is `.none`
    /// [pipe.try_never].
    fn fits(writer: *const Writer, size: u64, envelope: Envelope, timeout: Timeout) bool {
        if (!envelope.valid()) return false;
        if (timeout == .none and size > writer.trySizeMax()) return false;
        return envelope.codec != .json_batch or size <= writer.ring.sizeMax();
    }

    /// `writeMany` with the caller's own way to wait. The deadline is that of the caller, which may
    /// write the payloads by several calls.
    pub fn writeManyWith(
        writer: *Writer,
        payloads: []const []const u8,
        envelope: Envelope,
        deadline: *Deadline,
        waiter: anytype,
    ) WriteError!usize {
        const timeout = deadline.timeout;
        // All messages are checked before any is placed.
        for (payloads) |payload| assert(writer.fits(payload.len, envelope, timeout));
        writer.ring.loaded = false;
        for (payloads, 0..) |payload, index| {
            var send: Send = .init(&.{payload}, envelope, timeout);
            writer.placeWith(&send, deadline, waiter) catch |err| switch (err) {
                error.Timeout => return index,
                else => |other| return other,
            };
        }
        writer.publish();
        return payloads.len;
    }

    /// `claim` with the caller's own way to wait.
    pub fn claimWith(
        writer: *Writer,
        size: u32,
        timeout: Timeout,
        waiter: anytype,
    ) WriteError!Bytes {
        assert(size <= writer.ring.sizeMax());
        var deadline: Deadline = .init(timeout);
        writer.ring.askNext();
        writer.ring.loaded = false;
        while (true) {
            try writer.check();
            const placed = writer.placeOwed() catch |err| return writer.faulted(err);
            if (placed) {
                const claimed = writer.ring.claim(size) catch |err| return writer.faulted(err);
                if (claimed) |bytes| return bytes;
            }
            try writer.awaitRoom(if (placed) size else 0, &deadline, waiter);
        }
    }

    /// Refuses to write if this end or its reader is gone [pipe.first_answer] [pipe.peer_gone].
    pub fn check(writer: *Writer) callconv(hot) WriteError!void {
        const endpoint = writer.ring.endpoint;
        const is_open = !writer.ended and !writer.stopped() and
            endpoint.isAttached() and writer.ring.peer.isAttached();
        if (is_open) {
            @branchHint(.likely);
            return;
        }
        return writer.checkAll();
    }

    /// The rest of `check`, which finds out why writing is refused.
    noinline fn checkAll(writer: *Writer) WriteError!void {
        const endpoint = writer.ring.endpoint;
        if (endpoint.closedHere()) return endpoint.whyClosed();
        if (writer.fault != null) return writer.corrupt();
        if (writer.ended) return error.PipeEnded;
        try pipe.checkOwn(endpoint);
        try pipe.checkPeer(endpoint, &writer.ring.peer);
    }

    /// Publishes what is finished, and waits for room for a frame with a payload of `size`.
    fn awaitRoom(writer: *Writer, size: u32, deadline: *Deadline, waiter: anytype) WriteError!void {
        assert(writer.ring.claimed == 0); // waiting with an open claim is the caller's mistake
        writer.publish(); // [ring.publish_all]
        // Before the cursor is loaded again: a reader that keeps up must not keep the call beyond
        // its deadline.
        if (deadline.over(writer.ring.endpoint.host)) return error.Timeout;
        writer.ring.loaded = false;
        switch (waiter.waitForRoom(size, deadline)) {
            .found => {},
            .timeout => return error.Timeout,
            .forbidden => return error.WaitForbidden,
        }
    }

    /// Waits until there is room for a frame with a payload of this size, or something ends the
    /// wait.
    pub fn waitForRoom(writer: *Writer, size: u32, deadline: *Deadline) Endpoint.Outcome {
        const endpoint = writer.ring.endpoint;
        const condition: Wait = .{ .endpoint = endpoint, .writer = &writer.ring, .size = size };
        return endpoint.wait(&condition, deadline);
    }

    /// Places the frames that there is room for. Returns null when the message is complete, and
    /// otherwise the payload size of the frame that has no room.
    fn placeSend(writer: *Writer, send: anytype) WriteError!?u32 {
        return writer.placeSendUnchecked(send) catch |err| writer.faulted(err);
    }

    fn placeSendUnchecked(writer: *Writer, send: anytype) ring_file.Error!?u32 {
        const ring = &writer.ring;
        if (!try writer.placeOwed()) return 0;
        // Compared here, because a link may have learned what its peer accepts since the message
        // was begun.
        if (!send.sent_any and send.total <= ring.sizeMax()) {
            const size: u32 = @intCast(send.total);
            const bytes = try ring.claim(size) orelse return size;
            send.copy(bytes);
            // [frame.whole]
            writer.finishFrameAt(send.envelope, size, flag_first | flag_last, send.time());
            return null;
        }
        if (send.at_once and !try writer.roomForMany(send.total)) {
            return ring.sizeMax(); // more room is needed, but this call does not wait for it
        }
        ring.granted = send.at_once;
        defer ring.granted = false;
        while (true) {
            const preamble_size: u32 = if (send.sent_any) 0 else layout.message_preamble_size;
            const size = chunkSize(ring, ring.tail, preamble_size + send.left());
            const bytes = try ring.claim(size) orelse return size;
            if (preamble_size > 0) { // [frame.preamble]
                const preamble: frame.Preamble = .{ .total = send.total };
                preamble.store(bytes[0..layout.message_preamble_size]);
            }
            send.copy(bytes[preamble_size..]);
            const is_last = send.left() == 0;
            // [frame.multipart]
            var flags: u8 = if (send.sent_any) 0 else flag_first;
            if (is_last) flags |= flag_last;
            // The time of a message is the time of its first frame [frame.header].
            const time = if (send.sent_any) 0 else send.time();
            writer.finishFrameAt(send.envelope, size, flags, time);
            send.sent_any = true;
            if (is_last) return null;
            // The reader can copy this chunk while the next one is written. But a message that must
            // be placed at once also becomes visible at once.
            if (!send.at_once) ring.publish();
        }
    }

    /// Whether there is room for all frames of a multipart message.
    fn roomForMany(writer: *Writer, total: u64) ring_file.Error!bool {
        const ring = &writer.ring;
        assert(total <= ring.capacity);
        var position = ring.tail;
        var pads: u32 = 0;
        var left = total + layout.message_preamble_size;
        while (left > 0) {
            const size = chunkSize(ring, position, left);
            const extent = frame.extentOf(size);
            const to_end = ring.capacity - (position & (ring.capacity - 1));
            const pad = if (extent > to_end) to_end else 0;
            position +%= pad + extent;
            pads += pad;
            left -= size;
        }
        return ring.roomForMany(pads, position -% ring.tail - pads);
    }

    /// Places and publishes the cancel of a message that was given up, if one is owed. Returns
    /// false if there is no room for it [pipe.owed].
    fn placeOwed(writer: *Writer) ring_file.Error!bool {
        const envelope = writer.owed orelse return true;
        const bytes = try writer.ring.claim(0) orelse return false;
        assert(bytes.len == 0);
        // [frame.cancel]
        writer.finishFrame(envelope, 0, flag_last | flag_cancel);
        // Published at once, because the claim of the message after it may be taken back.
        writer.ring.publish();
        writer.owed = null;
        return true;
    }

    /// Completes the claimed frame.
    fn finishFrame(writer: *Writer, envelope: Envelope, size: u32, flags: u8) callconv(hot) void {
        writer.finishFrameAt(envelope, size, flags, 0);
    }

    fn finishFrameAt(
        writer: *Writer,
        envelope: Envelope,
        size: u32,
        flags: u8,
        time: u32,
    ) callconv(hot) void {
        var header = envelope.header(size, flags);
        header.time = time;
        writer.ring.finish(header);
    }

    /// [ring.fault]
    fn faulted(writer: *Writer, err: ring_file.Error) error{Corrupt} {
        writer.fault = pipe.fault(writer.ring.endpoint, &writer.ring.peer, err);
        return writer.corrupt();
    }

    /// [pipe.fault]
    fn corrupt(writer: *Writer) error{Corrupt} {
        writer.ring.endpoint.behind = writer.fault.?;
        return error.Corrupt;
    }
};

/// Returns the payload size of the next chunk. A chunk takes at most a quarter of the capacity, so
/// that the reader reads one while the next is written. It ends at the end of the byte area if that
/// is nearer, so that no pad is needed, unless only a header would fit there.
fn chunkSize(ring: *const RingWriter, position: u32, left: u64) u32 {
    const to_end = ring.capacity - (position & (ring.capacity - 1));
    const quarter = @min(ring.capacity / 4, ring.sizeMax() + layout.frame_header_size);
    // A header and the preamble, or a header and one byte: a chunk is at least this large
    // [frame.part].
    const least = 2 * layout.frame_header_size;
    const extent = if (to_end < least) quarter else @min(quarter, to_end);
    return @intCast(@min(left, extent - layout.frame_header_size));
}

/// A message on its way into the ring.
pub const Send = SendWith(void);

/// The message of a writer that meters. `Stamp` is a pointer to a type with `time() u32`, which is
/// called when the first frame of the message is finished [meter.time]. With `void`, the frame
/// states no time.
pub fn SendWith(comptime Stamp: type) type {
    return struct {
        parts: []const []const u8,
        /// How many bytes of the first of `parts` are placed already.
        offset: usize = 0,
        envelope: Envelope,
        total: u64,
        copied: u64 = 0,
        /// Whether a frame of this message was placed.
        sent_any: bool = false,
        /// [pipe.try_write] Whether all frames are placed or none.
        at_once: bool,
        stamp: Stamp = if (Stamp == void) {} else undefined,

        const Self = @This();

        pub fn init(parts: []const []const u8, envelope: Envelope, timeout: Timeout) Self {
            var total: u64 = 0;
            for (parts) |part| total += part.len;
            return .{
                .parts = parts,
                .envelope = envelope,
                .total = total,
                .at_once = timeout == .none,
            };
        }

        fn time(send: *const Self) u32 {
            return if (Stamp == void) 0 else send.stamp.time();
        }

        fn left(send: *const Self) u64 {
            return send.total - send.copied;
        }

        fn copy(send: *Self, target: []u8) void {
            assert(target.len <= send.left());
            var rest = target;
            while (rest.len > 0) {
                const part = send.parts[0][send.offset..];
                const size = @min(part.len, rest.len);
                @memcpy(rest[0..size], part[0..size]);
                rest = rest[size..];
                send.offset += size;
                if (send.offset == send.parts[0].len) {
                    send.parts = send.parts[1..];
                    send.offset = 0;
                }
            }
            send.copied += target.len;
        }
    };
}
