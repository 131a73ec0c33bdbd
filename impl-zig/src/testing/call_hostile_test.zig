//! Tests of calls whose peer is played by hand: what it may send, and what it must not.

const std = @import("std");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Call = millrace.Call;
const Calls = millrace.Calls;
const Duel = @import("../call/fixture.zig").Duel;
const Value = millrace.Value;

const cancel = layout.call_mark_cancel;
const more = layout.call_mark_more;

const long: [256]u8 = @splat('n');

fn json(payload: []const u8) Value {
    return .{ .codec = .json, .payload = payload };
}

test "Calls: a second call of an id is a duplicate until the first is answered [call.duplicate]" {
    var duel: Duel = undefined;
    try duel.init(1024, .{});
    defer duel.deinit();
    try duel.ask(1, "hold");
    try duel.ask(1, "one");
    try duel.expectReport(error.CallDuplicate);
    try duel.expectNothing();
    duel.served.holds[0].?.answer("late");
    try duel.expect(.@"return", 1, "late");
    try duel.ask(1, "one");
    try duel.serve();
    try duel.expect(.@"return", 1, "1");
}

test "Calls: a cancel tells the method once, and it may answer all the same [call.cancelled]" {
    var duel: Duel = undefined;
    try duel.init(1024, .{});
    defer duel.deinit();
    try duel.ask(7, "hold");
    try duel.say(.call, 8 | cancel, &.{});
    try duel.serve();
    try testing.expectEqual(0, duel.served.told);
    for (0..2) |_| try duel.say(.call, 7 | cancel, &.{});
    try duel.serve();
    try testing.expectEqual(1, duel.served.told);
    try testing.expect(duel.served.holds[0].?.isCancelled());
    try testing.expectError(error.CallCancelled, duel.served.holds[0].?.item(1, .none));
    duel.served.holds[0].?.answer(5);
    try duel.expect(.@"return", 7, "5");
    try duel.expectNothing();
}

test "Calls: an item is sent where its caller lets it, and not before [call.window]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    try duel.ask(3, "hold");
    try duel.serve();
    const serving = duel.served.holds[0].?;
    for (0..layout.call_window) |number| try serving.item(number, .none);
    try testing.expectError(error.Timeout, serving.item(16, .none));
    try testing.expectError(error.Timeout, serving.item(16, .ms(5)));
    try duel.say(.call, 4 | more, &.{});
    try testing.expectError(error.Timeout, serving.item(16, .none));
    try duel.say(.call, 3 | more, &.{});
    for (0..layout.call_grant) |number| try serving.item(16 + number, .none);
    try testing.expectError(error.Timeout, serving.item(24, .none));
    try testing.expectError(error.CallResult, serving.item(std.math.inf(f32), .none));
    serving.throw(error.CallResult);
    var text: [2]u8 = undefined;
    for (0..24) |number| {
        const shown = try std.fmt.bufPrint(&text, "{}", .{number});
        try duel.expect(.@"return", 3 | more, shown);
    }
    try duel.expect(.throw, 3, "call.result");
}

fn letGo(serving: *millrace.Serving) void {
    serving.throw(error.CallCancelled);
}

test "Calls: who sends an item later learns that its call was answered meanwhile [call.stops]" {
    for ([_]u32{ layout.call_window, 0 }) |count| {
        var duel: Duel = undefined;
        try duel.init(1024, .{});
        defer duel.deinit();
        try duel.ask(3, "hold");
        try duel.serve();
        const serving = duel.served.holds[0].?;
        serving.on_cancel = letGo;
        // It waits for a `more`; or for room, in a ring that is full.
        for (0..count) |number| try serving.item(number, .none);
        if (count == 0) while (serving.item(long[0..100], .none)) |_| {} else |err| {
            try testing.expectEqual(error.Timeout, err);
        };
        try duel.say(.call, 3 | cancel, &.{});
        try testing.expectError(error.CallCancelled, serving.item("late", .ms(1_000)));
        var last: millrace.Message = undefined;
        while (try duel.peer.read(&duel.storage, .none)) |message| {
            last = message;
            try duel.serve();
        }
        try testing.expectEqual(.throw, last.kind);
    }
}

test "Calls: no item waits for a call that another method has answered" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    try duel.ask(3, "hold");
    try duel.serve();
    const serving = duel.served.holds[0].?;
    for (0..layout.call_window) |number| try serving.item(number, .none);
    try duel.ask(4, "free");
    try testing.expectError(error.CallCancelled, serving.item("late", .ms(1_000)));
    for (0..layout.call_window) |_| _ = (try duel.peer.read(&duel.storage, .none)).?;
    try duel.expect(.@"return", 3, "freed");
    try duel.expect(.@"return", 4, "");
    try duel.expectNothing();
}

test "Calls: a call that was cancelled before it began is not begun [call.stops]" {
    var duel: Duel = undefined;
    try duel.init(256, .{});
    defer duel.deinit();
    // No room for an answer, so that nothing begins.
    while (try duel.port.tryWrite("xxxxxxxx", .{})) {}
    try duel.ask(1, "one");
    try duel.serve();
    try duel.ask(2, "hold");
    try duel.say(.call, 2 | cancel, &.{});
    try duel.serve();
    try testing.expectEqual(null, duel.served.holds[0]);
    while (try duel.peer.read(&duel.storage, .none)) |message| {
        if (message.kind != .data) return error.TooEarly;
    }
    try duel.serve();
    try duel.expect(.@"return", 1, "1");
    try duel.expect(.throw, 2, "call.cancelled");
    try testing.expectEqual(null, duel.served.holds[0]);
    try testing.expectEqual(0, duel.calls.kept_bytes);
}

test "Calls: 1,024 are served at once, cancelled ones among them [call.refused]" {
    var duel: Duel = undefined;
    try duel.init(16 * 1024, .{});
    defer duel.deinit();
    for (1..layout.call_under_way_max + 1) |id| {
        try duel.ask(@intCast(id), "hold");
        if (id % 2 == 0) try duel.say(.call, @as(u32, @intCast(id)) | cancel, &.{});
        try duel.serve();
    }
    try duel.ask(2000, "hold");
    try duel.ask(0, "one");
    try duel.expectReport(error.CallLimit);
    try duel.expect(.throw, 2000, "call.limit");
    duel.served.holds[0].?.answer({});
    try duel.ask(2000, "one");
    try duel.serve();
    try duel.expect(.@"return", 1, "");
    try duel.expect(.@"return", 2000, "1");
}

test "Calls: as many bytes are kept for methods as the options say [call.refused]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{ .serving_size = 100 });
    defer duel.deinit();
    for (1..5) |id| {
        try duel.say(.call, @intCast(id), &.{ .text("hold"), .absent, .absent });
    }
    try duel.serve();
    try duel.expect(.throw, 3, "call.limit");
    try duel.expect(.throw, 4, "call.limit");
    try duel.expectNothing();
}

test "Calls: more items than were allowed end the call, which is cancelled [call.too_many]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    var items = try duel.calls.items(u32, "count", .{}, .{ .timeout = .none });
    defer items.deinit();
    try duel.expect(.call, 1, "count");
    for (0..17) |_| try duel.say(.@"return", 1 | more, &.{json("5")});
    try duel.serve();
    try testing.expectError(error.CallItems, items.next());
    try duel.expect(.call, 1 | cancel, "");
    // It is under way until its answer, which nobody hears of [call.late].
    try duel.say(.@"return", 1 | more, &.{json("5")});
    try duel.say(.@"return", 1, &.{});
    try duel.serve();
    try testing.expectEqual(0, duel.calls.under_way_count);
    try duel.say(.@"return", 1, &.{});
    try duel.expectReport(error.CallAnswer);
}

test "Calls: no item is lost whose reader asks in vain before it comes" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    var items = try duel.calls.items(u32, "count", .{}, .{ .timeout = .none });
    defer items.deinit();
    try testing.expectError(error.Timeout, items.next());
    try duel.say(.@"return", 1 | more, &.{json("5")});
    try duel.say(.@"return", 1 | more, &.{.text("six")});
    try duel.say(.@"return", 1, &.{json("7")});
    try testing.expectEqual(5, try items.next());
    try testing.expectError(error.ResultType, items.next());
    try testing.expectError(error.ResultType, items.next());
}

test "Calls: answers that are not well made end their call alone [call.bad_answer]" {
    const cases = [_]struct { anyerror, layout.FrameKind, []const Value }{
        .{ error.CallForm, .@"return", &.{ json("1"), json("2") } },
        .{ error.CallForm, .throw, &.{.text("name")} },
        .{ error.CallForm, .throw, &.{ .text(""), .text("") } },
        .{ error.CallForm, .throw, &.{ .text("name"), json("\"text\"") } },
        .{ error.CallForm, .throw, &.{ .text("name"), .text(""), .absent, .absent } },
        .{ error.CallForm, .throw, &.{ .text(&long), .text("") } },
        .{ error.CallThrown, .throw, &.{ .text("name"), .text("") } },
        .{ error.CallThrown, .throw, &.{ .text("pipe.closed"), .text(""), .absent } },
        .{ error.CallLimit, .throw, &.{ .text("call.limit"), .text("") } },
        .{ error.MessageJson, .@"return", &.{json("x")} },
        .{ error.MessageText, .@"return", &.{.text("\xff")} },
        .{ error.ResultType, .@"return", &.{.text("1")} },
    };
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    const other = try duel.calls.begin("other", .{}, .{ .timeout = .none });
    defer other.release();
    try duel.expect(.call, 1, "other");
    for (cases, 2..) |case, id| {
        const call = try duel.calls.begin("one", .{}, .{ .timeout = .none });
        defer call.release();
        try duel.expect(.call, @intCast(id), "one");
        try duel.say(case[1], @intCast(id), case[2]);
        try duel.serve();
        try testing.expectError(case[0], call.result(u32));
        // An answer was read, so that nothing is to be cancelled.
        try duel.expectNothing();
    }
    try duel.say(.@"return", 1, &.{json("1")});
    try duel.serve();
    try testing.expectEqual(1, try other.result(u32));
}

test "Calls: 1,024 calls wait, and 2,048 are under way, and none beyond [call.under_way]" {
    var duel: Duel = undefined;
    try duel.init(16 * 1024, .{ .first_id = layout.call_id_max - 1 });
    defer duel.deinit();
    const options: Calls.CallOptions = .{ .timeout = .none };
    var tag: u32 = layout.call_id_max - 1;
    for (0..layout.call_under_way_max) |_| {
        const call = try duel.calls.begin("one", .{}, options);
        try duel.expect(.call, tag, "one");
        call.release();
        try duel.expect(.call, tag | cancel, "");
        tag = if (tag == layout.call_id_max) 1 else tag + 1;
    }
    // Those that were given up and never answered hold up no other.
    var waiting: [layout.call_under_way_max]*Call = undefined;
    for (&waiting) |*call| {
        call.* = try duel.calls.begin("one", .{}, options);
        try duel.expect(.call, tag, "one");
        tag += 1;
    }
    defer for (waiting[1..]) |call| call.release();
    try testing.expectError(error.CallLimit, duel.calls.begin("one", .{}, options));
    // There is room for one of each kind [call.unanswered].
    waiting[0].release();
    try duel.expect(.call, tag - layout.call_under_way_max | cancel, "");
    try testing.expectError(error.CallLimit, duel.calls.begin("one", .{}, options));
    try duel.expectNothing();
    try duel.say(.@"return", 5, &.{});
    try duel.serve();
    // The next one that is free, which is not the one that came back first.
    const call = try duel.calls.begin("one", .{}, options);
    defer call.release();
    try duel.expect(.call, tag, "one");
    try testing.expectError(error.CallLimit, duel.calls.begin("one", .{}, options));
}

test "Calls: what a `more` allows counts when it is placed [call.granted]" {
    var duel: Duel = undefined;
    try duel.init(512, .{});
    defer duel.deinit();
    var items = try duel.calls.items(u32, "rows", .{}, .{ .timeout = .none });
    defer items.deinit();
    try duel.expect(.call, 1, "rows");
    while (try duel.port.tryWrite("", .{})) {}
    for (0..layout.call_window) |index| {
        try duel.say(.@"return", 1 | more, &.{json("7")});
        try duel.serve();
        // As many as were allowed at first; two times eight of them were taken.
        if (index % 4 == 3) for (0..4) |_| {
            try testing.expectEqual(7, (try items.next()).?);
        };
    }
    try testing.expectEqual(2, items.call.owes_more);
    try duel.say(.@"return", 1 | more, &.{json("7")});
    try duel.serve();
    try testing.expectError(error.CallItems, items.next());
}

test "Calls: a cancel that finds no room is owed, and left out once the answer is there" {
    var duel: Duel = undefined;
    try duel.init(256, .{});
    defer duel.deinit();
    for (0..2) |index| {
        const id: u32 = @intCast(index + 1);
        const call = try duel.calls.begin("one", .{}, .{ .timeout = .none });
        defer call.release();
        while (try duel.port.tryWrite("", .{})) {}
        call.giveUp();
        try testing.expect(call.is_owing);
        if (index == 1) {
            try duel.say(.@"return", id, &.{});
            try duel.serve();
            try testing.expect(!call.is_owing);
        }
        try duel.expect(.call, id, "one");
        while (try duel.peer.read(&duel.storage, .none)) |message| {
            try testing.expectEqual(.data, message.kind);
        }
        // Before the next message [call.cancel_owed].
        try duel.calls.write("next", .{}, .none);
        if (index == 0) try duel.expect(.call, id | cancel, "");
        const next = (try duel.peer.read(&duel.storage, .none)).?;
        try testing.expectEqualStrings("next", next.payload);
        if (index == 0) try duel.say(.@"return", id, &.{});
        try duel.serve();
    }
}

test "Calls: an inbox that is full before the answer ends the call [call.set_aside]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{ .inbox_size = 200 });
    defer duel.deinit();
    const soon: Calls.CallOptions = .{ .timeout = .ms(5) };
    for (0..3) |number| {
        for (0..number + 2) |_| try duel.peer.write("plain", .{}, .none);
        const id: u32 = @intCast(number + 1);
        if (number == 0) {
            try duel.say(.@"return", 1, &.{json("1")});
            try testing.expectEqual(1, try duel.calls.call(u32, "one", .{}, soon));
        } else {
            // The third has a place still, below the limit; the fourth has none.
            const expected = if (number == 1) error.Timeout else error.CallInbox;
            const found = duel.calls.call(u32, "one", .{}, soon);
            try testing.expectError(expected, found);
        }
        try duel.expect(.call, id, "one");
        if (number > 0) try duel.expect(.call, id | cancel, "");
        for (0..number + 2) |_| {
            const message = (try duel.calls.read(&duel.storage, .none)).?;
            try testing.expectEqualStrings("plain", message.payload);
        }
        try duel.serve();
    }
}

test "Calls: a call whose deadline passes while it is written in part was never made" {
    var duel: Duel = undefined;
    try duel.init(256, .{});
    defer duel.deinit();
    var large: [1000]u8 = undefined;
    const given: millrace.Bytes = .{ .bytes = &large };
    const options: Calls.CallOptions = .{ .timeout = .ms(5) };
    try testing.expectError(error.Timeout, duel.calls.begin("one", .{given}, options));
    try testing.expectEqual(0, duel.calls.under_way_count);
    try testing.expectEqual(null, try duel.peer.read(&duel.storage, .none));
    const call = try duel.calls.begin("one", .{}, options);
    defer call.release();
    try testing.expectError(error.MessageCancelled, duel.peer.read(&duel.storage, .none));
    // Its id is free, and is that of the next.
    try duel.expect(.call, 1, "one");
    const none: Calls.CallOptions = .{ .timeout = .none };
    try testing.expectError(error.MessageSize, duel.calls.begin("one", .{given}, none));
}

test "Calls: an id that is under way is not used again, wherever the next would be [call.id]" {
    var duel: Duel = undefined;
    try duel.init(1024, .{});
    defer duel.deinit();
    const none: Calls.CallOptions = .{ .timeout = .none };
    const first = try duel.calls.begin("one", .{}, none);
    defer first.release();
    try duel.expect(.call, 1, "one");
    // As after a billion others.
    duel.calls.next_id = layout.call_id_max;
    for ([_]u32{ layout.call_id_max, 2 }) |id| {
        const call = try duel.calls.begin("one", .{}, none);
        defer call.release();
        try duel.expect(.call, id, "one");
        try duel.say(.@"return", id, &.{});
        try duel.serve();
    }
}

test "Calls: nothing comes between the frames of a message, whatever is taken in meanwhile" {
    var duel: Duel = undefined;
    try duel.init(256, .{});
    defer duel.deinit();
    const call = try duel.calls.begin("one", .{}, .{ .timeout = .none });
    defer call.release();
    try duel.expect(.call, 1, "one");
    try duel.ask(5, "wait");
    try duel.serve();
    // One is to be answered, the other is given up, for an item that it has not asked for.
    try duel.say(.call, 5 | cancel, &.{});
    try duel.say(.@"return", 1 | more, &.{});
    const large: [1000]u8 = @splat('x');
    try testing.expectError(error.Timeout, duel.calls.write(&large, .{}, .ms(5)));
    // All of that while half of the message stood in the ring.
    try testing.expectError(error.MessageCancelled, duel.peer.read(&duel.storage, .none));
    try duel.calls.write("next", .{}, .none);
    try duel.expect(.call, 1 | cancel, "");
    try duel.expect(.throw, 5, "call.cancelled");
    const next = (try duel.peer.read(&duel.storage, .none)).?;
    try testing.expectEqualStrings("next", next.payload);
}

test "Calls: what is wrong with a notice is a report [call.refused] [call.throw]" {
    var duel: Duel = undefined;
    try duel.init(1024, .{});
    defer duel.deinit();
    const cases = [_]struct { anyerror, []const Value }{
        .{ error.CallThrown, &.{.text("fail")} },
        .{ error.CallMethod, &.{.text("init")} },
        .{ error.CallArguments, &.{ .text("one"), json("1") } },
        .{ error.CallForm, &.{json("1")} },
        .{ error.CallForm, &.{} },
        .{ error.MessageText, &.{.text("\xff")} },
    };
    for (cases) |case| {
        try duel.say(.call, 0, case[1]);
        try duel.expectReport(case[0]);
    }
    try duel.ask(0, "one");
    try duel.serve();
    try duel.expectNothing();
    try testing.expectEqual(0, duel.calls.kept_bytes);
}

test "Calls.peek: calls before a message are begun, and those after it when it is back" {
    var duel: Duel = undefined;
    try duel.init(1024, .{});
    defer duel.deinit();
    try duel.ask(1, "one");
    try duel.peer.write("plain", .{ .tag = 8 }, .none);
    try duel.ask(2, "one");
    const lent = (try duel.calls.peek(.none)).?;
    try testing.expectEqualStrings("plain", lent.payload);
    try testing.expectEqual(8, lent.tag);
    try duel.expect(.@"return", 1, "1");
    // What waits for room takes nothing in meanwhile [call.whole_first].
    const large: [2000]u8 = @splat('x');
    try testing.expectError(error.Timeout, duel.calls.write(&large, .{}, .ms(5)));
    try testing.expectEqual(null, try duel.peer.read(&duel.storage, .none));
    duel.calls.release();
    try testing.expectEqual(null, try duel.calls.peek(.none));
    try testing.expectError(error.MessageCancelled, duel.peer.read(&duel.storage, .none));
    try duel.expect(.@"return", 2, "1");

    // In parts, with a call after them; and set aside, as a copy.
    try duel.peer.write(large[0..700], .{}, .none);
    try duel.ask(3, "one");
    var size: usize = 0;
    while (size < 700) {
        const part = (try duel.calls.peek(.none)).?;
        size += part.payload.len;
        try testing.expect(duel.calls.isLent());
        duel.calls.release();
    }
    try testing.expect(!duel.calls.isLent());
    try duel.serve();
    try duel.expect(.@"return", 3, "1");
    try duel.peer.write("aside", .{}, .none);
    const soon: Calls.CallOptions = .{ .timeout = .ms(5) };
    try testing.expectError(error.Timeout, duel.calls.call(void, "one", .{}, soon));
    const kept = (try duel.calls.peek(.none)).?;
    try testing.expectEqualStrings("aside", kept.payload);
    duel.calls.release();
    try duel.ask(0, "none");
    try testing.expectError(error.CallMethod, duel.calls.peek(.none));
    try testing.expectEqual(0, duel.calls.kept_bytes);
}
