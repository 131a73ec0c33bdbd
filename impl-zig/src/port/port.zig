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

// Tests.
//
// Ports: echo both ways between real threads, the inbox, and how a port ends. Every wait is
// bounded.

const builtin = @import("builtin");
const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;

const patience: millrace.Timeout = .ms(20_000);

const Setup = struct {
    capacity: u32,
    start: u32 = 0,
    spin_us: u32,
    count: u32,
    size_max: u32,
    inbox: bool = false,
};

fn echo(memory: millrace.Memory, setup: Setup) !void {
    var inbox: [16_384]u8 align(16) = undefined;
    var b: Port = undefined;
    try b.attach(memory, 1, .{
        .endpoint = .{ .spin_us = setup.spin_us },
        .inbox = if (setup.inbox) &inbox else &.{},
    });
    var storage: [65_536]u8 = undefined;
    while (try b.read(&storage, patience)) |message| {
        try b.write(message.payload, .{ .tag = message.tag, .codec = message.codec }, patience);
    }
    try testing.expect(b.ended());
    try b.end();
}

/// Exchanges messages of seeded sizes, one after the other, there and back.
fn echoTest(setup: Setup, seed: u64) !void {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [64 * 1024]u8 align(128) = @splat(0);
    const rings: millrace.Rings = .{
        .capacities = .{ setup.capacity, setup.capacity },
        .starts = .{ setup.start, setup.start +% 16 },
    };
    var a: Port = undefined;
    try a.create(&memory, rings, 0, .{ .endpoint = .{ .spin_us = setup.spin_us } });
    const thread = try std.Thread.spawn(.{}, echo, .{ @as(millrace.Memory, &memory), setup });
    defer thread.join();
    defer a.close();
    var random: std.Random.DefaultPrng = .init(seed);
    var storage: [65_536]u8 = undefined;
    var payload: [65_536]u8 = undefined;
    for (0..setup.count) |index| {
        const size = random.random().uintAtMost(u32, setup.size_max);
        fixture.pattern(payload[0..size], @intCast(index));
        try a.write(payload[0..size], .{ .tag = @intCast(index), .codec = .text }, patience);
        const message = (try a.read(&storage, patience)) orelse return error.NoMessage;
        try testing.expectEqual(index, message.tag);
        try testing.expectEqual(.text, message.codec);
        try testing.expect(std.mem.eql(u8, payload[0..size], message.payload));
    }
    try a.end();
    try testing.expectEqual(null, try a.read(&storage, patience));
    try testing.expect(a.ended());
}

test "echo between two threads that spin" {
    try echoTest(.{
        .capacity = 4096,
        .start = 0xffff_f000,
        .spin_us = 1000,
        .count = 5000,
        .size_max = 200,
    }, 1);
}

test "echo between two threads that sleep at once" {
    try echoTest(.{
        .capacity = 1024,
        .start = 0xffff_ff00,
        .spin_us = 0,
        .count = 1500,
        .size_max = 200,
    }, 2);
}

test "echo of messages larger than the rings, spinning and sleeping" {
    try echoTest(.{ .capacity = 256, .spin_us = 100, .count = 300, .size_max = 3000 }, 3);
    try echoTest(.{ .capacity = 1024, .spin_us = 0, .count = 100, .size_max = 30_000 }, 4);
}

test "a stream of seeded sizes from thread to thread, one after the other and in batches" {
    if (builtin.single_threaded) return error.SkipZigTest;
    for ([_]u32{ 0, 200 }) |spin_us| {
        var memory: [16 * 1024]u8 align(128) = undefined;
        const geometry = fixture.pipeGeometry(2048, 0xffff_fc00);
        try millrace.Segment.format(&memory, .{ .endpoint_count = 2, .channels = &geometry });
        const shared: millrace.Memory = &memory;
        const thread = try std.Thread.spawn(.{}, produce, .{ shared, spin_us });
        defer thread.join();
        var channels: [1]millrace.Channel = undefined;
        const segment: millrace.Segment = try .attach(&memory, &channels, patience);
        var endpoint: millrace.Endpoint = try .attach(&segment, 1, .{ .spin_us = spin_us });
        defer endpoint.close();
        var reader: millrace.Reader = try .init(&endpoint, &segment, 0);
        var storage: [4096]u8 = undefined;
        var payload: [4096]u8 = undefined;
        var expected: u32 = 0;
        while (try reader.read(&storage, patience)) |message| : (expected += 1) {
            try testing.expectEqual(expected, message.tag);
            fixture.pattern(payload[0..message.payload.len], expected);
            try testing.expect(std.mem.eql(u8, payload[0..message.payload.len], message.payload));
        }
        try testing.expect(reader.ended());
        try testing.expectEqual(stream_count, expected);
    }
}

const stream_count = 20_000;

fn produce(memory: millrace.Memory, spin_us: u32) !void {
    var channels: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(memory, &channels, patience);
    var endpoint: millrace.Endpoint = try .attach(&segment, 0, .{ .spin_us = spin_us });
    var writer: millrace.Writer = try .init(&endpoint, &segment, 0);
    var random: std.Random.DefaultPrng = .init(5);
    var payload: [4096]u8 = undefined;
    for (0..stream_count) |index| {
        const shift = random.random().int(u4);
        const size = random.random().uintLessThan(u32, @as(u32, 1) << @min(shift, 12));
        fixture.pattern(payload[0..size], @intCast(index));
        if (size < 900 and size % 3 == 0) {
            const bytes = try writer.claim(size, patience);
            @memcpy(bytes, payload[0..size]);
            writer.finish(size, .{ .tag = @intCast(index) });
            if (size % 2 == 0) writer.publish();
        } else {
            try writer.write(payload[0..size], .{ .tag = @intCast(index) }, patience);
        }
    }
    try writer.end();
}

test "two floods pass one another through the inboxes" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [16 * 1024]u8 align(128) = @splat(0);
    var a: Port = undefined;
    var inbox: [8192]u8 align(16) = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    try a.create(&memory, rings, 0, .{ .inbox = &inbox, .endpoint = .{ .spin_us = 0 } });
    const thread = try std.Thread.spawn(.{}, floodOther, .{@as(millrace.Memory, &memory)});
    defer thread.join();
    defer a.close();
    try flood(&a);
    try testing.expect(a.stats().parks < 10_000);
}

fn floodOther(memory: millrace.Memory) !void {
    var b: Port = undefined;
    var inbox: [8192]u8 align(16) = undefined;
    try b.attach(memory, 1, .{ .inbox = &inbox, .endpoint = .{ .spin_us = 0 } });
    try flood(&b);
}

/// Writes far more than the ring holds before it reads anything.
fn flood(port: *Port) !void {
    var payload: [300]u8 = undefined;
    for (0..20) |index| {
        const size = index * 15;
        fixture.pattern(payload[0..size], @intCast(index));
        try port.write(payload[0..size], .{ .tag = @intCast(index) }, patience);
    }
    var storage: [300]u8 = undefined;
    for (0..20) |index| {
        const message = (try port.read(&storage, patience)) orelse return error.NoMessage;
        try testing.expectEqual(index, message.tag);
        fixture.pattern(payload[0 .. index * 15], @intCast(index));
        try testing.expectEqualSlices(u8, payload[0 .. index * 15], message.payload);
    }
}

/// Both ends of a port on one thread.
const Both = struct {
    memory: [8192]u8 align(128) = @splat(0),
    inbox: [512]u8 align(16) = undefined,
    a: Port = undefined,
    b: Port = undefined,

    fn init(both: *Both, inbox_size: usize) !void {
        const rings: millrace.Rings = .{ .capacities = .{ 256, 1024 } };
        const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        try both.a.create(&both.memory, rings, 0, .{
            .endpoint = endpoint,
            .inbox = @alignCast(both.inbox[0..inbox_size]),
        });
        try both.b.create(&both.memory, rings, 1, .{ .endpoint = endpoint });
    }

    /// Waits for room, in vain.
    fn stall(both: *Both) !void {
        while (try both.a.tryWrite("full", .{})) {}
        try testing.expectError(error.Timeout, both.a.write("full", .{}, .ms(1)));
    }
};

test "the inbox keeps messages and the errors among them in order, up to its limit" {
    var both: Both = .{};
    try both.init(512);
    try both.b.write("one", .{ .tag = 1 }, .none);
    try both.b.write("call", .{ .kind = .call }, .none);
    try both.b.write("", .{ .tag = 2 }, .none);
    const large: [500]u8 = @splat(7);
    try both.b.write(&large, .{ .tag = 3 }, .none);
    try both.stall();
    try testing.expectEqual(3, both.a.inbox.count);
    try both.b.end();
    var storage: [600]u8 = undefined;
    try testing.expectEqualStrings("one", (try both.a.tryRead(&storage)).?.payload);
    try testing.expectError(error.MessageKind, both.a.tryRead(&storage));
    try testing.expectEqual(2, (try both.a.tryRead(&storage)).?.tag);
    try testing.expectEqualSlices(u8, &large, (try both.a.tryRead(&storage)).?.payload);
    try testing.expectEqual(null, try both.a.tryRead(&storage));
    try testing.expect(both.a.ended());
}

test "a message whose parts come while the port writes is completed in the inbox" {
    var both: Both = .{};
    try both.init(512);
    var payload: [400]u8 = undefined;
    fixture.pattern(&payload, 4);
    // b places the first chunks of a message that does not fit a's ring at once.
    const filler: [400]u8 = @splat(1);
    for (0..2) |_| try both.b.write(&filler, .{}, .none);
    var storage: [600]u8 = undefined;
    try testing.expect((try both.a.tryRead(&storage)) != null);
    try testing.expect((try both.a.tryRead(&storage)) != null);
    const ring = &both.b.writer.ring;
    var chunk: [216]u8 = @splat(0);
    std.mem.writeInt(u64, chunk[0..8], 400, .little);
    @memcpy(chunk[16..], payload[0..200]);
    @memcpy((try ring.claim(216)).?, &chunk);
    ring.finish(.{ .size = 216, .kind = 1, .flags = 1, .tag = 9 });
    ring.publish();
    try both.stall();
    try testing.expect(both.a.inbox.filling);
    try testing.expectEqual(null, try both.a.tryRead(&storage));
    @memcpy((try ring.claim(200)).?, payload[200..]);
    ring.finish(.{ .size = 200, .kind = 1, .flags = 2, .tag = 9 });
    ring.publish();
    const lent = (try both.a.peek(.none)).?;
    try testing.expectEqualSlices(u8, &payload, lent.payload);
    try testing.expectEqual(9, lent.tag);
    both.a.release();
    try testing.expectEqual(null, try both.a.tryRead(&storage));
}

test "a port without an inbox times out, and loses nothing" {
    var both: Both = .{};
    try both.init(0);
    try both.b.write("one", .{ .tag = 1 }, .none);
    try both.stall();
    var storage: [16]u8 = undefined;
    try testing.expectEqual(1, (try both.a.tryRead(&storage)).?.tag);
    try both.a.end();
    try testing.expectError(error.PipeEnded, both.a.write("x", .{}, .none));
    both.b.close();
    try testing.expectError(error.PeerClosed, both.a.tryRead(&storage));
}

test "a port refuses a segment without its two rings, and leaves it as it was" {
    var memory: [4096]u8 align(128) = undefined;
    const geometry = fixture.pipeGeometry(256, 0);
    try millrace.Segment.format(&memory, .{ .endpoint_count = 3, .channels = &geometry });
    var port: Port = undefined;
    for (0..3) |index| {
        const attached = port.attach(&memory, @intCast(index), .{ .timeout = .none });
        try testing.expectError(error.SegmentChannel, attached);
    }
    try testing.expectError(error.SegmentEndpoint, port.attach(&memory, 3, .{ .timeout = .none }));
    const three = [_]millrace.Channel{
        .{ .writer = 0, .reader = 1, .data_size = 256 },
        .{ .writer = 2, .reader = 0, .data_size = 256 },
    };
    try millrace.Segment.format(&memory, .{ .endpoint_count = 3, .channels = &three });
    try testing.expectError(error.SegmentChannel, port.attach(&memory, 0, .{ .timeout = .none }));
    try testing.expectEqual(0, std.mem.readInt(u32, memory[132..136], .little));
}

test "a peer that dies while a thread sleeps: its supervisor wakes the sleeper" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [8192]u8 align(128) = @splat(0);
    var a: Port = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    try a.create(&memory, rings, 0, .{ .endpoint = .{ .spin_us = 0 } });
    const Supervisor = struct {
        fn run(bytes: millrace.Memory) !void {
            var channels: [2]millrace.Channel = undefined;
            const segment: millrace.Segment = try .attach(bytes, &channels, patience);
            millrace.Host.native.pause(20_000_000);
            segment.fail(segment.ownerOf(1), .peer_terminated, .native);
        }
    };
    const thread = try std.Thread.spawn(.{}, Supervisor.run, .{@as(millrace.Memory, &memory)});
    defer thread.join();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.PeerFailed, a.read(&storage, patience));
    try testing.expectEqual(.peer_terminated, a.reason().?);
}
