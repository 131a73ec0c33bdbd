//! Streams whose bytes are cut, withheld or changed at every place. Seeded; nothing here waits in
//! real time.

const std = @import("std");
const fixture = @import("../stream/fixture.zig");
const frame = @import("../ring/frame.zig");
const millrace = @import("../root.zig");
const patternOf = @import("fixture.zig").pattern;
const testing = std.testing;
const layout = millrace.layout;
const Bench = fixture.Bench;
const Side = fixture.Side;
const Stream = millrace.Stream;
const Wire = fixture.Wire;

const payload_max = 2048;

/// Two sides, and a wire each way.
const Pair = struct {
    wires: [2]Wire,
    sides: [2]Side,
    /// The storage into which each side reads.
    storage: [2][payload_max]u8,
    inboxes: [2][4096]u8 align(16),

    fn open(pair: *Pair, options: [2]Stream.Options, cut: usize, capacity: usize) !void {
        pair.wires = @splat(.{ .cut = cut, .capacity = capacity });
        for (&pair.sides, options, 0..) |*side, given, index| {
            var own = given;
            own.port.endpoint.host = &fixture.clockwork;
            own.port.inbox = &pair.inboxes[index];
            try side.open(&pair.wires[1 - index], &pair.wires[index], own);
        }
    }
};

/// The messages that both sides write: their sizes and bytes follow from the seed.
const Traffic = struct {
    random: std.Random.DefaultPrng,
    left: u32,
    index: u32 = 0,
    size: ?usize = null,
    payload: [payload_max]u8 = undefined,

    fn init(seed: u64, count: u32) Traffic {
        return .{ .random = .init(seed), .left = count };
    }

    /// Returns the next message; the same one until `pass`.
    fn next(traffic: *Traffic) ?[]const u8 {
        if (traffic.left == 0) return null;
        if (traffic.size == null) {
            const random = traffic.random.random();
            const most: usize = if (random.uintLessThan(u32, 4) == 0) 600 else 100;
            traffic.size = random.uintAtMost(usize, most);
            patternOf(traffic.payload[0..traffic.size.?], traffic.index);
        }
        return traffic.payload[0..traffic.size.?];
    }

    fn pass(traffic: *Traffic) void {
        traffic.left -= 1;
        traffic.index += 1;
        traffic.size = null;
    }
};

/// Has both sides write and read until both have read the end. Asserts that everything has arrived.
fn converse(pair: *Pair, seed: u64, count: u32) !void {
    var written = [2]Traffic{ .init(seed, count), .init(seed + 1, count) };
    var read = [2]Traffic{ .init(seed + 1, count), .init(seed, count) };
    var idle: u32 = 0;
    while (idle < 3000) : (idle += 1) {
        var open: u32 = 2;
        for (&pair.sides, 0..) |*side, index| {
            const port = &side.stream.port;
            if (written[index].next()) |payload| {
                if (try port.tryWrite(payload, .{ .tag = written[index].index })) {
                    written[index].pass();
                    idle = 0;
                }
            } else try port.end();
            if (port.ended()) {
                open -= 1;
                side.stream.pump();
                continue;
            }
            const message = (try port.tryRead(&pair.storage[index])) orelse continue;
            idle = 0;
            try testing.expectEqual(read[index].index, message.tag);
            try testing.expectEqualSlices(u8, read[index].next().?, message.payload);
            read[index].pass();
        }
        if (open == 0) break;
    }
    for (read) |traffic| try testing.expectEqual(0, traffic.left);
    for (&pair.sides) |*side| try testing.expect(side.stream.port.ended());
}

test "Stream: two sides come to the same messages however the bytes are cut" {
    var pair: Pair = undefined;
    for ([_]usize{ 1, 2, 3, 7, 15, 16, 17, 31, 33, 127, 128, 129, 1000, Wire.wire_size }) |cut| {
        for ([_]usize{ 1, 17, 400, Wire.wire_size }) |capacity| {
            const options: Stream.Options = .{ .largest = 128, .window = 256, .queue = 2048 };
            try pair.open(.{ options, options }, cut, capacity);
            try converse(&pair, cut, 25);
        }
    }
}

test "Stream: sides that state different sizes understand one another" {
    var pair: Pair = undefined;
    for ([_][2]u32{
        .{ 128, 128 },
        .{ 128, 144 },
        .{ 144, 4096 },
        .{ 1024, 1040 },
        .{ 2048, 8192 },
    }) |sizes| {
        for ([_]usize{ 5, Wire.wire_size }) |cut| {
            try pair.open(.{
                .{ .largest = sizes[0], .window = sizes[1], .queue = 2048 },
                .{ .largest = 256, .window = 512, .queue = 4096 },
            }, cut, 900);
            try converse(&pair, cut + sizes[1], 120);
        }
    }
}

test "Stream: two floods that fit the windows finish, and one that does not is told so" {
    var pair: Pair = undefined;
    const options: Stream.Options = .{ .largest = 128, .window = 256, .queue = 512 };
    try pair.open(.{ options, options }, 40, 40);
    for (0..8) |_| for (&pair.sides) |*side| side.stream.pump();
    const a = &pair.sides[0].stream.port;
    const b = &pair.sides[1].stream.port;
    // The inbox takes what does not fit the window of the other side.
    const half: [112]u8 = @splat(1);
    for ([_]*millrace.Port{ a, b }) |port| {
        for (0..2) |_| try testing.expect(try port.tryWrite(&half, .{}));
        try testing.expect(!try port.tryWrite(&half, .{}));
    }
    for (0..40) |_| for (&pair.sides) |*side| side.stream.pump();
    // A waits for room, takes in B's messages meanwhile, and so gives B credit.
    try testing.expectError(error.Timeout, a.write(&half, .{}, .ms(100)));
    for (0..40) |_| for (&pair.sides) |*side| side.stream.pump();
    try testing.expect(try b.tryWrite(&half, .{}));
    try testing.expect(!try a.tryWrite(&half, .{}));
    for (0..3) |_| {
        for (0..40) |_| for (&pair.sides) |*side| side.stream.pump();
        try testing.expectEqual(112, (try a.tryRead(&pair.storage[0])).?.payload.len);
    }
    try testing.expectEqual(null, try a.tryRead(&pair.storage[0]));
}

/// A byte stream with frames of every kind, and where its messages end.
const Sample = struct {
    bytes: [1024]u8 = undefined,
    size: usize = 0,
    /// The position after each message, and its size.
    ends: [8]usize = undefined,
    sizes: [8]usize = undefined,
    count: usize = 0,

    fn add(sample: *Sample, header: frame.Header, payload: []const u8) void {
        const place = sample.bytes[sample.size..];
        sample.size += fixture.frameOf(place, header, payload).len;
    }

    fn done(sample: *Sample, size: usize) void {
        sample.ends[sample.count] = sample.size;
        sample.sizes[sample.count] = size;
        sample.count += 1;
    }

    fn init() Sample {
        var sample: Sample = .{};
        sample.bytes[0..32].* = fixture.prefaceOf(128, 256);
        sample.size = 32;
        sample.add(.{ .size = 2, .kind = 1, .flags = 3, .tag = 5 }, "hi");
        sample.done(2);
        sample.add(.{ .size = 3, .kind = 200, .flags = 77 }, "abc");
        var first: [20]u8 = @splat(0);
        first[0] = 9;
        @memcpy(first[16..], "1234");
        sample.add(.{ .size = 20, .kind = 1, .flags = 1 }, &first);
        const start = layout.stream_start;
        sample.add(.{ .size = 0, .kind = layout.stream_kind_credit, .tag = start }, "");
        sample.add(.{ .size = 5, .kind = 1, .flags = 2 }, "56789");
        sample.done(9);
        sample.add(.{ .size = 0, .kind = 1, .flags = 3 }, "");
        sample.done(0);
        return sample;
    }

    /// Returns how many messages are complete before a byte.
    fn before(sample: *const Sample, at: usize) usize {
        var count: usize = 0;
        while (count < sample.count and sample.ends[count] <= at) count += 1;
        return count;
    }
};

/// Reads what has arrived, and asserts that it is what was sent. Returns how many messages.
fn expectRead(sample: *const Sample, port: *millrace.Port, storage: *[64]u8) !usize {
    for (0..sample.count + 1) |index| {
        const message = (port.tryRead(storage) catch return index) orelse return index;
        try testing.expect(index < sample.count);
        try testing.expectEqual(sample.sizes[index], message.payload.len);
        const wanted: []const u8 = switch (index) {
            0 => "hi",
            1 => "123456789",
            else => "",
        };
        try testing.expectEqualStrings(wanted, message.payload);
    }
    unreachable;
}

test "Stream: cut in two at every byte, all comes, and each message when its last byte has" {
    const sample: Sample = .init();
    for (0..sample.size + 1) |at| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.input.putAll(sample.bytes[0..at]);
        var storage: [64]u8 = undefined;
        const first = try expectRead(&sample, port, &storage);
        try testing.expectEqual(sample.before(at), first);
        bench.input.putAll(sample.bytes[at..sample.size]);
        for (first..sample.count) |index| {
            const message = (try port.tryRead(&storage)).?;
            try testing.expectEqual(sample.sizes[index], message.payload.len);
        }
        try testing.expectEqual(null, try port.tryRead(&storage));
    }
}

test "Stream: ended at every byte, what is whole is read, and then the peer is lost" {
    const sample: Sample = .init();
    for (0..sample.size + 1) |at| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.input.putAll(sample.bytes[0..at]);
        bench.input.ended = true;
        var storage: [64]u8 = undefined;
        try testing.expectEqual(sample.before(at), try expectRead(&sample, port, &storage));
        try testing.expectError(error.PeerFailed, port.read(&storage, .ms(10)));
        try testing.expectEqual(.peer_lost, port.reason());
        try testing.expectError(error.PeerFailed, port.write("no", .{}, .ms(10)));
        bench.side.stream.deinit();
    }
}

test "Stream: silent from every byte on, each call ends at its deadline" {
    const sample: Sample = .init();
    for (0..sample.size + 1) |at| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.input.putAll(sample.bytes[0..at]);
        var storage: [64]u8 = undefined;
        try testing.expectEqual(sample.before(at), try expectRead(&sample, port, &storage));
        const before_ns = fixture.now();
        try testing.expectEqual(null, try port.read(&storage, .ms(50)));
        try testing.expectEqual(50_000_000, fixture.now() - before_ns);
        bench.side.stream.deinit();
        try testing.expect(fixture.now() - before_ns < 2_200_000_000);
        try testing.expect(bench.side.closed);
    }
}

/// Whether a change of this byte does no harm, because nobody checks it.
fn harmless(at: usize) bool {
    return switch (at) {
        10, 11, 24...31 => true, // the minor version, optional features, reserved bytes
        else => false,
    };
}

test "Stream: changed at every byte, nothing is read that was not sent, and it ends as documented" {
    const sample: Sample = .init();
    var random: std.Random.DefaultPrng = .init(7);
    for (0..sample.size) |at| {
        for (0..8) |bit| {
            var bench: Bench = undefined;
            const port = try bench.open(fixture.small);
            var bytes = sample.bytes;
            bytes[at] ^= @as(u8, 1) << @intCast(bit);
            // In two pieces, cut anywhere.
            const cut = random.random().uintAtMost(usize, sample.size);
            bench.input.putAll(bytes[0..cut]);
            bench.side.stream.pump();
            bench.input.putAll(bytes[cut..sample.size]);
            // After the change, anything may arrive, but in the order of the bytes.
            var storage: [64]u8 = undefined;
            var count: usize = 0;
            while (count < 20) : (count += 1) {
                const message = port.tryRead(&storage) catch |err| {
                    try testing.expect(isDocumented(err));
                    break;
                } orelse break;
                if (count >= sample.before(at)) continue;
                try testing.expectEqual(sample.sizes[count], message.payload.len);
            }
            try testing.expect(count >= sample.before(at));
            if (harmless(at)) try testing.expectEqual(sample.count, count);
            try expectFailTold(&bench);
            bench.side.stream.deinit();
            try testing.expect(bench.side.closed);
        }
    }
}

/// Asserts that after a fault was found, a `fail` is the last thing written, and the byte stream
/// has ended. It need not state the fault that was reported: of two faults, the later may be found
/// when it arrives, and the earlier when it is read.
fn expectFailTold(bench: *Bench) !void {
    bench.side.stream.pump();
    const port = &bench.side.stream.port;
    const code = port.reason() orelse return;
    if (code == .peer_lost) return;
    try testing.expect(bench.output.ended);
    const last = bench.output.held()[bench.output.size - 16 ..];
    const tag = std.mem.readInt(u32, last[8..12], .little);
    try testing.expect(tag != 0);
    var place: [16]u8 = undefined;
    const told = fixture.control(&place, layout.stream_kind_fail, tag);
    try testing.expectEqualSlices(u8, told, last);
}

fn isDocumented(err: anyerror) bool {
    return switch (err) {
        error.Corrupt, error.PeerFailed, error.PeerClosed, error.PipeFailed => true,
        error.MessageCancelled, error.MessageTruncated => true,
        error.MessageSize, error.MessageKind => true,
        else => false,
    };
}

test "Stream: whatever arrives, no call hangs, or fails in a way that is not documented" {
    var random: std.Random.DefaultPrng = .init(11);
    const sample: Sample = .init();
    for (0..1500) |_| {
        const dice = random.random();
        var storage: [100]u8 = undefined;
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.input.putAll(sample.bytes[0..32]);
        bench.input.cut = dice.intRangeAtMost(usize, 1, 64);
        bench.output.cut = dice.intRangeAtMost(usize, 1, 64);
        bench.output.capacity = dice.uintAtMost(usize, 400);
        for (0..dice.uintAtMost(usize, 12)) |_| {
            try putAny(&bench.input, dice);
            if (dice.uintLessThan(u32, 30) == 0) bench.output.broken = true;
            try callAny(port, &storage, dice);
        }
        if (dice.boolean()) bench.input.ended = true;
        for (0..4) |_| try callAny(port, &storage, dice);
        const before_ns = fixture.now();
        bench.side.stream.deinit();
        try testing.expect(fixture.now() - before_ns < 2_200_000_000);
    }
}

const large: [200]u8 = @splat(9);

/// Writes a frame whose fields are nearly valid.
fn putAny(wire: *Wire, dice: std.Random) !void {
    const kinds = [_]u8{ 1, 1, 1, 3, 4, 5, 2, 16, 16, 17, 18, 200, 0, 6 };
    const flags = [_]u8{ 3, 3, 3, 1, 0, 2, 6, 4 };
    const positions = [_]u32{ 0xffff_ff00, 0xffff_ff20, 0, 0x20, 8 };
    var payload: [130]u8 = undefined;
    dice.bytes(&payload);
    const size = dice.uintAtMost(usize, payload.len);
    if (dice.uintLessThan(u32, 8) == 0) return wire.putAll(payload[0..size]);
    const kind = kinds[dice.uintLessThan(usize, kinds.len)];
    const is_empty = kind == 2 or kind == 16 or kind == 17 or kind == 18;
    const kept = if (is_empty and dice.uintLessThan(u32, 10) > 0) 0 else size;
    if (dice.boolean()) @memset(payload[0..16], 0);
    if (dice.boolean()) payload[0] = @intCast(kept -| 16);
    var place: [160]u8 = undefined;
    const bytes = fixture.frameOf(&place, .{
        .size = @intCast(kept),
        .kind = kind,
        .flags = if (is_empty) 0 else flags[dice.uintLessThan(usize, flags.len)],
        .codec = dice.uintAtMost(u8, 3),
        .tag = if (kind == 16) positions[dice.uintLessThan(usize, 5)] else 0,
    }, payload[0..kept]);
    const is_cut = dice.uintLessThan(u32, 12) == 0;
    wire.putAll(if (is_cut) bytes[0..dice.uintAtMost(usize, bytes.len)] else bytes);
}

fn callAny(port: *millrace.Port, storage: *[100]u8, dice: std.Random) !void {
    const timeout: millrace.Timeout = if (dice.boolean()) .none else .ms(30);
    switch (dice.uintLessThan(u32, 8)) {
        0...3 => _ = port.read(storage, timeout) catch |err| {
            try testing.expect(isDocumented(err) or err == error.PipeClosed);
            return;
        },
        4, 5 => port.write(large[0..dice.uintAtMost(usize, 200)], .{}, timeout) catch |err| {
            const own = err == error.PipeClosed or err == error.PipeEnded or err == error.Timeout;
            try testing.expect(own or isDocumented(err));
            return;
        },
        6 => port.end() catch |err| {
            try testing.expect(err == error.PipeClosed or isDocumented(err));
        },
        else => if (dice.uintLessThan(u32, 6) == 0) port.close(),
    }
}
