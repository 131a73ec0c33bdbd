//! A peer that attaches to a segment, again and again, while another thread scribbles over its
//! header, its records and its descriptors.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const millrace = @import("../root.zig");
const scribble_fixture = @import("scribble_fixture.zig");
const Act = scribble_fixture.Act;
const Clock = scribble_fixture.Clock;
const Hand = @import("scribble_port_fixture.zig").Hand;
const Histogram = scribble_fixture.Histogram;
const Port = millrace.Port;
const Random = std.Random;

/// Header, two records, two descriptors: the bytes that attaching reads.
const tables_end = 512;
const rings: millrace.Rings = .{ .capacities = .{ 256, 512 } };

pub const World = struct {
    memory: [4096]u8 align(layout.segment_align),
    good: [tables_end]u8 align(layout.segment_align),
    storage: [300]u8,

    pub fn begin(world: *World, _: u64) !void {
        world.memory = @splat(0);
        try Port.format(&world.memory, rings);
        @memcpy(&world.good, world.memory[0..tables_end]);
    }

    pub fn act(world: *World, random: Random, histogram: *Histogram) !Act {
        const timeout: millrace.Timeout = if (random.boolean()) .none else .us(100);
        const clock: Clock = .start(timeout);
        var port: Port = undefined;
        const options: Port.Options = .{ .timeout = timeout, .endpoint = .{ .spin_us = 0 } };
        const outcome = if (random.boolean())
            port.attach(&world.memory, random.uintLessThan(u32, 2), options)
        else
            port.create(&world.memory, rings, random.uintLessThan(u32, 2), options);
        try clock.stop();
        outcome catch |err| {
            try histogram.add(err, null);
            return .good;
        };
        histogram.good += 1;
        for (0..4) |_| {
            const hand: Hand = .{ .port = &port, .storage = &world.storage };
            _ = hand.act(random, .none) catch |err| try histogram.add(err, port.reason());
        }
        port.close();
        return .good;
    }

    pub fn scribble(world: *World, random: Random) void {
        // Usually everything is valid, so that checks after the first one fail too.
        if (random.uintLessThan(u32, 4) > 0) return world.restore();
        if (random.uintLessThan(u32, 16) == 0) {
            const ready = layout.segment_ready_offset;
            return scribble_fixture.store(&world.memory, ready, random.uintLessThan(u32, 2));
        }
        const offset = switch (random.uintLessThan(u32, 4)) {
            0, 1 => 4 * random.uintLessThan(usize, 9),
            2 => 128 + 128 * @as(usize, random.int(u1)) + layout.endpoint_state_offset,
            else => 384 + 64 * @as(usize, random.int(u1)) + 4 * random.uintLessThan(usize, 9),
        };
        const old = scribble_fixture.load(&world.memory, offset);
        scribble_fixture.store(&world.memory, offset, scribble_fixture.number(random, old));
    }

    fn restore(world: *World) void {
        for (0..tables_end / 4) |index| {
            const value = scribble_fixture.load(&world.good, 4 * index);
            if (scribble_fixture.load(&world.memory, 4 * index) == value) continue;
            scribble_fixture.store(&world.memory, 4 * index, value);
        }
    }
};
