//! Calls from C about segments in files and in sealed memory.

const segments = @import("segment.zig");
const ports = @import("port.zig");
const fixture = @import("fixture.zig");
const SegmentFile = @import("../host/segment_file.zig").SegmentFile;
const Storage = fixture.Storage;
const expectRead = fixture.expectRead;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;
const write = fixture.write;

test "c_abi: a segment in a file, its two endpoints in one process" {
    var storage: [4]Storage align(8) = @splat(@splat(0));
    const create = segments.millrace_segment_create_file;
    const open = segments.millrace_segment_open_file;
    if (!SegmentFile.supported) {
        try expectStatus(-257, create(&storage[0], "x", 2, &fixture.both, 2, 0, 0));
        return expectStatus(-257, open(&storage[0], "x", 0, 0));
    }
    var directory: @import("../host/fixture.zig").Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    try expectStatus(reasonStatus(.segment_missing), open(&storage[0], path, 0, 0));
    const nowhere = "/dev/shm/millrace no directory/port";
    try expectStatus(-258, create(&storage[0], nowhere, 2, &fixture.both, 2, 0, 0));
    try expectStatus(-256, open(&storage[0], null, 0, 0));
    try expectStatus(-256, create(&storage[0], path, 2, &fixture.both, 2, 2, 0));
    try expectStatus(reasonStatus(.segment_file), open(&storage[0], "/dev/null", 0, 0));
    try expectStatus(1, create(&storage[0], path, 2, &fixture.both, 2, 0, 0));
    const taken = reasonStatus(.segment_endpoint);
    try expectStatus(taken, create(&storage[1], path, 2, &fixture.both, 2, 0, 0));
    try expectStatus(1, open(&storage[1], path, 1, 0));
    try expectStatus(taken, ports.millrace_port_attach(&storage[2], &storage[0], 1));
    try expectStatus(1, ports.millrace_port_attach(&storage[2], &storage[0], 0));
    try expectStatus(1, ports.millrace_port_attach(&storage[3], &storage[1], 1));
    try expectStatus(1, write(&storage[2], "in a file", 3));
    try expectRead(&storage[3], "in a file", 3);
    try expectStatus(-256, segments.millrace_segment_leave(&storage[0]));
    for (storage[2..]) |*port| try expectStatus(1, ports.millrace_port_leave(port));
    for (storage[0..2]) |*left| try expectStatus(1, segments.millrace_segment_leave(left));
}

test "c_abi: a segment in sealed memory, opened by the path of its descriptor" {
    var storage: [4]Storage align(8) = @splat(@splat(0));
    const create = segments.millrace_segment_create_sealed;
    const path_of = segments.millrace_segment_handed_path;
    const open = segments.millrace_segment_open_file;
    if (!SegmentFile.supported) {
        return expectStatus(-257, create(&storage[0], 2, &fixture.both, 2, 0));
    }
    try expectStatus(-256, create(null, 2, &fixture.both, 2, 0));
    try expectStatus(-256, create(&storage[0], 2, &fixture.both, 2, 2));
    try expectStatus(-256, create(&storage[0], 2, null, 2, 0));
    var path: [SegmentFile.handed_path_size:0]u8 = undefined;
    try expectStatus(-256, path_of(&storage[0], &path, path.len));
    try expectStatus(1, create(&storage[0], 2, &fixture.both, 2, 0));
    try expectStatus(-256, path_of(&storage[0], &path, path.len - 1));
    try expectStatus(-256, path_of(&storage[0], null, path.len));
    try expectStatus(1, path_of(&storage[0], &path, path.len));
    try expectStatus(1, open(&storage[1], &path, 1, 0));
    try expectStatus(reasonStatus(.segment_endpoint), open(&storage[2], &path, 1, 0));
    for (storage[2..], storage[0..2], 0..) |*port, *segment, index| {
        try expectStatus(1, ports.millrace_port_attach(port, segment, @intCast(index)));
    }
    try expectStatus(1, write(&storage[2], "sealed", 3));
    try expectRead(&storage[3], "sealed", 3);
    for (storage[2..]) |*port| try expectStatus(1, ports.millrace_port_leave(port));
    for (storage[0..2]) |*left| try expectStatus(1, segments.millrace_segment_leave(left));
    // A segment in the caller's memory has no path.
    var memory: [4096]u8 align(128) = @splat(0);
    const in_memory = segments.millrace_segment_create;
    try expectStatus(1, in_memory(&storage[0], &memory, memory.len, 2, &fixture.both, 2, 0));
    try expectStatus(-256, path_of(&storage[0], &path, path.len));
    try expectStatus(1, segments.millrace_segment_leave(&storage[0]));
}
