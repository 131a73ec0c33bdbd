//! Zig values as values of a list, and structs as tables of methods: how arguments, results and
//! items are written and read.
//!
//! | Zig | written as | read from |
//! | --- | --- | --- |
//! | `Value` | what it is | anything, as it came |
//! | `Bytes` | bytes | bytes |
//! | `[]const u8`, `*const [n]u8` | text | text, a JSON string, bytes |
//! | `?T` that is null, `void` | absent | absent, JSON null; for `void`, anything |
//! | any other | JSON, by `std.json` | JSON; an enum from a text too |

const std = @import("std");
const call_values = @import("values.zig");
const Allocator = std.mem.Allocator;
const Builder = call_values.Builder;
const Serving = @import("serving.zig").Serving;
const Value = call_values.Value;

/// Bytes that are no text.
pub const Bytes = struct { bytes: []const u8 };

/// Why a value was not written: it has no form in a list, such as text that is no UTF-8, or NaN.
pub const EncodeError = error{ OutOfMemory, Unwritable };

/// Writes a list of one value, or of none where that is absent.
pub fn encodeOne(gpa: Allocator, bytes: *std.ArrayList(u8), value: anytype) EncodeError![]const u8 {
    var builder: Builder = try .init(gpa, bytes, 1);
    try encode(&builder, value);
    if (builder.last().isAbsent()) return "";
    return builder.finish();
}

/// Writes a list of a name and arguments, which are a tuple, or a slice of `Value`.
pub fn encodeCall(
    gpa: Allocator,
    bytes: *std.ArrayList(u8),
    name: []const u8,
    arguments: anytype,
) EncodeError![]const u8 {
    const count = arguments.len + 1;
    if (count > call_values.count_max) return error.Unwritable;
    var builder: Builder = try .init(gpa, bytes, @intCast(count));
    try encode(&builder, name);
    if (@typeInfo(@TypeOf(arguments)) == .@"struct") {
        inline for (arguments) |argument| try encode(&builder, argument);
    } else {
        for (arguments) |argument| try encode(&builder, argument);
    }
    return builder.finish();
}

fn encode(builder: *Builder, value: anytype) EncodeError!void {
    const T = @TypeOf(value);
    if (T == Value) return encodeValue(builder, value);
    if (T == Bytes) return encodeValue(builder, .{ .codec = .bytes, .payload = value.bytes });
    if (comptime isText(T)) return encodeValue(builder, .text(value));
    switch (@typeInfo(T)) {
        .void, .null => return encodeValue(builder, .absent),
        .optional => return if (value) |there| encode(builder, there) else encode(builder, null),
        .float, .comptime_float => {
            if (!std.math.isFinite(value)) return error.Unwritable;
        },
        else => {},
    }
    builder.addJson(value) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        error.MessageSize => return error.Unwritable,
    };
    // The standard library writes what is not finite, which JSON has no number for.
    if (comptime !hasFloat(T)) return;
    call_values.checkValue(builder.gpa, builder.last()) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        else => return error.Unwritable,
    };
}

fn encodeValue(builder: *Builder, value: Value) EncodeError!void {
    call_values.checkValue(builder.gpa, value) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        // [call.values_encoded]
        else => return error.Unwritable,
    };
    builder.add(value) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        error.MessageSize => return error.Unwritable,
    };
}

/// Whether JSON of a type can hold a number that is not finite, as far as that can be told.
fn hasFloat(comptime T: type) bool {
    return switch (@typeInfo(T)) {
        .bool, .int, .comptime_int, .@"enum", .enum_literal => false,
        .optional, .array => hasFloat(std.meta.Child(T)),
        .pointer => switch (@typeInfo(std.meta.Child(T))) {
            .bool, .int, .@"enum" => false,
            // What it points to may point back.
            else => true,
        },
        .@"struct" => |info| for (info.field_types) |Field| {
            if (hasFloat(Field)) break true;
        } else false,
        else => true,
    };
}

fn isText(comptime T: type) bool {
    const info = switch (@typeInfo(T)) {
        .pointer => |pointer| pointer,
        else => return false,
    };
    if (info.size == .slice) return info.child == u8;
    if (info.size != .one) return false;
    return switch (@typeInfo(info.child)) {
        .array => |array| array.child == u8,
        else => false,
    };
}

/// Why a value is not read as what was asked for.
pub const DecodeError = error{ OutOfMemory, WrongType };

/// Reads a value. What the result points to lies in the list, or in the arena.
pub fn decode(comptime T: type, arena: Allocator, value: Value) DecodeError!T {
    if (T == Value) return value;
    if (T == void) return;
    if (T == Bytes) {
        return if (value.codec == .bytes) .{ .bytes = value.payload } else error.WrongType;
    }
    if (@typeInfo(T) == .optional) {
        if (value.isAbsent()) return null;
        if (value.codec == .json and std.mem.eql(u8, value.payload, "null")) return null;
        return try decode(@typeInfo(T).optional.child, arena, value);
    }
    if (T == []const u8) switch (value.codec) {
        .text, .bytes => return value.payload,
        else => {},
    };
    if (@typeInfo(T) == .@"enum" and value.codec == .text) {
        return std.meta.stringToEnum(T, value.payload) orelse error.WrongType;
    }
    if (value.codec != .json or value.isAbsent()) return error.WrongType;
    if (@typeInfo(T) == .int) {
        if (std.fmt.parseInt(T, value.payload, 10)) |number| return number else |_| {}
    }
    const options: std.json.ParseOptions = .{ .allocate = .alloc_always };
    return std.json.parseFromSliceLeaky(T, arena, value.payload, options) catch |err| switch (err) {
        error.OutOfMemory => |out| out,
        else => error.WrongType,
    };
}

/// Whether a value of this type points nowhere, so that it outlives the list that it came in.
pub fn isFlat(comptime T: type) bool {
    return switch (@typeInfo(T)) {
        .bool, .int, .float, .void, .@"enum" => true,
        .optional, .array => isFlat(std.meta.Child(T)),
        .@"struct" => |info| for (info.field_types) |Field| {
            if (!isFlat(Field)) break false;
        } else true,
        else => false,
    };
}

/// The methods that a port serves, by their names.
pub const Methods = struct {
    context: ?*anyopaque = null,
    /// Returns the method of that name, or null where there is none [call.served_only].
    find: *const fn (context: ?*anyopaque, name: []const u8) ?Method = findNone,

    /// Answers by `serving.answer`, or later, or fails; what does none of it gives no result.
    pub const Method = *const fn (context: ?*anyopaque, serving: *Serving) anyerror!void;

    /// Serves nothing: each call is refused [call.offer].
    pub const none: Methods = .{};

    fn findNone(_: ?*anyopaque, _: []const u8) ?Method {
        return null;
    }

    /// The public functions of a struct: of the one that a pointer points to, or of a type. The
    /// first parameter may be a pointer to that struct, and the next one `*Serving`, by which the
    /// method asks whether it was cancelled, gives items, answers later and calls back. The others
    /// are the arguments: those that are optional may be left out. What the arguments point to is
    /// valid until the method is answered.
    pub fn of(api: anytype) Methods {
        if (@TypeOf(api) == type) return Table(api).methods(null);
        const Api = @typeInfo(@TypeOf(api)).pointer.child;
        return Table(Api).methods(@ptrCast(@constCast(api)));
    }
};

fn Table(comptime Api: type) type {
    return struct {
        const map: std.StaticStringMap(Methods.Method) = .initComptime(pairs: {
            const names = std.meta.declarations(Api);
            var list: []const struct { []const u8, Methods.Method } = &.{};
            for (names) |name| {
                if (@typeInfo(@TypeOf(@field(Api, name))) != .@"fn") continue;
                list = list ++ .{.{ name, &Invocation(Api, name).run }};
            }
            break :pairs list;
        });

        fn methods(context: ?*anyopaque) Methods {
            return .{ .context = context, .find = find };
        }

        fn find(_: ?*anyopaque, name: []const u8) ?Methods.Method {
            return map.get(name);
        }
    };
}

fn Invocation(comptime Api: type, comptime name: []const u8) type {
    const function = @field(Api, name);
    const info = @typeInfo(@TypeOf(function)).@"fn";
    return struct {
        fn run(context: ?*anyopaque, serving: *Serving) anyerror!void {
            var all: std.meta.ArgsTuple(@TypeOf(function)) = undefined;
            comptime var next = 0;
            if (comptime next < all.len and isSelf(Api, info.param_types[next].?)) {
                all[next] = @ptrCast(@alignCast(context.?));
                next += 1;
            }
            if (comptime next < all.len and info.param_types[next].? == *Serving) {
                all[next] = serving;
                next += 1;
            }
            var values = serving.arguments();
            inline for (next..all.len) |index| {
                const value = values.next() orelse Value.absent;
                const Argument = info.param_types[index].?;
                all[index] = decode(Argument, serving.allocator(), value) catch |err|
                    return if (err == error.WrongType) error.CallArguments else err;
            }
            while (values.next()) |value| if (!value.isAbsent()) return error.CallArguments;
            const result = @call(.auto, function, all);
            const given = switch (@typeInfo(@TypeOf(result))) {
                .error_union => try result,
                else => result,
            };
            if (serving.state == .running) serving.answer(given);
        }
    };
}

fn isSelf(comptime Api: type, comptime T: type) bool {
    return T == *Api or T == *const Api;
}
