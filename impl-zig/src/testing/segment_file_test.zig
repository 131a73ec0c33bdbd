//! Segments in files, within one process: what is made, opened, refused and replaced.

const std = @import("std");
const fixture = @import("../host/fixture.zig");
const millrace = @import("../root.zig");
const system = @import("../host/files.zig");
const testing = std.testing;
const linux = std.os.linux;
const Directory = fixture.Directory;
const End = fixture.End;
const createError = fixture.createError;
const layout = millrace.layout;

fn openError(path: [:0]const u8) !void {
    var end: End = undefined;
    try end.open(path, 1);
    end.close();
}

test "a file of two ends carries messages both ways, and stays when they leave" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var ends: [2]End = undefined;
    try ends[0].create(path, 0, .none);
    try testing.expectEqual(1, try directory.count());
    const stat = try system.statOf(ends[0].file.handle);
    try testing.expectEqual(linux.S.IFREG | 0o600, stat.mode);
    try testing.expectEqual(fixture.rings_size, stat.size);
    try ends[1].open(path, 1);
    try ends[0].port.write("there", .{}, .none);
    try ends[1].expectMessage("there", .none);
    try ends[1].port.write("back", .{}, .none);
    try ends[0].expectMessage("back", .none);
    ends[1].close();
    try testing.expectError(error.PeerClosed, ends[0].port.write("gone", .{}, .none));
    ends[0].close();
    try testing.expectEqual(1, try directory.count());
}

test "whoever creates what is there and in use opens it, with the same geometry" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var ends: [2]End = undefined;
    try ends[1].create(path, 1, .none);
    defer ends[1].close();
    {
        var file: millrace.SegmentFile = undefined;
        var storage: [2]millrace.Channel = undefined;
        var channels = fixture.rings.channels();
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        const refusals: [3]millrace.Geometry = .{
            .{ .endpoint_count = 3, .channels = &channels },
            .{ .endpoint_count = 2, .channels = channels[0..1] },
            .{ .endpoint_count = 2, .channels = &.{ channels[1], channels[0] } },
        };
        for (refusals) |other| {
            const refused = file.create(path, other, 0, &storage, .{});
            try testing.expectError(error.SegmentGeometry, refused);
        }
        const taken = file.create(path, geometry, 1, &storage, .{});
        try testing.expectError(error.SegmentEndpoint, taken);
    }
    try ends[0].create(path, 0, .none);
    defer ends[0].close();
    try ends[0].port.write("found", .{}, .none);
    try ends[1].expectMessage("found", .none);
    try testing.expectEqual(1, try directory.count());
}

test "only the endpoint that is locked can be attached, and once [segment.file_lock]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var end: End = undefined;
    try end.create(path, 0, .none);
    defer end.close();
    const segment = &end.file.segment;
    for ([_]u32{ 0, 1, 2 }) |index| {
        try testing.expectError(error.SegmentEndpoint, end.port.init(segment, index, .{}));
        const attached = millrace.Endpoint.attach(segment, index, .{});
        try testing.expectError(error.SegmentEndpoint, attached);
    }
    // An endpoint that is locked and not attached yet cannot be taken either.
    var file: millrace.SegmentFile = undefined;
    var storages: [2][2]millrace.Channel = undefined;
    try file.open(path, 1, &storages[0], .{});
    var other: millrace.SegmentFile = undefined;
    for ([_]u32{ 0, 1, 2 }) |index| {
        const refused = other.open(path, index, &storages[1], .{});
        try testing.expectError(error.SegmentEndpoint, refused);
    }
    try testing.expectEqual(0, end.state(1));
    file.close();
    try testing.expectEqual(0, end.state(1));
    try openError(path);
    try testing.expectEqual(layout.endpoint_state_closed, end.state(1));
}

test "what others could have put there is neither opened nor replaced [segment.file_own]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    {
        var end: End = undefined;
        try end.create(directory.path("port"), 0, .none);
        end.die();
    }
    _ = linux.symlink("port", directory.path("link"));
    _ = linux.symlink("nothing", directory.path("dangling"));
    _ = linux.mkdir(directory.path("directory"), 0o700);
    _ = linux.mknod(directory.path("fifo"), linux.S.IFIFO | 0o600, 0);
    const names = [_][]const u8{
        "",     "link",        "dangling",     "directory",
        "fifo", "directory/.", "directory/..", "directory/",
    };
    for (names) |name| {
        try testing.expectError(error.SegmentFile, openError(directory.path(name)));
        try testing.expectError(error.SegmentFile, createError(directory.path(name), 0));
    }
    for ([_][:0]const u8{ "/dev/null", "/dev/full", "/", "." }) |path| {
        try testing.expectError(error.SegmentFile, openError(path));
    }
    for ([_]u32{ 0o601, 0o610, 0o604, 0o640, 0o666, 0o602 }) |mode| {
        _ = linux.chmod(directory.path("port"), mode);
        try testing.expectError(error.SegmentFile, openError(directory.path("port")));
        try testing.expectError(error.SegmentFile, createError(directory.path("port"), 0));
    }
    _ = linux.chmod(directory.path("port"), 0o600);
    // Only the administrator of the machine can give a file to another user.
    if (linux.errno(linux.chown(directory.path("port"), 12_345, 0)) == .SUCCESS) {
        try testing.expectError(error.SegmentFile, openError(directory.path("port")));
        try testing.expectError(error.SegmentFile, createError(directory.path("port"), 0));
        _ = linux.chown(directory.path("port"), linux.geteuid(), 0);
    }
    try testing.expectEqual(.segment_file, millrace.reasonOf(error.SegmentFile).?);
    try testing.expectEqual(5, try directory.count());
    try openError(directory.path("port"));
    // Through a directory that is a link, because only the last part of a path is checked.
    _ = linux.symlink(".", directory.path("here"));
    try testing.expectError(error.SegmentEndpoint, openError(directory.path("here/port")));
}

test "what is missing, or has no place, is named [segment.file_missing]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    try directory.write("file", "");
    for ([_][]const u8{ "port", "none/", "none/port", "none/none/port", "file/port" }) |name| {
        try testing.expectError(error.SegmentMissing, openError(directory.path(name)));
    }
    try testing.expectError(error.SegmentMissing, openError(""));
    try testing.expectEqual(.segment_missing, millrace.reasonOf(error.SegmentMissing).?);
    // A creator needs no file, but it needs a directory.
    for ([_][]const u8{ "none/", "none/port", "none/none/port", "file/port" }) |name| {
        try testing.expectError(error.FileNotFound, createError(directory.path(name), 0));
    }
    try testing.expectError(error.FileNotFound, createError("", 0));
    var long: [5000:0]u8 = @splat('a');
    for ([_]u8{ 'a', '/' }) |byte| {
        @memset(&long, byte);
        try testing.expectError(error.NameTooLong, createError(&long, 0));
        try testing.expectError(error.NameTooLong, openError(&long));
    }
    try testing.expectEqual(1, try directory.count());
}

test "a file of any size and content is refused by the segment's own checks" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    var image: [fixture.rings_size]u8 align(128) = @splat(0);
    try millrace.Port.format(&image, fixture.rings);
    const path = directory.path("port");
    for ([_]usize{ 0, 1, 127, 128, 255 }) |size| {
        try directory.write("port", image[0..size]);
        try testing.expectError(error.SegmentSize, openError(path));
    }
    // The file is shorter than the size that the header states.
    try directory.write("port", image[0 .. fixture.rings_size - 1]);
    try testing.expectError(error.SegmentSize, openError(path));
    try directory.write("port", &@as([4096]u8, @splat(0x33)));
    try testing.expectError(error.SegmentMagic, openError(path));
    for ([_]u8{ 0, 1 }) |ready| {
        var unready = image;
        unready[layout.segment_ready_offset] = ready;
        try directory.write("port", &unready);
        try testing.expectError(error.SegmentUnready, openError(path));
    }
    try directory.write("port", &image);
    try openError(path);
}

test "an image with wrong bytes is refused or used, whatever they are" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    var random: std.Random.DefaultPrng = .init(7);
    const source = random.random();
    var image: [fixture.rings_size]u8 align(128) = @splat(0);
    var opened: u32 = 0;
    for (0..1000) |_| {
        try millrace.Port.format(&image, fixture.rings);
        for (0..source.uintLessThan(u32, 4)) |_| {
            image[source.uintLessThan(usize, 512)] = source.int(u8);
        }
        const cut = source.uintLessThan(usize, 8) == 0;
        const size = if (cut) source.uintLessThan(usize, image.len) else image.len;
        try directory.write("port", image[0..size]);
        openError(directory.path("port")) catch continue;
        opened += 1;
    }
    try testing.expect(opened > 100 and opened < 900);
}

test "a file whose header somebody keeps locked costs the time that was given" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    try createError(path, 0);
    const place: system.Place = try .init(path);
    defer place.deinit();
    const handle = try place.openTrusted();
    try testing.expect(try system.lock(handle, .{ .offset = 0, .size = 128 }));
    for ([_]millrace.Timeout{ .none, .ms(3) }) |timeout| {
        var end: End = undefined;
        try testing.expectError(error.Timeout, end.create(path, 0, timeout));
        const opened = end.file.open(path, 1, &end.storage, .{ .timeout = timeout });
        try testing.expectError(error.Timeout, opened);
    }
    try testing.expectEqual(1, try directory.count());
    system.close(handle);
    try createError(path, 0);
}

test "a file system without nameless files gets a secret name, and loses it" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const place: system.Place = try .init(path);
    defer place.deinit();
    for ([_]bool{ true, false }) |expected| {
        const unnamed: system.Unnamed = try .initSecret(place);
        defer system.close(unnamed.handle);
        try testing.expectEqual(0o600, (try system.statOf(unnamed.handle)).mode & 0o777);
        try testing.expectEqual(@as(usize, if (expected) 1 else 2), try directory.count());
        try testing.expectEqual(expected, try unnamed.link(place));
        unnamed.removeSecret(place);
        try testing.expectEqual(1, try directory.count());
    }
}

test "a writer that dies is found by who waits for its property [property.slice]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("property");
    const channels = [_]millrace.Channel{millrace.property.channelOf(0, 64)};
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    var storage: [2][1]millrace.Channel = undefined;
    var files: [2]millrace.SegmentFile = undefined;
    var ends: [2]millrace.Endpoint = undefined;
    for (&files, &ends, 0..) |*file, *end, index| {
        try file.create(path, geometry, @intCast(index), &storage[index], .{ .timeout = .none });
        end.* = try .attach(&file.segment, @intCast(index), .{});
    }
    var writer: millrace.PropertyWriter = undefined;
    try writer.open(&ends[0], &files[0].segment, .{ .channel = 0 });
    var reader: millrace.PropertyReader = try .init(&ends[1], &files[1].segment, .{ .channel = 0 });
    try writer.set("last", .text);
    try testing.expect(try reader.wait(.none));
    var bytes: [64]u8 = undefined;
    try testing.expectEqualStrings("last", (try reader.get(&bytes)).bytes.?);
    system.unmap(files[0].memory);
    system.close(files[0].handle);
    try testing.expectError(error.PeerFailed, reader.wait(.ms(10_000)));
    try testing.expectEqualStrings("last", (try reader.get(&bytes)).bytes.?); // [property.stays]
    ends[1].close();
    files[1].close();
}

test "a peer that is gone is marked at the end of a slice, or on demand [segment.file_dead]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const Way = enum { read, write, short, demand };
    for (std.enums.values(Way)) |way| {
        var ends: [2]End = undefined;
        for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
        var bytes: [64]u8 = undefined;
        // Nobody is gone: neither the end of slices nor a check changes anything.
        if (way == .read) try testing.expectEqual(null, try ends[0].port.read(&bytes, .ms(250)));
        ends[0].port.endpoint.checkPeers();
        try testing.expectEqual(layout.endpoint_state_attached, ends[0].state(1));
        try ends[1].port.write("last", .{}, .none);
        ends[1].die();
        // [pipe.drain] What it has published can be read.
        switch (way) {
            .read, .short, .demand => {
                if (way == .demand) ends[0].port.endpoint.checkPeers();
                try ends[0].expectMessage("last", .none);
                for (0..1000) |_| {
                    const timeout: millrace.Timeout = switch (way) {
                        .demand => .none,
                        .short => .ms(5),
                        .read, .write => .ms(10_000),
                    };
                    const found = ends[0].port.read(&bytes, timeout) catch |err| {
                        try testing.expectEqual(error.PeerFailed, err);
                        break;
                    };
                    try testing.expectEqual(null, found);
                    try testing.expect(way == .short);
                } else return error.NotFound;
            },
            .write => while (true) {
                ends[0].port.write(&bytes, .{}, .ms(10_000)) catch |err| {
                    try testing.expectEqual(error.PeerFailed, err);
                    break;
                };
            },
        }
        try testing.expectEqual(.peer_lost, ends[0].port.reason().?);
        try testing.expectEqual(fixture.lost_word, ends[0].state(1));
        ends[0].close();
    }
}

test "of two that create at once, each finds the other in the same file" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const Side = struct {
        fn run(file_path: [:0]const u8, index: u32, met: *anyerror!void) void {
            met.* = meet(file_path, index);
        }

        fn meet(file_path: [:0]const u8, index: u32) !void {
            const words = [_][]const u8{ "zero", "one" };
            var end: End = undefined;
            try end.create(file_path, index, .ms(5_000));
            defer end.close();
            try end.port.write(words[index], .{}, .none);
            try end.expectMessage(words[1 - index], .ms(5_000));
            // Nobody leaves before the other side has read everything.
            try end.port.end();
            var bytes: [8]u8 = undefined;
            const more = try end.port.read(&bytes, .ms(5_000));
            if (more != null or !end.port.ended()) return error.NotEnded;
        }
    };
    for (0..200) |round| {
        // In every second round, the file stays there.
        if (round % 2 == 0) _ = linux.unlink(path);
        var met: [2]anyerror!void = undefined;
        var threads: [2]std.Thread = undefined;
        for (&threads, &met, 0..) |*thread, *result, index| {
            thread.* = try .spawn(.{}, Side.run, .{ path, @as(u32, @intCast(index)), result });
        }
        for (threads) |thread| thread.join();
        for (met) |result| try result;
        try testing.expectEqual(1, try directory.count());
    }
}

test "of two that create the same endpoint at once, one gets it" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    const Side = struct {
        fn run(end: *End, file_path: [:0]const u8, result: *anyerror!void) void {
            result.* = end.create(file_path, 0, .ms(5_000));
        }
    };
    for (0..200) |round| {
        if (round % 2 == 0) _ = linux.unlink(path);
        var ends: [2]End = undefined;
        var results: [2]anyerror!void = undefined;
        var threads: [2]std.Thread = undefined;
        for (&threads, &ends, &results) |*thread, *end, *result| {
            thread.* = try .spawn(.{}, Side.run, .{ end, path, result });
        }
        for (threads) |thread| thread.join();
        var count: u32 = 0;
        for (&ends, results) |*end, result| {
            if (result) |_| {
                count += 1;
                end.close();
            } else |err| try testing.expectEqual(error.SegmentEndpoint, err);
        }
        try testing.expectEqual(1, count);
        try testing.expectEqual(1, try directory.count());
    }
}

// Which files a creator uses, which it replaces, and which it refuses [spec/file.md].

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

// Segments in sealed memory: what is made, by which path it is opened, and what else such a path
// may lead to [spec/file.md].

const SegmentFile = millrace.SegmentFile;

const Path = [SegmentFile.handed_path_size]u8;

test "sealed memory carries messages both ways, and finds its dead" {
    var buffer: Path = undefined;
    var ends: [2]End = undefined;
    try ends[0].createSealed(0);
    const path = ends[0].file.handedPath(&buffer);
    try ends[1].open(path, 1);
    try ends[0].port.write("there", .{}, .none);
    try ends[1].expectMessage("there", .none);
    try ends[1].port.write("back", .{}, .none);
    try ends[0].expectMessage("back", .none);
    try testing.expectError(error.SegmentEndpoint, openError(path));
    ends[1].die();
    var bytes: [8]u8 = undefined;
    try testing.expectError(error.PeerFailed, ends[0].port.read(&bytes, .ms(10_000)));
    try testing.expectEqual(.peer_lost, ends[0].port.reason().?);
    ends[0].close();
}

test "nobody can change the size of sealed memory, or open it to others [segment.file_sealed]" {
    var buffer: Path = undefined;
    var end: End = undefined;
    try end.createSealed(1);
    defer end.close();
    const file = end.file.handle;
    const stat = try system.statOf(file);
    try testing.expectEqual(linux.S.IFREG | 0o600, stat.mode);
    try testing.expectEqual(fixture.rings_size, stat.size);
    for ([_]i64{ 0, fixture.rings_size - 1, fixture.rings_size + 1 }) |size| {
        try testing.expectEqual(.PERM, linux.errno(linux.ftruncate(file, size)));
    }
    const more = linux.fcntl(file, linux.F.ADD_SEALS, linux.F.SEAL_WRITE);
    try testing.expectEqual(.PERM, linux.errno(more));
    // A process that has it open keeps it, even after its maker is gone.
    var other: End = undefined;
    try other.open(end.file.handedPath(&buffer), 0);
    try testing.expect(system.isSealed(other.file.handle));
    var third: Path = undefined;
    const again = other.file.handedPath(&third);
    try testing.expect(!std.mem.eql(u8, again, std.mem.span(@as([*:0]u8, @ptrCast(&buffer)))));
    try testing.expectError(error.SegmentEndpoint, openError(again));
    other.close();
}

/// Makes memory of mode 0600 that holds a port's segment, and is not sealed.
fn unsealed() !system.Handle {
    const flags = linux.MFD.CLOEXEC | linux.MFD.ALLOW_SEALING;
    const file: system.Handle = @intCast(linux.memfd_create("test", flags));
    var image: [fixture.rings_size]u8 align(128) = @splat(0);
    try millrace.Port.format(&image, fixture.rings);
    try testing.expectEqual(image.len, linux.write(file, &image, image.len));
    _ = linux.fchmod(file, 0o600);
    return file;
}

fn seal(file: system.Handle, seals: u32) !void {
    try testing.expectEqual(.SUCCESS, linux.errno(linux.fcntl(file, linux.F.ADD_SEALS, seals)));
}

test "what may be made shorter, or belongs to others, is refused [segment.file_handed]" {
    var buffer: Path = undefined;
    const file = try unsealed();
    defer system.close(file);
    const path = system.handedPath(file, &buffer);
    try testing.expectError(error.SegmentFile, openError(path));
    try seal(file, linux.F.SEAL_GROW);
    try testing.expectError(error.SegmentFile, openError(path));
    try seal(file, linux.F.SEAL_SHRINK);
    for ([_]linux.mode_t{ 0o601, 0o610, 0o604, 0o640, 0o602, 0o777 }) |mode| {
        _ = linux.fchmod(file, mode);
        try testing.expectError(error.SegmentFile, openError(path));
    }
    _ = linux.fchmod(file, 0o600);
    try openError(path);
}

test "a descriptor may lead to anything, and is opened anew [segment.file_handed]" {
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    var buffer: Path = undefined;
    var end: End = undefined;
    try end.create(directory.path("port"), 0, .none);
    defer end.close();
    try testing.expectError(
        error.SegmentFile,
        openError(system.handedPath(end.file.handle, &buffer)),
    );
    var pipe: [2]i32 = undefined;
    _ = linux.pipe2(&pipe, .{ .CLOEXEC = true });
    defer for (pipe) |each| system.close(each);
    try testing.expectError(error.SegmentFile, openError(system.handedPath(pipe[0], &buffer)));
    try testing.expectError(error.SegmentMissing, openError("/proc/self/fd/1000000"));
    try testing.expectError(error.SegmentMissing, openError("/proc/4194305/fd/0"));
    // By `self`, and by a copy of the descriptor, whose locks belong to its maker.
    const file = try unsealed();
    defer system.close(file);
    try seal(file, linux.F.SEAL_SHRINK);
    try testing.expect(try system.lock(file, .{ .offset = 128, .size = 128 }));
    var name: [64]u8 = undefined;
    const own = try std.mem.printSentinel(&name, "/proc/self/fd/{}", .{file}, 0);
    var opened: [2]End = undefined;
    try testing.expectError(error.SegmentEndpoint, opened[0].open(own, 0));
    try opened[1].open(own, 1);
    opened[1].close();
}

test "no other path is followed through a link [segment.file_own]" {
    var end: End = undefined;
    try end.createSealed(0);
    defer end.close();
    var name: [64]u8 = undefined;
    for ([_][]const u8{
        "//proc/self/fd",
        "/proc/./self/fd",
        "/proc/self/task/../fd",
        "/proc/thread-self/fd",
        "/dev/fd",
    }) |directory| {
        const values = .{ directory, end.file.handle };
        const path = try std.mem.printSentinel(&name, "{s}/{}", values, 0);
        try testing.expectError(error.SegmentFile, openError(path));
    }
}

test "a creator is not asked for the path of a descriptor" {
    var buffer: Path = undefined;
    var end: End = undefined;
    try end.createSealed(0);
    defer end.close();
    var other: End = undefined;
    if (other.create(end.file.handedPath(&buffer), 1, .none)) |_| {
        return error.Created;
    } else |_| {}
    try testing.expectEqual(0, end.state(1));
}
