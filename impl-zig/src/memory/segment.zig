//! The shared bytes: header, endpoint records and channel descriptors [spec/segment.md].
//!
//! Invariant: a `Segment` exists only after every check of the chapter's table passed. It holds a
//! private copy of all that it will ever need of the geometry [segment.private]. Anybody may have
//! written the memory that it describes, and may change it at any time.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("layout.zig");
const host_file = @import("../wait/mechanism.zig");
const segment_name = @import("../property/name.zig");
const segment_record = @import("../wait/state.zig");
const segment_fanout = @import("fanout.zig");
const SegmentFile = @import("../host/segment_file.zig").SegmentFile;
const assert = std.debug.assert;
const Host = host_file.Host;
const Timeout = host_file.Timeout;
const Deadline = host_file.Deadline;
const Record = segment_record.Record;
const State = segment_record.State;
const changeState = segment_record.changeState;
const ring = segment_record.ring;
const upperBits = segment_record.upperBits;
const wordOf = segment_record.wordOf;

/// Why a segment is refused. `reasonOf` in `root.zig` gives the reason code of each.
pub const Error = error{
    SegmentSize,
    SegmentUnready,
    SegmentMagic,
    SegmentVersion,
    SegmentFeature,
    SegmentTable,
    SegmentChannel,
    SegmentGeometry,
    SegmentEndpoint,
    /// This process was forked from the one that has opened the file: open it anew
    /// [segment.forked].
    PipeForked,
    /// The segment has more channels than the caller gave storage for.
    ChannelStorage,
};

/// Why an endpoint cannot be taken.
pub const TakeError = error{ SegmentEndpoint, PipeForked };

/// Memory that may hold a segment [segment.align].
pub const Memory = []align(layout.segment_align) u8;

pub const Header = extern struct {
    magic: [layout.segment_magic_size]u8,
    ready: u32,
    version_major: u16,
    version_minor: u16,
    size: u32,
    required_features: u32,
    optional_features: u32,
    endpoint_count: u32,
    channel_count: u32,
    reserved: [92]u8,

    pub const magic_bytes = "MILLRACE";
};

/// A channel: what its creator chose, and where its areas lie. Checked, or made by this side.
pub const Channel = extern struct {
    kind: layout.ChannelKind = .ring,
    /// The endpoints at its ends: for a ring, two of the segment. For another kind, they may be
    /// `layout.endpoint_none` or any number, which then names no endpoint [segment.unknown_kind].
    writer: u32,
    reader: u32,
    /// Set by `place`; what a caller passes is ignored.
    control_offset: u32 = 0,
    control_size: u32 = layout.ring_control_size,
    /// Set by `place`; what a caller passes is ignored.
    data_offset: u32 = 0,
    /// Bytes of the byte area; for a ring, its capacity.
    data_size: u32,
    label: u32 = 0,
    /// The position at which both cursors of a ring start.
    start: u32 = 0,

    fn sameGeometry(a: Channel, b: Channel) bool {
        return a.kind == b.kind and a.writer == b.writer and a.reader == b.reader and
            a.control_size == b.control_size and a.data_size == b.data_size and
            a.label == b.label and a.start == b.start;
    }
};

comptime {
    assert(@sizeOf(Header) == layout.segment_header_size);
    assert(@offsetOf(Header, "ready") == layout.segment_ready_offset);
    assert(@offsetOf(Header, "version_major") == layout.segment_version_major_offset);
    assert(@offsetOf(Header, "version_minor") == layout.segment_version_minor_offset);
    assert(@offsetOf(Header, "size") == layout.segment_size_offset);
    assert(@offsetOf(Header, "required_features") == layout.segment_required_features_offset);
    assert(@offsetOf(Header, "optional_features") == layout.segment_optional_features_offset);
    assert(@offsetOf(Header, "endpoint_count") == layout.segment_endpoint_count_offset);
    assert(@offsetOf(Header, "channel_count") == layout.segment_channel_count_offset);
    assert(@sizeOf(Channel) <= layout.channel_descriptor_size);
    assert(@offsetOf(Channel, "kind") == layout.channel_kind_offset);
    assert(@offsetOf(Channel, "writer") == layout.channel_writer_offset);
    assert(@offsetOf(Channel, "reader") == layout.channel_reader_offset);
    assert(@offsetOf(Channel, "control_offset") == layout.channel_control_offset_offset);
    assert(@offsetOf(Channel, "control_size") == layout.channel_control_size_offset);
    assert(@offsetOf(Channel, "data_offset") == layout.channel_data_offset_offset);
    assert(@offsetOf(Channel, "data_size") == layout.channel_data_size_offset);
    assert(@offsetOf(Channel, "label") == layout.channel_label_offset);
    assert(@offsetOf(Channel, "start") == layout.channel_start_offset);
}

/// The geometry that a creator chooses.
pub const Geometry = struct {
    endpoint_count: u32,
    channels: []const Channel,
    /// The names of the properties that have one [property.name].
    names: []const Name = &.{},

    /// The name of a property.
    pub const Name = segment_name.Name;
};

/// One owner of an endpoint, for a supervisor to watch. The endpoint may have other owners before
/// and after it [segment.state_owner]. `Segment.ownerOf` returns it.
pub const Owner = struct {
    index: u32,
    generation: u24,
};

/// A set of endpoints, by index.
pub const EndpointSet = std.bit_set.Static(layout.endpoint_count_max);

/// Returns how many bytes a segment of this geometry needs [segment.place].
///
/// Asserts that readers accept this geometry.
pub fn sizeOf(geometry: Geometry) error{SegmentSize}!u32 {
    var placer: Placer = .init(geometry);
    for (geometry.channels) |channel| _ = placer.next(channel);
    return placer.size();
}

/// The shared bytes, checked: how many endpoints they have, and which channels. Small, and may be
/// copied. An endpoint that has attached through it does not need it any more.
///
/// Thread safety: immutable; any number of threads may attach through one `Segment`.
pub const Segment = struct {
    base: [*]align(layout.segment_align) u8,
    size: u32,
    endpoint_count: u32,
    /// The private copy of all descriptors, in the caller's storage.
    channels: []const Channel,
    /// The file that the memory is mapped from, if the endpoints belong to processes.
    file: ?*SegmentFile = null,

    /// Formats memory, whatever it holds. The caller must be its only owner: nobody else has seen
    /// it yet.
    ///
    /// Asserts that readers accept this geometry. Refuses memory that is too small before it
    /// touches it [segment.claim_checked].
    pub fn format(memory: Memory, geometry: Geometry) error{SegmentSize}!void {
        const size = try sizeOf(geometry);
        if (size > memory.len) return error.SegmentSize;
        const header: *Header = @ptrCast(memory.ptr);
        @atomicStore(u32, &header.ready, layout.segment_ready_formatting, .seq_cst);
        write(memory, geometry, size);
    }

    /// Formats blank memory, or attaches to it if another side has formatted it with this geometry.
    ///
    /// `storage` receives the private copy of the descriptors and must outlive the segment. While
    /// another side is formatting, waits until the timeout. Asserts and refuses the same as
    /// `format`, and as early.
    pub fn create(
        memory: Memory,
        geometry: Geometry,
        storage: []Channel,
        timeout: Timeout,
    ) Error!Segment {
        assert(storage.len >= geometry.channels.len);
        const size = try sizeOf(geometry);
        if (size > memory.len) return error.SegmentSize;
        const header: *Header = @ptrCast(memory.ptr);
        // [segment.claim] If two sides come at once, one formats and the other attaches.
        const blank = layout.segment_ready_blank;
        const formatting = layout.segment_ready_formatting;
        const found = @cmpxchgStrong(u32, &header.ready, blank, formatting, .seq_cst, .seq_cst);
        if (found == null) write(memory, geometry, size);
        return attachSame(memory, geometry, storage, timeout);
    }

    /// Does what `attach` does, and refuses a segment whose geometry is not this one.
    pub fn attachSame(
        memory: Memory,
        geometry: Geometry,
        storage: []Channel,
        timeout: Timeout,
    ) Error!Segment {
        const segment = attach(memory, storage, timeout) catch |err| switch (err) {
            error.ChannelStorage => return refuseLarger(memory, timeout),
            else => |other| return other,
        };
        // [segment.same_geometry]
        if (segment.endpoint_count != geometry.endpoint_count) return error.SegmentGeometry;
        if (segment.channels.len != geometry.channels.len) return error.SegmentGeometry;
        for (segment.channels, geometry.channels) |theirs, ours| {
            if (!theirs.sameGeometry(ours)) return error.SegmentGeometry;
        }
        for (segment.channels, 0..) |channel, index| {
            if (channel.kind != .property) continue;
            const control = memory[channel.control_offset..][0..channel.control_size];
            const ours = segment_name.of(geometry.names, index);
            if (!segment_name.is(control, ours)) return error.SegmentGeometry;
        }
        return segment;
    }

    /// Returns why a creator cannot have a segment with more channels than it has storage for: the
    /// first check that fails, or, if all pass, that the geometry is not its own.
    noinline fn refuseLarger(memory: Memory, timeout: Timeout) Error {
        var storage: [layout.channel_count_max]Channel = undefined;
        _ = attach(memory, &storage, timeout) catch |err| return err;
        return error.SegmentGeometry;
    }

    /// Waits until the segment is ready, makes all checks of segment.md in their order
    /// [segment.check], and copies the geometry.
    ///
    /// `storage` receives the private copy of the descriptors and must outlive the segment. Storage
    /// for 1,024 always suffices.
    pub fn attach(memory: Memory, storage: []Channel, timeout: Timeout) Error!Segment {
        var segment: Segment = undefined;
        try segment.load(memory, storage, timeout);
        return segment;
    }

    /// `attach` into a place of the caller. An error alone is a number; an error or a segment would
    /// cost a copy at each of the fifteen places that refuse a segment (0.6 KB of `millrace.wasm`).
    fn load(segment: *Segment, memory: Memory, storage: []Channel, timeout: Timeout) Error!void {
        if (memory.len < layout.segment_size_min) return error.SegmentSize;
        const header: *Header = @ptrCast(memory.ptr);
        try awaitReady(&header.ready, timeout);
        // Volatile, so that each field is loaded once, whatever a hostile peer does to the bytes.
        const loaded: *const volatile Header = header;
        const magic: *align(8) const volatile u64 = @ptrCast(@alignCast(&loaded.magic));
        if (magic.* != comptime std.mem.readInt(u64, Header.magic_bytes, .little)) {
            return error.SegmentMagic;
        }
        if (loaded.version_major != layout.version_major) return error.SegmentVersion;
        if (loaded.required_features != 0) return error.SegmentFeature;
        const size = loaded.size;
        if (size % layout.segment_align != 0) return error.SegmentSize;
        if (size > memory.len) return error.SegmentSize;

        const endpoint_count = loaded.endpoint_count;
        const channel_count = loaded.channel_count;
        if (endpoint_count < 1) return error.SegmentTable;
        if (endpoint_count > layout.endpoint_count_max) return error.SegmentTable;
        if (channel_count > layout.channel_count_max) return error.SegmentTable;
        const tables_end = tablesEnd(endpoint_count, channel_count);
        if (tables_end > size) return error.SegmentTable;

        if (channel_count > storage.len) return error.ChannelStorage;
        const channels = storage[0..channel_count];
        for (channels, 0..) |*channel, index| {
            const offset = descriptorOffset(endpoint_count, @intCast(index));
            const source: *const volatile Channel = @ptrCast(@alignCast(memory.ptr + offset));
            channel.* = source.*;
        }
        try checkChannels(channels, endpoint_count, tables_end, size);
        segment.* = .{
            .base = memory.ptr,
            .size = size,
            .endpoint_count = endpoint_count,
            .channels = channels,
        };
    }

    /// Asserts that the endpoint exists.
    pub fn record(segment: *const Segment, index: u32) *Record {
        assert(index < segment.endpoint_count);
        const offset = layout.endpoint_table_offset + index * layout.endpoint_record_size;
        return @ptrCast(@alignCast(segment.base + offset));
    }

    /// Returns the endpoints at the other ends of all channels of endpoint `index`, whatever the
    /// kind of the channel [segment.peers].
    pub fn peersOf(segment: *const Segment, index: u32) EndpointSet {
        assert(index < segment.endpoint_count);
        var peers: EndpointSet = .empty;
        for (segment.channels) |channel| {
            const other = if (channel.writer == index)
                channel.reader
            else if (channel.reader == index)
                channel.writer
            else
                continue;
            if (other < segment.endpoint_count and other != index) peers.set(other);
        }
        segment_fanout.addPeers(segment.channels, segment.endpoint_count, index, &peers);
        return peers;
    }

    /// Returns how many rings lead between endpoints `own` and `index`, or null if any other
    /// channel names `index`.
    pub fn ringCount(segment: *const Segment, own: u32, index: u32) ?u32 {
        var count: u32 = 0;
        for (segment.channels) |channel| {
            if (segment_fanout.reads(channel, segment.endpoint_count, index)) return null;
            if (channel.writer != index and channel.reader != index) continue;
            if (channel.kind != .ring) return null;
            if (channel.writer != own and channel.reader != own) return null;
            count += 1;
        }
        return count;
    }

    /// Returns the owner that a supervisor is to watch: the one that the endpoint has now, or, if
    /// it is vacant, the next one. Call it before that owner's thread starts, or while the owner is
    /// known to live: after its death, the endpoint may belong to the next owner already.
    ///
    /// Asserts that the endpoint exists. Thread-safe.
    pub fn ownerOf(segment: *const Segment, index: u32) Owner {
        const generation = @atomicLoad(u32, &segment.record(index).generation, .seq_cst);
        return .{ .index = index, .generation = @truncate(generation) };
    }

    /// Marks an endpoint failed on behalf of a supervisor that knows that its owner's thread is
    /// gone, and rings the endpoint and its peers [pipe.supervisor]. A final state does not change
    /// [segment.state_change], nor does the state of another owner [segment.state_owner].
    ///
    /// Thread-safe.
    pub fn fail(segment: *const Segment, owner: Owner, why: layout.Reason, host: *const Host) void {
        changeState(segment.record(owner.index), .{ .failed = why }, owner.generation);
        segment.ringAll(owner.index, host);
    }

    /// Closes an attached endpoint on its owner's behalf: the owner's calls end with
    /// `error.PipeClosed`. Any other state does not change, nor does that of another owner
    /// [segment.state_owner].
    ///
    /// Thread-safe.
    pub fn closeFor(segment: *const Segment, owner: Owner, host: *const Host) void {
        changeState(segment.record(owner.index), .closed, owner.generation);
        segment.ringAll(owner.index, host);
    }

    /// Refuses an endpoint that does not exist or is not vacant, and so cannot be taken.
    pub fn checkVacant(segment: *const Segment, index: u32) TakeError!void {
        if (index >= segment.endpoint_count) return error.SegmentEndpoint;
        if (segment.inFile()) |file| {
            // The lock on the endpoint belongs to the parent process [segment.forked].
            if (file.isForked()) return error.PipeForked;
            if (index != file.index) return error.SegmentEndpoint; // [segment.file_lock]
            if (file.taken) return;
        }
        if (State.load(segment.record(index)) != .vacant) return error.SegmentEndpoint;
    }

    /// Takes a vacant endpoint [segment.attach]. In a file, only the endpoint that is locked for
    /// the caller can be taken; the creator of the file has taken it already. Returns the word of
    /// its state from then on [segment.own_state].
    pub fn take(
        segment: *const Segment,
        index: u32,
        host: *const Host,
    ) TakeError!u32 {
        try segment.checkVacant(index);
        const own = segment.record(index);
        const file = segment.inFile();
        if (file == null or !file.?.taken) {
            const attached = try segment.takeLoaded(
                index,
                @atomicLoad(u32, &own.state, .seq_cst),
                host,
            );
            if (file) |of| of.attached = attached;
            return attached;
        }
        file.?.taken = false;
        @atomicStore(u32, &own.wakes, host.wakes, .seq_cst);
        segment.ringAll(index, host);
        return file.?.attached.?;
    }

    /// Takes an endpoint whose state word was loaded before; public so that tests can act between
    /// the two. If somebody else has taken the endpoint, its words stay untouched.
    pub fn takeLoaded(
        segment: *const Segment,
        index: u32,
        loaded: u32,
        host: *const Host,
    ) error{SegmentEndpoint}!u32 {
        if (State.of(loaded) != .vacant) return error.SegmentEndpoint;
        const own = segment.record(index);
        // [segment.again] The upper bits of the word stay.
        const attached = wordOf(layout.endpoint_state_attached, upperBits(loaded));
        const found = @cmpxchgStrong(u32, &own.state, loaded, attached, .seq_cst, .seq_cst);
        if (found == null) {
            // [wait.wakes] Before this store, the peers poll; the ring below makes them look again.
            @atomicStore(u32, &own.wakes, host.wakes, .seq_cst);
            @atomicStore(u32, &own.features, 0, .seq_cst); // [segment.features]
            @atomicStore(u32, &own.agent, agentId(), .seq_cst); // [segment.agent]
        }
        // Also if another side was faster: it may have died before its own ring.
        segment.ringAll(index, host);
        return if (found == null) attached else error.SegmentEndpoint;
    }

    fn inFile(segment: *const Segment) ?*SegmentFile {
        return if (SegmentFile.supported) segment.file else null;
    }

    /// [segment.state_ring] Rings also the endpoint's own bell: its owner may sleep while another
    /// thread closes it. The bit names the endpoint whose state changed, whoever rings [wait.rung].
    pub fn ringAll(segment: *const Segment, index: u32, host: *const Host) void {
        ring(segment.record(index), index, host);
        const peers = segment.peersOf(index);
        var iterator = peers.iterator(.{});
        while (iterator.next()) |peer| ring(segment.record(@intCast(peer)), index, host);
    }
};

/// Returns the number of this thread: informative, to find the owner of an endpoint that hangs.
fn agentId() u32 {
    if (builtin.os.tag != .linux) return 0;
    return @bitCast(std.os.linux.gettid());
}

fn awaitReady(ready: *u32, timeout: Timeout) Error!void {
    const host: *const Host = .native;
    var deadline: Deadline = .init(timeout);
    while (true) {
        const value = @atomicLoad(u32, ready, .seq_cst);
        switch (value) {
            layout.segment_ready_ready => return,
            layout.segment_ready_blank, layout.segment_ready_formatting => {},
            else => return error.SegmentMagic,
        }
        const left_ns = deadline.left(host);
        if (left_ns == 0) return error.SegmentUnready;
        // The side that formats may ring by a mechanism other than ours, so this sleep is also a
        // poll.
        _ = host.sleep(ready, value, @min(left_ns, layout.wait_poll_ms * 1_000_000));
    }
}

fn checkChannels(
    channels: []const Channel,
    endpoint_count: u32,
    tables_end: u32,
    size: u32,
) error{SegmentChannel}!void {
    for (channels) |channel| {
        for (areasOf(channel)) |area| {
            if (area.offset % layout.segment_align != 0) return error.SegmentChannel;
            if (area.offset < tables_end) return error.SegmentChannel;
            if (area.end() > size) return error.SegmentChannel;
        }
        // Any other kind is unknown, and may have any ends [segment.unknown_kind].
        if (channel.kind == .ring) {
            if (channel.writer >= endpoint_count) return error.SegmentChannel;
            if (channel.reader >= endpoint_count) return error.SegmentChannel;
            if (channel.writer == channel.reader) return error.SegmentChannel;
            if (channel.control_size < layout.ring_control_size) return error.SegmentChannel;
            if (!capacityValid(channel.data_size)) return error.SegmentChannel;
            if (channel.start % layout.frame_align != 0) return error.SegmentChannel;
        }
    }
    for (channels, 0..) |channel, index| {
        const areas = areasOf(channel);
        if (areas[0].overlaps(areas[1])) return error.SegmentChannel;
        for (channels[index + 1 ..]) |other| {
            for (areas) |a| {
                for (areasOf(other)) |b| if (a.overlaps(b)) return error.SegmentChannel;
            }
        }
    }
}

const Area = struct {
    offset: u32,
    size: u32,

    /// 64 bits wide, so that the sum of two words that the peer wrote cannot overflow it.
    fn end(area: Area) u64 {
        return @as(u64, area.offset) + area.size;
    }

    fn overlaps(a: Area, b: Area) bool {
        if (a.size == 0 or b.size == 0) return false;
        return a.offset < b.end() and b.offset < a.end();
    }
};

fn areasOf(channel: Channel) [2]Area {
    return .{
        .{ .offset = channel.control_offset, .size = channel.control_size },
        .{ .offset = channel.data_offset, .size = channel.data_size },
    };
}

/// [ring.capacity]
pub fn capacityValid(capacity: u32) bool {
    return capacity >= layout.ring_capacity_min and capacity <= layout.ring_capacity_max and
        std.math.isPowerOfTwo(capacity);
}

/// Asserts that a caller may give a ring this capacity, and says what is wrong with it.
pub fn assertCapacity(capacity: u32) void {
    if (std.debug.runtime_safety and !capacityValid(capacity)) std.debug.panic(
        "The capacity of a ring must be a power of two from 256 to 2^30 bytes, but it is {}",
        .{capacity},
    );
    assert(capacityValid(capacity));
}

fn descriptorOffset(endpoint_count: u32, index: u32) u32 {
    return layout.endpoint_table_offset + endpoint_count * layout.endpoint_record_size +
        index * layout.channel_descriptor_size;
}

fn tablesEnd(endpoint_count: u32, channel_count: u32) u32 {
    return descriptorOffset(endpoint_count, channel_count);
}

/// `place` of segment.md, one channel at a time. 64 bits wide, so that only `size` can fail.
const Placer = struct {
    offset: u64,

    fn init(geometry: Geometry) Placer {
        const channel_count: u32 = @intCast(geometry.channels.len);
        assert(geometry.endpoint_count >= 1);
        assert(geometry.endpoint_count <= layout.endpoint_count_max);
        assert(channel_count <= layout.channel_count_max);
        for (geometry.channels) |channel| {
            if (channel.kind != .ring) continue;
            assert(channel.writer < geometry.endpoint_count);
            assert(channel.reader < geometry.endpoint_count);
            assert(channel.writer != channel.reader);
            assertCapacity(channel.data_size);
            assert(channel.control_size == layout.ring_control_size);
            assert(channel.start % layout.frame_align == 0);
        }
        return .{ .offset = tablesEnd(geometry.endpoint_count, channel_count) };
    }

    fn next(placer: *Placer, channel: Channel) Channel {
        const control_offset = std.mem.alignForward(u64, placer.offset, layout.segment_align);
        const control_end = control_offset + channel.control_size;
        const data_offset = std.mem.alignForward(u64, control_end, layout.segment_align);
        placer.offset = data_offset + channel.data_size;
        var placed = channel;
        // Cut off only if `size` refuses the whole geometry.
        placed.control_offset = @truncate(control_offset);
        placed.data_offset = @truncate(data_offset);
        return placed;
    }

    fn size(placer: Placer) error{SegmentSize}!u32 {
        const total = std.mem.alignForward(u64, placer.offset, layout.segment_align);
        if (total > layout.segment_size_max) return error.SegmentSize; // [segment.size_limit]
        return @intCast(total);
    }
};

/// Writes everything but `ready` [segment.write], and then `ready` [segment.publish]. Byte areas
/// and the gaps between areas stay as they are.
///
/// The caller has claimed the formatting. But a peer can write any value to `ready` meanwhile, so
/// nothing here depends on that word. Public so that tests can act between claim and write.
pub fn write(memory: Memory, geometry: Geometry, size: u32) void {
    const header: *Header = @ptrCast(memory.ptr);
    assert(size <= memory.len);
    const channel_count: u32 = @intCast(geometry.channels.len);
    const tables_end = tablesEnd(geometry.endpoint_count, channel_count);
    header.magic = Header.magic_bytes.*;
    // Up to the first area, with the gap before it, so that equal geometries give equal bytes.
    const areas_begin = @min(size, std.mem.alignForward(u32, tables_end, layout.segment_align));
    @memset(memory[layout.segment_version_major_offset..areas_begin], 0);
    header.version_major = layout.version_major;
    header.version_minor = layout.version_minor;
    header.size = size;
    header.endpoint_count = geometry.endpoint_count;
    header.channel_count = channel_count;
    var placer: Placer = .init(geometry);
    for (geometry.channels, 0..) |channel, index| {
        const placed = placer.next(channel);
        const offset = descriptorOffset(geometry.endpoint_count, @intCast(index));
        const target: *Channel = @ptrCast(@alignCast(memory.ptr + offset));
        target.* = placed;
        const control = memory[placed.control_offset..][0..placed.control_size];
        @memset(control, 0);
        if (placed.kind == .ring) { // [ring.start]
            segment_fanout.setWord(control, layout.ring_tail_offset, channel.start);
            segment_fanout.setWord(control, layout.ring_head_offset, channel.start);
        } else if (placed.kind == .property) {
            segment_name.write(control, segment_name.of(geometry.names, index));
        } else {
            segment_fanout.begin(channel, geometry.endpoint_count, control);
        }
    }
    @atomicStore(u32, &header.ready, layout.segment_ready_ready, .seq_cst);
    Host.native.notify(&header.ready);
}

test {
    _ = @import("fanout.zig");
    _ = @import("../testing/segment_peers_test.zig");
    _ = @import("../wait/state.zig");
    _ = @import("../host/segment_file.zig");
}

// Tests.
//
// Segments: the bytes of the chapter's examples, and every row of its table of checks.

const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;

fn poke(memory: []u8, offset: usize, comptime T: type, value: T) void {
    std.mem.writeInt(T, memory[offset..][0..@sizeOf(T)], value, .little);
}

const descriptor = 384;

fn formatted(memory: *align(128) [2048]u8) !void {
    const channels = fixture.pipeGeometry(256, 0);
    try Segment.format(memory, .{ .endpoint_count = 2, .channels = &channels });
}

test "a formatted pipe has the bytes of the example" {
    var memory: [1280]u8 align(128) = @splat(0xff);
    const channels = fixture.pipeGeometry(256, 0);
    try Segment.format(&memory, .{ .endpoint_count = 2, .channels = &channels });
    var expected: [1024]u8 = @splat(0);
    expected[0..8].* = "MILLRACE".*;
    poke(&expected, 8, u32, 2);
    poke(&expected, 12, u16, 1);
    poke(&expected, 16, u32, 1280);
    poke(&expected, 28, u32, 2);
    poke(&expected, 32, u32, 1);
    for ([_]u32{ 1, 0, 1, 512, 512, 1024, 256, 7 }, 0..) |value, index| {
        poke(&expected, 0x180 + 4 * index, u32, value);
    }
    try testing.expectEqualSlices(u8, &expected, memory[0..1024]);
    // [segment.write] The byte area stays as it was.
    for (memory[1024..]) |byte| try testing.expectEqual(0xff, byte);

    var storage: [1]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    _ = try millrace.Endpoint.attach(&segment, 0, .{ .host = &fixture.clockwork });
    try testing.expectEqual(1, std.mem.readInt(u32, memory[0x80..0x84], .little));
    try testing.expectEqual(1, std.mem.readInt(u32, memory[0x84..0x88], .little));
    try testing.expectEqual(2, std.mem.readInt(u32, memory[0x88..0x8c], .little));
    try testing.expectEqual(1, std.mem.readInt(u32, memory[0x100..0x104], .little));
}

test "a peer that overwrites \"ready\" while a segment is written does no harm" {
    var memory: [1280]u8 align(128) = @splat(0);
    const channels = fixture.pipeGeometry(256, 0);
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    // As if another thread had stored it after the claim.
    poke(&memory, layout.segment_ready_offset, u32, 77);
    write(&memory, geometry, memory.len);
    var storage: [1]Channel = undefined;
    _ = try Segment.attach(&memory, &storage, .none);
}

test "a port stands where the example says" {
    var memory: [4096]u8 align(128) = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 256, 1024 } };
    try testing.expectEqual(2816, try rings.segmentSize());
    try millrace.Port.format(&memory, rings);
    var storage: [2]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    try testing.expectEqual(2816, segment.size);
    try testing.expectEqual(512, segment.channels[0].control_offset);
    try testing.expectEqual(1024, segment.channels[0].data_offset);
    try testing.expectEqual(1280, segment.channels[1].control_offset);
    try testing.expectEqual(1792, segment.channels[1].data_offset);
    try testing.expectEqual(1, segment.channels[1].writer);
}

fn expectRefused(expected: anyerror, memory: millrace.Memory) !void {
    var storage: [layout.channel_count_max]Channel = undefined;
    try testing.expectError(expected, Segment.attach(memory, &storage, .none));
}

test "every check of the table refuses, with its code, what its neighbour accepts" {
    const Row = struct { offset: usize, value: u32, expected: ?anyerror };
    const d = descriptor;
    const rows = [_]Row{
        .{ .offset = 8, .value = 3, .expected = error.SegmentMagic },
        .{ .offset = 8, .value = 0, .expected = error.SegmentUnready },
        .{ .offset = 8, .value = 1, .expected = error.SegmentUnready },
        .{ .offset = 8, .value = 2, .expected = null },
        .{ .offset = 0, .value = 0x4c4c_4943, .expected = error.SegmentMagic },
        .{ .offset = 4, .value = 0x4543_4152, .expected = null },
        .{ .offset = 4, .value = 0x4543_4153, .expected = error.SegmentMagic },
        .{ .offset = 12, .value = 0x0000_0002, .expected = error.SegmentVersion },
        .{ .offset = 12, .value = 0x0000_0000, .expected = error.SegmentVersion },
        .{ .offset = 12, .value = 0xffff_0001, .expected = null },
        .{ .offset = 20, .value = 1, .expected = error.SegmentFeature },
        .{ .offset = 20, .value = 0x8000_0000, .expected = error.SegmentFeature },
        .{ .offset = 24, .value = 0xffff_ffff, .expected = null },
        .{ .offset = 16, .value = 1281, .expected = error.SegmentSize },
        .{ .offset = 16, .value = 1408, .expected = null },
        .{ .offset = 16, .value = 2048, .expected = null },
        .{ .offset = 16, .value = 2176, .expected = error.SegmentSize },
        .{ .offset = 16, .value = 0xffff_ff80, .expected = error.SegmentSize },
        .{ .offset = 16, .value = 384, .expected = error.SegmentTable },
        .{ .offset = 16, .value = 512, .expected = error.SegmentChannel },
        .{ .offset = 16, .value = 0, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 0, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 257, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 256, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 0xffff_ffff, .expected = error.SegmentTable },
        .{ .offset = 32, .value = 1025, .expected = error.SegmentTable },
        .{ .offset = 32, .value = 0xffff_ffff, .expected = error.SegmentTable },
        .{ .offset = 32, .value = 0, .expected = null },
        .{ .offset = 36, .value = 0xffff_ffff, .expected = null }, // reserved
        .{ .offset = d + 4, .value = 2, .expected = error.SegmentChannel }, // writer
        .{ .offset = d + 4, .value = 1, .expected = error.SegmentChannel },
        .{ .offset = d + 8, .value = 2, .expected = error.SegmentChannel }, // reader
        .{ .offset = d + 8, .value = 0, .expected = error.SegmentChannel },
        .{ .offset = d + 12, .value = 513, .expected = error.SegmentChannel }, // control_offset
        .{ .offset = d + 12, .value = 384, .expected = error.SegmentChannel },
        .{ .offset = d + 12, .value = 640, .expected = error.SegmentChannel },
        .{ .offset = d + 12, .value = 0xffff_ff80, .expected = error.SegmentChannel },
        .{ .offset = d + 16, .value = 511, .expected = error.SegmentChannel }, // control_size
        .{ .offset = d + 16, .value = 513, .expected = error.SegmentChannel },
        .{ .offset = d + 16, .value = 0xffff_ffff, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 1025, .expected = error.SegmentChannel }, // data_offset
        .{ .offset = d + 20, .value = 1152, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 512, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 384, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 0x8000_0000, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 128, .expected = error.SegmentChannel }, // data_size
        .{ .offset = d + 24, .value = 255, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 0, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 512, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 0x8000_0000, .expected = error.SegmentChannel },
        .{ .offset = d + 28, .value = 0xffff_ffff, .expected = null }, // label
        .{ .offset = d + 32, .value = 8, .expected = error.SegmentChannel }, // start
        .{ .offset = d + 32, .value = 0xffff_fff0, .expected = null },
        .{ .offset = d + 36, .value = 0xffff_ffff, .expected = null }, // reserved
        .{ .offset = d, .value = 0, .expected = null }, // kind: unknown, and left alone
        .{ .offset = d, .value = 0x1234, .expected = null },
    };
    for (rows) |row| {
        var memory: [2048]u8 align(128) = undefined;
        try formatted(&memory);
        poke(&memory, row.offset, u32, row.value);
        errdefer std.debug.print("row: {}\n", .{row});
        if (row.expected) |expected| {
            try expectRefused(expected, &memory);
        } else {
            var storage: [1]Channel = undefined;
            _ = try Segment.attach(&memory, &storage, .none);
        }
    }
}

test "memory of less than 256 bytes is refused before anything is read" {
    var memory: [256]u8 align(128) = @splat(0);
    try expectRefused(error.SegmentSize, memory[0..255]);
    try expectRefused(error.SegmentUnready, &memory);
}

test "checks come in the order of the table" {
    var memory: [2048]u8 align(128) = undefined;
    try formatted(&memory);
    // All fields are wrong at once; making one of them right shows the next fault.
    poke(&memory, 8, u32, 7);
    poke(&memory, 0, u32, 0);
    poke(&memory, 12, u16, 2);
    poke(&memory, 20, u32, 1);
    poke(&memory, 16, u32, 77);
    poke(&memory, 28, u32, 0);
    poke(&memory, descriptor + 4, u32, 9);
    try expectRefused(error.SegmentMagic, &memory);
    poke(&memory, 8, u32, 1);
    try expectRefused(error.SegmentUnready, &memory);
    poke(&memory, 8, u32, 2);
    try expectRefused(error.SegmentMagic, &memory);
    memory[0..8].* = "MILLRACE".*;
    try expectRefused(error.SegmentVersion, &memory);
    poke(&memory, 12, u16, 1);
    try expectRefused(error.SegmentFeature, &memory);
    poke(&memory, 20, u32, 0);
    try expectRefused(error.SegmentSize, &memory);
    poke(&memory, 16, u32, 1280);
    try expectRefused(error.SegmentTable, &memory);
    poke(&memory, 28, u32, 2);
    try expectRefused(error.SegmentChannel, &memory);
    poke(&memory, descriptor + 4, u32, 0);
    var storage: [1]Channel = undefined;
    _ = try Segment.attach(&memory, &storage, .none);
}

test "areas of two channels must not overlap, areas of nothing may" {
    var memory: [4096]u8 align(128) = undefined;
    try millrace.Port.format(&memory, .{ .capacities = .{ 256, 256 } });
    var storage: [2]Channel = undefined;
    const second = 384 + 64;
    const place = (try Segment.attach(&memory, &storage, .none)).channels[1];
    poke(&memory, second + 20, u32, 1024); // the byte area of the first ring
    try expectRefused(error.SegmentChannel, &memory);
    poke(&memory, second + 20, u32, place.data_offset);
    poke(&memory, second + 12, u32, 512); // the control area of the first ring
    try expectRefused(error.SegmentChannel, &memory);
    // A channel of an unknown kind with areas of 0 bytes at the same place is accepted.
    poke(&memory, second, u32, 99);
    poke(&memory, second + 16, u32, 0);
    _ = try Segment.attach(&memory, &storage, .none);
    poke(&memory, second + 16, u32, 1);
    try expectRefused(error.SegmentChannel, &memory);
}

test "attach refuses more channels than it was given storage for" {
    var memory: [4096]u8 align(128) = undefined;
    try millrace.Port.format(&memory, .{ .capacities = .{ 256, 256 } });
    var storage: [1]Channel = undefined;
    try testing.expectError(error.ChannelStorage, Segment.attach(&memory, &storage, .none));
}

test "an endpoint must exist and be vacant" {
    var memory: [2048]u8 align(128) = undefined;
    try formatted(&memory);
    var storage: [1]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork };
    const Endpoint = millrace.Endpoint;
    try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 2, options));
    for ([_]u32{ 1, 2, 3, 4, 0x103, 0xffff_ffff }) |state| {
        poke(&memory, 128 + 4, u32, state);
        const before = memory;
        try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 0, options));
        try testing.expectEqualSlices(u8, &before, &memory);
    }
    // [segment.state_low] Vacant, whatever the upper bits are.
    poke(&memory, 128 + 4, u32, 0xabcd_ef00);
    var endpoint = try Endpoint.attach(&segment, 0, options);
    try testing.expectEqual(0xabcd_ef01, segment.record(0).state);
    try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 0, options));
    endpoint.close();
    try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 0, options));
}

test "an endpoint that somebody else takes first is rung, and not written to [segment.attach]" {
    for ([_]u32{ 1, 2, 3, 0x100 }) |found| {
        var memory: [2048]u8 align(128) = undefined;
        try formatted(&memory);
        var storage: [1]Channel = undefined;
        const segment = try Segment.attach(&memory, &storage, .none);
        const record = segment.record(0);
        record.wakes = 1;
        record.agent = 5;
        record.state = found;
        // The word was loaded as vacant.
        const taken = segment.takeLoaded(0, 0, &fixture.clockwork);
        try testing.expectError(error.SegmentEndpoint, taken);
        const words = [_]u32{ record.state, record.wakes, record.agent, record.bell };
        try testing.expectEqual([_]u32{ found, 1, 5, 1 }, words);
        try testing.expectEqual(1, segment.record(1).bell);
    }
}

test "an endpoint is attached before it states what it rings, and then rings [segment.attach]" {
    const Seen = struct {
        var record: *segment_record.Record = undefined;
        var rung: [2]u32 = undefined;
        fn notify(_: *const u32) void {
            rung = .{ record.state, record.wakes };
        }
    };
    var host = fixture.clockwork;
    host.notify = Seen.notify;
    var memory: [2048]u8 align(128) = undefined;
    try formatted(&memory);
    var storage: [1]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    Seen.record = segment.record(0);
    _ = try millrace.Endpoint.attach(&segment, 0, .{ .host = &host });
    try testing.expectEqual([_]u32{ 1, layout.wake_mechanism_futex }, Seen.rung);
}

test "create formats blank memory, and attaches where the geometry is the same" {
    var memory: [2048]u8 align(128) = @splat(0);
    const channels = fixture.pipeGeometry(256, 32);
    var storage: [1]Channel = undefined;
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    for (0..2) |_| _ = try Segment.create(&memory, geometry, &storage, .none);
    inline for (.{ "data_size", "label", "start" }) |field| {
        var other = channels;
        const more: u32 = if (std.mem.eql(u8, field, "data_size")) 256 else 16;
        @field(other[0], field) += more;
        const refused = Segment.create(&memory, .{
            .endpoint_count = 2,
            .channels = &other,
        }, &storage, .none);
        try testing.expectError(error.SegmentGeometry, refused);
    }
    const wider = Segment.create(&memory, .{
        .endpoint_count = 3,
        .channels = &channels,
    }, &storage, .none);
    try testing.expectError(error.SegmentGeometry, wider);
    const fewer = Segment.create(&memory, .{
        .endpoint_count = 2,
        .channels = &.{},
    }, &storage, .none);
    try testing.expectError(error.SegmentGeometry, fewer);
}

test "create finds another geometry with more channels than it has storage for" {
    var memory: [4096]u8 align(128) = undefined;
    try millrace.Port.format(&memory, .{ .capacities = .{ 256, 256 } });
    const channels = fixture.pipeGeometry(256, 0);
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    var storage: [1]Channel = undefined;
    const other = Segment.create(&memory, geometry, &storage, .none);
    try testing.expectError(error.SegmentGeometry, other);
    // [segment.check] The segment's own faults come first.
    poke(&memory, descriptor + 64 + 24, u32, 300);
    const broken = Segment.create(&memory, geometry, &storage, .none);
    try testing.expectError(error.SegmentChannel, broken);
}

test "create refuses a geometry that is larger than the memory or than any segment" {
    var memory: [1280]u8 align(128) = @splat(0);
    const fits = fixture.pipeGeometry(256, 0);
    var storage: [1]Channel = undefined;
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &fits };
    const small = Segment.create(memory[0..1279], geometry, &storage, .none);
    try testing.expectError(error.SegmentSize, small);
    // [segment.claim_checked]
    try testing.expectEqual(0, std.mem.readInt(u32, memory[8..12], .little));
    _ = try Segment.create(&memory, geometry, &storage, .none);

    const channel: Channel = .{ .writer = 0, .reader = 1, .data_size = 1 << 30 };
    var channels: [4]Channel = @splat(channel);
    try testing.expectError(error.SegmentSize, millrace.segmentSize(.{
        .endpoint_count = 2,
        .channels = &channels,
    }));
    channels[3].data_size = 1 << 29;
    _ = try millrace.segmentSize(.{ .endpoint_count = 2, .channels = &channels });
}

test "attach waits for whoever formats, and gives up at its deadline" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [2048]u8 align(128) = @splat(0);
    var storage: [1]Channel = undefined;
    try testing.expectError(error.SegmentUnready, Segment.attach(&memory, &storage, .ms(20)));
    const late = struct {
        fn format(target: *align(128) [2048]u8) void {
            millrace.Host.native.pause(20_000_000);
            const channels = fixture.pipeGeometry(256, 0);
            Segment.format(target, .{ .endpoint_count = 2, .channels = &channels }) catch {};
        }
    };
    const thread = try std.Thread.spawn(.{}, late.format, .{&memory});
    defer thread.join();
    _ = try Segment.attach(&memory, &storage, .ms(10_000));
}

test "the largest segment attaches: 256 endpoints, 1,024 channels" {
    const gpa = testing.allocator;
    const channels = try gpa.alloc(Channel, layout.channel_count_max);
    defer gpa.free(channels);
    for (channels, 0..) |*channel, index| channel.* = .{
        .writer = @intCast(index % 256),
        .reader = @intCast((index + 1) % 256),
        .data_size = 256,
    };
    const geometry: millrace.Geometry = .{ .endpoint_count = 256, .channels = channels };
    const size = try millrace.segmentSize(geometry);
    const memory = try gpa.alignedAlloc(u8, comptime .fromByteUnits(128), size);
    defer gpa.free(memory);
    try Segment.format(memory, geometry);
    const storage = try gpa.alloc(Channel, layout.channel_count_max);
    defer gpa.free(storage);
    const segment = try Segment.attach(memory, storage, .none);
    try testing.expectEqual(2, segment.peersOf(7).count());
}
