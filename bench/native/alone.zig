//! The peers that send no message of the driver's own: what one thread does, and the workers of a
//! pool.

const std = @import("std");
const millrace = @import("millrace");
const ends = @import("ends.zig");
const runs = @import("runs.zig");
const now = ends.now;

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;

/// SHA-1 of bytes in shared memory.
pub const Digest = struct {
    bytes: []u8,

    /// Takes digests, or returns why there is none to take.
    pub fn run(plan: *ends.Plan, outcome: *runs.Outcome) ?[]const u8 {
        const scenario = plan.scenario;
        if (!scenario.is("sha1")) return "of digests only";
        const size: usize = scenario.size;
        if (size > plan.memory.len) return "larger than the memory of this driver";
        const bytes = plan.memory[0..size];
        for (bytes, 0..) |*byte, index| byte.* = @truncate(index *% 7);
        var digest: Digest = .{ .bytes = bytes };
        repeatFor(scenario.warmup_ms, &digest, size, null);
        repeatFor(scenario.duration_ms, &digest, size, outcome);
        outcome.bytes = outcome.count * size;
        return null;
    }

    inline fn once(digest: *Digest) void {
        digest.bytes[0] +%= 1;
        std.mem.doNotOptimizeAway(millrace.Sha1.of(digest.bytes));
    }
};

/// The floor of every stream: one core that copies bytes from one place to another, with nobody to
/// tell.
pub const Copy = struct {
    source: []const u8,
    target: []u8,
    offset: usize = 0,

    /// Copies messages into a ring of the size that the peers use, or returns why there is nothing
    /// to copy.
    pub fn run(plan: *ends.Plan, outcome: *runs.Outcome) ?[]const u8 {
        const scenario = plan.scenario;
        if (!scenario.is("stream") and !scenario.is("large")) return "this floor only copies";
        if (scenario.inProcesses()) return "one core copies, in one process";
        const size: usize = scenario.size;
        const half = plan.memory.len / 2;
        if (size > half) return "larger than any message of this driver";
        const target = plan.memory[0..@max(size, @min(half, plan.ringSize(0)) / size * size)];
        const source = plan.memory[half..][0..size];
        @memset(source, 0x5a);
        var copy: Copy = .{ .source = source, .target = target };
        repeatFor(scenario.warmup_ms, &copy, size, null);
        repeatFor(scenario.duration_ms, &copy, size, outcome);
        outcome.bytes = outcome.count * size;
        return null;
    }

    inline fn once(copy: *Copy) void {
        @memcpy(copy.target[copy.offset..][0..copy.source.len], copy.source);
        std.mem.doNotOptimizeAway(copy.target.ptr);
        copy.offset += copy.source.len;
        if (copy.offset == copy.target.len) copy.offset = 0;
    }
};

/// Has it done again and again for a while; the clock is read once in 64 KiB.
fn repeatFor(milliseconds: u32, work: anytype, size: usize, outcome: ?*runs.Outcome) void {
    const begin_ns = now();
    const until_ns = begin_ns + @as(u64, milliseconds) * ns_per_ms;
    const stride = @max(1, (64 << 10) / size);
    var count: u64 = 0;
    while (true) {
        for (0..stride) |_| work.once();
        count += stride;
        const at_ns = now();
        if (at_ns < until_ns) continue;
        if (outcome) |found| {
            found.count = count;
            found.elapsed_ns = at_ns - begin_ns;
        }
        return;
    }
}

const Task = struct { ns: u64, number: u64 };
const Pool = millrace.Pool(handle);

fn handle(task: Task) u64 {
    const until_ns = now() + task.ns;
    while (now() < until_ns) std.atomic.spinLoopHint();
    return task.number;
}

/// Tasks that keep so many workers of a `Pool` busy.
pub fn Workers(comptime worker_count: u32) type {
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
