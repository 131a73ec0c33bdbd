//! The Zig side of the static cases: attaches to an image in memory and does one operation at a
//! time. What must come of it is judged by `driver.ts`.
//!
//! A status is 0 done, 1 a message, 2 nothing yet or no room, 3 the end of the stream, 4 refused as
//! the caller's mistake, and below 0 the negated reason code.

const std = @import("std");
const millrace = @import("millrace");
const assert = std.debug.assert;

const done = 0;
const got_message = 1;
const nothing = 2;
const end_of_stream = 3;
const refused = 4;
/// Long enough to sleep once, so that what holds before a sleep is seen.
const wait_ms = 2;
const storage_size = 64 * 1024;

/// What a read has filled in, and the reason behind `peer.failed`.
const Result = extern struct {
    address: u32 = 0,
    size: u32 = 0,
    kind: u32 = 0,
    codec: u32 = 0,
    tag: u32 = 0,
    reason: u32 = 0,
};

// One case at a time.
var channels: [millrace.layout.channel_count_max]millrace.Channel = undefined;
var segment: millrace.Segment = undefined;
var endpoint: millrace.Endpoint = undefined;
var port: millrace.Port = undefined;
var reader: ?*millrace.Reader = null;
var writer: ?*millrace.Writer = null;
var own_reader: millrace.Reader = undefined;
var own_writer: millrace.Writer = undefined;
var mailbox_reader: millrace.MailboxReader = undefined;
var mailbox_writer: millrace.MailboxWriter = undefined;
var role: enum { pipe, port, mailbox_reader, mailbox_writer } = .pipe;
var finished = false;
var limit: u32 = 0;
var storage: [storage_size]u8 align(16) = undefined;
var inbox: [4096]u8 align(16) = undefined;
var result: Result = .{};
var batch: millrace.codec.Batch = undefined;

extern const __heap_base: u8;

/// The first address above this module's stack and variables.
export fn heap_base() usize {
    return @intFromPtr(&__heap_base);
}

/// Where a read leaves what it found.
export fn result_address() usize {
    return @intFromPtr(&result);
}

/// Makes a segment of channels of five words each: writer, reader, capacity, label, start.
export fn create(
    address: usize,
    size: usize,
    endpoint_count: u32,
    words: [*]const [5]u32,
    channel_count: u32,
    sole_owner: bool,
) i32 {
    for (words[0..channel_count], channels[0..channel_count]) |from, *to| to.* = .{
        .writer = from[0],
        .reader = from[1],
        .data_size = from[2],
        .label = from[3],
        .start = from[4],
    };
    const geometry: millrace.Geometry = .{
        .endpoint_count = endpoint_count,
        .channels = channels[0..channel_count],
    };
    if (sole_owner) {
        millrace.Segment.format(memoryAt(address, size), geometry) catch |err| return codeOf(err);
        return done;
    }
    var found: [16]millrace.Channel = undefined;
    _ = millrace.Segment.create(memoryAt(address, size), geometry, &found, .none) catch |err|
        return codeOf(err);
    return done;
}

/// Makes all checks of a segment, and takes no endpoint of it.
export fn attach(address: usize, size: usize) i32 {
    reader = null;
    writer = null;
    role = .pipe;
    finished = false;
    segment = millrace.Segment.attach(memoryAt(address, size), &channels, .none) catch |err|
        return codeOf(err);
    return done;
}

/// Takes an endpoint of the segment that was attached, and the ring that it reads: that of a
/// channel, or, below 0, the first.
export fn open_reader(index: u32, named: i32, message_limit: u32, calls: bool) i32 {
    const channel = millrace.Reader.find(&segment, index, channelOf(named)) catch |err|
        return codeOf(err);
    endpoint = millrace.Endpoint.attach(&segment, index, .{ .spin_us = 0 }) catch |err|
        return codeOf(err);
    own_reader = millrace.Reader.init(&endpoint, &segment, channel) catch |err| return codeOf(err);
    own_reader.calls = calls;
    reader = &own_reader;
    limit = message_limit;
    return done;
}

/// Takes an endpoint, and the ring that it writes.
export fn open_writer(index: u32, named: i32) i32 {
    const channel = millrace.Writer.find(&segment, index, channelOf(named)) catch |err|
        return codeOf(err);
    endpoint = millrace.Endpoint.attach(&segment, index, .{ .spin_us = 0 }) catch |err|
        return codeOf(err);
    own_writer = millrace.Writer.init(&endpoint, &segment, channel) catch |err| return codeOf(err);
    writer = &own_writer;
    return done;
}

fn channelOf(named: i32) ?u32 {
    return if (named < 0) null else @intCast(named);
}

/// Takes an endpoint as a port.
export fn open_port(index: u32, message_limit: u32, calls: bool) i32 {
    const options: millrace.Port.Options = .{
        .endpoint = .{ .spin_us = 0 },
        .inbox = &inbox,
        .calls = calls,
    };
    port.init(&segment, index, options) catch |err| return codeOf(err);
    role = .port;
    reader = &port.reader;
    writer = &port.writer;
    limit = message_limit;
    return done;
}

/// Takes the reading side of a mailbox.
export fn open_mailbox_reader(address: usize, size: usize, payload_limit: u32) i32 {
    const bytes: [*]u8 = @ptrFromInt(address);
    mailbox_reader = millrace.MailboxReader.init(bytes[0..size], .{ .spin_us = 0 }) catch |err|
        return codeOf(err);
    role = .mailbox_reader;
    limit = payload_limit;
    return done;
}

/// Takes the writing side of a mailbox.
export fn open_mailbox_writer(address: usize, size: usize) i32 {
    const bytes: [*]u8 = @ptrFromInt(address);
    mailbox_writer = millrace.MailboxWriter.init(bytes[0..size], .{ .spin_us = 0 }) catch |err|
        return codeOf(err);
    role = .mailbox_writer;
    return done;
}

/// Reads one message, and sleeps once when there is none.
export fn read() i32 {
    assert(limit <= storage_size);
    const target = storage[0..limit];
    const timeout: millrace.Timeout = .ms(wait_ms);
    if (role == .mailbox_reader) return readMailbox(target, timeout);
    const outcome = if (role == .port)
        port.read(target, timeout)
    else
        reader.?.read(target, timeout);
    const message = (outcome catch |err| return codeOf(err)) orelse return noMessage();
    result = .{
        .address = @intFromPtr(message.payload.ptr),
        .size = message.payload.len,
        .kind = @backingInt(message.kind),
        .codec = @backingInt(message.codec),
        .tag = message.tag,
    };
    return got_message;
}

/// Borrows the next frame where it lies, without waiting.
export fn peek() i32 {
    const outcome = if (role == .port) port.peek(.none) else reader.?.peek(.none);
    const lent = (outcome catch |err| return codeOf(err)) orelse return noMessage();
    result = .{
        .address = @intFromPtr(lent.payload.ptr),
        .size = lent.payload.len,
        .kind = @backingInt(lent.kind),
        .codec = @backingInt(lent.codec),
        .tag = lent.tag,
    };
    return got_message;
}

/// Gives back what was borrowed.
export fn release() i32 {
    if (role == .port) port.release() else reader.?.release();
    return done;
}

fn noMessage() i32 {
    return if (reader.?.ended()) end_of_stream else nothing;
}

/// Writes one message, without waiting or for a few milliseconds.
export fn write(
    payload: [*]const u8,
    size: usize,
    kind: u32,
    codec: u32,
    tag: u32,
    may_wait: bool,
) i32 {
    if (role == .mailbox_writer) return writeMailbox(payload[0..size]);
    const envelope = envelopeOf(kind, codec, tag);
    // Asserted by the writer, whose caller asks for the limits first.
    const is_batch = envelope.codec == .json_batch;
    if (is_batch and size > writer.?.frameSizeMax()) return refused;
    if (!may_wait and size > writer.?.trySizeMax()) return refused;
    if (may_wait) {
        const timeout: millrace.Timeout = .ms(wait_ms);
        const outcome = if (role == .port)
            port.write(payload[0..size], envelope, timeout)
        else
            writer.?.write(payload[0..size], envelope, timeout);
        outcome catch |err| return codeOf(err);
        return done;
    }
    const placed = writer.?.tryWrite(payload[0..size], envelope) catch |err| return codeOf(err);
    return if (placed) done else nothing;
}

/// Goes on with the payload that timed out, which must be passed again.
export fn resume_mailbox(payload: [*]const u8, size: usize) i32 {
    if (!mailbox_writer.partial()) return done;
    return writeMailbox(payload[0..size]);
}

/// Claims `claimed` bytes, fills `size` of them, and finishes the message or gives it up.
export fn claim(
    payload: [*]const u8,
    size: usize,
    claimed: u32,
    codec: u32,
    tag: u32,
    give_up: bool,
) i32 {
    const place = writer.?.claim(claimed, .none) catch |err|
        return if (err == error.Timeout) nothing else codeOf(err);
    @memcpy(place[0..size], payload[0..size]);
    if (give_up) {
        writer.?.abandon();
    } else {
        writer.?.finish(@intCast(size), envelopeOf(1, codec, tag));
        finished = true;
    }
    return done;
}

/// Publishes what was finished, if anything was.
export fn publish() i32 {
    if (finished) writer.?.publish();
    finished = false;
    return done;
}

export fn end() i32 {
    writer.?.end() catch |err| return codeOf(err);
    return done;
}

export fn close() void {
    switch (role) {
        .pipe => if (reader != null or writer != null) endpoint.close(),
        .port => port.close(),
        .mailbox_reader => mailbox_reader.close(),
        .mailbox_writer => mailbox_writer.close(),
    }
}

/// 0, or the negated `message.text`.
export fn check_text(payload: [*]const u8, size: usize) i32 {
    millrace.codec.checkText(payload[0..size]) catch |err| return codeOf(err);
    return done;
}

/// Begins to cut a batch into its elements.
export fn batch_begin(payload: [*]const u8, size: usize) void {
    batch = .init(payload[0..size]);
}

/// Leaves the place of the next element in `result`.
export fn batch_next() i32 {
    const element = (batch.next() catch |err| return codeOf(err)) orelse return nothing;
    result.address = @intFromPtr(element.ptr);
    result.size = element.len;
    return got_message;
}

fn readMailbox(target: []u8, timeout: millrace.Timeout) i32 {
    const payload = (mailbox_reader.read(target, timeout) catch |err| return codeOf(err)) orelse
        return nothing;
    result = .{
        .address = @intFromPtr(payload.ptr),
        .size = payload.len,
        .kind = 1,
        .codec = @backingInt(millrace.Codec.json_batch),
    };
    return got_message;
}

fn writeMailbox(payload: []const u8) i32 {
    mailbox_writer.write(payload, .ms(wait_ms)) catch |err| return codeOf(err);
    return done;
}

fn memoryAt(address: usize, size: usize) millrace.Memory {
    const bytes: [*]align(millrace.layout.segment_align) u8 = @ptrFromInt(address);
    return bytes[0..size];
}

fn envelopeOf(kind: u32, codec: u32, tag: u32) millrace.Envelope {
    return .{ .kind = @fromBackingInt(kind), .codec = @fromBackingInt(codec), .tag = tag };
}

/// The fault behind `error.Corrupt`, otherwise the error's own code.
fn codeOf(err: anyerror) i32 {
    const own = millrace.reasonOf(err);
    var behind: ?millrace.Reason = null;
    switch (role) {
        .pipe, .port => {
            if (reader) |it| behind = it.reason();
            if (behind == null) if (writer) |it| {
                behind = it.reason();
            };
        },
        .mailbox_reader => behind = mailbox_reader.reason(),
        .mailbox_writer => behind = mailbox_writer.reason(),
    }
    result.reason = if (behind) |reason| @backingInt(reason) else 0;
    const reason = own orelse behind orelse unreachable;
    return -@as(i32, @intCast(@backingInt(reason)));
}
