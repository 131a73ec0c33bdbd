const std = @import("std");
const builtin = @import("builtin");
const millrace = @import("root.zig");
const fixture = @import("fixture.zig");
const testing = std.testing;
const Reader = millrace.Reader;
const Select = millrace.Select;

/// Endpoint 0 reads from all others. Must stay where it was initialized.
const Hub = struct {
    const client_count = 3;

    memory: [8192]u8 align(128) = @splat(0),
    storage: [client_count]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [1 + client_count]millrace.Endpoint,
    readers: [client_count]Reader,
    writers: [client_count]millrace.Writer,
    list: [client_count]*Reader,

    fn init(hub: *Hub, host: *const millrace.Host) !void {
        hub.memory = @splat(0);
        var channels: [client_count]millrace.Channel = undefined;
        for (&channels, 1..) |*channel, client| {
            channel.* = .{ .writer = @intCast(client), .reader = 0, .data_size = 512 };
        }
        const count = 1 + client_count;
        try millrace.Segment.format(&hub.memory, .{
            .endpoint_count = count,
            .channels = &channels,
        });
        hub.segment = try .attach(&hub.memory, &hub.storage, .none);
        for (&hub.endpoints, 0..) |*endpoint, index| {
            const options: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
            endpoint.* = try .attach(&hub.segment, @intCast(index), options);
        }
        for (&hub.readers, &hub.writers, &hub.list, 0..) |*reader, *writer, *item, index| {
            const channel: u32 = @intCast(index);
            reader.* = try .init(&hub.endpoints[0], &hub.segment, channel);
            writer.* = try .init(&hub.endpoints[1 + index], &hub.segment, channel);
            item.* = reader;
        }
    }

    fn say(hub: *Hub, client: usize, tag: u32) !void {
        try hub.writers[client].write("said", .{ .tag = tag }, .none);
    }

    fn wants(hub: *Hub) [client_count]u32 {
        var found: [client_count]u32 = undefined;
        for (&found, hub.readers) |*word, reader| {
            word.* = @atomicLoad(u32, &reader.ring.control.reader_wants, .seq_cst);
        }
        return found;
    }
};

fn expectFrom(select: *Select, reader: *Reader, tag: u32) !void {
    const found = (try select.wait(.none)) orelse return error.NothingReady;
    try testing.expectEqual(reader, found);
    var storage: [16]u8 = undefined;
    try testing.expectEqual(tag, (try found.tryRead(&storage)).?.tag);
}

test "Select takes the readers in turn, however much one of them has" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    try testing.expectEqual(null, try select.wait(.none));
    for (0..4) |tag| try hub.say(0, @intCast(tag));
    try hub.say(2, 20);
    try expectFrom(&select, &hub.readers[0], 0);
    try expectFrom(&select, &hub.readers[2], 20);
    // What was seen already and not read counts as well.
    try expectFrom(&select, &hub.readers[0], 1);
    try hub.say(1, 10);
    try expectFrom(&select, &hub.readers[1], 10);
    try expectFrom(&select, &hub.readers[0], 2);
    try expectFrom(&select, &hub.readers[0], 3);
    try testing.expectEqual(null, try select.wait(.none));
}

test "Select times out, and then asks nobody to ring" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    try testing.expectEqual(null, try select.wait(.ms(10_000)));
    // A slice of 1 s each.
    try testing.expect(hub.endpoints[0].stats.parks >= 9);
    try testing.expectEqual(@as([3]u32, @splat(0)), hub.wants());
}

test "Select returns a reader whose stream has ended once, and one that has failed every time" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    var storage: [16]u8 = undefined;
    try hub.writers[1].end();
    try testing.expectEqual(&hub.readers[1], (try select.wait(.none)).?);
    try testing.expectEqual(null, try hub.readers[1].tryRead(&storage));
    try testing.expect(hub.readers[1].ended());
    try testing.expectEqual(null, try select.wait(.none));

    hub.endpoints[3].close();
    for (0..2) |_| {
        try testing.expectEqual(&hub.readers[2], (try select.wait(.none)).?);
        try testing.expectError(error.PeerClosed, hub.readers[2].tryRead(&storage));
    }
    select.readers = hub.list[0..2];
    try testing.expectEqual(null, try select.wait(.none));
    try hub.writers[0].end();
    try testing.expectEqual(&hub.readers[0], (try select.wait(.none)).?);
    try testing.expectEqual(null, try hub.readers[0].tryRead(&storage));
    // Nothing is left to wait for.
    try testing.expectEqual(null, try select.wait(.forever));
}

test "Select fails on a thread that must not block, after what is there" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    hub.endpoints[0].blocking = false;
    var select: Select = .{ .readers = &hub.list };
    try testing.expectError(error.WaitForbidden, select.wait(.ms(10)));
    try hub.say(1, 1);
    try expectFrom(&select, &hub.readers[1], 1);
}

test "Select gives back what was released before it waits" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    try hub.say(0, 1);
    try hub.say(0, 2);
    try expectFrom(&select, &hub.readers[0], 1);
    const head = &hub.readers[0].ring.control.head;
    try testing.expectEqual(0, @atomicLoad(u32, head, .seq_cst));
    _ = try select.wait(.none);
    try testing.expectEqual(32, @atomicLoad(u32, head, .seq_cst));
}

test "Select sleeps until any of its clients writes, or another thread closes" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var hub: Hub = undefined;
    try hub.init(.native);
    var select: Select = .{ .readers = &hub.list };
    const Client = struct {
        fn run(there: *Hub) void {
            for (0..30) |tag| {
                millrace.Host.native.pause(500_000);
                there.say(tag % Hub.client_count, @intCast(tag)) catch unreachable;
            }
            millrace.Host.native.pause(500_000);
            there.endpoints[0].close();
        }
    };
    const thread: std.Thread = try .spawn(.{}, Client.run, .{&hub});
    defer thread.join();
    var storage: [16]u8 = undefined;
    for (0..30) |tag| {
        const found = (try select.wait(.ms(20_000))) orelse return error.Timeout;
        try testing.expectEqual(&hub.readers[tag % Hub.client_count], found);
        try testing.expectEqual(tag, (try found.tryRead(&storage)).?.tag);
    }
    const found = (try select.wait(.ms(20_000))) orelse return error.Timeout;
    try testing.expectError(error.PipeClosed, found.tryRead(&storage));
    try testing.expect(hub.endpoints[0].stats.parks > 0);
}
