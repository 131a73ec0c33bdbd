const std = @import("std");
const builtin = @import("builtin");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;
const layout = millrace.layout;
const property = millrace.property;

/// Two endpoints: 0 sets the properties `gain` and one without a name; 1 gets them. Must not move
/// after it was initialized.
const Pair = struct {
    memory: [8192]u8 align(layout.segment_align),
    channels: [2]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [2]millrace.Endpoint,
    writer: millrace.PropertyWriter,
    reader: millrace.PropertyReader,
    storage: [1008]u8,

    const geometry: millrace.Geometry = .{
        .endpoint_count = 2,
        .channels = &.{ property.channelOf(0, 100), property.channelOf(0, 1000) },
        .names = &.{.{ .channel = 0, .name = "gain" }},
    };

    fn init(pair: *Pair, host: *const millrace.Host) !void {
        @memset(&pair.memory, 0xa5);
        try millrace.Segment.format(&pair.memory, geometry);
        pair.segment = try .attach(&pair.memory, &pair.channels, .none);
        for (&pair.endpoints, 0..) |*endpoint, index| {
            const options: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
            endpoint.* = try .attach(&pair.segment, @intCast(index), options);
        }
        try pair.writer.open(&pair.endpoints[0], &pair.segment, .{ .name = "gain" });
        pair.reader = try .init(&pair.endpoints[1], &pair.segment, .{ .channel = 0 });
    }

    fn expect(pair: *Pair, version: u32, bytes: ?[]const u8) !void {
        const value = try pair.reader.get(&pair.storage);
        try testing.expectEqual(version, value.version);
        if (bytes) |wanted| return testing.expectEqualStrings(wanted, value.bytes.?);
        try testing.expectEqual(null, value.bytes);
    }

    fn word(pair: *Pair, offset: u32) *u32 {
        return @ptrCast(@alignCast(&pair.memory[offset]));
    }

    /// Returns a word of the control area.
    fn control(pair: *Pair, offset: u32) *u32 {
        return pair.word(pair.segment.channels[0].control_offset + offset);
    }

    /// Returns a word of a slot; the sequence has offset 0.
    fn slot(pair: *Pair, number: u32, offset: u32) *u32 {
        const channel = pair.segment.channels[0];
        return pair.word(channel.data_offset + number * (channel.data_size / 4) + offset);
    }
};

test "PropertyReader gets the last value, again and again, and none where it was taken back" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    try pair.expect(0, null);
    try pair.writer.set("0.5", .json);
    try pair.writer.set("0.75", .json);
    try pair.expect(2, "0.75");
    try pair.expect(2, "0.75");
    try testing.expectEqual(.json, (try pair.reader.get(&pair.storage)).codec);
    try pair.writer.clear();
    try pair.expect(3, null);
    try pair.writer.set("", .bytes);
    try pair.expect(4, "");
    // As in the example of the chapter.
    for (0..10) |count| try pair.writer.set(&.{@intCast(count)}, .bytes);
    try pair.expect(14, &.{9});
}

test "[property.size] a value that is too large changes nothing; one that fits is taken" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    try testing.expectEqual(112, pair.writer.sizeMax());
    var value: [113]u8 = @splat('x');
    try pair.writer.set(value[0..112], .text);
    const before = pair.memory;
    try testing.expectError(error.PropertySize, pair.writer.set(&value, .text));
    try testing.expectEqualSlices(u8, &before, &pair.memory);
    try pair.expect(1, value[0..112]);
    try testing.expectError(error.MessageSize, pair.reader.get(pair.storage[0..111]));
}

test "[property.next] behind the largest version comes 4" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    pair.control(layout.property_version_offset).* = std.math.maxInt(u32) - 1;
    try pair.writer.open(&pair.endpoints[0], &pair.segment, .{ .channel = 0 });
    try pair.writer.set("a", .text);
    try pair.expect(std.math.maxInt(u32), "a");
    try pair.writer.set("b", .text);
    try pair.expect(4, "b");
}

test "[property.open] what is no property, or another's, is refused" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    const none: property.OpenError!u32 = error.PropertyChannel;
    for ([_]property.Which{ .{ .channel = 2 }, .{ .name = "" }, .{ .name = "gai" } }) |which| {
        try testing.expectEqual(none, property.find(&pair.segment, which));
    }
    try testing.expectEqual(0, try property.find(&pair.segment, .{ .name = "gain" }));
    try testing.expectEqual(none, property.findFor(&pair.segment, .{ .name = "gain" }, 1));
    const good = pair.channels[1];
    const Change = struct { field: enum { kind, control, data, zero, writer, reader } };
    for (std.enums.values(@FieldType(Change, "field"))) |field| {
        pair.channels[1] = good;
        switch (field) {
            .kind => pair.channels[1].kind = .ring,
            .control => pair.channels[1].control_size = 256,
            .data => pair.channels[1].data_size += 128,
            .zero => pair.channels[1].data_size = 0,
            .writer => pair.channels[1].writer = layout.endpoint_none,
            .reader => pair.channels[1].reader = 1,
        }
        try testing.expectEqual(none, property.find(&pair.segment, .{ .channel = 1 }));
    }
    // Bytes that are not a valid name are not a fault.
    pair.control(layout.property_name_size_offset).* = 125;
    try testing.expectEqual(none, property.find(&pair.segment, .{ .name = "gain" }));
    try testing.expectEqual(0, try property.find(&pair.segment, .{ .channel = 0 }));
}

test "[property.same_name] another name is another geometry" {
    var memory: [8192]u8 align(layout.segment_align) = @splat(0);
    var storage: [2]millrace.Channel = undefined;
    _ = try millrace.Segment.create(&memory, Pair.geometry, &storage, .none);
    _ = try millrace.Segment.create(&memory, Pair.geometry, &storage, .none);
    var other = Pair.geometry;
    for ([_][]const millrace.Geometry.Name{
        &.{},
        &.{.{ .channel = 0, .name = "gaim" }},
        &.{.{ .channel = 1, .name = "gain" }},
    }) |names| {
        other.names = names;
        const again = millrace.Segment.create(&memory, other, &storage, .none);
        try testing.expectError(error.SegmentGeometry, again);
    }
}

test "[property.stays] a writer that stops behind any store leaves the value before it" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    try pair.writer.set("first", .text);
    try pair.writer.set("second", .text);
    // Stores a third value, one word after the other.
    pair.slot(3, 0).* = 3;
    try pair.expect(2, "second");
    pair.slot(3, 4).* = 5;
    pair.slot(3, 8).* = 0x0101;
    pair.slot(3, 12).* = 0;
    pair.slot(3, 16).* = 0x72696874;
    try pair.expect(2, "second");
    pair.control(layout.property_version_offset).* = 3;
    const value = try pair.reader.get(&pair.storage);
    try testing.expectEqualStrings("thir", value.bytes.?[0..4]);
    // If its endpoint is marked failed, or closed, that changes nothing.
    pair.segment.fail(pair.segment.ownerOf(0), .peer_lost, &fixture.clockwork);
    try pair.expect(3, value.bytes.?);
    try testing.expectError(error.PipeFailed, pair.writer.set("", .text));
    pair.endpoints[1].close();
    try testing.expectError(error.PipeClosed, pair.reader.get(&pair.storage));
}

test "[property.fault] what no writer may store is reported, and the next value mends it" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    const Fault = struct { offset: u32, value: u32 };
    for ([_]Fault{
        .{ .offset = 0, .value = 77 }, // the sequence
        .{ .offset = 4, .value = 113 }, // the size
        .{ .offset = 8, .value = 0x0102 }, // present 2
        .{ .offset = 8, .value = 0x10101 }, // a reserved byte
        .{ .offset = 8, .value = 0 }, // none, with a size
        .{ .offset = 12, .value = 1 }, // a reserved byte
    }) |fault| {
        try pair.writer.set("right", .text);
        const version = pair.writer.version;
        try pair.expect(version, "right");
        pair.slot(version % 4, fault.offset).* = fault.value;
        try testing.expectError(error.PropertySlot, pair.reader.get(&pair.storage));
        try testing.expectError(error.PropertySlot, pair.reader.get(&pair.storage));
        try testing.expectEqual(version, pair.control(layout.property_version_offset).*);
    }
    try pair.writer.set("mended", .text);
    try pair.expect(7, "mended");
}

/// What the writer does while the reader sleeps.
const Meanwhile = struct {
    var pair: *Pair = undefined;
    var act: enum { nothing, set, close } = .nothing;
    var watchers: u32 = 0;

    const host: millrace.Host = blk: {
        var acting = fixture.clockwork;
        acting.sleep = sleep;
        break :blk acting;
    };

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        const before = pair.endpoints[1].record.bell;
        watchers = pair.control(layout.property_watchers_offset).*;
        switch (act) {
            .nothing => {},
            .set => pair.writer.set("changed", .text) catch unreachable,
            .close => pair.endpoints[0].close(),
        }
        const rang = pair.endpoints[1].record.bell != before;
        act = .nothing;
        return rang or fixture.clockwork.sleep(word, expected, limit_ns);
    }
};

test "[property.watch] a change rings who watches, and a wait leaves no bit behind" {
    var pair: Pair = undefined;
    Meanwhile.pair = &pair;
    try pair.init(&Meanwhile.host);
    Meanwhile.act = .set;
    const watchers = pair.control(layout.property_watchers_offset);
    try testing.expect(try pair.reader.wait(.forever));
    try testing.expectEqual(0b10, Meanwhile.watchers);
    try testing.expectEqual(0, watchers.*);
    try testing.expectEqual(1, pair.writer.endpoint.stats.wakes);
    try testing.expectEqual(1, pair.endpoints[1].record.rung[0] & 1);
    // Until the value is read, the same change ends the next wait at once.
    try testing.expect(try pair.reader.wait(.none));
    try pair.expect(1, "changed");
    try testing.expect(!try pair.reader.wait(.ms(5)));
    try testing.expectEqual(0, watchers.*);
    try pair.writer.set("unseen", .text); // nobody watches
    try testing.expectEqual(1, pair.writer.endpoint.stats.wakes);
}

test "[property.close] who waits for a writer that closes learns of it at once" {
    var pair: Pair = undefined;
    Meanwhile.pair = &pair;
    try pair.init(&Meanwhile.host);
    try pair.writer.set("last", .text);
    Meanwhile.act = .close;
    // A value that the writer set before it went comes first.
    try testing.expect(try pair.reader.wait(.forever));
    try pair.expect(1, "last");
    try testing.expectError(error.PeerClosed, pair.reader.wait(.forever));
    try pair.init(&Meanwhile.host);
    Meanwhile.act = .close;
    const parks = pair.endpoints[1].stats.parks;
    try testing.expectError(error.PeerClosed, pair.reader.wait(.forever));
    try testing.expectEqual(parks + 1, pair.endpoints[1].stats.parks);
    try testing.expectEqual(0, pair.control(layout.property_watchers_offset).*);
}

test "waitAny returns the property that has changed" {
    var pair: Pair = undefined;
    Meanwhile.pair = &pair;
    try pair.init(&Meanwhile.host);
    var second: millrace.PropertyReader =
        try .init(&pair.endpoints[1], &pair.segment, .{ .channel = 1 });
    try testing.expectEqual(null, try property.waitAny(&.{ &second, &pair.reader }, .ms(1)));
    Meanwhile.act = .set;
    const found = try property.waitAny(&.{ &second, &pair.reader }, .forever);
    try testing.expectEqual(&pair.reader, found.?);
}

test "[property.bounds] no bytes of a hostile writer make a reader fail otherwise than it says" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    var prng: std.Random.DefaultPrng = .init(0x9e37);
    const random = prng.random();
    var kinds: [3]u32 = @splat(0);
    for (0..20_000) |_| {
        const channel = pair.segment.channels[0];
        const area = pair.memory[channel.data_offset..][0..channel.data_size];
        // Numbers close to valid ones, so that some pass.
        for (0..4) |number| {
            const at = number * (channel.data_size / 4);
            const slot: *align(1) [4]u32 = @ptrCast(area[at..][0..16]);
            slot[0] = random.uintLessThan(u32, 8);
            slot[1] = if (random.boolean()) random.uintLessThan(u32, 120) else random.int(u32);
            slot[2] = if (random.boolean()) 0x0101 else random.int(u32);
            slot[3] = if (random.boolean()) 0 else random.int(u32);
        }
        pair.control(layout.property_version_offset).* = random.uintLessThan(u32, 8);
        var storage: [112 + 16]u8 = @splat(0xee);
        const value = pair.reader.get(storage[0..112]) catch |err| {
            try testing.expectEqual(error.PropertySlot, err);
            kinds[0] += 1;
            continue;
        };
        try testing.expectEqualSlices(u8, &@as([16]u8, @splat(0xee)), storage[112..]);
        kinds[if (value.bytes == null) 1 else 2] += 1;
    }
    for (kinds) |count| try testing.expect(count > 100);
}

/// Sets values in which one word is repeated.
const Storm = struct {
    pair: *Pair,
    stop: std.atomic.Value(bool) = .init(false),
    count: u32 = 0,

    fn run(storm: *Storm) void {
        while (!storm.stop.load(.monotonic)) {
            storm.count +%= 1;
            const value: [25]u32 = @splat(storm.count);
            storm.pair.writer.set(std.mem.asBytes(&value), .bytes) catch unreachable;
        }
    }
};

test "no value is torn, however fast it is set" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.init(.native);
    var storm: Storm = .{ .pair = &pair };
    const thread = try std.Thread.spawn(.{}, Storm.run, .{&storm});
    defer {
        storm.stop.store(true, .monotonic);
        thread.join();
    }
    const began_ns = millrace.Host.native.now();
    var last: u32 = 0;
    var changes: u32 = 0;
    var reads: u32 = 0;
    // If both threads share one processor, the other thread's turn may take long.
    while (reads < 200_000 or changes <= 10) {
        if (millrace.Host.native.now() - began_ns > 10_000_000_000) break;
        const value = pair.reader.get(&pair.storage) catch |err| switch (err) {
            error.PropertyBusy => continue,
            else => return err,
        };
        reads += 1;
        const bytes = value.bytes orelse continue;
        const words: *align(1) const [25]u32 = @ptrCast(bytes[0..100]);
        for (words) |each| try testing.expectEqual(words[0], each);
        try testing.expect(words[0] >= last);
        if (words[0] != last) changes += 1;
        last = words[0];
    }
    try testing.expect(changes > 10);
}

test "a wait for a change sleeps until it comes, on two threads" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.init(.native);
    const Other = struct {
        fn run(writer: *millrace.PropertyWriter, answers: *millrace.PropertyReader) !void {
            for (1..1001) |round| {
                try writer.set(std.mem.asBytes(&@as(u32, @intCast(round))), .bytes);
                if (round < 1000 and !try answers.wait(.ms(10_000))) return error.NoAnswer;
                var storage: [1008]u8 = undefined;
                _ = try answers.get(&storage);
            }
        }
    };
    // The other property has the ends the other way round.
    var storage: [2]millrace.Channel = undefined;
    @memset(&pair.memory, 0);
    var channels = [_]millrace.Channel{ property.channelOf(0, 100), property.channelOf(1, 100) };
    try millrace.Segment.format(&pair.memory, .{ .endpoint_count = 2, .channels = &channels });
    const segment: millrace.Segment = try .attach(&pair.memory, &storage, .none);
    for (&pair.endpoints, 0..) |*endpoint, index| {
        endpoint.* = try .attach(&segment, @intCast(index), .{});
    }
    var writers: [2]millrace.PropertyWriter = undefined;
    var readers: [2]millrace.PropertyReader = undefined;
    for (&writers, &readers, 0..) |*writer, *reader, index| {
        const own: u32 = @intCast(index);
        try writer.open(&pair.endpoints[index], &segment, .{ .channel = own });
        reader.* = try .init(&pair.endpoints[index], &segment, .{ .channel = 1 - own });
    }
    const thread = try std.Thread.spawn(.{}, Other.run, .{ &writers[0], &readers[0] });
    defer thread.join();
    for (1..1001) |round| {
        try testing.expect(try readers[1].wait(.ms(10_000)));
        var bytes: [112]u8 = undefined;
        const value = try readers[1].get(&bytes);
        try testing.expectEqual(round, std.mem.readInt(u32, value.bytes.?[0..4], .little));
        try writers[1].set("seen", .text);
    }
}
