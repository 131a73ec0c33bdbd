//! The messages that a seed stands for. `workload.ts` makes the same ones, so that a reader in one
//! language knows what a writer in another must have written, with nothing passed between them but
//! the seed.

const std = @import("std");
const assert = std.debug.assert;

/// Marsaglia's xorshift32.
pub const Random = struct {
    state: u32,

    /// Asserts that the seed is not 0, for which the sequence would be all 0.
    pub fn init(seed: u32) Random {
        assert(seed != 0);
        return .{ .state = seed };
    }

    /// Returns the next number, from 1 to 2^32 - 1.
    pub fn next(random: *Random) u32 {
        var x = random.state;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        random.state = x;
        return x;
    }
};

/// One message of a workload: `tag` counts them, `first` is the payload's first byte.
pub const Message = struct {
    size: u32,
    tag: u32,
    first: u8,

    /// Byte `index` of the message. The shift makes pages of 256 bytes differ, so a lost one shows.
    pub fn byte(message: Message, index: u32) u8 {
        return @truncate(message.first +% index +% (index >> 8));
    }

    /// Fills the first `size` bytes of `into` and returns them. Asserts that they fit.
    pub fn fill(message: Message, into: []u8) []u8 {
        for (into[0..message.size], 0..) |*place, index| place.* = message.byte(@intCast(index));
        return into[0..message.size];
    }

    /// Whether a message that arrived is this one.
    pub fn equals(message: Message, tag: u32, payload: []const u8) bool {
        if (tag != message.tag or payload.len != message.size) return false;
        for (payload, 0..) |got, index| {
            if (got != message.byte(@intCast(index))) return false;
        }
        return true;
    }
};

/// A sequence of messages around a ring's limits: empty ones, single bytes, some that fill half the
/// ring to the byte, and some of several times its capacity.
pub const Workload = struct {
    random: Random,
    capacity: u32,
    tag: u32 = 0,

    pub fn init(seed: u32, capacity: u32) Workload {
        return .{ .random = .init(seed), .capacity = capacity };
    }

    /// Returns the next message of the sequence.
    pub fn next(workload: *Workload) Message {
        const kind = workload.random.next() % 8;
        const size = workload.sizeOf(kind, workload.random.next());
        const tag = workload.tag;
        workload.tag += 1;
        return .{ .size = size, .tag = tag, .first = @truncate(workload.random.next()) };
    }

    fn sizeOf(workload: *const Workload, kind: u32, draw: u32) u32 {
        const whole = workload.capacity / 2 - 16;
        return switch (kind) {
            0 => 0,
            1 => 1 + draw % 16,
            2 => draw % (whole + 1),
            3 => whole,
            4 => whole + 1,
            5 => draw % (3 * workload.capacity + 1),
            else => draw % 64,
        };
    }
};
