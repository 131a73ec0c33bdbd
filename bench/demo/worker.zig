//! The Zig side of the demo: a WebAssembly worker that blocks in its port and does what the tag of
//! each message asks for, until the stream ends.

const std = @import("std");
const millrace = @import("millrace");

/// What to do with a message; `protocol.ts` has the same numbers.
const Tag = enum(u32) {
    /// Write it back.
    echo = 0,
    /// Take it, and answer nothing.
    sink = 1,
    /// Write `count` messages of `size` bytes: the payload is those two, as u32.
    flood = 2,
    _,
};

const message_size_max = 1 << 20;
const endpoint_index = 1;
/// The other side may leave at any moment; then this bounds how long a call goes on.
const patience: millrace.Timeout = .ms(30_000);

// One worker runs on one memory: its port and its message are plain variables.
var port: millrace.Port = undefined;
var storage: [message_size_max]u8 align(16) = undefined;

/// The first address above this module's stack and variables.
export fn heap_base() usize {
    return @intFromPtr(&__heap_base);
}

extern const __heap_base: u8;

/// Attaches to the port at `address` and serves it. Returns 0 at the end of the stream, otherwise
/// the reason code of what ended it earlier, or -1 for a message that asks for something unknown.
///
/// `spin_us` is how long to look for a message before each sleep: the host knows how many
/// processors there are, and this module does not.
export fn serve(address: usize, size: usize, spin_us: u32) i32 {
    const bytes: [*]align(128) u8 = @ptrFromInt(address);
    port.attach(bytes[0..size], endpoint_index, .{
        .endpoint = .{ .spin_us = spin_us },
        .timeout = patience,
    }) catch |err| return codeOf(err);
    defer port.close();
    return serveUntilEnd() catch |err| codeOf(err);
}

/// System calls that were made to wake the other side.
export fn wakes() u32 {
    return @truncate(port.stats().wakes);
}

/// Publishes and releases that needed none.
export fn wakes_elided() u32 {
    return @truncate(port.stats().wakes_elided);
}

/// The fault that `error.Corrupt` reports, otherwise the error's own code.
fn codeOf(err: anyerror) i32 {
    const reason = port.reason() orelse millrace.reasonOf(err) orelse .peer_failed;
    return @intCast(@backingInt(reason));
}

fn serveUntilEnd() (millrace.ReadError || millrace.WriteError)!i32 {
    while (try port.read(&storage, patience)) |message| {
        const tag: Tag = @fromBackingInt(message.tag);
        switch (tag) {
            .echo => try port.write(message.payload, .{
                .codec = message.codec,
                .tag = message.tag,
            }, patience),
            .sink => {},
            .flood => try flood(message.payload),
            _ => return -1,
        }
    }
    try port.end();
    return if (port.ended()) 0 else @backingInt(millrace.Reason.wait_timeout);
}

fn flood(order: []const u8) millrace.WriteError!void {
    const count = std.mem.readInt(u32, order[0..4], .little);
    const size = std.mem.readInt(u32, order[4..8], .little);
    for (0..count) |_| try port.write(storage[0..size], .{}, patience);
}
