//! Properties for C: the latest value of something [spec/property.md]. `millrace_property.h` says
//! what each call promises.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const property_file = @import("../property/property.zig");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const c_segment = @import("segment.zig");
const assert = std.debug.assert;
const Codec = layout.Codec;
const Endpoint = @import("../wait/endpoint.zig").Endpoint;
const PropertyReader = property_file.PropertyReader;
const PropertyWriter = property_file.PropertyWriter;
const Status = arguments.Status;
const Which = property_file.Which;

/// `millrace_property_value`.
pub const Value = extern struct {
    size: usize = 0,
    version: u32 = 0,
    codec: u32 = 0,
};

const Body = struct {
    /// The port whose endpoint this end uses. The port cannot be left before this end.
    port: *c_port.Object,
    end: union(enum) { writer: PropertyWriter, reader: PropertyReader },

    fn endpoint(body: *Body) *Endpoint {
        return &body.port.body.port.endpoint;
    }

    fn failed(body: *Body, err: anyerror) Status {
        return arguments.failed(err, body.endpoint().behind);
    }
};

const Object = arguments.Object(Body, .property);

pub export fn millrace_property_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_property_find(
    segment: ?*anyopaque,
    channel: u32,
    name: ?[*:0]const u8,
    writer: u32,
    found: ?*anyopaque,
) Status {
    const result = arguments.resultAt(u32, found) orelse return arguments.invalid;
    const object = c_segment.Object.known(segment) orelse return arguments.invalid;
    const which = whichOf(channel, name) orelse return arguments.invalid;
    const known = object.body.get();
    result.* = (if (writer == layout.endpoint_none)
        property_file.find(known, which)
    else
        property_file.findFor(known, which, writer)) catch |err|
        return arguments.failed(err, null);
    return arguments.done;
}

pub export fn millrace_property_open_writer(
    property: ?*anyopaque,
    port: ?*anyopaque,
    channel: u32,
    name: ?[*:0]const u8,
) Status {
    return open(.writer, property, port, channel, name);
}

pub export fn millrace_property_open_reader(
    property: ?*anyopaque,
    port: ?*anyopaque,
    channel: u32,
    name: ?[*:0]const u8,
) Status {
    return open(.reader, property, port, channel, name);
}

fn open(
    comptime role: enum { writer, reader },
    property: ?*anyopaque,
    port: ?*anyopaque,
    channel: u32,
    name: ?[*:0]const u8,
) Status {
    const object = Object.blank(property) orelse return arguments.invalid;
    const through = c_port.Object.known(port) orelse return arguments.invalid;
    const which = whichOf(channel, name) orelse return arguments.invalid;
    // Over a stream, there is no memory that both sides share.
    const known = (through.body.segment orelse return arguments.invalid).body.get();
    const endpoint = &through.body.port.endpoint;
    const body = &object.body;
    body.port = through;
    switch (role) {
        .writer => {
            body.end = .{ .writer = undefined };
            body.end.writer.open(endpoint, known, which) catch |err|
                return arguments.failed(err, null);
        },
        .reader => {
            const reader = PropertyReader.init(endpoint, known, which) catch |err|
                return arguments.failed(err, null);
            body.end = .{ .reader = reader };
        },
    }
    through.body.property_count += 1;
    object.seal();
    return arguments.done;
}

pub export fn millrace_property_value_size(property: ?*anyopaque) u32 {
    const object = Object.known(property) orelse return 0;
    return switch (object.body.end) {
        inline else => |*end| end.sizeMax(),
    };
}

pub export fn millrace_property_set(
    property: ?*anyopaque,
    value: ?*const anyopaque,
    size: usize,
    codec: u32,
) Status {
    const object = Object.known(property) orelse return arguments.invalid;
    const writer = writerOf(object) orelse return arguments.invalid;
    const bytes = arguments.bytesAt(value, size) orelse return arguments.invalid;
    if (codec > std.math.maxInt(u8)) return arguments.invalid;
    const how: Codec = @fromBackingInt(codec);
    if (how == .json_batch or how == .values) return arguments.invalid;
    writer.set(bytes, how) catch |err| return object.body.failed(err);
    return arguments.done;
}

pub export fn millrace_property_clear(property: ?*anyopaque) Status {
    const object = Object.known(property) orelse return arguments.invalid;
    const writer = writerOf(object) orelse return arguments.invalid;
    writer.clear() catch |err| return object.body.failed(err);
    return arguments.done;
}

pub export fn millrace_property_get(
    property: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    value: ?*anyopaque,
) Status {
    const result = arguments.resultAt(Value, value) orelse return arguments.invalid;
    result.* = .{};
    const object = Object.known(property) orelse return arguments.invalid;
    const reader = readerOf(object) orelse return arguments.invalid;
    const bytes = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    const found = reader.get(bytes) catch |err| return object.body.failed(err);
    result.version = found.version;
    const own = found.bytes orelse return arguments.nothing;
    result.size = own.len;
    result.codec = @backingInt(found.codec);
    return arguments.done;
}

pub export fn millrace_property_wait(property: ?*anyopaque, timeout_ms: i32) Status {
    const object = Object.known(property) orelse return arguments.invalid;
    const reader = readerOf(object) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    const changed = reader.wait(timeout) catch |err| return object.body.failed(err);
    return if (changed) arguments.done else arguments.nothing;
}

pub export fn millrace_property_leave(property: ?*anyopaque) Status {
    const object = Object.known(property) orelse return arguments.invalid;
    const body = &object.body;
    // The endpoint's close wakes those who watch, and needs this object for that [property.close].
    if (body.end == .writer and !body.endpoint().closed.load(.seq_cst)) return arguments.invalid;
    object.forget();
    assert(body.port.body.property_count > 0);
    body.port.body.property_count -= 1;
    return arguments.done;
}

fn writerOf(object: *Object) ?*PropertyWriter {
    return if (object.body.end == .writer) &object.body.end.writer else null;
}

fn readerOf(object: *Object) ?*PropertyReader {
    return if (object.body.end == .reader) &object.body.end.reader else null;
}

/// Returns the property that the caller names: by its channel, or, with MILLRACE_FIRST, by its
/// name. Returns null for any other combination.
fn whichOf(channel: u32, name: ?[*:0]const u8) ?Which {
    const any = channel == std.math.maxInt(u32);
    const text = name orelse return if (any) null else .{ .channel = channel };
    return if (any) .{ .name = std.mem.span(text) } else null;
}

// Tests.
//
// Properties through the calls from C.

const fixture = @import("fixture.zig");
const testing = std.testing;
const Ring = c_segment.Ring;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const nobody: u32 = 0xffff_ffff;
const first: u32 = 0xffff_ffff;

fn propertyOf(writer: u32, capacity: u32, name: ?[*:0]const u8) Ring {
    return .{ .writer = writer, .reader = nobody, .capacity = capacity, .kind = 2, .name = name };
}

/// Endpoint 0 sets `gain` and a property without a name; endpoint 1 gets them. There are also rings
/// both ways. Must not move after it was opened.
const Stage = struct {
    memory: [8192]u8 align(128) = @splat(0),
    segment_storage: Storage align(8) = @splat(0xaa),
    ports: [2]Storage align(8) = @splat(@splat(0xaa)),
    objects: [3]Storage align(8) = @splat(@splat(0xaa)),
    storage: [1008]u8 = undefined,
    value: Value = undefined,

    const channels: [4]Ring = .{
        fixture.both[0],
        propertyOf(0, 100, "gain"),
        fixture.both[1],
        propertyOf(0, 1000, null),
    };

    fn open(stage: *Stage) !void {
        const create = c_segment.millrace_segment_create;
        const place = &stage.segment_storage;
        const memory = &stage.memory;
        try expectStatus(1, create(place, memory, memory.len, 2, &channels, channels.len, 0));
        // One port has rings, the other has none.
        try expectStatus(1, c_port.millrace_port_attach(stage.port(0), place, 0));
        try expectStatus(1, c_port.millrace_port_attach_endpoint(stage.port(1), place, 1));
        try stage.openWriter(0, first, "gain");
        try expectStatus(1, millrace_property_open_reader(
            stage.reader(),
            stage.port(1),
            1,
            null,
        ));
    }

    fn openWriter(stage: *Stage, object: usize, channel: u32, name: ?[*:0]const u8) !void {
        const open_writer = millrace_property_open_writer;
        try expectStatus(1, open_writer(&stage.objects[object], stage.port(0), channel, name));
    }

    fn leave(stage: *Stage) !void {
        for (0..2) |index| _ = c_port.millrace_port_close(stage.port(index));
        for (&stage.objects) |*object| _ = millrace_property_leave(object);
        for (0..2) |index| try expectStatus(1, c_port.millrace_port_leave(stage.port(index)));
        try expectStatus(1, c_segment.millrace_segment_leave(&stage.segment_storage));
    }

    fn port(stage: *Stage, index: usize) *anyopaque {
        return &stage.ports[index];
    }

    fn writer(stage: *Stage) *anyopaque {
        return &stage.objects[0];
    }

    fn reader(stage: *Stage) *anyopaque {
        return &stage.objects[1];
    }

    fn set(stage: *Stage, value: []const u8, codec: u32) Status {
        return millrace_property_set(stage.writer(), value.ptr, value.len, codec);
    }

    fn get(stage: *Stage, capacity: usize) Status {
        const storage = &stage.storage;
        return millrace_property_get(stage.reader(), storage, capacity, &stage.value);
    }

    fn wait(stage: *Stage, timeout_ms: i32) Status {
        return millrace_property_wait(stage.reader(), timeout_ms);
    }

    fn expectValue(stage: *Stage, version: u32, bytes: []const u8, codec: u32) !void {
        try expectStatus(1, stage.get(112));
        const expected: Value = .{
            .size = bytes.len,
            .version = version,
            .codec = codec,
        };
        try testing.expectEqual(expected, stage.value);
        try testing.expectEqualStrings(bytes, stage.storage[0..bytes.len]);
    }

    fn expectNone(stage: *Stage, version: u32) !void {
        try expectStatus(0, stage.get(112));
        const expected: Value = .{ .version = version };
        try testing.expectEqual(expected, stage.value);
    }
};

test "c_abi: a property is got as it was set last, again and again" {
    var stage: Stage = .{};
    try stage.open();
    try stage.expectNone(0);
    try expectStatus(1, stage.set("0.5", 2));
    try expectStatus(1, stage.set("0.75", 2));
    for (0..2) |_| try stage.expectValue(2, "0.75", 2);
    try expectStatus(1, millrace_property_clear(stage.writer()));
    try stage.expectNone(3);
    // A value of 0 bytes is a value, and needs no storage.
    try expectStatus(1, stage.set("", 200));
    const get = millrace_property_get;
    try expectStatus(1, get(stage.reader(), null, 0, &stage.value));
    try stage.expectValue(4, "", 200);
    // The rings go on without the property, and the value stays after the writer has gone.
    try expectStatus(1, fixture.write(stage.port(0), "[]", 1));
    try expectStatus(1, c_port.millrace_port_close(stage.port(0)));
    try stage.expectValue(4, "", 200);
    try expectStatus(reasonStatus(.pipe_closed), stage.set("late", 1));
    const cleared = millrace_property_clear(stage.writer());
    try expectStatus(reasonStatus(.pipe_closed), cleared);
    try stage.leave();
}

test "c_abi: a value that does not fit its property, or the storage, is refused" {
    var stage: Stage = .{};
    try stage.open();
    try testing.expectEqual(112, millrace_property_value_size(stage.writer()));
    try testing.expectEqual(112, millrace_property_value_size(stage.reader()));
    try testing.expectEqual(0, millrace_property_value_size(stage.port(0)));
    const letters: [113]u8 = @splat('a');
    try expectStatus(reasonStatus(.property_size), stage.set(&letters, 1));
    try stage.expectNone(0);
    try expectStatus(1, stage.set(letters[0..112], 1));
    try stage.expectValue(1, letters[0..112], 1);
    try expectStatus(reasonStatus(.message_size), stage.get(111));
    try testing.expectEqual(Value{}, stage.value);
    for ([_]u32{ 3, 4, 256, nobody }) |codec| try expectStatus(-256, stage.set("[1]", codec));
    try stage.expectValue(1, letters[0..112], 1);
    try stage.leave();
}

test "c_abi: a property is found by its channel or its name, before anything is attached" {
    var stage: Stage = .{};
    try stage.open();
    const segment = &stage.segment_storage;
    const find = millrace_property_find;
    var found: u32 = 7;
    try expectStatus(1, find(segment, first, "gain", nobody, &found));
    try testing.expectEqual(1, found);
    try expectStatus(1, find(segment, 3, null, 0, &found));
    try testing.expectEqual(3, found);
    const none = reasonStatus(.property_channel);
    try expectStatus(none, find(segment, first, "gai", nobody, &found));
    try expectStatus(none, find(segment, first, "", nobody, &found));
    try expectStatus(none, find(segment, 0, null, nobody, &found));
    try expectStatus(none, find(segment, 4, null, nobody, &found));
    try expectStatus(none, find(segment, 3, null, 1, &found));
    try expectStatus(-256, find(segment, first, null, nobody, &found));
    try expectStatus(-256, find(segment, 1, "gain", nobody, &found));
    try expectStatus(-256, find(segment, 1, null, nobody, null));
    const open_writer = millrace_property_open_writer;
    const open_reader = millrace_property_open_reader;
    const object = &stage.objects[2];
    try expectStatus(none, open_writer(object, stage.port(1), first, "gain"));
    try expectStatus(none, open_reader(object, stage.port(1), 2, null));
    try expectStatus(-256, open_reader(object, segment, 1, null));
    try expectStatus(-256, open_reader(stage.reader(), stage.port(1), 1, null));
    try expectStatus(-256, millrace_property_leave(object));
    try stage.leave();
}

test "c_abi: an end of a property has the calls of its own, and an endpoint alone no rings'" {
    var stage: Stage = .{};
    try stage.open();
    try expectStatus(-256, millrace_property_set(stage.reader(), "a", 1, 1));
    try expectStatus(-256, millrace_property_clear(stage.reader()));
    try expectStatus(-256, millrace_property_wait(stage.writer(), 0));
    const get = millrace_property_get;
    try expectStatus(-256, get(stage.writer(), &stage.storage, 112, &stage.value));
    try expectStatus(-256, get(stage.reader(), null, 112, &stage.value));
    try expectStatus(-256, get(stage.reader(), &stage.storage, 112, null));
    try expectStatus(-256, stage.wait(-2));
    const bare = stage.port(1);
    try expectStatus(-256, fixture.write(bare, "[]", 0));
    var message: c_port.Message = undefined;
    try expectStatus(-256, c_port.millrace_port_read(bare, null, 0, 0, &message));
    try expectStatus(-256, c_port.millrace_port_peek(bare, 0, &message));
    try expectStatus(-256, c_port.millrace_port_release(bare));
    try expectStatus(-256, c_port.millrace_port_end(bare));
    try expectStatus(-256, c_port.millrace_port_vacate(bare));
    try expectStatus(-256, c_port.millrace_port_set_calls(bare, 1));
    try expectStatus(-256, c_port.millrace_port_set_inbox(bare, null, 0));
    try expectStatus(1, c_port.millrace_port_set_spin(bare, 0));
    try stage.leave();
}

test "c_abi: a wait for a change ends with one, in time, or with the writer" {
    var stage: Stage = .{};
    try stage.open();
    try expectStatus(0, stage.wait(0));
    try expectStatus(1, stage.set("a", 1));
    // Until the value was read.
    for (0..2) |_| try expectStatus(1, stage.wait(0));
    try stage.expectValue(1, "a", 1);
    try expectStatus(0, stage.wait(1));
    try expectStatus(1, millrace_property_clear(stage.writer()));
    try expectStatus(1, stage.wait(0));
    try expectStatus(1, c_port.millrace_port_set_blocking(stage.port(1), 0));
    try stage.expectNone(2);
    try expectStatus(reasonStatus(.wait_forbidden), stage.wait(1000));
    try expectStatus(1, stage.set("last", 1));
    try expectStatus(1, c_port.millrace_port_close(stage.port(0)));
    try expectStatus(1, stage.wait(0));
    try stage.expectValue(3, "last", 1);
    try expectStatus(reasonStatus(.peer_closed), stage.wait(0));
    try expectStatus(1, c_port.millrace_port_close(stage.port(1)));
    try expectStatus(reasonStatus(.pipe_closed), stage.wait(0));
    try stage.leave();
}

test "c_abi: to set, and to close, wakes who waits for a change" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    // A sleeper that is not woken notices by the end of a slice, every time. On a busy machine, a
    // sleeper that is woken may do so now and then.
    for (0..20) |_| {
        if (try lateWakes() == 0) break;
    } else return error.NeverWoken;
}

/// Sets the value that somebody waits for, and closes. Returns how often the sleeper noticed only
/// by the end of a slice.
fn lateWakes() !u64 {
    var stage: Stage = .{};
    try stage.open();
    try expectStatus(1, c_port.millrace_port_set_spin(stage.port(1), 0));
    for ([_]Status{ 1, reasonStatus(.peer_closed) }) |expected| {
        var result: Status = undefined;
        const waiter = struct {
            fn run(own: *Stage, status: *Status) void {
                status.* = own.wait(20_000);
            }
        };
        const thread = try std.Thread.spawn(.{}, waiter.run, .{ &stage, &result });
        // Waits until the sleeper has asked to be rung: its bit is in the first word of `watchers`.
        const watchers = watchersOf(&stage);
        const asked = for (0..10_000_000) |_| {
            if (@atomicLoad(u32, watchers, .seq_cst) != 0) break true;
            std.Thread.yield() catch {};
        } else false;
        if (expected == 1) {
            try expectStatus(1, stage.set("b", 1));
        } else {
            try expectStatus(1, c_port.millrace_port_close(stage.port(0)));
        }
        thread.join();
        try testing.expect(asked);
        try expectStatus(expected, result);
        _ = stage.get(112);
    }
    var stats: c_port.Stats = undefined;
    try expectStatus(1, c_port.millrace_port_stats(stage.port(1), &stats));
    try stage.leave();
    return stats.late_wakes;
}

/// Returns the first word of the watchers of `gain`.
fn watchersOf(stage: *Stage) *u32 {
    const object = c_segment.Object.known(&stage.segment_storage).?;
    const channel = object.body.get().channels[1];
    return @ptrCast(@alignCast(&stage.memory[channel.control_offset + 128]));
}

test "c_abi: a port stays while properties are open through it, and one that sets until it closes" {
    var stage: Stage = .{};
    try stage.open();
    try stage.openWriter(2, 3, null);
    const leave = millrace_property_leave;
    for (0..2) |index| try expectStatus(-256, c_port.millrace_port_leave(stage.port(index)));
    try expectStatus(1, leave(stage.reader()));
    try expectStatus(-256, leave(stage.reader()));
    try expectStatus(1, c_port.millrace_port_leave(stage.port(1)));
    try expectStatus(-256, leave(stage.writer()));
    try expectStatus(1, c_port.millrace_port_close(stage.port(0)));
    try expectStatus(1, leave(stage.writer()));
    try expectStatus(-256, c_port.millrace_port_leave(stage.port(0)));
    try expectStatus(1, leave(&stage.objects[2]));
    try expectStatus(1, c_port.millrace_port_leave(stage.port(0)));
    try expectStatus(1, c_segment.millrace_segment_leave(&stage.segment_storage));
}

test "c_abi: a property is made with its name, or refused" {
    const size = c_segment.millrace_memory_size;
    const long: [125:0]u8 = @splat('n');
    const good = [_]Ring{
        propertyOf(0, 0, null),
        propertyOf(1, 112, ""),
        propertyOf(0, 113, long[1..]),
        propertyOf(0, 1 << 20, "größe"),
    };
    const sizes = [_]u32{ 512, 512, 1024, 4 * (1 << 20) + 512 };
    for (good, sizes) |channel, bytes| {
        try testing.expectEqual(512 + 384 + bytes, size(2, &channel, 1));
    }
    var bad: [9]Ring = @splat(good[1]);
    bad[0].writer = 2;
    bad[1].reader = 1;
    bad[2].start = 16;
    bad[3].name = &long;
    bad[4].name = "\xff";
    bad[5].kind = 4;
    bad[6].capacity = std.math.maxInt(u32);
    bad[7].capacity = 1 << 30;
    bad[8] = .{ .writer = 0, .reader = 1, .capacity = 256, .name = "ring" };
    for (bad) |channel| try testing.expectEqual(0, size(2, &channel, 1));

    // A process that finds a segment compares the names.
    var memory: [4096]u8 align(128) = @splat(0);
    var object: Storage align(8) = @splat(0xaa);
    const create = c_segment.millrace_segment_create;
    for ([_]?[*:0]const u8{ "gain", "gains", null, "gain" }, 0..) |name, index| {
        const channel = propertyOf(0, 100, name);
        const same = index % 3 == 0;
        const expected = if (same) 1 else reasonStatus(.segment_geometry);
        try expectStatus(expected, create(&object, &memory, memory.len, 2, &channel, 1, 0));
        if (same) try expectStatus(1, c_segment.millrace_segment_leave(&object));
    }
}
