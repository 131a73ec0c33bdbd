//! Counts and times the messages of one end of a pipe, or of a port [spec/meter.md].
//!
//! Invariant: an end without a meter pays nothing. The caller calls the meter in place of the end,
//! and the meter calls the end.

const std = @import("std");
const host_file = @import("../wait/mechanism.zig");
const meter_clock = @import("clock.zig");
const meter_estimate = @import("estimate.zig");
const meter_histogram = @import("tally.zig");
const meter_queue = @import("frames.zig");
const pipe = @import("../pipe/ends.zig");
const wait = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Bytes = @import("../ring/side.zig").Bytes;
const Clock = meter_clock.Clock;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Envelope = pipe.Envelope;
const Lent = pipe.Lent;
const Message = pipe.Message;
const Port = @import("../port/port.zig").Port;
const ReadError = pipe.ReadError;
const Reader = pipe.Reader;
const Timeout = host_file.Timeout;
const WriteError = pipe.WriteError;
const Writer = pipe.Writer;

/// Counts how often each duration was seen.
pub const Histogram = meter_histogram.Histogram;
/// The figures of many durations.
pub const Distribution = meter_histogram.Distribution;
/// One of the counts of a distribution.
pub const Bucket = meter_histogram.Bucket;
/// The upper bounds of those counts, in microseconds.
pub const edges_us = meter_histogram.edges_us;
/// The messages that wait to be read.
pub const Queue = meter_queue.Queue;
/// Measures how long a handler takes, and how many messages per second it can handle.
pub const estimate = meter_estimate.estimate;
/// The result of `estimate`.
pub const Estimate = meter_estimate.Estimate;
/// Options of `estimate`.
pub const EstimateOptions = meter_estimate.EstimateOptions;
/// The figures that a meter reports.
pub const Snapshot = @import("snapshot.zig").Snapshot;
/// A function that returns nanoseconds since the Unix epoch.
pub const Wall = meter_clock.Wall;

const ns_per_us = 1_000;
const ns_per_s = 1_000_000_000;
/// The size from which copying a message takes at least as long as a reading of the clock.
const copied_at_once = 1024;

/// Options of a meter.
pub const Options = struct {
    /// The system's clock by default. A freestanding module of WebAssembly has none, and must set
    /// this.
    wall: ?Wall = meter_clock.system,
};

/// The counts of a writing end.
const Outgoing = struct {
    messages: u64 = 0,
    bytes: u64 = 0,
    /// The counts of messages that `finish` has completed, and that were not published at the last
    /// look.
    finished: Finished = .{},
    stalls: u64 = 0,
    stall: Histogram = .{},

    const Finished = struct { messages: u64 = 0, bytes: u64 = 0 };

    fn count(outgoing: *Outgoing, size: u64) void {
        outgoing.messages += 1;
        outgoing.bytes += size;
    }
};

/// The counts of a reading end.
const Incoming = struct {
    messages: u64 = 0,
    bytes: u64 = 0,
    values: u64 = 0,
    untimed: u64 = 0,
    waiting: Histogram = .{},
    service: Histogram = .{},
    /// Of the message that was handed out last: when it was, or null after its service; its `time`;
    /// how long it had waited; how long its service took so far; its bytes so far; and whether all
    /// of it was handed out.
    taken_ns: ?u64 = null,
    time: u32 = 0,
    waited_ns: u64 = 0,
    served_ns: u64 = 0,
    size: u64 = 0,
    whole: bool = false,

    /// Ends the service of what was handed out last, at `now_ns`.
    fn endService(incoming: *Incoming, now_ns: u64) void {
        const taken_ns = incoming.taken_ns orelse return;
        incoming.taken_ns = null;
        incoming.served_ns += now_ns -| taken_ns;
        if (incoming.whole) incoming.service.record(incoming.served_ns);
    }

    /// Notes that a message, or its first frame, is handed out.
    fn begin(incoming: *Incoming, clock: *Clock, time: u32, now_ns: u64) void {
        incoming.time = time;
        incoming.waited_ns = if (time == 0) 0 else clock.waited(time, now_ns);
        incoming.served_ns = 0;
        incoming.size = 0;
    }

    /// Notes that all of the message was handed out.
    fn complete(incoming: *Incoming) void {
        incoming.messages += 1;
        incoming.bytes += incoming.size;
        incoming.countValue();
    }

    fn countValue(incoming: *Incoming) void {
        incoming.values += 1;
        if (incoming.time == 0) { // [meter.untimed]
            incoming.untimed += 1;
        } else {
            incoming.waiting.record(incoming.waited_ns);
        }
    }
};

/// Counts and times what a `Port`, a `Writer` or a `Reader` does. To write and to read, call
/// `Meter(Port)` in place of the port. Calls on the port itself are not counted, except for their
/// wakes and sleeps. A reader's meter knows how long messages have waited if their writer has a
/// meter.
///
/// Each write and each read reads the clock once. A read that had to wait, or that copies more than
/// 1 KiB, reads it twice. A meter has 60 KB, for the distributions.
///
/// Thread safety: belongs to the thread of the endpoint.
pub fn Meter(comptime End: type) type {
    if (End != Port and End != Writer and End != Reader) {
        @compileError("Cannot meter " ++ @typeName(End) ++ ": it is no port, writer or reader");
    }
    const writes = End != Reader;
    const reads = End != Writer;
    return struct {
        /// The end that it measures.
        end: *End,
        clock: Clock,
        outgoing: if (writes) Outgoing else void = if (writes) .{} else {},
        incoming: if (reads) Incoming else void = if (reads) .{} else {},
        /// When it began to count, and what the endpoint had counted by then.
        begun_ns: u64,
        before: wait.Stats,

        const Self = @This();
        const Send = pipe.SendWith(*Clock);

        /// Begins to count. The end must not move.
        ///
        /// Asserts that there is a clock.
        pub fn init(end: *End, options: Options) Self {
            const endpoint = endpointOf(end);
            const clock: Clock = .{ .host = endpoint.host, .wall = options.wall.? };
            return .{
                .end = end,
                .clock = clock,
                .begun_ns = clock.now(),
                .before = endpoint.stats,
            };
        }

        /// Starts again: all counts are 0. A message whose service is under way counts for its
        /// service.
        pub fn reset(meter: *Self) void {
            if (writes) meter.outgoing = .{};
            if (reads) {
                const incoming = meter.incoming;
                meter.incoming = .{
                    .taken_ns = incoming.taken_ns,
                    .time = incoming.time,
                    .waited_ns = incoming.waited_ns,
                    .served_ns = incoming.served_ns,
                    .size = incoming.size,
                    .whole = incoming.whole,
                };
            }
            meter.begun_ns = meter.clock.now();
            meter.before = endpointOf(meter.end).stats;
        }

        /// Does what `write` of the end does [meter.time].
        pub fn write(
            meter: *Self,
            payload: []const u8,
            envelope: Envelope,
            timeout: Timeout,
        ) WriteError!void {
            return meter.writeParts(&.{payload}, envelope, timeout);
        }

        /// Does what `tryWrite` of the end does.
        pub fn tryWrite(meter: *Self, payload: []const u8, envelope: Envelope) WriteError!bool {
            meter.write(payload, envelope, .none) catch |err| switch (err) {
                error.Timeout => return false,
                else => |other| return other,
            };
            return true;
        }

        /// Does what `writeParts` of the end does.
        pub fn writeParts(
            meter: *Self,
            parts: []const []const u8,
            envelope: Envelope,
            timeout: Timeout,
        ) WriteError!void {
            const writer = writerOf(meter.end);
            writer.ring.loaded = false;
            var send: Send = .init(parts, envelope, timeout);
            send.stamp = &meter.clock;
            var deadline: Deadline = .init(timeout);
            var waiter: Waiter = .{ .meter = meter };
            defer waiter.over();
            try writer.writeWith(&send, &deadline, &waiter);
            meter.outgoing.count(send.total);
            if (End == Port) try meter.end.settle(&deadline);
        }

        /// Does what `writeMany` of the end does. Each message has its own time.
        pub fn writeMany(
            meter: *Self,
            payloads: []const []const u8,
            envelope: Envelope,
            timeout: Timeout,
        ) WriteError!usize {
            var deadline: Deadline = .init(timeout);
            return meter.writeManyWith(payloads, envelope, &deadline);
        }

        /// `writeMany` with a deadline that several calls share.
        pub fn writeManyWith(
            meter: *Self,
            payloads: []const []const u8,
            envelope: Envelope,
            deadline: *Deadline,
        ) WriteError!usize {
            const writer = writerOf(meter.end);
            writer.ring.loaded = false;
            for (payloads, 0..) |payload, index| {
                var send: Send = .init(&.{payload}, envelope, deadline.timeout);
                send.stamp = &meter.clock;
                var waiter: Waiter = .{ .meter = meter };
                defer waiter.over();
                writer.placeWith(&send, deadline, &waiter) catch |err| switch (err) {
                    error.Timeout => return index,
                    else => |other| return other,
                };
                meter.outgoing.count(payload.len);
            }
            writer.publish();
            if (End == Port) try meter.end.settle(deadline);
            return payloads.len;
        }

        /// Does what `claim` of the end does.
        pub fn claim(meter: *Self, size: u32, timeout: Timeout) WriteError!Bytes {
            var waiter: Waiter = .{ .meter = meter };
            defer waiter.over();
            defer meter.countFinished(); // a wait has published them
            return writerOf(meter.end).claimWith(size, timeout, &waiter);
        }

        /// Does what `finish` of the end does. The message counts when it is published.
        pub fn finish(meter: *Self, size: u32, envelope: Envelope) void {
            const writer = writerOf(meter.end);
            const tail = writer.ring.tail;
            writer.finishAt(size, envelope, meter.clock.time());
            if (writer.ring.tail == tail) return; // this end is closed
            meter.outgoing.finished.messages += 1;
            meter.outgoing.finished.bytes += size;
        }

        /// Does what `publish` of the end does.
        pub fn publish(meter: *Self) void {
            writerOf(meter.end).publish();
            meter.countFinished();
        }

        /// Does what `read` of the end does.
        pub fn read(meter: *Self, storage: []u8, timeout: Timeout) ReadError!?Message {
            const look = meter.beginRead();
            const message = (try meter.end.read(storage, timeout)) orelse return null;
            const size = message.payload.len;
            const incoming = &meter.incoming;
            const now_ns = meter.taken(look, size);
            incoming.begin(&meter.clock, readerOf(meter.end).time, now_ns);
            incoming.taken_ns = now_ns;
            incoming.size = size;
            incoming.whole = true;
            incoming.complete();
            return message;
        }

        /// Does what `tryRead` of the end does.
        pub fn tryRead(meter: *Self, storage: []u8) ReadError!?Message {
            return meter.read(storage, .none);
        }

        /// Does what `peek` of the end does. The waiting time of a message of several frames ends
        /// when the first one is lent; the message counts when the last one is lent.
        pub fn peek(meter: *Self, timeout: Timeout) ReadError!?Lent {
            const look = meter.beginRead();
            const lent = (try meter.end.peek(timeout)) orelse return null;
            const incoming = &meter.incoming;
            const now_ns = meter.taken(look, 0);
            const time = readerOf(meter.end).time;
            if (lent.first) incoming.begin(&meter.clock, time, now_ns);
            incoming.taken_ns = now_ns;
            incoming.size += lent.payload.len;
            incoming.whole = lent.last;
            if (lent.last) incoming.complete();
            return lent;
        }

        /// Does what `release` of the end does. The service goes on until the next call that reads,
        /// or `done`.
        pub fn release(meter: *Self) void {
            meter.end.release();
        }

        /// Notes that the next value of the batch that was read last is handed out now. A caller
        /// that cuts batches calls it before each value but the first [meter.batch].
        pub fn nextValue(meter: *Self) void {
            const incoming = &meter.incoming;
            const now_ns = meter.clock.now();
            incoming.endService(now_ns);
            incoming.begin(&meter.clock, incoming.time, now_ns);
            incoming.taken_ns = now_ns;
            incoming.countValue();
        }

        /// Notes that the service of the message that was read last is over. Call it before doing
        /// something else than reading the next message, such as waiting for other pipes in a
        /// `Select`.
        pub fn done(meter: *Self) void {
            if (meter.incoming.taken_ns != null) meter.incoming.endService(meter.clock.now());
        }

        /// Returns the figures so far. To count the queue, it goes through the frames in the ring.
        pub fn snapshot(meter: *Self) Snapshot {
            const now_ns = meter.clock.now();
            const elapsed_ns = now_ns -| meter.begun_ns;
            const endpoint = endpointOf(meter.end);
            const at_ns = meter.clock.epoch(now_ns);
            return .{
                .at = float(at_ns / ns_per_us) / 1_000,
                .elapsed = float(elapsed_ns) / ns_per_us,
                .endpoint = .{
                    .index = endpoint.index,
                    .wakes = endpoint.stats.wakes -% meter.before.wakes,
                    .elided_wakes = endpoint.stats.wakes_elided -% meter.before.wakes_elided,
                    .sleeps = endpoint.stats.parks -% meter.before.parks,
                },
                .outgoing = if (writes) meter.outgoingFigures(elapsed_ns) else null,
                .incoming = if (reads) meter.incomingFigures(elapsed_ns) else null,
            };
        }

        fn outgoingFigures(meter: *Self, elapsed_ns: u64) Snapshot.Outgoing {
            meter.countFinished();
            const outgoing = &meter.outgoing;
            return .{
                .messages = outgoing.messages,
                .bytes = outgoing.bytes,
                .stalls = outgoing.stalls,
                .message_rate = rate(outgoing.messages, elapsed_ns),
                .byte_rate = rate(outgoing.bytes, elapsed_ns),
                .queue = meter_queue.ofWriter(&writerOf(meter.end).ring),
                .stall = outgoing.stall.distribution(),
            };
        }

        fn incomingFigures(meter: *Self, elapsed_ns: u64) Snapshot.Incoming {
            const incoming = &meter.incoming;
            var queue = meter_queue.ofReader(&readerOf(meter.end).ring);
            if (End == Port) {
                queue.messages += meter.end.inbox.count;
                queue.bytes += meter.end.inbox.end - meter.end.inbox.begin;
            }
            return .{
                .messages = incoming.messages,
                .bytes = incoming.bytes,
                .values = incoming.values,
                .untimed = incoming.untimed,
                .message_rate = rate(incoming.messages, elapsed_ns),
                .byte_rate = rate(incoming.bytes, elapsed_ns),
                .value_rate = rate(incoming.values, elapsed_ns),
                .queue = queue,
                .waiting = incoming.waiting.distribution(),
                .service = incoming.service.distribution(),
            };
        }

        /// Counts the finished messages, once all of them are published.
        fn countFinished(meter: *Self) void {
            const ring = &writerOf(meter.end).ring;
            const outgoing = &meter.outgoing;
            if (ring.published != ring.tail) return;
            outgoing.messages += outgoing.finished.messages;
            outgoing.bytes += outgoing.finished.bytes;
            outgoing.finished = .{};
        }

        const Look = struct { now_ns: u64, waits: u32 };

        /// Begins a call that reads, which ends the service of what was read before.
        fn beginRead(meter: *Self) Look {
            const now_ns = meter.clock.now();
            meter.incoming.endService(now_ns);
            return .{ .now_ns = now_ns, .waits = endpointOf(meter.end).waits };
        }

        /// Returns when the message was taken. A message that was there already, and was copied
        /// quickly, was taken when the call began.
        fn taken(meter: *Self, look: Look, size: usize) u64 {
            const is_same = endpointOf(meter.end).waits == look.waits and size <= copied_at_once;
            return if (is_same) look.now_ns else meter.clock.now();
        }

        /// Notes that a message had to wait for room.
        const Waiter = struct {
            meter: *Self,
            begun_ns: ?u64 = null,

            /// Called by the writer.
            pub fn waitForRoom(
                waiter: *Waiter,
                size: u32,
                deadline: *Deadline,
            ) Endpoint.Outcome {
                const meter = waiter.meter;
                if (waiter.begun_ns == null) {
                    waiter.begun_ns = meter.clock.now();
                    meter.outgoing.stalls += 1;
                }
                return meter.end.waitForRoom(size, deadline);
            }

            fn over(waiter: *const Waiter) void {
                const begun_ns = waiter.begun_ns orelse return;
                waiter.meter.outgoing.stall.record(waiter.meter.clock.now() -| begun_ns);
            }
        };

        fn endpointOf(end: *End) *Endpoint {
            return if (End == Port) &end.endpoint else end.ring.endpoint;
        }

        fn readerOf(end: *End) *Reader {
            return if (End == Port) &end.reader else end;
        }

        fn writerOf(end: *End) *Writer {
            return if (End == Port) &end.writer else end;
        }
    };
}

fn float(count: u64) f64 {
    return @floatFromInt(count);
}

fn rate(count: u64, elapsed_ns: u64) f64 {
    return if (elapsed_ns == 0) 0 else float(count) * ns_per_s / float(elapsed_ns);
}

test {
    _ = @import("estimate.zig");
    _ = @import("tally.zig");
}

// Tests.
//
// Meters on one thread, with clocks that the test winds.

const millrace = @import("../root.zig");
const frame = @import("../ring/frame.zig");
const clocks = @import("fixture.zig");
const layout = millrace.layout;
const passUs = clocks.passUs;
const wall = clocks.wall;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;

/// A port with both ends on one thread. Must not move after it was initialized.
const Table = struct {
    memory: [16_384]u8 align(128),
    inboxes: [2][4096]u8 align(16),
    ports: [2]Port,
    meters: [2]Meter(Port),
    storage: [8192]u8,

    const options: millrace.meter.Options = .{ .wall = wall };

    /// Makes clocks of which the time of day shows `epoch_us` microseconds since the Unix epoch.
    fn init(table: *Table, capacity: u32, epoch_us: u64) !void {
        clocks.now_ns = 1_000_000;
        clocks.epoch_ns = epoch_us * 1_000 - clocks.now_ns;
        clocks.asleep = null;
        try Port.format(&table.memory, .{ .capacities = @splat(capacity) });
        for (&table.ports, &table.meters, &table.inboxes, 0..) |*port, *each, *inbox, index| {
            try port.attach(&table.memory, @intCast(index), .{
                .endpoint = .{ .host = &clocks.wound, .spin_us = 0 },
                .inbox = inbox,
            });
            each.* = .init(port, options);
        }
    }

    fn read(table: *Table) !millrace.Message {
        return (try table.meters[1].tryRead(&table.storage)) orelse error.NoMessage;
    }

    fn readTime(table: *Table) !u32 {
        _ = try table.read();
        return table.ports[1].reader.time;
    }

    fn out(table: *Table) millrace.meter.Snapshot.Outgoing {
        return table.meters[0].snapshot().outgoing.?;
    }

    fn in(table: *Table) millrace.meter.Snapshot.Incoming {
        return table.meters[1].snapshot().incoming.?;
    }
};

/// An arbitrary time.
const some_us = 1_795_460_958_881_125;

test "Meter: [meter.waiting] a message has waited from its frame until it is read" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    try table.meters[0].write("one", .{}, .none);
    passUs(300);
    try table.meters[0].write("two", .{ .tag = 7 }, .none);
    passUs(20);
    try expectEqual(@as(u32, @truncate(some_us)), try table.readTime());
    try expectEqual(7, (try table.read()).tag);
    const waiting = table.in().waiting;
    try expectEqual(2, waiting.count);
    try expectEqual(20, waiting.least);
    try expectEqual(320, waiting.most);
    try expectEqual(170, waiting.mean);
    try expectEqual(6, table.in().bytes);
    try expectEqual(6, table.out().bytes);
    try expectEqual(2, table.in().messages);
    try expectEqual(2, table.out().messages);
    // 2 messages in 320 us.
    try expectEqual(6_250, table.out().message_rate);
    try expectEqual(320, table.meters[0].snapshot().elapsed);
    try expectEqual(@as(f64, some_us + 320) / 1_000, table.meters[0].snapshot().at);
}

test "Meter: [frame.time] differences are signed and modulo 2^32, and one below 0 is 0" {
    var table: Table = undefined;
    const turn_us = @as(u64, 1) << 32;
    try table.init(4096, 7 * turn_us - 0xc8);
    try table.meters[0].write("across", .{}, .none);
    passUs(300);
    try expectEqual(@as(u32, 0xffff_ff38), try table.readTime());
    try expectEqual(300, table.in().waiting.most);
    // The clock is set back while the message waits.
    try table.meters[0].write("set", .{}, .none);
    clocks.epoch_ns -= 1_000_000_000;
    passUs(200_000);
    _ = try table.read();
    try expectEqual(0, table.in().waiting.least);
    try expectEqual(300, table.in().waiting.most);
}

test "Meter: [meter.time] a clock that shows 0 stores 1, and a message without a time is untimed" {
    var table: Table = undefined;
    try table.init(4096, @as(u64, 3) << 32);
    try table.meters[0].write("zero", .{}, .none);
    try expectEqual(1, try table.readTime());
    try table.ports[0].write("no meter", .{}, .none);
    try expectEqual(0, try table.readTime()); // [meter.untimed]
    const incoming = table.in();
    try expectEqual(1, incoming.untimed);
    try expectEqual(1, incoming.waiting.count);
    try expectEqual(2, incoming.values);
    try expectEqual(1, table.out().messages);
}

test "Meter: the service lasts until the call that reads on, or until it is said to be done" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    for (0..3) |_| try table.meters[0].write("served", .{}, .none);
    _ = try table.read();
    passUs(50);
    try expectEqual(0, table.in().service.count);
    _ = try table.read();
    passUs(10);
    table.meters[1].done();
    passUs(1_000); // counts for nobody
    _ = try table.read();
    passUs(30);
    try expectEqual(null, try table.meters[1].tryRead(&table.storage));
    passUs(500);
    try expectEqual(null, try table.meters[1].tryRead(&table.storage));
    const service = table.in().service;
    try expectEqual(3, service.count);
    try expectEqual(10, service.least);
    try expectEqual(50, service.most);
    try expectEqual(30, service.mean);
}

/// Returns the times of the frames between two cursors.
fn times(port: *const Port, storage: []u32) ![]const u32 {
    const ring = &port.writer.ring;
    var position = ring.head;
    var count: usize = 0;
    while (position != ring.tail) {
        const offset = position & (ring.capacity - 1);
        const header: frame.Header = .load(@alignCast(ring.area[offset..][0..16]));
        position +%= frame.extentOf(header.size);
        if (header.kind == layout.frame_kind_pad) continue;
        storage[count] = header.time;
        count += 1;
    }
    return storage[0..count];
}

test "Meter: [meter.time] only the first frame of a message has its time" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    const large: [3000]u8 = @splat('x');
    try table.meters[0].write(&large, .{}, .none);
    var storage: [16]u32 = undefined;
    const found = try times(&table.ports[0], &storage);
    try expect(found.len > 1);
    try expectEqual(@as(u32, @truncate(some_us)), found[0]);
    for (found[1..]) |time| try expectEqual(0, time);
    passUs(40);
    try expectEqual(@as(u32, @truncate(some_us)), try table.readTime());
    try expectEqual(40, table.in().waiting.most);
    try expectEqual(3000, table.in().bytes);
    try expectEqual(1, table.in().messages);
    try expectEqual(1, table.out().messages);
}

test "Meter: writeMany gives each message a time of its own" {
    var table: Table = undefined;
    try table.init(256, some_us);
    try expectEqual(3, try table.meters[0].writeMany(&.{ "a", "b", "c" }, .{}, .none));
    try expectEqual(3, table.out().messages);
    // There is room for four more of 48 bytes.
    const long: [20]u8 = @splat('d');
    const payloads: [6][]const u8 = @splat(&long);
    const count = try table.meters[0].writeMany(&payloads, .{}, .none);
    try expect(count < payloads.len);
    try expectEqual(3 + count, table.out().messages);
    try expectEqual(0, table.out().stalls); // it did not wait
    var storage: [16]u32 = undefined;
    for (try times(&table.ports[0], &storage)) |time| {
        try expectEqual(@as(u32, @truncate(some_us)), time);
    }
}

/// The port whose message is read while the other side sleeps.
var sleeper: *Table = undefined;

fn readMeanwhile() void {
    passUs(70);
    _ = sleeper.meters[1].tryRead(&sleeper.storage) catch unreachable;
}

test "Meter: a message that found no room is a stall, and its time is that of its frame" {
    var table: Table = undefined;
    try table.init(256, some_us);
    sleeper = &table;
    clocks.asleep = readMeanwhile;
    const half: [100]u8 = @splat('h');
    try table.meters[0].write(&half, .{}, .forever);
    try expectEqual(0, table.out().stalls);
    try table.meters[0].write(&half, .{}, .forever);
    try expectEqual(1, table.out().stalls);
    try expectEqual(70, table.out().stall.mean);
    // It was finished after the wait, so it has not waited yet.
    try expectEqual(@as(u32, @truncate(some_us + 70)), try table.readTime());
    try expectEqual(0, table.in().waiting.least);
    try expectEqual(70, table.in().waiting.most);
    try expect(table.meters[0].snapshot().endpoint.sleeps > 0);
    // A call that does not want to wait has no stall; one that gives up has.
    clocks.asleep = null;
    try expect(try table.meters[0].tryWrite(&half, .{}));
    try expect(!try table.meters[0].tryWrite(&half, .{}));
    try expectEqual(1, table.out().stalls);
    try std.testing.expectError(error.Timeout, table.meters[0].write(&half, .{}, .ms(5)));
    try expectEqual(2, table.out().stalls);
    try expectEqual(5_000, table.out().stall.most);
    try expectEqual(3, table.out().messages);
}

test "Meter: a message of many frames that waits for room again and again is one stall" {
    var table: Table = undefined;
    try table.init(256, some_us);
    sleeper = &table;
    clocks.asleep = readMeanwhile;
    const large: [1000]u8 = @splat('l');
    try table.meters[0].write(&large, .{}, .forever);
    const rounds = table.meters[0].snapshot().endpoint.sleeps;
    try expect(rounds > 1);
    try expectEqual(1, table.out().stalls);
    try expectEqual(@as(f64, @floatFromInt(70 * rounds)), table.out().stall.most);
    try expectEqual(1000, (try table.read()).payload.len);
    try expectEqual(@as(f64, @floatFromInt(70 * rounds)), table.in().waiting.most);
}

test "Meter: both ends count the queue in messages and bytes, pads and inbox included" {
    var table: Table = undefined;
    try table.init(256, some_us);
    const small: [40]u8 = @splat('s'); // takes 64 bytes
    for (0..2) |_| try table.meters[0].write(&small, .{}, .none);
    _ = try table.read();
    try expectEqual(millrace.meter.Queue{ .messages = 1, .bytes = 64 }, table.out().queue);
    try expectEqual(millrace.meter.Queue{ .messages = 1, .bytes = 64 }, table.in().queue);
    try table.meters[0].write(small[0..20], .{}, .none); // up to 176
    _ = try table.read();
    const more: [70]u8 = @splat('m'); // takes 96, and does not fit the 80 before the end
    try table.meters[0].write(&more, .{}, .none);
    const full: millrace.meter.Queue = .{ .messages = 2, .bytes = 48 + 80 + 96 };
    try expectEqual(full, table.in().queue);
    try expectEqual(full, table.out().queue);
    // The other side cannot write, and meanwhile takes what there is into its inbox.
    for (0..3) |_| _ = try table.ports[1].tryWrite(&more, .{});
    try std.testing.expectError(error.Timeout, table.ports[1].write(&more, .{}, .ms(1)));
    try expectEqual(0, table.out().queue.bytes);
    try expectEqual(2, table.in().queue.messages);
    try expect(table.in().queue.bytes > 0);
    passUs(9);
    _ = try table.read();
    try expectEqual(1_009, table.in().waiting.most); // the inbox kept its time
    try expectEqual(1, table.in().queue.messages);
}

test "Meter: what is finished counts when it is published" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    const writer = &table.meters[0];
    @memcpy((try writer.claim(4, .none))[0..3], "abc");
    writer.finish(3, .{});
    passUs(5);
    _ = try writer.claim(4, .none);
    try expectEqual(0, table.out().messages);
    writer.finish(0, .{});
    writer.publish();
    try expectEqual(2, table.out().messages);
    try expectEqual(3, table.out().bytes);
    _ = try writer.claim(4, .none);
    table.ports[0].close();
    writer.finish(4, .{});
    try expectEqual(2, table.out().messages);
    _ = try table.read();
    _ = try table.read();
    try expectEqual(5, table.in().waiting.most);
    try expectEqual(0, table.in().waiting.least);
}

test "Meter: a message that is lent frame by frame counts once, with the service of all frames" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    const large: [3000]u8 = @splat('x');
    try table.meters[0].write(&large, .{}, .none);
    passUs(100);
    const reader = &table.meters[1];
    var count: u64 = 0;
    while (true) {
        const lent = (try reader.peek(.none)) orelse return error.NoMessage;
        count += 1;
        try expectEqual(@as(u64, @intFromBool(lent.last)), table.in().messages);
        passUs(10);
        reader.release();
        if (lent.last) break;
    }
    reader.done();
    try expect(count > 1);
    try expectEqual(3000, table.in().bytes);
    try expectEqual(100, table.in().waiting.most);
    try expectEqual(1, table.in().waiting.count);
    try expectEqual(@as(f64, @floatFromInt(10 * count)), table.in().service.most);
    try expectEqual(1, table.in().service.count);
}

test "Meter: [meter.batch] each value of a batch has waited until it is handed out" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    try table.meters[0].write("[1,2,3]", .{ .codec = .json_batch }, .none);
    passUs(100);
    _ = try table.read();
    for (0..2) |_| {
        passUs(10);
        table.meters[1].nextValue();
    }
    passUs(10);
    table.meters[1].done();
    const incoming = table.in();
    try expectEqual(1, incoming.messages);
    try expectEqual(3, incoming.values);
    try expectEqual(3, incoming.waiting.count);
    try expectEqual(110, incoming.waiting.mean);
    try expectEqual(120, incoming.waiting.most);
    try expectEqual(3, incoming.service.count);
    try expectEqual(10, incoming.service.most);
}

test "Meter: reset begins anew, and knows what the endpoint did before" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    try table.meters[0].write("one", .{}, .none);
    _ = try table.read();
    try expectEqual(1, table.meters[0].snapshot().endpoint.elided_wakes);
    passUs(10);
    for (&table.meters) |*each| each.reset();
    passUs(10);
    try table.meters[0].write("two", .{}, .none);
    _ = try table.read();
    try expectEqual(1, table.meters[0].snapshot().endpoint.elided_wakes);
    try expectEqual(1, table.out().messages);
    try expectEqual(1, table.in().waiting.count);
    try expectEqual(20, table.in().service.most); // of the first one
    try expectEqual(10, table.meters[1].snapshot().elapsed);
}

test "Meter: one direction alone reports no other" {
    var memory: [2048]u8 align(128) = undefined;
    const channels = [_]millrace.Channel{.{ .writer = 0, .reader = 1, .data_size = 256 }};
    try millrace.Segment.format(&memory, .{ .endpoint_count = 2, .channels = &channels });
    var storage: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(&memory, &storage, .none);
    var endpoints: [2]millrace.Endpoint = undefined;
    for (&endpoints, 0..) |*endpoint, index| {
        const options: millrace.Endpoint.Options = .{ .host = &clocks.wound, .spin_us = 0 };
        endpoint.* = try .attach(&segment, @intCast(index), options);
    }
    var writer: millrace.Writer = try .init(&endpoints[0], &segment, 0);
    var reader: millrace.Reader = try .init(&endpoints[1], &segment, 0);
    var writing: Meter(millrace.Writer) = .init(&writer, Table.options);
    var reading: Meter(millrace.Reader) = .init(&reader, Table.options);
    try writing.write("one way", .{}, .none);
    passUs(3);
    var payload: [16]u8 = undefined;
    _ = try reading.tryRead(&payload);
    const written = writing.snapshot();
    const read = reading.snapshot();
    try expectEqual(null, written.incoming);
    try expectEqual(1, written.outgoing.?.messages);
    try expectEqual(null, read.outgoing);
    try expectEqual(3, read.incoming.?.waiting.most);
    try expectEqual(1, read.endpoint.index);
}

test "Meter: what the peer stores in the ring is believed no further than it can be" {
    var random: std.Random.DefaultPrng = .init(5);
    const rand = random.random();
    var table: Table = undefined;
    for (0..2_000) |_| {
        try table.init(256, some_us);
        for (0..3) |_| try table.meters[0].write("abcdefghij", .{}, .none);
        const ring = &table.ports[0].writer.ring;
        for (0..8) |_| {
            const offset = rand.uintLessThan(u32, 16) * 16;
            const size = rand.int(u32) >> rand.int(u5);
            std.mem.writeInt(u32, ring.area[offset..][0..4], size, .little);
        }
        if (rand.boolean()) @atomicStore(u32, &ring.control.tail, rand.int(u32), .seq_cst);
        if (rand.boolean()) @atomicStore(u32, &ring.control.head, rand.int(u32), .seq_cst);
        for ([_]millrace.meter.Queue{ table.out().queue, table.in().queue }) |queue| {
            try expect(queue.bytes <= 256 and queue.messages <= 16);
        }
    }
}

test "Snapshot: its JSON is that which the schema of all implementations describes" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    for (0..3) |_| try table.meters[0].write("{\"frame\":1}", .{ .codec = .json }, .none);
    passUs(15);
    _ = try table.read();
    passUs(40);
    _ = try table.read();
    passUs(445);
    const kept = @embedFile("snapshot.jsonl");
    var storage: [8192]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&storage);
    try table.meters[1].snapshot().writeJson(&writer);
    try writer.writeByte('\n');
    const reader: Meter(millrace.Reader) = .init(&table.ports[1].reader, Table.options);
    var alone = reader;
    try std.json.Stringify.value(&alone.snapshot(), .{}, &writer);
    try writer.writeByte('\n');
    try std.testing.expectEqualStrings(kept, writer.buffered());
}
