//! Functions of Zig as functions of JavaScript: arguments are taken and checked by their types.

const std = @import("std");
const linux = std.os.linux;
const napi = @import("napi.zig");
const Environment = @import("environment.zig").Environment;
const path_size_max = @import("environment.zig").path_size_max;
const Mapping = @import("mapping.zig").Mapping;

/// A descriptor that was opened here and is not closed.
pub const Descriptor = struct { number: i32 };

/// A path for the system, which ends with the call.
pub const Path = struct { bytes: [*:0]const u8 };

/// Milliseconds to sleep.
pub const Span = struct { ms: f64 };

/// Where a word stands in a mapping; a whole number.
pub const Size = u53;

const span_ms_max = 1000;

/// What a method fails with.
pub const Error = error{
    /// Of an argument.
    NotANumber,
    NotABoolean,
    NotAString,
    NotADescriptor,
    NotAMapping,
    OutOfRange,
    NoSuchBytes,
    HoldsNul,
    NameTooLong,
    /// Of the environment.
    Refused,
    NoExternalBuffers,
};

/// The callback of a function `fn (*Environment, …) usize | Error!napi.Value | Error!usize`: a
/// number is the system's answer, below 0 the number of its error.
pub fn callback(comptime name: []const u8, comptime function: anytype) napi.Callback {
    const Arguments = std.meta.ArgsTuple(@TypeOf(function));
    const count = @typeInfo(Arguments).@"struct".field_types.len - 1;
    return struct {
        fn call(env: napi.Env, info: napi.CallbackInfo) callconv(.c) ?napi.Value {
            var values: [count + 1]napi.Value = undefined;
            var given: usize = count;
            var data: ?*anyopaque = null;
            if (napi.napi_get_cb_info(env, info, &given, &values, null, &data) != .ok) return null;
            const environment: *Environment = @ptrCast(@alignCast(data.?));
            environment.path_count = 0;
            var arguments: Arguments = undefined;
            arguments[0] = environment;
            inline for (0..count) |index| {
                // What is missing has been set to undefined, which no argument takes.
                const T = @TypeOf(arguments[index + 1]);
                arguments[index + 1] = take(T, environment, values[index]) catch |reason| {
                    return refuse(env, name, index + 1, reason);
                };
            }
            const answer = @call(.auto, function, arguments);
            return give(env, answer) catch |reason| refuse(env, name, 0, reason);
        }
    }.call;
}

fn take(comptime T: type, environment: *Environment, value: napi.Value) Error!T {
    const env = environment.env;
    switch (T) {
        i32, u32, Size => return takeInteger(T, env, value),
        bool => {
            var result = false;
            if (napi.napi_get_value_bool(env, value, &result) != .ok) return error.NotABoolean;
            return result;
        },
        Span => {
            const ms = try takeNumber(env, value);
            if (!(ms >= 0 and ms <= span_ms_max)) return error.OutOfRange;
            return .{ .ms = ms };
        },
        Descriptor => {
            const fd = try takeInteger(i32, env, value);
            return if (environment.has(fd)) .{ .number = fd } else error.NotADescriptor;
        },
        Path => return takePath(environment, value),
        *Mapping => return Mapping.of(env, value) orelse error.NotAMapping,
        else => @compileError("no such argument: " ++ @typeName(T)),
    }
}

fn takeNumber(env: napi.Env, value: napi.Value) Error!f64 {
    var number: f64 = undefined;
    if (napi.napi_get_value_double(env, value, &number) != .ok) return error.NotANumber;
    return number;
}

fn takeInteger(comptime T: type, env: napi.Env, value: napi.Value) Error!T {
    const number = try takeNumber(env, value);
    const least: f64 = @floatFromInt(std.math.minInt(T));
    const most: f64 = @floatFromInt(std.math.maxInt(T));
    if (!(number >= least and number <= most and number == @trunc(number))) return error.OutOfRange;
    return @intFromFloat(number);
}

fn takePath(environment: *Environment, value: napi.Value) Error!Path {
    const env = environment.env;
    var size: usize = 0;
    if (napi.napi_get_value_string_utf8(env, value, null, 0, &size) != .ok) return error.NotAString;
    if (size >= path_size_max) return error.NameTooLong;
    const bytes = &environment.paths[environment.path_count];
    environment.path_count += 1;
    if (napi.napi_get_value_string_utf8(env, value, bytes, size + 1, &size) != .ok) {
        return error.Refused;
    }
    bytes[size] = 0;
    if (std.mem.findScalar(u8, bytes[0..size], 0) != null) return error.HoldsNul;
    return .{ .bytes = bytes };
}

pub fn give(env: napi.Env, answer: anytype) Error!napi.Value {
    switch (@TypeOf(answer)) {
        usize => {
            var value: napi.Value = undefined;
            const number: f64 = @floatFromInt(@as(isize, @bitCast(answer)));
            if (napi.napi_create_double(env, number, &value) != .ok) return error.Refused;
            return value;
        },
        napi.Value => return answer,
        else => return give(env, try answer),
    }
}

/// Throws, or answers as the system would. `index` counts from 1, and is 0 where it is no argument.
fn refuse(env: napi.Env, comptime name: []const u8, index: usize, reason: Error) ?napi.Value {
    if (reason == error.NameTooLong) return give(env, toAnswer(.NAMETOOLONG)) catch null;
    const what = switch (reason) {
        error.NotANumber => "is no number",
        error.NotABoolean => "is no boolean",
        error.NotAString => "is no string",
        error.NotADescriptor => "is no descriptor that was opened here and is open",
        error.NotAMapping => "is no memory that was mapped here",
        error.OutOfRange => "is no whole number, or out of range",
        error.NoSuchBytes => "there are no such bytes",
        error.HoldsNul => "holds a NUL",
        error.Refused => "the environment refused",
        error.NoExternalBuffers => "this runtime allows no buffers over memory of others",
        error.NameTooLong => unreachable,
    };
    var text: [160]u8 = undefined;
    const head = "Cannot " ++ name ++ ": ";
    const message = (if (index == 0)
        std.fmt.bufPrintSentinel(&text, head ++ "{s}", .{what}, 0)
    else
        std.fmt.bufPrintSentinel(&text, head ++ "argument {d} {s}", .{ index, what }, 0)) catch
        unreachable;
    _ = switch (reason) {
        error.OutOfRange,
        error.NoSuchBytes,
        => napi.napi_throw_range_error(env, "ERR_OUT_OF_RANGE", message),
        error.Refused => napi.napi_throw_error(env, "ERR_MILLRACE_ADDON", message),
        error.NoExternalBuffers => napi.napi_throw_error(env, "ERR_NO_EXTERNAL_BUFFERS", message),
        else => napi.napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message),
    };
    return null;
}

/// An error as the system's calls answer it.
pub fn toAnswer(errno: linux.E) usize {
    return @bitCast(-@as(isize, @backingInt(errno)));
}
