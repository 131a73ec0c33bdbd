//! Calls over streams through the calls from C: the same as over shared memory.

const std = @import("std");
const builtin = @import("builtin");
const arguments = @import("arguments.zig");
const called = @import("call.zig");
const calling = @import("call_make.zig");
const fixture = @import("fixture.zig");
const layout = @import("../memory/layout.zig");
const ports = @import("port.zig");
const serves = @import("call_serve.zig");
const streams = @import("stream.zig");
const tokens = @import("call_token.zig");
const StreamDescriptors = @import("../stream/descriptors.zig").StreamDescriptors;
const testing = std.testing;
const posix = std.posix;
const system = posix.system;
const ListValue = called.ListValue;
const Status = arguments.Status;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const sizes: streams.Sizes = .{ .largest = 128, .window = 256, .queue = 512 };
/// More than a socket and both windows take.
const large_size = 1 << 20;

fn json(payload: []const u8) ListValue {
    return .{ .payload = payload.ptr, .size = payload.len, .codec = 2 };
}

fn textOf(value: ListValue) []const u8 {
    return if (value.size == 0) "" else @as([*]const u8, @ptrCast(value.payload.?))[0..value.size];
}

/// A side of a stream, with calls. Must stay where it was opened.
const Side = struct {
    memory: [8192]u8 align(128),
    stream: Storage align(8),
    port: Storage align(8),
    calls: Storage align(8),
    token: Storage align(8),
    message: ports.Message = undefined,
    result: ListValue = undefined,
    /// The last call of `later`.
    later: usize = 0,
    later_count: std.atomic.Value(u32) = .init(0),

    fn open(side: *Side, descriptor: posix.fd_t) !void {
        for ([_]*Storage{ &side.stream, &side.port, &side.calls, &side.token }) |storage| {
            @memset(storage, 0xaa);
        }
        side.later = 0;
        side.later_count = .init(0);
        const own, const port, const calls = .{ &side.stream, &side.port, &side.calls };
        const both = .{ own, port, descriptor, descriptor, &side.memory, side.memory.len, &sizes };
        try expectStatus(1, @call(.auto, streams.millrace_stream_open, both));
        try expectStatus(1, called.millrace_calls_attach(calls, port, fixture.allocate, null));
        const limited = called.millrace_calls_set_limits(calls, 2 * large_size, 4096, 1 << 26);
        try expectStatus(1, limited);
        try expectStatus(1, serves.millrace_serve(calls, handle, side));
    }

    fn leave(side: *Side) !void {
        try expectStatus(-256, streams.millrace_stream_leave(&side.stream));
        try expectStatus(1, called.millrace_calls_leave(&side.calls));
        try expectStatus(1, streams.millrace_stream_leave(&side.stream));
    }

    fn read(side: *Side, timeout_ms: i32) Status {
        return called.millrace_calls_read(&side.calls, null, 0, timeout_ms, &side.message);
    }

    fn call(side: *Side, name: [*:0]const u8, value: ?*const ListValue, timeout_ms: i32) Status {
        const count: usize = @intFromBool(value != null);
        const make = calling.millrace_call;
        return make(&side.calls, name, value, count, timeout_ms, null, &side.result);
    }

    fn begin(side: *Side, name: [*:0]const u8, value: ?*const ListValue) !usize {
        var number: usize = 0;
        const count: usize = @intFromBool(value != null);
        const make = calling.millrace_call_begin;
        try expectStatus(1, make(&side.calls, name, value, count, 20_000, null, &number));
        return number;
    }

    fn beginItems(side: *Side, name: [*:0]const u8, value: *const ListValue) !usize {
        var number: usize = 0;
        const make = calling.millrace_call_begin_items;
        try expectStatus(1, make(&side.calls, name, value, 1, 20_000, null, &number));
        return number;
    }

    fn next(side: *Side, number: usize, timeout_ms: i32) Status {
        return calling.millrace_call_next(&side.calls, number, timeout_ms, null, &side.result);
    }

    fn finish(side: *Side, number: usize, timeout_ms: i32) Status {
        return calling.millrace_call_finish(&side.calls, number, timeout_ms, null, &side.result);
    }

    /// Serves until the peer ends its stream.
    fn run(side: *Side) !void {
        try expectStatus(arguments.end, side.read(20_000));
        try expectStatus(1, called.millrace_calls_end(&side.calls, 20_000));
        try side.leave();
    }
};

const Pair = struct {
    sides: [2]Side,

    fn open(pair: *Pair) !void {
        var both: [2]posix.fd_t = undefined;
        const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
        try testing.expectEqual(.SUCCESS, posix.errno(result));
        for (&pair.sides, both) |*side, descriptor| try side.open(descriptor);
    }
};

/// Serves `down`, which calls the peer until nothing is left; `count`, which gives so many items;
/// `length`, `fail`; and `later`, which the test answers.
fn handle(
    context: ?*anyopaque,
    calls: ?*anyopaque,
    serving: usize,
    name: ?*const anyopaque,
    name_size: usize,
    values: ?*const anyopaque,
    count: usize,
) callconv(.c) Status {
    const side: *Side = @ptrCast(@alignCast(context.?));
    const list = @as([*]const ListValue, @ptrCast(@alignCast(values.?)))[0..count];
    const method = std.meta.stringToEnum(
        enum { down, count, length, fail, later },
        @as([*]const u8, @ptrCast(name.?))[0..name_size],
    ) orelse return reasonStatus(.call_method);
    var text: [16]u8 = undefined;
    var result: ListValue = json("0");
    switch (method) {
        .down => {
            const left = std.fmt.parseInt(u32, textOf(list[0]), 10) catch
                return reasonStatus(.call_arguments);
            if (left > 0) {
                const less = json(std.fmt.bufPrint(&text, "{}", .{left - 1}) catch unreachable);
                const status = side.call("down", &less, 20_000);
                if (status != arguments.done) return status;
                const depth = std.fmt.parseInt(u32, textOf(side.result), 10) catch unreachable;
                result = json(std.fmt.bufPrint(&text, "{}", .{depth + 1}) catch unreachable);
            }
        },
        .count => {
            const most = std.fmt.parseInt(u32, textOf(list[0]), 10) catch unreachable;
            for (0..most) |number| {
                const item = json(std.fmt.bufPrint(&text, "{}", .{number}) catch unreachable);
                const status = serves.millrace_serve_item(calls, serving, &item, 20_000);
                if (status != arguments.done) return status;
            }
            result = list[0];
        },
        .length => result = json(std.fmt.bufPrint(&text, "{}", .{list[0].size}) catch unreachable),
        .fail => return serves.millrace_serve_throw(calls, serving, "Oops", "it broke", null),
        .later => {
            side.later = serving;
            _ = side.later_count.fetchAdd(1, .seq_cst);
            return serves.millrace_serve_later(calls, serving);
        },
    }
    return serves.millrace_serve_return(calls, serving, &result);
}

test "c_abi: calls over a stream, within one another, in pieces, large and refused" {
    if (!StreamDescriptors.supported or builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.open();
    const own = &pair.sides[0];
    const thread: std.Thread = try .spawn(.{}, Side.run, .{&pair.sides[1]});
    try expectStatus(1, own.call("down", &json("20"), 20_000));
    try testing.expectEqualStrings("20", textOf(own.result));
    const large = try testing.allocator.alloc(u8, large_size);
    defer testing.allocator.free(large);
    @memset(large, 'x');
    const argument: ListValue = .{ .payload = large.ptr, .size = large.len, .codec = 0 };
    const number = try own.begin("length", &argument);
    try expectStatus(reasonStatus(.call_method), own.call("none", null, 20_000));
    try expectStatus(1, own.finish(number, 20_000));
    try testing.expectEqualStrings("1048576", textOf(own.result));
    try expectStatus(reasonStatus(.call_thrown), own.call("fail", null, 20_000));
    var failure: calling.Failure = undefined;
    try expectStatus(1, calling.millrace_call_thrown(&own.calls, &failure));
    try testing.expectEqual("Oops".len, failure.name_size);
    try expectStatus(0, own.call("later", null, 5));

    const counting = try own.beginItems("count", &json("40"));
    for (0..40) |index| {
        try expectStatus(1, own.next(counting, 20_000));
        const item = try std.fmt.parseInt(usize, textOf(own.result), 10);
        try testing.expectEqual(index, item);
        if (index == 20) try expectStatus(1, own.call("down", &json("3"), 20_000));
    }
    for (0..2) |_| try expectStatus(arguments.end, own.next(counting, 20_000));
    try expectStatus(1, own.finish(counting, 0));
    try testing.expectEqualStrings("40", textOf(own.result));
    try expectStatus(-256, own.next(counting, 0));
    try expectStatus(1, called.millrace_calls_end(&own.calls, 20_000));
    try expectStatus(arguments.end, own.read(20_000));
    thread.join();
    try own.leave();
}

/// Both sides take in what is there, until nothing more happens: each answers what the other wrote.
fn turn(pair: *Pair) !void {
    for (0..3) |_| for (&pair.sides) |*side| try expectStatus(0, side.read(0));
}

test "c_abi: the items of a call that was begun are taken one by one, in one thread" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.open();
    try turn(&pair);
    const own, const far = .{ &pair.sides[0], &pair.sides[1] };
    const number = try own.beginItems("count", &json("3"));
    const plain = try own.begin("later", null);
    try expectStatus(0, own.next(number, 0));
    try expectStatus(-256, own.next(plain, 0));
    try expectStatus(-256, own.next(number + 7, 0));
    try turn(&pair);
    for ([_][]const u8{ "0", "1", "2" }) |item| {
        try expectStatus(1, own.next(number, 0));
        try testing.expectEqualStrings(item, textOf(own.result));
    }
    try expectStatus(arguments.end, own.next(number, 0));
    try expectStatus(1, own.finish(number, 0));
    try testing.expectEqualStrings("3", textOf(own.result));
    try expectStatus(-256, own.finish(number, 0));

    // One that is given up before its items are taken, and one that fails behind them.
    const given_up = try own.beginItems("count", &json("2"));
    const first_later = far.later;
    const failing = try own.beginItems("later", &json("0"));
    try turn(&pair);
    try expectStatus(1, own.next(given_up, 0));
    try expectStatus(1, calling.millrace_call_give_up(&own.calls, given_up));
    try expectStatus(-256, own.next(given_up, 0));
    try expectStatus(1, serves.millrace_serve_item(&far.calls, far.later, &json("7"), 0));
    for ([_]usize{ first_later, far.later }) |serving| {
        try expectStatus(1, serves.millrace_serve_throw(&far.calls, serving, "Oops", null, null));
    }
    try turn(&pair);
    try expectStatus(reasonStatus(.call_thrown), own.finish(plain, 0));
    try expectStatus(1, own.next(failing, 0));
    try testing.expectEqualStrings("7", textOf(own.result));
    try expectStatus(reasonStatus(.call_thrown), own.next(failing, 0));
    try expectStatus(-256, own.next(failing, 0));
    // What ends all calls leaves what came before.
    const last = try own.beginItems("count", &json("1"));
    try turn(&pair);
    try expectStatus(1, called.millrace_calls_end(&far.calls, 0));
    try expectStatus(arguments.end, own.read(20_000));
    try expectStatus(1, own.next(last, 0));
    try expectStatus(arguments.end, own.next(last, 0));
    try expectStatus(1, own.finish(last, 0));
    const late = try sendsNothing(own);
    try testing.expectEqual(reasonStatus(.call_ended), late);
    for (&pair.sides) |*side| try expectStatus(1, called.millrace_calls_leave(&side.calls));
    try leaveBoth(&pair);
}

fn sendsNothing(side: *Side) !Status {
    var number: usize = 1;
    const make = calling.millrace_call_begin_items;
    const status = make(&side.calls, "count", null, 0, 0, null, &number);
    try testing.expectEqual(0, number);
    return status;
}

/// One thread that leaves one after the other would linger for 2 s.
fn leaveBoth(pair: *Pair) !void {
    for (0..100) |_| {
        var finished: i32 = 0;
        for (&pair.sides) |*side| finished += streams.millrace_stream_finish(&side.stream, 1);
        if (finished == 2) break;
    } else return error.NotFinished;
    for (&pair.sides) |*side| try expectStatus(1, streams.millrace_stream_leave(&side.stream));
}

fn cancelSoon(side: *Side, far: *Side) void {
    while (far.later_count.load(.seq_cst) == 0) std.Thread.yield() catch {};
    _ = tokens.millrace_token_cancel(&side.token);
}

test "c_abi: a token that another thread cancels ends a call over a stream" {
    if (!StreamDescriptors.supported or builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.open();
    const own, const far = .{ &pair.sides[0], &pair.sides[1] };
    try expectStatus(1, tokens.millrace_token_create(&own.token, &own.calls));
    const serving: std.Thread = try .spawn(.{}, Side.run, .{far});
    const cancelling: std.Thread = try .spawn(.{}, cancelSoon, .{ own, far });
    const call = calling.millrace_call;
    const status = call(&own.calls, "later", null, 0, 20_000, &own.token, &own.result);
    try expectStatus(reasonStatus(.wait_aborted), status);
    cancelling.join();
    // Of one that was begun it ends the wait, and with that the call.
    const number = try own.begin("later", null);
    const finish = calling.millrace_call_finish;
    const ended = finish(&own.calls, number, 20_000, &own.token, &own.result);
    try expectStatus(reasonStatus(.wait_aborted), ended);
    try expectStatus(-256, own.finish(number, 0));
    try expectStatus(1, own.call("down", &json("2"), 20_000));
    try expectStatus(1, called.millrace_calls_end(&own.calls, 20_000));
    try expectStatus(arguments.end, own.read(20_000));
    serving.join();
    // The cancel has answered it: nobody waits any more.
    try expectStatus(1, tokens.millrace_token_leave(&own.token));
    try own.leave();
}

test "c_abi: calls over a stream end with what the stream ends with" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    for ([_]bool{ false, true }) |closes| {
        var pair: Pair = undefined;
        try pair.open();
        try turn(&pair);
        const own, const far = .{ &pair.sides[0], &pair.sides[1] };
        const number = try own.begin("later", null);
        const serving = far.begin("later", null);
        try turn(&pair);
        try testing.expect(far.later != 0 and own.later != 0);
        _ = try serving;
        const left = calledAway(far, closes);
        try expectStatus(arguments.nothing, left);
        const expected = reasonStatus(if (closes) .peer_closed else .peer_failed);
        try expectStatus(expected, own.finish(number, 20_000));
        if (!closes) {
            const lost = @backingInt(layout.Reason.peer_lost);
            try testing.expectEqual(lost, ports.millrace_port_reason(&own.port));
        }
        // The method that it serves was told, and has answered; nobody comes back.
        try expectStatus(-256, serves.millrace_serve_return(&own.calls, own.later, null));
        try expectStatus(-256, called.millrace_calls_vacate(&own.calls));
        try expectStatus(expected, own.call("down", null, 20_000));
        try expectStatus(1, called.millrace_calls_leave(&own.calls));
        try expectStatus(1, called.millrace_calls_leave(&far.calls));
        try leaveBoth(&pair);
    }
}

/// Closes, or breaks the stream off without a word.
fn calledAway(side: *Side, closes: bool) Status {
    if (closes) return streams.millrace_stream_finish(&side.stream, 0);
    const body = &streams.Object.known(&side.stream).?.body;
    const result = system.shutdown(body.descriptors.input, system.SHUT.RDWR);
    return if (posix.errno(result) == .SUCCESS) arguments.nothing else arguments.system;
}
