//! Shared by the tests of segments in files: a directory for each test, and a port in a file.

const std = @import("std");
const millrace = @import("../root.zig");
const testing = std.testing;
const linux = std.os.linux;

/// A directory that nobody else uses. Must not move after it was made.
pub const Directory = struct {
    buffer: [96]u8,
    size: usize,
    names: [96]u8,

    var made: std.atomic.Value(u32) = .init(0);

    pub fn init(directory: *Directory) !void {
        const number = made.fetchAdd(1, .monotonic);
        const text = "/dev/shm/millrace-test-{}-{}";
        const values = .{ linux.getpid(), number };
        const own = try std.mem.printSentinel(&directory.buffer, text, values, 0);
        directory.size = own.len;
        if (linux.errno(linux.mkdir(own, 0o700)) != .SUCCESS) return error.NoDirectory;
    }

    pub fn deinit(directory: *Directory) void {
        const own = directory.buffer[0..directory.size];
        std.Io.Dir.cwd().deleteTree(testing.io, own) catch {};
    }

    /// Returns the path of a name in the directory; valid until the next call.
    pub fn path(directory: *Directory, name: []const u8) [:0]const u8 {
        const own = directory.buffer[0..directory.size];
        const names = &directory.names;
        return std.mem.printSentinel(names, "{s}/{s}", .{ own, name }, 0) catch unreachable;
    }

    /// Counts the names in the directory.
    pub fn count(directory: *Directory) !usize {
        const io = testing.io;
        const text = directory.buffer[0..directory.size];
        var dir = try std.Io.Dir.openDirAbsolute(io, text, .{ .iterate = true });
        defer dir.close(io);
        var iterator = dir.iterate();
        var result: usize = 0;
        while (try iterator.next(io)) |_| result += 1;
        return result;
    }

    /// Writes a file of mode 0600.
    pub fn write(directory: *Directory, name: []const u8, bytes: []const u8) !void {
        const text = directory.path(name);
        const flags: linux.O = .{ .ACCMODE = .RDWR, .CREAT = true, .TRUNC = true, .CLOEXEC = true };
        const opened = linux.open(text, flags, 0o600);
        if (linux.errno(opened) != .SUCCESS) return error.NotWritten;
        const file: linux.fd_t = @intCast(opened);
        defer _ = linux.close(file);
        if (linux.write(file, bytes.ptr, bytes.len) != bytes.len) return error.NotWritten;
    }
};

pub const rings: millrace.Rings = .{
    .capacities = .{ 4096, 1024 },
    .starts = .{ 0xffff_f000, 16 },
};
pub const rings_size = rings.segmentSize() catch unreachable;

/// One end of a port in a file. Must not move after it was made.
pub const End = struct {
    file: millrace.SegmentFile,
    port: millrace.Port,
    storage: [2]millrace.Channel,

    pub fn create(end: *End, path: [:0]const u8, index: u32, timeout: millrace.Timeout) !void {
        const channels = rings.channels();
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        try end.file.create(path, geometry, index, &end.storage, .{ .timeout = timeout });
        errdefer end.file.close();
        try end.port.init(&end.file.segment, index, .{});
    }

    pub fn createSealed(end: *End, index: u32) !void {
        const channels = rings.channels();
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        try end.file.createSealed(geometry, index, &end.storage);
        errdefer end.file.close();
        try end.port.init(&end.file.segment, index, .{});
    }

    pub fn open(end: *End, path: [:0]const u8, index: u32) !void {
        try end.file.open(path, index, &end.storage, .{});
        errdefer end.file.close();
        try end.port.init(&end.file.segment, index, .{});
    }

    pub fn close(end: *End) void {
        end.port.close();
        end.file.close();
    }

    /// Goes as a killed process goes: its lock is released, and its state stays.
    pub fn die(end: *End) void {
        const system = @import("files.zig");
        system.unmap(end.file.memory);
        system.close(end.file.handle);
    }

    pub fn state(end: *End, index: u32) u32 {
        return @atomicLoad(u32, &end.file.segment.record(index).state, .seq_cst);
    }

    pub fn expectMessage(end: *End, payload: []const u8, timeout: millrace.Timeout) !void {
        var storage: [64]u8 = undefined;
        const message = (try end.port.read(&storage, timeout)) orelse return error.NoMessage;
        try testing.expectEqualStrings(payload, message.payload);
    }
};

pub const lost_word = @as(u32, @backingInt(millrace.Reason.peer_lost)) << 8 | 3;

/// Creates an end and closes it at once. Returns the error of the first.
pub fn createError(path: [:0]const u8, index: u32) !void {
    var end: End = undefined;
    try end.create(path, index, .none);
    end.close();
}
