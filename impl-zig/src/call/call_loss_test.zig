//! Tests of calls on a port that is lost, vacated, or short of memory.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const frame = @import("../ring/frame.zig");
const layout = millrace.layout;
const testing = std.testing;
const Calls = millrace.Calls;
const Duel = @import("fixture.zig").Duel;

const none: Calls.CallOptions = .{ .timeout = .none };
const json_one: millrace.Value = .{ .codec = .json, .payload = "1" };

/// A peer whose own marks what happens to it.
const Loss = enum { ends, closes, fails, breaks, own_close, own_failure };

fn lose(duel: *Duel, loss: Loss) !void {
    const segment: millrace.Segment = segment: {
        var channels: [2]millrace.Channel = undefined;
        break :segment try .attach(&duel.memory, &channels, .none);
    };
    switch (loss) {
        .ends => try duel.peer.end(),
        .closes => duel.peer.close(),
        .fails => segment.fail(segment.ownerOf(0), .peer_terminated, &fixture.clockwork),
        .breaks => {
            const ring = &duel.peer.writer.ring;
            const offset = ring.tail & (ring.capacity - 1);
            const header: frame.Header = .{ .size = 0, .kind = 99 };
            header.store(@alignCast(ring.area[offset..][0..16]));
            ring.tail +%= 16;
            ring.publish();
        },
        .own_close => duel.port.close(),
        .own_failure => segment.fail(segment.ownerOf(1), .peer_lost, &fixture.clockwork),
    }
}

test "Calls: each loss ends all calls with its code, behind what was published [call.lost]" {
    const cases = [_]struct { Loss, anyerror, ?millrace.Reason }{
        .{ .ends, error.CallEnded, null },
        .{ .closes, error.PeerClosed, null },
        .{ .fails, error.PeerFailed, .peer_terminated },
        .{ .breaks, error.Corrupt, .frame_kind },
        .{ .own_close, error.PipeClosed, null },
        .{ .own_failure, error.PipeFailed, .peer_lost },
    };
    for (cases) |case| {
        const loss, const expected, const reason = case;
        var duel: Duel = undefined;
        try duel.init(4096, .{});
        defer duel.deinit();
        const answered = try duel.calls.begin("one", .{}, none);
        defer answered.release();
        const pending = try duel.calls.begin("one", .{}, none);
        defer pending.release();
        try duel.ask(9, "hold");
        try duel.say(.@"return", 1, &.{json_one});
        try lose(&duel, loss);
        try testing.expectError(expected, pending.finish(.ms(5), null));
        try testing.expectEqual(reason, if (reason != null) duel.port.reason() else null);
        // The own close drops what was not delivered [pipe.close].
        if (loss == .own_close) {
            try testing.expectError(expected, answered.result(u32));
        } else {
            try testing.expectEqual(1, try answered.result(u32));
            // A peer that has ended its stream still reads.
            try testing.expectEqual(loss != .ends, duel.served.told == 1);
        }
        try testing.expectEqual(0, duel.calls.under_way_count);
        for (0..2) |_| {
            try testing.expectError(expected, duel.calls.call(u32, "one", .{}, .{}));
            try testing.expectError(expected, duel.calls.notify("one", .{}, .{}));
        }
        const serving = duel.served.holds[0] orelse continue;
        serving.answer(5);
        if (loss != .ends) continue;
        try duel.expect(.call, 1, "one");
        try duel.expect(.call, 2, "one");
        try duel.expect(.@"return", 9, "5");
    }
}

test "Calls: a method that waits on the stack ends with the port [call.told]" {
    for ([_]Loss{ .ends, .closes, .fails, .breaks, .own_failure }) |loss| {
        var duel: Duel = undefined;
        try duel.init(4096, .{});
        defer duel.deinit();
        try duel.ask(9, "back");
        try lose(&duel, loss);
        const found = duel.calls.read(&duel.storage, .ms(5));
        if (loss == .ends) {
            try testing.expectEqual(null, try found);
            try testing.expectEqual(error.CallEnded, duel.served.back_ended.?);
            try duel.expect(.call, 1, "back");
            try duel.expect(.throw, 9, "call.ended");
        } else {
            try testing.expectEqual(duel.served.back_ended.?, (found catch |err| err));
        }
    }
}

test "Calls: why a call has ended stays its own, whatever the peer's state becomes [call.lost]" {
    // A fault fails the peer with a reason, which the peer overwrites: failed without one, and an
    // invalid state.
    for ([_]u32{ layout.endpoint_state_failed, 77 }) |word| {
        var duel: Duel = undefined;
        try duel.init(4096, .{});
        defer duel.deinit();
        const finished = try duel.calls.begin("one", .{}, none);
        defer finished.release();
        const asked = try duel.calls.begin("one", .{}, none);
        defer asked.release();
        var items = try duel.calls.items(u32, "count", .{}, none);
        defer items.deinit();
        try lose(&duel, .breaks);
        try testing.expectError(error.Corrupt, duel.calls.read(&duel.storage, .none));
        @atomicStore(u32, &duel.peer.endpoint.record.state, word, .seq_cst);
        for (0..2) |_| {
            try testing.expectError(error.Corrupt, finished.finish(.none, null));
            try testing.expectEqual(.frame_kind, duel.port.reason());
            // Nothing of the ring says why by now.
            try testing.expectError(error.PeerFailed, duel.port.write("text", .{}, .none));
            try testing.expect(duel.port.reason() != .frame_kind);
            try testing.expectError(error.Corrupt, asked.result(u32));
            try testing.expectEqual(.frame_kind, duel.port.reason());
            try testing.expectError(error.PeerFailed, duel.port.write("text", .{}, .none));
            try testing.expectError(error.Corrupt, items.next());
            try testing.expectEqual(.frame_kind, duel.port.reason());
            try testing.expectError(error.PeerFailed, duel.port.write("text", .{}, .none));
        }
    }
}

test "Calls.end: nobody is called any more, and the methods are told [call.told]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    const call = try duel.calls.begin("one", .{}, none);
    defer call.release();
    try duel.ask(9, "hold");
    try duel.serve();
    try duel.calls.end(.none);
    try testing.expectEqual(1, duel.served.told);
    try testing.expectError(error.PipeEnded, duel.calls.begin("one", .{}, none));
    try duel.say(.@"return", 1, &.{json_one});
    try duel.ask(10, "one");
    try duel.serve();
    try testing.expectEqual(1, try call.result(u32));
    duel.served.holds[0].?.answer(1);
    try duel.expect(.call, 1, "one");
    try duel.expectNothing();
    try testing.expect(duel.peer.ended());
}

test "Calls.end: what was accepted comes before the end" {
    var duel: Duel = undefined;
    try duel.init(256, .{});
    defer duel.deinit();
    while (try duel.port.tryWrite("", .{})) {}
    try duel.ask(9, "one");
    try duel.serve();
    while (try duel.peer.read(&duel.storage, .none)) |_| {}
    try duel.calls.end(.none);
    try duel.expect(.@"return", 9, "1");
    try duel.expectNothing();
    try testing.expect(duel.peer.ended());
}

test "Calls.vacate: the next owner of the peer's endpoint meets no call [call.vacated]" {
    for ([_]bool{ false, true }) |ends| try vacateBehind(ends);
}

test "Calls.vacate: calls end by the state that the peer had, read or not [call.lost]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    const call = try duel.calls.begin("one", .{}, none);
    defer call.release();
    try lose(&duel, .fails);
    try testing.expect(duel.calls.vacate());
    try testing.expectError(error.PeerFailed, call.result(u32));
    try testing.expectEqual(.peer_terminated, duel.port.reason().?);
}

fn vacateBehind(ends: bool) !void {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    try testing.expect(!duel.calls.vacate());
    const call = try duel.calls.begin("one", .{}, none);
    call.release();
    try duel.ask(1, "hold");
    try duel.serve();
    try duel.peer.write("plain", .{}, .none);
    try duel.ask(2, "hold");
    if (ends) try lose(&duel, .ends);
    try lose(&duel, .fails);
    _ = (try duel.calls.read(&duel.storage, .none)).?;
    const behind = duel.calls.read(&duel.storage, .none);
    if (ends) {
        try testing.expectEqual(null, try behind);
    } else {
        try testing.expectError(error.PeerFailed, behind);
    }
    try testing.expect(duel.calls.vacate());
    try duel.peer.attach(&duel.memory, 0, .{
        .endpoint = .{ .host = &fixture.clockwork },
        .calls = true,
    });
    // The same ids, in both directions, mean other calls.
    try duel.ask(1, "one");
    const again = try duel.calls.begin("one", .{}, none);
    defer again.release();
    try duel.say(.@"return", 1, &.{json_one});
    try duel.serve();
    try testing.expectEqual(1, try again.result(u32));
    for (duel.served.holds[0..2]) |serving| serving.?.answer("to nobody");
    try duel.expect(.call, 1, "one");
    try duel.expect(.@"return", 1, "1");
    try duel.expectNothing();
}

test "Calls: where memory ends nothing leaks, and nothing is lost that has come" {
    try testing.checkAllAllocationFailures(testing.allocator, struct {
        fn run(gpa: std.mem.Allocator) !void {
            var duel: Duel = undefined;
            try duel.initWith(gpa, 1024, .{});
            defer duel.deinit();
            var large: [3000]u8 = @splat('x');
            const call = try duel.calls.begin("one", .{ "text", 5, .{ .a = 1 } }, none);
            defer call.release();
            try duel.say(.call, 9, &.{ .text("one"), .{ .codec = .json, .payload = "[[[]]]" } });
            try duel.say(.@"return", 1, &.{.text("text")});
            try testing.expectEqual(null, try duel.calls.read(&duel.storage, .none));
            const result = try call.result([]const u8);
            result.deinit();
            const write: Calls.CallOptions = .{ .timeout = .ms(5) };
            const given: millrace.Bytes = .{ .bytes = &large };
            const found = duel.calls.begin("one", .{given}, write) catch |err| switch (err) {
                error.Timeout => return,
                else => return err,
            };
            found.release();
        }
    }.run, .{});
}

test "CancelToken.cancel: another thread ends a call that waits" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    // Whoever is not woken finds it by the end of a slice, every time; on a busy machine others do
    // now and then.
    for (0..20) |_| {
        if (try lateCancels() == 0) break;
    } else return error.NeverWoken;
}

/// Cancels two calls that wait; returns how often that was found by the end of a slice.
fn lateCancels() !u64 {
    const Other = struct {
        fn cancel(token: *millrace.CancelToken) void {
            millrace.Host.native.pause(20_000_000);
            token.cancel();
        }
    };
    var memory: [8192]u8 align(layout.segment_align) = @splat(0);
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    var port: millrace.Port = undefined;
    try port.create(&memory, rings, 0, .{});
    defer port.close();
    var calls: Calls = undefined;
    calls.init(&port, testing.allocator, .{});
    defer calls.deinit();
    for (0..2) |round| {
        var token: millrace.CancelToken = .init(&port.endpoint);
        const thread: std.Thread = try .spawn(.{}, Other.cancel, .{&token});
        defer thread.join();
        // One waits for its answer, the other for room.
        const large: [1000]u8 = @splat(0);
        const given: millrace.Bytes = .{ .bytes = large[0..if (round == 0) 0 else large.len] };
        const options: Calls.CallOptions = .{ .token = &token, .timeout = .ms(10_000) };
        try testing.expectError(error.Aborted, calls.call(void, "one", .{given}, options));
    }
    return port.stats().late_wakes;
}
