//! What Millrace needs from the machine: a clock, a way to sleep on a word of shared memory, and a
//! way to wake those who sleep there. There is one value of `Host` for each wake mechanism
//! [wait.mechanism]; the rest of the code does not know which one it has.
//!
//! Calls through a `Host` are indirect. They happen only around a sleep, never on the path of a
//! message that finds its reader awake.

const std = @import("std");
const builtin = @import("builtin");
const root = @import("root");
const layout = @import("../memory/layout.zig");
const assert = std.debug.assert;
const is_wasm = builtin.target.cpu.arch.isWasm();
const has_wasm_wait = is_wasm and std.Target.wasm.featureSetHas(
    builtin.target.cpu.features,
    .atomics,
);

comptime {
    // [segment.little_endian] The structures are used in place, so the target must be
    // little-endian.
    if (builtin.target.cpu.arch.endian() != .little) {
        @compileError("Cannot build millrace: the target is not little-endian");
    }
}

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;

/// How long a call may wait. `.none` tries once, `.forever` has no limit, and `.ms(10)` is 10
/// milliseconds. A call makes it a `Deadline` once, before it first waits [wait.deadline].
pub const Timeout = enum(u64) {
    none = 0,
    forever = std.math.maxInt(u64),
    /// Any other value is a number of nanoseconds.
    _,

    /// Nanoseconds; 0 means `.none`.
    pub fn ns(count: u64) Timeout {
        return @fromBackingInt(count);
    }

    /// Microseconds; 0 means `.none`.
    pub fn us(count: u64) Timeout {
        return ns(count *| ns_per_us);
    }

    /// Milliseconds; 0 means `.none`.
    pub fn ms(count: u64) Timeout {
        return ns(count *| ns_per_ms);
    }

    /// Milliseconds as JavaScript has them: 0 or less and NaN mean `.none`, Infinity means
    /// `.forever`.
    pub fn fromFloatMs(count: f64) Timeout {
        if (!(count > 0)) return .none;
        if (count >= 1e12) return .forever;
        // At least one nanosecond, because 0 would mean not to wait.
        const nanoseconds: u64 = @intFromFloat(count * ns_per_ms);
        return ns(@max(1, nanoseconds));
    }
};

/// The time at which a call gives up.
///
/// It reads the clock on the first question, so that a call that need not wait never reads it.
pub const Deadline = struct {
    timeout: Timeout,
    /// The time in nanoseconds of `Host.now`; valid once `started`.
    at_ns: u64 = 0,
    started: bool = false,
    /// Whether `over` was called before.
    asked: bool = false,
    /// How many looks the waits of the call have made, on a thread that must not block.
    looks: u32 = 0,

    /// Half of the looks that the clause allows are for the call itself, which looks before each
    /// wait and after the last one [wait.no_block].
    const looks_max = layout.wait_no_block_looks / 2 - 1;

    pub fn init(timeout: Timeout) Deadline {
        return .{ .timeout = timeout };
    }

    /// Returns the nanoseconds that are left; 0 after the deadline.
    pub fn left(deadline: *Deadline, host: *const Host) u64 {
        return switch (deadline.timeout) {
            .none => 0,
            .forever => std.math.maxInt(u64),
            else => deadline.leftAt(host.now()),
        };
    }

    /// `left` for a caller that has read the clock.
    pub fn leftAt(deadline: *Deadline, now: u64) u64 {
        switch (deadline.timeout) {
            .none => return 0,
            .forever => return std.math.maxInt(u64),
            else => {},
        }
        if (!deadline.started) {
            deadline.started = true;
            deadline.at_ns = now +| @as(u64, @backingInt(deadline.timeout));
        }
        return deadline.at_ns -| now;
    }

    pub fn passed(deadline: *Deadline, host: *const Host) bool {
        return deadline.left(host) == 0;
    }

    /// Counts one more look of a call that must not block. Returns false if it has made all of
    /// them.
    pub fn takeLook(deadline: *Deadline) bool {
        if (deadline.looks == looks_max) return false;
        deadline.looks += 1;
        return true;
    }

    /// `passed`, except that the first call does not read the clock and returns false if the call
    /// may wait, because no time worth counting has passed yet. Reading the clock waits for all
    /// loads before it, one of which may be on its way from another core. In a model of the loop in
    /// C, that doubled the time of an echo; here, the difference was lost in the noise (x86-64).
    pub fn over(deadline: *Deadline, host: *const Host) bool {
        if (deadline.timeout == .none) return true;
        const first = !deadline.asked;
        deadline.asked = true;
        return !first and deadline.passed(host);
    }
};

/// A wake mechanism and a clock. Immutable; may be shared by any number of threads.
pub const Host = struct {
    /// The mechanisms that this host can ring [wait.wakes]: bits `layout.wake_mechanism_*`.
    wakes: u32,
    /// The mechanism by which `sleep` sleeps; 0 if `sleep` only pauses, so that the endpoint polls.
    mechanism: u32,
    /// Whether an outsider that cannot ring by this mechanism may change a state [wait.slice].
    outsiders: bool = false,
    /// Returns the monotonic time in nanoseconds, from any origin.
    now: *const fn () u64,
    /// Sleeps while the word holds `expected`, at most `limit_ns`. May return early for no reason.
    /// Returns false if only the end of that time has ended the sleep.
    sleep: *const fn (word: *const u32, expected: u32, limit_ns: u64) bool,
    /// Wakes all that sleep on the word: a sleeper whose time is already up would take a single
    /// wake from the others [wait.ring].
    notify: *const fn (word: *const u32) void,
    /// Pauses the thread for about so long, whatever happens meanwhile [wait.poll].
    pause: *const fn (limit_ns: u64) void,
    /// Returns how many processors this process may use. Spinning makes sense with two or more.
    processor_count: *const fn () u32,

    /// The host that calls use by default: `millrace_host` of the root source file if it declares
    /// one, and otherwise the mechanism of the target.
    ///
    /// The same WebAssembly instructions wake different sleepers under different engines. A
    /// freestanding module is assumed to run in a JavaScript engine. A WASI command may run under
    /// any engine, so it polls. A program that knows its engine can choose another host for itself,
    /// or for one endpoint:
    ///
    ///     pub const millrace_host = &millrace.host.wasmtime;
    pub const native: *const Host = if (@hasDecl(root, "millrace_host"))
        root.millrace_host
    else if (is_wasm and has_wasm_wait and builtin.os.tag == .freestanding)
        &wasm_agent
    else if (builtin.os.tag == .linux)
        &linux_futex
    else
        &polling;
};

/// WebAssembly with shared memory, in a JavaScript engine: agents and the modules in them wake one
/// another.
pub const wasm_agent: Host = wasmHost(layout.wake_mechanism_agent);

/// WebAssembly with shared memory, in one engine of wasmtime: its guests wake one another.
pub const wasmtime: Host = wasmHost(layout.wake_mechanism_wasmtime);

fn wasmHost(mechanism: u32) Host {
    return .{
        .wakes = mechanism,
        .mechanism = mechanism,
        // The host program of wasmtime's guests sees their memory, but cannot ring in it.
        .outsiders = mechanism == layout.wake_mechanism_wasmtime,
        .now = clock.now,
        .sleep = wasm.sleep,
        .notify = wasm.notify,
        .pause = wasm.pause,
        .processor_count = assumeTwo,
    };
}

/// Threads and processes of Linux that share a mapping. Without the PRIVATE flag, which would limit
/// wakes to one process.
pub const linux_futex: Host = .{
    .wakes = layout.wake_mechanism_futex,
    .mechanism = layout.wake_mechanism_futex,
    .now = clock.now,
    .sleep = linux.sleep,
    .notify = linux.notify,
    .pause = pause,
    .processor_count = linux.processorCount,
};

/// Any machine: nobody is rung, and every sleep is a pause before the next look [wait.poll].
pub const polling: Host = .{
    .wakes = 0,
    .mechanism = 0,
    .now = clock.now,
    .sleep = sleepBlind,
    .notify = notifyNobody,
    .pause = pause,
    .processor_count = assumeTwo,
};

/// Only for WebAssembly: returns the first address after the module's stack and data, rounded up to
/// the alignment of a segment. Memory that instances share lies at this address or above.
pub fn heapBase() usize {
    if (!is_wasm) @compileError("Cannot tell the heap base: the target is not WebAssembly");
    const heap_base = @extern(*const u8, .{ .name = "__heap_base" });
    return std.mem.alignForward(usize, @intFromPtr(heap_base), layout.segment_align);
}

fn sleepBlind(word: *const u32, expected: u32, limit_ns: u64) bool {
    if (@atomicLoad(u32, word, .seq_cst) != expected) return true;
    pause(limit_ns);
    return false;
}

fn notifyNobody(_: *const u32) void {}

/// A sandboxed guest cannot find out. If the guess is wrong, spinning for 50 µs with one processor
/// costs less than a sleep of 80 µs per message with many.
fn assumeTwo() u32 {
    return 2;
}

const pause = if (is_wasm)
    (if (has_wasm_wait) wasm.pause else wasi.pause)
else switch (builtin.os.tag) {
    .linux => linux.pause,
    .windows => windows.pause,
    else => posix.pause,
};

const wasm = struct {
    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        const limit: i64 = @intCast(@min(limit_ns, std.math.maxInt(i64)));
        const result = asm volatile (
            \\local.get %[word]
            \\local.get %[expected]
            \\local.get %[limit]
            \\memory.atomic.wait32 0
            \\local.set %[result]
            : [result] "=r" (-> u32),
            : [word] "r" (word),
              [expected] "r" (@as(i32, @bitCast(expected))),
              [limit] "r" (limit),
            : .{ .memory = true });
        assert(result <= 2); // 0 woken, 1 not equal, 2 timed out
        return result != 2;
    }

    fn notify(word: *const u32) void {
        const all: u32 = std.math.maxInt(u32);
        _ = asm volatile (
            \\local.get %[word]
            \\local.get %[count]
            \\memory.atomic.notify 0
            \\local.set %[result]
            : [result] "=r" (-> u32),
            : [word] "r" (word),
              [count] "r" (all),
            : .{ .memory = true });
    }

    /// Nobody notifies this word, so a sleep on it is a pause.
    var nobody: u32 = 0;

    fn pause(limit_ns: u64) void {
        _ = wasm.sleep(&nobody, 0, limit_ns);
    }
};

const linux = struct {
    const os = std.os.linux;

    fn timespec(ns: u64) os.timespec {
        return .{ .sec = @intCast(ns / 1_000_000_000), .nsec = @intCast(ns % 1_000_000_000) };
    }

    /// From this time on, a sleep is long: it lasts several ticks of the kernel, which are at most
    /// 10 ms.
    const long_ns = 50 * ns_per_ms;

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        if (limit_ns >= long_ns) return sleepLong(word, expected, limit_ns);
        const limit = timespec(limit_ns);
        const op: os.FUTEX_OP = .{ .cmd = .WAIT, .private = false };
        // Woken, changed and interrupted all mean: look again.
        return os.errno(os.futex_4arg(word, op, expected, &limit)) != .TIMEDOUT;
    }

    /// Sleeps until an absolute time, counted from the last tick, so that neither this function nor
    /// the kernel reads the clock itself. An echo between two threads that sleep on one processor
    /// takes 3 % less (measured, x86-64). The sleep ends at most one tick early.
    fn sleepLong(word: *const u32, expected: u32, limit_ns: u64) bool {
        var until: os.timespec = undefined;
        const result = os.clock_gettime(.MONOTONIC_COARSE, &until);
        assert(result == 0);
        const limit = timespec(@min(limit_ns, 3_600_000_000_000));
        until.sec += limit.sec;
        until.nsec += limit.nsec;
        if (until.nsec >= 1_000_000_000) {
            until.sec += 1;
            until.nsec -= 1_000_000_000;
        }
        const op: os.FUTEX_OP = .{ .cmd = .WAIT_BITSET, .private = false };
        const any = std.math.maxInt(u32);
        const ended = os.futex(word, op, expected, .{ .timeout = &until }, null, any);
        return os.errno(ended) != .TIMEDOUT;
    }

    fn notify(word: *const u32) void {
        const all: u32 = std.math.maxInt(i32);
        _ = os.futex_3arg(word, .{ .cmd = .WAKE, .private = false }, all);
    }

    fn pause(limit_ns: u64) void {
        const limit = timespec(@min(limit_ns, 3_600_000_000_000));
        _ = os.nanosleep(&limit, null);
    }

    fn processorCount() u32 {
        var set: os.cpu_set_t = @splat(0);
        const result = os.sched_getaffinity(0, @sizeOf(os.cpu_set_t), &set);
        if (os.errno(result) != .SUCCESS) return 1;
        var count: u32 = 0;
        for (set) |word| count += @popCount(word);
        return @max(1, count);
    }
};

const windows = struct {
    const ntdll = std.os.windows.ntdll;

    fn pause(limit_ns: u64) void {
        // In steps of 100 ns; a negative number is relative to now.
        const steps: i64 = @intCast(@min(limit_ns, 3_600_000_000_000) / 100);
        const interval: std.os.windows.LARGE_INTEGER = -steps;
        _ = ntdll.NtDelayExecution(.FALSE, &interval);
    }
};

const posix = struct {
    /// The other systems offer their clocks and sleeps only through libc.
    fn pause(limit_ns: u64) void {
        const limit: std.c.timespec = .{
            .sec = @intCast(@min(limit_ns / 1_000_000_000, 3_600)),
            .nsec = @intCast(limit_ns % 1_000_000_000),
        };
        _ = std.c.nanosleep(&limit, null);
    }
};

const wasi = struct {
    fn pause(limit_ns: u64) void {
        const subscription: std.os.wasi.subscription_t = .{
            .userdata = 0,
            .u = .{ .tag = .CLOCK, .u = .{ .clock = .{
                .id = .MONOTONIC,
                .timeout = limit_ns,
                .precision = 0,
                .flags = 0,
            } } },
        };
        var event: std.os.wasi.event_t = undefined;
        var count: usize = 0;
        _ = std.os.wasi.poll_oneoff(&subscription, &event, 1, &count);
    }
};

const clock = if (is_wasm and builtin.os.tag == .freestanding) struct {
    /// The only function that a freestanding module needs from its host. Returns microseconds that
    /// never go back, such as `performance.now() * 1000`. Steps of a millisecond are good enough.
    extern "millrace" fn now_us() f64;

    fn now() u64 {
        const microseconds = now_us();
        assert(microseconds >= 0);
        return @intFromFloat(microseconds * ns_per_us);
    }
} else if (builtin.os.tag == .wasi) struct {
    fn now() u64 {
        var ns: std.os.wasi.timestamp_t = 0;
        const result = std.os.wasi.clock_time_get(.MONOTONIC, 1_000, &ns);
        assert(result == .SUCCESS);
        return ns;
    }
} else if (builtin.os.tag == .linux) struct {
    fn now() u64 {
        var time: std.os.linux.timespec = undefined;
        const result = std.os.linux.clock_gettime(.MONOTONIC, &time);
        assert(result == 0);
        return @as(u64, @intCast(time.sec)) * 1_000_000_000 + @as(u64, @intCast(time.nsec));
    }
} else if (builtin.os.tag == .windows) struct {
    fn now() u64 {
        var frequency: std.os.windows.LARGE_INTEGER = undefined;
        var counter: std.os.windows.LARGE_INTEGER = undefined;
        // Neither call has failed since Windows XP.
        assert(windows.ntdll.RtlQueryPerformanceFrequency(&frequency).toBool());
        assert(windows.ntdll.RtlQueryPerformanceCounter(&counter).toBool());
        const ns = @as(u128, @intCast(counter)) * 1_000_000_000 / @as(u64, @intCast(frequency));
        return @truncate(ns);
    }
} else struct {
    fn now() u64 {
        var time: std.c.timespec = undefined;
        const result = std.c.clock_gettime(.MONOTONIC, &time);
        assert(result == 0);
        return @as(u64, @intCast(time.sec)) * 1_000_000_000 + @as(u64, @intCast(time.nsec));
    }
};
