//! A port that offers calls: the methods of `conformance/protocol/README.md`, and the commands that
//! make calls.

const std = @import("std");
const millrace = @import("millrace");
const protocol = @import("protocol.zig");
const value_file = @import("value.zig");
const Allocator = std.mem.Allocator;
const Reply = protocol.Reply;
const Serving = millrace.Serving;
const Session = @import("session.zig").Session;
const Shown = protocol.Shown;
const Value = millrace.Value;
const Workload = @import("workload.zig").Workload;

pub const Calling = struct {
    gpa: Allocator,
    calls: millrace.Calls,
    /// What was called, in order; null where it failed at once.
    made: std.ArrayList(?*millrace.Call) = .empty,
    /// What `note` has kept, as JSON.
    kept: std.ArrayList([]const u8) = .empty,
    held: u32 = 0,
    /// How many calls of `hold` were told that they were cancelled.
    told: u32 = 0,
    /// The calls of `count` that are not done.
    counting: std.ArrayList(*Serving) = .empty,

    /// It must stay where it is made.
    pub fn create(
        gpa: Allocator,
        port: *millrace.Port,
        options: millrace.Calls.Options,
        serves: bool,
    ) !*Calling {
        const calling = try gpa.create(Calling);
        calling.* = .{ .gpa = gpa, .calls = undefined };
        calling.calls.init(port, gpa, options);
        if (serves) calling.calls.options.methods = .{ .context = calling, .find = find };
        return calling;
    }

    pub fn destroy(calling: *Calling) void {
        const gpa = calling.gpa;
        for (calling.made.items) |made| if (made) |call| call.release();
        calling.calls.deinit();
        for (calling.kept.items) |text| gpa.free(text);
        calling.kept.deinit(gpa);
        calling.made.deinit(gpa);
        calling.counting.deinit(gpa);
        gpa.destroy(calling);
    }

    /// Serves what has come, and reads the next plain message.
    pub fn read(
        calling: *Calling,
        storage: []u8,
        timeout: millrace.Timeout,
    ) !?millrace.Message {
        const message = try calling.calls.read(storage, timeout);
        calling.countOn();
        return message;
    }

    pub fn perform(
        calling: *Calling,
        arena: Allocator,
        name: protocol.Name,
        command: *const protocol.Calling,
        session: *const Session,
    ) !Reply {
        switch (name) {
            .call => {
                try calling.make(arena, command);
                const ms = command.timeout_ms orelse return .ok;
                const call = calling.made.getLast().?;
                call.finish(.ms(ms), null) catch {};
                return calling.outcome(arena, calling.made.items.len - 1, session);
            },
            .told => return .{ .told = .{ .count = calling.told } },
            .notify => {
                if (!isName(command.name)) return error.Refused;
                const values = try valuesOf(arena, command.values);
                try calling.calls.notify(command.name, values, .{ .timeout = .none });
            },
            .give_up => if (calling.made.items[command.call]) |call| call.giveUp(),
            .item => return calling.item(arena, command.call, session),
            .outcome => return calling.outcome(arena, command.call, session),
            else => unreachable,
        }
        return .ok;
    }

    fn make(calling: *Calling, arena: Allocator, command: *const protocol.Calling) !void {
        try calling.made.append(calling.gpa, null);
        if (!isName(command.name)) return error.Refused;
        const values = try valuesOf(arena, command.values);
        const calls = &calling.calls;
        if (calls.isLent()) return error.Refused;
        const options: millrace.Calls.CallOptions = .{
            .timeout = if (command.timeout_ms) |ms| .ms(ms) else .none,
        };
        const place = &calling.made.items[calling.made.items.len - 1];
        if (command.items) {
            const items = try calls.items(Value, command.name, values, options);
            place.* = items.call;
        } else {
            place.* = try calls.begin(command.name, values, options);
        }
    }

    fn item(calling: *Calling, arena: Allocator, index: usize, session: *const Session) !Reply {
        const call = calling.made.items[index] orelse return error.Refused;
        if (call.items.first == null) return calling.outcome(arena, index, session);
        const next = (try call.next(Value, .none, null)).?;
        defer next.deinit();
        return .{ .settled = .{ .outcome = "item", .value = try shown(arena, next.value, true) } };
    }

    fn outcome(calling: *Calling, arena: Allocator, index: usize, session: *const Session) !Reply {
        const call = calling.made.items[index] orelse return error.Refused;
        if (!call.isDone()) return .{ .settled = .{ .outcome = "pending" } };
        const err = call.ended orelse {
            const value = try shown(arena, call.list.at(0), false);
            return .{ .settled = .{ .outcome = "returned", .value = value } };
        };
        const code = session.failureOf(err).?.code;
        const thrown = if (err == error.CallThrown) call.thrown() else null;
        return .{ .settled = .{ .outcome = code, .@"error" = if (thrown) |each| .{
            .name = each.name,
            .text = each.text,
            .data = if (each.data) |data| try shown(arena, data, true) else null,
        } else null } };
    }

    const Method = enum { identity, add, fail, odd, count, hold, held, note, noted, ask, tree };

    fn find(_: ?*anyopaque, name: []const u8) ?millrace.Methods.Method {
        return switch (std.meta.stringToEnum(Method, name) orelse return null) {
            inline else => |method| &struct {
                fn run(context: ?*anyopaque, serving: *Serving) anyerror!void {
                    const calling: *Calling = @ptrCast(@alignCast(context.?));
                    return calling.invoke(method, serving);
                }
            }.run,
        };
    }

    fn invoke(calling: *Calling, method: Method, serving: *Serving) !void {
        const arena = serving.allocator();
        const first = serving.argument(0);
        switch (method) {
            .identity => serving.answer(first),
            .add => {
                const a, const b = .{ try number(first), try number(serving.argument(1)) };
                const sum = a + b;
                const whole = sum == @trunc(sum) and @abs(sum) < 1 << 53;
                if (whole) serving.answer(@as(i64, @intFromFloat(sum))) else serving.answer(sum);
            },
            .fail => {
                const name = try stringOf(arena, first);
                const text = try stringOf(arena, serving.argument(1));
                const data = serving.argument(2);
                if (serving.argumentCount() < 3) return serving.fail(name, text, {});
                return serving.fail(name, text, data);
            },
            .odd => serving.answer(std.math.nan(f64)),
            .count => {
                const counting = try arena.create(Counting);
                counting.* = .{ .calling = calling, .count = @intFromFloat(try number(first)) };
                serving.user = counting;
                serving.later(Counting.stop);
                try calling.counting.append(calling.gpa, serving);
                calling.countOn();
            },
            .hold => {
                calling.held += 1;
                serving.user = calling;
                serving.later(letGo);
            },
            .held => serving.answer(calling.held),
            .note => try calling.kept.append(calling.gpa, try calling.gpa.dupe(
                u8,
                try jsonOf(arena, first),
            )),
            .noted => {
                const all = try std.mem.join(arena, ",", calling.kept.items);
                const text = try std.fmt.allocPrint(arena, "[{s}]", .{all});
                serving.answer(Value{ .codec = .json, .payload = text });
            },
            .tree => return calling.grow(serving),
            .ask => {
                const name = try stringOf(arena, first);
                if (!isName(name)) return error.CallArguments;
                var values: std.ArrayList(Value) = .empty;
                var arguments = serving.arguments();
                _ = arguments.next();
                while (arguments.next()) |each| try values.append(arena, each);
                const result = try calling.calls.call(Value, name, values.items, .{
                    .token = &serving.token,
                });
                defer result.deinit();
                serving.answer(result.value);
            },
        }
    }

    /// *A tree of calls*, of the protocol.
    fn grow(calling: *Calling, serving: *Serving) !void {
        const arena = serving.allocator();
        var numbers: [3]u32 = undefined;
        for (&numbers, 0..) |*each, index| each.* = std.fmt.parseInt(
            u32,
            serving.argument(index).payload,
            10,
        ) catch return error.CallArguments;
        const seed, const depth, const width = numbers;
        var draws: Workload = .{ .state = seed, .capacity = 0 };
        var sum = draws.random();
        const children = if (depth == 0) 0 else 1 + draws.random() % width;
        for (0..children) |_| {
            const way = if (width == 1) 4 else draws.random() % 32;
            const child = draws.random();
            const value = try calling.branch(arena, way, child, depth, width);
            sum = sum *% 31 +% value;
        }
        if (width > 1 and draws.random() % 8 == 0) return serving.fail("Tree", "", sum);
        serving.answer(sum);
    }

    fn branch(
        calling: *Calling,
        arena: Allocator,
        way: u32,
        child: u32,
        depth: u32,
        width: u32,
    ) !u32 {
        const calls = &calling.calls;
        switch (way) {
            0 => {
                calls.call(void, "hold", .{}, .{ .timeout = .ms(1) }) catch |err|
                    return if (err == error.Timeout) 1 else err;
                return error.WrongEnd;
            },
            1 => {
                const arguments = .{ "Tree", "", child };
                calls.call(void, "fail", arguments, .{}) catch |err|
                    return if (err == error.CallThrown) child else err;
                return error.WrongEnd;
            },
            2 => {
                calls.call(void, "none", .{}, .{}) catch |err|
                    return if (err == error.CallMethod) 2 else err;
                return error.WrongEnd;
            },
            3 => {
                try calls.notify("note", .{child}, .{});
                return 3;
            },
            else => return calling.valueOf(arena, .{ child, depth - 1, width }, .forever),
        }
    }

    /// What has come of a tree of the peer's.
    pub fn valueOf(
        calling: *Calling,
        arena: Allocator,
        arguments: anytype,
        timeout: millrace.Timeout,
    ) !u32 {
        const calls = &calling.calls;
        return calls.call(u32, "tree", arguments, .{ .timeout = timeout }) catch |err| {
            if (err != error.CallThrown) return err;
            const thrown = calls.thrown().?;
            if (!std.mem.eql(u8, thrown.name, "Tree")) return err;
            const sum = try std.json.parseFromSliceLeaky(u32, arena, thrown.data.?.payload, .{});
            return sum +% 1;
        };
    }

    fn letGo(serving: *Serving) void {
        const calling: *Calling = @ptrCast(@alignCast(serving.user.?));
        calling.held -= 1;
        calling.told += 1;
        serving.throw(error.CallCancelled);
    }

    /// Goes on with the calls of `count`, as far as their callers let it.
    fn countOn(calling: *Calling) void {
        var index: usize = 0;
        while (index < calling.counting.items.len) {
            const serving = calling.counting.items[index];
            const counting: *Counting = @ptrCast(@alignCast(serving.user.?));
            const is_done = counting.goOn(serving) catch |err| done: {
                if (err == error.Timeout) break :done false;
                calling.forget(serving);
                serving.throw(err);
                continue;
            };
            if (!is_done) {
                index += 1;
                continue;
            }
            calling.forget(serving);
            serving.answer(counting.count);
        }
    }

    fn forget(calling: *Calling, serving: *Serving) void {
        const all = calling.counting.items;
        const index = std.mem.indexOfScalar(*Serving, all, serving) orelse return;
        _ = calling.counting.orderedRemove(index);
    }

    const Counting = struct {
        calling: *Calling,
        count: u32,
        next: u32 = 0,

        fn goOn(counting: *Counting, serving: *Serving) !bool {
            while (counting.next < counting.count) : (counting.next += 1) {
                // What is read while it waits may cancel it, so that it is gone.
                if (serving.sent == serving.allowed) return false;
                try serving.item(counting.next, .none);
            }
            return true;
        }

        fn stop(serving: *Serving) void {
            const counting: *Counting = @ptrCast(@alignCast(serving.user.?));
            counting.calling.forget(serving);
            serving.throw(error.CallCancelled);
        }
    };
};

fn isName(name: []const u8) bool {
    return name.len > 0 and name.len <= millrace.layout.call_name_size_max;
}

fn number(value: Value) !f64 {
    if (value.codec != .json) return error.CallArguments;
    const parsed = std.fmt.parseFloat(f64, value.payload) catch return error.CallArguments;
    return if (std.math.isFinite(parsed)) parsed else error.CallArguments;
}

/// A string, whether it came as a text or as JSON.
fn stringOf(arena: Allocator, value: Value) ![]const u8 {
    if (value.codec == .text) return value.payload;
    if (value.codec != .json or value.isAbsent()) return error.CallArguments;
    return std.json.parseFromSliceLeaky([]const u8, arena, value.payload, .{}) catch
        error.CallArguments;
}

/// A value as JSON on one line.
fn jsonOf(arena: Allocator, value: Value) ![]const u8 {
    if (value.isAbsent()) return "null";
    if (value.codec == .json) return value_file.minify(arena, value.payload);
    return std.json.Stringify.valueAlloc(arena, value.payload, .{});
}

fn shown(arena: Allocator, value: Value, even_absent: bool) !?Shown {
    if (value.isAbsent()) return if (even_absent) .{} else null;
    switch (value.codec) {
        .text, .json => return .{ .json = .{ .text = try jsonOf(arena, value) } },
        else => return .{
            .hex = .{ .bytes = value.payload },
            .codec = if (value.codec == .bytes) null else @backingInt(value.codec),
        },
    }
}

fn valuesOf(arena: Allocator, given: []const protocol.Value) ![]const Value {
    const values = try arena.alloc(Value, given.len);
    for (given, values) |from, *to| {
        to.* = if (from.text) |text|
            .text(text)
        else if (from.hex) |hex|
            .{ .codec = @fromBackingInt(from.codec), .payload = try protocol.fromHex(arena, hex) }
        else
            .{ .codec = .json, .payload = from.json.text };
    }
    return values;
}
