//! How often each duration was seen, with three significant digits and without an allocation.

const std = @import("std");
const protocol = @import("protocol.zig");

/// Below this every value has a count of its own; above it, each doubling has half as many counts,
/// which keeps the error below 1 in 1,024.
const exact_count = 2_048;
const half = exact_count / 2;
const digits = 11;
const place_count = exact_count + half * (64 - digits);

pub const Histogram = struct {
    counts: [place_count]u64,
    total: u64,

    pub fn clear(histogram: *Histogram) void {
        @memset(&histogram.counts, 0);
        histogram.total = 0;
    }

    pub fn record(histogram: *Histogram, value: u64) void {
        histogram.recordMany(value, 1);
    }

    pub fn recordMany(histogram: *Histogram, value: u64, count: u64) void {
        histogram.counts[placeOf(value)] += count;
        histogram.total += count;
    }

    /// The allocated slices are the caller's.
    pub fn sparse(histogram: *const Histogram, allocator: std.mem.Allocator) !protocol.Sparse {
        var seen: usize = 0;
        for (histogram.counts) |count| seen += @intFromBool(count > 0);
        const values = try allocator.alloc(u64, seen);
        const counts = try allocator.alloc(u64, seen);
        var next: usize = 0;
        for (histogram.counts, 0..) |count, place| {
            if (count == 0) continue;
            values[next] = valueAt(place);
            counts[next] = count;
            next += 1;
        }
        return .{ .values = values, .counts = counts };
    }
};

fn placeOf(value: u64) usize {
    if (value < exact_count) return @intCast(value);
    const bits = 64 - @clz(value);
    const shift: u6 = @intCast(bits - digits);
    const high: usize = @intCast(value >> shift);
    return exact_count + half * (@as(usize, shift) - 1) + high - half;
}

/// The middle of what is counted at a place.
fn valueAt(place: usize) u64 {
    if (place < exact_count) return place;
    const shift: u6 = @intCast((place - exact_count) / half + 1);
    const lowest = @as(u64, half + (place - exact_count) % half) << shift;
    return lowest + (@as(u64, 1) << (shift - 1));
}

test "every value is found again within three significant digits" {
    var value: u64 = 1;
    while (value < 1 << 62) : (value += value / 7 + 1) {
        const found = valueAt(placeOf(value));
        const off = @max(found, value) - @min(found, value);
        try std.testing.expect(off <= value / 1_000);
    }
    try std.testing.expect(placeOf(std.math.maxInt(u64)) == place_count - 1);
}

test "the sparse form has the values that were recorded and no others" {
    const histogram = try std.testing.allocator.create(Histogram);
    defer std.testing.allocator.destroy(histogram);
    histogram.clear();
    for ([_]u64{ 5, 70, 5, 5 }) |value| histogram.record(value);
    const sparse = try histogram.sparse(std.testing.allocator);
    defer std.testing.allocator.free(sparse.values);
    defer std.testing.allocator.free(sparse.counts);
    try std.testing.expectEqualSlices(u64, &.{ 5, 70 }, sparse.values);
    try std.testing.expectEqualSlices(u64, &.{ 3, 1 }, sparse.counts);
}
