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

test {
    _ = @import("revive_test.zig");
}
