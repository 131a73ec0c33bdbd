//! Shared by the tests with a hostile peer: two threads that go through many short lives together,
//! and counts of what the calls of one of them returned while the other scribbled.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const millrace = @import("../root.zig");
const assert = std.debug.assert;
const Atomic = std.atomic.Value;
const Random = std.Random;
const Reason = layout.Reason;

const native = millrace.Host.native;

/// One more than the largest reason.
const code_count = 256;

/// How many times each reason was what a call returned, or was stated with it.
pub const Histogram = struct {
    answers: [code_count]u64 = @splat(0),
    beside: [code_count]u64 = @splat(0),
    /// Messages, payloads and segments that arrived.
    good: u64 = 0,

    /// Fails if an error has no reason, because the calls return no such errors.
    pub fn add(histogram: *Histogram, err: anyerror, behind: ?Reason) !void {
        if (err == error.Corrupt) {
            histogram.answers[@backingInt(behind orelse return error.NoReason)] += 1;
            return;
        }
        const why = millrace.reasonOf(err) orelse return err;
        histogram.answers[@backingInt(why)] += 1;
        if (why != .peer_failed and why != .pipe_failed) return;
        // A state may hold any number as its reason [pipe.failed_reason].
        const code = @backingInt(behind orelse return);
        if (code < histogram.beside.len) histogram.beside[code] += 1;
    }

    pub fn count(histogram: *const Histogram, why: Reason) u64 {
        const code = @backingInt(why);
        return histogram.answers[code] + histogram.beside[code];
    }

    pub fn merge(histogram: *Histogram, other: *const Histogram) void {
        for (&histogram.answers, other.answers) |*sum, more| sum.* += more;
        for (&histogram.beside, other.beside) |*sum, more| sum.* += more;
        histogram.good += other.good;
    }

    pub fn print(histogram: *const Histogram) void {
        const info = @typeInfo(Reason).@"enum";
        std.debug.print("{s:<20}{s:>10}{s:>10}\n", .{ "reason", "answers", "beside" });
        inline for (info.field_values) |value| {
            const why: Reason = @fromBackingInt(value);
            const answers = histogram.answers[value];
            const beside = histogram.beside[value];
            if (answers + beside > 0) {
                std.debug.print("{s:<20}{d:>10}{d:>10}\n", .{ why.name(), answers, beside });
            }
        }
    }
};

/// The most scribbles in a life. A life ends earlier if its victim has got a final error.
const life_scribble_count = 150;

/// How many calls follow the first final error: they must return the same.
const late_call_count = 4;

/// In every such life, both act in turns on one thread. How two threads meet depends on the
/// machine: if they share a busy processor, one of them may go through a whole life before the
/// other begins, and rare reasons do not occur.
const turns_every = 4;

/// After how long beyond its deadline a call counts as hung. Generous, because this is not about
/// speed, and the machine may have other work.
const patience_ms = 20_000;

/// Two threads and a watch: the victim makes calls, the vandal scribbles.
///
/// `World` is a struct with the functions
///   `begin(world, seed) !void`: makes everything anew, on the victim's thread;
///   `act(world, random, histogram) !Act`: one call, by the victim;
///   `scribble(world, random) void`: one store or call, by the vandal.
pub fn Duel(comptime World: type) type {
    return struct {
        world: World,
        total: u32,
        /// The present life, and the life that the vandal has left.
        life: Atomic(u32) = .init(0),
        left: Atomic(u32) = .init(0),
        /// Whether the victim is done with this life.
        over: Atomic(bool) = .init(false),
        stop: Atomic(bool) = .init(false),
        scribbles: Atomic(u32) = .init(0),
        /// When the victim's call must have returned, in milliseconds of `Host.now`; 0 between
        /// calls. 32 bits, because not every processor has wider atomics.
        due_ms: Atomic(u32) = .init(0),
        histogram: Histogram = .{},
        failure: ?anyerror = null,

        const Self = @This();

        /// Runs lives until there were so many scribbles. Returns the counts.
        pub fn run(duel: *Self) !Histogram {
            const vandal = try std.Thread.spawn(.{}, vandalize, .{duel});
            const victim = try std.Thread.spawn(.{}, suffer, .{duel});
            while (!duel.stop.load(.acquire)) {
                native.pause(20_000_000);
                const due_ms = duel.due_ms.load(.acquire);
                if (due_ms == 0 or nowMs() -% due_ms > std.math.maxInt(i32)) continue;
                std.debug.panic("life {}: a call does not return", .{duel.life.load(.acquire)});
            }
            victim.join();
            vandal.join();
            if (duel.failure) |err| return err;
            return duel.histogram;
        }

        fn suffer(duel: *Self) void {
            defer duel.stop.store(true, .release);
            duel.sufferAll() catch |err| {
                std.debug.print("life {}: {t}\n", .{ duel.life.load(.acquire), err });
                duel.failure = err;
            };
        }

        fn sufferAll(duel: *Self) !void {
            var life: u32 = 0;
            while (duel.scribbles.load(.acquire) < duel.total) {
                life += 1;
                var prng: Random.DefaultPrng = .init(life);
                try duel.world.begin(life);
                if (life % turns_every == 0) {
                    try duel.takeTurns(prng.random());
                    continue;
                }
                duel.over.store(false, .release);
                duel.life.store(life, .release);
                defer duel.awaitLeft(life);
                var late_calls: u32 = 0;
                while (duel.left.load(.acquire) != life and late_calls < late_call_count) {
                    const outcome = try duel.call(prng.random());
                    if (outcome == .final) late_calls += 1;
                }
            }
        }

        /// A life on the victim's thread alone: it scribbles between its calls.
        fn takeTurns(duel: *Self, random: Random) !void {
            var scribble_count: u32 = 0;
            var late_calls: u32 = 0;
            while (scribble_count < life_scribble_count and late_calls < late_call_count) {
                if (try duel.call(random) == .final) late_calls += 1;
                const count = random.uintLessThan(u32, 16);
                for (0..count) |_| duel.world.scribble(random);
                scribble_count += count;
            }
            _ = duel.scribbles.fetchAdd(scribble_count, .acq_rel);
        }

        fn call(duel: *Self, random: Random) !Act {
            duel.due_ms.store(nowMs() +% patience_ms | 1, .release);
            defer duel.due_ms.store(0, .release);
            return duel.world.act(random, &duel.histogram);
        }

        fn awaitLeft(duel: *Self, life: u32) void {
            duel.over.store(true, .release);
            while (duel.left.load(.acquire) != life) std.Thread.yield() catch {};
        }

        fn vandalize(duel: *Self) void {
            var life: u32 = 0;
            while (true) {
                while (duel.life.load(.acquire) == life) {
                    if (duel.stop.load(.acquire)) return;
                    std.Thread.yield() catch {};
                }
                life = duel.life.load(.acquire);
                var prng: Random.DefaultPrng = .init(~@as(u64, life));
                duel.scribbleOften(prng.random());
                duel.left.store(life, .release);
            }
        }

        fn scribbleOften(duel: *Self, random: Random) void {
            for (0..life_scribble_count) |_| {
                if (duel.over.load(.acquire)) return;
                duel.world.scribble(random);
                _ = duel.scribbles.fetchAdd(1, .acq_rel);
                // Pauses, so that the victim now and then gets further.
                for (0..random.uintLessThan(u32, 256)) |_| std.atomic.spinLoopHint();
            }
        }
    };
}

fn nowMs() u32 {
    return @truncate(native.now() / 1_000_000);
}

/// What a call led to: after `final`, every later call must report the same.
pub const Act = enum { good, final };

/// Makes a call with a deadline. Fails if it returns much later.
pub const Clock = struct {
    begin_ns: u64,
    limit_ns: u64,

    pub fn start(timeout: millrace.Timeout) Clock {
        return .{ .begin_ns = native.now(), .limit_ns = @backingInt(timeout) };
    }

    pub fn stop(clock: Clock) !void {
        const spent_ns = native.now() - clock.begin_ns;
        if (spent_ns > clock.limit_ns + patience_ms * 1_000_000) return error.TooLate;
    }
};

/// Returns how long an action on a port may take: usually it may not wait.
pub fn drawTimeout(random: Random) millrace.Timeout {
    return switch (random.uintLessThan(u32, 4)) {
        0, 1 => .none,
        2 => .us(50),
        else => .us(500),
    };
}

/// Counts the result of an action on a port, which must have kept its deadline.
pub fn settle(
    histogram: *Histogram,
    victim: *const millrace.Port,
    clock: Clock,
    result: anyerror!bool,
) !Act {
    try clock.stop();
    const good = result catch |err| {
        try histogram.add(err, victim.reason());
        return switch (err) {
            error.PipeClosed => .final,
            error.Corrupt, error.PipeFailed, error.PeerFailed, error.PeerClosed => .final,
            else => .good,
        };
    };
    if (good) histogram.good += 1;
    return .good;
}

/// Stores a word as a peer does that ignores whose word it is.
pub fn store(memory: []align(4) u8, offset: usize, value: u32) void {
    assert(offset % 4 == 0);
    const word: *u32 = @ptrCast(@alignCast(memory[offset..][0..4]));
    @atomicStore(u32, word, value, .seq_cst);
}

pub fn load(memory: []align(4) const u8, offset: usize) u32 {
    const word: *const u32 = @ptrCast(@alignCast(memory[offset..][0..4]));
    return @atomicLoad(u32, word, .seq_cst);
}

/// Returns a number that is valid, or nearly.
pub fn number(random: Random, old: u32) u32 {
    return switch (random.uintLessThan(u32, 8)) {
        0 => random.int(u32),
        1 => old +% 16,
        2 => old -% 16,
        3 => old ^ @as(u32, 1) << random.int(u5),
        4 => random.uintLessThan(u32, 8),
        5 => old +% 16 * random.uintLessThan(u32, 40),
        6 => old +% 1,
        else => 0xffff_ffff - random.uintLessThan(u32, 32),
    };
}
