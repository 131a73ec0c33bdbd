//! Calls through the calls from C: two threads that serve one another.

const std = @import("std");
const arguments = @import("arguments.zig");
const called = @import("call.zig");
const calling = @import("call_make.zig");
const serves = @import("call_serve.zig");
const fixture = @import("fixture.zig");
const frame = @import("../ring/frame.zig");
const layout = @import("../memory/layout.zig");
const ports = @import("port.zig");
const testing = std.testing;
const ListValue = called.ListValue;
const Pair = fixture.Pair;
const Status = arguments.Status;
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
        return serves.millrace_serve_return(calls, serving, &result);
    }
    if (std.mem.eql(u8, method, "count")) {
        for (0..100) |number| {
            const item = json(std.fmt.bufPrint(&text, "{}", .{number}) catch unreachable);
            const status = serves.millrace_serve_item(calls, serving, &item, 10_000);
            if (status != arguments.done) return status;
        }
        return arguments.done;
    }
    if (std.mem.eql(u8, method, "fail")) {
        const data = json("[1]");
        return serves.millrace_serve_throw(calls, serving, "Oops", "it broke", &data);
    }
    if (std.mem.eql(u8, method, "pass")) {
        var result: ListValue = undefined;
        return calling.millrace_call(calls, "fail", null, 0, 10_000, null, &result);
    }
    if (std.mem.eql(u8, method, "later")) {
        @as(*usize, @ptrCast(@alignCast(context.?))).* = serving;
        return serves.millrace_serve_later(calls, serving);
    }
    if (std.mem.eql(u8, method, "nothing")) return arguments.done;
    return reasonStatus(.call_method);
}

const Side = struct {
    storage: Storage align(8) = @splat(0),
    /// The last call of `later`.
    later: usize = 0,

    fn attach(side: *Side, port: *anyopaque) !void {
        const attach_calls = called.millrace_calls_attach;
        try expectStatus(1, attach_calls(&side.storage, port, fixture.allocate, null));
        try expectStatus(1, serves.millrace_serve(&side.storage, handle, &side.later));
    }

    fn read(side: *Side, timeout_ms: i32) Status {
        var message: ports.Message = undefined;
        return called.millrace_calls_read(&side.storage, null, 0, timeout_ms, &message);
    }

    /// Serves until the peer ends its stream.
    fn run(side: *Side) !void {
        try expectStatus(arguments.end, side.read(10_000));
        try expectStatus(1, called.millrace_calls_end(&side.storage, 20_000));
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
    defer for (&sides) |*side| std.debug.assert(called.millrace_calls_leave(&side.storage) == 1);
    const thread: std.Thread = try .spawn(.{}, Side.run, .{&sides[1]});
    defer thread.join();
    const own = &sides[0].storage;
    defer _ = called.millrace_calls_end(own, 20_000);
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
    defer std.debug.assert(called.millrace_calls_leave(&side.storage) == 1);
    const peer = pair.side(0);
    const own = &side.storage;
    try expectStatus(1, ports.millrace_port_set_calls(peer, 1));
    const list = "\x01\x00\x00\x00\x00\x00\x00\x00" ++
        "\x05\x00\x00\x00\x01\x00\x00\x00" ++ "later";
    try expectStatus(1, ports.millrace_port_write_kind(peer, 3, list, list.len, 4, 7, 0));
    try expectStatus(0, side.read(0));
    try expectStatus(0, serves.millrace_serve_cancelled(own, side.later));
    try expectStatus(-256, serves.millrace_serve_later(own, side.later));
    try expectStatus(-256, serves.millrace_serve_return(own, side.later + 1, null));
    try expectStatus(1, serves.millrace_serve_return(own, side.later, &json("5")));
    try expectStatus(-256, serves.millrace_serve_return(own, side.later, &json("5")));
    var storage: [64]u8 = undefined;
    var message: ports.Message = undefined;
    try expectStatus(1, ports.millrace_port_read(peer, &storage, storage.len, 0, &message));
    try testing.expectEqual(7, message.tag);
    try testing.expectEqual(4, message.kind);

    // Given up, it answers itself.
    try expectStatus(1, ports.millrace_port_write_kind(peer, 3, list, list.len, 4, 8, 0));
    const cancel = 8 | 1 << 30;
    try expectStatus(1, ports.millrace_port_write_kind(peer, 3, null, 0, 4, cancel, 0));
    try expectStatus(0, side.read(0));
    try expectStatus(-256, serves.millrace_serve_return(own, side.later, null));
    try expectStatus(1, ports.millrace_port_read(peer, &storage, storage.len, 0, &message));
    try testing.expectEqual(5, message.kind);

    // A port that was closed tells it when it is asked.
    try expectStatus(1, ports.millrace_port_write_kind(peer, 3, list, list.len, 4, 9, 0));
    try expectStatus(0, side.read(0));
    try expectStatus(0, serves.millrace_serve_cancelled(own, side.later));
    try expectStatus(1, ports.millrace_port_close(pair.side(1)));
    try expectStatus(-256, serves.millrace_serve_cancelled(own, side.later));
}

test "c_abi: a call keeps why it ended, whatever the peer's state becomes" {
    for ([_]u32{ layout.endpoint_state_failed, 77 }) |word| {
        var pair: Pair = .{};
        try pair.open();
        defer pair.leave();
        var side: Side = .{};
        try side.attach(pair.side(1));
        const own = &side.storage;
        defer std.debug.assert(called.millrace_calls_leave(own) == 1);
        var begun: [2]usize = undefined;
        const begin_items = calling.millrace_call_begin_items;
        try expectStatus(1, calling.millrace_call_begin(own, "a", null, 0, 0, null, &begun[0]));
        try expectStatus(1, begin_items(own, "b", null, 0, 0, null, &begun[1]));
        // A frame of a kind that there is not, which fails the peer; and the peer's own store.
        const peer = &ports.Object.known(pair.side(0)).?.body.port;
        const ring = &peer.writer.ring;
        const header: frame.Header = .{ .size = 0, .kind = 99 };
        header.store(@alignCast(ring.area[0..layout.frame_header_size]));
        ring.tail +%= layout.frame_header_size;
        ring.publish();
        const fault = reasonStatus(.frame_kind);
        try expectStatus(fault, side.read(0));
        @atomicStore(u32, &peer.endpoint.record.state, word, .seq_cst);
        const write = called.millrace_calls_write;
        const failed = reasonStatus(.peer_failed);
        var result: ListValue = undefined;
        try expectStatus(failed, write(own, "[]", 2, 2, 9, 0));
        try expectStatus(fault, calling.millrace_call_finish(own, begun[0], 0, null, &result));
        const code = @backingInt(layout.Reason.frame_kind);
        try testing.expectEqual(code, ports.millrace_port_reason(pair.side(1)));
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
    var message: ports.Message = undefined;
    try expectStatus(-256, fixture.write(port, "[]", 0));
    try expectStatus(-256, ports.millrace_port_read(port, &storage, storage.len, 0, &message));
    try expectStatus(-256, ports.millrace_port_set_inbox(port, &storage, storage.len));
    try expectStatus(-256, ports.millrace_port_set_calls(port, 0));
    try expectStatus(-256, ports.millrace_port_end(port));
    try expectStatus(-256, ports.millrace_port_vacate(port));
    try expectStatus(-256, ports.millrace_port_leave(port));
    var other: Storage align(8) = @splat(0);
    try expectStatus(-256, called.millrace_calls_attach(&other, port, fixture.allocate, null));
    const read = called.millrace_calls_read;
    try expectStatus(1, called.millrace_calls_write(own, "[]", 2, 2, 9, 0));
    try fixture.expectRead(pair.side(1), "[]", 9);
    try expectStatus(1, fixture.write(pair.side(1), "[1]", 8));
    try expectStatus(1, read(own, &storage, storage.len, 0, &message));
    try testing.expectEqual(8, message.tag);
    try expectStatus(1, called.millrace_calls_leave(own));
    try expectStatus(1, fixture.write(port, "[]", 9));
}
