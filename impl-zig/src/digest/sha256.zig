//! How SHA-256 processes blocks (FIPS 180-4, 6.2.2).

const std = @import("std");
const processor = @import("processor.zig");
const x86 = @import("x86.zig");

pub const State = [8]u32;
/// The size of the result in bytes.
pub const size = 32;
pub const initial: State = .{
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/// Processes whole blocks, in the fastest way that this processor has.
pub fn hash(state: *State, blocks: []const u8) void {
    if (processor.way == .x86 and processor.present()) return x86.sha256(state, blocks);
    portable(state, blocks);
}

/// The code of the standard library, which uses the instructions of aarch64 if the target has them.
pub fn portable(state: *State, blocks: []const u8) void {
    var other: std.crypto.hash.sha2.Sha256 = .init(.{});
    other.s = state.*;
    other.update(blocks);
    state.* = other.s;
}
