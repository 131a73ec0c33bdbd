//! A port over two ordered byte streams, such as those of a socket or of a pair of pipes
//! [spec/stream.md].
//!
//! Invariant: the port works as over shared memory, on a segment that nobody else sees. The link
//! has the other side of that segment, and the calls of the port drive the link.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const segment_file = @import("../memory/segment.zig");
const stream_outlet = @import("outlet.zig");
const stream_link = @import("link.zig");
const assert = std.debug.assert;
const Channel = segment_file.Channel;
const Deadline = host_file.Deadline;
const StreamLink = stream_link.StreamLink;
const Memory = segment_file.Memory;
const Port = @import("../port/port.zig").Port;
const Rings = @import("../port/port.zig").Rings;
const Segment = segment_file.Segment;
const Sizes = stream_outlet.Sizes;
const Timeout = host_file.Timeout;
const Transport = @import("transport.zig").Transport;

/// The most bytes that one read of the transport takes.
const piece_size_max = 64 * 1024;

/// One side of a stream: `port`, and the link that carries its messages.
///
/// It has no thread of its own: the calls of the port do the work. While a thread makes no call, it
/// takes nothing in, and its peer waits; what it has written before is on its way, as far as the
/// transport took it. A call with a timeout goes on until the transport has taken what it wrote. A
/// caller that never waits (`.none`) has to call again while bytes may be left on either side;
/// `pump` is enough for that.
///
/// It holds pointers into itself: it must not move after it was opened.
///
/// Thread safety: belongs to one thread, except for `port.close`.
pub const Stream = struct {
    port: Port,
    link: StreamLink,

    /// Options of a stream.
    pub const Options = struct {
        /// The largest frame that the peer may write, in bytes: a multiple of 16, at least 128. A
        /// message may be larger than that, and larger than the window.
        largest: u32 = 16 * 1024,
        /// Bytes of frames that the peer may write beyond what was read: a multiple of 16, at least
        /// `largest`. A transport with a long delay needs as much as it carries in one round trip.
        window: u32 = 64 * 1024,
        /// The size in bytes of the ring that holds written messages: a power of two, at least 512.
        /// A frame takes at most half of it.
        queue: u32 = 64 * 1024,
        /// The options of the port.
        port: Port.Options = .{},

        fn sizes(options: Options) Sizes {
            return .{ .largest = options.largest, .window = options.window };
        }

        /// Whether a stream can have these options.
        pub fn valid(options: Options) bool {
            if (!options.sizes().valid() or options.window > window_max) return false;
            return options.queue >= queue_min and segment_file.capacityValid(options.queue);
        }

        fn rings(options: Options) Rings {
            return .{
                .capacities = .{ options.queue, StreamLink.capacityFor(options.sizes()) },
                .starts = .{ layout.stream_start, layout.stream_start },
            };
        }

        fn pieceSize(options: Options) u32 {
            const rounded = std.mem.alignForward(u32, options.window, layout.segment_align);
            return @min(piece_size_max, rounded);
        }
    };

    /// Half of it can hold one frame, and all of it can hold the frames of a message of half its
    /// size.
    const queue_min = 512;
    /// The ring for a window has at most twice as many bytes and the reserve, rounded up to a power
    /// of two.
    pub const window_max = layout.ring_capacity_max / 4;

    /// Returns how many bytes of memory such a stream needs.
    ///
    /// Asserts that the options are valid.
    pub fn memorySize(options: Options) error{SegmentSize}!usize {
        assert(options.valid());
        return @as(usize, try options.rings().segmentSize()) + options.pieceSize();
    }

    /// Begins a stream over a transport, and writes its preface. Never waits. The memory is
    /// private; both it and the transport must outlive the stream. Fails with `error.SegmentSize`
    /// if the memory is smaller than `memorySize` says.
    ///
    /// Asserts that the options are valid.
    pub fn open(
        stream: *Stream,
        memory: Memory,
        transport: Transport,
        options: Options,
    ) error{SegmentSize}!void {
        return openParts(&stream.port, &stream.link, memory, transport, options);
    }

    /// Waits until the peer's preface has arrived, which says how large a frame the peer accepts.
    /// Calling it is not necessary, because a write waits for the preface too. Returns false if the
    /// deadline passes or the stream ends before; the next call of the port says why.
    pub fn awaitReady(stream: *Stream, timeout: Timeout) bool {
        var deadline: Deadline = .init(timeout);
        return stream.link.awaitReady(&deadline);
    }

    /// Takes in what has arrived, and passes to the transport what it takes. Never waits.
    pub fn pump(stream: *Stream) void {
        stream.link.base.pump();
    }

    /// Returns what an event loop must wait for before it calls `pump` again: bytes to read, and
    /// room to write if something is left to be written.
    pub fn wish(stream: *const Stream) Transport.Wish {
        return stream.link.wish();
    }

    /// Closes the port if it is still open. Goes on until the transport has taken everything and
    /// the peer has ended its byte stream, or 2 s have passed [stream.linger]. Returns false if the
    /// timeout ends before that: then call it again.
    pub fn finish(stream: *Stream, timeout: Timeout) bool {
        stream.port.close();
        var deadline: Deadline = .init(timeout);
        return stream.link.finish(&deadline);
    }

    /// Closes the port, calls `finish`, which takes at most 2 s, and gives up the transport. The
    /// port may still be called, and reports that it is closed.
    pub fn deinit(stream: *Stream) void {
        const finished = stream.finish(.forever);
        assert(finished);
        stream.link.giveUp();
    }
};

/// `Stream.open` for a caller that keeps port and link apart. Neither of them may move.
pub fn openParts(
    port: *Port,
    link: *StreamLink,
    memory: Memory,
    transport: Transport,
    options: Stream.Options,
) error{SegmentSize}!void {
    assert(options.valid());
    const rings = options.rings();
    const segment_size = try rings.segmentSize();
    const piece_size = options.pieceSize();
    if (memory.len < @as(usize, segment_size) + piece_size) return error.SegmentSize;
    const own: Memory = memory[0..segment_size];
    try Port.format(own, rings);
    var storage: [2]Channel = undefined;
    // It was written just now, and nobody else sees it.
    const segment = Segment.attach(own, &storage, .none) catch unreachable;
    port.init(&segment, 0, options.port) catch unreachable;
    const piece = memory[segment_size..][0..piece_size];
    link.init(&port.endpoint, &segment, transport, options.sizes(), piece);
    port.writer.ring.limit = 0; // from now on, the link is asked
}

test {
    _ = @import("link.zig");
    _ = @import("transport.zig");
    _ = @import("../testing/stream_cut_test.zig");
}

// Tests.
//
// Streams whose transport the test controls: what is sent, what arriving bytes lead to, and how a
// stream ends. Nothing here waits in real time.

const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Bench = fixture.Bench;
const Side = fixture.Side;
const Wire = fixture.Wire;

const own_preface = fixture.prefaceOf(128, 256);
const Wish = millrace.Transport.Wish;

test "Stream: the preface goes out at once, and a message is read as it was sent" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    try bench.expectSent(&.{&own_preface});
    var place: [64]u8 = undefined;
    bench.bring(4096, 16_384, &.{fixture.message(&place, "hi", 5)});
    var storage: [256]u8 = undefined;
    const message = (try port.tryRead(&storage)).?;
    try testing.expectEqualStrings("hi", message.payload);
    try testing.expectEqual(5, message.tag);
    try testing.expectEqual(null, try port.tryRead(&storage));
}

test "Stream: memory is refused that is too small" {
    var side: Side = undefined;
    const size = try Stream.memorySize(fixture.small);
    const transport = side.transport();
    const refused = side.stream.open(side.memory[0 .. size - 1], transport, fixture.small);
    try testing.expectError(error.SegmentSize, refused);
}

test "Stream: what a side sends is, to the byte, the example of the chapter" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 4096, .window = 16_384, .queue = 512 });
    bench.bring(128, 256, &.{});
    try port.write("hi", .{ .codec = .text, .tag = 5 }, .ms(1));
    try port.end();
    port.close();
    // At once, and not only with the next call.
    try testing.expect(bench.output.ended);
    try bench.expectSent(&.{&.{
        0x4d, 0x49, 0x4c, 0x4c, 0xff, 0x0d, 0x0a, 0x0a, 1, 0, 0, 0, 0, 0x10, 0, 0,
        0,    0x40, 0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0,    0, 0,
        2,    0,    0,    0,    1,    3,    1,    0,    5, 0, 0, 0, 0, 0,    0, 0,
        0x68, 0x69, 0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0,    0, 0,
        0,    0,    0,    0,    2,    0,    0,    0,    0, 0, 0, 0, 0, 0,    0, 0,
        0,    0,    0,    0,    0x11, 0,    0,    0,    0, 0, 0, 0, 0, 0,    0, 0,
    }});
    try testing.expect(bench.output.ended);
    try testing.expectError(error.PipeClosed, port.tryWrite("hi", .{}));
}

test "Stream: the fill of a frame is 0, whatever its ring held before" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    bench.bring(4096, 16_384, &.{});
    try bench.expectSent(&.{&own_preface});
    var place: [64]u8 = undefined;
    // The ring of 512 bytes wraps around several times; no byte of a message is 0.
    for (0..40) |_| {
        try testing.expect(try port.tryWrite(&@as([17]u8, @splat(0xff)), .{ .tag = 7 }));
        try bench.expectSent(&.{fixture.message(&place, &@as([17]u8, @splat(0xff)), 7)});
    }
}

test "Stream: before the preface of the peer nothing is written but the own one" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    try testing.expect(!bench.side.stream.awaitReady(.none));
    try testing.expect(!try port.tryWrite("hi", .{}));
    // One message that no frame can hold before the preface has arrived, and one afterwards.
    const large: [200]u8 = @splat(1);
    try testing.expect(!try port.tryWrite(&large, .{}));
    try testing.expectError(error.Timeout, port.write(&large, .{}, .ms(30)));
    bench.bring(4096, 16_384, &.{});
    try testing.expect(bench.side.stream.awaitReady(.none));
    try testing.expectEqual(240, port.writer.frameSizeMax());
    try testing.expect(try port.tryWrite(&large, .{}));
    var place: [256]u8 = undefined;
    try bench.expectSent(&.{ &own_preface, fixture.message(&place, &large, 0) });
}

test "Stream: a message that was begun in small frames goes on when the peer takes it whole" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 128, .window = 256, .queue = 1024 });
    // The preface arrives with the first look, while a frame is placed that every peer accepts.
    // Credit for the rest of the message arrives much later, when the call waits for it.
    bench.input.cut = layout.stream_preface_size;
    bench.input.putAll(&fixture.prefaceOf(512, 512));
    var place: [16]u8 = undefined;
    const nothing = fixture.control(&place, layout.stream_kind_credit, layout.stream_start);
    for (0..20) |_| bench.input.putAll(nothing);
    bench.input.putAll(fixture.control(&place, layout.stream_kind_credit, 0));
    const payload: [490]u8 = @splat(5);
    try port.write(&payload, .{}, .ms(1_000));
    try testing.expectEqual(496, port.writer.frameSizeMax());
    // The preface, and frames of 112, 112 up to the end of the ring, 240, and the rest.
    try testing.expectEqual(32 + 128 + 128 + 256 + 64, bench.output.size);
}

test "Stream: a writer keeps to the credit, and goes on when there is more" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    bench.bring(128, 256, &.{});
    const half: [112]u8 = @splat(1);
    var place: [128]u8 = undefined;
    const sent = fixture.message(&place, &half, 0);
    try testing.expect(try port.tryWrite(&half, .{}));
    try testing.expect(try port.tryWrite(&half, .{}));
    try testing.expect(!try port.tryWrite(&.{}, .{}));
    const before_ns = fixture.now();
    try testing.expectError(error.Timeout, port.write(&half, .{}, .ms(50)));
    try testing.expect(fixture.now() - before_ns >= 50_000_000);
    try bench.expectSent(&.{ &own_preface, sent, sent });
    // 16 bytes are given back: enough for an empty message, and for no other.
    bench.input.putAll(fixture.control(&place, layout.stream_kind_credit, 0xffff_ff10));
    try testing.expect(!try port.tryWrite("x", .{}));
    try testing.expect(try port.tryWrite(&.{}, .{}));
    try bench.expectSent(&.{fixture.message(&place, &.{}, 0)});
    bench.input.putAll(fixture.control(&place, layout.stream_kind_credit, 0x10));
    try port.write(&half, .{}, .ms(50));
    try bench.expectSent(&.{fixture.message(&place, &half, 0)});
}

test "Stream: `end` takes no credit, and a credit for it is one too many" {
    for ([_]u32{ 0, 16 }) |more| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.bring(128, 256, &.{});
        const half: [112]u8 = @splat(1);
        for (0..2) |_| try testing.expect(try port.tryWrite(&half, .{}));
        try port.end();
        var places: [3][128]u8 = undefined;
        const message = fixture.message(&places[0], &half, 0);
        const end = fixture.control(&places[1], layout.frame_kind_end, 0);
        try bench.expectSent(&.{ &own_preface, message, message, end });
        bench.input.putAll(fixture.control(&places[2], layout.stream_kind_credit, more));
        var storage: [16]u8 = undefined;
        const found = port.tryRead(&storage);
        if (more == 0) {
            try testing.expectEqual(null, try found);
        } else {
            try testing.expectError(error.PeerFailed, found);
            try testing.expectEqual(.stream_credit, port.reason());
        }
    }
}

test "Stream: a message of many frames is accepted at once, and goes out as there is credit" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 128, .window = 256, .queue = 1024 });
    bench.bring(128, 128, &.{});
    try testing.expectEqual(496, port.writer.trySizeMax());
    const many: [496]u8 = @splat(3);
    try testing.expect(try port.tryWrite(&many, .{}));
    // The next message has no credit.
    try testing.expect(!try port.tryWrite(&.{}, .{}));
    var preface: [32]u8 = undefined;
    _ = bench.output.take(&preface);
    try testing.expectEqualSlices(u8, &own_preface, &preface);
    var position: u32 = layout.stream_start;
    var place: [16]u8 = undefined;
    var payload_size: usize = 0;
    while (payload_size < many.len + 16) {
        const held = bench.output.held();
        const size = std.mem.readInt(u32, held[0..4], .little);
        const extent = 16 + std.mem.alignForward(u32, size, 16);
        // At most one frame at a time, because the window holds no second one.
        try testing.expectEqual(extent, held.len);
        try testing.expect(extent <= 128);
        payload_size += size;
        position +%= extent;
        bench.output.size = 0;
        bench.input.putAll(fixture.control(&place, layout.stream_kind_credit, position));
        bench.side.stream.pump();
    }
    try testing.expectEqual(many.len + 16, payload_size);
    try testing.expect(try port.tryWrite(&.{}, .{}));
}

test "Stream: a reader tells what it has given back when it has to, and one credit for all" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var storage: [128]u8 = undefined;
    var place: [128]u8 = undefined;
    const half: [112]u8 = @splat(1);
    bench.bring(128, 256, &.{fixture.message(&place, &half, 0)});
    _ = (try port.tryRead(&storage)).?;
    // The window less the largest frame is not exceeded.
    try bench.expectSent(&.{&own_preface});
    bench.input.putAll(fixture.message(&place, &half, 0));
    // It has arrived, and nobody has read it.
    try bench.expectSent(&.{});
    bench.output.capacity = 0;
    _ = (try port.tryRead(&storage)).?;
    try testing.expectEqual(null, try port.tryRead(&storage));
    bench.input.putAll(fixture.message(&place, &.{}, 0));
    _ = (try port.tryRead(&storage)).?;
    try testing.expectEqual(null, try port.tryRead(&storage));
    bench.output.capacity = Wire.wire_size;
    try bench.expectSent(&.{fixture.control(&place, layout.stream_kind_credit, 0x10)});
}

test "Stream: a reader that takes one message at a time tells of it as soon as it has to" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 128, .window = 1024, .queue = 512 });
    var storage: [128]u8 = undefined;
    var place: [128]u8 = undefined;
    bench.bring(128, 256, &.{});
    // As many as the window takes; the queue of the port has room for more.
    const payload: [48]u8 = @splat(1);
    for (0..16) |_| bench.input.putAll(fixture.message(&place, &payload, 0));
    bench.side.stream.pump();
    bench.output.size = 0;
    // A credit is due beyond 1,024 less 128 bytes: with the 15th message.
    for (0..15) |_| {
        try bench.expectSent(&.{});
        _ = (try port.tryRead(&storage)).?;
    }
    const told = @as(u32, layout.stream_start) +% 15 * 64;
    try bench.expectSent(&.{fixture.control(&place, layout.stream_kind_credit, told)});
}

test "Stream: a credit goes out though an own message waits for credit" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var places: [3][128]u8 = undefined;
    const half: [112]u8 = @splat(1);
    const message = fixture.message(&places[0], &half, 0);
    bench.bring(128, 128, &.{ fixture.message(&places[1], &.{}, 0), message });
    try testing.expect(try port.tryWrite(&@as([200]u8, @splat(2)), .{}));
    bench.side.stream.pump();
    bench.output.size = 0;
    var storage: [128]u8 = undefined;
    for (0..2) |_| _ = (try port.tryRead(&storage)).?;
    try testing.expectEqual(null, try port.tryRead(&storage));
    try bench.expectSent(&.{fixture.control(&places[2], layout.stream_kind_credit, 0xffff_ff90)});
    bench.input.putAll(fixture.control(&places[2], layout.stream_kind_close, 0));
    try testing.expectError(error.PeerClosed, port.tryRead(&storage));
}

test "Stream: what was given back is told before a call waits" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 128, .window = 128, .queue = 512 });
    var storage: [128]u8 = undefined;
    var place: [128]u8 = undefined;
    bench.input.putAll(&fixture.prefaceOf(128, 256));
    bench.side.stream.pump();
    bench.output.size = 0;
    // The first frame of a message, which fills the window.
    var payload: [112]u8 = @splat(0);
    payload[0] = 120;
    bench.input.putAll(fixture.frameOf(&place, .{ .size = 112, .kind = 1, .flags = 1 }, &payload));
    try testing.expectEqual(null, try port.read(&storage, .ms(5)));
    try testing.expectEqual(16, bench.side.sent_before_wait);
}

test "Stream: a credit goes between the frames, after the one that was taken in part" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var storage: [128]u8 = undefined;
    var places: [3][128]u8 = undefined;
    const half: [112]u8 = @splat(1);
    const message = fixture.message(&places[0], &half, 0);
    bench.bring(128, 256, &.{});
    try bench.expectSent(&.{&own_preface});
    bench.output.capacity = 50;
    try testing.expect(try port.tryWrite(&half, .{}));
    try testing.expect(try port.tryWrite(&half, .{}));
    bench.input.putAll(message);
    bench.input.putAll(message);
    for (0..2) |_| _ = (try port.tryRead(&storage)).?;
    try testing.expectEqual(null, try port.tryRead(&storage));
    bench.output.capacity = Wire.wire_size;
    const credit = fixture.control(&places[1], layout.stream_kind_credit, 0);
    try bench.expectSent(&.{ message, credit, message });
}

test "Stream: every wait ends at its deadline" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var storage: [64]u8 = undefined;
    for ([_]u32{ 0, 1, 19, 20, 21, 500 }) |ms| {
        const before_ns = fixture.now();
        try testing.expectEqual(null, try port.read(&storage, .ms(ms)));
        try testing.expectEqual(null, try port.peek(.ms(ms)));
        if (ms > 0) try testing.expectError(error.Timeout, port.write("hi", .{}, .ms(ms)));
        try testing.expect(!bench.side.stream.awaitReady(.ms(ms)));
        const count: u64 = if (ms > 0) 4 else 0;
        try testing.expectEqual(count * ms * 1_000_000, fixture.now() - before_ns);
    }
    // A message that arrives in pieces and never ends.
    bench.bring(128, 256, &.{});
    var place: [64]u8 = undefined;
    bench.input.putAll(fixture.message(&place, "hi", 5)[0..31]);
    const before_ns = fixture.now();
    try testing.expectEqual(null, try port.read(&storage, .ms(70)));
    try testing.expectEqual(70_000_000, fixture.now() - before_ns);
    try testing.expect(!port.reader.partial());
    bench.input.putAll(&.{0});
    try testing.expectEqualStrings("hi", (try port.read(&storage, .ms(70))).?.payload);
}

test "Stream: a wait is refused where the thread must not block" {
    var bench: Bench = undefined;
    var options = fixture.small;
    options.port.endpoint.blocking = false;
    const port = try bench.open(options);
    var storage: [64]u8 = undefined;
    try testing.expectError(error.WaitForbidden, port.read(&storage, .ms(5)));
    try testing.expectError(error.WaitForbidden, port.write("hi", .{}, .ms(5)));
    try testing.expect(!bench.side.stream.awaitReady(.ms(5)));
    try testing.expectEqual(null, bench.side.sent_before_wait);
    var place: [64]u8 = undefined;
    bench.bring(128, 256, &.{fixture.message(&place, "hi", 5)});
    try testing.expectEqualStrings("hi", (try port.read(&storage, .ms(5))).?.payload);
    try port.write("hi", .{}, .ms(5));
    try testing.expect(!port.vacate());
}

test "Stream: a write that waits for its transport fails where the peer goes meanwhile" {
    for ([_]bool{ false, true }) |is_broken| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.bring(128, 256, &.{});
        bench.output.capacity = 40;
        try testing.expect(try port.tryWrite("on its way", .{}));
        var place: [16]u8 = undefined;
        if (is_broken) {
            bench.output.broken = true;
            try testing.expectError(error.PeerFailed, port.write("lost", .{}, .ms(5_000)));
            try testing.expectEqual(.peer_lost, port.reason());
        } else {
            bench.input.putAll(fixture.control(&place, layout.stream_kind_close, 0));
            bench.input.cut = 1; // it arrives while the call waits
            try testing.expectError(error.PeerClosed, port.write("lost", .{}, .ms(5_000)));
        }
    }
}

test "Stream: a write that may wait goes on until the transport has the message" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    bench.bring(128, 256, &.{});
    bench.output.size = 0;
    bench.output.capacity = 20;
    const before_ns = fixture.now();
    // The message is written all the same: the rest is on its way.
    try port.write("hi", .{}, .ms(40));
    try testing.expectEqual(40_000_000, fixture.now() - before_ns);
    try testing.expectEqual(20, bench.output.size);
    try testing.expectEqual(Wish{ .read = true, .write = true }, bench.side.stream.wish());
    bench.output.capacity = Wire.wire_size;
    bench.side.stream.pump();
    try testing.expectEqual(32, bench.output.size);
    try testing.expectEqual(Wish{ .read = true, .write = false }, bench.side.stream.wish());
}
