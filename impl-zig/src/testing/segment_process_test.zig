//! Segments in files, between processes: messages, and a process that is killed at any moment.

const std = @import("std");
const fixture = @import("../host/fixture.zig");
const millrace = @import("../root.zig");
const options = @import("test_options");
const testing = std.testing;
const linux = std.os.linux;
const Directory = fixture.Directory;

fn spawn(role: Role, path: []const u8) !std.process.Child {
    const command: [3][]const u8 = .{ options.segment_peer, @tagName(role), path };
    return std.process.spawn(testing.io, .{
        .argv = if (options.emulator) |emulator| &(.{emulator} ++ command) else &command,
        .stdin = .ignore,
    });
}

test "two processes echo, and leave in order" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var end: End = undefined;
    try end.create(path);
    defer end.close();
    var child = try spawn(.echo, path);
    defer child.kill(testing.io);
    for (0..2000) |index| {
        const tag: u32 = @intCast(index);
        try end.writeNext(tag);
        try testing.expect(try end.readNext(tag));
        // Longer than two slices, and no peer is taken for dead.
        if (index == 1000) {
            try testing.expectEqual(null, try end.port.read(&end.payload, .ms(250)));
        }
    }
    try end.port.end();
    try testing.expectEqual(null, try end.port.read(&end.payload, .ms(10_000)));
    try testing.expect(end.port.ended());
    try testing.expect((try child.wait(testing.io)).success());
}

test "two processes stream, both ways" {
    for ([_]Role{ .read, .write }) |role| {
        var directory: Directory = undefined;
        try directory.init();
        defer directory.deinit();
        const path = directory.path("port");
        var end: End = undefined;
        try end.create(path);
        defer end.close();
        var child = try spawn(role, path);
        defer child.kill(testing.io);
        for (0..5000) |index| {
            const tag: u32 = @intCast(index);
            if (role == .read) try end.writeNext(tag);
            if (role == .write) try testing.expect(try end.readNext(tag));
        }
        if (role == .write) continue;
        try end.port.end();
        try testing.expect((try child.wait(testing.io)).success());
    }
}

/// One process kills the other again and again, and goes on until it is told to stop.
const Lane = struct {
    role: Role,
    seed: u64,
    rounds: u32,
    directory: *Directory,
    result: anyerror!void = {},
    tally: Tally = .{},

    const Tally = struct {
        before: u32 = 0,
        during: u32 = 0,
        messages: u64 = 0,
        waits_ns: [kills]u64 = undefined,

        fn add(tally: *Tally, other: *const Tally) void {
            const waits_ns = other.waits_ns[0..other.during];
            @memcpy(tally.waits_ns[tally.during..][0..waits_ns.len], waits_ns);
            tally.before += other.before;
            tally.during += other.during;
            tally.messages += other.messages;
        }
    };

    fn run(lane: *Lane) void {
        lane.result = lane.runAll();
    }

    fn runAll(lane: *Lane) !void {
        var names: [64]u8 = undefined;
        const own = lane.directory.buffer[0..lane.directory.size];
        const name = .{ own, lane.role, lane.seed };
        const path = try std.mem.printSentinel(&names, "{s}/{t}-{}", name, 0);
        var random: std.Random.DefaultPrng = .init(lane.seed);
        for (0..lane.rounds) |_| try lane.round(path, random.random());
    }

    /// The file of the round before is still there, with a dead endpoint in it.
    fn round(lane: *Lane, path: [:0]const u8, random: std.Random) !void {
        var end: End = undefined;
        try end.create(path);
        defer end.close();
        var child = try spawn(lane.role, path);
        defer child.kill(testing.io);
        // Usually in the middle of the stream, sometimes while the other process is still starting.
        const in_stream = random.uintLessThan(u32, 8) > 0;
        if (in_stream) try awaitAttached(&end);
        const delay_ns = random.uintLessThan(u64, 3_000_000);
        var killer: Killer = .{ .pid = child.id.?, .delay_ns = delay_ns };
        const thread: std.Thread = try .spawn(.{}, Killer.run, .{&killer});
        if (!in_stream) {
            thread.join();
            _ = try child.wait(testing.io);
            if (end.file.segment.record(1).state == 0) {
                lane.tally.before += 1;
                return;
            }
        }
        defer if (in_stream) thread.join();
        var tag: u32 = 0;
        while (lane.one(&end, tag)) |_| tag += 1 else |err| {
            if (err != error.PeerFailed) return err;
        }
        const killed_ns = killer.killed_ns.load(.seq_cst);
        if (killed_ns == 0) return error.AliveAndMarked;
        lane.tally.waits_ns[lane.tally.during] = millrace.Host.native.now() -| killed_ns;
        lane.tally.during += 1;
        lane.tally.messages += tag;
        try testing.expectEqual(.peer_lost, end.port.reason().?);
        // Nothing comes after that.
        try testing.expectError(error.PeerFailed, lane.one(&end, tag));
    }

    fn awaitAttached(end: *End) !void {
        const state = &end.file.segment.record(1).state;
        for (0..100_000) |_| {
            if (@atomicLoad(u32, state, .seq_cst) != 0) return;
            millrace.Host.native.pause(100_000);
        }
        return error.NobodyCame;
    }

    fn one(lane: *Lane, end: *End, tag: u32) !void {
        switch (lane.role) {
            .write => if (!try end.readNext(tag)) return error.Ended,
            .read => try end.writeNext(tag),
            .echo => unreachable,
        }
    }
};

const Killer = struct {
    pid: linux.pid_t,
    delay_ns: u64,
    killed_ns: std.atomic.Value(u64) = .init(0),

    fn run(killer: *Killer) void {
        millrace.Host.native.pause(killer.delay_ns);
        killer.killed_ns.store(millrace.Host.native.now(), .seq_cst);
        _ = linux.kill(killer.pid, .KILL);
    }
};

const kills = 200;

test "a process that is killed at any moment is found, after whole messages [wait.liveness]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    // Four at a time, because most of the time everybody sleeps.
    var lanes: [4]Lane = undefined;
    var threads: [4]std.Thread = undefined;
    for (&lanes, &threads, 0..) |*lane, *thread, index| {
        lane.* = .{
            .role = if (index % 2 == 0) .write else .read,
            .seed = index + 1,
            .rounds = kills / lanes.len,
            .directory = &directory,
        };
        thread.* = try .spawn(.{}, Lane.run, .{lane});
    }
    for (threads) |thread| thread.join();
    var tally: Lane.Tally = .{};
    for (&lanes) |*lane| {
        try lane.result;
        tally.add(&lane.tally);
    }
    const waits = tally.waits_ns[0..tally.during];
    std.mem.sort(u64, waits, {}, std.sort.asc(u64));
    const line =
        "killed: {} in the stream, {} before it; {} messages; found after {} ms (median), {} ms " ++
        "(99 %), {} ms (most)\n";
    std.debug.print(line, .{
        tally.during,
        tally.before,
        tally.messages,
        waits[waits.len / 2] / 1_000_000,
        waits[waits.len * 99 / 100] / 1_000_000,
        waits[waits.len - 1] / 1_000_000,
    });
    try testing.expectEqual(kills, tally.during + tally.before);
    try testing.expect(tally.during > kills / 2);
    // Two slices, and delays of the machine; a peer that is not found dead would take 20 s.
    try testing.expect(waits[waits.len - 1] < 5_000_000_000);
    try testing.expectEqual(lanes.len, try directory.count());
}

// The other process of these tests: `segment_peer <role> <path>` opens endpoint
// 1 of the port at the path and plays its role until the stream ends or the test kills it.

pub fn main(init: std.process.Init) !void {
    if (!millrace.SegmentFile.supported) return error.Unsupported;
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const role = std.meta.stringToEnum(Role, arguments[1]) orelse return error.NoRole;
    var end: End = undefined;
    try end.open(arguments[2]);
    defer end.close();
    try end.play(role);
}

// Two processes and a stream whose every byte is known beforehand.

/// What the other process does.
pub const Role = enum { echo, write, read };

/// Longer than any wait of a test, so that a process that is left alone ends.
const patience: millrace.Timeout = .ms(20_000);

pub const rings: millrace.Rings = .{ .capacities = .{ 4096, 4096 } };

/// The messages of the stream: most fit one frame, some are larger than the ring.
pub fn sizeOf(tag: u32) usize {
    const mixed = (tag +% 1) *% 0x9e37_79b1;
    return if (mixed >> 28 == 0) 9000 else mixed >> 22;
}

pub const size_max = 9000;

pub fn fill(payload: []u8, tag: u32) void {
    for (payload, 0..) |*byte, index| byte.* = @truncate(index *% 31 +% tag *% 17 +% index / 256);
}

/// One end of the port. Must not move after it was opened.
pub const End = struct {
    file: millrace.SegmentFile,
    port: millrace.Port,
    storage: [2]millrace.Channel,
    payload: [size_max]u8,
    expected: [size_max]u8,

    pub fn create(end: *End, path: [:0]const u8) !void {
        const channels = rings.channels();
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        try end.file.create(path, geometry, 0, &end.storage, .{});
        errdefer end.file.close();
        try end.port.init(&end.file.segment, 0, .{});
    }

    pub fn open(end: *End, path: [:0]const u8) !void {
        try end.file.open(path, 1, &end.storage, .{});
        errdefer end.file.close();
        try end.port.init(&end.file.segment, 1, .{});
    }

    pub fn close(end: *End) void {
        end.port.close();
        end.file.close();
    }

    pub fn play(end: *End, role: Role) !void {
        switch (role) {
            .echo => {
                while (try end.port.read(&end.payload, patience)) |message| {
                    try end.port.write(message.payload, .{ .tag = message.tag }, patience);
                }
                if (!end.port.ended()) return error.NotEnded;
                try end.port.end();
            },
            .write => {
                var tag: u32 = 0;
                while (true) : (tag += 1) try end.writeNext(tag);
            },
            .read => {
                var tag: u32 = 0;
                while (try end.readNext(tag)) tag += 1;
            },
        }
    }

    pub fn writeNext(end: *End, tag: u32) !void {
        const payload = end.payload[0..sizeOf(tag)];
        fill(payload, tag);
        try end.port.write(payload, .{ .tag = tag }, patience);
    }

    /// Reads the message with this number. Returns false at the end of the stream.
    pub fn readNext(end: *End, tag: u32) !bool {
        const message = (try end.port.read(&end.payload, patience)) orelse {
            return if (end.port.ended()) false else error.Timeout;
        };
        const expected = end.expected[0..sizeOf(tag)];
        fill(expected, tag);
        if (message.tag != tag) return error.TagDiffers;
        if (!std.mem.eql(u8, expected, message.payload)) return error.PayloadDiffers;
        return true;
    }
};
