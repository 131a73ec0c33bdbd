//! Streams through the calls from C.

const std = @import("std");
const builtin = @import("builtin");
const arguments = @import("arguments.zig");
const fixture = @import("fixture.zig");
const ports = @import("port.zig");
const streams = @import("stream.zig");
const StreamDescriptors = @import("../stream/descriptors.zig").StreamDescriptors;
const testing = std.testing;
const posix = std.posix;
const system = posix.system;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const sizes: streams.Sizes = .{ .largest = 128, .window = 256, .queue = 512 };

/// A side of a stream. Must stay where it was opened.
const Side = struct {
    memory: [8192]u8 align(128),
    stream_storage: Storage align(8),
    port_storage: Storage align(8),

    fn open(side: *Side, descriptor: posix.fd_t) arguments.Status {
        @memset(&side.stream_storage, 0xaa);
        @memset(&side.port_storage, 0xaa);
        const memory_size = side.memory.len;
        return streams.millrace_stream_open(
            side.stream(),
            side.port(),
            descriptor,
            descriptor,
            &side.memory,
            memory_size,
            &sizes,
        );
    }

    fn stream(side: *Side) *anyopaque {
        return &side.stream_storage;
    }

    fn port(side: *Side) *anyopaque {
        return &side.port_storage;
    }
};

const Pair = struct {
    sides: [2]Side,

    fn open(pair: *Pair) !void {
        var both: [2]posix.fd_t = undefined;
        const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
        try testing.expectEqual(.SUCCESS, posix.errno(result));
        for (&pair.sides, both) |*side, descriptor| try expectStatus(1, side.open(descriptor));
    }
};

test "c_abi: a stream is a port like others, until it is left" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.open();
    const near = &pair.sides[0];
    const far = &pair.sides[1];
    try expectStatus(1, streams.millrace_stream_await_ready(near.stream(), 20_000));
    try expectStatus(1, streams.millrace_stream_pump(near.stream()));
    for (0..40) |index| {
        const tag: u32 = @intCast(index);
        try expectStatus(1, fixture.write(near.port(), "[1]", tag));
        try expectStatus(1, streams.millrace_stream_pump(far.stream()));
        try fixture.expectRead(far.port(), "[1]", tag);
    }
    // It is left with its stream.
    try expectStatus(arguments.invalid, ports.millrace_port_leave(near.port()));
    try expectStatus(arguments.invalid, streams.millrace_stream_leave(near.port()));
    try expectStatus(arguments.nothing, streams.millrace_stream_finish(near.stream(), 0));
    var storage: [16]u8 = undefined;
    var message: ports.Message = undefined;
    const found = ports.millrace_port_read(far.port(), &storage, storage.len, 20_000, &message);
    try expectStatus(reasonStatus(.peer_closed), found);
    try expectStatus(1, streams.millrace_stream_leave(far.stream()));
    try expectStatus(1, streams.millrace_stream_leave(near.stream()));
    try expectStatus(arguments.invalid, streams.millrace_stream_leave(near.stream()));
    try expectStatus(arguments.invalid, fixture.write(near.port(), "[1]", 1));
}

test "c_abi: a stream that has finished has closed its descriptor, and may still be asked" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var pair: Pair = undefined;
    var both: [2]posix.fd_t = undefined;
    const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
    try testing.expectEqual(.SUCCESS, posix.errno(result));
    for (&pair.sides, both) |*side, descriptor| try expectStatus(1, side.open(descriptor));
    const near = &pair.sides[0];
    const far = &pair.sides[1];
    try expectStatus(1, streams.millrace_stream_await_ready(near.stream(), 20_000));
    try expectStatus(arguments.nothing, streams.millrace_stream_finish(near.stream(), 0));
    try testing.expectEqual(.SUCCESS, posix.errno(flagsOf(both[0])));
    try expectStatus(1, streams.millrace_stream_leave(far.stream()));
    for (0..2) |_| {
        try expectStatus(1, streams.millrace_stream_finish(near.stream(), 20_000));
        try testing.expectEqual(.BADF, posix.errno(flagsOf(both[0])));
    }
    try expectStatus(0, streams.millrace_stream_pump(near.stream()));
    try expectStatus(reasonStatus(.pipe_closed), fixture.write(near.port(), "[1]", 1));
    try expectStatus(1, streams.millrace_stream_leave(near.stream()));
}

fn flagsOf(descriptor: posix.fd_t) @TypeOf(system.fcntl(0, 0, @as(usize, 0))) {
    return system.fcntl(descriptor, posix.F.GETFL, @as(usize, 0));
}

test "c_abi: a stream whose peer is gone says so, with the reason" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var both: [2]posix.fd_t = undefined;
    const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
    try testing.expectEqual(.SUCCESS, posix.errno(result));
    var side: Side = undefined;
    try expectStatus(1, side.open(both[0]));
    _ = system.write(both[1], "HTTP/1.1 400 Bad Request", 24);
    var storage: [16]u8 = undefined;
    var message: ports.Message = undefined;
    const found = ports.millrace_port_read(side.port(), &storage, storage.len, 20_000, &message);
    try expectStatus(reasonStatus(.peer_failed), found);
    const reason = ports.millrace_port_reason(side.port());
    const magic = @import("../memory/layout.zig").Reason.stream_magic;
    try testing.expectEqual(@backingInt(magic), reason);
    _ = system.close(both[1]);
    try expectStatus(1, streams.millrace_stream_leave(side.stream()));
}

test "c_abi: a stream is refused for what it cannot be" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    const wrong = [_]streams.Sizes{
        .{ .largest = 112, .window = 256, .queue = 512 },
        .{ .largest = 136, .window = 256, .queue = 512 },
        .{ .largest = 128, .window = 112, .queue = 512 },
        .{ .largest = 128, .window = 264, .queue = 512 },
        .{ .largest = 128, .window = 0xffff_fff0, .queue = 512 },
        .{ .largest = 128, .window = 256, .queue = 256 },
        .{ .largest = 128, .window = 256, .queue = 600 },
    };
    for (&wrong) |*each| {
        try testing.expectEqual(0, streams.millrace_stream_memory_size(each));
    }
    try testing.expect(streams.millrace_stream_memory_size(null) > 128 * 1024);
    const needed = streams.millrace_stream_memory_size(&sizes);
    try testing.expect(needed <= 8192);
    var side: Side = undefined;
    // No descriptor, and too little memory.
    try expectStatus(arguments.system, side.open(-1));
    const open = streams.millrace_stream_open;
    const small = reasonStatus(.segment_size);
    const stream, const port = .{ side.stream(), side.port() };
    try expectStatus(small, open(stream, port, 0, 0, &side.memory, needed - 1, &sizes));
    try expectStatus(small, open(stream, port, 0, 0, side.memory[64..], needed, &sizes));
    const none = arguments.invalid;
    try expectStatus(none, open(stream, port, 0, 0, null, needed, &sizes));
    try expectStatus(none, open(stream, null, 0, 0, &side.memory, needed, &sizes));
    try expectStatus(none, open(null, port, 0, 0, &side.memory, needed, &sizes));
    try expectStatus(none, open(stream, port, 0, 0, &side.memory, needed, &wrong[0]));
    try expectStatus(none, streams.millrace_stream_finish(stream, 0));
}
