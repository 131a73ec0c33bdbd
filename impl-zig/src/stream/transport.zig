//! The transport of a stream: two ordered byte streams, one each way [spec/stream.md].
//!
//! Invariant: nothing here blocks except `wait`, which returns when its time is over.

const std = @import("std");
const builtin = @import("builtin");
const posix = std.posix;
const system = posix.system;

/// The interface of a stream to its transport. `StreamDescriptors` has a transport for sockets and
/// pipes of the system; any other one has to provide five functions.
///
/// Thread safety: no two functions are called at the same time, except that the thread of the port
/// may be in `wait` while another thread closes the port.
pub const Transport = struct {
    context: *anyopaque,
    functions: *const Functions,

    /// The functions that a transport provides. Only `wait` may wait.
    pub const Functions = struct {
        /// Takes as many bytes of these pieces, one after the other, as there is room for now.
        /// Returns how many it took; 0 if it cannot take any now.
        write: *const fn (context: *anyopaque, pieces: []const []const u8) error{Broken}!usize,
        /// Moves bytes that have arrived to `target`. Returns how many; 0 if there are none now,
        /// null if the peer's byte stream has ended.
        read: *const fn (context: *anyopaque, target: []u8) error{Broken}!?usize,
        /// Ends the outgoing byte stream. The incoming one goes on.
        end: *const fn (context: *anyopaque) void,
        /// Waits until there is something to read, or room to write, as `wish` says, for at most
        /// `limit_ns`. May return early for no reason.
        wait: *const fn (context: *anyopaque, wish: Wish, limit_ns: u64) void,
        /// Closes the transport.
        close: *const fn (context: *anyopaque) void,
    };

    /// What to wait for.
    pub const Wish = struct {
        read: bool,
        write: bool,
    };

    /// The most pieces that one `write` gets.
    pub const piece_count_max = 3;

    /// Calls `Functions.write`.
    pub fn write(transport: Transport, pieces: []const []const u8) error{Broken}!usize {
        return transport.functions.write(transport.context, pieces);
    }

    /// Calls `Functions.read`.
    pub fn read(transport: Transport, target: []u8) error{Broken}!?usize {
        return transport.functions.read(transport.context, target);
    }

    /// Calls `Functions.end`.
    pub fn end(transport: Transport) void {
        transport.functions.end(transport.context);
    }

    /// Calls `Functions.wait`.
    pub fn wait(transport: Transport, wish: Wish, limit_ns: u64) void {
        transport.functions.wait(transport.context, wish, limit_ns);
    }

    /// Calls `Functions.close`.
    pub fn close(transport: Transport) void {
        transport.functions.close(transport.context);
    }
};

// Sockets and pipes of the operating system as the transport of a stream [spec/stream.md].
//
// Invariant: neither descriptor blocks, and a write to a peer that is gone raises no signal that
// ends the process.

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

// Tests.
//
// Streams over sockets and pipes of the system, between threads. Every wait is bounded.

const millrace = @import("../root.zig");
const pattern = @import("../testing/fixture.zig").pattern;
const fixture = @import("fixture.zig");
const testing = std.testing;
const layout = millrace.layout;
const Stream = millrace.Stream;
const Timeout = millrace.Timeout;

const patience: Timeout = .ms(20_000);
const has_threads = millrace.StreamDescriptors.supported and !builtin.single_threaded;

/// The transport of a stream.
const Way = enum { unix, tcp, pipes };

/// The descriptors of both sides.
const Both = [2]StreamDescriptors;

fn connect(way: Way) !Both {
    switch (way) {
        .unix => {
            var pair: [2]posix.fd_t = undefined;
            const result = system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &pair);
            try testing.expectEqual(.SUCCESS, posix.errno(result));
            return .{ try .socket(pair[0]), try .socket(pair[1]) };
        },
        .tcp => {
            const pair = try connectTcp();
            return .{ try .socket(pair[0]), try .socket(pair[1]) };
        },
        .pipes => {
            var there: [2]posix.fd_t = undefined;
            var back: [2]posix.fd_t = undefined;
            try testing.expectEqual(.SUCCESS, posix.errno(system.pipe(&there)));
            try testing.expectEqual(.SUCCESS, posix.errno(system.pipe(&back)));
            return .{ try .files(back[0], there[1]), try .files(there[0], back[1]) };
        },
    }
}

fn connectTcp() ![2]posix.fd_t {
    const listener = try newSocket();
    defer _ = system.close(listener);
    var address: posix.sockaddr.in = .{ .port = 0, .addr = std.mem.nativeToBig(u32, 0x7f000001) };
    var size: posix.socklen_t = @sizeOf(posix.sockaddr.in);
    try expectDone(system.bind(listener, @ptrCast(&address), size));
    try expectDone(system.listen(listener, 1));
    try expectDone(system.getsockname(listener, @ptrCast(&address), &size));
    const near = try newSocket();
    try expectDone(system.connect(near, @ptrCast(&address), size));
    const far = system.accept(listener, null, null);
    try expectDone(far);
    return .{ near, @intCast(far) };
}

fn newSocket() !posix.fd_t {
    const result = system.socket(posix.AF.INET, posix.SOCK.STREAM, 0);
    try expectDone(result);
    return @intCast(result);
}

fn expectDone(result: anytype) !void {
    try testing.expectEqual(.SUCCESS, posix.errno(result));
}

/// A stream in memory of its own.
const Side = struct {
    memory: millrace.Memory,
    inbox: [8192]u8 align(16),
    descriptors: StreamDescriptors,
    stream: Stream,

    fn open(side: *Side, descriptors: StreamDescriptors, options: Stream.Options) !*millrace.Port {
        const size = try Stream.memorySize(options);
        const alignment = comptime std.mem.Alignment.fromByteUnits(layout.segment_align);
        side.memory = try testing.allocator.alignedAlloc(u8, alignment, size);
        side.descriptors = descriptors;
        var own = options;
        own.port.inbox = &side.inbox;
        try side.stream.open(side.memory, side.descriptors.transport(), own);
        return &side.stream.port;
    }

    fn deinit(side: *Side) void {
        side.stream.deinit();
        testing.allocator.free(side.memory);
    }
};

fn echo(descriptors: StreamDescriptors, options: Stream.Options) !void {
    var side: Side = undefined;
    const port = try side.open(descriptors, options);
    defer side.deinit();
    const storage = try testing.allocator.alloc(u8, 1 << 20);
    defer testing.allocator.free(storage);
    while (try port.read(storage, patience)) |message| {
        try port.write(message.payload, .{ .tag = message.tag, .codec = message.codec }, patience);
    }
    try testing.expect(port.ended());
    try port.end();
}

fn echoTest(way: Way, options: Stream.Options, count: u32, size_max: u32) !void {
    if (!has_threads) return error.SkipZigTest;
    const both = try connect(way);
    const thread: std.Thread = try .spawn(.{}, echo, .{ both[1], options });
    defer thread.join();
    var side: Side = undefined;
    const port = try side.open(both[0], options);
    defer side.deinit();
    const payload = try testing.allocator.alloc(u8, size_max);
    defer testing.allocator.free(payload);
    const storage = try testing.allocator.alloc(u8, size_max);
    defer testing.allocator.free(storage);
    var random: std.Random.DefaultPrng = .init(count);
    for (0..count) |index| {
        const size = random.random().uintAtMost(u32, size_max);
        pattern(payload[0..size], @intCast(index));
        try port.write(payload[0..size], .{ .tag = @intCast(index), .codec = .text }, patience);
        const message = (try port.read(storage, patience)) orelse return error.NoMessage;
        try testing.expectEqual(index, message.tag);
        try testing.expectEqual(.text, message.codec);
        try testing.expect(std.mem.eql(u8, payload[0..size], message.payload));
    }
    try port.end();
    try testing.expectEqual(null, try port.read(storage, patience));
    try testing.expect(port.ended());
}

test "Stream: echo between two threads, over each that the system has" {
    for (std.enums.values(Way)) |way| {
        try echoTest(way, .{}, 300, 2000);
        try echoTest(way, .{ .largest = 128, .window = 128, .queue = 512 }, 60, 900);
        try echoTest(way, .{}, 4, 900_000);
    }
}

/// Writes all that it may, and reads only then.
fn flood(descriptors: StreamDescriptors, count: u32) !void {
    var side: Side = undefined;
    const port = try side.open(descriptors, .{});
    defer side.deinit();
    var payload: [1000]u8 = undefined;
    var storage: [1000]u8 = undefined;
    for (0..count) |index| {
        pattern(&payload, @intCast(index));
        try port.write(&payload, .{ .tag = @intCast(index) }, patience);
    }
    try port.end();
    var index: u32 = 0;
    while (try port.read(&storage, patience)) |message| : (index += 1) {
        pattern(&payload, index);
        try testing.expectEqual(index, message.tag);
        try testing.expect(std.mem.eql(u8, &payload, message.payload));
    }
    try testing.expectEqual(count, index);
}

test "Stream: two floods that fit the windows finish" {
    if (!has_threads) return error.SkipZigTest;
    for (std.enums.values(Way)) |way| {
        const both = try connect(way);
        // 64 frames of 1,024 bytes fill the window.
        const thread: std.Thread = try .spawn(.{}, flood, .{ both[1], 64 });
        defer thread.join();
        try flood(both[0], 64);
    }
}

fn closeSoon(port: *millrace.Port) void {
    pauseMs(30);
    port.close();
}

fn pauseMs(ms: u64) void {
    millrace.Host.native.pause(ms * 1_000_000);
}

test "Stream: a close by another thread ends the wait" {
    if (!has_threads) return error.SkipZigTest;
    const both = try connect(.unix);
    var far: Side = undefined;
    _ = try far.open(both[1], .{});
    defer far.deinit();
    var near: Side = undefined;
    const port = try near.open(both[0], .{});
    defer near.deinit();
    const thread: std.Thread = try .spawn(.{}, closeSoon, .{port});
    defer thread.join();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.PipeClosed, port.read(&storage, patience));
    // The peer has been told, before either side calls `finish`.
    try testing.expectError(error.PeerClosed, far.stream.port.read(&storage, patience));
}

test "Stream: a wait over a socket takes as long as it says" {
    if (!has_threads) return error.SkipZigTest;
    for (std.enums.values(Way)) |way| {
        var both = try connect(way);
        var near: Side = undefined;
        const port = try near.open(both[0], .{});
        defer near.deinit();
        defer closeOf(&both[1]);
        var storage: [16]u8 = undefined;
        const before_ns = millrace.Host.native.now();
        try testing.expectEqual(null, try port.read(&storage, .ms(60)));
        try testing.expectError(error.Timeout, port.write("x", .{}, .ms(60)));
        const waited_ns = millrace.Host.native.now() - before_ns;
        try testing.expect(waited_ns >= 120_000_000);
        try testing.expect(waited_ns < 2_000_000_000);
    }
}

fn closeOf(descriptors: *StreamDescriptors) void {
    descriptors.transport().close();
}

test "Stream: a peer whose descriptors are closed at any byte is lost, in a call that waits too" {
    if (!has_threads) return error.SkipZigTest;
    var place: [64]u8 = undefined;
    const message = fixture.message(&place, "hi", 5);
    const preface = fixture.prefaceOf(4096, 16_384);
    for (std.enums.values(Way)) |way| {
        for ([_]usize{ 0, 1, 31, 32, 33, 47, 48, 63, 64 }) |size| {
            var both = try connect(way);
            var near: Side = undefined;
            const port = try near.open(both[0], .{});
            defer near.deinit();
            const far = both[1].transport();
            const from_preface = preface[0..@min(size, 32)];
            if (size > 0) _ = try far.write(&.{from_preface});
            if (size > 32) _ = try far.write(&.{message[0 .. size - 32]});
            var greeting: [32]u8 = undefined;
            try testing.expectEqual(32, try far.read(&greeting));
            const thread: std.Thread = try .spawn(.{}, closeFar, .{&both[1]});
            defer thread.join();
            var storage: [16]u8 = undefined;
            if (size == 64) {
                try testing.expectEqualStrings("hi", (try port.read(&storage, patience)).?.payload);
            }
            try testing.expectError(error.PeerFailed, port.read(&storage, patience));
            try testing.expectEqual(.peer_lost, port.reason());
            // Writing to a pipe without a reader raises a signal, which must not end the process.
            try testing.expectError(error.PeerFailed, port.write("x", .{}, patience));
        }
    }
}

fn closeFar(descriptors: *StreamDescriptors) void {
    pauseMs(2);
    closeOf(descriptors);
}

test "Stream: writing to a pipe or a socket that nobody reads raises no signal" {
    if (!has_threads) return error.SkipZigTest;
    // The start code of Zig ignores SIGPIPE; here, the signal is fatal again.
    var before: posix.Sigaction = undefined;
    const fatal: posix.Sigaction = .{
        .handler = .{ .handler = posix.SIG.DFL },
        .mask = posix.sigemptyset(),
        .flags = 0,
    };
    posix.sigaction(.PIPE, &fatal, &before);
    defer posix.sigaction(.PIPE, &before, null);
    for (std.enums.values(Way)) |way| {
        var both = try connect(way);
        closeOf(&both[1]);
        const near = both[0].transport();
        defer near.close();
        for (0..3) |_| {
            _ = near.write(&.{"bytes"}) catch break;
            pauseMs(2);
        } else return error.NoError;
    }
}

/// The methods that both sides of a stream serve.
const Api = struct {
    /// Goes down to 0 by calling the peer, and counts on the way back.
    pub fn down(serving: *millrace.Serving, left: u32) !u32 {
        if (left == 0) return 0;
        return 1 + try serving.calls.call(u32, "down", .{left - 1}, .{ .timeout = patience });
    }

    pub fn upTo(serving: *millrace.Serving, n: u32) !u32 {
        for (0..n) |number| try serving.item(number, patience);
        return n;
    }

    pub fn reverse(serving: *millrace.Serving, bytes: millrace.Bytes) !millrace.Bytes {
        const copy = try serving.allocator().dupe(u8, bytes.bytes);
        std.mem.reverse(u8, copy);
        return .{ .bytes = copy };
    }
};

fn callBoth(descriptors: StreamDescriptors, options: Stream.Options) !void {
    var side: Side = undefined;
    var own = options;
    own.port.calls = true;
    const port = try side.open(descriptors, own);
    defer side.deinit();
    var calls: millrace.Calls = undefined;
    calls.init(port, testing.allocator, .{ .inbox_size = 1 << 20 });
    defer calls.deinit();
    calls.serve(Api);
    const patient: millrace.Calls.CallOptions = .{ .timeout = patience };
    try testing.expectEqual(40, try calls.call(u32, "down", .{40}, patient));
    // No more calls than may be sent without credit: each side is inside the method that it serves.
    const count = layout.call_window;
    var items = try calls.items(u32, "upTo", .{count}, patient);
    defer items.deinit();
    for (0..count) |index| try testing.expectEqual(index, (try items.next()).?);
    try testing.expectEqual(null, try items.next());
    const big = try testing.allocator.alloc(u8, 100_000);
    defer testing.allocator.free(big);
    pattern(big, 3);
    const argument: millrace.Bytes = .{ .bytes = big };
    const back = try calls.call(millrace.Bytes, "reverse", .{argument}, patient);
    defer back.deinit();
    try testing.expectEqual(big.len, back.value.bytes.len);
    try testing.expectEqual(big[7], back.value.bytes[big.len - 8]);
    try calls.end(patience);
    var storage: [16]u8 = undefined;
    try testing.expectEqual(null, try calls.read(&storage, patience));
}

test "Stream: calls within calls, items and large answers, in both directions at once" {
    if (!has_threads) return error.SkipZigTest;
    for (std.enums.values(Way)) |way| {
        for ([_]Stream.Options{ .{}, .{ .largest = 128, .window = 256, .queue = 512 } }) |options| {
            const both = try connect(way);
            const thread: std.Thread = try .spawn(.{}, callBoth, .{ both[1], options });
            defer thread.join();
            try callBoth(both[0], options);
        }
    }
}
