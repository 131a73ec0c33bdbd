//! Tokens for C, by which calls are given up from any thread, and methods are told so
//! [spec/call.md, "To give a call up"]. What each call promises stands in `millrace_call.h`.

const std = @import("std");
const arguments = @import("arguments.zig");
const called = @import("call.zig");
const CancelToken = @import("../call/caller.zig").CancelToken;
const Serving = @import("../call/call.zig").Serving;
const Status = arguments.Status;

const Body = struct {
    calls: *called.Object,
    token: CancelToken,
};

const Object = arguments.Object(Body, .token);

pub export fn millrace_token_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_token_create(token: ?*anyopaque, calls: ?*anyopaque) Status {
    const object = Object.blank(token) orelse return arguments.invalid;
    const through = called.Object.known(calls) orelse return arguments.invalid;
    return begin(object, through);
}

fn begin(object: *Object, calls: *called.Object) Status {
    object.body = .{ .calls = calls, .token = .init(calls.body.calls.endpoint) };
    calls.body.token_count += 1;
    object.seal();
    return arguments.done;
}

pub export fn millrace_serve_token(
    calls: ?*anyopaque,
    serving: usize,
    token: ?*anyopaque,
) Status {
    const object = Object.blank(token) orelse return arguments.invalid;
    const through = called.Object.known(calls) orelse return arguments.invalid;
    const given = through.body.findServing(serving) orelse return arguments.invalid;
    const status = begin(object, through);
    given.token.follow(&object.body.token);
    return status;
}

pub export fn millrace_token_cancel(token: ?*anyopaque) Status {
    const object = Object.known(token) orelse return arguments.invalid;
    object.body.token.cancel();
    return arguments.done;
}

pub export fn millrace_token_cancelled(token: ?*anyopaque) Status {
    const object = Object.known(token) orelse return arguments.invalid;
    return if (object.body.token.isCancelled()) arguments.done else arguments.nothing;
}

pub export fn millrace_token_leave(token: ?*anyopaque) Status {
    const object = Object.known(token) orelse return arguments.invalid;
    const calls = &object.body.calls.body;
    var node = calls.calls.servings.first;
    while (node) |each| : (node = each.next) {
        const serving: *Serving = @alignCast(@fieldParentPtr("node", each));
        serving.token.unfollow(&object.body.token);
    }
    calls.token_count -= 1;
    object.forget();
    return arguments.done;
}

/// The token that is meant: of this object, or, for NULL, none.
pub fn of(calls: *called.Object, token: ?*anyopaque) error{Invalid}!?*const CancelToken {
    const address = token orelse return null;
    const object = Object.known(address) orelse return error.Invalid;
    return if (object.body.calls == calls) &object.body.token else error.Invalid;
}
