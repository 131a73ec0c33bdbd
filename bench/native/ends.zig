//! The two ends of a run: the one that measures, on the driver's thread, and the other, in a thread
//! or in a process of its own; and the memory that they share to agree on what is being done.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const linux = std.os.linux;
const posix = std.posix;

pub const now = millrace.Host.native.now;

pub const Command = enum(u32) { warm_up, measure, stop };

/// What both ends can see whatever is measured. The measuring end writes `command`, the other the
/// rest.
pub const Board = extern struct {
    command: u32 align(128) = 0,
    /// The number of messages, once the writer knows it.
    last: u64 align(128) = std.math.maxInt(u64),
    /// When the first message was due, in the time of `now`.
    begin_ns: u64 = 0,
    usage: Usage = .{},
    /// Whether the measuring end has taken all that it wants.
    is_over: u32 align(128) = 0,

    pub fn tell(board: *Board, command: Command) void {
        @atomicStore(u32, &board.command, @backingInt(command), .release);
    }

    pub fn finish(board: *Board) void {
        @atomicStore(u32, &board.is_over, 1, .release);
    }

    /// Waits for that: who closes first would take away what the other has not read.
    pub fn awaitFinish(board: *const Board) void {
        while (@atomicLoad(u32, &board.is_over, .acquire) == 0) millrace.Host.native.pause(50_000);
    }

    pub inline fn told(board: *const Board) Command {
        return @fromBackingInt(@atomicLoad(u32, &board.command, .monotonic));
    }
};

/// What the calling thread has used so far, or between two moments.
pub const Usage = extern struct {
    cpu_ns: u64 = 0,
    sleeps: u64 = 0,
    faults: u64 = 0,

    pub fn current() Usage {
        var time: linux.timespec = undefined;
        _ = linux.clock_gettime(.THREAD_CPUTIME_ID, &time);
        var usage: linux.rusage = undefined;
        _ = linux.getrusage(linux.rusage.THREAD, &usage);
        return .{
            .cpu_ns = @as(u64, @intCast(time.sec)) * 1_000_000_000 + @as(u64, @intCast(time.nsec)),
            .sleeps = @intCast(usage.nvcsw),
            .faults = @intCast(usage.minflt),
        };
    }

    pub fn since(before: Usage) Usage {
        const after: Usage = .current();
        return .{
            .cpu_ns = after.cpu_ns - before.cpu_ns,
            .sleeps = after.sleeps - before.sleeps,
            .faults = after.faults - before.faults,
        };
    }

    pub fn plus(a: Usage, b: Usage) Usage {
        return .{
            .cpu_ns = a.cpu_ns + b.cpu_ns,
            .sleeps = a.sleeps + b.sleeps,
            .faults = a.faults + b.faults,
        };
    }
};

/// All that the two ends of one run know.
pub const Plan = struct {
    scenario: *const protocol.Scenario,
    io: std.Io,
    board: *Board,
    /// Shared by both ends; the peer's to use, all 0.
    memory: []align(std.heap.page_size_min) u8,
    /// A name for whoever needs one, of which nobody else knows.
    path: [:0]const u8,
    path_storage: [64]u8,

    const memory_size = 160 << 20;
    var made: u32 = 0;

    pub fn init(plan: *Plan, scenario: *const protocol.Scenario, io: std.Io) !void {
        const mapped = try posix.mmap(
            null,
            memory_size,
            .{ .READ = true, .WRITE = true },
            .{ .TYPE = .SHARED, .ANONYMOUS = true, .NORESERVE = true },
            -1,
            0,
        );
        const board: *Board = @ptrCast(mapped.ptr);
        board.* = .{};
        made += 1;
        plan.* = .{
            .scenario = scenario,
            .io = io,
            .board = board,
            .memory = @alignCast(mapped[std.heap.page_size_max..]),
            .path = undefined,
            .path_storage = undefined,
        };
        const values = .{ linux.getpid(), made };
        const text = "/dev/shm/millrace-bench-{d}-{d}";
        plan.path = try std.mem.printSentinel(&plan.path_storage, text, values, 0);
        // Whatever hangs is ended by the kernel: no wait of a peer needs a bound of its own.
        _ = linux.syscall1(.alarm, 30 + (scenario.warmup_ms + scenario.duration_ms) / 500);
    }

    pub fn deinit(plan: *Plan) void {
        _ = linux.syscall1(.alarm, 0);
        const bytes: [*]align(std.heap.page_size_min) u8 = @ptrCast(@alignCast(plan.board));
        posix.munmap(bytes[0..memory_size]);
    }

    /// Bytes of a ring in which at most `window` messages of this size are under way, each with so
    /// many bytes before it: a power of two.
    pub fn ringSize(plan: *const Plan, header_size: u32) u32 {
        const scenario = plan.scenario;
        const extent = std.mem.alignForward(u64, @as(u64, scenario.size) + header_size, 16);
        const wanted = extent * scenario.window;
        const floor = std.math.floorPowerOfTwo(u64, @max(1, wanted));
        return @intCast(std.math.clamp(floor, 4_096, 1 << 20));
    }
};

/// The end that runs beside the driver's thread.
pub const Other = union(enum) {
    thread: std.Thread,
    process: linux.pid_t,

    /// Starts `body(arguments)`. If it fails, the whole driver ends with the error's name: nobody
    /// could tell the end that waits for it.
    pub fn start(plan: *const Plan, comptime body: anytype, arguments: anytype) !Other {
        const Guarded = struct {
            fn run(values: @TypeOf(arguments)) void {
                @call(.auto, body, values) catch |err| {
                    std.debug.print("the other end failed: {t}\n", .{err});
                    linux.exit_group(1);
                };
            }
        };
        if (!plan.scenario.inProcesses()) {
            return .{ .thread = try .spawn(.{}, Guarded.run, .{arguments}) };
        }
        const forked = linux.fork();
        if (linux.errno(forked) != .SUCCESS) return error.NoProcess;
        if (forked > 0) return .{ .process = @intCast(forked) };
        _ = linux.prctl(@backingInt(linux.PR.SET_PDEATHSIG), @backingInt(linux.SIG.KILL), 0, 0, 0);
        Guarded.run(arguments);
        linux.exit_group(0);
    }

    pub fn join(other: Other) !void {
        switch (other) {
            .thread => |thread| thread.join(),
            .process => |pid| {
                var status: i32 = undefined;
                while (linux.errno(linux.waitpid(pid, &status, 0)) == .INTR) {}
                if (status != 0) return error.OtherEndFailed;
            },
        }
    }
};

/// The end of a peer that copies: messages are made in one storage and read into another. `Way` has
/// `open(link, plan, side)`, `close()`, `write(payload)`, and `read(storage)`.
pub fn Copying(comptime Link: type, comptime Way: type) type {
    return struct {
        const End = @This();

        way: Way,
        storage: [2][]align(64) u8,

        pub fn open(
            end: *End,
            link: *Link,
            plan: *const Plan,
            side: u1,
            storage: [2][]align(64) u8,
        ) !void {
            end.storage = storage;
            try end.way.open(link, plan, side);
        }

        pub fn close(end: *End) void {
            end.way.close();
        }

        pub inline fn place(end: *End, size: u32) ![]u8 {
            return end.storage[0][0..size];
        }

        pub inline fn commit(end: *End, payload: []const u8) !void {
            return end.way.write(payload);
        }

        pub inline fn send(end: *End, payload: []const u8) !void {
            return end.way.write(payload);
        }

        pub inline fn take(end: *End) ![]const u8 {
            return end.way.read(end.storage[1]);
        }

        pub inline fn done(_: *End) void {}
    };
}

/// For peers whose ends need nothing but the memory of the plan.
pub const NoLink = struct {
    pub fn init(_: *NoLink, _: *const Plan) !void {}
    pub fn deinit(_: *NoLink) void {}
};
