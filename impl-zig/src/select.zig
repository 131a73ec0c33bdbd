//! Waiting for the first of several pipes that end at one endpoint, which has one bell for all of
//! them [wait.bell_first].

const std = @import("std");
const host_file = @import("host.zig");
const pipe = @import("pipe.zig");
const ring_file = @import("ring.zig");
const wait = @import("wait.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Reader = pipe.Reader;
const Timeout = host_file.Timeout;
const Wait = ring_file.Wait;

/// Several readers of one endpoint, such as those of a hub's clients, and whose turn it is.
///
/// Thread safety: belongs to the thread of the endpoint.
pub const Select = struct {
    /// May be changed between two calls. Their order does not matter.
    readers: []const *Reader,
    /// Where the next call begins to look: behind the last that it returned, so that a client that
    /// floods does not starve the others.
    next: usize = 0,

    /// Returns a reader that has something for a call, and waits for one as long as the timeout
    /// allows; null when there was none by the deadline, or when all streams have ended.
    ///
    /// That something is a frame, or what ends the pipe: `read` then gives a message, or an error,
    /// or null at the end of the stream. A reader that has ended is passed over from then on; one
    /// that has failed is returned again and again: take it off the list. A frame is not always a
    /// message: read with `.none`, so that one client cannot hold the others.
    ///
    /// Gives back what the readers have released. What a writer of the endpoint has finished and
    /// not published stays unseen: publish before [ring.publish_all].
    ///
    /// Asserts that all are readers of one endpoint, and that no frame is lent.
    pub fn wait(
        selected: *Select,
        timeout: Timeout,
    ) error{WaitForbidden}!?*Reader {
        var live_count: usize = 0;
        for (selected.readers) |reader| {
            assert(reader.ring.endpoint == selected.readers[0].ring.endpoint);
            assert(reader.lent == 0);
            if (reader.ended()) continue;
            live_count += 1;
            reader.flush();
        }
        if (live_count == 0) return null;
        var deadline: Deadline = .init(timeout);
        const condition: Condition = .{ .readers = selected.readers };
        while (true) {
            if (selected.take()) |reader| return reader;
            switch (selected.readers[0].ring.endpoint.wait(&condition, &deadline)) {
                .found => {},
                .timeout => return null,
                .forbidden => return error.WaitForbidden,
            }
        }
    }

    /// The next that has something, in turn.
    fn take(selected: *Select) ?*Reader {
        const readers = selected.readers;
        for (0..readers.len) |distance| {
            const index = (selected.next + distance) % readers.len;
            if (!ready(readers[index])) continue;
            selected.next = index + 1;
            return readers[index];
        }
        return null;
    }
};

fn ready(reader: *Reader) bool {
    if (reader.ended()) return false;
    // A fault is kept, and every call reports it.
    if (reader.fault != null or !reader.ring.empty()) return true;
    return waitOf(reader).look(.seq_cst);
}

fn waitOf(reader: *Reader) Wait {
    return .{ .endpoint = reader.ring.endpoint, .reader = &reader.ring };
}

/// The `condition` of `Endpoint.wait`: any of the rings.
const Condition = struct {
    readers: []const *Reader,

    pub fn glance(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        for (condition.readers) |reader| {
            if (!reader.ended() and waitOf(reader).glance(order)) return true;
        }
        return false;
    }

    pub fn look(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        for (condition.readers) |reader| {
            if (!reader.ended() and waitOf(reader).look(order)) return true;
        }
        return false;
    }

    pub fn arm(condition: *const Condition, first: bool) bool {
        for (condition.readers) |reader| if (!reader.ended()) {
            const more = waitOf(reader).arm(first);
            assert(!more);
        };
        return false;
    }

    pub fn disarm(condition: *const Condition) void {
        for (condition.readers) |reader| if (!reader.ended()) waitOf(reader).disarm();
    }

    pub fn slice(condition: *const Condition, mechanism: u32) u64 {
        var least_ns: u64 = std.math.maxInt(u64);
        for (condition.readers) |reader| if (!reader.ended()) {
            least_ns = @min(least_ns, waitOf(reader).slice(mechanism));
        };
        return least_ns;
    }
};

test {
    _ = @import("select_test.zig");
}
