//! Streams for C: ports over sockets and pipes [spec/stream.md]. What each call promises stands in
//! `millrace_stream.h`.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const stream_file = @import("../stream/stream.zig");
const Deadline = @import("../wait/mechanism.zig").Deadline;
const StreamLink = @import("../stream/link.zig").StreamLink;
const Memory = @import("../memory/segment.zig").Memory;
const Status = arguments.Status;
const Stream = stream_file.Stream;
const StreamDescriptors = @import("../stream/descriptors.zig").StreamDescriptors;

/// `millrace_stream_sizes`.
pub const Sizes = extern struct {
    largest: u32,
    window: u32,
    queue: u32,
};

const Body = struct {
    link: StreamLink,
    descriptors: if (StreamDescriptors.supported) StreamDescriptors else void,
    port: *c_port.Object,
};

pub const Object = arguments.Object(Body, .stream);

pub export fn millrace_stream_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_stream_memory_size(sizes: ?*const anyopaque) usize {
    const options = optionsOf(sizes) orelse return 0;
    return Stream.memorySize(options) catch 0;
}

pub export fn millrace_stream_open(
    stream: ?*anyopaque,
    port: ?*anyopaque,
    input: i32,
    output: i32,
    memory: ?*anyopaque,
    memory_size: usize,
    sizes: ?*const anyopaque,
) Status {
    const object = Object.blank(stream) orelse return arguments.invalid;
    const port_object = c_port.Object.blank(port) orelse return arguments.invalid;
    const options = optionsOf(sizes) orelse return arguments.invalid;
    const bytes = arguments.storageAt(memory, memory_size) orelse return arguments.invalid;
    const needed = Stream.memorySize(options) catch return arguments.invalid;
    if (bytes.len < needed or @intFromPtr(bytes.ptr) % layout.segment_align != 0) {
        return arguments.failed(error.SegmentSize, null);
    }
    if (!StreamDescriptors.supported) return arguments.unsupported;
    const body = &object.body;
    body.descriptors = StreamDescriptors.any(input, output) catch |err|
        return arguments.failed(err, null);
    const place: Memory = @alignCast(bytes[0..needed]);
    const own = &port_object.body.port;
    stream_file.openParts(own, &body.link, place, body.descriptors.transport(), options) catch |err|
        return arguments.failed(err, null);
    body.port = port_object;
    c_port.beginOver(port_object);
    object.seal();
    return arguments.done;
}

pub export fn millrace_stream_await_ready(stream: ?*anyopaque, timeout_ms: i32) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    var deadline: Deadline = .init(timeout);
    return if (object.body.link.awaitReady(&deadline)) arguments.done else arguments.nothing;
}

/// What `millrace_stream_pump` answers: that there is something to wait for.
const wish_read = 1;
const wish_write = 2;

pub export fn millrace_stream_pump(stream: ?*anyopaque) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    object.body.link.base.pump();
    const wish = object.body.link.wish();
    const read: Status = if (wish.read) wish_read else 0;
    const write: Status = if (wish.write) wish_write else 0;
    return read | write;
}

pub export fn millrace_stream_finish(stream: ?*anyopaque, timeout_ms: i32) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    object.body.port.body.port.close();
    var deadline: Deadline = .init(timeout);
    if (!object.body.link.finish(&deadline)) return arguments.nothing;
    object.body.link.giveUp();
    return arguments.done;
}

pub export fn millrace_stream_leave(stream: ?*anyopaque) Status {
    const object = Object.known(stream) orelse return arguments.invalid;
    const port = object.body.port;
    if (c_port.isCalled(port)) return arguments.invalid;
    port.body.port.close();
    var deadline: Deadline = .init(.forever);
    const finished = object.body.link.finish(&deadline);
    std.debug.assert(finished);
    object.body.link.giveUp();
    port.forget();
    object.forget();
    return arguments.done;
}

/// The options that the sizes stand for, or the defaults; null where there can be no such stream.
fn optionsOf(sizes: ?*const anyopaque) ?Stream.Options {
    if (sizes == null) return .{};
    const given = arguments.arrayAt(Sizes, sizes, 1) orelse return null;
    const options: Stream.Options = .{
        .largest = given[0].largest,
        .window = given[0].window,
        .queue = given[0].queue,
    };
    return if (options.valid()) options else null;
}
