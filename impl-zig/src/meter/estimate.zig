//! Measures in isolation how long a handler takes, and how many messages per second it can handle
//! [spec/meter.md].

const std = @import("std");
const host_file = @import("../wait/mechanism.zig");
const meter_histogram = @import("tally.zig");
const meter_snapshot = @import("snapshot.zig");
const pipe = @import("../pipe/ends.zig");
const wait = @import("../wait/endpoint.zig");
const assert = std.debug.assert;
const Distribution = meter_histogram.Distribution;
const Histogram = meter_histogram.Histogram;
const Message = pipe.Message;
const Port = @import("../port/port.zig").Port;
const ReadError = pipe.ReadError;
const Reader = pipe.Reader;
const Stringify = std.json.Stringify;
const Timeout = host_file.Timeout;
const WriteError = pipe.WriteError;
const Writer = pipe.Writer;

const ns_per_us = 1_000;
const ns_per_s = 1_000_000_000;
/// The most bytes of an estimate as JSON: 22 buckets and four other numbers, with at most 20 digits
/// each, are less than this.
const json_size_max = 2048;

/// The result of `estimate`, as plain data.
pub const Estimate = struct {
    /// How many messages were handled; fewer than asked for if the stream has ended.
    count: u64,
    /// Microseconds from the first message to the end of the last service.
    elapsed: f64,
    /// Messages handled per second, with the waits for messages included; 0 if `elapsed` is 0.
    frequency: f64,
    /// How long the handler took per message, in microseconds.
    service: Distribution,

    /// Writes the estimate as JSON, at most 2 KB.
    pub fn writeJson(measured: *const Estimate, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        var json: Stringify = .{ .writer = writer };
        try meter_snapshot.put(&json, measured.*);
    }

    /// For `std.json.Stringify`.
    pub fn jsonStringify(measured: *const Estimate, json: *Stringify) Stringify.Error!void {
        try meter_snapshot.put(json, measured.*);
    }
};

/// Options of `estimate`.
pub const EstimateOptions = struct {
    /// The number of messages to measure, at least 1.
    count: u64,
    /// A port or a writer, with a pipe of its own, to which the result is written as JSON.
    output: ?Output = null,
    /// How long to wait for each message, and for room for the result.
    timeout: Timeout = .forever,

    pub const Output = union(enum) { port: *Port, writer: *Writer };
};

/// Hands `count` messages of a `*Port` or `*Reader` to a handler. Measures how long the handler
/// takes for one, and how many it handles per second. `handler` points to a struct with `pub fn
/// message(*Handler, Message) !void`. The struct may also have `pub fn start(*Handler) !void`,
/// which is called before the first message, and `pub fn finish(*Handler) !void`, which is called
/// after the last one. Each of the three may return just `void`. `storage` is passed to `read`: a
/// message lies in it until the handler returns.
///
/// The result is written to `output` before `finish` is called, and returned. To learn what the
/// handler itself can do, put the messages into the ring beforehand; otherwise the frequency is
/// limited by their writer. If the stream ends early, the messages that have come count. Reads the
/// clock twice per message, and takes 20 KB of stack [meter.estimate].
///
/// Fails with the errors of `read`, of `write` and of the handler, and with `error.Timeout` if no
/// message came in time. In that case, `finish` is not called.
///
/// Asserts that `count` is not 0.
///
/// Thread safety: belongs to the thread of the endpoints.
pub fn estimate(
    source: anytype,
    handler: anytype,
    storage: []u8,
    options: EstimateOptions,
) !Estimate {
    assert(options.count > 0);
    const Handler = @typeInfo(@TypeOf(handler)).pointer.child;
    const host = endpointOf(source).host;
    if (@hasDecl(Handler, "start")) try failing(handler.start());
    var service: Histogram = .{};
    var begun_ns: u64 = 0;
    var ended_ns: u64 = 0;
    while (service.count < options.count) {
        const message = try source.read(storage, options.timeout) orelse {
            if (source.ended()) break;
            return error.Timeout;
        };
        const taken_ns = host.now();
        if (service.count == 0) begun_ns = taken_ns;
        try failing(handler.message(message));
        ended_ns = host.now();
        service.record(ended_ns -| taken_ns);
    }
    const measured = resultOf(&service, ended_ns -| begun_ns);
    if (options.output) |output| try send(&measured, output, options.timeout);
    // [meter.estimate_result] Called last, because `finish` may end this thread.
    if (@hasDecl(Handler, "finish")) try failing(handler.finish());
    return measured;
}

fn resultOf(service: *const Histogram, elapsed_ns: u64) Estimate {
    const count: f64 = @floatFromInt(service.count);
    const elapsed: f64 = @floatFromInt(elapsed_ns);
    return .{
        .count = service.count,
        .elapsed = elapsed / ns_per_us,
        .frequency = if (elapsed_ns == 0) 0 else count * ns_per_s / elapsed,
        .service = service.distribution(),
    };
}

fn send(
    measured: *const Estimate,
    output: EstimateOptions.Output,
    timeout: Timeout,
) WriteError!void {
    var storage: [json_size_max]u8 = undefined;
    var json: std.Io.Writer = .fixed(&storage);
    measured.writeJson(&json) catch unreachable; // the storage holds the largest estimate
    switch (output) {
        inline else => |end| try end.write(json.buffered(), .{ .codec = .json }, timeout),
    }
}

/// Passes on the error of a handler's function, which may also be one that returns just `void`.
fn failing(result: anytype) !void {
    if (@typeInfo(@TypeOf(result)) == .error_union) try result;
}

fn endpointOf(source: anytype) *wait.Endpoint {
    return switch (@TypeOf(source)) {
        *Port => &source.endpoint,
        *Reader => source.ring.endpoint,
        else => |Source| @compileError("Cannot read from " ++ @typeName(Source) ++
            ": it is no *Port or *Reader"),
    };
}

// Tests.
//
// Estimates of handlers whose cost is known, with a clock that the test winds.

const millrace = @import("../root.zig");
const clocks = @import("fixture.zig");
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
    var pair: Pipe = undefined;
    try pair.init();
    try pair.writeAll(&.{ "100", "300", "200", "400" }); // before the estimate begins
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const found = try estimate(&pair.ports[1], &told, &storage, .{ .count = 3 });
    try std.testing.expectEqualStrings("<132>", told.ofAll());
    try expectEqual(3, found.count);
    try expectEqual(600, found.elapsed);
    try expectEqual(5_000, found.frequency);
    try expectEqual(3, found.service.count);
    try expectEqual(200, found.service.mean);
    try expectEqual(100, found.service.least);
    try expectEqual(300, found.service.most);
    // The rest of the messages is for others.
    try std.testing.expectEqualStrings("400", (try pair.ports[1].tryRead(&storage)).?.payload);
}

test "estimate: [meter.estimate_result] the result is there before the finish is told of" {
    var pair: Pipe = undefined;
    try pair.init();
    var results: Pipe = undefined;
    try results.init();
    try pair.writeAll(&.{ "20", "40" });
    var told: Told = .{ .results = &results.ports[1] };
    var storage: [64]u8 = undefined;
    const options: millrace.meter.EstimateOptions = .{
        .count = 2,
        .output = .{ .port = &results.ports[0] },
    };
    _ = try estimate(&pair.ports[1], &told, &storage, options);
    try std.testing.expectEqualStrings(
        std.mem.trimEnd(u8, @embedFile("estimate.jsonl"), "\n"),
        told.result.?,
    );
}

test "estimate: a pipe of one direction will do, for the messages and for the result" {
    var pair: Pipe = undefined;
    try pair.init();
    try pair.writeAll(&.{"30"});
    const Plain = struct {
        pub fn message(_: *const @This(), _: millrace.Message) void {
            clocks.passUs(30);
        }
    };
    var storage: [64]u8 = undefined;
    const found = try estimate(&pair.ports[1].reader, &Plain{}, &storage, .{
        .count = 1,
        .output = .{ .writer = &pair.ports[1].writer },
        .timeout = .none,
    });
    try expectEqual(30, found.service.p50);
    var result: [2048]u8 = undefined;
    const written = (try pair.ports[0].tryRead(&result)).?.payload;
    try std.testing.expectStringStartsWith(written, "{\"count\":1,\"elapsed\":30,");
}

test "estimate: waits for messages belong to the frequency, and not to the service" {
    var pair: Pipe = undefined;
    try pair.init();
    try pair.writeAll(&.{"100"});
    late = &pair;
    clocks.asleep = writeLate;
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const found = try estimate(&pair.ports[1], &told, &storage, .{ .count = 2 });
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
    var pair: Pipe = undefined;
    try pair.init();
    try pair.writeAll(&.{ "10", "10" });
    try pair.ports[0].end();
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const found = try estimate(&pair.ports[1], &told, &storage, .{ .count = 5 });
    try expectEqual(2, found.count);
    try std.testing.expectEqualStrings("<11>", told.ofAll());
    const none = try estimate(&pair.ports[1], &told, &storage, .{ .count = 5 });
    try expectEqual(0, none.frequency);
    try expectEqual(0, none.service.mean);
}

test "estimate: a time that is over, and a handler that fails, end it without a finish" {
    var pair: Pipe = undefined;
    try pair.init();
    try pair.writeAll(&.{"10"});
    var told: Told = .{};
    var storage: [64]u8 = undefined;
    const options: millrace.meter.EstimateOptions = .{ .count = 2, .timeout = .ms(3) };
    try expectError(error.Timeout, estimate(&pair.ports[1], &told, &storage, options));
    try std.testing.expectEqualStrings("<1", told.ofAll());
    try pair.writeAll(&.{""});
    try expectError(error.Empty, estimate(&pair.ports[1], &told, &storage, options));
    try std.testing.expectEqualStrings("<1<", told.ofAll());
    // A message that the storage has no room for is an error of the read.
    try pair.writeAll(&.{"1"});
    try expectError(error.MessageSize, estimate(&pair.ports[1], &told, storage[0..0], options));
}
