//! One end of an echo in a file, for a driver in another language to measure:
//!
//!     millrace-bench-native serve PATH SIDE CAPACITY SPIN_US
//!
//! It creates the port or opens it, whichever comes first, and sends back what comes until the
//! stream ends.

const std = @import("std");
const millrace = @import("millrace");

const patience: millrace.Timeout = .ms(20_000);
const storage_size = 1 << 20;

// They hold pointers into themselves.
var file: millrace.SegmentFile = undefined;
var port: millrace.Port = undefined;
var channels_storage: [2]millrace.Channel = undefined;
var storage: [storage_size]u8 align(64) = undefined;

pub fn main(arguments: *std.process.Args.Iterator) !void {
    const path = arguments.next() orelse return usage();
    const side = number(arguments.next()) orelse return usage();
    const capacity = number(arguments.next()) orelse return usage();
    const spin_us = number(arguments.next()) orelse return usage();
    const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
    if (!rings.valid() or side > 1) return usage();

    const channels = rings.channels();
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    try file.create(path, geometry, side, &channels_storage, .{ .timeout = patience });
    defer file.close();
    try port.init(&file.segment, side, .{ .endpoint = .{ .spin_us = spin_us } });
    defer port.close();
    while (try port.read(&storage, patience)) |message| {
        try port.write(message.payload, .{ .codec = message.codec, .tag = message.tag }, patience);
    }
    if (!port.ended()) return error.Timeout;
    try port.end();
}

fn number(word: ?[:0]const u8) ?u32 {
    return std.fmt.parseInt(u32, word orelse return null, 10) catch null;
}

fn usage() void {
    std.debug.print("Usage: millrace-bench-native serve PATH SIDE CAPACITY SPIN_US\n", .{});
    std.process.exit(2);
}
