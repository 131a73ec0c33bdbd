//! The rivals that need no library: a Unix socket, two named pipes and two pipes of the kernel, and
//! a queue under a mutex. Each message is written and read whole; its size is known to both ends,
//! so that no bytes go for a length.

const std = @import("std");
const ends = @import("ends.zig");
const Plan = ends.Plan;
const Io = std.Io;
const linux = std.os.linux;

const Kind = enum { socket, fifo, pipe };

/// Returns what a system call gave, or an error with its name on standard error.
fn sure(result: usize) !usize {
    const errno = linux.errno(result);
    if (errno == .SUCCESS) return result;
    std.debug.print("the kernel answered {t}\n", .{errno});
    return error.Kernel;
}

fn KernelPeer(comptime kind: Kind) type {
    return struct {
        pub const moves_payload = true;

        pub fn declines(plan: *const Plan) ?[]const u8 {
            // Calls are compared to it, whatever the others may do.
            if (plan.scenario.wait == .park or plan.scenario.is("calls")) return null;
            return "the kernel puts whoever waits to sleep";
        }

        pub const Link = struct {
            /// Of each side: where it reads, and where it writes.
            handles: [2][2]linux.fd_t,

            pub fn init(link: *Link, plan: *const Plan) !void {
                if (kind == .socket) {
                    var pair: [2]linux.fd_t = undefined;
                    const flags = linux.SOCK.STREAM | linux.SOCK.CLOEXEC;
                    _ = try sure(linux.socketpair(linux.AF.UNIX, flags, 0, &pair));
                    link.handles = .{ .{ pair[0], pair[0] }, .{ pair[1], pair[1] } };
                    return;
                }
                for (0..2) |side| {
                    const ways = if (kind == .fifo) try openFifo(plan) else try openPipe();
                    link.handles[1 - side][0] = ways[0];
                    link.handles[side][1] = ways[1];
                }
            }

            pub fn deinit(link: *Link) void {
                for (link.handles) |side| {
                    _ = linux.close(side[0]);
                    if (side[1] != side[0]) _ = linux.close(side[1]);
                }
            }
        };

        fn openPipe() ![2]linux.fd_t {
            var ways: [2]linux.fd_t = undefined;
            _ = try sure(linux.pipe2(&ways, .{ .CLOEXEC = true }));
            return ways;
        }

        /// The name is needed only until both ends are open.
        fn openFifo(plan: *const Plan) ![2]linux.fd_t {
            _ = try sure(linux.mknod(plan.path, linux.S.IFIFO | 0o600, 0));
            defer _ = linux.unlink(plan.path);
            // For both, because to open it for one would wait for the other.
            const both: linux.O = .{ .ACCMODE = .RDWR, .CLOEXEC = true };
            const reader = try sure(linux.open(plan.path, both, 0));
            const writer = try sure(linux.open(plan.path, both, 0));
            return .{ @intCast(reader), @intCast(writer) };
        }

        pub const End = ends.Copying(Link, struct {
            const Way = @This();

            reader: linux.fd_t,
            writer: linux.fd_t,
            size: u32,

            pub fn open(way: *Way, link: *Link, plan: *const Plan, side: u1) !void {
                const reader, const writer = link.handles[side];
                way.* = .{ .reader = reader, .writer = writer, .size = plan.scenario.size };
            }

            pub fn close(_: *Way) void {}

            pub inline fn write(way: *Way, payload: []const u8) !void {
                var rest = payload;
                while (rest.len > 0) {
                    rest = rest[try sure(linux.write(way.writer, rest.ptr, rest.len))..];
                }
            }

            pub inline fn read(way: *Way, storage: []align(64) u8) ![]const u8 {
                const payload = storage[0..way.size];
                var filled: usize = 0;
                while (filled < payload.len) {
                    const rest = payload[filled..];
                    const count = try sure(linux.read(way.reader, rest.ptr, rest.len));
                    if (count == 0) return error.Ended;
                    filled += count;
                }
                return payload;
            }
        });
    };
}

pub const Socket = KernelPeer(.socket);
pub const Fifo = KernelPeer(.fifo);
pub const Pipe = KernelPeer(.pipe);

const Queue = struct {
    mutex: Io.Mutex = .init,
    filled: Io.Condition = .init,
    emptied: Io.Condition = .init,
    slots: []u8,
    slot_size: usize,
    slot_count: u64,
    written: u64 = 0,
    read: u64 = 0,

    fn slot(queue: *Queue, number: u64) []u8 {
        const at: usize = @intCast(number % queue.slot_count * queue.slot_size);
        return queue.slots[at..][0..queue.slot_size];
    }

    fn put(queue: *Queue, io: Io, payload: []const u8) void {
        queue.mutex.lockUncancelable(io);
        while (queue.written - queue.read == queue.slot_count) {
            queue.emptied.waitUncancelable(io, &queue.mutex);
        }
        @memcpy(queue.slot(queue.written), payload);
        queue.written += 1;
        queue.mutex.unlock(io);
        queue.filled.signal(io);
    }

    fn get(queue: *Queue, io: Io, storage: []u8) []const u8 {
        queue.mutex.lockUncancelable(io);
        while (queue.written == queue.read) queue.filled.waitUncancelable(io, &queue.mutex);
        const payload = storage[0..queue.slot_size];
        @memcpy(payload, queue.slot(queue.read));
        queue.read += 1;
        queue.mutex.unlock(io);
        queue.emptied.signal(io);
        return payload;
    }
};

/// What every program has already: a bounded queue under a mutex, with a condition for each of its
/// ends to wait on.
pub const MutexQueue = struct {
    pub const moves_payload = true;

    pub fn declines(plan: *const Plan) ?[]const u8 {
        if (plan.scenario.inProcesses()) return "its mutex works within one process";
        if (plan.scenario.wait == .spin) return "it sleeps whenever it waits";
        return null;
    }

    pub const Link = struct {
        queues: [2]Queue,

        pub fn init(link: *Link, plan: *const Plan) !void {
            const size = plan.scenario.size;
            // As many bytes as Millrace's rings have, but never fewer than two messages.
            const count = @max(2, plan.ringSize(0) / size);
            for (&link.queues, 0..) |*queue, index| queue.* = .{
                .slots = plan.memory[index * plan.memory.len / 2 ..][0 .. plan.memory.len / 2],
                .slot_size = size,
                .slot_count = @min(count, plan.memory.len / 2 / size),
            };
        }

        pub fn deinit(_: *Link) void {}
    };

    pub const End = ends.Copying(Link, struct {
        const Way = @This();

        link: *Link,
        io: Io,
        side: u1,

        pub fn open(way: *Way, link: *Link, plan: *const Plan, side: u1) !void {
            way.* = .{ .link = link, .io = plan.io, .side = side };
        }

        pub fn close(_: *Way) void {}

        pub inline fn write(way: *Way, payload: []const u8) !void {
            way.link.queues[way.side].put(way.io, payload);
        }

        pub inline fn read(way: *Way, storage: []align(64) u8) ![]const u8 {
            return way.link.queues[1 - way.side].get(way.io, storage);
        }
    });
};
