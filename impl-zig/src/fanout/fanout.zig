//! One writer and n readers, each of which gets every message [spec/fanout.md].
//!
//! Invariant: in mode `hold`, nothing is overwritten that a reader that has joined still holds. In
//! mode `lose`, nothing is used that was overwritten.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const segment_file = @import("../memory/segment.zig");
const wait = @import("../wait/endpoint.zig");
const FanoutPlan = @import("../memory/fanout.zig").FanoutPlan;
const assert = std.debug.assert;
const Channel = segment_file.Channel;
const Segment = segment_file.Segment;

/// A channel that carries each message of its writer to all of its readers.
///
/// `channel` describes the channel for a `Geometry`; its readers are the endpoints after the
/// writer. Attach the writer and each reader with `Endpoint.attach`, and then create its end:
///
/// ```zig
/// const channels = [_]millrace.Channel{
///     millrace.Fanout.channel(.{ .writer = 0, .readers = 2, .capacity = 64 * 1024 }),
/// };
/// try millrace.Segment.format(memory, .{ .endpoint_count = 3, .channels = &channels });
/// ```
pub const Fanout = struct {
    /// The writing end.
    pub const Writer = @import("writer.zig").Writer;
    /// The reading end; each reader has one.
    pub const Reader = @import("reader.zig").Reader;

    /// What happens with a slow reader.
    pub const Mode = enum {
        /// The slowest reader holds the writer back.
        hold,
        /// A slow reader is overrun, and is told how many messages it has lost.
        lose,
    };

    /// The fanout that a creator chooses.
    pub const Options = struct {
        writer: u32,
        /// How many of the endpoints after the writer are readers.
        readers: u32,
        capacity: u32,
        mode: Mode = .hold,
        label: u32 = 0,
        /// The position at which the fanout starts, a multiple of 16.
        start: u32 = 0,
    };

    /// Describes a fanout for a `Geometry`.
    ///
    /// Asserts that the capacity is a power of two from 256 to 2^30, and that there are 1 to 255
    /// readers.
    pub fn channel(options: Options) Channel {
        segment_file.assertCapacity(options.capacity);
        assert(options.readers >= 1 and options.readers <= layout.fanout_readers_max);
        assert(options.start % layout.frame_align == 0);
        const mode: u32 = if (options.mode == .lose) layout.fanout_lose else 0;
        return .{
            .kind = .fanout,
            .writer = options.writer,
            .reader = layout.endpoint_none,
            .control_size = layout.fanout_control_size +
                options.readers * layout.fanout_reader_size,
            .data_size = options.capacity,
            .label = options.label,
            .start = options.start | mode,
        };
    }

    /// A message that was read: a copy in the reader's storage.
    pub const Message = struct {
        payload: []u8,
        kind: layout.FrameKind,
        codec: layout.Codec,
        tag: u32,
        /// How many messages the writer has written before this one; null in mode `hold`.
        number: ?u64,
    };

    /// Why a message was not written.
    pub const WriteError = error{
        /// This process was forked from the one that attached this endpoint.
        PipeForked,
        /// This endpoint is closed.
        PipeClosed,
        /// This endpoint was marked failed.
        PipeFailed,
        /// This writer has ended its stream.
        PipeEnded,
        /// The message is larger than `sizeMax`.
        MessageSize,
        /// The readers did not make room by the deadline.
        Timeout,
        /// The call would have to wait on a thread that must not block.
        WaitForbidden,
    };

    /// Why no message was read.
    pub const ReadError = pipe.PipeError || error{
        /// The reader was overrun; `lost` says how many messages it has lost.
        MessageLost,
        /// A message was larger than the storage, and was dropped.
        MessageSize,
        /// A call, return or throw came, and was dropped.
        MessageKind,
        /// The call would have to wait on a thread that must not block.
        WaitForbidden,
    };
};

/// The first words of the control area. Atomic access only.
pub const Control = extern struct {
    tail: u32 align(line),
    floor: u32,
    era: u32,
    ended: u32,
    readers_want: [want_count]u32 align(line),

    const line = layout.segment_align;
    const want_count = layout.fanout_readers_want_size / @sizeOf(u32);
};

/// The record of a reader. Atomic access only.
pub const Record = extern struct {
    head: u32 align(layout.segment_align),
    writer_wants: u32 align(layout.fanout_reader_writer_wants_offset),
};

comptime {
    assert(@sizeOf(Control) == layout.fanout_control_size);
    assert(@offsetOf(Control, "tail") == layout.fanout_tail_offset);
    assert(@offsetOf(Control, "floor") == layout.fanout_floor_offset);
    assert(@offsetOf(Control, "era") == layout.fanout_era_offset);
    assert(@offsetOf(Control, "ended") == layout.fanout_ended_offset);
    assert(@offsetOf(Control, "readers_want") == layout.fanout_readers_want_offset);
    assert(@sizeOf(Record) == layout.fanout_reader_size);
    assert(@offsetOf(Record, "head") == layout.fanout_reader_head_offset);
    assert(@offsetOf(Record, "writer_wants") == layout.fanout_reader_writer_wants_offset);
}

/// Where the parts of a fanout are in memory.
pub const Place = struct {
    plan: FanoutPlan,
    control: *Control,
    records: [*]Record,
    area: [*]align(layout.segment_align) u8,

    /// Asserts that the channel passed all checks.
    pub fn init(segment: *const Segment, channel_index: u32) Place {
        const channel = segment.channels[channel_index];
        const plan = FanoutPlan.of(channel, segment.endpoint_count).?;
        const control = segment.base + channel.control_offset;
        return .{
            .plan = plan,
            .control = @ptrCast(@alignCast(control)),
            .records = @ptrCast(@alignCast(control + layout.fanout_control_size)),
            .area = @alignCast(segment.base + channel.data_offset),
        };
    }
};

/// Returns the channel that endpoint `index` writes or reads: the named one, or else the first such
/// fanout [fanout.find]. Call it before the endpoint is attached [fanout.find_none].
pub fn find(
    segment: *const Segment,
    index: u32,
    named: ?u32,
    end: End,
) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
    try segment.checkVacant(index);
    return channelFor(segment, index, named, end) orelse error.SegmentChannel;
}

pub const End = enum { writer, reader };

/// Returns the channel that `find` looks for; null if there is none.
pub fn channelFor(segment: *const Segment, index: u32, named: ?u32, end: End) ?u32 {
    for (segment.channels, 0..) |channel, channel_index| {
        if (named) |wanted| if (wanted != channel_index) continue;
        const plan = FanoutPlan.of(channel, segment.endpoint_count) orelse continue;
        const found = switch (end) {
            .writer => plan.writer == index,
            .reader => plan.recordOf(index) != null,
        };
        if (found) return @intCast(channel_index);
    }
    return null;
}

/// Keeps all stores before it before those after it, and all loads before it before those after it,
/// including plain ones. No single atomic operation does that [fanout.floor] [fanout.validate]. x86
/// keeps both orders by itself, so there the fence only restrains the compiler.
pub inline fn fence(word: *u32) void {
    switch (builtin.cpu.arch) {
        .x86_64, .x86 => asm volatile ("" ::: .{ .memory = true }),
        .aarch64, .aarch64_be => asm volatile ("dmb ish" ::: .{ .memory = true }),
        .riscv64, .riscv32 => asm volatile ("fence rw, rw" ::: .{ .memory = true }),
        // Sequentially consistent, and both a load and a store.
        else => _ = @atomicRmw(u32, word, .Or, 0, .seq_cst),
    }
}

test {
    if (!@import("builtin").single_threaded) _ = @import("../testing/fanout_thread_test.zig");
}

// Tests.
//
// Fanouts on one thread; `testing/fanout_thread_test.zig` has tests with several threads.

const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const expectEqual = std.testing.expectEqual;

/// A fanout with its writer and two readers on one thread. Must not move after it was initialized.
const Trio = struct {
    memory: [4096]u8 align(layout.segment_align),
    channels: [1]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [3]millrace.Endpoint,
    seats: [2]Fanout.Writer.Seat,
    writer: Fanout.Writer,
    readers: [2]Fanout.Reader,

    fn init(trio: *Trio, mode: Fanout.Mode, start: u32) !void {
        @memset(&trio.memory, 0xa5);
        const geometry = [_]millrace.Channel{Fanout.channel(.{
            .writer = 0,
            .readers = 2,
            .capacity = 256,
            .mode = mode,
            .start = start,
        })};
        const all: millrace.Geometry = .{ .endpoint_count = 3, .channels = &geometry };
        try millrace.Segment.format(&trio.memory, all);
        trio.segment = try .attach(&trio.memory, &trio.channels, .none);
        const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        for (&trio.endpoints, 0..) |*endpoint, index| {
            endpoint.* = try .attach(&trio.segment, @intCast(index), options);
        }
        trio.writer = .init(&trio.endpoints[0], &trio.segment, 0, &trio.seats);
        for (&trio.readers, trio.endpoints[1..]) |*reader, *endpoint| {
            reader.* = .init(endpoint, &trio.segment, 0, .tail);
        }
    }

    fn expect(trio: *Trio, index: usize, payload: []const u8) !void {
        var storage: [256]u8 = undefined;
        const message = (try trio.readers[index].tryRead(&storage)) orelse return error.NoMessage;
        try std.testing.expectEqualSlices(u8, payload, message.payload);
    }
};

test "Fanout: a reader gives back each message while the writer waits [fanout.release]" {
    var trio: Trio = undefined;
    try trio.init(.hold, 0);
    for (0..6) |_| try trio.writer.write("text", .{}, .none);
    const record = trio.readers[1].record;
    try trio.expect(1, "text");
    try expectEqual(0 | 1, @atomicLoad(u32, &record.head, .seq_cst));
    @atomicStore(u32, &record.writer_wants, 4 * 32 | layout.wants_armed, .seq_cst);
    for (2..4) |count| {
        try trio.expect(1, "text");
        const held: u32 = @intCast(32 * count);
        try expectEqual(held | 1, @atomicLoad(u32, &record.head, .seq_cst));
    }
}

test "Fanout: in mode hold every reader gets every message, and the slowest holds it back" {
    var trio: Trio = undefined;
    try trio.init(.hold, 0xffff_ff80);
    var written: u32 = 0;
    while (try trio.writer.tryWrite(std.mem.asBytes(&written), .{})) written += 1;
    try expectEqual(@as(u32, 7), written);
    for (0..7) |each| {
        const value: u32 = @intCast(each);
        try trio.expect(0, std.mem.asBytes(&value));
    }
    try expectEqual(false, try trio.writer.tryWrite("more", .{}));
    try std.testing.expectError(error.Timeout, trio.writer.write("more", .{}, .ms(300)));
    const zero: u32 = 0;
    try trio.expect(1, std.mem.asBytes(&zero));
    try trio.expect(1, &.{ 1, 0, 0, 0 });
    try expectEqual(true, try trio.writer.tryWrite("more", .{}));
    try trio.expect(0, "more");
}

test "Fanout: [fanout.late] a reader that begins after the end is told of it" {
    for ([_]Fanout.Mode{ .hold, .lose }) |mode| {
        var trio: Trio = undefined;
        try trio.init(mode, 0xffff_fff0);
        const reader = &trio.readers[0];
        reader.leave();
        try trio.writer.end();
        if (mode == .hold) reader.join() else {
            reader.* = .init(&trio.endpoints[1], &trio.segment, 0, .tail);
        }
        var storage: [256]u8 = undefined;
        try expectEqual(null, try reader.read(&storage, .ms(300)));
        try expectEqual(true, reader.ended());
    }
}

test "Fanout: [fanout.count] a reader that leaves, or is marked failed, is not waited for" {
    for ([_]bool{ true, false }) |leaves| {
        var trio: Trio = undefined;
        try trio.init(.hold, 0);
        while (try trio.writer.tryWrite("full", .{})) {}
        for (0..7) |_| try trio.expect(0, "full");
        if (leaves) {
            trio.readers[1].leave();
        } else {
            const owner = trio.segment.ownerOf(2);
            trio.segment.fail(owner, .peer_terminated, &fixture.clockwork);
        }
        for (0..7) |_| try trio.writer.write("on", .{}, .none);
        for (0..7) |_| try trio.expect(0, "on");
        var storage: [256]u8 = undefined;
        if (leaves) {
            trio.readers[1].join();
            try trio.writer.write("again", .{}, .none);
            try trio.expect(1, "again");
        } else {
            // No byte is used that the writer may be overwriting [fanout.held].
            try std.testing.expectError(error.PipeFailed, trio.readers[1].tryRead(&storage));
            try expectEqual(layout.Reason.peer_terminated, trio.readers[1].reason().?);
        }
    }
}

test "Fanout: [fanout.overrun] in mode lose a reader is told how many messages it lost" {
    var trio: Trio = undefined;
    try trio.init(.lose, 0x7fff_ff00);
    var storage: [256]u8 = undefined;
    var next: [2]u64 = .{ 0, 0 };
    var random: std.Random.DefaultPrng = .init(7);
    for (0..20_000) |number| {
        const value: u64 = number;
        var payload: [32]u8 = @splat(@truncate(value));
        const size = random.random().intRangeAtMost(usize, 8, 32);
        std.mem.writeInt(u64, payload[0..8], value, .little);
        try trio.writer.write(payload[0..size], .{}, .none);
        for (&trio.readers, &next) |*reader, *expected| {
            if (random.random().uintLessThan(u32, 6) != 0) continue;
            while (true) {
                const read = reader.tryRead(&storage) catch |err| {
                    try expectEqual(error.MessageLost, err);
                    expected.* += reader.lost();
                    continue;
                };
                const message = read orelse break;
                try expectEqual(expected.*, message.number.?);
                try expectEqual(expected.*, std.mem.readInt(u64, message.payload[0..8], .little));
                expected.* += 1;
            }
            try expectEqual(value + 1, expected.*);
        }
    }
    try trio.writer.end();
    for (&trio.readers) |*reader| {
        while (!reader.ended()) _ = reader.tryRead(&storage) catch |err|
            try expectEqual(error.MessageLost, err);
    }
}
