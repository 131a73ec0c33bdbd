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
