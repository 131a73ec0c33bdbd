//! Fuzz target: any order of calls on a writer and its reader. Either of them may die, and its
//! endpoint then passes to another owner. Every message comes out as it went in, or is reported
//! once, except those that a dead reader leaves behind. A strict reader of the bytes finds the same
//! messages, and no fault.

const std = @import("std");
const fixture = @import("fixture.zig");
const fuzz = @import("fuzz_fixture.zig");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Envelope = millrace.Envelope;

const payload_max = 2500;
const step_max = 160;

test "fuzz: what a writer writes is what its reader and a strict reader find" {
    Target.counts = .{};
    try fuzz.fuzz(Target, 10_000);
    const counts = Target.counts;
    if (@import("builtin").fuzz) return;
    try testing.expect(counts.messages > 10_000);
    try testing.expect(counts.lost > 100);
    try testing.expect(counts.borrowed > 1_000);
    for (counts.replaced) |count| try testing.expect(count > 100);
}

/// What the reader must find: a message, identified by its number, or one that was given up.
const Entry = struct {
    number: u32,
    size: usize = 0,
    envelope: Envelope = .{},
    given_up: bool = false,

    fn expect(entry: Entry, payload: []const u8, kind: u32, codec: u32, tag: u32) !void {
        var buffer: [payload_max]u8 = undefined;
        const expected = buffer[0..entry.size];
        fixture.pattern(expected, entry.number);
        try testing.expect(!entry.given_up);
        try testing.expectEqualSlices(u8, expected, payload);
        try testing.expectEqual(@backingInt(entry.envelope.kind), kind);
        try testing.expectEqual(@backingInt(entry.envelope.codec), codec);
        try testing.expectEqual(entry.envelope.tag, tag);
    }
};

const Target = struct {
    pub const name = "write";
    pub const quiet = false;
    pub const size_max = 1200;
    var counts: struct {
        messages: u64 = 0,
        lost: u64 = 0,
        borrowed: u64 = 0,
        /// Writers, and readers.
        replaced: [2]u64 = .{ 0, 0 },
    } = .{};

    /// Any bytes will do, also those that a writer has left in its ring.
    pub fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (case.role != .writer or case.memory.len < 1280) return null;
        var prng: std.Random.DefaultPrng = .init(std.hash.Wyhash.hash(0, case.id));
        prng.random().bytes(target[0..600]);
        return 600;
    }

    pub fn check(input: []const u8) !void {
        var source: fuzz.Source = .{ .rest = input };
        const capacity = @as(u32, 256) << @intCast(source.int(u8) % 3);
        var world: World = undefined;
        try world.init(capacity, source.int(u32) & ~@as(u32, 15));
        for (0..step_max) |_| {
            if (source.rest.len == 0) break;
            try world.step(&source);
            try world.checkStrictly();
        }
        if (!world.pair.writer.ended) try world.pair.writer.end();
        try world.checkStrictly();
        for (0..world.entries.len + 4) |_| {
            if (!try world.take()) break;
        }
        try testing.expect(world.pair.reader.ended());
        try testing.expect(world.model.ended);
        try testing.expectEqual(world.entry_count, world.taken);
        try testing.expectEqual(world.entry_count, world.judged);
        counts.messages += world.entry_count;
    }
};

const World = struct {
    pair: fixture.Pair,
    model: fuzz.Model,
    entries: [2 + 6 * step_max]Entry,
    entry_count: usize,
    /// How many of them the reader and the strict reader have found.
    taken: usize,
    judged: usize,
    storage: [payload_max]u8,
    /// The bytes of a message that is borrowed frame by frame.
    borrowed: usize,

    fn init(world: *World, capacity: u32, start: u32) !void {
        try world.pair.init(capacity, start);
        world.pair.reader.calls = true;
        const ring = &world.pair.reader.ring;
        world.model = .{
            .area = ring.area[0..capacity],
            .head = start,
            .tail = start,
            .limit = payload_max,
            .calls = true,
        };
        world.entry_count = 0;
        world.taken = 0;
        world.judged = 0;
        world.borrowed = 0;
    }

    fn step(world: *World, source: *fuzz.Source) !void {
        const writer = &world.pair.writer;
        const action = source.int(u8) % 16;
        if (writer.ended and action < 10) return world.expectEnded();
        if (action == 15 and source.int(u8) < 40) return world.replace(@truncate(source.int(u8)));
        const timeout: millrace.Timeout = if (source.int(u8) & 1 == 0) .none else .us(50);
        switch (action) {
            0...5 => try world.write(source, timeout, action == 5),
            6 => try world.writeMany(source, timeout),
            7, 8 => try world.claim(source, timeout),
            9 => writer.publish(),
            10 => if (source.int(u8) < 16) {
                for (0..2) |_| try writer.end();
            },
            11, 12 => _ = try world.borrow(),
            else => for (0..source.below(6)) |_| {
                if (!try world.take()) break;
            },
        }
    }

    /// One of the two dies, and its endpoint passes to another owner.
    fn replace(world: *World, index: u1) !void {
        const pair = &world.pair;
        const begun = pair.writer.owed != null and !pair.writer.ended;
        if (index == 0) {
            pair.writer.publish();
            try world.checkStrictly();
            try testing.expect(!millrace.vacate(&.{&pair.reader}, &.{}));
            while (try world.take()) {}
            // A message that was given up and whose cancel was not placed is not reported.
            try testing.expectEqual(@intFromBool(begun), world.entry_count - world.taken);
        }
        pair.endpoints[index].close();
        const given = if (index == 0)
            millrace.vacate(&.{&pair.reader}, &.{})
        else
            millrace.vacate(&.{}, &.{&pair.writer});
        try testing.expect(given);
        const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        pair.endpoints[index] = try .attach(&pair.segment, index, options);
        if (index == 0) {
            pair.writer = try .init(&pair.endpoints[0], &pair.segment, 0);
        } else {
            pair.reader = try .init(&pair.endpoints[1], &pair.segment, 0);
            pair.reader.calls = true;
        }
        world.model.head = pair.writer.ring.tail;
        world.model.progress = null;
        world.model.ended = false;
        world.taken = world.entry_count;
        world.judged = world.entry_count;
        world.borrowed = 0;
        Target.counts.replaced[index] += 1;
    }

    fn expectEnded(world: *World) !void {
        const writer = &world.pair.writer;
        try testing.expectError(error.PipeEnded, writer.write("x", .{}, .none));
        try testing.expectError(error.PipeEnded, writer.claim(1, .none));
    }

    fn envelopeOf(source: *fuzz.Source) Envelope {
        const kinds = [_]layout.FrameKind{ .data, .call, .@"return", .throw };
        const codec = source.int(u8);
        return .{
            .kind = kinds[source.int(u8) % kinds.len],
            .codec = @fromBackingInt(codec),
            .tag = source.int(u16),
        };
    }

    /// Returns the payload of the next message, with its entry.
    fn next(world: *World, source: *fuzz.Source, most: usize, buffer: []u8) Entry {
        const envelope = envelopeOf(source);
        const writer = &world.pair.writer;
        var limit = @min(most, payload_max);
        if (envelope.codec == .json_batch) limit = @min(limit, writer.frameSizeMax());
        const size = source.below(@intCast(limit + 1));
        const number: u32 = @intCast(world.entry_count);
        fixture.pattern(buffer[0..size], number);
        return .{ .number = number, .size = size, .envelope = envelope };
    }

    fn push(world: *World, entry: Entry) void {
        world.entries[world.entry_count] = entry;
        world.entry_count += 1;
    }

    /// Called after a write that gave up: notes the message if the write had begun it.
    fn pushGivenUp(world: *World, tail: u32) void {
        const writer = &world.pair.writer;
        if (writer.owed == null or writer.ring.tail == tail) return;
        world.push(.{ .number = 0, .given_up = true });
    }

    fn write(world: *World, source: *fuzz.Source, timeout: millrace.Timeout, cut: bool) !void {
        const writer = &world.pair.writer;
        var buffer: [payload_max]u8 = undefined;
        const most: usize = if (timeout == .none) writer.trySizeMax() else 2 * writer.ring.capacity;
        const entry = world.next(source, most, &buffer);
        const payload = buffer[0..entry.size];
        const tail = writer.ring.tail;
        const outcome = if (cut) outcome: {
            const middle = source.below(@intCast(payload.len + 1));
            const pieces = [_][]const u8{ payload[0..middle], "", payload[middle..] };
            break :outcome writer.writeParts(&pieces, entry.envelope, timeout);
        } else writer.write(payload, entry.envelope, timeout);
        outcome catch |err| {
            try testing.expectEqual(error.Timeout, err);
            if (timeout == .none) try testing.expect(writer.ring.tail -% tail <= 32);
            return world.pushGivenUp(tail);
        };
        world.push(entry);
        // The message is visible when the call returns.
        try testing.expectEqual(writer.ring.tail, writer.ring.control.tail);
    }

    fn writeMany(world: *World, source: *fuzz.Source, timeout: millrace.Timeout) !void {
        const writer = &world.pair.writer;
        var buffers: [5][payload_max]u8 = undefined;
        var payloads: [5][]const u8 = undefined;
        var entries: [5]Entry = undefined;
        const count = source.below(payloads.len + 1);
        const envelope = envelopeOf(source);
        const first: u32 = @intCast(world.entry_count);
        for (0..count) |index| {
            var most = writer.trySizeMax();
            if (envelope.codec == .json_batch) most = writer.frameSizeMax();
            const size = source.below(most + 1);
            const number = first + @as(u32, @intCast(index));
            fixture.pattern(buffers[index][0..size], number);
            payloads[index] = buffers[index][0..size];
            entries[index] = .{ .number = number, .size = size, .envelope = envelope };
        }
        const tail = writer.ring.tail;
        const written = try writer.writeMany(payloads[0..count], envelope, timeout);
        for (entries[0..written]) |entry| world.push(entry);
        if (written < count) world.pushGivenUp(tail);
    }

    fn claim(world: *World, source: *fuzz.Source, timeout: millrace.Timeout) !void {
        const writer = &world.pair.writer;
        var buffer: [payload_max]u8 = undefined;
        const entry = world.next(source, writer.frameSizeMax(), &buffer);
        const room = @min(writer.frameSizeMax(), entry.size + source.below(40));
        const place = writer.claim(@intCast(room), timeout) catch |err|
            return testing.expectEqual(error.Timeout, err);
        switch (source.int(u8) % 4) {
            0 => return writer.abandon(),
            else => |choice| {
                @memcpy(place[0..entry.size], buffer[0..entry.size]);
                writer.finish(@intCast(entry.size), entry.envelope);
                world.push(entry);
                if (choice == 1) writer.publish();
            },
        }
    }

    /// Reads one message. Returns false if there was none.
    fn take(world: *World) anyerror!bool {
        const reader = &world.pair.reader;
        // A message that was begun by borrowing is borrowed to its end.
        if (reader.inProgress() and !reader.partial()) return world.borrow();
        const message = reader.tryRead(&world.storage) catch |err| return world.lost(err);
        const found = message orelse return false;
        const entry = try world.nextEntry();
        const codec = @backingInt(found.codec);
        try entry.expect(found.payload, @backingInt(found.kind), codec, found.tag);
        return true;
    }

    /// Borrows one frame. Returns false if there was none.
    fn borrow(world: *World) !bool {
        const reader = &world.pair.reader;
        if (reader.partial()) return world.take();
        const lent = (reader.peek(.none) catch |err| return world.lost(err)) orelse return false;
        Target.counts.borrowed += 1;
        if (lent.first) world.borrowed = 0;
        const rest = world.storage[world.borrowed..];
        @memcpy(rest[0..lent.payload.len], lent.payload);
        world.borrowed += lent.payload.len;
        reader.release();
        if (!lent.last) return true;
        const entry = try world.nextEntry();
        const payload = world.storage[0..world.borrowed];
        try testing.expectEqual(lent.total, payload.len);
        const codec = @backingInt(lent.codec);
        try entry.expect(payload, @backingInt(lent.kind), codec, lent.tag);
        return true;
    }

    fn lost(world: *World, err: anyerror) !bool {
        try testing.expect(err == error.MessageCancelled or err == error.MessageTruncated);
        const entry = try world.nextEntry();
        try testing.expect(entry.given_up);
        Target.counts.lost += 1;
        return true;
    }

    fn nextEntry(world: *World) !Entry {
        if (world.taken == world.entry_count) return error.Invented;
        world.taken += 1;
        return world.entries[world.taken - 1];
    }

    /// The strict reader reads everything that was published.
    fn checkStrictly(world: *World) !void {
        const writer = &world.pair.writer;
        const tail = writer.ring.control.tail;
        const used = tail -% writer.ring.control.head;
        const reserve: u32 = if (writer.ended) 0 else layout.ring_reserve;
        try testing.expect(used <= writer.ring.capacity - reserve);
        world.model.tail = tail;
        while (true) {
            const found = world.model.next();
            switch (found) {
                .nothing, .ended => return,
                .fault => return error.WrongBytes,
                .message, .report => {},
            }
            if (world.judged == world.entry_count) return error.Invented;
            const entry = world.entries[world.judged];
            world.judged += 1;
            switch (found) {
                .message => |message| try entry.expect(
                    message.payload,
                    message.kind,
                    message.codec,
                    message.tag,
                ),
                else => try testing.expect(entry.given_up),
            }
        }
    }
};
