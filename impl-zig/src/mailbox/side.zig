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

pub const MailboxWriter = @import("writer.zig").MailboxWriter;
pub const MailboxReader = @import("reader.zig").MailboxReader;

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

test {
    _ = @import("mailbox_test.zig");
    _ = @import("mailbox_close_test.zig");
    _ = @import("../testing/mailbox_thread_test.zig");
}
