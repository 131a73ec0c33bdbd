//! Clocks for tests of meters and estimates, which the test winds.

const millrace = @import("../root.zig");
const layout = millrace.layout;

const ns_per_us = 1_000;

/// Both clocks, in nanoseconds; and what happens while the thread sleeps.
pub var now_ns: u64 = 0;
pub var epoch_ns: u64 = 0;
pub var asleep: ?*const fn () void = null;

/// The machine that a test runs on.
pub const wound: millrace.Host = .{
    .wakes = layout.wake_mechanism_futex,
    .mechanism = layout.wake_mechanism_futex,
    .now = now,
    .sleep = sleep,
    .notify = notify,
    .pause = pass,
    .processor_count = processorCount,
};

fn now() u64 {
    return now_ns;
}

/// The function for `Options.wall`.
pub fn wall() u64 {
    return epoch_ns + now_ns;
}

fn sleep(_: *const u32, _: u32, limit_ns: u64) bool {
    const act = asleep orelse {
        pass(limit_ns);
        return false;
    };
    act();
    return true;
}

fn notify(_: *const u32) void {}

fn pass(limit_ns: u64) void {
    now_ns += limit_ns;
}

fn processorCount() u32 {
    return 1;
}

/// Moves both clocks on.
pub fn passUs(us: u64) void {
    pass(us * ns_per_us);
}
