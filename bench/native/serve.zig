//! One end in a file, for a driver in another language to measure:
//!
//!     millrace-bench-native serve PATH SIDE CAPACITY SPIN_US
//!     millrace-bench-native calls PATH CAPACITY SPIN_US DIRECTION COUNT WARMUP_MS
//!
//! It creates the port or opens it, whichever comes first. `serve` sends back what comes until the
//! stream ends. `calls` is the first side of calls: it says `ready`, serves until the other side
//! leaves, or calls that (`up`), and then says what it has measured.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const Histogram = @import("histogram.zig").Histogram;
const now = millrace.Host.native.now;

const patience: millrace.Timeout = .ms(20_000);
const storage_size = 1 << 20;

var echo_storage: [storage_size]u8 align(64) = undefined;

// They hold pointers into themselves.
var file: millrace.SegmentFile = undefined;
var port: millrace.Port = undefined;
var channels_storage: [2]millrace.Channel = undefined;

/// Opens one side of a port in a file. Returns false if no ring can have that capacity.
fn open(path: [:0]const u8, side: u1, capacity: u32, spin_us: u32) !bool {
    const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
    if (!rings.valid()) return false;
    const channels = rings.channels();
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    try file.create(path, geometry, side, &channels_storage, .{ .timeout = patience });
    errdefer file.close();
    try port.init(&file.segment, side, .{ .endpoint = .{ .spin_us = spin_us } });
    return true;
}

fn close() void {
    port.close();
    file.close();
}

/// Echoes: sends back what comes until the stream ends.
pub fn echo(arguments: *std.process.Args.Iterator) !void {
    const path = arguments.next() orelse return usage();
    const side = number(arguments.next()) orelse return usage();
    const capacity = number(arguments.next()) orelse return usage();
    const spin_us = number(arguments.next()) orelse return usage();
    if (side > 1 or !try open(path, @intCast(side), capacity, spin_us)) return usage();
    defer close();
    while (try port.read(&echo_storage, patience)) |message| {
        try port.write(message.payload, .{ .codec = message.codec, .tag = message.tag }, patience);
    }
    if (!port.ended()) return error.Timeout;
    try port.end();
}

const ns_per_ms = 1_000_000;
/// A lap is as many calls as take so long, so that the clock costs next to nothing.
const lap_ns = 2_000;

/// What is served.
const Api = struct {
    has_left: bool = false,

    pub fn ask(value: i64) i64 {
        return value + 1;
    }

    pub fn nest(serving: *millrace.Serving, value: i64) !i64 {
        return try serving.calls.call(i64, "ask", .{value}, .{ .timeout = patience }) + 1;
    }

    pub fn leave(api: *Api) void {
        api.has_left = true;
    }
};

// It holds a pointer into itself.
var calls: millrace.Calls = undefined;
var histogram: Histogram = undefined;

/// Plays the first side of calls, in the way that the words tell.
pub fn call(gpa: std.mem.Allocator, io: std.Io, words: *std.process.Args.Iterator) !void {
    const path = words.next() orelse return usage();
    const capacity = number(words.next()) orelse return usage();
    const spin_us = number(words.next()) orelse return usage();
    const direction = words.next() orelse return usage();
    const count = number(words.next()) orelse return usage();
    const warmup_ms = number(words.next()) orelse return usage();
    if (!try open(path, 0, capacity, spin_us)) return usage();
    defer close();
    calls.init(&port, gpa, .{});
    defer calls.deinit();
    var api: Api = .{};
    calls.serve(&api);

    var storage: [4096]u8 = undefined;
    var output = std.Io.File.stdout().writer(io, &storage);
    const writer = &output.interface;
    try writer.writeAll("ready\n");
    try writer.flush();
    if (std.mem.eql(u8, direction, "up")) {
        const result = try callUp(gpa, count, warmup_ms);
        try std.json.Stringify.value(result, .{ .emit_null_optional_fields = false }, writer);
        try calls.call(void, "leave", .{}, .{ .timeout = patience });
        try calls.end(patience);
    } else {
        while (try calls.read(&.{}, patience)) |_| {}
        if (!api.has_left) return error.Timeout;
        try writer.writeAll("{}");
    }
    try writer.writeAll("\n");
    try writer.flush();
}

/// Calls the other side so many times.
fn callUp(gpa: std.mem.Allocator, count: u64, warmup_ms: u64) !protocol.Result {
    const warm_ns = now();
    var next: i64 = 0;
    while (now() - warm_ns < warmup_ms * ns_per_ms) : (next += 1) try once(next);
    const turn_ns = @max(1, (now() - warm_ns) / @as(u64, @intCast(@max(1, next))));
    const turns = std.math.clamp(lap_ns / turn_ns, 1, 64);
    histogram.clear();
    const begin_ns = now();
    var at_ns = begin_ns;
    while (histogram.total < count) {
        for (0..turns) |_| {
            try once(next);
            next += 1;
        }
        const then_ns = now();
        histogram.recordMany((then_ns - at_ns) / turns, turns);
        at_ns = then_ns;
    }
    return .{
        .count = histogram.total,
        .elapsed_ns = at_ns - begin_ns,
        .latency = try histogram.sparse(gpa),
    };
}

fn once(next: i64) !void {
    const answer = try calls.call(i64, "ask", .{next}, .{ .timeout = patience });
    if (answer != next + 1) return error.WrongAnswer;
}

fn number(word: ?[:0]const u8) ?u32 {
    return std.fmt.parseInt(u32, word orelse return null, 10) catch null;
}

fn usage() void {
    std.debug.print(
        \\Usage: millrace-bench-native serve PATH SIDE CAPACITY SPIN_US
        \\       millrace-bench-native calls PATH CAPACITY SPIN_US DIRECTION COUNT WARMUP_MS
        \\
    , .{});
    std.process.exit(2);
}
