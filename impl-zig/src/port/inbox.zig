//! The storage for messages that arrive while a port waits for room [port.inbox].
//!
//! Invariant: entries are in the order in which the messages arrived, with errors among them.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const assert = std.debug.assert;
const Bytes = @import("../ring/side.zig").Bytes;
const Message = pipe.Message;
const ReadError = pipe.ReadError;

/// The messages that arrived while the port waited for room: a queue in the caller's storage.
///
/// Each entry starts where the one before it ends. After the last one is taken, the next entry
/// starts at the front.
pub const Inbox = struct {
    storage: []align(entry_align) u8,
    /// Where the first entry starts, and where the last entry ends.
    begin: usize = 0,
    end: usize = 0,
    count: usize = 0,
    /// Whether the reader is in the middle of a message whose parts go after `end`.
    filling: bool = false,
    /// Whether the first entry is lent.
    lent: bool = false,
    /// Whether the reading has ended with an error that every later call reports again.
    stopped: bool = false,

    pub const entry_align = 16;

    const Entry = extern struct {
        size: u32,
        kind: u16,
        codec: u16,
        tag: u32,
        time: u32,
    };

    /// The `Entry.kind` of an entry that is an error; its `size` is then the number of the error.
    const kind_error = std.math.maxInt(u16);

    const View = struct {
        payload: Bytes,
        kind: layout.FrameKind,
        codec: layout.Codec,
        tag: u32,
        time: u32,
        err: ?ReadError,
    };

    comptime {
        assert(@sizeOf(Entry) == entry_align);
    }

    pub fn init(storage: []align(entry_align) u8) Inbox {
        return .{ .storage = storage[0 .. storage.len - storage.len % entry_align] };
    }

    /// Whether reads can pass the inbox by.
    pub fn empty(inbox: *const Inbox) bool {
        return inbox.count == 0 and !inbox.filling;
    }

    /// Makes room after the last entry. Returns false if not even an error fits there.
    pub fn prepare(inbox: *Inbox) bool {
        assert(!inbox.filling);
        if (inbox.begin > 0 and !inbox.lent) inbox.compact();
        return inbox.storage.len - inbox.end >= entry_align;
    }

    pub fn storageForNext(inbox: *const Inbox) Bytes {
        assert(inbox.filling);
        const rest = inbox.storage[inbox.end + entry_align ..];
        // At most the size that an entry can state, however large the storage is.
        return @alignCast(rest[0..@min(rest.len, std.math.maxInt(u32))]);
    }

    /// Completes the entry whose payload the reader wrote into `storageForNext`.
    pub fn put(inbox: *Inbox, message: Message, time: u32) void {
        assert(!inbox.filling);
        const size: u32 = @intCast(message.payload.len);
        inbox.entryAt(inbox.end).* = .{
            .size = size,
            .kind = @intCast(@backingInt(message.kind)),
            .codec = @intCast(@backingInt(message.codec)),
            .tag = message.tag,
            .time = time,
        };
        inbox.end += extentOf(size);
        inbox.count += 1;
        assert(inbox.end <= inbox.storage.len);
    }

    /// Keeps an error. Returns whether reading can go on.
    pub fn putError(inbox: *Inbox, err: ReadError) bool {
        assert(!inbox.filling);
        const costs_one_message = switch (err) {
            error.MessageCancelled,
            error.MessageTruncated,
            error.MessageSize,
            error.MessageKind,
            => true,
            else => false,
        };
        // Every later read reports any other error again, so it need not be kept in order.
        if (!costs_one_message) {
            inbox.stopped = true;
            return false;
        }
        assert(inbox.storage.len - inbox.end >= entry_align);
        inbox.entryAt(inbox.end).* = .{
            .size = @backingInt(errorCode(err)),
            .kind = kind_error,
            .codec = 0,
            .tag = 0,
            .time = 0,
        };
        inbox.end += entry_align;
        inbox.count += 1;
        return true;
    }

    pub fn first(inbox: *const Inbox) View {
        assert(inbox.count > 0);
        const entry = inbox.entryAt(inbox.begin).*;
        const is_error = entry.kind == kind_error;
        const size = if (is_error) 0 else entry.size;
        return .{
            .payload = @alignCast(inbox.storage[inbox.begin + entry_align ..][0..size]),
            .kind = @fromBackingInt(entry.kind),
            .codec = @fromBackingInt(entry.codec),
            .tag = entry.tag,
            .time = entry.time,
            .err = if (is_error) errorOf(@fromBackingInt(entry.size)) else null,
        };
    }

    pub fn drop(inbox: *Inbox) void {
        assert(inbox.count > 0);
        assert(!inbox.lent);
        const entry = inbox.entryAt(inbox.begin).*;
        inbox.begin += if (entry.kind == kind_error) entry_align else extentOf(entry.size);
        inbox.count -= 1;
        if (inbox.begin == inbox.end and !inbox.filling) {
            inbox.begin = 0;
            inbox.end = 0;
        }
    }

    /// Drops the parts of a message that will never be completed, and forgets the error that every
    /// call would have reported again. Complete entries stay.
    pub fn beginAnew(inbox: *Inbox) void {
        inbox.filling = false;
        inbox.stopped = false;
    }

    pub fn release(inbox: *Inbox) void {
        assert(inbox.lent);
        inbox.lent = false;
        inbox.drop();
    }

    fn compact(inbox: *Inbox) void {
        const used = inbox.storage[inbox.begin..inbox.end];
        @memmove(inbox.storage[0..used.len], used);
        inbox.begin = 0;
        inbox.end = used.len;
    }

    fn entryAt(inbox: *const Inbox, offset: usize) *Entry {
        assert(offset % entry_align == 0);
        return @ptrCast(@alignCast(inbox.storage[offset..][0..entry_align]));
    }

    fn extentOf(size: u32) usize {
        return entry_align + std.mem.alignForward(usize, size, entry_align);
    }

    fn errorCode(err: ReadError) layout.Reason {
        return switch (err) {
            error.MessageCancelled => .message_cancelled,
            error.MessageTruncated => .message_truncated,
            error.MessageSize => .message_size,
            error.MessageKind => .message_kind,
            else => unreachable,
        };
    }

    fn errorOf(code: layout.Reason) ReadError {
        return switch (code) {
            .message_cancelled => error.MessageCancelled,
            .message_truncated => error.MessageTruncated,
            .message_size => error.MessageSize,
            .message_kind => error.MessageKind,
            else => unreachable,
        };
    }
};
