//! Tests of calls over a stream whose transport a test plays by hand: what lies between the port
//! and the peer there, and not in shared memory.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("../stream/fixture.zig");
const layout = millrace.layout;
const testing = std.testing;
const Bench = fixture.Bench;
const Calls = millrace.Calls;
const Wire = fixture.Wire;

const patience: millrace.Timeout = .ms(40);
const patience_ns = 40_000_000;

/// A port with calls over a bench. Must stay where it was opened.
const Side = struct {
    bench: Bench,
    calls: Calls,

    fn open(side: *Side) !void {
        const port = try side.bench.open(fixture.small);
        side.bench.bring(128, 256, &.{});
        side.bench.output.size = 0;
        side.calls.init(port, testing.allocator, .{});
    }
};

const Way = enum { write, notify, begin, items };

fn send(calls: *Calls, way: Way, timeout: millrace.Timeout) !?*millrace.Call {
    const options: Calls.CallOptions = .{ .timeout = timeout };
    switch (way) {
        .write => try calls.write("hi", .{}, timeout),
        .notify => try calls.notify("hi", .{}, options),
        .begin => return try calls.begin("hi", .{}, options),
        .items => return (try calls.items(u32, "hi", .{}, options)).call,
    }
    return null;
}

test "Calls: what may wait over a stream goes on until the transport has the message" {
    for (std.enums.values(Way)) |way| {
        var side: Side = undefined;
        try side.open();
        defer side.calls.deinit();
        const output = &side.bench.output;
        output.capacity = 20;
        const before_ns = fixture.now();
        const made = try send(&side.calls, way, patience);
        defer if (made) |call| call.release();
        try testing.expectEqual(patience_ns, fixture.now() - before_ns);
        try testing.expectEqual(20, output.size);
        // It was written all the same: the rest goes out when there is room.
        output.capacity = Wire.wire_size;
        side.bench.side.stream.pump();
        const extent: usize = if (way == .write) 32 else 48;
        try testing.expectEqual(extent, output.size);
        // Who does not wait leaves that to later calls.
        output.capacity = output.size;
        const again = try send(&side.calls, way, .none);
        defer if (again) |call| call.release();
        try testing.expectEqual(patience_ns, fixture.now() - before_ns);
    }
}

test "Calls: what waits for its transport takes in what arrives, and begins nothing" {
    const Api = struct {
        count: u32 = 0,

        pub fn hi(api: *@This(), _: millrace.Bytes) void {
            api.count += 1;
        }
    };
    var api: Api = .{};
    var side: Side = undefined;
    try side.open();
    defer side.calls.deinit();
    side.calls.serve(&api);
    side.bench.output.capacity = 0;
    // A notice, longer than half of the window, which is given back when it is taken in.
    var list: [96]u8 = @splat(0);
    list[0..18].* = "\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x40\x00".*;
    list[24..26].* = "hi".*;
    var place: [128]u8 = undefined;
    side.bench.input.putAll(fixture.frameOf(&place, .{
        .size = list.len,
        .kind = layout.frame_kind_call,
        .flags = layout.frame_flag_first | layout.frame_flag_last,
        .codec = @backingInt(millrace.Codec.values),
    }, &list));
    side.bench.side.stream.pump();
    try side.calls.write("hi", .{}, patience);
    try testing.expectEqual(0, api.count);
    try testing.expect(side.calls.pending.first != null);
    try testing.expectEqual(null, try side.calls.read(&.{}, .none));
    try testing.expectEqual(1, api.count);
}

test "Calls: what waits for its transport fails where the peer goes meanwhile" {
    for (std.enums.values(Way)) |way| {
        var side: Side = undefined;
        try side.open();
        defer side.calls.deinit();
        side.bench.output.capacity = 20;
        var place: [16]u8 = undefined;
        side.bench.input.putAll(fixture.control(&place, layout.stream_kind_close, 0));
        side.bench.input.cut = 1; // it comes while the call waits
        const made = send(&side.calls, way, .ms(5_000));
        switch (way) {
            .write, .notify => try testing.expectError(error.PeerClosed, made),
            // It was made: its end says so.
            .begin, .items => {
                const call = (try made).?;
                defer call.release();
                try testing.expectError(error.PeerClosed, call.finish(.none, null));
            },
        }
    }
}

test "Calls.vacate: refused over a stream: who comes back opens a new one" {
    var side: Side = undefined;
    try side.open();
    defer side.calls.deinit();
    var place: [16]u8 = undefined;
    side.bench.input.putAll(fixture.control(&place, layout.stream_kind_close, 0));
    try testing.expectError(error.PeerClosed, side.calls.read(&.{}, .none));
    try testing.expect(!side.calls.vacate());
    try testing.expectError(error.PeerClosed, side.calls.notify("hi", .{}, .{ .timeout = .none }));
}
