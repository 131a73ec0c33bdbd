//! A file that was found at a path, no matter who put it there: opening it with its header locked,
//! deciding whether it is in use, and mapping it [spec/file.md].
//!
//! Invariant: while its header is locked, the file keeps its name, and no other process gets in.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const segment_zig = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const system = @import("files.zig");
const Error = @import("segment_file.zig").Error;
const assert = std.debug.assert;
const Channel = segment_zig.Channel;
const Deadline = host_file.Deadline;
const EndpointSet = segment_zig.EndpointSet;
const Host = host_file.Host;
const Memory = segment_zig.Memory;
const Place = system.Place;
const Range = system.Range;
const Segment = segment_zig.Segment;
const State = segment_record.State;

const poll_first_ns = 50_000;
const poll_ns = layout.wait_poll_ms * 1_000_000;

/// A process locks this range for a moment while it opens or replaces the file.
const header_range: Range = .{ .offset = 0, .size = layout.segment_header_size };
const records_range: Range = .{ .offset = layout.endpoint_table_offset, .size = 0 };

pub fn recordRange(endpoint_index: u32) Range {
    assert(endpoint_index < layout.endpoint_count_max);
    const size = layout.endpoint_record_size;
    return .{ .offset = layout.endpoint_table_offset + endpoint_index * size, .size = size };
}

pub const Found = struct {
    handle: system.Handle,

    /// Opens the file at the path and locks its header. Returns null if there is no file
    /// [segment.file_open].
    pub fn init(place: Place, deadline: *Deadline) Error!?Found {
        var pause_ns: u64 = poll_first_ns;
        while (true) : (pause_ns = @min(pause_ns * 2, poll_ns)) {
            const handle = place.openTrusted() catch |err| switch (err) {
                error.FileNotFound => return null,
                else => |other| return other,
            };
            errdefer system.close(handle);
            if (try system.lock(handle, header_range)) {
                // Another process may have replaced the file between `open` and the lock.
                const own = try system.statOf(handle);
                const there = place.stat() catch |err| switch (err) {
                    error.FileNotFound => null,
                    else => |other| return other,
                };
                if (there != null and there.?.same(own)) return .{ .handle = handle };
            }
            if (deadline.passed(.native)) return error.Timeout; // [segment.file_wait]
            system.close(handle);
            Host.native.pause(pause_ns);
        }
    }

    /// Closes the file, which gives up all its locks.
    pub fn close(found: Found) void {
        system.close(found.handle);
    }

    pub fn unlockHeader(found: Found) void {
        system.unlock(found.handle, header_range);
    }

    /// Whether some process at the file can still meet another one there, or holds the endpoint
    /// that a creator wants. Any other file is left over [segment.file_left]. A file of which no
    /// process locks a record is left over, whatever it holds; if a record is locked, the file must
    /// be a segment.
    pub fn inUse(found: Found, wanted_index: u32) Error!bool {
        if (!try system.locked(found.handle, records_range)) return false;
        const memory = try found.map();
        defer system.unmap(memory);
        var storage: [layout.channel_count_max]Channel = undefined;
        const segment: Segment = try .attach(memory, &storage, .none);
        const whereabouts = try found.whereaboutsOf(&segment);
        if (whereabouts.here.isSet(wanted_index)) return true;
        var here = whereabouts.here.iterator(.{});
        while (here.next()) |index| {
            const peers = segment.peersOf(@intCast(index));
            const meets = peers.intersectWith(whereabouts.here.unionWith(whereabouts.expected));
            if (peers.count() == 0 or meets.count() > 0) return true;
        }
        return false;
    }

    /// Which endpoints have their owner here, and which still expect one. The owners of all others
    /// are gone.
    const Whereabouts = struct {
        here: EndpointSet,
        expected: EndpointSet,
    };

    fn whereaboutsOf(found: Found, segment: *const Segment) Error!Whereabouts {
        var result: Whereabouts = .{ .here = .empty, .expected = .empty };
        for (0..segment.endpoint_count) |each| {
            const index: u32 = @intCast(each);
            // The lock is looked at before the state. Between the two, no owner can arrive, and an
            // owner that leaves has changed its state before it gives up its lock
            // [segment.file_lock].
            const locked = try system.locked(found.handle, recordRange(index));
            switch (State.load(segment.record(index))) {
                .vacant => if (locked) result.here.set(index) else result.expected.set(index),
                .attached => if (locked) result.here.set(index),
                .closed, .failed, .invalid => {},
            }
        }
        return result;
    }

    /// Refuses a file that was never a segment, because it is not ours to remove
    /// [segment.file_replace].
    pub fn requireRemovable(found: Found) Error!void {
        var magic: [segment_zig.Header.magic_bytes.len]u8 = undefined;
        const size = try system.read(found.handle, &magic);
        if (size == 0) return;
        const is_segment = std.mem.eql(u8, magic[0..size], segment_zig.Header.magic_bytes);
        if (!is_segment) return error.SegmentFile;
    }

    /// Maps the file, whatever it holds and however large it is.
    pub fn map(found: Found) Error!Memory {
        const size = (try system.statOf(found.handle)).size;
        if (size < layout.segment_size_min) return error.SegmentSize;
        const size_mapped: usize = @min(size, layout.segment_size_max);
        try found.reserveStated(size_mapped);
        const memory = try system.map(found.handle, size_mapped);
        errdefer system.unmap(memory);
        // Refuses a file whose size another process has changed meanwhile. After this, no check
        // helps.
        if ((try system.statOf(found.handle)).size != size) return error.SegmentSize;
        return memory;
    }

    /// Reserves the size that the segment states, up to the size of the file, because its creator
    /// may have left holes.
    fn reserveStated(found: Found, size_mapped: usize) Error!void {
        var header: segment_zig.Header = std.mem.zeroes(segment_zig.Header);
        _ = try system.read(found.handle, std.mem.asBytes(&header));
        const is_segment = std.mem.eql(u8, &header.magic, segment_zig.Header.magic_bytes);
        const size_stated = if (is_segment) header.size else 0;
        const size = @min(size_mapped, @max(size_stated, std.heap.page_size_max));
        try system.reserve(found.handle, size);
    }
};
