//! A reading end of a fanout [spec/fanout.md].
//!
//! Invariant: no part of a copy is used before the copy was found whole. In mode `lose`, it is
//! whole if the floor has not passed its place; in mode `hold`, if the writer still counts this
//! reader.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const fanout = @import("fanout.zig");
const frame = @import("../ring/frame.zig");
const host_file = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const ring_file = @import("../ring/side.zig");
const segment_file = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const wait = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Deadline = host_file.Deadline;
const Endpoint = wait.Endpoint;
const Message = fanout.Fanout.Message;
const Peer = wait.Peer;
const Place = fanout.Place;
const ReadError = fanout.Fanout.ReadError;
const Record = fanout.Record;
const Segment = segment_file.Segment;
const Timeout = host_file.Timeout;

const joined: u32 = layout.fanout_joined;

/// A reading end of a fanout.
///
/// Thread safety: belongs to the thread of its endpoint.
pub const Reader = struct {
    endpoint: *Endpoint,
    /// The writer.
    peer: Peer,
    place: Place,
    record: *Record,
    /// This reader's bit in `readers_want`, and the word that has it.
    want: *u32,
    bit: u32,
    /// The position of the next frame. Its low 32 bits are the position in the ring; in mode
    /// `lose`, the other bits count as well.
    position: u64,
    /// The last `tail` that passed the check.
    tail: u32,
    /// Mode `hold`: the position that was stored last in `head`, and whether this reader has
    /// joined.
    stored: u32 = 0,
    is_joined: bool = false,
    /// Mode `lose`: the `era` as it was loaded last.
    era: u32 = 0,
    /// The expected number of the next message; null if it is not known.
    expected: ?u64 = null,
    /// Whether the position was moved to the floor since the last message.
    overrun: bool = false,
    lost_count: u64 = 0,
    ended_seen: bool = false,
    fault: ?layout.Reason = null,

    /// Where a reader starts.
    pub const Begin = enum {
        tail,
        /// At the oldest message left, in mode `lose`.
        oldest,
    };

    /// Returns the channel for `init`: the named one, or the first that endpoint `index` reads.
    /// Call it before `Endpoint.attach`.
    pub fn find(
        segment: *const Segment,
        index: u32,
        named: ?u32,
    ) error{ SegmentEndpoint, PipeForked, SegmentChannel }!u32 {
        return fanout.find(segment, index, named, .reader);
    }

    /// Creates the reader. In mode `hold` it joins: the writer waits for it from now on, until it
    /// leaves, or its endpoint is closed or marked failed.
    ///
    /// Asserts that `find` has returned this channel for this endpoint, and that `begin` is `.tail`
    /// in mode `hold`. `endpoint` must not move while the reader is used.
    pub fn init(
        endpoint: *Endpoint,
        segment: *const Segment,
        channel_index: u32,
        begin: Begin,
    ) Reader {
        const place: Place = .init(segment, channel_index);
        const record = place.plan.recordOf(endpoint.index).?;
        var reader: Reader = .{
            .endpoint = endpoint,
            .peer = .init(segment, endpoint.index, place.plan.writer),
            .place = place,
            .record = &place.records[record],
            .want = &place.control.readers_want[record / @bitSizeOf(u32)],
            .bit = @as(u32, 1) << @intCast(record % @bitSizeOf(u32)),
            .position = place.plan.position,
            .tail = place.plan.position,
        };
        if (place.plan.loses) {
            reader.beginAt(begin);
        } else {
            assert(begin == .tail);
            reader.join();
        }
        return reader;
    }

    /// Joins again after a `leave`, in mode `hold`. Reads what is published from now on.
    ///
    /// Asserts that the reader has left.
    pub fn join(reader: *Reader) void {
        assert(!reader.place.plan.loses);
        assert(!reader.is_joined);
        // [fanout.join] A writer that counts the readers after this store counts this one.
        const joining = layout.fanout_joining;
        @atomicStore(u32, &reader.record.head, joining, .seq_cst);
        const low: u32 = layout.frame_align - 1;
        reader.tail = @atomicLoad(u32, &reader.place.control.tail, .seq_cst) & ~low;
        reader.position = reader.tail;
        reader.is_joined = true;
        reader.storeHead();
        reader.ended_seen = reader.afterEnd();
    }

    /// Leaves: the writer no longer waits for this reader. Does nothing in mode `lose`, or after
    /// the own close.
    pub fn leave(reader: *Reader) void {
        if (!reader.is_joined or reader.endpoint.closedHere()) return;
        reader.is_joined = false;
        // [fanout.leave]
        @atomicStore(u32, &reader.record.head, 0, .seq_cst);
        if (@atomicRmw(u32, &reader.record.writer_wants, .Xchg, 0, .seq_cst) == 0) return;
        reader.endpoint.stats.wakes +%= 1;
        const endpoint = reader.endpoint;
        segment_record.ring(reader.peer.record, endpoint.index, endpoint.host);
    }

    /// Reads the next message into `storage`. Waits for it for as long as the timeout allows.
    /// Returns null if none came by the deadline, or if the stream has ended; `ended` tells which.
    ///
    /// `error.MessageLost` means that the reader was overrun, and has lost `lost` messages; the
    /// next call goes on with the oldest message left. A message larger than `storage` fails with
    /// `error.MessageSize` once and is dropped.
    ///
    /// Asserts that in mode `hold` the reader has joined.
    pub fn read(reader: *Reader, storage: []u8, timeout: Timeout) ReadError!?Message {
        var deadline: Deadline = .init(timeout);
        var is_last = false;
        while (true) {
            if (try reader.readNow(storage)) |message| return message;
            if (reader.ended_seen) return null;
            if (is_last) {
                try pipe.checkPeer(reader.endpoint, &reader.peer);
                unreachable; // a final state that was seen does not change
            }
            if (reader.peer.state().final()) { // [pipe.look_again]
                is_last = true;
                continue;
            }
            if (deadline.over(reader.endpoint.host)) return null;
            reader.flush();
            const coming: Coming = .{ .reader = reader };
            switch (reader.endpoint.wait(&coming, &deadline)) {
                .found => {},
                .timeout => return null,
                .forbidden => return error.WaitForbidden,
            }
        }
    }

    /// Reads the next message if it has arrived: `read` without waiting.
    pub fn tryRead(reader: *Reader, storage: []u8) ReadError!?Message {
        return reader.read(storage, .none);
    }

    /// Whether this reader may call `read`: in mode `hold`, only while it has joined, or if the
    /// call reports an end anyway [fanout.first_answer].
    pub fn readFits(reader: *const Reader) bool {
        if (reader.place.plan.loses or reader.is_joined) return true;
        if (reader.fault != null or reader.ended_seen) return true;
        return reader.endpoint.state() != .attached;
    }

    /// Whether the writer has ended its stream, and everything before the end was read.
    pub fn ended(reader: *const Reader) bool {
        return reader.ended_seen;
    }

    /// Returns how many messages the last `error.MessageLost` was about.
    pub fn lost(reader: *const Reader) u64 {
        return reader.lost_count;
    }

    /// Returns the reason for the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed`
    /// [pipe.failed_reason].
    pub fn reason(reader: *const Reader) ?layout.Reason {
        return reader.endpoint.behind;
    }

    const Fault = frame.Error || error{ RingCursor, FanoutNumber };
    const Report = error{
        MessageLost,
        MessageSize,
        MessageKind,
        PipeForked,
        PipeClosed,
        PipeFailed,
    };

    /// Reads the next message if one load of the cursor shows it [ring.one_load].
    fn readNow(reader: *Reader, storage: []u8) ReadError!?Message {
        // [fanout.first_answer]
        if (reader.endpoint.closedHere()) return reader.endpoint.whyClosed();
        if (reader.fault != null) return reader.corrupt();
        try pipe.checkOwn(reader.endpoint);
        if (reader.ended_seen) return null;
        assert(reader.place.plan.loses or reader.is_joined);
        return reader.next(storage) catch |err| switch (err) {
            error.MessageLost,
            error.MessageSize,
            error.MessageKind,
            error.PipeForked,
            error.PipeClosed,
            error.PipeFailed,
            => |told| return told,
            else => |found| {
                reader.fault = pipe.fault(reader.endpoint, &reader.peer, found);
                return reader.corrupt();
            },
        };
    }

    fn corrupt(reader: *Reader) error{Corrupt} {
        reader.endpoint.behind = reader.fault.?;
        return error.Corrupt;
    }

    fn next(reader: *Reader, storage: []u8) (Fault || Report)!?Message {
        var loaded = false;
        var spoiled: u32 = 0;
        while (!reader.ended_seen) {
            if (reader.empty()) {
                if (loaded) break;
                loaded = true;
                if (!try reader.look(&spoiled) or reader.empty()) break;
            }
            const header: frame.Header = .load(reader.headerAt());
            const place = reader.framePlace();
            // Its result counts only after the look at the floor, below.
            const checked = frame.check(header, place, null);
            const taken: Taken = if (checked) |found|
                .copy(header, found, place, storage)
            else |_|
                .{};
            if (!try reader.isWhole(&spoiled)) {
                if (spoiled >= layout.fanout_tries) break;
                loaded = false;
                continue;
            }
            if (try reader.judge(header, try checked, place, taken)) |message| return message;
        }
        reader.flush(); // [ring.release_all]
        return null;
    }

    /// The copied parts of a frame.
    const Taken = struct {
        extension: [layout.header_extension_size]u8 = @splat(0),
        /// Null if the storage is too small.
        payload: ?[]u8 = null,

        fn copy(
            header: frame.Header,
            checked: frame.Checked,
            place: frame.Place,
            storage: []u8,
        ) Taken {
            var taken: Taken = .{};
            if (checked.class != .whole) return taken;
            const begin = checked.extension_size;
            if (begin == layout.header_extension_size) {
                @memcpy(&taken.extension, place.payload[0..layout.header_extension_size]);
            }
            const size = checked.contentSize(header);
            if (size > storage.len) return taken;
            ring_file.copyBytes(storage[0..size], place.payload[begin..][0..size]);
            taken.payload = storage[0..size];
            return taken;
        }
    };

    /// Whether the bytes that were just copied may be used [fanout.validate] [fanout.held].
    fn isWhole(reader: *Reader, spoiled: *u32) (Fault || Report)!bool {
        fanout.fence(&reader.record.head);
        if (!reader.place.plan.loses) {
            try pipe.checkOwn(reader.endpoint);
            return true;
        }
        while (spoiled.* < layout.fanout_tries) {
            if (try reader.floorNow()) |floor| {
                if (floor <= reader.position) return true;
                reader.moveTo(floor);
                spoiled.* += 1;
                return false;
            }
            spoiled.* += 1;
        }
        return false;
    }

    /// Handles a frame that was found whole.
    fn judge(
        reader: *Reader,
        header: frame.Header,
        checked: frame.Checked,
        place: frame.Place,
        taken: Taken,
    ) (Fault || Report)!?Message {
        switch (checked.class) {
            .whole => {},
            .skip => {
                reader.advance(checked.extent);
                return null;
            },
            .end => {
                reader.advance(checked.extent);
                reader.ended_seen = true;
                return null;
            },
            .first => {
                const bytes = place.payload[checked.extension_size..];
                const preamble: frame.Preamble = .load(@alignCast(bytes[0..16]));
                _ = try frame.begin(header, checked.contentSize(header), preamble);
                return error.FrameFlags; // [fanout.whole]
            },
            .middle, .last, .cancel => unreachable, // no message is in progress
        }
        const number = try reader.numberOf(checked, &taken);
        reader.advance(checked.extent);
        if (header.kind != layout.frame_kind_data) return error.MessageKind;
        return .{
            .payload = taken.payload orelse return error.MessageSize,
            .kind = @fromBackingInt(header.kind),
            .codec = @fromBackingInt(header.codec),
            .tag = header.tag,
            .number = number,
        };
    }

    /// Checks the number of a message. Reports how many messages were lost before it
    /// [fanout.overrun].
    fn numberOf(
        reader: *Reader,
        checked: frame.Checked,
        taken: *const Taken,
    ) (Fault || Report)!?u64 {
        const plan = reader.place.plan;
        if (!plan.loses) return null;
        // [fanout.frame_check]
        if (checked.extent > plan.capacity / 4) return error.FrameSize;
        if (checked.extension_size != layout.header_extension_size) return error.FrameExtension;
        const kind = std.mem.readInt(u32, taken.extension[4..8], .little);
        if (kind != layout.extension_kind_number) return error.FrameExtension;
        const number = std.mem.readInt(u64, taken.extension[8..16], .little);
        const expected = reader.expected orelse number;
        const was_overrun = reader.overrun;
        if (number < expected) return error.FanoutNumber;
        if (number > expected) {
            if (!was_overrun) return error.FanoutNumber;
            reader.overrun = false;
            reader.expected = number;
            reader.lost_count = number - expected;
            return error.MessageLost;
        }
        reader.overrun = false;
        reader.expected = number +% 1; // [fanout.expected]
        return number;
    }

    /// Starts to read in mode `lose` [fanout.begin].
    fn beginAt(reader: *Reader, begin: Begin) void {
        reader.era = @atomicLoad(u32, &reader.place.control.era, .seq_cst);
        var spoiled: u32 = 0;
        while (spoiled < layout.fanout_tries) : (spoiled += 1) {
            // If the words are at fault, the first call finds that as well.
            const floor = reader.floorNow() catch break orelse continue;
            reader.moveTo(floor);
            const found = reader.look(&spoiled) catch break;
            if (found) break;
        }
        reader.overrun = false;
        const available = reader.tail -% reader.at();
        reader.expected = if (available == 0) 0 else null;
        if (begin == .tail) {
            reader.position += available;
            reader.ended_seen = reader.afterEnd();
        }
    }

    /// Whether the `end` of the writer stands before the tail at which this reader has begun
    /// [fanout.late].
    fn afterEnd(reader: *const Reader) bool {
        const word = @atomicLoad(u32, &reader.place.control.ended, .seq_cst);
        return word == reader.tail | joined;
    }

    /// Moves the position to the floor.
    fn moveTo(reader: *Reader, floor: u64) void {
        reader.position = floor;
        reader.tail = reader.at();
        reader.overrun = true;
    }

    /// Loads the writer's cursor and checks it [fanout.tail]. Returns false if the writer has
    /// spoilt as many looks as a call may make.
    fn look(reader: *Reader, spoiled: *u32) error{RingCursor}!bool {
        while (true) {
            const tail = @atomicLoad(u32, &reader.place.control.tail, .acquire);
            if (reader.place.plan.loses) {
                // The floor is loaded after the tail, so the tail is at most the capacity ahead of
                // it.
                const floor = try reader.floorNow();
                if (floor == null or floor.? > reader.position) {
                    if (floor) |position| reader.moveTo(position);
                    spoiled.* += 1;
                    if (spoiled.* >= layout.fanout_tries) return false;
                    continue;
                }
            }
            const available = tail -% reader.at();
            if (tail % layout.frame_align != 0) return error.RingCursor;
            if (available > reader.place.plan.capacity) return error.RingCursor;
            if (available < reader.tail -% reader.at()) return error.RingCursor;
            reader.tail = tail;
            return true;
        }
    }

    /// Returns the floor with its 63 bits, or null if `era` has changed since it was loaded last.
    fn floorNow(reader: *Reader) error{RingCursor}!?u64 {
        const control = reader.place.control;
        const floor = @atomicLoad(u32, &control.floor, .seq_cst);
        const era = @atomicLoad(u32, &control.era, .seq_cst);
        if (floor % layout.frame_align != 0) return error.RingCursor;
        if (era != reader.era) {
            reader.era = era;
            return null;
        }
        // The writer stores the floor first, so the era may be too low by 1.
        const is_behind = era % 2 != floor / layout.fanout_era_size;
        const high = @as(u64, era) + @intFromBool(is_behind);
        return high * layout.fanout_era_size + floor % layout.fanout_era_size;
    }

    /// Returns the low 32 bits of the position, as a word has them.
    fn at(reader: *const Reader) u32 {
        return @truncate(reader.position);
    }

    fn empty(reader: *const Reader) bool {
        return reader.at() == reader.tail;
    }

    fn headerAt(reader: *const Reader) *align(16) [layout.frame_header_size]u8 {
        const offset = reader.at() & (reader.place.plan.capacity - 1);
        return @alignCast(reader.place.area[offset..][0..layout.frame_header_size]);
    }

    fn framePlace(reader: *const Reader) frame.Place {
        const capacity = reader.place.plan.capacity;
        const offset = reader.at() & (capacity - 1);
        return .{
            .available = reader.tail -% reader.at(),
            .to_end = capacity - offset,
            .capacity = capacity,
            .payload = @alignCast(reader.place.area + offset + layout.frame_header_size),
        };
    }

    /// Moves the position to the end of a frame. In mode `hold`, gives its room back at once or a
    /// little later.
    fn advance(reader: *Reader, extent: u32) void {
        reader.position += extent;
        if (!reader.is_joined) return;
        const held = reader.at() -% reader.stored;
        const is_much = held >= reader.place.plan.capacity / 4;
        const is_asked = ring_file.isAsked(&reader.record.writer_wants);
        if (reader.empty() or is_much or is_asked) reader.flush();
    }

    /// Gives back the room of what was read, if there is any [fanout.release].
    fn flush(reader: *Reader) void {
        if (!reader.is_joined or reader.at() == reader.stored) return;
        reader.storeHead();
    }

    fn storeHead(reader: *Reader) void {
        const position = reader.at();
        reader.stored = position;
        @atomicStore(u32, &reader.record.head, position | joined, .seq_cst);
        reader.endpoint.wake(&reader.record.writer_wants, position, reader.peer.record);
    }
};

/// What a reader waits for: a message, or a change of a state. The `condition` of `Endpoint.wait`
/// [fanout.ask].
const Coming = struct {
    reader: *Reader,

    pub fn glance(coming: *const Coming, comptime order: std.lang.AtomicOrder) bool {
        return @atomicLoad(u32, &coming.reader.place.control.tail, order) != coming.reader.tail;
    }

    pub fn look(coming: *const Coming, comptime order: std.lang.AtomicOrder) bool {
        if (coming.glance(order)) return true;
        const reader = coming.reader;
        return reader.endpoint.state().final() or reader.peer.state().final();
    }

    pub fn arm(coming: *const Coming, _: bool) bool {
        _ = @atomicRmw(u32, coming.reader.want, .Or, coming.reader.bit, .seq_cst);
        return false;
    }

    pub fn disarm(coming: *const Coming) void {
        _ = @atomicRmw(u32, coming.reader.want, .And, ~coming.reader.bit, .seq_cst);
    }

    pub fn slice(coming: *const Coming, mechanism: u32) u64 {
        return coming.reader.peer.slice(mechanism);
    }
};
