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
