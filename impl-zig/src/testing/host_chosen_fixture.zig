//! `host_fixture.zig` for a program that chooses its host.

const std = @import("std");
const millrace = @import("millrace");

pub const millrace_host = &millrace.host.wasmtime;

comptime {
    const expected = millrace.layout.wake_mechanism_wasmtime;
    std.debug.assert(millrace.Host.native.wakes == expected);
    std.debug.assert(millrace.Host.native.mechanism == expected);
}
