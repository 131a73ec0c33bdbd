//! Which files a creator uses, which it replaces, and which it refuses [spec/file.md].

const std = @import("std");
const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const system = @import("files.zig");
const testing = std.testing;
const Directory = fixture.Directory;
const End = fixture.End;
const createError = fixture.createError;

test "a segment without a lock is replaced, and so is an empty file [segment.file_left]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const Left = enum { nothing, closed, dead, one_dead, empty, broken };
    for (std.enums.values(Left)) |left| {
        var ends: [2]End = undefined;
        switch (left) {
            .nothing => {},
            .closed, .dead, .one_dead => {
                for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
                for (&ends, 0..) |*end, index| {
                    if (left == .dead or (left == .one_dead and index == 1)) {
                        end.die();
                    } else end.close();
                }
            },
            .empty => try directory.write("port", ""),
            .broken => try directory.write("port", "MILLRACE" ++ "garbage"),
        }
        for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
        try testing.expectEqual(1, try directory.count());
        try ends[0].port.write("new", .{}, .none);
        try ends[1].expectMessage("new", .none);
        for (&ends) |*end| end.close();
    }
}

test "a file that was never a segment is refused, and stays [segment.file_left]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const zeros: [5000]u8 = @splat(0);
    for ([_][]const u8{ "M", "MILLRAC", "MILLRACXkey", "a key", &zeros }) |held| {
        try directory.write("port", held);
        try testing.expectError(error.SegmentFile, createError(path, 0));
        try testing.expectEqual(1, try directory.count());
    }
}

test "a creator replaces what is left over, whoever still has it [segment.file_left]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const Gone = enum { closed, left, dead };
    for (std.enums.values(Gone)) |gone| {
        var old: [2]End = undefined;
        try old[0].create(path, 0, .none);
        try old[1].open(path, 1);
        try old[0].port.write("last", .{}, .none);
        switch (gone) {
            .closed => old[0].port.close(), // and keeps its record locked
            .left => old[0].close(),
            .dead => old[0].die(),
        }
        // A process that is there keeps its place; the other places are free.
        try testing.expectError(error.SegmentEndpoint, createError(path, 1));
        var ends: [2]End = undefined;
        for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
        try testing.expectEqual(1, try directory.count());
        try ends[0].port.write("new", .{}, .none);
        try ends[1].expectMessage("new", .none);
        // The client of the old file reads to the end, and finds that its peer is gone.
        try old[1].expectMessage("last", .none);
        var bytes: [8]u8 = undefined;
        const lost = old[1].port.read(&bytes, .ms(10_000));
        try testing.expectError(if (gone == .dead) error.PeerFailed else error.PeerClosed, lost);
        old[1].close();
        if (gone == .closed) old[0].file.close();
        for (&ends) |*end| end.close();
    }
}

test "a file in which somebody can meet another is not replaced [segment.file_left]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var ends: [2]End = undefined;
    // Its peer is expected at first, and then there.
    try ends[0].create(path, 0, .none);
    const first = try system.statOf(ends[0].file.handle);
    try testing.expectError(error.SegmentEndpoint, createError(path, 0));
    try ends[1].create(path, 1, .none);
    try testing.expect(first.same(try system.statOf(ends[1].file.handle)));
    for ([_]u32{ 0, 1 }) |index| {
        try testing.expectError(error.SegmentEndpoint, createError(path, index));
    }
    for (&ends) |*end| end.close();
    // An endpoint has no peers but by its channels: one without channels waits for nobody.
    var file: millrace.SegmentFile = undefined;
    var storage: [2]millrace.Channel = undefined;
    var channels = fixture.rings.channels();
    const wider: millrace.Geometry = .{ .endpoint_count = 3, .channels = &channels };
    try file.create(path, wider, 2, &storage, .{});
    try testing.expectError(error.SegmentGeometry, createError(path, 0));
    file.close();
    try createError(path, 0);
}

test "a file of which a record is locked must be a segment [segment.file_left]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    for ([_]struct { []const u8, anyerror }{
        .{ "", error.SegmentSize },
        .{ "MILLRACE", error.SegmentSize },
        .{ "MILLRACE" ++ @as([504]u8, @splat(0)), error.SegmentUnready },
        .{ "MILLRACX" ++ @as([504]u8, @splat(2)), error.SegmentMagic },
    }) |each| {
        try directory.write("port", each[0]);
        const place: system.Place = try .init(path);
        defer place.deinit();
        const handle = try place.openTrusted();
        defer system.close(handle);
        try testing.expect(try system.lock(handle, .{ .offset = 128, .size = 128 }));
        try testing.expectError(each[1], createError(path, 0));
        try testing.expectEqual(1, try directory.count());
    }
}
