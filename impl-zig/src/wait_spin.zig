//! Looking again and again for a short while before a sleep, and for how long to pause where nobody
//! can be rung [spec/wait.md].
//!
//! Invariant: whoever spins in vain again and again stops it, because every spin may delay the very
//! peer that it waits for [wait.spin_record].

const builtin = @import("builtin");
const std = @import("std");
const layout = @import("layout.zig");
const host_file = @import("host.zig");
const Deadline = host_file.Deadline;
const Host = host_file.Host;

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;
const poll_ns = layout.wait_poll_ms * ns_per_ms;

/// Looks between two readings of the clock: 32 pause hints take 1 to 5 µs on x86-64. WebAssembly
/// has no such hint, and a clock for which it calls its host: with 32 looks it would hardly do
/// anything but read the clock, and see late what arrives meanwhile.
const spin_look_count = if (builtin.cpu.arch.isWasm()) 1024 else 32;

/// Spins in a row that find nothing before an endpoint stops spinning, and how many waits it then
/// sleeps at once before it tries again [wait.spin_record].
const spin_misses_max = 8;
const spin_skips_max = 127;
/// Misses that are left behind a spin that found something later than in one budget: where both
/// threads share one processor, it did because the kernel took that from it, and the next spins are
/// in vain.
const spin_misses_late = spin_misses_max - 2;
/// After a miss: a peer that sleeps takes longer to answer than the usual budget, and where both
/// gave up before the other's wake arrived, neither would ever find the other awake.
const spin_patience = 4;

/// How whoever waits may spend its time.
pub const Manner = struct {
    host: *const Host,
    spin_ns: u64,
    blocking: bool,
};

/// What came of the spins so far. One for each side that waits, private to its thread.
pub const SpinRecord = struct {
    /// Misses in a row.
    misses: u32 = 0,
    /// Waits that slept at once since the last spin.
    skips: u32 = 0,

    /// Looks until there is something to do. Whether it looks at all, and for how long, follows
    /// from what came of it before [wait.spin_record].
    ///
    /// `condition` points to a struct with the functions
    ///   `glance(order) bool`: the words that move with every message;
    ///   `look(order) bool`: everything that can end the wait.
    pub fn spin(
        record: *SpinRecord,
        manner: Manner,
        condition: anytype,
        deadline: *Deadline,
    ) bool {
        if (manner.spin_ns == 0) return false;
        if (!manner.blocking) return spinBriefly(condition, deadline);
        if (record.misses >= spin_misses_max and record.skips < spin_skips_max) {
            record.skips += 1;
            return false;
        }
        // No spin has found what is there before it begins: on one processor, the peer has put it
        // there when it took that from this thread, and a spin would be in vain.
        if (condition.glance(.acquire)) return true;
        record.skips = 0;
        const patience: u64 = if (record.misses == 0) 1 else spin_patience;
        const budget_ns = manner.spin_ns *| patience;
        const spent_ns = spinFor(manner.host, budget_ns, condition, deadline) orelse {
            record.misses +|= 1;
            return false;
        };
        const is_late = spent_ns >= manner.spin_ns;
        record.misses = if (is_late) @min(record.misses, spin_misses_late) else 0;
        return true;
    }
};

/// How long to pause before the next look where nobody can be rung: from 50 µs on, each time twice
/// as long [wait.poll].
pub fn pollPause(round: u32) u64 {
    const pause_ns = @as(u64, 50 * ns_per_us) << @min(round, 7);
    return @min(pause_ns, poll_ns);
}

/// The budget that was asked for in microseconds, or the default [wait.spin].
pub fn budgetOf(asked_us: ?u32, host: *const Host) u64 {
    if (asked_us) |asked| return @as(u64, asked) * ns_per_us;
    if (host.processor_count() < 2) return 0;
    return layout.wait_spin_us * ns_per_us;
}

/// Looks as often as a call may that must not block. Counted, because a clock may stand still for
/// longer than the thread may [wait.no_block].
fn spinBriefly(condition: anytype, deadline: *Deadline) bool {
    while (deadline.takeLook()) {
        if (condition.look(.acquire)) return true;
        std.atomic.spinLoopHint();
    }
    return false;
}

/// Returns how long it took to find something, or null if the time was over before.
fn spinFor(host: *const Host, budget_ns: u64, condition: anytype, deadline: *Deadline) ?u64 {
    var begin_ns: ?u64 = null;
    var spent_ns: u64 = 0;
    while (true) {
        for (0..spin_look_count) |_| {
            if (condition.glance(.acquire)) return spent_ns;
            std.atomic.spinLoopHint();
        }
        if (condition.look(.acquire)) return spent_ns;
        // Only now, because the answer that spinning is for comes before the first reading.
        const now_ns = host.now();
        if (begin_ns == null) begin_ns = now_ns;
        spent_ns = now_ns -% begin_ns.?;
        if (spent_ns >= budget_ns) return null;
        if (deadline.leftAt(now_ns) == 0) return null;
    }
}
