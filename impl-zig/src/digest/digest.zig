//! SHA-1 and SHA-256 (FIPS 180-4) of bytes that come in pieces and are read in place, also from
//! shared memory. Allocates nothing.
//!
//! SHA-1 is for transcripts and tests, and for formats that prescribe it: anyone who wants to can
//! make two texts with the same SHA-1. Where somebody may gain by that, use SHA-256.

const std = @import("std");
const blocks_file = @import("blocks.zig");
const assert = std.debug.assert;

/// SHA-1, for transcripts and tests; not for security.
pub const Sha1 = Digest(blocks_file.sha1);
/// SHA-256.
pub const Sha256 = Digest(blocks_file.sha256);

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

// Tests.

const builtin = @import("builtin");
const vector = @import("processor.zig").vector;
const sha1_kind = blocks_file.sha1;
const sha256_kind = blocks_file.sha256;
const expectEqual = std.testing.expectEqual;
const expectEqualStrings = std.testing.expectEqualStrings;

/// An example of FIPS 180.
const Example = struct {
    text: []const u8,
    times: usize = 1,
    sha1: []const u8,
    sha256: []const u8,
};

const vectors = [_]Example{
    .{
        .text = "",
        .sha1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        .sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
    .{
        .text = "abc",
        .sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d",
        .sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    },
    .{
        .text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        .sha1 = "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        .sha256 = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    },
    .{
        .text = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn" ++
            "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
        .sha1 = "a49b2446a02c645bf419f995b67091253a04a259",
        .sha256 = "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
    },
    .{
        .text = "a",
        .times = 1_000_000,
        .sha1 = "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
        .sha256 = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
    },
    .{
        .text = "0123456701234567012345670123456701234567012345670123456701234567",
        .times = 10,
        .sha1 = "dea356a2cddd90c7a7ecedc5ebb563934f460452",
        .sha256 = "594847328451bdfa85056225462cc1d867d877fb388df0ce35f25ab5562bfbb5",
    },
};

/// Computes the digest by the standard library.
fn expected(comptime Kind: type, bytes: []const u8) [Kind.size]u8 {
    var result: [Kind.size]u8 = undefined;
    if (Kind == Sha1) {
        std.crypto.hash.Sha1.hash(bytes, &result, .{});
    } else {
        std.crypto.hash.sha2.Sha256.hash(bytes, &result, .{});
    }
    return result;
}

fn noise(bytes: []u8) void {
    var random: std.Random.DefaultPrng = .init(1);
    random.fill(bytes);
}

test "Sha1, Sha256: the examples of FIPS 180" {
    for (&vectors) |each| {
        inline for (.{ Sha1, Sha256 }, .{ each.sha1, each.sha256 }) |Kind, hex| {
            var digest: Kind = .empty;
            for (0..each.times) |_| digest.update(each.text);
            try expectEqualStrings(hex, &digest.hex());
            if (each.times == 1) try expectEqual(digest.result(), Kind.of(each.text));
        }
    }
}

test "Sha1, Sha256: 0 to 1,000 bytes, cut anywhere" {
    // All lengths would take seconds without optimization.
    const step: usize = if (builtin.mode == .debug) 7 else 1;
    var bytes: [1000]u8 = undefined;
    noise(&bytes);
    inline for (.{ Sha1, Sha256 }) |Kind| {
        var length: usize = 0;
        while (length <= bytes.len) : (length += step) {
            const must = expected(Kind, bytes[0..length]);
            for (0..length + 1) |cut| {
                var digest: Kind = .empty;
                digest.update(bytes[0..cut]);
                digest.update(bytes[cut..length]);
                try expectEqual(must, digest.result());
            }
        }
    }
}

test "Sha1, Sha256: asked for at every length, which changes nothing" {
    var bytes: [300]u8 = undefined;
    noise(&bytes);
    inline for (.{ Sha1, Sha256 }) |Kind| {
        var digest: Kind = .empty;
        for (0..bytes.len) |length| {
            try expectEqual(expected(Kind, bytes[0..length]), digest.result());
            digest.update(bytes[length..][0..1]);
        }
    }
}

test "Sha1, Sha256: the number of bits is above 2^32" {
    // The state after so many bytes does not matter: only the padding depends on their number.
    const others = .{ std.crypto.hash.Sha1, std.crypto.hash.sha2.Sha256 };
    inline for (.{ Sha1, Sha256 }, others) |Kind, Other| {
        const lengths = [_]u64{ (1 << 29) - 1, 1 << 29, (1 << 29) + 55, (1 << 32) + 56, 1 << 40 };
        for (lengths) |length| {
            var digest: Kind = .empty;
            var other: Other = .init(.{});
            digest.length = length - length % 64;
            other.total_len = digest.length;
            const rest: [64]u8 = @splat(7);
            digest.update(rest[0..@intCast(length % 64)]);
            other.update(rest[0..@intCast(length % 64)]);
            var must: [Kind.size]u8 = undefined;
            other.final(&must);
            try expectEqual(must, digest.result());
        }
    }
}

test "hash: every way has the same state behind it" {
    var bytes: [64 * 9]u8 = undefined;
    noise(&bytes);
    for (0..bytes.len / 64 + 1) |count| {
        const blocks = bytes[0 .. 64 * count];
        var sha1: [4]sha1_kind.State = @splat(sha1_kind.initial);
        sha1_kind.portable(&sha1[0], blocks);
        sha1_kind.hash(&sha1[1], blocks);
        vector.sha1(&sha1[2], blocks);
        try expectEqual(sha1[0], sha1[1]);
        try expectEqual(sha1[0], sha1[2]);
        var sha256: [2]sha256_kind.State = @splat(sha256_kind.initial);
        sha256_kind.portable(&sha256[0], blocks);
        sha256_kind.hash(&sha256[1], blocks);
        try expectEqual(sha256[0], sha256[1]);
    }
}
