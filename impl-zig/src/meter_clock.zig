//! What a meter reads the time from: one look at a clock that never goes back tells how long
//! something took, and, by what was between the two when both were looked at last, the time of day.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;
const Host = @import("host.zig").Host;

const ns_per_us = 1_000;
const ns_per_s = 1_000_000_000;
/// How long the difference of the two clocks is believed: for so long, waiting times are wrong
/// behind a setting of the clock.
const believed_ns = ns_per_s / 10;
/// Between two looks that are not farther apart, the difference is as good as it gets.
const near_ns = 1_000;

/// Nanoseconds since the Unix epoch.
pub const Wall = *const fn () u64;

/// That of the system; null in a freestanding module of WebAssembly, which has none.
pub const system: ?Wall = if (builtin.os.tag == .freestanding) null else wallOf;

/// The two clocks of one meter.
pub const Clock = struct {
    host: *const Host,
    wall: Wall,
    /// The time of day is the other clock and this, modulo 2^64.
    offset_ns: u64 = 0,
    /// When that was found out; null where it never was.
    compared_ns: ?u64 = null,

    /// Nanoseconds from any origin, never going back.
    pub fn now(clock: *const Clock) u64 {
        return clock.host.now();
    }

    /// Nanoseconds since the Unix epoch at a moment that `now` has just told.
    pub fn epoch(clock: *Clock, now_ns: u64) u64 {
        const compared_ns = clock.compared_ns orelse return clock.compare();
        if (now_ns -| compared_ns >= believed_ns) return clock.compare();
        return now_ns +% clock.offset_ns;
    }

    /// What stands in `time` of a frame that was finished at that moment [meter.time].
    pub fn timeAt(clock: *Clock, now_ns: u64) u32 {
        const low: u32 = @truncate(clock.epoch(now_ns) / ns_per_us);
        return if (low == 0) 1 else low;
    }

    /// The same for this moment; what a `SendWith(*Clock)` asks.
    pub fn time(clock: *Clock) u32 {
        return clock.timeAt(clock.now());
    }

    /// How long a message has waited that was finished at `time_us`, in nanoseconds
    /// [meter.waiting] [frame.time].
    pub fn waited(clock: *Clock, time_us: u32, now_ns: u64) u64 {
        const time_now: u32 = @truncate(clock.epoch(now_ns) / ns_per_us);
        const difference: i32 = @bitCast(time_now -% time_us);
        return @as(u64, @intCast(@max(0, difference))) * ns_per_us;
    }

    /// Looks at both clocks, and returns the time of day. A thread may lose its processor between
    /// two looks: of three tries, the one counts whose looks were closest to one another.
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
            // In steps of 100 ns since 1601.
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
