//! Estimates of handlers whose cost is known, with a clock that the test winds.

const std = @import("std");
const millrace = @import("../root.zig");
const clocks = @import("fixture.zig");
const Port = millrace.Port;
const estimate = millrace.meter.estimate;
const expectEqual = std.testing.expectEqual;
const expectError = std.testing.expectError;

/// A pipe with both ends on one thread. Must not move after it was initialized.
const Pipe = struct {
    memory: [16_384]u8 align(128),
    ports: [2]Port,

    fn init(pair: *Pipe) !void {
        clocks.now_ns = 1_000_000;
        clocks.asleep = null;
        try Port.format(&pair.memory, .{ .capacities = @splat(4096) });
        for (&pair.ports, 0..) |*port, index| {
            try port.attach(&pair.memory, @intCast(index), .{
                .endpoint = .{ .host = &clocks.wound, .spin_us = 0 },
            });
        }
    }

    fn writeAll(pair: *Pipe, texts: []const []const u8) !void {
        for (texts) |text| try pair.ports[0].write(text, .{}, .none);
    }
};

/// Notes its calls in order. Handles a message for as many microseconds as the message says.
const Told = struct {
    order: [8]u8 = undefined,
    count: usize = 0,
    /// The port that is looked at when `finish` is called.
    results: ?*Port = null,
    storage: [2048]u8 = undefined,
    result: ?[]const u8 = null,

    fn note(told: *Told, what: u8) void {
        told.order[told.count] = what;
        told.count += 1;
    }

    pub fn start(told: *Told) void {
        clocks.passUs(5_000); // counts for nobody
        told.note('<');
    }

    pub fn message(told: *Told, it: millrace.Message) !void {
        if (it.payload.len == 0) return error.Empty;
        clocks.passUs(try std.fmt.parseInt(u64, it.payload, 10));
        told.note(it.payload[0]);
    }

    pub fn finish(told: *Told) !void {
        clocks.passUs(7_000);
        told.note('>');
        const results = told.results orelse return;
        const found = try results.tryRead(&told.storage) orelse return error.NoResult;
        try expectEqual(millrace.Codec.json, found.codec);
        told.result = found.payload;
    }

    fn ofAll(told: *const Told) []const u8 {
        return told.order[0..told.count];
    }
};

test "estimate: [meter.estimate] the start, so many messages, the finish; neither is measured" {
    var pipe: Pipe = undefined;
    try pipe.init();
    try pipe.writeAll(&.{ "100", "300", "200", "400" }); // before the estimate begins
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const found = try estimate(&pipe.ports[1], &told, &storage, .{ .count = 3 });
    try std.testing.expectEqualStrings("<132>", told.ofAll());
    try expectEqual(3, found.count);
    try expectEqual(600, found.elapsed);
    try expectEqual(5_000, found.frequency);
    try expectEqual(3, found.service.count);
    try expectEqual(200, found.service.mean);
    try expectEqual(100, found.service.least);
    try expectEqual(300, found.service.most);
    // The rest of the messages is for others.
    try std.testing.expectEqualStrings("400", (try pipe.ports[1].tryRead(&storage)).?.payload);
}

test "estimate: [meter.estimate_result] the result is there before the finish is told of" {
    var pipe: Pipe = undefined;
    try pipe.init();
    var results: Pipe = undefined;
    try results.init();
    try pipe.writeAll(&.{ "20", "40" });
    var told: Told = .{ .results = &results.ports[1] };
    var storage: [64]u8 = undefined;
    const options: millrace.meter.EstimateOptions = .{
        .count = 2,
        .output = .{ .port = &results.ports[0] },
    };
    _ = try estimate(&pipe.ports[1], &told, &storage, options);
    try std.testing.expectEqualStrings(
        std.mem.trimEnd(u8, @embedFile("estimate.jsonl"), "\n"),
        told.result.?,
    );
}

test "estimate: a pipe of one direction will do, for the messages and for the result" {
    var pipe: Pipe = undefined;
    try pipe.init();
    try pipe.writeAll(&.{"30"});
    const Plain = struct {
        pub fn message(_: *const @This(), _: millrace.Message) void {
            clocks.passUs(30);
        }
    };
    var storage: [64]u8 = undefined;
    const found = try estimate(&pipe.ports[1].reader, &Plain{}, &storage, .{
        .count = 1,
        .output = .{ .writer = &pipe.ports[1].writer },
        .timeout = .none,
    });
    try expectEqual(30, found.service.p50);
    var result: [2048]u8 = undefined;
    const written = (try pipe.ports[0].tryRead(&result)).?.payload;
    try std.testing.expectStringStartsWith(written, "{\"count\":1,\"elapsed\":30,");
}

test "estimate: waits for messages belong to the frequency, and not to the service" {
    var pipe: Pipe = undefined;
    try pipe.init();
    try pipe.writeAll(&.{"100"});
    late = &pipe;
    clocks.asleep = writeLate;
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const found = try estimate(&pipe.ports[1], &told, &storage, .{ .count = 2 });
    try expectEqual(1_000, found.elapsed);
    try expectEqual(2_000, found.frequency);
    try expectEqual(100, found.service.most);
}

var late: *Pipe = undefined;

fn writeLate() void {
    clocks.passUs(800);
    late.ports[0].write("100", .{}, .none) catch unreachable;
}

test "estimate: the end of the stream ends it, and what was handled counts" {
    var pipe: Pipe = undefined;
    try pipe.init();
    try pipe.writeAll(&.{ "10", "10" });
    try pipe.ports[0].end();
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const found = try estimate(&pipe.ports[1], &told, &storage, .{ .count = 5 });
    try expectEqual(2, found.count);
    try std.testing.expectEqualStrings("<11>", told.ofAll());
    const none = try estimate(&pipe.ports[1], &told, &storage, .{ .count = 5 });
    try expectEqual(0, none.frequency);
    try expectEqual(0, none.service.mean);
}

test "estimate: a time that is over, and a handler that fails, end it without a finish" {
    var pipe: Pipe = undefined;
    try pipe.init();
    try pipe.writeAll(&.{"10"});
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const options: millrace.meter.EstimateOptions = .{ .count = 2, .timeout = .ms(3) };
    try expectError(error.Timeout, estimate(&pipe.ports[1], &told, &storage, options));
    try std.testing.expectEqualStrings("<1", told.ofAll());
    try pipe.writeAll(&.{""});
    try expectError(error.Empty, estimate(&pipe.ports[1], &told, &storage, options));
    try std.testing.expectEqualStrings("<1<", told.ofAll());
    // A message that the storage has no room for is an error of the read.
    try pipe.writeAll(&.{"1"});
    try expectError(error.MessageSize, estimate(&pipe.ports[1], &told, storage[0..0], options));
}
