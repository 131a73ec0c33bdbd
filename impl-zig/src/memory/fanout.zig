//! Which endpoints take part in a fanout, and where it starts, as its descriptor says
//! [spec/fanout.md].
//!
//! Invariant: a `FanoutPlan` exists only if the descriptor passed every check of the chapter.

const std = @import("std");
const layout = @import("layout.zig");

/// The layout of a fanout that its creator chose. Every value is checked.
pub const FanoutPlan = struct {
    writer: u32,
    record_count: u32,
    endpoint_count: u32,
    capacity: u32,
    position: u32,
    /// Whether the mode is `lose`.
    loses: bool,

    /// Returns null if the channel is not a fanout, or fails a check.
    pub fn of(channel: anytype, endpoint_count: u32) ?FanoutPlan {
        if (channel.kind != .fanout) return null;
        if (channel.writer >= endpoint_count) return null;
        if (channel.reader != layout.endpoint_none) return null;
        if (channel.control_size < layout.fanout_control_size) return null;
        const records_size = channel.control_size - layout.fanout_control_size;
        if (records_size % layout.fanout_reader_size != 0) return null;
        const record_count = records_size / layout.fanout_reader_size;
        if (record_count < 1 or record_count >= endpoint_count) return null;
        const capacity = channel.data_size;
        if (capacity < layout.ring_capacity_min) return null;
        if (capacity > layout.ring_capacity_max) return null;
        if (!std.math.isPowerOfTwo(capacity)) return null;
        const mode: u32 = layout.fanout_lose;
        const position = channel.start & ~mode;
        if (position % layout.frame_align != 0) return null;
        return .{
            .writer = channel.writer,
            .record_count = record_count,
            .endpoint_count = endpoint_count,
            .capacity = capacity,
            .position = position,
            .loses = channel.start & mode != 0,
        };
    }

    /// Returns the index of an endpoint's record, or null if the endpoint has none.
    pub fn recordOf(plan: FanoutPlan, endpoint: u32) ?u32 {
        if (endpoint >= plan.endpoint_count) return null;
        const count = plan.endpoint_count;
        const record = (endpoint + 2 * count - plan.writer - 1) % count;
        return if (record < plan.record_count) record else null;
    }

    /// Returns the index of the endpoint that a record belongs to.
    pub fn endpointOf(plan: FanoutPlan, record: u32) u32 {
        return (plan.writer + 1 + record) % plan.endpoint_count;
    }

    /// Returns the payload size of the largest message [fanout.size].
    pub fn sizeMax(plan: FanoutPlan) u32 {
        if (!plan.loses) return plan.capacity / 2 - layout.frame_header_size;
        return plan.capacity / 4 - layout.frame_header_size - layout.header_extension_size;
    }

    /// Returns how often a floor at the start position has passed a multiple of 2^31.
    pub fn eraOf(plan: FanoutPlan) u32 {
        return plan.position / layout.fanout_era_size;
    }
};

/// Adds the endpoints at the other ends of the fanouts that endpoint `index` takes part in
/// [fanout.peers].
pub fn addPeers(channels: anytype, endpoint_count: u32, index: u32, peers: anytype) void {
    for (channels) |channel| {
        const plan = FanoutPlan.of(channel, endpoint_count) orelse continue;
        if (plan.recordOf(index) != null) peers.set(plan.writer);
        if (plan.writer != index) continue;
        for (0..plan.record_count) |record| peers.set(plan.endpointOf(@intCast(record)));
    }
}

/// Whether the channel is a fanout in which the endpoint has a record, and so names that endpoint
/// [fanout.peers].
pub fn reads(channel: anytype, endpoint_count: u32, index: u32) bool {
    const plan = FanoutPlan.of(channel, endpoint_count) orelse return false;
    return plan.recordOf(index) != null;
}

/// Writes the initial words of a fanout into its control area, which is otherwise 0 [fanout.start].
pub fn begin(channel: anytype, endpoint_count: u32, control: []u8) void {
    const plan = FanoutPlan.of(channel, endpoint_count) orelse return;
    setWord(control, layout.fanout_tail_offset, plan.position);
    setWord(control, layout.fanout_floor_offset, plan.position);
    setWord(control, layout.fanout_era_offset, plan.eraOf());
}

/// Sets a word of a control area that nobody else can see yet.
pub fn setWord(control: []u8, offset: usize, value: u32) void {
    std.mem.writeInt(u32, control[offset..][0..4], value, .little);
}

// Tests.

test "FanoutPlan: the endpoints after the writer have the records, in order" {
    const plan: FanoutPlan = .{
        .writer = 3,
        .record_count = 2,
        .endpoint_count = 4,
        .capacity = 256,
        .position = 0,
        .loses = false,
    };
    for ([_]?u32{ 0, 1, null, null, null }, 0..) |record, endpoint| {
        try std.testing.expectEqual(record, plan.recordOf(@intCast(endpoint)));
    }
    for (0..2) |record| {
        const endpoint = plan.endpointOf(@intCast(record));
        try std.testing.expectEqual(@as(u32, @intCast(record)), plan.recordOf(endpoint).?);
    }
}
