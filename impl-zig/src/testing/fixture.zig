//! Shared by tests: a pipe with both ends on one thread, and a machine whose clock the test winds.

const std = @import("std");
const millrace = @import("../root.zig");
const frame = @import("../ring/frame.zig");
const layout = millrace.layout;
const linux = std.os.linux;

/// A pipe with both ends on one thread. Must not move after it was initialized.
pub const Pair = struct {
    pub const capacity_max = 4096;

    memory: [8192]u8 align(layout.segment_align),
    channels: [1]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [2]millrace.Endpoint,
    writer: millrace.Writer,
    reader: millrace.Reader,
    kept: [capacity_max]u8,

    pub fn init(pair: *Pair, capacity: u32, start: u32) !void {
        std.debug.assert(capacity <= capacity_max);
        // The area may have held any bytes before.
        @memset(&pair.memory, 0xa5);
        const geometry = pipeGeometry(capacity, start);
        try millrace.Segment.format(&pair.memory, .{
            .endpoint_count = 2,
            .channels = &geometry,
        });
        pair.segment = try .attach(&pair.memory, &pair.channels, .none);
        const options: millrace.Endpoint.Options = .{ .host = &clockwork, .spin_us = 0 };
        for (&pair.endpoints, 0..) |*endpoint, index| {
            endpoint.* = try .attach(&pair.segment, @intCast(index), options);
        }
        pair.writer = try .init(&pair.endpoints[0], &pair.segment, 0);
        pair.reader = try .init(&pair.endpoints[1], &pair.segment, 0);
    }

    /// Marks an endpoint failed, as a supervisor does that knows that its owner is gone.
    pub fn fail(pair: *Pair, index: u32, why: millrace.Reason) void {
        pair.segment.fail(pair.segment.ownerOf(index), why, &clockwork);
    }

    /// Places and publishes one frame with any header, valid or not.
    pub fn put(pair: *Pair, header: frame.Header, payload: []const u8) void {
        const ring = &pair.writer.ring;
        const offset = ring.tail & (ring.capacity - 1);
        header.store(@alignCast(ring.area[offset..][0..16]));
        @memcpy(ring.area[offset + 16 ..][0..payload.len], payload);
        const extent: u32 = @intCast(std.mem.alignForward(usize, payload.len, 16) + 16);
        ring.tail +%= extent;
        ring.publish();
    }

    pub fn expectMessage(pair: *Pair, payload: []const u8, tag: u32) !void {
        var storage: [capacity_max]u8 = undefined;
        const message = (try pair.reader.tryRead(&storage)) orelse return error.NoMessage;
        try std.testing.expectEqualSlices(u8, payload, message.payload);
        try std.testing.expectEqual(tag, message.tag);
    }

    /// Reads with the same storage while a message is in progress.
    pub fn readPartial(pair: *Pair) millrace.ReadError!?millrace.Message {
        return pair.reader.tryRead(&pair.kept);
    }

    pub fn expectPartial(pair: *Pair, payload: []const u8, tag: u32) !void {
        const message = (try pair.readPartial()) orelse return error.NoMessage;
        try std.testing.expectEqualSlices(u8, payload, message.payload);
        try std.testing.expectEqual(tag, message.tag);
    }

    pub fn expectNothingPartial(pair: *Pair) !void {
        try std.testing.expectEqual(null, try pair.readPartial());
    }

    pub fn expectNothing(pair: *Pair) !void {
        var storage: [capacity_max]u8 = undefined;
        try std.testing.expectEqual(null, try pair.reader.tryRead(&storage));
    }

    pub fn expectFailure(pair: *Pair, expected: millrace.ReadError) !void {
        var storage: [capacity_max]u8 = undefined;
        try std.testing.expectError(expected, pair.reader.tryRead(&storage));
    }

    /// Expects that the reader reports this fault, again and again, and has marked the writer
    /// failed.
    pub fn expectCorrupt(pair: *Pair, reason: millrace.Reason) !void {
        for (0..2) |_| {
            try pair.expectFailure(error.Corrupt);
            try std.testing.expectEqual(reason, pair.reader.reason().?);
        }
        const state = @atomicLoad(u32, &pair.segment.record(0).state, .seq_cst);
        try std.testing.expectEqual(@backingInt(reason) << 8 | layout.endpoint_state_failed, state);
    }
};

pub fn pipeGeometry(capacity: u32, start: u32) [1]millrace.Channel {
    return .{.{ .writer = 0, .reader = 1, .data_size = capacity, .start = start, .label = 7 }};
}

/// A machine on which every reading of the clock takes 1 µs and every sleep takes its full time, so
/// that a single thread can wait.
pub const clockwork: millrace.Host = .{
    .wakes = layout.wake_mechanism_futex,
    .mechanism = layout.wake_mechanism_futex,
    .now = now,
    .sleep = sleep,
    .notify = notify,
    .pause = pause,
    .processor_count = processorCount,
};

var time_ns: u64 = 1;

fn now() u64 {
    time_ns += 1_000;
    return time_ns;
}

fn sleep(_: *const u32, _: u32, limit_ns: u64) bool {
    time_ns += limit_ns;
    return false;
}

fn notify(_: *const u32) void {}

fn pause(limit_ns: u64) void {
    time_ns += limit_ns;
}

fn processorCount() u32 {
    return 1;
}

/// Fills bytes with a pattern in which every position of every message differs.
pub fn pattern(bytes: []u8, seed: u32) void {
    for (bytes, 0..) |*byte, index| {
        const mixed = (@as(u32, @truncate(index)) +% seed *% 0x9e37_79b1) *% 0x85eb_ca6b;
        byte.* = @truncate(mixed >> 24);
    }
}

// Runs part of a test in a forked child.

/// Forks a child that calls `run` and ends. Expects it to succeed. An alarm ends a child that
/// hangs.
pub fn expectChild(comptime run: anytype, values: std.meta.ArgsTuple(@TypeOf(run))) !void {
    const forked = linux.fork();
    if (linux.errno(forked) != .SUCCESS) return error.ForkFailed;
    if (forked == 0) {
        limitChild();
        @call(.auto, run, values) catch |err| {
            std.debug.print("in the child: {t}\n", .{err});
            linux.exit_group(1);
        };
        linux.exit_group(0);
    }
    var status: i32 = 0;
    while (linux.errno(linux.wait4(@intCast(forked), &status, 0, null)) == .INTR) {}
    const raw: u32 = @bitCast(status);
    if (!linux.W.IFEXITED(raw) or linux.W.EXITSTATUS(raw) != 0) return error.ChildFailed;
}

/// Has an alarm end this process if it hangs.
pub fn limitChild() void {
    const limit: linux.itimerspec = .{
        .it_interval = .{ .sec = 0, .nsec = 0 },
        .it_value = .{ .sec = 30, .nsec = 0 },
    };
    _ = linux.setitimer(@backingInt(linux.ITIMER.REAL), &limit, null);
}
