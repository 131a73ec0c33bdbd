//! Vacating the endpoint of a dead peer, so that its next owner can attach: the rings between the
//! two endpoints start again [spec/segment.md, "An endpoint that comes back"].
//!
//! Invariant: everything that forbids it is checked before anything is stored. The state is stored
//! last, after every word that the next owner relies on.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const segment_record = @import("../wait/state.zig");
const wait = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Endpoint = wait.Endpoint;
const Peer = wait.Peer;
const Reader = pipe.Reader;
const Record = segment_record.Record;
const SegmentFile = @import("../host/segment_file.zig").SegmentFile;
const State = segment_record.State;
const Writer = pipe.Writer;

/// Vacates the endpoint of a dead owner, so that another owner can attach to it. The readers and
/// writers must be all channels between it and this endpoint; they start again. Messages that the
/// dead owner has not read are dropped, and so are those that this end has finished and not
/// published. Messages for the next owner can be written at once. Never waits.
///
/// Returns false, and changes nothing, unless the peer has closed or was marked failed
/// [segment.vacate_peer], and this end has read all that it published: a read has returned null, or
/// failed with the error that ends the pipe [segment.vacate_read]. Also returns false if a frame is
/// lent; if the peer has other channels than these; if this endpoint is itself closed or failed;
/// always over a stream; and, in a file, while the peer's record is locked [segment.vacate_dead].
///
/// The caller must know that no thread will touch the segment as the owner of that endpoint any
/// more. Except in a file, nothing here can find that out.
///
/// Asserts that there is at least one channel, and that all lie between the same two endpoints.
pub fn vacate(readers: []const *Reader, writers: []const *Writer) bool {
    const endpoint, const peer = ends(readers, writers);
    if (endpoint.linked() != null) return false; // who comes back opens a new stream
    if (endpoint.state() != .attached) return false;
    if (!coversAll(peer, readers, writers)) return false;
    const word = @atomicLoad(u32, &peer.record.state, .seq_cst);
    switch (State.of(word)) {
        .closed, .failed => {},
        .vacant, .attached, .invalid => return false,
    }
    if (isAlive(endpoint, peer)) return false;
    const generation = @atomicLoad(u32, &peer.record.generation, .seq_cst);
    if (generation == std.math.maxInt(u32)) return false;
    // After the load of the state: the owner's last words count [segment.vacate_read].
    for (readers) |reader| if (!reader.allTaken()) return false;
    // [segment.vacate_words]
    for (readers) |reader| reader.beginAnew();
    for (writers) |writer| writer.beginAnew();
    const given = giveBack(peer.record, word, generation);
    const seen: State = if (given) .vacant else .invalid;
    for (readers) |reader| reader.ring.peer.seen = seen;
    for (writers) |writer| writer.ring.peer.seen = seen;
    endpoint.ringAll(peer.index, &peer.peers);
    return given;
}

fn ends(readers: []const *Reader, writers: []const *Writer) struct { *Endpoint, *const Peer } {
    const endpoint, const peer = if (readers.len > 0)
        .{ readers[0].ring.endpoint, &readers[0].ring.peer }
    else
        .{ writers[0].ring.endpoint, &writers[0].ring.peer };
    for (readers) |reader| {
        assert(reader.ring.endpoint == endpoint);
        assert(reader.ring.peer.record == peer.record);
    }
    for (writers) |writer| {
        assert(writer.ring.endpoint == endpoint);
        assert(writer.ring.peer.record == peer.record);
    }
    return .{ endpoint, peer };
}

/// Whether these are all channels that name the peer [segment.vacate_peer].
fn coversAll(peer: *const Peer, readers: []const *Reader, writers: []const *Writer) bool {
    const ring_count = peer.ring_count orelse return false;
    for (readers, 0..) |reader, index| {
        for (readers[0..index]) |other| if (other.ring.control == reader.ring.control) return false;
    }
    for (writers, 0..) |writer, index| {
        for (writers[0..index]) |other| if (other.ring.control == writer.ring.control) return false;
    }
    return readers.len + writers.len == ring_count;
}

/// Whether the peer's record says that its owner may still be there [segment.vacate_dead].
fn isAlive(endpoint: *const Endpoint, peer: *const Peer) bool {
    if (!SegmentFile.supported) return false;
    const file = endpoint.file orelse return false;
    return !file.lost(peer.index);
}

/// Prepares the record for the next owner [segment.vacate_words] [segment.vacate_state]. Returns
/// false if the state changed meanwhile, which a final state must not do.
fn giveBack(record: *Record, word: u32, generation: u32) bool {
    for ([_]*u32{ &record.wakes, &record.agent, &record.features }) |own| {
        @atomicStore(u32, own, 0, .seq_cst);
    }
    const next = generation + 1;
    @atomicStore(u32, &record.generation, next, .seq_cst);
    const vacant = segment_record.wordOf(layout.endpoint_state_vacant, @truncate(next));
    return @cmpxchgStrong(u32, &record.state, word, vacant, .seq_cst, .seq_cst) == null;
}

// Tests.
//
// Vacating endpoints: when it is allowed, what it stores, and how both sides go on.

const millrace = @import("../root.zig");
const file_fixture = @import("../host/fixture.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;
const Port = millrace.Port;
const Segment = millrace.Segment;

const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };

/// A port with both ends on one thread. Must not move after it was initialized.
const Duo = struct {
    memory: [4096]u8 align(128),
    storage: [2]millrace.Channel,
    segment: Segment,
    ports: [2]Port,
    inbox: [512]u8 align(16),
    kept: [512]u8,

    fn init(duo: *Duo) !void {
        const starts: [2]u32 = .{ 0, 0xffff_ff80 };
        try Port.format(&duo.memory, .{ .capacities = .{ 256, 256 }, .starts = starts });
        duo.segment = try .attach(&duo.memory, &duo.storage, .none);
        try duo.ports[0].init(&duo.segment, 0, .{ .endpoint = options });
        const all: Port.Options = .{ .endpoint = options, .inbox = &duo.inbox };
        try duo.ports[1].init(&duo.segment, 1, all);
    }

    /// Attaches the next owner of endpoint 0.
    fn attachNext(duo: *Duo) !void {
        try duo.ports[0].init(&duo.segment, 0, .{ .endpoint = options });
    }

    fn expectRead(duo: *Duo, index: usize, expected: ?[]const u8) !void {
        const found = try duo.ports[index].tryRead(&duo.kept);
        if (expected) |text| {
            try testing.expectEqualStrings(text, (found orelse return error.Nothing).payload);
        } else try testing.expectEqual(null, found);
    }

    fn expectClosed(duo: *Duo) !void {
        try testing.expectError(error.PeerClosed, duo.ports[1].tryRead(&duo.kept));
    }

    fn record(duo: *Duo) *segment_record.Record {
        return duo.segment.record(0);
    }
};

test "vacate: what the dead one wrote is read first, and the next one gets what is written for it" {
    var duo: Duo = undefined;
    try duo.init();
    const survivor = &duo.ports[1];
    for (0..5) |generation| {
        // Both rings wrap around, in the middle of a message, and one of them is full.
        while (try duo.ports[0].tryWrite("last words", .{})) {}
        while (try survivor.tryWrite("never read", .{})) {}
        try testing.expect(!survivor.vacate());
        duo.ports[0].close();
        duo.record().features = 8;
        try testing.expect(!survivor.vacate());
        while (true) duo.expectRead(1, "last words") catch |err| {
            try testing.expectEqual(error.PeerClosed, err);
            break;
        };
        try testing.expect(survivor.vacate());
        try testing.expect(!survivor.vacate());
        const next: u32 = @intCast(generation + 1);
        try testing.expectEqual(next, duo.record().generation);
        try testing.expectEqual(next << layout.reason_shift, duo.record().state);
        const record = duo.record();
        for ([_]u32{ record.wakes, record.agent, record.features }) |word| {
            try testing.expectEqual(0, word);
        }
        try survivor.write("welcome", .{}, .none);
        try duo.attachNext();
        try testing.expectEqual(next << layout.reason_shift | 1, duo.record().state);
        try duo.expectRead(0, "welcome");
        try duo.expectRead(0, null);
        try duo.ports[0].write("thanks", .{}, .none);
        try duo.expectRead(1, "thanks");
        try duo.expectRead(1, null);
    }
}

test "vacate: an owner that was replaced may not act, and nobody marks the next one for it" {
    var duo: Duo = undefined;
    try duo.init();
    const owner = duo.segment.ownerOf(0);
    duo.segment.fail(owner, .peer_terminated, &fixture.clockwork);
    try testing.expectError(error.PeerFailed, duo.ports[1].tryRead(&duo.kept));
    try testing.expect(duo.ports[1].vacate());
    var old = duo.ports[0].writer;
    var endpoint = duo.ports[0].endpoint;
    old.ring.endpoint = &endpoint;
    try testing.expectError(error.PipeFailed, old.write("late", .{}, .none));
    try duo.attachNext();
    try testing.expectError(error.PipeFailed, old.write("late", .{}, .none));
    const before = duo.record().state;
    endpoint.close();
    duo.segment.fail(owner, .peer_terminated, &fixture.clockwork);
    try testing.expectEqual(before, duo.record().state);
    try duo.expectRead(1, null);
}

test "vacate: a fault, an end, parts, an owed cancel and claims are the last owner's" {
    var duo: Duo = undefined;
    try duo.init();
    const survivor = &duo.ports[1];
    // Two frames of a message that has three.
    var large: [150]u8 = @splat('a');
    var send: @import("../pipe/ends.zig").Send = .init(&.{&large}, .{}, .forever);
    const Twice = struct {
        left: u32 = 1,
        pub fn waitForRoom(waiter: *@This(), _: u32, _: anytype) millrace.Endpoint.Outcome {
            waiter.left -= 1;
            return .timeout;
        }
    };
    _ = try duo.ports[0].tryWrite(large[0..100], .{});
    var waiter: Twice = .{};
    var deadline: millrace.host.Deadline = .init(.forever);
    const given_up = duo.ports[0].writer.writeWith(&send, &deadline, &waiter);
    try testing.expectError(error.Timeout, given_up);
    try duo.expectRead(1, large[0..100]);
    try duo.expectRead(1, null);
    try testing.expect(survivor.reader.partial());
    // The survivor gives up a message as well, and finishes another one.
    while (try survivor.tryWrite("", .{})) {}
    survivor.writer.owed = .{ .tag = 7 };
    try survivor.end();
    duo.ports[0].close();
    try duo.expectClosed();
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.reader.inProgress());
    try testing.expectEqual(null, survivor.writer.owed);
    _ = try survivor.claim(1, .none);
    survivor.finish(1, .{});
    _ = try survivor.claim(2, .none);
    try duo.attachNext();
    @atomicStore(u32, &survivor.reader.ring.control.tail, 3, .seq_cst);
    try testing.expectError(error.Corrupt, survivor.tryRead(&duo.kept));
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.writer.isClaimed());
    survivor.publish();
    try duo.attachNext();
    try duo.expectRead(0, null);
    try survivor.write("new", .{}, .none);
    try duo.expectRead(0, "new");
    try duo.ports[0].write("new", .{}, .none);
    try duo.expectRead(1, "new");
    // The end of the last owner's stream is not that of the next owner's.
    try duo.ports[0].end();
    duo.ports[0].close();
    try duo.expectRead(1, null);
    try testing.expect(survivor.ended());
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.ended());
}

test "vacate: what stands in the inbox is read, and a message that was begun there is not" {
    var duo: Duo = undefined;
    try duo.init();
    const survivor = &duo.ports[1];
    try duo.ports[0].write("one", .{}, .none);
    const ring = &duo.ports[0].writer.ring;
    const first = (try ring.claim(20)).?;
    @memset(first, 0);
    first[0] = 9;
    ring.finish(.{ .size = 20, .kind = 1, .flags = 1 });
    ring.publish();
    while (try survivor.tryWrite("full", .{})) {}
    try testing.expectError(error.Timeout, survivor.write("full", .{}, .ms(1)));
    try testing.expect(survivor.inbox.filling);
    duo.ports[0].close();
    try testing.expect(survivor.vacate());
    try testing.expect(!survivor.inbox.filling);
    try duo.attachNext();
    try duo.ports[0].write("two", .{}, .none);
    for ([_]?[]const u8{ "one", "two", null }) |expected| try duo.expectRead(1, expected);
}

test "vacate: refused while a frame is lent, and when this end has closed" {
    var duo: Duo = undefined;
    try duo.init();
    try duo.ports[0].write("one", .{}, .none);
    _ = (try duo.ports[1].peek(.none)).?;
    duo.ports[0].close();
    try testing.expect(!duo.ports[1].vacate());
    duo.ports[1].release();
    const before = duo.record().*;
    const generation = &duo.record().generation;
    generation.* = std.math.maxInt(u32);
    try testing.expect(!duo.ports[1].vacate());
    generation.* = 0;
    duo.ports[1].close();
    try testing.expect(!duo.ports[1].vacate());
    try testing.expectEqual(before.state, duo.record().state);
}

test "vacate: every ring of a client of a hub, and no endpoint that has another peer" {
    var memory: [8192]u8 align(128) = undefined;
    const unknown: layout.ChannelKind = @fromBackingInt(9);
    var channels = [_]millrace.Channel{
        .{ .writer = 1, .reader = 0, .data_size = 256 },
        .{ .writer = 1, .reader = 0, .data_size = 256 },
        .{ .writer = 0, .reader = 1, .data_size = 256 },
        .{ .writer = 2, .reader = 0, .data_size = 256 },
        .{ .kind = unknown, .writer = 2, .reader = 5, .data_size = 0, .control_size = 0 },
    };
    for ([_]u32{ 5, 1 }) |other| {
        channels[4].reader = other;
        try Segment.format(&memory, .{ .endpoint_count = 3, .channels = &channels });
        var storage: [channels.len]millrace.Channel = undefined;
        const segment: Segment = try .attach(&memory, &storage, .none);
        var endpoints: [3]millrace.Endpoint = undefined;
        for (&endpoints, 0..) |*end, index| end.* = try .attach(&segment, @intCast(index), options);
        var readers: [3]millrace.Reader = undefined;
        for (&readers, [_]u32{ 0, 1, 3 }) |*reader, channel| {
            reader.* = try .init(&endpoints[0], &segment, channel);
        }
        var writer: millrace.Writer = try .init(&endpoints[0], &segment, 2);
        for (endpoints[1..]) |*end| end.close();
        const both: []const *millrace.Reader = &.{ &readers[0], &readers[1] };
        try testing.expect(!millrace.vacate(both, &.{}));
        try testing.expect(!millrace.vacate(both[0..1], &.{&writer}));
        try testing.expect(!millrace.vacate(&.{ both[0], both[0] }, &.{&writer}));
        const alone = other == 5;
        try testing.expectEqual(alone, millrace.vacate(both, &.{&writer}));
        // A channel of another kind, whichever endpoints it leads to.
        try testing.expect(!millrace.vacate(&.{&readers[2]}, &.{}));
        if (alone) endpoints[1] = try .attach(&segment, 1, options);
    }
}

test "vacate: in a file not while the record is locked" {
    if (!millrace.SegmentFile.supported) return error.SkipZigTest;
    var directory: file_fixture.Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var sides: [2]file_fixture.End = undefined;
    for (&sides, 0..) |*end, index| try end.create(path, @intCast(index), .none);
    defer sides[1].close();
    var storage: [16]u8 = undefined;
    sides[0].port.close();
    try testing.expectError(error.PeerClosed, sides[1].port.tryRead(&storage));
    try testing.expect(!sides[1].port.vacate());
    sides[0].die();
    try testing.expect(sides[1].port.vacate());
    try sides[0].open(path, 0);
    defer sides[0].close();
    try sides[0].port.write("again", .{}, .none);
    try sides[1].expectMessage("again", .none);
}
