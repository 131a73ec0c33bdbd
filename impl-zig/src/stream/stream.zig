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
    _ = @import("stream_test.zig");
    _ = @import("stream_fault_test.zig");
    _ = @import("descriptors_test.zig");
    _ = @import("../testing/stream_cut_test.zig");
}
