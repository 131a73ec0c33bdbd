//! What the machine itself costs: one word there and back between two cores, and between two that
//! sleep in the kernel. They carry no payload and check nothing: nothing can be faster.

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

/// For peers whose ends need nothing but the memory of the plan.
pub const NoLink = struct {
    pub fn init(_: *NoLink, _: *const Plan) !void {}
    pub fn deinit(_: *NoLink) void {}
};

fn Floor(comptime wait: enum { spin, park }) type {
    return struct {
        pub const moves_payload = false;
        pub const Link = NoLink;

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
