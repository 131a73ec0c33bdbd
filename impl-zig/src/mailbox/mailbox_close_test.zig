//! Closing a mailbox at every step of an exchange, by either side and with the original as peer:
//! every wait ends, and no side takes a close for a fault.

const std = @import("std");
const mailbox_fixture = @import("fixture.zig");
const mailbox = @import("side.zig");
const mailbox_writer = @import("writer.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const MailboxReader = millrace.MailboxReader;
const Pair = mailbox_fixture.Pair;
const Side = mailbox_fixture.Side;
const disposed = mailbox.disposed;

test "a close of the original between any two loads of a reader is a close, never a fault" {
    const payload = "[1]";
    var seen: u32 = 0;
    // How many of the eight stores of the original's close come before each of our loads, and
    // before our exchange. The two loads of `ready` see a close or nothing.
    for (0..9) |length_at| for (length_at..9) |count_at| for (count_at..9) |index_at| {
        for (index_at..9) |status_at| for (status_at..9) |exchange_at| for (1..3) |count| {
            var pair: Pair = undefined;
            try pair.init(16);
            pair.put(payload, 0, @intCast(count));
            try testing.expect(try pair.reader.side.ready());
            var part: MailboxReader.Part = .load(pair.header());
            if (length_at > 2) part.length = disposed;
            if (count_at > 3) part.part_count = disposed;
            if (index_at > 4) part.part_index = disposed;
            if (status_at > 0) part.status = disposed;
            for (0..exchange_at) |index| pair.original.closeWord(index);
            const found = pair.reader.take(part, &pair.kept);
            // [mailbox.read_status]
            if (status_at > 0) {
                try testing.expectError(error.PeerClosed, found);
            } else if (count == 1) {
                // [mailbox.complete]
                try testing.expectEqualStrings(payload, (try found).?);
            } else try testing.expectEqual(null, try found);
            // [mailbox.signal_exchange]
            if (exchange_at > 1) try testing.expectEqual(disposed, pair.header().signal);
            for (exchange_at..8) |index| pair.original.closeWord(index);
            try testing.expectError(error.PeerClosed, pair.verdict(.reader));
            try testing.expect(!pair.reader.partial());
            seen += 1;
        };
    };
    try testing.expectEqual(2 * 1287, seen);
}

test "a close between a writer's look and its exchange is kept, whoever closes" {
    for (0..10) |closer| {
        var pair: Pair = undefined;
        try pair.init(16);
        try testing.expect(try pair.writer.side.ready());
        switch (closer) {
            0...8 => for (0..closer) |index| pair.original.closeWord(index),
            else => pair.writer.close(),
        }
        try testing.expectEqual(closer < 2, pair.writer.side.pass());
        if (closer == 0) continue;
        if (closer >= 2) try testing.expectEqual(disposed, pair.header().signal);
        const expected = if (closer == 9) error.PipeClosed else error.PeerClosed;
        try testing.expectError(expected, pair.verdict(.writer));
    }
}

test "a part that a close overtook was not written, not even the last of a payload" {
    const pieces: mailbox_writer.Pieces = .{ .texts = &.{"[1]"}, .joined = false };
    for ([_]usize{ 16, 2 }) |capacity| for ([_]bool{ false, true }) |own| {
        var pair: Pair = undefined;
        try pair.init(capacity);
        try testing.expect(try pair.writer.side.ready());
        if (own) pair.writer.close() else pair.original.close();
        const expected = if (own) error.PipeClosed else error.PeerClosed;
        var progress: mailbox_writer.Progress = .{ .source = .of(pieces) };
        const part_count: u32 = if (capacity == 2) 2 else 1;
        const given = pair.writer.givePart(pieces, &progress, part_count);
        try testing.expectError(expected, given);
        try testing.expectEqual(disposed, pair.header().signal);
        try testing.expect(!pair.writer.partial());
    };
}

/// A mailbox on a machine that counts the notifications.
const Met = struct {
    var count: u32 = 0;
    var pair: Pair = undefined;

    const host: millrace.Host = blk: {
        var counting = @import("../testing/fixture.zig").clockwork;
        counting.notify = notify;
        break :blk counting;
    };

    fn notify(word: *const u32) void {
        std.debug.assert(word == &pair.header().signal);
        count += 1;
    }

    fn expect(expected: u32) !void {
        try testing.expectEqual(expected, count);
        count = 0;
    }
};

test "every change of signal by this side is notified, and nothing else [mailbox.notify]" {
    const pair = &Met.pair;
    try pair.initOn(16, &Met.host);
    try pair.expectNothing();
    try Met.expect(0);
    try testing.expect(try pair.writer.tryWrite("[1]"));
    try Met.expect(1);
    try testing.expect(!try pair.writer.tryWrite("[2]"));
    try Met.expect(0);
    try pair.expectPayload("[1]");
    try Met.expect(1);
    pair.writer.close();
    try Met.expect(1);
    pair.writer.close();
    try Met.expect(0);
    try testing.expectError(error.PeerClosed, pair.verdict(.reader));
    try Met.expect(0);
    pair.reader.close();
    try Met.expect(1);
    // A fault closes the mailbox, so it wakes the peer too.
    try pair.initOn(16, &Met.host);
    pair.put("[1]", 1, 1);
    try testing.expectError(error.Corrupt, pair.verdict(.reader));
    try Met.expect(1);
}

test "an exchange that fails is a close, whatever the word holds [mailbox.signal_exchange]" {
    inline for (.{ Side.writer, Side.reader }) |which| for ([_]u32{ 0, 1, 7, disposed }) |value| {
        const pair = &Met.pair;
        try pair.initOn(16, &Met.host);
        const side = &@field(pair, @tagName(which)).side;
        if (value == side.turn) continue;
        pair.put("[1]", 0, 1);
        pair.header().signal = side.turn;
        try testing.expect(try side.ready());
        pair.header().signal = value;
        try testing.expect(!side.pass());
        // [mailbox.lost_turn] A close has told the peer already, and only a close leaves −1.
        const told = value == disposed;
        try testing.expectEqual(disposed, pair.header().signal);
        try testing.expectEqual(if (told) mailbox.active else disposed, pair.header().status);
        try Met.expect(if (told) 0 else 1);
        // Whatever the words hold from now on.
        pair.header().status = mailbox.active;
        pair.header().signal = side.turn;
        try testing.expectError(error.PeerClosed, pair.verdict(which));
        try testing.expectEqual(.peer_closed, side.reason().?);
    };
}

/// The implementation at the other end.
const Peer = enum { ours, original };

/// One side waits. Whenever it sleeps, the other takes a step, until one of them closes.
const Script = struct {
    waiter: Side,
    peer: Peer,
    /// Whether the waiter itself closes, from another thread, or its peer.
    own: bool,
    /// At which sleep.
    at: u32,
    /// What the original, which has looked before the close, stores in `signal` after it.
    overwritten: ?u32 = null,

    const payload = "[\"six parts of 4 bytes\"]";
    var running: Script = undefined;
    var pair: Pair = undefined;
    var step: u32 = 0;
    var storage: [64]u8 = undefined;

    fn run(script: Script) !void {
        running = script;
        step = 0;
        try pair.initOn(4, &mailbox_fixture.scripted);
        mailbox_fixture.act = next;
        defer mailbox_fixture.act = null;
        if (script.at == 0) next();
        const expected = if (script.own) error.PipeClosed else error.PeerClosed;
        const result = switch (script.waiter) {
            .writer => pair.writer.write(payload, .ms(2_000)),
            .reader => if (pair.reader.read(&pair.kept, .ms(2_000))) |_| {} else |err| err,
        };
        try testing.expectError(expected, result);
        // At once if the close woke it; at the end of the slice if the close was overwritten.
        const parks = pair.writer.side.parks + pair.reader.side.parks;
        const late = script.overwritten != null and script.at > 0;
        try testing.expect(parks == script.at or late and parks == script.at + 1);
        try testing.expectError(expected, pair.verdict(script.waiter));
        try testing.expect(!pair.writer.partial() or script.waiter == .reader);
        try testing.expect(!pair.reader.partial() or script.waiter == .writer);
    }

    /// What happens while the waiter sleeps.
    fn next() void {
        defer step += 1;
        if (running.at > 0 and step + 1 < running.at) return running.move();
        if (running.at > 0 and step + 1 > running.at) return;
        const writes = (running.waiter == .writer) == running.own;
        if (!running.own and running.peer == .original) {
            pair.original.close();
        } else if (writes) pair.writer.close() else pair.reader.close();
        if (running.overwritten) |value| {
            @atomicStore(u32, &pair.header().signal, value, .seq_cst);
        }
    }

    fn move(script: Script) void {
        const done = switch (script.waiter) {
            .writer => switch (script.peer) {
                .ours => pair.reader.tryRead(&storage),
                .original => pair.original.take(&storage),
            } catch unreachable != null,
            .reader => switch (script.peer) {
                .ours => pair.writer.tryWrite(payload),
                .original => pair.original.offer(payload),
            } catch unreachable,
        };
        std.debug.assert(!done);
    }
};

test "a close at every sleep of either side ends the wait, with the verdict of who closed" {
    for ([_]Side{ .writer, .reader }) |waiter| for ([_]Peer{ .ours, .original }) |peer| {
        for ([_]bool{ false, true }) |own| for (0..6) |at| {
            const script: Script = .{
                .waiter = waiter,
                .peer = peer,
                .own = own,
                .at = @intCast(at),
            };
            try script.run();
        };
    };
}

test "a close that the original has overwritten is found within a slice" {
    for ([_]Side{ .writer, .reader }) |waiter| for ([_]u32{ 0, 1, disposed }) |value| {
        for ([_]bool{ false, true }) |own| for (0..6) |at| {
            const script: Script = .{
                .waiter = waiter,
                .peer = .original,
                .own = own,
                .at = @intCast(at),
                .overwritten = value,
            };
            try script.run();
        };
    };
}

test "a close at every step of an exchange: what was taken is kept, and both sides know" {
    const payload = "[1,2,3]";
    for ([_]Peer{ .ours, .original }) |writing| for ([_]Peer{ .ours, .original }) |reading| {
        for ([_]Side{ .writer, .reader }) |closer| for (0..7) |at| {
            var pair: Pair = undefined;
            try pair.init(3); // three parts, six steps
            var other = pair.original;
            var delivered = false;
            for (0..6) |step| {
                if (step == at) break;
                if (step % 2 == 0) {
                    const done = switch (writing) {
                        .ours => try pair.writer.tryWrite(payload),
                        .original => try pair.original.offer(payload),
                    };
                    try testing.expectEqual(step == 4, done);
                } else {
                    const found = switch (reading) {
                        .ours => try pair.tryRead(),
                        .original => try other.take(&pair.kept),
                    };
                    delivered = found != null;
                    if (found) |whole| try testing.expectEqualStrings(payload, whole);
                }
            }
            try testing.expectEqual(at == 6, delivered);
            const kind = if (closer == .writer) writing else reading;
            if (kind == .original) pair.original.close() else switch (closer) {
                .writer => pair.writer.close(),
                .reader => pair.reader.close(),
            }
            try expectVerdicts(&pair, writing, reading, closer);
        };
    };
}

fn expectVerdicts(pair: *Pair, writing: Peer, reading: Peer, closer: Side) !void {
    for (0..2) |_| {
        if (writing == .ours) {
            const own = closer == .writer;
            const expected = if (own) error.PipeClosed else error.PeerClosed;
            // A payload that was under way is no longer owed, so another payload may be passed.
            if (pair.writer.partial()) {
                try testing.expectError(expected, pair.writer.tryWrite("[1,2,3]"));
            }
            try testing.expectError(expected, pair.verdict(.writer));
            try testing.expect(pair.writer.closed());
            try testing.expectEqual(own, pair.writer.reason() == null);
        }
        if (reading == .ours) {
            const own = closer == .reader;
            const expected = if (own) error.PipeClosed else error.PeerClosed;
            try testing.expectError(expected, pair.verdict(.reader));
            try testing.expect(pair.reader.closed());
            try testing.expectEqual(own, pair.reader.reason() == null);
            try testing.expect(!pair.reader.partial());
        }
        // Closing again, or by the other side too, only changes whose close a side reports.
        const words = pair.section[0..32].*;
        if (closer == .writer) pair.writer.close() else pair.reader.close();
        try testing.expectEqualSlices(u8, &words, pair.section[0..32]);
    }
}
