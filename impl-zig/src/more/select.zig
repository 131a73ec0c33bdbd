//! Waiting for the first of several pipes that end at one endpoint, whose one bell serves all of
//! them [wait.bell_first].
//!
//! Invariant: a ring that is not looked at is armed, and a look after the arming found it empty. If
//! something comes, its writer rings and sets its bit [wait.rung_take]. So a message of one client
//! of a hub costs a look at that client only, however many there are.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const ring_file = @import("../ring/side.zig");
const wait = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Reader = pipe.Reader;
const Timeout = host_file.Timeout;
const Wait = ring_file.Wait;

/// After how many nanoseconds all rings are looked at, even if no peer has rung [wait.rung_take].
const slice_ns = layout.wait_slice_ms * 1_000_000;

/// Several readers of one endpoint, such as those of a hub's clients. They take turns.
///
/// All rings from one peer belong into the same `Select`: a bit says which peer has rung, but not
/// for which ring.
///
/// Thread safety: belongs to the thread of the endpoint.
pub const Select = struct {
    /// May be changed between two calls. The order of the readers does not matter.
    readers: []const *Reader,
    /// Where the next call starts to look: after the reader that was returned last, so that a
    /// client that floods does not starve the others.
    next: usize = 0,
    /// When all readers were last to be looked at, in the time of `Host.now`.
    looked_ns: ?u64 = null,
    /// For how many nanoseconds those peers whose rings were found empty since then allow a sleep.
    allowed_ns: u64 = 0,

    /// Returns a reader for which there is something to read. Waits for one for as long as the
    /// timeout allows. Returns null if there was none by the deadline, or if all streams have
    /// ended.
    ///
    /// There may be a frame, or something that ends the pipe: `read` then returns a message, an
    /// error, or null at the end of the stream. A reader that has ended is skipped from then on.
    /// One that has failed is returned again and again: take it off the list. A frame is not always
    /// a whole message: read with `.none`, so that one client cannot keep the others waiting.
    ///
    /// Gives back the room that the readers have released. Does not publish what writers of the
    /// endpoint have finished: publish it before this call [ring.publish_all]. Between two calls,
    /// empty rings stay armed, so a writer that publishes in one of them rings.
    ///
    /// Asserts that all are readers of one endpoint, and that no frame is lent.
    pub fn wait(
        selected: *Select,
        timeout: Timeout,
    ) error{WaitForbidden}!?*Reader {
        var live_count: usize = 0;
        for (selected.readers) |reader| {
            assert(reader.ring.endpoint == selected.readers[0].ring.endpoint);
            assert(!reader.isLent());
            if (reader.ended()) continue;
            live_count += 1;
            reader.flush();
        }
        if (live_count == 0) return null;
        var deadline: Deadline = .init(timeout);
        const endpoint = selected.readers[0].ring.endpoint;
        const condition: Condition = .{ .selected = selected, .endpoint = endpoint };
        while (true) {
            condition.name();
            if (selected.take()) |reader| return reader;
            // Before the next look: a peer that sets bits without a reason must not keep the call
            // beyond its deadline.
            const outcome: Endpoint.Outcome = if (deadline.over(endpoint.host))
                .timeout
            else
                endpoint.wait(&condition, &deadline);
            switch (outcome) {
                .found => {},
                .timeout => {
                    if (timeout != .none) condition.stop();
                    return null;
                },
                .forbidden => return error.WaitForbidden,
            }
        }
    }

    /// Returns the next reader that has something, in turn.
    fn take(selected: *Select) ?*Reader {
        const readers = selected.readers;
        for (0..readers.len) |distance| {
            const index = (selected.next + distance) % readers.len;
            const reader = readers[index];
            if (!ready(reader)) continue;
            selected.next = index + 1;
            // The caller reads from it now, so its writer need not ring.
            if (reader.fault == null and reader.ring.asked != .no) waitOf(reader).disarm();
            return reader;
        }
        return null;
    }
};

fn ready(reader: *Reader) bool {
    if (reader.ended()) return false;
    // A fault is kept, and every call reports it.
    if (reader.fault != null or !reader.ring.empty()) return true;
    return reader.ring.asked != .before and waitOf(reader).look(.seq_cst);
}

fn waitOf(reader: *Reader) Wait {
    return .{ .endpoint = reader.ring.endpoint, .reader = &reader.ring };
}

/// The `condition` of `Endpoint.wait`: any of the rings.
const Condition = struct {
    selected: *Select,
    endpoint: *Endpoint,

    /// Decides which rings have to be looked at: those of the peers that have rung. At the start,
    /// once in a slice, and when this endpoint's own state is final, all of them. Empty rings are
    /// armed here and not only before a sleep: a hub that always finds something from one client
    /// never sleeps, and would otherwise look at all other rings each time.
    fn name(condition: *const Condition) void {
        const selected = condition.selected;
        const endpoint = condition.endpoint;
        endpoint.takeRung();
        const now_ns = endpoint.host.now();
        const due = if (selected.looked_ns) |looked_ns| now_ns -| looked_ns >= slice_ns else true;
        const all = due or endpoint.state().final();
        if (all) {
            selected.looked_ns = now_ns;
            selected.allowed_ns = std.math.maxInt(u64);
        }
        if (!all and endpoint.rung.count() == 0) return;
        for (selected.readers) |reader| {
            if (all or endpoint.rung.isSet(reader.ring.peer.index)) reader.ring.asked = .no;
        }
        for (selected.readers) |reader| endpoint.rung.unset(reader.ring.peer.index);
        endpoint.rung.unset(endpoint.index);
        if (!due) return;
        for (selected.readers) |reader| {
            if (reader.ended() or ready(reader)) continue;
            askIn(reader);
            if (!ready(reader)) condition.settle(reader);
        }
    }

    fn askIn(reader: *Reader) void {
        const more = waitOf(reader).arm(false);
        assert(!more);
        reader.ring.asked = .now;
    }

    /// Called after a look that came after the store of `wants` and found the ring empty
    /// [wait.recheck].
    fn settle(condition: *const Condition, reader: *Reader) void {
        assert(reader.ring.asked == .now);
        reader.ring.asked = .before;
        const allowed_ns = reader.ring.peer.slice(condition.endpoint.host.mechanism);
        condition.selected.allowed_ns = @min(condition.selected.allowed_ns, allowed_ns);
    }

    pub fn glance(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        if (condition.endpoint.anyRung(order)) return true;
        for (condition.selected.readers) |reader| {
            if (reader.ended() or reader.ring.asked == .before) continue;
            if (waitOf(reader).glance(order)) return true;
        }
        return false;
    }

    pub fn look(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        const endpoint = condition.endpoint;
        if (endpoint.anyRung(order) or endpoint.state().final()) return true;
        for (condition.selected.readers) |reader| {
            if (reader.ended() or reader.ring.asked == .before) continue;
            if (waitOf(reader).look(order)) return true;
            // With a weaker order, the load may have happened before the store.
            if (order == .seq_cst and reader.ring.asked == .now) condition.settle(reader);
        }
        return false;
    }

    pub fn arm(condition: *const Condition, _: bool) bool {
        condition.name();
        for (condition.selected.readers) |reader| {
            if (reader.ended() or reader.ring.asked != .no) continue;
            askIn(reader);
        }
        return false;
    }

    /// Does nothing, because the next round or the next call goes on with the armed rings
    /// [wait.disarm].
    pub fn disarm(_: *const Condition) void {}

    /// Disarms all rings, because the waiting is over.
    fn stop(condition: *const Condition) void {
        for (condition.selected.readers) |reader| {
            if (reader.fault == null and reader.ring.asked != .no) waitOf(reader).disarm();
        }
    }

    pub fn slice(condition: *const Condition, _: u32) u64 {
        return condition.selected.allowed_ns;
    }
};

test {
    _ = @import("select_test.zig");
}
