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

// Tests.
//
// How a spin uses its record [wait.spin_record], and how many looks a call makes that must not
// block [wait.no_block]. The machine's clock stands still, as that of a browser does for up to a
// millisecond.

const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const mailbox = @import("../mailbox/side.zig");
const testing = std.testing;

/// The machine. Nobody sleeps on it, and waiting for its clock would never end.
const Still = struct {
    var readings: usize = 0;

    const host: millrace.Host = blk: {
        var still = fixture.clockwork;
        still.now = now;
        still.sleep = sleep;
        still.pause = pause;
        break :blk still;
    };

    fn now() u64 {
        readings += 1;
        if (readings > 1_000) @panic("a call waits for the clock to move");
        return 1;
    }

    fn sleep(_: *const u32, _: u32, _: u64) bool {
        @panic("a call sleeps that must not block");
    }

    fn pause(_: u64) void {
        @panic("a call pauses that must not block");
    }
};

/// Counts the looks of a call. Either every look finds something, or none does.
const Counted = struct {
    finds: bool,
    looks: *u32,

    pub fn glance(counted: Counted, comptime _: std.lang.AtomicOrder) bool {
        counted.looks.* += 1;
        return counted.finds;
    }

    pub fn look(counted: Counted, comptime order: std.lang.AtomicOrder) bool {
        return counted.glance(order);
    }

    pub fn arm(_: Counted, _: bool) bool {
        @panic("a call arms that must not block");
    }

    pub fn disarm(_: Counted) void {}

    pub fn slice(_: Counted, _: u32) u64 {
        return 0;
    }
};

fn endpointOf(pair: *fixture.Pair) !*millrace.Endpoint {
    try pair.init(256, 0);
    const endpoint = &pair.endpoints[1];
    endpoint.host = &Still.host;
    endpoint.blocking = false;
    endpoint.setSpin(1_000_000);
    return endpoint;
}

test "a wait of a call that must not block looks a few times, and leaves the clock alone" {
    var pair: fixture.Pair = undefined;
    const endpoint = try endpointOf(&pair);
    for ([_]millrace.Timeout{ .ms(50), .forever }) |timeout| {
        var looks: u32 = 0;
        const condition: Counted = .{ .finds = false, .looks = &looks };
        var deadline: Deadline = .init(timeout);
        Still.readings = 0;
        try testing.expectEqual(.forbidden, endpoint.wait(&condition, &deadline));
        try testing.expect(looks > 1 and looks <= layout.wait_no_block_looks);
        try testing.expectEqual(0, Still.readings);
    }
    endpoint.setSpin(0);
    var looks: u32 = 0;
    const condition: Counted = .{ .finds = true, .looks = &looks };
    var deadline: Deadline = .init(.forever);
    try testing.expectEqual(.forbidden, endpoint.wait(&condition, &deadline));
    try testing.expectEqual(0, looks);
}

test "the waits of one call that must not block share its looks, whatever they find" {
    var pair: fixture.Pair = undefined;
    const endpoint = try endpointOf(&pair);
    var looks: u32 = 0;
    const condition: Counted = .{ .finds = true, .looks = &looks };
    var deadline: Deadline = .init(.forever);
    var waits: u32 = 0;
    while (endpoint.wait(&condition, &deadline) == .found) {
        waits += 1;
        // Before each wait, the call itself looks.
        try testing.expect(waits + looks <= layout.wait_no_block_looks);
    }
    try testing.expect(waits > 1);
    // The next call starts from 0.
    deadline = .init(.forever);
    try testing.expectEqual(.found, endpoint.wait(&condition, &deadline));
}

test "a side of a mailbox that must not block takes no more turns in one call than looks" {
    var memory: [64]u8 align(4) = @splat(0);
    var reader: millrace.MailboxReader = try .init(&memory, .{
        .host = &Still.host,
        .spin_us = 1_000_000,
        .blocking = false,
    });
    const side = &reader.side;
    Still.readings = 0;
    var deadline: Deadline = .init(.forever);
    try testing.expectEqual(.forbidden, try side.awaitTurn(&deadline));
    side.header.signal = mailbox.may_read;
    deadline = .init(.forever);
    var turns: u32 = 0;
    while (try side.awaitTurn(&deadline) == .found) {
        turns += 1;
        try testing.expect(turns <= layout.wait_no_block_looks);
    }
    try testing.expect(turns > 1);
    try testing.expectEqual(0, Still.readings);
    // A call that only tries still finds what is there.
    deadline = .init(.none);
    try testing.expectEqual(.found, try side.awaitTurn(&deadline));
}

/// A machine whose clock moves on by 10 µs whenever it is read.
const Ticking = struct {
    var time: u64 = 0;

    const host: millrace.Host = blk: {
        var ticking = fixture.clockwork;
        ticking.now = now;
        break :blk ticking;
    };

    fn now() u64 {
        time += 10_000;
        return time;
    }
};

/// Something that is there from a certain time of that machine on.
const Due = struct {
    at: u64,

    pub fn glance(due: Due, comptime _: std.lang.AtomicOrder) bool {
        return Ticking.time >= due.at;
    }

    pub fn look(due: Due, comptime order: std.lang.AtomicOrder) bool {
        return due.glance(order);
    }
};

test "what a spin finds later than in one budget leaves two misses [wait.spin_record]" {
    const manner: Manner = .{
        .host = &Ticking.host,
        .spin_ns = 50_000,
        .blocking = true,
    };
    var record: SpinRecord = .{};
    var deadline: Deadline = .init(.forever);
    const never: Due = .{ .at = std.math.maxInt(u64) };
    for (0..8) |_| try testing.expect(!record.spin(manner, &never, &deadline));
    // It has stopped spinning, and tries again after 127 waits.
    for (0..127) |_| try testing.expect(!record.spin(manner, &Due{ .at = 0 }, &deadline));
    try testing.expect(record.spin(manner, &Due{ .at = Ticking.time + 100_000 }, &deadline));
    try testing.expectEqual(6, record.misses);
    for (0..2) |_| try testing.expect(!record.spin(manner, &never, &deadline));
    try testing.expect(!record.spin(manner, &Due{ .at = 0 }, &deadline));
    // After a single miss, a spin that finds something late leaves one miss.
    record = .{ .misses = 1 };
    try testing.expect(record.spin(manner, &Due{ .at = Ticking.time + 100_000 }, &deadline));
    try testing.expectEqual(1, record.misses);
    try testing.expect(record.spin(manner, &Due{ .at = Ticking.time + 20_000 }, &deadline));
    try testing.expectEqual(0, record.misses);
}

test "what is there at the first look no spin has found [wait.spin_record]" {
    const manner: Manner = .{
        .host = &Ticking.host,
        .spin_ns = 50_000,
        .blocking = true,
    };
    var deadline: Deadline = .init(.forever);
    var record: SpinRecord = .{ .misses = 7 };
    for (0..3) |_| try testing.expect(record.spin(manner, &Due{ .at = 0 }, &deadline));
    try testing.expectEqual(7, record.misses);
    // It has stopped spinning, and the try that is due stays due.
    record = .{ .misses = 8, .skips = 127 };
    try testing.expect(record.spin(manner, &Due{ .at = 0 }, &deadline));
    try testing.expectEqual(127, record.skips);
}
