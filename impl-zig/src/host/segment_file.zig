//! Segments in files, shared between processes [spec/file.md].
//!
//! Invariant: a file that has its name holds a ready segment. Every process that has attached to it
//! holds a lock on its endpoint record, which the kernel releases when the process is gone, however
//! it ended. A file gets its name only by `link`, which never replaces anything. Its name is
//! removed only by a process that holds the lock on its header and has seen that no two endpoints
//! can meet in it.

const std = @import("std");
const builtin = @import("builtin");
const host_file = @import("../wait/mechanism.zig");
const segment_zig = @import("../memory/segment.zig");
const host_process = @import("process.zig");
const segment_record = @import("../wait/state.zig");
const system = @import("files.zig");
const found_zig = @import("segment_file_found.zig");
const assert = std.debug.assert;
const Channel = segment_zig.Channel;
const Deadline = host_file.Deadline;
const Found = found_zig.Found;
const Geometry = segment_zig.Geometry;
const Memory = segment_zig.Memory;
const Place = system.Place;
const Segment = segment_zig.Segment;
const Timeout = host_file.Timeout;
const Unnamed = system.Unnamed;
const recordRange = found_zig.recordRange;

/// Why the caller does not get a segment in a file: the system refuses, or a check fails.
pub const Error = segment_zig.Error || system.Error || error{
    /// There is no file at the path to open.
    SegmentMissing,
    /// Other processes kept the file busy until the deadline.
    Timeout,
};

/// A segment in a file, with one of its endpoints locked for the caller. Threads of one process
/// open the file once each.
///
/// Attach to that endpoint as in other memory: `port.init(&file.segment, file.index, .{})`. From
/// then on, any peer that waits finds a dead process within two slices of 100 ms [wait.liveness],
/// and so does `Endpoint.checkPeers`.
///
/// The file may hold anything. But every process of the same user can write to it, and can also
/// make it shorter. Touching memory beyond the new end terminates the process (SIGBUS), and no
/// check prevents it: only memory of `createSealed` has a size that nobody can change. A process
/// that forks without `exec` shares its locks with the child, and counts as alive until both are
/// gone. The child itself cannot use them: it opens the file anew, for an endpoint of its own.
///
/// It holds a pointer to itself: it must not move until nothing uses it any more.
///
/// Thread safety: belongs to one thread. Threads of peers may do anything with the memory.
pub const SegmentFile = struct {
    segment: Segment,
    /// The endpoint that is locked for the caller.
    index: u32,
    /// Whether the endpoint was taken before the file got its name, and no `Endpoint` uses it yet.
    taken: bool,
    /// The word of the endpoint's state from its taking on; null before.
    attached: ?u32,
    handle: system.Handle,
    memory: Memory,
    /// The process that has opened the file [segment.forked].
    process: u32,

    /// Whether this target supports segments in files: 64-bit Linux. Elsewhere, using `create` or
    /// `open` is a compile error.
    pub const supported = builtin.os.tag == .linux and @bitSizeOf(usize) == 64;

    /// Bytes of storage for a path that `handedPath` returns.
    pub const handed_path_size = system.handed_path_size;

    /// Options of `create` and `open`.
    pub const Options = struct {
        /// How long to wait for other processes that open or replace the same file: 5 s by default.
        timeout: Timeout = .ms(5_000),
    };

    /// Makes a file with a segment at a path, of mode 0600. If a file with the same geometry is
    /// there and in use, opens that one. Replaces an empty file, and a segment in which no two
    /// endpoints can meet any more, even while clients of a server that is gone still have it open.
    /// Refuses a file that never was a segment [segment.file_replace].
    ///
    /// `storage` receives the private copy of the descriptors and must outlive the segment.
    ///
    /// Asserts that readers accept this geometry, that it has the endpoint, and that the storage
    /// suffices for it.
    pub fn create(
        file: *SegmentFile,
        path: [:0]const u8,
        geometry: Geometry,
        endpoint_index: u32,
        storage: []Channel,
        options: Options,
    ) Error!void {
        requireSupport();
        assert(endpoint_index < geometry.endpoint_count);
        assert(storage.len >= geometry.channels.len);
        const size = try segment_zig.sizeOf(geometry);
        const place: Place = try .init(path);
        defer place.deinit();
        const unnamed: Unnamed = try .init(place);
        const in_use = file.offer(unnamed, place, .{
            .geometry = geometry,
            .size = size,
            .endpoint_index = endpoint_index,
            .storage = storage,
        }, options.timeout) catch |err| {
            unnamed.removeSecret(place);
            return err;
        };
        const found = in_use orelse return;
        unnamed.removeSecret(place);
        try file.adopt(found, geometry, endpoint_index, storage);
    }

    /// Makes a segment in memory without a name. Nobody can change its size, and it is gone with
    /// the last process that has it open. Other processes open it by the path that `handedPath`
    /// returns [segment.file_sealed].
    ///
    /// Uses `storage`, and asserts, as `create` does.
    pub fn createSealed(
        file: *SegmentFile,
        geometry: Geometry,
        endpoint_index: u32,
        storage: []Channel,
    ) Error!void {
        requireSupport();
        assert(endpoint_index < geometry.endpoint_count);
        assert(storage.len >= geometry.channels.len);
        const size = try segment_zig.sizeOf(geometry);
        try file.prepare(try system.createSealed(size), .{
            .geometry = geometry,
            .size = size,
            .endpoint_index = endpoint_index,
            .storage = storage,
        });
    }

    /// Whether nobody can make the memory shorter any more. False for a file with a name.
    pub fn isSealed(file: *const SegmentFile) bool {
        return system.isSealed(file.handle);
    }

    /// Returns the path of sealed memory, `/proc/PID/fd/N`, in the caller's storage. Processes of
    /// the same user can `open` it until this file is closed.
    ///
    /// Asserts that the memory is sealed.
    pub fn handedPath(file: *const SegmentFile, path: *[handed_path_size]u8) [:0]const u8 {
        assert(file.isSealed());
        return system.handedPath(file.handle, path);
    }

    /// Opens the segment in the file at a path, and locks a vacant endpoint of it. Does not wait
    /// for the file to appear: if there is none, fails with `error.SegmentMissing` at once
    /// [segment.file_missing].
    ///
    /// A path `/proc/PID/fd/N` names descriptor N of process PID, or of the caller's own process if
    /// PID is `self`. It must lead to sealed memory [segment.file_handed].
    ///
    /// `storage` receives the private copy of the descriptors and must outlive the segment. Storage
    /// for 1,024 always suffices.
    pub fn open(
        file: *SegmentFile,
        path: [:0]const u8,
        endpoint_index: u32,
        storage: []Channel,
        options: Options,
    ) Error!void {
        requireSupport();
        const place = Place.init(path) catch |err| switch (err) {
            error.FileNotFound => return error.SegmentMissing,
            else => |other| return other,
        };
        defer place.deinit();
        var deadline: Deadline = .init(options.timeout);
        const found = try Found.init(place, &deadline) orelse return error.SegmentMissing;
        try file.adopt(found, null, endpoint_index, storage);
    }

    /// Closes the endpoint, if it is still open, and gives up the lock and the mapping. The file
    /// stays: a later `create` at its path replaces it when nobody uses it any more. If there will
    /// be none, remove the file before this call: while an endpoint is locked, the name cannot be
    /// another file's.
    ///
    /// Nothing may use the segment afterwards, not even `Port.close`.
    pub fn close(file: *SegmentFile) void {
        // The lock and the endpoint are the parent's; the mapping and the descriptor are this
        // process's.
        if (file.isForked()) return file.leave();
        const record = file.segment.record(file.index);
        if (file.attached) |attached| {
            if (@atomicLoad(u32, &record.state, .seq_cst) == attached) {
                segment_record.closeOwn(record, attached);
                file.segment.ringAll(file.index, .native);
            }
        }
        // Explicitly, because a child that inherited the file description would keep the lock
        // [segment.file_lock].
        system.unlock(file.handle, .{ .offset = 0, .size = 0 });
        file.leave();
    }

    /// Whether this process was forked from the one that has opened the file [segment.forked].
    pub fn isForked(file: *const SegmentFile) bool {
        return host_process.isOther(file.process);
    }

    /// Whether an attached endpoint has lost its process, because no process locks its record
    /// [segment.file_dead]. False if that cannot be found out.
    pub fn lost(file: *const SegmentFile, endpoint_index: u32) bool {
        // The own lock does not conflict with a query through the same file description.
        if (endpoint_index == file.index) return false;
        const locked = system.locked(file.handle, recordRange(endpoint_index)) catch return false;
        return !locked;
    }

    const Wanted = struct {
        geometry: Geometry,
        size: u32,
        endpoint_index: u32,
        storage: []Channel,
    };

    /// Prepares the file where nobody sees it, and gives it its name. Returns null if it now has
    /// the name; otherwise the file that has the name and is in use, with its header locked.
    fn offer(
        file: *SegmentFile,
        unnamed: Unnamed,
        place: Place,
        wanted: Wanted,
        timeout: Timeout,
    ) Error!?Found {
        {
            errdefer system.close(unnamed.handle);
            try system.reserve(unnamed.handle, wanted.size); // [segment.file_space]
        }
        try file.prepare(unnamed.handle, wanted);
        errdefer file.leave();
        // [segment.file_ready]
        const found = try give(unnamed, place, wanted.endpoint_index, timeout);
        if (found != null) file.leave();
        return found;
    }

    /// Makes the segment in a file that no other process can see, and takes its endpoint. Closes
    /// the file if that fails.
    fn prepare(file: *SegmentFile, handle: system.Handle, wanted: Wanted) Error!void {
        errdefer system.close(handle);
        const memory = try system.map(handle, wanted.size);
        errdefer system.unmap(memory);
        try Segment.format(memory, wanted.geometry);
        try file.init(handle, memory, wanted.endpoint_index, try Segment.attachSame(
            memory,
            wanted.geometry,
            wanted.storage,
            .none,
        ));
        _ = try file.segment.take(wanted.endpoint_index, .native);
        file.taken = true;
    }

    /// Links the file, after removing any file that is left over there [segment.file_replace].
    fn give(
        unnamed: Unnamed,
        place: Place,
        endpoint_index: u32,
        timeout: Timeout,
    ) Error!?Found {
        var deadline: Deadline = .init(timeout);
        var replaced = false;
        while (true) {
            if (try unnamed.link(place)) return null;
            // Other processes were faster, again and again.
            if (replaced and deadline.passed(.native)) return error.Timeout;
            replaced = true;
            const found = try Found.init(place, &deadline) orelse continue;
            errdefer found.close();
            if (try found.inUse(endpoint_index)) return found;
            // [segment.file_left] No other process gets in meanwhile: to open this file, it needs
            // the lock that this one holds.
            try found.requireRemovable();
            try place.remove();
            found.close();
        }
    }

    /// Makes this object that of a file that is in use. Closes the file if that fails.
    fn adopt(
        file: *SegmentFile,
        found: Found,
        geometry: ?Geometry,
        endpoint_index: u32,
        storage: []Channel,
    ) Error!void {
        errdefer found.close();
        const memory = try found.map();
        errdefer system.unmap(memory);
        const segment: Segment = if (geometry) |same|
            try .attachSame(memory, same, storage, .none)
        else
            try .attach(memory, storage, .none);
        try segment.checkVacant(endpoint_index);
        try file.init(found.handle, memory, endpoint_index, segment);
        found.unlockHeader();
    }

    fn init(
        file: *SegmentFile,
        handle: system.Handle,
        memory: Memory,
        endpoint_index: u32,
        segment: Segment,
    ) Error!void {
        // [segment.file_lock]
        if (!try system.lock(handle, recordRange(endpoint_index))) return error.SegmentEndpoint;
        file.* = .{
            .segment = segment,
            .index = endpoint_index,
            .taken = false,
            .attached = null,
            .handle = handle,
            .memory = memory,
            .process = host_process.number(),
        };
        file.segment.file = file;
    }

    fn leave(file: *SegmentFile) void {
        system.unmap(file.memory);
        system.close(file.handle);
        file.* = undefined;
    }
};

fn requireSupport() void {
    if (!SegmentFile.supported) {
        @compileError("Cannot share a segment in a file: the target is not Linux in 64 bits");
    }
}

test {
    if (SegmentFile.supported) {
        _ = @import("../testing/segment_file_test.zig");
        _ = @import("../testing/segment_process_test.zig");
        // Not where an emulator runs the tests: it cannot trace a process.
        if (@import("test_options").emulator == null) {
            _ = @import("../testing/segment_race_test.zig");
            _ = @import("../testing/segment_kill_test.zig");
            // Nor does every emulator know the memory that a child must not inherit.
            _ = @import("../testing/fork_test.zig");
        }
    }
}
