//! Tells a process from those that were forked from it [segment.forked].
//!
//! Invariant: a number that this process has given out is never that of a child of it.

const std = @import("std");
const builtin = @import("builtin");
const linux = std.os.linux;

/// Whether this target can tell. Others never fork, or are not told.
pub const supported = builtin.os.tag == .linux and !builtin.cpu.arch.isWasm();

const page_size = if (supported) std.heap.page_size_max else 4;

/// A page of its own, which the kernel clears in a child that is forked. Its first word is the
/// number of this process, or 0 where none was given out yet. `vfork` shares it, as it shares all.
var page: [page_size]u8 align(page_size) = @splat(0);
/// How many numbers this process, and those that it was forked from, have given out.
var count: u32 = 0;

inline fn word() *u32 {
    return @ptrCast(&page);
}

/// The number of this process; 0 where nobody can tell.
pub fn number() u32 {
    if (!supported) return 0;
    const found = @atomicLoad(u32, word(), .seq_cst);
    if (found != 0) return found;
    const advised = linux.madvise(&page, page.len, linux.MADV.WIPEONFORK);
    // A kernel before 4.14, or an emulator.
    if (linux.errno(advised) != .SUCCESS) return 0;
    const own = @atomicRmw(u32, &count, .Add, 1, .seq_cst) +% 1;
    // Another thread may have been faster.
    return @cmpxchgStrong(u32, word(), 0, own, .seq_cst, .seq_cst) orelse own;
}

/// Whether a number was given out by another process, of which this one is a fork.
pub inline fn isOther(given: u32) bool {
    if (!supported or @atomicLoad(u32, word(), .monotonic) == given) return false;
    return given != 0; // else nobody could tell when it was asked for
}
