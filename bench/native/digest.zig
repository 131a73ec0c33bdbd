//! SHA-1 of bytes by one thread: no message, no wait.

const std = @import("std");
const millrace = @import("millrace");
const ends = @import("ends.zig");
const runs = @import("runs.zig");
const now = ends.now;

const ns_per_ms = 1_000_000;

/// Takes digests of bytes in shared memory, or returns why there is none to take.
pub fn run(plan: *ends.Plan, outcome: *runs.Outcome) ?[]const u8 {
    const scenario = plan.scenario;
    if (!scenario.is("sha1")) return "of digests only";
    const size: usize = scenario.size;
    if (size > plan.memory.len) return "larger than the memory of this driver";
    const bytes = plan.memory[0..size];
    for (bytes, 0..) |*byte, index| byte.* = @truncate(index *% 7);
    hashFor(scenario.warmup_ms, bytes, null);
    hashFor(scenario.duration_ms, bytes, outcome);
    outcome.bytes = outcome.count * size;
    return null;
}

fn hashFor(milliseconds: u32, bytes: []u8, outcome: ?*runs.Outcome) void {
    const begin_ns = now();
    const until_ns = begin_ns + @as(u64, milliseconds) * ns_per_ms;
    const stride = @max(1, (64 << 10) / bytes.len);
    var count: u64 = 0;
    while (true) {
        for (0..stride) |_| {
            bytes[0] +%= 1;
            std.mem.doNotOptimizeAway(millrace.Sha1.of(bytes));
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
