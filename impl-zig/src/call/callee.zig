//! The side that serves a call: its arguments, its items and its answer [spec/call.md, "Serving"].
//!
//! Invariant: a call is answered once, by whichever comes first of what its method gave and a
//! refusal; and what was accepted as an answer needs no memory that may not be there.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const call_error = @import("error.zig");
const call_values = @import("values.zig");
const messages = @import("messages.zig");
const Allocator = std.mem.Allocator;
const Builder = call_values.Builder;
const CallError = call_error.CallError;
const Calls = @import("call.zig").Calls;
const CancelToken = @import("caller.zig").CancelToken;
const List = call_values.List;
const Note = messages.Note;
const Timeout = host.Timeout;
const Value = call_values.Value;
const assert = std.debug.assert;
const reasonOf = @import("../error.zig").reasonOf;

/// A call, or a notice, that this side serves: what a method asks of it.
///
/// It is valid until its method returns, or, of one that answers later, until it has answered.
///
/// Thread safety: belongs to the thread of its port.
pub const Serving = struct {
    /// The port's calls, by which a method may call back.
    calls: *Calls,
    /// Cancelled when the caller gives the call up, and when the port is lost [call.cancelled]
    /// [call.told]. A call that the method makes may be given it.
    token: CancelToken,
    /// For whoever answers later.
    user: ?*anyopaque = null,
    id: u32,
    note: *Note,
    list: List = .empty,
    /// Why it is refused, where that is known before it begins.
    refusal: ?layout.Reason = null,
    arena: std.heap.ArenaAllocator,
    state: enum { arrived, running, later, posted, answered } = .arrived,
    /// Whether its method has not returned yet, or one that answers later sends an item: until then
    /// it stays, also where it was answered.
    on_stack: bool = false,
    /// Whether nothing can be written for it any more [call.told] [call.vacated].
    silent: bool = false,
    allowed: u64 = layout.call_window,
    sent: u64 = 0,
    on_cancel: ?*const fn (*Serving) void = null,
    failure: ?Failure = null,
    /// Among all that the port serves.
    node: std.DoublyLinkedList.Node = .{},
    next: ?*Serving = null,
    send: pipe.Send = undefined,
    parts: [1][]const u8 = undefined,
    /// The answer, while it has no room: here, or in memory of its own.
    small: [small_size]u8 = undefined,
    large: []u8 = &.{},

    const small_size = 128;

    /// The error of a method.
    pub const Failure = struct {
        name: []const u8,
        text: []const u8,
        /// Null where there is none.
        data: ?Value = null,
    };

    /// Fills in what was allocated for a call that has arrived.
    pub fn init(serving: *Serving, calls: *Calls, note: *Note) void {
        serving.* = .{
            .calls = calls,
            .token = .init(calls.endpoint),
            .id = note.tag,
            .note = note,
            .refusal = note.fault,
            .arena = .init(calls.gpa),
        };
    }

    /// The argument at an index; absent after the last. Valid as long as this is.
    pub fn argument(serving: *const Serving, index: usize) Value {
        return serving.list.at(index + 1);
    }

    /// How many arguments it has, absent ones at the end included.
    pub fn argumentCount(serving: *const Serving) usize {
        return serving.list.count -| 1;
    }

    /// The arguments, in order.
    pub fn arguments(serving: *const Serving) List.Iterator {
        var values = serving.list.iterator();
        _ = values.next();
        return values;
    }

    /// The name by which it was called.
    pub fn name(serving: *const Serving) []const u8 {
        return serving.list.at(0).payload;
    }

    /// Memory that is given back when the call is answered.
    pub fn allocator(serving: *Serving) Allocator {
        return serving.arena.allocator();
    }

    /// Whether the caller has given the call up, or nobody can be answered any more.
    pub fn isCancelled(serving: *const Serving) bool {
        return serving.token.isCancelled();
    }

    /// Whether it has begun and was not answered.
    pub fn awaitsAnswer(serving: *const Serving) bool {
        return serving.state == .running or serving.state == .later;
    }

    /// Whether nobody waits for an answer.
    pub fn isNotice(serving: *const Serving) bool {
        return serving.id == 0;
    }

    /// Sends a piece of the result, and waits for room, and until the caller has taken enough of
    /// those before, as long as the timeout allows; it serves meanwhile [call.window]. So a method
    /// makes the next item when this one is placed [call.next_item]. Of a notice it does nothing.
    ///
    /// `error.CallCancelled` where the caller has given up, or another method has answered the call
    /// meanwhile, and `error.CallResult` where the value cannot be written; a method may return
    /// both as they are.
    pub fn item(serving: *Serving, value: anytype, timeout: Timeout) CallError!void {
        assert(serving.awaitsAnswer());
        if (serving.isNotice()) return;
        // What is taken in meanwhile may be its cancel, which answers it.
        const was_on_stack = serving.on_stack;
        serving.on_stack = true;
        defer if (!was_on_stack) serving.returned();
        var bytes = serving.calls.takeBytes();
        defer serving.calls.giveBytes(bytes);
        const payload = try encode(serving, &bytes, value);
        return messages.sendItem(serving.calls, serving, payload, timeout);
    }

    /// Says that the method answers after it has returned, by `answer` or `throw`. `on_cancel` is
    /// called, once, when it is told that it was cancelled; it may answer, and must not call
    /// anything else of the port's. Where there is none, the call is then answered by
    /// `call.cancelled`.
    pub fn later(serving: *Serving, on_cancel: ?*const fn (*Serving) void) void {
        assert(serving.state == .running);
        serving.state = .later;
        serving.on_cancel = on_cancel orelse answerCancelled;
    }

    fn answerCancelled(serving: *Serving) void {
        serving.throw(error.CallCancelled);
    }

    /// Answers with a result; one that cannot be written becomes a throw of `call.result`
    /// [call.result]. Never waits. After it, this is valid only as long as the method runs.
    ///
    /// Asserts that it was not answered.
    pub fn answer(serving: *Serving, value: anytype) void {
        assert(serving.awaitsAnswer());
        if (serving.isNotice()) return serving.conclude();
        const calls = serving.calls;
        var bytes = calls.takeBytes();
        defer calls.giveBytes(bytes);
        const payload = encode(serving, &bytes, value) catch
            return serving.refuse(.call_result);
        serving.post(.@"return", payload);
    }

    /// Records the error with which the method fails, which is to return what this returns.
    pub fn fail(
        serving: *Serving,
        error_name: []const u8,
        text: []const u8,
        data: anytype,
    ) error{CallThrown} {
        serving.failure = .{ .name = "", .text = "" };
        serving.record(error_name, text, data) catch {};
        return error.CallThrown;
    }

    fn record(serving: *Serving, error_name: []const u8, text: []const u8, data: anytype) !void {
        const memory = serving.allocator();
        const failure = &serving.failure.?;
        failure.name = try memory.dupe(u8, error_name);
        failure.text = try memory.dupe(u8, text);
        if (@TypeOf(data) == void) return;
        var bytes: std.ArrayList(u8) = .empty;
        const payload = try encodeOne(memory, &bytes, data);
        const list: List = if (payload.len == 0) .empty else .{ .payload = payload, .count = 1 };
        failure.data = list.at(0);
    }

    /// Answers with the error of a method: what `fail` has recorded, or the code that the error
    /// has, or else its name [call.throw].
    ///
    /// Asserts that it was not answered.
    pub fn throw(serving: *Serving, err: anyerror) void {
        assert(serving.awaitsAnswer());
        if (err == error.CallThrown) {
            // A call within has failed, and its error is not looked into.
            const failure = serving.failure orelse serving.calls.thrown() orelse
                Failure{ .name = "", .text = "" };
            return serving.throwNamed(failure);
        }
        if (err == error.Aborted and serving.isCancelled()) return serving.refuse(.call_cancelled);
        if (reasonOf(err)) |code| {
            if (call_error.isOfCall(err)) return serving.refuse(code);
            return serving.throwNamed(.{ .name = code.name(), .text = "" });
        }
        serving.throwNamed(.{ .name = @errorName(err), .text = "" });
    }

    /// Answers with a throw of this code; of a notice, reports it [call.refused].
    pub fn refuse(serving: *Serving, code: layout.Reason) void {
        if (serving.isNotice()) return serving.report(code);
        const text = if (code == .call_method) serving.name() else "";
        serving.throwNamed(.{ .name = code.name(), .text = text });
    }

    fn throwNamed(serving: *Serving, failure: Failure) void {
        if (serving.isNotice()) return serving.report(.call_thrown);
        const calls = serving.calls;
        var bytes = calls.takeBytes();
        defer calls.giveBytes(bytes);
        const payload = encodeThrow(calls.gpa, &bytes, failure) catch {
            var plain: std.heap.FixedBufferAllocator = .init(&serving.small);
            var list: std.ArrayList(u8) = .empty;
            const least: Failure = .{ .name = layout.Reason.call_result.name(), .text = "" };
            const small = encodeThrow(plain.allocator(), &list, least) catch unreachable;
            return serving.post(.throw, small);
        };
        serving.post(.throw, payload);
    }

    fn encodeThrow(gpa: Allocator, bytes: *std.ArrayList(u8), failure: Failure) ![]const u8 {
        const named = cut(failure.name, layout.call_name_size_max);
        const data = if (failure.data) |data| data: {
            call_values.checkValue(gpa, data) catch break :data null;
            break :data data;
        } else null;
        const count: u32 = if (data == null) 2 else 3;
        var builder: call_values.Builder = try .init(gpa, bytes, count);
        try builder.add(.text(if (named.len == 0) "Error" else named));
        try builder.add(.text(cut(failure.text, layout.call_text_size_max)));
        if (data) |value| try builder.add(value);
        return builder.finish();
    }

    /// Cuts a text at a character so that it fits; nothing is left of one that is no UTF-8.
    fn cut(text: []const u8, size_max: usize) []const u8 {
        if (!std.unicode.utf8ValidateSlice(text)) return "";
        if (text.len <= size_max) return text;
        var size = size_max;
        while (text[size] & 0xc0 == 0x80) size -= 1;
        return text[0..size];
    }

    fn encode(
        serving: *Serving,
        bytes: *std.ArrayList(u8),
        value: anytype,
    ) error{CallResult}![]const u8 {
        return encodeOne(serving.calls.gpa, bytes, value) catch error.CallResult;
    }

    /// Hands the answer to the port; where it has no room, a copy of it waits for that.
    fn post(serving: *Serving, kind: layout.FrameKind, payload: []const u8) void {
        const calls = serving.calls;
        const envelope: pipe.Envelope = .{ .kind = kind, .codec = .values, .tag = serving.id };
        const is_over = serving.silent or messages.placeAnswer(calls, payload, envelope);
        if (is_over) return serving.conclude();
        serving.retain(payload) catch {
            // What is left to say fits.
            serving.large = &.{};
            return serving.refuse(.call_result);
        };
        serving.send = .init(&serving.parts, envelope, .forever);
        serving.leaveServed();
        serving.state = .posted;
        calls.posted.push(serving);
        messages.settle(calls);
    }

    fn retain(serving: *Serving, payload: []const u8) Allocator.Error!void {
        if (payload.len <= small_size) {
            @memmove(serving.small[0..payload.len], payload);
            serving.parts[0] = serving.small[0..payload.len];
        } else {
            serving.large = try serving.calls.gpa.dupe(u8, payload);
            serving.parts[0] = serving.large;
        }
    }

    /// Whether a call of the same id would be a duplicate [call.duplicate].
    pub fn isUnderWay(serving: *const Serving) bool {
        return serving.state != .posted and serving.state != .answered and !serving.silent;
    }

    fn leaveServed(serving: *Serving) void {
        if (serving.awaitsAnswer()) {
            serving.calls.served_count -= 1;
            serving.calls.served_bytes -= serving.note.payload.len;
        }
        serving.state = .answered;
    }

    /// Nothing is left to be written.
    pub fn conclude(serving: *Serving) void {
        serving.leaveServed();
        if (!serving.on_stack) serving.destroy();
    }

    /// Makes what has arrived a report of this code.
    fn report(serving: *Serving, code: layout.Reason) void {
        serving.refusal = code;
        serving.conclude();
    }

    /// The method is done, or there is none: gives everything back, except an answer that has no
    /// room yet.
    pub fn returned(serving: *Serving) void {
        serving.on_stack = false;
        if (serving.state == .answered) serving.destroy();
    }

    /// Gives everything back. A notice that failed leaves its note as a report.
    pub fn destroy(serving: *Serving) void {
        const calls = serving.calls;
        calls.servings.remove(&serving.node);
        serving.arena.deinit();
        calls.gpa.free(serving.large);
        const note = serving.note;
        const code = if (serving.isNotice()) serving.refusal else null;
        calls.gpa.destroy(serving);
        note.serving = null;
        if (code) |why| calls.report(note, why) else note.destroy(calls.gpa);
    }
};

// Zig values as values of a list, and structs as tables of methods: how arguments, results and
// items are written and read.
//
// | Zig | written as | read from |
// | --- | --- | --- |
// | `Value` | what it is | anything, as it came |
// | `Bytes` | bytes | bytes |
// | `[]const u8`, `*const [n]u8` | text | text, a JSON string, bytes |
// | `?T` that is null, `void` | absent | absent, JSON null; for `void`, anything |
// | any other | JSON, by `std.json` | JSON; an enum from a text too |

/// Bytes that are no text.
pub const Bytes = struct { bytes: []const u8 };

/// Why a value was not written: it has no form in a list, such as text that is no UTF-8, or NaN.
pub const EncodeError = error{ OutOfMemory, Unwritable };

/// Writes a list of one value, or of none where that is absent.
pub fn encodeOne(gpa: Allocator, bytes: *std.ArrayList(u8), value: anytype) EncodeError![]const u8 {
    var builder: Builder = try .init(gpa, bytes, 1);
    try put(&builder, value);
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
    try put(&builder, name);
    if (@typeInfo(@TypeOf(arguments)) == .@"struct") {
        inline for (arguments) |argument| try put(&builder, argument);
    } else {
        for (arguments) |argument| try put(&builder, argument);
    }
    return builder.finish();
}

fn put(builder: *Builder, value: anytype) EncodeError!void {
    const T = @TypeOf(value);
    if (T == Value) return encodeValue(builder, value);
    if (T == Bytes) return encodeValue(builder, .{ .codec = .bytes, .payload = value.bytes });
    if (comptime isText(T)) return encodeValue(builder, .text(value));
    switch (@typeInfo(T)) {
        .void, .null => return encodeValue(builder, .absent),
        .optional => return if (value) |there| put(builder, there) else put(builder, null),
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
