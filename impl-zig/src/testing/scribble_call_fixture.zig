//! A port with calls, whose peer calls, answers and cancels as it likes, and scribbles in between:
//! so that the victim comes to every way in which a call can end.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const millrace = @import("../root.zig");
const scribble_fixture = @import("scribble_fixture.zig");
const Act = scribble_fixture.Act;
const Calls = millrace.Calls;
const Clock = scribble_fixture.Clock;
const Histogram = scribble_fixture.Histogram;
const Port = millrace.Port;
const Random = std.Random;
const Serving = millrace.Serving;
const Value = millrace.Value;

const capacity = 1024;
/// As port.md places them: the control words and the bytes of both rings.
const control_offsets = [2]usize{ 512, 2048 };
const area_offsets = [2]usize{ 1024, 2560 };
const record_offsets = [2]usize{ 128, 256 };

/// What the victim serves.
const Api = struct {
    pub fn one() u32 {
        return 1;
    }

    pub fn hold(serving: *Serving) void {
        serving.later(null);
    }

    pub fn odd() f64 {
        return std.math.nan(f64);
    }

    pub fn fail(serving: *Serving) error{CallThrown}!void {
        return serving.fail("Oops", "it broke", .{1});
    }

    pub fn count(serving: *Serving, most: u32) !void {
        for (0..most % 32) |number| try serving.item(number, .us(50));
    }

    pub fn back(serving: *Serving) !u32 {
        const options: Calls.CallOptions = .{ .timeout = .us(100), .token = &serving.token };
        return serving.calls.call(u32, "back", .{}, options);
    }
};

const names = [_][]const u8{
    "one", "hold", "odd", "fail", "count", "back", "none", "", "\xff",
};

/// The reasons that speak of calls, whose numbers stand in a row.
const call_codes = blk: {
    const count = layout.reason_call_inbox - layout.reason_call_form + 1;
    var codes: [count]layout.Reason = undefined;
    for (&codes, layout.reason_call_form..) |*code, value| code.* = @fromBackingInt(value);
    break :blk codes;
};

pub const World = struct {
    memory: [8192]u8 align(layout.segment_align),
    victim: Port,
    vandal: Port,
    calls: Calls,
    made: [4]?*millrace.Call,
    storage: [600]u8,
    vandal_storage: [2048]u8,
    /// The last id that the vandal has read of a call of the victim's.
    asked: u32,

    pub fn begin(world: *World, seed: u64) !void {
        if (seed > 1) world.end();
        var prng: Random.DefaultPrng = .init(seed);
        const random = prng.random();
        world.memory = @splat(0);
        world.made = @splat(null);
        world.asked = 1;
        const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
        for ([_]*Port{ &world.victim, &world.vandal }, 0..) |port, index| {
            try port.create(&world.memory, rings, @intCast(index), .{
                .endpoint = .{ .spin_us = if (random.boolean()) 0 else 20 },
                .calls = true,
            });
        }
        world.calls.init(&world.victim, std.heap.smp_allocator, .{
            .message_size = 500,
            .inbox_size = random.uintLessThan(usize, 800),
            .serving_size = 4096,
        });
        world.calls.serve(Api);
    }

    fn end(world: *World) void {
        for (world.made) |made| if (made) |call| call.release();
        world.calls.deinit();
    }

    pub fn act(world: *World, random: Random, histogram: *Histogram) !Act {
        const timeout = scribble_fixture.drawTimeout(random);
        const clock: Clock = .start(timeout);
        const result: anyerror!bool = world.actOnce(random, timeout) catch |err|
            if (err == error.ResultType) false else err;
        const outcome = try scribble_fixture.settle(histogram, &world.victim, clock, result);
        if (outcome == .final) try world.askAll(histogram);
        return outcome;
    }

    /// Asks all calls that have ended how they have, after a call that asks the rings.
    fn askAll(world: *World, histogram: *Histogram) !void {
        for (world.made) |made| {
            const call = made orelse continue;
            if (!call.isDone()) continue;
            world.victim.write("", .{}, .none) catch {};
            call.finish(.none, null) catch |err| try histogram.add(err, world.victim.reason());
        }
    }

    fn actOnce(world: *World, random: Random, timeout: millrace.Timeout) !bool {
        const calls = &world.calls;
        var token: millrace.CancelToken = .init(&world.victim.endpoint);
        if (random.uintLessThan(u32, 8) == 0) token.cancel();
        const options: Calls.CallOptions = .{ .timeout = timeout, .token = &token };
        const place = &world.made[random.uintLessThan(usize, world.made.len)];
        switch (random.uintLessThan(u32, 64)) {
            0...15 => {
                if (try calls.read(&world.storage, timeout)) |_| return true;
                return error.CallEnded;
            },
            16...27 => return try calls.call(u32, "one", .{5}, options) < 100,
            28...37 => {
                if (place.*) |call| call.release();
                place.* = null;
                if (random.boolean()) {
                    place.* = try calls.begin("one", .{}, options);
                } else {
                    place.* = (try calls.items(u32, "one", .{}, options)).call;
                }
                return true;
            },
            38...52 => {
                const call = place.* orelse return false;
                if (call.takes_items and !call.isDone()) {
                    return try call.next(u32, timeout, null) != null;
                }
                if (!try call.wait(timeout, null)) return false;
                defer {
                    call.release();
                    place.* = null;
                }
                return try call.result(u32) < 100;
            },
            53...56 => try calls.notify("one", .{ "text", null }, options),
            57...60 => {
                const payload: [400]u8 = @splat(7);
                const size = random.uintAtMost(usize, payload.len);
                try calls.write(payload[0..size], .{}, timeout);
            },
            61 => if (place.*) |call| call.giveUp(),
            62 => if (random.uintLessThan(u32, 16) == 0) try calls.end(timeout),
            else => if (random.uintLessThan(u32, 32) == 0) calls.close(),
        }
        return false;
    }

    pub fn scribble(world: *World, random: Random) void {
        switch (random.uintLessThan(u32, 25)) {
            24 => world.forgetReason(),
            0...11 => world.say(random) catch {},
            12...20 => world.hear() catch {},
            21 => world.change(random, area_offsets[1] + 4 * random.uintLessThan(usize, 256)),
            22 => if (random.uintLessThan(u32, 8) == 0) {
                const lines = [_]usize{ layout.ring_tail_offset, layout.ring_head_offset };
                world.change(random, control_offsets[random.int(u1)] + lines[random.int(u1)]);
            },
            else => if (random.uintLessThan(u32, 16) == 0) switch (random.uintLessThan(u32, 4)) {
                0 => world.vandal.end() catch {},
                1 => world.vandal.close(),
                else => world.change(random, record_offsets[random.int(u1)] + 4),
            },
        }
    }

    /// After a fault, for which the victim failed it, stores that it has failed without a reason.
    fn forgetReason(world: *World) void {
        const offset = record_offsets[1] + layout.endpoint_state_offset;
        const failed = layout.endpoint_state_failed;
        if (scribble_fixture.load(&world.memory, offset) & layout.state_mask != failed) return;
        scribble_fixture.store(&world.memory, offset, failed);
    }

    /// Takes what the victim has sent, and keeps the id of its last call.
    fn hear(world: *World) !void {
        const message = (try world.vandal.read(&world.vandal_storage, .none)) orelse return;
        if (message.kind != .call or message.tag == 0) return;
        if (message.tag & layout.call_mark_all == 0) world.asked = message.tag;
    }

    /// Sends a call, an answer, or what is nearly one.
    fn say(world: *World, random: Random) !void {
        var memory: [2048]u8 = undefined;
        var fixed: std.heap.FixedBufferAllocator = .init(&memory);
        var bytes: std.ArrayList(u8) = .empty;
        const is_answer = random.boolean();
        const kinds = [_]layout.FrameKind{ .data, .call, .@"return", .throw };
        var envelope: millrace.Envelope = .{ .codec = .values };
        envelope.kind = if (is_answer) kinds[2 + @as(usize, random.int(u1))] else .call;
        envelope.tag = if (is_answer) world.asked else random.uintLessThan(u32, 6);
        var values: [3]Value = @splat(.{ .codec = .json, .payload = "7" });
        var count = random.uintAtMost(usize, 3);
        switch (envelope.kind) {
            .call => {
                values[0] = .text(names[random.uintLessThan(usize, names.len)]);
                if (random.uintLessThan(u32, 4) == 0) count = 0;
                if (count == 0) envelope.tag |= layout.call_mark_cancel;
            },
            .throw => {
                const all = comptime std.meta.tags(layout.Reason);
                // Mostly one of a call.
                const codes = if (random.uintLessThan(u32, 4) > 0) &call_codes else all;
                values[0] = .text(codes[random.uintLessThan(usize, codes.len)].name());
                values[1] = .text("");
                if (random.uintLessThan(u32, 4) > 0) count = 2;
            },
            else => {
                if (random.uintLessThan(u32, 4) > 0) count = 1;
                if (random.uintLessThan(u32, 3) == 0) envelope.tag |= layout.call_mark_more;
            },
        }
        var builder: millrace.values.Builder =
            try .init(fixed.allocator(), &bytes, @intCast(count));
        for (values[0..count]) |value| try builder.add(value);
        var payload = @constCast(builder.finish());
        // Then one thing wrong, or none.
        switch (random.uintLessThan(u32, 32)) {
            0 => envelope.codec = .text,
            1 => envelope.tag = random.int(u32),
            2 => envelope.kind = kinds[random.uintLessThan(usize, 4)],
            3 => if (payload.len > 0) {
                payload[random.uintLessThan(usize, payload.len)] = random.int(u8);
            },
            4 => payload.len = random.uintAtMost(usize, payload.len),
            5 => payload = memory[0..random.uintAtMost(usize, 700)],
            else => {},
        }
        const frames = [_]millrace.Timeout{ .none, .us(20) };
        try world.vandal.write(payload, envelope, frames[random.int(u1)]);
    }

    fn change(world: *World, random: Random, offset: usize) void {
        const old = scribble_fixture.load(&world.memory, offset);
        scribble_fixture.store(&world.memory, offset, scribble_fixture.number(random, old));
    }
};
