//! Streams of the system: how a testee connects, and the stream over that.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const Allocator = std.mem.Allocator;
const posix = std.posix;
const system = posix.system;
const Stream = millrace.Stream;
const StreamDescriptors = millrace.StreamDescriptors;
const layout = millrace.layout;

/// Whether this target has them.
pub const supported = StreamDescriptors.supported;

pub const Transport = enum { unix, tcp, fifo };

/// What `start` says of them.
pub const Hello = struct {
    transports: []const Transport = &.{ .unix, .tcp, .fifo },
    waits: []const protocol.Wait = &.{ .block, .poll },
};

/// Frames of the workload of a live run have room in it, whatever the peer states.
const queue_size = 256 * 1024;

/// A stream, and what it stands on. Must stay where it was opened.
pub const Connection = struct {
    gpa: Allocator,
    memory: []align(layout.segment_align) u8,
    descriptors: StreamDescriptors,
    stream: Stream,

    /// Connects as the command says, and begins a stream.
    pub fn open(
        gpa: Allocator,
        command: *const protocol.Command,
        port: millrace.Port.Options,
    ) !*Connection {
        const options: Stream.Options = .{
            .largest = command.largest,
            .window = command.window,
            .queue = queue_size,
            .port = port,
        };
        if (!options.valid()) return error.Refused;
        const connection = try gpa.create(Connection);
        errdefer gpa.destroy(connection);
        connection.gpa = gpa;
        const size = try Stream.memorySize(options);
        connection.memory = try gpa.alignedAlloc(u8, .fromByteUnits(layout.segment_align), size);
        errdefer gpa.free(connection.memory);
        connection.descriptors = try connect(command);
        const transport = connection.descriptors.transport();
        try connection.stream.open(connection.memory, transport, options);
        return connection;
    }

    /// Closes the port, and gives everything back when the peer has ended, or 2 s have passed.
    pub fn destroy(connection: *Connection) void {
        connection.stream.deinit();
        connection.gpa.free(connection.memory);
        connection.gpa.destroy(connection);
    }
};

fn connect(command: *const protocol.Command) !StreamDescriptors {
    switch (command.transport) {
        .unix => {
            var address: posix.sockaddr.un = .{ .path = @splat(0) };
            if (command.path.len >= address.path.len) return error.NameTooLong;
            @memcpy(address.path[0..command.path.len], command.path);
            return dial(posix.AF.UNIX, @ptrCast(&address), @sizeOf(posix.sockaddr.un));
        },
        .tcp => {
            const address: posix.sockaddr.in = .{
                .port = std.mem.nativeToBig(u16, command.tcp_port),
                .addr = std.mem.nativeToBig(u32, 0x7f00_0001),
            };
            return dial(posix.AF.INET, @ptrCast(&address), @sizeOf(posix.sockaddr.in));
        },
        .fifo => {
            const input = try openFifo(command.path, .RDONLY);
            errdefer _ = system.close(input);
            const output = try openFifo(command.path_out, .WRONLY);
            errdefer _ = system.close(output);
            return .files(input, output);
        },
    }
}

fn dial(family: u32, address: *const posix.sockaddr, size: posix.socklen_t) !StreamDescriptors {
    const made = system.socket(family, posix.SOCK.STREAM, 0);
    if (posix.errno(made) != .SUCCESS) return error.Unexpected;
    const socket: posix.fd_t = @intCast(made);
    errdefer _ = system.close(socket);
    if (posix.errno(system.connect(socket, address, size)) != .SUCCESS) return error.Unexpected;
    return .socket(socket);
}

fn openFifo(path: []const u8, mode: posix.ACCMODE) !posix.fd_t {
    var name: [posix.PATH_MAX:0]u8 = undefined;
    if (path.len > name.len) return error.NameTooLong;
    @memcpy(name[0..path.len], path);
    name[path.len] = 0;
    return posix.openatZ(posix.AT.FDCWD, &name, .{ .ACCMODE = mode, .CLOEXEC = true }, 0);
}
