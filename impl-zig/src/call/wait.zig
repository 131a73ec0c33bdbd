//! How a port with calls waits: what it takes in, and what it serves, meanwhile
//! [spec/call.md, "Calls within calls"].

const std = @import("std");
const host = @import("../wait/mechanism.zig");
const ring = @import("../ring/side.zig");
const wait = @import("../wait/endpoint.zig");
const call_error = @import("error.zig");
const call_intake = @import("intake.zig");
const call_outlet = @import("outlet.zig");
const call_own = @import("own.zig");
const call_sort = @import("sort.zig");
const CallError = call_error.CallError;
const Calls = @import("call.zig").Calls;
const CancelToken = @import("token.zig").CancelToken;
const Deadline = host.Deadline;
const Endpoint = wait.Endpoint;
const Gate = call_sort.Gate;
const Patience = @import("../pipe/ends.zig").Reader.Patience;
const Serving = @import("serving.zig").Serving;

pub const tell = call_sort.tell;

/// For whom a step is done: a read takes plain messages, whoever lends leaves them where they are,
/// and whoever waits for an answer sets them aside.
pub const Purpose = enum { read, lend, answer };

pub const Step = enum {
    did,
    /// A plain message, or a report, is the next to be read.
    delivers,
    nothing,
    /// What is there has no room in the inbox.
    left,
};

/// Does one thing that needs no waiting: begins a call, or takes a message [call.serve_waiting].
/// `loaded` is whether the one load of the cursor was made [ring.one_load].
pub fn step(calls: *Calls, loaded: *bool, purpose: Purpose) CallError!Step {
    call_outlet.settle(calls);
    // [call.whole_first] What was accepted may stand half written in the ring.
    const begins = calls.need == null;
    if (begins) if (calls.pending.pop()) |serving| {
        call_sort.beginNext(calls, serving);
        return .did;
    };
    const reads = purpose != .answer;
    if (reads and calls.inbox.first != null) return .delivers; // [port.inbox_order]
    const gate: Gate = .{
        .calls = calls,
        .begins = begins,
        .delivers = reads,
        .lends = purpose == .lend,
    };
    return switch (try take(calls, loaded, gate)) {
        .note => .did,
        .left => .left,
        .nothing => .nothing,
    };
}

fn take(calls: *Calls, loaded: *bool, gate: Gate) CallError!call_intake.Intake.Taken {
    const taken = calls.intake.take(loaded, gate) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        else => |final| return calls.losing(final),
    };
    if (taken == .note) call_sort.sort(calls, taken.note);
    return taken;
}

/// What a wait is for, beside room for what was accepted.
pub const Appetite = enum {
    hungry,
    /// Whatever is there has no room.
    full,
};

/// Waits for something to do; false where the deadline has passed, or the stream has ended.
pub fn awaitMore(
    calls: *Calls,
    patience: *Patience,
    token: ?*const CancelToken,
    appetite: Appetite,
) CallError!bool {
    const reader = calls.reader;
    const next = reader.beforeWait(patience) catch |err| return calls.losing(err);
    switch (next) {
        .again => return true,
        .over => {
            if (reader.ended()) calls.lose(error.CallEnded);
            return false;
        },
        .wait => {},
    }
    if (token) |given| if (given.isCancelled()) return error.Aborted;
    switch (sleep(calls, calls.need, &patience.deadline, token, appetite)) {
        .found => {},
        .timeout => return false,
        .forbidden => return error.WaitForbidden,
    }
    patience.loaded = false;
    return true;
}

fn sleep(
    calls: *Calls,
    need: ?u32,
    deadline: *Deadline,
    token: ?*const CancelToken,
    appetite: Appetite,
) Endpoint.Outcome {
    calls.reader.flush();
    calls.writer.publish();
    const condition: Condition = .{ .token = token, .rings = .{
        .endpoint = calls.endpoint,
        .reader = if (appetite == .hungry) &calls.reader.ring else null,
        .writer = if (need != null) &calls.writer.ring else null,
        .size = need orelse 0,
    } };
    return calls.endpoint.wait(&condition, deadline);
}

/// Waits for room for a frame of this size, and takes in what arrives; begins nothing
/// [call.takes_in].
pub fn awaitRoom(
    calls: *Calls,
    size: u32,
    deadline: *Deadline,
    token: ?*const CancelToken,
) CallError!void {
    calls.writer.publish();
    const appetite = takeIn(calls);
    if (token) |given| if (given.isCancelled()) return error.Aborted;
    if (deadline.over(calls.endpoint.host)) return error.Timeout;
    switch (sleep(calls, size, deadline, token, appetite)) {
        .found => {},
        .timeout => return error.Timeout,
        .forbidden => return error.WaitForbidden,
    }
}

/// Over a stream, goes on until the transport has what was written, or the deadline has passed, so
/// that it does not lie here while the thread does other things; takes in what arrives, and begins
/// nothing. Fails where it never goes out, because the peer is gone.
pub fn awaitSent(
    calls: *Calls,
    deadline: *Deadline,
    token: ?*const CancelToken,
) CallError!void {
    const endpoint = calls.endpoint;
    const link = endpoint.linked() orelse return;
    if (!endpoint.blocking) return;
    while (!link.notes.load(.monotonic).given) {
        try calls.writer.check();
        if (token) |given| if (given.isCancelled()) return;
        const left_ns = deadline.left(endpoint.host);
        if (left_ns == 0) return;
        _ = takeIn(calls);
        calls.reader.flush();
        link.sleep(left_ns);
        link.pump();
    }
}

/// Takes in all that one load of the cursor shows and there is room for. What fails here fails the
/// next read too.
fn takeIn(calls: *Calls) Appetite {
    const gate: Gate = .{ .calls = calls, .begins = false, .delivers = false };
    if (calls.isLent()) return .full;
    var loaded = false;
    while (true) {
        const taken = calls.intake.take(&loaded, gate) catch return .full;
        switch (taken) {
            .note => |note| call_sort.sort(calls, note),
            .left => return .full,
            .nothing => return if (calls.reader.ended()) .full else .hungry,
        }
    }
}

/// Until when a call is waited for.
pub const Until = enum { done, item };

/// Waits for a call of this side, and serves meanwhile [call.serve_waiting]; false where the
/// deadline has passed.
pub fn awaitOwn(
    calls: *Calls,
    own: *call_own.Call,
    until: Until,
    patience: *Patience,
    token: ?*const CancelToken,
) CallError!bool {
    while (true) {
        if (own.isDone() or until == .item and own.items.first != null) return true;
        if (calls.endpoint.closedHere()) {
            calls.lose(calls.endpoint.whyClosed());
            continue;
        }
        const did = step(calls, &patience.loaded, .answer) catch |err| switch (err) {
            error.OutOfMemory => |out| return out,
            // It has ended all calls.
            else => continue,
        };
        if (did == .did) continue;
        if (did == .left and calls.need == null) {
            own.end(error.CallInbox); // [call.set_aside]
            continue;
        }
        const appetite: Appetite = if (did == .left) .full else .hungry;
        const more = awaitMore(calls, patience, token, appetite) catch |err| switch (err) {
            error.Aborted, error.WaitForbidden => |own_fault| return own_fault,
            else => continue,
        };
        if (!more and !own.isDone()) return false;
    }
}

/// Waits until one more item of a call may be sent, and serves meanwhile [call.window].
pub fn awaitWindow(calls: *Calls, serving: *Serving, patience: *Patience) CallError!void {
    while (true) {
        // [call.stops] A method that began meanwhile may have answered it.
        if (serving.isCancelled() or !serving.awaitsAnswer()) return error.CallCancelled;
        if (serving.sent < serving.allowed) return;
        const did = try step(calls, &patience.loaded, .answer);
        if (did == .did) continue;
        if (did == .left and calls.need == null) return error.CallInbox; // [call.set_aside]
        const appetite: Appetite = if (did == .left) .full else .hungry;
        if (try awaitMore(calls, patience, &serving.token, appetite)) continue;
        if (serving.isCancelled()) continue;
        return if (calls.reader.ended()) error.CallEnded else error.Timeout;
    }
}

/// The `condition` of `Endpoint.wait`: the rings, or a token.
const Condition = struct {
    rings: ring.Wait,
    token: ?*const CancelToken,

    pub fn glance(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        return condition.rings.glance(order) or condition.isCancelled();
    }

    pub fn look(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        return condition.rings.look(order) or condition.isCancelled();
    }

    fn isCancelled(condition: *const Condition) bool {
        const token = condition.token orelse return false;
        return token.isCancelled();
    }

    pub fn arm(condition: *const Condition, first: bool) bool {
        return condition.rings.arm(first);
    }

    pub fn disarm(condition: *const Condition) void {
        condition.rings.disarm();
    }

    pub fn slice(condition: *const Condition, mechanism: u32) u64 {
        return condition.rings.slice(mechanism);
    }
};
