//! Calls for C: those that this side makes [spec/call.md, "Calling"]. What each call promises
//! stands in `millrace_call.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const c_call = @import("call.zig");
const c_call_token = @import("call_token.zig");
const Body = c_call.Body;
const Call = @import("../call/own.zig").Call;
const Calls = @import("../call/call.zig").Calls;
const CancelToken = @import("../call/token.zig").CancelToken;
const ListValue = c_call.ListValue;
const Object = c_call.Object;
const Status = arguments.Status;
const Timeout = @import("../wait/mechanism.zig").Timeout;
const Value = @import("../call/values.zig").Value;
const fromValue = c_call.fromValue;
const valueOf = c_call.valueOf;

/// `millrace_failure`.
pub const Failure = extern struct {
    name: ?*const anyopaque,
    name_size: usize,
    text: ?*const anyopaque,
    text_size: usize,
    data: ?*const anyopaque,
    data_size: usize,
    data_codec: u32,
    has_data: u32,
};

/// `millrace_on_item`.
pub const OnItem = *const fn (
    context: ?*anyopaque,
    item: ?*const anyopaque,
) callconv(.c) i32;

/// What a call is made with; null where an argument is wrong.
const Asked = struct {
    body: *Body,
    name: []const u8,
    values: []Value,
    options: Calls.CallOptions,

    fn init(
        calls: ?*anyopaque,
        name: ?[*:0]const u8,
        values: ?*const anyopaque,
        count: usize,
        timeout_ms: i32,
        token: ?*anyopaque,
    ) union(enum) { asked: Asked, status: Status } {
        const object = Object.known(calls) orelse return .{ .status = arguments.invalid };
        const body = &object.body;
        const named = std.mem.sliceTo(name orelse return .{ .status = arguments.invalid }, 0);
        const timeout = arguments.timeoutOf(timeout_ms) orelse
            return .{ .status = arguments.invalid };
        const whose = c_call_token.of(object, token) catch
            return .{ .status = arguments.invalid };
        if (body.readsNothing()) return .{ .status = arguments.invalid };
        if (named.len == 0 or named.len > layout.call_name_size_max or
            count >= layout.values_count_max) return .{ .status = arguments.invalid };
        const given = arguments.arrayAt(ListValue, values, count) orelse
            return .{ .status = arguments.invalid };
        const list = body.calls.gpa.alloc(Value, count) catch |err|
            return .{ .status = body.failed(err) };
        for (given, list) |from, *to| to.* = valueOf(from) orelse {
            body.calls.gpa.free(list);
            return .{ .status = arguments.invalid };
        };
        body.busy += 1;
        return .{ .asked = .{
            .body = body,
            .name = named,
            .values = list,
            .options = .{ .timeout = timeout, .token = whose },
        } };
    }

    fn deinit(asked: Asked) void {
        asked.body.busy -= 1;
        asked.body.calls.gpa.free(asked.values);
    }
};

pub export fn millrace_call(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    result: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(ListValue, result) orelse return arguments.invalid;
    filled.* = fromValue(.absent);
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms, token)) {
        .asked => |asked| asked,
        .status => |status| return status,
    };
    defer asked.deinit();
    const body = asked.body;
    const returned = body.calls.call(Value, asked.name, asked.values, asked.options) catch |err|
        return body.failed(err);
    body.keep(returned);
    filled.* = fromValue(returned.value);
    return arguments.done;
}

/// A call that was begun. Its number is the caller's; ids are used again.
const Begun = struct {
    own: *Call,
    number: usize,
    /// Whether somebody waits for it, perhaps under the handler that asks.
    is_awaited: bool = false,
    node: std.DoublyLinkedList.Node = .{},
};

fn findBegun(body: *Body, number: usize) ?*Begun {
    var node = body.begun.first;
    while (node) |each| : (node = each.next) {
        const begun: *Begun = @alignCast(@fieldParentPtr("node", each));
        if (begun.number == number) return begun;
    }
    return null;
}

fn forget(body: *Body, begun: *Begun) void {
    body.begun.remove(&begun.node);
    begun.own.release();
    body.calls.gpa.destroy(begun);
}

/// Gives up what was begun and not waited for.
pub fn forgetBegun(body: *Body) void {
    while (body.begun.first) |node| forget(body, @alignCast(@fieldParentPtr("node", node)));
}

pub export fn millrace_call_begin(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    begun: ?*anyopaque,
) Status {
    return begin(.result, calls, name, values, count, timeout_ms, token, begun);
}

pub export fn millrace_call_begin_items(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    begun: ?*anyopaque,
) Status {
    return begin(.items, calls, name, values, count, timeout_ms, token, begun);
}

/// Begins a call whose result comes whole, or in pieces, and fills its number in.
fn begin(
    wanted: enum { result, items },
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    begun: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(usize, begun) orelse return arguments.invalid;
    filled.* = 0;
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms, token)) {
        .asked => |asked| asked,
        .status => |status| return status,
    };
    defer asked.deinit();
    const body = asked.body;
    const kept = body.calls.gpa.create(Begun) catch |err| return body.failed(err);
    kept.own = switch (wanted) {
        .result => body.calls.begin(asked.name, asked.values, asked.options),
        .items => if (body.calls.items(Value, asked.name, asked.values, asked.options)) |items|
            items.call
        else |err|
            err,
    } catch |err| {
        body.calls.gpa.destroy(kept);
        return body.failed(err);
    };
    body.last_begun +%= 1;
    if (body.last_begun == 0) body.last_begun = 1;
    kept.* = .{ .own = kept.own, .number = body.last_begun };
    body.begun.append(&kept.node);
    filled.* = kept.number;
    return arguments.done;
}

/// A call that was begun, and how to wait for what comes of it; null where an argument is wrong.
const Awaited = struct {
    body: *Body,
    kept: *Begun,
    timeout: Timeout,
    token: ?*const CancelToken,

    fn init(calls: ?*anyopaque, begun: usize, timeout_ms: i32, token: ?*anyopaque) ?Awaited {
        const object = Object.known(calls) orelse return null;
        const body = &object.body;
        const kept = findBegun(body, begun) orelse return null;
        const timeout = arguments.timeoutOf(timeout_ms) orelse return null;
        const whose = c_call_token.of(object, token) catch return null;
        if (kept.is_awaited or body.readsNothing()) return null;
        return .{ .body = body, .kept = kept, .timeout = timeout, .token = whose };
    }

    fn enter(awaited: Awaited) void {
        awaited.kept.is_awaited = true;
        awaited.body.busy += 1;
    }

    fn leave(awaited: Awaited) void {
        awaited.body.busy -= 1;
        awaited.kept.is_awaited = false;
    }

    /// The status of a wait that has failed. Where the wait alone has, it may be asked for again.
    fn failed(awaited: Awaited, err: anyerror) Status {
        const body, const kept = .{ awaited.body, awaited.kept };
        const is_over = err == error.Aborted or kept.own.isDone() and err != error.OutOfMemory;
        if (is_over) forget(body, kept);
        return body.failed(err);
    }
};

pub export fn millrace_call_next(
    calls: ?*anyopaque,
    begun: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    item: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(ListValue, item) orelse return arguments.invalid;
    filled.* = fromValue(.absent);
    const awaited = Awaited.init(calls, begun, timeout_ms, token) orelse return arguments.invalid;
    const own = awaited.kept.own;
    if (!own.takes_items) return arguments.invalid;
    awaited.enter();
    const next = own.next(Value, awaited.timeout, awaited.token);
    awaited.leave();
    const found = next catch |err| return awaited.failed(err);
    const returned = found orelse return arguments.end;
    awaited.body.keep(returned);
    filled.* = fromValue(returned.value);
    return arguments.done;
}

pub export fn millrace_call_finish(
    calls: ?*anyopaque,
    begun: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    result: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(ListValue, result) orelse return arguments.invalid;
    filled.* = fromValue(.absent);
    const awaited = Awaited.init(calls, begun, timeout_ms, token) orelse return arguments.invalid;
    const body, const kept = .{ awaited.body, awaited.kept };
    awaited.enter();
    const waited = kept.own.wait(awaited.timeout, awaited.token);
    awaited.leave();
    const done = waited catch |err| return awaited.failed(err);
    if (!done) return arguments.nothing;
    defer forget(body, kept);
    const returned = kept.own.result(Value) catch |err| return body.failed(err);
    body.keep(returned);
    filled.* = fromValue(returned.value);
    return arguments.done;
}

pub export fn millrace_call_give_up(calls: ?*anyopaque, begun: usize) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const kept = findBegun(&object.body, begun) orelse return arguments.invalid;
    kept.own.giveUp();
    if (!kept.is_awaited) forget(&object.body, kept);
    return arguments.done;
}

pub export fn millrace_call_items(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
    on_item: ?OnItem,
    context: ?*anyopaque,
    result: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(ListValue, result) orelse return arguments.invalid;
    filled.* = fromValue(.absent);
    const hand = on_item orelse return arguments.invalid;
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms, token)) {
        .asked => |asked| asked,
        .status => |status| return status,
    };
    defer asked.deinit();
    const body = asked.body;
    var items = body.calls.items(Value, asked.name, asked.values, asked.options) catch |err|
        return body.failed(err);
    defer items.deinit();
    while (items.next() catch |err| return body.failed(err)) |item| {
        defer item.deinit();
        const shown = fromValue(item.value);
        if (hand(context, &shown) == 0) return arguments.nothing;
    }
    const returned = items.result(Value) catch |err| return body.failed(err);
    body.keep(returned);
    filled.* = fromValue(returned.value);
    return arguments.done;
}

pub export fn millrace_call_notify(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    token: ?*anyopaque,
) Status {
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms, token)) {
        .asked => |asked| asked,
        .status => |status| return status,
    };
    defer asked.deinit();
    asked.body.calls.notify(asked.name, asked.values, asked.options) catch |err|
        return asked.body.failed(err);
    return arguments.done;
}

pub export fn millrace_call_thrown(calls: ?*anyopaque, failure: ?*anyopaque) Status {
    const result = arguments.resultAt(Failure, failure) orelse return arguments.invalid;
    result.* = std.mem.zeroes(Failure);
    const object = Object.known(calls) orelse return arguments.invalid;
    const thrown = object.body.calls.thrown() orelse return arguments.nothing;
    const data = fromValue(thrown.data orelse .absent);
    result.* = .{
        .name = thrown.name.ptr,
        .name_size = thrown.name.len,
        .text = thrown.text.ptr,
        .text_size = thrown.text.len,
        .data = data.payload,
        .data_size = data.size,
        .data_codec = data.codec,
        .has_data = @intFromBool(thrown.data != null),
    };
    return arguments.done;
}
