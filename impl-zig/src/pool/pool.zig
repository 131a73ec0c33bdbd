//! A pool of workers: one thread has tasks, and several threads handle them, each task by one of
//! them. It is a hub with a ring of tasks to each worker, and a ring of answers back.
//!
//! Invariant: a submitted task has exactly one outcome. A task that a dead worker had not begun
//! goes to another worker. A task that it had begun goes to another worker only if it may be
//! repeated.

const std = @import("std");
const host_file = @import("../wait/mechanism.zig");
const meter = @import("../meter/meter.zig");
const pool_crew = @import("place.zig");
const pool_table = @import("task.zig");
const pool_worker = @import("work.zig");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Distribution = meter.Distribution;
const Histogram = meter.Histogram;
const Host = host_file.Host;
const Timeout = host_file.Timeout;

/// What a handler can learn about the task that it handles.
pub const Turn = pool_worker.Turn;
/// A panic handler with which a panic in a task ends the worker and not the program.
pub const panic = pool_worker.panic;
/// Identifies one task of one pool.
pub const Id = pool_table.Id;

const ns_per_ms = 1_000_000;
/// The most tasks that a worker has at a time, one of which it runs.
const given_max = 64;
/// By default, as many tasks wait for a busy worker as take this long in total.
const ahead_ns = 4 * ns_per_ms;

/// If each worker has at least so many tasks waiting, which take at least so long in total, the
/// pool looks at the workers from time to time instead of sleeping. The minimum is four pauses of
/// 100 us, because a shorter pause takes hardly less time than one of 100.
const many = 8;
const busy_min_ns = 400_000;

/// The order in which outcomes are handed out.
pub const Order = enum {
    /// The order in which the tasks were submitted.
    submitted,
    /// The order in which the outcomes became known.
    finished,
};

/// Options of a pool.
pub const Options = struct {
    /// The least and the most workers; the most is at most 255, and by default the number of
    /// processors.
    least: u32 = 1,
    most: ?u32 = null,
    order: Order = .submitted,
    /// The most open tasks: those that are submitted and whose outcome is not handed out.
    room: u32 = 1024,
    /// How many tasks may wait for a worker while it runs one, at most 63. By default as many as
    /// take 4 ms in total.
    ahead: ?u32 = null,
    /// Another worker is started if a task has waited longer than this, or is expected to.
    patience_ms: u32 = 20,
    /// A worker that is not needed is ended after this time without a task.
    idle_ms: u32 = 10_000,
    /// How often a task is run again after its worker has died. Such a task is run at least once,
    /// and maybe twice.
    retry: u32 = 0,
    /// Clock and wake mechanism, and how long to spin before each sleep.
    host: *const Host = .native,
    spin_us: ?u32 = null,
    /// Options of the workers' threads.
    thread: std.Thread.SpawnConfig = .{},
};

/// Why the pool cannot start, or cannot go on.
pub const StartError = error{
    OutOfMemory,
    /// Tasks and results are too large for the rings: pass slices of memory that lies elsewhere.
    SegmentSize,
    /// The system provides no thread, and there is no worker.
    PoolStart,
};

/// What a pool has done so far, and what it still has to do.
pub const Stats = struct {
    workers: u32,
    /// Tasks that no worker has, and tasks that a worker has.
    waiting: u32,
    given: u32,
    /// Tasks whose outcome is known and not handed out.
    ready: u32,
    /// Outcomes by their kind, handed out or not.
    done: u64,
    failed: u64,
    died: u64,
    cancelled: u64,
    /// Workers that have died.
    deaths: u64,
    /// In microseconds: from submitting a task until it begins, and from then until it ends.
    wait: Distribution,
    service: Distribution,
};

/// A pool of threads that run one function. `handler` is `fn (Value) Result` or `fn (Value, Turn)
/// Result`, and may return an error instead of a result. `Value` and `Result` are copied byte for
/// byte; what they point to must live until the outcome is handed out.
///
/// Thread safety: belongs to the thread that called `init`. The pool must not move.
pub fn Pool(comptime handler: anytype) type {
    const Handled = pool_worker.Shape(handler);
    return struct {
        gpa: Allocator,
        options: Options,
        table: Table,
        crew: Crew,
        given_count: u32,
        counts: Counts,
        wait: Histogram,
        service: Histogram,
        /// How long a task takes, averaged over recent tasks; 0 while that is unknown.
        service_ns: u64,

        const Self = @This();
        const Table = pool_table.Table(Handled.Value, Outcome);
        const Crew = pool_crew.Crew(handler);

        const Counts = struct {
            done: u64 = 0,
            failed: u64 = 0,
            died: u64 = 0,
            cancelled: u64 = 0,
        };

        /// The types of what the handler gets and of what it returns.
        pub const Value = Handled.Value;
        pub const Result = Handled.Result;

        /// What has become of a task.
        pub const Outcome = union(enum) {
            result: Result,
            /// The handler returned an error.
            failed: anyerror,
            /// The worker died while it ran the task; how far it came is not known.
            died,
            /// The task was given up.
            cancelled,
        };

        /// An outcome, with its task.
        pub const Done = struct { id: Id, value: Value, outcome: Outcome };

        /// Options of one task.
        pub const TaskOptions = struct {
            /// Instead of the pool's `retry`.
            retry: ?u32 = null,
        };

        /// Starts the least number of workers.
        ///
        /// Asserts that the options are in range.
        pub fn init(pool: *Self, gpa: Allocator, options: Options) StartError!void {
            const most = options.most orelse @min(255, options.host.processor_count());
            const least = @min(options.least, most);
            assert(most > 0 and most <= 255 and options.room > 0);
            pool.gpa = gpa;
            pool.options = options;
            pool.options.ahead = if (options.ahead) |count| @min(count, given_max - 1) else null;
            pool.given_count = 0;
            pool.counts = .{};
            pool.wait = .{};
            pool.service = .{};
            pool.service_ns = 0;
            pool.table = try .init(gpa, options.room);
            errdefer pool.table.deinit(gpa);
            try pool.crew.init(gpa, .{
                .least = least,
                .most = most,
                .given_max = given_max,
                .endpoint = .{ .host = options.host, .spin_us = options.spin_us },
                .thread = options.thread,
            });
            errdefer pool.crew.deinit(gpa);
            for (0..@max(1, least)) |_| try pool.crew.start(pool, flagOf);
        }

        /// Gives up all open tasks, waits for those that run, and ends the workers.
        pub fn deinit(pool: *Self) void {
            for (pool.table.places) |*place| place.cancelled.store(true, .monotonic);
            pool.crew.deinit(pool.gpa);
            pool.table.deinit(pool.gpa);
            pool.* = undefined;
        }

        /// Accepts a task. Never waits. Fails with `error.PoolFull` if as many tasks are open as
        /// there is room for: take an outcome first.
        pub fn submit(
            pool: *Self,
            value: Value,
            options: TaskOptions,
        ) (StartError || error{PoolFull})!Id {
            const retry = options.retry orelse pool.options.retry;
            const id = pool.table.submit(value, retry, pool.options.host.now()) orelse
                return error.PoolFull;
            try pool.turnOver();
            return id;
        }

        /// Whether there is no room for another task.
        pub fn isFull(pool: *const Self) bool {
            return pool.table.free.count == 0;
        }

        /// Hands out the next outcome. Waits for it for as long as the timeout allows. Returns null
        /// if there was none by then, or if no task is open.
        pub fn next(pool: *Self, timeout: Timeout) StartError!?Done {
            const ordered = pool.options.order == .submitted;
            var deadline: Deadline = .init(timeout);
            while (true) {
                try pool.turnOver();
                if (pool.table.nextReady(ordered)) |index| return pool.tell(index);
                if (pool.table.submitted.count == 0) return null;
                if (!pool.sleep(&deadline)) return null;
            }
        }

        /// Hands out the outcome of this task, even if others are ready. Returns null if there was
        /// none by the deadline, or if it was handed out before.
        pub fn nextOf(pool: *Self, id: Id, timeout: Timeout) StartError!?Done {
            var deadline: Deadline = .init(timeout);
            while (true) {
                try pool.turnOver();
                const index = pool.table.find(id) orelse return null;
                if (pool.table.places[index].outcome != null) return pool.tell(index);
                if (!pool.sleep(&deadline)) return null;
            }
        }

        /// Runs one task, waits for its end, and returns its outcome.
        pub fn run(pool: *Self, value: Value) (StartError || error{PoolFull})!Outcome {
            const id = try pool.submit(value, .{});
            return (try pool.nextOf(id, .forever)).?.outcome;
        }

        /// Submits values as there is room for them, and hands out outcomes, until there are no
        /// more. `source.next()` returns the next value or null; `sink.take(done)` takes an
        /// outcome. If one of them fails, the call ends with its error, and open tasks stay open.
        pub fn map(pool: *Self, source: anytype, sink: anytype) !void {
            var is_over = false;
            while (true) {
                while (!is_over and !pool.isFull()) {
                    const found: anyerror!?Value = source.next();
                    if (try found) |value| {
                        _ = try pool.submit(value, .{});
                    } else {
                        is_over = true;
                    }
                }
                const done = (try pool.next(.forever)) orelse {
                    if (is_over) return;
                    // All places belong to tasks that were given up and still run.
                    var deadline: Deadline = .init(.forever);
                    _ = pool.sleep(&deadline);
                    continue;
                };
                const taken: anyerror!void = sink.take(done);
                try taken;
            }
        }

        /// Gives a task up: its outcome is `cancelled` at once. A task that waits is taken back. A
        /// task that runs is told by its `Turn`, and keeps its worker until it ends. Returns false
        /// if its outcome was known already.
        pub fn cancel(pool: *Self, id: Id) bool {
            const index = pool.table.find(id) orelse return false;
            if (!pool.table.giveUp(index, .cancelled)) return false;
            pool.counts.cancelled += 1;
            return true;
        }

        /// Returns what was done so far and what is left, for instance to show the progress.
        pub fn stats(pool: *const Self) Stats {
            return .{
                .workers = pool.crew.alive,
                .waiting = @intCast(pool.table.waiting.count),
                .given = pool.given_count,
                .ready = @intCast(pool.table.ready.count),
                .done = pool.counts.done,
                .failed = pool.counts.failed,
                .died = pool.counts.died,
                .cancelled = pool.counts.cancelled,
                .deaths = pool.crew.deaths,
                .wait = pool.wait.distribution(),
                .service = pool.service.distribution(),
            };
        }

        fn tell(pool: *Self, index: u32) Done {
            const id = pool.table.idOf(index);
            const told = pool.table.tell(index);
            return .{ .id = id, .value = told.value, .outcome = told.outcome };
        }

        /// Returns the flag by which a worker learns whether its task was given up.
        fn flagOf(pool: *Self, index: u32) *const std.atomic.Value(bool) {
            return &pool.table.places[index].cancelled;
        }

        /// Takes the answers of the workers, replaces workers that have died, gives tasks to the
        /// workers with the fewest, and starts or ends workers.
        fn turnOver(pool: *Self) StartError!void {
            for (pool.crew.seats) |*seat| {
                if (!seat.alive) continue;
                while (pool.crew.answer(seat)) |reply| pool.settle(seat, reply);
                if (seat.dead) try pool.bury(seat);
            }
            pool.give();
            try pool.size();
        }

        fn settle(pool: *Self, seat: *Crew.Seat, reply: Handled.Reply) void {
            const index = seat.given.take();
            pool.given_count -= 1;
            const place = &pool.table.places[index];
            const waited_ns = reply.begun_ns -| place.submitted_ns;
            const outcome: Outcome = switch (reply.answer) {
                .result => |result| .{ .result = result },
                .failed => |err| .{ .failed = err },
                .skipped => .cancelled,
            };
            if (reply.answer != .skipped) {
                pool.wait.record(waited_ns);
                pool.service.record(reply.service_ns);
                // A new time counts for a quarter, so that a change shows within a few tasks.
                const old_ns = if (pool.service_ns == 0) reply.service_ns else pool.service_ns;
                pool.service_ns = @max(1, old_ns - old_ns / 4 + reply.service_ns / 4);
            }
            if (!pool.table.settle(index, outcome)) return;
            switch (outcome) {
                .result => pool.counts.done += 1,
                .failed => pool.counts.failed += 1,
                .died, .cancelled => unreachable,
            }
        }

        /// Takes the tasks of a dead worker back. The task that it had begun has died, or is
        /// repeated. All others go to the next free workers, before the tasks that wait.
        fn bury(pool: *Self, seat: *Crew.Seat) StartError!void {
            const had_begun = seat.shared.begun.load(.acquire) != seat.answered;
            pool.given_count -= @intCast(seat.given.count);
            while (seat.given.count > @intFromBool(had_begun)) {
                pool.table.takeBack(seat.given.takeLast());
            }
            if (had_begun) {
                const index = seat.given.take();
                const place = &pool.table.places[index];
                if (place.outcome == null and place.retry > 0) {
                    place.retry -= 1;
                    pool.table.takeBack(index);
                } else if (pool.table.settle(index, .died)) {
                    pool.counts.died += 1;
                }
            }
            pool.crew.clear(seat);
            pool.crew.deaths += 1;
            // A new worker takes its place, at the same endpoint.
            pool.crew.startAt(seat, pool, flagOf) catch |err| {
                if (pool.crew.alive == 0) return err; // the other workers go on without it
            };
        }

        /// Gives waiting tasks to the workers with the fewest.
        fn give(pool: *Self) void {
            const most = 1 + pool.ahead();
            while (pool.table.waiting.count > 0) {
                const seat = pool.crew.shortest() orelse return;
                if (seat.given.count >= most) return;
                const index = pool.table.give();
                pool.given_count += 1;
                pool.crew.give(seat, index, &pool.table.places[index].value);
            }
        }

        fn ahead(pool: *const Self) u32 {
            if (pool.options.ahead) |count| return count;
            if (pool.service_ns == 0) return 1;
            return @intCast(std.math.clamp(ahead_ns / pool.service_ns, 1, given_max - 1));
        }

        /// Starts another worker if a task waits too long, or ends a worker that has nothing to do.
        fn size(pool: *Self) StartError!void {
            const now_ns = pool.options.host.now();
            if (pool.lacks(now_ns)) {
                pool.crew.start(pool, flagOf) catch |err| {
                    if (pool.crew.alive == 0) return err; // the other workers go on without it
                };
                return pool.give();
            }
            if (pool.crew.alive <= @max(1, pool.crew.options.least)) return;
            const idle_ns = @as(u64, pool.options.idle_ms) * ns_per_ms;
            for (pool.crew.seats) |*seat| {
                if (!seat.alive or seat.given.count > 0) continue;
                if (now_ns -| seat.busy_ns >= idle_ns) return pool.crew.end(seat);
            }
        }

        /// Whether a task waits too long and another worker may be started.
        fn lacks(pool: *const Self, now_ns: u64) bool {
            if (pool.crew.alive == 0) return true;
            const first = pool.table.waiting.first() orelse return false;
            if (pool.crew.alive >= pool.crew.options.most) return false;
            const patience_ns = @as(u64, pool.options.patience_ms) * ns_per_ms;
            const waited_ns = now_ns -| pool.table.places[first].submitted_ns;
            const before = pool.table.waiting.count + pool.given_count;
            const expected_ns = before * pool.service_ns / pool.crew.alive;
            return @max(waited_ns, expected_ns) > patience_ns;
        }

        /// Waits until a worker has answered or died, or a task has waited too long. Returns false
        /// at the deadline.
        fn sleep(pool: *Self, deadline: *Deadline) bool {
            const left_ns = deadline.left(pool.options.host);
            if (left_ns == 0) return false;
            // While all workers have much to do, this thread takes many answers at a time, and
            // nobody rings. With two processors, two workers then handle 172,000 tasks of 10 us per
            // second, and 91,000 if this thread takes every answer at once (measured, x86-64).
            const behind = pool.crew.fewest();
            const busy_ns = behind * pool.service_ns;
            if (behind >= many and busy_ns >= busy_min_ns) {
                pool.options.host.pause(@min(left_ns, busy_ns / 4, ns_per_ms));
                return true;
            }
            const may_grow = pool.table.waiting.count > 0 and
                pool.crew.alive < pool.crew.options.most;
            const patience_ns = @as(u64, pool.options.patience_ms) * ns_per_ms;
            pool.crew.wait(if (may_grow) @min(left_ns, patience_ns + 1) else left_ns);
            return true;
        }
    };
}

test {
    if (!@import("builtin").single_threaded) _ = @import("../testing/pool_test.zig");
}
