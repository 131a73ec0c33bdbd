//! How a spin uses its record [wait.spin_record], and how many looks a call makes that must not
//! block [wait.no_block]. The machine's clock stands still, as that of a browser does for up to a
//! millisecond.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const mailbox = @import("../mailbox/side.zig");
const wait_spin = @import("spin.zig");
const Deadline = @import("mechanism.zig").Deadline;
const layout = millrace.layout;
const testing = std.testing;

/// The machine. Nobody sleeps on it, and waiting for its clock would never end.
const Still = struct {
    var readings: usize = 0;

    const host: millrace.Host = blk: {
        var still = fixture.clockwork;
        still.now = now;
        still.sleep = sleep;
        still.pause = pause;
        break :blk still;
    };

    fn now() u64 {
        readings += 1;
        if (readings > 1_000) @panic("a call waits for the clock to move");
        return 1;
    }

    fn sleep(_: *const u32, _: u32, _: u64) bool {
        @panic("a call sleeps that must not block");
    }

    fn pause(_: u64) void {
        @panic("a call pauses that must not block");
    }
};

/// Counts the looks of a call. Either every look finds something, or none does.
const Counted = struct {
    finds: bool,
    looks: *u32,

    pub fn glance(counted: Counted, comptime _: std.lang.AtomicOrder) bool {
        counted.looks.* += 1;
        return counted.finds;
    }

    pub fn look(counted: Counted, comptime order: std.lang.AtomicOrder) bool {
        return counted.glance(order);
    }

    pub fn arm(_: Counted, _: bool) bool {
        @panic("a call arms that must not block");
    }

    pub fn disarm(_: Counted) void {}

    pub fn slice(_: Counted, _: u32) u64 {
        return 0;
    }
};

fn endpointOf(pair: *fixture.Pair) !*millrace.Endpoint {
    try pair.init(256, 0);
    const endpoint = &pair.endpoints[1];
    endpoint.host = &Still.host;
    endpoint.blocking = false;
    endpoint.setSpin(1_000_000);
    return endpoint;
}

test "a wait of a call that must not block looks a few times, and leaves the clock alone" {
    var pair: fixture.Pair = undefined;
    const endpoint = try endpointOf(&pair);
    for ([_]millrace.Timeout{ .ms(50), .forever }) |timeout| {
        var looks: u32 = 0;
        const condition: Counted = .{ .finds = false, .looks = &looks };
        var deadline: Deadline = .init(timeout);
        Still.readings = 0;
        try testing.expectEqual(.forbidden, endpoint.wait(&condition, &deadline));
        try testing.expect(looks > 1 and looks <= layout.wait_no_block_looks);
        try testing.expectEqual(0, Still.readings);
    }
    endpoint.setSpin(0);
    var looks: u32 = 0;
    const condition: Counted = .{ .finds = true, .looks = &looks };
    var deadline: Deadline = .init(.forever);
    try testing.expectEqual(.forbidden, endpoint.wait(&condition, &deadline));
    try testing.expectEqual(0, looks);
}

test "the waits of one call that must not block share its looks, whatever they find" {
    var pair: fixture.Pair = undefined;
    const endpoint = try endpointOf(&pair);
    var looks: u32 = 0;
    const condition: Counted = .{ .finds = true, .looks = &looks };
    var deadline: Deadline = .init(.forever);
    var waits: u32 = 0;
    while (endpoint.wait(&condition, &deadline) == .found) {
        waits += 1;
        // Before each wait, the call itself looks.
        try testing.expect(waits + looks <= layout.wait_no_block_looks);
    }
    try testing.expect(waits > 1);
    // The next call starts from 0.
    deadline = .init(.forever);
    try testing.expectEqual(.found, endpoint.wait(&condition, &deadline));
}

test "a side of a mailbox that must not block takes no more turns in one call than looks" {
    var memory: [64]u8 align(4) = @splat(0);
    var reader: millrace.MailboxReader = try .init(&memory, .{
        .host = &Still.host,
        .spin_us = 1_000_000,
        .blocking = false,
    });
    const side = &reader.side;
    Still.readings = 0;
    var deadline: Deadline = .init(.forever);
    try testing.expectEqual(.forbidden, try side.awaitTurn(&deadline));
    side.header.signal = mailbox.may_read;
    deadline = .init(.forever);
    var turns: u32 = 0;
    while (try side.awaitTurn(&deadline) == .found) {
        turns += 1;
        try testing.expect(turns <= layout.wait_no_block_looks);
    }
    try testing.expect(turns > 1);
    try testing.expectEqual(0, Still.readings);
    // A call that only tries still finds what is there.
    deadline = .init(.none);
    try testing.expectEqual(.found, try side.awaitTurn(&deadline));
}

/// A machine whose clock moves on by 10 µs whenever it is read.
const Ticking = struct {
    var time: u64 = 0;

    const host: millrace.Host = blk: {
        var ticking = fixture.clockwork;
        ticking.now = now;
        break :blk ticking;
    };

    fn now() u64 {
        time += 10_000;
        return time;
    }
};

/// Something that is there from a certain time of that machine on.
const Due = struct {
    at: u64,

    pub fn glance(due: Due, comptime _: std.lang.AtomicOrder) bool {
        return Ticking.time >= due.at;
    }

    pub fn look(due: Due, comptime order: std.lang.AtomicOrder) bool {
        return due.glance(order);
    }
};

test "what a spin finds later than in one budget leaves two misses [wait.spin_record]" {
    const manner: wait_spin.Manner = .{
        .host = &Ticking.host,
        .spin_ns = 50_000,
        .blocking = true,
    };
    var record: wait_spin.SpinRecord = .{};
    var deadline: Deadline = .init(.forever);
    const never: Due = .{ .at = std.math.maxInt(u64) };
    for (0..8) |_| try testing.expect(!record.spin(manner, &never, &deadline));
    // It has stopped spinning, and tries again after 127 waits.
    for (0..127) |_| try testing.expect(!record.spin(manner, &Due{ .at = 0 }, &deadline));
    try testing.expect(record.spin(manner, &Due{ .at = Ticking.time + 100_000 }, &deadline));
    try testing.expectEqual(6, record.misses);
    for (0..2) |_| try testing.expect(!record.spin(manner, &never, &deadline));
    try testing.expect(!record.spin(manner, &Due{ .at = 0 }, &deadline));
    // After a single miss, a spin that finds something late leaves one miss.
    record = .{ .misses = 1 };
    try testing.expect(record.spin(manner, &Due{ .at = Ticking.time + 100_000 }, &deadline));
    try testing.expectEqual(1, record.misses);
    try testing.expect(record.spin(manner, &Due{ .at = Ticking.time + 20_000 }, &deadline));
    try testing.expectEqual(0, record.misses);
}

test "what is there at the first look no spin has found [wait.spin_record]" {
    const manner: wait_spin.Manner = .{
        .host = &Ticking.host,
        .spin_ns = 50_000,
        .blocking = true,
    };
    var deadline: Deadline = .init(.forever);
    var record: wait_spin.SpinRecord = .{ .misses = 7 };
    for (0..3) |_| try testing.expect(record.spin(manner, &Due{ .at = 0 }, &deadline));
    try testing.expectEqual(7, record.misses);
    // It has stopped spinning, and the try that is due stays due.
    record = .{ .misses = 8, .skips = 127 };
    try testing.expect(record.spin(manner, &Due{ .at = 0 }, &deadline));
    try testing.expectEqual(127, record.skips);
}
