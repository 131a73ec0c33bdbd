//! Sockets and pipes of the operating system as the transport of a stream [spec/stream.md].
//!
//! Invariant: neither descriptor blocks, and a write to a peer that is gone raises no signal that
//! ends the process.

const std = @import("std");
const builtin = @import("builtin");
const stream_transport = @import("transport.zig");
const assert = std.debug.assert;
const posix = std.posix;
const system = posix.system;
const Transport = stream_transport.Transport;

/// Linux, with or without a C library, and Apple's systems.
pub const is_supported = switch (builtin.os.tag) {
    .linux, .macos, .ios => true,
    else => false,
};
const is_linux = builtin.os.tag == .linux;

/// A connected socket, or two descriptors, one to read and one to write: two FIFOs, or the standard
/// input and output of a process.
///
/// The stream owns the descriptors from `init` on, and closes them. They are made non-blocking,
/// which affects other processes that have the same files open.
pub const StreamDescriptors = struct {
    /// Whether this system is supported: Linux, with or without a C library, and Apple's systems.
    pub const supported = is_supported;

    input: posix.fd_t,
    /// Null after the outgoing byte stream was ended.
    output: ?posix.fd_t,
    kind: Kind,

    const Kind = enum {
        /// One descriptor for both directions, each of which can be ended by itself.
        socket,
        /// Two descriptors, or a single one that can be ended only by closing it.
        files,
    };

    /// Uses a connected socket that carries a byte stream: Unix or TCP.
    pub fn socket(descriptor: posix.fd_t) error{Unexpected}!StreamDescriptors {
        try setNonblocking(descriptor);
        // Nagle's algorithm would delay a message until the one before it is acknowledged. A Unix
        // socket has no such option, and needs none.
        const yes: c_int = 1;
        _ = system.setsockopt(descriptor, tcp, no_delay, @ptrCast(&yes), @sizeOf(c_int));
        if (!is_linux) {
            _ = system.setsockopt(descriptor, posix.SOL.SOCKET, no_signal, @ptrCast(&yes), 4);
        }
        return .{ .input = descriptor, .output = descriptor, .kind = .socket };
    }

    /// Uses one descriptor to read and one to write. If they are the same, the output cannot be
    /// ended alone.
    pub fn files(input: posix.fd_t, output: posix.fd_t) error{Unexpected}!StreamDescriptors {
        try setNonblocking(input);
        if (input != output) try setNonblocking(output);
        return .{ .input = input, .output = output, .kind = .files };
    }

    /// Uses a socket if both descriptors are the same and it is one; otherwise two files.
    pub fn any(input: posix.fd_t, output: posix.fd_t) error{Unexpected}!StreamDescriptors {
        if (input == output) {
            var kind: c_int = 0;
            var size: posix.socklen_t = @sizeOf(c_int);
            const result =
                system.getsockopt(input, posix.SOL.SOCKET, posix.SO.TYPE, @ptrCast(&kind), &size);
            if (posix.errno(result) == .SUCCESS) return .socket(input);
        }
        return .files(input, output);
    }

    /// Returns the transport. It refers to `descriptors`, which must not move.
    pub fn transport(descriptors: *StreamDescriptors) Transport {
        return .{ .context = descriptors, .functions = &.{
            .write = write,
            .read = read,
            .end = end,
            .wait = wait,
            .close = close,
        } };
    }

    fn of(context: *anyopaque) *StreamDescriptors {
        return @ptrCast(@alignCast(context));
    }

    fn write(context: *anyopaque, pieces: []const []const u8) error{Broken}!usize {
        const descriptors = of(context);
        const output = descriptors.output orelse return error.Broken;
        var list: [Transport.piece_count_max]posix.iovec_const = undefined;
        for (pieces, list[0..pieces.len]) |piece, *entry| {
            entry.* = .{ .base = piece.ptr, .len = piece.len };
        }
        while (true) {
            const written: Written = switch (descriptors.kind) {
                .socket => send(output, list[0..pieces.len]),
                .files => writeUnsignalled(output, list[0..pieces.len]),
            };
            switch (written.errno) {
                .SUCCESS => return written.size,
                .AGAIN => return 0,
                .INTR => {},
                else => return error.Broken,
            }
        }
    }

    fn read(context: *anyopaque, target: []u8) error{Broken}!?usize {
        const descriptors = of(context);
        while (true) {
            const result = system.read(descriptors.input, target.ptr, target.len);
            switch (posix.errno(result)) {
                .SUCCESS => {
                    const size: usize = @intCast(result);
                    return if (size == 0) null else size;
                },
                .AGAIN => return 0,
                .INTR => {},
                else => return error.Broken,
            }
        }
    }

    fn end(context: *anyopaque) void {
        const descriptors = of(context);
        const output = descriptors.output orelse return;
        switch (descriptors.kind) {
            .socket => _ = system.shutdown(output, system.SHUT.WR),
            .files => {
                if (output == descriptors.input) return;
                _ = system.close(output);
            },
        }
        descriptors.output = null;
    }

    fn wait(context: *anyopaque, wish: Transport.Wish, limit_ns: u64) void {
        const descriptors = of(context);
        var list: [2]posix.pollfd = undefined;
        var count: usize = 0;
        if (wish.read) {
            list[count] = .{ .fd = descriptors.input, .events = posix.POLL.IN, .revents = 0 };
            count += 1;
        }
        if (wish.write) if (descriptors.output) |output| {
            list[count] = .{ .fd = output, .events = posix.POLL.OUT, .revents = 0 };
            count += 1;
        };
        // Rounded up, because a wait that is rounded down to 0 ms would spin.
        const ms = std.math.divCeil(u64, limit_ns, 1_000_000) catch unreachable;
        _ = system.poll(&list, @intCast(count), @intCast(@min(ms, 60_000)));
    }

    fn close(context: *anyopaque) void {
        const descriptors = of(context);
        if (descriptors.kind == .files) end(context);
        _ = system.close(descriptors.input);
    }
};

const tcp = 6;
const no_delay = 1;
/// SO_NOSIGPIPE on Apple's systems.
const no_signal = 0x1022;

fn setNonblocking(descriptor: posix.fd_t) error{Unexpected}!void {
    const flags = system.fcntl(descriptor, posix.F.GETFL, @as(usize, 0));
    if (posix.errno(flags) != .SUCCESS) return error.Unexpected;
    const nonblocking: usize = @as(u32, @bitCast(posix.O{ .NONBLOCK = true }));
    const all = @as(usize, @intCast(flags)) | nonblocking;
    const result = system.fcntl(descriptor, posix.F.SETFL, all);
    if (posix.errno(result) != .SUCCESS) return error.Unexpected;
}

/// What has come of a write, whoever was asked: the system itself, or a C library, which answer
/// differently.
const Written = struct {
    errno: posix.E,
    size: usize = 0,

    fn of(result: anytype) Written {
        const errno = posix.errno(result);
        return if (errno == .SUCCESS) .{ .errno = errno, .size = @intCast(result) } else .{
            .errno = errno,
        };
    }
};

fn send(output: posix.fd_t, list: []const posix.iovec_const) Written {
    if (!is_linux) return .of(system.writev(output, list.ptr, @intCast(list.len)));
    const message: posix.msghdr_const = .{
        .name = null,
        .namelen = 0,
        .iov = list.ptr,
        .iovlen = @intCast(list.len),
        .control = null,
        .controllen = 0,
        .flags = 0,
    };
    return .of(system.sendmsg(output, &message, std.os.linux.MSG.NOSIGNAL));
}

/// Writing to a pipe without a reader raises SIGPIPE for the thread that writes. The signal is
/// blocked during the write, and then consumed; one that was pending before is consumed with it.
fn writeUnsignalled(output: posix.fd_t, list: []const posix.iovec_const) Written {
    if (!is_linux) return .of(system.writev(output, list.ptr, @intCast(list.len)));
    const linux = std.os.linux;
    var only = linux.sigemptyset();
    linux.sigaddset(&only, .PIPE);
    var before: linux.sigset_t = undefined;
    _ = linux.sigprocmask(linux.SIG.BLOCK, &only, &before);
    defer _ = linux.sigprocmask(linux.SIG.SETMASK, &before, null);
    const result = linux.writev(output, list.ptr, list.len);
    const errno = linux.errno(result);
    if (errno == .PIPE) {
        const now: linux.timespec = .{ .sec = 0, .nsec = 0 };
        _ = linux.syscall4(
            .rt_sigtimedwait,
            @intFromPtr(&only),
            0,
            @intFromPtr(&now),
            @sizeOf(linux.sigset_t),
        );
    }
    return .{ .errno = errno, .size = if (errno == .SUCCESS) result else 0 };
}
