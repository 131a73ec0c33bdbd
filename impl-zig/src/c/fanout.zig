//! Fanouts for C: one writer, and every reader gets every message [spec/fanout.md].
//! `millrace_fanout.h` says what each call promises.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const fanout_file = @import("../fanout/fanout.zig");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const c_segment = @import("segment.zig");
const Deadline = @import("../wait/mechanism.zig").Deadline;
const End = fanout_file.End;
const Endpoint = @import("../wait/endpoint.zig").Endpoint;
const Piece = c_port.Piece;
const Reader = fanout_file.Fanout.Reader;
const Status = arguments.Status;
const Writer = fanout_file.Fanout.Writer;

/// `millrace_fanout_message`.
pub const FanoutMessage = extern struct {
    size: usize = 0,
    number: u64 = 0,
    lost: u64 = 0,
    tag: u32 = 0,
    codec: u32 = 0,
};

const Body = struct {
    /// The port whose endpoint this end uses. The port cannot be left before this end.
    port: *c_port.Object,
    /// The place of this end in the port's list.
    node: std.DoublyLinkedList.Node,
    channel: u32,
    end: union(End) { writer: Writer, reader: Reader },
    /// What a writer knows of its readers.
    seats: [layout.fanout_readers_max]Writer.Seat,

    fn endpoint(body: *Body) *Endpoint {
        return &body.port.body.port.endpoint;
    }

    fn failed(body: *Body, err: anyerror) Status {
        return arguments.failed(err, body.endpoint().behind);
    }
};

const Object = arguments.Object(Body, .fanout);

pub export fn millrace_fanout_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_fanout_find_writer(
    segment: ?*anyopaque,
    endpoint: u32,
    channel: u32,
    found: ?*anyopaque,
) Status {
    return find(.writer, segment, endpoint, channel, found);
}

pub export fn millrace_fanout_find_reader(
    segment: ?*anyopaque,
    endpoint: u32,
    channel: u32,
    found: ?*anyopaque,
) Status {
    return find(.reader, segment, endpoint, channel, found);
}

fn find(
    role: End,
    segment: ?*anyopaque,
    endpoint: u32,
    channel: u32,
    found: ?*anyopaque,
) Status {
    const result = arguments.resultAt(u32, found) orelse return arguments.invalid;
    const object = c_segment.Object.known(segment) orelse return arguments.invalid;
    const known = object.body.get();
    result.* = fanout_file.find(known, endpoint, namedOf(channel), role) catch |err|
        return arguments.failed(err, null);
    return arguments.done;
}

/// Returns the channel that the caller names; null for the first one that fits.
fn namedOf(channel: u32) ?u32 {
    return if (channel == std.math.maxInt(u32)) null else channel;
}

pub export fn millrace_fanout_open_writer(
    fanout: ?*anyopaque,
    port: ?*anyopaque,
    channel: u32,
) Status {
    return open(.writer, fanout, port, channel, .tail);
}

pub export fn millrace_fanout_open_reader(
    fanout: ?*anyopaque,
    port: ?*anyopaque,
    channel: u32,
    oldest: i32,
) Status {
    return open(.reader, fanout, port, channel, if (oldest == 0) .tail else .oldest);
}

fn open(
    role: End,
    fanout: ?*anyopaque,
    port: ?*anyopaque,
    channel: u32,
    from: Reader.Begin,
) Status {
    const object = Object.blank(fanout) orelse return arguments.invalid;
    const through = c_port.Object.known(port) orelse return arguments.invalid;
    // A port over a stream has no channels.
    const known = (through.body.segment orelse return arguments.invalid).body.get();
    const endpoint = &through.body.port.endpoint;
    const found = fanout_file.channelFor(known, endpoint.index, namedOf(channel), role) orelse
        return arguments.failed(error.SegmentChannel, null);
    const loses = known.channels[found].start & layout.fanout_lose != 0;
    if (from == .oldest and !loses) return arguments.invalid;
    // Two ends with the same words would each mistake the other's values for their own.
    var node = through.body.fanouts.first;
    while (node) |each| : (node = each.next) {
        const other: *Body = @alignCast(@fieldParentPtr("node", each));
        if (other.channel == found and other.end == role) return arguments.invalid;
    }
    const body = &object.body;
    body.port = through;
    body.channel = found;
    body.end = switch (role) {
        .writer => .{ .writer = .init(endpoint, known, found, &body.seats) },
        .reader => .{ .reader = .init(endpoint, known, found, from) },
    };
    through.body.fanouts.append(&body.node);
    object.seal();
    return arguments.done;
}

pub export fn millrace_fanout_size_max(fanout: ?*anyopaque) u32 {
    const object = Object.known(fanout) orelse return 0;
    return switch (object.body.end) {
        inline else => |*end| end.place.plan.sizeMax(),
    };
}

pub export fn millrace_fanout_write(
    fanout: ?*anyopaque,
    payload: ?*const anyopaque,
    size: usize,
    codec: u32,
    tag: u32,
    timeout_ms: i32,
) Status {
    const object = Object.known(fanout) orelse return arguments.invalid;
    const writer = writerOf(object) orelse return arguments.invalid;
    const bytes = arguments.bytesAt(payload, size) orelse return arguments.invalid;
    const envelope = arguments.envelopeOf(codec, tag) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    writer.write(bytes, envelope, timeout) catch |err| return object.body.failed(err);
    return arguments.done;
}

/// The most payloads that are passed to the writer at a time.
const slice_count = 64;

pub export fn millrace_fanout_write_many(
    fanout: ?*anyopaque,
    payloads: ?*const anyopaque,
    count: usize,
    codec: u32,
    tag: u32,
    timeout_ms: i32,
    written: ?*anyopaque,
) Status {
    const result = arguments.resultAt(usize, written) orelse return arguments.invalid;
    var written_count: usize = 0;
    defer result.* = written_count;
    const object = Object.known(fanout) orelse return arguments.invalid;
    const writer = writerOf(object) orelse return arguments.invalid;
    const pieces = arguments.arrayAt(Piece, payloads, count) orelse return arguments.invalid;
    const envelope = arguments.envelopeOf(codec, tag) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    var largest: []const u8 = &.{};
    for (pieces) |piece| {
        const bytes = arguments.bytesAt(piece.address, piece.size) orelse return arguments.invalid;
        if (bytes.len > largest.len) largest = bytes;
    }
    if (largest.len > writer.sizeMax()) {
        writer.write(largest, envelope, .none) catch |err| return object.body.failed(err);
        unreachable; // it is larger than any message may be
    }
    var deadline: Deadline = .init(timeout);
    while (true) {
        var slices: [slice_count][]const u8 = undefined;
        const part = slices[0..@min(slice_count, count - written_count)];
        for (part, pieces[written_count..][0..part.len]) |*slice, piece| {
            slice.* = arguments.bytesAt(piece.address, piece.size).?;
        }
        const part_count = writer.writeManyBy(part, envelope, &deadline) catch |err|
            return object.body.failed(err);
        written_count += part_count;
        if (part_count < part.len) return arguments.nothing;
        if (written_count == count) return arguments.done;
    }
}

pub export fn millrace_fanout_end(fanout: ?*anyopaque) Status {
    const object = Object.known(fanout) orelse return arguments.invalid;
    const writer = writerOf(object) orelse return arguments.invalid;
    writer.end() catch |err| return object.body.failed(err);
    return arguments.done;
}

pub export fn millrace_fanout_read(
    fanout: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    timeout_ms: i32,
    message: ?*anyopaque,
) Status {
    const result = arguments.resultAt(FanoutMessage, message) orelse return arguments.invalid;
    result.* = .{};
    const object = Object.known(fanout) orelse return arguments.invalid;
    const reader = readerOf(object) orelse return arguments.invalid;
    const bytes = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!reader.readFits()) return arguments.invalid;
    const found = reader.read(bytes, timeout) catch |err| {
        if (err == error.MessageLost) result.lost = reader.lost();
        return object.body.failed(err);
    };
    const own = found orelse return if (reader.ended()) arguments.end else arguments.nothing;
    result.* = .{
        .size = own.payload.len,
        .number = own.number orelse 0,
        .tag = own.tag,
        .codec = @backingInt(own.codec),
    };
    return arguments.done;
}

pub export fn millrace_fanout_set_joined(fanout: ?*anyopaque, joined: i32) Status {
    const object = Object.known(fanout) orelse return arguments.invalid;
    const reader = readerOf(object) orelse return arguments.invalid;
    if (reader.place.plan.loses) return arguments.invalid;
    const endpoint = object.body.endpoint();
    if (endpoint.closedHere()) return object.body.failed(endpoint.whyClosed());
    if (joined == 0) reader.leave() else if (!reader.is_joined) reader.join();
    return arguments.done;
}

pub export fn millrace_fanout_leave(fanout: ?*anyopaque) Status {
    const object = Object.known(fanout) orelse return arguments.invalid;
    const body = &object.body;
    switch (body.end) {
        // A writer that is opened later would begin at the start of the fanout again.
        .writer => if (!body.endpoint().closedHere()) return arguments.invalid,
        .reader => |*reader| reader.leave(),
    }
    body.port.body.fanouts.remove(&body.node);
    object.forget();
    return arguments.done;
}

fn writerOf(object: *Object) ?*Writer {
    return if (object.body.end == .writer) &object.body.end.writer else null;
}

fn readerOf(object: *Object) ?*Reader {
    return if (object.body.end == .reader) &object.body.end.reader else null;
}
