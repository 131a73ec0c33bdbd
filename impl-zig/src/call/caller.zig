//! A call that this side has made, until its answer was read [spec/call.md, "Calling"]; and the
//! token that ends one before.
//!
//! Invariant: a call is under way from its first frame until its answer was read, also where it was
//! given up meanwhile, so that an id never means two calls; and it ends once.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const call_error = @import("error.zig");
const messages = @import("messages.zig");
const callee = @import("callee.zig");
const call_file = @import("call.zig");
const segment_record = @import("../wait/state.zig");
const CallError = call_error.CallError;
const Calls = call_file.Calls;
const Endpoint = @import("../wait/endpoint.zig").Endpoint;
const Failure = callee.Serving.Failure;
const List = @import("values.zig").List;
const Note = messages.Note;
const Patience = @import("../pipe/ends.zig").Reader.Patience;
const Timeout = host.Timeout;
const Value = @import("values.zig").Value;
const assert = std.debug.assert;

/// A result that points into memory of its own, until `deinit`.
pub fn Owned(comptime T: type) type {
    return struct {
        value: T,
        note: ?*Note,
        arena: std.heap.ArenaAllocator,

        pub fn deinit(owned: *const @This()) void {
            const gpa = owned.arena.child_allocator;
            owned.arena.deinit();
            if (owned.note) |note| note.destroy(gpa);
        }
    };
}

/// What a call hands out: the value itself where it points nowhere, or else `Owned(T)`.
pub fn Returned(comptime T: type) type {
    return if (callee.isFlat(T)) T else Owned(T);
}

/// A call of this side.
///
/// Thread safety: belongs to the thread of its port.
pub const Call = struct {
    calls: *Calls,
    id: u32,
    takes_items: bool,
    /// Whether its maker still has it, and whether its answer may still come.
    held: bool = true,
    under_way: bool = true,
    /// How it has ended, if it has failed.
    ended: ?CallError = null,
    /// The reason for that, if the port was lost with one [pipe.failed_reason].
    ended_behind: ?layout.Reason = null,
    /// Whether it was answered, and what with, until that was handed out.
    is_answered: bool = false,
    answer: ?*Note = null,
    list: List = .empty,
    /// Those that nobody has taken yet.
    items: messages.Queue(Note, "next") = .{},
    arrived: u64 = 0,
    allowed: u64 = layout.call_window,
    taken: u64 = 0,
    /// Whether it stands among those that owe something.
    is_owing: bool = false,
    owes_cancel: bool = false,
    owes_more: u32 = 0,
    node: std.DoublyLinkedList.Node = .{},
    owed_node: std.DoublyLinkedList.Node = .{},

    /// Whether its answer was read, or it has ended without.
    pub fn isDone(call: *const Call) bool {
        return call.ended != null or call.is_answered;
    }

    /// Waits until it is done, and serves meanwhile; returns false where it is not by then.
    /// `error.Aborted`, by the token, ends nothing, and neither does another error of the wait's.
    pub fn wait(call: *Call, timeout: Timeout, token: ?*const CancelToken) CallError!bool {
        var patience: Patience = .init(timeout);
        return call_file.awaitOwn(call.calls, call, .done, &patience, token);
    }

    /// Waits until it is done, and gives it up where it is not by then, or the token is cancelled;
    /// fails as it does [call.give_up].
    pub fn finish(call: *Call, timeout: Timeout, token: ?*const CancelToken) CallError!void {
        var patience: Patience = .init(timeout);
        return call.finishWith(&patience, token);
    }

    /// The same for who has waited before.
    pub fn finishWith(
        call: *Call,
        patience: *Patience,
        token: ?*const CancelToken,
    ) CallError!void {
        const done = call_file.awaitOwn(call.calls, call, .done, patience, token) catch |err| {
            if (!call.isDone()) call.end(err);
            return err;
        };
        if (!done) call.end(error.Timeout);
        if (call.failure()) |err| return err;
    }

    /// Its result; one that points to memory goes with it, so that it is there once.
    ///
    /// Asserts that it is done.
    pub fn result(call: *Call, comptime T: type) CallError!Returned(T) {
        assert(call.isDone());
        if (call.failure()) |err| return err;
        const note = call.answer.?;
        const value = call.list.at(0);
        const returned = try make(T, call.calls, value, note);
        if (comptime !callee.isFlat(T)) call.answer = null;
        return returned;
    }

    /// The next item, for which it waits; null behind the last, when it is done. A call whose items
    /// are late may be asked again: `error.Timeout` ends nothing.
    pub fn next(
        call: *Call,
        comptime T: type,
        timeout: Timeout,
        token: ?*const CancelToken,
    ) CallError!?Returned(T) {
        assert(call.takes_items);
        var patience: Patience = .init(timeout);
        const found = try call_file.awaitOwn(call.calls, call, .item, &patience, token);
        if (!found) return error.Timeout;
        const note = call.items.first orelse return if (call.failure()) |err| err else null;
        const count = @intFromBool(note.payload.len > 0);
        const value = (List{ .payload = note.payload, .count = count }).at(0);
        const returned = try make(T, call.calls, value, note);
        _ = call.items.pop();
        if (comptime callee.isFlat(T)) note.destroy(call.calls.gpa);
        call.taken += 1;
        if (call.taken % layout.call_grant == 0) call.grant();
        return returned;
    }

    /// The error that it was answered with, valid until `release`; null where there is none.
    pub fn thrown(call: *const Call) ?Failure {
        const note = call.answer orelse return null;
        return if (note.kind == .throw) failureOf(call.list) else null;
    }

    /// Gives it up, if it is not done: it ends with `error.Aborted` [call.give_up].
    pub fn giveUp(call: *Call) void {
        if (!call.isDone()) call.end(error.Aborted);
    }

    /// Gives it back, which must not be used any more. One that is not done is given up with
    /// `call.cancelled`.
    pub fn release(call: *Call) void {
        if (!call.isDone()) call.end(error.CallCancelled);
        call.held = false;
        call.freeUnheld();
    }

    // What follows is for `Calls`.

    /// Ends it before its answer came, and owes a cancel [call.give_up] [call.cancel_owed].
    pub fn end(call: *Call, err: CallError) void {
        assert(!call.isDone());
        assert(call.under_way);
        call.ended = err;
        call.calls.given_up_count += 1;
        call.dropItems();
        call.owes_more = 0;
        call.owe();
        call.owes_cancel = true;
        messages.settle(call.calls);
    }

    /// Ends it because nothing can come any more [call.lost].
    pub fn lose(call: *Call, err: CallError) void {
        call.leave();
        if (!call.isDone()) {
            call.ended = err;
            call.ended_behind = call.calls.lost_behind;
        }
        call.freeUnheld();
    }

    /// How it has failed, for the caller to return. What the peer has written since then changes
    /// neither that nor the reason for it.
    fn failure(call: *const Call) ?CallError {
        const err = call.ended orelse return null;
        return call.calls.again(err, call.ended_behind);
    }

    /// [call.grant]
    fn grant(call: *Call) void {
        if (!call.under_way or call.ended != null) return;
        call.owe();
        call.owes_more += 1;
        messages.settle(call.calls);
    }

    fn owe(call: *Call) void {
        if (call.is_owing or call.calls.mute) return;
        call.is_owing = true;
        call.calls.owed.append(&call.owed_node);
    }

    /// The mark that is owed next was placed. What a `more` allows counts from now on: a callee
    /// that reads nothing could have more and more of it be owed [call.granted].
    pub fn placed(call: *Call) void {
        if (call.owes_cancel) return call.forgive();
        call.allowed += layout.call_grant;
        call.owes_more -= 1;
        if (call.owes_more == 0) call.forgive();
    }

    /// Nothing is owed any more: it was placed, or the answer has come.
    pub fn forgive(call: *Call) void {
        call.owes_cancel = false;
        call.owes_more = 0;
        if (call.is_owing) call.calls.owed.remove(&call.owed_node);
        call.is_owing = false;
    }

    /// It is not under way any more.
    pub fn leave(call: *Call) void {
        assert(call.under_way);
        call.under_way = false;
        call.calls.under_way.remove(&call.node);
        call.calls.under_way_count -= 1;
        if (call.ended != null) call.calls.given_up_count -= 1;
        call.forgive();
    }

    /// Takes an item, or the answer [call.match].
    pub fn arrive(call: *Call, note: *Note) void {
        const gpa = call.calls.gpa;
        const is_item = note.tag & layout.call_mark_more != 0;
        if (!is_item) call.leave();
        if (call.isDone()) { // [call.late]
            note.destroy(gpa);
            return call.freeUnheld();
        }
        const list = call.judge(note, is_item) catch |err| {
            note.destroy(gpa);
            // [call.bad_answer]
            if (is_item) call.end(err) else call.ended = err;
            return;
        };
        if (is_item) {
            call.arrived += 1;
            return call.items.push(note);
        }
        call.is_answered = true;
        call.answer = note;
        call.list = list;
        if (note.kind == .throw) call.ended = call_error.errorNamed(list.at(0).payload);
    }

    /// Says what is wrong with an item or an answer [call.bad_answer] [call.too_many].
    fn judge(call: *const Call, note: *const Note, is_item: bool) CallError!List {
        if (note.fault) |code| return call_error.errorOf(code);
        if (is_item and (!call.takes_items or call.arrived == call.allowed)) {
            return error.CallItems;
        }
        if (note.codec != .values) return error.MessageCodec;
        const list: List = try .check(call.calls.gpa, note.payload);
        const fits = if (note.kind == .throw) isThrow(list) else list.count <= 1;
        return if (fits) list else error.CallForm;
    }

    fn isThrow(list: List) bool {
        if (list.count < 2 or list.count > 3) return false;
        const name = list.at(0);
        const text = list.at(1);
        if (name.codec != .text or text.codec != .text) return false;
        if (name.payload.len == 0 or name.payload.len > layout.call_name_size_max) return false;
        return text.payload.len <= layout.call_text_size_max;
    }

    fn freeUnheld(call: *Call) void {
        if (call.held or call.under_way) return;
        const calls = call.calls;
        call.dropItems();
        if (call.answer) |note| {
            if (note.kind == .throw) calls.keepThrown(note) else note.destroy(calls.gpa);
        }
        calls.gpa.destroy(call);
    }

    fn dropItems(call: *Call) void {
        while (call.items.pop()) |note| note.destroy(call.calls.gpa);
    }
};

/// The error in the list of a throw.
pub fn failureOf(list: List) Failure {
    return .{
        .name = list.at(0).payload,
        .text = list.at(1).payload,
        .data = if (list.count > 2) list.at(2) else null,
    };
}

/// Makes what is handed out of a value that lies in a note, which goes with it.
fn make(comptime T: type, calls: *Calls, value: Value, note: *Note) CallError!Returned(T) {
    var arena: std.heap.ArenaAllocator = .init(calls.gpa);
    errdefer arena.deinit();
    const decoded = callee.decode(T, arena.allocator(), value) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        error.WrongType => return error.ResultType,
    };
    if (comptime !callee.isFlat(T)) {
        return .{ .value = decoded, .note = note, .arena = arena };
    }
    arena.deinit();
    return decoded;
}

/// The items of a call, and then its result.
pub fn Items(comptime T: type) type {
    return struct {
        call: *Call,
        /// For each item.
        timeout: Timeout,
        token: ?*const CancelToken,

        const Self = @This();

        /// Waits for the next; null behind the last.
        pub fn next(items: *Self) CallError!?Returned(T) {
            return items.call.next(T, items.timeout, items.token);
        }

        /// What stands behind the items.
        ///
        /// Asserts that `next` has returned null.
        pub fn result(items: *Self, comptime R: type) CallError!Returned(R) {
            return items.call.result(R);
        }

        /// Gives the call up where there are more.
        pub fn deinit(items: *Self) void {
            items.call.release();
        }
    };
}

// What ends a call before its answer: the caller's token, and the one of a method
// [spec/call.md, "To give a call up"].

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
