//! What a message carries besides its payload, through the calls from C: its kind, codec and tag.

const std = @import("std");
const arguments = @import("arguments.zig");
const fixture = @import("fixture.zig");
const layout = @import("../memory/layout.zig");
const ports = @import("port.zig");
const segments = @import("segment.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const kinds = [_]u32{
    @backingInt(layout.FrameKind.data),
    @backingInt(layout.FrameKind.call),
    @backingInt(layout.FrameKind.@"return"),
    @backingInt(layout.FrameKind.throw),
};
const codecs = [_]u32{
    @backingInt(layout.Codec.bytes),
    @backingInt(layout.Codec.text),
    @backingInt(layout.Codec.json),
    @backingInt(layout.Codec.json_batch),
    layout.codec_application_min,
    255,
};

fn writeKind(port: *anyopaque, kind: u32, codec: u32, tag: u32) arguments.Status {
    return ports.millrace_port_write_kind(port, kind, "[1]", 3, codec, tag, 0);
}

test "c_abi: kind, codec and tag arrive as they were written, read and lent" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    const reader = pair.side(1);
    try expectStatus(1, ports.millrace_port_set_calls(reader, 1));
    var tag: u32 = 0xffff_fff0;
    for (kinds) |kind| for (codecs) |codec| for ([_]bool{ false, true }) |lend| {
        tag +%= 1;
        try expectStatus(1, writeKind(pair.side(0), kind, codec, tag));
        var storage: [8]u8 = undefined;
        var message: ports.Message = undefined;
        try expectStatus(1, if (lend)
            ports.millrace_port_peek(reader, 0, &message)
        else
            ports.millrace_port_read(reader, &storage, storage.len, 0, &message));
        try testing.expectEqual(kind, message.kind);
        try testing.expectEqual(codec, message.codec);
        try testing.expectEqual(tag, message.tag);
        const payload: [*]const u8 = @ptrCast(message.payload.?);
        try testing.expectEqualStrings("[1]", payload[0..message.size]);
        if (lend) try expectStatus(1, ports.millrace_port_release(reader));
    };
}

test "c_abi: a port that does not read calls drops them, each once" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    var storage: [8]u8 = undefined;
    var message: ports.Message = undefined;
    const read = ports.millrace_port_read;
    // By default, and after calls were turned off again.
    for (0..2) |_| {
        for (kinds[1..]) |kind| try expectStatus(1, writeKind(pair.side(0), kind, 0, 7));
        try expectStatus(1, writeKind(pair.side(0), kinds[0], 0, 8));
        const dropped = reasonStatus(.message_kind);
        for (kinds[1..]) |_| {
            try expectStatus(dropped, read(pair.side(1), &storage, storage.len, 0, &message));
        }
        try expectStatus(1, read(pair.side(1), &storage, storage.len, 0, &message));
        try testing.expectEqual(8, message.tag);
        try expectStatus(1, ports.millrace_port_set_calls(pair.side(1), 1));
        try expectStatus(1, ports.millrace_port_set_calls(pair.side(1), 0));
    }
}

test "c_abi: kinds that are no messages are refused, and what cannot be set" {
    var pair: Pair = .{};
    try pair.open();
    defer pair.leave();
    const bad = [_]u32{ 0, 2, 6, 7, 128, 255, 256, 257, std.math.maxInt(u32) };
    for (bad) |kind| try expectStatus(-256, writeKind(pair.side(0), kind, 0, 0));
    try expectStatus(-256, writeKind(pair.side(0), kinds[1], 256, 0));
    try expectStatus(-256, ports.millrace_port_set_calls(null, 1));
    var storage: [8]u8 = undefined;
    var message: ports.Message = undefined;
    const read = ports.millrace_port_read;
    try expectStatus(0, read(pair.side(1), &storage, storage.len, 0, &message));

    // A port that only writes cannot read calls.
    var memory: [4096]u8 align(128) = @splat(0);
    var objects: [2]Storage align(8) = @splat(@splat(0));
    const one: [1]segments.Ring = .{.{ .writer = 0, .reader = 1, .capacity = 256 }};
    const create = segments.millrace_segment_create;
    try expectStatus(1, create(&objects[0], &memory, memory.len, 2, &one, 1, 0));
    try expectStatus(1, ports.millrace_port_attach_writer(&objects[1], &objects[0], 0, 0));
    try expectStatus(-256, ports.millrace_port_set_calls(&objects[1], 1));
    try expectStatus(1, writeKind(&objects[1], kinds[3], 0, 0));
    try expectStatus(1, ports.millrace_port_leave(&objects[1]));
    try expectStatus(1, segments.millrace_segment_leave(&objects[0]));
}
