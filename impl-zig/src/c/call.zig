//! Ports with calls for C [spec/call.md]: the object, and plain messages. Calls are made in
//! `call_make.zig` and served in `call_serve.zig`. What each call promises stands in
//! `millrace_call.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const c_call_make = @import("call_make.zig");
const c_call_serve = @import("call_serve.zig");
const Allocator = std.mem.Allocator;
const Calls = @import("../call/call.zig").Calls;
const Owned = @import("../call/own.zig").Owned;
const Serving = @import("../call/call.zig").Serving;
const Status = arguments.Status;
const Value = @import("../call/values.zig").Value;

/// `millrace_value`.
pub const ListValue = extern struct {
    payload: ?*const anyopaque,
    size: usize,
    codec: u32,
};

/// `millrace_allocate`.
pub const Allocate = *const fn (
    context: ?*anyopaque,
    memory: ?*anyopaque,
    size: usize,
) callconv(.c) ?*anyopaque;

pub const Body = struct {
    calls: Calls,
    port: *c_port.Object,
    allocate: Allocate,
    allocate_context: ?*anyopaque,
    handler: ?c_call_serve.Handler = null,
    handler_context: ?*anyopaque = null,
    /// The number of the last call that was served.
    last_serving: usize = 0,
    /// How many calls of this library stand on the stack, in which a method may run.
    busy: u32 = 0,
    /// What was handed out last.
    result: ?Owned(Value) = null,
    /// Calls that were begun, and not waited for to their end yet.
    begun: std.DoublyLinkedList = .{},
    /// The number of the last of them.
    last_begun: usize = 0,
    /// The tokens for it. While there are any, it stays.
    token_count: usize = 0,

    pub fn failed(body: *Body, err: anyerror) Status {
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

    fn whyNone(body: *const Body) Status {
        return if (body.calls.ended()) arguments.end else arguments.nothing;
    }

    pub fn keep(body: *Body, result: ?Owned(Value)) void {
        if (body.result) |old| old.deinit();
        body.result = result;
    }

    /// Whether a frame is lent, behind which nothing can be read; or, between two frames of one
    /// message, whether that is.
    pub fn readsNothing(body: *const Body) bool {
        return body.calls.isLent();
    }

    /// Whether a frame is lent now.
    fn lends(body: *const Body) bool {
        return body.calls.lent_note or body.calls.reader.isLent();
    }

    pub fn findServing(body: *Body, number: usize) ?*Serving {
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
    const through = c_port.Object.known(port) orelse return arguments.invalid;
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
    body.calls.options.methods = .{ .context = object, .find = c_call_serve.find };
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
    if (body.busy > 0 or body.lends() or body.token_count > 0) return arguments.invalid;
    body.keep(null);
    c_call_make.forgetBegun(body);
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
    const result = arguments.resultAt(c_port.Message, message) orelse return arguments.invalid;
    result.* = std.mem.zeroes(c_port.Message);
    const object = Object.known(calls) orelse return arguments.invalid;
    const body = &object.body;
    const bytes = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (body.readsNothing()) return arguments.invalid;
    body.busy += 1;
    defer body.busy -= 1;
    const found = body.calls.read(bytes, timeout) catch |err| return body.failed(err);
    const own = found orelse return body.whyNone();
    result.* = c_port.copied(storage, own);
    return arguments.done;
}

pub export fn millrace_calls_peek(
    calls: ?*anyopaque,
    timeout_ms: i32,
    message: ?*anyopaque,
) Status {
    const result = arguments.resultAt(c_port.Message, message) orelse return arguments.invalid;
    result.* = std.mem.zeroes(c_port.Message);
    const object = Object.known(calls) orelse return arguments.invalid;
    const body = &object.body;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    // Whoever waits under a handler takes in what arrives.
    if (body.busy > 0 or body.lends()) return arguments.invalid;
    body.busy += 1;
    defer body.busy -= 1;
    const found = body.calls.peek(timeout) catch |err| return body.failed(err);
    result.* = c_port.inPlace(found orelse return body.whyNone());
    return arguments.done;
}

pub export fn millrace_calls_release(calls: ?*anyopaque) Status {
    const object = Object.known(calls) orelse return arguments.invalid;
    if (!object.body.lends()) return arguments.invalid;
    object.body.calls.release();
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
    if (!c_port.fits(body.calls.writer, size, envelope, timeout)) return arguments.invalid;
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

/// A value that a caller passes; null where its bytes cannot lie anywhere.
pub fn valueOf(value: ListValue) ?Value {
    if (value.codec > std.math.maxInt(u8)) return null;
    const payload = arguments.bytesAt(value.payload, value.size) orelse return null;
    return .{ .codec = @fromBackingInt(value.codec), .payload = payload };
}

pub fn fromValue(value: Value) ListValue {
    return .{
        .payload = value.payload.ptr,
        .size = value.payload.len,
        .codec = @backingInt(value.codec),
    };
}
