//! Two pipes, one each way, between two endpoints, with one bell at each end [spec/port.md].
//!
//! Invariant: while a port waits for room, it takes what arrives into its inbox, up to a limit, so
//! that two sides that both write do not wait for each other. Later reads take from the inbox
//! first, in order.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const segment_file = @import("../memory/segment.zig");
const wait = @import("../wait/endpoint.zig");
const ring_file = @import("../ring/side.zig");
const pipe = @import("../pipe/ends.zig");
const revive = @import("../more/revive.zig");
const Inbox = @import("inbox.zig").Inbox;
const assert = std.debug.assert;
const Bytes = ring_file.Bytes;
const Channel = segment_file.Channel;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Envelope = pipe.Envelope;
const Lent = pipe.Lent;
const Link = @import("../wait/link.zig").Link;
const Memory = segment_file.Memory;
const Message = pipe.Message;
const PipeError = pipe.PipeError;
const ReadError = pipe.ReadError;
const Reader = pipe.Reader;
const Segment = segment_file.Segment;
const Timeout = host_file.Timeout;
const Wait = ring_file.Wait;
const WriteError = pipe.WriteError;
const Writer = pipe.Writer;

/// The rings that the creator of a port chooses.
pub const Rings = struct {
    /// The capacities of the rings from endpoint 0 to 1 and from 1 to 0: powers of two.
    capacities: [2]u32,
    /// The positions at which the cursors of the two rings start: multiples of 16.
    starts: [2]u32 = .{ 0, 0 },
    labels: [2]u32 = .{ 0, 0 },

    /// [port.layout]
    pub fn channels(rings: Rings) [2]Channel {
        return .{ rings.channel(0), rings.channel(1) };
    }

    fn channel(rings: Rings, index: u32) Channel {
        return .{
            .writer = index,
            .reader = 1 - index,
            .data_size = rings.capacities[index],
            .label = rings.labels[index],
            .start = rings.starts[index],
        };
    }

    /// Whether readers accept a segment with these rings.
    pub fn valid(rings: Rings) bool {
        for (rings.capacities) |capacity| if (!segment_file.capacityValid(capacity)) return false;
        for (rings.starts) |start| if (start % layout.frame_align != 0) return false;
        return true;
    }

    /// Returns how many bytes the segment of such a port needs.
    ///
    /// Asserts that the rings are valid.
    pub fn segmentSize(rings: Rings) error{SegmentSize}!u32 {
        const list = rings.channels();
        return segment_file.sizeOf(.{ .endpoint_count = 2, .channels = &list });
    }
};

/// One side of a port.
///
/// It holds pointers into itself: it must not move after it was attached.
///
/// Thread safety: belongs to the thread that attached it, except for `close`.
pub const Port = struct {
    endpoint: Endpoint,
    writer: Writer,
    reader: Reader,
    inbox: Inbox,

    /// Options of a port.
    pub const Options = struct {
        /// How the port waits.
        endpoint: Endpoint.Options = .{},
        /// Storage for messages that arrive while the port waits for room. May be empty. It belongs
        /// to the caller and must outlive the port. Each message takes 16 bytes more than its
        /// payload, rounded up to a multiple of 16.
        inbox: []align(Inbox.entry_align) u8 = &.{},
        /// Whether calls, returns and throws are delivered [pipe.unknown_kind].
        calls: bool = false,
        /// How long to wait for the segment to become ready: 5 s by default. A thread that must not
        /// block does not wait at all [wait.no_block].
        timeout: Timeout = .ms(5_000),

        fn attachTimeout(options: Options) Timeout {
            return if (options.endpoint.blocking) options.timeout else .none;
        }
    };

    /// Formats memory as a port, whatever it holds. Nobody else may have seen the memory yet. Both
    /// sides then `attach`.
    pub fn format(memory: Memory, rings: Rings) error{SegmentSize}!void {
        const channels = rings.channels();
        return Segment.format(memory, .{ .endpoint_count = 2, .channels = &channels });
    }

    /// Formats blank memory as a port, or finds that the other side has done so with the same
    /// geometry. Then attaches to one end of the port.
    pub fn create(
        port: *Port,
        memory: Memory,
        rings: Rings,
        endpoint_index: u32,
        options: Options,
    ) segment_file.Error!void {
        var storage: [2]Channel = undefined;
        const channels = rings.channels();
        const geometry: segment_file.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        const segment = try Segment.create(memory, geometry, &storage, options.attachTimeout());
        try port.init(&segment, endpoint_index, options);
    }

    /// Attaches to one end of a port, or of a hub, in memory that some thread formats.
    ///
    /// Takes 36 KiB of stack for the descriptors of the largest segment while it checks them. With
    /// `Segment.attach` and `init`, the caller chooses the storage.
    pub fn attach(
        port: *Port,
        memory: Memory,
        endpoint_index: u32,
        options: Options,
    ) segment_file.Error!void {
        var storage: [layout.channel_count_max]Channel = undefined;
        const segment = try Segment.attach(memory, &storage, options.attachTimeout());
        try port.init(&segment, endpoint_index, options);
    }

    /// Attaches to one end of a port in a segment that is attached already. The segment is not
    /// needed afterwards.
    pub fn init(
        port: *Port,
        segment: *const Segment,
        endpoint_index: u32,
        options: Options,
    ) segment_file.Error!void {
        // Before the endpoint is taken, so that a refused segment is left as it was found.
        const found = try find(segment, endpoint_index);
        port.endpoint = try .attach(segment, endpoint_index, options.endpoint);
        port.writer = Writer.init(&port.endpoint, segment, found.writer) catch unreachable;
        port.reader = Reader.init(&port.endpoint, segment, found.reader) catch unreachable;
        port.reader.calls = options.calls;
        port.inbox = .init(options.inbox);
    }

    /// Does what `Writer.write` does. While it waits, it takes what arrives into the inbox.
    pub fn write(
        port: *Port,
        payload: []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!void {
        const done = try port.writer.writeNow(payload, envelope);
        if (done and port.endpoint.linked() == null) return;
        var deadline: Deadline = .init(timeout);
        if (!done) {
            var send: pipe.Send = .init(&.{payload}, envelope, timeout);
            try port.writer.writeWith(&send, &deadline, port);
        }
        return port.settle(&deadline);
    }

    /// Does what `Writer.tryWrite` does.
    pub fn tryWrite(port: *Port, payload: []const u8, envelope: Envelope) WriteError!bool {
        return port.writer.tryWrite(payload, envelope);
    }

    /// Does what `Writer.writeParts` does. While it waits, it takes what arrives into the inbox.
    pub fn writeParts(
        port: *Port,
        parts: []const []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!void {
        port.writer.ring.loaded = false;
        var send: pipe.Send = .init(parts, envelope, timeout);
        var deadline: Deadline = .init(timeout);
        try port.writer.writeWith(&send, &deadline, port);
        return port.settle(&deadline);
    }

    /// Does what `Writer.writeMany` does. While it waits, it takes what arrives into the inbox.
    pub fn writeMany(
        port: *Port,
        payloads: []const []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) WriteError!usize {
        var deadline: Deadline = .init(timeout);
        const count = try port.writer.writeManyWith(payloads, envelope, &deadline, port);
        try port.settle(&deadline);
        return count;
    }

    /// Does what `Writer.claim` does. While it waits, it takes what arrives into the inbox.
    pub fn claim(port: *Port, size: u32, timeout: Timeout) WriteError!Bytes {
        return port.writer.claimWith(size, timeout, port);
    }

    /// Does what `Writer.finish` does.
    pub fn finish(port: *Port, size: u32, envelope: Envelope) void {
        port.writer.finish(size, envelope);
    }

    /// Does what `Writer.publish` does.
    pub fn publish(port: *Port) void {
        port.writer.publish();
    }

    /// Does what `Writer.abandon` does.
    pub fn abandon(port: *Port) void {
        port.writer.abandon();
    }

    /// Does what `Reader.read` does. Before it waits, it publishes what is finished
    /// [port.publish_both].
    pub fn read(port: *Port, storage: []u8, timeout: Timeout) ReadError!?Message {
        if (port.inbox.empty()) {
            @branchHint(.likely);
            port.beforeWait(timeout);
            return port.reader.read(storage, timeout);
        }
        return port.readInbox(storage, timeout);
    }

    /// Does what `Reader.tryRead` does.
    pub fn tryRead(port: *Port, storage: []u8) ReadError!?Message {
        return port.read(storage, .none);
    }

    /// Does what `Reader.peek` does. Messages in the inbox are copies, not frames of the ring: they
    /// are lent whole, from the inbox.
    pub fn peek(port: *Port, timeout: Timeout) ReadError!?Lent {
        if (port.inbox.empty()) {
            @branchHint(.likely);
            port.beforeWait(timeout);
            return port.reader.peek(timeout);
        }
        return port.peekInbox(timeout);
    }

    /// Does what `Reader.release` does.
    pub fn release(port: *Port) void {
        if (port.inbox.lent) return port.inbox.release();
        port.reader.release();
    }

    /// Ends the outgoing pipe as `Writer.end` does. Reading goes on [port.end].
    pub fn end(port: *Port) PipeError!void {
        return port.writer.end();
    }

    /// Whether the peer has ended its stream, and everything before the end was read.
    pub fn ended(port: *const Port) bool {
        return port.inbox.empty() and port.reader.ended();
    }

    /// Vacates the endpoint of a dead peer, so that another owner can attach to it. Both directions
    /// then start again, as `millrace.vacate` says; messages in the inbox are read first
    /// [pipe.vacated]. Returns false, and changes nothing, if `millrace.vacate` does not allow it.
    pub fn vacate(port: *Port) bool {
        if (!revive.vacate(&.{&port.reader}, &.{&port.writer})) return false;
        port.inbox.beginAnew();
        return true;
    }

    /// Closes both directions at once [port.close]. Closing again does nothing.
    ///
    /// Thread-safe: a wait of the port's thread ends with `error.PipeClosed`.
    pub fn close(port: *Port) void {
        port.endpoint.close();
    }

    /// Whether a frame is lent.
    pub fn lent(port: *const Port) bool {
        return port.reader.isLent() or port.inbox.lent and !port.endpoint.closedHere();
    }

    /// Whether `peek` may be called: nothing is lent, and `read` is not in the middle of a message.
    pub fn peekFits(port: *const Port) bool {
        if (port.lent()) return false;
        return port.inbox.filling or !port.reader.partial();
    }

    /// Whether `read` may be called with this storage: no frame is lent, no message was begun by
    /// `peek`, and if the storage of an earlier call holds the first parts of a message, this is
    /// that storage.
    pub fn storageFits(port: *const Port, storage: []const u8) bool {
        if (port.lent()) return false;
        if (port.inbox.filling) return true;
        const parts = port.reader.parts orelse return !port.reader.inProgress();
        return parts.ptr == storage.ptr and parts.len == storage.len;
    }

    /// Gives the port new storage for its inbox.
    ///
    /// Asserts that the inbox is empty.
    pub fn setInbox(port: *Port, storage: []align(Inbox.entry_align) u8) void {
        assert(port.inbox.empty());
        port.inbox = .init(storage);
    }

    /// Returns what the endpoint of this port has counted.
    pub fn stats(port: *const Port) wait.Stats {
        return port.endpoint.stats;
    }

    /// Returns the reason for the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed`:
    /// the number that was found, known or not, or null if there was none [pipe.failed_reason].
    pub fn reason(port: *const Port) ?layout.Reason {
        return port.endpoint.behind;
    }

    /// Called by the writer before the deadline while there is no room.
    pub fn waitForRoom(port: *Port, size: u32, deadline: *Deadline) Endpoint.Outcome {
        const hungry = port.fillInbox();
        port.reader.flush();
        const condition: Wait = .{
            .endpoint = &port.endpoint,
            .writer = &port.writer.ring,
            .size = size,
            .reader = if (hungry) &port.reader.ring else null,
        };
        return port.endpoint.wait(&condition, deadline);
    }

    /// Takes what has arrived, as far as the inbox has room [port.inbox] and one load of the cursor
    /// shows it [ring.one_load]. Returns whether the inbox has room for more. An error is kept in
    /// its place among the messages [port.inbox_fault].
    ///
    /// No wait for a message is open meanwhile, so none has to be ended [port.inbox_wake]: such a
    /// wait would block the port's only thread, which is running this function.
    fn fillInbox(port: *Port) bool {
        const reader = &port.reader;
        // A message that a `read` or `peek` has begun must be completed by those calls. The room of
        // a lent frame is given back only by `release`.
        if (reader.inProgress() and !port.inbox.filling) return false;
        if (port.lent() or port.inbox.stopped) return false;
        var loaded = false;
        while (!reader.ended()) {
            if (!port.inbox.filling and !port.inbox.prepare()) return false;
            port.inbox.filling = true;
            const storage = port.inbox.storageForNext();
            const found = reader.readNow(storage, .leave, &loaded) catch |err| {
                port.inbox.filling = false;
                if (!port.inbox.putError(err)) return false;
                continue;
            };
            port.inbox.filling = reader.partial();
            // If nothing was found and the ring is not empty, the inbox has no room for the next
            // message.
            const message = found orelse return reader.ring.empty() and !reader.ended();
            port.inbox.put(message, reader.time);
        }
        return false;
    }

    fn readInbox(port: *Port, storage: []u8, timeout: Timeout) ReadError!?Message {
        if (try port.awaitInbox(timeout)) { // [port.inbox_order]
            const entry = port.inbox.first();
            defer port.inbox.drop();
            if (entry.err) |err| return err;
            port.reader.time = entry.time;
            if (entry.payload.len > storage.len) return error.MessageSize;
            @memcpy(storage[0..entry.payload.len], entry.payload);
            return .{
                .payload = storage[0..entry.payload.len],
                .kind = entry.kind,
                .codec = entry.codec,
                .tag = entry.tag,
            };
        }
        return null;
    }

    fn peekInbox(port: *Port, timeout: Timeout) ReadError!?Lent {
        if (try port.awaitInbox(timeout)) {
            const entry = port.inbox.first();
            if (entry.err) |err| {
                port.inbox.drop();
                return err;
            }
            port.inbox.lent = true;
            port.reader.time = entry.time;
            return .{
                .payload = entry.payload,
                .kind = entry.kind,
                .codec = entry.codec,
                .tag = entry.tag,
                .first = true,
                .last = true,
                .total = entry.payload.len,
            };
        }
        return null;
    }

    /// Returns whether the inbox has a complete message or an error. A message whose first parts
    /// are in the inbox is completed there.
    fn awaitInbox(port: *Port, timeout: Timeout) ReadError!bool {
        // The close has dropped what was not delivered before [pipe.close].
        if (port.endpoint.closedHere()) return port.endpoint.whyClosed();
        assert(!port.inbox.lent); // [pipe.lend_one]
        if (port.inbox.count > 0) return true;
        assert(port.inbox.filling);
        port.beforeWait(timeout);
        const storage = port.inbox.storageForNext();
        const message = port.reader.read(storage, timeout) catch |err| {
            port.inbox.filling = port.reader.partial();
            return err;
        };
        port.inbox.filling = port.reader.partial();
        port.inbox.put(message orelse return false, port.reader.time);
        return true;
    }

    /// Over a stream, waits until the transport has what was written, or the deadline has passed.
    /// Otherwise it would stay in the ring while the thread does other things. Fails if it can
    /// never go out, because the peer is gone.
    pub inline fn settle(port: *Port, deadline: *Deadline) WriteError!void {
        if (port.endpoint.linked()) |link| try port.settleFor(link, deadline);
    }

    fn settleFor(port: *Port, link: *Link, deadline: *Deadline) WriteError!void {
        if (!port.endpoint.blocking) return;
        while (!link.notes.load(.monotonic).given) {
            try port.writer.check();
            const left_ns = deadline.left(port.endpoint.host);
            if (left_ns == 0) return;
            link.sleep(left_ns);
            link.pump();
        }
    }

    /// [port.publish_both] The reader itself gives back the room of released frames.
    fn beforeWait(port: *Port, timeout: Timeout) void {
        if (timeout != .none) port.writer.publish();
    }
};

/// Returns the channels of an endpoint of a port. The endpoint must be vacant [port.find].
fn find(
    segment: *const Segment,
    index: u32,
) (segment_file.TakeError || error{SegmentChannel})!struct { writer: u32, reader: u32 } {
    const writer = try Writer.find(segment, index, null);
    const reader = try Reader.find(segment, index, null);
    // [port.find_none]
    const same = segment.channels[writer].reader == segment.channels[reader].writer;
    return if (same) .{ .writer = writer, .reader = reader } else error.SegmentChannel;
}

test {
    _ = @import("port_test.zig");
}
