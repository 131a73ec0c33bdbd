//! A process is killed after each of its stores to the segment, while it exchanges messages with a
//! process that survives [wait.liveness].
//!
//! The process is stopped before a step of its stream, and goes on one machine instruction at a
//! time. After the n-th instruction that changed the shared bytes, it is killed, for every n and
//! every step. The survivor gets whole messages, in order, and then `error.PeerFailed` with
//! `peer.lost`.

const std = @import("std");
const builtin = @import("builtin");
const fixture = @import("segment_kill_fixture.zig");
const file_fixture = @import("../host/fixture.zig");
const millrace = @import("../root.zig");
const program = @import("test_options").segment_kill;
const testing = std.testing;
const assert = std.debug.assert;
const layout = millrace.layout;
const linux = std.os.linux;
const Directory = file_fixture.Directory;
const End = fixture.End;
const Role = fixture.Role;

const size = fixture.rings.segmentSize() catch unreachable;
const Image = [size / 4]u32;

/// What a word of the segment is for.
const Kind = enum {
    state,
    bell,
    cursor,
    wants,
    frame,

    fn of(channels: []const millrace.Channel, offset: u32) Kind {
        if (offset < channels[0].control_offset) {
            const field = (offset - layout.endpoint_table_offset) % layout.endpoint_record_size;
            return if (field == layout.endpoint_bell_offset) .bell else .state;
        }
        for (channels) |channel| {
            const field = offset -% channel.control_offset;
            if (field >= channel.control_size) continue;
            return switch (field) {
                layout.ring_tail_offset, layout.ring_head_offset => .cursor,
                else => .wants,
            };
        }
        return .frame;
    }
};

/// The shared bytes as they were last seen.
const Watch = struct {
    memory: *const Image,
    before: Image,
    channels: []const millrace.Channel,
    role: Role,

    fn init(end: *const End, role: Role) Watch {
        const memory: *const Image = @ptrCast(end.file.memory.ptr);
        const channels = end.file.segment.channels;
        return .{ .memory = memory, .before = memory.*, .channels = channels, .role = role };
    }

    /// Returns what the process has stored since the last call, if anything. Words that only the
    /// survivor stores do not count. A change of a word that both sides store is taken for the
    /// process's.
    fn changed(watch: *Watch) ?Kind {
        var kind: ?Kind = null;
        for (&watch.before, watch.memory, 0..) |*before, *word, index| {
            const now = @atomicLoad(u32, word, .monotonic);
            if (now == before.*) continue;
            before.* = now;
            const offset: u32 = @intCast(index * 4);
            if (!watch.survivorOwns(offset)) kind = .of(watch.channels, offset);
        }
        return kind;
    }

    /// Whether only the survivor, endpoint 0, stores there.
    fn survivorOwns(watch: *const Watch, offset: u32) bool {
        const own = watch.channels[if (watch.role == .read) 0 else 1];
        const cursor: u32 = if (watch.role == .read)
            layout.ring_tail_offset
        else
            layout.ring_head_offset;
        if (offset == own.control_offset + cursor) return true;
        // The frames, if the survivor writes them.
        if (watch.role == .read) return offset -% own.data_offset < own.data_size;
        return false;
    }
};

/// A process that is traced. It ends with its tracer.
const Traced = struct {
    pid: linux.pid_t,
    ended: bool = false,

    const not_permitted = 100;
    const not_started = 101;

    fn start(role: Role, step: u32, path: [:0]const u8) !Traced {
        var number_storage: [16]u8 = undefined;
        const number = try std.mem.printSentinel(&number_storage, "{}", .{step}, 0);
        const file = program[0..program.len :0];
        const argv = [_:null]?[*:0]const u8{ file, @tagName(role), number, path };
        const environment = [_:null]?[*:0]const u8{};
        const forked = linux.fork();
        if (linux.errno(forked) != .SUCCESS) return error.ForkFailed;
        if (forked == 0) {
            if (linux.errno(linux.ptrace(linux.PTRACE.TRACEME, 0, 0, 0, 0)) != .SUCCESS) {
                linux.exit_group(not_permitted);
            }
            _ = linux.execve(file, &argv, &environment);
            linux.exit_group(not_started);
        }
        var traced: Traced = .{ .pid = @intCast(forked) };
        errdefer traced.kill();
        // At the start of the program.
        try traced.expectStop(try traced.await());
        const options = linux.PTRACE.O.EXITKILL;
        const set = linux.ptrace(linux.PTRACE.SETOPTIONS, traced.pid, 0, options, 0);
        if (linux.errno(set) != .SUCCESS) return error.NotPermitted;
        return traced;
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

    fn expectStop(traced: *Traced, status: u32) !void {
        if (!traced.ended) return;
        if (!linux.W.IFEXITED(status)) return error.ChildKilled;
        return switch (linux.W.EXITSTATUS(status)) {
            not_permitted => error.NotPermitted,
            not_started => error.NotStarted,
            else => error.EndedEarly,
        };
    }

    /// Runs until the process stops itself.
    fn runToStop(traced: *Traced) !void {
        const went = linux.ptrace(linux.PTRACE.CONT, traced.pid, 0, 0, 0);
        if (linux.errno(went) != .SUCCESS) return error.NotPermitted;
        const status = try traced.await();
        try traced.expectStop(status);
        if (linux.W.STOPSIG(status) != .STOP) return error.Signalled;
    }

    /// Executes one instruction. Returns false if the process stopped itself with it.
    fn advance(traced: *Traced) !bool {
        const stepped = linux.ptrace(linux.PTRACE.SINGLESTEP, traced.pid, 0, 0, 0);
        if (linux.errno(stepped) != .SUCCESS) return error.NotPermitted;
        const status = try traced.await();
        try traced.expectStop(status);
        return switch (linux.W.STOPSIG(status)) {
            .TRAP => true,
            .STOP => false,
            else => error.Signalled,
        };
    }

    fn kill(traced: *Traced) void {
        if (traced.ended) return;
        _ = linux.kill(traced.pid, .KILL);
        while (!traced.ended) _ = traced.await() catch return;
    }
};

/// The end that survives, on a thread of its own.
const Survivor = struct {
    end: End,
    role: Role,
    /// How many messages were written or read.
    count: u32 = 0,
    result: anyerror!void = {},
    ended_ns: u64 = 0,

    fn run(survivor: *Survivor) void {
        survivor.result = survivor.exchange();
        survivor.ended_ns = millrace.Host.native.now();
    }

    fn exchange(survivor: *Survivor) !void {
        while (true) : (survivor.count += 1) {
            if (fixture.pausesBefore(survivor.count)) millrace.Host.native.pause(4_000_000);
            if (!try survivor.one()) break;
        }
        // The stream has ended, and there is nothing left to wait for.
        const record = survivor.end.file.segment.record(1);
        for (0..20_000) |_| {
            survivor.end.port.endpoint.checkPeers();
            if (@atomicLoad(u32, &record.state, .seq_cst) != layout.endpoint_state_attached) return;
            millrace.Host.native.pause(1_000_000);
        }
        return error.NobodyLeft;
    }

    fn one(survivor: *Survivor) !bool {
        if (survivor.role != .read) return survivor.end.readNext(survivor.count);
        try survivor.end.writeNext(survivor.count);
        return true;
    }
};

const Tally = struct {
    points: std.EnumArray(Kind, u32) = .initFill(0),
    /// How many times it was killed after a complete step.
    between: u32 = 0,
    instructions: u64 = 0,
    messages: u64 = 0,
    waits_ns: [wait_count_max]u64 = undefined,
    wait_count: u32 = 0,

    const wait_count_max = 4096;

    fn add(tally: *Tally, other: *const Tally) void {
        for (&tally.points.values, other.points.values) |*sum, count| sum.* += count;
        tally.between += other.between;
        tally.instructions += other.instructions;
        tally.messages += other.messages;
        for (other.waits_ns[0..other.wait_count]) |wait_ns| tally.addWait(wait_ns);
    }

    fn addWait(tally: *Tally, wait_ns: u64) void {
        assert(tally.wait_count < wait_count_max);
        tally.waits_ns[tally.wait_count] = wait_ns;
        tally.wait_count += 1;
    }

    fn stores(tally: *const Tally) u32 {
        var sum: u32 = 0;
        for (tally.points.values) |count| sum += count;
        return sum;
    }

    fn print(tally: *Tally, role: Role) void {
        const waits_ns = tally.waits_ns[0..tally.wait_count];
        std.mem.sort(u64, waits_ns, {}, std.sort.asc(u64));
        const line =
            "killed at each store ({t}): {} of a state, {} of a bell, {} of a cursor, {} of " ++
            "wants, {} of a frame; {} between steps; {} instructions, {} messages; peer.lost " ++
            "{} times, after {} ms (median), {} ms (most)\n";
        std.debug.print(line, .{
            role,
            tally.points.get(.state),
            tally.points.get(.bell),
            tally.points.get(.cursor),
            tally.points.get(.wants),
            tally.points.get(.frame),
            tally.between,
            tally.instructions,
            tally.messages,
            waits_ns.len,
            waits_ns[waits_ns.len / 2] / 1_000_000,
            waits_ns[waits_ns.len - 1] / 1_000_000,
        });
    }
};

/// Takes steps of the stream, one after the other, and kills the process at every store of each
/// step.
const Lane = struct {
    role: Role,
    next_step: *std.atomic.Value(u32),
    directory: *Directory,
    index: usize,
    survivor: Survivor = undefined,
    result: anyerror!void = {},
    tally: Tally = .{},

    fn run(lane: *Lane) void {
        lane.result = lane.runAll();
    }

    fn runAll(lane: *Lane) !void {
        pin(lane.index);
        var names: [96]u8 = undefined;
        const own = lane.directory.buffer[0..lane.directory.size];
        const name = .{ own, lane.role, lane.index };
        const path = try std.mem.printSentinel(&names, "{s}/{t}-{}", name, 0);
        while (true) {
            const step = lane.next_step.fetchAdd(1, .monotonic);
            if (step >= fixture.stepCount(lane.role)) return;
            var store: u32 = 1;
            while (try lane.round(path, step, store)) store += 1;
        }
    }

    /// Kills the process after the store with that number in the step. Returns false if the step
    /// has fewer stores; then kills it after the step.
    fn round(lane: *Lane, path: [:0]const u8, step: u32, store: u32) !bool {
        const survivor = &lane.survivor;
        survivor.* = .{ .end = undefined, .role = lane.role };
        try survivor.end.create(path);
        defer survivor.end.close();
        var child: Traced = try .start(lane.role, step, path);
        defer child.kill();
        const thread: std.Thread = try .spawn(.{}, Survivor.run, .{survivor});
        var joined = false;
        defer if (!joined) {
            survivor.end.port.close();
            thread.join();
        };
        try child.runToStop();
        const kind = try lane.toStore(&child, store);
        const killed_ns = millrace.Host.native.now();
        child.kill();
        const state = survivor.end.file.segment.record(1).state;
        // Nobody waits for an endpoint that was never taken, and nobody finds it lost.
        if (state == layout.endpoint_state_vacant) survivor.end.port.close();
        thread.join();
        joined = true;
        try lane.judge(step, kind != null, killed_ns);
        if (kind) |known| lane.tally.points.getPtr(known).* += 1 else lane.tally.between += 1;
        lane.tally.messages += survivor.count;
        return kind != null;
    }

    fn toStore(lane: *Lane, child: *Traced, store: u32) !?Kind {
        var watch: Watch = .init(&lane.survivor.end, lane.role);
        var found: u32 = 0;
        while (try child.advance()) {
            lane.tally.instructions += 1;
            const kind = watch.changed() orelse continue;
            found += 1;
            if (found == store) return kind;
        }
        return null;
    }

    fn judge(lane: *Lane, step: u32, within: bool, killed_ns: u64) !void {
        const survivor = &lane.survivor;
        const end = &survivor.end;
        if (survivor.result) |_| {} else |err| switch (err) {
            error.PeerFailed, error.PeerClosed, error.PipeClosed => {},
            // For instance a message with wrong bytes.
            else => return err,
        }
        const word = @atomicLoad(u32, &end.file.segment.record(1).state, .seq_cst);
        switch (word) {
            layout.endpoint_state_vacant => {
                try testing.expectError(error.PipeClosed, survivor.result);
                try testing.expect(step == 0 and within);
            },
            layout.endpoint_state_closed => {
                // The process had said before that nothing more would come, or had taken
                // everything.
                try testing.expectEqual(fixture.stepCount(lane.role) - 1, step);
                if (lane.role != .read) try survivor.result;
                if (lane.role == .read) try testing.expectError(error.PeerClosed, survivor.result);
            },
            file_fixture.lost_word => {
                lane.tally.addWait(survivor.ended_ns -| killed_ns);
                // At the end of the stream, a reader learns of the death only by asking.
                if (survivor.result) |_| {
                    try testing.expect(end.port.ended());
                } else |err| {
                    try testing.expectEqual(error.PeerFailed, err);
                    try testing.expectEqual(.peer_lost, end.port.reason().?);
                    // Nothing comes after that.
                    try testing.expectError(error.PeerFailed, survivor.one());
                }
            },
            else => return error.UnexpectedState,
        }
        if (lane.role == .read) return;
        // Everything of earlier steps, and of this step all or nothing.
        const least = fixture.messageCount(lane.role, step);
        const most = fixture.messageCount(lane.role, step + 1);
        try testing.expect(survivor.count == most or within and survivor.count == least);
    }
};

/// Keeps this thread, and the process that it starts, on one processor: a switch between two costs
/// ten times as much as a step.
fn pin(number: usize) void {
    var allowed: linux.cpu_set_t = @splat(0);
    const got = linux.sched_getaffinity(0, @sizeOf(linux.cpu_set_t), &allowed);
    if (linux.errno(got) != .SUCCESS) return;
    var count: usize = 0;
    for (allowed) |word| count += @popCount(word);
    if (count == 0) return;
    var left = number % count;
    for (&allowed) |*word| {
        const own = word.*;
        word.* = 0;
        for (0..@bitSizeOf(usize)) |bit| {
            const mask = @as(usize, 1) << @intCast(bit);
            if (own & mask == 0) continue;
            if (left == 0) word.* = mask;
            left -%= 1;
        }
    }
    linux.sched_setaffinity(0, &allowed) catch {};
}

/// Many at a time, because most of the time everybody sleeps until the end of a slice.
const lane_count = 8;

fn killEverywhere(role: Role, tally: *Tally) !void {
    if (builtin.single_threaded) return error.SkipZigTest;
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const lanes = try testing.allocator.alloc(Lane, lane_count);
    defer testing.allocator.free(lanes);
    var threads: [lane_count]std.Thread = undefined;
    var next_step: std.atomic.Value(u32) = .init(0);
    for (lanes, &threads, 0..) |*lane, *thread, index| {
        lane.* = .{
            .role = role,
            .next_step = &next_step,
            .directory = &directory,
            .index = index,
        };
        thread.* = try .spawn(.{}, Lane.run, .{lane});
    }
    for (threads) |thread| thread.join();
    for (lanes) |*lane| {
        lane.result catch |err| {
            if (err != error.NotPermitted) return err;
            std.debug.print("skipped: ptrace is not permitted here\n", .{});
            return error.SkipZigTest;
        };
        tally.add(&lane.tally);
    }
}

test "a writer that is killed at any store is found, after whole messages" {
    const tally = try testing.allocator.create(Tally);
    defer testing.allocator.destroy(tally);
    tally.* = .{};
    try killEverywhere(.write, tally);
    tally.print(.write);
    try testing.expect(tally.stores() > 100);
    for (tally.points.values) |count| try testing.expect(count > 0);
    try testing.expect(tally.wait_count > 100);
}

test "a reader that is killed at any store is found by a writer that waits for room" {
    const tally = try testing.allocator.create(Tally);
    defer testing.allocator.destroy(tally);
    tally.* = .{};
    try killEverywhere(.read, tally);
    tally.print(.read);
    try testing.expect(tally.stores() > 30);
    for (tally.points.values[0..@backingInt(Kind.frame)]) |count| try testing.expect(count > 0);
    try testing.expectEqual(0, tally.points.get(.frame));
}

test "canary: a writer that dies after a message that is visible and not there is caught" {
    const tally = try testing.allocator.create(Tally);
    defer testing.allocator.destroy(tally);
    tally.* = .{};
    killEverywhere(.write_unfinished, tally) catch |err| switch (err) {
        error.PayloadDiffers => return,
        else => return err,
    };
    return error.CanarySurvived;
}
