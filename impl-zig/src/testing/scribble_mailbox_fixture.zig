//! Both sides of two mailboxes, and a peer that scribbles over the words and bytes of both.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const millrace = @import("../root.zig");
const scribble_fixture = @import("scribble_fixture.zig");
const Act = scribble_fixture.Act;
const Clock = scribble_fixture.Clock;
const Histogram = scribble_fixture.Histogram;
const Random = std.Random;

const section_size = layout.mailbox_header_size + 48;

pub const World = struct {
    /// The victim reads the first one and writes the second one.
    sections: [2][section_size]u8 align(4),
    reader: millrace.MailboxReader,
    writer: millrace.MailboxWriter,
    other_reader: millrace.MailboxReader,
    other_writer: millrace.MailboxWriter,
    storage: [100]u8,
    other_storage: [300]u8,

    const text = "[\"a mailbox of forty-eight bytes takes this in two parts\"]";

    pub fn begin(world: *World, seed: u64) !void {
        for (&world.sections) |*section| section.* = @splat(0);
        const options: millrace.MailboxReader.Options = .{
            .spin_us = if (seed % 2 == 0) 0 else 20,
            .blocking = seed % 8 > 0,
        };
        world.reader = try .init(&world.sections[0], options);
        world.writer = try .init(&world.sections[1], options);
        world.other_writer = try .init(&world.sections[0], .{ .spin_us = 0 });
        world.other_reader = try .init(&world.sections[1], .{ .spin_us = 0 });
    }

    pub fn act(world: *World, random: Random, histogram: *Histogram) !Act {
        const timeout: millrace.Timeout = if (random.boolean()) .none else .us(200);
        const clock: Clock = .start(timeout);
        const reads = random.uintLessThan(u32, 3) > 0;
        const outcome = if (reads)
            world.read(timeout)
        else
            world.writer.write(text, timeout);
        const reason = if (reads) world.reader.reason() else world.writer.reason();
        const closing = random.uintLessThan(u32, 1024) == 0;
        if (closing) world.reader.close();
        try clock.stop();
        outcome catch |err| {
            try histogram.add(err, reason);
            return switch (err) {
                error.PipeClosed, error.PeerClosed, error.Corrupt => .final,
                else => .good,
            };
        };
        histogram.good += 1;
        return .good;
    }

    fn read(world: *World, timeout: millrace.Timeout) millrace.MailboxReadError!void {
        const payload = try world.reader.read(&world.storage, timeout) orelse return;
        std.mem.doNotOptimizeAway(std.hash.Crc32.hash(payload));
    }

    pub fn scribble(world: *World, random: Random) void {
        switch (random.uintLessThan(u32, 16)) {
            0...3 => {
                _ = world.other_writer.tryWrite(text) catch false;
            },
            4...7 => {
                const kept = &world.other_storage;
                if (world.other_reader.tryRead(kept) catch null) |payload| {
                    std.mem.doNotOptimizeAway(payload.len);
                }
            },
            8...11 => world.putPart(random),
            12, 13 => world.scribbleArea(random),
            else => world.scribbleWord(random),
        }
    }

    /// Places a part as a writer describes it, sometimes with a fault.
    fn putPart(world: *World, random: Random) void {
        const section = &world.sections[0];
        const texts = [_][]const u8{ "[1]", "[]", "7", "[\"\xff\"]", "[\"a", "\"]", "[ ]", text };
        const part = texts[random.uintLessThan(usize, texts.len)];
        const size = @min(part.len, section.len - layout.mailbox_header_size);
        for (0..size) |index| {
            @atomicStore(u8, &section[layout.mailbox_header_size + index], part[index], .monotonic);
        }
        const wrong = random.uintLessThan(u32, 12);
        const length: u32 = @intCast(size);
        const length_wrong = scribble_fixture.number(random, length);
        store(section, layout.mailbox_length_offset, if (wrong == 0) length_wrong else length);
        const count = if (wrong == 1) random.int(u32) else 1 + random.uintLessThan(u32, 2);
        store(section, layout.mailbox_part_count_offset, count);
        const index = if (wrong == 2) random.int(u32) else world.reader.part_index;
        store(section, layout.mailbox_part_index_offset, index);
        store(section, layout.mailbox_signal_offset, layout.mailbox_signal_may_read);
        millrace.Host.native.notify(@ptrCast(@alignCast(&section[layout.mailbox_signal_offset])));
    }

    fn scribbleArea(world: *World, random: Random) void {
        const section = &world.sections[random.int(u1)];
        const offset = random.intRangeLessThan(usize, layout.mailbox_header_size, section.len);
        @atomicStore(u8, &section[offset], random.int(u8), .monotonic);
    }

    fn scribbleWord(world: *World, random: Random) void {
        const section = &world.sections[random.int(u1)];
        const disposed: u32 = 0xffff_ffff;
        const turns = [_]u32{ 0, 1, 0, 1, 0, 1, disposed, 2 };
        switch (random.uintLessThan(u32, 12)) {
            0...3 => store(section, layout.mailbox_signal_offset, turns[random.int(u3)]),
            4 => store(section, layout.mailbox_status_offset, switch (random.int(u2)) {
                0 => disposed,
                1 => random.int(u32),
                else => 0,
            }),
            else => {
                const offset = layout.mailbox_length_offset + 4 * random.uintLessThan(usize, 3);
                const old = scribble_fixture.load(section, offset);
                store(section, offset, scribble_fixture.number(random, old));
            },
        }
    }

    const store = scribble_fixture.store;
};
