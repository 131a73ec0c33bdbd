//! The floor of those who frame bytes: the least that a ring of frames does, with sleepers that are
//! looked for, but never there. No state, no error, messages of a few sizes, no wait that ends.
//! What is left are a header, a copy in and out, and two cursors in the one order with the wishes
//! of sleepers. While it waits, it takes the lines of its next frame.

const std = @import("std");
const ends = @import("ends.zig");
const Plan = ends.Plan;

const header_size = 16;
const frame_count = 4_096;
/// Their copies are made of a few instructions; others would be calls, and this no floor.
const sizes = .{ 8, 64 };

/// A control word, on a pair of lines of its own.
const Word = extern struct { value: u32 align(128) = 0 };

const Ring = extern struct {
    tail: Word,
    head: Word,
    reader_wants: Word,
    writer_wants: Word,
    frames: [frame_count * (header_size + 64)]u8 align(128),

    /// The frame at a cursor, which counts frames.
    inline fn frame(ring: *Ring, cursor: u32, comptime size: u32) *Frame(size) {
        const at = @as(usize, cursor % frame_count) * @sizeOf(Frame(size));
        return @ptrCast(@alignCast(&ring.frames[at]));
    }
};

fn Frame(comptime size: u32) type {
    return extern struct { header: [4]u32 align(8), payload: [size]u8 };
}

pub const Peer = struct {
    pub const moves_payload = true;

    pub fn declines(plan: *const Plan) ?[]const u8 {
        const scenario = plan.scenario;
        if (!scenario.is("echo")) return "only there and back";
        if (scenario.wait != .spin) return "this floor spins";
        inline for (sizes) |size| if (scenario.size == size) return null;
        return "short frames, of 8 and 64 bytes";
    }

    pub const Link = @import("peer_floor.zig").NoLink;

    pub const End = struct {
        outgoing: *Ring,
        incoming: *Ring,
        size: u32,
        /// Of the ring that is written: frames published, and given back as far as seen.
        tail: u32 = 0,
        freed: u32 = 0,
        /// Of the ring that is read: frames taken, given back, and published as far as seen.
        head: u32 = 0,
        stored: u32 = 0,
        seen: u32 = 0,
        rings: u32 = 0,
        /// Where messages are made and read.
        storage: [2][]align(64) u8,

        pub fn open(
            end: *End,
            _: *Link,
            plan: *const Plan,
            side: u1,
            storage: [2][]align(64) u8,
        ) !void {
            const rings: *[2]Ring = @ptrCast(@alignCast(plan.memory.ptr));
            end.* = .{
                .outgoing = &rings[side],
                .incoming = &rings[1 - side],
                .size = plan.scenario.size,
                .storage = storage,
            };
        }

        pub fn close(_: *End) void {}

        pub inline fn place(end: *End, size: u32) ![]u8 {
            return end.storage[0][0..size];
        }

        pub inline fn commit(end: *End, payload: []const u8) !void {
            return end.send(payload);
        }

        pub inline fn send(end: *End, payload: []const u8) !void {
            inline for (sizes) |size| if (end.size == size) end.put(payload[0..size]);
        }

        inline fn put(end: *End, payload: anytype) void {
            const ring = end.outgoing;
            while (end.tail -% end.freed >= frame_count) {
                end.freed = @atomicLoad(u32, &ring.head.value, .acquire);
                std.atomic.spinLoopHint();
            }
            const size = payload.len;
            ring.frame(end.tail, size).* = .{ .header = .{ size, 0, 0, 0 }, .payload = payload.* };
            end.tail +%= 1;
            @atomicStore(u32, &ring.tail.value, end.tail, .seq_cst);
            if (@atomicLoad(u32, &ring.reader_wants.value, .seq_cst) != 0) end.rings += 1;
        }

        pub inline fn take(end: *End) ![]const u8 {
            inline for (sizes) |size| if (end.size == size) return end.get(size);
            unreachable;
        }

        inline fn get(end: *End, comptime size: u32) ![]const u8 {
            const ring = end.incoming;
            if (end.seen == end.head) {
                const next = end.outgoing.frame(end.tail, size);
                @prefetch(next, .{ .rw = .write });
                @prefetch(&next.payload[size - 1], .{ .rw = .write });
                while (end.seen == end.head) {
                    end.seen = @atomicLoad(u32, &ring.tail.value, .acquire);
                    if (end.seen == end.head) std.atomic.spinLoopHint();
                }
            }
            const frame = ring.frame(end.head, size);
            if (frame.header[0] != size) return error.OtherSize;
            const target = end.storage[1][0..size];
            target.* = frame.payload;
            end.head +%= 1;
            if (end.head == end.seen or end.head -% end.stored >= frame_count / 4) {
                end.stored = end.head;
                @atomicStore(u32, &ring.head.value, end.head, .seq_cst);
                if (@atomicLoad(u32, &ring.writer_wants.value, .seq_cst) != 0) end.rings += 1;
            }
            return target;
        }

        pub inline fn done(_: *End) void {}
    };
};
