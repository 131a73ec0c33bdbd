//! Meters for C: they count and time what a port does [spec/meter.md]. `millrace_meter.h` says what
//! each call promises.

const std = @import("std");
const arguments = @import("arguments.zig");
const c_port = @import("port.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const Bytes = @import("../ring/side.zig").Bytes;
const Deadline = host.Deadline;
const Meter = @import("../meter/meter.zig").Meter;
const Port = @import("../port/port.zig").Port;
const Snapshot = @import("../meter/meter.zig").Snapshot;
const Status = arguments.Status;
const Timeout = host.Timeout;

/// The meter of a port, by the directions that the port has. The port calls it in place of its own
/// ends.
pub const Metered = union(enum) {
    port: Meter(Port),
    writer: Meter(pipe.Writer),
    reader: Meter(pipe.Reader),

    pub fn write(
        metered: *Metered,
        payload: []const u8,
        envelope: pipe.Envelope,
        timeout: Timeout,
    ) pipe.WriteError!void {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| return meter.write(payload, envelope, timeout),
        }
    }

    pub fn writeMany(
        metered: *Metered,
        payloads: []const []const u8,
        envelope: pipe.Envelope,
        deadline: *Deadline,
    ) pipe.WriteError!usize {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| return meter.writeManyWith(payloads, envelope, deadline),
        }
    }

    pub fn claim(metered: *Metered, size: u32, timeout: Timeout) pipe.WriteError!Bytes {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| return meter.claim(size, timeout),
        }
    }

    /// Finishes the message in the claimed place, and publishes it.
    pub fn publish(metered: *Metered, size: u32, envelope: pipe.Envelope) void {
        switch (metered.*) {
            .reader => unreachable,
            inline else => |*meter| {
                meter.finish(size, envelope);
                meter.publish();
            },
        }
    }

    pub fn read(metered: *Metered, storage: []u8, timeout: Timeout) pipe.ReadError!?pipe.Message {
        switch (metered.*) {
            .writer => unreachable,
            inline else => |*meter| return meter.read(storage, timeout),
        }
    }

    pub fn peek(metered: *Metered, timeout: Timeout) pipe.ReadError!?pipe.Lent {
        switch (metered.*) {
            .writer => unreachable,
            inline else => |*meter| return meter.peek(timeout),
        }
    }

    fn snapshot(metered: *Metered) Snapshot {
        switch (metered.*) {
            inline else => |*meter| return meter.snapshot(),
        }
    }
};

const Body = struct {
    metered: Metered,
    port: *c_port.Object,
};

const Object = arguments.Object(Body, .meter);

pub export fn millrace_meter_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_meter_attach(meter: ?*anyopaque, port: ?*anyopaque) Status {
    const object = Object.blank(meter) orelse return arguments.invalid;
    const measured = c_port.Object.known(port) orelse return arguments.invalid;
    if (!measured.body.takeMeter(&object.body.metered)) return arguments.invalid;
    object.body.port = measured;
    object.seal();
    return arguments.done;
}

pub export fn millrace_meter_done(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    switch (object.body.metered) {
        .writer => return arguments.invalid,
        inline else => |*known| known.done(),
    }
    return arguments.done;
}

pub export fn millrace_meter_next_value(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    switch (object.body.metered) {
        .writer => return arguments.invalid,
        inline else => |*known| known.nextValue(),
    }
    return arguments.done;
}

pub export fn millrace_meter_reset(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    switch (object.body.metered) {
        inline else => |*known| known.reset(),
    }
    return arguments.done;
}

/// `MILLRACE_METER_REPORT_SIZE`, which includes the final zero.
const report_size = 4096;

pub export fn millrace_meter_report(
    meter: ?*anyopaque,
    storage: ?*anyopaque,
    capacity: usize,
    size: ?*anyopaque,
) Status {
    const result = arguments.resultAt(usize, size) orelse return arguments.invalid;
    result.* = 0;
    const object = Object.known(meter) orelse return arguments.invalid;
    const place = arguments.storageAt(storage, capacity) orelse return arguments.invalid;
    if (place.len < report_size) return arguments.invalid;
    var json: std.Io.Writer = .fixed(place[0 .. report_size - 1]);
    // The storage suffices for the largest report [meter.report].
    object.body.metered.snapshot().writeJson(&json) catch unreachable;
    result.* = json.end;
    place[json.end] = 0;
    return arguments.done;
}

pub export fn millrace_meter_leave(meter: ?*anyopaque) Status {
    const object = Object.known(meter) orelse return arguments.invalid;
    object.body.port.body.dropMeter();
    object.forget();
    return arguments.done;
}

// Tests.
//
// Meters through the calls from C: the calls of the port are metered as long as one is attached.

const calls = @import("call.zig");
const fixture = @import("fixture.zig");
const segments = @import("segment.zig");
const testing = std.testing;
const Pair = fixture.Pair;
const expectStatus = fixture.expectStatus;
const done = arguments.done;
const invalid = arguments.invalid;

const Place = [64 * 1024]u8;

/// The figures of a report that these tests look at. A test of the JSON has all of its names.
const Report = struct {
    endpoint: struct { index: u32 },
    outgoing: ?struct { messages: u64, bytes: u64, stalls: u64 },
    incoming: ?struct {
        messages: u64,
        bytes: u64,
        values: u64,
        untimed: u64,
        waiting: struct { count: u64 },
        service: struct { count: u64 },
    },
};

fn report(meter: *anyopaque) !Report {
    var text: [4096]u8 = undefined;
    var size: usize = undefined;
    try expectStatus(done, millrace_meter_report(meter, &text, text.len, @ptrCast(&size)));
    try testing.expectEqual(0, text[size]);
    var storage: [8192]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&storage);
    const options: std.json.ParseOptions = .{ .ignore_unknown_fields = true };
    return std.json.parseFromSliceLeaky(Report, fixed.allocator(), text[0..size], options);
}

/// Both sides of a pair with a meter each.
const Table = struct {
    pair: Pair,
    places: [2]Place align(8),

    fn open(table: *Table) !void {
        table.pair = .{};
        try table.pair.open();
        for (0..2) |index| {
            @memset(&table.places[index], 0xaa);
            const attached = millrace_meter_attach(table.meter(index), table.side(index));
            try expectStatus(done, attached);
        }
    }

    fn leave(table: *Table) void {
        for (0..2) |index| _ = millrace_meter_leave(table.meter(index));
        table.pair.leave();
    }

    fn meter(table: *Table, index: usize) *anyopaque {
        return &table.places[index];
    }

    fn side(table: *Table, index: usize) *anyopaque {
        return table.pair.side(index);
    }
};

test "c_abi: a meter counts what its port writes and reads, by whichever call" {
    var table: Table = undefined;
    try table.open();
    defer table.leave();
    const writer = table.side(0);
    const reader = table.side(1);
    try expectStatus(done, fixture.write(writer, "[1]", 1));
    const pieces = [_]c_port.Piece{
        .{ .address = "[23]", .size = 4 },
        .{ .address = "[4]", .size = 3 },
    };
    var written: usize = undefined;
    try expectStatus(done, c_port.millrace_port_write_many(
        writer,
        &pieces,
        pieces.len,
        2,
        7,
        0,
        @ptrCast(&written),
    ));
    try testing.expectEqual(2, written);
    var place: ?*anyopaque = undefined;
    try expectStatus(done, c_port.millrace_port_claim(writer, 8, 0, @ptrCast(&place)));
    @memcpy(@as([*]u8, @ptrCast(place.?))[0..4], "[56]");
    try testing.expectEqual(3, (try report(table.meter(0))).outgoing.?.messages);
    try expectStatus(done, c_port.millrace_port_publish(writer, 4, 2, 8));
    try fixture.expectRead(reader, "[1]", 1);
    try fixture.expectRead(reader, "[23]", 7);
    try fixture.expectRead(reader, "[4]", 7);
    var lent: c_port.Message = undefined;
    try expectStatus(done, c_port.millrace_port_peek(reader, 0, @ptrCast(&lent)));
    try expectStatus(done, c_port.millrace_port_release(reader));
    try expectStatus(done, millrace_meter_done(table.meter(1)));

    const out = (try report(table.meter(0))).outgoing.?;
    try testing.expectEqual(4, out.messages);
    try testing.expectEqual(14, out.bytes);
    const found = try report(table.meter(1));
    try testing.expectEqual(1, found.endpoint.index);
    try testing.expectEqual(0, found.outgoing.?.messages);
    const in = found.incoming.?;
    try testing.expectEqual(4, in.messages);
    try testing.expectEqual(14, in.bytes);
    try testing.expectEqual(0, in.untimed); // [meter.time]
    try testing.expectEqual(4, in.waiting.count);
    try testing.expectEqual(4, in.service.count);

    try expectStatus(done, millrace_meter_reset(table.meter(1)));
    try testing.expectEqual(0, (try report(table.meter(1))).incoming.?.messages);
    // A message that does not fit the ring has to wait for room.
    const large: [100]u8 = @splat('1');
    var count: u32 = 0;
    while (fixture.write(writer, &large, 0) == done) count += 1;
    try testing.expect(count < 3);
    try testing.expectEqual(0, (try report(table.meter(0))).outgoing.?.stalls);
    const timed = c_port.millrace_port_write(writer, &large, large.len, 2, 0, 1);
    try expectStatus(arguments.nothing, timed);
    try testing.expectEqual(1, (try report(table.meter(0))).outgoing.?.stalls);
}

test "c_abi: a port without a meter stores no time, and one that has left its meter goes on" {
    var table: Table = undefined;
    try table.open();
    defer table.leave();
    try expectStatus(invalid, c_port.millrace_port_leave(table.side(0)));
    try expectStatus(done, millrace_meter_leave(table.meter(0)));
    try expectStatus(invalid, millrace_meter_leave(table.meter(0)));
    try expectStatus(done, fixture.write(table.side(0), "[1,2,3]", 0));
    try fixture.expectRead(table.side(1), "[1,2,3]", 0);
    for (0..2) |_| try expectStatus(done, millrace_meter_next_value(table.meter(1)));
    const in = (try report(table.meter(1))).incoming.?;
    try testing.expectEqual(1, in.messages);
    try testing.expectEqual(3, in.values);
    try testing.expectEqual(3, in.untimed);
    try expectStatus(done, fixture.write(table.side(1), "[4]", 0));
    try fixture.expectRead(table.side(0), "[4]", 0);
}

test "c_abi: a meter of one direction reports no other, and refuses what belongs to that" {
    var memory: [4096]u8 align(128) = @splat(0);
    var segment: fixture.Storage align(8) = @splat(0);
    const one = [_]segments.Ring{.{ .writer = 0, .reader = 1, .capacity = 256 }};
    const size = memory.len;
    const made = segments.millrace_segment_create(&segment, &memory, size, 2, &one, 1, 0);
    try expectStatus(done, made);
    var storages: [2]fixture.Storage align(8) = @splat(@splat(0));
    const first = std.math.maxInt(u32);
    const writing = c_port.millrace_port_attach_writer(&storages[0], &segment, 0, first);
    try expectStatus(done, writing);
    const reading = c_port.millrace_port_attach_reader(&storages[1], &segment, 1, first);
    try expectStatus(done, reading);
    var places: [2]Place align(8) = @splat(@splat(0));
    for (&places, &storages) |*place, *port| {
        try expectStatus(done, millrace_meter_attach(place, port));
    }
    try expectStatus(done, fixture.write(&storages[0], "[1]", 5));
    try fixture.expectRead(&storages[1], "[1]", 5);
    const out = try report(&places[0]);
    try testing.expectEqual(null, out.incoming);
    try testing.expectEqual(1, out.outgoing.?.messages);
    const in = try report(&places[1]);
    try testing.expectEqual(null, in.outgoing);
    try testing.expectEqual(1, in.incoming.?.waiting.count);
    try expectStatus(invalid, millrace_meter_done(&places[0]));
    try expectStatus(invalid, millrace_meter_next_value(&places[0]));
    try expectStatus(invalid, fixture.write(&storages[1], "[1]", 0));
    var message: c_port.Message = undefined;
    const none = c_port.millrace_port_read(&storages[0], null, 0, 0, @ptrCast(&message));
    try expectStatus(invalid, none);
    for (&places) |*place| try expectStatus(done, millrace_meter_leave(place));
    for (&storages) |*port| try expectStatus(done, c_port.millrace_port_leave(port));
    try expectStatus(done, segments.millrace_segment_leave(&segment));
}

test "c_abi: a meter refuses what is no port, a second one, calls, and too little room" {
    var table: Table = undefined;
    try table.open();
    defer table.leave();
    try testing.expect(millrace_meter_size() <= @sizeOf(Place));
    var place: Place align(8) = @splat(0);
    try expectStatus(invalid, millrace_meter_attach(&place, table.side(0)));
    try expectStatus(invalid, millrace_meter_attach(&place, table.meter(0)));
    try expectStatus(invalid, millrace_meter_attach(table.meter(0), table.side(0)));
    try expectStatus(invalid, millrace_meter_attach(null, table.side(0)));
    var storage: fixture.Storage align(8) = @splat(0);
    const called = calls.millrace_calls_attach(&storage, table.side(0), fixture.allocate, null);
    try expectStatus(invalid, called);
    var text: [4096]u8 = undefined;
    var size: usize = undefined;
    const meter = table.meter(0);
    const small = millrace_meter_report(meter, &text, 4095, @ptrCast(&size));
    try expectStatus(invalid, small);
    try expectStatus(invalid, millrace_meter_report(meter, null, 4096, @ptrCast(&size)));
    try expectStatus(invalid, millrace_meter_report(meter, &text, 4096, null));
    try expectStatus(invalid, millrace_meter_reset(&place));
}
