//! What the table in spec/segment.md says of a segment, row by row: slow and obvious, to be
//! compared with the implementation.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const wordAt = @import("fuzz_fixture.zig").wordAt;
const Reason = layout.Reason;

/// Returns the code of the first check that fails for an endpoint that does not wait, or null.
pub fn judge(memory: []const u8) ?Reason {
    if (memory.len < layout.segment_size_min) return .segment_size;
    const ready = wordAt(memory, layout.segment_ready_offset);
    if (ready > layout.segment_ready_ready) return .segment_magic;
    if (ready != layout.segment_ready_ready) return .segment_unready;
    if (!std.mem.eql(u8, memory[0..8], "MILLRACE")) return .segment_magic;
    const major = wordAt(memory, layout.segment_version_major_offset) & 0xffff;
    if (major != 1) return .segment_version;
    if (wordAt(memory, layout.segment_required_features_offset) != 0) return .segment_feature;
    const size = wordAt(memory, layout.segment_size_offset);
    if (size % 128 != 0 or size > memory.len) return .segment_size;
    const endpoint_count = wordAt(memory, layout.segment_endpoint_count_offset);
    const channel_count = wordAt(memory, layout.segment_channel_count_offset);
    if (endpoint_count < 1 or endpoint_count > 256 or channel_count > 1024) return .segment_table;
    const tables_end = 128 + 128 * @as(u64, endpoint_count) + 64 * @as(u64, channel_count);
    if (tables_end > size) return .segment_table;
    for (0..channel_count) |index| {
        const channel = channelAt(memory, @intCast(index));
        for (channel.areas) |area| {
            if (area.offset % 128 != 0 or area.offset < tables_end) return .segment_channel;
            if (area.offset + area.size > size) return .segment_channel;
        }
        if (channel.kind == layout.channel_kind_ring) {
            const capacity = channel.areas[1].size;
            if (channel.writer >= endpoint_count) return .segment_channel;
            if (channel.reader >= endpoint_count) return .segment_channel;
            if (channel.writer == channel.reader) return .segment_channel;
            if (channel.areas[0].size < 512) return .segment_channel;
            if (capacity < 256 or capacity > 1 << 30) return .segment_channel;
            if (@popCount(capacity) != 1) return .segment_channel;
            if (channel.start % 16 != 0) return .segment_channel;
        }
    }
    for (0..2 * channel_count) |first| {
        for (first + 1..2 * channel_count) |second| {
            const a = channelAt(memory, @intCast(first / 2)).areas[first % 2];
            const b = channelAt(memory, @intCast(second / 2)).areas[second % 2];
            if (a.size == 0 or b.size == 0) continue;
            const apart = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset;
            if (!apart) return .segment_channel;
        }
    }
    return null;
}

pub const Area = struct { offset: u64, size: u64 };

pub const Channel = struct {
    kind: u32,
    writer: u32,
    reader: u32,
    /// The control area and the byte area.
    areas: [2]Area,
    start: u32,
};

/// Returns what a descriptor says. The descriptor must lie in the memory.
pub fn channelAt(memory: []const u8, index: u32) Channel {
    const endpoint_count = wordAt(memory, layout.segment_endpoint_count_offset);
    const descriptor = memory[128 + 128 * endpoint_count + 64 * index ..];
    return .{
        .kind = wordAt(descriptor, layout.channel_kind_offset),
        .writer = wordAt(descriptor, layout.channel_writer_offset),
        .reader = wordAt(descriptor, layout.channel_reader_offset),
        .areas = .{
            .{
                .offset = wordAt(descriptor, layout.channel_control_offset_offset),
                .size = wordAt(descriptor, layout.channel_control_size_offset),
            },
            .{
                .offset = wordAt(descriptor, layout.channel_data_offset_offset),
                .size = wordAt(descriptor, layout.channel_data_size_offset),
            },
        },
        .start = wordAt(descriptor, layout.channel_start_offset),
    };
}
