//! Tests of calls on one thread, and between two.

const std = @import("std");
const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const layout = millrace.layout;
const testing = std.testing;
const Calls = millrace.Calls;
const Serving = millrace.Serving;

/// Two ports with calls, both in one hand. Must stay where it was initialized.
const Pair = struct {
    memory: [64 * 1024]u8 align(layout.segment_align),
    ports: [2]millrace.Port,
    ends: [2]Calls,

    fn init(pair: *Pair, capacity: u32, options: Calls.Options) !void {
        @memset(&pair.memory, 0);
        const rings: millrace.Rings = .{ .capacities = .{ capacity, capacity } };
        for (&pair.ports, 0..) |*port, index| {
            const endpoint: millrace.Endpoint.Options = .{ .host = &fixture.clockwork };
            try port.create(&pair.memory, rings, @intCast(index), .{ .endpoint = endpoint });
            pair.ends[index].init(port, testing.allocator, options);
        }
    }

    fn deinit(pair: *Pair) void {
        for (&pair.ends) |*end| end.deinit();
        for (&pair.ports) |*port| port.close();
    }
};

const Shape = struct {
    kind: enum { round, flat },
    corners: [2]?f32,
    inner: ?struct { level: u8 } = null,
};

const Sums = struct {
    total: i64 = 0,

    pub fn add(a: i64, b: i64) i64 {
        return a + b;
    }

    pub fn count(sums: *Sums, by: ?i64) i64 {
        sums.total += by orelse 1;
        return sums.total;
    }

    pub fn greet(serving: *Serving, name: []const u8) ![]const u8 {
        return std.fmt.allocPrint(serving.allocator(), "hello {s}", .{name});
    }

    pub fn reverse(serving: *Serving, bytes: millrace.Bytes) !millrace.Bytes {
        const copy = try serving.allocator().dupe(u8, bytes.bytes);
        std.mem.reverse(u8, copy);
        return .{ .bytes = copy };
    }

    pub fn fail(serving: *Serving) error{CallThrown}!void {
        return serving.fail("Oops", "it broke", .{ .at = 3 });
    }

    pub fn lose() error{NotFound}!void {
        return error.NotFound;
    }

    pub fn same(value: Shape) Shape {
        return value;
    }

    pub fn nan() f64 {
        return std.math.nan(f64);
    }

    pub fn upTo(serving: *Serving, n: u32) !u32 {
        for (0..n) |number| try serving.item(number, .ms(20_000));
        return n;
    }
};

test "Calls: a call that was begun is answered by whoever reads" {
    var pair: Pair = undefined;
    try pair.init(1024, .{});
    defer pair.deinit();
    pair.ends[1].serve(Sums);
    const call = try pair.ends[0].begin("add", .{ 1, 2 }, .{});
    defer call.release();
    try testing.expect(!try call.wait(.none, null));
    try testing.expectEqual(null, try pair.ends[1].read(&.{}, .none));
    try testing.expect(try call.wait(.none, null));
    try testing.expectEqual(3, try call.result(i64));
}

const Server = struct {
    memory: [256 * 1024]u8 align(layout.segment_align) = @splat(0),
    rings: millrace.Rings = .{ .capacities = .{ 1024, 1024 } },
    sums: Sums = .{},

    fn run(server: *Server) !void {
        var port: millrace.Port = undefined;
        try port.create(&server.memory, server.rings, 1, .{});
        defer port.close();
        var calls: Calls = undefined;
        calls.init(&port, testing.allocator, .{});
        defer calls.deinit();
        calls.serve(&server.sums);
        var storage: [16]u8 = undefined;
        while (try calls.read(&storage, .ms(10_000))) |_| {}
        try calls.end(.ms(20_000));
    }
};

test "Calls.call: results, errors and items between two threads" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    var server: Server = .{};
    const thread: std.Thread = try .spawn(.{}, Server.run, .{&server});
    defer thread.join();
    var port: millrace.Port = undefined;
    try port.create(&server.memory, server.rings, 0, .{});
    defer port.close();
    var calls: Calls = undefined;
    calls.init(&port, testing.allocator, .{});
    defer calls.deinit();
    const within: Calls.CallOptions = .{ .timeout = .ms(10_000) };

    for (0..100) |n| {
        const number: i64 = @intCast(n);
        try testing.expectEqual(number + 1, try calls.call(i64, "add", .{ number, 1 }, within));
    }
    try testing.expectEqual(5, try calls.call(i64, "count", .{5}, within));
    try testing.expectEqual(6, try calls.call(i64, "count", .{}, within));
    try calls.notify("count", .{10}, within);
    try testing.expectEqual(17, try calls.call(i64, "count", .{null}, within));

    const greeting = try calls.call([]const u8, "greet", .{"gr\u{fc}n"}, within);
    defer greeting.deinit();
    try testing.expectEqualStrings("hello gr\u{fc}n", greeting.value);
    var large: [5000]u8 = undefined;
    fixture.pattern(&large, 1);
    const given: millrace.Bytes = .{ .bytes = &large };
    const reversed = try calls.call(millrace.Bytes, "reverse", .{given}, within);
    defer reversed.deinit();
    std.mem.reverse(u8, &large);
    try testing.expectEqualSlices(u8, &large, reversed.value.bytes);

    const shape: Shape = .{ .kind = .flat, .corners = .{ 1.5, null }, .inner = .{ .level = 3 } };
    try testing.expectEqual(shape, try calls.call(Shape, "same", .{shape}, within));
    const odd: Shape = .{ .kind = .flat, .corners = .{ std.math.inf(f32), null } };
    try testing.expectError(error.CallArguments, calls.call(Shape, "same", .{odd}, within));
    const bad = calls.call([]const u8, "greet", .{"\xff"}, within);
    try testing.expectError(error.CallArguments, bad);
    try testing.expectError(error.CallThrown, calls.call(void, "fail", .{}, within));
    try testing.expectEqualStrings("Oops", calls.thrown().?.name);
    try testing.expectEqualStrings("it broke", calls.thrown().?.text);
    try testing.expectEqualStrings("{\"at\":3}", calls.thrown().?.data.?.payload);
    try testing.expectError(error.CallThrown, calls.call(void, "lose", .{}, within));
    try testing.expectEqualStrings("NotFound", calls.thrown().?.name);
    try testing.expectError(error.CallResult, calls.call(f64, "nan", .{}, within));
    try testing.expectError(error.CallMethod, calls.call(void, "total", .{}, within));
    try testing.expectError(error.CallArguments, calls.call(i64, "add", .{1}, within));
    try testing.expectError(error.CallArguments, calls.call(i64, "add", .{ 1, 2, 3 }, within));
    try testing.expectError(error.CallArguments, calls.call(i64, "add", .{ 1, "2" }, within));
    try testing.expectError(error.ResultType, calls.call(bool, "add", .{ 1, 2 }, within));

    var items = try calls.items(u32, "upTo", .{100}, within);
    defer items.deinit();
    for (0..100) |number| try testing.expectEqual(number, (try items.next()).?);
    try testing.expectEqual(null, try items.next());
    try testing.expectEqual(100, try items.result(u32));

    var few = try calls.items(u32, "upTo", .{1000}, within);
    _ = try few.next();
    few.deinit();
    try testing.expectEqual(3, try calls.call(i64, "add", .{ 1, 2 }, within));
    try calls.end(.ms(20_000));
    try testing.expectEqual(null, try calls.read(&.{}, .ms(10_000)));
    try testing.expectError(error.CallEnded, calls.call(i64, "add", .{ 1, 2 }, within));
}
