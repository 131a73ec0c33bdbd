//! Fuzz target: any bytes in a ring. A reader finds in them what the tables say, whether it copies
//! or borrows, and whether everything comes at once or frame by frame.

const std = @import("std");
const fixture = @import("fixture.zig");
const fuzz = @import("fuzz_fixture.zig");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Found = fuzz.Found;
const Model = fuzz.Model;

const capacity_max = 1024;
const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };

test "fuzz: a reader finds in a ring what the tables say" {
    try fuzz.fuzz(Target, 20_000);
    try Target.reached.expect(&.{
        .ring_cursor,  .frame_kind,        .frame_flags, .frame_reserved,    .frame_size,
        .frame_pad,    .frame_sequence,    .frame_total, .message_cancelled, .message_size,
        .message_kind, .message_truncated, .peer_closed, .peer_failed,       .pipe_closed,
        .pipe_failed,  .frame_extension,
    });
    try testing.expect(@import("builtin").fuzz or Target.message_count > 10_000);
}

/// The fields before the bytes of the area in an input.
const Plan = struct {
    capacity: u32,
    calls: bool,
    limit: usize,
    start: u32,
    tail: u32,
    /// The state words of the reader and of the writer.
    own: u32,
    peer: u32,

    const size = 20;

    fn parse(source: *fuzz.Source) Plan {
        const first = source.int(u8);
        return .{
            .capacity = @as(u32, 256) << @intCast(first % 3),
            .calls = source.int(u8) & 1 != 0,
            .limit = source.int(u16) % 2048,
            .start = source.int(u32) & ~@as(u32, 15),
            .tail = source.int(u32),
            .own = source.int(u32),
            .peer = source.int(u32),
        };
    }

    fn write(plan: Plan, target: *[size]u8) void {
        target[0] = @intCast(std.math.log2_int(u32, plan.capacity) - 8);
        target[1] = @intFromBool(plan.calls);
        std.mem.writeInt(u16, target[2..4], @intCast(@min(plan.limit, 2047)), .little);
        fuzz.putWord(target, 4, plan.start);
        fuzz.putWord(target, 8, plan.tail);
        fuzz.putWord(target, 12, plan.own);
        fuzz.putWord(target, 16, plan.peer);
    }
};

const Target = struct {
    pub const name = "pipe";
    pub const quiet = false;
    pub const size_max = Plan.size + capacity_max;
    var reached: fuzz.Reached = .{};
    var message_count: u64 = 0;

    pub fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (fuzz.judge(case.memory) != null) return null;
        const channel_count = fuzz.wordAt(case.memory, layout.segment_channel_count_offset);
        for (0..channel_count) |number| {
            const index: u32 = @intCast(number);
            const channel = fuzz.channelAt(case.memory, index);
            if (channel.kind != layout.channel_kind_ring) continue;
            if (case.role != .writer and channel.reader != case.endpoint) continue;
            if (case.channel) |named| if (named != index) continue;
            if (channel.areas[1].size > capacity_max) continue;
            return writeSeed(case, channel, target);
        }
        return null;
    }

    fn writeSeed(case: fuzz.Case, channel: fuzz.Channel, target: []u8) usize {
        const area = channel.areas[1];
        const control = case.memory[@intCast(channel.areas[0].offset)..];
        const plan: Plan = .{
            .capacity = @intCast(area.size),
            .calls = case.calls,
            .limit = case.limit,
            .start = channel.start,
            .tail = fuzz.wordAt(control, layout.ring_tail_offset),
            .own = 1,
            .peer = fuzz.wordAt(case.memory, 128 + 128 * channel.writer + 4),
        };
        plan.write(target[0..Plan.size]);
        const bytes = case.memory[@intCast(area.offset)..][0..@intCast(area.size)];
        @memcpy(target[Plan.size..][0..bytes.len], bytes);
        return Plan.size + bytes.len;
    }

    pub fn check(input: []const u8) !void {
        var source: fuzz.Source = .{ .rest = input };
        const plan: Plan = .parse(&source);
        var area: [capacity_max]u8 = @splat(0);
        const given = source.rest[0..@min(source.rest.len, plan.capacity)];
        @memcpy(area[0..given.len], given);
        const bytes = area[0..plan.capacity];

        var found: Model = try checkRead(plan, bytes);
        try checkSteps(plan, bytes, &found);
        try checkPeek(plan, bytes);
    }

    fn modelOf(plan: Plan, area: []const u8) Model {
        return .{
            .area = area,
            .head = plan.start,
            .tail = plan.tail,
            .limit = plan.limit,
            .calls = plan.calls,
        };
    }

    fn checkRead(plan: Plan, area: []const u8) !Model {
        var world: World = undefined;
        try world.init(plan, area, plan.tail);
        world.states(plan);
        var model = modelOf(plan, area);
        for (0..plan.capacity / 16 + 2) |_| {
            const expected = model.next();
            try world.expect(expected);
            switch (expected) {
                .message => message_count += 1,
                .report => |why| reached.add(why),
                .nothing => break,
                .ended => return world.finish(expected, model),
                .fault => |why| {
                    reached.add(why);
                    return world.finish(expected, model);
                },
            }
        } else return error.Endless;
        return world.finish(.nothing, model);
    }

    /// Frames that are published one by one lead to the same result as all at once.
    fn checkSteps(plan: Plan, area: []const u8, walked: *const Model) !void {
        if (walked.fault == .ring_cursor) return;
        var world: World = undefined;
        try world.init(plan, area, plan.start);
        var model = modelOf(plan, area);
        var previous: u32 = plan.start;
        for (walked.begins[0..walked.begin_count]) |begin| {
            model.tail = begin;
            world.publish(begin);
            try world.drain(&model);
            try testing.expect(begin -% previous <= plan.capacity);
            previous = begin;
        }
        model.tail = plan.tail;
        world.publish(plan.tail);
        try world.drain(&model);
    }

    /// Borrowed frames belong to the same messages; no message is too large.
    fn checkPeek(plan: Plan, area: []const u8) !void {
        var world: World = undefined;
        try world.init(plan, area, plan.tail);
        var model = modelOf(plan, area);
        model.limit = std.math.maxInt(u64);
        while (true) {
            const expected = model.next();
            switch (expected) {
                .message => |message| try world.expectLent(message),
                else => {},
            }
            // Frames of a message that is cancelled later are lent before that is known.
            if (expected != .message) {
                const found = try world.peekUntilReport();
                switch (expected) {
                    .message => unreachable,
                    .nothing => try testing.expectEqual(Said.nothing, found),
                    .ended => try testing.expectEqual(Said.ended, found),
                    .report, .fault => |why| try testing.expectEqual(Said{ .code = why }, found),
                }
            }
            switch (expected) {
                .message, .report => {},
                else => return,
            }
        }
    }
};

const Said = union(enum) { message, nothing, ended, code: layout.Reason };

/// A ring with the bytes of an input, and a reader of it.
const World = struct {
    memory: [1024 + capacity_max]u8 align(layout.segment_align),
    channels: [1]millrace.Channel,
    segment: millrace.Segment,
    endpoint: millrace.Endpoint,
    reader: millrace.Reader,
    limit: usize,
    storage: [2048]u8,

    fn init(world: *World, plan: Plan, area: []const u8, tail: u32) !void {
        const geometry = fixture.pipeGeometry(plan.capacity, plan.start);
        try millrace.Segment.format(&world.memory, .{
            .endpoint_count = 2,
            .channels = &geometry,
        });
        world.segment = try .attach(&world.memory, &world.channels, .none);
        world.endpoint = try .attach(&world.segment, 1, options);
        world.reader = try .init(&world.endpoint, &world.segment, 0);
        world.reader.calls = plan.calls;
        world.limit = plan.limit;
        world.segment.record(0).state = 1;
        @memcpy(world.memory[world.channels[0].data_offset..][0..area.len], area);
        world.publish(tail);
    }

    fn publish(world: *World, tail: u32) void {
        @atomicStore(u32, &world.reader.ring.control.tail, tail, .seq_cst);
    }

    fn states(world: *World, plan: Plan) void {
        world.segment.record(0).state = plan.peer;
        world.segment.record(1).state = plan.own;
    }

    fn read(world: *World, into: *?millrace.Message) !Said {
        const ring = &world.reader.ring;
        into.* = null;
        const outcome = world.reader.tryRead(world.storage[0..world.limit]);
        // Every accepted position lies within the ring, and nothing after it was read or given
        // back.
        try testing.expect(ring.tail -% ring.head <= ring.capacity);
        try testing.expect(ring.head -% ring.stored <= ring.capacity);
        try testing.expectEqual(ring.stored, ring.control.head);
        into.* = outcome catch |err| return .{
            .code = millrace.reasonOf(err) orelse world.reader.reason().?,
        };
        if (into.* == null) return if (world.reader.ended()) .ended else .nothing;
        return .message;
    }

    fn expect(world: *World, expected: Found) !void {
        var message: ?millrace.Message = null;
        const said = try world.read(&message);
        switch (expected) {
            .message => |wanted| {
                try testing.expectEqual(Said.message, said);
                try testing.expectEqualSlices(u8, wanted.payload, message.?.payload);
                try testing.expectEqual(wanted.kind, @backingInt(message.?.kind));
                try testing.expectEqual(wanted.codec, @backingInt(message.?.codec));
                try testing.expectEqual(wanted.tag, message.?.tag);
            },
            .report, .fault => |why| try testing.expectEqual(Said{ .code = why }, said),
            .ended => try testing.expectEqual(Said.ended, said),
            .nothing => switch (said) {
                .nothing => {},
                .code => |code| {
                    Target.reached.add(code);
                    switch (code) {
                        .pipe_closed, .pipe_failed, .peer_closed, .peer_failed => {},
                        else => return error.WrongCode,
                    }
                },
                else => return error.Unexpected,
            },
        }
    }

    fn drain(world: *World, model: *Model) !void {
        while (true) {
            const expected = model.next();
            try world.expect(expected);
            switch (expected) {
                .message, .report => {},
                else => return,
            }
        }
    }

    /// A further call reports the same, and the writer was marked failed for a fault.
    fn finish(world: *World, last: Found, model: Model) !Model {
        var messages: [2]?millrace.Message = undefined;
        const said = try world.read(&messages[0]);
        try testing.expectEqual(said, try world.read(&messages[1]));
        if (last == .fault) {
            const word = world.segment.record(0).state;
            if (word == @backingInt(last.fault) << 8 | 3) return model;
            // The state was final already, or has a value that no endpoint may store.
            try testing.expect(word & 0xff >= 2);
        }
        if (last != .nothing) return model;
        try testing.expectEqual(Said{ .code = stateCode(world) orelse {
            try testing.expectEqual(Said.nothing, said);
            return model;
        } }, said);
        return model;
    }

    /// Returns what is reported after the last message; the own state comes first
    /// [pipe.first_answer].
    fn stateCode(world: *const World) ?layout.Reason {
        // [segment.own_state]
        const own = world.segment.record(1).state;
        if (own != 1) return if (own & 0xff == 2) .pipe_closed else .pipe_failed;
        return switch (world.segment.record(0).state & 0xff) {
            0, 1 => null,
            2 => .peer_closed,
            else => .peer_failed,
        };
    }

    /// Borrows frames until the message is complete. It must be `wanted`.
    fn expectLent(world: *World, wanted: fuzz.Message) !void {
        var size: usize = 0;
        while (true) {
            const lent = (try world.reader.peek(.none)) orelse return error.NotLent;
            defer world.reader.release();
            if (lent.first) size = 0;
            const part = wanted.payload[size..][0..lent.payload.len];
            try testing.expectEqualSlices(u8, part, lent.payload);
            try testing.expectEqual(wanted.tag, lent.tag);
            try testing.expectEqual(wanted.kind, @backingInt(lent.kind));
            size += lent.payload.len;
            if (lent.last) break;
        }
        try testing.expectEqual(wanted.payload.len, size);
    }

    fn peekUntilReport(world: *World) !Said {
        for (0..capacity_max / 16 + 2) |_| {
            const lent = world.reader.peek(.none) catch |err|
                return .{ .code = millrace.reasonOf(err) orelse world.reader.reason().? };
            if (lent == null) return if (world.reader.ended()) .ended else .nothing;
            if (lent.?.last) return error.Unexpected;
            world.reader.release();
        }
        return error.Endless;
    }
};
