//! SHA-1 and SHA-256 (FIPS 180-4) of bytes that come bit by bit and are read where they lie, shared
//! memory too. Nothing is allocated.
//!
//! SHA-1 is for transcripts and tests, and for formats that name it: whoever wants to can make two
//! texts with the same SHA-1. Where somebody may gain by that, take SHA-256.

const std = @import("std");
const assert = std.debug.assert;

/// SHA-1, for transcripts and tests; not for security.
pub const Sha1 = Digest(@import("digest_sha1.zig"));
/// SHA-256.
pub const Sha256 = Digest(@import("digest_sha256.zig"));

/// Bytes that are taken at a time.
const block_size = 64;
/// Where the number of bits stands in the last block.
const length_offset = block_size - 8;

/// A digest under way, by its state between blocks. Asking for it changes nothing: more bytes can
/// follow, so that a transcript has a digest at any point. A copy of it goes on by itself.
///
/// Not threadsafe. What another thread writes into bytes while they are read is in the digest or
/// not, byte for byte, which is then that of no certain text; nothing else suffers.
fn Digest(comptime Kind: type) type {
    return struct {
        const Self = @This();

        /// Bytes of the result.
        pub const size = Kind.size;

        state: Kind.State = Kind.initial,
        /// What of the last update was no whole block yet.
        rest: [block_size]u8 = undefined,
        /// Bytes so far.
        length: u64 = 0,

        /// One of no bytes.
        pub const empty: Self = .{};

        /// Takes the bytes in, as if they stood behind all that were given before.
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

        /// Returns the same in hexadecimal.
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
