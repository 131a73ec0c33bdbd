//! Channels of kinds that this version does not know: which endpoints may be at their ends, and
//! which endpoints are peers because of them.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("fixture.zig");
const testing = std.testing;
const layout = millrace.layout;
const Channel = millrace.Channel;
const Segment = millrace.Segment;

const nobody = layout.endpoint_none;
const unknown: layout.ChannelKind = @fromBackingInt(99);

fn other(writer: u32, reader: u32) Channel {
    return .{
        .kind = unknown,
        .writer = writer,
        .reader = reader,
        .control_size = 128,
        .data_size = 64,
    };
}

const pipe_ring: Channel = .{ .writer = 0, .reader = 1, .data_size = 256 };

test "a channel of an unknown kind may have any ends, a ring may not [segment.unknown_kind]" {
    var memory: [4096]u8 align(128) = undefined;
    var storage: [2]Channel = undefined;
    for ([_]layout.ChannelKind{ unknown, .property, @fromBackingInt(0), .ring }) |kind| {
        for ([_][2]u32{
            .{ nobody, nobody }, .{ nobody, 0 }, .{ 1, nobody }, .{ 2, 3 },
            .{ 0, 0 },           .{ 0, 2 },      .{ 256, 1 },    .{ 0, 0xffff_fffe },
        }) |ends| {
            try Segment.format(&memory, .{
                .endpoint_count = 2,
                .channels = &.{ pipe_ring, other(ends[0], ends[1]) },
            });
            const segment: Segment = try .attach(&memory, &storage, .none);
            try testing.expectEqual(ends, [_]u32{ storage[1].writer, storage[1].reader });
            try testing.expect(segment.peersOf(0).isSet(1));
            const descriptor = 128 + 2 * 128 + 64;
            std.mem.writeInt(u32, memory[descriptor..][0..4], @backingInt(kind), .little);
            const found = Segment.attach(&memory, &storage, .none);
            if (kind == .ring) {
                try testing.expectError(error.SegmentChannel, found);
            } else _ = try found;
        }
    }
}

test "the peers of an endpoint are the others at the ends of all its channels [segment.peers]" {
    var memory: [8192]u8 align(128) = undefined;
    const channels = [_]Channel{
        pipe_ring,
        other(2, 0),
        other(3, nobody),
        other(0, 0),
        other(nobody, 0),
        other(0, 5),
        other(4, 1),
        other(0, 256),
    };
    try Segment.format(&memory, .{ .endpoint_count = 5, .channels = &channels });
    var storage: [channels.len]Channel = undefined;
    const segment: Segment = try .attach(&memory, &storage, .none);
    const expected = [_][]const usize{ &.{ 1, 2 }, &.{ 0, 4 }, &.{0}, &.{}, &.{1} };
    for (expected, 0..) |peers, index| {
        const found = segment.peersOf(@intCast(index));
        try testing.expectEqual(peers.len, found.count());
        for (peers) |peer| try testing.expect(found.isSet(peer));
    }
    // All of them are rung, and no others.
    _ = try millrace.Endpoint.attach(&segment, 0, .{ .host = &fixture.clockwork });
    for ([_]u32{ 1, 1, 1, 0, 0 }, 0..) |bell, index| {
        try testing.expectEqual(bell, segment.record(@intCast(index)).bell);
    }
}

test "whoever rings sets a bit: its own for a cursor, the endpoint's for a state [wait.rung]" {
    const count = 100;
    var memory: [16384]u8 align(128) = @splat(0);
    const channels = [_]Channel{.{ .writer = 33, .reader = 98, .data_size = 256 }};
    try Segment.format(&memory, .{ .endpoint_count = count, .channels = &channels });
    var storage: [1]Channel = undefined;
    const segment: Segment = try .attach(&memory, &storage, .none);
    const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
    var endpoints: [2]millrace.Endpoint = undefined;
    endpoints[0] = try .attach(&segment, 33, options);
    try expectRung(&segment, 33, &.{33});
    try expectRung(&segment, 98, &.{33});
    endpoints[1] = try .attach(&segment, 98, options);
    try expectRung(&segment, 98, &.{98});
    try expectRung(&segment, 33, &.{98});
    var writer: millrace.Writer = try .init(&endpoints[0], &segment, 0);
    var reader: millrace.Reader = try .init(&endpoints[1], &segment, 0);
    try writer.write("a", .{}, .none);
    try expectRung(&segment, 98, &.{}); // nobody has asked
    @atomicStore(u32, &writer.ring.control.reader_wants, 1, .seq_cst);
    try writer.write("a", .{}, .none);
    try expectRung(&segment, 98, &.{33});
    @atomicStore(u32, &writer.ring.control.writer_wants, 1, .seq_cst);
    var place: [1]u8 = undefined;
    for (0..2) |_| _ = try reader.tryRead(&place);
    try expectRung(&segment, 33, &.{98});
    // Marked failed by its peer and by a supervisor.
    reader.ring.peer.fail(&endpoints[1], .ring_cursor);
    for ([_]u32{ 33, 98 }) |index| try expectRung(&segment, index, &.{33});
    segment.fail(segment.ownerOf(98), .peer_lost, &fixture.clockwork);
    for ([_]u32{ 33, 98 }) |index| try expectRung(&segment, index, &.{98});
    endpoints[1].close();
    for ([_]u32{ 33, 98 }) |index| try expectRung(&segment, index, &.{98});
}

/// Takes the bits out of the record, and compares them.
fn expectRung(segment: *const Segment, index: u32, expected: []const u32) !void {
    for (&segment.record(index).rung, 0..) |*word, number| {
        var bits: u32 = 0;
        for (expected) |whose| {
            if (whose / 32 == number) bits |= @as(u32, 1) << @intCast(whose % 32);
        }
        try testing.expectEqual(bits, @atomicRmw(u32, word, .Xchg, 0, .seq_cst));
    }
}

test "a creator compares the sizes of control areas too [segment.same_geometry]" {
    var memory: [4096]u8 align(128) = @splat(0);
    var channels = [_]Channel{ pipe_ring, other(0, 1) };
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    var storage: [2]Channel = undefined;
    for (0..2) |_| _ = try Segment.create(&memory, geometry, &storage, .none);
    channels[1].control_size += 16;
    const refused = Segment.create(&memory, geometry, &storage, .none);
    try testing.expectError(error.SegmentGeometry, refused);
}

test "a creator writes 0 in every word of a record [segment.write]" {
    var memory: [2048]u8 align(128) = @splat(0xff);
    const channels = fixture.pipeGeometry(256, 0);
    try Segment.format(&memory, .{ .endpoint_count = 2, .channels = &channels });
    for (memory[128..384]) |byte| try testing.expectEqual(0, byte);
}
