//! Tells a process apart from those that were forked from it [segment.forked].
//!
//! Invariant: a number that this process has returned is never returned by a child of it.

const std = @import("std");
const builtin = @import("builtin");
const linux = std.os.linux;

/// Whether this target can tell processes apart. On others, a process never forks, or nothing can
/// tell.
pub const supported = builtin.os.tag == .linux and !builtin.cpu.arch.isWasm();

const page_size = if (supported) std.heap.page_size_max else 4;

/// A page that the kernel clears in a forked child. Its first word is the number of this process,
/// or 0 while it has none. A child of `vfork` shares the page, as it shares all memory.
var page: [page_size]u8 align(page_size) = @splat(0);
/// How many numbers this process, and those that it was forked from, have used.
var count: u32 = 0;

inline fn word() *u32 {
    return @ptrCast(&page);
}

/// Returns the number of this process; 0 if processes cannot be told apart.
pub fn number() u32 {
    if (!supported) return 0;
    const found = @atomicLoad(u32, word(), .seq_cst);
    if (found != 0) return found;
    const advised = linux.madvise(&page, page.len, linux.MADV.WIPEONFORK);
    // A kernel older than 4.14, or an emulator, cannot clear the page.
    if (linux.errno(advised) != .SUCCESS) return 0;
    const own = @atomicRmw(u32, &count, .Add, 1, .seq_cst) +% 1;
    // Another thread may have stored a number first.
    return @cmpxchgStrong(u32, word(), 0, own, .seq_cst, .seq_cst) orelse own;
}

/// Whether a number was returned in another process, from which this one was forked.
pub inline fn isOther(given: u32) bool {
    if (!supported or @atomicLoad(u32, word(), .monotonic) == given) return false;
    return given != 0; // 0 says nothing, because `number` could not tell
}
