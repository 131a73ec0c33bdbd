//! How long an endpoint sleeps at a time [wait.slice], on a machine that records its sleeps.

const std = @import("std");
const millrace = @import("../root.zig");
const file_fixture = @import("../host/fixture.zig");
const fixture = @import("../testing/fixture.zig");
const layout = millrace.layout;
const testing = std.testing;

const vacant_ms = layout.wait_slice_ms;
const attached_ms = layout.wait_slice_attached_ms;

/// The machine whose clock the tests wind; it records each sleep and each pause.
const Recorder = struct {
    var slept: [64]u64 = undefined;
    var slept_count: usize = 0;
    var pause_count: usize = 0;
    /// What happens during the next sleep, and whether that ends the sleep.
    var meanwhile: ?*const fn () void = null;
    var rings = false;

    const host: millrace.Host = blk: {
        var recording = fixture.clockwork;
        recording.sleep = sleep;
        recording.pause = pause;
        break :blk recording;
    };

    fn reset() void {
        slept_count = 0;
        pause_count = 0;
        meanwhile = null;
        rings = false;
    }

    fn sleep(word: *const u32, expected: u32, limit_ns: u64) bool {
        slept[slept_count] = limit_ns;
        slept_count += 1;
        const timed_out = !fixture.clockwork.sleep(word, expected, limit_ns);
        const act = meanwhile orelse return !timed_out;
        meanwhile = null;
        act();
        return rings;
    }

    fn pause(limit_ns: u64) void {
        std.debug.assert(limit_ns <= layout.wait_poll_ms * 1_000_000);
        pause_count += 1;
        fixture.clockwork.pause(limit_ns);
    }

    /// Expects that no sleep is shorter than a slice, except the last one, up to the deadline.
    fn expectSlices(slices_ms: []const u64) !void {
        try testing.expectEqual(slices_ms.len, slept_count);
        try testing.expectEqual(0, pause_count);
        for (slices_ms, slept[0..slept_count], 1..) |slice_ms, ns, number| {
            // The last sleep may be up to 1 ms shorter, because readings of the clock take time
            // too.
            const least_ns = if (number == slept_count) (slice_ms - 1) * 1_000_000 else ns;
            try testing.expect(ns >= least_ns and ns <= slice_ms * 1_000_000);
            if (number < slept_count) try testing.expectEqual(slice_ms * 1_000_000, ns);
        }
    }
};

/// Endpoint 0 reads from the others, which attach later. Must not move after it was initialized.
const Crowd = struct {
    const writer_count = 2;

    memory: [4096]u8 align(layout.segment_align),
    storage: [writer_count]millrace.Channel,
    segment: millrace.Segment,
    endpoints: [1 + writer_count]millrace.Endpoint,
    readers: [writer_count]millrace.Reader,
    list: [writer_count]*millrace.Reader,

    fn init(crowd: *Crowd) !void {
        Recorder.reset();
        crowd.memory = @splat(0);
        const channels: [writer_count]millrace.Channel = .{
            .{ .writer = 1, .reader = 0, .data_size = 256 },
            .{ .writer = 2, .reader = 0, .data_size = 256 },
        };
        try millrace.Segment.format(&crowd.memory, .{
            .endpoint_count = 1 + writer_count,
            .channels = &channels,
        });
        crowd.segment = try .attach(&crowd.memory, &crowd.storage, .none);
        try crowd.enter(0, &Recorder.host);
        for (&crowd.readers, &crowd.list, 0..) |*reader, *item, channel| {
            reader.* = try .init(&crowd.endpoints[0], &crowd.segment, @intCast(channel));
            item.* = reader;
        }
    }

    fn enter(crowd: *Crowd, index: u32, host: *const millrace.Host) !void {
        const options: millrace.Endpoint.Options = .{ .host = host, .spin_us = 0 };
        crowd.endpoints[index] = try .attach(&crowd.segment, index, options);
    }

    fn read(crowd: *Crowd, timeout_ms: u64) !void {
        var storage: [16]u8 = undefined;
        const found = try crowd.readers[0].read(&storage, .ms(timeout_ms));
        try testing.expectEqual(null, found);
    }

    fn select(crowd: *Crowd, timeout_ms: u64) !void {
        var selected: millrace.Select = .{ .readers = &crowd.list };
        try testing.expectEqual(null, try selected.wait(.ms(timeout_ms)));
    }
};

test "a reader sleeps 100 ms at a time while its writer is vacant, and 1 s when it is attached" {
    var crowd: Crowd = undefined;
    try crowd.init();
    try crowd.read(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    try crowd.enter(1, &Recorder.host);
    Recorder.reset();
    try crowd.read(2_500);
    try Recorder.expectSlices(&.{ attached_ms, attached_ms, 500 });
}

test "a writer that comes while the reader sleeps is found after 100 ms, rung or not" {
    for ([_]u32{ layout.wake_mechanism_futex, 0 }) |wakes| {
        const Comer = struct {
            var crowd: Crowd = undefined;
            var host: millrace.Host = undefined;

            fn come() void {
                crowd.enter(1, &host) catch unreachable;
            }
        };
        try Comer.crowd.init();
        Comer.host = fixture.clockwork;
        Comer.host.wakes = wakes;
        Recorder.meanwhile = Comer.come;
        try Comer.crowd.read(1_000);
        if (wakes == 0) {
            // [wait.mechanism] It cannot ring, so the endpoint polls for the rest of the time.
            try testing.expectEqual(1, Recorder.slept_count);
            try testing.expectEqual(vacant_ms * 1_000_000, Recorder.slept[0]);
            try testing.expect(Recorder.pause_count > 100);
        } else try Recorder.expectSlices(&.{ vacant_ms, 900 });
    }
}

test "Stats.late_wakes counts slices that end with something there, and nothing else" {
    const Comer = struct {
        var crowd: Crowd = undefined;
        var writer: millrace.Writer = undefined;

        fn come() void {
            std.debug.assert(writer.tryWrite("late", .{}) catch unreachable);
        }

        /// Reads what arrives during a sleep. Returns how many wakes were late.
        fn wakes(rings: bool, timeout_ms: u64) !u64 {
            var storage: [16]u8 = undefined;
            const stats = &crowd.endpoints[0].stats;
            const before = stats.late_wakes;
            Recorder.reset();
            Recorder.meanwhile = come;
            Recorder.rings = rings;
            try testing.expect(try crowd.readers[0].read(&storage, .ms(timeout_ms)) != null);
            return stats.late_wakes - before;
        }
    };
    try Comer.crowd.init();
    try Comer.crowd.enter(1, &Recorder.host);
    Comer.writer = try .init(&Comer.crowd.endpoints[1], &Comer.crowd.segment, 0);
    try testing.expectEqual(1, try Comer.wakes(false, 2_500));
    try testing.expectEqual(0, try Comer.wakes(true, 2_500));
    // The deadline ended that sleep.
    try testing.expectEqual(0, try Comer.wakes(false, 500));
    // Slices that find nothing do not count.
    Recorder.reset();
    try Comer.crowd.read(2_500);
    try testing.expectEqual(1, Comer.crowd.endpoints[0].stats.late_wakes);
}

test "a writer that waits for room asks for more for 10 ms, and then sleeps 1 s at a time" {
    var crowd: Crowd = undefined;
    try crowd.init();
    try crowd.enter(1, &Recorder.host);
    var writer: millrace.Writer = try .init(&crowd.endpoints[1], &crowd.segment, 0);
    while (try writer.tryWrite("", .{})) {}
    try testing.expectError(error.Timeout, writer.write("", .{}, .ms(1_500)));
    try Recorder.expectSlices(&.{ layout.wait_more_ms, attached_ms, 490 });
}

test "Select sleeps 100 ms at a time while one of its writers is vacant" {
    var crowd: Crowd = undefined;
    try crowd.init();
    try crowd.enter(2, &Recorder.host);
    try crowd.select(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    // Vacant for ever, and no longer part of the wait.
    crowd.readers[0].ended_seen = true;
    Recorder.reset();
    try crowd.select(2_500);
    try Recorder.expectSlices(&.{ attached_ms, attached_ms, 500 });
    crowd.readers[0].ended_seen = false;
    var silent = fixture.clockwork;
    silent.wakes = 0;
    try crowd.enter(1, &silent);
    Recorder.reset();
    try crowd.select(250);
    try testing.expectEqual(0, Recorder.slept_count);
    try testing.expect(Recorder.pause_count > 40);
}

test "a slice stays 100 ms where somebody may change a state who cannot ring" {
    var crowd: Crowd = undefined;
    try crowd.init();
    for (1..3) |index| try crowd.enter(@intCast(index), &Recorder.host);
    var host = Recorder.host;
    host.outsiders = true;
    crowd.endpoints[0].host = &host;
    try crowd.read(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    Recorder.reset();
    try crowd.select(250);
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
    if (@import("builtin").os.tag != .linux) return;
    try testing.expect(!millrace.host.linux_futex.outsiders);
}

test "a sleep of this machine lasts its time, less a tick of the kernel" {
    const host: *const millrace.Host = .native;
    var word: u32 = 0;
    // Short waits and long ones.
    for ([_]u64{ 20, 120, 950 }) |limit_ms| {
        const begin_ns = host.now();
        try testing.expect(!host.sleep(&word, 0, limit_ms * 1_000_000));
        try testing.expect(host.now() - begin_ns >= (limit_ms -| 15) * 1_000_000);
        try testing.expect(host.sleep(&word, 1, limit_ms * 1_000_000_000));
    }
}

test "in a file, where the dead are looked for, a slice stays 100 ms" {
    if (!millrace.SegmentFile.supported) return error.SkipZigTest;
    var directory: file_fixture.Directory = undefined;
    try directory.init();
    defer directory.deinit();
    const path = directory.path("port");
    var ends: [2]file_fixture.End = undefined;
    for (&ends, 0..) |*end, index| try end.create(path, @intCast(index), .none);
    defer for (&ends) |*end| end.close();
    Recorder.reset();
    const port = &ends[0].port;
    port.endpoint.host = &Recorder.host;
    port.endpoint.spin_ns = 0;
    // The first check is due at once, and then one every 100 ms.
    port.endpoint.checked_ns = Recorder.host.now();
    var storage: [16]u8 = undefined;
    try testing.expectEqual(null, try port.read(&storage, .ms(250)));
    try Recorder.expectSlices(&.{ vacant_ms, vacant_ms, 50 });
}
