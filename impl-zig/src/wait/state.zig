//! The part of an endpoint that its peers see: its bell, its state, and the wake mechanisms that it
//! can ring [spec/segment.md].
//!
//! Invariant: a state changes only by compare-exchange, as the chapter's table allows.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const Host = @import("mechanism.zig").Host;
const assert = std.debug.assert;

/// Control words: atomic access only [segment.atomic].
pub const Record = extern struct {
    bell: u32,
    state: u32,
    wakes: u32,
    agent: u32,
    generation: u32,
    features: u32,
    rung: [rung_count]u32,
    reserved: [72]u8,

    const rung_count = layout.endpoint_rung_size / @sizeOf(u32);
};

comptime {
    assert(@sizeOf(Record) == layout.endpoint_record_size);
    assert(@offsetOf(Record, "bell") == layout.endpoint_bell_offset);
    assert(@offsetOf(Record, "state") == layout.endpoint_state_offset);
    assert(@offsetOf(Record, "wakes") == layout.endpoint_wakes_offset);
    assert(@offsetOf(Record, "agent") == layout.endpoint_agent_offset);
    assert(@offsetOf(Record, "generation") == layout.endpoint_generation_offset);
    assert(@offsetOf(Record, "features") == layout.endpoint_features_offset);
    assert(@offsetOf(Record, "rung") == layout.endpoint_rung_offset);
    assert(@offsetOf(Record, "reserved") == layout.endpoint_reserved_offset);
}

/// The state in the low byte of a loaded `state` word [segment.state_low]. The reason of `failed`
/// is whatever number the upper bytes hold.
pub const State = union(enum) {
    vacant,
    attached,
    closed,
    failed: layout.Reason,
    /// [segment.state_invalid]
    invalid,

    pub fn load(record: *const Record) State {
        return .of(@atomicLoad(u32, &record.state, .seq_cst));
    }

    /// Whether the endpoint is attached. Nearly every call needs to know nothing else.
    pub inline fn isAttached(record: *const Record) bool {
        const word = @atomicLoad(u32, &record.state, .seq_cst);
        return word & layout.state_mask == layout.endpoint_state_attached;
    }

    pub fn of(word: u32) State {
        return switch (word & layout.state_mask) {
            layout.endpoint_state_vacant => .vacant,
            layout.endpoint_state_attached => .attached,
            layout.endpoint_state_closed => .closed,
            layout.endpoint_state_failed => .{
                .failed = @fromBackingInt(word >> layout.reason_shift),
            },
            else => .invalid,
        };
    }

    /// Returns the reason in the word of a failed endpoint; null if it holds none
    /// [pipe.failed_reason].
    pub fn reason(state: State) ?layout.Reason {
        const why = switch (state) {
            .failed => |why| why,
            .vacant, .attached, .closed, .invalid => return null,
        };
        return if (@backingInt(why) == 0) null else why;
    }

    pub fn final(state: State) bool {
        return switch (state) {
            .vacant, .attached => false,
            .closed, .failed, .invalid => true,
        };
    }
};

/// A final state to change to.
pub const Final = union(enum) {
    closed,
    failed: layout.Reason,
};

/// Changes a state as the table of allowed changes says. Leaves the state alone if the table has no
/// change from it [segment.state_change], or if it belongs to another owner: `owner` is given, and
/// the upper bits of the word differ from it [segment.state_owner]. In either case, the caller
/// rings afterwards.
pub fn changeState(record: *Record, to: Final, owner: ?u24) void {
    // A correct endpoint's state changes at most twice before it is final. If a peer changes it
    // more often, there is no fourth try, because no retry can repair that.
    for (0..layout.state_tries) |_| {
        const from = @atomicLoad(u32, &record.state, .seq_cst);
        switch (State.of(from)) {
            .vacant => if (to != .failed) return,
            .attached => {},
            .closed, .failed, .invalid => return,
        }
        const bits = upperBits(from);
        if (owner) |own| if (bits != own) return;
        // [segment.state_reason]
        const word = switch (to) {
            .closed => wordOf(layout.endpoint_state_closed, bits),
            .failed => |why| wordOf(layout.endpoint_state_failed, @truncate(@backingInt(why))),
        };
        if (@cmpxchgStrong(u32, &record.state, from, word, .seq_cst, .seq_cst) == null) return;
    }
}

/// Changes the state to closed if the word is still the one that its owner stored when it attached
/// [pipe.close]. The owner rings afterwards in either case.
pub fn closeOwn(record: *Record, attached: u32) void {
    const closed = wordOf(layout.endpoint_state_closed, upperBits(attached));
    _ = @cmpxchgStrong(u32, &record.state, attached, closed, .seq_cst, .seq_cst);
}

/// Returns the bits above a state: the reason of a failed one, else the low bits of a generation.
pub fn upperBits(word: u32) u24 {
    return @truncate(word >> layout.reason_shift);
}

pub fn wordOf(state: u8, bits: u24) u32 {
    return @as(u32, bits) << layout.reason_shift | state;
}

/// Rings an endpoint, and records on whose account: that of the endpoint that wakes it, or that of
/// the endpoint whose state was to change [wait.rung].
///
/// [wait.ring] The count is increased before the notify, so that a sleeper that is not asleep yet
/// sees it and stays awake. The bit is set before the count, so that a sleeper that sees the count
/// also sees the bit.
pub noinline fn ring(record: *Record, whose: u32, host: *const Host) void {
    assert(whose < layout.endpoint_count_max);
    const bit = @as(u32, 1) << @intCast(whose % @bitSizeOf(u32));
    _ = @atomicRmw(u32, &record.rung[whose / @bitSizeOf(u32)], .Or, bit, .seq_cst);
    _ = @atomicRmw(u32, &record.bell, .Add, 1, .seq_cst);
    host.notify(&record.bell);
}

// Tests.
//
// States: which of them change, who may change them on whose account, and their upper bits.

const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const Control = @import("../ring/side.zig").Control;
const testing = std.testing;
const Endpoint = millrace.Endpoint;
const Pair = fixture.Pair;
const Segment = millrace.Segment;

const lost = @backingInt(millrace.Reason.peer_lost) << 8 | layout.endpoint_state_failed;
const options: Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };

/// A pipe to which nobody has attached.
const Blank = struct {
    memory: [2048]u8 align(128),
    storage: [1]millrace.Channel,
    segment: Segment,

    fn init(blank: *Blank) !void {
        const channels = fixture.pipeGeometry(256, 0);
        try Segment.format(&blank.memory, .{ .endpoint_count = 2, .channels = &channels });
        blank.segment = try .attach(&blank.memory, &blank.storage, .none);
    }

    fn expectRung(blank: *Blank, count: u32) !void {
        for (0..2) |index| {
            try testing.expectEqual(count, blank.segment.record(@intCast(index)).bell);
        }
    }
};

test "states change along the table only, and the first final state stays" {
    var blank: Blank = undefined;
    try blank.init();
    const segment = &blank.segment;
    const record = segment.record(0);
    const Change = struct { from: u32, close: u32, fail: u32 };
    for ([_]Change{
        .{ .from = 0, .close = 0, .fail = lost },
        .{ .from = 1, .close = 2, .fail = lost },
        .{ .from = 2, .close = 2, .fail = 2 },
        .{ .from = 0x1003, .close = 0x1003, .fail = 0x1003 },
        .{ .from = 4, .close = 4, .fail = 4 },
        // [segment.state_reason] The upper bits stay, except in a state that becomes failed.
        .{ .from = 0xfedc_ba01, .close = 0xfedc_ba02, .fail = lost },
        .{ .from = 0x0100, .close = 0x0100, .fail = lost },
    }, 1..) |change, number| {
        record.state = change.from;
        changeState(record, .closed, null);
        try testing.expectEqual(change.close, record.state);
        record.state = change.from;
        changeState(record, .{ .failed = .peer_lost }, null);
        try testing.expectEqual(change.fail, record.state);
        // [segment.state_ring] Rings its own bell and that of its peer, whether the state changed
        // or not.
        segment.fail(segment.ownerOf(0), .peer_lost, &fixture.clockwork);
        try testing.expectEqual(change.fail, record.state);
        try blank.expectRung(@intCast(number));
    }
}

test "a supervisor changes the state of the owner that it watches, and no other's" {
    var blank: Blank = undefined;
    try blank.init();
    const segment = &blank.segment;
    const record = segment.record(0);
    record.generation = 0x0500_0007;
    const owner = segment.ownerOf(0);
    try testing.expectEqual(7, owner.generation);
    const Change = struct { from: u32, close: u32, fail: u32 };
    for ([_]Change{
        .{ .from = 0x0701, .close = 0x0702, .fail = lost },
        .{ .from = 0x0700, .close = 0x0700, .fail = lost },
        // The owner before, the next owner, and one whose low byte is the same
        // [segment.state_owner].
        .{ .from = 0x0601, .close = 0x0601, .fail = 0x0601 },
        .{ .from = 0x0801, .close = 0x0801, .fail = 0x0801 },
        .{ .from = 0x0800, .close = 0x0800, .fail = 0x0800 },
        .{ .from = 0x8000_0701, .close = 0x8000_0701, .fail = 0x8000_0701 },
        .{ .from = 0x0001, .close = 0x0001, .fail = 0x0001 },
    }, 1..) |change, number| {
        record.state = change.from;
        segment.closeFor(owner, &fixture.clockwork);
        try testing.expectEqual(change.close, record.state);
        record.state = change.from;
        segment.fail(owner, .peer_lost, &fixture.clockwork);
        try testing.expectEqual(change.fail, record.state);
        try blank.expectRung(@intCast(2 * number));
    }
}

test "an endpoint attaches to a word with its upper bits, and closes from it [segment.attach]" {
    var blank: Blank = undefined;
    try blank.init();
    const record = blank.segment.record(0);
    record.state = 0x1234_5600;
    record.wakes = 0xffff_ffff;
    record.features = 0xffff_ffff;
    var endpoint: Endpoint = try .attach(&blank.segment, 0, options);
    try testing.expectEqual(0x1234_5601, record.state);
    try testing.expectEqual(layout.wake_mechanism_futex, record.wakes);
    // [segment.features] It supports no feature beyond this version.
    try testing.expectEqual(0, record.features);
    try testing.expectEqual(.attached, endpoint.state());
    endpoint.close();
    try testing.expectEqual(0x1234_5602, record.state);
}

test "an endpoint that closes changes no word but the one that it stored [pipe.close]" {
    for ([_]u32{ lost, 0x0001, 0x0701, 0x0600, 0x0602, 0x0605 }) |word| {
        var blank: Blank = undefined;
        try blank.init();
        const record = blank.segment.record(0);
        record.state = 0x0600;
        var endpoint: Endpoint = try .attach(&blank.segment, 0, options);
        record.state = word;
        endpoint.close();
        try testing.expectEqual(word, record.state);
        try testing.expectEqual(.closed, endpoint.state());
        // Once when it attached, and once now.
        try blank.expectRung(2);
    }
}

test "an own state that is not the own word ends all calls [segment.own_state]" {
    const Row = struct { word: u32, code: anyerror, reason: ?millrace.Reason = null };
    for ([_]Row{
        .{ .word = 0, .code = error.PipeFailed },
        .{ .word = 0x0101, .code = error.PipeFailed },
        .{ .word = 0x8000_0001, .code = error.PipeFailed },
        .{ .word = 0x0100, .code = error.PipeFailed },
        .{ .word = 0x4204, .code = error.PipeFailed },
        .{ .word = 0x0002, .code = error.PipeClosed },
        .{ .word = 0xffff_ff02, .code = error.PipeClosed },
        .{ .word = 0x0003, .code = error.PipeFailed },
        .{ .word = lost, .code = error.PipeFailed, .reason = .peer_lost },
    }) |row| for (0..2) |side| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        pair.segment.record(@intCast(side)).state = row.word;
        var bytes: [16]u8 = undefined;
        const answer = if (side == 0)
            pair.writer.write("a", .{}, .ms(10_000))
        else if (pair.reader.read(&bytes, .ms(10_000))) |_| {} else |err| err;
        try testing.expectError(row.code, answer);
        if (row.code != error.PipeFailed) continue;
        try testing.expectEqual(row.reason, pair.endpoints[side].behind);
    };
}

test "whoever attaches to what was vacated goes on where the words stand [ring.start_again]" {
    for ([_]u32{ 0, 1, 0xff_ffff, 0x100_0000 }) |generation| {
        var memory: [4096]u8 align(128) = @splat(0);
        const rings: millrace.Rings = .{ .capacities = .{ 256, 256 }, .starts = .{ 32, 64 } };
        try millrace.Port.format(&memory, rings);
        var storage: [2]millrace.Channel = undefined;
        const segment: Segment = try .attach(&memory, &storage, .none);
        const record = segment.record(1);
        record.generation = generation;
        record.state = generation << layout.reason_shift;
        // The low bits of a position are the peer's mistake.
        for (&storage, [_]u32{ 0x1007, 0x2000 }) |channel, position| {
            const control: *Control = @ptrCast(@alignCast(&memory[channel.control_offset]));
            control.head = position;
            control.tail = position;
        }
        var port: millrace.Port = undefined;
        try port.init(&segment, 1, .{ .endpoint = .{ .host = &fixture.clockwork } });
        const expected: [2]u32 = if (generation == 0) .{ 32, 64 } else .{ 0x1000, 0x2000 };
        const reader = &port.reader.ring;
        for ([_]u32{ reader.head, reader.stored, reader.tail }) |cursor| {
            try testing.expectEqual(expected[0], cursor);
        }
        const writer = &port.writer.ring;
        for ([_]u32{ writer.tail, writer.published, writer.head }) |cursor| {
            try testing.expectEqual(expected[1], cursor);
        }
    }
}
