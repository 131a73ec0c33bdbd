//! JSON messages, one way, through eight words and a byte area [spec/mailbox.md]. This is the
//! layout of `sab-message-port` 1.0, "the original", which stores `signal` plainly and wakes only
//! one sleeper.
//!
//! Invariant: only a side that has loaded its own turn from `signal` touches the byte area. This
//! side changes `signal` by compare-exchange, so it never overwrites a close. If the original has
//! overwritten one, `status` still says so; every look loads both words.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const wait = @import("../wait/endpoint.zig");
const wait_spin = @import("../wait/spin.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Host = host_file.Host;
const Outcome = wait.Endpoint.Outcome;

const slice_ns = layout.wait_slice_ms * 1_000_000;

/// What ends every use of a mailbox.
pub const MailboxError = error{
    /// This side has closed the mailbox.
    PipeClosed,
    /// The peer has closed the mailbox.
    PeerClosed,
    /// A word breaks the layout; `reason()` says which check failed. The mailbox is closed now.
    Corrupt,
};

/// Why a payload was not written.
pub const MailboxWriteError = MailboxError || error{
    /// Not everything was written by the deadline. If the payload is begun, pass it again
    /// [mailbox.begun].
    Timeout,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

/// Why no payload was read.
pub const MailboxReadError = MailboxError || error{
    /// A payload was larger than the storage, and was dropped.
    MessageSize,
    /// A payload was not well-formed UTF-8, and was dropped.
    MessageText,
    /// A payload was not an array of at least one element, and was dropped.
    MessageJson,
    /// The call would have to wait on a thread that must not block.
    WaitForbidden,
};

pub const Header = extern struct {
    status: u32,
    signal: u32,
    length: u32,
    part_count: u32,
    part_index: u32,
    reserved: [12]u8,
};

comptime {
    assert(@sizeOf(Header) == layout.mailbox_header_size);
    assert(@alignOf(Header) == layout.mailbox_header_align);
    assert(@offsetOf(Header, "status") == layout.mailbox_status_offset);
    assert(@offsetOf(Header, "signal") == layout.mailbox_signal_offset);
    assert(@offsetOf(Header, "length") == layout.mailbox_length_offset);
    assert(@offsetOf(Header, "part_count") == layout.mailbox_part_count_offset);
    assert(@offsetOf(Header, "part_index") == layout.mailbox_part_index_offset);
    assert(@offsetOf(Header, "reserved") == layout.mailbox_reserved_offset);
}

pub const active: u32 = layout.mailbox_status_active;
pub const may_write: u32 = layout.mailbox_signal_may_write;
pub const may_read: u32 = layout.mailbox_signal_may_read;
pub const disposed: u32 = @bitCast(@as(i32, layout.mailbox_status_disposed));

comptime {
    assert(layout.mailbox_status_disposed == layout.mailbox_signal_disposed);
    assert(layout.mailbox_size_min == layout.mailbox_header_size + 1);
}

/// One side of a mailbox: the part that a writer and a reader have in common.
///
/// Thread safety: belongs to one thread, except for `close`.
pub const Side = struct {
    header: *Header,
    area: []u8,
    /// The value of `signal` when it is this side's turn.
    turn: u32,
    manner: wait_spin.Manner,
    spins: wait_spin.SpinRecord = .{},
    /// Times that this side slept or paused.
    parks: u64 = 0,
    /// Sleeps that only the end of their slice has ended, although `signal` had changed.
    late_wakes: u64 = 0,
    /// Atomic, because any thread may close.
    closed_here: std.atomic.Value(bool) = .init(false),
    /// Whether a close was seen. Kept, because the word that has shown it may be overwritten.
    closed_seen: bool = false,
    fault: ?layout.Reason = null,

    /// [mailbox.section]
    pub fn init(memory: []u8, turn: u32, options: Options) error{MailboxSize}!Side {
        assert(turn == may_write or turn == may_read);
        if (memory.len < layout.mailbox_size_min) return error.MailboxSize;
        if (@intFromPtr(memory.ptr) % layout.mailbox_header_align != 0) return error.MailboxSize;
        return .{
            .header = @ptrCast(@alignCast(memory.ptr)),
            .area = memory[layout.mailbox_header_size..],
            .turn = turn,
            .manner = .{
                .host = options.host,
                .spin_ns = wait_spin.budgetOf(options.spin_us, options.host),
                .blocking = options.blocking,
            },
        };
    }

    /// The options of an endpoint. Nothing in a mailbox says how the peer sleeps, and which sleeps
    /// it can ring. If it cannot ring the sleep of this host, `host.polling` looks every 5 ms, and
    /// any other host every 100 ms.
    pub const Options = wait.Endpoint.Options;

    /// `status` is stored first: a peer that sees another word changed by a close must see `status`
    /// changed [mailbox.close].
    pub fn close(side: *Side) void {
        if (side.closed_here.swap(true, .seq_cst)) return;
        side.dispose();
    }

    fn dispose(side: *Side) void {
        @atomicStore(u32, &side.header.status, disposed, .seq_cst);
        _ = @atomicRmw(u32, &side.header.signal, .Xchg, disposed, .seq_cst);
        side.manner.host.notify(&side.header.signal);
    }

    /// Whether either side has closed the mailbox, or a fault has ended it.
    pub fn closed(side: *const Side) bool {
        if (side.fault != null or side.closed_seen) return true;
        if (side.closed_here.load(.seq_cst)) return true;
        return @atomicLoad(u32, &side.header.signal, .seq_cst) == disposed or
            @atomicLoad(u32, &side.header.status, .seq_cst) == disposed;
    }

    /// Returns the reason for the last `error.Corrupt` or `error.PeerClosed`.
    pub fn reason(side: *const Side) ?layout.Reason {
        if (side.fault) |why| return why;
        return if (side.closed_seen and !side.closed_here.load(.seq_cst)) .peer_closed else null;
    }

    /// Whether it is this side's turn. Loads `signal` and then `status`, once each and sequentially
    /// consistent, and checks both [mailbox.turn] [mailbox.atomic] [mailbox.closed].
    pub fn ready(side: *Side) MailboxError!bool {
        if (side.closed_here.load(.seq_cst)) return side.closedError();
        if (side.fault != null) return error.Corrupt;
        if (side.closed_seen) return side.closedError();
        const signal = @atomicLoad(u32, &side.header.signal, .seq_cst);
        switch (signal) {
            may_write, may_read => {},
            disposed => return side.closedError(),
            else => return side.faulted(.mailbox_signal),
        }
        // [mailbox.closed_part] The original may have stored `signal` over a close.
        try side.judgeStatus(@atomicLoad(u32, &side.header.status, .seq_cst));
        return signal == side.turn;
    }

    /// Checks a loaded `status`.
    pub fn judgeStatus(side: *Side, status: u32) MailboxError!void {
        switch (status) {
            active => {},
            disposed => return side.closedError(),
            else => return side.faulted(.mailbox_signal),
        }
    }

    /// Gives the turn to the peer, and wakes it [mailbox.notify]. Returns false if the mailbox was
    /// closed meanwhile, which the next look reports.
    pub fn pass(side: *Side) bool {
        const next = if (side.turn == may_write) may_read else may_write;
        const found = @cmpxchgStrong(u32, &side.header.signal, side.turn, next, .seq_cst, .seq_cst);
        // [mailbox.signal_exchange] Nobody else has the turn, so only a close can have changed the
        // word.
        if (found) |value| {
            // [mailbox.lost_turn] No close stores this value, so the peer does not know of one.
            if (value != disposed) side.dispose();
            side.closed_seen = true;
            return false;
        }
        side.manner.host.notify(&side.header.signal);
        return true;
    }

    /// Ends the mailbox because of a word that the peer wrote. Also closes it: there is no other
    /// way to tell the peer, which would otherwise wait for ever.
    pub fn faulted(side: *Side, why: layout.Reason) error{Corrupt} {
        assert(side.fault == null);
        side.fault = why;
        side.dispose();
        return error.Corrupt;
    }

    pub fn closedError(side: *Side) error{ PipeClosed, PeerClosed } {
        side.closed_seen = true;
        return if (side.closed_here.load(.seq_cst)) error.PipeClosed else error.PeerClosed;
    }

    /// Waits for this side's turn.
    pub fn awaitTurn(side: *Side, deadline: *Deadline) MailboxError!Outcome {
        const blocking = side.manner.blocking;
        if (try side.ready()) {
            // [wait.no_block] If the peer keeps up, no wait ends the call, so the looks are
            // counted.
            return if (blocking or deadline.takeLook()) .found else .forbidden;
        }
        if (deadline.timeout == .none) return .timeout;
        const condition: Look = .{ .side = side };
        const host = side.manner.host;
        // A peer that breaks the rules may have changed the word again: `ready` decides.
        if (side.spins.spin(side.manner, &condition, deadline) and try side.ready()) return .found;
        if (!blocking) return .forbidden;
        // [mailbox.wait] A thread sleeps only on the value that it has just loaded: the peer's
        // turn. This side is a single thread, so it is the only sleeper [mailbox.one_waiter].
        const other = if (side.turn == may_write) may_read else may_write;
        var round: u32 = 0;
        while (!try side.ready()) : (round +|= 1) {
            const left_ns = deadline.left(host);
            if (left_ns == 0) return .timeout;
            side.parks +%= 1;
            // [mailbox.recheck] Also needed because the original may give its wake to another
            // sleeper.
            const limit_ns = @min(left_ns, slice_ns);
            if (host.mechanism != 0) {
                const rung = host.sleep(&side.header.signal, other, limit_ns);
                const was_slice = !rung and slice_ns <= left_ns;
                if (was_slice and condition.look(.seq_cst)) side.late_wakes +%= 1;
            } else {
                host.pause(@min(limit_ns, wait_spin.pollPause(round))); // [wait.poll]
            }
        }
        return .found;
    }

    /// What a spin looks for [mailbox.spin]: any value but the peer's turn.
    const Look = struct {
        side: *const Side,

        pub fn glance(condition: *const Look, comptime order: std.lang.AtomicOrder) bool {
            const side = condition.side;
            const other = if (side.turn == may_write) may_read else may_write;
            return @atomicLoad(u32, &side.header.signal, order) != other;
        }

        pub fn look(condition: *const Look, comptime order: std.lang.AtomicOrder) bool {
            if (condition.glance(order)) return true;
            return @atomicLoad(u32, &condition.side.header.status, order) != active;
        }
    };
};

/// Whether a text has brackets with something between them, apart from white space. Nothing more
/// can be told of an array of at least one element without parsing it.
pub fn arrayShaped(text: []const u8) bool {
    const white = " \t\r\n";
    const array = std.mem.trim(u8, text, white);
    if (array.len < 3 or array[0] != '[' or array[array.len - 1] != ']') return false;
    return std.mem.trim(u8, array[1 .. array.len - 1], white).len > 0;
}

// Tests.
//
// Closing a mailbox at every step of an exchange, by either side and with the original as peer:
// every wait ends, and no side takes a close for a fault.

const mailbox_fixture = @import("fixture.zig");
const mailbox_file = @import("mailbox.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Pair = mailbox_fixture.Pair;
const Role = mailbox_fixture.Side;

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
            var part: mailbox_file.MailboxReader.Part = .load(pair.header());
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
    const pieces: mailbox_file.Pieces = .{ .texts = &.{"[1]"}, .joined = false };
    for ([_]usize{ 16, 2 }) |capacity| for ([_]bool{ false, true }) |own| {
        var pair: Pair = undefined;
        try pair.init(capacity);
        try testing.expect(try pair.writer.side.ready());
        if (own) pair.writer.close() else pair.original.close();
        const expected = if (own) error.PipeClosed else error.PeerClosed;
        var progress: mailbox_file.Progress = .{ .source = .of(pieces) };
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
    inline for (.{ Role.writer, Role.reader }) |which| for ([_]u32{ 0, 1, 7, disposed }) |value| {
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
        try testing.expectEqual(if (told) active else disposed, pair.header().status);
        try Met.expect(if (told) 0 else 1);
        // Whatever the words hold from now on.
        pair.header().status = active;
        pair.header().signal = side.turn;
        try testing.expectError(error.PeerClosed, pair.verdict(which));
        try testing.expectEqual(.peer_closed, side.reason().?);
    };
}

/// The implementation at the other end.
const Peer = enum { ours, original };

/// One side waits. Whenever it sleeps, the other takes a step, until one of them closes.
const Script = struct {
    waiter: Role,
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
    for ([_]Role{ .writer, .reader }) |waiter| for ([_]Peer{ .ours, .original }) |peer| {
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
    for ([_]Role{ .writer, .reader }) |waiter| for ([_]u32{ 0, 1, disposed }) |value| {
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
        for ([_]Role{ .writer, .reader }) |closer| for (0..7) |at| {
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

fn expectVerdicts(pair: *Pair, writing: Peer, reading: Peer, closer: Role) !void {
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
