//! The bytes of a file as memory that JavaScript can touch for as long as it has the buffer.

const std = @import("std");
const linux = std.os.linux;
const napi = @import("napi.zig");
const assert = std.debug.assert;

/// Held by its handle, by its buffer, and by each sleep on a word of it. All of them let go on the
/// thread of the environment; after the last, nothing is mapped any more.
pub const Mapping = struct {
    address: usize,
    size: usize,
    holds: u32,

    pub const tag: napi.TypeTag = .{
        .lower = 0x6d69_6c6c_7261_6365,
        .upper = 0x6d61_7070_696e_6731,
    };
    pub const Error = error{ Refused, NoExternalBuffers };
    const access: linux.PROT = .{ .READ = true, .WRITE = true };

    /// Maps the first bytes of a file. Returns null with the number of the system's error.
    pub fn create(fd: i32, size: usize, errno: *linux.E) ?*Mapping {
        const mapping = records.create() orelse {
            errno.* = .NOMEM;
            return null;
        };
        const address = linux.mmap(null, size, access, .{ .TYPE = .SHARED }, fd, 0);
        if (linux.errno(address) != .SUCCESS) {
            errno.* = linux.errno(address);
            records.destroy(mapping);
            return null;
        }
        mapping.* = .{ .address = address, .size = size, .holds = 1 };
        return mapping;
    }

    pub fn hold(mapping: *Mapping) void {
        assert(mapping.holds > 0);
        mapping.holds += 1;
    }

    pub fn letGo(mapping: *Mapping) void {
        mapping.holds -= 1;
        if (mapping.holds > 0) return;
        _ = linux.munmap(@ptrFromInt(mapping.address), mapping.size);
        records.destroy(mapping);
    }

    /// Puts private, empty memory into the place of the file. Returns the system's answer. Places
    /// that lie side by side become one mapping of the system, which has 65,530 for a process: so
    /// a program may close files in a loop, although nothing is unmapped until its loop turns.
    pub fn empty(mapping: *Mapping) usize {
        return linux.mmap(@ptrFromInt(mapping.address), mapping.size, access, .{
            .TYPE = .PRIVATE,
            .ANONYMOUS = true,
            .FIXED = true,
            .NORESERVE = true,
        }, -1, 0);
    }

    /// The word at an offset, or null where there is none.
    pub fn word(mapping: *const Mapping, offset: u64) ?*const u32 {
        if (offset % 4 != 0 or offset >= mapping.size or mapping.size - offset < 4) return null;
        return @ptrFromInt(mapping.address + @as(usize, @intCast(offset)));
    }

    /// Makes `{ memory, buffer }` of it, which have it from then on.
    pub fn toObject(mapping: *Mapping, env: napi.Env) Error!napi.Value {
        defer mapping.letGo();
        var object: napi.Value = undefined;
        try require(napi.napi_create_object(env, &object));
        var memory: napi.Value = undefined;
        try require(napi.napi_create_external(env, mapping, finalizeMemory, null, &memory));
        mapping.hold();
        try require(napi.napi_type_tag_object(env, memory, &tag));
        const bytes: *anyopaque = @ptrFromInt(mapping.address);
        var buffer: napi.Value = undefined;
        try require(napi.napi_create_external_arraybuffer(
            env,
            bytes,
            mapping.size,
            finalizeBuffer,
            mapping,
            &buffer,
        ));
        mapping.hold();
        try require(napi.napi_set_named_property(env, object, "memory", memory));
        try require(napi.napi_set_named_property(env, object, "buffer", buffer));
        return object;
    }

    fn require(status: napi.Status) Error!void {
        return switch (status) {
            .ok => {},
            .no_external_buffers_allowed => error.NoExternalBuffers,
            else => error.Refused,
        };
    }

    fn finalizeMemory(_: napi.Env, mapping: ?*anyopaque, _: ?*anyopaque) callconv(.c) void {
        @as(*Mapping, @ptrCast(@alignCast(mapping.?))).letGo();
    }

    /// The first pointer is that of the bytes.
    fn finalizeBuffer(_: napi.Env, _: ?*anyopaque, mapping: ?*anyopaque) callconv(.c) void {
        @as(*Mapping, @ptrCast(@alignCast(mapping.?))).letGo();
    }

    /// The mapping of a handle, or null if the value is none.
    pub fn of(env: napi.Env, value: napi.Value) ?*Mapping {
        // First this, which takes any value: of what is no object there can be no tag.
        var mapping: ?*anyopaque = null;
        if (napi.napi_get_value_external(env, value, &mapping) != .ok) return null;
        var is_ours = false;
        const looked = napi.napi_check_object_type_tag(env, value, &tag, &is_ours);
        if (looked != .ok or !is_ours) return null;
        return @ptrCast(@alignCast(mapping));
    }
};

/// The records of mappings, of all threads. A page for each would be a mapping of the system of
/// its own, between those of the files.
const records = struct {
    const Record = union { mapping: Mapping, next: ?*Record };
    const page_size = std.heap.page_size_min;

    var is_locked: std.atomic.Value(bool) = .init(false);
    var free: ?*Record = null;

    fn create() ?*Mapping {
        lock();
        defer is_locked.store(false, .release);
        if (free == null) {
            const page = std.heap.page_allocator.alloc(Record, page_size / @sizeOf(Record)) catch {
                return null;
            };
            for (page) |*record| {
                record.* = .{ .next = free };
                free = record;
            }
        }
        const record = free.?;
        free = record.next;
        record.* = .{ .mapping = undefined };
        return &record.mapping;
    }

    fn destroy(mapping: *Mapping) void {
        lock();
        defer is_locked.store(false, .release);
        const record: *Record = @fieldParentPtr("mapping", mapping);
        record.* = .{ .next = free };
        free = record;
    }

    /// It is held for a few instructions, and for a system call once in a hundred records.
    fn lock() void {
        while (is_locked.swap(true, .acquire)) std.atomic.spinLoopHint();
    }
};
