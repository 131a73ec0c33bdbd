//! The floor of every stream: one core that copies bytes from one place to another, with nobody to
//! tell.

const std = @import("std");
const ends = @import("ends.zig");
const runs = @import("runs.zig");
const now = ends.now;

const ns_per_ms = 1_000_000;

/// Copies messages into a ring of the size that the peers use, or returns why there is nothing to
/// copy.
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
    copyFor(scenario.warmup_ms, source, target, null);
    copyFor(scenario.duration_ms, source, target, outcome);
    outcome.bytes = outcome.count * size;
    return null;
}

fn copyFor(milliseconds: u32, source: []const u8, target: []u8, outcome: ?*runs.Outcome) void {
    const begin_ns = now();
    const until_ns = begin_ns + @as(u64, milliseconds) * ns_per_ms;
    const stride = @max(1, (64 << 10) / source.len);
    var offset: usize = 0;
    var count: u64 = 0;
    while (true) {
        for (0..stride) |_| {
            @memcpy(target[offset..][0..source.len], source);
            std.mem.doNotOptimizeAway(target.ptr);
            offset += source.len;
            if (offset == target.len) offset = 0;
        }
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
