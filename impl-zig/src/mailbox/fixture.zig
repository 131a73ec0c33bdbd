//! Shared by the tests of the mailbox: both sides on one thread, a machine that runs a test's step
//! during each sleep, payloads, and a stand-in for the original.

const std = @import("std");
const builtin = @import("builtin");
const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const mailbox = @import("side.zig");
const layout = millrace.layout;

pub const disposed = mailbox.disposed;
pub const Memory = []align(layout.mailbox_header_align) u8;

pub const Side = enum { writer, reader };

/// Both sides of a mailbox. Must not move after it was initialized.
pub const Pair = struct {
    pub const capacity_max = 512;

    memory: [32 + capacity_max]u8 align(4),
    section: Memory,
    writer: millrace.MailboxWriter,
    reader: millrace.MailboxReader,
    original: Original,
    kept: [1024]u8,

    pub fn init(pair: *Pair, capacity: usize) !void {
        return pair.initOn(capacity, &fixture.clockwork);
    }

    pub fn initOn(pair: *Pair, capacity: usize, host: *const millrace.Host) !void {
        pair.memory = @splat(0);
        pair.section = pair.memory[0 .. 32 + capacity];
        pair.writer = try .init(pair.section, .{ .host = host, .spin_us = 0 });
        pair.reader = try .init(pair.section, .{ .host = host, .spin_us = 0 });
        pair.original = .init(pair.section);
    }

    pub fn header(pair: *Pair) *mailbox.Header {
        return pair.writer.side.header;
    }

    /// Places one part, valid or not, and gives the turn to the reader.
    pub fn put(pair: *Pair, part: []const u8, part_index: u32, part_count: u32) void {
        @memcpy(pair.section[32..][0..part.len], part);
        pair.describe(@intCast(part.len), part_index, part_count);
    }

    pub fn describe(pair: *Pair, length: u32, part_index: u32, part_count: u32) void {
        const words = pair.header();
        words.length = length;
        words.part_index = part_index;
        words.part_count = part_count;
        words.signal = mailbox.may_read;
    }

    pub fn tryRead(pair: *Pair) millrace.MailboxReadError!?[]u8 {
        return pair.reader.tryRead(&pair.kept);
    }

    pub fn expectNothing(pair: *Pair) !void {
        try std.testing.expectEqual(null, try pair.tryRead());
    }

    pub fn expectPayload(pair: *Pair, payload: []const u8) !void {
        const found = (try pair.tryRead()) orelse return error.NoPayload;
        try std.testing.expectEqualStrings(payload, found);
    }

    /// Makes a call of that side without waiting, to get its error.
    pub fn verdict(pair: *Pair, side: Side) anyerror!void {
        switch (side) {
            .writer => _ = try pair.writer.tryWrite("[0]"),
            .reader => _ = try pair.tryRead(),
        }
    }
};

/// A machine on which a test's step runs whenever a thread sleeps, and time passes.
pub const scripted: millrace.Host = blk: {
    var host = fixture.clockwork;
    const functions = struct {
        fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
            // [mailbox.recheck]
            std.debug.assert(limit_ns <= 100_000_000);
            const rung = fixture.clockwork.sleep(word, expected, limit_ns);
            if (act) |step| step();
            return rung;
        }
    };
    host.sleep = functions.sleep;
    break :blk host;
};
pub var act: ?*const fn () void = null;

/// `sab-message-port` 1.0 as a peer sees it. It stores `signal` plainly, wakes one sleeper, fills
/// every part except the last, and closes by storing −1 in all words, one after the other.
pub const Original = struct {
    header: *mailbox.Header,
    area: []u8,
    part_index: u32 = 0,
    size: usize = 0,

    pub const Error = error{Closed};

    pub fn init(memory: Memory) Original {
        return .{ .header = @ptrCast(memory.ptr), .area = memory[32..] };
    }

    fn words(original: Original) *[8]u32 {
        return @ptrCast(original.header);
    }

    fn signal(original: Original) Error!u32 {
        const found = @atomicLoad(u32, &original.header.signal, .seq_cst);
        return if (found == disposed) error.Closed else found;
    }

    /// Writes the next part if it may. Returns whether that was the last one.
    pub fn offer(original: *Original, payload: []const u8) Error!bool {
        if (try original.signal() != mailbox.may_write) return false;
        return original.offerBlind(payload);
    }

    /// The steps that follow the look at `signal`, however long ago that look was.
    pub fn offerBlind(original: *Original, payload: []const u8) bool {
        const size = @min(original.area.len, payload.len - original.size);
        @memcpy(original.area[0..size], payload[original.size..][0..size]);
        const count = std.math.divCeil(usize, payload.len, original.area.len) catch unreachable;
        original.header.part_count = @intCast(count);
        original.header.part_index = original.part_index;
        original.header.length = @intCast(size);
        original.store(mailbox.may_read);
        original.size += size;
        original.part_index += 1;
        if (original.size < payload.len) return false;
        original.size = 0;
        original.part_index = 0;
        return true;
    }

    /// Takes the next part if there is one. Returns the payload that it completes.
    pub fn take(original: *Original, storage: []u8) Error!?[]u8 {
        if (try original.signal() != mailbox.may_read) return null;
        return original.takeBlind(storage);
    }

    pub fn takeBlind(original: *Original, storage: []u8) ?[]u8 {
        const size = original.header.length;
        const last = original.header.part_index +% 1 == original.header.part_count;
        // Another thread's close has stored this value; this thread finds the close at the next
        // look.
        if (size > original.area.len) return null;
        @memcpy(storage[original.size..][0..size], original.area[0..size]);
        original.store(mailbox.may_write);
        original.size += size;
        if (!last) return null;
        defer original.size = 0;
        return storage[0..original.size];
    }

    fn store(original: Original, value: u32) void {
        @atomicStore(u32, &original.header.signal, value, .seq_cst);
        wakeOne(&original.header.signal);
    }

    pub fn write(original: *Original, payload: []const u8) Error!void {
        while (!try original.offer(payload)) try original.sleepWhile(mailbox.may_read);
    }

    pub fn read(original: *Original, storage: []u8) Error![]u8 {
        while (true) {
            if (try original.take(storage)) |payload| return payload;
            try original.sleepWhile(mailbox.may_write);
        }
    }

    fn sleepWhile(original: Original, value: u32) Error!void {
        if (try original.signal() != value) return;
        _ = millrace.Host.native.sleep(&original.header.signal, value, 20_000_000);
        // If it has overwritten a close, the original sleeps for ever: no test waits for that.
        if (@atomicLoad(u32, &original.header.status, .seq_cst) == disposed) return error.Closed;
    }

    pub fn close(original: Original) void {
        for (0..8) |index| original.closeWord(index);
        for (original.words()) |*word| millrace.Host.native.notify(word);
    }

    pub fn closeWord(original: Original, index: usize) void {
        @atomicStore(u32, &original.words()[index], disposed, .seq_cst);
    }

    fn wakeOne(word: *u32) void {
        if (builtin.os.tag != .linux) return millrace.Host.native.notify(word);
        _ = std.os.linux.futex_3arg(word, .{ .cmd = .WAKE, .private = false }, 1);
    }
};

/// Writes the payload with that number into the storage, of 1,024 bytes: one to three messages,
/// with characters of one to four bytes, of 3 to about 900 bytes in total.
pub fn payloadOf(storage: []u8, seed: u64) []u8 {
    var prng: std.Random.DefaultPrng = .init(seed);
    const random = prng.random();
    var text: std.Io.Writer = .fixed(storage);
    const count = random.intRangeAtMost(u32, 1, 3);
    const long = random.uintLessThan(u32, 8) == 0;
    for (0..count) |index| {
        text.writeByte(if (index == 0) '[' else ',') catch unreachable;
        if (random.boolean()) {
            text.print("{d}", .{random.int(u16)}) catch unreachable;
            continue;
        }
        text.writeByte('"') catch unreachable;
        const characters = [_][]const u8{ "a", "\u{fc}", "\u{20ac}", "\u{1d11e}" };
        for (0..random.uintLessThan(usize, if (long) 70 else 8)) |_| {
            text.writeAll(characters[random.uintLessThan(usize, 4)]) catch unreachable;
        }
        text.writeByte('"') catch unreachable;
    }
    text.writeByte(']') catch unreachable;
    return text.buffered();
}
