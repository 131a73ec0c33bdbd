//! Ports with calls for C [spec/call.md]: the object, plain messages, calls that are served, and
//! tokens. `call_make.zig` has the calls that are made. What each call promises stands in
//! `millrace_call.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const calling = @import("call_make.zig");
const call_error = @import("../call/error.zig");
const Allocator = std.mem.Allocator;
const Calls = @import("../call/call.zig").Calls;
const CancelToken = @import("../call/caller.zig").CancelToken;
const Methods = @import("../call/call.zig").Methods;
const Owned = @import("../call/caller.zig").Owned;
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
    handler: ?Handler = null,
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

    /// Whether a frame is lent, after which nothing can be read; or, between two frames of one
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
    if (body.busy > 0 or body.lends() or body.token_count > 0) return arguments.invalid;
    body.keep(null);
    calling.forgetBegun(body);
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

// Calls for C: those that one function of the caller's serves [spec/call.md, "Serving"]. What each
// call promises stands in `millrace_call.h`.

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

// Tokens for C, by which calls are given up from any thread, and methods are told so
// [spec/call.md, "To give a call up"]. What each call promises stands in `millrace_call.h`.

const TokenBody = struct {
    calls: *Object,
    token: CancelToken,
};

const TokenObject = arguments.Object(TokenBody, .token);

pub export fn millrace_token_size() usize {
    return @sizeOf(TokenObject);
}

pub export fn millrace_token_create(token: ?*anyopaque, calls: ?*anyopaque) Status {
    const object = TokenObject.blank(token) orelse return arguments.invalid;
    const through = Object.known(calls) orelse return arguments.invalid;
    return begin(object, through);
}

fn begin(object: *TokenObject, calls: *Object) Status {
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
    const object = TokenObject.blank(token) orelse return arguments.invalid;
    const through = Object.known(calls) orelse return arguments.invalid;
    const given = through.body.findServing(serving) orelse return arguments.invalid;
    const status = begin(object, through);
    given.token.follow(&object.body.token);
    return status;
}

pub export fn millrace_token_cancel(token: ?*anyopaque) Status {
    const object = TokenObject.known(token) orelse return arguments.invalid;
    object.body.token.cancel();
    return arguments.done;
}

pub export fn millrace_token_cancelled(token: ?*anyopaque) Status {
    const object = TokenObject.known(token) orelse return arguments.invalid;
    return if (object.body.token.isCancelled()) arguments.done else arguments.nothing;
}

pub export fn millrace_token_leave(token: ?*anyopaque) Status {
    const object = TokenObject.known(token) orelse return arguments.invalid;
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
pub fn of(calls: *Object, token: ?*anyopaque) error{Invalid}!?*const CancelToken {
    const address = token orelse return null;
    const object = TokenObject.known(address) orelse return error.Invalid;
    return if (object.body.calls == calls) &object.body.token else error.Invalid;
}

// Tests.
//
// Calls through the calls from C: two threads that serve one another.

const fixture = @import("fixture.zig");
const frame = @import("../ring/frame.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

fn json(payload: []const u8) ListValue {
    return .{ .payload = payload.ptr, .size = payload.len, .codec = 2 };
}

fn textOf(value: ListValue) []const u8 {
    return @as([*]const u8, @ptrCast(value.payload.?))[0..value.size];
}

/// Serves `down`, which calls the peer until nothing is left; `count`, which gives items; `fail`,
/// `pass`, which calls that of the peer and fails as it does; `later`, `nothing`, and nothing else.
fn handle(
    context: ?*anyopaque,
    calls: ?*anyopaque,
    serving: usize,
    name: ?*const anyopaque,
    name_size: usize,
    values: ?*const anyopaque,
    count: usize,
) callconv(.c) Status {
    const list = @as([*]const ListValue, @ptrCast(@alignCast(values.?)))[0..count];
    const method = @as([*]const u8, @ptrCast(name.?))[0..name_size];
    var text: [16]u8 = undefined;
    if (std.mem.eql(u8, method, "down")) {
        const left = std.fmt.parseInt(u32, textOf(list[0]), 10) catch
            return reasonStatus(.call_arguments);
        var result: ListValue = json("0");
        if (left > 0) {
            const less = json(std.fmt.bufPrint(&text, "{}", .{left - 1}) catch unreachable);
            const status = calling.millrace_call(calls, "down", &less, 1, 10_000, null, &result);
            if (status != arguments.done) return status;
            const depth = std.fmt.parseInt(u32, textOf(result), 10) catch unreachable;
            result = json(std.fmt.bufPrint(&text, "{}", .{depth + 1}) catch unreachable);
        }
        return millrace_serve_return(calls, serving, &result);
    }
    if (std.mem.eql(u8, method, "count")) {
        for (0..100) |number| {
            const item = json(std.fmt.bufPrint(&text, "{}", .{number}) catch unreachable);
            const status = millrace_serve_item(calls, serving, &item, 10_000);
            if (status != arguments.done) return status;
        }
        return arguments.done;
    }
    if (std.mem.eql(u8, method, "fail")) {
        const data = json("[1]");
        return millrace_serve_throw(calls, serving, "Oops", "it broke", &data);
    }
    if (std.mem.eql(u8, method, "pass")) {
        var result: ListValue = undefined;
        return calling.millrace_call(calls, "fail", null, 0, 10_000, null, &result);
    }
    if (std.mem.eql(u8, method, "later")) {
        @as(*usize, @ptrCast(@alignCast(context.?))).* = serving;
        return millrace_serve_later(calls, serving);
    }
    if (std.mem.eql(u8, method, "nothing")) return arguments.done;
    return reasonStatus(.call_method);
}

const Side = struct {
    storage: Storage align(8) = @splat(0),
    /// The last call of `later`.
    later: usize = 0,

    fn attach(side: *Side, port: *anyopaque) !void {
        const attach_calls = millrace_calls_attach;
        try expectStatus(1, attach_calls(&side.storage, port, fixture.allocate, null));
        try expectStatus(1, millrace_serve(&side.storage, handle, &side.later));
    }

    fn read(side: *Side, timeout_ms: i32) Status {
        var message: c_port.Message = undefined;
        return millrace_calls_read(&side.storage, null, 0, timeout_ms, &message);
    }

    /// Serves until the peer ends its stream.
    fn run(side: *Side) !void {
        try expectStatus(arguments.end, side.read(10_000));
        try expectStatus(1, millrace_calls_end(&side.storage, 20_000));
    }
};

fn countItem(context: ?*anyopaque, item: ?*const anyopaque) callconv(.c) i32 {
    const count: *usize = @ptrCast(@alignCast(context.?));
    const value: *const ListValue = @ptrCast(@alignCast(item.?));
    const number = std.fmt.parseInt(usize, textOf(value.*), 10) catch return 0;
    if (number != count.*) return 0;
    count.* += 1;
    return @intFromBool(count.* != 50);
}

fn expectOops(failure: calling.Failure) !void {
    const name: [*]const u8 = @ptrCast(failure.name.?);
    try testing.expectEqualStrings("Oops", name[0..failure.name_size]);
    const text: [*]const u8 = @ptrCast(failure.text.?);
    try testing.expectEqualStrings("it broke", text[0..failure.text_size]);
    try testing.expectEqual(1, failure.has_data);
}

test "c_abi: calls, items and errors, both ways" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var sides: [2]Side = .{ .{}, .{} };
    for (&sides, 0..) |*side, index| try side.attach(pair.side(index));
    defer for (&sides) |*side| std.debug.assert(millrace_calls_leave(&side.storage) == 1);
    const thread: std.Thread = try .spawn(.{}, Side.run, .{&sides[1]});
    defer thread.join();
    const own = &sides[0].storage;
    defer _ = millrace_calls_end(own, 20_000);
    var result: ListValue = undefined;

    try expectStatus(1, calling.millrace_call(own, "down", &json("20"), 1, 10_000, null, &result));
    try testing.expectEqualStrings("20", textOf(result));
    try expectStatus(1, calling.millrace_call(own, "nothing", null, 0, 10_000, null, &result));
    try testing.expectEqual(0, result.size);
    var failure: calling.Failure = undefined;
    try expectStatus(0, calling.millrace_call_thrown(own, &failure));
    const thrown = reasonStatus(.call_thrown);
    try expectStatus(thrown, calling.millrace_call(own, "fail", null, 0, 10_000, null, &result));
    try expectStatus(1, calling.millrace_call_thrown(own, &failure));
    try expectOops(failure);
    // What a method within has failed with crosses as it is.
    try expectStatus(thrown, calling.millrace_call(own, "pass", null, 0, 10_000, null, &result));
    try expectStatus(1, calling.millrace_call_thrown(own, &failure));
    try expectOops(failure);
    const unknown = reasonStatus(.call_method);
    try expectStatus(unknown, calling.millrace_call(own, "none", null, 0, 10_000, null, &result));
    const wrong = reasonStatus(.call_arguments);
    const down = calling.millrace_call(own, "down", &json("x"), 1, 10_000, null, &result);
    try expectStatus(wrong, down);
    try expectStatus(0, calling.millrace_call(own, "later", null, 0, 5, null, &result));

    var count: usize = 0;
    const items = calling.millrace_call_items;
    try expectStatus(0, items(own, "count", null, 0, 10_000, null, countItem, &count, &result));
    try testing.expectEqual(50, count);
    count = 51;
    try expectStatus(0, items(own, "count", null, 0, 10_000, null, countItem, &count, &result));
    try expectStatus(1, calling.millrace_call_notify(own, "nothing", null, 0, 20_000, null));
    try expectStatus(1, calling.millrace_call(own, "down", &json("1"), 1, 10_000, null, &result));
}

test "c_abi: a call is answered later, and once" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var side: Side = .{};
    try side.attach(pair.side(1));
    defer std.debug.assert(millrace_calls_leave(&side.storage) == 1);
    const peer = pair.side(0);
    const own = &side.storage;
    try expectStatus(1, c_port.millrace_port_set_calls(peer, 1));
    const list = "\x01\x00\x00\x00\x00\x00\x00\x00" ++
        "\x05\x00\x00\x00\x01\x00\x00\x00" ++ "later";
    try expectStatus(1, c_port.millrace_port_write_kind(peer, 3, list, list.len, 4, 7, 0));
    try expectStatus(0, side.read(0));
    try expectStatus(0, millrace_serve_cancelled(own, side.later));
    try expectStatus(-256, millrace_serve_later(own, side.later));
    try expectStatus(-256, millrace_serve_return(own, side.later + 1, null));
    try expectStatus(1, millrace_serve_return(own, side.later, &json("5")));
    try expectStatus(-256, millrace_serve_return(own, side.later, &json("5")));
    var storage: [64]u8 = undefined;
    var message: c_port.Message = undefined;
    try expectStatus(1, c_port.millrace_port_read(peer, &storage, storage.len, 0, &message));
    try testing.expectEqual(7, message.tag);
    try testing.expectEqual(4, message.kind);

    // Given up, it answers itself.
    try expectStatus(1, c_port.millrace_port_write_kind(peer, 3, list, list.len, 4, 8, 0));
    const cancel = 8 | 1 << 30;
    try expectStatus(1, c_port.millrace_port_write_kind(peer, 3, null, 0, 4, cancel, 0));
    try expectStatus(0, side.read(0));
    try expectStatus(-256, millrace_serve_return(own, side.later, null));
    try expectStatus(1, c_port.millrace_port_read(peer, &storage, storage.len, 0, &message));
    try testing.expectEqual(5, message.kind);

    // A port that was closed tells it when it is asked.
    try expectStatus(1, c_port.millrace_port_write_kind(peer, 3, list, list.len, 4, 9, 0));
    try expectStatus(0, side.read(0));
    try expectStatus(0, millrace_serve_cancelled(own, side.later));
    try expectStatus(1, c_port.millrace_port_close(pair.side(1)));
    try expectStatus(-256, millrace_serve_cancelled(own, side.later));
}

test "c_abi: a call keeps why it ended, whatever the peer's state becomes" {
    for ([_]u32{ layout.endpoint_state_failed, 77 }) |word| {
        var pair: Pair = .{};
        try pair.open();
        defer pair.leave();
        var side: Side = .{};
        try side.attach(pair.side(1));
        const own = &side.storage;
        defer std.debug.assert(millrace_calls_leave(own) == 1);
        var begun: [2]usize = undefined;
        const begin_items = calling.millrace_call_begin_items;
        try expectStatus(1, calling.millrace_call_begin(own, "a", null, 0, 0, null, &begun[0]));
        try expectStatus(1, begin_items(own, "b", null, 0, 0, null, &begun[1]));
        // A frame of a kind that there is not, which fails the peer; and the peer's own store.
        const peer = &c_port.Object.known(pair.side(0)).?.body.port;
        const ring = &peer.writer.ring;
        const header: frame.Header = .{ .size = 0, .kind = 99 };
        header.store(@alignCast(ring.area[0..layout.frame_header_size]));
        ring.tail +%= layout.frame_header_size;
        ring.publish();
        const fault = reasonStatus(.frame_kind);
        try expectStatus(fault, side.read(0));
        @atomicStore(u32, &peer.endpoint.record.state, word, .seq_cst);
        const write = millrace_calls_write;
        const failed = reasonStatus(.peer_failed);
        var result: ListValue = undefined;
        try expectStatus(failed, write(own, "[]", 2, 2, 9, 0));
        try expectStatus(fault, calling.millrace_call_finish(own, begun[0], 0, null, &result));
        const code = @backingInt(layout.Reason.frame_kind);
        try testing.expectEqual(code, c_port.millrace_port_reason(pair.side(1)));
        try expectStatus(failed, write(own, "[]", 2, 2, 9, 0));
        try expectStatus(fault, calling.millrace_call_next(own, begun[1], 0, null, &result));
    }
}

test "c_abi: a port with calls is read and written through them alone" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var side: Side = .{};
    const port = pair.side(0);
    const own = &side.storage;
    try side.attach(port);
    var storage: [16]u8 align(16) = undefined;
    var message: c_port.Message = undefined;
    try expectStatus(-256, fixture.write(port, "[]", 0));
    try expectStatus(-256, c_port.millrace_port_read(port, &storage, storage.len, 0, &message));
    try expectStatus(-256, c_port.millrace_port_set_inbox(port, &storage, storage.len));
    try expectStatus(-256, c_port.millrace_port_set_calls(port, 0));
    try expectStatus(-256, c_port.millrace_port_end(port));
    try expectStatus(-256, c_port.millrace_port_vacate(port));
    try expectStatus(-256, c_port.millrace_port_leave(port));
    var other: Storage align(8) = @splat(0);
    try expectStatus(-256, millrace_calls_attach(&other, port, fixture.allocate, null));
    const read = millrace_calls_read;
    try expectStatus(1, millrace_calls_write(own, "[]", 2, 2, 9, 0));
    try fixture.expectRead(pair.side(1), "[]", 9);
    try expectStatus(1, fixture.write(pair.side(1), "[1]", 8));
    try expectStatus(1, read(own, &storage, storage.len, 0, &message));
    try testing.expectEqual(8, message.tag);
    try expectStatus(1, millrace_calls_leave(own));
    try expectStatus(1, fixture.write(port, "[]", 9));
}
