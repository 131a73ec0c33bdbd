//! The thread of a worker: takes tasks out of its ring, runs them one after the other, and answers.
//!
//! Invariant: before a task begins, `begun` says so. So whoever finds the worker dead knows which
//! task it was at, and which ones nobody has touched.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("layout.zig");
const pipe = @import("pipe.zig");
const segment_file = @import("segment.zig");
const wait = @import("wait.zig");
const Endpoint = wait.Endpoint;
const Owner = segment_file.Owner;
const Reader = pipe.Reader;
const Segment = segment_file.Segment;
const Writer = pipe.Writer;

/// What a handler may know of the task that it runs.
pub const Turn = struct {
    flag: *const std.atomic.Value(bool),
    /// The number of the worker, from 0 on: for what each of them has of its own.
    worker: u32,

    /// Whether the task was given up, so that nobody will see what becomes of it.
    pub fn isCancelled(turn: Turn) bool {
        return turn.flag.load(.monotonic);
    }
};

/// What a task is, and what comes of it: by the type of the function that handles it, which is
/// `fn (Value) Result`, or `fn (Value, Turn) Result`, or returns an error union of the result.
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

        /// What the worker answers, byte for byte: both threads are of one program.
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

/// What the thread of a worker has in common with the pool.
pub const Shared = struct {
    segment: *const Segment,
    index: u32,
    options: Endpoint.Options,
    task_channel: u32,
    reply_channel: u32,
    /// Whoever it is that attaches next.
    owner: Owner = undefined,
    /// Tasks that it has begun, modulo what a word holds: not every processor of 32 bits has atomic
    /// ones of 64.
    begun: std.atomic.Value(u32) = .init(0),

    /// The worker is dead, whether its thread can say so itself or not. Its endpoint is touched by
    /// nobody any more.
    fn die(shared: *Shared) void {
        shared.segment.fail(shared.owner, .peer_terminated, shared.options.host);
    }
};

/// The worker whose thread this is.
threadlocal var current: ?*Shared = null;

/// A panic handler under which a panic in a task ends its worker, and not the program. `defer`s of
/// the task are not run, what it held stays held, and its memory stays taken. On Linux without
/// libc; elsewhere, and on threads that are no workers, a panic ends the program.
///
///     pub const panic = std.debug.FullPanic(millrace.pool.panic);
pub fn panic(message: []const u8, address: ?usize) noreturn {
    @branchHint(.cold);
    if (builtin.os.tag == .linux and !builtin.link_libc) if (current) |shared| {
        current = null;
        // A test has nobody to tell.
        if (!builtin.is_test) {
            std.debug.print("worker {d} panicked: {s}\n", .{ shared.index - 1, message });
        }
        shared.die();
        std.os.linux.exit(1); // of this thread alone
    };
    std.debug.defaultPanic(message, address orelse @returnAddress());
}

/// What the thread of a worker does. `flagOf` tells where it stands whether a task was given up.
pub fn work(
    comptime handler: anytype,
    shared: *Shared,
    context: anytype,
    comptime flagOf: fn (@TypeOf(context), u32) *const std.atomic.Value(bool),
) void {
    const Handled = Shape(handler);
    const host = shared.options.host;
    // Nobody else attaches here, and both channels are those of the pool's own geometry.
    var endpoint = Endpoint.attach(shared.segment, shared.index, shared.options) catch unreachable;
    var reader =
        Reader.init(&endpoint, shared.segment, shared.task_channel) catch unreachable;
    var writer =
        Writer.init(&endpoint, shared.segment, shared.reply_channel) catch unreachable;
    current = shared;
    defer current = null;
    var value: Handled.Value = undefined;
    // The end, or the pool's own close, ends the worker.
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
