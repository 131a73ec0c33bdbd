//! Ports for C: claims after a close, and endpoints that are vacated.

const std = @import("std");
const arguments = @import("arguments.zig");
const fixture = @import("fixture.zig");
const segments = @import("segment.zig");
const ports = @import("port.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const Status = arguments.Status;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

var storage: [64]u8 = undefined;
var message: ports.Message = undefined;

fn read(port: *anyopaque) Status {
    return ports.millrace_port_read(port, &storage, storage.len, 0, &message);
}

fn write(port: *anyopaque, payload: []const u8) Status {
    return ports.millrace_port_write(port, payload.ptr, payload.len, 0, 0, 0);
}

fn expectRead(port: *anyopaque, payload: []const u8) !void {
    try expectStatus(arguments.done, read(port));
    try testing.expectEqualStrings(payload, storage[0..message.size]);
}

fn claim(port: *anyopaque, size: u32, place: *?*anyopaque) Status {
    return ports.millrace_port_claim(port, size, 0, @ptrCast(place));
}

fn publish(port: *anyopaque) Status {
    return ports.millrace_port_publish(port, 1, 0, 0);
}

fn abandon(port: *anyopaque) Status {
    return ports.millrace_port_abandon(port);
}

test "c_abi: a claim that was open at the close is reported once, and dropped" {
    for ([_]*const fn (*anyopaque) Status{ publish, abandon }) |call| {
        var pair: Pair = .{};
        try pair.open();
        const a = pair.side(0);
        try expectStatus(-256, call(a));
        var place: ?*anyopaque = null;
        try expectStatus(1, claim(a, 1, &place));
        try expectStatus(-256, claim(a, 1, &place));
        try expectStatus(1, ports.millrace_port_close(a));
        const closed = reasonStatus(.pipe_closed);
        try expectStatus(closed, claim(a, 1, &place));
        try expectStatus(closed, ports.millrace_port_end(a));
        try expectStatus(closed, call(a));
        try expectStatus(-256, call(a));
        pair.leave();
    }
}

test "c_abi: an endpoint is given back, and taken by its next owner" {
    var pair: Pair = .{};
    try pair.open();
    const a = pair.side(0);
    try expectStatus(1, write(pair.side(1), "last words"));
    try expectStatus(-256, ports.millrace_port_vacate(a));
    try expectStatus(1, ports.millrace_port_leave(pair.side(1)));
    try expectStatus(-256, ports.millrace_port_vacate(a));
    try expectRead(a, "last words");
    try testing.expectEqual(reasonStatus(.peer_closed), read(a));
    try expectStatus(1, ports.millrace_port_vacate(a));
    try expectStatus(-256, ports.millrace_port_vacate(a));
    try expectStatus(1, write(a, "welcome"));
    try testing.expectEqual(1, segments.millrace_segment_owner(pair.segment(), 1));
    try expectStatus(1, ports.millrace_port_attach(pair.side(1), pair.segment(), 1));
    try expectRead(pair.side(1), "welcome");
    try testing.expectEqual(0, read(a));
    pair.leave();
}
