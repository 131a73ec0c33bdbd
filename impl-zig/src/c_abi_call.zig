//! Calls for C: made with lists of values, and served by one function of the caller's
//! [spec/call.md]. What each call promises stands in
//! `millrace_call.h`.

const std = @import("std");
const layout = @import("layout.zig");
const arguments = @import("c_abi_arguments.zig");
const c_abi_port = @import("c_abi_port.zig");
const call_error = @import("call_error.zig");
const Allocator = std.mem.Allocator;
const Calls = @import("call.zig").Calls;
const Owned = @import("call_own.zig").Owned;
const Serving = @import("call.zig").Serving;
const Status = arguments.Status;
const Value = @import("call_values.zig").Value;

/// `millrace_value`.
pub const ListValue = extern struct {
    payload: ?*const anyopaque,
    size: usize,
    codec: u32,
};

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

/// `millrace_allocate`.
pub const Allocate = *const fn (
    context: ?*anyopaque,
    memory: ?*anyopaque,
    size: usize,
) callconv(.c) ?*anyopaque;

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

/// `millrace_on_item`.
pub const OnItem = *const fn (
    context: ?*anyopaque,
    item: ?*const anyopaque,
) callconv(.c) i32;

const Body = struct {
    calls: Calls,
    port: *c_abi_port.Object,
    allocate: Allocate,
    allocate_context: ?*anyopaque,
    handler: ?Handler = null,
    handler_context: ?*anyopaque = null,
    /// The number of the last call that was served.
    last_serving: usize = 0,
    /// How many calls of this library stand on the stack, in which a method may run.
    busy: u32 = 0,
    /// What was handed out last.
    result: ?Owned(Value) = null,

    fn failed(body: *Body, err: anyerror) Status {
        return arguments.failed(err, body.calls.endpoint.behind);
    }

    fn allocator(body: *Body) Allocator {
        return .{ .ptr = body, .vtable = &.{
            .alloc = alloc,
            .resize = Allocator.noResize,
            .remap = Allocator.noRemap,
            .free = free,
        } };
    }

    fn alloc(context: *anyopaque, size: usize, alignment: std.mem.Alignment, _: usize) ?[*]u8 {
        const body: *Body = @ptrCast(@alignCast(context));
        const memory = body.allocate(body.allocate_context, null, size) orelse return null;
        if (alignment.check(@intFromPtr(memory))) return @ptrCast(memory);
        // Less than `millrace_allocate` promises is no memory.
        _ = body.allocate(body.allocate_context, memory, 0);
        return null;
    }

    fn free(context: *anyopaque, memory: []u8, _: std.mem.Alignment, _: usize) void {
        const body: *Body = @ptrCast(@alignCast(context));
        _ = body.allocate(body.allocate_context, memory.ptr, 0);
    }

    fn keep(body: *Body, result: ?Owned(Value)) void {
        if (body.result) |old| old.deinit();
        body.result = result;
    }

    fn findServing(body: *Body, number: usize) ?*Serving {
        var node = body.calls.servings.first;
        while (node) |each| : (node = each.next) {
            const serving: *Serving = @alignCast(@fieldParentPtr("node", each));
            if (serving.state != .running and serving.state != .later) continue;
            if (@intFromPtr(serving.user) == number) return serving;
        }
        return null;
    }
};

pub const Object = arguments.Object(Body, .calls);

pub export fn millrace_calls_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_calls_attach(
    calls: ?*anyopaque,
    port: ?*anyopaque,
    allocate: ?Allocate,
    context: ?*anyopaque,
) Status {
    const object = Object.blank(calls) orelse return arguments.invalid;
    const through = c_abi_port.Object.known(port) orelse return arguments.invalid;
    const own = allocate orelse return arguments.invalid;
    if (!through.body.takeCalls()) return arguments.invalid;
    const body = &object.body;
    body.* = .{
        .calls = undefined,
        .port = through,
        .allocate = own,
        .allocate_context = context,
    };
    body.calls.init(&through.body.port, body.allocator(), .{});
    body.calls.options.methods = .{ .context = object, .find = find };
    object.seal();
    return arguments.done;
}

pub export fn millrace_calls_set_limits(
    calls: ?*anyopaque,
    message_size: usize,
    inbox_size: usize,
    serving_size: usize,
) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const own = &object.body.calls;
    own.intake.limit = message_size;
    own.options.inbox_size = inbox_size;
    own.options.serving_size = serving_size;
    return arguments.done;
}

pub export fn millrace_calls_leave(calls: ?*anyopaque) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const body = &object.body;
    if (body.busy > 0) return arguments.invalid;
    body.keep(null);
    body.calls.deinit();
    body.port.body.role = .both;
    object.forget();
    return arguments.done;
}

pub export fn millrace_calls_read(
    calls: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    timeout_ms: i32,
    message: ?*anyopaque,
) Status {
    const result = arguments.resultAt(c_abi_port.Message, message) orelse return arguments.invalid;
    result.* = std.mem.zeroes(c_abi_port.Message);
    const object = Object.known(calls) orelse return arguments.invalid;
    const body = &object.body;
    const bytes = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    body.busy += 1;
    defer body.busy -= 1;
    const found = body.calls.read(bytes, timeout) catch |err| return body.failed(err);
    const own = found orelse
        return if (body.calls.ended()) arguments.end else arguments.nothing;
    result.* = c_abi_port.copied(storage, own);
    return arguments.done;
}

pub export fn millrace_calls_write(
    calls: ?*anyopaque,
    payload: ?*const anyopaque,
    size: usize,
    codec: u32,
    tag: u32,
    timeout_ms: i32,
) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const body = &object.body;
    const bytes = arguments.bytesAt(payload, size) orelse return arguments.invalid;
    const envelope = arguments.envelopeOf(codec, tag) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!c_abi_port.fits(body.calls.writer, size, envelope, timeout)) return arguments.invalid;
    body.calls.write(bytes, envelope, timeout) catch |err| return body.failed(err);
    return arguments.done;
}

pub export fn millrace_calls_end(calls: ?*anyopaque, timeout_ms: i32) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    object.body.calls.end(timeout) catch |err| return object.body.failed(err);
    return arguments.done;
}

pub export fn millrace_calls_vacate(calls: ?*anyopaque) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    return if (object.body.calls.vacate()) arguments.done else arguments.invalid;
}

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
    ) union(enum) { asked: Asked, status: Status } {
        const object = Object.known(calls) orelse return .{ .status = arguments.invalid };
        const body = &object.body;
        const named = std.mem.sliceTo(name orelse return .{ .status = arguments.invalid }, 0);
        const timeout = arguments.timeoutOf(timeout_ms) orelse
            return .{ .status = arguments.invalid };
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
            .options = .{ .timeout = timeout },
        } };
    }

    fn deinit(asked: Asked) void {
        asked.body.busy -= 1;
        asked.body.calls.gpa.free(asked.values);
    }
};

/// A value that a caller passes; null where its bytes cannot lie anywhere.
fn valueOf(value: ListValue) ?Value {
    if (value.codec > std.math.maxInt(u8)) return null;
    const payload = arguments.bytesAt(value.payload, value.size) orelse return null;
    return .{ .codec = @fromBackingInt(value.codec), .payload = payload };
}

fn fromValue(value: Value) ListValue {
    return .{
        .payload = value.payload.ptr,
        .size = value.payload.len,
        .codec = @backingInt(value.codec),
    };
}

pub export fn millrace_call(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    result: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(ListValue, result) orelse return arguments.invalid;
    filled.* = fromValue(.absent);
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms)) {
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

pub export fn millrace_call_items(
    calls: ?*anyopaque,
    name: ?[*:0]const u8,
    values: ?*const anyopaque,
    count: usize,
    timeout_ms: i32,
    on_item: ?OnItem,
    context: ?*anyopaque,
    result: ?*anyopaque,
) Status {
    const filled = arguments.resultAt(ListValue, result) orelse return arguments.invalid;
    filled.* = fromValue(.absent);
    const hand = on_item orelse return arguments.invalid;
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms)) {
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
) Status {
    const asked = switch (Asked.init(calls, name, values, count, timeout_ms)) {
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

fn find(context: ?*anyopaque, _: []const u8) ?@import("call.zig").Methods.Method {
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
        const is_of_call = std.mem.startsWith(u8, code.name(), "call.") and code != .call_thrown;
        if (is_of_call) return call_error.errorOf(code);
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
    const given = object.body.findServing(serving) orelse return arguments.invalid;
    return if (given.isCancelled()) arguments.done else arguments.nothing;
}
