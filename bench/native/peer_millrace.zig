//! Millrace's port from Zig: with copies, and with frames that are lent where they lie.

const std = @import("std");
const millrace = @import("millrace");
const ends = @import("ends.zig");
const Plan = ends.Plan;

const patience: millrace.Timeout = .ms(20_000);
/// For as long as a run lasts: who is to spin never sleeps.
const spin_us = 60_000_000;

pub fn rings(plan: *const Plan) millrace.Rings {
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

pub fn memoryOf(plan: *const Plan) millrace.Memory {
    return @alignCast(plan.memory[0 .. 4 << 20]);
}

/// The file is the only thing that a run could leave behind.
pub const Link = struct {
    path: ?[:0]const u8,

    pub fn init(link: *Link, plan: *const Plan) !void {
        link.path = if (plan.scenario.inProcesses()) plan.path else null;
    }

    pub fn deinit(link: *Link) void {
        if (link.path) |path| _ = std.os.linux.unlink(path);
    }
};

pub const Copying = struct {
    pub const moves_payload = true;
    pub const Link = @import("peer_millrace.zig").Link;

    pub fn declines(_: *const Plan) ?[]const u8 {
        return null;
    }

    pub const End = struct {
        attached: Attached,
        /// Where messages are made and read.
        storage: [2][]align(64) u8,

        pub fn open(
            end: *End,
            _: *Copying.Link,
            plan: *const Plan,
            side: u1,
            storage: [2][]align(64) u8,
        ) !void {
            end.storage = storage;
            try end.attached.open(plan, side);
        }

        pub fn close(end: *End) void {
            end.attached.close();
        }

        pub inline fn place(end: *End, size: u32) ![]u8 {
            return end.storage[0][0..size];
        }

        pub inline fn commit(end: *End, payload: []const u8) !void {
            try end.attached.port.write(payload, .{}, patience);
        }

        pub inline fn send(end: *End, payload: []const u8) !void {
            try end.attached.port.write(payload, .{}, patience);
        }

        pub inline fn take(end: *End) ![]const u8 {
            const message = try end.attached.port.read(end.storage[1], patience);
            return (message orelse return error.NoMessage).payload;
        }

        pub inline fn done(_: *End) void {}
    };
};

pub const Lending = struct {
    pub const moves_payload = true;
    pub const Link = @import("peer_millrace.zig").Link;

    pub fn declines(plan: *const Plan) ?[]const u8 {
        const capacity = rings(plan).capacities[0];
        if (plan.scenario.size + millrace.layout.frame_header_size <= capacity / 2) return null;
        return "a message of this size has no one place in a ring of 1 MiB";
    }

    pub const End = struct {
        attached: Attached,

        pub fn open(
            end: *End,
            _: *Lending.Link,
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
