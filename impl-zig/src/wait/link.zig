//! What an endpoint has instead of a peer that shares its memory. Its segment is private then. A
//! link takes the frames out of the other side of that segment and sends them on, and puts the
//! frames that arrive into it.
//!
//! Invariant: the calls of the endpoint drive the link. Nothing happens between two calls.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");

/// False in a freestanding module of WebAssembly, whose size counts.
pub const supported = builtin.os.tag != .freestanding;
/// The reference of an endpoint to its link.
pub const Pointer = if (supported) ?*Link else void;
pub const nobody: Pointer = if (supported) null else {};

/// How long a wait sleeps before it looks whether another thread has closed the endpoint.
const slice_ns = 20_000_000;

/// The part of a link that the endpoint uses.
pub const Link = struct {
    functions: *const Functions,
    /// The `wants` word that the link arms, so as to be told when the endpoint gives back room.
    given_wants: *const u32,
    /// The position up to which the endpoint may write, and the largest frame that the peer
    /// accepts. Until the peer has stated them, there is no room, and the largest frame is the one
    /// that every peer accepts.
    allowed_end: std.atomic.Value(u32) = .init(layout.stream_start),
    largest: std.atomic.Value(u32) = .init(layout.stream_largest_min),
    /// The result of the last `pump` or `tell`, for the calls that wait.
    notes: std.atomic.Value(Notes) = .init(.{}),
    /// Whether a call has looked at what has arrived since the endpoint last published.
    looked: std.atomic.Value(bool) = .init(false),

    pub const Functions = struct {
        /// Takes in what has arrived, and sends the peer what can be sent. Never waits.
        /// Thread-safe.
        pump: *const fn (link: *Link) void,
        /// Sends as `pump` does, but does not take in what has arrived.
        tell: *const fn (link: *Link) void,
        /// Waits until there may be something to do, at most so many nanoseconds.
        sleep: *const fn (link: *Link, limit_ns: u64) void,
    };

    pub const Notes = packed struct(u32) {
        /// Whether the peer has stated what it accepts.
        ready: bool = false,
        /// Whether to wait for something to arrive, and whether to wait for room.
        reads: bool = false,
        writes: bool = false,
        /// Whether to look again at once.
        more: bool = false,
        /// Whether the transport has taken everything that was published.
        given: bool = false,
        /// Whether this side has closed, and sends nothing more.
        done: bool = false,
        rest: u26 = 0,
    };

    /// Whether the peer lets the endpoint write so many bytes of frames after this position.
    pub fn allows(link: *const Link, position: u32, extents: u32) bool {
        // Negative if frames of one message were let through that still wait for credit.
        const left: i32 = @bitCast(link.allowed_end.load(.monotonic) -% position);
        return left >= @as(i32, @intCast(extents));
    }

    /// Whether all frames of one message may be placed at once. There must be credit for the first;
    /// the others are sent when there is credit for them. No more may be demanded, because a peer
    /// that has given everything back need not have granted more than that.
    pub fn allowsMany(link: *const Link, position: u32, extents: u32) bool {
        return link.allows(position, @min(extents, link.largest.load(.monotonic)));
    }

    pub fn pump(link: *Link) void {
        link.looked.store(true, .monotonic);
        link.functions.pump(link);
    }

    pub fn tell(link: *Link) void {
        link.functions.tell(link);
    }

    /// Called instead of ringing the peer, after the endpoint has published or given back room.
    /// Looking at what has arrived costs a system call. An endpoint that also reads looks anyway
    /// between two publishes; one that only writes has to look here, to learn what its peer does.
    pub fn hear(link: *Link, wants: *const u32) void {
        if (wants == link.given_wants) return link.tell();
        if (link.looked.swap(false, .monotonic)) link.tell() else link.pump();
    }

    pub fn sleep(link: *Link, left_ns: u64) void {
        if (link.notes.load(.monotonic).more) return;
        link.functions.sleep(link, @min(left_ns, slice_ns));
    }
};
