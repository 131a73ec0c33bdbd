//! Measures what the hot path costs between two threads of one process: the median there and back,
//! and how much passes one way. `zig build bench`; figures of one run are comparable, no others.

const std = @import("std");
const millrace = @import("millrace");
const Port = millrace.Port;

const patience: millrace.Timeout = .ms(20_000);
const capacity = 1 << 20;

var memory: [3 * capacity]u8 align(128) = @splat(0);
var stores: [2][2 << 20]u8 align(16) = undefined;

pub fn main() !void {
    for ([_]u32{ 0, 64, 118, 1024, 65_536 }) |size| try echo(size, 1_000, 20_000);
    try echo(64, 0, 5_000);
    for ([_]u32{ 64, 118, 4096, 65_536, 1 << 20 }) |size| try stream(size, false);
    try stream(64, true);
}

fn format() !void {
    try Port.format(&memory, .{ .capacities = .{ capacity, capacity } });
}

fn echo(size: u32, spin_us: u32, count: u32) !void {
    try format();
    var port: Port = undefined;
    try port.attach(&memory, 0, .{ .endpoint = .{ .spin_us = spin_us } });
    const thread = try std.Thread.spawn(.{}, echoOther, .{spin_us});
    var times: [20_000]u64 = undefined;
    const payload = stores[0][0..size];
    const now = millrace.Host.native.now;
    for (0..1_000) |_| {
        try port.write(payload, .{}, patience);
        _ = try port.read(&stores[0], patience);
    }
    for (times[0..count]) |*time| {
        const begin = now();
        try port.write(payload, .{}, patience);
        const message = (try port.read(&stores[0], patience)).?;
        if (message.payload.len != size) return error.WrongSize;
        time.* = now() - begin;
    }
    try port.end();
    thread.join();
    std.mem.sort(u64, times[0..count], {}, std.sort.asc(u64));
    const line = "echo {d:>8} B, spin {d:>4} us: median {d:>6} ns, p99 {d:>7} ns, parks {d}\n";
    std.debug.print(line, .{
        size,
        spin_us,
        times[count / 2],
        times[count * 99 / 100],
        port.stats().parks,
    });
}

fn echoOther(spin_us: u32) !void {
    var port: Port = undefined;
    try port.attach(&memory, 1, .{ .endpoint = .{ .spin_us = spin_us } });
    while (try port.read(&stores[1], patience)) |message| {
        try port.write(message.payload, .{}, patience);
    }
    port.close();
}

fn stream(size: u32, batched: bool) !void {
    try format();
    const count: u32 = @max(500, @min(3_000_000, 2_000_000_000 / (@as(u64, size) + 300)));
    var port: Port = undefined;
    try port.attach(&memory, 1, .{});
    const thread = try std.Thread.spawn(.{}, produce, .{ size, count, batched });
    const now = millrace.Host.native.now;
    var received: u32 = 0;
    const begin = now();
    while (try port.read(&stores[1], patience)) |message| : (received += 1) {
        if (message.payload.len != size) return error.WrongSize;
    }
    const ns: f64 = @floatFromInt(now() - begin);
    thread.join();
    if (received != count) return error.WrongCount;
    const total: f64 = @floatFromInt(count);
    const bytes: f64 = @floatFromInt(size);
    std.debug.print("stream {d:>8} B{s}: {d:>7.2} M msg/s, {d:>6.2} GB/s, parks {d}\n", .{
        size,
        if (batched) ", 16 per publish" else "",
        total / ns * 1e3,
        total * bytes / ns,
        port.stats().parks,
    });
}

fn produce(size: u32, count: u32, batched: bool) !void {
    var port: Port = undefined;
    try port.attach(&memory, 0, .{});
    const payload = stores[0][0..size];
    if (batched) {
        const batch: [16][]const u8 = @splat(payload);
        var left = count;
        while (left > 0) {
            const some = @min(left, batch.len);
            if (try port.writeMany(batch[0..some], .{}, patience) != some) return error.Timeout;
            left -= @intCast(some);
        }
    } else for (0..count) |_| try port.write(payload, .{}, patience);
    try port.end();
}
