//! What ends a call before its answer: the caller's token, and the one of a method
//! [spec/call.md, "To give a call up"].

const std = @import("std");
const segment_record = @import("../wait/state.zig");
const Endpoint = @import("../wait/endpoint.zig").Endpoint;

/// Says that a call is to be given up, or that a method was told so.
///
/// Thread safety: any thread may cancel, and ask.
pub const CancelToken = struct {
    endpoint: *const Endpoint,
    cancelled: std.atomic.Value(bool) = .init(false),
    /// Whom to tell with it. Belongs to the thread of the port.
    told: ?*CancelToken = null,

    /// A token for calls of the port with this endpoint, which must outlive it.
    pub fn init(endpoint: *const Endpoint) CancelToken {
        return .{ .endpoint = endpoint };
    }

    /// Ends the calls that were given this token, with `error.Aborted`, and wakes their thread.
    /// Calling it again does nothing.
    pub fn cancel(token: *CancelToken) void {
        if (token.cancelled.swap(true, .seq_cst)) return;
        const endpoint = token.endpoint;
        segment_record.ring(endpoint.record, endpoint.index, endpoint.host);
    }

    /// Whether it was cancelled.
    pub fn isCancelled(token: *const CancelToken) bool {
        return token.cancelled.load(.seq_cst);
    }

    /// Tells a method of the thread that this is: nobody sleeps who would have to be woken.
    pub fn tell(token: *CancelToken) void {
        token.cancelled.store(true, .seq_cst);
        if (token.told) |other| other.tell();
    }

    /// Tells another one from now on when this is told, until `unfollow`.
    pub fn follow(token: *CancelToken, other: *CancelToken) void {
        other.told = token.told;
        token.told = other;
        if (token.isCancelled()) other.tell();
    }

    /// Tells that one no more, if it did.
    pub fn unfollow(token: *CancelToken, other: *CancelToken) void {
        var place = &token.told;
        while (place.*) |each| : (place = &each.told) {
            if (each != other) continue;
            place.* = other.told;
            return;
        }
    }
};
