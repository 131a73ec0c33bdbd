//! The latest value of something: one writer overwrites it, and any endpoint reads it
//! [spec/property.md].
//!
//! Invariant: the slot of the last complete value is not touched before three further values were
//! begun. A reader whose copy was overwritten meanwhile sees that by the sequence of the slot.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host_file = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const segment_file = @import("../memory/segment.zig");
const segment_record = @import("../wait/state.zig");
const wait_file = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Channel = segment_file.Channel;
const Codec = layout.Codec;
const Deadline = host_file.Deadline;
const Endpoint = wait_file.Endpoint;
const Peer = wait_file.Peer;
const Segment = segment_file.Segment;
const Timeout = host_file.Timeout;

const slot_count = layout.property_slot_count;
const word_bits = @bitSizeOf(u32);

/// Why a property cannot be opened.
pub const OpenError = error{
    /// There is no such channel or name, or its areas or ends are not those of a property.
    PropertyChannel,
};

/// Why a value was not set. Nothing was changed.
pub const SetError = error{
    /// The value is larger than `sizeMax`.
    PropertySize,
    PipeForked,
    PipeClosed,
    PipeFailed,
};

/// Why a value was not read. The next call starts again.
pub const GetError = error{
    /// The value is larger than the caller's storage.
    MessageSize,
    /// The slot holds something that no correct writer stores.
    PropertySlot,
    /// The value was overwritten during each try to copy it.
    PropertyBusy,
    PipeForked,
    PipeClosed,
    PipeFailed,
};

/// Why a wait for a change ended without one.
pub const WaitError = error{
    /// The writer has closed or is marked failed, and the value has not changed since.
    PeerClosed,
    PeerFailed,
    PipeForked,
    PipeClosed,
    PipeFailed,
    WaitForbidden,
};

/// Returns the channel of a geometry for a property that endpoint `writer` sets, with values of up
/// to `size` bytes. `Geometry.names` gives it a name [property.areas].
///
/// Asserts that such a channel is possible: `size` is at most 2^30 − 512.
pub fn channelOf(writer: u32, size: u32) Channel {
    assert(size <= (1 << 30) - layout.property_data_unit);
    const slots_size = slot_count * (size + layout.property_slot_size);
    return .{
        .kind = .property,
        .writer = writer,
        .reader = layout.endpoint_none,
        .control_size = layout.property_control_size,
        .data_size = std.mem.alignForward(u32, slots_size, layout.property_data_unit),
    };
}

/// Names a property of a segment.
pub const Which = union(enum) {
    channel: u32,
    /// The first property with this name [property.find].
    name: []const u8,
};

/// Returns the channel of a property. Call it before `Endpoint.attach`, so that a refusal changes
/// no state [property.open].
pub fn find(segment: *const Segment, which: Which) OpenError!u32 {
    switch (which) {
        .channel => |index| {
            if (index >= segment.channels.len) return error.PropertyChannel;
            try check(segment, index);
            return index;
        },
        .name => |wanted| {
            if (wanted.len == 0) return error.PropertyChannel;
            for (0..segment.channels.len) |index| {
                check(segment, index) catch continue;
                var storage: [layout.property_name_size_max]u8 = undefined;
                const name = nameIn(segment, index, &storage) orelse continue;
                if (std.mem.eql(u8, name, wanted)) return @intCast(index);
            }
            return error.PropertyChannel;
        },
    }
}

/// Does what `find` does, for the endpoint `writer`, which wants to set the property.
pub fn findFor(segment: *const Segment, which: Which, writer: u32) OpenError!u32 {
    const index = try find(segment, which);
    if (segment.channels[index].writer != writer) return error.PropertyChannel;
    return index;
}

/// The checks of a descriptor, in the order of the chapter's table.
fn check(segment: *const Segment, index: usize) OpenError!void {
    const channel = segment.channels[index];
    if (channel.kind != .property) return error.PropertyChannel;
    if (channel.control_size < layout.property_control_size) return error.PropertyChannel;
    if (channel.data_size % layout.property_data_unit != 0) return error.PropertyChannel;
    if (channel.data_size == 0) return error.PropertyChannel;
    if (channel.writer >= segment.endpoint_count) return error.PropertyChannel;
    if (channel.reader != layout.endpoint_none) return error.PropertyChannel;
}

/// Returns the name of a property, copied into `storage`; null if it has none, or holds something
/// that is not a name. Asserts that the channel is a property that `find` has accepted.
pub fn nameIn(
    segment: *const Segment,
    index: usize,
    storage: *[layout.property_name_size_max]u8,
) ?[]const u8 {
    const control = controlOf(segment, segment.channels[index]);
    const size = @as(*const volatile u32, &control.name_size).*;
    if (size == 0 or size > storage.len) return null;
    storage.* = @as(*const volatile [layout.property_name_size]u8, &control.name).*;
    const name = storage[0..size];
    return if (std.unicode.utf8ValidateSlice(name)) name else null;
}

/// Control words: atomic access only, except for the name, which never changes.
const Control = extern struct {
    version: u32,
    reserved: [124]u8,
    watchers: [layout.property_watchers_size / @sizeOf(u32)]u32,
    reserved_behind: [96]u8,
    name_size: u32,
    name: [layout.property_name_size]u8,
};

/// The header of a slot.
const Slot = extern struct {
    sequence: u32,
    size: u32,
    present: u8,
    codec: u8,
    reserved: [6]u8,
};

comptime {
    assert(@sizeOf(Control) == layout.property_control_size);
    assert(@offsetOf(Control, "version") == layout.property_version_offset);
    assert(@offsetOf(Control, "watchers") == layout.property_watchers_offset);
    assert(@offsetOf(Control, "name_size") == layout.property_name_size_offset);
    assert(@offsetOf(Control, "name") == layout.property_name_offset);
    assert(@sizeOf(Slot) == layout.property_slot_size);
}

fn controlOf(segment: *const Segment, channel: Channel) *Control {
    return @ptrCast(@alignCast(segment.base + channel.control_offset));
}

/// The parts of a property that writer and reader use.
const Areas = struct {
    control: *Control,
    slots: [*]align(layout.segment_align) u8,
    slot_size: u32,

    fn init(segment: *const Segment, index: u32) Areas {
        const channel = segment.channels[index];
        return .{
            .control = controlOf(segment, channel),
            .slots = @alignCast(segment.base + channel.data_offset),
            .slot_size = @divExact(channel.data_size, slot_count),
        };
    }

    fn sizeMax(areas: Areas) u32 {
        return areas.slot_size - layout.property_slot_size;
    }

    fn slotOf(areas: Areas, version: u32) *Slot {
        return @ptrCast(@alignCast(areas.slots + (version % slot_count) * areas.slot_size));
    }

    fn bytesOf(areas: Areas, version: u32) []u8 {
        const begin = (version % slot_count) * areas.slot_size + layout.property_slot_size;
        return areas.slots[begin..][0..areas.sizeMax()];
    }
};

/// The writing end of a property.
///
/// Must not move until the endpoint is closed, because the close wakes those who watch through it.
///
/// Thread safety: belongs to the thread of its endpoint.
pub const PropertyWriter = struct {
    endpoint: *Endpoint,
    areas: Areas,
    endpoint_count: u32,
    /// The version of the last value that was set.
    version: u32,
    leaving: Endpoint.Leaving,

    /// Opens the property for setting. At any time, at most one thread may open ends of an
    /// endpoint, or close it.
    pub fn open(
        writer: *PropertyWriter,
        endpoint: *Endpoint,
        segment: *const Segment,
        which: Which,
    ) OpenError!void {
        const index = try findFor(segment, which, endpoint.index);
        const areas: Areas = .init(segment, index);
        writer.* = .{
            .endpoint = endpoint,
            .areas = areas,
            .endpoint_count = segment.endpoint_count,
            // [property.begin] From here on, the word is never loaded again.
            .version = @atomicLoad(u32, &areas.control.version, .seq_cst),
            .leaving = .{ .next = endpoint.leaving, .tell = tell },
        };
        endpoint.leaving = &writer.leaving;
    }

    /// Returns the size of the largest value.
    pub fn sizeMax(writer: *const PropertyWriter) u32 {
        return writer.areas.sizeMax();
    }

    /// Sets a value. Never waits. Asserts that the codec is one for a single value
    /// [property.codec].
    pub fn set(writer: *PropertyWriter, value: []const u8, codec: Codec) SetError!void {
        assert(codec != .json_batch and codec != .values);
        try pipe.checkOwn(writer.endpoint);
        if (value.len > writer.sizeMax()) return error.PropertySize;
        writer.put(.{ .present = 1, .codec = codec }, value);
    }

    /// Takes the value back: after that, there is none.
    pub fn clear(writer: *PropertyWriter) pipe.OwnError!void {
        try pipe.checkOwn(writer.endpoint);
        writer.put(.{ .present = 0, .codec = @fromBackingInt(0) }, &.{});
    }

    const Form = struct { present: u8, codec: Codec };

    fn put(writer: *PropertyWriter, form: Form, value: []const u8) void {
        const version = following(writer.version); // [property.next]
        const slot = writer.areas.slotOf(version);
        // [property.sequence] None of the stores below happens before this one.
        _ = @atomicRmw(u32, &slot.sequence, .Xchg, version, .acq_rel);
        slot.size = @intCast(value.len);
        slot.present = form.present;
        slot.codec = @intCast(@backingInt(form.codec));
        slot.reserved = @splat(0);
        @memcpy(writer.areas.bytesOf(version)[0..value.len], value);
        // [property.publish]
        @atomicStore(u32, &writer.areas.control.version, version, .seq_cst);
        writer.version = version;
        writer.wake();
    }

    /// Rings the endpoints that watch [property.wake].
    fn wake(writer: *PropertyWriter) void {
        const watchers = &writer.areas.control.watchers;
        const used = std.math.divCeil(u32, writer.endpoint_count, word_bits) catch unreachable;
        for (watchers[0..used], 0..) |*word, number| {
            if (@atomicLoad(u32, word, .seq_cst) == 0) {
                @branchHint(.likely);
                continue;
            }
            writer.ring(word, @intCast(number));
        }
    }

    noinline fn ring(writer: *PropertyWriter, word: *u32, number: u32) void {
        const endpoint = writer.endpoint;
        var bits = @atomicRmw(u32, word, .Xchg, 0, .seq_cst);
        while (bits != 0) : (bits &= bits - 1) {
            const index = number * word_bits + @ctz(bits);
            if (index >= writer.endpoint_count) return;
            endpoint.stats.wakes +%= 1;
            segment_record.ring(endpoint.recordAt(index), endpoint.index, endpoint.host);
        }
    }

    /// [property.close]
    fn tell(leaving: *Endpoint.Leaving) void {
        const writer: *PropertyWriter = @alignCast(@fieldParentPtr("leaving", leaving));
        writer.wake();
    }

    /// Returns the next version. After the largest follows the first that is not 0 and has the next
    /// slot.
    fn following(version: u32) u32 {
        return if (version == std.math.maxInt(u32)) slot_count else version + 1;
    }
};

/// A value with its version.
pub const Value = struct {
    /// 0 if no value was ever set.
    version: u32 = 0,
    codec: Codec = @fromBackingInt(0),
    /// In the caller's storage; null if no value was set, or it was taken back.
    bytes: ?[]u8 = null,
};

/// The reading end of a property, which may have any number of them.
///
/// Thread safety: belongs to the thread of its endpoint.
pub const PropertyReader = struct {
    endpoint: *Endpoint,
    areas: Areas,
    writer: Peer,
    /// The version that was read last; `wait` waits for another one.
    seen: u32 = 0,

    /// Opens the property for reading.
    pub fn init(
        endpoint: *Endpoint,
        segment: *const Segment,
        which: Which,
    ) OpenError!PropertyReader {
        const index = try find(segment, which);
        const writer = segment.channels[index].writer;
        if (writer != endpoint.index) endpoint.watched.set(writer);
        return .{
            .endpoint = endpoint,
            .areas = .init(segment, index),
            .writer = .init(segment, endpoint.index, writer),
        };
    }

    /// Returns the size of the largest value: storage of this size suffices for any.
    pub fn sizeMax(reader: *const PropertyReader) u32 {
        return reader.areas.sizeMax();
    }

    /// Copies the last complete value into `storage`, even if its writer is gone [property.stays].
    /// Never waits, and leaves the value in place.
    pub fn get(reader: *PropertyReader, storage: []u8) GetError!Value {
        try pipe.checkOwn(reader.endpoint);
        // [property.again] Fewer tries for a large value, because a hostile writer can overwrite
        // each one.
        const large = 4096;
        const tries = std.math.clamp(
            layout.property_tries_max / (1 + reader.areas.slot_size / large),
            layout.property_tries_min,
            layout.property_tries_max,
        );
        for (0..tries) |_| {
            if (try reader.tryGet(storage)) |value| {
                reader.seen = value.version;
                return value;
            }
        }
        return error.PropertyBusy;
    }

    /// Returns null if the writer has overwritten the copied slot.
    fn tryGet(reader: *PropertyReader, storage: []u8) GetError!?Value {
        const control = reader.areas.control;
        // [property.version]
        const version = @atomicLoad(u32, &control.version, .acquire);
        if (version == 0) return .{};
        const slot = reader.areas.slotOf(version);
        const form = @as(*const volatile Slot, slot).*; // each field once [property.bounds]
        const fault = reader.faultOf(form);
        const fits = form.size <= storage.len;
        if (fault == null and fits) {
            @memcpy(storage[0..form.size], reader.areas.bytesOf(version)[0..form.size]);
        }
        // [property.whole] Changes nothing, but keeps the loads above before this one.
        const sequence = @atomicRmw(u32, &slot.sequence, .Or, 0, .acq_rel);
        if (sequence != version) {
            // [property.fault] A correct writer publishes other versions before it uses the slot
            // again.
            const now = @atomicLoad(u32, &control.version, .acquire);
            return if (now == version) error.PropertySlot else null;
        }
        if (fault) |err| return err;
        if (!fits) return error.MessageSize;
        const bytes: ?[]u8 = if (form.present == 1) storage[0..form.size] else null;
        return .{ .version = version, .codec = @fromBackingInt(form.codec), .bytes = bytes };
    }

    fn faultOf(reader: *const PropertyReader, form: Slot) ?error{PropertySlot} {
        if (form.present > 1) return error.PropertySlot;
        if (!std.mem.allEqual(u8, &form.reserved, 0)) return error.PropertySlot;
        if (form.present == 1) {
            return if (form.size > reader.sizeMax()) error.PropertySlot else null;
        }
        const none = form.size == 0 and form.codec == 0;
        return if (none) null else error.PropertySlot;
    }

    /// Waits until the value is another than the one that was read last. Returns false if it is not
    /// by the deadline.
    pub fn wait(reader: *PropertyReader, timeout: Timeout) WaitError!bool {
        return try waitAny(&.{reader}, timeout) != null;
    }

    fn changed(reader: *const PropertyReader, comptime order: std.lang.AtomicOrder) bool {
        return @atomicLoad(u32, &reader.areas.control.version, order) != reader.seen;
    }

    /// Returns the word of `watchers` that has the bit of this endpoint, and that bit.
    fn place(reader: *const PropertyReader) struct { *u32, u32 } {
        const index = reader.endpoint.index;
        const bit = @as(u32, 1) << @intCast(index % word_bits);
        return .{ &reader.areas.control.watchers[index / word_bits], bit };
    }
};

/// Waits until any of several properties has another value than the one that was read last. Returns
/// the first that has, or null if none has by the deadline.
///
/// Asserts that there is at least one reader, and that all are readers of one endpoint.
pub fn waitAny(readers: []const *PropertyReader, timeout: Timeout) WaitError!?*PropertyReader {
    const endpoint = readers[0].endpoint;
    for (readers) |reader| assert(reader.endpoint == endpoint);
    var deadline: Deadline = .init(timeout);
    const condition: Condition = .{ .readers = readers, .endpoint = endpoint };
    while (true) {
        try pipe.checkOwn(endpoint);
        for (readers) |reader| if (reader.changed(.seq_cst)) return reader;
        for (readers) |reader| try checkWriter(reader);
        switch (endpoint.wait(&condition, &deadline)) {
            .found => {},
            .timeout => return null,
            .forbidden => return error.WaitForbidden,
        }
    }
}

/// [property.gone] A value that the writer set before it went is a change, and comes first.
fn checkWriter(reader: *PropertyReader) error{ PeerClosed, PeerFailed }!void {
    pipe.checkPeer(reader.endpoint, &reader.writer) catch |err| {
        if (!reader.changed(.seq_cst)) return err;
    };
}

/// The `condition` of `Endpoint.wait`: a change of any of the properties.
const Condition = struct {
    readers: []const *PropertyReader,
    endpoint: *Endpoint,

    pub fn glance(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        for (condition.readers) |reader| if (reader.changed(order)) return true;
        return false;
    }

    pub fn look(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        if (condition.glance(order) or condition.endpoint.state().final()) return true;
        for (condition.readers) |reader| if (reader.writer.state().final()) return true;
        return false;
    }

    /// [property.watch]
    pub fn arm(condition: *const Condition, _: bool) bool {
        for (condition.readers) |reader| {
            const word, const bit = reader.place();
            _ = @atomicRmw(u32, word, .Or, bit, .seq_cst);
        }
        return false;
    }

    /// [property.unwatch]
    pub fn disarm(condition: *const Condition) void {
        for (condition.readers) |reader| {
            const word, const bit = reader.place();
            _ = @atomicRmw(u32, word, .And, ~bit, .seq_cst);
        }
    }

    /// [property.slice]
    pub fn slice(condition: *const Condition, mechanism: u32) u64 {
        var least: u64 = std.math.maxInt(u64);
        for (condition.readers) |reader| least = @min(least, reader.writer.slice(mechanism));
        return least;
    }
};

// Tests.

const builtin = @import("builtin");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;
const property = millrace.property;

/// Two endpoints: 0 sets the properties `gain` and one without a name; 1 gets them. Must not move
/// after it was initialized.
const Pair = struct {
    memory: [8192]u8 align(layout.segment_align),
    channels: [2]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [2]millrace.Endpoint,
    writer: millrace.PropertyWriter,
    reader: millrace.PropertyReader,
    storage: [1008]u8,

    const geometry: millrace.Geometry = .{
        .endpoint_count = 2,
        .channels = &.{ property.channelOf(0, 100), property.channelOf(0, 1000) },
        .names = &.{.{ .channel = 0, .name = "gain" }},
    };

    fn init(pair: *Pair, host: *const millrace.Host) !void {
        @memset(&pair.memory, 0xa5);
        try millrace.Segment.format(&pair.memory, geometry);
        pair.segment = try .attach(&pair.memory, &pair.channels, .none);
        for (&pair.endpoints, 0..) |*endpoint, index| {
            const options: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
            endpoint.* = try .attach(&pair.segment, @intCast(index), options);
        }
        try pair.writer.open(&pair.endpoints[0], &pair.segment, .{ .name = "gain" });
        pair.reader = try .init(&pair.endpoints[1], &pair.segment, .{ .channel = 0 });
    }

    fn expect(pair: *Pair, version: u32, bytes: ?[]const u8) !void {
        const value = try pair.reader.get(&pair.storage);
        try testing.expectEqual(version, value.version);
        if (bytes) |wanted| return testing.expectEqualStrings(wanted, value.bytes.?);
        try testing.expectEqual(null, value.bytes);
    }

    fn word(pair: *Pair, offset: u32) *u32 {
        return @ptrCast(@alignCast(&pair.memory[offset]));
    }

    /// Returns a word of the control area.
    fn control(pair: *Pair, offset: u32) *u32 {
        return pair.word(pair.segment.channels[0].control_offset + offset);
    }

    /// Returns a word of a slot; the sequence has offset 0.
    fn slot(pair: *Pair, number: u32, offset: u32) *u32 {
        const channel = pair.segment.channels[0];
        return pair.word(channel.data_offset + number * (channel.data_size / 4) + offset);
    }
};

test "PropertyReader gets the last value, again and again, and none where it was taken back" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    try pair.expect(0, null);
    try pair.writer.set("0.5", .json);
    try pair.writer.set("0.75", .json);
    try pair.expect(2, "0.75");
    try pair.expect(2, "0.75");
    try testing.expectEqual(.json, (try pair.reader.get(&pair.storage)).codec);
    try pair.writer.clear();
    try pair.expect(3, null);
    try pair.writer.set("", .bytes);
    try pair.expect(4, "");
    // As in the example of the chapter.
    for (0..10) |count| try pair.writer.set(&.{@intCast(count)}, .bytes);
    try pair.expect(14, &.{9});
}

test "[property.size] a value that is too large changes nothing; one that fits is taken" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    try testing.expectEqual(112, pair.writer.sizeMax());
    var value: [113]u8 = @splat('x');
    try pair.writer.set(value[0..112], .text);
    const before = pair.memory;
    try testing.expectError(error.PropertySize, pair.writer.set(&value, .text));
    try testing.expectEqualSlices(u8, &before, &pair.memory);
    try pair.expect(1, value[0..112]);
    try testing.expectError(error.MessageSize, pair.reader.get(pair.storage[0..111]));
}

test "[property.next] after the largest version comes 4" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    pair.control(layout.property_version_offset).* = std.math.maxInt(u32) - 1;
    try pair.writer.open(&pair.endpoints[0], &pair.segment, .{ .channel = 0 });
    try pair.writer.set("a", .text);
    try pair.expect(std.math.maxInt(u32), "a");
    try pair.writer.set("b", .text);
    try pair.expect(4, "b");
}

test "[property.open] what is no property, or another's, is refused" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    const none: property.OpenError!u32 = error.PropertyChannel;
    for ([_]property.Which{ .{ .channel = 2 }, .{ .name = "" }, .{ .name = "gai" } }) |which| {
        try testing.expectEqual(none, property.find(&pair.segment, which));
    }
    try testing.expectEqual(0, try property.find(&pair.segment, .{ .name = "gain" }));
    try testing.expectEqual(none, property.findFor(&pair.segment, .{ .name = "gain" }, 1));
    const good = pair.channels[1];
    const Change = struct { field: enum { kind, control, data, zero, writer, reader } };
    for (std.enums.values(@FieldType(Change, "field"))) |field| {
        pair.channels[1] = good;
        switch (field) {
            .kind => pair.channels[1].kind = .ring,
            .control => pair.channels[1].control_size = 256,
            .data => pair.channels[1].data_size += 128,
            .zero => pair.channels[1].data_size = 0,
            .writer => pair.channels[1].writer = layout.endpoint_none,
            .reader => pair.channels[1].reader = 1,
        }
        try testing.expectEqual(none, property.find(&pair.segment, .{ .channel = 1 }));
    }
    // Bytes that are not a valid name are not a fault.
    pair.control(layout.property_name_size_offset).* = 125;
    try testing.expectEqual(none, property.find(&pair.segment, .{ .name = "gain" }));
    try testing.expectEqual(0, try property.find(&pair.segment, .{ .channel = 0 }));
}

test "[property.same_name] another name is another geometry" {
    var memory: [8192]u8 align(layout.segment_align) = @splat(0);
    var storage: [2]millrace.Channel = undefined;
    _ = try millrace.Segment.create(&memory, Pair.geometry, &storage, .none);
    _ = try millrace.Segment.create(&memory, Pair.geometry, &storage, .none);
    var other = Pair.geometry;
    for ([_][]const millrace.Geometry.Name{
        &.{},
        &.{.{ .channel = 0, .name = "gaim" }},
        &.{.{ .channel = 1, .name = "gain" }},
    }) |names| {
        other.names = names;
        const again = millrace.Segment.create(&memory, other, &storage, .none);
        try testing.expectError(error.SegmentGeometry, again);
    }
}

test "[property.stays] a writer that stops after any store leaves the value before it" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    try pair.writer.set("first", .text);
    try pair.writer.set("second", .text);
    // Stores a third value, one word after the other.
    pair.slot(3, 0).* = 3;
    try pair.expect(2, "second");
    pair.slot(3, 4).* = 5;
    pair.slot(3, 8).* = 0x0101;
    pair.slot(3, 12).* = 0;
    pair.slot(3, 16).* = 0x72696874;
    try pair.expect(2, "second");
    pair.control(layout.property_version_offset).* = 3;
    const value = try pair.reader.get(&pair.storage);
    try testing.expectEqualStrings("thir", value.bytes.?[0..4]);
    // If its endpoint is marked failed, or closed, that changes nothing.
    pair.segment.fail(pair.segment.ownerOf(0), .peer_lost, &fixture.clockwork);
    try pair.expect(3, value.bytes.?);
    try testing.expectError(error.PipeFailed, pair.writer.set("", .text));
    pair.endpoints[1].close();
    try testing.expectError(error.PipeClosed, pair.reader.get(&pair.storage));
}

test "[property.fault] what no writer may store is reported, and the next value mends it" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    const Fault = struct { offset: u32, value: u32 };
    for ([_]Fault{
        .{ .offset = 0, .value = 77 }, // the sequence
        .{ .offset = 4, .value = 113 }, // the size
        .{ .offset = 8, .value = 0x0102 }, // present 2
        .{ .offset = 8, .value = 0x10101 }, // a reserved byte
        .{ .offset = 8, .value = 0 }, // none, with a size
        .{ .offset = 12, .value = 1 }, // a reserved byte
    }) |fault| {
        try pair.writer.set("right", .text);
        const version = pair.writer.version;
        try pair.expect(version, "right");
        pair.slot(version % 4, fault.offset).* = fault.value;
        try testing.expectError(error.PropertySlot, pair.reader.get(&pair.storage));
        try testing.expectError(error.PropertySlot, pair.reader.get(&pair.storage));
        try testing.expectEqual(version, pair.control(layout.property_version_offset).*);
    }
    try pair.writer.set("mended", .text);
    try pair.expect(7, "mended");
}

/// What the writer does while the reader sleeps.
const Meanwhile = struct {
    var pair: *Pair = undefined;
    var act: enum { nothing, set, close } = .nothing;
    var watchers: u32 = 0;

    const host: millrace.Host = blk: {
        var acting = fixture.clockwork;
        acting.sleep = sleep;
        break :blk acting;
    };

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        const before = pair.endpoints[1].record.bell;
        watchers = pair.control(layout.property_watchers_offset).*;
        switch (act) {
            .nothing => {},
            .set => pair.writer.set("changed", .text) catch unreachable,
            .close => pair.endpoints[0].close(),
        }
        const rang = pair.endpoints[1].record.bell != before;
        act = .nothing;
        return rang or fixture.clockwork.sleep(word, expected, limit_ns);
    }
};

test "[property.watch] a change rings who watches, and a wait leaves no bit behind" {
    var pair: Pair = undefined;
    Meanwhile.pair = &pair;
    try pair.init(&Meanwhile.host);
    Meanwhile.act = .set;
    const watchers = pair.control(layout.property_watchers_offset);
    try testing.expect(try pair.reader.wait(.forever));
    try testing.expectEqual(0b10, Meanwhile.watchers);
    try testing.expectEqual(0, watchers.*);
    try testing.expectEqual(1, pair.writer.endpoint.stats.wakes);
    try testing.expectEqual(1, pair.endpoints[1].record.rung[0] & 1);
    // Until the value is read, the same change ends the next wait at once.
    try testing.expect(try pair.reader.wait(.none));
    try pair.expect(1, "changed");
    try testing.expect(!try pair.reader.wait(.ms(5)));
    try testing.expectEqual(0, watchers.*);
    try pair.writer.set("unseen", .text); // nobody watches
    try testing.expectEqual(1, pair.writer.endpoint.stats.wakes);
}

test "[property.close] who waits for a writer that closes learns of it at once" {
    var pair: Pair = undefined;
    Meanwhile.pair = &pair;
    try pair.init(&Meanwhile.host);
    try pair.writer.set("last", .text);
    Meanwhile.act = .close;
    // A value that the writer set before it went comes first.
    try testing.expect(try pair.reader.wait(.forever));
    try pair.expect(1, "last");
    try testing.expectError(error.PeerClosed, pair.reader.wait(.forever));
    try pair.init(&Meanwhile.host);
    Meanwhile.act = .close;
    const parks = pair.endpoints[1].stats.parks;
    try testing.expectError(error.PeerClosed, pair.reader.wait(.forever));
    try testing.expectEqual(parks + 1, pair.endpoints[1].stats.parks);
    try testing.expectEqual(0, pair.control(layout.property_watchers_offset).*);
}

test "waitAny returns the property that has changed" {
    var pair: Pair = undefined;
    Meanwhile.pair = &pair;
    try pair.init(&Meanwhile.host);
    var second: millrace.PropertyReader =
        try .init(&pair.endpoints[1], &pair.segment, .{ .channel = 1 });
    try testing.expectEqual(null, try property.waitAny(&.{ &second, &pair.reader }, .ms(1)));
    Meanwhile.act = .set;
    const found = try property.waitAny(&.{ &second, &pair.reader }, .forever);
    try testing.expectEqual(&pair.reader, found.?);
}

test "[property.bounds] no bytes of a hostile writer make a reader fail otherwise than it says" {
    var pair: Pair = undefined;
    try pair.init(&fixture.clockwork);
    var prng: std.Random.DefaultPrng = .init(0x9e37);
    const random = prng.random();
    var kinds: [3]u32 = @splat(0);
    for (0..20_000) |_| {
        const channel = pair.segment.channels[0];
        const area = pair.memory[channel.data_offset..][0..channel.data_size];
        // Numbers close to valid ones, so that some pass.
        for (0..4) |number| {
            const at = number * (channel.data_size / 4);
            const slot: *align(1) [4]u32 = @ptrCast(area[at..][0..16]);
            slot[0] = random.uintLessThan(u32, 8);
            slot[1] = if (random.boolean()) random.uintLessThan(u32, 120) else random.int(u32);
            slot[2] = if (random.boolean()) 0x0101 else random.int(u32);
            slot[3] = if (random.boolean()) 0 else random.int(u32);
        }
        pair.control(layout.property_version_offset).* = random.uintLessThan(u32, 8);
        var storage: [112 + 16]u8 = @splat(0xee);
        const value = pair.reader.get(storage[0..112]) catch |err| {
            try testing.expectEqual(error.PropertySlot, err);
            kinds[0] += 1;
            continue;
        };
        try testing.expectEqualSlices(u8, &@as([16]u8, @splat(0xee)), storage[112..]);
        kinds[if (value.bytes == null) 1 else 2] += 1;
    }
    for (kinds) |count| try testing.expect(count > 100);
}

/// Sets values in which one word is repeated.
const Storm = struct {
    pair: *Pair,
    stop: std.atomic.Value(bool) = .init(false),
    count: u32 = 0,

    fn run(storm: *Storm) void {
        while (!storm.stop.load(.monotonic)) {
            storm.count +%= 1;
            const value: [25]u32 = @splat(storm.count);
            storm.pair.writer.set(std.mem.asBytes(&value), .bytes) catch unreachable;
        }
    }
};

test "no value is torn, however fast it is set" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.init(.native);
    var storm: Storm = .{ .pair = &pair };
    const thread = try std.Thread.spawn(.{}, Storm.run, .{&storm});
    defer {
        storm.stop.store(true, .monotonic);
        thread.join();
    }
    const began_ns = millrace.Host.native.now();
    var last: u32 = 0;
    var changes: u32 = 0;
    var reads: u32 = 0;
    // If both threads share one processor, the other thread's turn may take long.
    while (reads < 200_000 or changes <= 10) {
        if (millrace.Host.native.now() - began_ns > 10_000_000_000) break;
        const value = pair.reader.get(&pair.storage) catch |err| switch (err) {
            error.PropertyBusy => continue,
            else => return err,
        };
        reads += 1;
        const bytes = value.bytes orelse continue;
        const words: *align(1) const [25]u32 = @ptrCast(bytes[0..100]);
        for (words) |each| try testing.expectEqual(words[0], each);
        try testing.expect(words[0] >= last);
        if (words[0] != last) changes += 1;
        last = words[0];
    }
    try testing.expect(changes > 10);
}

test "a wait for a change sleeps until it comes, on two threads" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var pair: Pair = undefined;
    try pair.init(.native);
    const Other = struct {
        fn run(writer: *millrace.PropertyWriter, answers: *millrace.PropertyReader) !void {
            for (1..1001) |round| {
                try writer.set(std.mem.asBytes(&@as(u32, @intCast(round))), .bytes);
                if (round < 1000 and !try answers.wait(.ms(10_000))) return error.NoAnswer;
                var storage: [1008]u8 = undefined;
                _ = try answers.get(&storage);
            }
        }
    };
    // The other property has the ends the other way round.
    var storage: [2]millrace.Channel = undefined;
    @memset(&pair.memory, 0);
    var channels = [_]millrace.Channel{ property.channelOf(0, 100), property.channelOf(1, 100) };
    try millrace.Segment.format(&pair.memory, .{ .endpoint_count = 2, .channels = &channels });
    const segment: millrace.Segment = try .attach(&pair.memory, &storage, .none);
    for (&pair.endpoints, 0..) |*endpoint, index| {
        endpoint.* = try .attach(&segment, @intCast(index), .{});
    }
    var writers: [2]millrace.PropertyWriter = undefined;
    var readers: [2]millrace.PropertyReader = undefined;
    for (&writers, &readers, 0..) |*writer, *reader, index| {
        const own: u32 = @intCast(index);
        try writer.open(&pair.endpoints[index], &segment, .{ .channel = own });
        reader.* = try .init(&pair.endpoints[index], &segment, .{ .channel = 1 - own });
    }
    const thread = try std.Thread.spawn(.{}, Other.run, .{ &writers[0], &readers[0] });
    defer thread.join();
    for (1..1001) |round| {
        try testing.expect(try readers[1].wait(.ms(10_000)));
        var bytes: [112]u8 = undefined;
        const value = try readers[1].get(&bytes);
        try testing.expectEqual(round, std.mem.readInt(u32, value.bytes.?[0..4], .little));
        try writers[1].set("seen", .text);
    }
}
