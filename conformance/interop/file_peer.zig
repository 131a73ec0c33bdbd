//! The Zig side of the interop tests between processes: takes one end of a port in a file, says
//! `attached` and where the other process finds it, and then how its part ended: a reason code, 0
//! for none, and how often it slept.
//!
//!     file_peer create|seal|open PATH echo|hold|leave CAPACITY SPIN_US
//!
//! `seal` makes sealed memory, whatever the path. `echo` writes everything back until the stream
//! ends, `hold` only reads, and `leave` closes at once.

const std = @import("std");
const millrace = @import("millrace");

const storage_size = 64 * 1024;
/// Bounds each wait.
const timeout: millrace.Timeout = .ms(10_000);

const How = enum { create, seal, open };
const Role = enum { echo, hold, leave };

// They hold pointers into themselves.
var file: millrace.SegmentFile = undefined;
var port: millrace.Port = undefined;
var storage: [storage_size]u8 = undefined;

pub fn main(init: std.process.Init) !void {
    var arguments = init.minimal.args.iterate();
    _ = arguments.skip();
    const how = std.meta.stringToEnum(How, arguments.next().?).?;
    const path = arguments.next().?;
    const role = std.meta.stringToEnum(Role, arguments.next().?).?;
    const capacity = try std.fmt.parseInt(u32, arguments.next().?, 10);
    const spin_us = try std.fmt.parseInt(u32, arguments.next().?, 10);

    var channels_storage: [2]millrace.Channel = undefined;
    const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
    const channels = rings.channels();
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    switch (how) {
        .create => try file.create(path, geometry, 0, &channels_storage, .{}),
        .seal => try file.createSealed(geometry, 0, &channels_storage),
        .open => try file.open(path, 1, &channels_storage, .{}),
    }
    defer file.close();
    try port.init(&file.segment, file.index, .{ .endpoint = .{ .spin_us = spin_us } });
    defer port.close();
    var handed: [millrace.SegmentFile.handed_path_size]u8 = undefined;
    const found_at = if (how == .seal) file.handedPath(&handed) else path;
    try say(init.io, "attached {s}\n", .{found_at});

    const code = if (perform(role)) 0 else |err| codeOf(err);
    try say(init.io, "{d} {d}\n", .{ code, port.stats().parks });
}

fn perform(role: Role) !void {
    if (role == .leave) return;
    while (try port.read(&storage, timeout)) |message| {
        if (role == .hold) continue;
        try port.write(message.payload, .{ .codec = message.codec, .tag = message.tag }, timeout);
    }
    if (!port.ended()) return error.Timeout;
    try port.end();
}

/// The fault or the reason that the error reports, otherwise the error's own code.
fn codeOf(err: anyerror) u32 {
    return @backingInt(port.reason() orelse millrace.reasonOf(err) orelse .peer_failed);
}

fn say(io: std.Io, comptime format: []const u8, values: anytype) !void {
    var buffer: [256]u8 = undefined;
    try std.Io.File.stdout().writeStreamingAll(io, try std.fmt.bufPrint(&buffer, format, values));
}
