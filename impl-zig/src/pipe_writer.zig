//! The writing end of a pipe: cuts messages into frames and waits for room [spec/pipe.md].
//!
//! Invariant: a message whose first frame was published is completed, or its cancel is owed; so the
//! frames of messages never mix [pipe.order] [frame.contiguous].

const std = @import("std");
const layout = @import("layout.zig");
const host_file = @import("host.zig");
const segment_file = @import("segment.zig");
const wait = @import("wait.zig");
const frame = @import("frame.zig");
const ring_file = @import("ring.zig");
const pipe = @import("pipe.zig");
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
    /// The message that was given up behind its first frame [pipe.owed].
    owed: ?Envelope = null,
    ended: bool = false,
    fault: ?layout.Reason = null,

    /// Returns the channel for `init`: the named one, or the first that endpoint `index` writes. To
    /// be called before `Endpoint.attach` [pipe.find] [pipe.find_none].
    pub fn find(
        segment: *const Segment,
        index: u32,
        named: ?u32,
    ) error{ SegmentEndpoint, SegmentChannel }!u32 {
        return pipe.find(segment, index, named, .writer);
    }

    /// Asserts that the channel exists. `endpoint` must stay where it is while the writer is used.
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

    /// The largest message of one frame.
    pub fn frameSizeMax(writer: *const Writer) u32 {
        return writer.ring.sizeMax();
    }

    /// The largest message that `tryWrite` takes: it has room in an empty ring in any position.
    /// At worst 16 bytes are padded, the reserve is 16, the preamble is 16, and the five frames are
    /// three quarters of the capacity and two rests.
    ///
    /// Over a stream it is what fits half the ring, whatever the peer takes: a message above the
    /// largest frame of the peer goes into the ring in frames of at least 128 bytes, of which 112
    /// are payload, and out of it as there is credit.
    pub fn trySizeMax(writer: *const Writer) u32 {
        if (writer.ring.endpoint.linked() != null) {
            return writer.ring.capacity / 2 - layout.frame_header_size;
        }
        return @max(writer.ring.sizeMax(), writer.ring.capacity - 128);
    }

    /// Writes a message, and waits for room as long as the timeout allows.
    ///
    /// A message larger than `frameSizeMax` is cut. When its deadline passes in the middle, it is
    /// cancelled: the reader drops what it has of it. With `.none` all frames of the message are
    /// placed or none [pipe.try_write].
    ///
    /// Asserts what `tryWrite` asserts if the timeout is `.none`, that the kind is that of a
    /// message, and that a `json_batch` is at most `frameSizeMax`.
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

    /// Writes a message, or returns false when there is no room for all of it now.
    ///
    /// Asserts that it is at most `trySizeMax`: a larger one could be refused for ever
    /// [pipe.try_never].
    pub fn tryWrite(writer: *Writer, payload: []const u8, envelope: Envelope) WriteError!bool {
        writer.write(payload, envelope, .none) catch |err| switch (err) {
            error.Timeout => return false,
            else => |other| return other,
        };
        return true;
    }

    /// Writes one message that lies in several pieces, as `write` does.
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

    /// Writes many messages and makes them visible with as few stores as the room allows.
    ///
    /// Returns how many were written when the deadline passed; the next of them is cancelled where
    /// it was begun.
    pub fn writeMany(
        writer: *Writer,
        payloads: []const []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!usize {
        var deadline: Deadline = .init(timeout);
        return writer.writeManyWith(payloads, envelope, &deadline, writer);
    }

    /// Lends the place of a message of one frame, and waits for room as long as the timeout allows.
    /// The frame counts after `finish` and is visible after `publish`; many may be finished before
    /// one publish.
    ///
    /// Asserts that the size is at most `frameSizeMax` and that no claim is open.
    pub fn claim(writer: *Writer, size: u32, timeout: Timeout) WriteError!Bytes {
        return writer.claimWith(size, timeout, writer);
    }

    /// Completes the message in the claimed place with its final size and envelope. Drops it where
    /// this end was closed meanwhile, which stores nothing any more [pipe.close].
    ///
    /// Asserts that a claim of at least this size is open [pipe.claim_one].
    pub fn finish(writer: *Writer, size: u32, envelope: Envelope) void {
        writer.finishAt(size, envelope, 0);
    }

    /// Makes all finished messages visible to the reader; does nothing where there are none, or
    /// where a close [pipe.close] or a fault [ring.fault] has dropped them, which the next call
    /// reports [pipe.publish_none]. A call that waits does so by itself [ring.publish_all].
    pub fn publish(writer: *Writer) void {
        if (!writer.stopped()) writer.ring.flush();
    }

    /// Takes an open claim back.
    ///
    /// Asserts that one is open.
    pub fn abandon(writer: *Writer) void {
        writer.ring.abandon();
    }

    /// Whether a claim is open, so that nothing may be claimed, written or ended [pipe.claim_one].
    /// None is behind the own close, which every call then reports.
    pub fn isClaimed(writer: *const Writer) bool {
        return writer.ring.claimed > 0 and !writer.ring.endpoint.closedHere();
    }

    /// Ends the stream: the reader gets everything written so far, then the end. Never waits.
    /// Ending again does nothing, whatever has happened since [pipe.end_again]; nor does ending
    /// when the reader has closed or failed, or somebody has closed this end or marked it failed:
    /// nobody is left to be told [pipe.end_closed]. So `error.PeerClosed`, `error.PeerFailed` and
    /// `error.PipeFailed` never come.
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
        // [pipe.owed_end] Without room for both, the reader will report the message as truncated,
        // which it is.
        _ = writer.placeOwed() catch |err| return writer.faulted(err);
        writer.ring.end();
        writer.ended = true; // [pipe.end]
    }

    /// What is behind the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed` of its
    /// endpoint: the number that was found there, known or not, or null where there was none
    /// [pipe.failed_reason].
    pub fn reason(writer: *const Writer) ?layout.Reason {
        return writer.ring.endpoint.behind;
    }

    // What follows is for ports, which do something else while they wait, and for meters.

    /// As `finish`, at a time that the frame then states [meter.time]; 0 states none.
    pub fn finishAt(writer: *Writer, size: u32, envelope: Envelope, time: u32) void {
        assert(envelope.valid());
        if (writer.stopped()) return writer.ring.abandon();
        writer.finishFrameAt(envelope, size, flag_first | flag_last, time);
    }

    fn stopped(writer: *const Writer) bool {
        return writer.fault != null or writer.ring.endpoint.closedHere();
    }

    /// Begins anew with the next owner of the reader's endpoint, which is being vacated
    /// [pipe.vacated].
    pub fn beginAnew(writer: *Writer) void {
        writer.owed = null;
        writer.ended = false;
        writer.fault = null;
        writer.ring.beginAnew();
    }

    /// Places a message of one frame if there is room at once: the path of nearly every message.
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
        // The header first, from the first line on: so each is taken from the reader's cache once.
        writer.finishFrame(envelope, size, flag_first | flag_last);
        ring_file.copyBytes(place, payload);
        writer.ring.publish();
        return true;
    }

    /// `write` for whoever owns the wait: `waiter.waitForRoom` is called while there is no room.
    pub fn writeWith(
        writer: *Writer,
        send: anytype,
        deadline: *Deadline,
        waiter: anytype,
    ) WriteError!void {
        try writer.placeWith(send, deadline, waiter);
        writer.publish();
    }

    /// As `writeWith`, and leaves it to the caller to publish what is finished.
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

    /// Places what there is room for of a message that was accepted, and waits for nothing
    /// [port.posted]. Returns null when it is complete, or the payload size of the frame that has
    /// no room.
    pub fn placeAccepted(writer: *Writer, send: *Send) WriteError!?u32 {
        assert(writer.fits(send.total, send.envelope, .forever));
        writer.ring.loaded = false;
        try writer.check();
        const size = try writer.placeSend(send);
        writer.publish();
        return size;
    }

    /// Whether this message is one that this writer can write, there and then where the caller does
    /// not want to wait [pipe.try_never].
    fn fits(writer: *const Writer, size: u64, envelope: Envelope, timeout: Timeout) bool {
        if (!envelope.valid()) return false;
        if (timeout == .none and size > writer.trySizeMax()) return false;
        return envelope.codec != .json_batch or size <= writer.ring.sizeMax();
    }

    /// `writeMany` as `writeWith` does it. The deadline is the call's, which may write the payloads
    /// in several goes.
    pub fn writeManyWith(
        writer: *Writer,
        payloads: []const []const u8,
        envelope: Envelope,
        deadline: *Deadline,
        waiter: anytype,
    ) WriteError!usize {
        const timeout = deadline.timeout;
        // All of them before anything is placed.
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

    /// `claim` as `writeWith` does it.
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

    /// Refuses to write when this end or its reader is gone [pipe.first_answer] [pipe.peer_gone].
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

    /// `check` for whoever must say why.
    noinline fn checkAll(writer: *Writer) WriteError!void {
        const endpoint = writer.ring.endpoint;
        if (endpoint.closedHere()) return endpoint.whyClosed();
        if (writer.fault != null) return writer.corrupt();
        if (writer.ended) return error.PipeEnded;
        try pipe.checkOwn(endpoint);
        try pipe.checkPeer(endpoint, &writer.ring.peer);
    }

    /// Waits for room for a frame with a payload of `size`.
    fn awaitRoom(writer: *Writer, size: u32, deadline: *Deadline, waiter: anytype) WriteError!void {
        assert(writer.ring.claimed == 0); // waiting with an open claim is the caller's mistake
        writer.publish(); // [ring.publish_all]
        // Before the cursor is loaded again: a reader that keeps up must not hold the call.
        if (deadline.over(writer.ring.endpoint.host)) return error.Timeout;
        writer.ring.loaded = false;
        switch (waiter.waitForRoom(size, deadline)) {
            .found => {},
            .timeout => return error.Timeout,
            .forbidden => return error.WaitForbidden,
        }
    }

    /// Waits until a frame with a payload of this size has room, or something ends the wait.
    pub fn waitForRoom(writer: *Writer, size: u32, deadline: *Deadline) Endpoint.Outcome {
        const endpoint = writer.ring.endpoint;
        const condition: Wait = .{ .endpoint = endpoint, .writer = &writer.ring, .size = size };
        return endpoint.wait(&condition, deadline);
    }

    /// Places what there is room for. Returns null when the message is complete, or the payload
    /// size of the frame that has no room.
    fn placeSend(writer: *Writer, send: anytype) WriteError!?u32 {
        return writer.placeSendUnchecked(send) catch |err| writer.faulted(err);
    }

    fn placeSendUnchecked(writer: *Writer, send: anytype) ring_file.Error!?u32 {
        const ring = &writer.ring;
        if (!try writer.placeOwed()) return 0;
        // What a link's peer takes may have become known behind the first frame.
        if (!send.sent_any and send.total <= ring.sizeMax()) {
            const size: u32 = @intCast(send.total);
            const bytes = try ring.claim(size) orelse return size;
            send.copy(bytes);
            // [frame.whole]
            writer.finishFrameAt(send.envelope, size, flag_first | flag_last, send.time());
            return null;
        }
        if (send.at_once and !try writer.roomForMany(send.total)) {
            return ring.sizeMax(); // more is needed, but nobody waits for it
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
            // The message has that of its first frame [frame.header].
            const time = if (send.sent_any) 0 else send.time();
            writer.finishFrameAt(send.envelope, size, flags, time);
            send.sent_any = true;
            if (is_last) return null;
            // The reader copies this chunk while the next is written; but a message that is to be
            // placed at once also becomes visible at once.
            if (!send.at_once) ring.publish();
        }
    }

    /// Whether there is room for all frames of a message of many.
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
    /// false when there is no room for it [pipe.owed].
    fn placeOwed(writer: *Writer) ring_file.Error!bool {
        const envelope = writer.owed orelse return true;
        const bytes = try writer.ring.claim(0) orelse return false;
        assert(bytes.len == 0);
        // [frame.cancel]
        writer.finishFrame(envelope, 0, flag_last | flag_cancel);
        // At once, whatever becomes of the message behind it: its claim may be taken back.
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

/// Returns the payload of the next chunk: at most a quarter of the capacity, so that writing the
/// next overlaps with reading the last; and up to the end of the byte area where that is nearer,
/// so that no pad is needed unless only a header would fit there.
fn chunkSize(ring: *const RingWriter, position: u32, left: u64) u32 {
    const to_end = ring.capacity - (position & (ring.capacity - 1));
    const quarter = @min(ring.capacity / 4, ring.sizeMax() + layout.frame_header_size);
    // Header and preamble, or header and one byte: less is no chunk [frame.part].
    const least = 2 * layout.frame_header_size;
    const extent = if (to_end < least) quarter else @min(quarter, to_end);
    return @intCast(@min(left, extent - layout.frame_header_size));
}

/// A message on its way into the ring.
pub const Send = SendWith(void);

/// The same of a writer that meters: `Stamp` points to what has a `time() u32`, which is asked when
/// the first frame of the message is finished [meter.time]. With `void`, nobody is asked.
pub fn SendWith(comptime Stamp: type) type {
    return struct {
        parts: []const []const u8,
        /// Bytes of the first of `parts` that are placed already.
        offset: usize = 0,
        envelope: Envelope,
        total: u64,
        copied: u64 = 0,
        /// Whether a frame of this message was placed.
        sent_any: bool = false,
        /// [pipe.try_write] All frames or none.
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
