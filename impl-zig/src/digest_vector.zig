//! Blocks for WebAssembly. SHA-1 goes by vectors of four words: in V8 15, 624 MB/s where the
//! standard library's blocks have 566, and the library hash-wasm 583. SHA-256, whose words depend
//! on each other too soon for that, is a loop: the standard library's is as fast, and 3 KB longer.

const std = @import("std");
const constants = @import("digest_constants.zig");
const V = @Vector(4, u32);

/// How many groups of four words are made before the rounds that take them.
const ahead = 4;

/// The rounds take one word after the other, their words are made four at a time. From the one to
/// the other they go through memory: taken out of a vector one by one, they cost a tenth more.
pub fn sha1(state: *[5]u32, blocks: []const u8) void {
    // Volatile, or the compiler sees through it.
    var room: [40]u64 align(16) = undefined;
    const pairs: *volatile [40]u64 = &room;
    var sum = state.*;
    var left = blocks;
    while (left.len > 0) : (left = left[64..]) {
        var w: [20]V = undefined;
        var variables = sum;
        inline for (0..20 + ahead) |step| {
            if (step < 20) {
                w[step] = if (step < 4)
                    @byteSwap(@as(V, @bitCast(left[16 * step ..][0..16].*)))
                else if (step < 8)
                    early(w[step - 4 ..][0..4])
                else
                    late(w[step - 8 ..][0..8]);
                const place: *volatile V = @ptrCast(@alignCast(pairs[2 * step ..][0..2]));
                place.* = w[step] +% @as(V, @splat(constants.sha1[step / 5]));
            }
            if (step >= ahead) inline for (0..2) |half| {
                const first = 4 * (step - ahead) + 2 * half;
                const pair = pairs[first / 2];
                round(first, &variables, @truncate(if (little) pair else pair >> 32));
                round(first + 1, &variables, @truncate(if (little) pair >> 32 else pair));
            };
        }
        for (&sum, variables) |*word, variable| word.* +%= variable;
    }
    state.* = sum;
}

const little = @import("builtin").cpu.arch.endian() == .little;

/// One round: no variable moves on, but the names do.
inline fn round(comptime number: usize, variables: *[5]u32, word: u32) void {
    const first = 5 - number % 5;
    const a = variables[first % 5];
    const b = &variables[(first + 1) % 5];
    const c = variables[(first + 2) % 5];
    const d = variables[(first + 3) % 5];
    const e = &variables[(first + 4) % 5];
    const chosen = switch (number / 20) {
        0 => d ^ (b.* & (c ^ d)),
        2 => (b.* & c) +% (d & (b.* ^ c)),
        else => b.* ^ c ^ d,
    };
    e.* = e.* +% std.math.rotl(u32, a, 5) +% chosen +% word;
    b.* = std.math.rotl(u32, b.*, 30);
}

/// Four words of the rounds 16 to 31, by the rule of FIPS 180-4: the last of them needs the first.
inline fn early(w: *const [4]V) V {
    const three_back = @shuffle(u32, w[3], @as(V, @splat(0)), [4]i32{ 1, 2, 3, -1 });
    const mixed = three_back ^ w[2] ^ behind(w[0], w[1]) ^ w[0];
    const words = rotated(mixed, 1);
    const missing = @shuffle(u32, words, @as(V, @splat(0)), [4]i32{ -1, -1, -1, 0 });
    return words ^ rotated(missing, 1);
}

/// Four words of later rounds: the rule put into itself, so that none needs another of the four.
inline fn late(w: *const [8]V) V {
    return rotated(behind(w[6], w[7]) ^ w[4] ^ w[1] ^ w[0], 2);
}

/// The four words from the third of the first vector on.
inline fn behind(first: V, second: V) V {
    return @shuffle(u32, first, second, [4]i32{ 2, 3, -1, -2 });
}

inline fn rotated(words: V, comptime bits: u5) V {
    return words << @splat(bits) | words >> @splat(@as(u5, 32 - @as(u6, bits)));
}

pub fn sha256(state: *[8]u32, blocks: []const u8) void {
    var sum = state.*;
    var left = blocks;
    while (left.len > 0) : (left = left[64..]) {
        var w: [16]u32 = undefined;
        inline for (&w, 0..) |*word, index| {
            word.* = std.mem.readInt(u32, left[4 * index ..][0..4], .big);
        }
        var variables = sum;
        var first: usize = 0;
        while (true) {
            inline for (w, 0..) |word, index| {
                round256(index, &variables, word +% constants.sha256[first + index]);
            }
            first += 16;
            if (first == 64) break;
            inline for (0..16) |index| {
                const early_word = w[(index + 1) % 16];
                const late_word = w[(index + 14) % 16];
                const mixed_early = rotr(early_word, 7) ^ rotr(early_word, 18) ^ early_word >> 3;
                const mixed_late = rotr(late_word, 17) ^ rotr(late_word, 19) ^ late_word >> 10;
                w[index] +%= mixed_early +% w[(index + 9) % 16] +% mixed_late;
            }
        }
        for (&sum, variables) |*word, variable| word.* +%= variable;
    }
    state.* = sum;
}

/// One round: no variable moves on, but the names do.
inline fn round256(comptime number: usize, variables: *[8]u32, word: u32) void {
    const first = 8 - number % 8;
    const a = variables[first % 8];
    const b = variables[(first + 1) % 8];
    const c = variables[(first + 2) % 8];
    const d = &variables[(first + 3) % 8];
    const e = variables[(first + 4) % 8];
    const f = variables[(first + 5) % 8];
    const g = variables[(first + 6) % 8];
    const h = &variables[(first + 7) % 8];
    const sum = h.* +% (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +% (g ^ (e & (f ^ g))) +% word;
    d.* +%= sum;
    h.* = sum +% (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) +% ((a & b) | (c & (a | b)));
}

inline fn rotr(word: u32, comptime bits: u5) u32 {
    return std.math.rotr(u32, word, bits);
}
