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

// Tests.
//
// Fanouts through the calls from C.

const builtin = @import("builtin");
const fixture = @import("fixture.zig");
const testing = std.testing;
const Message = FanoutMessage;
const Ring = c_segment.Ring;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const first: u32 = 0xffff_ffff;
const closed: Status = -@as(Status, @backingInt(layout.Reason.pipe_closed));

fn fanoutOf(writer: u32, last: u32, start: u32) Ring {
    return .{ .writer = writer, .reader = last, .capacity = 256, .start = start, .kind = 3 };
}

/// Endpoint 0 writes in mode `hold` or `lose`; endpoints 1 and 2 read. Must not move after `open`.
const Stage = struct {
    memory: [4096]u8 align(128) = @splat(0),
    segment_storage: Storage align(8) = @splat(0xaa),
    ports: [3]Storage align(8) = @splat(@splat(0xaa)),
    objects: [3]Storage align(8) = @splat(@splat(0xaa)),
    storage: [256]u8 = undefined,
    message: Message = undefined,

    /// Opens the writer and the given number of readers.
    fn open(stage: *Stage, start: u32, reader_count: u32) !void {
        const channels = [_]Ring{fanoutOf(0, 2, start)};
        const create = c_segment.millrace_segment_create;
        const place = &stage.segment_storage;
        const memory = &stage.memory;
        try expectStatus(1, create(place, memory, memory.len, 3, &channels, 1, 0));
        for (0..3) |index| {
            const attach = c_port.millrace_port_attach_endpoint;
            try expectStatus(1, attach(stage.port(index), place, @intCast(index)));
        }
        const open_writer = millrace_fanout_open_writer;
        try expectStatus(1, open_writer(stage.end(0), stage.port(0), first));
        for (1..1 + reader_count) |index| try expectStatus(1, stage.join(index, 0));
    }

    fn join(stage: *Stage, index: usize, oldest: i32) Status {
        const open_reader = millrace_fanout_open_reader;
        return open_reader(stage.end(index), stage.port(index), 0, oldest);
    }

    fn leave(stage: *Stage) !void {
        for (0..3) |index| {
            try expectStatus(1, c_port.millrace_port_close(stage.port(index)));
            _ = millrace_fanout_leave(stage.end(index));
            try expectStatus(1, c_port.millrace_port_leave(stage.port(index)));
        }
        try expectStatus(1, c_segment.millrace_segment_leave(&stage.segment_storage));
    }

    fn port(stage: *Stage, index: usize) *anyopaque {
        return &stage.ports[index];
    }

    fn end(stage: *Stage, index: usize) *anyopaque {
        return &stage.objects[index];
    }

    fn write(stage: *Stage, payload: []const u8, timeout_ms: i32) Status {
        const write_one = millrace_fanout_write;
        return write_one(stage.end(0), payload.ptr, payload.len, 200, 7, timeout_ms);
    }

    /// Writes through an end that may not be a writer.
    fn writeBy(stage: *Stage, index: usize) Status {
        return millrace_fanout_write(stage.end(index), "a", 1, 200, 7, 0);
    }

    fn read(stage: *Stage, index: usize, timeout_ms: i32) Status {
        const read_one = millrace_fanout_read;
        const storage = &stage.storage;
        return read_one(stage.end(index), storage, storage.len, timeout_ms, &stage.message);
    }

    fn expectRead(stage: *Stage, index: usize, payload: []const u8, number: u64) !void {
        try expectStatus(1, stage.read(index, 0));
        const expected: Message = .{
            .size = payload.len,
            .number = number,
            .tag = 7,
            .codec = 200,
        };
        try testing.expectEqual(expected, stage.message);
        try testing.expectEqualStrings(payload, stage.storage[0..payload.len]);
    }

    /// Expects a read with this status, after which the message is all 0.
    fn expectNone(stage: *Stage, index: usize, status: Status) !void {
        try expectStatus(status, stage.read(index, 0));
        try testing.expectEqual(Message{}, stage.message);
    }

    /// Returns a word of the control area, or of the records after it.
    fn word(stage: *Stage, offset: usize) *u32 {
        const object = c_segment.Object.known(&stage.segment_storage).?;
        const channel = object.body.get().channels[0];
        return @ptrCast(@alignCast(&stage.memory[channel.control_offset + offset]));
    }
};

test "c_abi: every reader of a fanout gets every message, and its end" {
    var stage: Stage = .{};
    try stage.open(0, 2);
    for ([_]usize{ 1, 2 }) |index| try stage.expectNone(index, 0);
    try expectStatus(1, stage.write("to all", 0));
    try expectStatus(1, stage.write("", 0));
    for ([_]usize{ 1, 2 }) |index| try stage.expectRead(index, "to all", 0);
    try stage.expectRead(1, "", 0);
    // A message of no bytes needs no storage.
    const read = millrace_fanout_read;
    try expectStatus(1, read(stage.end(2), null, 0, 0, &stage.message));
    for (0..2) |_| try expectStatus(1, millrace_fanout_end(stage.end(0)));
    try expectStatus(reasonStatus(.pipe_ended), stage.write("late", 0));
    for ([_]usize{ 1, 2, 1 }) |index| try stage.expectNone(index, 2);
    try stage.leave();
}

test "c_abi: the slowest reader of a fanout holds its writer back, until it leaves" {
    var stage: Stage = .{};
    try stage.open(0, 2);
    var count: u32 = 0;
    while (stage.write("held", 0) == 1) count += 1;
    try testing.expectEqual(7, count);
    try expectStatus(0, stage.write("held", 1));
    for (0..7) |_| try stage.expectRead(1, "held", 0);
    try expectStatus(0, stage.write("on", 0));
    const set_joined = millrace_fanout_set_joined;
    for (0..2) |_| try expectStatus(1, set_joined(stage.end(2), 0));
    try expectStatus(-256, stage.read(2, 0));
    for (0..7) |_| {
        try expectStatus(1, stage.write("on", 0));
        try stage.expectRead(1, "on", 0);
    }
    for (0..2) |_| try expectStatus(1, set_joined(stage.end(2), 1));
    try stage.expectNone(2, 0);
    try expectStatus(1, stage.write("again", 0));
    try stage.expectRead(2, "again", 0);
    // An object that was given up does not hold the writer back either.
    try expectStatus(1, millrace_fanout_leave(stage.end(2)));
    for (0..20) |_| {
        _ = stage.read(1, 0);
        try expectStatus(1, stage.write("gone", 0));
    }
    try expectStatus(1, stage.join(2, 0));
    try expectStatus(1, stage.write("back", 0));
    try stage.expectRead(2, "back", 0);
    try stage.leave();
}

test "c_abi: a reader of a fanout that was overrun is told how many messages it lost" {
    var stage: Stage = .{};
    try stage.open(1, 1);
    for (0..3) |_| try expectStatus(1, stage.write("one", 0));
    try stage.expectRead(1, "one", 0);
    for (0..8) |_| try expectStatus(1, stage.write("two", 0));
    try expectStatus(reasonStatus(.message_lost), stage.read(1, 0));
    const lost = stage.message.lost;
    try testing.expectEqual(Message{ .lost = lost }, stage.message);
    try testing.expect(lost >= 4 and lost < 10);
    // A reader that joins late may start at the oldest message, which is the same one here.
    try expectStatus(1, stage.join(2, 1));
    try stage.expectRead(1, "two", 1 + lost);
    try stage.expectRead(2, "two", 1 + lost);
    try expectStatus(-256, millrace_fanout_set_joined(stage.end(1), 0));
    try stage.leave();
}

test "c_abi: many messages of a fanout are written at once, or as many as there is room for" {
    var stage: Stage = .{};
    try stage.open(0, 1);
    const many = millrace_fanout_write_many;
    var pieces: [100]c_port.Piece = @splat(.{ .address = "many", .size = 4 });
    var written: usize = 9;
    try expectStatus(0, many(stage.end(0), &pieces, pieces.len, 200, 7, 0, &written));
    try testing.expectEqual(7, written);
    for (0..7) |_| try stage.expectRead(1, "many", 0);
    try expectStatus(1, many(stage.end(0), &pieces, 3, 200, 7, 0, &written));
    try testing.expectEqual(3, written);
    try expectStatus(1, many(stage.end(0), null, 0, 200, 7, 0, &written));
    try testing.expectEqual(0, written);
    const letters: [113]u8 = @splat('a');
    pieces[2] = .{ .address = &letters, .size = letters.len };
    const too_large = reasonStatus(.message_size);
    try expectStatus(too_large, many(stage.end(0), &pieces, 3, 200, 7, 0, &written));
    try testing.expectEqual(0, written);
    pieces[2].address = null;
    try expectStatus(-256, many(stage.end(0), &pieces, 3, 200, 7, 0, &written));
    for (0..3) |_| try stage.expectRead(1, "many", 0);
    try stage.expectNone(1, 0);
    // The writer waits for nobody, so it writes all of them, 64 at a time.
    try expectStatus(1, millrace_fanout_leave(stage.end(1)));
    pieces[2] = pieces[0];
    try expectStatus(1, many(stage.end(0), &pieces, pieces.len, 200, 7, 0, &written));
    try testing.expectEqual(100, written);
    try stage.leave();
}

test "c_abi: a message that does not fit its fanout, or the storage, is refused" {
    for ([_]u32{ 0, 1 }, [_]u32{ 112, 32 }) |start, size_max| {
        var stage: Stage = .{};
        try stage.open(start, 1);
        for (0..2) |index| {
            try testing.expectEqual(size_max, millrace_fanout_size_max(stage.end(index)));
        }
        try testing.expectEqual(0, millrace_fanout_size_max(stage.port(0)));
        const letters: [113]u8 = @splat('a');
        const too_large = reasonStatus(.message_size);
        try expectStatus(too_large, stage.write(letters[0 .. size_max + 1], 0));
        try stage.expectNone(1, 0);
        try expectStatus(1, stage.write(letters[0..size_max], 0));
        const read = millrace_fanout_read;
        const storage = &stage.storage;
        const message = &stage.message;
        try expectStatus(too_large, read(stage.end(1), storage, size_max - 1, 0, message));
        try testing.expectEqual(Message{}, stage.message);
        try expectStatus(1, stage.write(letters[0..size_max], 0));
        try stage.expectRead(1, letters[0..size_max], start);
        try stage.leave();
    }
}

test "c_abi: a fanout is found before anything is attached, and opened once at each place" {
    var stage: Stage = .{};
    const channels = [_]Ring{ fixture.both[0], fanoutOf(2, 0, 0), fanoutOf(2, 1, 1) };
    const place = &stage.segment_storage;
    const memory = &stage.memory;
    const create = c_segment.millrace_segment_create;
    try expectStatus(1, create(place, memory, memory.len, 3, &channels, channels.len, 0));
    const find_writer = millrace_fanout_find_writer;
    const find_reader = millrace_fanout_find_reader;
    var found: u32 = 9;
    try expectStatus(1, find_writer(place, 2, first, &found));
    try testing.expectEqual(1, found);
    try expectStatus(1, find_reader(place, 1, first, &found));
    try testing.expectEqual(2, found);
    const none = reasonStatus(.segment_channel);
    try expectStatus(none, find_writer(place, 0, first, &found));
    try expectStatus(none, find_reader(place, 1, 1, &found));
    for ([_]u32{ 0, 3 }) |channel| try expectStatus(none, find_writer(place, 2, channel, &found));
    const taken = reasonStatus(.segment_endpoint);
    try expectStatus(taken, find_writer(place, 3, first, &found));
    try expectStatus(-256, find_writer(place, 2, first, null));
    try expectStatus(-256, find_writer(memory, 2, first, &found));

    const attach = c_port.millrace_port_attach_endpoint;
    for (0..3) |index| try expectStatus(1, attach(stage.port(index), place, @intCast(index)));
    try expectStatus(taken, find_writer(place, 2, first, &found));
    const open_writer = millrace_fanout_open_writer;
    const open_reader = millrace_fanout_open_reader;
    try expectStatus(none, open_writer(stage.end(0), stage.port(0), first));
    try expectStatus(none, open_reader(stage.end(0), stage.port(2), first, 0));
    try expectStatus(none, open_reader(stage.end(0), stage.port(1), 1, 0));
    try expectStatus(-256, open_reader(stage.end(0), stage.port(0), 1, 1));
    try expectStatus(-256, open_reader(stage.end(0), place, 1, 0));
    try expectStatus(-256, millrace_fanout_leave(stage.end(0)));
    try expectStatus(1, open_reader(stage.end(0), stage.port(0), first, 0));
    try expectStatus(-256, open_reader(stage.end(0), stage.port(0), 2, 0));
    // This storage has that end already; an end of another channel may have another storage.
    try expectStatus(-256, open_reader(stage.end(1), stage.port(0), 1, 0));
    try expectStatus(1, open_reader(stage.end(1), stage.port(0), 2, 0));
    try expectStatus(1, open_writer(stage.end(2), stage.port(2), first));
    var other: Storage align(8) = @splat(0xaa);
    try expectStatus(-256, open_writer(&other, stage.port(2), 1));
    try expectStatus(1, open_writer(&other, stage.port(2), 2));

    // An end that is open keeps its port, and a writer cannot be left until the port is closed.
    for ([_]usize{ 0, 2 }) |index| {
        try expectStatus(-256, c_port.millrace_port_leave(stage.port(index)));
    }
    for (0..2) |index| try expectStatus(1, millrace_fanout_leave(stage.end(index)));
    try expectStatus(1, c_port.millrace_port_leave(stage.port(0)));
    try expectStatus(-256, millrace_fanout_leave(stage.end(2)));
    try expectStatus(1, c_port.millrace_port_close(stage.port(2)));
    try expectStatus(closed, stage.writeBy(2));
    try expectStatus(1, millrace_fanout_leave(stage.end(2)));
    try expectStatus(-256, c_port.millrace_port_leave(stage.port(2)));
    try expectStatus(1, millrace_fanout_leave(&other));
    for (1..3) |index| try expectStatus(1, c_port.millrace_port_leave(stage.port(index)));
    try expectStatus(1, c_segment.millrace_segment_leave(place));
}

test "c_abi: an end of a fanout has the calls of its own" {
    var stage: Stage = .{};
    try stage.open(0, 1);
    try expectStatus(-256, stage.writeBy(1));
    try expectStatus(-256, millrace_fanout_end(stage.end(1)));
    try expectStatus(-256, stage.read(0, 0));
    try expectStatus(-256, millrace_fanout_set_joined(stage.end(0), 0));
    const read = millrace_fanout_read;
    try expectStatus(-256, read(stage.end(1), null, 1, 0, &stage.message));
    try expectStatus(-256, read(stage.end(1), null, 0, 0, null));
    try expectStatus(-256, stage.read(1, -2));
    const write = millrace_fanout_write;
    try expectStatus(-256, write(stage.end(0), null, 1, 0, 0, 0));
    try expectStatus(-256, write(stage.end(0), "a", 1, 256, 0, 0));
    try expectStatus(-256, write(stage.end(0), "a", 1, 0, 0, -2));
    try expectStatus(-256, write(stage.port(0), "a", 1, 0, 0, 0));
    try expectStatus(1, c_port.millrace_port_set_blocking(stage.port(1), 0));
    try expectStatus(reasonStatus(.wait_forbidden), stage.read(1, 1000));
    try stage.leave();
}

test "c_abi: who breaks a fanout's words is found out, and nobody else is harmed" {
    const hold = layout.fanout_control_size;
    // The writer's cursor, which one of its readers checks.
    var stage: Stage = .{};
    try stage.open(0, 2);
    try expectStatus(1, stage.write("fine", 0));
    try stage.expectRead(2, "fine", 0);
    stage.word(layout.fanout_tail_offset).* = 8;
    for (0..2) |_| try stage.expectNone(1, reasonStatus(.ring_cursor));
    try expectStatus(reasonStatus(.pipe_failed), stage.write("more", 0));
    const reason = c_port.millrace_port_reason(stage.port(0));
    try testing.expectEqual(@backingInt(layout.Reason.ring_cursor), reason);
    try stage.leave();

    // A reader's own word, which the writer checks: it goes on with the other reader.
    stage = .{};
    try stage.open(0, 2);
    stage.word(hold).* = 0x1000 + layout.fanout_joined;
    for (0..20) |_| {
        try expectStatus(1, stage.write("on", 0));
        try stage.expectRead(2, "on", 0);
    }
    try stage.expectNone(1, reasonStatus(.pipe_failed));
    try stage.leave();

    // A number other than the next one, and an invalid header extension.
    for ([_]usize{ 24, 16 }, [_]layout.Reason{ .fanout_number, .frame_extension }) |at, code| {
        stage = .{};
        try stage.open(1, 1);
        try expectStatus(1, stage.write("first", 0));
        const object = c_segment.Object.known(&stage.segment_storage).?;
        stage.memory[object.body.get().channels[0].data_offset + at] +%= 1;
        for (0..2) |_| try stage.expectNone(1, reasonStatus(code));
        try stage.leave();
    }
}

const Wish = enum { message, end, close, room };

test "c_abi: a reader of a fanout is woken by a message and by its end, and a writer by room" {
    if (builtin.single_threaded) return error.SkipZigTest;
    // A sleeper that is not woken notices by the end of a slice, every time. On a busy machine, a
    // sleeper that is woken may do so now and then.
    for (std.enums.values(Wish)) |wish| {
        for (0..20) |_| {
            if (try lateWakes(wish) == 0) break;
        } else return error.NeverWoken;
    }
}

/// Does what a sleeper waits for. Returns how often the sleeper noticed only by the end of a slice.
fn lateWakes(wish: Wish) !u64 {
    const index: u32 = if (wish == .room) 0 else 1;
    var stage: Stage = .{};
    try stage.open(0, 1);
    try expectStatus(1, c_port.millrace_port_set_spin(stage.port(index), 0));
    if (wish == .room) while (stage.write("full", 0) == 1) {};
    const Waiter = struct {
        fn run(own: *Stage, is_writer: bool, status: *Status) void {
            status.* = if (is_writer) own.write("room", 20_000) else own.read(1, 20_000);
        }
    };
    var status: Status = undefined;
    const thread = try std.Thread.spawn(.{}, Waiter.run, .{ &stage, wish == .room, &status });
    const asked = awaitWord(stage.word(if (wish == .room)
        layout.fanout_control_size + layout.fanout_reader_writer_wants_offset
    else
        layout.fanout_readers_want_offset));
    switch (wish) {
        .message => try expectStatus(1, stage.write("wake", 0)),
        .end => try expectStatus(1, millrace_fanout_end(stage.end(0))),
        .close => try expectStatus(1, c_port.millrace_port_close(stage.port(0))),
        .room => for (0..7) |_| try expectStatus(1, stage.read(1, 0)),
    }
    thread.join();
    try testing.expect(asked);
    try expectStatus(switch (wish) {
        .message, .room => 1,
        .end => 2,
        .close => reasonStatus(.peer_closed),
    }, status);
    if (wish == .room) try stage.expectRead(1, "room", 0);
    var stats: c_port.Stats = undefined;
    try expectStatus(1, c_port.millrace_port_stats(stage.port(index), &stats));
    try stage.leave();
    return stats.late_wakes;
}

/// Waits until somebody has asked to be rung. How long that takes depends on the machine.
fn awaitWord(word: *u32) bool {
    return for (0..10_000_000) |_| {
        if (@atomicLoad(u32, word, .seq_cst) != 0) break true;
        std.Thread.yield() catch {};
    } else false;
}

test "c_abi: a fanout is made with its readers, or refused" {
    const size = c_segment.millrace_memory_size;
    const good = [_]Ring{ fanoutOf(0, 1, 0), fanoutOf(1, 0, 1), fanoutOf(2, 1, 0xffff_fff1) };
    for (good, [_]u32{ 1, 2, 2 }) |channel, reader_count| {
        const expected = 128 + 3 * 128 + 128 + 256 + 128 * reader_count + 256;
        try testing.expectEqual(expected, size(3, &channel, 1));
    }
    var bad: [8]Ring = @splat(fanoutOf(0, 1, 0));
    bad[0].writer = 3;
    bad[1].reader = 3;
    bad[2].reader = 0;
    bad[3].reader = first;
    bad[4].capacity = 384;
    bad[5].start = 2;
    bad[6].start = 17 + 8;
    bad[7].name = "fanout";
    for (bad) |channel| try testing.expectEqual(0, size(3, &channel, 1));
}
