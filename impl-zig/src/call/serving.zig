//! The side that serves a call: its arguments, its items and its answer [spec/call.md, "Serving"].
//!
//! Invariant: a call is answered once, by whichever comes first of what its method gave and a
//! refusal; and what was accepted as an answer needs no memory that may not be there.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const call_error = @import("error.zig");
const call_values = @import("values.zig");
const call_outlet = @import("outlet.zig");
const call_typed = @import("typed.zig");
const reasonOf = @import("../error.zig").reasonOf;
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const CallError = call_error.CallError;
const Calls = @import("call.zig").Calls;
const CancelToken = @import("token.zig").CancelToken;
const List = call_values.List;
const Note = @import("intake.zig").Note;
const Timeout = host.Timeout;
const Value = call_values.Value;

/// A call, or a notice, that this side serves: what a method asks of it.
///
/// It is valid until its method returns, or, of one that answers later, until it has answered.
///
/// Thread safety: belongs to the thread of its port.
pub const Serving = struct {
    /// The port's calls, by which a method may call back.
    calls: *Calls,
    /// Cancelled when the caller gives the call up, and when the port is lost [call.cancelled]
    /// [call.told]. A call that the method makes may be given it.
    token: CancelToken,
    /// For whoever answers later.
    user: ?*anyopaque = null,
    id: u32,
    note: *Note,
    list: List = .empty,
    /// Why it is refused, where that is known before it begins.
    refusal: ?layout.Reason = null,
    arena: std.heap.ArenaAllocator,
    state: enum { arrived, running, later, posted, answered } = .arrived,
    /// Whether its method has not returned yet, or one that answers later sends an item: until then
    /// it stays, also where it was answered.
    on_stack: bool = false,
    /// Whether nothing can be written for it any more [call.told] [call.vacated].
    silent: bool = false,
    allowed: u64 = layout.call_window,
    sent: u64 = 0,
    on_cancel: ?*const fn (*Serving) void = null,
    failure: ?Failure = null,
    /// Among all that the port serves.
    node: std.DoublyLinkedList.Node = .{},
    next: ?*Serving = null,
    send: pipe.Send = undefined,
    parts: [1][]const u8 = undefined,
    /// The answer, while it has no room: here, or in memory of its own.
    small: [small_size]u8 = undefined,
    large: []u8 = &.{},

    const small_size = 128;

    /// The error of a method.
    pub const Failure = struct {
        name: []const u8,
        text: []const u8,
        /// Null where there is none.
        data: ?Value = null,
    };

    /// Fills in what was allocated for a call that has arrived.
    pub fn init(serving: *Serving, calls: *Calls, note: *Note) void {
        serving.* = .{
            .calls = calls,
            .token = .init(calls.endpoint),
            .id = note.tag,
            .note = note,
            .refusal = note.fault,
            .arena = .init(calls.gpa),
        };
    }

    /// The argument at an index; absent behind the last. Valid as long as this is.
    pub fn argument(serving: *const Serving, index: usize) Value {
        return serving.list.at(index + 1);
    }

    /// How many arguments it has, absent ones at the end included.
    pub fn argumentCount(serving: *const Serving) usize {
        return serving.list.count -| 1;
    }

    /// The arguments, in order.
    pub fn arguments(serving: *const Serving) List.Iterator {
        var values = serving.list.iterator();
        _ = values.next();
        return values;
    }

    /// The name by which it was called.
    pub fn name(serving: *const Serving) []const u8 {
        return serving.list.at(0).payload;
    }

    /// Memory that is given back when the call is answered.
    pub fn allocator(serving: *Serving) Allocator {
        return serving.arena.allocator();
    }

    /// Whether the caller has given the call up, or nobody can be answered any more.
    pub fn isCancelled(serving: *const Serving) bool {
        return serving.token.isCancelled();
    }

    /// Whether it has begun and was not answered.
    pub fn awaitsAnswer(serving: *const Serving) bool {
        return serving.state == .running or serving.state == .later;
    }

    /// Whether nobody waits for an answer.
    pub fn isNotice(serving: *const Serving) bool {
        return serving.id == 0;
    }

    /// Sends a piece of the result, and waits for room, and until the caller has taken enough of
    /// those before, as long as the timeout allows; it serves meanwhile [call.window]. So a method
    /// makes the next item when this one is placed [call.next_item]. Of a notice it does nothing.
    ///
    /// `error.CallCancelled` where the caller has given up, or another method has answered the call
    /// meanwhile, and `error.CallResult` where the value cannot be written; a method may return
    /// both as they are.
    pub fn item(serving: *Serving, value: anytype, timeout: Timeout) CallError!void {
        assert(serving.awaitsAnswer());
        if (serving.isNotice()) return;
        // What is taken in meanwhile may be its cancel, which answers it.
        const was_on_stack = serving.on_stack;
        serving.on_stack = true;
        defer if (!was_on_stack) serving.returned();
        var bytes = serving.calls.takeBytes();
        defer serving.calls.giveBytes(bytes);
        const payload = try encode(serving, &bytes, value);
        return call_outlet.sendItem(serving.calls, serving, payload, timeout);
    }

    /// Says that the method answers after it has returned, by `answer` or `throw`. `on_cancel` is
    /// called, once, when it is told that it was cancelled; it may answer, and must not call
    /// anything else of the port's. Where there is none, the call is then answered by
    /// `call.cancelled`.
    pub fn later(serving: *Serving, on_cancel: ?*const fn (*Serving) void) void {
        assert(serving.state == .running);
        serving.state = .later;
        serving.on_cancel = on_cancel orelse answerCancelled;
    }

    fn answerCancelled(serving: *Serving) void {
        serving.throw(error.CallCancelled);
    }

    /// Answers with a result; one that cannot be written becomes a throw of `call.result`
    /// [call.result]. Never waits. Behind it, this is valid only as long as the method runs.
    ///
    /// Asserts that it was not answered.
    pub fn answer(serving: *Serving, value: anytype) void {
        assert(serving.awaitsAnswer());
        if (serving.isNotice()) return serving.conclude();
        const calls = serving.calls;
        var bytes = calls.takeBytes();
        defer calls.giveBytes(bytes);
        const payload = encode(serving, &bytes, value) catch
            return serving.refuse(.call_result);
        serving.post(.@"return", payload);
    }

    /// Records the error with which the method fails, which is to return what this returns.
    pub fn fail(
        serving: *Serving,
        error_name: []const u8,
        text: []const u8,
        data: anytype,
    ) error{CallThrown} {
        serving.failure = .{ .name = "", .text = "" };
        serving.record(error_name, text, data) catch {};
        return error.CallThrown;
    }

    fn record(serving: *Serving, error_name: []const u8, text: []const u8, data: anytype) !void {
        const memory = serving.allocator();
        const failure = &serving.failure.?;
        failure.name = try memory.dupe(u8, error_name);
        failure.text = try memory.dupe(u8, text);
        if (@TypeOf(data) == void) return;
        var bytes: std.ArrayList(u8) = .empty;
        const payload = try call_typed.encodeOne(memory, &bytes, data);
        const list: List = if (payload.len == 0) .empty else .{ .payload = payload, .count = 1 };
        failure.data = list.at(0);
    }

    /// Answers with the error of a method: what `fail` has recorded, or the code that the error
    /// has, or else its name [call.throw].
    ///
    /// Asserts that it was not answered.
    pub fn throw(serving: *Serving, err: anyerror) void {
        assert(serving.awaitsAnswer());
        if (err == error.CallThrown) {
            // A call within has failed, and its error is not looked into.
            const failure = serving.failure orelse serving.calls.thrown() orelse
                Failure{ .name = "", .text = "" };
            return serving.throwNamed(failure);
        }
        if (err == error.Aborted and serving.isCancelled()) return serving.refuse(.call_cancelled);
        if (reasonOf(err)) |code| {
            if (call_error.isOfCall(err)) return serving.refuse(code);
            return serving.throwNamed(.{ .name = code.name(), .text = "" });
        }
        serving.throwNamed(.{ .name = @errorName(err), .text = "" });
    }

    /// Answers with a throw of this code; of a notice, reports it [call.refused].
    pub fn refuse(serving: *Serving, code: layout.Reason) void {
        if (serving.isNotice()) return serving.report(code);
        const text = if (code == .call_method) serving.name() else "";
        serving.throwNamed(.{ .name = code.name(), .text = text });
    }

    fn throwNamed(serving: *Serving, failure: Failure) void {
        if (serving.isNotice()) return serving.report(.call_thrown);
        const calls = serving.calls;
        var bytes = calls.takeBytes();
        defer calls.giveBytes(bytes);
        const payload = encodeThrow(calls.gpa, &bytes, failure) catch {
            var plain: std.heap.FixedBufferAllocator = .init(&serving.small);
            var list: std.ArrayList(u8) = .empty;
            const least: Failure = .{ .name = layout.Reason.call_result.name(), .text = "" };
            const small = encodeThrow(plain.allocator(), &list, least) catch unreachable;
            return serving.post(.throw, small);
        };
        serving.post(.throw, payload);
    }

    fn encodeThrow(gpa: Allocator, bytes: *std.ArrayList(u8), failure: Failure) ![]const u8 {
        const named = cut(failure.name, layout.call_name_size_max);
        const data = if (failure.data) |data| data: {
            call_values.checkValue(gpa, data) catch break :data null;
            break :data data;
        } else null;
        const count: u32 = if (data == null) 2 else 3;
        var builder: call_values.Builder = try .init(gpa, bytes, count);
        try builder.add(.text(if (named.len == 0) "Error" else named));
        try builder.add(.text(cut(failure.text, layout.call_text_size_max)));
        if (data) |value| try builder.add(value);
        return builder.finish();
    }

    /// Cuts a text at a character so that it fits; nothing is left of one that is no UTF-8.
    fn cut(text: []const u8, size_max: usize) []const u8 {
        if (!std.unicode.utf8ValidateSlice(text)) return "";
        if (text.len <= size_max) return text;
        var size = size_max;
        while (text[size] & 0xc0 == 0x80) size -= 1;
        return text[0..size];
    }

    fn encode(
        serving: *Serving,
        bytes: *std.ArrayList(u8),
        value: anytype,
    ) error{CallResult}![]const u8 {
        return call_typed.encodeOne(serving.calls.gpa, bytes, value) catch error.CallResult;
    }

    /// Hands the answer to the port; where it has no room, a copy of it waits for that.
    fn post(serving: *Serving, kind: layout.FrameKind, payload: []const u8) void {
        const calls = serving.calls;
        const envelope: pipe.Envelope = .{ .kind = kind, .codec = .values, .tag = serving.id };
        const is_over = serving.silent or call_outlet.placeAnswer(calls, payload, envelope);
        if (is_over) return serving.conclude();
        serving.retain(payload) catch {
            // What is left to say fits.
            serving.large = &.{};
            return serving.refuse(.call_result);
        };
        serving.send = .init(&serving.parts, envelope, .forever);
        serving.leaveServed();
        serving.state = .posted;
        calls.posted.push(serving);
        call_outlet.settle(calls);
    }

    fn retain(serving: *Serving, payload: []const u8) Allocator.Error!void {
        if (payload.len <= small_size) {
            @memmove(serving.small[0..payload.len], payload);
            serving.parts[0] = serving.small[0..payload.len];
        } else {
            serving.large = try serving.calls.gpa.dupe(u8, payload);
            serving.parts[0] = serving.large;
        }
    }

    /// Whether a call of the same id would be a duplicate [call.duplicate].
    pub fn isUnderWay(serving: *const Serving) bool {
        return serving.state != .posted and serving.state != .answered and !serving.silent;
    }

    fn leaveServed(serving: *Serving) void {
        if (serving.awaitsAnswer()) {
            serving.calls.served_count -= 1;
            serving.calls.served_bytes -= serving.note.payload.len;
        }
        serving.state = .answered;
    }

    /// Nothing is left to be written.
    pub fn conclude(serving: *Serving) void {
        serving.leaveServed();
        if (!serving.on_stack) serving.destroy();
    }

    /// Makes what has arrived a report of this code.
    fn report(serving: *Serving, code: layout.Reason) void {
        serving.refusal = code;
        serving.conclude();
    }

    /// The method is done, or there is none: gives everything back, but for an answer that has no
    /// room yet.
    pub fn returned(serving: *Serving) void {
        serving.on_stack = false;
        if (serving.state == .answered) serving.destroy();
    }

    /// Gives everything back. A notice that failed leaves its note as a report.
    pub fn destroy(serving: *Serving) void {
        const calls = serving.calls;
        calls.servings.remove(&serving.node);
        serving.arena.deinit();
        calls.gpa.free(serving.large);
        const note = serving.note;
        const code = if (serving.isNotice()) serving.refusal else null;
        calls.gpa.destroy(serving);
        note.serving = null;
        if (code) |why| calls.report(note, why) else note.destroy(calls.gpa);
    }
};
