//! Lends plain messages of a port with calls [spec/call.md, "Calls within calls"]: to lend is to
//! read, so calls before the next plain message are begun, and never lent.

const std = @import("std");
const call_error = @import("error.zig");
const call_wait = @import("wait.zig");
const assert = std.debug.assert;
const CallError = call_error.CallError;
const Calls = @import("call.zig").Calls;
const Lent = @import("../pipe/ends.zig").Lent;
const Patience = @import("../pipe/ends.zig").Reader.Patience;
const Timeout = @import("../wait/mechanism.zig").Timeout;

/// `Calls.peek`.
pub fn peek(calls: *Calls, timeout: Timeout) CallError!?Lent {
    assert(!calls.reader.isLent() and !calls.lent_note); // [pipe.lend_one]
    var patience: Patience = .init(timeout);
    while (true) {
        if (calls.endpoint.closedHere()) return calls.losing(calls.endpoint.whyClosed());
        // The next part of a message of which some were lent.
        const did = if (calls.lent_part)
            .left
        else
            try call_wait.step(calls, &patience.loaded, .lend);
        switch (did) {
            .did => continue,
            .delivers => return try lendKept(calls),
            .left => if (try lendPlain(calls, &patience.loaded)) |lent| return lent,
            .nothing => {},
        }
        const appetite: call_wait.Appetite = if (did == .left and !calls.lent_part)
            .full
        else
            .hungry;
        if (!try call_wait.awaitMore(calls, &patience, null, appetite)) return null;
    }
}

fn lendPlain(calls: *Calls, loaded: *bool) CallError!?Lent {
    const found = calls.reader.peekNow(loaded) catch |err| {
        calls.lent_part = false;
        switch (err) {
            error.MessageCancelled, error.MessageTruncated => |lost| return lost,
            else => |final| return calls.losing(final),
        }
    };
    const lent = found orelse return null;
    if (lent.kind != .data) {
        // A call, for which there is no room.
        calls.reader.leave(lent);
        return null;
    }
    calls.lent_part = !lent.last;
    return lent;
}

fn lendKept(calls: *Calls) CallError!Lent {
    const note = calls.inbox.first.?;
    if (note.fault) |code| {
        calls.dropKept();
        return call_error.errorOf(code);
    }
    calls.lent_note = true;
    return .{
        .payload = @alignCast(note.payload),
        .kind = note.kind,
        .codec = note.codec,
        .tag = note.tag,
        .first = true,
        .last = true,
        .total = note.payload.len,
    };
}
