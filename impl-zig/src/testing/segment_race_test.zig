//! Segments in files, one system call at a time. A child process is stopped before and after each
//! system call of `create` and `open`. There it is killed, or another process comes first.

const std = @import("std");
const fixture = @import("../host/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const linux = std.os.linux;
const Directory = fixture.Directory;
const End = fixture.End;

const What = enum { create, open };

/// A child that makes or opens a file, and then waits for a message and answers it.
const Traced = struct {
    pid: linux.pid_t,
    ended: bool = false,

    const not_permitted = 100;

    fn start(what: What, path: [:0]const u8, index: u32, done: *u32) !Traced {
        const forked = linux.fork();
        if (linux.errno(forked) != .SUCCESS) return error.ForkFailed;
        if (forked == 0) {
            if (linux.errno(linux.ptrace(linux.PTRACE.TRACEME, 0, 0, 0, 0)) != .SUCCESS) {
                linux.exit_group(not_permitted);
            }
            _ = linux.kill(linux.getpid(), .STOP);
            run(what, path, index, done) catch |err| linux.exit_group(switch (err) {
                error.SegmentMissing => 3,
                error.SegmentEndpoint => 4,
                error.PeerFailed => beside_the_dead,
                else => 1,
            });
            linux.exit_group(0);
        }
        var traced: Traced = .{ .pid = @intCast(forked) };
        errdefer traced.kill();
        const status = try traced.await();
        if (linux.W.IFEXITED(status)) return error.NotPermitted;
        const options = linux.PTRACE.O.EXITKILL;
        const set = linux.ptrace(linux.PTRACE.SETOPTIONS, traced.pid, 0, options, 0);
        if (linux.errno(set) != .SUCCESS) return error.NotPermitted;
        return traced;
    }

    fn run(what: What, path: [:0]const u8, index: u32, done: *u32) !void {
        var end: End = undefined;
        switch (what) {
            .create => try end.create(path, index, .ms(5_000)),
            .open => try end.open(path, index),
        }
        @atomicStore(u32, done, 1, .seq_cst);
        try end.expectMessage("question", .ms(5_000));
        try end.port.write("answer", .{}, .none);
        end.close();
    }

    fn await(traced: *Traced) !u32 {
        var status: i32 = 0;
        if (linux.errno(linux.wait4(traced.pid, &status, 0, null)) != .SUCCESS) {
            return error.WaitFailed;
        }
        const word: u32 = @bitCast(status);
        traced.ended = linux.W.IFEXITED(word) or linux.W.IFSIGNALED(word);
        return word;
    }

    /// Runs until the next start or end of a system call.
    fn step(traced: *Traced) !void {
        const stepped = linux.ptrace(linux.PTRACE.SYSCALL, traced.pid, 0, 0, 0);
        if (linux.errno(stepped) != .SUCCESS) return error.NotPermitted;
        if (!linux.W.IFSTOPPED(try traced.await())) return error.EndedEarly;
    }

    fn goOn(traced: *Traced) void {
        _ = linux.ptrace(linux.PTRACE.DETACH, traced.pid, 0, 0, 0);
    }

    /// Runs the child to its end. Returns its exit code.
    fn finish(traced: *Traced) !u32 {
        const status = try traced.await();
        if (!linux.W.IFEXITED(status)) return error.ChildKilled;
        return linux.W.EXITSTATUS(status);
    }

    fn kill(traced: *Traced) void {
        if (traced.ended) return;
        _ = linux.kill(traced.pid, .KILL);
        while (!traced.ended) _ = traced.await() catch return;
    }
};

const Left = enum { nothing, dead_pair, dead_creator };

/// A directory with a path, at which some pair of processes has left a file.
const Scene = struct {
    directory: Directory,
    path: [:0]const u8,
    /// The child sets it when it has its file.
    done: *u32,

    fn init(scene: *Scene) !void {
        try scene.directory.init();
        scene.path = scene.directory.path("port");
        const prot: linux.PROT = .{ .READ = true, .WRITE = true };
        const flags: linux.MAP = .{ .TYPE = .SHARED, .ANONYMOUS = true };
        const mapped = linux.mmap(null, 4096, prot, flags, -1, 0);
        if (linux.errno(mapped) != .SUCCESS) return error.MapFailed;
        scene.done = @ptrFromInt(mapped);
    }

    fn deinit(scene: *Scene) void {
        _ = linux.munmap(@ptrCast(scene.done), 4096);
        scene.directory.deinit();
    }

    fn set(scene: *Scene, left: Left) !void {
        _ = linux.unlink(scene.path);
        scene.done.* = 0;
        var end: End = undefined;
        if (left != .nothing) {
            try end.create(scene.path, 0, .none);
            end.die();
        }
        if (left == .dead_pair) {
            try end.open(scene.path, 1);
            end.close();
        }
    }

    fn start(scene: *Scene, what: What, index: u32) !Traced {
        return Traced.start(what, scene.path, index, scene.done) catch |err| {
            if (err != error.NotPermitted) return err;
            std.debug.print("skipped: ptrace is not permitted here\n", .{});
            return error.SkipZigTest;
        };
    }
};

test "a creator that dies at any system call leaves nothing that is in the way" {
    var scene: Scene = undefined;
    try scene.init();
    defer scene.deinit();
    var stops: u32 = 0;
    for (std.enums.values(Left)) |left| for ([_]What{ .create, .open }) |next| {
        var reached = false;
        var count: u32 = 0;
        while (!reached) : (count += 1) {
            try scene.set(left);
            var child = try scene.start(.create, 0);
            defer child.kill();
            for (0..count) |_| try child.step();
            reached = scene.done.* == 1;
            child.kill();
            // There is not even the file that it was about to name.
            try testing.expect(try scene.directory.count() <= 1);
            if (next == .open) try openAfter(scene.path);
            var ends: [2]End = undefined;
            for (&ends, 0..) |*end, index| try end.create(scene.path, @intCast(index), .none);
            try ends[0].port.write("new", .{}, .none);
            try ends[1].expectMessage("new", .none);
            for (&ends) |*end| end.close();
        }
        stops += count;
    };
    std.debug.print("a creator died at {} places\n", .{stops});
    try testing.expect(stops > 60);
}

/// A process that opens what a dead creator has left finds no file, no free place, or the dead
/// peer.
fn openAfter(path: [:0]const u8) !void {
    var end: End = undefined;
    end.open(path, 1) catch |err| switch (err) {
        error.SegmentMissing, error.SegmentEndpoint => return,
        else => return err,
    };
    defer end.close();
    try testing.expectError(error.PeerFailed, end.expectMessage("", .ms(10_000)));
    try testing.expectEqual(.peer_lost, end.port.reason().?);
}

test "an opener that dies at any system call is found, or its endpoint is free" {
    var scene: Scene = undefined;
    try scene.init();
    defer scene.deinit();
    var found: [2]u32 = .{ 0, 0 };
    var reached = false;
    var count: u32 = 0;
    while (!reached) : (count += 1) {
        try scene.set(.nothing);
        var end: End = undefined;
        try end.create(scene.path, 0, .none);
        defer end.close();
        var child = try scene.start(.open, 1);
        defer child.kill();
        for (0..count) |_| try child.step();
        reached = scene.done.* == 1;
        child.kill();
        const state = end.state(1);
        try testing.expect(state <= 1);
        found[state] += 1;
        end.port.endpoint.checkPeers();
        if (state == 1) {
            try testing.expectEqual(fixture.lost_word, end.state(1));
            continue;
        }
        try testing.expectEqual(0, end.state(1));
        var other: End = undefined;
        try other.open(scene.path, 1);
        other.close();
    }
    std.debug.print("an opener died at {} places; had attached at {}\n", .{ count, found[1] });
    try testing.expect(found[0] > 10 and found[1] > 1);
}

test "two creators meet, wherever the one is when the other comes" {
    try meet(.create, &.{ .nothing, .dead_pair, .dead_creator });
}

test "an opener meets the creator that replaces the file under it, or is in its way" {
    try meet(.open, &.{.dead_creator});
}

/// The exit code of a child that has met only a dead peer.
const beside_the_dead = 5;

/// Stops the child at every place in turn, while this process creates endpoint 0.
fn meet(what: What, lefts: []const Left) !void {
    var scene: Scene = undefined;
    try scene.init();
    defer scene.deinit();
    var tally: struct { met: u32 = 0, held: u32 = 0, alone: u32 = 0 } = .{};
    for (lefts) |left| {
        var reached = false;
        var count: u32 = 0;
        while (!reached) : (count += 1) {
            try scene.set(left);
            var child = try scene.start(what, 1);
            defer child.kill();
            for (0..count) |_| try child.step();
            reached = scene.done.* == 1;
            var end: End = undefined;
            var late = false;
            end.create(scene.path, 0, .none) catch |err| switch (err) {
                // The child has the header locked, and unlocks it when it goes on.
                error.Timeout => late = true,
                else => return err,
            };
            child.goOn();
            if (late) {
                tally.held += 1;
                const created = end.create(scene.path, 0, .ms(5_000));
                if (what == .open) {
                    // Either may have been first.
                    if (created) |_| end.close() else |err| {
                        try testing.expectEqual(error.SegmentEndpoint, err);
                    }
                    child.kill();
                    continue;
                }
                try created;
            }
            defer end.close();
            try end.port.write("question", .{}, .none);
            const code = try child.finish();
            try testing.expectEqual(1, try scene.directory.count());
            if (code == beside_the_dead) {
                // The child had taken its place in the file that was replaced [segment.file_left].
                try testing.expectEqual(.open, what);
                try testing.expectEqual(0, end.state(1));
                tally.alone += 1;
                continue;
            }
            try testing.expectEqual(0, code);
            try end.expectMessage("answer", .none);
            tally.met += 1;
        }
    }
    const line = "{t} against create: met at {} places, locked at {}, {} beside the dead\n";
    std.debug.print(line, .{ what, tally.met, tally.held, tally.alone });
    try testing.expect(tally.met > 10);
}
