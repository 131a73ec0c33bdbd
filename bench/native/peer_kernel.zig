//! The rivals that the kernel offers between any two processes: a Unix socket, two named pipes, two
//! pipes. Each message is written and read whole; its size is known to both ends, so that no bytes
//! go for a length.

const std = @import("std");
const ends = @import("ends.zig");
const Plan = ends.Plan;
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

        pub const End = struct {
            reader: linux.fd_t,
            writer: linux.fd_t,
            size: u32,
            storage: [2][]align(64) u8,

            pub fn open(
                end: *End,
                link: *Link,
                plan: *const Plan,
                side: u1,
                storage: [2][]align(64) u8,
            ) !void {
                end.* = .{
                    .reader = link.handles[side][0],
                    .writer = link.handles[side][1],
                    .size = plan.scenario.size,
                    .storage = storage,
                };
            }

            pub fn close(_: *End) void {}

            pub inline fn place(end: *End, size: u32) ![]u8 {
                return end.storage[0][0..size];
            }

            pub inline fn commit(end: *End, payload: []const u8) !void {
                return end.send(payload);
            }

            pub inline fn send(end: *End, payload: []const u8) !void {
                var rest = payload;
                while (rest.len > 0) {
                    rest = rest[try sure(linux.write(end.writer, rest.ptr, rest.len))..];
                }
            }

            pub inline fn take(end: *End) ![]const u8 {
                const payload = end.storage[1][0..end.size];
                var filled: usize = 0;
                while (filled < payload.len) {
                    const rest = payload[filled..];
                    const count = try sure(linux.read(end.reader, rest.ptr, rest.len));
                    if (count == 0) return error.Ended;
                    filled += count;
                }
                return payload;
            }

            pub inline fn done(_: *End) void {}
        };
    };
}

pub const Socket = KernelPeer(.socket);
pub const Fifo = KernelPeer(.fifo);
pub const Pipe = KernelPeer(.pipe);
