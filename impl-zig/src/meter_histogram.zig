//! How often each duration was seen, in a fixed place and without an allocation.
//!
//! Invariant: a duration is told at most 1 in 128 (0.8 %) off by a percentile; number, sum, least
//! and most are exact.

const std = @import("std");
const assert = std.debug.assert;

/// Below this each nanosecond has a count of its own. Above it each doubling has half as many
/// counts: one is as wide as a 64th of its lowest duration at most.
const exact_count = 128;
const half = exact_count / 2;
const digits = 7;
/// Durations from 2^42 ns on, 73 minutes, share the last count. No waiting time is as long.
const bits_max = 42;
const place_count = exact_count + half * (bits_max - digits);

/// Up to how many microseconds the buckets of a distribution count: 1, 2, 5, 10 and so on to 10 s
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

/// A bucket of a distribution: how many durations were at most so many microseconds.
pub const Bucket = struct { up_to: u64, count: u64 };

/// What is told of many durations, in microseconds; all 0 where there were none.
pub const Distribution = struct {
    count: u64,
    mean: f64,
    least: f64,
    most: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    /// Each counts what the ones before it count, and more.
    buckets: [edges_us.len]Bucket,
};

comptime {
    assert(exact_count == 1 << digits);
}

/// Durations in nanoseconds. 19 KB, of which a recording touches one count.
///
/// Thread safety: belongs to one thread.
pub const Histogram = struct {
    counts: [place_count]u64 = @splat(0),
    /// How many there were.
    count: u64 = 0,
    sum_ns: u64 = 0,
    least_ns: u64 = std.math.maxInt(u64),
    most_ns: u64 = 0,

    /// Counts one more.
    pub fn record(histogram: *Histogram, ns: u64) void {
        histogram.counts[placeOf(ns)] += 1;
        histogram.count += 1;
        histogram.sum_ns +%= ns;
        histogram.least_ns = @min(histogram.least_ns, ns);
        histogram.most_ns = @max(histogram.most_ns, ns);
    }

    /// Adds what another one has counted, such as that of another thread which is over.
    pub fn add(histogram: *Histogram, other: *const Histogram) void {
        for (&histogram.counts, other.counts) |*count, more| count.* += more;
        histogram.count += other.count;
        histogram.sum_ns +%= other.sum_ns;
        histogram.least_ns = @min(histogram.least_ns, other.least_ns);
        histogram.most_ns = @max(histogram.most_ns, other.most_ns);
    }

    /// The mean in nanoseconds; 0 where there was none.
    pub fn mean(histogram: *const Histogram) u64 {
        return if (histogram.count == 0) 0 else histogram.sum_ns / histogram.count;
    }

    /// The duration in nanoseconds that this share of all did not exceed; 0 where there was none.
    ///
    /// Asserts that the share is one, from 0 to 1.
    pub fn percentile(histogram: *const Histogram, share: f64) u64 {
        assert(share >= 0 and share <= 1);
        if (histogram.count == 0) return 0;
        const wanted = @ceil(share * @as(f64, @floatFromInt(histogram.count)));
        const rank: u64 = @max(1, @as(u64, @intFromFloat(wanted)));
        var seen: u64 = 0;
        for (histogram.counts, 0..) |count, place| {
            seen += count;
            if (seen < rank) continue;
            if (place == place_count - 1) break; // what is longer is not told apart
            const middle = lowestOf(place) + (lowestOf(place + 1) - lowestOf(place)) / 2;
            return std.math.clamp(middle, histogram.least_ns, histogram.most_ns);
        }
        return histogram.most_ns;
    }

    /// All of it as plain figures.
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
            // One that holds the edge counts: what is as long as the edge must not be missing.
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

/// The shortest duration that is counted at a place.
fn lowestOf(place: usize) u64 {
    if (place < exact_count) return place;
    const shift: u6 = @intCast(place / half - 1);
    return @as(u64, half + place % half) << shift;
}

test {
    _ = @import("meter_histogram_test.zig");
}
