//! What the messages hold: every byte follows from the number of the message, so that the reader
//! can check each of them, at the same cost whatever brought it.

const std = @import("std");

const lanes = 8;
const Lanes = @Vector(lanes, u64);
/// Odd, with its bits spread: the words of two messages differ everywhere.
const number_step = 0x9e37_79b9_7f4a_7c15;
const word_step: u64 = 0xc2b2_ae3d_27d4_eb4f;

const lane_steps: Lanes = steps: {
    var values: [lanes]u64 = undefined;
    for (&values, 0..) |*value, index| value.* = index *% word_step;
    break :steps values;
};

fn seedOf(number: u64) u64 {
    return number *% number_step;
}

fn blockAt(seed: u64, index: usize) Lanes {
    const base = seed +% @as(u64, index) *% (word_step *% lanes);
    return @as(Lanes, @splat(base)) +% lane_steps;
}

/// A pointer, because a vector that is cast to an array is taken apart byte by byte, which costs
/// 250 ns a block.
inline fn blockOf(place: [*]u8) *align(1) Lanes {
    return @ptrCast(place);
}

/// Fills the payload of the message with this number.
pub inline fn fill(payload: []u8, number: u64) void {
    const seed = seedOf(number);
    var index: usize = 0;
    while ((index + 1) * 64 <= payload.len) : (index += 1) {
        blockOf(payload.ptr + index * 64).* = blockAt(seed, index);
    }
    const rest = payload[index * 64 ..];
    if (rest.len == 0) return;
    const block = blockAt(seed, index);
    @memcpy(rest, std.mem.asBytes(&block)[0..rest.len]);
}

/// Whether every byte is the one that `fill` wrote.
pub inline fn matches(payload: []const u8, number: u64) bool {
    return matchesFrom(payload, number, 0);
}

inline fn matchesFrom(payload: []const u8, number: u64, first_block: usize) bool {
    const seed = seedOf(number);
    var index: usize = first_block;
    var differ: Lanes = @splat(0);
    while ((index + 1) * 64 <= payload.len) : (index += 1) {
        differ |= blockOf(@constCast(payload.ptr) + index * 64).* ^ blockAt(seed, index);
    }
    if (@reduce(.Or, differ) != 0) return false;
    const rest = payload[index * 64 ..];
    if (rest.len == 0) return true;
    const block = blockAt(seed, index);
    return std.mem.eql(u8, rest, std.mem.asBytes(&block)[0..rest.len]);
}

/// As `matches`, for a payload whose first bytes hold something else.
pub fn matchesBehind(payload: []const u8, number: u64, skipped: usize) bool {
    var block: [64]u8 = undefined;
    const size = @min(payload.len, block.len);
    fill(block[0..size], number);
    if (!std.mem.eql(u8, payload[skipped..size], block[skipped..size])) return false;
    if (payload.len <= block.len) return true;
    return matchesFrom(payload, number, 1);
}

test "one wrong byte is found, wherever it stands" {
    var storage: [200]u8 = undefined;
    for ([_]usize{ 1, 8, 63, 64, 65, 118, 200 }) |size| {
        const payload = storage[0..size];
        fill(payload, 7);
        try std.testing.expect(matches(payload, 7));
        try std.testing.expect(!matches(payload, 8));
        for (payload) |*byte| {
            byte.* ^= 1;
            try std.testing.expect(!matches(payload, 7));
            byte.* ^= 1;
        }
    }
}
