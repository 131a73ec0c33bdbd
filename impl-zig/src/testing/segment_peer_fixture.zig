//! The other process of the tests of segments in files: `segment_peer <role> <path>` opens endpoint
//! 1 of the port at the path and plays its role until the stream ends or the test kills it.

const std = @import("std");
const millrace = @import("../root.zig");

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
