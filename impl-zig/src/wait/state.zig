//! The part of an endpoint that its peers see: its bell, its state, and the wake mechanisms that it
//! can ring [spec/segment.md].
//!
//! Invariant: a state changes only by compare-exchange, as the chapter's table allows.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const Host = @import("mechanism.zig").Host;
const assert = std.debug.assert;

/// Control words: atomic access only [segment.atomic].
pub const Record = extern struct {
    bell: u32,
    state: u32,
    wakes: u32,
    agent: u32,
    generation: u32,
    features: u32,
    rung: [rung_count]u32,
    reserved: [72]u8,

    const rung_count = layout.endpoint_rung_size / @sizeOf(u32);
};

comptime {
    assert(@sizeOf(Record) == layout.endpoint_record_size);
    assert(@offsetOf(Record, "bell") == layout.endpoint_bell_offset);
    assert(@offsetOf(Record, "state") == layout.endpoint_state_offset);
    assert(@offsetOf(Record, "wakes") == layout.endpoint_wakes_offset);
    assert(@offsetOf(Record, "agent") == layout.endpoint_agent_offset);
    assert(@offsetOf(Record, "generation") == layout.endpoint_generation_offset);
    assert(@offsetOf(Record, "features") == layout.endpoint_features_offset);
    assert(@offsetOf(Record, "rung") == layout.endpoint_rung_offset);
    assert(@offsetOf(Record, "reserved") == layout.endpoint_reserved_offset);
}

/// The state in the low byte of a loaded `state` word [segment.state_low]. The reason of `failed`
/// is whatever number the upper bytes hold.
pub const State = union(enum) {
    vacant,
    attached,
    closed,
    failed: layout.Reason,
    /// [segment.state_invalid]
    invalid,

    pub fn load(record: *const Record) State {
        return .of(@atomicLoad(u32, &record.state, .seq_cst));
    }

    /// Whether the endpoint is attached. Nearly every call needs to know nothing else.
    pub inline fn isAttached(record: *const Record) bool {
        const word = @atomicLoad(u32, &record.state, .seq_cst);
        return word & layout.state_mask == layout.endpoint_state_attached;
    }

    pub fn of(word: u32) State {
        return switch (word & layout.state_mask) {
            layout.endpoint_state_vacant => .vacant,
            layout.endpoint_state_attached => .attached,
            layout.endpoint_state_closed => .closed,
            layout.endpoint_state_failed => .{
                .failed = @fromBackingInt(word >> layout.reason_shift),
            },
            else => .invalid,
        };
    }

    /// Returns the reason in the word of a failed endpoint; null if it holds none
    /// [pipe.failed_reason].
    pub fn reason(state: State) ?layout.Reason {
        const why = switch (state) {
            .failed => |why| why,
            .vacant, .attached, .closed, .invalid => return null,
        };
        return if (@backingInt(why) == 0) null else why;
    }

    pub fn final(state: State) bool {
        return switch (state) {
            .vacant, .attached => false,
            .closed, .failed, .invalid => true,
        };
    }
};

/// A final state to change to.
pub const Final = union(enum) {
    closed,
    failed: layout.Reason,
};

/// Changes a state as the table of allowed changes says. Leaves the state alone if the table has no
/// change from it [segment.state_change], or if it belongs to another owner: `owner` is given, and
/// the upper bits of the word differ from it [segment.state_owner]. In either case, the caller
/// rings afterwards.
pub fn changeState(record: *Record, to: Final, owner: ?u24) void {
    // A correct endpoint's state changes at most twice before it is final. If a peer changes it
    // more often, there is no fourth try, because no retry can repair that.
    for (0..layout.state_tries) |_| {
        const from = @atomicLoad(u32, &record.state, .seq_cst);
        switch (State.of(from)) {
            .vacant => if (to != .failed) return,
            .attached => {},
            .closed, .failed, .invalid => return,
        }
        const bits = upperBits(from);
        if (owner) |own| if (bits != own) return;
        // [segment.state_reason]
        const word = switch (to) {
            .closed => wordOf(layout.endpoint_state_closed, bits),
            .failed => |why| wordOf(layout.endpoint_state_failed, @truncate(@backingInt(why))),
        };
        if (@cmpxchgStrong(u32, &record.state, from, word, .seq_cst, .seq_cst) == null) return;
    }
}

/// Changes the state to closed if the word is still the one that its owner stored when it attached
/// [pipe.close]. The owner rings afterwards in either case.
pub fn closeOwn(record: *Record, attached: u32) void {
    const closed = wordOf(layout.endpoint_state_closed, upperBits(attached));
    _ = @cmpxchgStrong(u32, &record.state, attached, closed, .seq_cst, .seq_cst);
}

/// Returns the bits above a state: the reason of a failed one, else the low bits of a generation.
pub fn upperBits(word: u32) u24 {
    return @truncate(word >> layout.reason_shift);
}

pub fn wordOf(state: u8, bits: u24) u32 {
    return @as(u32, bits) << layout.reason_shift | state;
}

/// Rings an endpoint, and records on whose account: that of the endpoint that wakes it, or that of
/// the endpoint whose state was to change [wait.rung].
///
/// [wait.ring] The count is increased before the notify, so that a sleeper that is not asleep yet
/// sees it and stays awake. The bit is set before the count, so that a sleeper that sees the count
/// also sees the bit.
pub noinline fn ring(record: *Record, whose: u32, host: *const Host) void {
    assert(whose < layout.endpoint_count_max);
    const bit = @as(u32, 1) << @intCast(whose % @bitSizeOf(u32));
    _ = @atomicRmw(u32, &record.rung[whose / @bitSizeOf(u32)], .Or, bit, .seq_cst);
    _ = @atomicRmw(u32, &record.bell, .Add, 1, .seq_cst);
    host.notify(&record.bell);
}
