//! Compiled for WebAssembly with atomics, where the target does not say who can wake whom: checks
//! which mechanism a program gets if it does not choose one.

const builtin = @import("builtin");
const std = @import("std");
const millrace = @import("millrace");

comptime {
    const expected = switch (builtin.os.tag) {
        .freestanding => millrace.layout.wake_mechanism_agent,
        // Any engine may run it, so it claims to ring nobody.
        .wasi => 0,
        else => unreachable,
    };
    std.debug.assert(millrace.Host.native.wakes == expected);
    std.debug.assert(millrace.Host.native.mechanism == expected);
}
