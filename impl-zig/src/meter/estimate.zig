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

test {
    _ = @import("estimate_test.zig");
}
