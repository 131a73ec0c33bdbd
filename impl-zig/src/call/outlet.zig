//! What a port with calls writes: messages one behind the other, and before them what was accepted
//! and what is owed [port.posted] [call.cancel_owed].
//!
//! Invariant: nothing comes between the frames of a message, whatever is taken in meanwhile.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const call_wait = @import("wait.zig");
const assert = std.debug.assert;
const Call = @import("own.zig").Call;
const CallError = @import("error.zig").CallError;
const Calls = @import("call.zig").Calls;
const CancelToken = @import("token.zig").CancelToken;
const Deadline = host.Deadline;
const Envelope = pipe.Envelope;
const Patience = pipe.Reader.Patience;
const Serving = @import("serving.zig").Serving;
const Timeout = host.Timeout;

/// Waits until all that was accepted, or is owed, is placed.
pub fn clear(calls: *Calls, deadline: *Deadline, token: ?*const CancelToken) CallError!void {
    assert(!calls.sending);
    while (true) {
        settle(calls);
        const size = calls.need orelse return;
        try call_wait.awaitRoom(calls, size, deadline, token);
    }
}

/// Writes a message, behind all that was accepted.
pub fn send(
    calls: *Calls,
    payload: []const u8,
    envelope: Envelope,
    deadline: *Deadline,
    token: ?*const CancelToken,
) CallError!void {
    try clear(calls, deadline, token);
    if (try calls.writer.writeNow(payload, envelope)) return;
    const at_once = deadline.timeout == .none;
    if (at_once and payload.len > calls.writer.trySizeMax()) return error.MessageSize;
    var message: pipe.Send = .init(&.{payload}, envelope, deadline.timeout);
    calls.sending = true;
    defer {
        calls.sending = false;
        settle(calls);
    }
    while (true) {
        const size = (try calls.writer.placeAccepted(&message)) orelse return;
        call_wait.awaitRoom(calls, size, deadline, token) catch |err| {
            if (message.sent_any) calls.writer.owed = envelope;
            return err;
        };
    }
}

/// [call.window]
pub fn sendItem(
    calls: *Calls,
    serving: *Serving,
    payload: []const u8,
    timeout: Timeout,
) CallError!void {
    var patience: Patience = .init(timeout);
    try call_wait.awaitWindow(calls, serving, &patience);
    const tag = serving.id | layout.call_mark_more;
    const envelope: Envelope = .{ .kind = .@"return", .codec = .values, .tag = tag };
    send(calls, payload, envelope, &patience.deadline, &serving.token) catch |err|
        return if (err == error.Aborted) error.CallCancelled else err;
    serving.sent += 1;
    return call_wait.awaitSent(calls, &patience.deadline, &serving.token);
}

/// Places an answer if there is room at once, and nothing before it. True as well where no
/// answer can be written any more.
pub fn placeAnswer(calls: *Calls, payload: []const u8, envelope: Envelope) bool {
    settle(calls);
    if (calls.mute) return true;
    if (calls.sending or calls.need != null) return false;
    return calls.writer.writeNow(payload, envelope) catch {
        calls.silence();
        return true;
    };
}

/// Places what was accepted and what is owed, as far as there is room; never waits.
pub fn settle(calls: *Calls) void {
    if (calls.sending or calls.mute) return;
    calls.need = placeAll(calls) catch {
        calls.silence();
        return;
    };
}

fn placeAll(calls: *Calls) pipe.WriteError!?u32 {
    while (true) {
        const serving = calls.posted.first;
        const begun = serving != null and serving.?.send.sent_any;
        // What is owed comes before the next message [call.cancel_owed].
        if (!begun) if (calls.owed.first) |node| {
            const own: *Call = @alignCast(@fieldParentPtr("owed_node", node));
            if (!try placeMark(calls, own)) return 0;
            continue;
        };
        const first = serving orelse return null;
        if (try calls.writer.placeAccepted(&first.send)) |size| return size;
        _ = calls.posted.pop();
        first.conclude();
    }
}

/// Places one cancel, or one `more`.
fn placeMark(calls: *Calls, own: *Call) pipe.WriteError!bool {
    const mark: u32 = if (own.owes_cancel) layout.call_mark_cancel else layout.call_mark_more;
    const envelope: Envelope = .{ .kind = .call, .codec = .values, .tag = own.id | mark };
    var message: pipe.Send = .init(&.{}, envelope, .forever);
    if (try calls.writer.placeAccepted(&message) != null) return false;
    own.placed();
    return true;
}
