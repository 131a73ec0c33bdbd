//! Meters on one thread, with clocks that the test winds.

const std = @import("std");
const millrace = @import("../root.zig");
const frame = @import("../ring/frame.zig");
const clocks = @import("fixture.zig");
const Meter = millrace.Meter;
const Port = millrace.Port;
const layout = millrace.layout;
const passUs = clocks.passUs;
const wall = clocks.wall;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;

/// A port with both ends on one thread. Must not move after it was initialized.
const Table = struct {
    memory: [16_384]u8 align(128),
    inboxes: [2][4096]u8 align(16),
    ports: [2]Port,
    meters: [2]Meter(Port),
    storage: [8192]u8,

    const options: millrace.meter.Options = .{ .wall = wall };

    /// Makes clocks of which the time of day shows `epoch_us` microseconds since the Unix epoch.
    fn init(table: *Table, capacity: u32, epoch_us: u64) !void {
        clocks.now_ns = 1_000_000;
        clocks.epoch_ns = epoch_us * 1_000 - clocks.now_ns;
        clocks.asleep = null;
        try Port.format(&table.memory, .{ .capacities = @splat(capacity) });
        for (&table.ports, &table.meters, &table.inboxes, 0..) |*port, *each, *inbox, index| {
            try port.attach(&table.memory, @intCast(index), .{
                .endpoint = .{ .host = &clocks.wound, .spin_us = 0 },
                .inbox = inbox,
            });
            each.* = .init(port, options);
        }
    }

    fn read(table: *Table) !millrace.Message {
        return (try table.meters[1].tryRead(&table.storage)) orelse error.NoMessage;
    }

    fn readTime(table: *Table) !u32 {
        _ = try table.read();
        return table.ports[1].reader.time;
    }

    fn out(table: *Table) millrace.meter.Snapshot.Outgoing {
        return table.meters[0].snapshot().outgoing.?;
    }

    fn in(table: *Table) millrace.meter.Snapshot.Incoming {
        return table.meters[1].snapshot().incoming.?;
    }
};

/// An arbitrary time.
const some_us = 1_795_460_958_881_125;

test "Meter: [meter.waiting] a message has waited from its frame until it is read" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    try table.meters[0].write("one", .{}, .none);
    passUs(300);
    try table.meters[0].write("two", .{ .tag = 7 }, .none);
    passUs(20);
    try expectEqual(@as(u32, @truncate(some_us)), try table.readTime());
    try expectEqual(7, (try table.read()).tag);
    const waiting = table.in().waiting;
    try expectEqual(2, waiting.count);
    try expectEqual(20, waiting.least);
    try expectEqual(320, waiting.most);
    try expectEqual(170, waiting.mean);
    try expectEqual(6, table.in().bytes);
    try expectEqual(6, table.out().bytes);
    try expectEqual(2, table.in().messages);
    try expectEqual(2, table.out().messages);
    // 2 messages in 320 us.
    try expectEqual(6_250, table.out().message_rate);
    try expectEqual(320, table.meters[0].snapshot().elapsed);
    try expectEqual(@as(f64, some_us + 320) / 1_000, table.meters[0].snapshot().at);
}

test "Meter: [frame.time] differences are signed and modulo 2^32, and one below 0 is 0" {
    var table: Table = undefined;
    const turn_us = @as(u64, 1) << 32;
    try table.init(4096, 7 * turn_us - 0xc8);
    try table.meters[0].write("across", .{}, .none);
    passUs(300);
    try expectEqual(@as(u32, 0xffff_ff38), try table.readTime());
    try expectEqual(300, table.in().waiting.most);
    // The clock is set back while the message waits.
    try table.meters[0].write("set", .{}, .none);
    clocks.epoch_ns -= 1_000_000_000;
    passUs(200_000);
    _ = try table.read();
    try expectEqual(0, table.in().waiting.least);
    try expectEqual(300, table.in().waiting.most);
}

test "Meter: [meter.time] a clock that shows 0 stores 1, and a message without a time is untimed" {
    var table: Table = undefined;
    try table.init(4096, @as(u64, 3) << 32);
    try table.meters[0].write("zero", .{}, .none);
    try expectEqual(1, try table.readTime());
    try table.ports[0].write("no meter", .{}, .none);
    try expectEqual(0, try table.readTime()); // [meter.untimed]
    const incoming = table.in();
    try expectEqual(1, incoming.untimed);
    try expectEqual(1, incoming.waiting.count);
    try expectEqual(2, incoming.values);
    try expectEqual(1, table.out().messages);
}

test "Meter: the service lasts until the call that reads on, or until it is said to be done" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    for (0..3) |_| try table.meters[0].write("served", .{}, .none);
    _ = try table.read();
    passUs(50);
    try expectEqual(0, table.in().service.count);
    _ = try table.read();
    passUs(10);
    table.meters[1].done();
    passUs(1_000); // counts for nobody
    _ = try table.read();
    passUs(30);
    try expectEqual(null, try table.meters[1].tryRead(&table.storage));
    passUs(500);
    try expectEqual(null, try table.meters[1].tryRead(&table.storage));
    const service = table.in().service;
    try expectEqual(3, service.count);
    try expectEqual(10, service.least);
    try expectEqual(50, service.most);
    try expectEqual(30, service.mean);
}

/// Returns the times of the frames between two cursors.
fn times(port: *const Port, storage: []u32) ![]const u32 {
    const ring = &port.writer.ring;
    var position = ring.head;
    var count: usize = 0;
    while (position != ring.tail) {
        const offset = position & (ring.capacity - 1);
        const header: frame.Header = .load(@alignCast(ring.area[offset..][0..16]));
        position +%= frame.extentOf(header.size);
        if (header.kind == layout.frame_kind_pad) continue;
        storage[count] = header.time;
        count += 1;
    }
    return storage[0..count];
}

test "Meter: [meter.time] only the first frame of a message has its time" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    const large: [3000]u8 = @splat('x');
    try table.meters[0].write(&large, .{}, .none);
    var storage: [16]u32 = undefined;
    const found = try times(&table.ports[0], &storage);
    try expect(found.len > 1);
    try expectEqual(@as(u32, @truncate(some_us)), found[0]);
    for (found[1..]) |time| try expectEqual(0, time);
    passUs(40);
    try expectEqual(@as(u32, @truncate(some_us)), try table.readTime());
    try expectEqual(40, table.in().waiting.most);
    try expectEqual(3000, table.in().bytes);
    try expectEqual(1, table.in().messages);
    try expectEqual(1, table.out().messages);
}

test "Meter: writeMany gives each message a time of its own" {
    var table: Table = undefined;
    try table.init(256, some_us);
    try expectEqual(3, try table.meters[0].writeMany(&.{ "a", "b", "c" }, .{}, .none));
    try expectEqual(3, table.out().messages);
    // There is room for four more of 48 bytes.
    const long: [20]u8 = @splat('d');
    const payloads: [6][]const u8 = @splat(&long);
    const count = try table.meters[0].writeMany(&payloads, .{}, .none);
    try expect(count < payloads.len);
    try expectEqual(3 + count, table.out().messages);
    try expectEqual(0, table.out().stalls); // it did not wait
    var storage: [16]u32 = undefined;
    for (try times(&table.ports[0], &storage)) |time| {
        try expectEqual(@as(u32, @truncate(some_us)), time);
    }
}

/// The port whose message is read while the other side sleeps.
var sleeper: *Table = undefined;

fn readMeanwhile() void {
    passUs(70);
    _ = sleeper.meters[1].tryRead(&sleeper.storage) catch unreachable;
}

test "Meter: a message that found no room is a stall, and its time is that of its frame" {
    var table: Table = undefined;
    try table.init(256, some_us);
    sleeper = &table;
    clocks.asleep = readMeanwhile;
    const half: [100]u8 = @splat('h');
    try table.meters[0].write(&half, .{}, .forever);
    try expectEqual(0, table.out().stalls);
    try table.meters[0].write(&half, .{}, .forever);
    try expectEqual(1, table.out().stalls);
    try expectEqual(70, table.out().stall.mean);
    // It was finished after the wait, so it has not waited yet.
    try expectEqual(@as(u32, @truncate(some_us + 70)), try table.readTime());
    try expectEqual(0, table.in().waiting.least);
    try expectEqual(70, table.in().waiting.most);
    try expect(table.meters[0].snapshot().endpoint.sleeps > 0);
    // A call that does not want to wait has no stall; one that gives up has.
    clocks.asleep = null;
    try expect(try table.meters[0].tryWrite(&half, .{}));
    try expect(!try table.meters[0].tryWrite(&half, .{}));
    try expectEqual(1, table.out().stalls);
    try std.testing.expectError(error.Timeout, table.meters[0].write(&half, .{}, .ms(5)));
    try expectEqual(2, table.out().stalls);
    try expectEqual(5_000, table.out().stall.most);
    try expectEqual(3, table.out().messages);
}

test "Meter: a message of many frames that waits for room again and again is one stall" {
    var table: Table = undefined;
    try table.init(256, some_us);
    sleeper = &table;
    clocks.asleep = readMeanwhile;
    const large: [1000]u8 = @splat('l');
    try table.meters[0].write(&large, .{}, .forever);
    const rounds = table.meters[0].snapshot().endpoint.sleeps;
    try expect(rounds > 1);
    try expectEqual(1, table.out().stalls);
    try expectEqual(@as(f64, @floatFromInt(70 * rounds)), table.out().stall.most);
    try expectEqual(1000, (try table.read()).payload.len);
    try expectEqual(@as(f64, @floatFromInt(70 * rounds)), table.in().waiting.most);
}

test "Meter: both ends count the queue in messages and bytes, pads and inbox included" {
    var table: Table = undefined;
    try table.init(256, some_us);
    const small: [40]u8 = @splat('s'); // takes 64 bytes
    for (0..2) |_| try table.meters[0].write(&small, .{}, .none);
    _ = try table.read();
    try expectEqual(millrace.meter.Queue{ .messages = 1, .bytes = 64 }, table.out().queue);
    try expectEqual(millrace.meter.Queue{ .messages = 1, .bytes = 64 }, table.in().queue);
    try table.meters[0].write(small[0..20], .{}, .none); // up to 176
    _ = try table.read();
    const more: [70]u8 = @splat('m'); // takes 96, and does not fit the 80 before the end
    try table.meters[0].write(&more, .{}, .none);
    const full: millrace.meter.Queue = .{ .messages = 2, .bytes = 48 + 80 + 96 };
    try expectEqual(full, table.in().queue);
    try expectEqual(full, table.out().queue);
    // The other side cannot write, and meanwhile takes what there is into its inbox.
    for (0..3) |_| _ = try table.ports[1].tryWrite(&more, .{});
    try std.testing.expectError(error.Timeout, table.ports[1].write(&more, .{}, .ms(1)));
    try expectEqual(0, table.out().queue.bytes);
    try expectEqual(2, table.in().queue.messages);
    try expect(table.in().queue.bytes > 0);
    passUs(9);
    _ = try table.read();
    try expectEqual(1_009, table.in().waiting.most); // the inbox kept its time
    try expectEqual(1, table.in().queue.messages);
}

test "Meter: what is finished counts when it is published" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    const writer = &table.meters[0];
    @memcpy((try writer.claim(4, .none))[0..3], "abc");
    writer.finish(3, .{});
    passUs(5);
    _ = try writer.claim(4, .none);
    try expectEqual(0, table.out().messages);
    writer.finish(0, .{});
    writer.publish();
    try expectEqual(2, table.out().messages);
    try expectEqual(3, table.out().bytes);
    _ = try writer.claim(4, .none);
    table.ports[0].close();
    writer.finish(4, .{});
    try expectEqual(2, table.out().messages);
    _ = try table.read();
    _ = try table.read();
    try expectEqual(5, table.in().waiting.most);
    try expectEqual(0, table.in().waiting.least);
}

test "Meter: a message that is lent frame by frame counts once, with the service of all frames" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    const large: [3000]u8 = @splat('x');
    try table.meters[0].write(&large, .{}, .none);
    passUs(100);
    const reader = &table.meters[1];
    var count: u64 = 0;
    while (true) {
        const lent = (try reader.peek(.none)) orelse return error.NoMessage;
        count += 1;
        try expectEqual(@as(u64, @intFromBool(lent.last)), table.in().messages);
        passUs(10);
        reader.release();
        if (lent.last) break;
    }
    reader.done();
    try expect(count > 1);
    try expectEqual(3000, table.in().bytes);
    try expectEqual(100, table.in().waiting.most);
    try expectEqual(1, table.in().waiting.count);
    try expectEqual(@as(f64, @floatFromInt(10 * count)), table.in().service.most);
    try expectEqual(1, table.in().service.count);
}

test "Meter: [meter.batch] each value of a batch has waited until it is handed out" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    try table.meters[0].write("[1,2,3]", .{ .codec = .json_batch }, .none);
    passUs(100);
    _ = try table.read();
    for (0..2) |_| {
        passUs(10);
        table.meters[1].nextValue();
    }
    passUs(10);
    table.meters[1].done();
    const incoming = table.in();
    try expectEqual(1, incoming.messages);
    try expectEqual(3, incoming.values);
    try expectEqual(3, incoming.waiting.count);
    try expectEqual(110, incoming.waiting.mean);
    try expectEqual(120, incoming.waiting.most);
    try expectEqual(3, incoming.service.count);
    try expectEqual(10, incoming.service.most);
}

test "Meter: reset begins anew, and knows what the endpoint did before" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    try table.meters[0].write("one", .{}, .none);
    _ = try table.read();
    try expectEqual(1, table.meters[0].snapshot().endpoint.elided_wakes);
    passUs(10);
    for (&table.meters) |*each| each.reset();
    passUs(10);
    try table.meters[0].write("two", .{}, .none);
    _ = try table.read();
    try expectEqual(1, table.meters[0].snapshot().endpoint.elided_wakes);
    try expectEqual(1, table.out().messages);
    try expectEqual(1, table.in().waiting.count);
    try expectEqual(20, table.in().service.most); // of the first one
    try expectEqual(10, table.meters[1].snapshot().elapsed);
}

test "Meter: one direction alone reports no other" {
    var memory: [2048]u8 align(128) = undefined;
    const channels = [_]millrace.Channel{.{ .writer = 0, .reader = 1, .data_size = 256 }};
    try millrace.Segment.format(&memory, .{ .endpoint_count = 2, .channels = &channels });
    var storage: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(&memory, &storage, .none);
    var endpoints: [2]millrace.Endpoint = undefined;
    for (&endpoints, 0..) |*endpoint, index| {
        const options: millrace.Endpoint.Options = .{ .host = &clocks.wound, .spin_us = 0 };
        endpoint.* = try .attach(&segment, @intCast(index), options);
    }
    var writer: millrace.Writer = try .init(&endpoints[0], &segment, 0);
    var reader: millrace.Reader = try .init(&endpoints[1], &segment, 0);
    var writing: Meter(millrace.Writer) = .init(&writer, Table.options);
    var reading: Meter(millrace.Reader) = .init(&reader, Table.options);
    try writing.write("one way", .{}, .none);
    passUs(3);
    var payload: [16]u8 = undefined;
    _ = try reading.tryRead(&payload);
    const written = writing.snapshot();
    const read = reading.snapshot();
    try expectEqual(null, written.incoming);
    try expectEqual(1, written.outgoing.?.messages);
    try expectEqual(null, read.outgoing);
    try expectEqual(3, read.incoming.?.waiting.most);
    try expectEqual(1, read.endpoint.index);
}

test "Meter: what the peer stores in the ring is believed no further than it can be" {
    var random: std.Random.DefaultPrng = .init(5);
    const rand = random.random();
    var table: Table = undefined;
    for (0..2_000) |_| {
        try table.init(256, some_us);
        for (0..3) |_| try table.meters[0].write("abcdefghij", .{}, .none);
        const ring = &table.ports[0].writer.ring;
        for (0..8) |_| {
            const offset = rand.uintLessThan(u32, 16) * 16;
            const size = rand.int(u32) >> rand.int(u5);
            std.mem.writeInt(u32, ring.area[offset..][0..4], size, .little);
        }
        if (rand.boolean()) @atomicStore(u32, &ring.control.tail, rand.int(u32), .seq_cst);
        if (rand.boolean()) @atomicStore(u32, &ring.control.head, rand.int(u32), .seq_cst);
        for ([_]millrace.meter.Queue{ table.out().queue, table.in().queue }) |queue| {
            try expect(queue.bytes <= 256 and queue.messages <= 16);
        }
    }
}

test "Snapshot: its JSON is that which the schema of all implementations describes" {
    var table: Table = undefined;
    try table.init(4096, some_us);
    for (0..3) |_| try table.meters[0].write("{\"frame\":1}", .{ .codec = .json }, .none);
    passUs(15);
    _ = try table.read();
    passUs(40);
    _ = try table.read();
    passUs(445);
    const kept = @embedFile("snapshot.jsonl");
    var storage: [8192]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&storage);
    try table.meters[1].snapshot().writeJson(&writer);
    try writer.writeByte('\n');
    const reader: Meter(millrace.Reader) = .init(&table.ports[1].reader, Table.options);
    var alone = reader;
    try std.json.Stringify.value(&alone.snapshot(), .{}, &writer);
    try writer.writeByte('\n');
    try std.testing.expectEqualStrings(kept, writer.buffered());
}
