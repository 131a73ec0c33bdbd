//! Whole messages, one way, over a ring [spec/pipe.md]: multipart messages, deadlines, the end of
//! the stream, closing, and what happens when the peer fails.
//!
//! Invariant: whatever bytes the peer writes, a call returns a result or one of the errors below.
//! An error that costs one message (`error.Message…`) is reported once, and the pipe goes on. A
//! fault of the structure (`error.Corrupt`) is kept, and every later call reports it again.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const wait = @import("../wait/endpoint.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const segment_file = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const Bytes = ring_file.Bytes;
const Endpoint = wait.Endpoint;
const Peer = wait.Peer;
const Segment = segment_file.Segment;
const State = segment_record.State;
const hot = ring_file.hot;
const reasonOf = @import("../error.zig").reasonOf;

pub const Writer = @import("outgoing.zig").Writer;
pub const Send = @import("outgoing.zig").Send;
pub const SendWith = @import("outgoing.zig").SendWith;
pub const Reader = @import("incoming.zig").Reader;

/// What ends every use of a pipe, in the order in which a call checks for it [pipe.first_answer].
/// `reason()` of the pipe says more about the errors that mean a failure.
pub const PipeError = error{
    /// This process was forked from the one that attached this endpoint: attach to another
    /// endpoint.
    PipeForked,
    /// This endpoint is closed.
    PipeClosed,
    /// A word or a frame that the peer wrote breaks the layout. The peer is now marked failed, and
    /// this end stores nothing in the channel any more.
    Corrupt,
    /// This endpoint was marked failed by its peer or its supervisor.
    PipeFailed,
    /// The peer closed without an `end`, or has stopped reading.
    PeerClosed,
    /// The peer's endpoint is marked failed.
    PeerFailed,
};

/// Why a message was not written.
pub const WriteError = PipeError || error{
    /// This writer has ended its stream.
    PipeEnded,
    /// The message was not written by its deadline.
    Timeout,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

/// Why no message was read.
pub const ReadError = PipeError || error{
    /// The writer gave up in the middle of a message; the parts of it are dropped.
    MessageCancelled,
    /// The stream ended in the middle of a message; the parts of it are dropped.
    MessageTruncated,
    /// A message was larger than the storage, and was dropped.
    MessageSize,
    /// A call, return or throw came to a reader that does not offer them, and was dropped.
    MessageKind,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

/// What a message carries besides its payload.
pub const Envelope = struct {
    kind: layout.FrameKind = .data,
    codec: layout.Codec = .bytes,
    /// The application's number of a data message, or the id of a call.
    tag: u32 = 0,

    /// Returns the header of a frame of such a message.
    pub fn header(envelope: Envelope, size: u32, flags: u8) frame.Header {
        return .{
            .size = size,
            .kind = @intCast(@backingInt(envelope.kind)),
            .flags = flags,
            .codec = @intCast(@backingInt(envelope.codec)),
            .tag = envelope.tag,
        };
    }

    /// Whether a writer may write such a message: the kind is that of a message, and the codec is a
    /// byte.
    pub fn valid(envelope: Envelope) bool {
        if (@backingInt(envelope.codec) > std.math.maxInt(u8)) return false;
        return switch (envelope.kind) {
            .data, .call, .@"return", .throw => true,
            else => false,
        };
    }
};

/// A message that was read: a copy in the reader's storage.
pub const Message = struct {
    payload: []u8,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
};

/// A frame that is lent where it lies, until `release`. The peer can change its bytes at any time.
pub const Lent = struct {
    payload: Bytes,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
    /// Whether this frame is the first one of its message, and whether it is the last one.
    first: bool,
    last: bool,
    /// Bytes of the whole message; 2^64 - 1 if the writer did not know its size when it began.
    total: u64,
};

/// Returns the channel on which endpoint `index` writes or reads: the named one, or else the first
/// such ring of the segment [pipe.find]. Call it before the endpoint is attached, so that a segment
/// that is refused is left as it was found [pipe.find_none].
pub fn find(
    segment: *const Segment,
    index: u32,
    named: ?u32,
    end: enum { writer, reader },
) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
    try segment.checkVacant(index);
    for (segment.channels, 0..) |channel, channel_index| {
        if (named) |wanted| if (wanted != channel_index) continue;
        if (channel.kind != .ring) continue;
        const found = if (end == .writer) channel.writer else channel.reader;
        if (found == index) return @intCast(channel_index);
    }
    return error.SegmentChannel;
}

/// The errors by which the state of the own endpoint ends a call.
pub const OwnError = error{ PipeForked, PipeClosed, PipeFailed };

/// Refuses a call if the state of the own endpoint is final.
pub fn checkOwn(endpoint: *Endpoint) callconv(hot) OwnError!void {
    const state = endpoint.marked();
    if (state == .attached) return;
    if (state == .closed) return endpoint.whyClosed();
    blame(endpoint, state);
    return error.PipeFailed;
}

/// Refuses a call if the state of the peer is final.
pub fn checkPeer(endpoint: *Endpoint, peer: *Peer) error{ PeerClosed, PeerFailed }!void {
    const state = peer.state();
    switch (state) {
        .vacant, .attached => {},
        .closed => return error.PeerClosed,
        .failed, .invalid => {
            // [segment.state_invalid]
            blame(endpoint, state);
            if (state == .invalid) endpoint.behind = .segment_state;
            return error.PeerFailed;
        },
    }
}

/// [pipe.failed_reason]
noinline fn blame(endpoint: *Endpoint, state: State) void {
    endpoint.behind = state.reason();
}

/// Marks the peer failed because of a fault in one of its words or frames [ring.fault]. Returns the
/// reason, for the caller to keep.
pub noinline fn fault(endpoint: *Endpoint, peer: *Peer, err: anyerror) layout.Reason {
    const why = reasonOf(err).?;
    peer.fail(endpoint, why);
    return why;
}

test {
    _ = @import("ends_test.zig");
    _ = @import("ends_answer_test.zig");
}
