//! The Zig implementation as a testee on standard input and output: a native process, or a WASI
//! command, which has neither files nor other threads.

const std = @import("std");
const builtin = @import("builtin");
const files = @import("files.zig");
const protocol = @import("protocol.zig");
const streams = @import("streams.zig");
const Testee = @import("testee.zig").Testee;
const version = @import("options").version;

const carriers: []const protocol.Carrier = if (!files.supported)
    &.{.bytes}
else if (!streams.supported)
    &.{ .bytes, .file, .mapped }
else
    &.{ .bytes, .file, .mapped, .stream };

const is_wasi = builtin.os.tag == .wasi;

pub fn main(init: std.process.Init) !void {
    const gpa = init.gpa;
    var testee: Testee = .init(gpa, .{ .hello = .{
        .name = if (is_wasi) "Millrace for Zig, as wasm32-wasi" else "Millrace for Zig",
        .version = version,
        .levels = if (is_wasi)
            &.{ "static", "scripted", "mailbox" }
        else
            &.{ "static", "scripted", "live", "mailbox" },
        .nouns = if (streams.supported) &(protocol.nouns ++ .{"stream"}) else &protocol.nouns,
        .carriers = carriers,
        .streams = if (streams.supported) .{} else null,
    } });
    defer testee.deinit();
    var input_buffer: [64 * 1024]u8 = undefined;
    var output_buffer: [64 * 1024]u8 = undefined;
    var input = std.Io.File.stdin().readerStreaming(init.io, &input_buffer);
    var output = std.Io.File.stdout().writerStreaming(init.io, &output_buffer);
    var line: std.Io.Writer.Allocating = .init(gpa);
    defer line.deinit();
    while (true) {
        line.clearRetainingCapacity();
        const size = try input.interface.streamDelimiterEnding(&line.writer, '\n');
        const is_last = (input.interface.peekByte() catch |err| switch (err) {
            error.EndOfStream => null,
            else => return err,
        }) == null;
        if (!is_last) input.interface.toss(1);
        if (size > 0) {
            try output.interface.writeAll(try testee.answer(line.written(), null));
            try output.interface.writeByte('\n');
            try output.interface.flush();
        }
        if (is_last) return;
    }
}
