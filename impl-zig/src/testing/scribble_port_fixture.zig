//! A port whose peer scribbles over control words, records and frames, and sometimes behaves
//! correctly, so that the victim reaches every place where something can go wrong.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const millrace = @import("../root.zig");
const scribble_fixture = @import("scribble_fixture.zig");
const Act = scribble_fixture.Act;
const Clock = scribble_fixture.Clock;
const FrameHeader = @import("../ring/frame.zig").Header;
const Histogram = scribble_fixture.Histogram;
const Port = millrace.Port;
const Random = std.Random;

const line = layout.segment_align;
const capacities = [2]u32{ 256, 512 };
/// The control words and the bytes of both rings, placed as port.md says.
const control_offsets = [2]usize{ 512, 1280 };
const area_offsets = [2]usize{ 1024, 1792 };
const record_offsets = [2]usize{ 128, 256 };

pub const World = struct {
    memory: [4096]u8 align(line),
    inboxes: [2][512]u8 align(16),
    /// The victim's port, and the vandal's port for when it behaves correctly.
    victim: Port,
    vandal: Port,
    victim_storage: [300]u8,
    vandal_storage: [300]u8,

    pub fn begin(world: *World, seed: u64) !void {
        var prng: Random.DefaultPrng = .init(seed);
        const random = prng.random();
        world.memory = @splat(0);
        const starts = [_]u32{ 0, 0xffff_ff80, 0xffff_fff0, 0x7fff_ff00 };
        const rings: millrace.Rings = .{
            .capacities = capacities,
            .starts = .{ starts[random.int(u2)], starts[random.int(u2)] },
        };
        const spin_us: u32 = if (random.boolean()) 0 else 20;
        for ([_]*Port{ &world.victim, &world.vandal }, 0..) |port, index| {
            // Sometimes the victim's thread must not block.
            const blocking = index == 1 or random.uintLessThan(u32, 8) > 0;
            try port.create(&world.memory, rings, @intCast(index), .{
                .endpoint = .{ .spin_us = spin_us, .blocking = blocking },
                .inbox = if (random.boolean()) &world.inboxes[index] else &.{},
                .calls = random.uintLessThan(u32, 4) == 0,
            });
        }
    }

    pub fn act(world: *World, random: Random, histogram: *Histogram) !Act {
        const timeout = scribble_fixture.drawTimeout(random);
        const clock: Clock = .start(timeout);
        const hand: Hand = .{ .port = &world.victim, .storage = &world.victim_storage };
        const result = hand.act(random, timeout);
        return scribble_fixture.settle(histogram, &world.victim, clock, result);
    }

    pub fn scribble(world: *World, random: Random) void {
        switch (random.uintLessThan(u32, 10)) {
            // The vandal behaves correctly: that is not a scribble, but brings the victim further.
            0, 1, 2 => {
                const hand: Hand = .{ .port = &world.vandal, .storage = &world.vandal_storage };
                _ = hand.act(random, .none) catch false;
            },
            3, 4, 5 => world.putFrame(random),
            6 => world.scribbleFrame(random),
            7 => world.scribbleCursor(random),
            8 => world.scribbleWords(random),
            else => if (random.uintLessThan(u32, 8) == 0) world.scribbleState(random),
        }
    }

    /// Writes one frame after the vandal's last one, with one fault or none.
    fn putFrame(world: *World, random: Random) void {
        const ring = &world.vandal.writer.ring;
        if (ring.claimed > 0 or world.vandal.writer.fault != null) return;
        ring.loaded = false;
        const size = 16 + random.uintLessThan(u32, 64);
        const bytes = (ring.claim(size) catch return) orelse return;
        @memset(bytes, 0);
        bytes[0] = random.int(u8);
        if (random.uintLessThan(u32, 8) == 0) bytes[8 + random.uintLessThan(usize, 8)] = 1;
        const place = ring.place;
        ring.finish(.{ .size = size, .kind = 1, .flags = 3 });
        var wrong: FrameHeader = .{ .size = size, .kind = 1, .flags = 3 };
        switch (random.uintLessThan(u32, 12)) {
            // Frames of multipart messages, in any order.
            0...3 => wrong.flags = ([_]u8{ 0, 1, 2, 6 })[random.int(u2)],
            4 => {
                wrong.flags = 6;
                wrong.size = 0;
            },
            5 => wrong = .{ .size = 0, .kind = 2 },
            6 => wrong.kind = random.int(u8),
            7 => wrong.flags = random.int(u8),
            8 => wrong.reserved = @intFromBool(random.boolean()),
            9 => wrong.size = scribble_fixture.number(random, size),
            10 => wrong = .{ .size = size, .kind = 6 },
            else => wrong.tag = random.uintLessThan(u32, 3),
        }
        const offset = area_offsets[1] + (place & (capacities[1] - 1));
        wrong.store(@alignCast(world.memory[offset..][0..16]));
        ring.publish();
    }

    fn scribbleFrame(world: *World, random: Random) void {
        const index = @intFromBool(random.uintLessThan(u32, 4) > 0);
        const words = capacities[index] / 4;
        const offset = area_offsets[index] + 4 * random.uintLessThan(usize, words);
        world.change(random, offset);
    }

    fn scribbleCursor(world: *World, random: Random) void {
        const lines = [_]usize{ layout.ring_tail_offset, layout.ring_head_offset };
        const offset = control_offsets[random.int(u1)] + lines[random.int(u1)];
        // A cursor that moves as its owner moves it is accepted for longer.
        if (random.boolean()) return world.change(random, offset);
        const old = scribble_fixture.load(&world.memory, offset);
        scribble_fixture.store(&world.memory, offset, old +% 16 * random.uintLessThan(u32, 4));
    }

    fn scribbleWords(world: *World, random: Random) void {
        const offset = switch (random.uintLessThan(u32, 4)) {
            0 => control_offsets[random.int(u1)] + layout.ring_reader_wants_offset,
            1 => control_offsets[random.int(u1)] + layout.ring_writer_wants_offset,
            2 => record_offsets[random.int(u1)] + layout.endpoint_bell_offset,
            else => record_offsets[random.int(u1)] + layout.endpoint_wakes_offset,
        };
        world.change(random, offset);
        if (random.boolean()) millrace.Host.native.notify(@ptrCast(@alignCast(&world.memory[128])));
    }

    fn scribbleState(world: *World, random: Random) void {
        const reasons = [_]layout.Reason{ .peer_terminated, .peer_lost, .ring_cursor, .frame_size };
        const state = switch (random.uintLessThan(u32, 6)) {
            0 => 4 + random.uintLessThan(u32, 252),
            1 => layout.endpoint_state_closed,
            2 => layout.endpoint_state_vacant,
            3 => random.int(u32),
            else => @backingInt(reasons[random.int(u2)]) << 8 | layout.endpoint_state_failed,
        };
        const offset = record_offsets[random.int(u1)] + layout.endpoint_state_offset;
        scribble_fixture.store(&world.memory, offset, state);
        millrace.Host.native.notify(@ptrCast(@alignCast(&world.memory[128])));
    }

    fn change(world: *World, random: Random, offset: usize) void {
        const old = scribble_fixture.load(&world.memory, offset);
        scribble_fixture.store(&world.memory, offset, scribble_fixture.number(random, old));
    }
};

/// Calls of one side, which keeps its storage while a message is in progress.
pub const Hand = struct {
    port: *Port,
    storage: *[300]u8,

    /// Makes a call. Returns whether it had a result.
    pub fn act(hand: Hand, random: Random, timeout: millrace.Timeout) !bool {
        const port = hand.port;
        var payload: [600]u8 = undefined;
        @memset(payload[0..16], random.int(u8));
        switch (random.uintLessThan(u32, 32)) {
            0...6 => {
                const most = if (timeout == .none) port.writer.trySizeMax() else payload.len;
                const size = random.uintAtMost(usize, @min(most, payload.len));
                const envelope: millrace.Envelope = .{
                    .kind = if (random.uintLessThan(u32, 8) == 0) .call else .data,
                    .tag = random.uintLessThan(u32, 3),
                };
                try port.write(payload[0..size], envelope, timeout);
                return true;
            },
            7, 8 => {
                const payloads: [4][]const u8 = .{ "a", "", payload[0..40], payload[0..100] };
                return try port.writeMany(&payloads, .{}, timeout) > 0;
            },
            9...21 => {
                if (!port.storageFits(hand.storage)) return hand.borrow(timeout);
                return try port.read(hand.storage, timeout) != null;
            },
            22...26 => {
                if (!port.peekFits()) return false;
                return hand.borrow(timeout);
            },
            27...29 => {
                const size = random.uintAtMost(u32, port.writer.frameSizeMax());
                const bytes = try port.claim(size, timeout);
                @memset(bytes, 1);
                if (random.boolean()) {
                    port.abandon();
                    return false;
                }
                port.finish(size, .{});
                if (random.boolean()) port.publish();
                return true;
            },
            30 => if (random.uintLessThan(u32, 16) == 0) try port.end(),
            else => if (random.uintLessThan(u32, 32) == 0) port.close(),
        }
        return false;
    }

    fn borrow(hand: Hand, timeout: millrace.Timeout) !bool {
        const lent = (try hand.port.peek(timeout)) orelse return false;
        std.mem.doNotOptimizeAway(std.hash.Crc32.hash(lent.payload));
        hand.port.release();
        return true;
    }
};
