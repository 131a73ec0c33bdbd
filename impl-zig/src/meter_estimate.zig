//! How long a handler takes, and how many messages a second it can handle, measured in isolation
//! [spec/meter.md].

const std = @import("std");
const host_file = @import("host.zig");
const meter_histogram = @import("meter_histogram.zig");
const meter_snapshot = @import("meter_snapshot.zig");
const pipe = @import("pipe.zig");
const wait = @import("wait.zig");
const assert = std.debug.assert;
const Distribution = meter_histogram.Distribution;
const Histogram = meter_histogram.Histogram;
const Message = pipe.Message;
const Port = @import("port.zig").Port;
const ReadError = pipe.ReadError;
const Reader = pipe.Reader;
const Stringify = std.json.Stringify;
const Timeout = host_file.Timeout;
const WriteError = pipe.WriteError;
const Writer = pipe.Writer;

const ns_per_us = 1_000;
const ns_per_s = 1_000_000_000;
/// An estimate as JSON: 22 buckets and four numbers beside them, each of 20 digits at most, are
/// less than this.
const json_size_max = 2048;

/// What was measured, as plain data.
pub const Estimate = struct {
    /// Messages that were handled: fewer than were asked for, where the stream has ended.
    count: u64,
    /// Microseconds from the first message to the end of the last service.
    elapsed: f64,
    /// Messages handled in a second, the waits for them included; 0 where `elapsed` is 0.
    frequency: f64,
    /// How long the handler has taken, in microseconds.
    service: Distribution,

    /// Writes it as JSON, in 2 KB at most.
    pub fn writeJson(measured: *const Estimate, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        var json: Stringify = .{ .writer = writer };
        try meter_snapshot.put(&json, measured.*);
    }

    /// For `std.json.Stringify`.
    pub fn jsonStringify(measured: *const Estimate, json: *Stringify) Stringify.Error!void {
        try meter_snapshot.put(json, measured.*);
    }
};

/// How to measure.
pub const EstimateOptions = struct {
    /// How many messages to measure, from 1.
    count: u64,
    /// A pipe of its own, to which the result is written as JSON.
    output: ?Output = null,
    /// How long each message may take to come, and the result to find room.
    timeout: Timeout = .forever,

    pub const Output = union(enum) { port: *Port, writer: *Writer };
};

/// Hands so many messages of a `*Port` or `*Reader` to a handler, and measures how long it takes
/// for one, and how many it handles in a second. `handler` is a pointer to a struct with
/// `pub fn message(*Handler, Message) !void`. Where that has `pub fn start(*Handler) !void` and
/// `pub fn finish(*Handler) !void`, it is told that it begins, before the first message, and that
/// it is over, behind the last one. Each of the three may return `void` alone. `storage` is that of
/// `read`: a message lies in it until the handler returns.
///
/// The result goes to `output` before `finish`, and is returned. To know what the handler itself is
/// able to, have the messages in the ring beforehand; otherwise the frequency is that of their
/// writer. Where the stream ends earlier, what has come counts. Looks at the clock twice for each
/// message, and takes 20 KB of the stack [meter.estimate].
///
/// Fails as `read` and `write` do, with `error.Timeout` where no message came in time, and with
/// what the handler fails with; then the handler is not told that it is over.
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
    // [meter.estimate_result] Who is told that it is over may end this thread.
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
    measured.writeJson(&json) catch unreachable; // it is as large as it can be
    switch (output) {
        inline else => |end| try end.write(json.buffered(), .{ .codec = .json }, timeout),
    }
}

/// What a function of the handler's may return: nothing, or an error instead.
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
    _ = @import("meter_estimate_test.zig");
}
