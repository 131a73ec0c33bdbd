//! The lines of JSON between the runner and a driver: what is to be measured, and what came of it.

const std = @import("std");

/// One run that the runner asks for. Names that this driver does not know are declined, not
/// refused: the runner offers every scenario to every peer.
pub const Request = struct {
    id: u64,
    peer: []const u8,
    scenario: Scenario,
    repetition: u32 = 0,
};

pub const Scenario = struct {
    name: []const u8,
    /// Bytes of each message.
    size: u32 = 64,
    format: []const u8 = "bytes",
    ends: []const u8 = "threads",
    wait: Wait = .spin,
    pin: Pin = .free,
    duration_ms: u32 = 200,
    warmup_ms: u32 = 50,
    /// Messages per second that are offered, whatever becomes of them.
    rate: u32 = 10_000,
    /// How long the reader is busy with each of these.
    service_us: u32 = 0,
    /// Whether each message is to be taken over before the next is written.
    awaited: bool = false,
    /// Messages that are written before an answer is awaited.
    burst: u32 = 1_000,
    /// Messages, or tasks, that may be under way.
    window: u32 = 4_096,
    /// `pool`: how long each task keeps its worker busy.
    task_us: f64 = 0,

    /// `calls`: which way they go; `nested` is one back inside of each, and so two trips.
    direction: []const u8 = "down",

    /// `own` is as each library does it by itself.
    pub const Wait = enum { spin, park, own };
    pub const Pin = enum { free, @"one-core" };

    pub fn is(scenario: *const Scenario, name: []const u8) bool {
        return std.mem.eql(u8, scenario.name, name);
    }

    /// Trips there and back that belong to one turn.
    pub fn trips(scenario: *const Scenario) u32 {
        return if (std.mem.eql(u8, scenario.direction, "nested")) 2 else 1;
    }

    pub fn inProcesses(scenario: *const Scenario) bool {
        return std.mem.eql(u8, scenario.ends, "processes");
    }
};

/// Values and how often each was seen.
pub const Sparse = struct {
    unit: []const u8 = "ns",
    values: []const u64,
    counts: []const u64,
};

/// What one run gave. `null` is not measured.
pub const Result = struct {
    /// Messages, or round trips.
    count: u64,
    elapsed_ns: u64,
    latency: ?Sparse = null,
    waiting: ?Sparse = null,
    service: ?Sparse = null,
    /// How often either end left its processor of its own accord, as the kernel counts it.
    sleeps: ?u64 = null,
    /// Of both ends; of the parked one alone where that is the question.
    cpu_ms: ?f64 = null,
    bytes: ?u64 = null,
    /// Bytes of pages that either end touched for the first time.
    bytes_allocated: ?u64 = null,
    notes: ?[]const []const u8 = null,
};

pub const Answer = union(enum) {
    result: Result,
    decline: []const u8,
    @"error": []const u8,
};

pub const Hello = struct {
    driver: struct {
        name: []const u8,
        version: []const u8,
        place: []const u8 = "native",
        peers: []const []const u8,
    },
};

const options: std.json.Stringify.Options = .{ .emit_null_optional_fields = false };

pub fn writeHello(writer: *std.Io.Writer, hello: Hello) !void {
    try std.json.Stringify.value(hello, options, writer);
    try writer.writeByte('\n');
    try writer.flush();
}

pub fn writeAnswer(writer: *std.Io.Writer, id: u64, answer: Answer) !void {
    switch (answer) {
        inline else => |body, tag| {
            try writer.print("{{\"id\":{d},\"{t}\":", .{ id, tag });
            try std.json.Stringify.value(body, options, writer);
        },
    }
    try writer.writeAll("}\n");
    try writer.flush();
}

test "an answer leaves out what was not measured" {
    var storage: [256]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&storage);
    try writeAnswer(&writer, 7, .{ .result = .{ .count = 3, .elapsed_ns = 40, .sleeps = 0 } });
    try writeAnswer(&writer, 8, .{ .decline = "why" });
    const expected =
        \\{"id":7,"result":{"count":3,"elapsed_ns":40,"sleeps":0}}
        \\{"id":8,"decline":"why"}
        \\
    ;
    try std.testing.expectEqualStrings(expected, writer.buffered());
}
