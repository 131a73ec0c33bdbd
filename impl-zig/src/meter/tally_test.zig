//! How precisely a histogram reports what it has counted.

const std = @import("std");
const meter = @import("meter.zig");
const Histogram = meter.Histogram;
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
