//! Segments: the bytes of the chapter's examples, and every row of its table of checks.

const std = @import("std");
const builtin = @import("builtin");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const segment_file = @import("segment.zig");
const segment_record = @import("../wait/state.zig");
const testing = std.testing;
const layout = millrace.layout;
const Channel = millrace.Channel;
const Segment = millrace.Segment;

fn poke(memory: []u8, offset: usize, comptime T: type, value: T) void {
    std.mem.writeInt(T, memory[offset..][0..@sizeOf(T)], value, .little);
}

const descriptor = 384;

fn formatted(memory: *align(128) [2048]u8) !void {
    const channels = fixture.pipeGeometry(256, 0);
    try Segment.format(memory, .{ .endpoint_count = 2, .channels = &channels });
}

test "a formatted pipe has the bytes of the example" {
    var memory: [1280]u8 align(128) = @splat(0xff);
    const channels = fixture.pipeGeometry(256, 0);
    try Segment.format(&memory, .{ .endpoint_count = 2, .channels = &channels });
    var expected: [1024]u8 = @splat(0);
    expected[0..8].* = "MILLRACE".*;
    poke(&expected, 8, u32, 2);
    poke(&expected, 12, u16, 1);
    poke(&expected, 16, u32, 1280);
    poke(&expected, 28, u32, 2);
    poke(&expected, 32, u32, 1);
    for ([_]u32{ 1, 0, 1, 512, 512, 1024, 256, 7 }, 0..) |value, index| {
        poke(&expected, 0x180 + 4 * index, u32, value);
    }
    try testing.expectEqualSlices(u8, &expected, memory[0..1024]);
    // [segment.write] The byte area stays as it was.
    for (memory[1024..]) |byte| try testing.expectEqual(0xff, byte);

    var storage: [1]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    _ = try millrace.Endpoint.attach(&segment, 0, .{ .host = &fixture.clockwork });
    try testing.expectEqual(1, std.mem.readInt(u32, memory[0x80..0x84], .little));
    try testing.expectEqual(1, std.mem.readInt(u32, memory[0x84..0x88], .little));
    try testing.expectEqual(2, std.mem.readInt(u32, memory[0x88..0x8c], .little));
    try testing.expectEqual(1, std.mem.readInt(u32, memory[0x100..0x104], .little));
}

test "a peer that overwrites \"ready\" while a segment is written does no harm" {
    var memory: [1280]u8 align(128) = @splat(0);
    const channels = fixture.pipeGeometry(256, 0);
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    // As if another thread had stored it after the claim.
    poke(&memory, layout.segment_ready_offset, u32, 77);
    segment_file.write(&memory, geometry, memory.len);
    var storage: [1]Channel = undefined;
    _ = try Segment.attach(&memory, &storage, .none);
}

test "a port stands where the example says" {
    var memory: [4096]u8 align(128) = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ 256, 1024 } };
    try testing.expectEqual(2816, try rings.segmentSize());
    try millrace.Port.format(&memory, rings);
    var storage: [2]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    try testing.expectEqual(2816, segment.size);
    try testing.expectEqual(512, segment.channels[0].control_offset);
    try testing.expectEqual(1024, segment.channels[0].data_offset);
    try testing.expectEqual(1280, segment.channels[1].control_offset);
    try testing.expectEqual(1792, segment.channels[1].data_offset);
    try testing.expectEqual(1, segment.channels[1].writer);
}

fn expectRefused(expected: anyerror, memory: millrace.Memory) !void {
    var storage: [layout.channel_count_max]Channel = undefined;
    try testing.expectError(expected, Segment.attach(memory, &storage, .none));
}

test "every check of the table refuses, with its code, what its neighbour accepts" {
    const Row = struct { offset: usize, value: u32, expected: ?anyerror };
    const d = descriptor;
    const rows = [_]Row{
        .{ .offset = 8, .value = 3, .expected = error.SegmentMagic },
        .{ .offset = 8, .value = 0, .expected = error.SegmentUnready },
        .{ .offset = 8, .value = 1, .expected = error.SegmentUnready },
        .{ .offset = 8, .value = 2, .expected = null },
        .{ .offset = 0, .value = 0x4c4c_4943, .expected = error.SegmentMagic },
        .{ .offset = 4, .value = 0x4543_4152, .expected = null },
        .{ .offset = 4, .value = 0x4543_4153, .expected = error.SegmentMagic },
        .{ .offset = 12, .value = 0x0000_0002, .expected = error.SegmentVersion },
        .{ .offset = 12, .value = 0x0000_0000, .expected = error.SegmentVersion },
        .{ .offset = 12, .value = 0xffff_0001, .expected = null },
        .{ .offset = 20, .value = 1, .expected = error.SegmentFeature },
        .{ .offset = 20, .value = 0x8000_0000, .expected = error.SegmentFeature },
        .{ .offset = 24, .value = 0xffff_ffff, .expected = null },
        .{ .offset = 16, .value = 1281, .expected = error.SegmentSize },
        .{ .offset = 16, .value = 1408, .expected = null },
        .{ .offset = 16, .value = 2048, .expected = null },
        .{ .offset = 16, .value = 2176, .expected = error.SegmentSize },
        .{ .offset = 16, .value = 0xffff_ff80, .expected = error.SegmentSize },
        .{ .offset = 16, .value = 384, .expected = error.SegmentTable },
        .{ .offset = 16, .value = 512, .expected = error.SegmentChannel },
        .{ .offset = 16, .value = 0, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 0, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 257, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 256, .expected = error.SegmentTable },
        .{ .offset = 28, .value = 0xffff_ffff, .expected = error.SegmentTable },
        .{ .offset = 32, .value = 1025, .expected = error.SegmentTable },
        .{ .offset = 32, .value = 0xffff_ffff, .expected = error.SegmentTable },
        .{ .offset = 32, .value = 0, .expected = null },
        .{ .offset = 36, .value = 0xffff_ffff, .expected = null }, // reserved
        .{ .offset = d + 4, .value = 2, .expected = error.SegmentChannel }, // writer
        .{ .offset = d + 4, .value = 1, .expected = error.SegmentChannel },
        .{ .offset = d + 8, .value = 2, .expected = error.SegmentChannel }, // reader
        .{ .offset = d + 8, .value = 0, .expected = error.SegmentChannel },
        .{ .offset = d + 12, .value = 513, .expected = error.SegmentChannel }, // control_offset
        .{ .offset = d + 12, .value = 384, .expected = error.SegmentChannel },
        .{ .offset = d + 12, .value = 640, .expected = error.SegmentChannel },
        .{ .offset = d + 12, .value = 0xffff_ff80, .expected = error.SegmentChannel },
        .{ .offset = d + 16, .value = 511, .expected = error.SegmentChannel }, // control_size
        .{ .offset = d + 16, .value = 513, .expected = error.SegmentChannel },
        .{ .offset = d + 16, .value = 0xffff_ffff, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 1025, .expected = error.SegmentChannel }, // data_offset
        .{ .offset = d + 20, .value = 1152, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 512, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 384, .expected = error.SegmentChannel },
        .{ .offset = d + 20, .value = 0x8000_0000, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 128, .expected = error.SegmentChannel }, // data_size
        .{ .offset = d + 24, .value = 255, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 0, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 512, .expected = error.SegmentChannel },
        .{ .offset = d + 24, .value = 0x8000_0000, .expected = error.SegmentChannel },
        .{ .offset = d + 28, .value = 0xffff_ffff, .expected = null }, // label
        .{ .offset = d + 32, .value = 8, .expected = error.SegmentChannel }, // start
        .{ .offset = d + 32, .value = 0xffff_fff0, .expected = null },
        .{ .offset = d + 36, .value = 0xffff_ffff, .expected = null }, // reserved
        .{ .offset = d, .value = 0, .expected = null }, // kind: unknown, and left alone
        .{ .offset = d, .value = 0x1234, .expected = null },
    };
    for (rows) |row| {
        var memory: [2048]u8 align(128) = undefined;
        try formatted(&memory);
        poke(&memory, row.offset, u32, row.value);
        errdefer std.debug.print("row: {}\n", .{row});
        if (row.expected) |expected| {
            try expectRefused(expected, &memory);
        } else {
            var storage: [1]Channel = undefined;
            _ = try Segment.attach(&memory, &storage, .none);
        }
    }
}

test "memory of less than 256 bytes is refused before anything is read" {
    var memory: [256]u8 align(128) = @splat(0);
    try expectRefused(error.SegmentSize, memory[0..255]);
    try expectRefused(error.SegmentUnready, &memory);
}

test "checks come in the order of the table" {
    var memory: [2048]u8 align(128) = undefined;
    try formatted(&memory);
    // All fields are wrong at once; making one of them right shows the next fault.
    poke(&memory, 8, u32, 7);
    poke(&memory, 0, u32, 0);
    poke(&memory, 12, u16, 2);
    poke(&memory, 20, u32, 1);
    poke(&memory, 16, u32, 77);
    poke(&memory, 28, u32, 0);
    poke(&memory, descriptor + 4, u32, 9);
    try expectRefused(error.SegmentMagic, &memory);
    poke(&memory, 8, u32, 1);
    try expectRefused(error.SegmentUnready, &memory);
    poke(&memory, 8, u32, 2);
    try expectRefused(error.SegmentMagic, &memory);
    memory[0..8].* = "MILLRACE".*;
    try expectRefused(error.SegmentVersion, &memory);
    poke(&memory, 12, u16, 1);
    try expectRefused(error.SegmentFeature, &memory);
    poke(&memory, 20, u32, 0);
    try expectRefused(error.SegmentSize, &memory);
    poke(&memory, 16, u32, 1280);
    try expectRefused(error.SegmentTable, &memory);
    poke(&memory, 28, u32, 2);
    try expectRefused(error.SegmentChannel, &memory);
    poke(&memory, descriptor + 4, u32, 0);
    var storage: [1]Channel = undefined;
    _ = try Segment.attach(&memory, &storage, .none);
}

test "areas of two channels must not overlap, areas of nothing may" {
    var memory: [4096]u8 align(128) = undefined;
    try millrace.Port.format(&memory, .{ .capacities = .{ 256, 256 } });
    var storage: [2]Channel = undefined;
    const second = 384 + 64;
    const place = (try Segment.attach(&memory, &storage, .none)).channels[1];
    poke(&memory, second + 20, u32, 1024); // the byte area of the first ring
    try expectRefused(error.SegmentChannel, &memory);
    poke(&memory, second + 20, u32, place.data_offset);
    poke(&memory, second + 12, u32, 512); // the control area of the first ring
    try expectRefused(error.SegmentChannel, &memory);
    // A channel of an unknown kind with areas of 0 bytes at the same place is accepted.
    poke(&memory, second, u32, 99);
    poke(&memory, second + 16, u32, 0);
    _ = try Segment.attach(&memory, &storage, .none);
    poke(&memory, second + 16, u32, 1);
    try expectRefused(error.SegmentChannel, &memory);
}

test "attach refuses more channels than it was given storage for" {
    var memory: [4096]u8 align(128) = undefined;
    try millrace.Port.format(&memory, .{ .capacities = .{ 256, 256 } });
    var storage: [1]Channel = undefined;
    try testing.expectError(error.ChannelStorage, Segment.attach(&memory, &storage, .none));
}

test "an endpoint must exist and be vacant" {
    var memory: [2048]u8 align(128) = undefined;
    try formatted(&memory);
    var storage: [1]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork };
    const Endpoint = millrace.Endpoint;
    try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 2, options));
    for ([_]u32{ 1, 2, 3, 4, 0x103, 0xffff_ffff }) |state| {
        poke(&memory, 128 + 4, u32, state);
        const before = memory;
        try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 0, options));
        try testing.expectEqualSlices(u8, &before, &memory);
    }
    // [segment.state_low] Vacant, whatever the upper bits are.
    poke(&memory, 128 + 4, u32, 0xabcd_ef00);
    var endpoint = try Endpoint.attach(&segment, 0, options);
    try testing.expectEqual(0xabcd_ef01, segment.record(0).state);
    try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 0, options));
    endpoint.close();
    try testing.expectError(error.SegmentEndpoint, Endpoint.attach(&segment, 0, options));
}

test "an endpoint that somebody else takes first is rung, and not written to [segment.attach]" {
    for ([_]u32{ 1, 2, 3, 0x100 }) |found| {
        var memory: [2048]u8 align(128) = undefined;
        try formatted(&memory);
        var storage: [1]Channel = undefined;
        const segment = try Segment.attach(&memory, &storage, .none);
        const record = segment.record(0);
        record.wakes = 1;
        record.agent = 5;
        record.state = found;
        // The word was loaded as vacant.
        const taken = segment.takeLoaded(0, 0, &fixture.clockwork);
        try testing.expectError(error.SegmentEndpoint, taken);
        const words = [_]u32{ record.state, record.wakes, record.agent, record.bell };
        try testing.expectEqual([_]u32{ found, 1, 5, 1 }, words);
        try testing.expectEqual(1, segment.record(1).bell);
    }
}

test "an endpoint is attached before it states what it rings, and then rings [segment.attach]" {
    const Seen = struct {
        var record: *segment_record.Record = undefined;
        var rung: [2]u32 = undefined;
        fn notify(_: *const u32) void {
            rung = .{ record.state, record.wakes };
        }
    };
    var host = fixture.clockwork;
    host.notify = Seen.notify;
    var memory: [2048]u8 align(128) = undefined;
    try formatted(&memory);
    var storage: [1]Channel = undefined;
    const segment = try Segment.attach(&memory, &storage, .none);
    Seen.record = segment.record(0);
    _ = try millrace.Endpoint.attach(&segment, 0, .{ .host = &host });
    try testing.expectEqual([_]u32{ 1, layout.wake_mechanism_futex }, Seen.rung);
}

test "create formats blank memory, and attaches where the geometry is the same" {
    var memory: [2048]u8 align(128) = @splat(0);
    const channels = fixture.pipeGeometry(256, 32);
    var storage: [1]Channel = undefined;
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    for (0..2) |_| _ = try Segment.create(&memory, geometry, &storage, .none);
    inline for (.{ "data_size", "label", "start" }) |field| {
        var other = channels;
        const more: u32 = if (std.mem.eql(u8, field, "data_size")) 256 else 16;
        @field(other[0], field) += more;
        const refused = Segment.create(&memory, .{
            .endpoint_count = 2,
            .channels = &other,
        }, &storage, .none);
        try testing.expectError(error.SegmentGeometry, refused);
    }
    const wider = Segment.create(&memory, .{
        .endpoint_count = 3,
        .channels = &channels,
    }, &storage, .none);
    try testing.expectError(error.SegmentGeometry, wider);
    const fewer = Segment.create(&memory, .{
        .endpoint_count = 2,
        .channels = &.{},
    }, &storage, .none);
    try testing.expectError(error.SegmentGeometry, fewer);
}

test "create finds another geometry with more channels than it has storage for" {
    var memory: [4096]u8 align(128) = undefined;
    try millrace.Port.format(&memory, .{ .capacities = .{ 256, 256 } });
    const channels = fixture.pipeGeometry(256, 0);
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    var storage: [1]Channel = undefined;
    const other = Segment.create(&memory, geometry, &storage, .none);
    try testing.expectError(error.SegmentGeometry, other);
    // [segment.check] The segment's own faults come first.
    poke(&memory, descriptor + 64 + 24, u32, 300);
    const broken = Segment.create(&memory, geometry, &storage, .none);
    try testing.expectError(error.SegmentChannel, broken);
}

test "create refuses a geometry that is larger than the memory or than any segment" {
    var memory: [1280]u8 align(128) = @splat(0);
    const fits = fixture.pipeGeometry(256, 0);
    var storage: [1]Channel = undefined;
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &fits };
    const small = Segment.create(memory[0..1279], geometry, &storage, .none);
    try testing.expectError(error.SegmentSize, small);
    // [segment.claim_checked]
    try testing.expectEqual(0, std.mem.readInt(u32, memory[8..12], .little));
    _ = try Segment.create(&memory, geometry, &storage, .none);

    const channel: Channel = .{ .writer = 0, .reader = 1, .data_size = 1 << 30 };
    var channels: [4]Channel = @splat(channel);
    try testing.expectError(error.SegmentSize, millrace.segmentSize(.{
        .endpoint_count = 2,
        .channels = &channels,
    }));
    channels[3].data_size = 1 << 29;
    _ = try millrace.segmentSize(.{ .endpoint_count = 2, .channels = &channels });
}

test "attach waits for whoever formats, and gives up at its deadline" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var memory: [2048]u8 align(128) = @splat(0);
    var storage: [1]Channel = undefined;
    try testing.expectError(error.SegmentUnready, Segment.attach(&memory, &storage, .ms(20)));
    const late = struct {
        fn format(target: *align(128) [2048]u8) void {
            millrace.Host.native.pause(20_000_000);
            const channels = fixture.pipeGeometry(256, 0);
            Segment.format(target, .{ .endpoint_count = 2, .channels = &channels }) catch {};
        }
    };
    const thread = try std.Thread.spawn(.{}, late.format, .{&memory});
    defer thread.join();
    _ = try Segment.attach(&memory, &storage, .ms(10_000));
}

test "the largest segment attaches: 256 endpoints, 1,024 channels" {
    const gpa = testing.allocator;
    const channels = try gpa.alloc(Channel, layout.channel_count_max);
    defer gpa.free(channels);
    for (channels, 0..) |*channel, index| channel.* = .{
        .writer = @intCast(index % 256),
        .reader = @intCast((index + 1) % 256),
        .data_size = 256,
    };
    const geometry: millrace.Geometry = .{ .endpoint_count = 256, .channels = channels };
    const size = try millrace.segmentSize(geometry);
    const memory = try gpa.alignedAlloc(u8, comptime .fromByteUnits(128), size);
    defer gpa.free(memory);
    try Segment.format(memory, geometry);
    const storage = try gpa.alloc(Channel, layout.channel_count_max);
    defer gpa.free(storage);
    const segment = try Segment.attach(memory, storage, .none);
    try testing.expectEqual(2, segment.peersOf(7).count());
}
