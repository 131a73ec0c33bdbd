//! Millrace's port through the library for C, as any other language calls it.

const std = @import("std");
const ends = @import("ends.zig");
const peer_millrace = @import("peer_millrace.zig");
const Plan = ends.Plan;

const done_status = 1;
const patience_ms = 20_000;
const spin_us = 60_000_000;

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

pub const Peer = struct {
    pub const moves_payload = true;
    pub const Link = peer_millrace.Link;

    pub fn declines(_: *const Plan) ?[]const u8 {
        return null;
    }

    pub const End = struct {
        segment_storage: [40_000]u8 align(16),
        port_storage: [1_024]u8 align(16),
        storage: [2][]align(64) u8,

        pub fn open(
            end: *End,
            _: *Link,
            plan: *const Plan,
            side: u1,
            storage: [2][]align(64) u8,
        ) !void {
            end.storage = storage;
            std.debug.assert(millrace_segment_size() <= end.segment_storage.len);
            std.debug.assert(millrace_port_size() <= end.port_storage.len);
            const capacity = peer_millrace.rings(plan).capacities[0];
            const channels = [2]Channel{
                .{ .writer = 0, .reader = 1, .capacity = capacity },
                .{ .writer = 1, .reader = 0, .capacity = capacity },
            };
            const segment = &end.segment_storage;
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
                const memory = peer_millrace.memoryOf(plan);
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
            try check(millrace_port_attach(&end.port_storage, segment, side));
            const spin: u32 = if (plan.scenario.wait == .spin) spin_us else 0;
            try check(millrace_port_set_spin(&end.port_storage, spin));
        }

        pub fn close(end: *End) void {
            _ = millrace_port_leave(&end.port_storage);
            _ = millrace_segment_leave(&end.segment_storage);
        }

        pub inline fn place(end: *End, size: u32) ![]u8 {
            return end.storage[0][0..size];
        }

        pub inline fn commit(end: *End, payload: []const u8) !void {
            return end.send(payload);
        }

        pub inline fn send(end: *End, payload: []const u8) !void {
            const port = &end.port_storage;
            try check(millrace_port_write(port, payload.ptr, payload.len, 0, 0, patience_ms));
        }

        pub inline fn take(end: *End) ![]const u8 {
            const port = &end.port_storage;
            const storage = end.storage[1];
            var message: Message = undefined;
            try check(millrace_port_read(port, storage.ptr, storage.len, patience_ms, &message));
            return message.payload[0..message.size];
        }

        pub inline fn done(_: *End) void {}
    };
};
