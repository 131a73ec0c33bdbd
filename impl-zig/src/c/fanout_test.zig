//! Fanouts through the calls from C.

const std = @import("std");
const builtin = @import("builtin");
const arguments = @import("arguments.zig");
const fixture = @import("fixture.zig");
const fanouts = @import("fanout.zig");
const layout = @import("../memory/layout.zig");
const ports = @import("port.zig");
const segments = @import("segment.zig");
const testing = std.testing;
const Message = fanouts.FanoutMessage;
const Ring = segments.Ring;
const Status = arguments.Status;
const Storage = fixture.Storage;
const expectStatus = fixture.expectStatus;
const reasonStatus = fixture.reasonStatus;

const first: u32 = 0xffff_ffff;
const closed: Status = -@as(Status, @backingInt(layout.Reason.pipe_closed));

fn fanoutOf(writer: u32, last: u32, start: u32) Ring {
    return .{ .writer = writer, .reader = last, .capacity = 256, .start = start, .kind = 3 };
}

/// Endpoint 0 writes in mode `hold` or `lose`; endpoints 1 and 2 read. Must not move after `open`.
const Stage = struct {
    memory: [4096]u8 align(128) = @splat(0),
    segment_storage: Storage align(8) = @splat(0xaa),
    ports: [3]Storage align(8) = @splat(@splat(0xaa)),
    objects: [3]Storage align(8) = @splat(@splat(0xaa)),
    storage: [256]u8 = undefined,
    message: Message = undefined,

    /// Opens the writer and the given number of readers.
    fn open(stage: *Stage, start: u32, reader_count: u32) !void {
        const channels = [_]Ring{fanoutOf(0, 2, start)};
        const create = segments.millrace_segment_create;
        const place = &stage.segment_storage;
        const memory = &stage.memory;
        try expectStatus(1, create(place, memory, memory.len, 3, &channels, 1, 0));
        for (0..3) |index| {
            const attach = ports.millrace_port_attach_endpoint;
            try expectStatus(1, attach(stage.port(index), place, @intCast(index)));
        }
        const open_writer = fanouts.millrace_fanout_open_writer;
        try expectStatus(1, open_writer(stage.end(0), stage.port(0), first));
        for (1..1 + reader_count) |index| try expectStatus(1, stage.join(index, 0));
    }

    fn join(stage: *Stage, index: usize, oldest: i32) Status {
        const open_reader = fanouts.millrace_fanout_open_reader;
        return open_reader(stage.end(index), stage.port(index), 0, oldest);
    }

    fn leave(stage: *Stage) !void {
        for (0..3) |index| {
            try expectStatus(1, ports.millrace_port_close(stage.port(index)));
            _ = fanouts.millrace_fanout_leave(stage.end(index));
            try expectStatus(1, ports.millrace_port_leave(stage.port(index)));
        }
        try expectStatus(1, segments.millrace_segment_leave(&stage.segment_storage));
    }

    fn port(stage: *Stage, index: usize) *anyopaque {
        return &stage.ports[index];
    }

    fn end(stage: *Stage, index: usize) *anyopaque {
        return &stage.objects[index];
    }

    fn write(stage: *Stage, payload: []const u8, timeout_ms: i32) Status {
        const write_one = fanouts.millrace_fanout_write;
        return write_one(stage.end(0), payload.ptr, payload.len, 200, 7, timeout_ms);
    }

    /// Writes through an end that may not be a writer.
    fn writeBy(stage: *Stage, index: usize) Status {
        return fanouts.millrace_fanout_write(stage.end(index), "a", 1, 200, 7, 0);
    }

    fn read(stage: *Stage, index: usize, timeout_ms: i32) Status {
        const read_one = fanouts.millrace_fanout_read;
        const storage = &stage.storage;
        return read_one(stage.end(index), storage, storage.len, timeout_ms, &stage.message);
    }

    fn expectRead(stage: *Stage, index: usize, payload: []const u8, number: u64) !void {
        try expectStatus(1, stage.read(index, 0));
        const expected: Message = .{
            .size = payload.len,
            .number = number,
            .tag = 7,
            .codec = 200,
        };
        try testing.expectEqual(expected, stage.message);
        try testing.expectEqualStrings(payload, stage.storage[0..payload.len]);
    }

    /// Expects a read with this status, after which the message is all 0.
    fn expectNone(stage: *Stage, index: usize, status: Status) !void {
        try expectStatus(status, stage.read(index, 0));
        try testing.expectEqual(Message{}, stage.message);
    }

    /// Returns a word of the control area, or of the records after it.
    fn word(stage: *Stage, offset: usize) *u32 {
        const object = segments.Object.known(&stage.segment_storage).?;
        const channel = object.body.get().channels[0];
        return @ptrCast(@alignCast(&stage.memory[channel.control_offset + offset]));
    }
};

test "c_abi: every reader of a fanout gets every message, and its end" {
    var stage: Stage = .{};
    try stage.open(0, 2);
    for ([_]usize{ 1, 2 }) |index| try stage.expectNone(index, 0);
    try expectStatus(1, stage.write("to all", 0));
    try expectStatus(1, stage.write("", 0));
    for ([_]usize{ 1, 2 }) |index| try stage.expectRead(index, "to all", 0);
    try stage.expectRead(1, "", 0);
    // A message of no bytes needs no storage.
    const read = fanouts.millrace_fanout_read;
    try expectStatus(1, read(stage.end(2), null, 0, 0, &stage.message));
    for (0..2) |_| try expectStatus(1, fanouts.millrace_fanout_end(stage.end(0)));
    try expectStatus(reasonStatus(.pipe_ended), stage.write("late", 0));
    for ([_]usize{ 1, 2, 1 }) |index| try stage.expectNone(index, 2);
    try stage.leave();
}

test "c_abi: the slowest reader of a fanout holds its writer back, until it leaves" {
    var stage: Stage = .{};
    try stage.open(0, 2);
    var count: u32 = 0;
    while (stage.write("held", 0) == 1) count += 1;
    try testing.expectEqual(7, count);
    try expectStatus(0, stage.write("held", 1));
    for (0..7) |_| try stage.expectRead(1, "held", 0);
    try expectStatus(0, stage.write("on", 0));
    const set_joined = fanouts.millrace_fanout_set_joined;
    for (0..2) |_| try expectStatus(1, set_joined(stage.end(2), 0));
    try expectStatus(-256, stage.read(2, 0));
    for (0..7) |_| {
        try expectStatus(1, stage.write("on", 0));
        try stage.expectRead(1, "on", 0);
    }
    for (0..2) |_| try expectStatus(1, set_joined(stage.end(2), 1));
    try stage.expectNone(2, 0);
    try expectStatus(1, stage.write("again", 0));
    try stage.expectRead(2, "again", 0);
    // An object that was given up does not hold the writer back either.
    try expectStatus(1, fanouts.millrace_fanout_leave(stage.end(2)));
    for (0..20) |_| {
        _ = stage.read(1, 0);
        try expectStatus(1, stage.write("gone", 0));
    }
    try expectStatus(1, stage.join(2, 0));
    try expectStatus(1, stage.write("back", 0));
    try stage.expectRead(2, "back", 0);
    try stage.leave();
}

test "c_abi: a reader of a fanout that was overrun is told how many messages it lost" {
    var stage: Stage = .{};
    try stage.open(1, 1);
    for (0..3) |_| try expectStatus(1, stage.write("one", 0));
    try stage.expectRead(1, "one", 0);
    for (0..8) |_| try expectStatus(1, stage.write("two", 0));
    try expectStatus(reasonStatus(.message_lost), stage.read(1, 0));
    const lost = stage.message.lost;
    try testing.expectEqual(Message{ .lost = lost }, stage.message);
    try testing.expect(lost >= 4 and lost < 10);
    // A reader that joins late may start at the oldest message, which is the same one here.
    try expectStatus(1, stage.join(2, 1));
    try stage.expectRead(1, "two", 1 + lost);
    try stage.expectRead(2, "two", 1 + lost);
    try expectStatus(-256, fanouts.millrace_fanout_set_joined(stage.end(1), 0));
    try stage.leave();
}

test "c_abi: many messages of a fanout are written at once, or as many as there is room for" {
    var stage: Stage = .{};
    try stage.open(0, 1);
    const many = fanouts.millrace_fanout_write_many;
    var pieces: [100]ports.Piece = @splat(.{ .address = "many", .size = 4 });
    var written: usize = 9;
    try expectStatus(0, many(stage.end(0), &pieces, pieces.len, 200, 7, 0, &written));
    try testing.expectEqual(7, written);
    for (0..7) |_| try stage.expectRead(1, "many", 0);
    try expectStatus(1, many(stage.end(0), &pieces, 3, 200, 7, 0, &written));
    try testing.expectEqual(3, written);
    try expectStatus(1, many(stage.end(0), null, 0, 200, 7, 0, &written));
    try testing.expectEqual(0, written);
    const letters: [113]u8 = @splat('a');
    pieces[2] = .{ .address = &letters, .size = letters.len };
    const too_large = reasonStatus(.message_size);
    try expectStatus(too_large, many(stage.end(0), &pieces, 3, 200, 7, 0, &written));
    try testing.expectEqual(0, written);
    pieces[2].address = null;
    try expectStatus(-256, many(stage.end(0), &pieces, 3, 200, 7, 0, &written));
    for (0..3) |_| try stage.expectRead(1, "many", 0);
    try stage.expectNone(1, 0);
    // The writer waits for nobody, so it writes all of them, 64 at a time.
    try expectStatus(1, fanouts.millrace_fanout_leave(stage.end(1)));
    pieces[2] = pieces[0];
    try expectStatus(1, many(stage.end(0), &pieces, pieces.len, 200, 7, 0, &written));
    try testing.expectEqual(100, written);
    try stage.leave();
}

test "c_abi: a message that does not fit its fanout, or the storage, is refused" {
    for ([_]u32{ 0, 1 }, [_]u32{ 112, 32 }) |start, size_max| {
        var stage: Stage = .{};
        try stage.open(start, 1);
        for (0..2) |index| {
            try testing.expectEqual(size_max, fanouts.millrace_fanout_size_max(stage.end(index)));
        }
        try testing.expectEqual(0, fanouts.millrace_fanout_size_max(stage.port(0)));
        const letters: [113]u8 = @splat('a');
        const too_large = reasonStatus(.message_size);
        try expectStatus(too_large, stage.write(letters[0 .. size_max + 1], 0));
        try stage.expectNone(1, 0);
        try expectStatus(1, stage.write(letters[0..size_max], 0));
        const read = fanouts.millrace_fanout_read;
        const storage = &stage.storage;
        const message = &stage.message;
        try expectStatus(too_large, read(stage.end(1), storage, size_max - 1, 0, message));
        try testing.expectEqual(Message{}, stage.message);
        try expectStatus(1, stage.write(letters[0..size_max], 0));
        try stage.expectRead(1, letters[0..size_max], start);
        try stage.leave();
    }
}

test "c_abi: a fanout is found before anything is attached, and opened once at each place" {
    var stage: Stage = .{};
    const channels = [_]Ring{ fixture.both[0], fanoutOf(2, 0, 0), fanoutOf(2, 1, 1) };
    const place = &stage.segment_storage;
    const memory = &stage.memory;
    const create = segments.millrace_segment_create;
    try expectStatus(1, create(place, memory, memory.len, 3, &channels, channels.len, 0));
    const find_writer = fanouts.millrace_fanout_find_writer;
    const find_reader = fanouts.millrace_fanout_find_reader;
    var found: u32 = 9;
    try expectStatus(1, find_writer(place, 2, first, &found));
    try testing.expectEqual(1, found);
    try expectStatus(1, find_reader(place, 1, first, &found));
    try testing.expectEqual(2, found);
    const none = reasonStatus(.segment_channel);
    try expectStatus(none, find_writer(place, 0, first, &found));
    try expectStatus(none, find_reader(place, 1, 1, &found));
    for ([_]u32{ 0, 3 }) |channel| try expectStatus(none, find_writer(place, 2, channel, &found));
    const taken = reasonStatus(.segment_endpoint);
    try expectStatus(taken, find_writer(place, 3, first, &found));
    try expectStatus(-256, find_writer(place, 2, first, null));
    try expectStatus(-256, find_writer(memory, 2, first, &found));

    const attach = ports.millrace_port_attach_endpoint;
    for (0..3) |index| try expectStatus(1, attach(stage.port(index), place, @intCast(index)));
    try expectStatus(taken, find_writer(place, 2, first, &found));
    const open_writer = fanouts.millrace_fanout_open_writer;
    const open_reader = fanouts.millrace_fanout_open_reader;
    try expectStatus(none, open_writer(stage.end(0), stage.port(0), first));
    try expectStatus(none, open_reader(stage.end(0), stage.port(2), first, 0));
    try expectStatus(none, open_reader(stage.end(0), stage.port(1), 1, 0));
    try expectStatus(-256, open_reader(stage.end(0), stage.port(0), 1, 1));
    try expectStatus(-256, open_reader(stage.end(0), place, 1, 0));
    try expectStatus(-256, fanouts.millrace_fanout_leave(stage.end(0)));
    try expectStatus(1, open_reader(stage.end(0), stage.port(0), first, 0));
    try expectStatus(-256, open_reader(stage.end(0), stage.port(0), 2, 0));
    // This storage has that end already; an end of another channel may have another storage.
    try expectStatus(-256, open_reader(stage.end(1), stage.port(0), 1, 0));
    try expectStatus(1, open_reader(stage.end(1), stage.port(0), 2, 0));
    try expectStatus(1, open_writer(stage.end(2), stage.port(2), first));
    var other: Storage align(8) = @splat(0xaa);
    try expectStatus(-256, open_writer(&other, stage.port(2), 1));
    try expectStatus(1, open_writer(&other, stage.port(2), 2));

    // An end that is open keeps its port, and a writer cannot be left until the port is closed.
    for ([_]usize{ 0, 2 }) |index| {
        try expectStatus(-256, ports.millrace_port_leave(stage.port(index)));
    }
    for (0..2) |index| try expectStatus(1, fanouts.millrace_fanout_leave(stage.end(index)));
    try expectStatus(1, ports.millrace_port_leave(stage.port(0)));
    try expectStatus(-256, fanouts.millrace_fanout_leave(stage.end(2)));
    try expectStatus(1, ports.millrace_port_close(stage.port(2)));
    try expectStatus(closed, stage.writeBy(2));
    try expectStatus(1, fanouts.millrace_fanout_leave(stage.end(2)));
    try expectStatus(-256, ports.millrace_port_leave(stage.port(2)));
    try expectStatus(1, fanouts.millrace_fanout_leave(&other));
    for (1..3) |index| try expectStatus(1, ports.millrace_port_leave(stage.port(index)));
    try expectStatus(1, segments.millrace_segment_leave(place));
}

test "c_abi: an end of a fanout has the calls of its own" {
    var stage: Stage = .{};
    try stage.open(0, 1);
    try expectStatus(-256, stage.writeBy(1));
    try expectStatus(-256, fanouts.millrace_fanout_end(stage.end(1)));
    try expectStatus(-256, stage.read(0, 0));
    try expectStatus(-256, fanouts.millrace_fanout_set_joined(stage.end(0), 0));
    const read = fanouts.millrace_fanout_read;
    try expectStatus(-256, read(stage.end(1), null, 1, 0, &stage.message));
    try expectStatus(-256, read(stage.end(1), null, 0, 0, null));
    try expectStatus(-256, stage.read(1, -2));
    const write = fanouts.millrace_fanout_write;
    try expectStatus(-256, write(stage.end(0), null, 1, 0, 0, 0));
    try expectStatus(-256, write(stage.end(0), "a", 1, 256, 0, 0));
    try expectStatus(-256, write(stage.end(0), "a", 1, 0, 0, -2));
    try expectStatus(-256, write(stage.port(0), "a", 1, 0, 0, 0));
    try expectStatus(1, ports.millrace_port_set_blocking(stage.port(1), 0));
    try expectStatus(reasonStatus(.wait_forbidden), stage.read(1, 1000));
    try stage.leave();
}

test "c_abi: who breaks a fanout's words is found out, and nobody else is harmed" {
    const hold = layout.fanout_control_size;
    // The writer's cursor, which one of its readers checks.
    var stage: Stage = .{};
    try stage.open(0, 2);
    try expectStatus(1, stage.write("fine", 0));
    try stage.expectRead(2, "fine", 0);
    stage.word(layout.fanout_tail_offset).* = 8;
    for (0..2) |_| try stage.expectNone(1, reasonStatus(.ring_cursor));
    try expectStatus(reasonStatus(.pipe_failed), stage.write("more", 0));
    const reason = ports.millrace_port_reason(stage.port(0));
    try testing.expectEqual(@backingInt(layout.Reason.ring_cursor), reason);
    try stage.leave();

    // A reader's own word, which the writer checks: it goes on with the other reader.
    stage = .{};
    try stage.open(0, 2);
    stage.word(hold).* = 0x1000 + layout.fanout_joined;
    for (0..20) |_| {
        try expectStatus(1, stage.write("on", 0));
        try stage.expectRead(2, "on", 0);
    }
    try stage.expectNone(1, reasonStatus(.pipe_failed));
    try stage.leave();

    // A number other than the next one, and an invalid header extension.
    for ([_]usize{ 24, 16 }, [_]layout.Reason{ .fanout_number, .frame_extension }) |at, code| {
        stage = .{};
        try stage.open(1, 1);
        try expectStatus(1, stage.write("first", 0));
        const object = segments.Object.known(&stage.segment_storage).?;
        stage.memory[object.body.get().channels[0].data_offset + at] +%= 1;
        for (0..2) |_| try stage.expectNone(1, reasonStatus(code));
        try stage.leave();
    }
}

const Wish = enum { message, end, close, room };

test "c_abi: a reader of a fanout is woken by a message and by its end, and a writer by room" {
    if (builtin.single_threaded) return error.SkipZigTest;
    // A sleeper that is not woken notices by the end of a slice, every time. On a busy machine, a
    // sleeper that is woken may do so now and then.
    for (std.enums.values(Wish)) |wish| {
        for (0..20) |_| {
            if (try lateWakes(wish) == 0) break;
        } else return error.NeverWoken;
    }
}

/// Does what a sleeper waits for. Returns how often the sleeper noticed only by the end of a slice.
fn lateWakes(wish: Wish) !u64 {
    const index: u32 = if (wish == .room) 0 else 1;
    var stage: Stage = .{};
    try stage.open(0, 1);
    try expectStatus(1, ports.millrace_port_set_spin(stage.port(index), 0));
    if (wish == .room) while (stage.write("full", 0) == 1) {};
    const Waiter = struct {
        fn run(own: *Stage, is_writer: bool, status: *Status) void {
            status.* = if (is_writer) own.write("room", 20_000) else own.read(1, 20_000);
        }
    };
    var status: Status = undefined;
    const thread = try std.Thread.spawn(.{}, Waiter.run, .{ &stage, wish == .room, &status });
    const asked = awaitWord(stage.word(if (wish == .room)
        layout.fanout_control_size + layout.fanout_reader_writer_wants_offset
    else
        layout.fanout_readers_want_offset));
    switch (wish) {
        .message => try expectStatus(1, stage.write("wake", 0)),
        .end => try expectStatus(1, fanouts.millrace_fanout_end(stage.end(0))),
        .close => try expectStatus(1, ports.millrace_port_close(stage.port(0))),
        .room => for (0..7) |_| try expectStatus(1, stage.read(1, 0)),
    }
    thread.join();
    try testing.expect(asked);
    try expectStatus(switch (wish) {
        .message, .room => 1,
        .end => 2,
        .close => reasonStatus(.peer_closed),
    }, status);
    if (wish == .room) try stage.expectRead(1, "room", 0);
    var stats: ports.Stats = undefined;
    try expectStatus(1, ports.millrace_port_stats(stage.port(index), &stats));
    try stage.leave();
    return stats.late_wakes;
}

/// Waits until somebody has asked to be rung. How long that takes depends on the machine.
fn awaitWord(word: *u32) bool {
    return for (0..10_000_000) |_| {
        if (@atomicLoad(u32, word, .seq_cst) != 0) break true;
        std.Thread.yield() catch {};
    } else false;
}

test "c_abi: a fanout is made with its readers, or refused" {
    const size = segments.millrace_memory_size;
    const good = [_]Ring{ fanoutOf(0, 1, 0), fanoutOf(1, 0, 1), fanoutOf(2, 1, 0xffff_fff1) };
    for (good, [_]u32{ 1, 2, 2 }) |channel, reader_count| {
        const expected = 128 + 3 * 128 + 128 + 256 + 128 * reader_count + 256;
        try testing.expectEqual(expected, size(3, &channel, 1));
    }
    var bad: [8]Ring = @splat(fanoutOf(0, 1, 0));
    bad[0].writer = 3;
    bad[1].reader = 3;
    bad[2].reader = 0;
    bad[3].reader = first;
    bad[4].capacity = 384;
    bad[5].start = 2;
    bad[6].start = 17 + 8;
    bad[7].name = "fanout";
    for (bad) |channel| try testing.expectEqual(0, size(3, &channel, 1));
}
