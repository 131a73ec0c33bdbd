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

// Tests.
//
// Streams whose transport the test controls: which faults are found, and how a stream ends.
// Nothing here waits in real time.

const fixture = @import("fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Bench = fixture.Bench;
const Wire = fixture.Wire;

const own_preface = fixture.prefaceOf(128, 256);

/// What one frame after "hi" must lead to, and what this side then writes.
const Fault = struct { header: Header, fill: u8 = 0, reason: millrace.Reason };
const Header = @import("../ring/frame.zig").Header;

test "Stream: each fault of a frame that arrives marks the peer and is told" {
    const whole = layout.frame_flag_first | layout.frame_flag_last;
    const data = layout.frame_kind_data;
    const credit = layout.stream_kind_credit;
    const batch = layout.codec_json_batch;
    for ([_]Fault{
        .{ .header = .{ .size = 0, .kind = 0, .flags = whole }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = layout.frame_kind_pad }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = 19 }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = 127 }, .reason = .frame_kind },
        .{ .header = .{ .size = 0, .kind = credit, .reserved = 1 }, .reason = .frame_reserved },
        .{ .header = .{ .size = 0, .kind = credit, .flags = 2 }, .reason = .frame_flags },
        .{ .header = .{ .size = 1, .kind = credit }, .reason = .frame_size },
        .{ .header = .{ .size = 0, .kind = data, .flags = 4 }, .reason = .frame_flags },
        .{
            .header = .{ .size = 9, .kind = data, .flags = 1, .codec = batch },
            .reason = .frame_flags,
        },
        .{ .header = .{ .size = 113, .kind = data, .flags = whole }, .reason = .frame_size },
        .{ .header = .{ .size = 0xffff_ffff, .kind = 200 }, .reason = .frame_size },
        .{
            .header = .{ .size = 3, .kind = data, .flags = whole },
            .fill = 1,
            .reason = .frame_reserved,
        },
        .{ .header = .{ .size = 0, .kind = credit, .tag = 0xffff_ff08 }, .reason = .stream_credit },
        .{ .header = .{ .size = 0, .kind = credit, .tag = 0xffff_ff10 }, .reason = .stream_credit },
        .{ .header = .{ .size = 0, .kind = credit, .tag = 0xffff_fef0 }, .reason = .stream_credit },
    }) |fault| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var places: [2][64]u8 = undefined;
        var bytes: [32]u8 = @splat(0);
        var header: [16]u8 align(16) = undefined;
        fault.header.store(&header);
        bytes[0..16].* = header;
        bytes[16 + 8] = fault.fill;
        const size: usize = if (fault.header.size == 3) 32 else 16;
        bench.bring(128, 256, &.{ fixture.message(&places[0], "hi", 5), bytes[0..size] });
        var storage: [128]u8 = undefined;
        try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
        for (0..2) |_| {
            try testing.expectError(error.PeerFailed, port.tryRead(&storage));
            try testing.expectEqual(fault.reason, port.reason());
            try testing.expectError(error.PeerFailed, port.tryWrite("no", .{}));
        }
        const told = fixture.failOf(&places[1], fault.reason);
        try bench.expectSent(&.{ &own_preface, told });
        try testing.expect(bench.output.ended);
    }
}

test "Stream: each fault of a preface marks the peer and is told" {
    const Case = struct { at: usize, byte: u8, reason: millrace.Reason };
    for ([_]Case{
        .{ .at = 7, .byte = 0x0d, .reason = .stream_magic },
        .{ .at = 8, .byte = 2, .reason = .stream_version },
        .{ .at = 20, .byte = 1, .reason = .stream_feature },
        .{ .at = 12, .byte = 0x70, .reason = .stream_preface },
        .{ .at = 12, .byte = 0x88, .reason = .stream_preface },
        .{ .at = 16, .byte = 0x08, .reason = .stream_preface },
        .{ .at = 17, .byte = 0, .reason = .stream_preface },
        .{ .at = 19, .byte = 0x41, .reason = .stream_preface },
    }) |case| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var bytes = fixture.prefaceOf(128, 256);
        bytes[case.at] = case.byte;
        // The magic is checked as soon as its eight bytes have arrived.
        bench.input.putAll(if (case.reason == .stream_magic) bytes[0..8] else &bytes);
        var storage: [8]u8 = undefined;
        try testing.expectError(error.PeerFailed, port.tryRead(&storage));
        try testing.expectEqual(case.reason, port.reason());
        var place: [16]u8 = undefined;
        const told = fixture.failOf(&place, case.reason);
        try bench.expectSent(&.{ &own_preface, told });
    }
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var bytes = fixture.prefaceOf(128, 256);
    // Bytes that nobody checks.
    bytes[10] = 9;
    bytes[24] = 9;
    bytes[28] = 9;
    var place: [64]u8 = undefined;
    bench.input.putAll(&bytes);
    bench.input.putAll(fixture.message(&place, "hi", 5));
    var storage: [8]u8 = undefined;
    try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
}

test "Stream: the window is filled to its last byte, and not beyond" {
    const half: [112]u8 = @splat(1);
    for ([_]bool{ false, true }) |exceeds| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var places: [3][128]u8 = undefined;
        const message = fixture.message(&places[0], &half, 0);
        const last = if (exceeds)
            fixture.control(&places[1], 200, 0) // an extension frame, which nobody reads
        else
            fixture.control(&places[1], layout.frame_kind_end, 0);
        bench.bring(128, 256, &.{ message, message, last });
        var storage: [128]u8 = undefined;
        for (0..2) |_| _ = (try port.tryRead(&storage)).?;
        if (exceeds) {
            try testing.expectError(error.PeerFailed, port.tryRead(&storage));
            try testing.expectEqual(.stream_credit, port.reason());
        } else {
            try testing.expectEqual(null, try port.tryRead(&storage));
            try testing.expect(port.ended());
        }
    }
}

test "Stream: extension frames after `end` are given back, for ever" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var places: [2][128]u8 = undefined;
    const end = fixture.control(&places[0], layout.frame_kind_end, 0);
    bench.bring(128, 256, &.{ fixture.message(&places[1], "hi", 0), end });
    const header: Header = .{ .size = 100, .kind = 255, .flags = 9 };
    const extension = fixture.frameOf(&places[1], header, &@as([100]u8, @splat(7)));
    bench.input.putAll(extension);
    var storage: [128]u8 = undefined;
    try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
    for (0..20) |_| {
        bench.side.stream.pump();
        try testing.expectEqual(null, try port.tryRead(&storage));
        bench.side.stream.pump();
        bench.input.putAll(extension);
    }
    try testing.expect(port.ended());
    try testing.expect(bench.output.size > 5 * 16);
    bench.input.putAll(end);
    bench.side.stream.pump();
    var place: [16]u8 = undefined;
    const told = fixture.failOf(&place, .frame_sequence);
    try testing.expectEqualSlices(u8, told, bench.output.held()[bench.output.size - 16 ..]);
    // The stream has ended, as its reader was told.
    try testing.expectEqual(null, try port.tryRead(&storage));
}

test "Stream: a fault that shows when a frame is read is told as well" {
    var bench: Bench = undefined;
    const port = try bench.open(fixture.small);
    var places: [2][64]u8 = undefined;
    const first: Header = .{ .size = 20, .kind = 1, .flags = 1 };
    var payload: [20]u8 = @splat(0);
    payload[0] = 5;
    payload[8] = 1; // reserved bytes of the preamble
    bench.bring(128, 256, &.{fixture.frameOf(&places[0], first, &payload)});
    var storage: [64]u8 = undefined;
    try testing.expectError(error.Corrupt, port.tryRead(&storage));
    try testing.expect(bench.output.ended);
    const told = fixture.failOf(&places[1], .frame_reserved);
    try bench.expectSent(&.{ &own_preface, told });
    try testing.expect(bench.output.ended);
    try testing.expectError(error.Corrupt, port.tryRead(&storage));
}

test "Stream: what came before a `close`, a `fail` or the end of the bytes is read first" {
    const Case = struct { kind: ?u8, tag: u32 = 0, end: anyerror, reason: ?u32 };
    const close, const fail = .{ layout.stream_kind_close, layout.stream_kind_fail };
    const lost = @backingInt(millrace.Reason.peer_lost);
    for ([_]Case{
        .{ .kind = close, .tag = 9, .end = error.PeerClosed, .reason = null },
        .{ .kind = fail, .tag = 33, .end = error.PipeFailed, .reason = 33 },
        .{ .kind = fail, .tag = 0xff_fff0, .end = error.PipeFailed, .reason = 0xff_fff0 },
        // No reason code has more than 24 bits.
        .{ .kind = fail, .tag = 0x100_0001, .end = error.PipeFailed, .reason = null },
        .{ .kind = null, .end = error.PeerFailed, .reason = lost },
    }) |case| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        var places: [2][64]u8 = undefined;
        bench.bring(128, 256, &.{fixture.message(&places[0], "hi", 5)});
        if (case.kind) |kind| {
            bench.input.putAll(fixture.control(&places[1], kind, case.tag));
            bench.input.putAll("whatever stands behind it");
        } else {
            bench.input.putAll(fixture.message(&places[1], "cut", 5)[0..31]);
            bench.input.ended = true;
        }
        for (0..2) |_| bench.side.stream.pump();
        try testing.expectError(case.end, port.tryWrite("no", .{}));
        var storage: [64]u8 = undefined;
        try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
        for (0..2) |_| {
            try testing.expectError(case.end, port.tryRead(&storage));
            const found = if (port.reason()) |reason| @backingInt(reason) else null;
            try testing.expectEqual(case.reason, found);
        }
        try testing.expect(bench.output.ended);
        try bench.expectSent(&.{&own_preface});
        try testing.expect(!port.vacate());
        // There is nobody left to wait for.
        try testing.expect(bench.side.stream.finish(.none));
    }
}

test "Stream: whoever has closed goes on for 2 s, or until the peer has ended" {
    for ([_]bool{ false, true }) |ends| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.bring(128, 256, &.{});
        const half: [112]u8 = @splat(1);
        for (0..2) |_| try testing.expect(try port.tryWrite(&half, .{}));
        bench.output.capacity = 0;
        port.close();
        var places: [2][128]u8 = undefined;
        const message = fixture.message(&places[0], &half, 0);
        // What arrives is dropped, and what is left to send goes out.
        bench.input.putAll(message);
        try testing.expect(!bench.side.stream.finish(.ms(1000)));
        bench.output.capacity = Wire.wire_size;
        const close = fixture.control(&places[1], layout.stream_kind_close, 0);
        try testing.expect(!bench.side.stream.finish(.none));
        bench.side.stream.pump();
        const last = bench.output.held()[bench.output.size - 144 ..];
        try testing.expectEqualSlices(u8, message, last[0..128]);
        try testing.expectEqualSlices(u8, close, last[128..]);
        try testing.expect(bench.output.ended);
        const before_ns = fixture.now();
        bench.input.ended = ends;
        bench.side.stream.deinit();
        try testing.expect(bench.side.closed);
        const waited_ns = fixture.now() - before_ns;
        try testing.expect(waited_ns >= @as(u64, if (ends) 0 else 990_000_000));
        try testing.expect(waited_ns <= @as(u64, if (ends) 0 else 1_100_000_000));
    }
}

test "Stream: a close comes after what was accepted for credit that comes later" {
    var bench: Bench = undefined;
    const port = try bench.open(.{ .largest = 128, .window = 256, .queue = 1024 });
    bench.bring(128, 128, &.{});
    const many: [120]u8 = @splat(3);
    try testing.expect(try port.tryWrite(&many, .{}));
    port.close();
    bench.output.size = 0;
    bench.side.stream.pump();
    try testing.expectEqual(0, bench.output.size);
    var place: [16]u8 = undefined;
    bench.input.putAll(fixture.control(&place, layout.stream_kind_credit, 0xffff_ff80));
    bench.side.stream.pump();
    try testing.expect(bench.output.ended);
    const close = fixture.control(&place, layout.stream_kind_close, 0);
    try testing.expectEqualSlices(u8, close, bench.output.held()[bench.output.size - 16 ..]);
    try testing.expect(bench.output.size > 16);
}

test "Stream: whoever cannot write any more reads on, and takes what it finds" {
    const Case = enum { closes, silent, ends };
    for ([_]Case{ .closes, .silent, .ends }) |case| {
        var bench: Bench = undefined;
        const port = try bench.open(fixture.small);
        bench.bring(128, 256, &.{});
        bench.output.broken = true;
        try testing.expect(try port.tryWrite("lost", .{}));
        var places: [2][64]u8 = undefined;
        bench.input.putAll(fixture.message(&places[0], "hi", 5));
        var storage: [64]u8 = undefined;
        try testing.expectEqualStrings("hi", (try port.tryRead(&storage)).?.payload);
        switch (case) {
            .closes => bench.input.putAll(fixture.control(&places[1], layout.stream_kind_close, 0)),
            .silent => {},
            .ends => bench.input.ended = true,
        }
        const before_ns = fixture.now();
        const found = port.read(&storage, .ms(10_000));
        const waited_ns = fixture.now() - before_ns;
        if (case == .closes) {
            try testing.expectError(error.PeerClosed, found);
        } else {
            try testing.expectError(error.PeerFailed, found);
            try testing.expectEqual(.peer_lost, port.reason());
        }
        try testing.expect(waited_ns >= @as(u64, if (case == .silent) 2_000_000_000 else 0));
        try testing.expect(waited_ns <= @as(u64, if (case == .silent) 2_100_000_000 else 0));
        try testing.expect(bench.side.stream.finish(.none));
    }
}
