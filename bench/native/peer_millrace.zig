//! Millrace's port: from Zig, with copies and with frames that are lent where they lie; and through
//! the library for C.

const std = @import("std");
const millrace = @import("millrace");
const ends = @import("ends.zig");
const Plan = ends.Plan;

const patience: millrace.Timeout = .ms(20_000);
/// For as long as a run lasts: who is to spin never sleeps.
const spin_us = 60_000_000;

fn rings(plan: *const Plan) millrace.Rings {
    const capacity = plan.ringSize(millrace.layout.frame_header_size);
    return .{ .capacities = .{ capacity, capacity } };
}

/// Attached through memory of the process, or through a file between processes.
const Attached = struct {
    file: millrace.SegmentFile,
    in_file: bool,
    port: millrace.Port,
    channels: [2]millrace.Channel,

    fn open(attached: *Attached, plan: *const Plan, side: u1) !void {
        const options: millrace.Port.Options = .{
            .endpoint = .{ .spin_us = if (plan.scenario.wait == .spin) spin_us else 0 },
            .timeout = patience,
        };
        attached.in_file = plan.scenario.inProcesses();
        if (!attached.in_file) {
            const memory = memoryOf(plan);
            return attached.port.create(memory, rings(plan), side, options);
        }
        const channels = rings(plan).channels();
        const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
        const file_options: millrace.SegmentFile.Options = .{ .timeout = patience };
        try attached.file.create(plan.path, geometry, side, &attached.channels, file_options);
        errdefer attached.file.close();
        try attached.port.init(&attached.file.segment, side, options);
    }

    fn close(attached: *Attached) void {
        attached.port.close();
        if (attached.in_file) attached.file.close();
    }
};

fn memoryOf(plan: *const Plan) millrace.Memory {
    return @alignCast(plan.memory[0 .. 4 << 20]);
}

/// The file is the only thing that a run could leave behind.
const FileLink = struct {
    path: ?[:0]const u8,

    pub fn init(link: *FileLink, plan: *const Plan) !void {
        link.path = if (plan.scenario.inProcesses()) plan.path else null;
    }

    pub fn deinit(link: *FileLink) void {
        if (link.path) |path| _ = std.os.linux.unlink(path);
    }
};

pub const Copying = struct {
    pub const moves_payload = true;
    pub const Link = FileLink;
    pub const End = ends.Copying(Link, struct {
        const Way = @This();

        attached: Attached,

        pub fn open(way: *Way, _: *Link, plan: *const Plan, side: u1) !void {
            try way.attached.open(plan, side);
        }

        pub fn close(way: *Way) void {
            way.attached.close();
        }

        pub inline fn write(way: *Way, payload: []const u8) !void {
            try way.attached.port.write(payload, .{}, patience);
        }

        pub inline fn read(way: *Way, storage: []align(64) u8) ![]const u8 {
            const message = try way.attached.port.read(storage, patience);
            return (message orelse return error.NoMessage).payload;
        }
    });

    pub fn declines(_: *const Plan) ?[]const u8 {
        return null;
    }
};

pub const Lending = struct {
    pub const moves_payload = true;
    pub const Link = FileLink;

    pub fn declines(plan: *const Plan) ?[]const u8 {
        const capacity = rings(plan).capacities[0];
        if (plan.scenario.size + millrace.layout.frame_header_size <= capacity / 2) return null;
        return "a message of this size has no one place in a ring of 1 MiB";
    }

    pub const End = struct {
        attached: Attached,

        pub fn open(
            end: *End,
            _: *Link,
            plan: *const Plan,
            side: u1,
            _: [2][]align(64) u8,
        ) !void {
            try end.attached.open(plan, side);
        }

        pub fn close(end: *End) void {
            end.attached.close();
        }

        pub inline fn place(end: *End, size: u32) ![]u8 {
            return end.attached.port.claim(size, patience);
        }

        pub inline fn commit(end: *End, payload: []const u8) !void {
            end.attached.port.finish(@intCast(payload.len), .{});
            end.attached.port.publish();
        }

        pub inline fn send(end: *End, payload: []const u8) !void {
            const claimed = try end.place(@intCast(payload.len));
            @memcpy(claimed, payload);
            try end.commit(claimed);
        }

        pub inline fn take(end: *End) ![]const u8 {
            const lent = try end.attached.port.peek(patience);
            return (lent orelse return error.NoMessage).payload;
        }

        pub inline fn done(end: *End) void {
            end.attached.port.release();
        }
    };
};

const done_status = 1;
const patience_ms = 20_000;

const Channel = extern struct {
    writer: u32,
    reader: u32,
    capacity: u32,
    label: u32 = 0,
    start: u32 = 0,
    kind: u32 = 0,
    name: ?[*:0]const u8 = null,
};

const Message = extern struct {
    payload: [*]const u8,
    size: usize,
    total: u64,
    tag: u32,
    kind: u8,
    codec: u8,
    flags: u8,
    reserved: u8,
};

const Object = *align(16) anyopaque;

extern fn millrace_segment_size() usize;
extern fn millrace_segment_create(Object, [*]u8, usize, u32, [*]const Channel, u32, i32) i32;
extern fn millrace_segment_create_file(
    Object,
    [*:0]const u8,
    u32,
    [*]const Channel,
    u32,
    u32,
    i32,
) i32;
extern fn millrace_segment_leave(Object) i32;
extern fn millrace_port_size() usize;
extern fn millrace_port_attach(Object, Object, u32) i32;
extern fn millrace_port_set_spin(Object, u32) i32;
extern fn millrace_port_write(Object, [*]const u8, usize, u32, u32, i32) i32;
extern fn millrace_port_read(Object, [*]u8, usize, i32, *Message) i32;
extern fn millrace_port_leave(Object) i32;

fn check(status: i32) !void {
    if (status == done_status) return;
    std.debug.print("libmillrace answered {d}\n", .{status});
    return error.Library;
}

/// Through the library for C, as any other language calls it.
pub const C = struct {
    pub const moves_payload = true;
    pub const Link = FileLink;
    pub const End = ends.Copying(Link, struct {
        const Way = @This();

        segment: [40_000]u8 align(16),
        port: [1_024]u8 align(16),

        pub fn open(way: *Way, _: *Link, plan: *const Plan, side: u1) !void {
            std.debug.assert(millrace_segment_size() <= way.segment.len);
            std.debug.assert(millrace_port_size() <= way.port.len);
            const capacity = rings(plan).capacities[0];
            const channels = [2]Channel{
                .{ .writer = 0, .reader = 1, .capacity = capacity },
                .{ .writer = 1, .reader = 0, .capacity = capacity },
            };
            const segment = &way.segment;
            if (plan.scenario.inProcesses()) {
                try check(millrace_segment_create_file(
                    segment,
                    plan.path,
                    2,
                    &channels,
                    2,
                    side,
                    5_000,
                ));
            } else {
                const memory = memoryOf(plan);
                try check(millrace_segment_create(
                    segment,
                    memory.ptr,
                    memory.len,
                    2,
                    &channels,
                    2,
                    5_000,
                ));
            }
            try check(millrace_port_attach(&way.port, segment, side));
            const spin: u32 = if (plan.scenario.wait == .spin) spin_us else 0;
            try check(millrace_port_set_spin(&way.port, spin));
        }

        pub fn close(way: *Way) void {
            _ = millrace_port_leave(&way.port);
            _ = millrace_segment_leave(&way.segment);
        }

        pub inline fn write(way: *Way, payload: []const u8) !void {
            try check(millrace_port_write(&way.port, payload.ptr, payload.len, 0, 0, patience_ms));
        }

        pub inline fn read(way: *Way, storage: []align(64) u8) ![]const u8 {
            const port = &way.port;
            var message: Message = undefined;
            try check(millrace_port_read(port, storage.ptr, storage.len, patience_ms, &message));
            return message.payload[0..message.size];
        }
    });

    pub fn declines(_: *const Plan) ?[]const u8 {
        return null;
    }
};
