//! What the exports of the WebAssembly modules check in the numbers that they are given, and what
//! they answer with. `wasm.zig` tells what a status means.

const std = @import("std");
const layout = @import("memory/layout.zig");
const host = @import("wait/mechanism.zig");
const reasonOf = @import("error.zig").reasonOf;
const Endpoint = @import("wait/endpoint.zig").Endpoint;
const Host = host.Host;
const Timeout = host.Timeout;

pub const status_nothing = 0;
pub const status_done = 1;
/// An argument is out of range. No reason code is as large.
pub const status_invalid = -256;

/// Whether so many bytes lie in the memory, at a multiple of `alignment`. Nothing lies at 0.
pub fn lies(address: u32, size: u32, alignment: u32) bool {
    const memory_size = @as(u64, @wasmMemorySize(0)) * std.wasm.page_size;
    return address > 0 and address % alignment == 0 and @as(u64, address) + size <= memory_size;
}

pub fn bytesAt(address: u32, size: u32) ?[]u8 {
    // An address of 0 with size 0 is what a host passes for "nothing".
    if (size == 0) return &.{};
    if (!lies(address, size, 1)) return null;
    return @as([*]u8, @ptrFromInt(address))[0..size];
}

/// What an endpoint, or a side of a mailbox, is told of the thread that it belongs to; null for
/// bits that mean nothing.
pub fn endpointOf(thread: u32) ?Endpoint.Options {
    const mechanism: *const Host = switch (thread & ~no_block) {
        layout.wake_mechanism_agent => &host.wasm_agent,
        layout.wake_mechanism_wasmtime => &host.wasmtime,
        0 => &polling,
        else => return null,
    };
    return .{ .host = mechanism, .blocking = thread & no_block == 0 };
}

const no_block: u32 = 256;
const polling: Host = polling: {
    var agent = host.wasm_agent;
    agent.wakes = 0;
    agent.mechanism = 0;
    break :polling agent;
};

/// Milliseconds as JavaScript counts them. Not inlined: seven exports begin with it.
pub noinline fn timeoutOf(ms: f64) Timeout {
    return .fromFloatMs(ms);
}

pub fn statusOf(err: anyerror) i32 {
    return statusFor(reasonOf(err) orelse return status_invalid);
}

/// The status of a call that failed, where `error.Corrupt` stands for this reason.
pub fn failed(corrupt: ?layout.Reason, err: anyerror) i32 {
    return switch (err) {
        error.Timeout => status_nothing,
        // After a fault the peer counts as failed, whatever it has stored since.
        error.Corrupt => statusFor(corrupt orelse .peer_failed),
        else => statusOf(err),
    };
}

fn statusFor(reason: layout.Reason) i32 {
    return -@as(i32, @intCast(@backingInt(reason)));
}
