//! The process that is killed at each of its stores. `segment_kill <role> <step> <path>` attaches
//! to endpoint 1 of the port at the path, and plays its role step by step. It stops itself before
//! and after the step with that number, so that its tracer can run it one instruction at a time.

const std = @import("std");
const millrace = @import("../root.zig");
const linux = std.os.linux;

/// What the process does. The last role is a writer with a fault, which its reader must notice.
pub const Role = enum { write, read, write_unfinished };

/// Longer than any wait of the test, so that a process that is left alone ends.
pub const patience: millrace.Timeout = .ms(20_000);

/// Small, so that a message is stored by few instructions, and every second message wraps around;
/// the cursors pass 2^32.
pub const rings: millrace.Rings = .{
    .capacities = .{ 512, 512 },
    .starts = .{ 0xffff_fe00, 0xffff_fe00 },
};

/// The messages of the stream, which repeat. The largest is larger than the ring.
const sizes = [_]u32{ 40, 0, 100, 700, 16, 224, 5, 5, 60 };
pub const size_max = 700;

/// Whether the survivor pauses before it writes or reads this message, so that the other side has
/// to wait.
pub fn pausesBefore(tag: u32) bool {
    return tag % 3 == 2;
}

pub fn sizeOf(tag: u32) u32 {
    return sizes[tag % sizes.len];
}

pub fn fill(payload: []u8, tag: u32) void {
    for (payload, 0..) |*byte, index| byte.* = @truncate(index *% 29 +% tag *% 11 +% 1);
}

pub const message_step_count: u32 = sizes.len;

/// Attach; one message per step; a batch of two, or a lent frame; end; close.
pub fn stepCount(role: Role) u32 {
    return message_step_count + @as(u32, if (role == .read) 3 else 4);
}

/// Returns how many messages of the stream are complete after so many steps.
pub fn messageCount(role: Role, step_count: u32) u32 {
    const extra: u32 = if (role == .read) 1 else 2;
    if (step_count == 0) return 0;
    const batch = message_step_count + 1;
    return if (step_count <= batch) step_count - 1 else message_step_count + extra;
}

/// One end of the port, in a process or thread of its own. Must not move after it was opened.
pub const End = struct {
    file: millrace.SegmentFile,
    port: millrace.Port,
    storage: [2]millrace.Channel,
    payload: [size_max]u8,

    /// Sleeps at once, because a spin executes instructions without end.
    const options: millrace.Port.Options = .{ .endpoint = .{ .spin_us = 0 } };

    pub fn create(end: *End, path: [:0]const u8) !void {
        const channels = rings.channels();
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        try end.file.create(path, geometry, 0, &end.storage, .{});
        errdefer end.file.close();
        try end.port.init(&end.file.segment, 0, options);
    }

    pub fn close(end: *End) void {
        end.port.close();
        end.file.close();
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
        try expectMessage(tag, message.tag, message.payload);
        return true;
    }

    fn step(end: *End, role: Role, number: u32) !void {
        if (number == 0) return end.port.init(&end.file.segment, 1, options);
        const tag = number - 1;
        if (tag < message_step_count) return switch (role) {
            .write => end.writeNext(tag),
            .read => if (!try end.readNext(tag)) error.Ended,
            .write_unfinished => end.writeUnfinished(tag),
        };
        switch (tag - message_step_count) {
            0 => if (role == .read) try end.peekNext(tag) else try end.writeTwo(tag),
            1 => if (role == .read) end.port.close() else try end.port.end(),
            2 => end.port.close(),
            else => unreachable,
        }
    }

    /// Writes two messages that become visible by one store.
    fn writeTwo(end: *End, first_tag: u32) !void {
        for ([_]u32{ first_tag, first_tag + 1 }) |tag| {
            const size = sizeOf(tag);
            fill(try end.port.claim(size, patience), tag);
            end.port.finish(size, .{ .tag = tag });
        }
        end.port.publish();
    }

    fn peekNext(end: *End, tag: u32) !void {
        const lent = (try end.port.peek(patience)) orelse return error.Ended;
        try expectMessage(tag, lent.tag, lent.payload);
        end.port.release();
    }

    /// The fault: the message is visible before it is complete.
    fn writeUnfinished(end: *End, tag: u32) !void {
        const size = @min(sizeOf(tag), 100);
        const payload = try end.port.claim(size, patience);
        end.port.finish(size, .{ .tag = tag });
        end.port.publish();
        fill(payload, tag);
    }
};

fn expectMessage(tag: u32, found_tag: u32, payload: []const u8) !void {
    if (found_tag != tag) return error.TagDiffers;
    var expected: [size_max]u8 = undefined;
    fill(expected[0..sizeOf(tag)], tag);
    if (!std.mem.eql(u8, expected[0..sizeOf(tag)], payload)) return error.PayloadDiffers;
}

// Without the code that prints a trace, which takes most of the compile time.
pub const panic = std.debug.simple_panic;

pub fn main(init: std.process.Init.Minimal) u8 {
    play(init.args) catch |err| {
        const name = @errorName(err);
        _ = linux.write(2, name.ptr, name.len);
        return 1;
    };
    return 0;
}

fn play(given: std.process.Args) !void {
    if (!millrace.SegmentFile.supported) return error.Unsupported;
    var arguments = given.iterate();
    _ = arguments.skip();
    const role = std.meta.stringToEnum(Role, arguments.next().?) orelse return error.NoRole;
    const stopped_step = try std.fmt.parseInt(u32, arguments.next().?, 10);
    const path = arguments.next().?;
    var end: End = undefined;
    try end.file.open(path, 1, &end.storage, .{});
    for (0..stepCount(role)) |number| {
        if (number == stopped_step) stop();
        try end.step(role, @intCast(number));
        if (number == stopped_step) stop();
    }
}

fn stop() void {
    _ = linux.kill(linux.getpid(), .STOP);
}
