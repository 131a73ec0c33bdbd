//! Stands for the peer of a port over a stream [spec/stream.md]. The link has the other side of the
//! port's private segment, and moves frames between that segment and the transport.
//!
//! It has no thread. The calls of the port do the work: calls that find nothing to read, or no
//! room; calls that publish; and calls that wait, which then wait for the transport. So what a call
//! has published is on its way when it returns, as far as the transport takes it.
//!
//! Invariant: the states of the two endpoints are as the chapter's table says. The peer's `close`
//! closes the peer's endpoint; its `fail` marks the port's endpoint failed; a fault or a loss marks
//! the peer's endpoint failed.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const ring_file = @import("../ring/side.zig");
const segment_file = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const stream_intake = @import("inlet.zig");
const stream_outlet = @import("outlet.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Endpoint = @import("../wait/endpoint.zig").Endpoint;
const Host = host_file.Host;
const Link = @import("../wait/link.zig").Link;
const Intake = stream_intake.Intake;
const Outlet = stream_outlet.Outlet;
const Segment = segment_file.Segment;
const Sizes = stream_outlet.Sizes;
const State = segment_record.State;
const Transport = @import("transport.zig").Transport;

const linger_ns = layout.stream_linger_ms * 1_000_000;
const unknown_reason: layout.Reason = @fromBackingInt(0);
/// The most pieces that are taken in before the endpoint goes on with its other work.
const piece_count_max = 8;

pub const StreamLink = struct {
    base: Link,
    /// The endpoint of the port, whose calls drive the link.
    port: *Endpoint,
    /// The endpoint that stands for the peer.
    peer: Endpoint,
    transport: Transport,
    intake: Intake,
    outlet: Outlet,
    /// The storage for a piece of the incoming bytes.
    piece: []u8,
    peer_window: u32 = 0,
    /// The position of the last credit from the peer [stream.credit_kept].
    head: u32 = layout.stream_start,
    /// What the port was told of the peer so far.
    verdict: Verdict = .open,
    /// Whether nothing that may still arrive has a meaning.
    input_over: bool = false,
    /// Whether the transport takes nothing any more [stream.broken].
    broken: bool = false,
    /// Whether the transport was given up.
    gone: bool = false,
    /// The time since which this side lingers, or its transport is broken.
    since_ns: ?u64 = null,
    /// Whether incoming bytes are dropped, because a fault was found in them.
    deaf: bool = false,
    /// Whether the last piece filled its storage, so that more bytes may be there.
    more: bool = false,
    /// Whether a thread is at work here, and whether there is something new to do.
    busy: std.atomic.Value(bool) = .init(false),
    again: std.atomic.Value(bool) = .init(false),

    const Verdict = enum { open, closed, failed_us, failed };

    /// Returns the capacity of a ring that holds all that the window allows to arrive, wherever
    /// frames wrap around: a pad is shorter than the frame after it, and `end` takes the reserve.
    pub fn capacityFor(own: Sizes) u32 {
        const most = own.window + own.largest + layout.ring_reserve;
        const least = @max(layout.ring_capacity_min, 2 * own.largest, most);
        return std.math.ceilPowerOfTwoAssert(u32, least);
    }

    /// Attaches to the other side of a private segment, and begins. `piece` is the storage for
    /// incoming bytes. The link must not move.
    pub fn init(
        link: *StreamLink,
        port: *Endpoint,
        segment: *const Segment,
        transport: Transport,
        own: Sizes,
        piece: []u8,
    ) void {
        link.* = .{
            .base = .{
                .functions = &.{ .pump = pump, .tell = tell, .sleep = sleep },
                .given_wants = undefined,
            },
            .port = port,
            // This endpoint rings nobody, because the port waits for the transport.
            .peer = Endpoint.attach(segment, 1, .{ .host = &host_file.polling }) catch unreachable,
            .transport = transport,
            .intake = undefined,
            .outlet = undefined,
            .piece = piece,
        };
        link.outlet = .init(.init(&link.peer, segment, 0), own);
        link.intake = .init(.init(&link.peer, segment, 1), own);
        link.base.given_wants = &link.intake.ring.control.writer_wants;
        port.link = &link.base;
        link.base.pump();
    }

    fn of(base: *Link) *StreamLink {
        return @alignCast(@fieldParentPtr("base", base));
    }

    /// If a second thread closes the port, one of the two threads does the work of both.
    fn pump(base: *Link) void {
        const link = of(base);
        // The bytes that a forked process reads or writes would be missing in its parent
        // [segment.forked].
        if (link.port.isForked()) return;
        link.again.store(true, .seq_cst);
        while (link.again.load(.seq_cst)) {
            if (link.busy.swap(true, .seq_cst)) return;
            link.again.store(false, .seq_cst);
            link.takeIn();
            link.give();
            link.busy.store(false, .seq_cst);
        }
    }

    fn tell(base: *Link) void {
        const link = of(base);
        if (link.busy.swap(true, .seq_cst)) return link.again.store(true, .seq_cst);
        link.give();
        link.busy.store(false, .seq_cst);
        if (link.again.load(.seq_cst)) pump(base);
    }

    fn sleep(base: *Link, limit_ns: u64) void {
        const link = of(base);
        link.transport.wait(link.wish(), limit_ns);
    }

    /// Waits until the peer's preface has arrived, or nothing can arrive any more.
    pub fn awaitReady(link: *StreamLink, deadline: *Deadline) bool {
        while (true) {
            link.base.pump();
            const notes = link.base.notes.load(.monotonic);
            if (notes.ready) return true;
            if (!notes.reads or link.port.state().final()) return false;
            const left_ns = deadline.left(link.port.host);
            if (left_ns == 0 or !link.port.blocking) return false;
            link.base.sleep(left_ns);
        }
    }

    /// Returns what an event loop must wait for.
    pub fn wish(link: *const StreamLink) Transport.Wish {
        const notes = link.base.notes.load(.monotonic);
        return .{ .read = notes.reads, .write = notes.writes };
    }

    /// Goes on until the transport may be given up [stream.linger]. Returns false if the deadline
    /// passes before.
    ///
    /// Asserts that the port is closed.
    pub fn finish(link: *StreamLink, deadline: *Deadline) bool {
        assert(link.port.closedHere());
        const host = link.port.host;
        if (link.port.isForked()) return true;
        while (true) {
            link.base.pump();
            if (link.base.notes.load(.monotonic).done) return true;
            const left_ns = deadline.left(host);
            if (left_ns == 0) return false;
            link.base.sleep(left_ns);
        }
    }

    /// Gives up the transport. Does nothing if that was done already.
    ///
    /// Asserts that the port is closed.
    pub fn giveUp(link: *StreamLink) void {
        assert(link.port.closedHere());
        if (link.gone) return;
        link.gone = true;
        link.input_over = true;
        link.broken = true;
        link.transport.close();
    }

    fn isDone(link: *const StreamLink) bool {
        if (!link.port.closedHere()) return false;
        if (link.input_over and (link.broken or link.outlet.isIdle())) return true;
        return link.isOver();
    }

    /// Whether the 2 s are over.
    fn isOver(link: *const StreamLink) bool {
        const since_ns = link.since_ns orelse return false;
        return link.port.host.now() -| since_ns >= linger_ns;
    }

    fn takeIn(link: *StreamLink) void {
        link.more = false;
        link.intake.count();
        for (0..piece_count_max) |_| {
            if (link.input_over) break;
            const come = link.transport.read(link.piece) catch null orelse {
                link.lose();
                break;
            };
            var rest: []const u8 = link.piece[0..come];
            while (rest.len > 0 and !link.input_over and !link.deaf) {
                link.handle(link.intake.take(&rest, link.outlet.told));
            }
            link.more = come == link.piece.len;
            if (!link.more) break;
            link.give();
        }
        link.intake.publish();
        if (link.broken and link.isOver()) link.lose();
    }

    fn handle(link: *StreamLink, event: stream_intake.Event) void {
        switch (event) {
            .none => {},
            .preface => |sizes| {
                link.peer_window = sizes.window;
                link.base.largest.store(sizes.largest, .monotonic);
                link.allow();
            },
            .credit => |position| {
                const written = link.outlet.position;
                const is_valid = position % layout.frame_align == 0 and
                    written -% position <= written -% link.head;
                if (!is_valid) return link.blame(.stream_credit); // [stream.credit_check]
                link.head = position;
                link.allow();
            },
            .fault => |reason| link.blame(reason),
            .close => link.hear(.closed, null),
            .fail => |tag| {
                const is_code = tag <= std.math.maxInt(u24); // as in the state of an endpoint
                link.hear(.failed_us, if (is_code) @fromBackingInt(tag) else unknown_reason);
            },
        }
    }

    fn allow(link: *StreamLink) void {
        link.base.allowed_end.store(link.head +% link.peer_window, .monotonic);
    }

    /// Handles a `close` or a `fail` [stream.closed] [stream.failed].
    fn hear(link: *StreamLink, verdict: Verdict, reason: ?layout.Reason) void {
        // Published first, because what came before is delivered before the state counts.
        link.intake.publish();
        link.input_over = true; // [stream.behind]
        if (link.verdict == .open) {
            link.verdict = verdict;
            switch (verdict) {
                .closed => segment_record.changeState(link.peer.record, .closed, null),
                else => segment_record.changeState(link.port.record, .{ .failed = reason.? }, null),
            }
        }
        link.outlet.stop(link.transport); // [stream.hang_up]
    }

    /// Handles a fault in what has arrived [stream.fault]. After the own close, it has no effect.
    fn blame(link: *StreamLink, reason: layout.Reason) void {
        link.intake.drop();
        link.intake.publish();
        link.deaf = true;
        if (link.verdict != .open or link.port.closedHere()) return;
        segment_record.changeState(link.peer.record, .{ .failed = reason }, null);
    }

    /// Handles the end or the break of the peer's byte stream [stream.lost].
    fn lose(link: *StreamLink) void {
        link.intake.publish();
        link.input_over = true; // and the frame that has arrived in part is dropped
        // After a fault, or the own close, this side may still send what it has to tell.
        if (link.verdict != .open or link.deaf or link.port.closedHere()) return;
        link.verdict = .failed;
        segment_record.changeState(link.peer.record, .{ .failed = .peer_lost }, null);
        link.outlet.stop(link.transport);
    }

    fn give(link: *StreamLink) void {
        link.judge();
        link.intake.count();
        link.intake.arm(link.outlet.dueIn(link.intake.given));
        if (!link.broken) link.send();
        const outlet = &link.outlet;
        link.base.notes.store(.{
            .ready = link.peer_window > 0,
            .reads = !link.input_over,
            .writes = !link.broken and !outlet.isIdle(),
            .more = link.more,
            .given = outlet.isEmpty(),
            .done = link.isDone(),
        }, .monotonic);
    }

    fn send(link: *StreamLink) void {
        const outlet = &link.outlet;
        const wants = &outlet.ring.control.reader_wants;
        while (true) {
            const news: Outlet.News = .{
                .given = link.intake.given,
                .reason = State.load(link.peer.record).reason() orelse unknown_reason,
                .allowed_end = link.base.allowed_end.load(.monotonic),
            };
            const all = outlet.give(link.transport, news) catch {
                link.broken = true;
                link.since_ns = link.since_ns orelse link.port.host.now();
                return;
            };
            // Arms the word, so that a call that publishes calls this link, but only when there is
            // something new.
            const tail = outlet.ring.tail;
            if (!all or outlet.at != tail or outlet.hasEnded()) return;
            const position = (tail +% layout.frame_align) | layout.wants_armed;
            @atomicStore(u32, wants, position, .seq_cst);
            if (@atomicLoad(u32, &outlet.ring.control.tail, .seq_cst) == tail) return;
        }
    }

    /// Looks at what the calls of the port have done to its states: the port may have closed, or
    /// found a fault in a frame that it has read.
    fn judge(link: *StreamLink) void {
        if (link.verdict != .open) {
            if (link.port.closedHere()) link.linger();
            return;
        }
        switch (State.load(link.peer.record)) {
            .failed => { // [stream.fail]
                link.verdict = .failed;
                link.linger();
                link.outlet.fail();
            },
            else => if (link.port.closedHere()) {
                link.linger();
                link.outlet.close();
            },
        }
    }

    fn linger(link: *StreamLink) void {
        link.intake.drop();
        link.since_ns = link.since_ns orelse link.port.host.now();
    }
};
