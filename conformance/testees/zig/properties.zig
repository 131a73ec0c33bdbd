//! Properties of the implementation, as the kit drives them.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const value = @import("value.zig");
const Allocator = std.mem.Allocator;
const Codec = millrace.Codec;
const Session = @import("session.zig").Session;
const Timeout = millrace.Timeout;

/// Takes an endpoint, and opens a property for getting.
pub fn openReader(
    session: *Session,
    segment: *const millrace.Segment,
    command: *const protocol.Command,
    options: millrace.Endpoint.Options,
) !void {
    const index = try millrace.property.find(segment, whichOf(command));
    session.endpoint = try .attach(segment, command.endpoint orelse 1, options);
    session.property_reader = try .init(&session.endpoint, segment, .{ .channel = index });
    session.storage = try session.gpa.alloc(u8, session.property_reader.sizeMax());
}

/// The same for setting.
pub fn openWriter(
    session: *Session,
    segment: *const millrace.Segment,
    command: *const protocol.Command,
    options: millrace.Endpoint.Options,
) !void {
    const own = command.endpoint orelse 0;
    const index = try millrace.property.findFor(segment, whichOf(command), own);
    session.endpoint = try .attach(segment, own, options);
    try session.property_writer.open(&session.endpoint, segment, .{ .channel = index });
}

/// Sets a value.
pub fn set(session: *Session, payload: []const u8, codec: Codec) !void {
    if (codec == .json_batch or codec == .values) return error.Refused;
    return session.property_writer.set(payload, codec);
}

/// Gets the value of a property.
pub fn get(session: *Session, arena: Allocator) !protocol.Reply {
    if (session.role != .property_reader) return error.Unoffered;
    const found = try session.property_reader.get(session.storage);
    const bytes = found.bytes orelse return .{ .gotten = .{ .version = found.version } };
    const message: millrace.Message = .{
        .payload = bytes,
        .kind = .data,
        .codec = found.codec,
        .tag = 0,
    };
    if (session.values) switch (found.codec) {
        // Of several values, which nobody sets.
        .json_batch, .values => return error.MessageCodec,
        else => {
            const item = try value.decode(arena, message, &session.rest);
            return .{ .gotten = .{ .version = found.version, .item = item } };
        },
    };
    return .{ .gotten = .{ .version = found.version, .item = .{
        .kind = @backingInt(message.kind),
        .codec = @backingInt(message.codec),
        .tag = message.tag,
        .hex = .{ .bytes = bytes },
    } } };
}

/// Sets no value.
pub fn clear(session: *Session) !void {
    if (session.role != .property_writer) return error.Unoffered;
    return session.property_writer.clear();
}

/// Waits for another value than the last that was got.
pub fn changed(session: *Session, timeout: Timeout) !void {
    if (session.role != .property_reader) return error.Unoffered;
    if (!try session.property_reader.wait(timeout)) return error.Timeout;
}

/// The property that a command means.
fn whichOf(command: *const protocol.Command) millrace.property.Which {
    return if (command.channel) |channel|
        .{ .channel = channel }
    else
        .{ .name = command.property };
}
