//! The blocks of SHA-1 as a WebAssembly module with its own memory. The TypeScript implementation
//! contains this module (see `impl-ts/src/digest/core.ts`).
//!
//! The host copies the state and whole blocks into the memory, calls `sha1`, and copies the state
//! out.

const sha1_kind = @import("blocks.zig").sha1;

/// 64 KiB, starting at any of the first 8 bytes: copying is faster if the target is aligned as the
/// source is.
const area_size = 64 * 1024 + 8;

export var state: [5]u32 = undefined;
export var area: [area_size]u8 align(16) = undefined;

/// Processes blocks of `size` bytes in total, from `offset` in `area` on, into `state`.
export fn sha1(offset: u32, size: u32) void {
    sha1_kind.hash(&state, area[offset..][0..size]);
}
