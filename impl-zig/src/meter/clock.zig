//! The clock of a meter. It reads a monotonic clock, which says how long something took. It adds
//! the difference between the two clocks, as it was measured last, to get the time of day.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;
const Host = @import("../wait/mechanism.zig").Host;

const ns_per_us = 1_000;
const ns_per_s = 1_000_000_000;
/// How long the measured difference is used. After the time of day was set, waiting times are wrong
/// for up to that long.
const believed_ns = ns_per_s / 10;
/// If two readings of the monotonic clock are this close, the measurement between them is not
/// repeated.
const near_ns = 1_000;

/// Nanoseconds since the Unix epoch.
pub const Wall = *const fn () u64;

/// The system's clock; null in a freestanding module of WebAssembly, which has none.
pub const system: ?Wall = if (builtin.os.tag == .freestanding) null else wallOf;

/// The two clocks of one meter.
pub const Clock = struct {
    host: *const Host,
    wall: Wall,
    /// The time of day minus the time of the monotonic clock, modulo 2^64.
    offset_ns: u64 = 0,
    /// When that was measured; null before the first time.
    compared_ns: ?u64 = null,

    /// Returns nanoseconds from any origin, which never go back.
    pub fn now(clock: *const Clock) u64 {
        return clock.host.now();
    }

    /// Returns nanoseconds since the Unix epoch at a moment that `now` has just returned.
    pub fn epoch(clock: *Clock, now_ns: u64) u64 {
        const compared_ns = clock.compared_ns orelse return clock.compare();
        if (now_ns -| compared_ns >= believed_ns) return clock.compare();
        return now_ns +% clock.offset_ns;
    }

    /// Returns the `time` of a frame that was finished at that moment [meter.time].
    pub fn timeAt(clock: *Clock, now_ns: u64) u32 {
        const low: u32 = @truncate(clock.epoch(now_ns) / ns_per_us);
        return if (low == 0) 1 else low;
    }

    /// Returns `timeAt` for this moment; `SendWith(*Clock)` calls it.
    pub fn time(clock: *Clock) u32 {
        return clock.timeAt(clock.now());
    }

    /// Returns how many nanoseconds a message has waited that was finished at `time_us`
    /// [meter.waiting] [frame.time].
    pub fn waited(clock: *Clock, time_us: u32, now_ns: u64) u64 {
        const time_now: u32 = @truncate(clock.epoch(now_ns) / ns_per_us);
        const difference: i32 = @bitCast(time_now -% time_us);
        return @as(u64, @intCast(@max(0, difference))) * ns_per_us;
    }

    /// Reads both clocks, and returns the time of day. The thread may lose its processor between
    /// two readings, so of up to three tries, the one counts whose readings were closest.
    fn compare(clock: *Clock) u64 {
        var least_ns: u64 = std.math.maxInt(u64);
        for (0..3) |_| {
            const before_ns = clock.now();
            const wall_ns = clock.wall();
            const after_ns = clock.now();
            const apart_ns = after_ns -| before_ns;
            if (apart_ns < least_ns) {
                least_ns = apart_ns;
                clock.offset_ns = wall_ns -% (before_ns + apart_ns / 2);
                clock.compared_ns = after_ns;
            }
            if (least_ns <= near_ns) break;
        }
        return clock.compared_ns.? +% clock.offset_ns;
    }
};

fn wallOf() u64 {
    switch (builtin.os.tag) {
        .linux => {
            var at: std.os.linux.timespec = undefined;
            const result = std.os.linux.clock_gettime(.REALTIME, &at);
            assert(result == 0);
            return @as(u64, @intCast(at.sec)) * ns_per_s + @as(u64, @intCast(at.nsec));
        },
        .wasi => {
            var ns: std.os.wasi.timestamp_t = 0;
            const result = std.os.wasi.clock_time_get(.REALTIME, 1_000, &ns);
            assert(result == .SUCCESS);
            return ns;
        },
        .windows => {
            // In steps of 100 ns since the year 1601.
            const steps = std.os.windows.ntdll.RtlGetSystemTimePrecise();
            const epoch_steps = 11_644_473_600 * (ns_per_s / 100);
            return @as(u64, @intCast(steps - epoch_steps)) * 100;
        },
        else => {
            var at: std.c.timespec = undefined;
            const result = std.c.clock_gettime(.REALTIME, &at);
            assert(result == 0);
            return @as(u64, @intCast(at.sec)) * ns_per_s + @as(u64, @intCast(at.nsec));
        },
    }
}
