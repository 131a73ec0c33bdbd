//! The Zig side of the interop tests: a WebAssembly worker that blocks in a port and writes, reads
//! or echoes the messages of a seed.

const std = @import("std");
const millrace = @import("millrace");
const Message = @import("workload.zig").Message;
const Workload = @import("workload.zig").Workload;
const assert = std.debug.assert;

const capacity_max = 64 * 1024;
const storage_size = 3 * capacity_max;
/// What a run returns when a message is not the one that the seed stands for; no reason code.
const status_differs = 1 << 24;

// One run at a time, and one worker on one memory.
var port: millrace.Port = undefined;
var storage: [storage_size]u8 align(16) = undefined;

/// The first address above this module's stack and variables.
export fn heap_base() usize {
    return @intFromPtr(&__heap_base);
}

extern const __heap_base: u8;

/// Attaches to one end of the port at `address`. Returns 0 or a reason code, as all functions here.
export fn attach(
    address: usize,
    size: usize,
    endpoint_index: u32,
    spin_us: u32,
    timeout_ms: u32,
) u32 {
    const bytes: [*]align(128) u8 = @ptrFromInt(address);
    port.attach(bytes[0..size], endpoint_index, .{
        .endpoint = .{ .spin_us = spin_us },
        .timeout = .ms(timeout_ms),
    }) catch |err| return codeOf(err);
    return 0;
}

/// Writes the first `count` messages of a seed and ends the stream.
export fn write_all(seed: u32, capacity: u32, count: u32, timeout_ms: u32) u32 {
    assert(capacity <= capacity_max);
    var workload: Workload = .init(seed, capacity);
    for (0..count) |_| {
        const message = workload.next();
        writeOne(message, timeout_ms) catch |err| return codeOf(err);
    }
    port.end() catch |err| return codeOf(err);
    return 0;
}

/// Reads until the stream ends, and compares with the first `count` messages of a seed.
export fn read_all(seed: u32, capacity: u32, count: u32, timeout_ms: u32) u32 {
    assert(capacity <= capacity_max);
    var workload: Workload = .init(seed, capacity);
    for (0..count) |index| {
        const expected = workload.next();
        const message = (port.read(&storage, .ms(timeout_ms)) catch |err| return codeOf(err)) orelse
            return @intCast(status_differs + index);
        if (!expected.equals(message.tag, message.payload)) return @intCast(status_differs + index);
    }
    const extra = port.read(&storage, .ms(timeout_ms)) catch |err| return codeOf(err);
    if (extra != null) return status_differs + count;
    return if (port.ended()) 0 else @backingInt(millrace.Reason.wait_timeout);
}

/// Writes every message back until the stream ends, and then ends its own.
export fn echo_all(timeout_ms: u32) u32 {
    while (port.read(&storage, .ms(timeout_ms)) catch |err| return codeOf(err)) |message| {
        port.write(message.payload, .{
            .codec = message.codec,
            .tag = message.tag,
        }, .ms(timeout_ms)) catch |err| return codeOf(err);
    }
    if (!port.ended()) return @backingInt(millrace.Reason.wait_timeout);
    port.end() catch |err| return codeOf(err);
    return 0;
}

/// Closes the port.
export fn close() void {
    port.close();
}

/// How often this end slept.
export fn parks() u32 {
    return @truncate(port.stats().parks);
}

/// Small messages alternate between the two ways to write one, so that both meet the other side.
fn writeOne(message: Message, timeout_ms: u32) millrace.WriteError!void {
    if (message.tag % 2 == 0 and message.size < 64) {
        const place = try port.claim(message.size, .ms(timeout_ms));
        _ = message.fill(place);
        port.finish(message.size, .{ .tag = message.tag });
        return port.publish();
    }
    const payload = message.fill(&storage);
    return port.write(payload, .{ .tag = message.tag }, .ms(timeout_ms));
}

/// The fault behind `error.Corrupt`, otherwise the error's own code.
fn codeOf(err: anyerror) u32 {
    return @backingInt(port.reason() orelse millrace.reasonOf(err) orelse .peer_failed);
}
