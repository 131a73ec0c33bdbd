//! Counts how often each duration was seen, in a fixed amount of memory and without allocation.
//!
//! Invariant: a percentile differs from the true duration by at most 1 in 128 (0.8 %); count, sum,
//! least and most are exact.

const std = @import("std");
const assert = std.debug.assert;

/// Each duration below this many nanoseconds has its own count. Above, each doubling has half as
/// many counts, so a count is at most as wide as a 64th of its shortest duration.
const exact_count = 128;
const half = exact_count / 2;
const digits = 7;
/// Durations from 2^42 ns (73 minutes) on share the last count. No waiting time is that long.
const bits_max = 42;
const place_count = exact_count + half * (bits_max - digits);

/// The upper bounds in microseconds of a distribution's buckets: 1, 2, 5, 10 and so on up to 10 s
/// [meter.report].
pub const edges_us = edges: {
    var list: [22]u64 = undefined;
    var power: u64 = 1;
    for (&list, 0..) |*edge, index| {
        edge.* = power * ([_]u64{ 1, 2, 5 })[index % 3];
        if (index % 3 == 2) power *= 10;
    }
    break :edges list;
};

/// A bucket of a distribution: how many durations were at most `up_to` microseconds.
pub const Bucket = struct { up_to: u64, count: u64 };

/// The figures of many durations, in microseconds; all are 0 if there were none.
pub const Distribution = struct {
    count: u64,
    mean: f64,
    least: f64,
    most: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    /// Each bucket also counts what the buckets before it count.
    buckets: [edges_us.len]Bucket,
};

comptime {
    assert(exact_count == 1 << digits);
}

/// Counts durations in nanoseconds. It has 19 KB; recording a duration touches one count of them.
///
/// Thread safety: belongs to one thread.
pub const Histogram = struct {
    counts: [place_count]u64 = @splat(0),
    /// How many durations were recorded.
    count: u64 = 0,
    sum_ns: u64 = 0,
    least_ns: u64 = std.math.maxInt(u64),
    most_ns: u64 = 0,

    /// Records one duration.
    pub fn record(histogram: *Histogram, ns: u64) void {
        histogram.counts[placeOf(ns)] += 1;
        histogram.count += 1;
        histogram.sum_ns +%= ns;
        histogram.least_ns = @min(histogram.least_ns, ns);
        histogram.most_ns = @max(histogram.most_ns, ns);
    }

    /// Adds the counts of another histogram, such as that of a thread that has ended.
    pub fn add(histogram: *Histogram, other: *const Histogram) void {
        for (&histogram.counts, other.counts) |*count, more| count.* += more;
        histogram.count += other.count;
        histogram.sum_ns +%= other.sum_ns;
        histogram.least_ns = @min(histogram.least_ns, other.least_ns);
        histogram.most_ns = @max(histogram.most_ns, other.most_ns);
    }

    /// Returns the mean in nanoseconds; 0 if there were no durations.
    pub fn mean(histogram: *const Histogram) u64 {
        return if (histogram.count == 0) 0 else histogram.sum_ns / histogram.count;
    }

    /// Returns the nanoseconds that this share of the durations did not exceed; 0 if there were
    /// none.
    ///
    /// Asserts that the share is from 0 to 1.
    pub fn percentile(histogram: *const Histogram, share: f64) u64 {
        assert(share >= 0 and share <= 1);
        if (histogram.count == 0) return 0;
        const wanted = @ceil(share * @as(f64, @floatFromInt(histogram.count)));
        const rank: u64 = @max(1, @as(u64, @intFromFloat(wanted)));
        var seen: u64 = 0;
        for (histogram.counts, 0..) |count, place| {
            seen += count;
            if (seen < rank) continue;
            if (place == place_count - 1) break; // longer durations share the last count
            const middle = lowestOf(place) + (lowestOf(place + 1) - lowestOf(place)) / 2;
            return std.math.clamp(middle, histogram.least_ns, histogram.most_ns);
        }
        return histogram.most_ns;
    }

    /// Returns all figures.
    pub fn distribution(histogram: *const Histogram) Distribution {
        const none = histogram.count == 0;
        const sum_us = microseconds(histogram.sum_ns);
        var told: Distribution = .{
            .count = histogram.count,
            .mean = if (none) 0 else sum_us / @as(f64, @floatFromInt(histogram.count)),
            .least = if (none) 0 else microseconds(histogram.least_ns),
            .most = microseconds(histogram.most_ns),
            .p50 = microseconds(histogram.percentile(0.5)),
            .p90 = microseconds(histogram.percentile(0.9)),
            .p99 = microseconds(histogram.percentile(0.99)),
            .p999 = microseconds(histogram.percentile(0.999)),
            .buckets = undefined,
        };
        var seen: u64 = 0;
        var place: usize = 0;
        for (&told.buckets, edges_us) |*bucket, edge_us| {
            // A count that contains the edge is included, so that no duration equal to the edge is
            // missing.
            while (place < place_count and lowestOf(place) <= edge_us * 1_000) : (place += 1) {
                seen += histogram.counts[place];
            }
            bucket.* = .{ .up_to = edge_us, .count = seen };
        }
        return told;
    }
};

fn microseconds(ns: u64) f64 {
    return @as(f64, @floatFromInt(ns)) / 1_000;
}

fn placeOf(ns: u64) usize {
    if (ns < exact_count) return @intCast(ns);
    const bits = 64 - @clz(ns);
    if (bits > bits_max) return place_count - 1;
    const shift: u6 = @intCast(bits - digits);
    return half * @as(usize, shift) + @as(usize, @intCast(ns >> shift));
}

/// Returns the shortest duration that a place counts.
fn lowestOf(place: usize) u64 {
    if (place < exact_count) return place;
    const shift: u6 = @intCast(place / half - 1);
    return @as(u64, half + place % half) << shift;
}

// Tests.
//
// How precisely a histogram reports what it has counted.

const meter = @import("meter.zig");
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;

test "Histogram: every duration is told at most 1 in 128 off, up to 73 minutes" {
    var histogram: Histogram = .{};
    var ns: u64 = 0;
    while (ns < 1 << 42) : (ns += ns / 7 + 1) {
        histogram = .{};
        // One more duration on each side, so that neither least nor most limits the percentiles.
        histogram.record(0);
        histogram.record(ns);
        histogram.record(std.math.maxInt(u64));
        const told = histogram.percentile(0.5);
        try expect(@max(told, ns) - @min(told, ns) <= ns / 128);
    }
}

test "Histogram: number, mean, least and most are exact, percentiles follow the order" {
    var histogram: Histogram = .{};
    var random: std.Random.DefaultPrng = .init(1);
    var list: [1_000]u64 = undefined;
    var sum: u64 = 0;
    for (&list) |*ns| {
        ns.* = random.random().uintLessThan(u64, 5_000_000);
        sum += ns.*;
        histogram.record(ns.*);
    }
    std.mem.sort(u64, &list, {}, std.sort.asc(u64));
    const told = histogram.distribution();
    try expectEqual(1_000, told.count);
    try std.testing.expectApproxEqRel(@as(f64, @floatFromInt(sum)) / 1e6, told.mean, 1e-9);
    try expectEqual(@as(f64, @floatFromInt(list[0])) / 1_000, told.least);
    try expectEqual(@as(f64, @floatFromInt(list[999])) / 1_000, told.most);
    for ([_]usize{ 499, 899, 989, 998 }, [_]f64{ told.p50, told.p90, told.p99, told.p999 }) |
        place,
        percentile,
    | {
        const exact = @as(f64, @floatFromInt(list[place])) / 1_000;
        try std.testing.expectApproxEqRel(exact, percentile, 1.0 / 128.0);
    }
}

test "Histogram: a bucket counts what is as long as its edge, and nothing that is a 64th longer" {
    for (meter.edges_us, 0..) |edge_us, index| {
        var histogram: Histogram = .{};
        histogram.record(edge_us * 1_000);
        histogram.record(edge_us * 1_000 + edge_us * 1_000 / 64 + 1);
        const buckets = histogram.distribution().buckets;
        if (index > 0) try expectEqual(0, buckets[index - 1].count);
        try expectEqual(1, buckets[index].count);
        if (index + 1 < buckets.len) try expectEqual(2, buckets[index + 1].count);
    }
    try expectEqual(10_000_000, meter.edges_us[meter.edges_us.len - 1]);
}

test "Histogram: an empty one tells 0, and add makes the sum of two" {
    var one: Histogram = .{};
    try expectEqual(0, one.distribution().most);
    try expectEqual(0, one.distribution().p999);
    try expectEqual(0, one.mean());
    var other: Histogram = .{};
    one.record(10);
    other.record(4);
    other.record(1_000);
    one.add(&other);
    try expectEqual(3, one.count);
    try expectEqual(338, one.mean());
    try expectEqual(4, one.least_ns);
    try expectEqual(1_000, one.percentile(1));
    // A duration beyond the largest count is reported as the longest one.
    one.record(1 << 50);
    try expectEqual(1 << 50, one.percentile(1));
}
