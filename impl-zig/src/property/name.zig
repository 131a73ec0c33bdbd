//! The names of properties, as their creator writes them [spec/property.md].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const assert = std.debug.assert;

/// The name of a property: at most 124 bytes of UTF-8.
pub const Name = struct {
    channel: u32,
    name: []const u8,
};

const begin = layout.property_name_size_offset;
const size = layout.property_control_size - begin;

/// Returns the size of a name and the name, as they stand at the end of a control area.
fn image(name: []const u8) [size]u8 {
    assert(name.len <= layout.property_name_size_max);
    var bytes: [size]u8 = @splat(0);
    bytes[0..4].* = @bitCast(@as(u32, @intCast(name.len)));
    @memcpy(bytes[4..][0..name.len], name);
    return bytes;
}

/// Returns the name of a channel; empty if it has none.
pub fn of(names: []const Name, channel: usize) []const u8 {
    for (names) |each| if (each.channel == channel) return each.name;
    return "";
}

/// Writes a name into a control area that holds only zeros [property.name].
pub fn write(control: []u8, name: []const u8) void {
    if (name.len == 0) return;
    control[begin..][0..size].* = image(name);
}

/// Whether the control area of a property holds this name [property.same_name].
pub fn is(control: []const u8, name: []const u8) bool {
    if (control.len < layout.property_control_size) return name.len == 0;
    const found = @as(*const volatile [size]u8, @ptrCast(control[begin..][0..size])).*;
    return std.mem.eql(u8, &found, &image(name));
}
