//! Streams for C: ports over sockets and pipes [spec/stream.md]. What each call promises stands in
//! `millrace_stream.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const stream_file = @import("../stream/stream.zig");
const Deadline = @import("../wait/mechanism.zig").Deadline;
const StreamLink = @import("../stream/link.zig").StreamLink;
const Memory = @import("../memory/segment.zig").Memory;
const Status = arguments.Status;
const Stream = stream_file.Stream;
const StreamDescriptors = @import("../stream/transport.zig").StreamDescriptors;

/// `millrace_stream_sizes`.
pub const Sizes = extern struct {
    largest: u32,
    window: u32,
    queue: u32,
};

const Body = struct {
    link: StreamLink,
    descriptors: if (StreamDescriptors.supported) StreamDescriptors else void,
    port: *c_port.Object,
};

pub const Object = arguments.Object(Body, .stream);

pub export fn millrace_stream_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_stream_memory_size(sizes: ?*const anyopaque) usize {
    const options = optionsOf(sizes) orelse return 0;
    return Stream.memorySize(options) catch 0;
}

pub export fn millrace_stream_open(
    stream: ?*anyopaque,
    port: ?*anyopaque,
    input: i32,
    output: i32,
    memory: ?*anyopaque,
    memory_size: usize,
    sizes: ?*const anyopaque,
) Status {
    const object = Object.blank(stream) orelse return arguments.invalid;
    const port_object = c_port.Object.blank(port) orelse return arguments.invalid;
    const options = optionsOf(sizes) orelse return arguments.invalid;
    const bytes = arguments.storageAt(memory, memory_size) orelse return arguments.invalid;
    const needed = Stream.memorySize(options) catch return arguments.invalid;
    if (bytes.len < needed or @intFromPtr(bytes.ptr) % layout.segment_align != 0) {
        return arguments.failed(error.SegmentSize, null);
    }
    if (!StreamDescriptors.supported) return arguments.unsupported;
    const body = &object.body;
    body.descriptors = StreamDescriptors.any(input, output) catch |err|
        return arguments.failed(err, null);
    const place: Memory = @alignCast(bytes[0..needed]);
    const own = &port_object.body.port;
    stream_file.openParts(own, &body.link, place, body.descriptors.transport(), options) catch |err|
        return arguments.failed(err, null);
    body.port = port_object;
    c_port.beginOver(port_object);
    object.seal();
    return arguments.done;
}

pub export fn millrace_stream_await_ready(stream: ?*anyopaque, timeout_ms: i32) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    var deadline: Deadline = .init(timeout);
    return if (object.body.link.awaitReady(&deadline)) arguments.done else arguments.nothing;
}

/// What `millrace_stream_pump` answers: that there is something to wait for.
const wish_read = 1;
const wish_write = 2;

pub export fn millrace_stream_pump(stream: ?*anyopaque) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    object.body.link.base.pump();
    const wish = object.body.link.wish();
    const read: Status = if (wish.read) wish_read else 0;
    const write: Status = if (wish.write) wish_write else 0;
    return read | write;
}

pub export fn millrace_stream_finish(stream: ?*anyopaque, timeout_ms: i32) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    object.body.port.body.port.close();
    var deadline: Deadline = .init(timeout);
    if (!object.body.link.finish(&deadline)) return arguments.nothing;
    object.body.link.giveUp();
    return arguments.done;
}

pub export fn millrace_stream_leave(stream: ?*anyopaque) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    const port = object.body.port;
    if (c_port.isCalled(port)) return arguments.invalid;
    port.body.port.close();
    var deadline: Deadline = .init(.forever);
    const finished = object.body.link.finish(&deadline);
    std.debug.assert(finished);
    object.body.link.giveUp();
    port.forget();
    object.forget();
    return arguments.done;
}

/// The options that the sizes stand for, or the defaults; null where there can be no such stream.
fn optionsOf(sizes: ?*const anyopaque) ?Stream.Options {
    if (sizes == null) return .{};
    const given = arguments.arrayAt(Sizes, sizes, 1) orelse return null;
    const options: Stream.Options = .{
        .largest = given[0].largest,
        .window = given[0].window,
        .queue = given[0].queue,
    };
    return if (options.valid()) options else null;
}

// Tests.
//
// Streams through the calls from C.

const builtin = @import("builtin");
const fixture = @import("fixture.zig");
const testing = std.testing;
const posix = std.posix;
const system = posix.system;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const limits: Sizes = .{ .largest = 128, .window = 256, .queue = 512 };

/// A side of a stream. Must stay where it was opened.
const Side = struct {
    memory: [8192]u8 align(128),
    stream_storage: Storage align(8),
    port_storage: Storage align(8),

    fn open(side: *Side, descriptor: posix.fd_t) arguments.Status {
        @memset(&side.stream_storage, 0xaa);
        @memset(&side.port_storage, 0xaa);
        const memory_size = side.memory.len;
        return millrace_stream_open(
            side.stream(),
            side.port(),
            descriptor,
            descriptor,
            &side.memory,
            memory_size,
            &limits,
        );
    }

    fn stream(side: *Side) *anyopaque {
        return &side.stream_storage;
    }

    fn port(side: *Side) *anyopaque {
        return &side.port_storage;
    }
};

const Pair = struct {
    sides: [2]Side,

    fn open(pair: *Pair) !void {
        var both: [2]posix.fd_t = undefined;
        const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
        try testing.expectEqual(.SUCCESS, posix.errno(result));
        for (&pair.sides, both) |*side, descriptor| try expectStatus(1, side.open(descriptor));
    }
};

test "c_abi: a stream is a port like others, until it is left" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.open();
    const near = &pair.sides[0];
    const far = &pair.sides[1];
    try expectStatus(1, millrace_stream_await_ready(near.stream(), 20_000));
    try expectStatus(1, millrace_stream_pump(near.stream()));
    for (0..40) |index| {
        const tag: u32 = @intCast(index);
        try expectStatus(1, fixture.write(near.port(), "[1]", tag));
        try expectStatus(1, millrace_stream_pump(far.stream()));
        try fixture.expectRead(far.port(), "[1]", tag);
    }
    // It is left with its stream.
    try expectStatus(arguments.invalid, c_port.millrace_port_leave(near.port()));
    try expectStatus(arguments.invalid, millrace_stream_leave(near.port()));
    try expectStatus(arguments.nothing, millrace_stream_finish(near.stream(), 0));
    var storage: [16]u8 = undefined;
    var message: c_port.Message = undefined;
    const found = c_port.millrace_port_read(far.port(), &storage, storage.len, 20_000, &message);
    try expectStatus(reasonStatus(.peer_closed), found);
    try expectStatus(1, millrace_stream_leave(far.stream()));
    try expectStatus(1, millrace_stream_leave(near.stream()));
    try expectStatus(arguments.invalid, millrace_stream_leave(near.stream()));
    try expectStatus(arguments.invalid, fixture.write(near.port(), "[1]", 1));
}

test "c_abi: a stream that has finished has closed its descriptor, and may still be asked" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var pair: Pair = undefined;
    var both: [2]posix.fd_t = undefined;
    const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
    try testing.expectEqual(.SUCCESS, posix.errno(result));
    for (&pair.sides, both) |*side, descriptor| try expectStatus(1, side.open(descriptor));
    const near = &pair.sides[0];
    const far = &pair.sides[1];
    try expectStatus(1, millrace_stream_await_ready(near.stream(), 20_000));
    try expectStatus(arguments.nothing, millrace_stream_finish(near.stream(), 0));
    try testing.expectEqual(.SUCCESS, posix.errno(flagsOf(both[0])));
    try expectStatus(1, millrace_stream_leave(far.stream()));
    for (0..2) |_| {
        try expectStatus(1, millrace_stream_finish(near.stream(), 20_000));
        try testing.expectEqual(.BADF, posix.errno(flagsOf(both[0])));
    }
    try expectStatus(0, millrace_stream_pump(near.stream()));
    try expectStatus(reasonStatus(.pipe_closed), fixture.write(near.port(), "[1]", 1));
    try expectStatus(1, millrace_stream_leave(near.stream()));
}

fn flagsOf(descriptor: posix.fd_t) @TypeOf(system.fcntl(0, 0, @as(usize, 0))) {
    return system.fcntl(descriptor, posix.F.GETFL, @as(usize, 0));
}

test "c_abi: a stream whose peer is gone says so, with the reason" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var both: [2]posix.fd_t = undefined;
    const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
    try testing.expectEqual(.SUCCESS, posix.errno(result));
    var side: Side = undefined;
    try expectStatus(1, side.open(both[0]));
    _ = system.write(both[1], "HTTP/1.1 400 Bad Request", 24);
    var storage: [16]u8 = undefined;
    var message: c_port.Message = undefined;
    const found = c_port.millrace_port_read(side.port(), &storage, storage.len, 20_000, &message);
    try expectStatus(reasonStatus(.peer_failed), found);
    const reason = c_port.millrace_port_reason(side.port());
    const magic = @import("../memory/layout.zig").Reason.stream_magic;
    try testing.expectEqual(@backingInt(magic), reason);
    _ = system.close(both[1]);
    try expectStatus(1, millrace_stream_leave(side.stream()));
}

test "c_abi: a stream is refused for what it cannot be" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    const wrong = [_]Sizes{
        .{ .largest = 112, .window = 256, .queue = 512 },
        .{ .largest = 136, .window = 256, .queue = 512 },
        .{ .largest = 128, .window = 112, .queue = 512 },
        .{ .largest = 128, .window = 264, .queue = 512 },
        .{ .largest = 128, .window = 0xffff_fff0, .queue = 512 },
        .{ .largest = 128, .window = 256, .queue = 256 },
        .{ .largest = 128, .window = 256, .queue = 600 },
    };
    for (&wrong) |*each| {
        try testing.expectEqual(0, millrace_stream_memory_size(each));
    }
    try testing.expect(millrace_stream_memory_size(null) > 128 * 1024);
    const needed = millrace_stream_memory_size(&limits);
    try testing.expect(needed <= 8192);
    var side: Side = undefined;
    // No descriptor, and too little memory.
    try expectStatus(arguments.system, side.open(-1));
    const open = millrace_stream_open;
    const small = reasonStatus(.segment_size);
    const stream, const port = .{ side.stream(), side.port() };
    try expectStatus(small, open(stream, port, 0, 0, &side.memory, needed - 1, &limits));
    try expectStatus(small, open(stream, port, 0, 0, side.memory[64..], needed, &limits));
    const none = arguments.invalid;
    try expectStatus(none, open(stream, port, 0, 0, null, needed, &limits));
    try expectStatus(none, open(stream, null, 0, 0, &side.memory, needed, &limits));
    try expectStatus(none, open(null, port, 0, 0, &side.memory, needed, &limits));
    try expectStatus(none, open(stream, port, 0, 0, &side.memory, needed, &wrong[0]));
    try expectStatus(none, millrace_stream_finish(stream, 0));
}

// Calls over streams through the calls from C: the same as over shared memory.

const called = @import("call.zig");
const calling = @import("call_make.zig");
const ListValue = called.ListValue;

/// More than a socket and both windows take.
const large_size = 1 << 20;

fn json(payload: []const u8) ListValue {
    return .{ .payload = payload.ptr, .size = payload.len, .codec = 2 };
}

fn textOf(value: ListValue) []const u8 {
    return if (value.size == 0) "" else @as([*]const u8, @ptrCast(value.payload.?))[0..value.size];
}

/// A side of a stream, with calls. Must stay where it was opened.
const CallSide = struct {
    memory: [8192]u8 align(128),
    stream: Storage align(8),
    port: Storage align(8),
    calls: Storage align(8),
    token: Storage align(8),
    message: c_port.Message = undefined,
    result: ListValue = undefined,
    /// The last call of `later`.
    later: usize = 0,
    later_count: std.atomic.Value(u32) = .init(0),

    fn open(side: *CallSide, descriptor: posix.fd_t) !void {
        for ([_]*Storage{ &side.stream, &side.port, &side.calls, &side.token }) |storage| {
            @memset(storage, 0xaa);
        }
        side.later = 0;
        side.later_count = .init(0);
        const own, const port, const calls = .{ &side.stream, &side.port, &side.calls };
        const both = .{ own, port, descriptor, descriptor, &side.memory, side.memory.len, &limits };
        try expectStatus(1, @call(.auto, millrace_stream_open, both));
        try expectStatus(1, called.millrace_calls_attach(calls, port, fixture.allocate, null));
        const limited = called.millrace_calls_set_limits(calls, 2 * large_size, 4096, 1 << 26);
        try expectStatus(1, limited);
        try expectStatus(1, called.millrace_serve(calls, handle, side));
    }

    fn leave(side: *CallSide) !void {
        try expectStatus(-256, millrace_stream_leave(&side.stream));
        try expectStatus(1, called.millrace_calls_leave(&side.calls));
        try expectStatus(1, millrace_stream_leave(&side.stream));
    }

    fn read(side: *CallSide, timeout_ms: i32) Status {
        return called.millrace_calls_read(&side.calls, null, 0, timeout_ms, &side.message);
    }

    fn call(
        side: *CallSide,
        name: [*:0]const u8,
        value: ?*const ListValue,
        timeout_ms: i32,
    ) Status {
        const count: usize = @intFromBool(value != null);
        const make = calling.millrace_call;
        return make(&side.calls, name, value, count, timeout_ms, null, &side.result);
    }

    fn begin(side: *CallSide, name: [*:0]const u8, value: ?*const ListValue) !usize {
        var number: usize = 0;
        const count: usize = @intFromBool(value != null);
        const make = calling.millrace_call_begin;
        try expectStatus(1, make(&side.calls, name, value, count, 20_000, null, &number));
        return number;
    }

    fn beginItems(side: *CallSide, name: [*:0]const u8, value: *const ListValue) !usize {
        var number: usize = 0;
        const make = calling.millrace_call_begin_items;
        try expectStatus(1, make(&side.calls, name, value, 1, 20_000, null, &number));
        return number;
    }

    fn next(side: *CallSide, number: usize, timeout_ms: i32) Status {
        return calling.millrace_call_next(&side.calls, number, timeout_ms, null, &side.result);
    }

    fn finish(side: *CallSide, number: usize, timeout_ms: i32) Status {
        return calling.millrace_call_finish(&side.calls, number, timeout_ms, null, &side.result);
    }

    /// Serves until the peer ends its stream.
    fn run(side: *CallSide) !void {
        try expectStatus(arguments.end, side.read(20_000));
        try expectStatus(1, called.millrace_calls_end(&side.calls, 20_000));
        try side.leave();
    }
};

const CallPair = struct {
    sides: [2]CallSide,

    fn open(pair: *CallPair) !void {
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
    const side: *CallSide = @ptrCast(@alignCast(context.?));
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
                const status = called.millrace_serve_item(calls, serving, &item, 20_000);
                if (status != arguments.done) return status;
            }
            result = list[0];
        },
        .length => result = json(std.fmt.bufPrint(&text, "{}", .{list[0].size}) catch unreachable),
        .fail => return called.millrace_serve_throw(calls, serving, "Oops", "it broke", null),
        .later => {
            side.later = serving;
            _ = side.later_count.fetchAdd(1, .seq_cst);
            return called.millrace_serve_later(calls, serving);
        },
    }
    return called.millrace_serve_return(calls, serving, &result);
}

test "c_abi: calls over a stream, within one another, in pieces, large and refused" {
    if (!StreamDescriptors.supported or builtin.single_threaded) return error.SkipZigTest;
    var pair: CallPair = undefined;
    try pair.open();
    const own = &pair.sides[0];
    const thread: std.Thread = try .spawn(.{}, CallSide.run, .{&pair.sides[1]});
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
fn turn(pair: *CallPair) !void {
    for (0..3) |_| for (&pair.sides) |*side| try expectStatus(0, side.read(0));
}

test "c_abi: the items of a call that was begun are taken one by one, in one thread" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    var pair: CallPair = undefined;
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

    // One that is given up before its items are taken, and one that fails after them.
    const given_up = try own.beginItems("count", &json("2"));
    const first_later = far.later;
    const failing = try own.beginItems("later", &json("0"));
    try turn(&pair);
    try expectStatus(1, own.next(given_up, 0));
    try expectStatus(1, calling.millrace_call_give_up(&own.calls, given_up));
    try expectStatus(-256, own.next(given_up, 0));
    try expectStatus(1, called.millrace_serve_item(&far.calls, far.later, &json("7"), 0));
    for ([_]usize{ first_later, far.later }) |serving| {
        try expectStatus(1, called.millrace_serve_throw(&far.calls, serving, "Oops", null, null));
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

fn sendsNothing(side: *CallSide) !Status {
    var number: usize = 1;
    const make = calling.millrace_call_begin_items;
    const status = make(&side.calls, "count", null, 0, 0, null, &number);
    try testing.expectEqual(0, number);
    return status;
}

/// One thread that leaves one after the other would linger for 2 s.
fn leaveBoth(pair: *CallPair) !void {
    for (0..100) |_| {
        var finished: i32 = 0;
        for (&pair.sides) |*side| finished += millrace_stream_finish(&side.stream, 1);
        if (finished == 2) break;
    } else return error.NotFinished;
    for (&pair.sides) |*side| try expectStatus(1, millrace_stream_leave(&side.stream));
}

fn cancelSoon(side: *CallSide, far: *CallSide) void {
    while (far.later_count.load(.seq_cst) == 0) std.Thread.yield() catch {};
    _ = called.millrace_token_cancel(&side.token);
}

test "c_abi: a token that another thread cancels ends a call over a stream" {
    if (!StreamDescriptors.supported or builtin.single_threaded) return error.SkipZigTest;
    var pair: CallPair = undefined;
    try pair.open();
    const own, const far = .{ &pair.sides[0], &pair.sides[1] };
    try expectStatus(1, called.millrace_token_create(&own.token, &own.calls));
    const serving: std.Thread = try .spawn(.{}, CallSide.run, .{far});
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
    try expectStatus(1, called.millrace_token_leave(&own.token));
    try own.leave();
}

test "c_abi: calls over a stream end with what the stream ends with" {
    if (!StreamDescriptors.supported) return error.SkipZigTest;
    for ([_]bool{ false, true }) |closes| {
        var pair: CallPair = undefined;
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
            try testing.expectEqual(lost, c_port.millrace_port_reason(&own.port));
        }
        // The method that it serves was told, and has answered; nobody comes back.
        try expectStatus(-256, called.millrace_serve_return(&own.calls, own.later, null));
        try expectStatus(-256, called.millrace_calls_vacate(&own.calls));
        try expectStatus(expected, own.call("down", null, 20_000));
        try expectStatus(1, called.millrace_calls_leave(&own.calls));
        try expectStatus(1, called.millrace_calls_leave(&far.calls));
        try leaveBoth(&pair);
    }
}

/// Closes, or breaks the stream off without a word.
fn calledAway(side: *CallSide, closes: bool) Status {
    if (closes) return millrace_stream_finish(&side.stream, 0);
    const body = &Object.known(&side.stream).?.body;
    const result = system.shutdown(body.descriptors.input, system.SHUT.RDWR);
    return if (posix.errno(result) == .SUCCESS) arguments.nothing else arguments.system;
}
