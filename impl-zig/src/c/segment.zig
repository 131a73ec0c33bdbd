//! Segments for C: in the caller's memory and in files [spec/segment.md]. `millrace.h` says what
//! each call promises.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const property_file = @import("../property/property.zig");
const segment_file = @import("../memory/segment.zig");
const arguments = @import("arguments.zig");
const Channel = segment_file.Channel;
const Fanout = @import("../fanout/fanout.zig").Fanout;
const Geometry = segment_file.Geometry;
const Host = @import("../wait/mechanism.zig").Host;
const Memory = segment_file.Memory;
const Segment = segment_file.Segment;
const SegmentFile = @import("../host/segment_file.zig").SegmentFile;
const Status = arguments.Status;

/// `millrace_channel`. A `kind` of 0 means a ring too.
pub const Ring = extern struct {
    writer: u32,
    reader: u32,
    capacity: u32,
    label: u32 = 0,
    start: u32 = 0,
    kind: u32 = 0,
    name: ?[*:0]const u8 = null,
};

/// Storage for the geometry, converted to our types.
const Geometries = struct {
    channels: [layout.channel_count_max]Channel,
    names: [layout.channel_count_max]Geometry.Name,
};

const Body = struct {
    /// The segment, if it is in the caller's memory.
    segment: Segment,
    file: if (SegmentFile.supported) SegmentFile else void,
    in_file: bool,
    /// How many ports are attached through this object. It cannot be left while there are any.
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
    var storage: Geometries = undefined;
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
    var storage: Geometries = undefined;
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
    var storage: Geometries = undefined;
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
    var storage: Geometries = undefined;
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

pub export fn millrace_segment_create_sealed(
    segment: ?*anyopaque,
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
    endpoint: u32,
) Status {
    const object = Object.blank(segment) orelse return arguments.invalid;
    var storage: Geometries = undefined;
    const geometry = geometryOf(endpoint_count, channels, channel_count, &storage) orelse
        return arguments.invalid;
    if (endpoint >= endpoint_count) return arguments.invalid;
    if (!SegmentFile.supported) return arguments.unsupported;
    const body = &object.body;
    body.file.createSealed(geometry, endpoint, &body.channels) catch |err| return refused(err);
    return begin(object, true);
}

pub export fn millrace_segment_handed_path(
    segment: ?*anyopaque,
    path: ?*anyopaque,
    path_size: usize,
) Status {
    const object = Object.known(segment) orelse return arguments.invalid;
    if (!SegmentFile.supported) return arguments.unsupported;
    const body = &object.body;
    if (!body.in_file or !body.file.isSealed()) return arguments.invalid;
    const bytes = arguments.storageAt(path, path_size) orelse return arguments.invalid;
    if (bytes.len < SegmentFile.handed_path_size) return arguments.invalid;
    _ = body.file.handedPath(bytes[0..SegmentFile.handed_path_size]);
    return arguments.done;
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
    // The first check of all, also for a creator [segment.check] [segment.claim_checked].
    if (@intFromPtr(bytes.ptr) % layout.segment_align != 0) return error.SegmentSize;
    return @alignCast(bytes);
}

fn refused(err: anyerror) Status {
    return if (err == error.Nowhere) arguments.invalid else arguments.failed(err, null);
}

/// Converts the geometry to our types. Returns null if no reader would accept it.
fn geometryOf(
    endpoint_count: u32,
    channels: ?*const anyopaque,
    channel_count: u32,
    storage: *Geometries,
) ?Geometry {
    if (endpoint_count < 1 or endpoint_count > layout.endpoint_count_max) return null;
    if (channel_count > layout.channel_count_max) return null;
    const given = arguments.arrayAt(Ring, channels, channel_count) orelse return null;
    var name_count: usize = 0;
    for (storage.channels[0..channel_count], given, 0..) |*channel, one, index| {
        if (one.writer >= endpoint_count) return null;
        switch (one.kind) {
            0, layout.channel_kind_ring => channel.* = ringOf(endpoint_count, one) orelse
                return null,
            layout.channel_kind_property => {
                channel.* = propertyOf(one) orelse return null;
                const name = nameOf(one) orelse return null;
                storage.names[name_count] = .{ .channel = @intCast(index), .name = name };
                name_count += 1;
            },
            layout.channel_kind_fanout => channel.* = fanoutOf(endpoint_count, one) orelse
                return null,
            else => return null,
        }
        channel.label = one.label;
    }
    return .{
        .endpoint_count = endpoint_count,
        .channels = storage.channels[0..channel_count],
        .names = storage.names[0..name_count],
    };
}

fn ringOf(endpoint_count: u32, ring: Ring) ?Channel {
    if (ring.reader >= endpoint_count or ring.writer == ring.reader) return null;
    if (!segment_file.capacityValid(ring.capacity)) return null;
    if (ring.start % layout.frame_align != 0 or ring.name != null) return null;
    return .{
        .writer = ring.writer,
        .reader = ring.reader,
        .data_size = ring.capacity,
        .start = ring.start,
    };
}

fn fanoutOf(endpoint_count: u32, fanout: Ring) ?Channel {
    if (fanout.reader >= endpoint_count or fanout.writer == fanout.reader) return null;
    if (!segment_file.capacityValid(fanout.capacity) or fanout.name != null) return null;
    const position = fanout.start & ~@as(u32, layout.fanout_lose);
    if (position % layout.frame_align != 0) return null;
    return Fanout.channel(.{
        .writer = fanout.writer,
        // The endpoints after the writer, up to this one.
        .readers = (fanout.reader + endpoint_count - fanout.writer) % endpoint_count,
        .capacity = fanout.capacity,
        .mode = if (position == fanout.start) .hold else .lose,
        .start = position,
    });
}

/// [property.areas]
fn propertyOf(property: Ring) ?Channel {
    if (property.reader != layout.endpoint_none or property.start != 0) return null;
    // Four slots of this size still fit a segment of 4 GiB.
    const size_max = (1 << 30) - layout.property_data_unit;
    if (property.capacity > size_max) return null;
    return property_file.channelOf(property.writer, property.capacity);
}

/// Returns the name of a property, empty if it has none. Returns null for a text that cannot be a
/// name [property.name].
fn nameOf(property: Ring) ?[]const u8 {
    const text = property.name orelse return "";
    const size = for (0..layout.property_name_size_max + 1) |at| {
        if (text[at] == 0) break at;
    } else return null;
    return if (std.unicode.utf8ValidateSlice(text[0..size])) text[0..size] else null;
}

// Tests.
//
// Calls from C about segments in files and in sealed memory.

const ports = @import("port.zig");
const fixture = @import("fixture.zig");
const Storage = fixture.Storage;
const expectRead = fixture.expectRead;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;
const write = fixture.write;

test "c_abi: a segment in a file, its two endpoints in one process" {
    var storage: [4]Storage align(8) = @splat(@splat(0));
    const create = millrace_segment_create_file;
    const open = millrace_segment_open_file;
    if (!SegmentFile.supported) {
        try expectStatus(-257, create(&storage[0], "x", 2, &fixture.both, 2, 0, 0));
        return expectStatus(-257, open(&storage[0], "x", 0, 0));
    }
    var directory: @import("../host/fixture.zig").Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    try expectStatus(reasonStatus(.segment_missing), open(&storage[0], path, 0, 0));
    const nowhere = "/dev/shm/millrace no directory/port";
    try expectStatus(-258, create(&storage[0], nowhere, 2, &fixture.both, 2, 0, 0));
    try expectStatus(-256, open(&storage[0], null, 0, 0));
    try expectStatus(-256, create(&storage[0], path, 2, &fixture.both, 2, 2, 0));
    try expectStatus(reasonStatus(.segment_file), open(&storage[0], "/dev/null", 0, 0));
    try expectStatus(1, create(&storage[0], path, 2, &fixture.both, 2, 0, 0));
    const taken = reasonStatus(.segment_endpoint);
    try expectStatus(taken, create(&storage[1], path, 2, &fixture.both, 2, 0, 0));
    try expectStatus(1, open(&storage[1], path, 1, 0));
    try expectStatus(taken, ports.millrace_port_attach(&storage[2], &storage[0], 1));
    try expectStatus(1, ports.millrace_port_attach(&storage[2], &storage[0], 0));
    try expectStatus(1, ports.millrace_port_attach(&storage[3], &storage[1], 1));
    try expectStatus(1, write(&storage[2], "in a file", 3));
    try expectRead(&storage[3], "in a file", 3);
    try expectStatus(-256, millrace_segment_leave(&storage[0]));
    for (storage[2..]) |*port| try expectStatus(1, ports.millrace_port_leave(port));
    for (storage[0..2]) |*left| try expectStatus(1, millrace_segment_leave(left));
}

test "c_abi: a segment in sealed memory, opened by the path of its descriptor" {
    var storage: [4]Storage align(8) = @splat(@splat(0));
    const create = millrace_segment_create_sealed;
    const path_of = millrace_segment_handed_path;
    const open = millrace_segment_open_file;
    if (!SegmentFile.supported) {
        return expectStatus(-257, create(&storage[0], 2, &fixture.both, 2, 0));
    }
    try expectStatus(-256, create(null, 2, &fixture.both, 2, 0));
    try expectStatus(-256, create(&storage[0], 2, &fixture.both, 2, 2));
    try expectStatus(-256, create(&storage[0], 2, null, 2, 0));
    var path: [SegmentFile.handed_path_size:0]u8 = undefined;
    try expectStatus(-256, path_of(&storage[0], &path, path.len));
    try expectStatus(1, create(&storage[0], 2, &fixture.both, 2, 0));
    try expectStatus(-256, path_of(&storage[0], &path, path.len - 1));
    try expectStatus(-256, path_of(&storage[0], null, path.len));
    try expectStatus(1, path_of(&storage[0], &path, path.len));
    try expectStatus(1, open(&storage[1], &path, 1, 0));
    try expectStatus(reasonStatus(.segment_endpoint), open(&storage[2], &path, 1, 0));
    for (storage[2..], storage[0..2], 0..) |*port, *segment, index| {
        try expectStatus(1, ports.millrace_port_attach(port, segment, @intCast(index)));
    }
    try expectStatus(1, write(&storage[2], "sealed", 3));
    try expectRead(&storage[3], "sealed", 3);
    for (storage[2..]) |*port| try expectStatus(1, ports.millrace_port_leave(port));
    for (storage[0..2]) |*left| try expectStatus(1, millrace_segment_leave(left));
    // A segment in the caller's memory has no path.
    var memory: [4096]u8 align(128) = @splat(0);
    const in_memory = millrace_segment_create;
    try expectStatus(1, in_memory(&storage[0], &memory, memory.len, 2, &fixture.both, 2, 0));
    try expectStatus(-256, path_of(&storage[0], &path, path.len));
    try expectStatus(1, millrace_segment_leave(&storage[0]));
}
