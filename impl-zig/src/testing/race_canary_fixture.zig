//! A program with a planted race, for ThreadSanitizer to find: if it does not, its silence
//! elsewhere proves nothing. A writer makes a message visible and then fills it.

const std = @import("std");
const millrace = @import("millrace");

var memory: [4096]u8 align(128) = undefined;
const ring: [1]millrace.Channel = .{.{ .writer = 0, .reader = 1, .data_size = 1024 }};
const count = 1_000;

fn write() !void {
    var storage: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(&memory, &storage, .none);
    var endpoint: millrace.Endpoint = try .attach(&segment, 0, .{});
    var writer: millrace.Writer = try .init(&endpoint, &segment, 0);
    for (0..count) |_| {
        const place = try writer.claim(64, .ms(10_000));
        writer.finish(64, .{});
        writer.publish();
        @memset(place, 1); // the fault
    }
    try writer.end();
}

pub fn main() !void {
    try millrace.Segment.format(&memory, .{ .endpoint_count = 2, .channels = &ring });
    const thread: std.Thread = try .spawn(.{}, write, .{});
    defer thread.join();
    var storage: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(&memory, &storage, .none);
    var endpoint: millrace.Endpoint = try .attach(&segment, 1, .{});
    var reader: millrace.Reader = try .init(&endpoint, &segment, 0);
    var payload: [64]u8 = undefined;
    while (try reader.read(&payload, .ms(10_000))) |_| {}
}
