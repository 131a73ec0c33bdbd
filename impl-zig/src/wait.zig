//! How an endpoint sleeps and is woken [spec/wait.md].
//!
//! Invariant: nobody makes a system call unless somebody sleeps. A waker stores its cursor and then
//! loads `wants`; a sleeper stores `wants` and then loads the cursor; both pairs sequentially
//! consistent, so that at least one of the two sees the other.

const std = @import("std");
const layout = @import("layout.zig");
const host_file = @import("host.zig");
const host_process = @import("host_process.zig");
const segment_zig = @import("segment.zig");
const segment_record = @import("segment_record.zig");
const wait_link = @import("wait_link.zig");
const wait_spin = @import("wait_spin.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Link = wait_link.Link;
const EndpointSet = segment_zig.EndpointSet;
const Host = host_file.Host;
const Owner = segment_zig.Owner;
const Record = segment_record.Record;
const Segment = segment_zig.Segment;
const SegmentFile = @import("segment_file.zig").SegmentFile;
const SpinRecord = wait_spin.SpinRecord;
const State = segment_record.State;
const upperBits = segment_record.upperBits;

const ns_per_us = 1_000;
const ns_per_ms = 1_000_000;
const slice_ns = layout.wait_slice_ms * ns_per_ms;
const slice_attached_ns = layout.wait_slice_attached_ms * ns_per_ms;
const more_ns = layout.wait_more_ms * ns_per_ms;

/// What an endpoint did so far.
pub const Stats = struct {
    /// Bells rung because a peer asked for it. Each is a system call.
    wakes: u64 = 0,
    /// Cursors stored while the peer did not ask to be rung.
    wakes_elided: u64 = 0,
    /// Times this endpoint slept or paused.
    parks: u64 = 0,
    /// Sleeps that nothing ended but their slice, although something was there to be done. A peer
    /// that rings as it should makes none, but for one that comes at the very end of a slice.
    late_wakes: u64 = 0,
};

/// This side of the segment: one thread's place in it, with the one bell on which it sleeps.
///
/// The pipes and rings of an endpoint point to it: it must not move while they are used.
///
/// Thread safety: belongs to the thread that attached it, but for `close`.
pub const Endpoint = struct {
    base: [*]align(layout.segment_align) u8,
    index: u32,
    record: *Record,
    /// The word of its state as it attached: with any other one it may not act [segment.own_state].
    attached: u32,
    /// How often it was vacated before: above 0, its rings go on where their words stand
    /// [segment.again].
    generation: u32,
    host: *const Host,
    /// The process that attached it [segment.forked].
    process: u32,
    peers: EndpointSet,
    /// The writers of the properties that it reads, which are no peers: its waits look whether they
    /// live as well [property.slice].
    watched: EndpointSet = .empty,
    /// Tells whether the processes of peers are gone; null where nobody can.
    file: ?*SegmentFile,
    /// When it was last asked, in the time of `Host.now`.
    checked_ns: u64 = 0,
    spin_ns: u64,
    blocking: bool,
    spins: SpinRecord = .{},
    /// Who has rung, of what was taken out of the record and not yet looked at [wait.rung_take].
    rung: EndpointSet = .empty,
    /// Waits that were begun so far.
    waits: u32 = 0,
    stats: Stats = .{},
    /// Private, because the peer can write the shared state. Atomic, because any thread may close.
    closed: std.atomic.Value(bool) = .init(false),
    /// What is behind the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed` of a call
    /// of this endpoint; null where nobody said [pipe.failed_reason].
    behind: ?layout.Reason = null,
    /// What moves the frames where the peer shares no memory with this endpoint.
    link: wait_link.Pointer = wait_link.nobody,
    /// Whom to tell, behind the change of its state, that it closes: the last that was opened.
    leaving: ?*Leaving = null,

    /// Somebody who is told when the endpoint closes, on the thread that closes it.
    pub const Leaving = struct {
        next: ?*Leaving,
        tell: *const fn (leaving: *Leaving) void,
    };

    /// How an endpoint sleeps.
    pub const Options = struct {
        /// Clock and wake mechanism.
        host: *const Host = .native,
        /// How long to look again and again before each sleep. `null` is the default: 50 µs with
        /// two or more processors, else 0 [wait.spin].
        spin_us: ?u32 = null,
        /// False on a thread that must not block, such as a browser's main thread: a call that
        /// would have to wait fails with `error.WaitForbidden`.
        blocking: bool = true,
    };

    /// Takes a vacant endpoint [segment.attach].
    pub fn attach(
        segment: *const Segment,
        index: u32,
        options: Options,
    ) error{SegmentEndpoint}!Endpoint {
        const host = options.host;
        const attached = try segment.take(index, host);
        const record = segment.record(index);
        return .{
            .base = segment.base,
            .index = index,
            .record = record,
            .attached = attached,
            // Behind the exchange: until then, it may be the next owner's [segment.again].
            .generation = @atomicLoad(u32, &record.generation, .seq_cst),
            .host = host,
            .process = host_process.number(),
            .peers = segment.peersOf(index),
            .file = segment.file,
            .spin_ns = wait_spin.budgetOf(options.spin_us, host),
            .blocking = options.blocking,
        };
    }

    /// Leaves: all pipes of this endpoint are closed at once, and every wait on it ends with
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

    /// What moves its frames over a stream; null where its peers share its memory.
    pub inline fn linked(endpoint: *const Endpoint) ?*Link {
        return if (wait_link.supported) endpoint.link else null;
    }

    /// Marks the peers failed whose process is gone, and the writers of properties that it reads,
    /// with `peer.lost` [segment.file_dead]; the next call on a pipe of theirs then fails. A wait
    /// does so at the end of each slice: call it only where nothing ever waits. One system call for
    /// each that is attached; in a segment that is not in a file, where a supervisor has to know,
    /// it does nothing.
    pub fn checkPeers(endpoint: *Endpoint) void {
        if (!SegmentFile.supported or endpoint.isForked()) return;
        const file = endpoint.file orelse return;
        const looked_for = endpoint.peers.unionWith(endpoint.watched);
        var iterator = looked_for.iterator(.{});
        while (iterator.next()) |peer| {
            const index: u32 = @intCast(peer);
            // The state first: its owner locks before it attaches, and closes before it unlocks.
            const word = @atomicLoad(u32, &file.segment.record(index).state, .seq_cst);
            if (State.of(word) != .attached) continue;
            if (!file.lost(index)) continue;
            const owner: Owner = .{ .index = index, .generation = upperBits(word) };
            file.segment.fail(owner, .peer_lost, endpoint.host);
        }
    }

    /// [wait.liveness] Whether the last look was a slice ago. Counted across waits and wakes:
    /// neither calls that each wait for less than a slice, nor a third endpoint that rings again
    /// and again, hide a death.
    fn checkDue(endpoint: *Endpoint, now_ns: u64) bool {
        if (now_ns -| endpoint.checked_ns < slice_ns) return false;
        endpoint.checked_ns = now_ns;
        return true;
    }

    /// [wait.spin] 0 makes every wait sleep at once.
    pub fn setSpin(endpoint: *Endpoint, microseconds: u32) void {
        endpoint.spin_ns = @as(u64, microseconds) * ns_per_us;
    }

    /// Returns this endpoint's own state, as far as it may still act: `.attached`, or a final one,
    /// which ends every wait [pipe.close_frees].
    pub fn state(endpoint: *const Endpoint) State {
        return if (endpoint.closedHere()) .closed else endpoint.marked();
    }

    /// Whether this process may not act for it any more: it was closed by its own `close`, or
    /// attached by the process that this one was forked from.
    pub inline fn closedHere(endpoint: *const Endpoint) bool {
        return endpoint.closed.load(.monotonic) or endpoint.isForked();
    }

    /// Whether this process was forked from the one that attached it [segment.forked].
    pub inline fn isForked(endpoint: *const Endpoint) bool {
        return host_process.isOther(endpoint.process);
    }

    /// Why calls are refused where its state here is closed.
    pub fn whyClosed(endpoint: *const Endpoint) error{ PipeClosed, PipeForked } {
        return if (endpoint.isForked()) error.PipeForked else error.PipeClosed;
    }

    /// Whether its word in the segment says that it may act: all that nearly every call has to
    /// know. If not, `marked` tells more.
    pub inline fn isAttached(endpoint: *const Endpoint) bool {
        if (endpoint.isForked()) return false;
        return @atomicLoad(u32, &endpoint.record.state, .seq_cst) == endpoint.attached;
    }

    /// Returns this endpoint's own state as its word in the segment tells it, which anybody can
    /// mark: `.attached`, or a final one.
    pub inline fn marked(endpoint: *const Endpoint) State {
        if (endpoint.isForked()) return .closed;
        const word = @atomicLoad(u32, &endpoint.record.state, .seq_cst);
        if (word == endpoint.attached) return .attached;
        const loaded: State = .of(word);
        // [segment.own_state] Vacant, or attached by somebody else: it was given away.
        return if (loaded.final()) loaded else .invalid;
    }

    /// Whether anybody has rung whose bit was not taken out yet. A bit may stand there for nothing.
    pub fn anyRung(endpoint: *const Endpoint, comptime order: std.lang.AtomicOrder) bool {
        var bits: u32 = 0;
        for (&endpoint.record.rung) |*word| bits |= @atomicLoad(u32, word, order);
        return bits != 0;
    }

    /// Takes the bits of those who have rung out of the record, and adds them to `rung`. To be
    /// called behind the load of the bell, where a sleep follows [wait.rung_take].
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

    /// Rings the peer if it asked for this cursor. To be called after the cursor was stored,
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
        // [wait.exchange] One request rings once, whoever else looks at the word.
        if (@atomicRmw(u32, wants, .Xchg, 0, .seq_cst) == 0) return;
        endpoint.stats.wakes +%= 1;
        if (endpoint.linked()) |link| return link.hear(wants);
        segment_record.ring(peer, endpoint.index, endpoint.host);
    }

    /// How a wait ended: there is something to do, the time was over, or it would have had to
    /// sleep, or to look more often than a call may, where that is forbidden.
    pub const Outcome = enum { found, timeout, forbidden };

    /// Waits until `condition.look` says that there is something to do, or the deadline passes.
    /// A wake that finds nothing to do is normal and goes unnoticed [wait.loop].
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

    /// As `wait`, where nobody rings.
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
            // One reading of the clock for both, and none where neither needs it.
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
                // [wait.slice] Its end looks for the dead where files are watched, and for what
                // somebody has changed who cannot ring.
                const short = checks or host.outsiders;
                const shared_ns = if (short) @min(allowed_ns, slice_ns) else allowed_ns;
                const limit_ns = if (asked_more) more_ns else shared_ns;
                const span_ns = @min(left_ns, limit_ns);
                const rung = host.sleep(&endpoint.record.bell, bell, span_ns);
                const was_slice = !rung and !asked_more and limit_ns <= left_ns;
                if (was_slice and condition.look(.seq_cst)) endpoint.stats.late_wakes +%= 1;
            }
            // How nearly every sleep ends. It is a spin of one look, so as not to arm in vain
            // [wait.spin].
            if (condition.glance(.acquire)) return .found;
        }
    }

    /// The record of an endpoint of the same segment; for the parts of this library.
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
    /// The peers of this peer: whom to ring when it is marked failed.
    peers: EndpointSet,
    /// How many rings lead between it and this endpoint; null where it has any other channel too
    /// [segment.vacate_peer].
    ring_count: ?u32,
    /// The last state seen. A final one is kept: it must not change any more, and if it does, that
    /// is nothing to believe [segment.state_invalid].
    seen: State = .vacant,

    /// The endpoint of that index, as the one of index `own` sees it.
    pub fn init(segment: *const Segment, own: u32, index: u32) Peer {
        return .{
            .index = index,
            .record = segment.record(index),
            .peers = segment.peersOf(index),
            .ring_count = segment.ringCount(own, index),
        };
    }

    /// Whether it is attached, as far as one may believe that. If not, `state` tells more.
    pub inline fn isAttached(peer: *const Peer) bool {
        return !peer.seen.final() and State.isAttached(peer.record);
    }

    pub fn state(peer: *Peer) State {
        if (peer.seen.final()) return peer.seen;
        peer.seen = .load(peer.record);
        return peer.seen;
    }

    /// Marks this peer failed for a fault in one of its words, and rings it and its peers
    /// [ring.fault].
    pub fn fail(peer: *Peer, endpoint: *Endpoint, why: layout.Reason) void {
        segment_record.changeState(peer.record, .{ .failed = why }, null);
        endpoint.ringAll(peer.index, &peer.peers);
        if (endpoint.linked()) |link| link.pump();
    }

    /// For how many nanoseconds this peer allows a sleep by that mechanism [wait.slice]: for none
    /// if it is attached and cannot ring it [wait.mechanism]. One that has not come yet may turn
    /// out not to ring it, so that only the end of a short slice finds it [wait.vacant]. From one
    /// that is attached and rings, nothing is missed but the wake of a waker that dies between its
    /// store and its notify, or that withholds it.
    pub fn slice(peer: *const Peer, mechanism: u32) u64 {
        if (State.load(peer.record) != .attached) return slice_ns;
        const wakes = @atomicLoad(u32, &peer.record.wakes, .seq_cst);
        return if (wakes & mechanism == 0) 0 else slice_attached_ns;
    }
};

test {
    _ = @import("wait_slice_test.zig");
    _ = @import("wait_spin_test.zig");
}
