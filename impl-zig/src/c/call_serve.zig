//! Calls for C: those that one function of the caller's serves [spec/call.md, "Serving"]. What each
//! call promises stands in `millrace_call.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const called = @import("call.zig");
const call_error = @import("../call/error.zig");
const ListValue = called.ListValue;
const Methods = @import("../call/call.zig").Methods;
const Object = called.Object;
const Serving = @import("../call/call.zig").Serving;
const Status = arguments.Status;
const Value = @import("../call/values.zig").Value;
const fromValue = called.fromValue;
const valueOf = called.valueOf;

/// `millrace_handler`.
pub const Handler = *const fn (
    context: ?*anyopaque,
    calls: ?*anyopaque,
    serving: usize,
    name: ?*const anyopaque,
    name_size: usize,
    values: ?*const anyopaque,
    count: usize,
) callconv(.c) Status;

pub export fn millrace_serve(
    calls: ?*anyopaque,
    handler: ?Handler,
    context: ?*anyopaque,
) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    object.body.handler = handler;
    object.body.handler_context = context;
    return arguments.done;
}

/// `Methods.find`.
pub fn find(context: ?*anyopaque, _: []const u8) ?Methods.Method {
    const object: *Object = @ptrCast(@alignCast(context.?));
    return if (object.body.handler == null) null else invoke;
}

fn invoke(context: ?*anyopaque, serving: *Serving) anyerror!void {
    const object: *Object = @ptrCast(@alignCast(context.?));
    const body = &object.body;
    body.last_serving +%= 1;
    if (body.last_serving == 0) body.last_serving = 1;
    serving.user = @ptrFromInt(body.last_serving);
    const list = try serving.allocator().alloc(ListValue, serving.argumentCount());
    var values = serving.arguments();
    for (list) |*place| place.* = fromValue(values.next().?);
    const named = serving.name();
    const status = body.handler.?(
        body.handler_context,
        object,
        body.last_serving,
        named.ptr,
        named.len,
        list.ptr,
        list.len,
    );
    if (status == arguments.done or serving.state != .running) return;
    const code: layout.Reason = @fromBackingInt(if (status < 0) @abs(status) else 0);
    for (std.meta.tags(layout.Reason)) |known| {
        if (known != code) continue;
        // It becomes call.cancelled where its caller has given it up.
        if (code == .wait_aborted) return error.Aborted;
        if (std.mem.startsWith(u8, code.name(), "call.")) return call_error.errorOf(code);
        return serving.fail(code.name(), "", {});
    }
    return serving.fail("", "", {});
}

pub export fn millrace_serve_return(
    calls: ?*anyopaque,
    serving: usize,
    value: ?*const anyopaque,
) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const given = object.body.findServing(serving) orelse return arguments.invalid;
    const result: ?Value = if (value) |address| result: {
        const list = arguments.arrayAt(ListValue, address, 1) orelse return arguments.invalid;
        break :result valueOf(list[0]) orelse return arguments.invalid;
    } else null;
    given.answer(result);
    return arguments.done;
}

pub export fn millrace_serve_throw(
    calls: ?*anyopaque,
    serving: usize,
    name: ?[*:0]const u8,
    text: ?[*:0]const u8,
    data: ?*const anyopaque,
) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const given = object.body.findServing(serving) orelse return arguments.invalid;
    const named = if (name) |each| std.mem.sliceTo(each, 0) else "";
    const said = if (text) |each| std.mem.sliceTo(each, 0) else "";
    if (data) |address| {
        const list = arguments.arrayAt(ListValue, address, 1) orelse return arguments.invalid;
        const value = valueOf(list[0]) orelse return arguments.invalid;
        given.throw(given.fail(named, said, value));
    } else {
        given.throw(given.fail(named, said, {}));
    }
    return arguments.done;
}

pub export fn millrace_serve_item(
    calls: ?*anyopaque,
    serving: usize,
    value: ?*const anyopaque,
    timeout_ms: i32,
) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const body = &object.body;
    const given = body.findServing(serving) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    const list = arguments.arrayAt(ListValue, value, 1) orelse return arguments.invalid;
    const item = valueOf(list[0]) orelse return arguments.invalid;
    if (body.readsNothing()) return arguments.invalid;
    body.busy += 1;
    defer body.busy -= 1;
    given.item(item, timeout) catch |err| return body.failed(err);
    return arguments.done;
}

pub export fn millrace_serve_later(calls: ?*anyopaque, serving: usize) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const given = object.body.findServing(serving) orelse return arguments.invalid;
    if (given.state != .running) return arguments.invalid;
    given.later(null);
    return arguments.done;
}

pub export fn millrace_serve_cancelled(calls: ?*anyopaque, serving: usize) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const own = &object.body.calls;
    // Any thread may have closed the port, which nobody has told the calls of it yet [call.told].
    if (own.endpoint.closedHere()) own.lose(own.endpoint.whyClosed());
    const given = object.body.findServing(serving) orelse return arguments.invalid;
    return if (given.isCancelled()) arguments.done else arguments.nothing;
}
