//! Runs part of a test in a forked child.

const std = @import("std");
const linux = std.os.linux;

/// Forks a child that calls `run` and ends. Expects it to succeed. An alarm ends a child that
/// hangs.
pub fn expectChild(comptime run: anytype, values: std.meta.ArgsTuple(@TypeOf(run))) !void {
    const forked = linux.fork();
    if (linux.errno(forked) != .SUCCESS) return error.ForkFailed;
    if (forked == 0) {
        limitChild();
        @call(.auto, run, values) catch |err| {
            std.debug.print("in the child: {t}\n", .{err});
            linux.exit_group(1);
        };
        linux.exit_group(0);
    }
    var status: i32 = 0;
    while (linux.errno(linux.wait4(@intCast(forked), &status, 0, null)) == .INTR) {}
    const raw: u32 = @bitCast(status);
    if (!linux.W.IFEXITED(raw) or linux.W.EXITSTATUS(raw) != 0) return error.ChildFailed;
}

/// Has an alarm end this process if it hangs.
pub fn limitChild() void {
    const limit: linux.itimerspec = .{
        .it_interval = .{ .sec = 0, .nsec = 0 },
        .it_value = .{ .sec = 30, .nsec = 0 },
    };
    _ = linux.setitimer(@backingInt(linux.ITIMER.REAL), &limit, null);
}
