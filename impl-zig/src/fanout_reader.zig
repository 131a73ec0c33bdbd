//! A reading end of a fanout [spec/fanout.md].
//!
//! Invariant: nothing of a copy is used before it was found whole: in mode `lose` the floor has not
//! passed its place, in mode `hold` this reader still counts.

const std = @import("std");
const layout = @import("layout.zig");
const fanout = @import("fanout.zig");
const frame = @import("frame.zig");
const host_file = @import("host.zig");
const pipe = @import("pipe.zig");
const ring_file = @import("ring.zig");
const segment_file = @import("segment.zig");
const segment_record = @import("segment_record.zig");
const wait = @import("wait.zig");
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
    /// Its bit in `readers_want`.
    want: *u32,
    bit: u32,
    /// The next frame to read. Its low 32 bits are the position; the others count in mode `lose`.
    position: u64,
    /// The last `tail` that was accepted.
    tail: u32,
    /// Mode `hold`: the position that was last stored in `head`, and whether one is.
    stored: u32 = 0,
    is_joined: bool = false,
    /// Mode `lose`: the `era` as it was last seen.
    era: u32 = 0,
    /// The number of the next message; null where it is not known.
    expected: ?u64 = null,
    /// Whether the position was moved to the floor since the last message.
    overrun: bool = false,
    lost_count: u64 = 0,
    ended_seen: bool = false,
    fault: ?layout.Reason = null,

    /// Where a reader begins.
    pub const Begin = enum {
        tail,
        /// At the oldest message that is there, in mode `lose`.
        oldest,
    };

    /// Returns the channel for `init`: the named one, or the first that endpoint `index` reads. To
    /// be called before `Endpoint.attach`.
    pub fn find(
        segment: *const Segment,
        index: u32,
        named: ?u32,
    ) error{ SegmentEndpoint, SegmentChannel }!u32 {
        return fanout.find(segment, index, named, .reader);
    }

    /// Joins. In mode `hold` the writer waits for this reader from now on, until it leaves or its
    /// endpoint is closed or marked failed.
    ///
    /// Asserts that the channel is one that `find` has returned for this endpoint, and that in mode
    /// `hold` it begins at the tail. `endpoint` must stay where it is while the reader is used.
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

    /// Joins again behind a `leave`, in mode `hold`, at what is published by then.
    ///
    /// Asserts that it has left.
    pub fn join(reader: *Reader) void {
        assert(!reader.place.plan.loses);
        assert(!reader.is_joined);
        // [fanout.join] Whoever counts the readers behind this store counts this one.
        const joining = layout.fanout_joining;
        @atomicStore(u32, &reader.record.head, joining, .seq_cst);
        const low: u32 = layout.frame_align - 1;
        reader.tail = @atomicLoad(u32, &reader.place.control.tail, .seq_cst) & ~low;
        reader.position = reader.tail;
        reader.is_joined = true;
        reader.storeHead();
    }

    /// Leaves: the writer does not wait for this reader any more. In mode `lose`, or behind the own
    /// close, it does nothing.
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

    /// Reads the next message into `storage`, and waits for it as long as the timeout allows.
    /// Returns null when none came by the deadline, or when the stream has ended, which `ended`
    /// tells apart.
    ///
    /// `error.MessageLost` says that the reader was overrun, by `lost` messages; the next call goes
    /// on at the oldest message that is there. A message larger than `storage` costs
    /// `error.MessageSize` once and is dropped.
    ///
    /// Asserts that in mode `hold` it has joined.
    pub fn read(reader: *Reader, storage: []u8, timeout: Timeout) ReadError!?Message {
        var deadline: Deadline = .init(timeout);
        var is_last = false;
        while (true) {
            if (try reader.readNow(storage)) |message| return message;
            if (reader.ended_seen) return null;
            if (is_last) {
                try pipe.checkPeer(reader.endpoint, &reader.peer);
                unreachable; // a final state that was seen stays
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

    /// Reads the next message if it is there: `read` without waiting.
    pub fn tryRead(reader: *Reader, storage: []u8) ReadError!?Message {
        return reader.read(storage, .none);
    }

    /// Whether a call to read is one that it may make: in mode `hold`, while it has joined, and
    /// where all is over [fanout.first_answer].
    pub fn readFits(reader: *const Reader) bool {
        if (reader.place.plan.loses or reader.is_joined) return true;
        if (reader.fault != null or reader.ended_seen) return true;
        return reader.endpoint.state() != .attached;
    }

    /// Whether the writer has ended its stream, and everything before that was read.
    pub fn ended(reader: *const Reader) bool {
        return reader.ended_seen;
    }

    /// How many messages the last `error.MessageLost` was about.
    pub fn lost(reader: *const Reader) u64 {
        return reader.lost_count;
    }

    /// What is behind the last `error.Corrupt`, `error.PipeFailed` or `error.PeerFailed`
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

    /// Reads the next message as far as one load of the cursor shows it [ring.one_load].
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
            // Judged only behind the look at the floor, below.
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

    /// What was copied of a frame.
    const Taken = struct {
        extension: [layout.header_extension_size]u8 = @splat(0),
        /// Null where the storage is too small.
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

    /// Whether what was just copied may be used [fanout.validate] [fanout.held].
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

    /// Acts on a frame that was found whole.
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

    /// Checks the number of a message, and reports how many were lost before it [fanout.overrun].
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

    /// Begins in mode `lose` [fanout.begin].
    fn beginAt(reader: *Reader, begin: Begin) void {
        reader.era = @atomicLoad(u32, &reader.place.control.era, .seq_cst);
        var spoiled: u32 = 0;
        while (spoiled < layout.fanout_tries) : (spoiled += 1) {
            // What is wrong with the words, the first call will find as well.
            const floor = reader.floorNow() catch break orelse continue;
            reader.moveTo(floor);
            const found = reader.look(&spoiled) catch break;
            if (found) break;
        }
        reader.overrun = false;
        const available = reader.tail -% reader.at();
        reader.expected = if (available == 0) 0 else null;
        if (begin == .tail) reader.position += available;
    }

    /// Goes on at the floor.
    fn moveTo(reader: *Reader, floor: u64) void {
        reader.position = floor;
        reader.tail = reader.at();
        reader.overrun = true;
    }

    /// Loads the writer's cursor and checks it [fanout.tail]. Returns false where the writer has
    /// spoilt as many looks as a call makes.
    fn look(reader: *Reader, spoiled: *u32) error{RingCursor}!bool {
        while (true) {
            const tail = @atomicLoad(u32, &reader.place.control.tail, .acquire);
            if (reader.place.plan.loses) {
                // Behind the load of the tail, which is then at most the capacity ahead of it.
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

    /// The floor with its 63 bits, or null where `era` has changed since it was last seen.
    fn floorNow(reader: *Reader) error{RingCursor}!?u64 {
        const control = reader.place.control;
        const floor = @atomicLoad(u32, &control.floor, .seq_cst);
        const era = @atomicLoad(u32, &control.era, .seq_cst);
        if (floor % layout.frame_align != 0) return error.RingCursor;
        if (era != reader.era) {
            reader.era = era;
            return null;
        }
        // Between its two stores, the writer has an era too few.
        const is_behind = era % 2 != floor / layout.fanout_era_size;
        const high = @as(u64, era) + @intFromBool(is_behind);
        return high * layout.fanout_era_size + floor % layout.fanout_era_size;
    }

    /// The position as it stands in words.
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

    /// Goes on behind a frame; in mode `hold` its space is given back, now or a little later.
    fn advance(reader: *Reader, extent: u32) void {
        reader.position += extent;
        if (!reader.is_joined) return;
        const held = reader.at() -% reader.stored;
        if (reader.empty() or held >= reader.place.plan.capacity / 4) reader.flush();
    }

    /// Gives back all that was read, if anything was [fanout.release].
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

/// What a reader waits for: a message, or a change of a state. It is the `condition` of
/// `Endpoint.wait` [fanout.ask].
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
