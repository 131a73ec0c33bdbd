//! Asynchronous sleeps on words of mapped files: one thread sleeps for all that an environment has,
//! by the system call that waits for several words at once (Linux 5.16 and later).

const std = @import("std");
const linux = std.os.linux;
const napi = @import("napi.zig");
const Mapping = @import("mapping.zig").Mapping;
const assert = std.debug.assert;

// The C library of the process that loads the addon, whichever it is.
extern fn pthread_create(
    thread: *usize,
    attributes: ?*const anyopaque,
    start: *const fn (?*anyopaque) callconv(.c) ?*anyopaque,
    given: ?*anyopaque,
) c_int;
extern fn pthread_join(thread: usize, result: ?*?*anyopaque) c_int;

/// The kernel takes 128 words; one is the thread's own.
const count_max = 127;

const Sleep = struct {
    state: std.atomic.Value(State) = .init(.free),
    sleepers: *Sleepers,
    mapping: *Mapping,
    word: *const u32,
    expected: u32,
    deadline_ns: u64,
    keeps: bool,
    deferred: napi.Deferred,
    timed_out: bool,

    /// `free` and `over` belong to the environment, `asleep` to the thread that sleeps.
    const State = enum(u32) { free, asleep, over };
};

pub const Sleepers = struct {
    env: napi.Env,
    /// Tells the environment that a sleep is over, and is what keeps its loop alive.
    teller: napi.ThreadsafeFunction,
    thread: usize,
    /// How many sleeps keep the loop alive.
    keeper_count: u32,
    /// Changed, and rung, when there is something new for the thread.
    changes: std.atomic.Value(u32),
    is_ending: std.atomic.Value(bool),
    sleeps: [count_max]Sleep,

    const allocator = std.heap.page_allocator;

    /// Starts the thread of an environment. Null where the system has no such call, or no memory.
    pub fn create(env: napi.Env) ?*Sleepers {
        // It refuses to wait for nothing, where it exists.
        const probe = linux.futex2_waitv(undefined, 0, .{}, null, .MONOTONIC);
        if (linux.errno(probe) != .INVAL) return null;
        const sleepers = allocator.create(Sleepers) catch return null;
        sleepers.env = env;
        sleepers.keeper_count = 0;
        sleepers.changes = .init(0);
        sleepers.is_ending = .init(false);
        for (&sleepers.sleeps) |*sleep| {
            sleep.state = .init(.free);
            sleep.sleepers = sleepers;
        }
        sleepers.makeTeller() catch {
            allocator.destroy(sleepers);
            return null;
        };
        if (pthread_create(&sleepers.thread, null, run, sleepers) != 0) {
            // Its end destroys the sleepers.
            _ = napi.napi_release_threadsafe_function(sleepers.teller, .abort);
            return null;
        }
        // After that of the teller, so that it runs before it: the thread must not tell then.
        _ = napi.napi_add_env_cleanup_hook(env, end, sleepers);
        return sleepers;
    }

    fn makeTeller(sleepers: *Sleepers) error{Refused}!void {
        const env = sleepers.env;
        const label = "millrace sleep";
        var name: napi.Value = undefined;
        if (napi.napi_create_string_utf8(env, label, label.len, &name) != .ok) return error.Refused;
        const made = napi.napi_create_threadsafe_function(
            env,
            null,
            null,
            name,
            0,
            1,
            sleepers,
            destroy,
            sleepers,
            tell,
            &sleepers.teller,
        );
        if (made != .ok) return error.Refused;
        // It keeps the loop alive while a sleep does.
        _ = napi.napi_unref_threadsafe_function(env, sleepers.teller);
    }

    /// Sleeps while a word holds `expected`, and returns the promise of whether anything but the
    /// time has ended it. Null if there are too many.
    pub fn sleepAsync(
        sleepers: *Sleepers,
        mapping: *Mapping,
        word: *const u32,
        expected: u32,
        ms: f64,
        keeps: bool,
    ) ?napi.Value {
        const sleep = for (&sleepers.sleeps) |*sleep| {
            if (sleep.state.load(.acquire) == .free) break sleep;
        } else return null;
        var promise: napi.Value = undefined;
        if (napi.napi_create_promise(sleepers.env, &sleep.deferred, &promise) != .ok) return null;
        mapping.hold();
        sleep.mapping = mapping;
        sleep.word = word;
        sleep.expected = expected;
        sleep.deadline_ns = now() + @as(u64, @intFromFloat(ms * std.time.ns_per_ms));
        sleep.keeps = keeps;
        if (keeps) {
            sleepers.keeper_count += 1;
            if (sleepers.keeper_count == 1) {
                _ = napi.napi_ref_threadsafe_function(sleepers.env, sleepers.teller);
            }
        }
        sleep.state.store(.asleep, .release);
        sleepers.ring();
        return promise;
    }

    fn ring(sleepers: *Sleepers) void {
        _ = sleepers.changes.fetchAdd(1, .seq_cst);
        const wake: linux.FUTEX_OP = .{ .cmd = .WAKE, .private = true };
        _ = linux.futex_3arg(&sleepers.changes.raw, wake, 1);
    }

    /// Of the environment's thread: a sleep is over. Without an environment at its end, for what
    /// was still to be told: `end` has let go of that, and `destroy` may have come before.
    fn tell(env: ?napi.Env, _: ?napi.Value, _: ?*anyopaque, given: ?*anyopaque) callconv(.c) void {
        const here = env orelse return;
        const sleep: *Sleep = @ptrCast(@alignCast(given.?));
        if (sleep.state.load(.acquire) != .over) return;
        const sleepers = sleep.sleepers;
        sleep.state.store(.free, .release);
        sleep.mapping.letGo();
        if (sleep.keeps) {
            sleepers.keeper_count -= 1;
            if (sleepers.keeper_count == 0) {
                _ = napi.napi_unref_threadsafe_function(here, sleepers.teller);
            }
        }
        var woken: napi.Value = undefined;
        if (napi.napi_get_boolean(here, !sleep.timed_out, &woken) != .ok) return;
        _ = napi.napi_resolve_deferred(here, sleep.deferred, woken);
    }

    /// The environment ends: so does the thread, before anything that it uses.
    fn end(given: ?*anyopaque) callconv(.c) void {
        const sleepers: *Sleepers = @ptrCast(@alignCast(given.?));
        sleepers.is_ending.store(true, .seq_cst);
        sleepers.ring();
        _ = pthread_join(sleepers.thread, null);
        for (&sleepers.sleeps) |*sleep| {
            if (sleep.state.load(.acquire) == .free) continue;
            sleep.state.store(.free, .release);
            sleep.mapping.letGo();
        }
        _ = napi.napi_release_threadsafe_function(sleepers.teller, .abort);
    }

    fn destroy(_: napi.Env, given: ?*anyopaque, _: ?*anyopaque) callconv(.c) void {
        const sleepers: *Sleepers = @ptrCast(@alignCast(given.?));
        allocator.destroy(sleepers);
    }

    fn run(given: ?*anyopaque) callconv(.c) ?*anyopaque {
        const sleepers: *Sleepers = @ptrCast(@alignCast(given.?));
        while (!sleepers.is_ending.load(.seq_cst)) sleepers.turn();
        return null;
    }

    /// Ends the sleeps whose word has changed or whose time is up, and sleeps for the others.
    fn turn(sleepers: *Sleepers) void {
        var words: [count_max + 1]linux.futex2_waitone = undefined;
        var asleep: [count_max + 1]*Sleep = undefined;
        // Before the look at them: what comes later changes it, and the kernel refuses to sleep.
        const seen = sleepers.changes.load(.seq_cst);
        words[0] = waitOne(&sleepers.changes.raw, seen, true);
        if (sleepers.is_ending.load(.seq_cst)) return;
        const time = now();
        var first: u64 = std.math.maxInt(u64);
        var count: u32 = 1;
        for (&sleepers.sleeps) |*sleep| {
            if (sleep.state.load(.acquire) != .asleep) continue;
            if (@atomicLoad(u32, sleep.word, .seq_cst) != sleep.expected) {
                sleepers.finish(sleep, false);
            } else if (time >= sleep.deadline_ns) {
                sleepers.finish(sleep, true);
            } else {
                first = @min(first, sleep.deadline_ns);
                words[count] = waitOne(sleep.word, sleep.expected, false);
                asleep[count] = sleep;
                count += 1;
            }
        }
        const until: linux.kernel_timespec = .{
            .sec = @intCast(@min(first / std.time.ns_per_s, std.math.maxInt(i32))),
            .nsec = @intCast(first % std.time.ns_per_s),
        };
        const result = linux.futex2_waitv(&words, count, .{}, &until, .MONOTONIC);
        switch (linux.errno(result)) {
            .SUCCESS => if (result > 0 and result < count) sleepers.finish(asleep[result], false),
            .TIMEDOUT, .AGAIN, .INTR => {},
            // Rather a look too much than a sleep that nothing ends.
            else => for (asleep[1..count]) |sleep| sleepers.finish(sleep, false),
        }
    }

    fn finish(sleepers: *Sleepers, sleep: *Sleep, timed_out: bool) void {
        sleep.timed_out = timed_out;
        sleep.state.store(.over, .release);
        _ = napi.napi_call_threadsafe_function(sleepers.teller, sleep, .nonblocking);
    }
};

fn waitOne(word: *const u32, expected: u32, private: bool) linux.futex2_waitone {
    return .{
        .val = expected,
        .uaddr = @intFromPtr(word),
        .flags = .{ .size = .U32, .private = private },
    };
}

fn now() u64 {
    var time: linux.timespec = undefined;
    const result = linux.clock_gettime(.MONOTONIC, &time);
    assert(linux.errno(result) == .SUCCESS);
    return @as(u64, @intCast(time.sec)) * std.time.ns_per_s + @as(u64, @intCast(time.nsec));
}
