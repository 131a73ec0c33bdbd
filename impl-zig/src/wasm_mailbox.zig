//! `millrace_mailbox.wasm`: the two sides of a mailbox [spec/mailbox.md] for hosts of WebAssembly.
//! What it imports and what a status means is told in `wasm.zig`; a module of its own, because who
//! uses the one rarely needs the other.
//!
//! Its data lie after those of `millrace.wasm`, so that both may have one memory: what the host
//! shares then begins at the larger of the two heap bases.
//!
//! A side is an object of `millrace_mailbox_size()` bytes that the host sets aside, at a multiple
//! of 16. The section of the mailbox, at a multiple of 4 and blank before its first use, is where
//! both sides know it to be.

const std = @import("std");
const host = @import("wait/mechanism.zig");
const mailbox = @import("mailbox/mailbox.zig");
const wasm = @import("wasm_arguments.zig");
const MailboxReader = mailbox.MailboxReader;
const MailboxWriter = mailbox.MailboxWriter;

pub const panic = std.debug.no_panic;

/// A stale handle, or memory that never was such a side, is refused.
fn Object(comptime Kind: type, comptime magic_attached: u32) type {
    return struct {
        side: Kind,
        magic: u32,

        fn create(address: u32, base: u32, size: u32, thread: u32) i32 {
            const object = at(address) orelse return wasm.status_invalid;
            object.magic = 0;
            const options = wasm.endpointOf(thread) orelse return wasm.status_invalid;
            if (!wasm.lies(base, size, 1)) return wasm.status_invalid;
            const memory = @as([*]u8, @ptrFromInt(base))[0..size];
            object.side = Kind.init(memory, options) catch |err| return wasm.statusOf(err);
            object.magic = magic_attached;
            return wasm.status_done;
        }

        fn known(address: u32) ?*Kind {
            const object = at(address) orelse return null;
            return if (object.magic == magic_attached) &object.side else null;
        }

        fn at(address: u32) ?*@This() {
            if (!wasm.lies(address, @sizeOf(@This()), 16)) return null;
            return @ptrFromInt(address);
        }
    };
}

const WriterObject = Object(MailboxWriter, 0x4d_42_58_57);
const ReaderObject = Object(MailboxReader, 0x4d_42_58_52);

comptime {
    std.debug.assert(@alignOf(WriterObject) <= 16);
    std.debug.assert(@alignOf(ReaderObject) <= 16);
}

/// Returns the first address that is the host's, a multiple of 128. Needs no stack.
export fn millrace_heap_base() u32 {
    return @intCast(host.heapBase());
}

/// Returns the bytes that the host must set aside for one side of a mailbox.
export fn millrace_mailbox_size() u32 {
    return @max(@sizeOf(WriterObject), @sizeOf(ReaderObject));
}

/// Becomes the writer of the mailbox in the section at `base`. Status -40 (`mailbox.size`) refuses
/// a section that is not aligned, or too short. `thread` says how the caller's thread sleeps and
/// whether it may, as for a port.
export fn millrace_mailbox_writer_create(object: u32, base: u32, size: u32, thread: u32) i32 {
    return WriterObject.create(object, base, size, thread);
}

/// Writes one payload: a JSON array of at least one message, in UTF-8. After status 0, pass the
/// same payload again where `millrace_mailbox_writer_partial` says that it is under way.
export fn millrace_mailbox_writer_write(
    object: u32,
    address: u32,
    size: u32,
    timeout_ms: f64,
) i32 {
    const writer = WriterObject.known(object) orelse return wasm.status_invalid;
    const payload = wasm.bytesAt(address, size) orelse return wasm.status_invalid;
    if (!writer.fits(payload)) return wasm.status_invalid;
    writer.write(payload, wasm.timeoutOf(timeout_ms)) catch |err| return failed(writer, err);
    return wasm.status_done;
}

/// Returns 1 while a payload is under way that must be passed again, else 0.
export fn millrace_mailbox_writer_partial(object: u32) u32 {
    const writer = WriterObject.known(object) orelse return 0;
    return @intFromBool(writer.partial());
}

/// Closes the mailbox. May be called on another thread's instance of the same memory.
export fn millrace_mailbox_writer_close(object: u32) i32 {
    const writer = WriterObject.known(object) orelse return wasm.status_invalid;
    writer.close();
    return wasm.status_done;
}

/// Becomes the reader of the mailbox in the section at `base`.
export fn millrace_mailbox_reader_create(object: u32, base: u32, size: u32, thread: u32) i32 {
    return ReaderObject.create(object, base, size, thread);
}

/// Reads one payload into the storage, of at most 2^31 - 1 bytes, and returns its size; 0 when
/// none was complete in time, and then the same storage must be passed again. -50, -53 and -54
/// (`message.size`, `message.text` and `message.json`) cost one payload, and the mailbox goes on.
export fn millrace_mailbox_reader_read(
    object: u32,
    address: u32,
    capacity: u32,
    timeout_ms: f64,
) i32 {
    const reader = ReaderObject.known(object) orelse return wasm.status_invalid;
    const storage = wasm.bytesAt(address, capacity) orelse return wasm.status_invalid;
    if (storage.len > std.math.maxInt(i32)) return wasm.status_invalid;
    if (!reader.fits(storage)) return wasm.status_invalid;
    const found = reader.read(storage, wasm.timeoutOf(timeout_ms)) catch |err|
        return failed(reader, err);
    const payload = found orelse return wasm.status_nothing;
    return @intCast(payload.len);
}

/// Closes the mailbox. May be called on another thread's instance of the same memory.
export fn millrace_mailbox_reader_close(object: u32) i32 {
    const reader = ReaderObject.known(object) orelse return wasm.status_invalid;
    reader.close();
    return wasm.status_done;
}

fn failed(side: anytype, err: anyerror) i32 {
    return wasm.failed(side.reason(), err);
}
