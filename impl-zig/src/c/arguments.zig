//! The checks of arguments that calls from C make, and the statuses that they return. `millrace.h`
//! says what a status means and what a caller may pass.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const reasonOf = @import("../error.zig").reasonOf;
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
    // No reason code, negated, is equal to one of the statuses above.
    for (std.meta.tags(layout.Reason)) |reason| assert(@backingInt(reason) < -invalid);
}

/// Returns the status of a call that failed. `corrupt` is the reason for `error.Corrupt`.
pub fn failed(err: anyerror, corrupt: ?layout.Reason) Status {
    return switch (err) {
        error.Timeout => nothing,
        // After a fault the peer counts as failed, whatever it has stored since.
        error.Corrupt => statusFor(corrupt orelse .peer_failed),
        error.FileNotFound => not_found,
        error.AccessDenied => access_denied,
        error.NameTooLong => name_too_long,
        error.NoSpaceLeft => no_space,
        error.SystemResources, error.OutOfMemory => no_resources,
        error.Unexpected => system,
        else => if (reasonOf(err)) |reason| statusFor(reason) else system,
    };
}

fn statusFor(reason: layout.Reason) Status {
    return -@as(Status, @intCast(@backingInt(reason)));
}

/// Converts milliseconds, of which -1 means for ever. Returns null for other negative numbers.
pub fn timeoutOf(ms: i32) ?Timeout {
    if (ms < -1) return null;
    return if (ms == -1) .forever else .ms(@intCast(ms));
}

pub fn envelopeOf(codec: u32, tag: u32) ?pipe.Envelope {
    if (codec > std.math.maxInt(u8)) return null;
    return .{ .codec = @fromBackingInt(codec), .tag = tag };
}

/// Returns the bytes that a caller passes, or null if no bytes can lie there: NULL is no address,
/// and no object of C is larger than half of the address space.
pub fn bytesAt(address: ?*const anyopaque, size: usize) ?[]const u8 {
    if (size == 0) return &.{};
    const begin = address orelse return null;
    if (size > std.math.maxInt(isize)) return null;
    if (@intFromPtr(begin) > std.math.maxInt(usize) - size) return null;
    return @as([*]const u8, @ptrCast(begin))[0..size];
}

/// `bytesAt` for bytes that the call may write.
pub fn storageAt(address: ?*anyopaque, size: usize) ?[]u8 {
    return @constCast(bytesAt(address, size) orelse return null);
}

/// Returns the items that a caller passes, or null if none can lie there, or they are not aligned.
pub fn arrayAt(comptime T: type, address: ?*const anyopaque, count: usize) ?[]const T {
    const size = std.math.mul(usize, count, @sizeOf(T)) catch return null;
    const bytes = bytesAt(address, size) orelse return null;
    if (size == 0) return &.{};
    if (@intFromPtr(bytes.ptr) % @alignOf(T) != 0) return null;
    return @as([*]const T, @ptrCast(@alignCast(bytes.ptr)))[0..count];
}

/// Returns the place that a call fills in, or null if the pointer is NULL or not aligned for its
/// type.
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

/// An object in the caller's storage.
///
/// Its mark depends on its address. So storage that holds no such object is refused, whatever its
/// bytes, and so is an object that was moved, since objects hold pointers into themselves.
pub fn Object(comptime Body: type, comptime kind: Kind) type {
    return struct {
        mark: u64,
        body: Body,

        const Self = @This();

        comptime {
            // Every allocator of C aligns to at least 8 bytes.
            assert(@alignOf(Self) <= 8);
        }

        /// Returns storage that holds no object of any kind. The caller fills `body` and then calls
        /// `seal`.
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

        /// Returns the object at this address, or null if there is none of this kind.
        pub fn known(address: ?*anyopaque) ?*Self {
            const object = resultAt(Self, address) orelse return null;
            return if (object.mark == markAt(object, kind)) object else null;
        }

        pub fn forget(object: *Self) void {
            object.mark = 0;
        }

        fn markAt(object: *const Self, which: Kind) u64 {
            // A number that memory rarely holds next to a pointer to itself.
            const salt = 0x6d_72_5f_6f_62_6a_30_00;
            return (salt | @backingInt(which)) ^ @as(u64, @intFromPtr(object));
        }
    };
}
