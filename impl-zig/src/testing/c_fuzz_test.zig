//! Calls from C with senseless arguments in a senseless order: each call returns a status, and
//! nothing reaches an assertion.

const std = @import("std");
const arguments = @import("../c/arguments.zig");
const segments = @import("../c/segment.zig");
const meters = @import("../c/meter.zig");
const ports = @import("../c/port.zig");
const codecs = @import("../c/codec.zig");
const mailboxes = @import("../c/mailbox.zig");
const properties = @import("../c/property.zig");
const fanouts = @import("../c/fanout.zig");
const called = @import("../c/call.zig");
const calling = @import("../c/call_make.zig");
const fixture = @import("../c/fixture.zig");
const streams = @import("../c/stream.zig");
const layout = @import("../memory/layout.zig");
const StreamDescriptors = @import("../stream/transport.zig").StreamDescriptors;
const SegmentFile = @import("../host/segment_file.zig").SegmentFile;
const testing = std.testing;
const posix = std.posix;
const Storage = fixture.Storage;

const seed_count = 400;
const call_count = 400;

/// What a pointer of a call means, so that what it is given may be wrong but lies in memory of this
/// process, and apart from what the library may keep to itself until a later call:
///   o an object's storage, k one that is likely to hold calls, y a property, n a fanout, m a
///   meter, t a token, w a stream; s shared memory; b bytes to read or fill in; c channels; p
///   pieces; i an inbox; f a path; v values of a list; x a function. Numbers stand in no list.
const calls = .{
    .{ ports.millrace_port_set_inbox, "oi" },
    .{ ports.millrace_port_write, "ob" },
    .{ ports.millrace_port_write_kind, "ob" },
    .{ ports.millrace_port_write_many, "opb" },
    .{ ports.millrace_port_claim, "ob" },
    .{ ports.millrace_port_publish, "o" },
    .{ ports.millrace_port_abandon, "o" },
    .{ ports.millrace_port_read, "obb" },
    .{ codecs.millrace_batch_next, "bbb" },
    .{ ports.millrace_port_peek, "ob" },
    .{ ports.millrace_port_release, "o" },
    .{ ports.millrace_port_reason, "o" },
    .{ ports.millrace_port_stats, "ob" },
    .{ mailboxes.millrace_mailbox_write, "ob" },
    .{ mailboxes.millrace_mailbox_read, "obb" },
    .{ mailboxes.millrace_mailbox_partial, "o" },
    .{ called.millrace_calls_read, "kbb" },
    .{ called.millrace_calls_write, "kb" },
    .{ called.millrace_calls_peek, "kb" },
    .{ called.millrace_calls_release, "k" },
    .{ calling.millrace_call, "kfvtb" },
    .{ calling.millrace_call_items, "kfvtxxb" },
    .{ calling.millrace_call_notify, "kfvt" },
    .{ calling.millrace_call_begin, "kfvtb" },
    .{ calling.millrace_call_begin_items, "kfvtb" },
    .{ calling.millrace_call_next, "ktb" },
    .{ calling.millrace_call_finish, "ktb" },
    .{ calling.millrace_call_give_up, "k" },
    .{ called.millrace_token_cancelled, "t" },
    .{ calling.millrace_call_thrown, "kb" },
    .{ called.millrace_serve_return, "kv" },
    .{ called.millrace_serve_throw, "kffv" },
    .{ called.millrace_serve_item, "kv" },
    .{ called.millrace_serve_cancelled, "k" },
    .{ properties.millrace_property_set, "yb" },
    .{ properties.millrace_property_clear, "y" },
    .{ properties.millrace_property_get, "ybb" },
    .{ properties.millrace_property_wait, "y" },
    .{ properties.millrace_property_value_size, "y" },
    .{ fanouts.millrace_fanout_write, "nb" },
    .{ fanouts.millrace_fanout_write_many, "npb" },
    .{ fanouts.millrace_fanout_read, "nbb" },
    .{ fanouts.millrace_fanout_read, "nbb" },
    .{ fanouts.millrace_fanout_set_joined, "n" },
    .{ fanouts.millrace_fanout_size_max, "n" },
    .{ meters.millrace_meter_done, "m" },
    .{ meters.millrace_meter_next_value, "m" },
    .{ meters.millrace_meter_report, "mbb" },
    .{ streams.millrace_stream_pump, "w" },
    // The calls from here on are made seldom, because they end what the other calls need.
    .{ ports.millrace_port_set_spin, "o" },
    .{ ports.millrace_port_set_blocking, "o" },
    .{ ports.millrace_port_set_calls, "o" },
    .{ ports.millrace_port_check_peers, "o" },
    .{ ports.millrace_port_vacate, "o" },
    .{ ports.millrace_port_end, "o" },
    .{ ports.millrace_port_close, "o" },
    .{ ports.millrace_port_leave, "o" },
    .{ ports.millrace_port_attach, "oo" },
    .{ ports.millrace_port_attach_endpoint, "oo" },
    .{ ports.millrace_port_attach_writer, "oo" },
    .{ ports.millrace_port_attach_reader, "oo" },
    .{ segments.millrace_memory_size, "c" },
    .{ segments.millrace_memory_format, "sc" },
    .{ segments.millrace_segment_create, "osc" },
    .{ segments.millrace_segment_attach, "os" },
    .{ segments.millrace_segment_create_file, "ofc" },
    .{ segments.millrace_segment_create_sealed, "oc" },
    .{ segments.millrace_segment_handed_path, "ob" },
    .{ segments.millrace_segment_open_file, "of" },
    .{ segments.millrace_segment_leave, "o" },
    .{ segments.millrace_segment_owner, "o" },
    .{ segments.millrace_segment_fail_endpoint, "o" },
    .{ segments.millrace_segment_close_endpoint, "o" },
    .{ mailboxes.millrace_mailbox_attach_writer, "os" },
    .{ mailboxes.millrace_mailbox_attach_reader, "os" },
    .{ mailboxes.millrace_mailbox_set_spin, "o" },
    .{ mailboxes.millrace_mailbox_close, "o" },
    .{ mailboxes.millrace_mailbox_leave, "o" },
    .{ properties.millrace_property_find, "ofb" },
    .{ properties.millrace_property_open_writer, "yof" },
    .{ properties.millrace_property_open_reader, "yof" },
    .{ properties.millrace_property_leave, "y" },
    .{ fanouts.millrace_fanout_find_writer, "ob" },
    .{ fanouts.millrace_fanout_find_reader, "ob" },
    .{ fanouts.millrace_fanout_open_writer, "no" },
    .{ fanouts.millrace_fanout_open_reader, "no" },
    .{ fanouts.millrace_fanout_end, "n" },
    .{ fanouts.millrace_fanout_leave, "n" },
    .{ meters.millrace_meter_attach, "mo" },
    .{ meters.millrace_meter_reset, "m" },
    .{ meters.millrace_meter_leave, "m" },
    .{ called.millrace_calls_attach, "koxx" },
    .{ called.millrace_calls_set_limits, "k" },
    .{ called.millrace_calls_end, "k" },
    .{ called.millrace_calls_vacate, "k" },
    .{ called.millrace_calls_leave, "k" },
    .{ called.millrace_serve, "kxx" },
    .{ called.millrace_token_create, "tk" },
    .{ called.millrace_serve_token, "kt" },
    .{ called.millrace_token_cancel, "t" },
    .{ called.millrace_token_leave, "t" },
    .{ called.millrace_serve_later, "k" },
    .{ streams.millrace_stream_await_ready, "w" },
    .{ streams.millrace_stream_finish, "w" },
};
const often_count = 49;

/// Two rings, one each way, a property of the first endpoint, and a fanout of each mode.
const geometry = fixture.both ++ [_]segments.Ring{
    .{
        .writer = 0,
        .reader = std.math.maxInt(u32),
        .capacity = 100,
        .kind = 2,
        .name = "value",
    },
    .{ .writer = 0, .reader = 1, .capacity = 256, .kind = 3 },
    .{ .writer = 1, .reader = 0, .capacity = 256, .kind = 3, .start = 1 },
};

const World = struct {
    random: std.Random,
    objects: [18]Storage align(8) = @splat(@splat(0)),
    stream_memory: [2][8192]u8 align(128) = undefined,
    meters: [2][64 * 1024]u8 align(8) = @splat(@splat(0)),
    shared: [3][8192]u8 align(128) = @splat(@splat(0)),
    bytes: [32 * 1024]u8 align(8),
    channels: [4][2]segments.Ring = @splat(fixture.both),
    pieces: [128]ports.Piece = @splat(.{ .address = "pieces", .size = 6 }),
    inbox: [1024]u8 align(16) = undefined,
    values: [128]called.ListValue,
    paths: [3]?[*:0]const u8,
    /// How many handlers are running, one inside another.
    depth: u32 = 0,
    /// How many calls returned another status than MILLRACE_INVALID.
    valid_count: usize = 0,

    const Ring = segments.Ring;

    fn pointer(world: *World, role: u8) ?*anyopaque {
        const random = world.random;
        switch (random.uintLessThan(u32, 32)) {
            0 => return null,
            // Misaligned for everything except bytes; there is room enough for those. A context of
            // functions is only handed back to them.
            1 => if (role != 'x') return &world.bytes[1],
            else => {},
        }
        return switch (role) {
            'o' => if (random.uintLessThan(u32, 2) == 0)
                // Usually one of the two ports.
                &world.objects[1 + random.uintLessThan(usize, 2)]
            else
                &world.objects[random.uintLessThan(usize, world.objects.len)],
            'k' => &world.objects[5 + random.uintLessThan(usize, 3)],
            'y' => &world.objects[8 + random.uintLessThan(usize, 2)],
            't' => if (random.uintLessThan(u32, 2) == 0)
                null
            else
                &world.objects[14 + random.uintLessThan(usize, 2)],
            'm' => &world.meters[random.uintLessThan(usize, 2)],
            'n' => &world.objects[10 + random.uintLessThan(usize, 4)],
            'w' => &world.objects[16 + random.uintLessThan(usize, 2)],
            's' => &world.shared[random.uintLessThan(usize, world.shared.len)],
            'b' => &world.bytes[8 * random.uintLessThan(usize, 1024)],
            'c' => if (random.uintLessThan(u32, 8) == 0)
                &world.bytes
            else
                &world.channels[random.uintLessThan(usize, world.channels.len)],
            'p' => &world.pieces,
            'i' => &world.inbox,
            'v' => &world.values[random.uintLessThan(usize, world.values.len / 2)],
            'x' => world,
            else => unreachable,
        };
    }

    fn argument(world: *World, comptime T: type, role: u8) T {
        const random = world.random;
        if (T == ?*anyopaque or T == ?*const anyopaque) return world.pointer(role);
        if (T == ?[*:0]const u8) {
            return world.paths[random.uintLessThan(usize, world.paths.len)];
        }
        const some = random.uintLessThan(u32, 8) > 0;
        if (T == ?called.Allocate) return if (some) fixture.allocate else null;
        if (T == ?called.Handler) return if (some) handle else null;
        if (T == ?calling.OnItem) return if (some) takeItem else null;
        if (T == usize) return switch (role) {
            'v' => random.uintLessThan(usize, world.values.len / 2),
            'p' => random.uintLessThan(usize, world.pieces.len + 1),
            'i' => random.uintLessThan(usize, world.inbox.len + 1),
            else => ([_]usize{ 0, 1, 3, 40, 100, 200, 1000, 4096, std.math.maxInt(usize) })[
                random.uintLessThan(usize, 9)
            ],
        };
        if (T == i32) {
            // Seldom waits, and never for ever.
            const rare = random.uintLessThan(u32, 64);
            return if (rare == 0) 1 else if (rare == 1) -2 else 0;
        }
        comptime std.debug.assert(T == u32);
        return switch (random.uintLessThan(u32, 16)) {
            0 => random.int(u32),
            1 => std.math.maxInt(u32),
            2 => 66,
            3 => 128,
            else => random.uintLessThan(u32, 4),
        };
    }

    fn step(world: *World) void {
        const random = world.random;
        const often = random.uintLessThan(u32, 8) > 0;
        switch (random.uintLessThan(usize, if (often) often_count else calls.len)) {
            inline 0...calls.len - 1 => |index| world.make(calls[index][0], calls[index][1]),
            else => unreachable,
        }
    }

    fn make(world: *World, comptime call: anytype, comptime roles: []const u8) void {
        var values: std.meta.ArgsTuple(@TypeOf(call)) = undefined;
        comptime var pointer_index: usize = 0;
        comptime var role: u8 = 0;
        inline for (&values) |*value| {
            const T = @TypeOf(value.*);
            if (@typeInfo(T) == .optional) {
                role = roles[pointer_index];
                pointer_index += 1;
            }
            value.* = world.argument(T, role);
        }
        comptime std.debug.assert(pointer_index == roles.len);
        const status = @call(.auto, call, values);
        if (@TypeOf(status) == arguments.Status and status != arguments.invalid) {
            world.valid_count += 1;
        }
    }

    /// Serves a call by making other senseless calls.
    fn handle(
        context: ?*anyopaque,
        _: ?*anyopaque,
        serving: usize,
        _: ?*const anyopaque,
        _: usize,
        values: ?*const anyopaque,
        count: usize,
    ) callconv(.c) arguments.Status {
        const world: *World = @ptrCast(@alignCast(context orelse return -117));
        const random = world.random;
        if (world.depth > 4) return -116;
        world.depth += 1;
        defer world.depth -= 1;
        const own = &world.objects[5];
        for (0..random.uintLessThan(u32, 4)) |_| world.step();
        _ = switch (random.uintLessThan(u32, 7)) {
            0 => called.millrace_serve_return(own, serving, if (count > 0) values else null),
            1 => called.millrace_serve_throw(own, serving, "name", null, null),
            2 => called.millrace_serve_item(own, serving, &world.values[0], 0),
            3 => called.millrace_serve_later(own, serving),
            4 => called.millrace_serve_token(own, serving, &world.objects[14]),
            else => 0,
        };
        return ([_]arguments.Status{ 1, 0, -118, -300, std.math.minInt(i32) })[
            random.uintLessThan(usize, 5)
        ];
    }

    fn takeItem(_: ?*anyopaque, _: ?*const anyopaque) callconv(.c) i32 {
        return 1;
    }

    /// Stores what a peer may store at any time.
    fn scribble(world: *World) void {
        const random = world.random;
        const memory = &world.shared[random.uintLessThan(usize, world.shared.len)];
        memory[random.uintLessThan(usize, memory.len)] = random.int(u8);
    }

    /// A peer that breaks its ring, and changes its state once more after it was failed for that:
    /// the calls that end meanwhile still have their reason.
    fn loseCalls(world: *World) void {
        const random = world.random;
        const side = random.uintLessThan(usize, 2);
        const own = &world.objects[5 + side];
        const memory = &world.shared[0];
        const tables = layout.endpoint_table_offset;
        // The peer's ring is the one that this side reads.
        const descriptor = tables + 2 * layout.endpoint_record_size +
            (1 - side) * layout.channel_descriptor_size;
        const place = memory[descriptor + layout.channel_control_offset_offset ..][0..4];
        const control = std.mem.readInt(u32, place, .little);
        var begun: [2]usize = undefined;
        _ = calling.millrace_call_begin(own, "call", null, 0, 0, null, &begun[0]);
        _ = calling.millrace_call_begin_items(own, "items", null, 0, 0, null, &begun[1]);
        setWord(memory, control + layout.ring_tail_offset, 1);
        _ = called.millrace_calls_read(own, &world.bytes, 64, 0, &world.bytes[64]);
        const words = [_]u32{ layout.endpoint_state_failed, 77 };
        const record = tables + (1 - side) * layout.endpoint_record_size;
        setWord(memory, record + layout.endpoint_state_offset, words[random.int(u1)]);
        _ = called.millrace_calls_write(own, null, 0, 0, 0, 0);
        _ = calling.millrace_call_finish(own, begun[0], 0, null, &world.bytes[64]);
        _ = calling.millrace_call_next(own, begun[1], 0, null, &world.bytes[64]);
    }

    fn setWord(memory: []u8, offset: usize, value: u32) void {
        if (offset % 4 != 0 or offset > memory.len - 4) return; // scribbled over before
        std.mem.writeInt(u32, memory[offset..][0..4], value, .little);
    }

    /// Starts again: two ports, or a writer and a reader, on a segment, and both sides of a
    /// mailbox.
    fn begin(world: *World) void {
        world.leave();
        const random = world.random;
        const objects = &world.objects;
        @memset(&world.shared[0], 0);
        @memset(&world.shared[1], 0);
        _ = segments.millrace_segment_create(
            &objects[0],
            &world.shared[0],
            world.shared[0].len,
            2,
            &geometry,
            geometry.len,
            0,
        );
        const way = random.uintLessThan(u32, 4);
        if (way == 0) {
            _ = ports.millrace_port_attach_writer(&objects[1], &objects[0], 0, 0);
            _ = ports.millrace_port_attach_reader(&objects[2], &objects[0], 1, 0);
        } else {
            if (way == 1 and StreamDescriptors.supported) world.openStreams() else {
                for (objects[1..3], 0..) |*port, index| {
                    _ = ports.millrace_port_attach(port, &objects[0], @intCast(index));
                }
            }
            // Of one of them, or of both.
            for (random.uintLessThan(usize, 2)..2) |index| {
                const own = &objects[5 + index];
                _ = called.millrace_calls_attach(own, &objects[1 + index], fixture.allocate, null);
                _ = called.millrace_serve(own, handle, world);
                _ = called.millrace_token_create(&objects[14 + index], own);
            }
        }
        _ = properties.millrace_property_open_writer(&objects[8], &objects[1], 2, null);
        _ = properties.millrace_property_open_reader(&objects[9], &objects[2], 2, null);
        for (0..2) |index| {
            const channel: u32 = @intCast(3 + index);
            const ends = objects[10 + 2 * index ..];
            _ = fanouts.millrace_fanout_open_writer(&ends[0], &objects[1 + index], channel);
            _ = fanouts.millrace_fanout_open_reader(&ends[1], &objects[2 - index], channel, 0);
        }
        for (&world.meters, objects[1..3]) |*meter, *port| { // refused if the port has calls
            if (random.boolean()) _ = meters.millrace_meter_attach(meter, port);
        }
        const size = random.intRangeAtMost(usize, 33, 300);
        _ = mailboxes.millrace_mailbox_attach_writer(&objects[3], &world.shared[1], size);
        _ = mailboxes.millrace_mailbox_attach_reader(&objects[4], &world.shared[1], size);
    }

    /// The two ports over a socket.
    fn openStreams(world: *World) void {
        var both: [2]posix.fd_t = undefined;
        const made = posix.system.socketpair(posix.AF.UNIX, posix.SOCK.STREAM, 0, &both);
        std.debug.assert(posix.errno(made) == .SUCCESS);
        const sizes: streams.Sizes = .{ .largest = 128, .window = 256, .queue = 512 };
        const objects = &world.objects;
        const open = streams.millrace_stream_open;
        for (both, 0..) |end, index| {
            const own, const port = .{ &objects[16 + index], &objects[1 + index] };
            const place = &world.stream_memory[index];
            const opened = open(own, port, end, end, place, place.len, &sizes);
            std.debug.assert(opened == arguments.done);
        }
    }

    /// By turns: one that leaves while nobody pumps the other lingers.
    fn leaveStreams(world: *World) void {
        for (0..20) |_| for (world.objects[16..18]) |*own| {
            _ = streams.millrace_stream_finish(own, 0);
        };
        for (world.objects[16..18]) |*own| _ = streams.millrace_stream_leave(own);
    }

    /// Leaves meters, calls, properties and fanouts before their ports, and ports before their
    /// segments.
    fn leave(world: *World) void {
        for (&world.meters) |*meter| _ = meters.millrace_meter_leave(meter);
        for (&world.objects) |*object| _ = called.millrace_calls_release(object);
        for (&world.objects) |*object| _ = called.millrace_token_leave(object);
        for (&world.objects) |*object| _ = called.millrace_calls_leave(object);
        for (&world.objects) |*object| _ = ports.millrace_port_close(object);
        for (&world.objects) |*object| _ = properties.millrace_property_leave(object);
        for (&world.objects) |*object| _ = fanouts.millrace_fanout_leave(object);
        world.leaveStreams();
        for (&world.objects) |*object| _ = ports.millrace_port_leave(object);
        for (&world.objects) |*object| _ = mailboxes.millrace_mailbox_leave(object);
        for (&world.objects) |*object| _ = segments.millrace_segment_leave(object);
    }
};

test "c_abi: no arguments and no order of calls trip an assertion" {
    var directory: @import("../host/fixture.zig").Directory = undefined;
    if (SegmentFile.supported) try directory.init();
    defer if (SegmentFile.supported) directory.deinit();
    const path: ?[*:0]const u8 = if (SegmentFile.supported) directory.path("fuzz") else "fuzz";
    var valid_count: usize = 0;
    for (0..seed_count) |seed| {
        errdefer std.debug.print("seed {}\n", .{seed});
        var prng: std.Random.DefaultPrng = .init(seed);
        const world = try testing.allocator.create(World);
        defer testing.allocator.destroy(world);
        world.* = .{
            .random = prng.random(),
            .bytes = undefined,
            .paths = .{ null, "", path },
            .values = @splat(.{ .payload = "pieces", .size = 6, .codec = 1 }),
        };
        for (&world.values, 0..) |*value, index| value.codec = @intCast(index % 6);
        prng.random().bytes(&world.bytes);
        for (world.channels[1..], 0..) |*channels, index| channels[1].writer = @intCast(index);
        @memcpy(world.bytes[0..8], "[\"text\"]");
        world.begin();
        for (0..call_count) |_| {
            world.step();
            if (prng.random().uintLessThan(u32, 128) == 0) world.scribble();
            if (prng.random().uintLessThan(u32, 64) == 0) world.loseCalls();
            if (prng.random().uintLessThan(u32, 64) == 0) world.begin();
        }
        world.leave();
        for (&world.objects) |*object| {
            try testing.expectEqual(-256, segments.millrace_segment_leave(object));
        }
        valid_count += world.valid_count;
    }
    // Not all calls were refused at once: about a seventh was not.
    try testing.expect(valid_count > seed_count * call_count / 10);
}
