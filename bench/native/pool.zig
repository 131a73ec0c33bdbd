//! Tasks that keep two workers of a `Pool` busy, or one of them: no message of the driver's own.

const std = @import("std");
const millrace = @import("millrace");
const ends = @import("ends.zig");
const runs = @import("runs.zig");
const now = ends.now;

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;

const Task = struct { ns: u64, number: u64 };
const Pool = millrace.Pool(handle);

fn handle(task: Task) u64 {
    const until_ns = now() + task.ns;
    while (now() < until_ns) std.atomic.spinLoopHint();
    return task.number;
}

/// The peer with so many workers, from which the driver has the outcome of each run.
pub fn Peer(comptime worker_count: u32) type {
    return struct {
        /// Has tasks under way for a while, or returns why it has none.
        pub fn run(plan: *ends.Plan, outcome: *runs.Outcome) !?[]const u8 {
            const scenario = plan.scenario;
            if (!scenario.is("pool")) return "only tasks for pools";
            if (scenario.inProcesses()) return "workers are threads";
            var pool: Pool = undefined;
            try pool.init(std.heap.page_allocator, .{
                .least = worker_count,
                .most = worker_count,
                .order = .finished,
                .room = scenario.window,
            });
            defer pool.deinit();
            const task_ns: u64 = @intFromFloat(@round(scenario.task_us * ns_per_us));
            try runFor(&pool, scenario.warmup_ms, task_ns, null);
            try runFor(&pool, scenario.duration_ms, task_ns, outcome);
            return null;
        }
    };
}

/// Until then a task that is done is followed by another one; the time counts until all are done.
fn runFor(pool: *Pool, milliseconds: u32, task_ns: u64, outcome: ?*runs.Outcome) !void {
    const begin_ns = now();
    const until_ns = begin_ns + @as(u64, milliseconds) * ns_per_ms;
    var given: u64 = 0;
    var count: u64 = 0;
    var sum: u64 = 0;
    while (true) {
        while (!pool.isFull() and now() < until_ns) : (given += 1) {
            _ = try pool.submit(.{ .ns = task_ns, .number = given }, .{});
        }
        const done = (try pool.next(.ms(20_000))) orelse {
            if (given == count) break;
            return error.NoOutcome;
        };
        if (done.outcome.result != done.value.number) return error.OutcomeWrong;
        sum +%= done.outcome.result;
        count += 1;
    }
    // Each of them once.
    if (sum != given *% (given -% 1) / 2) return error.OutcomeWrong;
    const found = outcome orelse return;
    found.count = count;
    found.elapsed_ns = now() - begin_ns;
}
