//! What the tests of the calls from C share: storage for objects, and two ports on one segment.

const std = @import("std");
const arguments = @import("arguments.zig");
const layout = @import("../memory/layout.zig");
const segments = @import("segment.zig");
const ports = @import("port.zig");
const testing = std.testing;
const Status = arguments.Status;

/// Storage that suffices for any object.
pub const Storage = [40 * 1024]u8;

pub const both: [2]segments.Ring = .{
    .{ .writer = 0, .reader = 1, .capacity = 256 },
    .{ .writer = 1, .reader = 0, .capacity = 256 },
};

/// Two endpoints in memory, each with a port. Must not move after it was initialized.
pub const Pair = struct {
    memory: [4096]u8 align(128) = @splat(0),
    segment_storage: Storage align(8) = undefined,
    storage: [2]Storage align(8) = undefined,

    pub fn open(pair: *Pair) !void {
        // Arbitrary bytes, as an allocator may leave them.
        @memset(&pair.segment_storage, 0xaa);
        for (&pair.storage) |*storage| @memset(storage, 0xaa);
        const place = pair.segment();
        try expectStatus(arguments.done, segments.millrace_segment_create(
            place,
            &pair.memory,
            pair.memory.len,
            2,
            &both,
            both.len,
            0,
        ));
        for (0..2) |index| {
            const attached = ports.millrace_port_attach(pair.side(index), place, @intCast(index));
            try expectStatus(arguments.done, attached);
        }
    }

    pub fn leave(pair: *Pair) void {
        for (0..2) |index| _ = ports.millrace_port_leave(pair.side(index));
        const left = segments.millrace_segment_leave(pair.segment());
        std.debug.assert(left == arguments.done);
    }

    pub fn segment(pair: *Pair) *anyopaque {
        return &pair.segment_storage;
    }

    pub fn side(pair: *Pair, index: usize) *anyopaque {
        return &pair.storage[index];
    }
};

pub fn expectStatus(expected: Status, found: Status) !void {
    try testing.expectEqual(expected, found);
}

/// Returns the status of a reason.
pub fn reasonStatus(reason: layout.Reason) Status {
    return -@as(Status, @intCast(@backingInt(reason)));
}

/// Writes a JSON message.
pub fn write(port: *anyopaque, payload: []const u8, tag: u32) Status {
    return ports.millrace_port_write(port, payload.ptr, payload.len, 2, tag, 0);
}

pub fn expectRead(port: *anyopaque, payload: []const u8, tag: u32) !void {
    var storage: [1024]u8 = undefined;
    var message: ports.Message = undefined;
    const status = ports.millrace_port_read(port, &storage, storage.len, 0, &message);
    try expectStatus(1, status);
    try testing.expectEqualStrings(payload, storage[0..message.size]);
    try testing.expectEqual(@as(?*const anyopaque, &storage), message.payload);
    try testing.expectEqual(payload.len, message.total);
    try testing.expectEqual(tag, message.tag);
    try testing.expectEqual(1, message.kind);
    try testing.expectEqual(2, message.codec);
    try testing.expectEqual(3, message.flags);
}

/// Allocates memory that stores its own size, as that of C does.
pub fn allocate(_: ?*anyopaque, memory: ?*anyopaque, size: usize) callconv(.c) ?*anyopaque {
    const head = 16;
    const gpa = testing.allocator;
    if (memory) |address| {
        const bytes: [*]align(head) u8 = @alignCast(@as([*]u8, @ptrCast(address)) - head);
        gpa.free(bytes[0..std.mem.readInt(usize, bytes[0..@sizeOf(usize)], .native)]);
        return null;
    }
    const new = gpa.alignedAlloc(u8, .fromByteUnits(head), head + size) catch return null;
    std.mem.writeInt(usize, new[0..@sizeOf(usize)], new.len, .native);
    return new.ptr + head;
}
