//! The batches of JSON messages for C [spec/codec.md]. `millrace.h` says what each call promises.

const std = @import("std");
const arguments = @import("arguments.zig");
const codec = @import("../codec/codec.zig");
const ports = @import("port.zig");
const Status = arguments.Status;

pub export fn millrace_batch_next(
    payload: ?*const anyopaque,
    size: usize,
    at: ?*anyopaque,
    element: ?*anyopaque,
) Status {
    const bytes = arguments.bytesAt(payload, size) orelse return arguments.invalid;
    const place = arguments.resultAt(usize, at) orelse return arguments.invalid;
    const result = arguments.resultAt(ports.Piece, element) orelse return arguments.invalid;
    result.* = .{ .address = null, .size = 0 };
    const begin = place.*; // another thread of the caller might change it meanwhile
    var batch: codec.Batch = .init(bytes);
    if (begin > 0) batch = batchFrom(bytes, begin) orelse return arguments.invalid;
    const found = batch.next() catch |err| return arguments.failed(err, null);
    const text = found orelse return arguments.end;
    result.* = .{ .address = text.ptr, .size = text.len };
    place.* = @intFromPtr(batch.rest.ptr) - @intFromPtr(bytes.ptr);
    return arguments.done;
}

/// Returns the rest of a batch after an element: a comma and what follows it, or nothing, if the
/// closing bracket is next.
fn batchFrom(payload: []const u8, begin: usize) ?codec.Batch {
    const trimmed = std.mem.trimEnd(u8, payload, " \t\r\n");
    if (trimmed.len == 0) return null;
    const end = trimmed.len - 1;
    if (trimmed[end] != ']' or begin > end) return null;
    if (begin < end and trimmed[begin] != ',') return null;
    return .{ .rest = trimmed[begin..end], .begun = true };
}

// Tests.
//
// The elements of a batch, through the call from C.

const fixture = @import("fixture.zig");
const layout = @import("../memory/layout.zig");
const testing = std.testing;
const expectStatus = fixture.expectStatus;

/// Takes a payload apart. Checks which elements come before the last status.
fn expectElements(payload: []const u8, elements: []const []const u8, last: i32) !void {
    var at: usize = 0;
    var piece: ports.Piece = undefined;
    for (elements) |expected| {
        const status = millrace_batch_next(payload.ptr, payload.len, &at, &piece);
        try expectStatus(arguments.done, status);
        const bytes: [*]const u8 = @ptrCast(piece.address.?);
        try testing.expectEqualStrings(expected, bytes[0..piece.size]);
    }
    // A call after the last status returns the same status again.
    for (0..2) |_| {
        const status = millrace_batch_next(payload.ptr, payload.len, &at, &piece);
        try expectStatus(last, status);
        try testing.expectEqual(ports.Piece{ .address = null, .size = 0 }, piece);
    }
}

test "c_abi: the elements of a batch are handed out in order, and then its end" {
    try expectElements("[1]", &.{"1"}, arguments.end);
    try expectElements(
        " [ {\"a\":[1,2]} , \"x,]\\\"\" ,null] \n",
        &.{ "{\"a\":[1,2]}", "\"x,]\\\"\"", "null" },
        arguments.end,
    );
}

test "c_abi: what is no array of at least one element is message.json, where that shows" {
    const json = fixture.reasonStatus(.message_json);
    for ([_][]const u8{ "", " ", "[", "]", "[]", "[ ]", "{}", "1", "[,1]", "[1]]" }) |payload| {
        try expectElements(payload, &.{}, json);
    }
    try expectElements("[1,]", &.{"1"}, json);
    try expectElements("[1,\"]", &.{"1"}, json);
}

test "c_abi: a batch that was read is taken apart, and a wrong place in it is refused" {
    var pair: fixture.Pair = .{};
    try pair.open();
    defer pair.leave();
    const batch = layout.codec_json_batch;
    const written = ports.millrace_port_write(pair.side(0), "[10,{}]", 7, batch, 5, 0);
    try expectStatus(arguments.done, written);
    var storage: [64]u8 = undefined;
    var message: ports.Message = undefined;
    const read = ports.millrace_port_read(pair.side(1), &storage, storage.len, 0, &message);
    try expectStatus(arguments.done, read);
    try testing.expectEqual(batch, message.codec);
    try expectElements(storage[0..message.size], &.{ "10", "{}" }, arguments.end);

    const next = millrace_batch_next;
    var at: usize = 0;
    var piece: ports.Piece = undefined;
    for ([_]usize{ 1, 2, 4, 5, 7, 8, std.math.maxInt(usize) }) |wrong| {
        at = wrong;
        try expectStatus(arguments.invalid, next(&storage, 7, &at, &piece));
        try testing.expectEqual(wrong, at);
    }
    at = 0;
    try expectStatus(arguments.invalid, next(null, 7, &at, &piece));
    try expectStatus(arguments.invalid, next(&storage, 7, null, &piece));
    try expectStatus(arguments.invalid, next(&storage, 7, &at, null));
    try expectStatus(arguments.invalid, next(&storage, std.math.maxInt(usize), &at, &piece));
    // A caller may have changed the bytes since the call before: no assertion can be reached.
    at = 3;
    storage[6] = 'x';
    try expectStatus(arguments.invalid, next(&storage, 7, &at, &piece));
}
