//! The other process of the tests of segments in files: `segment_peer <role> <path>` opens endpoint
//! 1 of the port at the path and plays its role until the stream ends or the test kills it.

const std = @import("std");
const fixture = @import("segment_stream_fixture.zig");
const millrace = @import("../root.zig");

pub fn main(init: std.process.Init) !void {
    if (!millrace.SegmentFile.supported) return error.Unsupported;
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const role = std.meta.stringToEnum(fixture.Role, arguments[1]) orelse return error.NoRole;
    var end: fixture.End = undefined;
    try end.open(arguments[2]);
    defer end.close();
    try end.play(role);
}
