//! What the calls from C check in their arguments, and what they answer with. `millrace.h` tells
//! what a status means and what a caller may pass.

const std = @import("std");
const layout = @import("layout.zig");
const host = @import("host.zig");
const pipe = @import("pipe.zig");
const reasonOf = @import("reason.zig").reasonOf;
const assert = std.debug.assert;
const Timeout = host.Timeout;

pub const Status = i32;

pub const done: Status = 1;
pub const nothing: Status = 0;
pub const end: Status = 2;
pub const invalid: Status = -256;
pub const unsupported: Status = -257;
pub const not_found: Status = -258;
pub const access_denied: Status = -259;
pub const name_too_long: Status = -260;
pub const no_space: Status = -261;
pub const no_resources: Status = -262;
pub const system: Status = -263;

comptime {
    // No status stands for two things.
    for (std.meta.tags(layout.Reason)) |reason| assert(@backingInt(reason) < -invalid);
}

/// The status of a call that failed. `corrupt` is what `error.Corrupt` stands for.
pub fn failed(err: anyerror, corrupt: ?layout.Reason) Status {
    return switch (err) {
        error.Timeout => nothing,
        error.Corrupt => statusFor(corrupt.?),
        error.FileNotFound => not_found,
        error.AccessDenied => access_denied,
        error.NameTooLong => name_too_long,
        error.NoSpaceLeft => no_space,
        error.SystemResources, error.OutOfMemory => no_resources,
        error.Unexpected => system,
        else => statusFor(reasonOf(err).?),
    };
}

fn statusFor(reason: layout.Reason) Status {
    return -@as(Status, @intCast(@backingInt(reason)));
}

/// Milliseconds, of which -1 means for ever.
pub fn timeoutOf(ms: i32) ?Timeout {
    if (ms < -1) return null;
    return if (ms == -1) .forever else .ms(@intCast(ms));
}

pub fn envelopeOf(codec: u32, tag: u32) ?pipe.Envelope {
    if (codec > std.math.maxInt(u8)) return null;
    return .{ .codec = @fromBackingInt(codec), .tag = tag };
}

/// The bytes that a caller passes; null where they cannot lie anywhere. Nothing lies at NULL, and
/// no object of C is larger than half of the address space.
pub fn bytesAt(address: ?*const anyopaque, size: usize) ?[]const u8 {
    if (size == 0) return &.{};
    const begin = address orelse return null;
    if (size > std.math.maxInt(isize)) return null;
    if (@intFromPtr(begin) > std.math.maxInt(usize) - size) return null;
    return @as([*]const u8, @ptrCast(begin))[0..size];
}

/// The same for bytes that the call may write.
pub fn storageAt(address: ?*anyopaque, size: usize) ?[]u8 {
    return @constCast(bytesAt(address, size) orelse return null);
}

/// The items that a caller passes; null where they cannot lie anywhere, or are not aligned.
pub fn arrayAt(comptime T: type, address: ?*const anyopaque, count: usize) ?[]const T {
    const size = std.math.mul(usize, count, @sizeOf(T)) catch return null;
    const bytes = bytesAt(address, size) orelse return null;
    if (size == 0) return &.{};
    if (@intFromPtr(bytes.ptr) % @alignOf(T) != 0) return null;
    return @as([*]const T, @ptrCast(@alignCast(bytes.ptr)))[0..count];
}

/// What a call fills in: a pointer that is not NULL and aligned as its type is.
pub fn resultAt(comptime T: type, address: ?*anyopaque) ?*T {
    const begin = address orelse return null;
    if (@intFromPtr(begin) % @alignOf(T) != 0) return null;
    return @ptrCast(@alignCast(begin));
}

pub const Kind = enum(u64) {
    segment = 1,
    port = 2,
    mailbox = 3,
    calls = 4,
    stream = 5,
    digest = 6,
    property = 7,
    fanout = 8,
    token = 9,
    meter = 10,
};

/// An object in storage of the caller's.
///
/// Its mark depends on where it stands: storage that holds no such object is refused, whatever its
/// bytes, and so is an object that was moved, since objects hold pointers into themselves.
pub fn Object(comptime Body: type, comptime kind: Kind) type {
    return struct {
        mark: u64,
        body: Body,

        const Self = @This();

        comptime {
            // What every allocator of C gives.
            assert(@alignOf(Self) <= 8);
        }

        /// Storage in which no object of any kind stands; the caller fills `body` and then `seal`s.
        pub fn blank(address: ?*anyopaque) ?*Self {
            const object = resultAt(Self, address) orelse return null;
            for (std.enums.values(Kind)) |other| {
                if (object.mark == markAt(object, other)) return null;
            }
            return object;
        }

        pub fn seal(object: *Self) void {
            object.mark = markAt(object, kind);
        }

        /// The object that stands there.
        pub fn known(address: ?*anyopaque) ?*Self {
            const object = resultAt(Self, address) orelse return null;
            return if (object.mark == markAt(object, kind)) object else null;
        }

        pub fn forget(object: *Self) void {
            object.mark = 0;
        }

        fn markAt(object: *const Self, which: Kind) u64 {
            // Not a number that memory often holds, next to a pointer to itself.
            const salt = 0x6d_72_5f_6f_62_6a_30_00;
            return (salt | @backingInt(which)) ^ @as(u64, @intFromPtr(object));
        }
    };
}
