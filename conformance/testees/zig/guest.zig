//! The Zig implementation as a testee in a WebAssembly guest with shared memory, for workers of any
//! JavaScript host (`worker.ts`) and for guests under wasmtime.
//!
//! The module imports its memory (`env.memory`, shared) and a clock (`millrace.now_us`), as
//! `millrace.wasm` does. Its own data and the stack with which it starts end at
//! `testee_heap_base()`, below 4 MiB. Several instances may share a memory: they change nothing of
//! those data, and each has a region for all that it needs, its stack included, which the host
//! gives it by `__stack_pointer` before its first call.
//!
//! A command goes in by `testee_room` and `testee_command`, and the reply lies at `testee_reply`.
//! What it cannot handle ends in a trap, and `testee_fault` says why.

const std = @import("std");
const millrace = @import("millrace");
const Region = @import("region.zig").Region;
const Testee = @import("testee.zig").Testee;
const version = @import("options").version;
const layout = millrace.layout;

/// All that an instance has; at the beginning of its region.
const Object = struct {
    region: Region,
    testee: Testee,
    /// Where commands go.
    room: []u8 = &.{},
    reply: []const u8 = "",
};

const object_align = layout.segment_align;
const object_size = std.mem.alignForward(usize, @sizeOf(Object), object_align);

/// The first address that is the host's. Needs no stack.
export fn testee_heap_base() usize {
    return millrace.host.heapBase();
}

/// Makes a testee in memory from `address`, a multiple of 128, on, which it never leaves. Returns
/// what all other calls take. `mechanism` is how it sleeps and rings: 1 under a JavaScript engine,
/// 4 under wasmtime.
export fn testee_init(address: usize, size: usize, mechanism: u32) *Object {
    const memory: [*]align(object_align) u8 = @ptrFromInt(address);
    const object: *Object = @ptrCast(memory);
    object.* = .{
        .region = .init(@alignCast(memory[object_size..size])),
        .testee = undefined,
    };
    object.testee = .init(object.region.allocator(), .{
        .host = if (mechanism == layout.wake_mechanism_wasmtime) &wasmtime else &agent,
        .hello = .{
            .name = if (mechanism == layout.wake_mechanism_wasmtime)
                "Millrace for Zig, under wasmtime"
            else
                "Millrace for Zig, as WebAssembly",
            .version = version,
            .levels = &.{ "static", "scripted", "live", "mailbox" },
            .carriers = &.{ .bytes, .shared },
        },
    });
    return object;
}

/// Returns where the host may put so many bytes for its next call.
export fn testee_room(object: *Object, size: usize) [*]u8 {
    const gpa = object.region.allocator();
    if (size > object.room.len) {
        gpa.free(object.room);
        object.room = &.{};
        object.room = gpa.alloc(u8, size) catch |err| die(err);
    }
    return object.room.ptr;
}

/// Answers the command of `size` bytes at `testee_room`; returns the size of the reply. Blocks as
/// long as what it is told to do. An `open` of carrier `shared` gets the memory that it names from
/// the host: `memory_size` bytes from `memory_address` on, or none where that is 0.
export fn testee_command(
    object: *Object,
    size: usize,
    memory_address: usize,
    memory_size: usize,
) usize {
    const memory: ?[*]u8 = @ptrFromInt(memory_address);
    const shared: ?[]u8 = if (memory) |bytes| bytes[0..memory_size] else null;
    object.reply = object.testee.answer(object.room[0..size], shared) catch |err| die(err);
    return object.reply.len;
}

/// Where the last reply lies, until the next command.
export fn testee_reply(object: *const Object) [*]const u8 {
    return object.reply.ptr;
}

/// Wakes all that sleep on a word, and returns how many: for a host that shares the memory from
/// outside of the engine [wait.ring].
export fn testee_notify(address: usize) u32 {
    return asm volatile (
        \\local.get %[address]
        \\i32.const -1
        \\memory.atomic.notify 0
        \\local.set %[result]
        : [result] "=r" (-> u32),
        : [address] "r" (address),
        : .{ .memory = true });
}

/// Sleeps while a word holds a value, at most so many milliseconds; returns 0 where it was woken, 1
/// where the word was another one, and 2 where the time was up. For such a host, too.
export fn testee_sleep(address: usize, value: u32, limit_ms: u32) u32 {
    return asm volatile (
        \\local.get %[address]
        \\local.get %[value]
        \\local.get %[limit]
        \\memory.atomic.wait32 0
        \\local.set %[result]
        : [result] "=r" (-> u32),
        : [address] "r" (address),
          [value] "r" (value),
          [limit] "r" (@as(i64, limit_ms) * 1_000_000),
        : .{ .memory = true });
}

/// What it died of, after a trap: text that ends with a 0.
export fn testee_fault() [*:0]const u8 {
    return &fault;
}

/// The one variable that instances on one memory share; nothing comes after it.
var fault: [256:0]u8 = @splat(0);

pub const panic = std.debug.FullPanic(trap);

fn trap(message: []const u8, _: ?usize) noreturn {
    const size = @min(message.len, fault.len);
    @memcpy(fault[0..size], message[0..size]);
    fault[size] = 0;
    @trap();
}

fn die(err: anyerror) noreturn {
    @panic(@errorName(err));
}

const agent = millrace.host.wasm_agent;
const wasmtime = wasmtime: {
    // The same instructions, which wake others.
    var host = millrace.host.wasm_agent;
    host.wakes = layout.wake_mechanism_wasmtime;
    host.mechanism = layout.wake_mechanism_wasmtime;
    break :wasmtime host;
};
