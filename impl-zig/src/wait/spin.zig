//! Spinning: looking again and again for a short while before a sleep. Also how long to pause
//! between two looks if nobody can ring [spec/wait.md].
//!
//! Invariant: a side whose spins keep finding nothing stops spinning, because every spin may delay
//! the very peer that it waits for [wait.spin_record].

const builtin = @import("builtin");
const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("mechanism.zig");
const Deadline = host_file.Deadline;
const Host = host_file.Host;

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;
const poll_ns = layout.wait_poll_ms * ns_per_ms;

/// How many looks are made between two readings of the clock. 32 pause hints take 1 to 5 µs on
/// x86-64. WebAssembly has no such hint, and has to call its host for the clock: with 32 looks, it
/// would do little but read the clock, and see late what arrives meanwhile.
const spin_look_count = if (builtin.cpu.arch.isWasm()) 1024 else 32;

/// After how many spins in a row that found nothing an endpoint stops spinning, and how many waits
/// then sleep at once before it tries again [wait.spin_record].
const spin_misses_max = 8;
const spin_skips_max = 127;
/// How many misses are left after a spin that found something, but only after more than one budget.
/// If both threads share one processor, it found it because the kernel took the processor from it,
/// and the next spins will find nothing.
const spin_misses_late = spin_misses_max - 2;
/// By how much the budget grows after a miss. A peer that sleeps takes longer to answer than the
/// usual budget, and if both sides gave up before the other's wake arrived, neither would ever find
/// the other awake.
const spin_patience = 4;

/// How a side that waits may spend its time.
pub const Manner = struct {
    host: *const Host,
    spin_ns: u64,
    blocking: bool,
};

/// The results of earlier spins. Each side that waits has one, private to its thread.
pub const SpinRecord = struct {
    /// Spins in a row that found nothing.
    misses: u32 = 0,
    /// Waits since the last spin that slept at once.
    skips: u32 = 0,

    /// Looks until there is something to do. The results of earlier spins decide whether it looks
    /// at all, and for how long [wait.spin_record].
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

/// Returns how many nanoseconds to pause before the next look if nobody can ring: 50 µs at first,
/// and twice as long each time [wait.poll].
pub fn pollPause(round: u32) u64 {
    const pause_ns = @as(u64, 50 * ns_per_us) << @min(round, 7);
    return @min(pause_ns, poll_ns);
}

/// Returns the budget in nanoseconds: the one asked for in microseconds, or the default
/// [wait.spin].
pub fn budgetOf(asked_us: ?u32, host: *const Host) u64 {
    if (asked_us) |asked| return @as(u64, asked) * ns_per_us;
    if (host.processor_count() < 2) return 0;
    return layout.wait_spin_us * ns_per_us;
}

/// Looks as many times as a call may that must not block. The looks are counted, because the clock
/// may stand still for longer than the thread may wait [wait.no_block].
fn spinBriefly(condition: anytype, deadline: *Deadline) bool {
    while (deadline.takeLook()) {
        if (condition.look(.acquire)) return true;
        std.atomic.spinLoopHint();
    }
    return false;
}

/// Returns how many nanoseconds it took to find something, or null if the time ran out before.
fn spinFor(host: *const Host, budget_ns: u64, condition: anytype, deadline: *Deadline) ?u64 {
    var begin_ns: ?u64 = null;
    var spent_ns: u64 = 0;
    while (true) {
        for (0..spin_look_count) |_| {
            if (condition.glance(.acquire)) return spent_ns;
            std.atomic.spinLoopHint();
        }
        if (condition.look(.acquire)) return spent_ns;
        // Not before the first looks, because the answer that spinning waits for comes before a
        // first reading of the clock would.
        const now_ns = host.now();
        if (begin_ns == null) begin_ns = now_ns;
        spent_ns = now_ns -% begin_ns.?;
        if (spent_ns >= budget_ns) return null;
        if (deadline.leftAt(now_ns) == 0) return null;
    }
}
