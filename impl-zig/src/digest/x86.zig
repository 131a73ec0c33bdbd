//! Blocks of SHA-1 and SHA-256 by the SHA extensions of x86-64. Used only if `processor.present`
//! says that the machine has them.

const std = @import("std");
const sha2_constants = @import("constants.zig").sha256;
const V = @Vector(4, u32);

/// A vector holds four words, the first one in the highest place, as the instructions expect.
pub fn sha1(state: *[5]u32, blocks: []const u8) void {
    const order: V = @bitCast(std.simd.reverseOrder(std.simd.iota(u8, 16)));
    var abcd: V = .{ state[3], state[2], state[1], state[0] };
    var e: V = .{ 0, 0, 0, state[4] };
    var left = blocks;
    while (left.len > 0) : (left = left[64..]) {
        const before = abcd;
        const e_before = e;
        var w = load(left[0..64], order);
        inline for (0..20) |group| {
            const own = &w[group % 4];
            // The first four rounds use the word e as it is; later rounds use it rotated.
            const sum = if (group == 0) e +% own.* else sha1nexte(e, own.*);
            e = abcd;
            abcd = sha1rnds4(abcd, sum, group / 5);
            // Computes the words of the group four groups later.
            if (group < 16) {
                const mixed = sha1msg1(own.*, w[(group + 1) % 4]) ^ w[(group + 2) % 4];
                own.* = sha1msg2(mixed, w[(group + 3) % 4]);
            }
        }
        e = sha1nexte(e, e_before);
        abcd +%= before;
    }
    state.* = .{ abcd[3], abcd[2], abcd[1], abcd[0], e[3] };
}

pub fn sha256(state: *[8]u32, blocks: []const u8) void {
    const order: V = .{ 0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f };
    var abef: V = .{ state[5], state[4], state[1], state[0] };
    var cdgh: V = .{ state[7], state[6], state[3], state[2] };
    var left = blocks;
    while (left.len > 0) : (left = left[64..]) {
        const before = .{ abef, cdgh };
        var w = load(left[0..64], order);
        inline for (0..16) |group| {
            const own = &w[group % 4];
            const sum = own.* +% @as(V, sha2_constants[4 * group ..][0..4].*);
            cdgh = sha256rnds2(cdgh, abef, sum);
            abef = sha256rnds2(abef, cdgh, @shuffle(u32, sum, undefined, [4]i32{ 2, 3, 2, 3 }));
            if (group < 12) {
                const next = w[(group + 3) % 4];
                const middle = @shuffle(u32, w[(group + 2) % 4], next, [4]i32{ 1, 2, 3, -1 });
                own.* = sha256msg2(sha256msg1(own.*, w[(group + 1) % 4]) +% middle, next);
            }
        }
        abef +%= before[0];
        cdgh +%= before[1];
    }
    state.* = .{ abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0] };
}

inline fn load(block: *const [64]u8, order: V) [4]V {
    var words: [4]V = undefined;
    inline for (&words, 0..) |*word, index| {
        const raw: V = @bitCast(block[16 * index ..][0..16].*);
        word.* = asm ("pshufb %[order], %[result]"
            : [result] "=x" (-> V),
            : [_] "0" (raw),
              [order] "x" (order),
        );
    }
    return words;
}

inline fn sha1rnds4(abcd: V, sum: V, comptime function: u8) V {
    return asm ("sha1rnds4 %[function], %[sum], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (abcd),
          [sum] "x" (sum),
          [function] "n" (function),
    );
}

inline fn sha1nexte(e: V, words: V) V {
    return asm ("sha1nexte %[words], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (e),
          [words] "x" (words),
    );
}

inline fn sha1msg1(own: V, next: V) V {
    return asm ("sha1msg1 %[next], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (own),
          [next] "x" (next),
    );
}

inline fn sha1msg2(own: V, next: V) V {
    return asm ("sha1msg2 %[next], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (own),
          [next] "x" (next),
    );
}

inline fn sha256rnds2(own: V, other: V, sum: V) V {
    return asm ("sha256rnds2 %[other], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (own),
          [other] "x" (other),
          [_] "{xmm0}" (sum),
    );
}

inline fn sha256msg1(own: V, next: V) V {
    return asm ("sha256msg1 %[next], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (own),
          [next] "x" (next),
    );
}

inline fn sha256msg2(own: V, next: V) V {
    return asm ("sha256msg2 %[next], %[result]"
        : [result] "=x" (-> V),
        : [_] "0" (own),
          [next] "x" (next),
    );
}
