//! Fuzz target: any memory as a segment. Attaching refuses what the table in spec/segment.md
//! refuses, with its reason. An endpoint of an accepted segment stays within its areas.

const std = @import("std");
const fixture = @import("fixture.zig");
const fuzz = @import("fuzz_fixture.zig");
const millrace = @import("../root.zig");
const layout = millrace.layout;
const testing = std.testing;
const Endpoint = millrace.Endpoint;
const Segment = millrace.Segment;

const memory_size = 8192;
const options: Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };

test "fuzz: a segment is what the table says, and is used within its areas" {
    try fuzz.fuzz(Target, 20_000);
    try Target.reached.expect(&.{
        .segment_size,  .segment_unready, .segment_magic,    .segment_version,  .segment_feature,
        .segment_table, .segment_channel, .segment_geometry, .segment_endpoint, .ring_cursor,
        .frame_kind,    .peer_failed,
    });
}

const Target = struct {
    pub const name = "segment";
    pub const quiet = false;
    pub const size_max = 4 + memory_size;
    var reached: fuzz.Reached = .{};

    /// Writes the endpoint to take, a byte for the storage of descriptors, and how many bytes of
    /// the memory are passed; then the memory.
    pub fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (case.role == .mailbox_reader or case.role == .mailbox_writer) return null;
        if (case.memory.len > memory_size) return null;
        target[0] = @intCast(case.endpoint);
        target[1] = 255;
        std.mem.writeInt(u16, target[2..4], @intCast(case.memory.len), .little);
        @memcpy(target[4..][0..case.memory.len], case.memory);
        return 4 + case.memory.len;
    }

    pub fn check(input: []const u8) !void {
        var source: fuzz.Source = .{ .rest = input };
        const endpoint: u32 = source.int(u8);
        const storage_count: usize = source.int(u8);
        const size: usize = @min(source.int(u16), memory_size);
        const image = source.rest[0..@min(source.rest.len, memory_size)];
        var memory: [memory_size]u8 align(layout.segment_align) = @splat(0);
        @memcpy(memory[0..image.len], image);
        const before = memory;
        const given = memory[0..size];

        var storage: [256]millrace.Channel = undefined;
        const segment = try attachTwice(given, storage[0..storage_count]);
        try testing.expectEqualSlices(u8, &before, &memory);
        try checkCreate(&memory, size, &before);
        try testing.expectEqualSlices(u8, &before, &memory);
        try use(&(segment orelse return), endpoint, &memory, &before);
    }

    /// Attaches twice, which must lead to what the model says both times.
    fn attachTwice(given: millrace.Memory, storage: []millrace.Channel) !?Segment {
        var expected = fuzz.judge(given);
        var segment: ?Segment = null;
        for (0..2) |_| {
            segment = Segment.attach(given, storage, .none) catch |err| {
                const why = millrace.reasonOf(err).?;
                reached.add(why);
                // A caller with little storage gets this after the checks of the counts.
                if (err == error.ChannelStorage) {
                    const count = fuzz.wordAt(given, layout.segment_channel_count_offset);
                    try testing.expect(count > storage.len);
                    expected = why;
                }
                try testing.expectEqual(expected, why);
                continue;
            };
            try testing.expectEqual(null, expected);
            const count = fuzz.wordAt(given, layout.segment_channel_count_offset);
            try testing.expectEqual(count, segment.?.channels.len);
        }
        return segment;
    }

    /// A creator with its own geometry accepts only blank memory.
    fn checkCreate(memory: *align(128) [memory_size]u8, size: usize, before: []const u8) !void {
        const geometry = fixture.pipeGeometry(256, 0);
        var storage: [1]millrace.Channel = undefined;
        const blank = fuzz.wordAt(memory, layout.segment_ready_offset) == 0;
        const created = Segment.create(memory[0..size], .{
            .endpoint_count = 2,
            .channels = &geometry,
        }, &storage, .none);
        if (created) |segment| {
            try testing.expectEqual(2, segment.endpoint_count);
            if (!blank) return;
            try testing.expectEqual(null, fuzz.judge(memory[0..size]));
            @memcpy(memory, before);
        } else |err| {
            const why = millrace.reasonOf(err).?;
            reached.add(why);
            const expected = fuzz.judge(memory[0..size]) orelse .segment_geometry;
            // It checks the size that it needs before anything else.
            try testing.expectEqual(if (size < 1280) .segment_size else expected, why);
        }
    }

    /// Takes an endpoint as a port, or else as one end of a pipe, writes and reads a little, and
    /// checks that nothing was stored except where an endpoint may store.
    fn use(
        segment: *const Segment,
        index: u32,
        memory: *align(128) [memory_size]u8,
        before: *const [memory_size]u8,
    ) !void {
        var port: millrace.Port = undefined;
        var inbox: [64]u8 align(16) = undefined;
        port.init(segment, index, .{ .endpoint = options, .inbox = &inbox }) catch |err| {
            try refused(err);
            try testing.expectEqualSlices(u8, before, memory);
            const found = millrace.Reader.find(segment, index, null) catch |other|
                return refused(other);
            var endpoint: Endpoint = try .attach(segment, index, options);
            var reader: millrace.Reader = try .init(&endpoint, segment, found);
            try drain(&reader);
            endpoint.close();
            return expectContained(segment, index, memory, before);
        };
        for (0..3) |_| {
            port.write("message", .{}, .ms(1)) catch |err| try failed(err, port.reason());
        }
        try drain(&port.reader);
        port.end() catch |err| try failed(err, port.reason());
        port.close();
        try expectContained(segment, index, memory, before);
    }

    fn refused(err: anyerror) !void {
        try testing.expect(err == error.SegmentEndpoint or err == error.SegmentChannel);
        reached.add(millrace.reasonOf(err).?);
    }

    fn drain(reader: *millrace.Reader) !void {
        var kept: [128]u8 = undefined;
        for (0..reader.ring.capacity / 16 + 4) |_| {
            const message = reader.tryRead(&kept) catch |err| {
                try failed(err, reader.reason());
                switch (err) {
                    error.MessageCancelled,
                    error.MessageTruncated,
                    error.MessageSize,
                    error.MessageKind,
                    => continue,
                    else => return,
                }
            };
            if (message == null) return;
        }
        return error.Endless;
    }

    fn failed(err: anyerror, behind: ?layout.Reason) !void {
        reached.add(millrace.reasonOf(err) orelse behind.?);
    }

    /// Checks that only these bytes have changed: control words of the endpoints, control words of
    /// the endpoint's own rings, and the bytes of the ring that it writes.
    fn expectContained(
        segment: *const Segment,
        index: u32,
        memory: *const [memory_size]u8,
        before: *const [memory_size]u8,
    ) !void {
        var masked = memory.*;
        for (0..segment.endpoint_count) |endpoint| {
            const offset = layout.endpoint_table_offset + endpoint * layout.endpoint_record_size;
            const size = layout.endpoint_reserved_offset;
            @memcpy(masked[offset..][0..size], before[offset..][0..size]);
        }
        for (segment.channels) |channel| {
            if (channel.kind != .ring) continue;
            if (channel.writer != index and channel.reader != index) continue;
            for (0..4) |line| {
                const offset = channel.control_offset + line * layout.segment_align;
                @memcpy(masked[offset..][0..4], before[offset..][0..4]);
            }
            if (channel.writer != index) continue;
            const bytes = masked[channel.data_offset..][0..channel.data_size];
            @memcpy(bytes, before[channel.data_offset..][0..channel.data_size]);
        }
        try testing.expectEqualSlices(u8, before, &masked);
    }
};
