//! Calls for C: those that this side makes [spec/call.md, "Calling"]. What each call promises
//! stands in `millrace_call.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const called = @import("call.zig");
const Body = called.Body;
const Call = @import("../call/caller.zig").Call;
const Calls = @import("../call/call.zig").Calls;
const CancelToken = @import("../call/caller.zig").CancelToken;
const ListValue = called.ListValue;
const Object = called.Object;
const Status = arguments.Status;
const Timeout = @import("../wait/mechanism.zig").Timeout;
const Value = @import("../call/values.zig").Value;
const fromValue = called.fromValue;
const valueOf = called.valueOf;

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
        const whose = called.of(object, token) catch
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
        const whose = called.of(object, token) catch return null;
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

// Tests.
//
// Calls from C that are begun, given up and lent: what does not fit one call that waits.

const builtin = @import("builtin");
const fixture = @import("fixture.zig");
const ports = @import("port.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const aborted: Status = -97;

/// One side of a pair. Must stay where it was attached.
const Side = struct {
    calls: Storage align(8) = @splat(0xaa),
    token: Storage align(8) = @splat(0xaa),
    message: ports.Message = undefined,
    /// How many calls of `later` it has begun to serve.
    later_count: std.atomic.Value(u32) = .init(0),
    /// What the call inside of `relay` has ended with, or what `inside` and `meddle` were told.
    inner: Status = 0,
    /// A call that was begun.
    begun: usize = 0,

    fn attach(side: *Side, port: *anyopaque) !void {
        const attach_calls = called.millrace_calls_attach;
        try expectStatus(1, attach_calls(&side.calls, port, fixture.allocate, null));
        try expectStatus(1, called.millrace_serve(&side.calls, handle, side));
    }

    fn read(side: *Side, timeout_ms: i32) Status {
        return called.millrace_calls_read(&side.calls, null, 0, timeout_ms, &side.message);
    }

    fn peek(side: *Side) Status {
        return called.millrace_calls_peek(&side.calls, 0, &side.message);
    }

    fn call(side: *Side, name: [*:0]const u8, token: ?*anyopaque) Status {
        var result: ListValue = undefined;
        return millrace_call(&side.calls, name, null, 0, 20_000, token, &result);
    }

    fn begin(side: *Side, name: [*:0]const u8) !usize {
        var number: usize = 0;
        const begin_call = millrace_call_begin;
        try expectStatus(1, begin_call(&side.calls, name, null, 0, 20_000, null, &number));
        return number;
    }

    fn finish(side: *Side, number: usize, timeout_ms: i32, token: ?*anyopaque) Status {
        var result: ListValue = undefined;
        const finish_call = millrace_call_finish;
        return finish_call(&side.calls, number, timeout_ms, token, &result);
    }

    fn leave(side: *Side) !void {
        try expectStatus(1, called.millrace_calls_leave(&side.calls));
    }

    /// Serves until the peer ends its stream.
    fn run(side: *Side) !void {
        try expectStatus(arguments.end, side.read(20_000));
        try expectStatus(1, called.millrace_calls_end(&side.calls, 20_000));
    }
};

/// Serves `quick`; `later`, which it never answers; `relay`, which calls `later` of its caller for
/// as long as that waits; `inside`, which does what a handler must not; and `meddle`, which gives
/// up what is waited for under it.
fn handle(
    context: ?*anyopaque,
    calls: ?*anyopaque,
    serving: usize,
    name: ?*const anyopaque,
    name_size: usize,
    _: ?*const anyopaque,
    _: usize,
) callconv(.c) Status {
    const side: *Side = @ptrCast(@alignCast(context.?));
    const method = @as([*]const u8, @ptrCast(name.?))[0..name_size];
    if (std.mem.eql(u8, method, "quick")) return arguments.done;
    if (std.mem.eql(u8, method, "later")) {
        _ = side.later_count.fetchAdd(1, .seq_cst);
        return called.millrace_serve_later(calls, serving);
    }
    if (std.mem.eql(u8, method, "inside")) {
        side.inner = called.millrace_calls_leave(calls);
        if (side.inner == arguments.invalid) side.inner = side.peek();
        return arguments.done;
    }
    if (std.mem.eql(u8, method, "meddle")) {
        side.inner = side.finish(side.begun, 0, null);
        return millrace_call_give_up(calls, side.begun);
    }
    if (!std.mem.eql(u8, method, "relay")) return reasonStatus(.call_method);
    if (called.millrace_serve_token(calls, serving, &side.token) != 1) return -118;
    side.inner = side.call("later", &side.token);
    return side.inner;
}

/// Writes a call of this name, or, without one, the cancel of the call with this id.
fn writeCall(port: *anyopaque, comptime name: []const u8, id: u32) !void {
    const write = ports.millrace_port_write_kind;
    if (name.len == 0) {
        return expectStatus(1, write(port, 3, null, 0, 4, id | 1 << 30, 0));
    }
    const list = "\x01\x00\x00\x00\x00\x00\x00\x00" ++
        .{ name.len, 0, 0, 0, 1, 0, 0, 0 } ++ name;
    try expectStatus(1, write(port, 3, list, list.len, 4, id, 0));
}

test "c_abi: calls that were begun are finished in any order, or given up" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var sides: [2]Side = .{ .{}, .{} };
    for (&sides, 0..) |*side, index| try side.attach(pair.side(index));
    const thread: std.Thread = try .spawn(.{}, Side.run, .{&sides[1]});
    const own = &sides[0];
    const later = try own.begin("later");
    const none = try own.begin("none");
    const quick = try own.begin("quick");
    try expectStatus(1, own.finish(quick, 20_000, null));
    try expectStatus(-256, own.finish(quick, 20_000, null));
    try expectStatus(reasonStatus(.call_method), own.finish(none, 20_000, null));
    // What has no answer yet is under way until it is given up.
    for (0..2) |_| try expectStatus(0, own.finish(later, 0, null));
    try expectStatus(1, millrace_call_give_up(&own.calls, later));
    try expectStatus(-256, millrace_call_give_up(&own.calls, later));
    try expectStatus(-256, own.finish(later, 0, null));
    const others = [_]usize{ try own.begin("later"), try own.begin("later") };
    try expectStatus(-256, own.finish(others[1] + 1, 0, null));
    // Those that nobody has finished end with the object.
    try expectStatus(1, own.call("quick", null));
    try expectStatus(1, called.millrace_calls_end(&own.calls, 20_000));
    thread.join();
    for (&sides) |*side| try side.leave();
}

test "c_abi: a call is given up by its token, from any thread" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var sides: [2]Side = .{ .{}, .{} };
    for (&sides, 0..) |*side, index| try side.attach(pair.side(index));
    const server: std.Thread = try .spawn(.{}, Side.run, .{&sides[1]});
    const own = &sides[0];
    const Canceller = struct {
        /// When the peer serves so many, the calling thread waits, or is about to.
        fn run(peer: *Side, count: u32, token: *anyopaque, status: *Status) void {
            for (0..10_000_000) |_| {
                if (peer.later_count.load(.seq_cst) >= count) break;
                std.Thread.yield() catch {};
            }
            status.* = called.millrace_token_cancel(token);
        }
    };
    for (1..3) |count| {
        try expectStatus(1, called.millrace_token_create(&own.token, &own.calls));
        try expectStatus(0, called.millrace_token_cancelled(&own.token));
        var cancelled: Status = 0;
        const all = .{ &sides[1], @as(u32, @intCast(count)), &own.token, &cancelled };
        const canceller: std.Thread = try .spawn(.{}, Canceller.run, all);
        const status = if (count == 1)
            own.call("later", &own.token)
        else
            own.finish(try own.begin("later"), 20_000, &own.token);
        canceller.join();
        try expectStatus(aborted, status);
        try expectStatus(1, cancelled);
        try expectStatus(1, called.millrace_token_cancelled(&own.token));
        // Who asks later is told at once.
        try expectStatus(aborted, own.call("later", &own.token));
        try expectStatus(1, called.millrace_token_leave(&own.token));
    }
    try expectStatus(1, own.call("quick", null));
    try expectStatus(1, called.millrace_calls_end(&own.calls, 20_000));
    server.join();
    for (&sides) |*side| try side.leave();
}

test "c_abi: what is waited for is given up by a handler, and waited for once" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var side: Side = .{};
    try side.attach(pair.side(1));
    const peer = pair.side(0);
    try expectStatus(1, ports.millrace_port_set_calls(peer, 1));
    side.begun = try side.begin("slow");
    try writeCall(peer, "meddle", 5);
    try expectStatus(aborted, side.finish(side.begun, 20_000, null));
    try expectStatus(-256, side.inner);
    try expectStatus(-256, side.finish(side.begun, 0, null));
    try side.leave();
}

test "c_abi: a token is one of the object that it was made for, and left before it" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var sides: [2]Side = .{ .{}, .{} };
    for (&sides, 0..) |*side, index| try side.attach(pair.side(index));
    const own = &sides[0];
    try expectStatus(-256, called.millrace_token_create(&own.token, pair.side(0)));
    try expectStatus(1, called.millrace_token_create(&own.token, &own.calls));
    try expectStatus(-256, called.millrace_token_create(&own.token, &own.calls));
    try expectStatus(-256, sides[1].call("later", &own.token));
    try expectStatus(-256, own.call("later", &own.calls));
    try expectStatus(-256, called.millrace_serve_token(&own.calls, 1, &sides[1].token));
    try expectStatus(-256, called.millrace_calls_leave(&own.calls));
    try expectStatus(1, called.millrace_token_leave(&own.token));
    const of_token = .{
        called.millrace_token_leave,
        called.millrace_token_cancel,
        called.millrace_token_cancelled,
    };
    inline for (of_token) |each| try expectStatus(-256, each(&own.token));
    for (&sides) |*side| try side.leave();
}

test "c_abi: a method is told by a token, and what it calls is given up with it" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var side: Side = .{};
    try side.attach(pair.side(1));
    const peer = pair.side(0);
    try expectStatus(1, ports.millrace_port_set_calls(peer, 1));
    // The cancel is there when the method begins to wait.
    try writeCall(peer, "relay", 7);
    try writeCall(peer, "", 7);
    try expectStatus(0, side.read(0));
    try expectStatus(aborted, side.inner);
    try expectStatus(1, called.millrace_token_cancelled(&side.token));
    var storage: [64]u8 = undefined;
    var message: ports.Message = undefined;
    const Expected = struct { kind: u8, tag: u32 };
    // Its own call, the cancel of that, and its answer, which is call.cancelled.
    for ([_]Expected{
        .{ .kind = 3, .tag = 1 },
        .{ .kind = 3, .tag = 1 | 1 << 30 },
        .{ .kind = 5, .tag = 7 },
    }) |expected| {
        const read = ports.millrace_port_read;
        try expectStatus(1, read(peer, &storage, storage.len, 0, &message));
        try testing.expectEqual(expected, Expected{ .kind = message.kind, .tag = message.tag });
    }
    const found = std.mem.indexOf(u8, storage[0..message.size], "call.cancelled");
    try testing.expect(found != null);
    // After the answer it says no more, and is left when its owner wants to.
    try expectStatus(1, called.millrace_token_leave(&side.token));

    // A token that is left before the method is told.
    try writeCall(peer, "later", 8);
    try expectStatus(0, side.read(0));
    const serving: usize = 2;
    const make = called.millrace_serve_token;
    var others: [2]Storage align(8) = @splat(@splat(0xaa));
    for (&others) |*other| try expectStatus(1, make(&side.calls, serving, other));
    try expectStatus(-256, make(&side.calls, serving, &others[0]));
    try expectStatus(1, called.millrace_token_leave(&others[1]));
    @memset(&others[1], 0xaa);
    try writeCall(peer, "", 8);
    try expectStatus(0, side.read(0));
    try expectStatus(1, called.millrace_token_cancelled(&others[0]));
    try expectStatus(1, called.millrace_token_leave(&others[0]));
    try side.leave();
}

test "c_abi: plain messages of a port with calls are lent, and nothing is served meanwhile" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var side: Side = .{};
    try side.attach(pair.side(1));
    const peer = pair.side(0);
    try expectStatus(0, side.peek());
    try expectStatus(-256, called.millrace_calls_release(&side.calls));
    try writeCall(peer, "later", 7);
    try expectStatus(1, fixture.write(peer, "[1]", 9));
    try writeCall(peer, "later", 8);
    try expectStatus(1, side.peek());
    const payload: [*]const u8 = @ptrCast(side.message.payload.?);
    try testing.expectEqualStrings("[1]", payload[0..side.message.size]);
    try testing.expectEqual(9, side.message.tag);
    try testing.expectEqual(3, side.message.flags);
    // The call before it was begun, and the one after it was not.
    try testing.expectEqual(1, side.later_count.load(.seq_cst));
    const number = try beginWhileLent(&side);
    try expectStatus(1, called.millrace_calls_release(&side.calls));
    try expectStatus(0, side.read(0));
    try testing.expectEqual(2, side.later_count.load(.seq_cst));
    try testing.expectEqual(0, number);

    // Parts of a message, between which nothing else can be read until it is whole, or given up.
    const letters: [400]u8 = @splat('a');
    const write = ports.millrace_port_write;
    try expectStatus(0, write(peer, &letters, letters.len, 2, 5, 1));
    for (0..5) |part| {
        const status = side.peek();
        if (status == 0) break;
        try expectStatus(1, status);
        try testing.expectEqual(@intFromBool(part == 0), side.message.flags);
        try testing.expectEqual(letters.len, side.message.total);
        try expectStatus(-256, side.peek());
        try expectStatus(1, called.millrace_calls_release(&side.calls));
        try expectStatus(-256, side.read(0));
        try expectStatus(-256, side.call("quick", null));
    } else return error.EndlessMessage;
    // Nothing is lent by a handler, under which somebody else reads.
    try writeCall(peer, "inside", 9);
    try expectStatus(reasonStatus(.message_cancelled), side.peek());
    try expectStatus(0, side.peek());
    try expectStatus(-256, side.inner);
    try expectStatus(1, ports.millrace_port_end(peer));
    try expectStatus(2, side.peek());
    try side.leave();
}

/// Whatever reads, calls or waits is refused; writing is not.
fn beginWhileLent(side: *Side) !usize {
    const own = &side.calls;
    var number: usize = 1;
    const value: ListValue = .{ .payload = "1", .size = 1, .codec = 2 };
    try expectStatus(-256, side.peek());
    try expectStatus(-256, side.read(0));
    try expectStatus(-256, side.call("quick", null));
    const start = millrace_call_begin;
    try expectStatus(-256, start(own, "quick", null, 0, 0, null, &number));
    try expectStatus(-256, side.finish(number, 0, null));
    const serving: usize = 1;
    try expectStatus(-256, called.millrace_serve_item(own, serving, &value, 0));
    try expectStatus(-256, called.millrace_calls_leave(own));
    try expectStatus(1, called.millrace_calls_write(own, "[2]", 3, 2, 4, 0));
    return number;
}
