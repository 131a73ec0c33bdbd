//! The two sides of a mailbox for C [spec/mailbox.md]. `millrace.h` says what each call promises.

const mailbox_file = @import("../mailbox/mailbox.zig");
const arguments = @import("arguments.zig");
const Status = arguments.Status;

const Body = union(enum) {
    writer: mailbox_file.MailboxWriter,
    reader: mailbox_file.MailboxReader,

    fn side(body: *Body) *mailbox_file.Side {
        return switch (body.*) {
            inline else => |*known| &known.side,
        };
    }
};

const Object = arguments.Object(Body, .mailbox);

pub export fn millrace_mailbox_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_mailbox_attach_writer(
    mailbox: ?*anyopaque,
    memory: ?*anyopaque,
    memory_size: usize,
) Status {
    return attach("writer", mailbox_file.MailboxWriter, mailbox, memory, memory_size);
}

pub export fn millrace_mailbox_attach_reader(
    mailbox: ?*anyopaque,
    memory: ?*anyopaque,
    memory_size: usize,
) Status {
    return attach("reader", mailbox_file.MailboxReader, mailbox, memory, memory_size);
}

fn attach(
    comptime name: []const u8,
    comptime End: type,
    mailbox: ?*anyopaque,
    memory: ?*anyopaque,
    memory_size: usize,
) Status {
    const object = Object.blank(mailbox) orelse return arguments.invalid;
    const section = arguments.storageAt(memory, memory_size) orelse return arguments.invalid;
    if (memory == null) return arguments.invalid;
    const end = End.init(section, .{}) catch |err| return arguments.failed(err, null);
    object.body = @unionInit(Body, name, end);
    object.seal();
    return arguments.done;
}

pub export fn millrace_mailbox_set_spin(mailbox: ?*anyopaque, microseconds: u32) Status {
    const object = Object.known(mailbox) orelse return arguments.invalid;
    object.body.side().manner.spin_ns = @as(u64, microseconds) * 1_000;
    return arguments.done;
}

pub export fn millrace_mailbox_write(
    mailbox: ?*anyopaque,
    payload: ?*const anyopaque,
    size: usize,
    timeout_ms: i32,
) Status {
    const object = Object.known(mailbox) orelse return arguments.invalid;
    if (object.body != .writer) return arguments.invalid;
    const writer = &object.body.writer;
    const bytes = arguments.bytesAt(payload, size) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!writer.fits(bytes)) return arguments.invalid;
    writer.write(bytes, timeout) catch |err| return arguments.failed(err, writer.reason());
    return arguments.done;
}

pub export fn millrace_mailbox_read(
    mailbox: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    timeout_ms: i32,
    size: ?*anyopaque,
) Status {
    const result = arguments.resultAt(usize, size) orelse return arguments.invalid;
    result.* = 0;
    const object = Object.known(mailbox) orelse return arguments.invalid;
    if (object.body != .reader) return arguments.invalid;
    const reader = &object.body.reader;
    const bytes = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    const timeout = arguments.timeoutOf(timeout_ms) orelse return arguments.invalid;
    if (!reader.fits(bytes)) return arguments.invalid;
    const found = reader.read(bytes, timeout) catch |err|
        return arguments.failed(err, reader.reason());
    result.* = (found orelse return arguments.nothing).len;
    return arguments.done;
}

pub export fn millrace_mailbox_partial(mailbox: ?*anyopaque) Status {
    const object = Object.known(mailbox) orelse return arguments.invalid;
    return switch (object.body) {
        inline else => |*known| @intFromBool(known.partial()),
    };
}

pub export fn millrace_mailbox_close(mailbox: ?*anyopaque) Status {
    const object = Object.known(mailbox) orelse return arguments.invalid;
    object.body.side().close();
    return arguments.done;
}

pub export fn millrace_mailbox_leave(mailbox: ?*anyopaque) Status {
    const object = Object.known(mailbox) orelse return arguments.invalid;
    object.forget();
    object.body.side().close();
    return arguments.done;
}
