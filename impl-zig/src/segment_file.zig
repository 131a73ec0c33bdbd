//! Segments in files, which processes share [spec/segment.md].
//!
//! Invariant: what has the name holds a ready segment, and whoever attached to it has a lock on its
//! endpoint record, which the kernel takes back when the process is gone, however it went. A file
//! gets its name by `link` alone, which never replaces anything; and it loses its name only to
//! somebody who holds the lock on its header and has seen no other lock.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("layout.zig");
const host_file = @import("host.zig");
const segment_zig = @import("segment.zig");
const segment_record = @import("segment_record.zig");
const system = @import("segment_file_linux.zig");
const assert = std.debug.assert;
const Channel = segment_zig.Channel;
const Deadline = host_file.Deadline;
const Geometry = segment_zig.Geometry;
const Host = host_file.Host;
const Memory = segment_zig.Memory;
const Place = system.Place;
const Range = system.Range;
const Segment = segment_zig.Segment;
const Timeout = host_file.Timeout;
const Unnamed = system.Unnamed;

const poll_first_ns = 50_000;
const poll_ns = layout.wait_poll_ms * 1_000_000;

/// Why there is no segment in a file for the caller: the machine says no, or one of the checks.
pub const Error = segment_zig.Error || system.Error || error{
    /// Others kept the file busy until the deadline.
    Timeout,
};

/// Locked for a moment by whoever opens or replaces the file.
const header_range: Range = .{ .offset = 0, .size = layout.segment_header_size };
const records_range: Range = .{ .offset = layout.endpoint_table_offset, .size = 0 };

/// A segment in a file, with one endpoint of it that is locked for the caller. Threads of one
/// process open the file once each.
///
/// Attach to that endpoint as in other memory: `port.init(&file.segment, file.index, .{})`. From
/// then on a peer whose process dies is found within two slices of 100 ms by whoever waits
/// [wait.liveness], and by `Endpoint.checkPeers`.
///
/// The file may hold anything. But whoever can write to it, which is processes of the same user,
/// can also make it shorter; to touch what is gone is the end of the process (SIGBUS), and no check
/// prevents it. A process that forks without `exec` gives its locks to the child: it counts as
/// alive until both are gone.
///
/// It holds a pointer to itself: it must stay where it was opened, until nothing uses it any more.
///
/// Thread safety: belongs to one thread; peers' threads may do what they want with the memory.
pub const SegmentFile = struct {
    segment: Segment,
    /// The endpoint that is locked for the caller.
    index: u32,
    /// Whether that was taken before the file got its name, and no `Endpoint` has it yet.
    taken: bool,
    /// The word of its state since it was taken; null before.
    attached: ?u32,
    handle: system.Handle,
    memory: Memory,

    /// Whether this target has segments in files: Linux, in 64 bits. To use `create` or `open`
    /// elsewhere is a compile error.
    pub const supported = builtin.os.tag == .linux and @bitSizeOf(usize) == 64;

    /// What may be left to its default.
    pub const Options = struct {
        /// How long to wait for others who are about to open or replace the same file: 5 s.
        timeout: Timeout = .ms(5_000),
    };

    /// Makes a file with a segment at a path, of mode 0600, or opens the one that is there and in
    /// use, where its geometry is the same. A segment that nobody has locked any more is replaced,
    /// and so is an empty file; any other is refused [segment.file_left].
    ///
    /// `storage` receives the private copy of the descriptors and must outlive the segment.
    ///
    /// Asserts that the geometry is one that its readers would accept, that it has the endpoint,
    /// and that the storage suffices for it.
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
        const found = file.offer(unnamed, place, .{
            .geometry = geometry,
            .size = size,
            .endpoint_index = endpoint_index,
            .storage = storage,
            .timeout = options.timeout,
        }) catch |err| {
            unnamed.removeSecret(place);
            return err;
        };
        const handle = found orelse return;
        unnamed.removeSecret(place);
        try file.adopt(handle, geometry, endpoint_index, storage);
    }

    /// Opens the segment in the file at a path, and locks an endpoint of it that is vacant. Does
    /// not wait for the file to appear: that is `error.FileNotFound` at once.
    ///
    /// `storage` receives the private copy of the descriptors and must outlive the segment; 1,024
    /// always suffice.
    pub fn open(
        file: *SegmentFile,
        path: [:0]const u8,
        endpoint_index: u32,
        storage: []Channel,
        options: Options,
    ) Error!void {
        requireSupport();
        const place: Place = try .init(path);
        defer place.deinit();
        var deadline: Deadline = .init(options.timeout);
        const handle = try lockThere(place, &deadline) orelse return error.FileNotFound;
        try file.adopt(handle, null, endpoint_index, storage);
    }

    /// Closes the endpoint, where that has not happened, and gives up the lock and the mapping. The
    /// file stays: whoever creates one at its path replaces it when nobody uses it any more. Where
    /// nobody will, remove it before: while an endpoint is locked, the name is this file's.
    ///
    /// Nothing may use the segment afterwards, `Port.close` included.
    pub fn close(file: *SegmentFile) void {
        const record = file.segment.record(file.index);
        if (file.attached) |attached| {
            if (@atomicLoad(u32, &record.state, .seq_cst) == attached) {
                segment_record.closeOwn(record, attached);
                file.segment.ringAll(file.index, .native);
            }
        }
        // A child that inherited the description would keep the lock [segment.file_lock].
        system.unlock(file.handle, .{ .offset = 0, .size = 0 });
        file.leave();
    }

    /// Whether an endpoint that was attached has lost its process: nobody locks its record
    /// [segment.file_dead]. False where that cannot be found out.
    pub fn lost(file: *const SegmentFile, endpoint_index: u32) bool {
        // The own lock does not conflict with a question from the same description.
        if (endpoint_index == file.index) return false;
        const locked = system.locked(file.handle, recordRange(endpoint_index)) catch return false;
        return !locked;
    }

    const Offer = struct {
        geometry: Geometry,
        size: u32,
        endpoint_index: u32,
        storage: []Channel,
        timeout: Timeout,
    };

    /// Prepares the file where nobody sees it, and gives it its name. Returns null when it has it,
    /// or the file that has the name and is in use, with its header locked.
    fn offer(file: *SegmentFile, unnamed: Unnamed, place: Place, what: Offer) Error!?system.Handle {
        {
            errdefer system.close(unnamed.handle);
            try system.reserve(unnamed.handle, what.size); // [segment.file_space]
            const memory = try system.map(unnamed.handle, what.size);
            errdefer system.unmap(memory);
            try Segment.format(memory, what.geometry);
            try file.init(unnamed.handle, memory, what.endpoint_index, try Segment.attachSame(
                memory,
                what.geometry,
                what.storage,
                .none,
            ));
        }
        errdefer file.leave();
        _ = try file.segment.take(what.endpoint_index, .native);
        file.taken = true;
        // [segment.file_ready]
        const found = try give(unnamed, place, what.timeout);
        if (found != null) file.leave();
        return found;
    }

    /// Links the file, after whatever nobody uses is out of the way.
    fn give(unnamed: Unnamed, place: Place, timeout: Timeout) Error!?system.Handle {
        var deadline: Deadline = .init(timeout);
        var replaced = false;
        while (true) {
            if (try unnamed.link(place)) return null;
            // Others were faster, again and again.
            if (replaced and deadline.passed(.native)) return error.Timeout;
            replaced = true;
            const handle = try lockThere(place, &deadline) orelse continue;
            errdefer system.close(handle);
            if (try system.locked(handle, records_range)) return handle;
            // [segment.file_left] Whoever wants to open this file needs the lock that we hold, and
            // whoever had opened it before would hold another.
            try requireLeft(handle);
            try place.remove();
            system.close(handle);
        }
    }

    /// Makes an open file ours, whose header is locked. Closes it where that fails.
    fn adopt(
        file: *SegmentFile,
        handle: system.Handle,
        geometry: ?Geometry,
        endpoint_index: u32,
        storage: []Channel,
    ) Error!void {
        errdefer system.close(handle);
        const memory = try mapUnknown(handle);
        errdefer system.unmap(memory);
        const segment: Segment = if (geometry) |same|
            try .attachSame(memory, same, storage, .none)
        else
            try .attach(memory, storage, .none);
        try segment.checkVacant(endpoint_index);
        try file.init(handle, memory, endpoint_index, segment);
        system.unlock(handle, header_range);
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

fn recordRange(endpoint_index: u32) Range {
    assert(endpoint_index < layout.endpoint_count_max);
    const size = layout.endpoint_record_size;
    return .{ .offset = layout.endpoint_table_offset + endpoint_index * size, .size = size };
}

/// Opens the file at the path and locks its header, or returns null where nothing is there. While
/// that is locked, the file keeps the name [segment.file_open].
fn lockThere(place: Place, deadline: *Deadline) Error!?system.Handle {
    var pause_ns: u64 = poll_first_ns;
    while (true) : (pause_ns = @min(pause_ns * 2, poll_ns)) {
        const handle = place.openTrusted() catch |err| switch (err) {
            error.FileNotFound => return null,
            else => |other| return other,
        };
        errdefer system.close(handle);
        if (try system.lock(handle, header_range)) {
            // Between our `open` and our lock somebody may have replaced it.
            const own = try system.statOf(handle);
            const there = place.stat() catch |err| switch (err) {
                error.FileNotFound => null,
                else => |other| return other,
            };
            if (there != null and there.?.same(own)) return handle;
        }
        if (deadline.passed(.native)) return error.Timeout;
        system.close(handle);
        Host.native.pause(pause_ns);
    }
}

/// Refuses a file that was never a segment: it is not ours to remove.
fn requireLeft(handle: system.Handle) Error!void {
    var magic: [segment_zig.Header.magic_bytes.len]u8 = undefined;
    const size = try system.read(handle, &magic);
    if (size == 0) return;
    const is_segment = std.mem.eql(u8, magic[0..size], segment_zig.Header.magic_bytes);
    if (!is_segment) return error.SegmentFile;
}

/// Maps a file of any content and size.
fn mapUnknown(handle: system.Handle) Error!Memory {
    const size = (try system.statOf(handle)).size;
    if (size < layout.segment_size_min) return error.SegmentSize;
    const size_mapped: usize = @min(size, layout.segment_size_max);
    try reserveStated(handle, size_mapped);
    const memory = try system.map(handle, size_mapped);
    errdefer system.unmap(memory);
    // Not while somebody is still at it; from here on nothing helps any more.
    if ((try system.statOf(handle)).size != size) return error.SegmentSize;
    return memory;
}

/// Reserves what the segment says that it has, as far as the file has it: another creator may have
/// left holes.
fn reserveStated(handle: system.Handle, size_mapped: usize) Error!void {
    var header: segment_zig.Header = std.mem.zeroes(segment_zig.Header);
    _ = try system.read(handle, std.mem.asBytes(&header));
    const is_segment = std.mem.eql(u8, &header.magic, segment_zig.Header.magic_bytes);
    const size_stated = if (is_segment) header.size else 0;
    try system.reserve(handle, @min(size_mapped, @max(size_stated, std.heap.page_size_max)));
}

test {
    if (SegmentFile.supported) {
        _ = @import("segment_file_test.zig");
        _ = @import("segment_process_test.zig");
        // Not where an emulator runs the tests: nobody traces a process there.
        if (@import("test_options").emulator == null) {
            _ = @import("segment_race_test.zig");
            _ = @import("segment_kill_test.zig");
        }
    }
}
