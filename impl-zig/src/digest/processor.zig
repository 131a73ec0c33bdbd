//! Blocks by the instructions of processors, and which of these the processor has.

const std = @import("std");
const builtin = @import("builtin");
const constants = @import("blocks.zig").constants;
const V = @Vector(4, u32);
const little = builtin.cpu.arch.endian() == .little;

pub const Way = enum(u8) {
    /// The SHA extensions of x86-64.
    x86,
    /// The cryptographic extension of aarch64, if the target is known to have it.
    aarch64,
    /// 128-bit vectors whose bytes can be shuffled: WebAssembly.
    vector,
    portable,
};

/// The fastest way that the target may have; `present` says whether this machine has it.
pub const way: Way = switch (builtin.cpu.arch) {
    .x86_64 => switch (builtin.zig_backend) {
        .stage2_llvm => .x86,
        // The C backend cannot pass vectors to assembly.
        .stage2_c => .portable,
        // Zig's own backend refuses instructions that the target is not known to have.
        else => if (is_said) .x86 else .portable,
    },
    .aarch64 => if (builtin.zig_backend != .stage2_c and builtin.cpu.has(.aarch64, .sha2))
        .aarch64
    else
        .portable,
    .wasm32, .wasm64 => if (builtin.cpu.has(.wasm, .simd128)) .vector else .portable,
    else => .portable,
};

/// Whether every x86-64 machine of this target has the instructions.
const is_said = builtin.cpu.arch == .x86_64 and builtin.cpu.hasAll(.x86, &.{ .sha, .ssse3 });

/// Whether only the machine itself can tell: programs for x86-64 run on processors with and
/// without.
const is_asked = way == .x86 and !is_said;

/// The machine's answer. It is asked once, because in a virtual machine, the host answers.
var answer: enum(u8) { unknown, no, yes } = .unknown;

/// Whether the machine has `way`. Threadsafe.
pub inline fn present() bool {
    return !is_asked or asked();
}

fn asked() bool {
    const before = @atomicLoad(@TypeOf(answer), &answer, .monotonic);
    if (before != .unknown) return before == .yes;
    const found = hasSha();
    @atomicStore(@TypeOf(answer), &answer, if (found) .yes else .no, .monotonic);
    return found;
}

/// Whether an x86-64 processor has the SHA extensions, and SSSE3, which shuffles bytes.
fn hasSha() bool {
    const sha = 1 << 29;
    const ssse3 = 1 << 9;
    const highest = cpuid(0)[0];
    return highest >= 7 and cpuid(7)[1] & sha != 0 and cpuid(1)[2] & ssse3 != 0;
}

/// Returns the registers eax, ebx, ecx and edx for a leaf.
fn cpuid(leaf: u32) [4]u32 {
    var eax: u32 = undefined;
    var ebx: u32 = undefined;
    var ecx: u32 = undefined;
    var edx: u32 = undefined;
    asm volatile ("cpuid"
        : [_] "={eax}" (eax),
          [_] "={ebx}" (ebx),
          [_] "={ecx}" (ecx),
          [_] "={edx}" (edx),
        : [_] "{eax}" (leaf),
          [_] "{ecx}" (@as(u32, 0)),
    );
    return .{ eax, ebx, ecx, edx };
}

/// Blocks of SHA-1 and SHA-256 by the SHA extensions of x86-64. Used only if `present`
/// says that the machine has them.
pub const x86 = struct {
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
                const sum = own.* +% @as(V, constants.sha256[4 * group ..][0..4].*);
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
};

/// Blocks of SHA-1 by the cryptographic extension of aarch64. Used only if `way` says
/// that the target has it.
pub const aarch64 = struct {
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
                const sum = own.* +% @as(V, @splat(constants.sha1[group / 5]));
                const next_e = std.math.rotl(u32, abcd[0], 30);
                abcd = rounds(abcd, e, sum, group / 5);
                e = next_e;
                if (group < 16) {
                    const next = w[(group + 1) % 4];
                    own.* = schedule(own.*, next, w[(group + 2) % 4], w[(group + 3) % 4]);
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
};

/// Blocks of SHA-1 by vectors of four words, for WebAssembly. In V8 15: 624 MB/s, where the blocks
/// of the standard library have 566, and the library hash-wasm 583.
pub const vector = struct {
    /// How many groups of four words are computed ahead of the rounds that use them.
    const ahead = 4;

    /// The rounds use one word after the other, but words are computed four at a time. They pass
    /// through memory: extracting them from a vector one by one would cost a tenth more.
    pub fn sha1(state: *[5]u32, blocks: []const u8) void {
        // Volatile, so that the compiler does not optimize the memory away.
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

    /// One round. The values stay in place; instead, the names of the variables rotate.
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

    /// Four words of rounds 16 to 31, by the rule of FIPS 180-4: the last of them depends on the
    /// first.
    inline fn early(w: *const [4]V) V {
        const three_back = @shuffle(u32, w[3], @as(V, @splat(0)), [4]i32{ 1, 2, 3, -1 });
        const mixed = three_back ^ w[2] ^ behind(w[0], w[1]) ^ w[0];
        const words = rotated(mixed, 1);
        const missing = @shuffle(u32, words, @as(V, @splat(0)), [4]i32{ -1, -1, -1, 0 });
        return words ^ rotated(missing, 1);
    }

    /// Four words of later rounds. The rule is applied to itself, so that none of the four depends
    /// on another one.
    inline fn late(w: *const [8]V) V {
        return rotated(behind(w[6], w[7]) ^ w[4] ^ w[1] ^ w[0], 2);
    }

    /// Four words, from the third word of the first vector on.
    inline fn behind(first: V, second: V) V {
        return @shuffle(u32, first, second, [4]i32{ 2, 3, -1, -2 });
    }

    inline fn rotated(words: V, comptime bits: u5) V {
        return words << @splat(bits) | words >> @splat(@as(u5, 32 - @as(u6, bits)));
    }
};
