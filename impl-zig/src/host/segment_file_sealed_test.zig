//! Segments in sealed memory: what is made, by which path it is opened, and what else such a path
//! may lead to [spec/file.md].

const std = @import("std");
const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const system = @import("files.zig");
const testing = std.testing;
const linux = std.os.linux;
const Directory = fixture.Directory;
const End = fixture.End;
const SegmentFile = millrace.SegmentFile;

const Path = [SegmentFile.handed_path_size]u8;

fn openError(path: [:0]const u8) !void {
    var end: End = undefined;
    try end.open(path, 1);
    end.close();
}

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
