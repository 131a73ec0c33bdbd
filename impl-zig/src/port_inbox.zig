//! Where a port keeps what arrives while it waits for room [port.inbox].
//!
//! Invariant: entries stand in the order in which their messages arrived, errors among them.

const std = @import("std");
const layout = @import("layout.zig");
const pipe = @import("pipe.zig");
const assert = std.debug.assert;
const Bytes = @import("ring.zig").Bytes;
const Message = pipe.Message;
const ReadError = pipe.ReadError;

/// Messages that arrived while the port waited for room: a queue in storage of the caller.
///
/// Entries stand one behind the other; when the last is taken, the next begins at the front.
pub const Inbox = struct {
    storage: []align(entry_align) u8,
    /// The first entry, and the end of the last.
    begin: usize = 0,
    end: usize = 0,
    count: usize = 0,
    /// Whether the reader is in the middle of a message whose parts go behind `end`.
    filling: bool = false,
    /// Whether the first entry is lent out.
    lent: bool = false,
    /// Whether an error stands in it that every later call would report again.
    stopped: bool = false,

    pub const entry_align = 16;

    const Entry = extern struct {
        size: u32,
        kind: u16,
        codec: u16,
        tag: u32,
        time: u32,
    };

    /// In `Entry.kind`, when the entry is an error and `size` its number.
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

    /// Whether reads need not look here.
    pub fn empty(inbox: *const Inbox) bool {
        return inbox.count == 0 and !inbox.filling;
    }

    /// Makes room behind the last entry. Returns false when not even an error fits there.
    pub fn prepare(inbox: *Inbox) bool {
        assert(!inbox.filling);
        if (inbox.begin > 0 and !inbox.lent) inbox.compact();
        return inbox.storage.len - inbox.end >= entry_align;
    }

    pub fn storageForNext(inbox: *const Inbox) Bytes {
        assert(inbox.filling);
        const rest = inbox.storage[inbox.end + entry_align ..];
        // What an entry's `size` can tell, however large the storage is.
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

    /// Returns whether the reading can go on.
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
        // Every later read reports the others again, so there is nothing to keep in order.
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

    /// Drops the parts of a message that will not be completed, and what every call would have
    /// reported again. What is complete stays.
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
