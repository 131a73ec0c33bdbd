//! What an endpoint has in place of a peer that shares its memory: something that moves frames
//! between the other side of its segment, which is private then, and wherever they go.
//!
//! Invariant: the calls of the endpoint drive it. Nothing happens between two of them.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("layout.zig");

/// Not in a freestanding module of WebAssembly, whose size counts.
pub const supported = builtin.os.tag != .freestanding;
/// What an endpoint has of its link.
pub const Pointer = if (supported) ?*Link else void;
pub const nobody: Pointer = if (supported) null else {};

/// How long a wait goes without a look at what another thread has closed.
const slice_ns = 20_000_000;

/// The part of a link that the endpoint sees.
pub const Link = struct {
    functions: *const Functions,
    /// What it arms to hear of what the endpoint gives back.
    given_wants: *const u32,
    /// Up to where the endpoint may write, and the largest frame that its peer takes. While nobody
    /// has said so, it is what every peer takes, and no room.
    allowed_end: std.atomic.Value(u32) = .init(layout.stream_start),
    largest: std.atomic.Value(u32) = .init(layout.stream_largest_min),
    /// What came of the last look, for those who wait.
    notes: std.atomic.Value(Notes) = .init(.{}),
    /// Whether a call has looked what has arrived since something was published last.
    looked: std.atomic.Value(bool) = .init(false),

    pub const Functions = struct {
        /// Takes in what has arrived, and gives the peer what can be given. Never waits.
        /// Thread-safe.
        pump: *const fn (link: *Link) void,
        /// As `pump`, and leaves what has arrived where it is.
        tell: *const fn (link: *Link) void,
        /// Waits until there may be something to do, and at most so long.
        sleep: *const fn (link: *Link, limit_ns: u64) void,
    };

    pub const Notes = packed struct(u32) {
        /// Whether it is known what the peer takes.
        ready: bool = false,
        /// Whether to wait for something to arrive, and whether for room.
        reads: bool = false,
        writes: bool = false,
        /// Whether to look again at once.
        more: bool = false,
        /// Whether all that was published is on its way.
        given: bool = false,
        /// Whether this side has closed, and nothing more will come of it.
        done: bool = false,
        rest: u26 = 0,
    };

    /// Whether the peer lets the endpoint write so many bytes of frames behind this position.
    pub fn allows(link: *const Link, position: u32, extents: u32) bool {
        // Below 0 where frames of one message were let through that wait for credit.
        const left: i32 = @bitCast(link.allowed_end.load(.monotonic) -% position);
        return left >= @as(i32, @intCast(extents));
    }

    /// Whether frames of one message may be placed at once: there is credit for the first, and the
    /// rest goes out when there is. More could be asked of nobody: a peer that has given everything
    /// back need not have told more than that.
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

    /// What the endpoint does in place of a ring: it has published, or given back. Whoever only
    /// writes has to know what its peer does, and whoever reads in between knows it: a look costs a
    /// system call.
    pub fn hear(link: *Link, wants: *const u32) void {
        if (wants == link.given_wants) return link.tell();
        if (link.looked.swap(false, .monotonic)) link.tell() else link.pump();
    }

    pub fn sleep(link: *Link, left_ns: u64) void {
        if (link.notes.load(.monotonic).more) return;
        link.functions.sleep(link, @min(left_ns, slice_ns));
    }
};
