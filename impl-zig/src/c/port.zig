//! Ports for C, with both directions or one [spec/port.md] [spec/pipe.md]. `millrace.h` says what
//! each call promises.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const revive = @import("../more/revive.zig");
const arguments = @import("arguments.zig");
const c_meter = @import("meter.zig");
const c_segment = @import("segment.zig");
const assert = std.debug.assert;
const Deadline = host.Deadline;
const Endpoint = @import("../wait/endpoint.zig").Endpoint;
const Inbox = @import("../port/inbox.zig").Inbox;
const Port = @import("../port/port.zig").Port;
const Reader = pipe.Reader;
const Status = arguments.Status;
const Writer = pipe.Writer;

/// `millrace_message`.
pub const Message = extern struct {
    payload: ?*const anyopaque,
    size: usize,
    total: u64,
    tag: u32,
    kind: u8,
    codec: u8,
    flags: u8,
    reserved: u8 = 0,
};

/// Describes a whole message that was copied to the caller's storage.
pub fn copied(storage: ?*const anyopaque, message: pipe.Message) Message {
    return .{
        // The caller's storage, because the address of an empty slice means nothing in C.
        .payload = storage,
        .size = message.payload.len,
        .total = message.payload.len,
        .tag = message.tag,
        .kind = @intCast(@backingInt(message.kind)),
        .codec = @intCast(@backingInt(message.codec)),
        .flags = layout.frame_flag_first | layout.frame_flag_last,
    };
}

/// Describes a frame that is lent where it lies.
pub fn inPlace(lent: pipe.Lent) Message {
    const first: u8 = if (lent.first) layout.frame_flag_first else 0;
    const last: u8 = if (lent.last) layout.frame_flag_last else 0;
    return .{
        .payload = lent.payload.ptr,
        .size = lent.payload.len,
        .total = lent.total,
        .tag = lent.tag,
        .kind = @intCast(@backingInt(lent.kind)),
        .codec = @intCast(@backingInt(lent.codec)),
        .flags = first | last,
    };
}

/// `millrace_bytes`.
pub const Piece = extern struct {
    address: ?*const anyopaque,
    size: usize,
};

/// `millrace_stats`.
pub const Stats = extern struct {
    wakes: u64,
    wakes_elided: u64,
    parks: u64,
    late_wakes: u64,
};

/// What may be done with a port. One test tells whether the port writes, or reads, so that a port
/// without calls or a meter pays nothing for them.
const Role = enum(u8) {
    /// It is read and written only through its calls.
    called = 0,
    writer = writes,
    reader = reads,
    both = writes | reads,
    /// It has no ring: properties and fanouts use its endpoint.
    none = 4,
    /// The first three with a meter, which is called in place of the port.
    metered_writer = metered | writes,
    metered_reader = metered | reads,
    metered_both = metered | writes | reads,

    const writes = 1;
    const reads = 2;
    const metered = 8;

    fn has(role: Role, bits: u8) bool {
        return @backingInt(role) & bits == bits;
    }
};

const Body = struct {
    /// If the port has only one direction, the other one and the inbox are undefined.
    port: Port,
    role: Role,
    /// The segment through which the port has attached; null over a stream.
    segment: ?*c_segment.Object,
    /// How many ends of properties are open through the port. It cannot be left while there are
    /// any.
    property_count: u32,
    /// The ends of fanouts that are open through the port. It cannot be left while there are any.
    fanouts: std.DoublyLinkedList,
    /// Undefined if the port has no meter.
    meter: *c_meter.Metered,

    fn writerThere(body: *Body) ?*Writer {
        return if (body.role.has(Role.writes)) &body.port.writer else null;
    }

    fn readerThere(body: *Body) ?*Reader {
        return if (body.role.has(Role.reads)) &body.port.reader else null;
    }

    /// Notes that the port is used only through its calls from now on. Returns false if that is not
    /// possible, at all or at present.
    pub fn takeCalls(body: *Body) bool {
        if (body.role != .both or body.port.writer.isClaimed()) return false;
        if (body.lent() or !body.port.inbox.empty() or body.port.reader.inProgress()) return false;
        body.role = .called;
        return true;
    }

    fn meterThere(body: *Body) ?*c_meter.Metered {
        return if (body.role.has(Role.metered)) body.meter else null;
    }

    /// Notes that calls of the port go through a meter from now on. Returns false if that is not
    /// possible.
    pub fn takeMeter(body: *Body, meter: *c_meter.Metered) bool {
        if (body.segment == null) return false;
        meter.* = switch (body.role) {
            .both => .{ .port = .init(&body.port, .{}) },
            .writer => .{ .writer = .init(&body.port.writer, .{}) },
            .reader => .{ .reader = .init(&body.port.reader, .{}) },
            else => return false,
        };
        body.meter = meter;
        body.role = @fromBackingInt(@backingInt(body.role) | Role.metered);
        return true;
    }

    /// Notes that the port has no meter any more.
    pub fn dropMeter(body: *Body) void {
        body.role = @fromBackingInt(@backingInt(body.role) & ~@as(u8, Role.metered));
    }

    fn isBoth(body: *const Body) bool {
        return body.role.has(Role.writes | Role.reads);
    }

    fn lent(body: *Body) bool {
        return if (body.isBoth()) body.port.lent() else body.port.reader.isLent();
    }

    fn peekFits(body: *Body) bool {
        if (body.isBoth()) return body.port.peekFits();
        return !body.lent() and !body.port.reader.partial();
    }

    fn storageFits(body: *Body, storage: []const u8) bool {
        if (body.isBoth()) return body.port.storageFits(storage);
        const reader = &body.port.reader;
        if (body.lent()) return false;
        const parts = reader.parts orelse return !reader.inProgress();
        return parts.ptr == storage.ptr and parts.len == storage.len;
    }

    fn whyNone(body: *Body) Status {
        const ended = if (body.isBoth()) body.port.ended() else body.port.reader.ended();
        return if (ended) arguments.end else arguments.nothing;
    }

    fn failed(body: *Body, err: anyerror) Status {
        return arguments.failed(err, body.port.endpoint.behind);
    }
};

pub const Object = arguments.Object(Body, .port);

pub export fn millrace_port_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_port_attach(port: ?*anyopaque, segment: ?*anyopaque, endpoint: u32) Status {
    const object = Object.blank(port) orelse return arguments.invalid;
    const through = c_segment.Object.known(segment) orelse return arguments.invalid;
    object.body.port.init(through.body.get(), endpoint, .{}) catch |err|
        return arguments.failed(err, null);
    return begin(object, through, .both);
}

pub export fn millrace_port_attach_endpoint(
    port: ?*anyopaque,
    segment: ?*anyopaque,
    endpoint: u32,
) Status {
    const object = Object.blank(port) orelse return arguments.invalid;
    const through = c_segment.Object.known(segment) orelse return arguments.invalid;
    object.body.port.endpoint = Endpoint.attach(through.body.get(), endpoint, .{}) catch |err|
        return arguments.failed(err, null);
    return begin(object, through, .none);
}

pub export fn millrace_port_attach_writer(
    port: ?*anyopaque,
    segment: ?*anyopaque,
    endpoint: u32,
    channel: u32,
) Status {
    return attachOne(.writer, port, segment, endpoint, channel);
}

pub export fn millrace_port_attach_reader(
    port: ?*anyopaque,
    segment: ?*anyopaque,
    endpoint: u32,
    channel: u32,
) Status {
    return attachOne(.reader, port, segment, endpoint, channel);
}

fn attachOne(
    comptime role: enum { writer, reader },
    port: ?*anyopaque,
    segment: ?*anyopaque,
    endpoint: u32,
    channel: u32,
) Status {
    const object = Object.blank(port) orelse return arguments.invalid;
    const through = c_segment.Object.known(segment) orelse return arguments.invalid;
    const known = through.body.get();
    const End = if (role == .writer) Writer else Reader;
    const named = if (channel == std.math.maxInt(u32)) null else channel;
    const found = End.find(known, endpoint, named) catch |err|
        return arguments.failed(err, null);
    const own = &object.body.port;
    own.endpoint = Endpoint.attach(known, endpoint, .{}) catch |err|
        return arguments.failed(err, null);
    const end = End.init(&own.endpoint, known, found) catch unreachable;
    if (role == .writer) own.writer = end else own.reader = end;
    return begin(object, through, if (role == .writer) .writer else .reader);
}

fn begin(
    object: *Object,
    segment: *c_segment.Object,
    role: Role,
) Status {
    object.body.role = role;
    object.body.segment = segment;
    object.body.property_count = 0;
    object.body.fanouts = .{};
    _ = segment.body.port_count.fetchAdd(1, .monotonic);
    object.seal();
    return arguments.done;
}

/// Makes an object of a port over a stream. From then on, the stream's object leaves it.
pub fn beginOver(object: *Object) void {
    object.body.role = .both;
    object.body.segment = null;
    object.body.property_count = 0;
    object.body.fanouts = .{};
    object.seal();
}

/// Whether the port is read and written only through its calls.
pub fn isCalled(object: *const Object) bool {
    return object.body.role == .called;
}

pub export fn millrace_port_set_inbox(port: ?*anyopaque, storage: ?*anyopaque, size: usize) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    if (!body.isBoth() or !body.port.inbox.empty()) return arguments.invalid;
    const bytes = arguments.storageAt(storage, size) orelse return arguments.invalid;
    const skipped = std.mem.alignForward(usize, @intFromPtr(bytes.ptr), Inbox.entry_align) -
        @intFromPtr(bytes.ptr);
    body.port.setInbox(if (skipped < bytes.len) @alignCast(bytes[skipped..]) else &.{});
    return arguments.done;
}

pub export fn millrace_port_set_spin(port: ?*anyopaque, microseconds: u32) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    object.body.port.endpoint.setSpin(microseconds);
    return arguments.done;
}

pub export fn millrace_port_set_blocking(port: ?*anyopaque, blocking: i32) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    object.body.port.endpoint.blocking = blocking != 0;
    return arguments.done;
}

pub export fn millrace_port_set_calls(port: ?*anyopaque, calls: i32) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const reader = object.body.readerThere() orelse return arguments.invalid;
    reader.calls = calls != 0;
    return arguments.done;
}

pub export fn millrace_port_write(
    port: ?*anyopaque,
    payload: ?*const anyopaque,
    size: usize,
    codec: u32,
    tag: u32,
    timeout_ms: i32,
) Status {
    const data = @backingInt(layout.FrameKind.data);
    const all = .{ port, data, payload, size, codec, tag, timeout_ms };
    return @call(.always_inline, millrace_port_write_kind, all);
}

pub export fn millrace_port_write_kind(
    port: ?*anyopaque,
    kind: u32,
    payload: ?*const anyopaque,
    size: usize,
    codec: u32,
    tag: u32,
    timeout_ms: i32,
) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    const writer = body.writerThere() orelse return arguments.invalid;
    const bytes = arguments.bytesAt(payload, size) orelse return arguments.invalid;
    var envelope = arguments.envelopeOf(codec, tag) orelse return arguments.invalid;
    envelope.kind = @fromBackingInt(kind);
    if (!envelope.valid()) return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (writer.isClaimed() or !fits(writer, size, envelope, timeout)) {
        return arguments.invalid;
    }
    const result = if (body.role == .both)
        // Saves one call: a sixth of the time of a short write.
        @call(.always_inline, Port.write, .{ &body.port, bytes, envelope, timeout })
    else if (body.meterThere()) |meter|
        meter.write(bytes, envelope, timeout)
    else
        writer.write(bytes, envelope, timeout);
    result catch |err| return body.failed(err);
    return arguments.done;
}

/// The most payloads that are passed on, and published, at a time.
const slice_count = 64;

pub export fn millrace_port_write_many(
    port: ?*anyopaque,
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
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    const writer = body.writerThere() orelse return arguments.invalid;
    const pieces = arguments.arrayAt(Piece, payloads, count) orelse return arguments.invalid;
    const envelope = arguments.envelopeOf(codec, tag) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (writer.isClaimed()) return arguments.invalid;
    // All payloads are checked before any is placed.
    for (pieces) |piece| {
        if (arguments.bytesAt(piece.address, piece.size) == null) return arguments.invalid;
        if (!fits(writer, piece.size, envelope, timeout)) return arguments.invalid;
    }
    var deadline: Deadline = .init(timeout);
    while (written_count < count) {
        var slices: [slice_count][]const u8 = undefined;
        const part = slices[0..@min(slice_count, count - written_count)];
        for (part, pieces[written_count..][0..part.len]) |*slice, piece| {
            slice.* = arguments.bytesAt(piece.address, piece.size).?;
        }
        const placed = if (body.meterThere()) |meter|
            meter.writeMany(part, envelope, &deadline)
        else if (body.role == .both)
            writer.writeManyWith(part, envelope, &deadline, &body.port)
        else
            writer.writeManyWith(part, envelope, &deadline, writer);
        const part_count = placed catch |err| return body.failed(err);
        written_count += part_count;
        if (part_count < part.len) return arguments.nothing;
    }
    return arguments.done;
}

pub export fn millrace_port_claim(
    port: ?*anyopaque,
    size: u32,
    timeout_ms: i32,
    place: ?*anyopaque,
) Status {
    const result = arguments.resultAt(?*anyopaque, place) orelse return arguments.invalid;
    result.* = null;
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    const writer = body.writerThere() orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (writer.isClaimed() or size > writer.frameSizeMax()) return arguments.invalid;
    const claimed = if (body.meterThere()) |meter|
        meter.claim(size, timeout)
    else if (body.role == .both)
        body.port.claim(size, timeout)
    else
        writer.claim(size, timeout);
    const bytes = claimed catch |err| return body.failed(err);
    result.* = bytes.ptr;
    return arguments.done;
}

pub export fn millrace_port_publish(port: ?*anyopaque, size: u32, codec: u32, tag: u32) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const writer = object.body.writerThere() orelse return arguments.invalid;
    const envelope = arguments.envelopeOf(codec, tag) orelse return arguments.invalid;
    if (unclaimed(object)) |status| return status;
    if (size > writer.ring.claimed - layout.frame_header_size) return arguments.invalid;
    if (object.body.meterThere()) |meter| {
        meter.publish(size, envelope);
    } else {
        writer.finish(size, envelope);
        writer.publish();
    }
    return arguments.done;
}

pub export fn millrace_port_abandon(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const writer = object.body.writerThere() orelse return arguments.invalid;
    if (unclaimed(object)) |status| return status;
    writer.abandon();
    return arguments.done;
}

/// Returns the status if there is no open claim: there was none, or the port was closed meanwhile
/// [pipe.close].
fn unclaimed(object: *Object) ?Status {
    const writer = &object.body.port.writer;
    if (writer.isClaimed()) return null;
    if (writer.ring.claimed == 0) return arguments.invalid;
    writer.abandon();
    return object.body.failed(object.body.port.endpoint.whyClosed());
}

pub export fn millrace_port_end(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const writer = object.body.writerThere() orelse return arguments.invalid;
    if (writer.isClaimed()) return arguments.invalid;
    writer.end() catch |err| return object.body.failed(err);
    return arguments.done;
}

pub export fn millrace_port_read(
    port: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    timeout_ms: i32,
    message: ?*anyopaque,
) Status {
    const result = arguments.resultAt(Message, message) orelse return arguments.invalid;
    result.* = std.mem.zeroes(Message);
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    const reader = body.readerThere() orelse return arguments.invalid;
    const bytes = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!body.storageFits(bytes)) return arguments.invalid;
    const found = if (body.role == .both)
        // Saves one call: a tenth of the time of a short read.
        @call(.always_inline, Port.read, .{ &body.port, bytes, timeout })
    else if (body.meterThere()) |meter|
        meter.read(bytes, timeout)
    else
        reader.read(bytes, timeout);
    const own = (found catch |err| return body.failed(err)) orelse return body.whyNone();
    result.* = copied(storage, own);
    return arguments.done;
}

pub export fn millrace_port_peek(port: ?*anyopaque, timeout_ms: i32, message: ?*anyopaque) Status {
    const result = arguments.resultAt(Message, message) orelse return arguments.invalid;
    result.* = std.mem.zeroes(Message);
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    const reader = body.readerThere() orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!body.peekFits()) return arguments.invalid;
    const found = if (body.meterThere()) |meter|
        meter.peek(timeout)
    else if (body.role == .both)
        body.port.peek(timeout)
    else
        reader.peek(timeout);
    const lent = (found catch |err| return body.failed(err)) orelse return body.whyNone();
    result.* = inPlace(lent);
    return arguments.done;
}

pub export fn millrace_port_release(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const body = &object.body;
    const reader = body.readerThere() orelse return arguments.invalid;
    if (!body.lent()) return arguments.invalid;
    if (body.isBoth()) body.port.release() else reader.release();
    return arguments.done;
}

pub export fn millrace_port_vacate(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    const own = &object.body.port;
    const given = switch (object.body.role) {
        .both, .metered_both => own.vacate(),
        .writer, .metered_writer => revive.vacate(&.{}, &.{&own.writer}),
        .reader, .metered_reader => revive.vacate(&.{&own.reader}, &.{}),
        .called, .none => return arguments.invalid,
    };
    return if (given) arguments.done else arguments.invalid;
}

pub export fn millrace_port_check_peers(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    object.body.port.endpoint.checkPeers();
    return arguments.done;
}

pub export fn millrace_port_reason(port: ?*anyopaque) u32 {
    const object = Object.known(port) orelse return 0;
    return if (object.body.port.endpoint.behind) |reason| @backingInt(reason) else 0;
}

pub export fn millrace_port_stats(port: ?*anyopaque, stats: ?*anyopaque) Status {
    const result = arguments.resultAt(Stats, stats) orelse return arguments.invalid;
    const object = Object.known(port) orelse return arguments.invalid;
    const found = object.body.port.endpoint.stats;
    result.* = .{
        .wakes = found.wakes,
        .wakes_elided = found.wakes_elided,
        .parks = found.parks,
        .late_wakes = found.late_wakes,
    };
    return arguments.done;
}

pub export fn millrace_port_close(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    object.body.port.endpoint.close();
    return arguments.done;
}

pub export fn millrace_port_leave(port: ?*anyopaque) Status {
    const object = Object.known(port) orelse return arguments.invalid;
    if (object.body.role == .called or object.body.role.has(Role.metered)) return arguments.invalid;
    if (object.body.property_count > 0) return arguments.invalid;
    if (object.body.fanouts.first != null) return arguments.invalid;
    const segment = object.body.segment orelse return arguments.invalid;
    object.forget();
    object.body.port.endpoint.close();
    // After the last use of the memory.
    const before = segment.body.port_count.fetchSub(1, .release);
    assert(before > 0);
    return arguments.done;
}

/// Whether the writer can write this message: at once, if the timeout is 0 [pipe.try_never], and a
/// batch in one frame [frame.batch_whole].
pub fn fits(
    writer: *const Writer,
    size: usize,
    envelope: pipe.Envelope,
    timeout: host.Timeout,
) bool {
    if (timeout == .none and size > writer.trySizeMax()) return false;
    return envelope.codec != .json_batch or size <= writer.frameSizeMax();
}

// Tests.
//
// Ports for C: claims after a close, and endpoints that are vacated.

const fixture = @import("fixture.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

var held: [64]u8 = undefined;
var arrived: Message = undefined;

fn readOne(port: *anyopaque) Status {
    return millrace_port_read(port, &held, held.len, 0, &arrived);
}

fn write(port: *anyopaque, payload: []const u8) Status {
    return millrace_port_write(port, payload.ptr, payload.len, 0, 0, 0);
}

fn expectRead(port: *anyopaque, payload: []const u8) !void {
    try expectStatus(arguments.done, readOne(port));
    try testing.expectEqualStrings(payload, held[0..arrived.size]);
}

fn claim(port: *anyopaque, size: u32, place: *?*anyopaque) Status {
    return millrace_port_claim(port, size, 0, @ptrCast(place));
}

fn publish(port: *anyopaque) Status {
    return millrace_port_publish(port, 1, 0, 0);
}

fn abandon(port: *anyopaque) Status {
    return millrace_port_abandon(port);
}

test "c_abi: a claim that was open at the close is reported once, and dropped" {
    for ([_]*const fn (*anyopaque) Status{ publish, abandon }) |call| {
        var pair: Pair = .{};
        try pair.open();
        const a = pair.side(0);
        try expectStatus(-256, call(a));
        var place: ?*anyopaque = null;
        try expectStatus(1, claim(a, 1, &place));
        try expectStatus(-256, claim(a, 1, &place));
        try expectStatus(1, millrace_port_close(a));
        const closed = reasonStatus(.pipe_closed);
        try expectStatus(closed, claim(a, 1, &place));
        try expectStatus(closed, millrace_port_end(a));
        try expectStatus(closed, call(a));
        try expectStatus(-256, call(a));
        pair.leave();
    }
}

test "c_abi: an endpoint is given back, and taken by its next owner" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    try expectStatus(1, write(pair.side(1), "last words"));
    try expectStatus(-256, millrace_port_vacate(a));
    try expectStatus(1, millrace_port_leave(pair.side(1)));
    try expectStatus(-256, millrace_port_vacate(a));
    try expectRead(a, "last words");
    try testing.expectEqual(reasonStatus(.peer_closed), readOne(a));
    try expectStatus(1, millrace_port_vacate(a));
    try expectStatus(-256, millrace_port_vacate(a));
    try expectStatus(1, write(a, "welcome"));
    try testing.expectEqual(1, c_segment.millrace_segment_owner(pair.segment(), 1));
    try expectStatus(1, millrace_port_attach(pair.side(1), pair.segment(), 1));
    try expectRead(pair.side(1), "welcome");
    try testing.expectEqual(0, readOne(a));
    pair.leave();
}

// What a message carries besides its payload, through the calls from C: its kind, codec and tag.

const Storage = fixture.Storage;

const kinds = [_]u32{
    @backingInt(layout.FrameKind.data),
    @backingInt(layout.FrameKind.call),
    @backingInt(layout.FrameKind.@"return"),
    @backingInt(layout.FrameKind.throw),
};
const codecs = [_]u32{
    @backingInt(layout.Codec.bytes),
    @backingInt(layout.Codec.text),
    @backingInt(layout.Codec.json),
    @backingInt(layout.Codec.json_batch),
    layout.codec_application_min,
    255,
};

fn writeKind(port: *anyopaque, kind: u32, codec: u32, tag: u32) arguments.Status {
    return millrace_port_write_kind(port, kind, "[1]", 3, codec, tag, 0);
}

test "c_abi: kind, codec and tag arrive as they were written, read and lent" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    const reader = pair.side(1);
    try expectStatus(1, millrace_port_set_calls(reader, 1));
    var tag: u32 = 0xffff_fff0;
    for (kinds) |kind| for (codecs) |codec| for ([_]bool{ false, true }) |lend| {
        tag +%= 1;
        try expectStatus(1, writeKind(pair.side(0), kind, codec, tag));
        var storage: [8]u8 = undefined;
        var message: Message = undefined;
        try expectStatus(1, if (lend)
            millrace_port_peek(reader, 0, &message)
        else
            millrace_port_read(reader, &storage, storage.len, 0, &message));
        try testing.expectEqual(kind, message.kind);
        try testing.expectEqual(codec, message.codec);
        try testing.expectEqual(tag, message.tag);
        const payload: [*]const u8 = @ptrCast(message.payload.?);
        try testing.expectEqualStrings("[1]", payload[0..message.size]);
        if (lend) try expectStatus(1, millrace_port_release(reader));
    };
}

test "c_abi: a port that does not read calls drops them, each once" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var storage: [8]u8 = undefined;
    var message: Message = undefined;
    const read = millrace_port_read;
    // By default, and after calls were turned off again.
    for (0..2) |_| {
        for (kinds[1..]) |kind| try expectStatus(1, writeKind(pair.side(0), kind, 0, 7));
        try expectStatus(1, writeKind(pair.side(0), kinds[0], 0, 8));
        const dropped = reasonStatus(.message_kind);
        for (kinds[1..]) |_| {
            try expectStatus(dropped, read(pair.side(1), &storage, storage.len, 0, &message));
        }
        try expectStatus(1, read(pair.side(1), &storage, storage.len, 0, &message));
        try testing.expectEqual(8, message.tag);
        try expectStatus(1, millrace_port_set_calls(pair.side(1), 1));
        try expectStatus(1, millrace_port_set_calls(pair.side(1), 0));
    }
}

test "c_abi: kinds that are no messages are refused, and what cannot be set" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    const bad = [_]u32{ 0, 2, 6, 7, 128, 255, 256, 257, std.math.maxInt(u32) };
    for (bad) |kind| try expectStatus(-256, writeKind(pair.side(0), kind, 0, 0));
    try expectStatus(-256, writeKind(pair.side(0), kinds[1], 256, 0));
    try expectStatus(-256, millrace_port_set_calls(null, 1));
    var storage: [8]u8 = undefined;
    var message: Message = undefined;
    const read = millrace_port_read;
    try expectStatus(0, read(pair.side(1), &storage, storage.len, 0, &message));

    // A port that only writes cannot read calls.
    var memory: [4096]u8 align(128) = @splat(0);
    var objects: [2]Storage align(8) = @splat(@splat(0));
    const one: [1]c_segment.Ring = .{.{ .writer = 0, .reader = 1, .capacity = 256 }};
    const create = c_segment.millrace_segment_create;
    try expectStatus(1, create(&objects[0], &memory, memory.len, 2, &one, 1, 0));
    try expectStatus(1, millrace_port_attach_writer(&objects[1], &objects[0], 0, 0));
    try expectStatus(-256, millrace_port_set_calls(&objects[1], 1));
    try expectStatus(1, writeKind(&objects[1], kinds[3], 0, 0));
    try expectStatus(1, millrace_port_leave(&objects[1]));
    try expectStatus(1, c_segment.millrace_segment_leave(&objects[0]));
}
