//! The floors. Of the machine itself: one word there and back between two cores, and between two
//! that sleep in the kernel; they carry no payload and check nothing. And of peers that frame
//! bytes: the least that a ring of frames does, with sleepers that are looked for, but never there.
//! No state, no error, messages of a few sizes, no wait that ends. What is left are a header, a
//! copy in and out, and two cursors in the one order with the wishes of sleepers. While it waits,
//! it takes the lines of its next frame.

const std = @import("std");
const ends = @import("ends.zig");
const Plan = ends.Plan;
const linux = std.os.linux;

/// A word for each way, each on lines of its own, as the cursors of a ring are.
const Words = [2]Word;
const Word = extern struct { value: u32 align(128) = 0 };

fn declinesAllBut(plan: *const Plan, wait: @TypeOf(plan.scenario.wait)) ?[]const u8 {
    if (!plan.scenario.is("echo")) return "a floor has no messages, only a word there and back";
    if (plan.scenario.wait != wait) return switch (wait) {
        .spin => "this floor spins",
        .park => "this floor sleeps",
        .own => unreachable, // no floor wants it
    };
    return null;
}

fn Floor(comptime wait: enum { spin, park }) type {
    return struct {
        pub const moves_payload = false;
        pub const Link = ends.NoLink;

        pub fn declines(plan: *const Plan) ?[]const u8 {
            return declinesAllBut(plan, if (wait == .spin) .spin else .park);
        }

        pub const End = struct {
            own: *u32,
            other: *u32,
            sent: u32 = 0,
            received: u32 = 0,

            pub fn open(
                end: *End,
                _: *Link,
                plan: *const Plan,
                side: u1,
                _: [2][]align(64) u8,
            ) !void {
                const words: *Words = @ptrCast(plan.memory.ptr);
                end.* = .{ .own = &words[side].value, .other = &words[1 - side].value };
            }

            pub fn close(_: *End) void {}

            pub inline fn place(_: *End, _: u32) ![]u8 {
                return &.{};
            }

            pub inline fn commit(end: *End, _: []const u8) !void {
                return end.send(&.{});
            }

            pub inline fn send(end: *End, _: []const u8) !void {
                end.sent +%= 1;
                @atomicStore(u32, end.own, end.sent, .release);
                if (wait == .park) {
                    _ = linux.futex_3arg(end.own, .{ .cmd = .WAKE, .private = false }, 1);
                }
            }

            pub inline fn take(end: *End) ![]const u8 {
                while (@atomicLoad(u32, end.other, .acquire) == end.received) {
                    if (wait == .spin) continue;
                    const wait_flags: linux.FUTEX_OP = .{ .cmd = .WAIT, .private = false };
                    _ = linux.futex_4arg(end.other, wait_flags, end.received, null);
                }
                end.received +%= 1;
                return &.{};
            }

            pub inline fn done(_: *End) void {}
        };
    };
}

pub const CacheLine = Floor(.spin);
pub const Futex = Floor(.park);

const header_size = 16;
const frame_count = 4_096;
/// Their copies are made of a few instructions; others would be calls, and this no floor.
const sizes = .{ 8, 64 };

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

pub const Frames = struct {
    pub const moves_payload = true;

    pub fn declines(plan: *const Plan) ?[]const u8 {
        const scenario = plan.scenario;
        if (!scenario.is("echo")) return "only there and back";
        if (scenario.wait != .spin) return "this floor spins";
        inline for (sizes) |size| if (scenario.size == size) return null;
        return "short frames, of 8 and 64 bytes";
    }

    pub const Link = ends.NoLink;
    pub const End = ends.Copying(Link, struct {
        const Way = @This();

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

        pub fn open(way: *Way, _: *Link, plan: *const Plan, side: u1) !void {
            const rings: *[2]Ring = @ptrCast(@alignCast(plan.memory.ptr));
            way.* = .{
                .outgoing = &rings[side],
                .incoming = &rings[1 - side],
                .size = plan.scenario.size,
            };
        }

        pub fn close(_: *Way) void {}

        pub inline fn write(way: *Way, payload: []const u8) !void {
            inline for (sizes) |size| if (way.size == size) way.put(payload[0..size]);
        }

        inline fn put(way: *Way, payload: anytype) void {
            const ring = way.outgoing;
            while (way.tail -% way.freed >= frame_count) {
                way.freed = @atomicLoad(u32, &ring.head.value, .acquire);
                std.atomic.spinLoopHint();
            }
            const size = payload.len;
            ring.frame(way.tail, size).* = .{ .header = .{ size, 0, 0, 0 }, .payload = payload.* };
            way.tail +%= 1;
            @atomicStore(u32, &ring.tail.value, way.tail, .seq_cst);
            if (@atomicLoad(u32, &ring.reader_wants.value, .seq_cst) != 0) way.rings += 1;
        }

        pub inline fn read(way: *Way, storage: []align(64) u8) ![]const u8 {
            inline for (sizes) |size| if (way.size == size) return way.get(storage, size);
            unreachable;
        }

        inline fn get(way: *Way, storage: []align(64) u8, comptime size: u32) ![]const u8 {
            const ring = way.incoming;
            if (way.seen == way.head) {
                const next = way.outgoing.frame(way.tail, size);
                @prefetch(next, .{ .rw = .write });
                @prefetch(&next.payload[size - 1], .{ .rw = .write });
                while (way.seen == way.head) {
                    way.seen = @atomicLoad(u32, &ring.tail.value, .acquire);
                    if (way.seen == way.head) std.atomic.spinLoopHint();
                }
            }
            const frame = ring.frame(way.head, size);
            if (frame.header[0] != size) return error.OtherSize;
            const target = storage[0..size];
            target.* = frame.payload;
            way.head +%= 1;
            if (way.head == way.seen or way.head -% way.stored >= frame_count / 4) {
                way.stored = way.head;
                @atomicStore(u32, &ring.head.value, way.head, .seq_cst);
                if (@atomicLoad(u32, &ring.writer_wants.value, .seq_cst) != 0) way.rings += 1;
            }
            return target;
        }
    });
};
