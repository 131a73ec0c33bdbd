//! The blocks of SHA-1 as a module of WebAssembly with a memory of its own, which the TypeScript
//! implementation has within itself (see `impl-ts/src/digest_core.ts`).
//!
//! The host copies the state and whole blocks into the memory, calls, and copies the state out.

const sha1_kind = @import("digest_sha1.zig");

/// 64 KiB at any place of the first 8 bytes: to where it is aligned as it was, memory is copied
/// faster.
const area_size = 64 * 1024 + 8;

export var state: [5]u32 = undefined;
export var area: [area_size]u8 align(16) = undefined;

/// Takes blocks of so many bytes in all, from an offset in `area` on, into `state`.
export fn sha1(offset: u32, size: u32) void {
    sha1_kind.hash(&state, area[offset..][0..size]);
}
