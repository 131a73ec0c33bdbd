//! Segments for C: in the caller's memory and in files [spec/segment.md]. What each call promises
//! stands in `millrace.h`.

const std = @import("std");
const layout = @import("layout.zig");
const segment_file = @import("segment.zig");
const arguments = @import("c_abi_arguments.zig");
const Channel = segment_file.Channel;
const Geometry = segment_file.Geometry;
const Host = @import("host.zig").Host;
const Memory = segment_file.Memory;
const Segment = segment_file.Segment;
const SegmentFile = @import("segment_file.zig").SegmentFile;
const Status = arguments.Status;

/// `millrace_channel`.
pub const Ring = extern struct {
    writer: u32,
    reader: u32,
    capacity: u32,
    label: u32 = 0,
    start: u32 = 0,
};

const Body = struct {
    /// Where the segment is in memory of the caller's.
    segment: Segment,
    file: if (SegmentFile.supported) SegmentFile else void,
    in_file: bool,
    /// The ports that are attached through this object. While there are any, it stays.
    port_count: std.atomic.Value(u32),
    /// The private copy of the geometry.
    channels: [layout.channel_count_max]Channel,

    pub fn get(body: *Body) *const Segment {
        if (SegmentFile.supported and body.in_file) return &body.file.segment;
        return &body.segment;
    }
};

pub const Object = arguments.Object(Body, .segment);

pub export fn millrace_segment_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_memory_size(
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
) u32 {
    var storage: [layout.channel_count_max]Channel = undefined;
    const geometry = geometryOf(endpoint_count, channels, channel_count, &storage) orelse return 0;
    return segment_file.sizeOf(geometry) catch 0;
}

pub export fn millrace_memory_format(
    memory: ?*anyopaque,
    memory_size: usize,
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
) Status {
    const place = memoryAt(memory, memory_size) catch |err| return refused(err);
    var storage: [layout.channel_count_max]Channel = undefined;
    const geometry = geometryOf(endpoint_count, channels, channel_count, &storage) orelse
        return arguments.invalid;
    Segment.format(place, geometry) catch |err| return refused(err);
    return arguments.done;
}

pub export fn millrace_segment_create(
    segment: ?*anyopaque,
    memory: ?*anyopaque,
    memory_size: usize,
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
    timeout_ms: i32,
) Status {
    const object = Object.blank(segment) orelse return arguments.invalid;
    const place = memoryAt(memory, memory_size) catch |err| return refused(err);
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    var storage: [layout.channel_count_max]Channel = undefined;
    const geometry = geometryOf(endpoint_count, channels, channel_count, &storage) orelse
        return arguments.invalid;
    const body = &object.body;
    body.segment = Segment.create(place, geometry, &body.channels, timeout) catch |err|
        return refused(err);
    return begin(object, false);
}

pub export fn millrace_segment_attach(
    segment: ?*anyopaque,
    memory: ?*anyopaque,
    memory_size: usize,
    timeout_ms: i32,
) Status {
    const object = Object.blank(segment) orelse return arguments.invalid;
    const place = memoryAt(memory, memory_size) catch |err| return refused(err);
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    const body = &object.body;
    body.segment = Segment.attach(place, &body.channels, timeout) catch |err| return refused(err);
    return begin(object, false);
}

pub export fn millrace_segment_create_file(
    segment: ?*anyopaque,
    path: ?[*:0]const u8,
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
    endpoint: u32,
    timeout_ms: i32,
) Status {
    const object = Object.blank(segment) orelse return arguments.invalid;
    const name = path orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    var storage: [layout.channel_count_max]Channel = undefined;
    const geometry = geometryOf(endpoint_count, channels, channel_count, &storage) orelse
        return arguments.invalid;
    if (endpoint >= endpoint_count) return arguments.invalid;
    if (!SegmentFile.supported) return arguments.unsupported;
    const body = &object.body;
    const options: SegmentFile.Options = .{ .timeout = timeout };
    body.file.create(std.mem.span(name), geometry, endpoint, &body.channels, options) catch |err|
        return refused(err);
    return begin(object, true);
}

pub export fn millrace_segment_open_file(
    segment: ?*anyopaque,
    path: ?[*:0]const u8,
    endpoint: u32,
    timeout_ms: i32,
) Status {
    const object = Object.blank(segment) orelse return arguments.invalid;
    const name = path orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!SegmentFile.supported) return arguments.unsupported;
    const body = &object.body;
    const options: SegmentFile.Options = .{ .timeout = timeout };
    body.file.open(std.mem.span(name), endpoint, &body.channels, options) catch |err|
        return refused(err);
    return begin(object, true);
}

pub export fn millrace_segment_leave(segment: ?*anyopaque) Status {
    const object = Object.known(segment) orelse return arguments.invalid;
    const body = &object.body;
    if (body.port_count.load(.acquire) > 0) return arguments.invalid;
    object.forget();
    if (SegmentFile.supported and body.in_file) body.file.close();
    return arguments.done;
}

pub export fn millrace_segment_owner(segment: ?*anyopaque, endpoint: u32) u32 {
    const object = Object.known(segment) orelse return 0;
    const known = object.body.get();
    if (endpoint >= known.endpoint_count) return 0;
    return known.ownerOf(endpoint).generation;
}

pub export fn millrace_segment_fail_endpoint(
    segment: ?*anyopaque,
    endpoint: u32,
    owner: u32,
    reason: u32,
) Status {
    const object = Object.known(segment) orelse return arguments.invalid;
    const known = object.body.get();
    const whose = ownerAt(known, endpoint, owner) orelse return arguments.invalid;
    const why: layout.Reason = @fromBackingInt(reason);
    switch (why) { // [pipe.supervisor]
        .peer_terminated, .peer_lost => known.fail(whose, why, .native),
        else => return arguments.invalid,
    }
    return arguments.done;
}

pub export fn millrace_segment_close_endpoint(
    segment: ?*anyopaque,
    endpoint: u32,
    owner: u32,
) Status {
    const object = Object.known(segment) orelse return arguments.invalid;
    const known = object.body.get();
    const whose = ownerAt(known, endpoint, owner) orelse return arguments.invalid;
    known.closeFor(whose, .native);
    return arguments.done;
}

fn ownerAt(segment: *const Segment, endpoint: u32, owner: u32) ?segment_file.Owner {
    if (endpoint >= segment.endpoint_count) return null;
    if (owner > std.math.maxInt(u24)) return null;
    return .{ .index = endpoint, .generation = @intCast(owner) };
}

fn begin(object: *Object, in_file: bool) Status {
    object.body.in_file = in_file;
    object.body.port_count = .init(0);
    object.seal();
    return arguments.done;
}

fn memoryAt(address: ?*anyopaque, size: usize) error{ Nowhere, SegmentSize }!Memory {
    const bytes = arguments.storageAt(address, size) orelse return error.Nowhere;
    if (address == null) return error.Nowhere;
    if (size == 0) return error.SegmentSize;
    // The first check of all, a creator's too [segment.check] [segment.claim_checked].
    if (@intFromPtr(bytes.ptr) % layout.segment_align != 0) return error.SegmentSize;
    return @alignCast(bytes);
}

fn refused(err: anyerror) Status {
    return if (err == error.Nowhere) arguments.invalid else arguments.failed(err, null);
}

/// The geometry in our own words, or null where it is one that no reader would accept.
fn geometryOf(
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
    storage: *[layout.channel_count_max]Channel,
) ?Geometry {
    if (endpoint_count < 1 or endpoint_count > layout.endpoint_count_max) return null;
    if (channel_count > layout.channel_count_max) return null;
    const rings = arguments.arrayAt(Ring, channels, channel_count) orelse return null;
    for (storage[0..channel_count], rings) |*channel, ring| {
        if (ring.writer >= endpoint_count or ring.reader >= endpoint_count) return null;
        if (ring.writer == ring.reader) return null;
        if (!segment_file.capacityValid(ring.capacity)) return null;
        if (ring.start % layout.frame_align != 0) return null;
        channel.* = .{
            .writer = ring.writer,
            .reader = ring.reader,
            .data_size = ring.capacity,
            .label = ring.label,
            .start = ring.start,
        };
    }
    return .{ .endpoint_count = endpoint_count, .channels = storage[0..channel_count] };
}
