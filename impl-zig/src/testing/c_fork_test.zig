//! Which statuses a forked child gets for the objects that its parent has made, through the calls
//! from C.

const std = @import("std");
const arguments = @import("../c/arguments.zig");
const fixture = @import("../c/fixture.zig");
const fanouts = @import("../c/fanout.zig");
const calls = @import("../c/call.zig");
const properties = @import("../c/property.zig");
const ports = @import("../c/port.zig");
const segments = @import("../c/segment.zig");
const fork = @import("fixture.zig");
const process = @import("../host/process.zig");
const testing = std.testing;
const Directory = @import("../host/fixture.zig").Directory;
const Ring = segments.Ring;
const Status = arguments.Status;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;

const forked: Status = -83;

/// Two rings, and a property and a fanout of endpoint 0.
const channels = fixture.both ++ [_]Ring{
    .{ .writer = 0, .reader = 0xffff_ffff, .capacity = 100, .kind = 2 },
    .{ .writer = 0, .reader = 1, .capacity = 256, .kind = 3 },
};

/// One end of a segment in a file.
const End = struct {
    segment: Storage align(8) = @splat(0),
    port: Storage align(8) = @splat(0),
    property: Storage align(8) = @splat(0),
    fanout: Storage align(8) = @splat(0),

    fn open(end: *End, path: [*:0]const u8, endpoint: u32) !void {
        const place = &end.segment;
        const create = segments.millrace_segment_create_file;
        const all = .{ place, path, 2, &channels, channels.len, endpoint, 20_000 };
        try expectStatus(1, @call(.auto, create, all));
        try expectStatus(1, ports.millrace_port_attach(&end.port, place, endpoint));
        if (endpoint != 0) return;
        const open_property = properties.millrace_property_open_writer;
        try expectStatus(1, open_property(&end.property, &end.port, 2, null));
        const open_fanout = fanouts.millrace_fanout_open_writer;
        try expectStatus(1, open_fanout(&end.fanout, &end.port, 3));
    }

    fn read(end: *End) Status {
        var message: ports.Message = undefined;
        var storage: [64]u8 = undefined;
        return ports.millrace_port_read(&end.port, &storage, storage.len, 10_000, &message);
    }

    fn leave(end: *End) !void {
        try expectStatus(1, ports.millrace_port_close(&end.port));
        _ = properties.millrace_property_leave(&end.property);
        _ = fanouts.millrace_fanout_leave(&end.fanout);
        try expectStatus(1, ports.millrace_port_leave(&end.port));
        try expectStatus(1, segments.millrace_segment_leave(&end.segment));
    }
};

/// Uses the objects that the parent has made, and gives them up.
fn useOfParent(end: *End) !void {
    try expectStatus(forked, fixture.write(&end.port, "[1]", 1));
    try expectStatus(forked, end.read());
    var place: ?*anyopaque = undefined;
    try expectStatus(forked, ports.millrace_port_claim(&end.port, 8, 0, @ptrCast(&place)));
    try expectStatus(forked, ports.millrace_port_end(&end.port));
    try expectStatus(-256, ports.millrace_port_vacate(&end.port));
    try expectStatus(1, ports.millrace_port_check_peers(&end.port));
    const set = properties.millrace_property_set;
    try expectStatus(forked, set(&end.property, "1", 1, 2));
    const write = fanouts.millrace_fanout_write;
    try expectStatus(forked, write(&end.fanout, "all", 3, 1, 0, 0));
    const text = std.mem.span(@import("../c.zig").millrace_status_text(forked));
    try testing.expect(std.mem.indexOf(u8, text, "fork") != null);
    var called: Storage align(8) = @splat(0);
    const attach = calls.millrace_calls_attach;
    try expectStatus(1, attach(&called, &end.port, fixture.allocate, null));
    const write_beside = calls.millrace_calls_write;
    try expectStatus(forked, write_beside(&called, "[2]", 3, 2, 0, 0));
    try expectStatus(1, calls.millrace_calls_leave(&called));
    const segment = &end.segment;
    try expectStatus(1, ports.millrace_port_close(&end.port));
    _ = properties.millrace_property_leave(&end.property);
    _ = fanouts.millrace_fanout_leave(&end.fanout);
    try expectStatus(1, ports.millrace_port_leave(&end.port));
    // The endpoint of the file is the parent's too, whether the parent has attached it or not.
    try expectStatus(forked, ports.millrace_port_attach(&end.port, segment, 0));
    try expectStatus(forked, ports.millrace_port_attach_endpoint(&end.port, segment, 0));
    try expectStatus(forked, ports.millrace_port_attach_writer(&end.port, segment, 0, 0));
    try expectStatus(1, segments.millrace_segment_leave(segment));
}

test "c_abi: a forked child is told so, and harms neither its parent nor its parent's peer" {
    // An emulator, such as qemu's, does not clear memory in a child.
    if (process.number() == 0) return error.SkipZigTest;
    var directory: Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("forked");
    var ends: [2]End = .{ .{}, .{} };
    for (&ends, 0..) |*end, index| try end.open(path, @intCast(index));
    try expectStatus(1, fixture.write(&ends[1].port, "[0]", 0));
    try fork.expectChild(useOfParent, .{&ends[0]});
    // The message is still there, and so are the lock and the state of both.
    try expectStatus(1, ports.millrace_port_check_peers(&ends[1].port));
    try fixture.expectRead(&ends[0].port, "[0]", 0);
    try expectStatus(1, fixture.write(&ends[0].port, "[3]", 3));
    try fixture.expectRead(&ends[1].port, "[3]", 3);
    try expectStatus(1, properties.millrace_property_set(&ends[0].property, "3", 1, 2));
    for (&ends) |*end| try end.leave();
}
