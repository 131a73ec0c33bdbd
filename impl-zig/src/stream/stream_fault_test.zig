//! Streams whose transport the test controls: which faults are found, and how a stream ends.
//! Nothing here waits in real time.

const std = @import("std");
const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const layout = millrace.layout;
const Bench = fixture.Bench;
const Wire = fixture.Wire;

const own_preface = fixture.prefaceOf(128, 256);

/// What one frame after "hi" must lead to, and what this side then writes.
const Fault = struct { header: Header, fill: u8 = 0, reason: millrace.Reason };
const Header = @import("../ring/frame.zig").Header;

test "Stream: each fault of a frame that arrives marks the peer and is told" {
    const whole = layout.frame_flag_first | layout.frame_flag_last;
    const data = layout.frame_kind_data;
    const credit = layout.stream_kind_credit;
    const batch = layout.codec_json_batch;
    for ([_]Fault{
        .{ .header = .{ .size = 0, .kind = 0, .flags = whole }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = layout.frame_kind_pad }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = 19 }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = 127 }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = credit, .reserved = 1 }, .reason = .frame_reserved },
        .{ .header = .{ .size = 0, .kind = credit, .flags = 2 }, .reason = .frame_flags },
        .{ .header = .{ .size = 1, .kind = credit }, .reason = .frame_size },
        .{ .header = .{ .size = 0, .kind = data, .flags = 4 }, .reason = .frame_flags },
        .{
            .header = .{ .size = 9, .kind = data, .flags = 1, .codec = batch },
            .reason = .frame_flags,
        },
        .{ .header = .{ .size = 113, .kind = data, .flags = whole }, .reason = .frame_size },
        .{ .header = .{ .size = 0xffff_ffff, .kind = 200 }, .reason = .frame_size },
        .{
            .header = .{ .size = 3, .kind = data, .flags = whole },
            .fill = 1,
            .reason = .frame_reserved,
        },
        .{ .header = .{ .size = 0, .kind = credit, .tag = 0xffff_ff08 }, .reason = .stream_credit },
        .{ .header = .{ .size = 0, .kind = credit, .tag = 0xffff_ff10 }, .reason = .stream_credit },
        .{ .header = .{ .size = 0, .kind = credit, .tag = 0xffff_fef0 }, .reason = .stream_credit },
    }) |fault| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var places: [2][64]u8 = undefined;
        var bytes: [32]u8 = @splat(0);
        var header: [16]u8 align(16) = undefined;
        fault.header.store(&header);
        bytes[0..16].* = header;
        bytes[16 + 8] = fault.fill;
        const size: usize = if (fault.header.size == 3) 32 else 16;
        bench.bring(128, 256, &.{ fixture.message(&places[0], "hi", 5), bytes[0..size] });
        var storage: [128]u8 = undefined;
        try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
        for (0..2) |_| {
            try testing.expectError(error.PeerFailed, port.tryRead(&storage));
            try testing.expectEqual(fault.reason, port.reason());
            try testing.expectError(error.PeerFailed, port.tryWrite("no", .{}));
        }
        const told = fixture.failOf(&places[1], fault.reason);
        try bench.expectSent(&.{ &own_preface, told });
        try testing.expect(bench.output.ended);
    }
}

test "Stream: each fault of a preface marks the peer and is told" {
    const Case = struct { at: usize, byte: u8, reason: millrace.Reason };
    for ([_]Case{
        .{ .at = 7, .byte = 0x0d, .reason = .stream_magic },
        .{ .at = 8, .byte = 2, .reason = .stream_version },
        .{ .at = 20, .byte = 1, .reason = .stream_feature },
        .{ .at = 12, .byte = 0x70, .reason = .stream_preface },
        .{ .at = 12, .byte = 0x88, .reason = .stream_preface },
        .{ .at = 16, .byte = 0x08, .reason = .stream_preface },
        .{ .at = 17, .byte = 0, .reason = .stream_preface },
        .{ .at = 19, .byte = 0x41, .reason = .stream_preface },
    }) |case| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var bytes = fixture.prefaceOf(128, 256);
        bytes[case.at] = case.byte;
        // The magic is checked as soon as its eight bytes have arrived.
        bench.input.putAll(if (case.reason == .stream_magic) bytes[0..8] else &bytes);
        var storage: [8]u8 = undefined;
        try testing.expectError(error.PeerFailed, port.tryRead(&storage));
        try testing.expectEqual(case.reason, port.reason());
        var place: [16]u8 = undefined;
        const told = fixture.failOf(&place, case.reason);
        try bench.expectSent(&.{ &own_preface, told });
    }
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var bytes = fixture.prefaceOf(128, 256);
    // Bytes that nobody checks.
    bytes[10] = 9;
    bytes[24] = 9;
    bytes[28] = 9;
    var place: [64]u8 = undefined;
    bench.input.putAll(&bytes);
    bench.input.putAll(fixture.message(&place, "hi", 5));
    var storage: [8]u8 = undefined;
    try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
}

test "Stream: the window is filled to its last byte, and not beyond" {
    const half: [112]u8 = @splat(1);
    for ([_]bool{ false, true }) |exceeds| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var places: [3][128]u8 = undefined;
        const message = fixture.message(&places[0], &half, 0);
        const last = if (exceeds)
            fixture.control(&places[1], 200, 0) // an extension frame, which nobody reads
        else
            fixture.control(&places[1], layout.frame_kind_end, 0);
        bench.bring(128, 256, &.{ message, message, last });
        var storage: [128]u8 = undefined;
        for (0..2) |_| _ = (try port.tryRead(&storage)).?;
        if (exceeds) {
            try testing.expectError(error.PeerFailed, port.tryRead(&storage));
            try testing.expectEqual(.stream_credit, port.reason());
        } else {
            try testing.expectEqual(null, try port.tryRead(&storage));
            try testing.expect(port.ended());
        }
    }
}

test "Stream: extension frames behind `end` are given back, for ever" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var places: [2][128]u8 = undefined;
    const end = fixture.control(&places[0], layout.frame_kind_end, 0);
    bench.bring(128, 256, &.{ fixture.message(&places[1], "hi", 0), end });
    const header: Header = .{ .size = 100, .kind = 255, .flags = 9 };
    const extension = fixture.frameOf(&places[1], header, &@as([100]u8, @splat(7)));
    bench.input.putAll(extension);
    var storage: [128]u8 = undefined;
    try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
    for (0..20) |_| {
        bench.side.stream.pump();
        try testing.expectEqual(null, try port.tryRead(&storage));
        bench.side.stream.pump();
        bench.input.putAll(extension);
    }
    try testing.expect(port.ended());
    try testing.expect(bench.output.size > 5 * 16);
    bench.input.putAll(end);
    bench.side.stream.pump();
    var place: [16]u8 = undefined;
    const told = fixture.failOf(&place, .frame_sequence);
    try testing.expectEqualSlices(u8, told, bench.output.held()[bench.output.size - 16 ..]);
    // The stream has ended, as its reader was told.
    try testing.expectEqual(null, try port.tryRead(&storage));
}

test "Stream: a fault that shows when a frame is read is told as well" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var places: [2][64]u8 = undefined;
    const first: Header = .{ .size = 20, .kind = 1, .flags = 1 };
    var payload: [20]u8 = @splat(0);
    payload[0] = 5;
    payload[8] = 1; // reserved bytes of the preamble
    bench.bring(128, 256, &.{fixture.frameOf(&places[0], first, &payload)});
    var storage: [64]u8 = undefined;
    try testing.expectError(error.Corrupt, port.tryRead(&storage));
    try testing.expect(bench.output.ended);
    const told = fixture.failOf(&places[1], .frame_reserved);
    try bench.expectSent(&.{ &own_preface, told });
    try testing.expect(bench.output.ended);
    try testing.expectError(error.Corrupt, port.tryRead(&storage));
}

test "Stream: what came before a `close`, a `fail` or the end of the bytes is read first" {
    const Case = struct { kind: ?u8, tag: u32 = 0, end: anyerror, reason: ?u32 };
    const close, const fail = .{ layout.stream_kind_close, layout.stream_kind_fail };
    const lost = @backingInt(millrace.Reason.peer_lost);
    for ([_]Case{
        .{ .kind = close, .tag = 9, .end = error.PeerClosed, .reason = null },
        .{ .kind = fail, .tag = 33, .end = error.PipeFailed, .reason = 33 },
        .{ .kind = fail, .tag = 0xff_fff0, .end = error.PipeFailed, .reason = 0xff_fff0 },
        // No reason code has more than 24 bits.
        .{ .kind = fail, .tag = 0x100_0001, .end = error.PipeFailed, .reason = null },
        .{ .kind = null, .end = error.PeerFailed, .reason = lost },
    }) |case| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var places: [2][64]u8 = undefined;
        bench.bring(128, 256, &.{fixture.message(&places[0], "hi", 5)});
        if (case.kind) |kind| {
            bench.input.putAll(fixture.control(&places[1], kind, case.tag));
            bench.input.putAll("whatever stands behind it");
        } else {
            bench.input.putAll(fixture.message(&places[1], "cut", 5)[0..31]);
            bench.input.ended = true;
        }
        for (0..2) |_| bench.side.stream.pump();
        try testing.expectError(case.end, port.tryWrite("no", .{}));
        var storage: [64]u8 = undefined;
        try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
        for (0..2) |_| {
            try testing.expectError(case.end, port.tryRead(&storage));
            const found = if (port.reason()) |reason| @backingInt(reason) else null;
            try testing.expectEqual(case.reason, found);
        }
        try testing.expect(bench.output.ended);
        try bench.expectSent(&.{&own_preface});
        try testing.expect(!port.vacate());
        // There is nobody left to wait for.
        try testing.expect(bench.side.stream.finish(.none));
    }
}

test "Stream: whoever has closed goes on for 2 s, or until the peer has ended" {
    for ([_]bool{ false, true }) |ends| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.bring(128, 256, &.{});
        const half: [112]u8 = @splat(1);
        for (0..2) |_| try testing.expect(try port.tryWrite(&half, .{}));
        bench.output.capacity = 0;
        port.close();
        var places: [2][128]u8 = undefined;
        const message = fixture.message(&places[0], &half, 0);
        // What arrives is dropped, and what is left to send goes out.
        bench.input.putAll(message);
        try testing.expect(!bench.side.stream.finish(.ms(1000)));
        bench.output.capacity = Wire.wire_size;
        const close = fixture.control(&places[1], layout.stream_kind_close, 0);
        try testing.expect(!bench.side.stream.finish(.none));
        bench.side.stream.pump();
        const last = bench.output.held()[bench.output.size - 144 ..];
        try testing.expectEqualSlices(u8, message, last[0..128]);
        try testing.expectEqualSlices(u8, close, last[128..]);
        try testing.expect(bench.output.ended);
        const before_ns = fixture.now();
        bench.input.ended = ends;
        bench.side.stream.deinit();
        try testing.expect(bench.side.closed);
        const waited_ns = fixture.now() - before_ns;
        try testing.expect(waited_ns >= @as(u64, if (ends) 0 else 990_000_000));
        try testing.expect(waited_ns <= @as(u64, if (ends) 0 else 1_100_000_000));
    }
}

test "Stream: a close comes behind what was accepted for credit that comes later" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 128, .window = 256, .queue = 1024 });
    bench.bring(128, 128, &.{});
    const many: [120]u8 = @splat(3);
    try testing.expect(try port.tryWrite(&many, .{}));
    port.close();
    bench.output.size = 0;
    bench.side.stream.pump();
    try testing.expectEqual(0, bench.output.size);
    var place: [16]u8 = undefined;
    bench.input.putAll(fixture.control(&place, layout.stream_kind_credit, 0xffff_ff80));
    bench.side.stream.pump();
    try testing.expect(bench.output.ended);
    const close = fixture.control(&place, layout.stream_kind_close, 0);
    try testing.expectEqualSlices(u8, close, bench.output.held()[bench.output.size - 16 ..]);
    try testing.expect(bench.output.size > 16);
}

test "Stream: whoever cannot write any more reads on, and takes what it finds" {
    const Case = enum { closes, silent, ends };
    for ([_]Case{ .closes, .silent, .ends }) |case| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.bring(128, 256, &.{});
        bench.output.broken = true;
        try testing.expect(try port.tryWrite("lost", .{}));
        var places: [2][64]u8 = undefined;
        bench.input.putAll(fixture.message(&places[0], "hi", 5));
        var storage: [64]u8 = undefined;
        try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
        switch (case) {
            .closes => bench.input.putAll(fixture.control(&places[1], layout.stream_kind_close, 0)),
            .silent => {},
            .ends => bench.input.ended = true,
        }
        const before_ns = fixture.now();
        const found = port.read(&storage, .ms(10_000));
        const waited_ns = fixture.now() - before_ns;
        if (case == .closes) {
            try testing.expectError(error.PeerClosed, found);
        } else {
            try testing.expectError(error.PeerFailed, found);
            try testing.expectEqual(.peer_lost, port.reason());
        }
        try testing.expect(waited_ns >= @as(u64, if (case == .silent) 2_000_000_000 else 0));
        try testing.expect(waited_ns <= @as(u64, if (case == .silent) 2_100_000_000 else 0));
        try testing.expect(bench.side.stream.finish(.none));
    }
}
