//! The rival that every program has already: a bounded queue behind a mutex, with a condition for
//! each of its ends to wait on.

const std = @import("std");
const ends = @import("ends.zig");
const Plan = ends.Plan;
const Io = std.Io;

const Queue = struct {
    mutex: Io.Mutex = .init,
    filled: Io.Condition = .init,
    emptied: Io.Condition = .init,
    slots: []u8,
    slot_size: usize,
    slot_count: u64,
    written: u64 = 0,
    read: u64 = 0,

    fn slot(queue: *Queue, number: u64) []u8 {
        const at: usize = @intCast(number % queue.slot_count * queue.slot_size);
        return queue.slots[at..][0..queue.slot_size];
    }

    fn put(queue: *Queue, io: Io, payload: []const u8) void {
        queue.mutex.lockUncancelable(io);
        while (queue.written - queue.read == queue.slot_count) {
            queue.emptied.waitUncancelable(io, &queue.mutex);
        }
        @memcpy(queue.slot(queue.written), payload);
        queue.written += 1;
        queue.mutex.unlock(io);
        queue.filled.signal(io);
    }

    fn get(queue: *Queue, io: Io, storage: []u8) []const u8 {
        queue.mutex.lockUncancelable(io);
        while (queue.written == queue.read) queue.filled.waitUncancelable(io, &queue.mutex);
        const payload = storage[0..queue.slot_size];
        @memcpy(payload, queue.slot(queue.read));
        queue.read += 1;
        queue.mutex.unlock(io);
        queue.emptied.signal(io);
        return payload;
    }
};

pub const Peer = struct {
    pub const moves_payload = true;

    pub fn declines(plan: *const Plan) ?[]const u8 {
        if (plan.scenario.inProcesses()) return "its mutex works within one process";
        if (plan.scenario.wait == .spin) return "it sleeps whenever it waits";
        return null;
    }

    pub const Link = struct {
        queues: [2]Queue,

        pub fn init(link: *Link, plan: *const Plan) !void {
            const size = plan.scenario.size;
            // As many bytes as Millrace's rings have, but never fewer than two messages.
            const count = @max(2, plan.ringSize(0) / size);
            for (&link.queues, 0..) |*queue, index| queue.* = .{
                .slots = plan.memory[index * plan.memory.len / 2 ..][0 .. plan.memory.len / 2],
                .slot_size = size,
                .slot_count = @min(count, plan.memory.len / 2 / size),
            };
        }

        pub fn deinit(_: *Link) void {}
    };

    pub const End = struct {
        link: *Link,
        io: Io,
        side: u1,
        storage: [2][]align(64) u8,

        pub fn open(
            end: *End,
            link: *Link,
            plan: *const Plan,
            side: u1,
            storage: [2][]align(64) u8,
        ) !void {
            end.* = .{ .link = link, .io = plan.io, .side = side, .storage = storage };
        }

        pub fn close(_: *End) void {}

        pub inline fn place(end: *End, size: u32) ![]u8 {
            return end.storage[0][0..size];
        }

        pub inline fn commit(end: *End, payload: []const u8) !void {
            return end.send(payload);
        }

        pub inline fn send(end: *End, payload: []const u8) !void {
            end.link.queues[end.side].put(end.io, payload);
        }

        pub inline fn take(end: *End) ![]const u8 {
            return end.link.queues[1 - end.side].get(end.io, end.storage[1]);
        }

        pub inline fn done(_: *End) void {}
    };
};
