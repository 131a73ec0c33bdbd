//! Finds out which instructions for digests the processor has.

const builtin = @import("builtin");

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
