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

// Tests.

const builtin = @import("builtin");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;

/// Endpoint 0 reads from all others. Must not move after it was initialized.
const Hub = struct {
    const client_count = 3;

    memory: [8192]u8 align(128) = @splat(0),
    storage: [client_count]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [1 + client_count]millrace.Endpoint,
    readers: [client_count]Reader,
    writers: [client_count]millrace.Writer,
    list: [client_count]*Reader,

    fn init(hub: *Hub, host: *const millrace.Host) !void {
        hub.memory = @splat(0);
        var channels: [client_count]millrace.Channel = undefined;
        for (&channels, 1..) |*channel, client| {
            channel.* = .{ .writer = @intCast(client), .reader = 0, .data_size = 512 };
        }
        const count = 1 + client_count;
        try millrace.Segment.format(&hub.memory, .{
            .endpoint_count = count,
            .channels = &channels,
        });
        hub.segment = try .attach(&hub.memory, &hub.storage, .none);
        for (&hub.endpoints, 0..) |*endpoint, index| {
            const options: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
            endpoint.* = try .attach(&hub.segment, @intCast(index), options);
        }
        for (&hub.readers, &hub.writers, &hub.list, 0..) |*reader, *writer, *item, index| {
            const channel: u32 = @intCast(index);
            reader.* = try .init(&hub.endpoints[0], &hub.segment, channel);
            writer.* = try .init(&hub.endpoints[1 + index], &hub.segment, channel);
            item.* = reader;
        }
    }

    fn say(hub: *Hub, client: usize, tag: u32) !void {
        try hub.writers[client].write("said", .{ .tag = tag }, .none);
    }

    fn wants(hub: *Hub) [client_count]u32 {
        var found: [client_count]u32 = undefined;
        for (&found, hub.readers) |*word, reader| {
            word.* = @atomicLoad(u32, &reader.ring.control.reader_wants, .seq_cst);
        }
        return found;
    }
};

fn expectFrom(select: *Select, reader: *Reader, tag: u32) !void {
    const found = (try select.wait(.none)) orelse return error.NothingReady;
    try testing.expectEqual(reader, found);
    var storage: [16]u8 = undefined;
    try testing.expectEqual(tag, (try found.tryRead(&storage)).?.tag);
}

test "Select takes the readers in turn, however much one of them has" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    try testing.expectEqual(null, try select.wait(.none));
    for (0..4) |tag| try hub.say(0, @intCast(tag));
    try hub.say(2, 20);
    try expectFrom(&select, &hub.readers[0], 0);
    try expectFrom(&select, &hub.readers[2], 20);
    // A message that was seen before and is not read counts as well.
    try expectFrom(&select, &hub.readers[0], 1);
    try hub.say(1, 10);
    try expectFrom(&select, &hub.readers[1], 10);
    try expectFrom(&select, &hub.readers[0], 2);
    try expectFrom(&select, &hub.readers[0], 3);
    try testing.expectEqual(null, try select.wait(.none));
}

test "Select times out, and then asks nobody to ring" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    try testing.expectEqual(null, try select.wait(.ms(10_000)));
    // A slice of 1 s each.
    try testing.expect(hub.endpoints[0].stats.parks >= 9);
    try testing.expectEqual(@as([3]u32, @splat(0)), hub.wants());
}

test "Select returns a reader whose stream has ended once, and one that has failed every time" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    var storage: [16]u8 = undefined;
    try hub.writers[1].end();
    try testing.expectEqual(&hub.readers[1], (try select.wait(.none)).?);
    try testing.expectEqual(null, try hub.readers[1].tryRead(&storage));
    try testing.expect(hub.readers[1].ended());
    try testing.expectEqual(null, try select.wait(.none));

    hub.endpoints[3].close();
    for (0..2) |_| {
        try testing.expectEqual(&hub.readers[2], (try select.wait(.none)).?);
        try testing.expectError(error.PeerClosed, hub.readers[2].tryRead(&storage));
    }
    select.readers = hub.list[0..2];
    try testing.expectEqual(null, try select.wait(.none));
    try hub.writers[0].end();
    try testing.expectEqual(&hub.readers[0], (try select.wait(.none)).?);
    try testing.expectEqual(null, try hub.readers[0].tryRead(&storage));
    // There is nothing left to wait for.
    try testing.expectEqual(null, try select.wait(.forever));
}

/// What a client does while the hub sleeps.
const Meanwhile = struct {
    var hub: *Hub = undefined;
    var client: ?usize = null;

    const host: millrace.Host = blk: {
        var acting = fixture.clockwork;
        acting.sleep = sleep;
        break :blk acting;
    };

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        const is_woken = fixture.clockwork.sleep(word, expected, @min(limit_ns, 1_000_000));
        const index = client orelse return is_woken;
        client = null;
        hub.say(index, 7) catch unreachable;
        return is_woken;
    }
};

/// Publishes as a writer does that dies before it rings.
fn sayUnheard(hub: *Hub, client: usize) !void {
    const ring = &hub.writers[client].ring;
    const place = (try ring.claim(4)).?;
    @memset(place, 'a');
    ring.finish(.{ .size = 4, .kind = 1, .flags = 3, .tag = 9 });
    @atomicStore(u32, &ring.control.tail, ring.tail, .seq_cst);
    ring.published = ring.tail;
}

test "Select looks at whoever has rung, and at all of them once in a slice [wait.rung_take]" {
    var hub: Hub = undefined;
    try hub.init(&Meanwhile.host);
    Meanwhile.hub = &hub;
    Meanwhile.client = 1;
    var select: Select = .{ .readers = &hub.list };
    var storage: [16]u8 = undefined;
    const found = (try select.wait(.ms(10))).?;
    try testing.expectEqual(&hub.readers[1], found);
    _ = (try found.tryRead(&storage)).?;
    // The other rings stay armed, and are not looked at again.
    const asks = 16 | layout.wants_armed;
    try testing.expectEqual([3]u32{ asks, 0, asks }, hub.wants());
    try sayUnheard(&hub, 0);
    try testing.expectEqual(null, try select.wait(.none));
    try hub.say(2, 20);
    try testing.expectEqual([3]u32{ asks, 0, 0 }, hub.wants());
    try expectFrom(&select, &hub.readers[2], 20);
    // A ring that is not armed is looked at.
    try sayUnheard(&hub, 1);
    try expectFrom(&select, &hub.readers[1], 9);
    try testing.expectEqual(null, try select.wait(.none));
    // A bit of an endpoint that is not read from means nothing.
    @atomicStore(u32, &hub.endpoints[0].record.rung[7], 1 << 31, .seq_cst);
    try testing.expectEqual(null, try select.wait(.none));
    try testing.expect(!hub.endpoints[0].anyRung(.seq_cst));
    fixture.clockwork.pause(layout.wait_slice_ms * 1_000_000);
    try expectFrom(&select, &hub.readers[0], 9);
    try testing.expectEqual(null, try select.wait(.none));
}

test "Select does not look at idle clients while one of them floods [wait.rung_take]" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    const asks = layout.wants_armed;
    for (0..3) |_| try hub.say(1, 5);
    try expectFrom(&select, &hub.readers[1], 5);
    try testing.expectEqual([3]u32{ asks | 16, 0, asks | 16 }, hub.wants());
    try sayUnheard(&hub, 0);
    for (0..2) |_| try expectFrom(&select, &hub.readers[1], 5);
    // Readers that have something are returned in turn.
    try hub.say(1, 5);
    try hub.say(2, 6);
    try expectFrom(&select, &hub.readers[2], 6);
    try expectFrom(&select, &hub.readers[1], 5);
    fixture.clockwork.pause(layout.wait_slice_ms * 1_000_000);
    try expectFrom(&select, &hub.readers[0], 9);
    try testing.expectEqual(null, try select.wait(.none));
}

test "Select ends at its deadline, whatever bits somebody sets for nothing" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    const Noise = struct {
        var record: *@import("../wait/state.zig").Record = undefined;

        fn now() u64 {
            @atomicStore(u32, &record.rung[0], 0xffff_fffe, .seq_cst);
            return fixture.clockwork.now();
        }
    };
    Noise.record = hub.endpoints[0].record;
    var host = fixture.clockwork;
    host.now = Noise.now;
    for ([_]u64{ 0, 50_000 }) |spin_ns| {
        hub.endpoints[0].host = &host;
        hub.endpoints[0].spin_ns = spin_ns;
        try testing.expectEqual(null, try select.wait(.ms(5)));
        hub.endpoints[0].blocking = false;
        try testing.expectError(error.WaitForbidden, select.wait(.ms(1_000_000)));
        hub.endpoints[0].blocking = true;
    }
}

test "Select fails on a thread that must not block, after what is there" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    hub.endpoints[0].blocking = false;
    var select: Select = .{ .readers = &hub.list };
    try testing.expectError(error.WaitForbidden, select.wait(.ms(10)));
    try hub.say(1, 1);
    try expectFrom(&select, &hub.readers[1], 1);
}

test "Select gives back what was released before it waits" {
    var hub: Hub = undefined;
    try hub.init(&fixture.clockwork);
    var select: Select = .{ .readers = &hub.list };
    try hub.say(0, 1);
    try hub.say(0, 2);
    try expectFrom(&select, &hub.readers[0], 1);
    const head = &hub.readers[0].ring.control.head;
    try testing.expectEqual(0, @atomicLoad(u32, head, .seq_cst));
    _ = try select.wait(.none);
    try testing.expectEqual(32, @atomicLoad(u32, head, .seq_cst));
}

test "Select sleeps until any of its clients writes, or another thread closes" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var hub: Hub = undefined;
    try hub.init(.native);
    var select: Select = .{ .readers = &hub.list };
    const Client = struct {
        fn run(there: *Hub, read: *const std.atomic.Value(u32)) void {
            for (0..30) |tag| {
                millrace.Host.native.pause(500_000);
                there.say(tag % Hub.client_count, @intCast(tag)) catch unreachable;
            }
            // If the writer closed earlier, the last message would not be read. 10 s, in case of a
            // fault.
            for (0..20_000) |_| {
                millrace.Host.native.pause(500_000);
                if (read.load(.acquire) == 30) break;
            }
            there.endpoints[0].close();
        }
    };
    var read: std.atomic.Value(u32) = .init(0);
    const thread: std.Thread = try .spawn(.{}, Client.run, .{ &hub, &read });
    defer thread.join();
    var storage: [16]u8 = undefined;
    for (0..30) |tag| {
        const found = (try select.wait(.ms(20_000))) orelse return error.Timeout;
        try testing.expectEqual(&hub.readers[tag % Hub.client_count], found);
        try testing.expectEqual(tag, (try found.tryRead(&storage)).?.tag);
        read.store(@intCast(tag + 1), .release);
    }
    const found = (try select.wait(.ms(20_000))) orelse return error.Timeout;
    try testing.expectError(error.PipeClosed, found.tryRead(&storage));
    try testing.expect(hub.endpoints[0].stats.parks > 0);
}
