//! A call that this side has made, until its answer was read [spec/call.md, "Calling"]; and the
//! token that ends one before.
//!
//! Invariant: a call is under way from its first frame until its answer was read, also where it was
//! given up meanwhile, so that an id never means two calls; and it ends once.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const call_error = @import("error.zig");
const messages = @import("messages.zig");
const callee = @import("callee.zig");
const call_file = @import("call.zig");
const segment_record = @import("../wait/state.zig");
const CallError = call_error.CallError;
const Calls = call_file.Calls;
const Endpoint = @import("../wait/endpoint.zig").Endpoint;
const Failure = callee.Serving.Failure;
const List = @import("values.zig").List;
const Note = messages.Note;
const Patience = @import("../pipe/ends.zig").Reader.Patience;
const Timeout = host.Timeout;
const Value = @import("values.zig").Value;
const assert = std.debug.assert;

/// A result that points into memory of its own, until `deinit`.
pub fn Owned(comptime T: type) type {
    return struct {
        value: T,
        note: ?*Note,
        arena: std.heap.ArenaAllocator,

        pub fn deinit(owned: *const @This()) void {
            const gpa = owned.arena.child_allocator;
            owned.arena.deinit();
            if (owned.note) |note| note.destroy(gpa);
        }
    };
}

/// What a call hands out: the value itself where it points nowhere, or else `Owned(T)`.
pub fn Returned(comptime T: type) type {
    return if (callee.isFlat(T)) T else Owned(T);
}

/// A call of this side.
///
/// Thread safety: belongs to the thread of its port.
pub const Call = struct {
    calls: *Calls,
    id: u32,
    takes_items: bool,
    /// Whether its maker still has it, and whether its answer may still come.
    held: bool = true,
    under_way: bool = true,
    /// How it has ended, if it has failed.
    ended: ?CallError = null,
    /// The reason for that, if the port was lost with one [pipe.failed_reason].
    ended_behind: ?layout.Reason = null,
    /// Whether it was answered, and what with, until that was handed out.
    is_answered: bool = false,
    answer: ?*Note = null,
    list: List = .empty,
    /// Those that nobody has taken yet.
    items: messages.Queue(Note, "next") = .{},
    arrived: u64 = 0,
    allowed: u64 = layout.call_window,
    taken: u64 = 0,
    /// Whether it is in the list of calls that owe something.
    is_owing: bool = false,
    owes_cancel: bool = false,
    owes_more: u32 = 0,
    node: std.DoublyLinkedList.Node = .{},
    owed_node: std.DoublyLinkedList.Node = .{},

    /// Whether its answer was read, or it has ended without.
    pub fn isDone(call: *const Call) bool {
        return call.ended != null or call.is_answered;
    }

    /// Waits until it is done, and serves meanwhile; returns false where it is not by then.
    /// `error.Aborted`, by the token, ends nothing, and neither does another error of the wait's.
    pub fn wait(call: *Call, timeout: Timeout, token: ?*const CancelToken) CallError!bool {
        var patience: Patience = .init(timeout);
        return call_file.awaitOwn(call.calls, call, .done, &patience, token);
    }

    /// Waits until it is done, and gives it up where it is not by then, or the token is cancelled;
    /// fails as it does [call.give_up].
    pub fn finish(call: *Call, timeout: Timeout, token: ?*const CancelToken) CallError!void {
        var patience: Patience = .init(timeout);
        return call.finishWith(&patience, token);
    }

    /// The same for who has waited before.
    pub fn finishWith(
        call: *Call,
        patience: *Patience,
        token: ?*const CancelToken,
    ) CallError!void {
        const done = call_file.awaitOwn(call.calls, call, .done, patience, token) catch |err| {
            if (!call.isDone()) call.end(err);
            return err;
        };
        if (!done) call.end(error.Timeout);
        if (call.failure()) |err| return err;
    }

    /// Its result; one that points to memory goes with it, so that it is there once.
    ///
    /// Asserts that it is done.
    pub fn result(call: *Call, comptime T: type) CallError!Returned(T) {
        assert(call.isDone());
        if (call.failure()) |err| return err;
        const note = call.answer.?;
        const value = call.list.at(0);
        const returned = try make(T, call.calls, value, note);
        if (comptime !callee.isFlat(T)) call.answer = null;
        return returned;
    }

    /// The next item, for which it waits; null after the last, when it is done. A call whose items
    /// are late may be asked again: `error.Timeout` ends nothing.
    pub fn next(
        call: *Call,
        comptime T: type,
        timeout: Timeout,
        token: ?*const CancelToken,
    ) CallError!?Returned(T) {
        assert(call.takes_items);
        var patience: Patience = .init(timeout);
        const found = try call_file.awaitOwn(call.calls, call, .item, &patience, token);
        if (!found) return error.Timeout;
        const note = call.items.first orelse return if (call.failure()) |err| err else null;
        const count = @intFromBool(note.payload.len > 0);
        const value = (List{ .payload = note.payload, .count = count }).at(0);
        const returned = try make(T, call.calls, value, note);
        _ = call.items.pop();
        if (comptime callee.isFlat(T)) note.destroy(call.calls.gpa);
        call.taken += 1;
        if (call.taken % layout.call_grant == 0) call.grant();
        return returned;
    }

    /// The error that it was answered with, valid until `release`; null where there is none.
    pub fn thrown(call: *const Call) ?Failure {
        const note = call.answer orelse return null;
        return if (note.kind == .throw) failureOf(call.list) else null;
    }

    /// Gives it up, if it is not done: it ends with `error.Aborted` [call.give_up].
    pub fn giveUp(call: *Call) void {
        if (!call.isDone()) call.end(error.Aborted);
    }

    /// Gives it back, which must not be used any more. One that is not done is given up with
    /// `call.cancelled`.
    pub fn release(call: *Call) void {
        if (!call.isDone()) call.end(error.CallCancelled);
        call.held = false;
        call.freeUnheld();
    }

    // What follows is for `Calls`.

    /// Ends it before its answer came, and owes a cancel [call.give_up] [call.cancel_owed].
    pub fn end(call: *Call, err: CallError) void {
        assert(!call.isDone());
        assert(call.under_way);
        call.ended = err;
        call.calls.given_up_count += 1;
        call.dropItems();
        call.owes_more = 0;
        call.owe();
        call.owes_cancel = true;
        messages.settle(call.calls);
    }

    /// Ends it because nothing can come any more [call.lost].
    pub fn lose(call: *Call, err: CallError) void {
        call.leave();
        if (!call.isDone()) {
            call.ended = err;
            call.ended_behind = call.calls.lost_behind;
        }
        call.freeUnheld();
    }

    /// How it has failed, for the caller to return. What the peer has written since then changes
    /// neither that nor the reason for it.
    fn failure(call: *const Call) ?CallError {
        const err = call.ended orelse return null;
        return call.calls.again(err, call.ended_behind);
    }

    /// [call.grant]
    fn grant(call: *Call) void {
        if (!call.under_way or call.ended != null) return;
        call.owe();
        call.owes_more += 1;
        messages.settle(call.calls);
    }

    fn owe(call: *Call) void {
        if (call.is_owing or call.calls.mute) return;
        call.is_owing = true;
        call.calls.owed.append(&call.owed_node);
    }

    /// The mark that is owed next was placed. What a `more` allows counts from now on: a callee
    /// that reads nothing could have more and more of it be owed [call.granted].
    pub fn placed(call: *Call) void {
        if (call.owes_cancel) return call.forgive();
        call.allowed += layout.call_grant;
        call.owes_more -= 1;
        if (call.owes_more == 0) call.forgive();
    }

    /// Nothing is owed any more: it was placed, or the answer has come.
    pub fn forgive(call: *Call) void {
        call.owes_cancel = false;
        call.owes_more = 0;
        if (call.is_owing) call.calls.owed.remove(&call.owed_node);
        call.is_owing = false;
    }

    /// It is not under way any more.
    pub fn leave(call: *Call) void {
        assert(call.under_way);
        call.under_way = false;
        call.calls.under_way.remove(&call.node);
        call.calls.under_way_count -= 1;
        if (call.ended != null) call.calls.given_up_count -= 1;
        call.forgive();
    }

    /// Takes an item, or the answer [call.match].
    pub fn arrive(call: *Call, note: *Note) void {
        const gpa = call.calls.gpa;
        const is_item = note.tag & layout.call_mark_more != 0;
        if (!is_item) call.leave();
        if (call.isDone()) { // [call.late]
            note.destroy(gpa);
            return call.freeUnheld();
        }
        const list = call.judge(note, is_item) catch |err| {
            note.destroy(gpa);
            // [call.bad_answer]
            if (is_item) call.end(err) else call.ended = err;
            return;
        };
        if (is_item) {
            call.arrived += 1;
            return call.items.push(note);
        }
        call.is_answered = true;
        call.answer = note;
        call.list = list;
        if (note.kind == .throw) call.ended = call_error.errorNamed(list.at(0).payload);
    }

    /// Says what is wrong with an item or an answer [call.bad_answer] [call.too_many].
    fn judge(call: *const Call, note: *const Note, is_item: bool) CallError!List {
        if (note.fault) |code| return call_error.errorOf(code);
        if (is_item and (!call.takes_items or call.arrived == call.allowed)) {
            return error.CallItems;
        }
        if (note.codec != .values) return error.MessageCodec;
        const list: List = try .check(call.calls.gpa, note.payload);
        const fits = if (note.kind == .throw) isThrow(list) else list.count <= 1;
        return if (fits) list else error.CallForm;
    }

    fn isThrow(list: List) bool {
        if (list.count < 2 or list.count > 3) return false;
        const name = list.at(0);
        const text = list.at(1);
        if (name.codec != .text or text.codec != .text) return false;
        if (name.payload.len == 0 or name.payload.len > layout.call_name_size_max) return false;
        return text.payload.len <= layout.call_text_size_max;
    }

    fn freeUnheld(call: *Call) void {
        if (call.held or call.under_way) return;
        const calls = call.calls;
        call.dropItems();
        if (call.answer) |note| {
            if (note.kind == .throw) calls.keepThrown(note) else note.destroy(calls.gpa);
        }
        calls.gpa.destroy(call);
    }

    fn dropItems(call: *Call) void {
        while (call.items.pop()) |note| note.destroy(call.calls.gpa);
    }
};

/// The error in the list of a throw.
pub fn failureOf(list: List) Failure {
    return .{
        .name = list.at(0).payload,
        .text = list.at(1).payload,
        .data = if (list.count > 2) list.at(2) else null,
    };
}

/// Makes what is handed out of a value that lies in a note, which goes with it.
fn make(comptime T: type, calls: *Calls, value: Value, note: *Note) CallError!Returned(T) {
    var arena: std.heap.ArenaAllocator = .init(calls.gpa);
    errdefer arena.deinit();
    const decoded = callee.decode(T, arena.allocator(), value) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        error.WrongType => return error.ResultType,
    };
    if (comptime !callee.isFlat(T)) {
        return .{ .value = decoded, .note = note, .arena = arena };
    }
    arena.deinit();
    return decoded;
}

/// The items of a call, and then its result.
pub fn Items(comptime T: type) type {
    return struct {
        call: *Call,
        /// For each item.
        timeout: Timeout,
        token: ?*const CancelToken,

        const Self = @This();

        /// Waits for the next; null after the last.
        pub fn next(items: *Self) CallError!?Returned(T) {
            return items.call.next(T, items.timeout, items.token);
        }

        /// What stands after the items.
        ///
        /// Asserts that `next` has returned null.
        pub fn result(items: *Self, comptime R: type) CallError!Returned(R) {
            return items.call.result(R);
        }

        /// Gives the call up where there are more.
        pub fn deinit(items: *Self) void {
            items.call.release();
        }
    };
}

// What ends a call before its answer: the caller's token, and the one of a method
// [spec/call.md, "To give a call up"].

/// Says that a call is to be given up, or that a method was told so.
///
/// Thread safety: any thread may cancel, and ask.
pub const CancelToken = struct {
    endpoint: *const Endpoint,
    cancelled: std.atomic.Value(bool) = .init(false),
    /// Whom to tell with it. Belongs to the thread of the port.
    told: ?*CancelToken = null,

    /// A token for calls of the port with this endpoint, which must outlive it.
    pub fn init(endpoint: *const Endpoint) CancelToken {
        return .{ .endpoint = endpoint };
    }

    /// Ends the calls that were given this token, with `error.Aborted`, and wakes their thread.
    /// Calling it again does nothing.
    pub fn cancel(token: *CancelToken) void {
        if (token.cancelled.swap(true, .seq_cst)) return;
        const endpoint = token.endpoint;
        segment_record.ring(endpoint.record, endpoint.index, endpoint.host);
    }

    /// Whether it was cancelled.
    pub fn isCancelled(token: *const CancelToken) bool {
        return token.cancelled.load(.seq_cst);
    }

    /// Tells a method of the thread that this is: nobody sleeps who would have to be woken.
    pub fn tell(token: *CancelToken) void {
        token.cancelled.store(true, .seq_cst);
        if (token.told) |other| other.tell();
    }

    /// Tells another one from now on when this is told, until `unfollow`.
    pub fn follow(token: *CancelToken, other: *CancelToken) void {
        other.told = token.told;
        token.told = other;
        if (token.isCancelled()) other.tell();
    }

    /// Tells that one no more, if it did.
    pub fn unfollow(token: *CancelToken, other: *CancelToken) void {
        var place = &token.told;
        while (place.*) |each| : (place = &each.told) {
            if (each != other) continue;
            place.* = other.told;
            return;
        }
    }
};

// Tests.
//
// Tests of calls on one thread, and between two.

const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;
const Serving = millrace.Serving;

/// Two ports with calls, both in one hand. Must stay where it was initialized.
const Pair = struct {
    memory: [64 * 1024]u8 align(layout.segment_align),
    ports: [2]millrace.Port,
    ends: [2]Calls,

    fn init(pair: *Pair, capacity: u32, options: Calls.Options) !void {
        @memset(&pair.memory, 0);
        const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
        for (&pair.ports, 0..) |*port, index| {
            const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork };
            try port.create(&pair.memory, rings, @intCast(index), .{ .endpoint = endpoint });
            pair.ends[index].init(port, testing.allocator, options);
        }
    }

    fn deinit(pair: *Pair) void {
        for (&pair.ends) |*end| end.deinit();
        for (&pair.ports) |*port| port.close();
    }
};

const Shape = struct {
    kind: enum { round, flat },
    corners: [2]?f32,
    inner: ?struct { level: u8 } = null,
};

const Sums = struct {
    total: i64 = 0,

    pub fn add(a: i64, b: i64) i64 {
        return a + b;
    }

    pub fn count(sums: *Sums, by: ?i64) i64 {
        sums.total += by orelse 1;
        return sums.total;
    }

    pub fn greet(serving: *Serving, name: []const u8) ![]const u8 {
        return std.fmt.allocPrint(serving.allocator(), "hello {s}", .{name});
    }

    pub fn reverse(serving: *Serving, bytes: millrace.Bytes) !millrace.Bytes {
        const copy = try serving.allocator().dupe(u8, bytes.bytes);
        std.mem.reverse(u8, copy);
        return .{ .bytes = copy };
    }

    pub fn fail(serving: *Serving) error{CallThrown}!void {
        return serving.fail("Oops", "it broke", .{ .at = 3 });
    }

    pub fn lose() error{NotFound}!void {
        return error.NotFound;
    }

    pub fn same(value: Shape) Shape {
        return value;
    }

    pub fn nan() f64 {
        return std.math.nan(f64);
    }

    pub fn upTo(serving: *Serving, n: u32) !u32 {
        for (0..n) |number| try serving.item(number, .ms(20_000));
        return n;
    }
};

test "Calls: a call that was begun is answered by whoever reads" {
    var pair: Pair = undefined;
    try pair.init(1024, .{});
    defer pair.deinit();
    pair.ends[1].serve(Sums);
    const call = try pair.ends[0].begin("add", .{ 1, 2 }, .{});
    defer call.release();
    try testing.expect(!try call.wait(.none, null));
    try testing.expectEqual(null, try pair.ends[1].read(&.{}, .none));
    try testing.expect(try call.wait(.none, null));
    try testing.expectEqual(3, try call.result(i64));
}

const Server = struct {
    memory: [256 * 1024]u8 align(layout.segment_align) = @splat(0),
    rings: millrace.Rings = .{ .capacities = .{ 1024, 1024 } },
    sums: Sums = .{},

    fn run(server: *Server) !void {
        var port: millrace.Port = undefined;
        try port.create(&server.memory, server.rings, 1, .{});
        defer port.close();
        var calls: Calls = undefined;
        calls.init(&port, testing.allocator, .{});
        defer calls.deinit();
        calls.serve(&server.sums);
        var storage: [16]u8 = undefined;
        while (try calls.read(&storage, .ms(10_000))) |_| {}
        try calls.end(.ms(20_000));
    }
};

test "Calls.call: results, errors and items between two threads" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    var server: Server = .{};
    const thread: std.Thread = try .spawn(.{}, Server.run, .{&server});
    defer thread.join();
    var port: millrace.Port = undefined;
    try port.create(&server.memory, server.rings, 0, .{});
    defer port.close();
    var calls: Calls = undefined;
    calls.init(&port, testing.allocator, .{});
    defer calls.deinit();
    const within: Calls.CallOptions = .{ .timeout = .ms(10_000) };

    for (0..100) |n| {
        const number: i64 = @intCast(n);
        try testing.expectEqual(number + 1, try calls.call(i64, "add", .{ number, 1 }, within));
    }
    try testing.expectEqual(5, try calls.call(i64, "count", .{5}, within));
    try testing.expectEqual(6, try calls.call(i64, "count", .{}, within));
    try calls.notify("count", .{10}, within);
    try testing.expectEqual(17, try calls.call(i64, "count", .{null}, within));

    const greeting = try calls.call([]const u8, "greet", .{"gr\u{fc}n"}, within);
    defer greeting.deinit();
    try testing.expectEqualStrings("hello gr\u{fc}n", greeting.value);
    var large: [5000]u8 = undefined;
    fixture.pattern(&large, 1);
    const given: millrace.Bytes = .{ .bytes = &large };
    const reversed = try calls.call(millrace.Bytes, "reverse", .{given}, within);
    defer reversed.deinit();
    std.mem.reverse(u8, &large);
    try testing.expectEqualSlices(u8, &large, reversed.value.bytes);

    const shape: Shape = .{ .kind = .flat, .corners = .{ 1.5, null }, .inner = .{ .level = 3 } };
    try testing.expectEqual(shape, try calls.call(Shape, "same", .{shape}, within));
    const odd: Shape = .{ .kind = .flat, .corners = .{ std.math.inf(f32), null } };
    try testing.expectError(error.CallArguments, calls.call(Shape, "same", .{odd}, within));
    const bad = calls.call([]const u8, "greet", .{"\xff"}, within);
    try testing.expectError(error.CallArguments, bad);
    try testing.expectError(error.CallThrown, calls.call(void, "fail", .{}, within));
    try testing.expectEqualStrings("Oops", calls.thrown().?.name);
    try testing.expectEqualStrings("it broke", calls.thrown().?.text);
    try testing.expectEqualStrings("{\"at\":3}", calls.thrown().?.data.?.payload);
    try testing.expectError(error.CallThrown, calls.call(void, "lose", .{}, within));
    try testing.expectEqualStrings("NotFound", calls.thrown().?.name);
    try testing.expectError(error.CallResult, calls.call(f64, "nan", .{}, within));
    try testing.expectError(error.CallMethod, calls.call(void, "total", .{}, within));
    try testing.expectError(error.CallArguments, calls.call(i64, "add", .{1}, within));
    try testing.expectError(error.CallArguments, calls.call(i64, "add", .{ 1, 2, 3 }, within));
    try testing.expectError(error.CallArguments, calls.call(i64, "add", .{ 1, "2" }, within));
    try testing.expectError(error.ResultType, calls.call(bool, "add", .{ 1, 2 }, within));

    var items = try calls.items(u32, "upTo", .{100}, within);
    defer items.deinit();
    for (0..100) |number| try testing.expectEqual(number, (try items.next()).?);
    try testing.expectEqual(null, try items.next());
    try testing.expectEqual(100, try items.result(u32));

    var few = try calls.items(u32, "upTo", .{1000}, within);
    _ = try few.next();
    few.deinit();
    try testing.expectEqual(3, try calls.call(i64, "add", .{ 1, 2 }, within));
    try calls.end(.ms(20_000));
    try testing.expectEqual(null, try calls.read(&.{}, .ms(10_000)));
    try testing.expectError(error.CallEnded, calls.call(i64, "add", .{ 1, 2 }, within));
}

// Tests of calls over a stream whose transport a test plays by hand: what lies between the port
// and the peer there, and not in shared memory.

const stream_fixture = @import("../stream/fixture.zig");
const Bench = stream_fixture.Bench;
const Wire = stream_fixture.Wire;

const limit: millrace.Timeout = .ms(40);
const limit_ns = 40_000_000;

/// A port with calls over a bench. Must stay where it was opened.
const Side = struct {
    bench: Bench,
    calls: Calls,

    fn open(side: *Side) !void {
        const port = try side.bench.open(stream_fixture.small);
        side.bench.bring(128, 256, &.{});
        side.bench.output.size = 0;
        side.calls.init(port, testing.allocator, .{});
    }
};

const Way = enum { write, notify, begin, items };

fn send(calls: *Calls, way: Way, timeout: millrace.Timeout) !?*millrace.Call {
    const options: Calls.CallOptions = .{ .timeout = timeout };
    switch (way) {
        .write => try calls.write("hi", .{}, timeout),
        .notify => try calls.notify("hi", .{}, options),
        .begin => return try calls.begin("hi", .{}, options),
        .items => return (try calls.items(u32, "hi", .{}, options)).call,
    }
    return null;
}

test "Calls: what may wait over a stream goes on until the transport has the message" {
    for (std.enums.values(Way)) |way| {
        var side: Side = undefined;
        try side.open();
        defer side.calls.deinit();
        const output = &side.bench.output;
        output.capacity = 20;
        const before_ns = stream_fixture.now();
        const made = try send(&side.calls, way, limit);
        defer if (made) |call| call.release();
        try testing.expectEqual(limit_ns, stream_fixture.now() - before_ns);
        try testing.expectEqual(20, output.size);
        // It was written all the same: the rest goes out when there is room.
        output.capacity = Wire.wire_size;
        side.bench.side.stream.pump();
        const extent: usize = if (way == .write) 32 else 48;
        try testing.expectEqual(extent, output.size);
        // Who does not wait leaves that to later calls.
        output.capacity = output.size;
        const again = try send(&side.calls, way, .none);
        defer if (again) |call| call.release();
        try testing.expectEqual(limit_ns, stream_fixture.now() - before_ns);
    }
}

test "Calls: what waits for its transport takes in what arrives, and begins nothing" {
    const Api = struct {
        count: u32 = 0,

        pub fn hi(api: *@This(), _: millrace.Bytes) void {
            api.count += 1;
        }
    };
    var api: Api = .{};
    var side: Side = undefined;
    try side.open();
    defer side.calls.deinit();
    side.calls.serve(&api);
    side.bench.output.capacity = 0;
    // A notice, longer than half of the window, which is given back when it is taken in.
    var list: [96]u8 = @splat(0);
    list[0..18].* = "\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x40\x00".*;
    list[24..26].* = "hi".*;
    var place: [128]u8 = undefined;
    side.bench.input.putAll(stream_fixture.frameOf(&place, .{
        .size = list.len,
        .kind = layout.frame_kind_call,
        .flags = layout.frame_flag_first | layout.frame_flag_last,
        .codec = @backingInt(millrace.Codec.values),
    }, &list));
    side.bench.side.stream.pump();
    try side.calls.write("hi", .{}, limit);
    try testing.expectEqual(0, api.count);
    try testing.expect(side.calls.pending.first != null);
    try testing.expectEqual(null, try side.calls.read(&.{}, .none));
    try testing.expectEqual(1, api.count);
}

test "Calls: what waits for its transport fails where the peer goes meanwhile" {
    for (std.enums.values(Way)) |way| {
        var side: Side = undefined;
        try side.open();
        defer side.calls.deinit();
        side.bench.output.capacity = 20;
        var place: [16]u8 = undefined;
        side.bench.input.putAll(stream_fixture.control(&place, layout.stream_kind_close, 0));
        side.bench.input.cut = 1; // it comes while the call waits
        const made = send(&side.calls, way, .ms(5_000));
        switch (way) {
            .write, .notify => try testing.expectError(error.PeerClosed, made),
            // It was made: its end says so.
            .begin, .items => {
                const call = (try made).?;
                defer call.release();
                try testing.expectError(error.PeerClosed, call.finish(.none, null));
            },
        }
    }
}

test "Calls.vacate: refused over a stream: who comes back opens a new one" {
    var side: Side = undefined;
    try side.open();
    defer side.calls.deinit();
    var place: [16]u8 = undefined;
    side.bench.input.putAll(stream_fixture.control(&place, layout.stream_kind_close, 0));
    try testing.expectError(error.PeerClosed, side.calls.read(&.{}, .none));
    try testing.expect(!side.calls.vacate());
    try testing.expectError(error.PeerClosed, side.calls.notify("hi", .{}, .{ .timeout = .none }));
}
