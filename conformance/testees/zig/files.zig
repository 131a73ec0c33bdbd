//! Memory in files: segments by the implementation, mailboxes mapped as they are.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const Allocator = std.mem.Allocator;
const linux = std.os.linux;

/// Whether this target has them.
pub const supported = millrace.SegmentFile.supported;

/// A file that may be open. It must stay where it was opened.
pub const File = union(enum) {
    none,
    segment: if (supported) millrace.SegmentFile else noreturn,
    mapped: if (supported) []align(std.heap.page_size_min) u8 else noreturn,

    /// Makes the segment at the command's path, where a geometry is given, or opens it; and locks
    /// the endpoint. `channels` must outlive it.
    pub fn openSegment(
        file: *File,
        arena: Allocator,
        command: *const protocol.Command,
        geometry: ?millrace.Geometry,
        channels: []millrace.Channel,
    ) !*const millrace.Segment {
        if (!supported) unreachable;
        const path = try arena.dupeSentinel(u8, command.path, 0);
        const endpoint = command.endpoint orelse return error.Refused;
        const options: millrace.SegmentFile.Options =
            if (command.timeout_ms) |ms| .{ .timeout = .ms(ms) } else .{};
        file.* = .{ .segment = undefined };
        errdefer file.* = .none;
        if (geometry) |wanted| {
            if (endpoint >= wanted.endpoint_count) return error.Refused;
            try file.segment.create(path, wanted, endpoint, channels, options);
        } else {
            try file.segment.open(path, endpoint, channels, options);
        }
        return &file.segment.segment;
    }

    /// Maps a file that is there already: a mailbox, or what the kit hands over as memory.
    pub fn map(file: *File, arena: Allocator, path: []const u8) ![]u8 {
        if (!supported) unreachable;
        const name = try arena.dupeSentinel(u8, path, 0);
        const flags: linux.O = .{ .ACCMODE = .RDWR, .CLOEXEC = true };
        const handle = try std.posix.openatZ(linux.AT.FDCWD, name, flags, 0);
        defer _ = linux.close(handle);
        var stat: linux.Statx = undefined;
        if (linux.errno(linux.statx(handle, "", linux.AT.EMPTY_PATH, .{ .SIZE = true }, &stat)) !=
            .SUCCESS) return error.Unexpected;
        const access: linux.PROT = .{ .READ = true, .WRITE = true };
        const mapping: linux.MAP = .{ .TYPE = .SHARED };
        const bytes = try std.posix.mmap(null, stat.size, access, mapping, handle, 0);
        file.* = .{ .mapped = bytes };
        return bytes;
    }

    /// Gives it back; nothing may use the memory any more.
    pub fn close(file: *File) void {
        if (!supported) return;
        switch (file.*) {
            .none => {},
            .segment => |*segment| segment.close(),
            .mapped => |bytes| std.posix.munmap(bytes),
        }
        file.* = .none;
    }
};
