//! The thread of a worker: takes tasks out of its ring, runs them one after the other, and answers.
//!
//! Invariant: before a task begins, it is counted in `begun`. So the pool knows which task a dead
//! worker was running, and which tasks it had not begun.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const segment_file = @import("../memory/segment.zig");
const wait = @import("../wait/endpoint.zig");
const Endpoint = wait.Endpoint;
const Owner = segment_file.Owner;
const Reader = pipe.Reader;
const Segment = segment_file.Segment;
const Writer = pipe.Writer;

/// What a handler can learn about the task that it handles.
pub const Turn = struct {
    flag: *const std.atomic.Value(bool),
    /// The number of the worker, from 0 on, by which each worker can have data of its own.
    worker: u32,

    /// Whether the task was given up, so that nobody will see its result.
    pub fn isCancelled(turn: Turn) bool {
        return turn.flag.load(.monotonic);
    }
};

/// The types of a task and of its result, taken from the type of the handler: `fn (Value) Result`
/// or `fn (Value, Turn) Result`, where the result may be an error union.
pub fn Shape(comptime handler: anytype) type {
    const info = @typeInfo(@TypeOf(handler)).@"fn";
    const count = info.param_types.len;
    if (count != 1 and (count != 2 or info.param_types[1] != Turn)) {
        @compileError("Cannot make a pool: its handler takes a value, and a Turn if it likes");
    }
    const Returned = info.return_type.?;
    const fails = @typeInfo(Returned) == .error_union;
    return struct {
        pub const Value = info.param_types[0].?;
        pub const Result = if (fails) @typeInfo(Returned).error_union.payload else Returned;

        /// The worker's answer, sent byte for byte, because both threads belong to one program.
        pub const Reply = struct {
            /// When the task began, and how long it took, in nanoseconds.
            begun_ns: u64,
            service_ns: u64,
            answer: union(enum) { result: Result, failed: anyerror, skipped },
        };

        fn call(value: Value, turn: Turn) anyerror!Result {
            const returned = if (count == 1) handler(value) else handler(value, turn);
            return if (fails) try returned else returned;
        }
    };
}

/// What the thread of a worker shares with the pool.
pub const Shared = struct {
    segment: *const Segment,
    index: u32,
    options: Endpoint.Options,
    task_channel: u32,
    reply_channel: u32,
    /// Identifies the worker as an owner of its endpoint. Set before its thread starts.
    owner: Owner = undefined,
    /// How many tasks it has begun, modulo 2^32, because not every 32-bit processor has 64-bit
    /// atomic words.
    begun: std.atomic.Value(u32) = .init(0),

    /// Marks the endpoint of this worker failed. After that, this thread does not touch it any
    /// more.
    fn die(shared: *Shared) void {
        shared.segment.fail(shared.owner, .peer_terminated, shared.options.host);
    }
};

/// The worker that runs on this thread.
threadlocal var current: ?*Shared = null;

/// A panic handler with which a panic in a task ends the worker and not the program. The task's
/// `defer`s do not run, its locks stay locked, and its memory stays allocated. This works on Linux
/// without libc; elsewhere, and on threads that are not workers, a panic ends the program.
///
///     pub const panic = std.debug.FullPanic(millrace.pool.panic);
pub fn panic(message: []const u8, address: ?usize) noreturn {
    @branchHint(.cold);
    if (builtin.os.tag == .linux and !builtin.link_libc) if (current) |shared| {
        current = null;
        // In a test, nobody reads the message.
        if (!builtin.is_test) {
            std.debug.print("worker {d} panicked: {s}\n", .{ shared.index - 1, message });
        }
        shared.die();
        std.os.linux.exit(1); // of this thread alone
    };
    std.debug.defaultPanic(message, address orelse @returnAddress());
}

/// Runs the thread of a worker. `flagOf` returns the flag that says whether a task was given up.
pub fn work(
    comptime handler: anytype,
    shared: *Shared,
    context: anytype,
    comptime flagOf: fn (@TypeOf(context), u32) *const std.atomic.Value(bool),
) void {
    const Handled = Shape(handler);
    const host = shared.options.host;
    // Nobody else attaches here, and both channels are part of the pool's own geometry.
    var endpoint = Endpoint.attach(shared.segment, shared.index, shared.options) catch unreachable;
    var reader =
        Reader.init(&endpoint, shared.segment, shared.task_channel) catch unreachable;
    var writer =
        Writer.init(&endpoint, shared.segment, shared.reply_channel) catch unreachable;
    current = shared;
    defer current = null;
    var value: Handled.Value = undefined;
    // The end of the stream, or the close of the pool's endpoint, ends the worker.
    while (reader.read(std.mem.asBytes(&value), .forever) catch null) |message| {
        const turn: Turn = .{ .flag = flagOf(context, message.tag), .worker = shared.index - 1 };
        _ = shared.begun.fetchAdd(1, .release);
        var reply: Handled.Reply = .{
            .begun_ns = host.now(),
            .service_ns = 0,
            .answer = .skipped,
        };
        if (!turn.isCancelled()) {
            reply.answer = if (Handled.call(value, turn)) |result|
                .{ .result = result }
            else |err| switch (err) {
                error.WorkerDied => return shared.die(),
                else => |other| .{ .failed = other },
            };
        }
        reply.service_ns = host.now() -| reply.begun_ns;
        writer.write(std.mem.asBytes(&reply), .{ .tag = message.tag }, .forever) catch break;
    }
    endpoint.close();
}
