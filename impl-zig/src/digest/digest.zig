//! SHA-1 and SHA-256 (FIPS 180-4) of bytes that come in pieces and are read in place, also from
//! shared memory. Allocates nothing.
//!
//! SHA-1 is for transcripts and tests, and for formats that prescribe it: anyone who wants to can
//! make two texts with the same SHA-1. Where somebody may gain by that, use SHA-256.

const std = @import("std");
const assert = std.debug.assert;

/// SHA-1, for transcripts and tests; not for security.
pub const Sha1 = Digest(@import("sha1.zig"));
/// SHA-256.
pub const Sha256 = Digest(@import("sha256.zig"));

/// The bytes that are processed at a time.
const block_size = 64;
/// The offset in the last block of the message's length in bits.
const length_offset = block_size - 8;

/// A digest in progress: the state after the last whole block, and the rest. Reading the result
/// changes nothing, and more bytes can follow, so a transcript has a digest at every point. A copy
/// is independent.
///
/// Not threadsafe. If another thread writes to bytes while they are read, each byte counts with its
/// old or its new value. The digest then fits no definite text, but nothing else is affected.
fn Digest(comptime Kind: type) type {
    return struct {
        const Self = @This();

        /// The size of the result in bytes.
        pub const size = Kind.size;

        state: Kind.State = Kind.initial,
        /// The bytes that do not fill a block yet.
        rest: [block_size]u8 = undefined,
        /// The number of bytes so far.
        length: u64 = 0,

        /// The digest of no bytes.
        pub const empty: Self = .{};

        /// Appends bytes to those given before.
        pub fn update(digest: *Self, bytes: []const u8) void {
            const held: usize = @intCast(digest.length % block_size);
            digest.length += bytes.len;
            var left = bytes;
            if (held > 0) {
                const wanted = block_size - held;
                if (bytes.len < wanted) {
                    @memcpy(digest.rest[held..][0..bytes.len], bytes);
                    return;
                }
                @memcpy(digest.rest[held..], bytes[0..wanted]);
                Kind.hash(&digest.state, &digest.rest);
                left = bytes[wanted..];
            }
            const whole = left.len - left.len % block_size;
            if (whole > 0) Kind.hash(&digest.state, left[0..whole]);
            @memcpy(digest.rest[0 .. left.len - whole], left[whole..]);
        }

        /// Returns the digest of all bytes so far.
        pub fn result(digest: *const Self) [size]u8 {
            const held: usize = @intCast(digest.length % block_size);
            var last: [2 * block_size]u8 = @splat(0);
            @memcpy(last[0..held], digest.rest[0..held]);
            last[held] = 0x80;
            const end: usize = if (held < length_offset) block_size else 2 * block_size;
            std.mem.writeInt(u64, last[end - 8 ..][0..8], digest.length *% 8, .big);
            var state = digest.state;
            Kind.hash(&state, last[0..end]);
            var bytes: [size]u8 = undefined;
            for (0..size / 4) |word| {
                std.mem.writeInt(u32, bytes[4 * word ..][0..4], state[word], .big);
            }
            return bytes;
        }

        /// Returns the digest of all bytes so far in hexadecimal.
        pub fn hex(digest: *const Self) [2 * size]u8 {
            return std.fmt.bytesToHex(digest.result(), .lower);
        }

        /// Returns the digest of some bytes.
        pub fn of(bytes: []const u8) [size]u8 {
            var digest: Self = .empty;
            digest.update(bytes);
            return digest.result();
        }
    };
}

test {
    _ = @import("digest_test.zig");
}
