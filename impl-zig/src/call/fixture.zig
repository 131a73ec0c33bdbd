//! A port with calls, whose peer a test plays by hand.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const layout = millrace.layout;
const testing = std.testing;
const Calls = millrace.Calls;
const List = millrace.values.List;
const Serving = millrace.Serving;
const Value = millrace.Value;

/// A port with calls, and its peer, which reads and writes messages as they are. Must stay where it
/// was initialized.
pub const Duel = struct {
    memory: [64 * 1024]u8 align(layout.segment_align),
    peer: millrace.Port,
    port: millrace.Port,
    calls: Calls,
    storage: [4096]u8,
    served: Served,

    pub fn init(duel: *Duel, capacity: u32, options: Calls.Options) !void {
        return duel.initWith(testing.allocator, capacity, options);
    }

    pub fn initWith(
        duel: *Duel,
        gpa: std.mem.Allocator,
        capacity: u32,
        options: Calls.Options,
    ) !void {
        @memset(&duel.memory, 0);
        duel.served = .{};
        const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
        for ([_]*millrace.Port{ &duel.peer, &duel.port }, 0..) |port, index| {
            try port.create(&duel.memory, rings, @intCast(index), .{
                .endpoint = .{ .host = &fixture.clockwork, .spin_us = 0 },
                .calls = true,
            });
        }
        duel.calls.init(&duel.port, gpa, options);
        duel.calls.serve(&duel.served);
    }

    pub fn deinit(duel: *Duel) void {
        duel.calls.deinit();
        duel.port.close();
        duel.peer.close();
    }

    /// Sends a message with a list of values.
    pub fn say(duel: *Duel, kind: layout.FrameKind, tag: u32, list: []const Value) !void {
        var bytes: std.ArrayList(u8) = .empty;
        defer bytes.deinit(testing.allocator);
        var builder: millrace.values.Builder =
            try .init(testing.allocator, &bytes, @intCast(list.len));
        for (list) |value| try builder.add(value);
        const envelope: millrace.Envelope = .{ .kind = kind, .codec = .values, .tag = tag };
        try duel.peer.write(builder.finish(), envelope, .none);
    }

    pub fn ask(duel: *Duel, tag: u32, name: []const u8) !void {
        try duel.say(.call, tag, &.{.text(name)});
    }

    /// The next message that the port has sent: its kind, its tag, and the text of its first value.
    pub fn expect(duel: *Duel, kind: layout.FrameKind, tag: u32, first: []const u8) !void {
        const message = (try duel.peer.read(&duel.storage, .none)) orelse return error.Nothing;
        const list: List = try .check(testing.allocator, message.payload);
        try testing.expectEqualStrings(first, list.at(0).payload);
        try testing.expectEqual(kind, message.kind);
        try testing.expectEqual(tag, message.tag);
    }

    pub fn expectNothing(duel: *Duel) !void {
        try testing.expectEqual(null, try duel.peer.read(&duel.storage, .none));
    }

    pub fn serve(duel: *Duel) !void {
        try testing.expectEqual(null, try duel.calls.read(&duel.storage, .none));
    }

    pub fn expectReport(duel: *Duel, expected: anyerror) !void {
        try testing.expectError(expected, duel.calls.read(&duel.storage, .none));
        try duel.serve();
    }
};

/// What the port serves.
pub const Served = struct {
    /// The first calls of `hold`, and how many of all were told.
    holds: [4]?*Serving = @splat(null),
    told: u32 = 0,
    /// What `back` has ended with.
    back_ended: ?anyerror = null,

    pub fn one() u32 {
        return 1;
    }

    pub fn hold(served: *Served, serving: *Serving) void {
        for (&served.holds) |*place| if (place.* == null) {
            place.* = serving;
            break;
        };
        serving.user = served;
        serving.later(hear);
    }

    fn hear(serving: *Serving) void {
        const served: *Served = @ptrCast(@alignCast(serving.user.?));
        served.told += 1;
    }

    /// Answers when it is told that it was cancelled.
    pub fn wait(serving: *Serving) void {
        serving.later(null);
    }

    /// Answers the first call of `hold`.
    pub fn free(served: *Served) void {
        served.holds[0].?.answer("freed");
    }

    pub fn fail() error{NotFound}!void {
        return error.NotFound;
    }

    /// Calls the peer, and does not answer before that has.
    pub fn back(served: *Served, serving: *Serving) !u32 {
        const options: Calls.CallOptions = .{ .token = &serving.token };
        return serving.calls.call(u32, "back", .{}, options) catch |err| {
            served.back_ended = err;
            return err;
        };
    }
};
