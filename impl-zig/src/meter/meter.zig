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
    _ = @import("meter_test.zig");
}
