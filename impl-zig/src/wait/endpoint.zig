//! How an endpoint sleeps and is woken [spec/wait.md].
//!
//! Invariant: nobody makes a system call unless somebody sleeps. A waker stores its cursor and then
//! loads `wants`; a sleeper stores `wants` and then loads the cursor. Both pairs are sequentially
//! consistent, so that at least one side sees what the other has stored.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("mechanism.zig");
const host_process = @import("../host/process.zig");
const segment_zig = @import("../memory/segment.zig");
const segment_record = @import("state.zig");
const wait_link = @import("link.zig");
const wait_spin = @import("spin.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Link = wait_link.Link;
const EndpointSet = segment_zig.EndpointSet;
const Host = host_file.Host;
const Owner = segment_zig.Owner;
const Record = segment_record.Record;
const Segment = segment_zig.Segment;
const SegmentFile = @import("../host/segment_file.zig").SegmentFile;
const SpinRecord = wait_spin.SpinRecord;
const State = segment_record.State;
const upperBits = segment_record.upperBits;

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;
const slice_ns = layout.wait_slice_ms * ns_per_ms;
const slice_attached_ns = layout.wait_slice_attached_ms * ns_per_ms;
const more_ns = layout.wait_more_ms * ns_per_ms;

/// What an endpoint has counted since it attached.
pub const Stats = struct {
    /// Bells rung because a peer asked for it. Each one is a system call.
    wakes: u64 = 0,
    /// Cursors stored while the peer had not asked to be rung.
    wakes_elided: u64 = 0,
    /// Times that this endpoint slept or paused.
    parks: u64 = 0,
    /// Sleeps that only the end of their slice has ended, although there was something to do. A
    /// correct peer causes almost none: only if it rings at the very end of a slice.
    late_wakes: u64 = 0,
};

/// One thread's place in a segment, with the one bell on which that thread sleeps.
///
/// The pipes and rings of an endpoint point to it: it must not move while they are in use.
///
/// Thread safety: belongs to the thread that attached it, except for `close`.
pub const Endpoint = struct {
    base: [*]align(layout.segment_align) u8,
    index: u32,
    record: *Record,
    /// The state word that it stored when it attached. With any other word there, it must not act
    /// [segment.own_state].
    attached: u32,
    /// How many times the endpoint was vacated before. Above 0, its rings start where their cursors
    /// stand [segment.again].
    generation: u32,
    host: *const Host,
    /// The process that attached it [segment.forked].
    process: u32,
    peers: EndpointSet,
    /// The writers of the properties that it reads. They are not peers, but its waits check whether
    /// they are alive as well [property.slice].
    watched: EndpointSet = .empty,
    /// Finds out whether the processes of peers are gone; null if nothing can find that out.
    file: ?*SegmentFile,
    /// When the peers were last checked, in the time of `Host.now`.
    checked_ns: u64 = 0,
    spin_ns: u64,
    blocking: bool,
    spins: SpinRecord = .{},
    /// The endpoints that have rung: bits that were taken out of the record and not handled yet
    /// [wait.rung_take].
    rung: EndpointSet = .empty,
    /// How many waits were begun so far.
    waits: u32 = 0,
    stats: Stats = .{},
    /// Private, because the peer can write the shared state. Atomic, because any thread may close.
    closed: std.atomic.Value(bool) = .init(false),
    /// The reason for the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed` of a call
    /// of this endpoint; null if none was stated [pipe.failed_reason].
    behind: ?layout.Reason = null,
    /// Moves the frames if the peer does not share the memory of this endpoint.
    link: wait_link.Pointer = wait_link.nobody,
    /// The first of those to tell that this endpoint closes, after its state has changed: the one
    /// that was opened last.
    leaving: ?*Leaving = null,

    /// Told when the endpoint closes, on the thread that closes it.
    pub const Leaving = struct {
        next: ?*Leaving,
        tell: *const fn (leaving: *Leaving) void,
    };

    /// How an endpoint waits.
    pub const Options = struct {
        /// Clock and wake mechanism.
        host: *const Host = .native,
        /// How many microseconds to spin before each sleep. `null` is the default: 50 with two or
        /// more processors, otherwise 0 [wait.spin].
        spin_us: ?u32 = null,
        /// False on a thread that must not block, such as a browser's main thread. A call that
        /// would have to wait there fails with `error.WaitForbidden`.
        blocking: bool = true,
    };

    /// Takes a vacant endpoint [segment.attach].
    pub fn attach(
        segment: *const Segment,
        index: u32,
        options: Options,
    ) error{ SegmentEndpoint, PipeForked }!Endpoint {
        const host = options.host;
        const attached = try segment.take(index, host);
        const record = segment.record(index);
        return .{
            .base = segment.base,
            .index = index,
            .record = record,
            .attached = attached,
            // Loaded after the exchange: before it, the endpoint may still pass to its next owner
            // [segment.again].
            .generation = @atomicLoad(u32, &record.generation, .seq_cst),
            .host = host,
            .process = host_process.number(),
            .peers = segment.peersOf(index),
            .file = segment.file,
            .spin_ns = wait_spin.budgetOf(options.spin_us, host),
            .blocking = options.blocking,
        };
    }

    /// Closes the endpoint. All its pipes are closed at once, and every wait on it ends with
    /// `error.PipeClosed` [pipe.close]. Closing again does nothing.
    ///
    /// Thread-safe.
    pub fn close(endpoint: *Endpoint) void {
        if (endpoint.closed.swap(true, .seq_cst) or endpoint.isForked()) return;
        segment_record.closeOwn(endpoint.record, endpoint.attached);
        endpoint.ringAll(endpoint.index, &endpoint.peers);
        var next = endpoint.leaving;
        while (next) |leaving| : (next = leaving.next) leaving.tell(leaving);
        if (endpoint.linked()) |link| link.pump();
    }

    /// Returns the link that moves its frames over a stream; null if its peers share its memory.
    pub inline fn linked(endpoint: *const Endpoint) ?*Link {
        return if (wait_link.supported) endpoint.link else null;
    }

    /// Marks each peer whose process is gone failed with `peer.lost`, and so each writer of a
    /// property that it reads [segment.file_dead]. The next call on a pipe of theirs then fails. A
    /// wait does this at the end of each slice, so call it only in a thread that never waits. It
    /// makes one system call for each endpoint that is attached. In a segment that is not in a file
    /// it does nothing: there, a supervisor has to know.
    pub fn checkPeers(endpoint: *Endpoint) void {
        if (!SegmentFile.supported or endpoint.isForked()) return;
        const file = endpoint.file orelse return;
        const looked_for = endpoint.peers.unionWith(endpoint.watched);
        var iterator = looked_for.iterator(.{});
        while (iterator.next()) |peer| {
            const index: u32 = @intCast(peer);
            // The state is loaded before the lock is checked, because an owner locks before it
            // attaches, and closes before it unlocks.
            const word = @atomicLoad(u32, &file.segment.record(index).state, .seq_cst);
            if (State.of(word) != .attached) continue;
            if (!file.lost(index)) continue;
            const owner: Owner = .{ .index = index, .generation = upperBits(word) };
            file.segment.fail(owner, .peer_lost, endpoint.host);
        }
    }

    /// [wait.liveness] Whether the last check was a slice ago or more; if so, notes this one.
    /// Counted across waits and wakes, so that a death is hidden neither by calls that each wait
    /// for less than a slice, nor by a third endpoint that rings again and again.
    fn checkDue(endpoint: *Endpoint, now_ns: u64) bool {
        if (now_ns -| endpoint.checked_ns < slice_ns) return false;
        endpoint.checked_ns = now_ns;
        return true;
    }

    /// [wait.spin] With 0, every wait sleeps at once.
    pub fn setSpin(endpoint: *Endpoint, microseconds: u32) void {
        endpoint.spin_ns = @as(u64, microseconds) * ns_per_us;
    }

    /// Returns this endpoint's own state as far as this process may act on it: `.attached`, or a
    /// final state, which ends every wait [pipe.close_frees].
    pub fn state(endpoint: *const Endpoint) State {
        return if (endpoint.closedHere()) .closed else endpoint.marked();
    }

    /// Whether this process may no longer act for the endpoint: its own `close` was called, or
    /// another process, from which this one was forked, has attached it.
    pub inline fn closedHere(endpoint: *const Endpoint) bool {
        return endpoint.closed.load(.monotonic) or endpoint.isForked();
    }

    /// Whether this process was forked from the one that attached the endpoint [segment.forked].
    pub inline fn isForked(endpoint: *const Endpoint) bool {
        return host_process.isOther(endpoint.process);
    }

    /// Returns the error of calls on an endpoint that is closed for this process.
    pub fn whyClosed(endpoint: *const Endpoint) error{ PipeClosed, PipeForked } {
        return if (endpoint.isForked()) error.PipeForked else error.PipeClosed;
    }

    /// Whether the endpoint's word in the segment says that it may act. Nearly every call needs to
    /// know nothing else. If it may not, `marked` says more.
    pub inline fn isAttached(endpoint: *const Endpoint) bool {
        if (endpoint.isForked()) return false;
        return @atomicLoad(u32, &endpoint.record.state, .seq_cst) == endpoint.attached;
    }

    /// Returns this endpoint's own state as its word in the segment has it, which any endpoint can
    /// mark: `.attached`, or a final state.
    pub inline fn marked(endpoint: *const Endpoint) State {
        if (endpoint.isForked()) return .closed;
        const word = @atomicLoad(u32, &endpoint.record.state, .seq_cst);
        if (word == endpoint.attached) return .attached;
        const loaded: State = .of(word);
        // [segment.own_state] Vacant, or attached by another owner: the endpoint was given away.
        return if (loaded.final()) loaded else .invalid;
    }

    /// Whether the record holds a bit of an endpoint that has rung. A bit may be there without a
    /// reason.
    pub fn anyRung(endpoint: *const Endpoint, comptime order: std.lang.AtomicOrder) bool {
        var bits: u32 = 0;
        for (&endpoint.record.rung) |*word| bits |= @atomicLoad(u32, word, order);
        return bits != 0;
    }

    /// Takes the bits of the endpoints that have rung out of the record, and adds them to `rung`.
    /// If a sleep follows, call it after the load of the bell [wait.rung_take].
    pub fn takeRung(endpoint: *Endpoint) void {
        for (&endpoint.record.rung, 0..) |*word, number| {
            if (@atomicLoad(u32, word, .seq_cst) == 0) continue;
            const bits = @atomicRmw(u32, word, .Xchg, 0, .seq_cst);
            for (0..@bitSizeOf(u32)) |bit| {
                if (bits >> @intCast(bit) & 1 == 0) continue;
                endpoint.rung.set(number * @bitSizeOf(u32) + bit);
            }
        }
    }

    /// Rings the peer if it asked for this cursor. Call it after the cursor was stored,
    /// sequentially consistent [wait.store_order].
    pub inline fn wake(endpoint: *Endpoint, wants: *u32, cursor: u32, peer: *Record) void {
        const asked = @atomicLoad(u32, wants, .seq_cst);
        if (asked == 0) {
            @branchHint(.likely);
            endpoint.stats.wakes_elided +%= 1;
            return;
        }
        endpoint.wakeAsked(wants, asked, cursor, peer);
    }

    noinline fn wakeAsked(
        endpoint: *Endpoint,
        wants: *u32,
        asked: u32,
        cursor: u32,
        peer: *Record,
    ) void {
        const position = asked & ~@as(u32, layout.wants_armed);
        const reached = @as(i32, @bitCast(cursor -% position)) >= 0;
        if (!reached) {
            endpoint.stats.wakes_elided +%= 1;
            return;
        }
        // [wait.exchange] One request rings once, even if others look at the word too.
        if (@atomicRmw(u32, wants, .Xchg, 0, .seq_cst) == 0) return;
        endpoint.stats.wakes +%= 1;
        if (endpoint.linked()) |link| return link.hear(wants);
        segment_record.ring(peer, endpoint.index, endpoint.host);
    }

    /// How a wait ended: there is something to do; the deadline has passed; or the thread must not
    /// block, and the wait would have to sleep, or to look more often than a call may.
    pub const Outcome = enum { found, timeout, forbidden };

    /// Waits until `condition.look` finds something to do, or the deadline passes. A wake that
    /// finds nothing to do is normal and has no effect [wait.loop].
    ///
    /// `condition` points to a struct with the functions
    ///   `glance(order) bool`: the cursors only, which is enough while spinning;
    ///   `look(order) bool`: everything that can end the wait, states included [wait.recheck];
    ///   `arm(first: bool) bool`: store `wants`; true if more was asked for than is needed;
    ///   `disarm() void`: store 0 in the same words. Waits of this implementation block their
    ///     thread, so no other wait of the endpoint can still need them [wait.disarm];
    ///   `slice(mechanism) u64`: for how many nanoseconds the peers allow a sleep by it; the least
    ///     of what they allow one by one.
    pub fn wait(endpoint: *Endpoint, condition: anytype, deadline: *Deadline) Outcome {
        if (deadline.timeout == .none) return .timeout;
        endpoint.waits +%= 1;
        if (endpoint.linked()) |link| return endpoint.waitFor(link, condition, deadline);
        const manner: wait_spin.Manner = .{
            .host = endpoint.host,
            .spin_ns = endpoint.spin_ns,
            .blocking = endpoint.blocking,
        };
        if (endpoint.spins.spin(manner, condition, deadline)) return .found;
        if (!endpoint.blocking) return .forbidden;
        return endpoint.park(condition, deadline);
    }

    /// `wait` for an endpoint with a link, where nothing rings the bell.
    fn waitFor(
        endpoint: *Endpoint,
        link: *Link,
        condition: anytype,
        deadline: *Deadline,
    ) Outcome {
        while (true) {
            if (condition.look(.seq_cst)) return .found;
            const left_ns = deadline.left(endpoint.host);
            if (left_ns == 0) return .timeout;
            if (!endpoint.blocking) return .forbidden;
            endpoint.stats.parks +%= 1;
            link.sleep(left_ns);
            link.pump();
        }
    }

    fn park(endpoint: *Endpoint, condition: anytype, deadline: *Deadline) Outcome {
        const host = endpoint.host;
        const checks = SegmentFile.supported and endpoint.file != null;
        var round: u32 = 0;
        while (true) : (round +|= 1) {
            // [wait.bell_first]
            const bell = @atomicLoad(u32, &endpoint.record.bell, .seq_cst);
            const asked_more = condition.arm(round == 0);
            defer condition.disarm();
            if (condition.look(.seq_cst)) return .found;
            // One reading of the clock for both, and none if neither needs it.
            const now_ns = if (checks or deadline.timeout != .forever) host.now() else 0;
            if (checks and endpoint.checkDue(now_ns)) {
                endpoint.checkPeers();
                continue;
            }
            const left_ns = deadline.leftAt(now_ns);
            if (left_ns == 0) return .timeout;
            endpoint.stats.parks +%= 1;
            const allowed_ns = if (host.mechanism == 0) 0 else condition.slice(host.mechanism);
            if (allowed_ns == 0) {
                host.pause(@min(left_ns, wait_spin.pollPause(round))); // [wait.poll]
            } else {
                // [wait.slice] Short if files are watched, or an outsider cannot ring: the end of
                // the slice looks for dead processes, and for states that the outsider has changed.
                const short = checks or host.outsiders;
                const shared_ns = if (short) @min(allowed_ns, slice_ns) else allowed_ns;
                const limit_ns = if (asked_more) more_ns else shared_ns;
                const span_ns = @min(left_ns, limit_ns);
                const rung = host.sleep(&endpoint.record.bell, bell, span_ns);
                const was_slice = !rung and !asked_more and limit_ns <= left_ns;
                if (was_slice and condition.look(.seq_cst)) endpoint.stats.late_wakes +%= 1;
            }
            // Nearly every sleep ends here. This look is a spin of one look: it avoids arming in
            // vain [wait.spin].
            if (condition.glance(.acquire)) return .found;
        }
    }

    /// Returns the record of an endpoint of the same segment; for other parts of this library.
    pub fn recordAt(endpoint: *const Endpoint, index: usize) *Record {
        const offset = layout.endpoint_table_offset + index * layout.endpoint_record_size;
        return @ptrCast(@alignCast(endpoint.base + offset));
    }

    /// Rings the endpoint whose state was changed, and its peers [segment.state_ring].
    pub fn ringAll(endpoint: *Endpoint, whose: u32, peers: *const EndpointSet) void {
        segment_record.ring(endpoint.recordAt(whose), whose, endpoint.host);
        var iterator = peers.iterator(.{});
        while (iterator.next()) |index| {
            segment_record.ring(endpoint.recordAt(index), whose, endpoint.host);
        }
    }
};

/// The other end of a channel, as this endpoint sees it.
pub const Peer = struct {
    index: u32,
    record: *Record,
    /// The peers of this peer, which are rung when it is marked failed.
    peers: EndpointSet,
    /// How many rings lead between this peer and the endpoint; null if any other channel names the
    /// peer [segment.vacate_peer].
    ring_count: ?u32,
    /// The last state seen. A final state is kept: it must not change any more, and if it does, the
    /// new one is not believed [segment.state_invalid].
    seen: State = .vacant,

    /// Returns the endpoint with that index, as the endpoint with index `own` sees it.
    pub fn init(segment: *const Segment, own: u32, index: u32) Peer {
        return .{
            .index = index,
            .record = segment.record(index),
            .peers = segment.peersOf(index),
            .ring_count = segment.ringCount(own, index),
        };
    }

    /// Whether it is attached, unless a final state was seen before. If it is not, `state` says
    /// more.
    pub inline fn isAttached(peer: *const Peer) bool {
        return !peer.seen.final() and State.isAttached(peer.record);
    }

    pub fn state(peer: *Peer) State {
        if (peer.seen.final()) return peer.seen;
        peer.seen = .load(peer.record);
        return peer.seen;
    }

    /// Marks this peer failed because of a fault in one of its words, and rings it and its peers
    /// [ring.fault].
    pub fn fail(peer: *Peer, endpoint: *Endpoint, why: layout.Reason) void {
        segment_record.changeState(peer.record, .{ .failed = why }, null);
        endpoint.ringAll(peer.index, &peer.peers);
        if (endpoint.linked()) |link| link.pump();
    }

    /// Returns for how many nanoseconds this peer allows a sleep by that mechanism [wait.slice]. A
    /// peer that is attached and cannot ring the mechanism allows none [wait.mechanism]. A peer
    /// that is still vacant may turn out to be one that cannot ring it, so it allows a short slice,
    /// whose end finds that out [wait.vacant]. With a peer that is attached and rings, a sleep can
    /// miss only the wake of a peer that dies between its store and its notify, or that withholds
    /// it.
    pub fn slice(peer: *const Peer, mechanism: u32) u64 {
        if (State.load(peer.record) != .attached) return slice_ns;
        const wakes = @atomicLoad(u32, &peer.record.wakes, .seq_cst);
        return if (wakes & mechanism == 0) 0 else slice_attached_ns;
    }
};

test {
    _ = @import("spin.zig");
}

// Tests.
//
// How long an endpoint sleeps at a time [wait.slice], on a machine that records its sleeps.

const millrace = @import("../root.zig");
const file_fixture = @import("../host/fixture.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;

const vacant_ms = layout.wait_slice_ms;
const attached_ms = layout.wait_slice_attached_ms;

/// The machine whose clock the tests wind; it records each sleep and each pause.
const Recorder = struct {
    var slept: [64]u64 = undefined;
    var slept_count: usize = 0;
    var pause_count: usize = 0;
    /// What happens during the next sleep, and whether that ends the sleep.
    var meanwhile: ?*const fn () void = null;
    var rings = false;

    const host: millrace.Host = blk: {
        var recording = fixture.clockwork;
        recording.sleep = sleep;
        recording.pause = pause;
        break :blk recording;
    };

    fn reset() void {
        slept_count = 0;
        pause_count = 0;
        meanwhile = null;
        rings = false;
    }

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        slept[slept_count] = limit_ns;
        slept_count += 1;
        const timed_out = !fixture.clockwork.sleep(word, expected, limit_ns);
        const act = meanwhile orelse return !timed_out;
        meanwhile = null;
        act();
        return rings;
    }

    fn pause(limit_ns: u64) void {
        std.debug.assert(limit_ns <= layout.wait_poll_ms * 1_000_000);
        pause_count += 1;
        fixture.clockwork.pause(limit_ns);
    }

    /// Expects that no sleep is shorter than a slice, except the last one, up to the deadline.
    fn expectSlices(slices_ms: []const u64) !void {
        try testing.expectEqual(slices_ms.len, slept_count);
        try testing.expectEqual(0, pause_count);
        for (slices_ms, slept[0..slept_count], 1..) |slice_ms, ns, number| {
            // The last sleep may be up to 1 ms shorter, because readings of the clock take time
            // too.
            const least_ns = if (number == slept_count) (slice_ms - 1) * 1_000_000 else ns;
            try testing.expect(ns >= least_ns and ns <= slice_ms * 1_000_000);
            if (number < slept_count) try testing.expectEqual(slice_ms * 1_000_000, ns);
        }
    }
};

/// Endpoint 0 reads from the others, which attach later. Must not move after it was initialized.
const Crowd = struct {
    const writer_count = 2;

    memory: [4096]u8 align(layout.segment_align),
    storage: [writer_count]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [1 + writer_count]millrace.Endpoint,
    readers: [writer_count]millrace.Reader,
    list: [writer_count]*millrace.Reader,

    fn init(crowd: *Crowd) !void {
        Recorder.reset();
        crowd.memory = @splat(0);
        const channels: [writer_count]millrace.Channel = .{
            .{ .writer = 1, .reader = 0, .data_size = 256 },
            .{ .writer = 2, .reader = 0, .data_size = 256 },
        };
        try millrace.Segment.format(&crowd.memory, .{
            .endpoint_count = 1 + writer_count,
            .channels = &channels,
        });
        crowd.segment = try .attach(&crowd.memory, &crowd.storage, .none);
        try crowd.enter(0, &Recorder.host);
        for (&crowd.readers, &crowd.list, 0..) |*reader, *item, channel| {
            reader.* = try .init(&crowd.endpoints[0], &crowd.segment, @intCast(channel));
            item.* = reader;
        }
    }

    fn enter(crowd: *Crowd, index: u32, host: *const millrace.Host) !void {
        const options: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
        crowd.endpoints[index] = try .attach(&crowd.segment, index, options);
    }

    fn read(crowd: *Crowd, timeout_ms: u64) !void {
        var storage: [16]u8 = undefined;
        const found = try crowd.readers[0].read(&storage, .ms(timeout_ms));
        try testing.expectEqual(null, found);
    }

    fn select(crowd: *Crowd, timeout_ms: u64) !void {
        var selected: millrace.Select = .{ .readers = &crowd.list };
        try testing.expectEqual(null, try selected.wait(.ms(timeout_ms)));
    }
};

test "a reader sleeps 100 ms at a time while its writer is vacant, and 1 s when it is attached" {
    var crowd: Crowd = undefined;
    try crowd.init();
    try crowd.read(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    try crowd.enter(1, &Recorder.host);
    Recorder.reset();
    try crowd.read(2_500);
    try Recorder.expectSlices(&.{ attached_ms, attached_ms, 500 });
}

test "a writer that comes while the reader sleeps is found after 100 ms, rung or not" {
    for ([_]u32{ layout.wake_mechanism_futex, 0 }) |wakes| {
        const Comer = struct {
            var crowd: Crowd = undefined;
            var host: millrace.Host = undefined;

            fn come() void {
                crowd.enter(1, &host) catch unreachable;
            }
        };
        try Comer.crowd.init();
        Comer.host = fixture.clockwork;
        Comer.host.wakes = wakes;
        Recorder.meanwhile = Comer.come;
        try Comer.crowd.read(1_000);
        if (wakes == 0) {
            // [wait.mechanism] It cannot ring, so the endpoint polls for the rest of the time.
            try testing.expectEqual(1, Recorder.slept_count);
            try testing.expectEqual(vacant_ms * 1_000_000, Recorder.slept[0]);
            try testing.expect(Recorder.pause_count > 100);
        } else try Recorder.expectSlices(&.{ vacant_ms, 900 });
    }
}

test "Stats.late_wakes counts slices that end with something there, and nothing else" {
    const Comer = struct {
        var crowd: Crowd = undefined;
        var writer: millrace.Writer = undefined;

        fn come() void {
            std.debug.assert(writer.tryWrite("late", .{}) catch unreachable);
        }

        /// Reads what arrives during a sleep. Returns how many wakes were late.
        fn wakes(rings: bool, timeout_ms: u64) !u64 {
            var storage: [16]u8 = undefined;
            const stats = &crowd.endpoints[0].stats;
            const before = stats.late_wakes;
            Recorder.reset();
            Recorder.meanwhile = come;
            Recorder.rings = rings;
            try testing.expect(try crowd.readers[0].read(&storage, .ms(timeout_ms)) != null);
            return stats.late_wakes - before;
        }
    };
    try Comer.crowd.init();
    try Comer.crowd.enter(1, &Recorder.host);
    Comer.writer = try .init(&Comer.crowd.endpoints[1], &Comer.crowd.segment, 0);
    try testing.expectEqual(1, try Comer.wakes(false, 2_500));
    try testing.expectEqual(0, try Comer.wakes(true, 2_500));
    // The deadline ended that sleep.
    try testing.expectEqual(0, try Comer.wakes(false, 500));
    // Slices that find nothing do not count.
    Recorder.reset();
    try Comer.crowd.read(2_500);
    try testing.expectEqual(1, Comer.crowd.endpoints[0].stats.late_wakes);
}

test "a writer that waits for room asks for more for 10 ms, and then sleeps 1 s at a time" {
    var crowd: Crowd = undefined;
    try crowd.init();
    try crowd.enter(1, &Recorder.host);
    var writer: millrace.Writer = try .init(&crowd.endpoints[1], &crowd.segment, 0);
    while (try writer.tryWrite("", .{})) {}
    try testing.expectError(error.Timeout, writer.write("", .{}, .ms(1_500)));
    try Recorder.expectSlices(&.{ layout.wait_more_ms, attached_ms, 490 });
}

test "Select sleeps 100 ms at a time while one of its writers is vacant" {
    var crowd: Crowd = undefined;
    try crowd.init();
    try crowd.enter(2, &Recorder.host);
    try crowd.select(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    // Vacant for ever, and no longer part of the wait.
    crowd.readers[0].ended_seen = true;
    Recorder.reset();
    try crowd.select(2_500);
    try Recorder.expectSlices(&.{ attached_ms, attached_ms, 500 });
    crowd.readers[0].ended_seen = false;
    var silent = fixture.clockwork;
    silent.wakes = 0;
    try crowd.enter(1, &silent);
    Recorder.reset();
    try crowd.select(250);
    try testing.expectEqual(0, Recorder.slept_count);
    try testing.expect(Recorder.pause_count > 40);
}

test "a slice stays 100 ms where somebody may change a state who cannot ring" {
    var crowd: Crowd = undefined;
    try crowd.init();
    for (1..3) |index| try crowd.enter(@intCast(index), &Recorder.host);
    var host = Recorder.host;
    host.outsiders = true;
    crowd.endpoints[0].host = &host;
    try crowd.read(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    Recorder.reset();
    try crowd.select(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    if (@import("builtin").os.tag != .linux) return;
    try testing.expect(!millrace.host.linux_futex.outsiders);
}

test "a sleep of this machine lasts its time, less a tick of the kernel" {
    const host: *const millrace.Host = .native;
    var word: u32 = 0;
    // Short waits and long ones.
    for ([_]u64{ 20, 120, 950 }) |limit_ms| {
        const begin_ns = host.now();
        try testing.expect(!host.sleep(&word, 0, limit_ms * 1_000_000));
        try testing.expect(host.now() - begin_ns >= (limit_ms -| 15) * 1_000_000);
        try testing.expect(host.sleep(&word, 1, limit_ms * 1_000_000_000));
    }
}

test "in a file, where the dead are looked for, a slice stays 100 ms" {
    if (!millrace.SegmentFile.supported) return error.SkipZigTest;
    var directory: file_fixture.Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var ends: [2]file_fixture.End = undefined;
    for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
    defer for (&ends) |*end| end.close();
    Recorder.reset();
    const port = &ends[0].port;
    port.endpoint.host = &Recorder.host;
    port.endpoint.spin_ns = 0;
    // The first check is due at once, and then one every 100 ms.
    port.endpoint.checked_ns = Recorder.host.now();
    var storage: [16]u8 = undefined;
    try testing.expectEqual(null, try port.read(&storage, .ms(250)));
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
}
