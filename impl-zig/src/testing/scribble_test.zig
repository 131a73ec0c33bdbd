//! Hostile peers: a million scribbles over the words and bytes that two threads share, while one of
//! them makes calls. Each call returns by its deadline, with a result or a documented code.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const scribble_fixture = @import("scribble_fixture.zig");
const testing = std.testing;
const Duel = scribble_fixture.Duel;
const Histogram = scribble_fixture.Histogram;
const Reason = layout.Reason;

const no_properties = "property.zig scribbles over the areas of a property";
const no_fanouts = "fanout_thread_test.zig scribbles over the areas of a fanout";
const no_streams = "no stream is among what two threads share";

/// Reasons to which no bytes of a peer lead in this implementation, and why.
const exceptions = [_]struct { why: Reason, because: []const u8 }{
    .{ .why = .segment_file, .because = "says what a file is, not what is in it" },
    .{ .why = .segment_missing, .because = "says that there is no file" },
    .{ .why = .pipe_forked, .because = "says that this process was forked, which no byte does" },
    .{ .why = .mailbox_size, .because = "is about the memory that the caller gives" },
    .{ .why = .message_lost, .because = no_fanouts },
    .{ .why = .fanout_number, .because = no_fanouts },
    .{ .why = .property_channel, .because = no_properties },
    .{ .why = .property_size, .because = no_properties },
    .{ .why = .property_slot, .because = no_properties },
    .{ .why = .property_busy, .because = no_properties },
    .{ .why = .stream_magic, .because = no_streams },
    .{ .why = .stream_version, .because = no_streams },
    .{ .why = .stream_feature, .because = no_streams },
    .{ .why = .stream_preface, .because = no_streams },
    .{ .why = .stream_credit, .because = no_streams },
};

test "scribble: a million scribbles, and every reason a peer can cause" {
    if (builtin.single_threaded) return error.SkipZigTest;
    var sum: Histogram = .{};
    inline for (.{
        .{ @import("scribble_port_fixture.zig").World, 500_000 },
        .{ @import("scribble_call_fixture.zig").World, 200_000 },
        .{ @import("scribble_mailbox_fixture.zig").World, 200_000 },
        .{ @import("scribble_attach_fixture.zig").World, 100_000 },
    }) |entry| {
        const World, const total = entry;
        const duel = try testing.allocator.create(Duel(World));
        defer testing.allocator.destroy(duel);
        duel.* = .{ .world = undefined, .total = total };
        const found = try duel.run();
        std.debug.print("{s}: {} scribbles, {} lives, {} results\n", .{
            @typeName(World), duel.scribbles.raw, duel.life.raw, found.good,
        });
        // Otherwise nothing ever works, and nothing is proved.
        try testing.expect(found.good > 1_000);
        sum.merge(&found);
    }
    sum.print();
    inline for (@typeInfo(Reason).@"enum".field_values) |value| {
        const why: Reason = @fromBackingInt(value);
        const excepted = for (exceptions) |exception| {
            if (exception.why == why) break true;
        } else false;
        if (excepted == (sum.count(why) > 0)) {
            std.debug.print("{s}: {} times\n", .{ why.name(), sum.count(why) });
            return error.WrongReasons;
        }
    }
}
