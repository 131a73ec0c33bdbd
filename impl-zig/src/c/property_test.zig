//! Properties through the calls from C.

const std = @import("std");
const arguments = @import("arguments.zig");
const fixture = @import("fixture.zig");
const segments = @import("segment.zig");
const ports = @import("port.zig");
const properties = @import("property.zig");
const testing = std.testing;
const Ring = segments.Ring;
const Status = arguments.Status;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const nobody: u32 = 0xffff_ffff;
const first: u32 = 0xffff_ffff;

fn propertyOf(writer: u32, capacity: u32, name: ?[*:0]const u8) Ring {
    return .{ .writer = writer, .reader = nobody, .capacity = capacity, .kind = 2, .name = name };
}

/// Endpoint 0 sets `gain` and a property without a name; endpoint 1 gets them. There are also rings
/// both ways. Must not move after it was opened.
const Stage = struct {
    memory: [8192]u8 align(128) = @splat(0),
    segment_storage: Storage align(8) = @splat(0xaa),
    ports: [2]Storage align(8) = @splat(@splat(0xaa)),
    objects: [3]Storage align(8) = @splat(@splat(0xaa)),
    storage: [1008]u8 = undefined,
    value: properties.Value = undefined,

    const channels: [4]Ring = .{
        fixture.both[0],
        propertyOf(0, 100, "gain"),
        fixture.both[1],
        propertyOf(0, 1000, null),
    };

    fn open(stage: *Stage) !void {
        const create = segments.millrace_segment_create;
        const place = &stage.segment_storage;
        const memory = &stage.memory;
        try expectStatus(1, create(place, memory, memory.len, 2, &channels, channels.len, 0));
        // One port has rings, the other has none.
        try expectStatus(1, ports.millrace_port_attach(stage.port(0), place, 0));
        try expectStatus(1, ports.millrace_port_attach_endpoint(stage.port(1), place, 1));
        try stage.openWriter(0, first, "gain");
        try expectStatus(1, properties.millrace_property_open_reader(
            stage.reader(),
            stage.port(1),
            1,
            null,
        ));
    }

    fn openWriter(stage: *Stage, object: usize, channel: u32, name: ?[*:0]const u8) !void {
        const open_writer = properties.millrace_property_open_writer;
        try expectStatus(1, open_writer(&stage.objects[object], stage.port(0), channel, name));
    }

    fn leave(stage: *Stage) !void {
        for (0..2) |index| _ = ports.millrace_port_close(stage.port(index));
        for (&stage.objects) |*object| _ = properties.millrace_property_leave(object);
        for (0..2) |index| try expectStatus(1, ports.millrace_port_leave(stage.port(index)));
        try expectStatus(1, segments.millrace_segment_leave(&stage.segment_storage));
    }

    fn port(stage: *Stage, index: usize) *anyopaque {
        return &stage.ports[index];
    }

    fn writer(stage: *Stage) *anyopaque {
        return &stage.objects[0];
    }

    fn reader(stage: *Stage) *anyopaque {
        return &stage.objects[1];
    }

    fn set(stage: *Stage, value: []const u8, codec: u32) Status {
        return properties.millrace_property_set(stage.writer(), value.ptr, value.len, codec);
    }

    fn get(stage: *Stage, capacity: usize) Status {
        const storage = &stage.storage;
        return properties.millrace_property_get(stage.reader(), storage, capacity, &stage.value);
    }

    fn wait(stage: *Stage, timeout_ms: i32) Status {
        return properties.millrace_property_wait(stage.reader(), timeout_ms);
    }

    fn expectValue(stage: *Stage, version: u32, bytes: []const u8, codec: u32) !void {
        try expectStatus(1, stage.get(112));
        const expected: properties.Value = .{
            .size = bytes.len,
            .version = version,
            .codec = codec,
        };
        try testing.expectEqual(expected, stage.value);
        try testing.expectEqualStrings(bytes, stage.storage[0..bytes.len]);
    }

    fn expectNone(stage: *Stage, version: u32) !void {
        try expectStatus(0, stage.get(112));
        const expected: properties.Value = .{ .version = version };
        try testing.expectEqual(expected, stage.value);
    }
};

test "c_abi: a property is got as it was set last, again and again" {
    var stage: Stage = .{};
    try stage.open();
    try stage.expectNone(0);
    try expectStatus(1, stage.set("0.5", 2));
    try expectStatus(1, stage.set("0.75", 2));
    for (0..2) |_| try stage.expectValue(2, "0.75", 2);
    try expectStatus(1, properties.millrace_property_clear(stage.writer()));
    try stage.expectNone(3);
    // A value of 0 bytes is a value, and needs no storage.
    try expectStatus(1, stage.set("", 200));
    const get = properties.millrace_property_get;
    try expectStatus(1, get(stage.reader(), null, 0, &stage.value));
    try stage.expectValue(4, "", 200);
    // The rings go on without the property, and the value stays after the writer has gone.
    try expectStatus(1, fixture.write(stage.port(0), "[]", 1));
    try expectStatus(1, ports.millrace_port_close(stage.port(0)));
    try stage.expectValue(4, "", 200);
    try expectStatus(reasonStatus(.pipe_closed), stage.set("late", 1));
    const cleared = properties.millrace_property_clear(stage.writer());
    try expectStatus(reasonStatus(.pipe_closed), cleared);
    try stage.leave();
}

test "c_abi: a value that does not fit its property, or the storage, is refused" {
    var stage: Stage = .{};
    try stage.open();
    try testing.expectEqual(112, properties.millrace_property_value_size(stage.writer()));
    try testing.expectEqual(112, properties.millrace_property_value_size(stage.reader()));
    try testing.expectEqual(0, properties.millrace_property_value_size(stage.port(0)));
    const letters: [113]u8 = @splat('a');
    try expectStatus(reasonStatus(.property_size), stage.set(&letters, 1));
    try stage.expectNone(0);
    try expectStatus(1, stage.set(letters[0..112], 1));
    try stage.expectValue(1, letters[0..112], 1);
    try expectStatus(reasonStatus(.message_size), stage.get(111));
    try testing.expectEqual(properties.Value{}, stage.value);
    for ([_]u32{ 3, 4, 256, nobody }) |codec| try expectStatus(-256, stage.set("[1]", codec));
    try stage.expectValue(1, letters[0..112], 1);
    try stage.leave();
}

test "c_abi: a property is found by its channel or its name, before anything is attached" {
    var stage: Stage = .{};
    try stage.open();
    const segment = &stage.segment_storage;
    const find = properties.millrace_property_find;
    var found: u32 = 7;
    try expectStatus(1, find(segment, first, "gain", nobody, &found));
    try testing.expectEqual(1, found);
    try expectStatus(1, find(segment, 3, null, 0, &found));
    try testing.expectEqual(3, found);
    const none = reasonStatus(.property_channel);
    try expectStatus(none, find(segment, first, "gai", nobody, &found));
    try expectStatus(none, find(segment, first, "", nobody, &found));
    try expectStatus(none, find(segment, 0, null, nobody, &found));
    try expectStatus(none, find(segment, 4, null, nobody, &found));
    try expectStatus(none, find(segment, 3, null, 1, &found));
    try expectStatus(-256, find(segment, first, null, nobody, &found));
    try expectStatus(-256, find(segment, 1, "gain", nobody, &found));
    try expectStatus(-256, find(segment, 1, null, nobody, null));
    const open_writer = properties.millrace_property_open_writer;
    const open_reader = properties.millrace_property_open_reader;
    const object = &stage.objects[2];
    try expectStatus(none, open_writer(object, stage.port(1), first, "gain"));
    try expectStatus(none, open_reader(object, stage.port(1), 2, null));
    try expectStatus(-256, open_reader(object, segment, 1, null));
    try expectStatus(-256, open_reader(stage.reader(), stage.port(1), 1, null));
    try expectStatus(-256, properties.millrace_property_leave(object));
    try stage.leave();
}

test "c_abi: an end of a property has the calls of its own, and an endpoint alone no rings'" {
    var stage: Stage = .{};
    try stage.open();
    try expectStatus(-256, properties.millrace_property_set(stage.reader(), "a", 1, 1));
    try expectStatus(-256, properties.millrace_property_clear(stage.reader()));
    try expectStatus(-256, properties.millrace_property_wait(stage.writer(), 0));
    const get = properties.millrace_property_get;
    try expectStatus(-256, get(stage.writer(), &stage.storage, 112, &stage.value));
    try expectStatus(-256, get(stage.reader(), null, 112, &stage.value));
    try expectStatus(-256, get(stage.reader(), &stage.storage, 112, null));
    try expectStatus(-256, stage.wait(-2));
    const bare = stage.port(1);
    try expectStatus(-256, fixture.write(bare, "[]", 0));
    var message: ports.Message = undefined;
    try expectStatus(-256, ports.millrace_port_read(bare, null, 0, 0, &message));
    try expectStatus(-256, ports.millrace_port_peek(bare, 0, &message));
    try expectStatus(-256, ports.millrace_port_release(bare));
    try expectStatus(-256, ports.millrace_port_end(bare));
    try expectStatus(-256, ports.millrace_port_vacate(bare));
    try expectStatus(-256, ports.millrace_port_set_calls(bare, 1));
    try expectStatus(-256, ports.millrace_port_set_inbox(bare, null, 0));
    try expectStatus(1, ports.millrace_port_set_spin(bare, 0));
    try stage.leave();
}

test "c_abi: a wait for a change ends with one, in time, or with the writer" {
    var stage: Stage = .{};
    try stage.open();
    try expectStatus(0, stage.wait(0));
    try expectStatus(1, stage.set("a", 1));
    // Until the value was read.
    for (0..2) |_| try expectStatus(1, stage.wait(0));
    try stage.expectValue(1, "a", 1);
    try expectStatus(0, stage.wait(1));
    try expectStatus(1, properties.millrace_property_clear(stage.writer()));
    try expectStatus(1, stage.wait(0));
    try expectStatus(1, ports.millrace_port_set_blocking(stage.port(1), 0));
    try stage.expectNone(2);
    try expectStatus(reasonStatus(.wait_forbidden), stage.wait(1000));
    try expectStatus(1, stage.set("last", 1));
    try expectStatus(1, ports.millrace_port_close(stage.port(0)));
    try expectStatus(1, stage.wait(0));
    try stage.expectValue(3, "last", 1);
    try expectStatus(reasonStatus(.peer_closed), stage.wait(0));
    try expectStatus(1, ports.millrace_port_close(stage.port(1)));
    try expectStatus(reasonStatus(.pipe_closed), stage.wait(0));
    try stage.leave();
}

test "c_abi: to set, and to close, wakes who waits for a change" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    // A sleeper that is not woken notices by the end of a slice, every time. On a busy machine, a
    // sleeper that is woken may do so now and then.
    for (0..20) |_| {
        if (try lateWakes() == 0) break;
    } else return error.NeverWoken;
}

/// Sets the value that somebody waits for, and closes. Returns how often the sleeper noticed only
/// by the end of a slice.
fn lateWakes() !u64 {
    var stage: Stage = .{};
    try stage.open();
    try expectStatus(1, ports.millrace_port_set_spin(stage.port(1), 0));
    for ([_]Status{ 1, reasonStatus(.peer_closed) }) |expected| {
        var result: Status = undefined;
        const waiter = struct {
            fn run(own: *Stage, status: *Status) void {
                status.* = own.wait(20_000);
            }
        };
        const thread = try std.Thread.spawn(.{}, waiter.run, .{ &stage, &result });
        // Waits until the sleeper has asked to be rung: its bit is in the first word of `watchers`.
        const watchers = watchersOf(&stage);
        const asked = for (0..10_000_000) |_| {
            if (@atomicLoad(u32, watchers, .seq_cst) != 0) break true;
            std.Thread.yield() catch {};
        } else false;
        if (expected == 1) {
            try expectStatus(1, stage.set("b", 1));
        } else {
            try expectStatus(1, ports.millrace_port_close(stage.port(0)));
        }
        thread.join();
        try testing.expect(asked);
        try expectStatus(expected, result);
        _ = stage.get(112);
    }
    var stats: ports.Stats = undefined;
    try expectStatus(1, ports.millrace_port_stats(stage.port(1), &stats));
    try stage.leave();
    return stats.late_wakes;
}

/// Returns the first word of the watchers of `gain`.
fn watchersOf(stage: *Stage) *u32 {
    const object = segments.Object.known(&stage.segment_storage).?;
    const channel = object.body.get().channels[1];
    return @ptrCast(@alignCast(&stage.memory[channel.control_offset + 128]));
}

test "c_abi: a port stays while properties are open through it, and one that sets until it closes" {
    var stage: Stage = .{};
    try stage.open();
    try stage.openWriter(2, 3, null);
    const leave = properties.millrace_property_leave;
    for (0..2) |index| try expectStatus(-256, ports.millrace_port_leave(stage.port(index)));
    try expectStatus(1, leave(stage.reader()));
    try expectStatus(-256, leave(stage.reader()));
    try expectStatus(1, ports.millrace_port_leave(stage.port(1)));
    try expectStatus(-256, leave(stage.writer()));
    try expectStatus(1, ports.millrace_port_close(stage.port(0)));
    try expectStatus(1, leave(stage.writer()));
    try expectStatus(-256, ports.millrace_port_leave(stage.port(0)));
    try expectStatus(1, leave(&stage.objects[2]));
    try expectStatus(1, ports.millrace_port_leave(stage.port(0)));
    try expectStatus(1, segments.millrace_segment_leave(&stage.segment_storage));
}

test "c_abi: a property is made with its name, or refused" {
    const size = segments.millrace_memory_size;
    const long: [125:0]u8 = @splat('n');
    const good = [_]Ring{
        propertyOf(0, 0, null),
        propertyOf(1, 112, ""),
        propertyOf(0, 113, long[1..]),
        propertyOf(0, 1 << 20, "größe"),
    };
    const sizes = [_]u32{ 512, 512, 1024, 4 * (1 << 20) + 512 };
    for (good, sizes) |channel, bytes| {
        try testing.expectEqual(512 + 384 + bytes, size(2, &channel, 1));
    }
    var bad: [9]Ring = @splat(good[1]);
    bad[0].writer = 2;
    bad[1].reader = 1;
    bad[2].start = 16;
    bad[3].name = &long;
    bad[4].name = "\xff";
    bad[5].kind = 4;
    bad[6].capacity = std.math.maxInt(u32);
    bad[7].capacity = 1 << 30;
    bad[8] = .{ .writer = 0, .reader = 1, .capacity = 256, .name = "ring" };
    for (bad) |channel| try testing.expectEqual(0, size(2, &channel, 1));

    // A process that finds a segment compares the names.
    var memory: [4096]u8 align(128) = @splat(0);
    var object: Storage align(8) = @splat(0xaa);
    const create = segments.millrace_segment_create;
    for ([_]?[*:0]const u8{ "gain", "gains", null, "gain" }, 0..) |name, index| {
        const channel = propertyOf(0, 100, name);
        const same = index % 3 == 0;
        const expected = if (same) 1 else reasonStatus(.segment_geometry);
        try expectStatus(expected, create(&object, &memory, memory.len, 2, &channel, 1, 0));
        if (same) try expectStatus(1, segments.millrace_segment_leave(&object));
    }
}
