//! Endpoints that crossed a `fork` [segment.forked]. A child reports a failure by its exit code.

const std = @import("std");
const fork = @import("fixture.zig");
const millrace = @import("../root.zig");
const process = @import("../host/process.zig");
const testing = std.testing;
const linux = std.os.linux;
const Directory = @import("../host/fixture.zig").Directory;
const Port = millrace.Port;

const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
const forked = error.PipeForked;

/// Memory that a child shares, or of which it has a copy.
fn mapped(kind: linux.MAP_TYPE) !*align(128) [4096]u8 {
    const flags: linux.MAP = .{ .TYPE = kind, .ANONYMOUS = true };
    const result = linux.mmap(null, 4096, .{ .READ = true, .WRITE = true }, flags, -1, 0);
    if (linux.errno(result) != .SUCCESS) return error.NoMemory;
    return @ptrFromInt(result);
}

fn expectForked(port: *Port) !void {
    var storage: [64]u8 = undefined;
    try testing.expectError(forked, port.write("a", .{}, .ms(10_000)));
    try testing.expectError(forked, port.tryWrite("a", .{}));
    try testing.expectError(forked, port.read(&storage, .ms(10_000)));
    try testing.expectError(forked, port.peek(.none));
    try testing.expectError(forked, port.claim(8, .none));
    try testing.expectError(forked, port.end());
    try testing.expect(!port.vacate());
}

const Nested = struct {
    /// Answers through an endpoint of its own, without touching the endpoint of its parent.
    fn answer(inherited: *Port, memory: *align(128) [4096]u8) !void {
        try expectForked(inherited);
        inherited.close();
        try expectForked(inherited);
        var own: Port = undefined;
        try own.create(memory, rings, 1, .{});
        try own.write("answer", .{}, .none);
        // A child of the child gets the error too, for both ports.
        try fork.expectChild(tellBoth, .{ inherited, &own });
        try own.end();
    }

    fn tellBoth(inherited: *Port, own: *Port) !void {
        try expectForked(inherited);
        try expectForked(own);
        own.close();
    }

    fn tell(inherited: *Port) !void {
        try expectForked(inherited);
    }
};

test "a child attaches an endpoint of its own, and is told of its parent's" {
    const memory = try mapped(.SHARED);
    defer _ = linux.munmap(memory, memory.len);
    var port: Port = undefined;
    try port.create(memory, rings, 0, .{});
    defer port.close();
    try fork.expectChild(Nested.answer, .{ &port, memory });
    var storage: [64]u8 = undefined;
    const message = (try port.read(&storage, .none)).?;
    try testing.expectEqualStrings("answer", message.payload);
    try testing.expectEqual(null, try port.read(&storage, .none));
    try testing.expect(port.ended());
}

test "a child that has a copy of the memory is told, where it would wait for ever" {
    const memory = try mapped(.PRIVATE);
    defer _ = linux.munmap(memory, memory.len);
    var ports: [2]Port = undefined;
    for (&ports, 0..) |*port, index| try port.create(memory, rings, @intCast(index), .{});
    defer for (&ports) |*port| port.close();
    for (&ports) |*port| try fork.expectChild(Nested.tell, .{port});
    var storage: [64]u8 = undefined;
    try ports[0].write("here", .{}, .none);
    try testing.expectEqualStrings("here", (try ports[1].read(&storage, .none)).?.payload);
}

const File = struct {
    file: millrace.SegmentFile = undefined,
    channels: [2]millrace.Channel = undefined,
    port: Port = undefined,

    fn create(end: *File, path: [:0]const u8, index: u32) !void {
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &.{
            .{ .writer = 0, .reader = 1, .data_size = 256 },
            .{ .writer = 1, .reader = 0, .data_size = 256 },
        } };
        try end.file.create(path, geometry, index, &end.channels, .{});
    }

    /// The lock is the parent's: a child can neither take the endpoint nor give up the lock.
    fn leaveInChild(end: *File) !void {
        var other: Port = undefined;
        const taken = other.init(&end.file.segment, end.file.index, .{});
        try testing.expectError(forked, taken);
        const own = millrace.Endpoint.attach(&end.file.segment, end.file.index, .{});
        try testing.expectError(forked, own);
        end.file.close();
    }
};

test "a child neither takes nor unlocks the endpoint of its parent's file" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("forked");
    var ends: [2]File = .{ .{}, .{} };
    for (&ends, 0..) |*end, index| try end.create(path, @intCast(index));
    defer for (&ends) |*end| end.file.close();
    // Before there is a port, and afterwards.
    for (0..2) |round| {
        try fork.expectChild(File.leaveInChild, .{&ends[0]});
        if (round == 0) {
            for (&ends) |*end| try end.port.init(&end.file.segment, end.file.index, .{});
        }
        ends[1].port.endpoint.checkPeers();
    }
    var storage: [64]u8 = undefined;
    try ends[1].port.write("here", .{}, .none);
    try testing.expectEqualStrings("here", (try ends[0].port.read(&storage, .none)).?.payload);
}

test "the capacity of a ring is a power of two, and who gives another is told so" {
    if (!std.debug.runtime_safety) return error.SkipZigTest;
    for ([_]u32{ 1000, 128, 0 }) |capacity| {
        var ends: [2]linux.fd_t = undefined;
        try testing.expectEqual(.SUCCESS, linux.errno(linux.pipe2(&ends, .{})));
        const id = linux.fork();
        try testing.expectEqual(.SUCCESS, linux.errno(id));
        if (id == 0) {
            fork.limitChild();
            _ = linux.dup2(ends[1], 2);
            var memory: [4096]u8 align(128) = @splat(0);
            var port: Port = undefined;
            const own: millrace.Rings = .{ .capacities = .{ 256, capacity } };
            port.create(&memory, own, 0, .{}) catch {};
            linux.exit_group(0);
        }
        _ = linux.close(ends[1]);
        var text: [256]u8 = undefined;
        var size: usize = 0;
        // The message comes first, and then a trace of the stack.
        while (size < text.len) {
            const come = linux.read(ends[0], text[size..].ptr, text.len - size);
            if (linux.errno(come) != .SUCCESS or come == 0) break;
            size += come;
        }
        _ = linux.kill(@intCast(id), .KILL);
        _ = linux.close(ends[0]);
        var status: i32 = undefined;
        _ = linux.wait4(@intCast(id), @ptrCast(&status), 0, null);
        var fact: [64]u8 = undefined;
        const told = try std.fmt.bufPrint(&fact, "2^30 bytes, but it is {}", .{capacity});
        try testing.expect(std.mem.find(u8, text[0..size], "a power of two from 256") != null);
        try testing.expect(std.mem.find(u8, text[0..size], told) != null);
    }
}

test "who has no number is not told apart" {
    try testing.expect(process.number() != 0);
    try testing.expect(!process.isOther(process.number()));
    try testing.expect(process.isOther(process.number() + 1));
    try testing.expect(!process.isOther(0));
}

const OverSocket = struct {
    fn leave(stream: *millrace.Stream) !void {
        try expectForked(&stream.port);
        stream.pump();
        stream.deinit();
    }
};

test "a child takes nothing out of its parent's stream, and does not end it" {
    var pair: [2]linux.fd_t = undefined;
    const made = linux.socketpair(linux.AF.UNIX, linux.SOCK.STREAM, 0, &pair);
    if (linux.errno(made) != .SUCCESS) return error.NoSockets;
    var descriptors: [2]millrace.StreamDescriptors = undefined;
    var streams: [2]millrace.Stream = undefined;
    var memory: [2][8192]u8 align(128) = undefined;
    const options: millrace.Stream.Options = .{ .largest = 128, .window = 256, .queue = 512 };
    for (&streams, &descriptors, &memory, pair) |*stream, *own, *place, handle| {
        own.* = try .any(handle, handle);
        try stream.open(@alignCast(place), own.transport(), options);
    }
    var storage: [64]u8 = undefined;
    try streams[1].port.write("here", .{}, .none);
    try fork.expectChild(OverSocket.leave, .{&streams[0]});
    const message = (try streams[0].port.read(&storage, .ms(10_000))).?;
    try testing.expectEqualStrings("here", message.payload);
    try streams[0].port.write("there", .{}, .none);
    const answer = (try streams[1].port.read(&storage, .ms(10_000))).?;
    try testing.expectEqualStrings("there", answer.payload);
    // Each waits for the other to end its byte stream.
    for (&streams) |*stream| stream.port.close();
    for (&streams) |*stream| stream.deinit();
}
