//! Streams for tests on one thread: an endpoint whose transport moves the bytes that the test says,
//! and two endpoints with wires between them that cut where the test says.

const std = @import("std");
const millrace = @import("../root.zig");
const frame = @import("../ring/frame.zig");
const stream_outlet = @import("outlet.zig");
const layout = millrace.layout;
const Stream = millrace.Stream;
const Transport = millrace.Transport;

pub const small: Stream.Options = .{ .largest = 128, .window = 256, .queue = 512 };

/// One direction: the bytes that were written and not read yet.
pub const Wire = struct {
    bytes: [wire_size]u8 = undefined,
    size: usize = 0,
    /// The most bytes that it holds.
    capacity: usize = wire_size,
    /// The most bytes that one call moves.
    cut: usize = wire_size,
    ended: bool = false,
    /// Whether its reader is gone.
    broken: bool = false,

    pub const wire_size = 64 * 1024;

    pub fn put(wire: *Wire, bytes: []const u8) usize {
        const size = @min(bytes.len, wire.capacity -| wire.size);
        @memcpy(wire.bytes[wire.size..][0..size], bytes[0..size]);
        wire.size += size;
        return size;
    }

    pub fn putAll(wire: *Wire, bytes: []const u8) void {
        std.debug.assert(wire.put(bytes) == bytes.len);
    }

    pub fn take(wire: *Wire, target: []u8) usize {
        const size = @min(target.len, wire.size);
        @memcpy(target[0..size], wire.bytes[0..size]);
        wire.size -= size;
        @memmove(wire.bytes[0..wire.size], wire.bytes[size..][0..wire.size]);
        return size;
    }

    pub fn held(wire: *const Wire) []const u8 {
        return wire.bytes[0..wire.size];
    }
};

/// One side of a stream. Must not move after it was opened.
pub const Side = struct {
    memory: [64 * 1024]u8 align(layout.segment_align) = undefined,
    stream: Stream = undefined,
    input: *Wire,
    output: *Wire,
    /// Whether the transport was given up.
    closed: bool = false,
    /// How many bytes had gone out when a call began to wait for the transport.
    sent_before_wait: ?usize = null,
    wait_count: u32 = 0,

    const wait_count_max = 10_000;

    pub fn open(side: *Side, input: *Wire, output: *Wire, options: Stream.Options) !void {
        // The area may have held any bytes before.
        @memset(&side.memory, 0xa5);
        side.input = input;
        side.output = output;
        side.closed = false;
        side.sent_before_wait = null;
        side.wait_count = 0;
        const size = try Stream.memorySize(options);
        try side.stream.open(side.memory[0..size], side.transport(), options);
    }

    pub fn transport(side: *Side) Transport {
        return .{ .context = side, .functions = &.{
            .write = write,
            .read = read,
            .end = end,
            .wait = wait,
            .close = close,
        } };
    }

    fn of(context: *anyopaque) *Side {
        return @ptrCast(@alignCast(context));
    }

    fn write(context: *anyopaque, pieces: []const []const u8) error{Broken}!usize {
        const wire = of(context).output;
        if (wire.broken) return error.Broken;
        std.debug.assert(!wire.ended);
        var total: usize = 0;
        for (pieces) |piece| {
            std.debug.assert(piece.len > 0);
            const most = piece[0..@min(piece.len, wire.cut - total)];
            const size = wire.put(most);
            total += size;
            if (size < piece.len) break;
        }
        return total;
    }

    fn read(context: *anyopaque, target: []u8) error{Broken}!?usize {
        const wire = of(context).input;
        if (wire.size == 0 and wire.ended) return null;
        if (wire.broken) return error.Broken;
        return wire.take(target[0..@min(target.len, wire.cut)]);
    }

    fn end(context: *anyopaque) void {
        of(context).output.ended = true;
    }

    fn wait(context: *anyopaque, wish: Transport.Wish, limit_ns: u64) void {
        _ = wish;
        const side = of(context);
        side.wait_count += 1;
        if (side.wait_count > wait_count_max) @panic("a call waits for ever");
        side.sent_before_wait = side.sent_before_wait orelse side.output.size;
        clock_ns += limit_ns;
    }

    fn close(context: *anyopaque) void {
        of(context).closed = true;
    }
};

var clock_ns: u64 = 0;

/// A machine whose clock moves on with each wait.
pub const clockwork: millrace.Host = .{
    .wakes = 0,
    .mechanism = 0,
    .now = now,
    .sleep = millrace.host.polling.sleep,
    .notify = millrace.host.polling.notify,
    .pause = millrace.host.polling.pause,
    .processor_count = millrace.host.polling.processor_count,
};

pub fn now() u64 {
    return clock_ns;
}

/// Returns a frame in the form of the byte stream.
pub fn frameOf(storage: []u8, header: frame.Header, payload: []const u8) []const u8 {
    const extent = 16 + std.mem.alignForward(usize, payload.len, 16);
    var first: [16]u8 align(16) = undefined;
    header.store(&first);
    @memset(storage[0..extent], 0);
    storage[0..16].* = first;
    @memcpy(storage[16..][0..payload.len], payload);
    return storage[0..extent];
}

pub fn prefaceOf(largest: u32, window: u32) [32]u8 {
    return std.mem.toBytes(stream_outlet.Preface.of(.{ .largest = largest, .window = window }));
}

/// Returns a whole message of data.
pub fn message(storage: []u8, payload: []const u8, tag: u32) []const u8 {
    const header: frame.Header = .{
        .size = @intCast(payload.len),
        .kind = layout.frame_kind_data,
        .flags = layout.frame_flag_first | layout.frame_flag_last,
        .tag = tag,
    };
    return frameOf(storage, header, payload);
}

/// Returns a frame without a payload.
pub fn control(storage: []u8, kind: u8, tag: u32) []const u8 {
    return frameOf(storage, .{ .size = 0, .kind = kind, .tag = tag }, &.{});
}

/// Returns the `fail` that tells a peer of its fault.
pub fn failOf(storage: []u8, reason: millrace.Reason) []const u8 {
    return control(storage, layout.stream_kind_fail, @backingInt(reason));
}

/// An endpoint, and the wires whose other ends the test has.
pub const Bench = struct {
    input: Wire = .{},
    output: Wire = .{},
    side: Side = undefined,

    pub fn open(bench: *Bench, options: Stream.Options) !*millrace.Port {
        bench.* = .{};
        var own = options;
        own.port.endpoint.host = &clockwork;
        try bench.side.open(&bench.input, &bench.output, own);
        return &bench.side.stream.port;
    }

    /// Delivers the preface of a peer, and these bytes.
    pub fn bring(bench: *Bench, largest: u32, window: u32, bytes: []const []const u8) void {
        bench.input.putAll(&prefaceOf(largest, window));
        for (bytes) |each| bench.input.putAll(each);
        bench.side.stream.pump();
    }

    /// Asserts what was sent since the last call.
    pub fn expectSent(bench: *Bench, parts: []const []const u8) !void {
        var bytes: [Wire.wire_size]u8 = undefined;
        var size: usize = 0;
        for (parts) |part| {
            @memcpy(bytes[size..][0..part.len], part);
            size += part.len;
        }
        bench.side.stream.pump();
        try std.testing.expectEqualSlices(u8, bytes[0..size], bench.output.held());
        bench.output.size = 0;
    }
};
