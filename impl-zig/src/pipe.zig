//! Whole messages, one way, over a ring [spec/pipe.md]: messages of many frames, deadlines, the end
//! of the stream, closing, and what happens when the peer fails.
//!
//! Invariant: whatever the bytes of the peer hold, a call returns a result or one of the errors
//! below. What costs one message (`error.Message…`) is reported once and the pipe goes on; what
//! breaks the structure (`error.Corrupt`) is kept, and every later call reports it again.

const std = @import("std");
const layout = @import("layout.zig");
const wait = @import("wait.zig");
const frame = @import("frame.zig");
const Bytes = @import("ring.zig").Bytes;
const Endpoint = wait.Endpoint;
const Peer = wait.Peer;

pub const Writer = @import("pipe_writer.zig").Writer;
pub const Send = @import("pipe_writer.zig").Send;
pub const Reader = @import("pipe_reader.zig").Reader;

/// What ends every use of a pipe. `reason()` of the pipe says more about the last two.
pub const PipeError = error{
    /// This endpoint is closed.
    PipeClosed,
    /// This endpoint was marked failed by its peer or its supervisor.
    PipeFailed,
    /// The peer closed without an `end`, or no longer reads.
    PeerClosed,
    /// The peer's endpoint is marked failed.
    PeerFailed,
    /// A word or a frame of the peer breaks the layout; the peer is now marked failed.
    Corrupt,
};

pub const WriteError = PipeError || error{
    /// This writer has ended its stream.
    PipeEnded,
    /// The message was not written by its deadline.
    Timeout,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

pub const ReadError = PipeError || error{
    /// The writer gave up in the middle of a message; its parts are dropped.
    MessageCancelled,
    /// The stream ended in the middle of a message; its parts are dropped.
    MessageTruncated,
    /// A message was larger than the storage, and is dropped.
    MessageSize,
    /// A call, return or throw came to a reader that does not offer them, and is dropped.
    MessageKind,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

/// What a message carries besides its payload.
pub const Envelope = struct {
    kind: layout.FrameKind = .data,
    codec: layout.Codec = .bytes,
    /// The application's number of a data message; the id of a call.
    tag: u32 = 0,

    pub fn header(envelope: Envelope, size: u32, flags: u8) frame.Header {
        return .{
            .size = size,
            .kind = @intCast(@backingInt(envelope.kind)),
            .flags = flags,
            .codec = @intCast(@backingInt(envelope.codec)),
            .tag = envelope.tag,
        };
    }

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

/// A frame that is lent where it lies, until `release`. The peer can write there at any time.
pub const Lent = struct {
    payload: Bytes,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
    /// Whether this frame begins, and whether it completes its message.
    first: bool,
    last: bool,
    /// Bytes of the whole message.
    total: u64,
};

pub fn checkOwn(endpoint: *const Endpoint) error{ PipeClosed, PipeFailed }!void {
    switch (endpoint.state()) {
        .vacant, .attached => {},
        .closed => return error.PipeClosed,
        .failed, .invalid => return error.PipeFailed,
    }
}

pub fn checkPeer(peer: *Peer) error{ PeerClosed, PeerFailed }!void {
    switch (peer.state()) {
        .vacant, .attached => {},
        .closed => return error.PeerClosed,
        .failed, .invalid => return error.PeerFailed,
    }
}

pub fn reasonOfPeer(peer: *const Peer) ?layout.Reason {
    return switch (peer.seen) {
        .vacant, .attached => null,
        .closed => .peer_closed,
        .failed => |why| why,
        .invalid => .segment_state,
    };
}

test {
    _ = @import("pipe_test.zig");
}
