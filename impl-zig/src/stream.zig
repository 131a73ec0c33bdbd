//! A port over two ordered streams of bytes, such as a socket or a pair of pipes
//! [spec/stream.md].
//!
//! Invariant: the port is one as over shared memory, on a segment that nobody else sees; what
//! stands on the other side of that is the link, which the calls of the port drive.

const std = @import("std");
const layout = @import("layout.zig");
const host_file = @import("host.zig");
const segment_file = @import("segment.zig");
const stream_outlet = @import("stream_outlet.zig");
const stream_link = @import("stream_link.zig");
const assert = std.debug.assert;
const Channel = segment_file.Channel;
const Deadline = host_file.Deadline;
const StreamLink = stream_link.StreamLink;
const Memory = segment_file.Memory;
const Port = @import("port.zig").Port;
const Rings = @import("port.zig").Rings;
const Segment = segment_file.Segment;
const Sizes = stream_outlet.Sizes;
const Timeout = host_file.Timeout;
const Transport = @import("stream_transport.zig").Transport;

/// Bytes that are read at once, at most.
const piece_size_max = 64 * 1024;

/// One side of a stream: `port`, and what carries its messages.
///
/// There is no thread behind it: the calls of the port do the work. A thread that is in none takes
/// nothing in and lets its peer wait; what it has written before is on its way, as far as the
/// transport took it. A call with a timeout goes on until the transport has taken what it wrote.
/// Whoever only tries (`.none`) has to go on trying while bytes may be left, here or there: `pump`
/// is enough.
///
/// It holds pointers into itself: it must stay where it was opened.
///
/// Thread safety: belongs to one thread, but for `port.close`.
pub const Stream = struct {
    port: Port,
    link: StreamLink,

    /// What may be left to its default.
    pub const Options = struct {
        /// The largest frame that the peer may write: a multiple of 16, from 128 on. A message may
        /// be larger than that, and than the window.
        largest: u32 = 16 * 1024,
        /// Bytes of frames that the peer may write before they are read: a multiple of 16, from
        /// `largest` on. A transport of high delay needs as much as it carries in a round trip.
        window: u32 = 64 * 1024,
        /// The ring for what is on its way to the transport: a power of two from 512 on. Frames
        /// take half of it at most.
        queue: u32 = 64 * 1024,
        /// Those of the port.
        port: Port.Options = .{},

        fn sizes(options: Options) Sizes {
            return .{ .largest = options.largest, .window = options.window };
        }

        /// Whether a stream can have them.
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

    /// Half of it is a frame, and the frames of a message of the other half fit into the whole.
    const queue_min = 512;
    /// The ring for it has twice as much at most.
    pub const window_max = layout.ring_capacity_max / 4;

    /// Returns the bytes of memory that such a stream needs.
    ///
    /// Asserts that the options are valid.
    pub fn memorySize(options: Options) error{SegmentSize}!usize {
        assert(options.valid());
        return @as(usize, try options.rings().segmentSize()) + options.pieceSize();
    }

    /// Begins a stream over a transport, and writes its preface; waits for nothing. The memory is
    /// private, and must outlive the stream, as the transport must. `error.SegmentSize` where it is
    /// smaller than `memorySize` says.
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

    /// Waits until the preface of the peer has come: from then on it is known how large a frame it
    /// takes. Nobody has to: a write waits for it too. Returns false where it has not, by the
    /// deadline or because the stream has ended before; the next call of the port says why.
    pub fn awaitReady(stream: *Stream, timeout: Timeout) bool {
        var deadline: Deadline = .init(timeout);
        return stream.link.awaitReady(&deadline);
    }

    /// Takes in what has arrived, and gives the transport what it takes. Never waits.
    pub fn pump(stream: *Stream) void {
        stream.link.base.pump();
    }

    /// What an event loop has to wait for before it calls again: bytes to read, and, where
    /// something is left to be written, room.
    pub fn wish(stream: *const Stream) Transport.Wish {
        return stream.link.wish();
    }

    /// Closes the port where it is not closed yet, and goes on until the transport has everything
    /// and the peer has ended its byte stream, or 2 s have passed [stream.linger]. Returns false
    /// where the timeout was over before: then call it again.
    pub fn finish(stream: *Stream, timeout: Timeout) bool {
        stream.port.close();
        var deadline: Deadline = .init(timeout);
        return stream.link.finish(&deadline);
    }

    /// Closes the port, finishes, which takes 2 s at most, and gives the transport up. The port may
    /// still be asked, and says that it is closed.
    pub fn deinit(stream: *Stream) void {
        const finished = stream.finish(.forever);
        assert(finished);
        stream.link.giveUp();
    }
};

/// `Stream.open` for whoever keeps port and link apart. Both have to stay where they are.
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
    // It was written just now, and nobody else knows it.
    const segment = Segment.attach(own, &storage, .none) catch unreachable;
    port.init(&segment, 0, options.port) catch unreachable;
    const piece = memory[segment_size..][0..piece_size];
    link.init(&port.endpoint, &segment, transport, options.sizes(), piece);
    port.writer.ring.limit = 0; // the link is asked from now on
}

test {
    _ = @import("stream_test.zig");
    _ = @import("stream_fault_test.zig");
    _ = @import("stream_descriptors_test.zig");
    _ = @import("stream_cut_test.zig");
}
