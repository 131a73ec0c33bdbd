//! Blocks of SHA-1 by the cryptographic extension of aarch64. Used only if `processor.way` says
//! that the target has it.

const std = @import("std");
const constants = @import("constants.zig").sha1;
const V = @Vector(4, u32);

pub fn sha1(state: *[5]u32, blocks: []const u8) void {
    var abcd: V = state[0..4].*;
    var e: u32 = state[4];
    var left = blocks;
    while (left.len > 0) : (left = left[64..]) {
        const before = abcd;
        const e_before = e;
        var w: [4]V = undefined;
        inline for (&w, 0..) |*word, index| {
            word.* = @byteSwap(@as(V, @bitCast(left[16 * index ..][0..16].*)));
        }
        inline for (0..20) |group| {
            const own = &w[group % 4];
            const sum = own.* +% @as(V, @splat(constants[group / 5]));
            const next_e = std.math.rotl(u32, abcd[0], 30);
            abcd = rounds(abcd, e, sum, group / 5);
            e = next_e;
            if (group < 16) {
                own.* = schedule(own.*, w[(group + 1) % 4], w[(group + 2) % 4], w[(group + 3) % 4]);
            }
        }
        abcd +%= before;
        e +%= e_before;
    }
    state[0..4].* = abcd;
    state[4] = e;
}

/// Four rounds.
inline fn rounds(abcd: V, e: u32, sum: V, comptime function: u8) V {
    const name = switch (function) {
        0 => "sha1c",
        2 => "sha1m",
        else => "sha1p",
    };
    return asm (name ++ ".4s %[result], %[e:s], %[sum]"
        : [result] "=w" (-> V),
        : [_] "0" (abcd),
          [e] "w" (e),
          [sum] "w" (sum),
    );
}

/// The next four words after sixteen.
inline fn schedule(first: V, second: V, third: V, fourth: V) V {
    return asm (
        \\sha1su0.4s %[result], %[second], %[third]
        \\sha1su1.4s %[result], %[fourth]
        : [result] "=&w" (-> V),
        : [_] "0" (first),
          [second] "w" (second),
          [third] "w" (third),
          [fourth] "w" (fourth),
    );
}
