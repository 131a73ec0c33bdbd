//! The figures that a meter reports, as plain data, and as JSON by the schema that all
//! implementations share [meter.report].

const std = @import("std");
const meter_histogram = @import("tally.zig");
const Bucket = meter_histogram.Bucket;
const Distribution = meter_histogram.Distribution;
const Queue = @import("frames.zig").Queue;
const Stringify = std.json.Stringify;

/// All figures at one moment. Times are in microseconds, rates per second.
pub const Snapshot = struct {
    /// When the snapshot was taken, in milliseconds since the Unix epoch.
    at: f64,
    /// The microseconds over which the meter has counted.
    elapsed: f64,
    endpoint: struct {
        index: u32,
        wakes: u64,
        elided_wakes: u64,
        sleeps: u64,
    },
    outgoing: ?Outgoing,
    incoming: ?Incoming,

    /// The figures of the outgoing direction; `stall` is how long messages waited for room.
    pub const Outgoing = struct {
        messages: u64,
        bytes: u64,
        stalls: u64,
        message_rate: f64,
        byte_rate: f64,
        queue: Queue,
        stall: Distribution,
    };

    /// The figures of the incoming direction.
    pub const Incoming = struct {
        messages: u64,
        bytes: u64,
        values: u64,
        untimed: u64,
        message_rate: f64,
        byte_rate: f64,
        value_rate: f64,
        queue: Queue,
        waiting: Distribution,
        service: Distribution,
    };

    /// Writes the snapshot as JSON, at most 4 KB.
    pub fn writeJson(snapshot: *const Snapshot, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        var json: Stringify = .{ .writer = writer };
        try put(&json, snapshot.*);
    }

    /// For `std.json.Stringify`.
    pub fn jsonStringify(snapshot: *const Snapshot, json: *Stringify) Stringify.Error!void {
        try put(json, snapshot.*);
    }
};

/// Writes structs with their names in camel case, and a bucket as a pair.
pub fn put(json: *Stringify, value: anytype) Stringify.Error!void {
    const T = @TypeOf(value);
    switch (@typeInfo(T)) {
        .@"struct" => |info| {
            if (T == Bucket) return json.write([2]u64{ value.up_to, value.count });
            try json.beginObject();
            inline for (info.field_names) |name| {
                try json.objectField(comptime inCamelCase(name));
                try put(json, @field(value, name));
            }
            try json.endObject();
        },
        .optional => if (value) |there| try put(json, there) else try json.write(null),
        .array => {
            try json.beginArray();
            for (value) |item| try put(json, item);
            try json.endArray();
        },
        .float => try json.print("{d}", .{value}), // no exponent: the text stays short
        else => try json.write(value),
    }
}

fn inCamelCase(comptime name: []const u8) []const u8 {
    var camel: []const u8 = "";
    var words = std.mem.splitScalar(u8, name, '_');
    while (words.next()) |word| {
        const first = if (camel.len == 0) word[0] else std.ascii.toUpper(word[0]);
        camel = camel ++ [_]u8{first} ++ word[1..];
    }
    return camel;
}
