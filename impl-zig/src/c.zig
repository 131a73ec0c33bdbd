//! The library for C and for everything that speaks its ABI; `include/millrace.h` describes it.
//!
//! Invariant: nothing is allocated. Objects lie in the caller's storage. A call checks every
//! argument that can be checked before it does anything, so that no caller can reach an assertion
//! of the core.

const std = @import("std");
const layout = @import("memory/layout.zig");
const arguments = @import("c/arguments.zig");
const reasons = @import("c/reasons.zig");

comptime {
    _ = @import("c/segment.zig");
    _ = @import("c/port.zig");
    _ = @import("c/codec.zig");
    _ = @import("c/mailbox.zig");
    _ = @import("c/property.zig");
    _ = @import("c/fanout.zig");
    _ = @import("c/call.zig");
    _ = @import("c/call_make.zig");
    _ = @import("c/call_serve.zig");
    _ = @import("c/call_token.zig");
    _ = @import("c/stream.zig");
    _ = @import("c/digest.zig");
    _ = @import("c/meter.zig");
}

/// Traps. Only a mistake of the library's own can lead there, never one of a caller or a peer.
pub const panic = std.debug.no_panic;

pub export fn millrace_version() u32 {
    return layout.version_major << 16 | layout.version_minor;
}

pub export fn millrace_reason_name(reason: u32) [*:0]const u8 {
    return @as(layout.Reason, @fromBackingInt(reason)).name();
}

pub export fn millrace_reason_text(reason: u32) [*:0]const u8 {
    return reasons.text(@fromBackingInt(reason));
}

pub export fn millrace_status_text(status: i32) [*:0]const u8 {
    return switch (status) {
        arguments.done => "Done.",
        arguments.nothing => "Nothing yet, or the time was over before the call could be done.",
        arguments.end => "The stream has ended.",
        arguments.invalid => "An argument is wrong, or the call does not fit what was done before.",
        arguments.unsupported => "This system has no segments in files, or no streams.",
        arguments.not_found => "A directory of the path is missing.",
        arguments.access_denied => "The system denied access to the file.",
        arguments.name_too_long => "The path is too long.",
        arguments.no_space => "The file system is full, or the user's share of it.",
        arguments.no_resources => "Too many open files, or no memory.",
        arguments.system => "The system refused for a reason that is not foreseen.",
        else => reasons.text(@fromBackingInt(if (status < 0) @abs(status) else 0)),
    };
}

test {
    _ = @import("c/abi_test.zig");
}
