//! The reading end of a pipe: it checks frames and puts messages together [spec/pipe.md].
//!
//! Invariant: nothing of a frame is used before all its checks passed, and its room is not given
//! back before its last byte was copied, or the caller has released it.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const segment_file = @import("../memory/segment.zig");
const wait = @import("../wait/endpoint.zig");
const frame = @import("../ring/frame.zig");
const ring_file = @import("../ring/side.zig");
const pipe = @import("ends.zig");
const hot = ring_file.hot;
const assert = std.debug.assert;
const Bytes = ring_file.Bytes;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Lent = pipe.Lent;
const Message = pipe.Message;
const ReadError = pipe.ReadError;
const RingReader = ring_file.RingReader;
const Segment = segment_file.Segment;
const Timeout = host_file.Timeout;
const Wait = ring_file.Wait;

/// The reading end of a pipe.
///
/// Thread safety: belongs to the thread of its endpoint.
pub const Reader = struct {
    ring: RingReader,
    /// Whether messages of kind call, return and throw are delivered. If not, each costs
    /// `error.MessageKind` once [pipe.unknown_kind].
    calls: bool = false,
    /// The multipart message that is in progress.
    progress: ?frame.Progress = null,
    /// The storage that holds its parts; null while it is lent or dropped.
    parts: ?[]u8 = null,
    /// Whether the rest of it is dropped; its loss is reported already.
    dropping: bool = false,
    /// When the writer finished the first frame of the message that was read or lent last: the low
    /// 32 bits of the microseconds since the Unix epoch, or 0 if the frame does not say
    /// [frame.time]. Not a field of the message, because the compiler would then copy the message
    /// in pieces larger than those it is built from: 1.3 ns of the 21 that a write and a read take
    /// (measured, x86-64).
    time: u32 = 0,
    /// The extent of the frame that is lent; 0 if none is.
    lent: u32 = 0,
    ended_seen: bool = false,
    fault: ?layout.Reason = null,

    /// Returns the channel for `init`: the named one, or the first that endpoint `index` reads.
    /// Call it before `Endpoint.attach` [pipe.find] [pipe.find_none].
    pub fn find(
        segment: *const Segment,
        index: u32,
        named: ?u32,
    ) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
        return pipe.find(segment, index, named, .reader);
    }

    /// Asserts that the channel exists. `endpoint` must not move while the reader is used.
    pub fn init(
        endpoint: *Endpoint,
        segment: *const Segment,
        channel_index: u32,
    ) error{SegmentChannel}!Reader {
        const channel = segment.channels[channel_index];
        if (channel.kind != .ring) return error.SegmentChannel;
        if (channel.reader != endpoint.index) return error.SegmentChannel;
        return .{ .ring = .init(endpoint, segment, channel_index) };
    }

    /// Reads the next message into `storage`. Waits for it for as long as the timeout allows.
    /// Returns null if none came by the deadline, or if the stream has ended; `ended` tells which.
    ///
    /// A message larger than `storage` fails with `error.MessageSize` once and is dropped
    /// [pipe.limit]. If a call returns null, or fails with `error.WaitForbidden`, in the middle of
    /// a message, the first parts stay in `storage` [pipe.keep_parts]: while `partial()`, leave its
    /// bytes alone and pass the same storage again.
    ///
    /// Asserts that it is passed again, and that no frame is lent.
    pub fn read(reader: *Reader, storage: []u8, timeout: Timeout) ReadError!?Message {
        var patience: Patience = .init(timeout);
        while (true) {
            const found = try reader.readNow(storage, .drop, &patience.loaded);
            if (found) |message| return message;
            if (!try reader.awaitFrame(&patience)) return null;
        }
    }

    /// Reads the next message if it has arrived: `read` without waiting.
    pub fn tryRead(reader: *Reader, storage: []u8) ReadError!?Message {
        return reader.read(storage, .none);
    }

    /// Lends the next frame, a whole message or a chunk of one, where it lies. Returns null as
    /// `read` does. No limit applies, because nothing is stored. The room is not given back before
    /// `release`.
    ///
    /// The peer can change the bytes while they are lent: for trusted peers only [pipe.lend].
    ///
    /// Asserts that no frame is lent and that `read` is not in the middle of a message.
    pub fn peek(reader: *Reader, timeout: Timeout) ReadError!?Lent {
        var patience: Patience = .init(timeout);
        while (true) {
            const found = try reader.peekNow(&patience.loaded);
            if (found) |lent| return lent;
            if (!try reader.awaitFrame(&patience)) return null;
        }
    }

    /// Ends the lending of the frame, and gives its room back to the writer. If this end was closed
    /// meanwhile, nothing is given back, because a closed end stores nothing [pipe.close].
    ///
    /// Asserts that a frame is lent.
    pub fn release(reader: *Reader) void {
        assert(reader.lent > 0);
        if (!reader.ring.endpoint.closedHere()) reader.ring.release(reader.lent);
        reader.lent = 0;
    }

    /// Whether a frame is lent, so that nothing may be lent or read [pipe.lend_one]. False after
    /// the own close, which every call then reports.
    pub fn isLent(reader: *const Reader) bool {
        return reader.lent > 0 and !reader.ring.endpoint.closedHere();
    }

    /// Whether the writer has ended its stream, and everything before the end was read.
    pub fn ended(reader: *const Reader) bool {
        return reader.ended_seen;
    }

    /// Whether the storage of the last `read` holds parts of an unfinished message.
    pub fn partial(reader: *const Reader) bool {
        return reader.parts != null;
    }

    /// Returns the reason for the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed` of
    /// its endpoint: the number that was found, known or not, or null if there was none
    /// [pipe.failed_reason].
    pub fn reason(reader: *const Reader) ?layout.Reason {
        return reader.ring.endpoint.behind;
    }

    // The functions from here on are for ports.

    /// What to do with a message that is larger than the storage: drop it, or leave it in the ring.
    pub const Large = enum { drop, leave };

    /// Reads the next message if one load of the cursor shows it [ring.one_load]. `loaded` says
    /// whether the caller has made that load already.
    ///
    /// Keeps no more than the storage holds, whatever a preamble states [pipe.total_trust].
    pub fn readNow(
        reader: *Reader,
        storage: []u8,
        large: Large,
        loaded: *bool,
    ) callconv(hot) ReadError!?Message {
        if (reader.parts) |parts| {
            assert(parts.ptr == storage.ptr);
            assert(parts.len == storage.len);
        } else {
            // A message that `peek` has begun must be completed by `peek`.
            assert(reader.progress == null or reader.dropping);
        }
        var part: Part = undefined;
        while (try reader.nextPart(storage.len, large, loaded, &part)) {
            const end = part.offset + part.payload.len;
            assert(end <= storage.len);
            const offset: usize = @intCast(part.offset);
            ring_file.copyBytes(storage[offset..][0..part.payload.len], part.payload);
            reader.ring.release(part.extent);
            reader.parts = if (part.last) null else storage;
            if (part.last) return .{
                .payload = storage[0..@intCast(end)],
                .kind = @fromBackingInt(part.header.kind),
                .codec = @fromBackingInt(part.header.codec),
                .tag = part.header.tag,
            };
        }
        return null;
    }

    /// Lends the next frame if it has arrived. `loaded` says whether the one load of the cursor
    /// that this call may make was made [ring.one_load].
    pub fn peekNow(reader: *Reader, loaded: *bool) callconv(hot) ReadError!?Lent {
        assert(reader.parts == null);
        var part: Part = undefined;
        if (!try reader.nextPart(std.math.maxInt(u64), .drop, loaded, &part)) return null;
        reader.lent = part.extent;
        return .{
            .payload = part.payload,
            .kind = @fromBackingInt(part.header.kind),
            .codec = @fromBackingInt(part.header.codec),
            .tag = part.header.tag,
            .first = part.first,
            .last = part.last,
            .total = part.total,
        };
    }

    /// Leaves the frame that was just lent in the ring, as if it had never been lent.
    ///
    /// Asserts that it is the first frame of a message.
    pub fn leave(reader: *Reader, lent: Lent) void {
        assert(reader.lent > 0);
        assert(lent.first);
        reader.lent = 0;
        reader.progress = null;
    }

    /// Called if the message whose first frame is lent is above the limit of the caller, and
    /// dropped: its total is not compared any more [frame.check_total].
    pub fn uncount(reader: *Reader) void {
        if (reader.progress) |*message| message.uncounted = true;
    }

    /// Whether a message is in progress that `read` or `peek` has begun, so that its other parts
    /// must go to the same place.
    pub fn inProgress(reader: *const Reader) bool {
        return reader.progress != null and !reader.dropping;
    }

    /// Gives back the room of all released frames, if there are any [ring.release_all]. Stores
    /// nothing in a ring in which a fault was found [ring.fault], nor after the own close
    /// [pipe.close].
    pub fn flush(reader: *Reader) void {
        if (reader.fault == null and !reader.ring.endpoint.closedHere()) reader.ring.flush();
    }

    /// Whether all published frames were taken out of the ring, up to an end or a fault
    /// [segment.vacate_read]. Loads the cursor once more. A fault that this load finds counts, and
    /// is kept.
    pub fn allTaken(reader: *Reader) bool {
        if (reader.lent > 0) return false;
        if (reader.ended_seen or reader.fault != null) return true;
        const ring = &reader.ring;
        if (!ring.empty()) return false;
        ring.refresh() catch |err| return reader.faulted(err) == error.Corrupt;
        return ring.empty();
    }

    /// Starts again for the next owner of the writer's endpoint, which is being vacated
    /// [pipe.vacated].
    pub fn beginAnew(reader: *Reader) void {
        assert(reader.lent == 0);
        _ = reader.drop();
        reader.ended_seen = false;
        reader.fault = null;
        reader.ring.beginAnew();
    }

    /// What a call that waits for a message keeps between two looks at the ring.
    pub const Patience = struct {
        deadline: Deadline,
        /// Whether the one load of the cursor that the next look may make was made.
        loaded: bool = false,
        /// Whether a final state was seen, so that this look is the last.
        last: bool = false,
        /// The error to report after that look, if the final state is the own one.
        own: ?pipe.OwnError = null,

        pub fn init(timeout: Timeout) Patience {
            return .{ .deadline = .init(timeout) };
        }
    };

    /// Called after a look that found the ring empty. Reports what ends the reading [pipe.drain],
    /// or waits. Returns false if the call ends without a message.
    fn awaitFrame(reader: *Reader, patience: *Patience) ReadError!bool {
        const endpoint = reader.ring.endpoint;
        switch (try reader.beforeWait(patience)) {
            .over => return false,
            .again => return true,
            .wait => {},
        }
        reader.flush();
        const condition: Wait = .{ .endpoint = endpoint, .reader = &reader.ring };
        switch (endpoint.wait(&condition, &patience.deadline)) {
            .found => {},
            .timeout => return false,
            .forbidden => return error.WaitForbidden,
        }
        patience.loaded = false;
        return true;
    }

    /// What a call does next after it has found the ring empty: it ends without a message, looks
    /// once more, or waits.
    pub const Next = enum { over, again, wait };

    /// Decides which of these comes next, or reports what ends the reading [pipe.drain].
    pub inline fn beforeWait(reader: *Reader, patience: *Patience) ReadError!Next {
        const endpoint = reader.ring.endpoint;
        if (reader.ended_seen) { // [pipe.end_once]
            // A reader that has seen the end still has to learn what becomes of the peer.
            if (endpoint.linked()) |link| link.pump();
            return .over;
        }
        if (patience.last) {
            if (patience.own) |err| return reader.gone(err);
            const peer = &reader.ring.peer;
            pipe.checkPeer(endpoint, peer) catch |err| return reader.gone(err);
            unreachable; // a final state that was seen does not change
        }
        pipe.checkOwn(endpoint) catch |err| {
            if (endpoint.closedHere()) return reader.gone(err);
            patience.own = err;
        };
        if (patience.own != null or reader.ring.peer.state().final()) {
            // [pipe.look_again] The peer may have published between the look at its cursor and the
            // look at the states. So the cursor is loaded once more. What that shows comes first,
            // and then the state: the own one, or else the peer's.
            reader.ring.refresh() catch |err| return reader.faulted(err);
            patience.last = true;
            patience.loaded = true;
            return .again;
        }
        // Before the cursor is loaded again: a flood of pads must not keep the call beyond its
        // deadline.
        return if (patience.deadline.over(endpoint.host)) .over else .wait;
    }

    const Part = struct {
        header: frame.Header,
        extent: u32,
        /// The content, without header extension and preamble.
        payload: Bytes,
        /// The offset of the payload in its message.
        offset: u64,
        /// Bytes of the message; `frame.total_unknown` if its writer did not know them.
        total: u64,
        first: bool,
        last: bool,
    };

    /// Finds the next part of a message that is not dropped, and leaves its frame in the ring.
    fn nextPart(
        reader: *Reader,
        limit: u64,
        large: Large,
        loaded: *bool,
        part: *Part,
    ) callconv(hot) ReadError!bool {
        // [pipe.first_answer]
        const endpoint = reader.ring.endpoint;
        if (endpoint.closedHere()) return reader.gone(endpoint.whyClosed());
        assert(reader.lent == 0); // [pipe.lend_one]
        if (reader.fault != null) return reader.corrupt();
        return reader.nextPartUnchecked(limit, large, loaded, part) catch |err| switch (err) {
            error.MessageCancelled,
            error.MessageTruncated,
            error.MessageSize,
            error.MessageKind,
            => |costly| return costly,
            else => |fault| return reader.faulted(fault),
        };
    }

    const Fault = frame.Error || ring_file.Error;
    const MessageError = error{ MessageCancelled, MessageTruncated, MessageSize, MessageKind };

    fn nextPartUnchecked(
        reader: *Reader,
        limit: u64,
        large: Large,
        loaded: *bool,
        part: *Part,
    ) callconv(hot) (Fault || MessageError)!bool {
        const ring = &reader.ring;
        while (!reader.ended_seen) { // [frame.after_end]
            if (ring.empty()) {
                if (loaded.*) return false;
                loaded.* = true;
                try ring.refresh();
                if (ring.empty()) return false;
            }
            const header = ring.header();
            const progress = if (reader.progress) |*message| message else null;
            const place = ring.framePlace();
            const whole = if (progress == null) frame.wholeExtent(header, place) else null;
            const checked: frame.Checked = if (whole) |extent|
                .{ .class = .whole, .extent = extent }
            else
                try frame.check(header, place, progress);
            if (checked.class == .whole) {
                @branchHint(.likely);
                if (reader.strange(header)) {
                    ring.release(checked.extent);
                    return error.MessageKind;
                }
                reader.time = header.time;
                const size = checked.contentSize(header);
                if (size > limit) {
                    if (large == .leave) return false;
                    ring.release(checked.extent);
                    return error.MessageSize;
                }
                part.* = .{
                    .header = header,
                    .extent = checked.extent,
                    .payload = content(ring, header, checked),
                    .offset = 0,
                    .total = size,
                    .first = true,
                    .last = true,
                };
                return true;
            }
            // Not `part` itself: what is passed by pointer to a function that is not inlined cannot
            // stay in registers.
            var far: Part = undefined;
            const step = @call(apart, chunk, .{ reader, header, checked, limit, large, &far });
            switch (try step) {
                .part => {
                    part.* = far;
                    return true;
                },
                .done => {},
                .left => return false,
            }
        }
        return false;
    }

    /// Whether the message is of a kind that this reader does not offer [pipe.unknown_kind].
    inline fn strange(reader: *const Reader, header: frame.Header) bool {
        return header.kind != layout.frame_kind_data and !reader.calls;
    }

    /// Returns the payload of the next frame, without its header extension.
    inline fn content(
        ring: *const RingReader,
        header: frame.Header,
        checked: frame.Checked,
    ) Bytes {
        return @alignCast(ring.payload(header.size)[checked.extension_size..]);
    }

    const Step = enum { part, done, left };

    /// Kept off the path of nearly every message; but where size counts, inlined into its only
    /// caller.
    const apart: std.builtin.CallModifier = if (builtin.mode == .small) .auto else .never_inline;

    /// Handles every frame that is not a whole message.
    fn chunk(
        reader: *Reader,
        header: frame.Header,
        checked: frame.Checked,
        limit: u64,
        large: Large,
        part: *Part,
    ) (Fault || MessageError)!Step {
        const ring = &reader.ring;
        var payload: Bytes = undefined;
        var offset: u64 = 0;
        switch (checked.class) {
            .whole => unreachable,
            .skip => {
                ring.release(checked.extent);
                return .done;
            },
            .end => {
                ring.release(checked.extent);
                reader.ended_seen = true;
                if (reader.drop()) return error.MessageTruncated; // [pipe.truncated]
                return .done;
            },
            .cancel => {
                ring.release(checked.extent);
                if (reader.drop()) return error.MessageCancelled; // [pipe.cancelled]
                return .done;
            },
            .first => {
                const bytes = content(ring, header, checked);
                const preamble: frame.Preamble = .load(bytes[0..layout.message_preamble_size]);
                const begun = try frame.begin(header, checked.contentSize(header), preamble);
                const is_strange = reader.strange(header);
                const is_large = isLarge(begun, limit);
                // A message of unknown size is left as well, because only its end shows whether it
                // fits.
                const is_left = large == .leave and begun.total > limit;
                if (is_left and !is_strange) return .left;
                reader.progress = begun;
                if (is_strange or is_large) {
                    reader.dropFrom(checked);
                    return if (is_strange) error.MessageKind else error.MessageSize;
                }
                payload = @alignCast(bytes[layout.message_preamble_size..]);
            },
            .middle, .last => {
                const message = &reader.progress.?;
                offset = message.received;
                payload = content(ring, header, checked);
                try frame.advance(message, @intCast(payload.len), checked.class);
                if (!reader.dropping and isLarge(message.*, limit)) {
                    reader.dropFrom(checked);
                    return error.MessageSize;
                }
                if (reader.dropping) {
                    ring.release(checked.extent);
                    if (checked.class == .last) _ = reader.drop();
                    return .done;
                }
            },
        }
        part.* = reader.makePart(header, checked, payload, offset);
        return .part;
    }

    /// Whether a message is above the limit. If its total is not known, the bytes received so far
    /// count [pipe.limit] [pipe.limit_unknown].
    fn isLarge(message: frame.Progress, limit: u64) bool {
        const known = message.total != frame.total_unknown;
        return (if (known) message.total else message.received) > limit;
    }

    /// Drops the message in progress from this frame on. The caller reports that now
    /// [frame.check_total]. If this is the last frame, nothing is left to drop.
    fn dropFrom(reader: *Reader, checked: frame.Checked) void {
        reader.ring.release(checked.extent);
        reader.parts = null;
        reader.progress.?.uncounted = true;
        reader.dropping = true;
        if (checked.class == .last) _ = reader.drop();
    }

    fn makePart(
        reader: *Reader,
        header: frame.Header,
        checked: frame.Checked,
        payload: Bytes,
        offset: u64,
    ) Part {
        const total = reader.progress.?.total;
        reader.time = reader.progress.?.time;
        const is_last = checked.class == .last;
        if (is_last) reader.progress = null;
        return .{
            .header = header,
            .extent = checked.extent,
            .payload = payload,
            .offset = offset,
            .total = total,
            .first = checked.class == .first,
            .last = is_last,
        };
    }

    /// Forgets the message in progress. Returns whether there was one whose loss is not reported
    /// yet [pipe.report_once].
    fn drop(reader: *Reader) bool {
        const report = reader.progress != null and !reader.dropping;
        reader.progress = null;
        reader.parts = null;
        reader.dropping = false;
        return report;
    }

    /// Drops the parts of the message in progress, because this end or the peer is gone, which the
    /// caller reports now [pipe.keep_parts] [pipe.close]. The storage is the caller's again. If the
    /// rest of the message still comes, it is checked and skipped.
    fn gone(reader: *Reader, err: anytype) @TypeOf(err) {
        reader.dropping = reader.progress != null;
        reader.parts = null;
        return err;
    }

    /// [ring.fault]
    fn faulted(reader: *Reader, err: Fault) error{Corrupt} {
        _ = reader.drop();
        reader.fault = pipe.fault(reader.ring.endpoint, &reader.ring.peer, err);
        return reader.corrupt();
    }

    /// [pipe.fault]
    fn corrupt(reader: *Reader) error{Corrupt} {
        reader.ring.endpoint.behind = reader.fault.?;
        return error.Corrupt;
    }
};

// Tests.
//
// What a call reports if several facts hold at once, which reason it states for a failure, and
// what a stopped pipe leaves unchanged.

const fixture = @import("../testing/fixture.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const Pair = fixture.Pair;

/// Bit n of `mask` says whether fact n holds.
fn holds(mask: u32, comptime Fact: type, fact: Fact) bool {
    return mask >> @backingInt(fact) & 1 != 0;
}

test "a call to write or to end answers by the first row that holds [pipe.first_answer]" {
    const Fact = enum(u5) {
        closed,
        fault,
        ended,
        own_closed,
        own_failed,
        peer_closed,
        peer_failed,
    };
    for (0..1 << 7) |number| {
        const mask: u32 = @intCast(number);
        var pair: Pair = undefined;
        try pair.init(256, 0);
        if (holds(mask, Fact, .ended)) try pair.writer.end();
        if (holds(mask, Fact, .fault)) pair.writer.fault = .ring_cursor;
        // Of two final states of one endpoint, the first one stays.
        if (holds(mask, Fact, .own_closed)) pair.segment.record(0).state = 2;
        if (holds(mask, Fact, .own_failed)) pair.fail(0, .peer_lost);
        if (holds(mask, Fact, .peer_closed)) pair.endpoints[1].close();
        if (holds(mask, Fact, .peer_failed)) pair.fail(1, .peer_lost);
        if (holds(mask, Fact, .closed)) pair.endpoints[0].close();
        const answers = [_]anyerror{
            error.PipeClosed, error.Corrupt,    error.PipeEnded,  error.PipeClosed,
            error.PipeFailed, error.PeerClosed, error.PeerFailed,
        };
        const expected: ?anyerror = if (mask == 0) null else answers[@ctz(mask)];
        const tail = pair.writer.ring.control.tail;
        if (expected) |answer| {
            try testing.expectError(answer, pair.writer.write("x", .{}, .ms(1)));
            try testing.expectError(answer, pair.writer.tryWrite("x", .{}));
            try testing.expectError(answer, pair.writer.writeMany(&.{"x"}, .{}, .none));
            try testing.expectError(answer, pair.writer.writeParts(&.{"x"}, .{}, .none));
            try testing.expectError(answer, pair.writer.claim(1, .none));
            try testing.expectEqual(tail, pair.writer.ring.control.tail);
        } else try pair.writer.write("x", .{}, .ms(1));
        // A second end does nothing, whatever has happened since. Nor does a first one if either
        // state is final, after which this end has ended its stream [pipe.end_closed].
        const final = mask != 0 and switch (@as(Fact, @fromBackingInt(@intCast(@ctz(mask))))) {
            .own_closed, .own_failed, .peer_closed, .peer_failed => true,
            .closed, .fault, .ended => false,
        };
        if (expected == null or final or holds(mask, Fact, .ended)) {
            for (0..2) |_| try pair.writer.end();
        } else try testing.expectError(expected.?, pair.writer.end());
        if (!final) continue;
        try testing.expectEqual(tail, pair.writer.ring.control.tail);
        try testing.expectError(error.PipeEnded, pair.writer.write("x", .{}, .ms(1)));
    }
}

test "a call to read answers by the first row that holds [pipe.first_answer]" {
    const Fact = enum(u5) { closed, fault, ended, message, own_closed, own_failed, peer_failed };
    for (0..1 << 7) |number| {
        const mask: u32 = @intCast(number);
        var pair: Pair = undefined;
        try pair.init(256, 0);
        if (holds(mask, Fact, .ended)) {
            try pair.writer.end();
            try pair.expectNothing();
        }
        if (holds(mask, Fact, .message)) pair.put(.{ .size = 0, .kind = 1, .flags = 3 }, "");
        if (holds(mask, Fact, .fault)) pair.reader.fault = .frame_kind;
        if (holds(mask, Fact, .own_closed)) pair.segment.record(1).state = 2;
        if (holds(mask, Fact, .own_failed)) pair.fail(1, .peer_lost);
        if (holds(mask, Fact, .peer_failed)) pair.fail(0, .peer_lost);
        if (holds(mask, Fact, .closed)) pair.endpoints[1].close();
        const answers = [_]?anyerror{
            error.PipeClosed, error.Corrupt,    null,             null,
            error.PipeClosed, error.PipeFailed, error.PeerFailed,
        };
        var storage: [16]u8 = undefined;
        const found = pair.reader.read(&storage, .ms(1));
        if (mask == 0 or answers[@ctz(mask)] == null) {
            const is_message = mask != 0 and @ctz(mask) == @backingInt(Fact.message);
            try testing.expectEqual(is_message, try found != null);
        } else {
            try testing.expectError(answers[@ctz(mask)].?, found);
        }
        try testing.expectEqual(holds(mask, Fact, .ended), pair.reader.ended());
    }
}

test "what an inbox holds comes before a fault in the ring, and after an own close" {
    for ([_]bool{ false, true }) |closed| {
        var memory: [4096]u8 align(128) = @splat(0);
        var inbox: [64]u8 align(16) = undefined;
        const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
        const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
        var a: millrace.Port = undefined;
        var b: millrace.Port = undefined;
        try a.create(&memory, rings, 0, .{ .endpoint = endpoint, .inbox = &inbox });
        try b.create(&memory, rings, 1, .{ .endpoint = endpoint });
        try b.write("one", .{}, .none);
        _ = (try b.writer.ring.claim(0)).?;
        b.writer.ring.finish(.{ .size = 0, .kind = 1, .flags = 7 });
        b.publish();
        while (try a.tryWrite("full", .{})) {}
        // [port.inbox_fault]
        try testing.expectError(error.PeerFailed, a.write("full", .{}, .ms(1)));
        try testing.expectEqual(.frame_flags, a.reason().?);
        if (closed) a.close();
        var storage: [16]u8 = undefined;
        if (!closed) try testing.expectEqualStrings("one", (try a.tryRead(&storage)).?.payload);
        const expected: millrace.ReadError = if (closed) error.PipeClosed else error.Corrupt;
        for (0..2) |_| try testing.expectError(expected, a.tryRead(&storage));
        const writes: millrace.WriteError = if (closed) error.PipeClosed else error.PeerFailed;
        try testing.expectError(writes, a.write("full", .{}, .ms(1)));
    }
}

/// On this machine, an extension frame is published whenever room is given back.
const Flood = struct {
    var pair: Pair = undefined;
    var host = fixture.clockwork;

    fn notify(_: *const u32) void {
        pair.put(.{ .size = 0, .kind = 255 }, "");
        arm();
    }

    fn arm() void {
        const control = pair.reader.ring.control;
        @atomicStore(u32, &control.writer_wants, pair.reader.ring.head | 1, .seq_cst);
    }
};

test "a final state is reported after one more look, whatever goes on [pipe.look_again]" {
    Flood.host.notify = Flood.notify;
    for ([_]millrace.Timeout{ .none, .ms(5), .forever }) |timeout| for (0..2) |index| {
        try Flood.pair.init(256, 0);
        // The peer's state, or the own one, as a supervisor changes it.
        Flood.pair.segment.record(@intCast(index)).state = layout.endpoint_state_closed;
        Flood.pair.endpoints[1].host = &Flood.host;
        Flood.pair.put(.{ .size = 0, .kind = 255 }, "");
        Flood.arm();
        var storage: [16]u8 = undefined;
        const expected: millrace.ReadError = if (index == 0) error.PeerClosed else error.PipeClosed;
        try testing.expectError(expected, Flood.pair.reader.read(&storage, timeout));
        // Two loads, each of which showed one frame.
        try testing.expectEqual(2 * 16, Flood.pair.reader.ring.tail);
    };
}

test "what a failure has for a reason is handed out as it stands [pipe.failed_reason]" {
    const Case = struct { word: u32, own: ?u32, peer: ?u32 };
    for ([_]Case{
        .{ .word = 67 << 8 | 3, .own = 67, .peer = 67 },
        .{ .word = 0x12_3456 << 8 | 3, .own = 0x12_3456, .peer = 0x12_3456 },
        .{ .word = 3, .own = null, .peer = null },
        .{ .word = 67 << 8 | 4, .own = null, .peer = 10 },
    }) |case| {
        for (0..2) |index| {
            var pair: Pair = undefined;
            try pair.init(256, 0);
            pair.segment.record(@intCast(index)).state = case.word;
            const own = [_]bool{ index == 0, index == 1 };
            const failed = [_]anyerror{ error.PeerFailed, error.PipeFailed };
            const reasons = [_]?u32{ case.peer, case.own };
            const writer_fails = failed[@intFromBool(own[0])];
            try testing.expectError(writer_fails, pair.writer.write("x", .{}, .none));
            try expectReason(reasons[@intFromBool(own[0])], pair.writer.reason());
            var storage: [16]u8 = undefined;
            const reader_fails = failed[@intFromBool(own[1])];
            try testing.expectError(reader_fails, pair.reader.tryRead(&storage));
            try expectReason(reasons[@intFromBool(own[1])], pair.reader.reason());
        }
    }
}

fn expectReason(expected: ?u32, found: ?millrace.Reason) !void {
    try testing.expectEqual(expected, if (found) |reason| @backingInt(reason) else null);
}

test "the upper bits of a peer's state mean nothing except after failed [segment.state_low]" {
    for ([_]u32{ 0x101, 0xffff_ff01 }) |word| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        pair.segment.record(1).state = word;
        try pair.writer.write("x", .{ .tag = 1 }, .none);
        pair.segment.record(1).state = layout.endpoint_state_attached;
        pair.segment.record(0).state = word;
        try pair.expectMessage("x", 1);
        pair.segment.record(0).state = word & ~@as(u32, 0xff) | 2;
        try pair.expectFailure(error.PeerClosed);
    }
}

test "close drops what is finished and not published [pipe.close]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    _ = try pair.writer.claim(1, .none);
    pair.writer.finish(1, .{});
    _ = try pair.writer.claim(1, .none);
    pair.endpoints[0].close();
    pair.writer.publish();
    try testing.expectEqual(0, pair.writer.ring.control.tail);
    try testing.expectError(error.PipeClosed, pair.writer.end());
    pair.writer.abandon();
    try pair.expectFailure(error.PeerClosed);

    var memory: [4096]u8 align(128) = @splat(0);
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    var port: millrace.Port = undefined;
    try port.create(&memory, rings, 0, .{ .endpoint = .{ .host = &fixture.clockwork } });
    _ = try port.claim(1, .none);
    port.finish(1, .{});
    port.close();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.PipeClosed, port.read(&storage, .ms(1)));
    try testing.expectEqual(0, port.writer.ring.control.tail);
}

test "close takes back what is lent or claimed, and nothing is stored for it [pipe.close]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    try pair.writer.write("one", .{}, .none);
    try testing.expect(!pair.reader.isLent());
    _ = (try pair.reader.peek(.none)).?;
    try testing.expect(pair.reader.isLent());
    const place = try pair.writer.claim(1, .none);
    try testing.expect(pair.writer.isClaimed());
    for (&pair.endpoints) |*endpoint| endpoint.close();
    const before = pair.memory;
    try testing.expect(!pair.reader.isLent());
    try testing.expectError(error.PipeClosed, pair.reader.peek(.none));
    try pair.expectFailure(error.PipeClosed);
    pair.reader.release();
    pair.reader.flush();
    try testing.expect(!pair.writer.isClaimed());
    try testing.expectError(error.PipeClosed, pair.writer.write("x", .{}, .none));
    try testing.expectError(error.PipeClosed, pair.writer.claim(1, .none));
    try testing.expectError(error.PipeClosed, pair.writer.end());
    place[0] = before[1024 + 48];
    pair.writer.finish(1, .{});
    pair.writer.publish();
    try testing.expectEqualSlices(u8, &before, &pair.memory);
}

test "publish does nothing where nothing is finished [pipe.publish_none]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    @atomicStore(u32, &pair.writer.ring.control.reader_wants, 1, .seq_cst);
    const before = pair.memory;
    pair.writer.publish();
    _ = try pair.writer.claim(1, .none);
    pair.writer.publish();
    pair.writer.abandon();
    pair.writer.publish();
    try testing.expectEqualSlices(u8, &before, &pair.memory);
    _ = try pair.writer.claim(1, .none);
    pair.writer.finish(1, .{});
    for (0..2) |_| pair.writer.publish();
    try testing.expectEqual(1, pair.endpoints[0].stats.wakes);
}

test "after a fault nothing is stored in the channel any more [ring.fault]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    while (try pair.writer.tryWrite("", .{})) {}
    for (0..3) |_| try pair.expectMessage("", 0);
    pair.reader.flush();
    _ = try pair.writer.claim(1, .none);
    pair.writer.finish(1, .{});
    const control = pair.writer.ring.control;
    @atomicStore(u32, &control.head, 8, .seq_cst);
    try testing.expectError(error.Corrupt, pair.writer.claim(100, .none));
    const before = control.*;
    pair.writer.publish();
    try testing.expectError(error.Corrupt, pair.writer.end());
    try testing.expectError(error.Corrupt, pair.writer.write("", .{}, .ms(1)));
    try testing.expectEqual(before, control.*);

    // Frames that are released, and whose room is not given back yet.
    try pair.init(1024, 0);
    for (0..3) |_| {
        _ = (try pair.writer.ring.claim(0)).?;
        pair.writer.ring.finish(.{ .size = 0, .kind = 1, .flags = 3 });
    }
    pair.put(.{ .size = 0, .kind = 1, .flags = 7 }, "");
    for (0..3) |_| try pair.expectMessage("", 0);
    try pair.expectCorrupt(.frame_flags);
    pair.reader.flush();
    var storage: [16]u8 = undefined;
    try testing.expectError(error.Corrupt, pair.reader.read(&storage, .ms(1)));
    try testing.expectEqual(0, pair.reader.ring.control.head);
    try testing.expectEqual(0, pair.reader.ring.control.reader_wants);
}

test "the cancel that a writer owes is published, whatever becomes of the claim [pipe.owed]" {
    var pair: Pair = undefined;
    try pair.init(256, 0);
    for (0..3) |_| try pair.writer.write("", .{}, .none);
    const payload: [600]u8 = @splat(1);
    try testing.expectError(error.Timeout, pair.writer.write(&payload, .{}, .ms(1)));
    for (0..3) |_| try pair.expectPartial("", 0);
    try pair.expectNothingPartial();
    _ = try pair.writer.claim(1, .none);
    pair.writer.abandon();
    try testing.expectError(error.MessageCancelled, pair.readPartial());
}

test "parts that were dropped for a state do not excuse the rest [pipe.keep_parts]" {
    for ([_]u8{ 24, 25 }) |rest| {
        var pair: Pair = undefined;
        try pair.init(256, 0);
        var preamble: [32]u8 = @splat(0);
        preamble[0] = 40;
        pair.put(.{ .size = 32, .kind = 1, .flags = 1 }, &preamble);
        try pair.expectNothingPartial();
        pair.fail(1, .peer_lost);
        try testing.expectError(error.PipeFailed, pair.readPartial());
        try testing.expect(!pair.reader.partial());
        const part: [25]u8 = @splat(1);
        pair.put(.{ .size = rest, .kind = 1, .flags = 2 }, part[0..rest]);
        if (rest == 24) {
            try pair.expectFailure(error.PipeFailed);
        } else try pair.expectCorrupt(.frame_total);
    }
}

test "find: the named ring, or the first, of an endpoint that is vacant [pipe.find]" {
    const Found = error{ SegmentEndpoint, SegmentChannel }!u32;
    const Case = struct { index: u32, named: ?u32 = null, writer: Found, reader: Found };
    const none = error.SegmentChannel;
    var memory: [8192]u8 align(128) = undefined;
    const channels = [_]millrace.Channel{
        .{ .kind = .property, .writer = 0, .reader = 1, .control_size = 128, .data_size = 128 },
        .{ .writer = 2, .reader = 0, .data_size = 256 },
        .{ .writer = 0, .reader = 1, .data_size = 256 },
        .{ .writer = 0, .reader = 2, .data_size = 256 },
    };
    try millrace.Segment.format(&memory, .{ .endpoint_count = 4, .channels = &channels });
    var storage: [4]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(&memory, &storage, .none);
    for ([_]Case{
        .{ .index = 0, .writer = 2, .reader = 1 },
        .{ .index = 0, .named = 3, .writer = 3, .reader = none },
        .{ .index = 0, .named = 0, .writer = none, .reader = none },
        .{ .index = 0, .named = 4, .writer = none, .reader = none },
        .{ .index = 1, .writer = none, .reader = 2 },
        .{ .index = 3, .writer = none, .reader = none },
        .{ .index = 4, .writer = error.SegmentEndpoint, .reader = error.SegmentEndpoint },
    }) |case| {
        const writer = millrace.Writer.find(&segment, case.index, case.named);
        try testing.expectEqual(case.writer, writer);
        const reader = millrace.Reader.find(&segment, case.index, case.named);
        try testing.expectEqual(case.reader, reader);
    }
    // [pipe.find_none] The endpoint is checked first, and nothing has changed.
    for (0..4) |index| try testing.expectEqual(0, segment.record(@intCast(index)).state);
    segment.record(3).state = layout.endpoint_state_closed;
    try testing.expectError(error.SegmentEndpoint, millrace.Writer.find(&segment, 3, null));
}
