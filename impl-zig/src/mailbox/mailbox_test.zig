//! The mailbox: its words, every check, payloads in every cut, limits and deadlines.

const std = @import("std");
const fixture = @import("../testing/fixture.zig");
const mailbox_fixture = @import("fixture.zig");
const mailbox = @import("side.zig");
const millrace = @import("../root.zig");
const testing = std.testing;
const MailboxReader = millrace.MailboxReader;
const MailboxWriter = millrace.MailboxWriter;
const Pair = mailbox_fixture.Pair;

const spoken = "[\"gr\u{fc}n \u{20ac}\",{\"clef\":\"\u{1d11e}\"},null]";

test "a section is refused unless it is aligned and holds a byte [mailbox.section]" {
    var memory: [64]u8 align(8) = @splat(0);
    for (0..5) |offset| for (0..40) |size| {
        const section = memory[offset..][0..size];
        const valid = offset % 4 == 0 and size >= 33;
        if (valid) {
            _ = try MailboxWriter.init(section, .{});
            _ = try MailboxReader.init(section, .{});
        } else {
            try testing.expectError(error.MailboxSize, MailboxWriter.init(section, .{}));
            try testing.expectError(error.MailboxSize, MailboxReader.init(section, .{}));
        }
    };
    try testing.expectEqual(.mailbox_size, millrace.reasonOf(error.MailboxSize).?);
}

test "the words after each step are those of the chapter's example" {
    var pair: Pair = undefined;
    try pair.init(16);
    const payload = "[\"hello\",[1,2,3]]";
    try expectWords(&pair, "00000000 00000000 00000000 00000000 00000000", "");
    try testing.expect(!try pair.writer.tryWrite(payload));
    const full = "[\"hello\",[1,2,3]";
    try expectWords(&pair, "00000000 01000000 10000000 02000000 00000000", full);
    try pair.expectNothing();
    try expectWords(&pair, "00000000 00000000 10000000 02000000 00000000", full);
    try testing.expect(try pair.writer.tryWrite(payload));
    try expectWords(&pair, "00000000 01000000 01000000 02000000 01000000", "]");
    try pair.expectPayload(payload);
    try expectWords(&pair, "00000000 00000000 01000000 02000000 01000000", "]");
    pair.writer.close();
    try expectWords(&pair, "ffffffff ffffffff 01000000 02000000 01000000", "]");
}

fn expectWords(pair: *Pair, words: []const u8, area: []const u8) !void {
    var expected: [20]u8 = undefined;
    var compact: [40]u8 = undefined;
    const size = std.mem.replace(u8, words, " ", "", &compact);
    try testing.expectEqual(4, size);
    _ = try std.fmt.hexToBytes(&expected, &compact);
    try testing.expectEqualSlices(u8, &expected, pair.section[0..20]);
    try testing.expectEqualSlices(u8, &@as([12]u8, @splat(0)), pair.section[20..32]);
    try testing.expectEqualSlices(u8, area, pair.section[32..][0..area.len]);
}

test "signal and status hold their three and two values or end the mailbox" {
    const minus_two: u32 = @bitCast(@as(i32, -2));
    for ([_]u32{ 2, 7, minus_two, 0x8000_0000, 0x7fff_ffff }) |value| {
        inline for (.{ "signal", "status" }) |name| inline for (.{ .writer, .reader }) |side| {
            var pair: Pair = undefined;
            try pair.init(16);
            @field(pair.header(), name) = value;
            try expectFault(&pair, side, .mailbox_signal);
        };
    }
    for ([_]u32{ 0, 1 }) |value| {
        var pair: Pair = undefined;
        try pair.init(16);
        pair.put("[1]", 0, 1);
        pair.header().signal = value;
        if (value == 1) try pair.expectPayload("[1]") else try pair.expectNothing();
    }
}

/// Expects that this side reports this fault, again and again. The mailbox is closed, its other
/// words are unchanged, and the other side takes it for a close.
fn expectFault(pair: *Pair, comptime side: mailbox_fixture.Side, reason: millrace.Reason) !void {
    const before = pair.section[8..32].*;
    const faulty = &@field(pair, @tagName(side));
    for (0..2) |_| {
        try testing.expectError(error.Corrupt, pair.verdict(side));
        try testing.expectEqual(reason, faulty.reason().?);
        try testing.expect(faulty.closed());
        // Nothing that is stored later counts.
        pair.header().signal = mailbox.may_write;
        pair.header().status = mailbox.active;
        try testing.expectError(error.Corrupt, pair.verdict(side));
        pair.header().status = mailbox.disposed;
        pair.header().signal = mailbox.disposed;
    }
    try testing.expectEqualSlices(u8, &before, pair.section[8..32]);
    const other: mailbox_fixture.Side = if (side == .writer) .reader else .writer;
    try testing.expectError(error.PeerClosed, pair.verdict(other));
    try testing.expectEqual(.peer_closed, @field(pair, @tagName(other)).reason().?);
    faulty.close(); // [mailbox.first_answer]
    try testing.expectError(error.PipeClosed, pair.verdict(side));
}

/// Parts that come one after the other. Only the last one may be wrong.
const Words = struct { length: u32 = 3, index: u32 = 0, count: u32 };

test "every check of a part accepts its neighbours [mailbox.check]" {
    const max: u32 = 0x7fff_ffff;
    const all: u32 = 0xffff_ffff;
    const Case = struct { parts: []const Words, reason: ?millrace.Reason };
    const cases = [_]Case{
        .{ .parts = &.{.{ .length = 0, .count = 2 }}, .reason = .mailbox_length },
        .{ .parts = &.{.{ .length = 1, .count = 2 }}, .reason = null },
        .{ .parts = &.{.{ .length = 16, .count = 2 }}, .reason = null },
        .{ .parts = &.{.{ .length = 17, .count = 2 }}, .reason = .mailbox_length },
        .{ .parts = &.{.{ .length = all, .count = 2 }}, .reason = .mailbox_length },
        .{ .parts = &.{.{ .count = 0 }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .count = 1 }}, .reason = null },
        .{ .parts = &.{.{ .count = max }}, .reason = null },
        .{ .parts = &.{.{ .count = max + 1 }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .count = all }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .index = 1, .count = 2 }}, .reason = .mailbox_part },
        .{ .parts = &.{.{ .index = all, .count = 2 }}, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 0, .count = 3 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 3 } }, .reason = null },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 2, .count = 3 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 4 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 2 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 3 }, .{ .index = 1, .count = 1 } }, .reason = .mailbox_part },
        // After a last part comes a first one, with any count.
        .{ .parts = &.{ .{ .count = 1 }, .{ .index = 1, .count = 2 } }, .reason = .mailbox_part },
        .{ .parts = &.{ .{ .count = 1 }, .{ .index = 0, .count = 2 } }, .reason = null },
        // The first check that fails determines the reason.
        .{ .parts = &.{.{ .length = 0, .index = 9, .count = 0 }}, .reason = .mailbox_length },
    };
    for (cases) |case| {
        var pair: Pair = undefined;
        try pair.init(16);
        @memcpy(pair.section[32..], "[1][1][1][1][1][");
        for (case.parts, 1..) |part, number| {
            pair.describe(part.length, part.index, part.count);
            if (number < case.parts.len or case.reason == null) {
                _ = try pair.tryRead();
                try testing.expectEqual(mailbox.may_write, pair.header().signal);
            } else try expectFault(&pair, .reader, case.reason.?);
            try testing.expect(!pair.reader.partial() or case.reason == null or
                number < case.parts.len);
        }
    }
}

test "a payload comes back whole through every capacity, gathered or in one piece" {
    const texts = [_][]const u8{ "\"gr\u{fc}n \u{20ac}\"", "{\"clef\":\"\u{1d11e}\"}", "null" };
    for (1..spoken.len + 2) |capacity| {
        for ([_]bool{ false, true }) |gathered| {
            var pair: Pair = undefined;
            try pair.init(capacity);
            const parts = std.math.divCeil(usize, spoken.len, capacity) catch unreachable;
            for (1..parts + 1) |number| {
                const call = if (gathered)
                    pair.writer.writeMessages(&texts, .none)
                else
                    pair.writer.write(spoken, .none);
                if (number < parts) {
                    try testing.expectError(error.Timeout, call);
                    // [mailbox.full_parts]
                    try testing.expectEqual(capacity, pair.header().length);
                    try testing.expect(pair.writer.partial());
                    try pair.expectNothing();
                    try testing.expect(pair.reader.partial());
                } else try call;
            }
            try testing.expect(!pair.writer.partial());
            try pair.expectPayload(spoken);
            try testing.expect(!pair.reader.partial());
            try pair.expectNothing();
        }
    }
    var batch: millrace.codec.Batch = .init(spoken);
    for (texts) |text| try testing.expectEqualStrings(text, (try batch.next()).?);
    try testing.expectEqual(null, try batch.next());
}

test "a reader takes parts of any size: every two cuts, inside characters too" {
    for (1..spoken.len - 1) |first| for (first + 1..spoken.len) |second| {
        var pair: Pair = undefined;
        try pair.init(64);
        pair.put(spoken[0..first], 0, 3);
        try pair.expectNothing();
        pair.put(spoken[first..second], 1, 3);
        try pair.expectNothing();
        pair.put(spoken[second..], 2, 3);
        try pair.expectPayload(spoken);
    };
}

test "a payload larger than the storage costs itself, once [mailbox.limit]" {
    for ([_]usize{ 1, 2, 5, 16, 64 }) |capacity| for (0..20) |size| {
        var pair: Pair = undefined;
        try pair.init(capacity);
        const payload = "[\"hello\",[1,2,3]]";
        const storage = pair.kept[0..size];
        var sizes: u32 = 0;
        var payloads: u32 = 0;
        for (0..2) |_| {
            var written = false;
            while (!written) {
                written = try pair.writer.tryWrite(payload);
                const found = pair.reader.tryRead(storage) catch |err| {
                    try testing.expectEqual(error.MessageSize, err);
                    try testing.expect(!pair.reader.partial());
                    sizes += 1;
                    continue;
                };
                if (found) |whole| try testing.expectEqualStrings(payload, whole);
                if (found != null) payloads += 1;
            }
        }
        const fits = size >= payload.len;
        try testing.expectEqual(if (fits) @as(u32, 0) else 2, sizes);
        try testing.expectEqual(if (fits) @as(u32, 2) else 0, payloads);
        // Smaller payloads fit again, in other storage.
        while (!try pair.writer.tryWrite("[1]")) try pair.expectNothing();
        try pair.expectPayload("[1]");
    };
}

test "a payload that is no UTF-8 or no array costs itself, once [mailbox.bad_payload]" {
    const texts = [_][]const u8{ "[\"\xff\"]", "[\"\xed\xa0\x80\"]", "[\"\xc3\"]", "\xfe" };
    const others = [_][]const u8{ "[]", "[ \n]", "{}", "1", "[1", "1]", "[", "]", "\"[1]\"", " " };
    const arrays = [_][]const u8{ "[1]", " [1] ", "[ 1\n]\r\n\t", "[[]]" };
    var pair: Pair = undefined;
    try pair.init(16);
    for (texts ++ others ++ arrays, 0..) |payload, index| {
        pair.put(payload, 0, 1);
        if (index < texts.len) {
            try testing.expectError(error.MessageText, pair.tryRead());
        } else if (index < texts.len + others.len) {
            try testing.expectError(error.MessageJson, pair.tryRead());
        } else try pair.expectPayload(payload);
        try pair.expectNothing();
    }
    // A fault that only cutting or parsing finds is found there, and costs only that payload.
    pair.put("[1,,2]", 0, 1);
    var batch: millrace.codec.Batch = .init((try pair.tryRead()).?);
    try testing.expectEqualStrings("1", (try batch.next()).?);
    try testing.expectError(error.MessageJson, batch.next());
    pair.put("[1]", 0, 1);
    try pair.expectPayload("[1]");
}

test "both sides keep their place over deadlines [mailbox.keep_parts] [mailbox.write_all]" {
    var pair: Pair = undefined;
    try pair.init(4);
    const payload = "[12345678]";
    // Nothing was written: another payload may come.
    pair.header().signal = mailbox.may_read;
    try testing.expectError(error.Timeout, pair.writer.write("[0]", .ms(250)));
    try testing.expectEqual(3, pair.writer.side.parks); // in slices of 100 ms
    try testing.expect(!pair.writer.partial());
    pair.header().signal = mailbox.may_write;
    for (0..3) |part| {
        try testing.expectEqual(null, try pair.reader.read(&pair.kept, .ms(1)));
        try testing.expectEqual(part > 0, pair.reader.partial());
        if (part < 2) {
            for (0..2) |_| {
                try testing.expectError(error.Timeout, pair.writer.write(payload, .ms(1)));
                try testing.expectEqual(part, pair.header().part_index);
                try testing.expect(pair.writer.partial());
                try testing.expect(pair.writer.fits(payload));
                try testing.expect(!pair.writer.fits("[1]"));
            }
        } else try pair.writer.write(payload, .ms(1));
    }
    try testing.expect(pair.writer.fits("[1]"));
    const found = (try pair.reader.read(&pair.kept, .ms(1))).?;
    try testing.expectEqualStrings(payload, found);
}

test "Side.late_wakes counts slices that end with the turn there, and nothing else" {
    const Met = struct {
        var pair: Pair = undefined;
        fn put() void {
            pair.put("[1]", 0, 1);
        }
    };
    try Met.pair.initOn(16, &mailbox_fixture.scripted);
    const side = &Met.pair.reader.side;
    mailbox_fixture.act = Met.put;
    defer mailbox_fixture.act = null;
    try testing.expect(try Met.pair.reader.read(&Met.pair.kept, .ms(250)) != null);
    try testing.expectEqual(1, side.late_wakes);
    // The deadline ended that call.
    try testing.expect(try Met.pair.reader.read(&Met.pair.kept, .ms(50)) != null);
    mailbox_fixture.act = null;
    try testing.expectEqual(null, try Met.pair.reader.read(&Met.pair.kept, .ms(250)));
    try testing.expectEqual(1, side.late_wakes);
}

test "a peer that keeps up does not hold a call beyond its deadline" {
    const Met = struct {
        var pair: Pair = undefined;
        /// When it is notified, the peer acts at once; the clock moves 1 ms with each part.
        fn notify(_: *const u32) void {
            fixture.clockwork.pause(1_000_000);
            const header = pair.header();
            if (header.signal == mailbox.may_read) {
                header.signal = mailbox.may_write;
            } else pair.describe(1, header.part_index + 1, header.part_count);
        }
    };
    var host = fixture.clockwork;
    host.notify = Met.notify;
    try Met.pair.initOn(1, &host);
    const long = "[\"" ++ @as([200]u8, @splat('x')) ++ "\"]";
    try testing.expectError(error.Timeout, Met.pair.writer.write(long, .ms(20)));
    const written = Met.pair.header().part_index;
    try testing.expect(written > 10 and written < 25);
    // A peer that sends for ever; its payloads are kept or dropped.
    for ([_]usize{ 1024, 4 }) |size| {
        try Met.pair.initOn(1, &host);
        Met.pair.describe(1, 0, millrace.layout.mailbox_part_count_max);
        const storage = Met.pair.kept[0..size];
        if (size == 4) try testing.expectError(
            error.MessageSize,
            Met.pair.reader.read(storage, .ms(20)),
        );
        try testing.expectEqual(null, try Met.pair.reader.read(storage, .ms(20)));
        try testing.expect(Met.pair.header().part_index < 30);
    }
}

test "on a thread that must not block, a wait is forbidden and loses nothing" {
    var pair: Pair = undefined;
    try pair.init(4);
    for ([_]u64{ 0, 1_000_000_000 }) |spin_ns| {
        pair.writer.side.manner.blocking = false;
        pair.reader.side.manner.blocking = false;
        pair.writer.side.manner.spin_ns = spin_ns;
        pair.reader.side.manner.spin_ns = spin_ns;
        const begin_ns = fixture.clockwork.now();
        try testing.expectError(error.WaitForbidden, pair.reader.read(&pair.kept, .ms(50)));
        try testing.expectError(error.WaitForbidden, pair.writer.write("[1234]", .forever));
        try testing.expectError(error.WaitForbidden, pair.reader.read(&pair.kept, .forever));
        try pair.writer.write("[1234]", .forever);
        try pair.expectPayload("[1234]");
        try testing.expectEqual(null, try pair.reader.read(&pair.kept, .none));
        try testing.expect(fixture.clockwork.now() - begin_ns < 100_000);
        try testing.expectEqual(0, pair.writer.side.parks + pair.reader.side.parks);
    }
}
