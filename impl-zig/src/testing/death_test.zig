//! Death at every instruction. A child process runs the real writer over a shared mapping, and the
//! parent steps it one machine instruction at a time. After every step that changed the mapping,
//! the image is what a writer leaves behind that dies there. A fresh reader over a copy of the
//! image must find only whole published messages, in order: a prefix of what was written, and then
//! nothing.

const std = @import("std");
const builtin = @import("builtin");
const millrace = @import("../root.zig");
const fixture = @import("fixture.zig");
const testing = std.testing;
const assert = std.debug.assert;
const layout = millrace.layout;
const linux = std.os.linux;

const capacity = 1024;
/// The cursors pass 2^32 in the middle of the workload.
const start: u32 = 0xffff_fc00 + 256;
const memory_size = 4096;
const Image = [memory_size]u8;

/// What a reader can find. The payload follows from the tag, which is its number in the workload.
const Event = union(enum) {
    message: struct { tag: u32, size: u32 },
    cancelled,
    end,
};

/// The events in the order in which the workload publishes them, each with the position after it.
const Script = struct {
    events: [96]Event = undefined,
    behind: [96]u32 = undefined,
    count: usize = 0,

    fn add(script: *Script, event: Event, position: u32) void {
        script.events[script.count] = event;
        script.behind[script.count] = position;
        script.count += 1;
    }
};

/// The writer, and a stand-in for the reader that only gives back room.
const Workload = struct {
    writer: *millrace.Writer,
    script: ?*Script,
    tag: u32 = 0,

    fn run(work: *Workload) !void {
        for (0..3) |round| {
            for ([_]u32{ 0, 1, 40, 16, 100 }) |size| try work.whole(size);
            work.drain();
            try work.batch();
            work.drain();
            try work.whole(496); // a pad comes before one of them
            work.drain();
            try work.many(700);
            work.drain();
            if (round == 1) try work.giveUp();
        }
        try work.writer.end();
        work.note(.end);
        work.writer.ring.endpoint.close();
    }

    fn whole(work: *Workload, size: u32) !void {
        var payload: [512]u8 = undefined;
        fixture.pattern(payload[0..size], work.tag);
        try work.writer.write(payload[0..size], .{ .tag = work.tag }, .none);
        work.noteMessage(size);
    }

    fn batch(work: *Workload) !void {
        for ([_]u32{ 5, 0, 33 }) |size| {
            const bytes = try work.writer.claim(size + 20, .none);
            fixture.pattern(bytes[0..size], work.tag);
            work.writer.finish(size, .{ .tag = work.tag });
            work.noteMessage(size);
        }
        work.writer.publish();
    }

    fn many(work: *Workload, size: u32) !void {
        var payload: [800]u8 = undefined;
        fixture.pattern(payload[0..size], work.tag);
        try work.writer.write(payload[0..size], .{ .tag = work.tag }, .ns(1));
        work.noteMessage(size);
    }

    fn giveUp(work: *Workload) !void {
        var payload: [2000]u8 = @splat(0xee);
        try testing.expectError(
            error.Timeout,
            work.writer.write(&payload, .{ .tag = 999 }, .ns(1)),
        );
        work.drain();
        // The cancel is placed with the next message, before it.
        const before = work.writer.ring.tail;
        try work.whole(3);
        const script = work.script orelse return;
        const message = script.events[script.count - 1];
        const behind = script.behind[script.count - 1];
        script.count -= 1;
        script.add(.cancelled, before +% 16);
        script.add(message, behind);
    }

    fn drain(work: *Workload) void {
        const control = work.writer.ring.control;
        @atomicStore(u32, &control.head, work.writer.ring.published, .seq_cst);
    }

    fn noteMessage(work: *Workload, size: u32) void {
        work.note(.{ .message = .{ .tag = work.tag, .size = size } });
        work.tag += 1;
    }

    fn note(work: *Workload, event: Event) void {
        if (work.script) |script| script.add(event, work.writer.ring.tail);
    }
};

fn runWorkload(memory: millrace.Memory, script: ?*Script) !void {
    var channels: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(memory, &channels, .none);
    const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
    var endpoint: millrace.Endpoint = try .attach(&segment, 0, options);
    var writer: millrace.Writer = try .init(&endpoint, &segment, 0);
    var work: Workload = .{ .writer = &writer, .script = script };
    try work.run();
}

/// Reads an image. Returns how many events of the script it has.
fn examine(image: *align(128) Image, script: *const Script) !usize {
    var channels: [1]millrace.Channel = undefined;
    const segment: millrace.Segment = try .attach(image, &channels, .none);
    const options: millrace.Endpoint.Options = .{ .host = &fixture.clockwork, .spin_us = 0 };
    var endpoint: millrace.Endpoint = try .attach(&segment, 1, options);
    var reader: millrace.Reader = try .init(&endpoint, &segment, 0);
    // The stand-in has read up to here. A message in progress was begun before, or is dropped.
    const head = @atomicLoad(u32, &reader.ring.control.head, .seq_cst);
    reader.ring.head = head;
    reader.ring.stored = head;
    reader.ring.tail = head;
    var storage: [2048]u8 = undefined;
    var index = try resumeAt(&reader, &storage, script, head);
    while (true) {
        const read = reader.tryRead(&storage) catch |err| switch (err) {
            error.MessageCancelled => {
                try testing.expectEqual(.cancelled, std.meta.activeTag(script.events[index]));
                index += 1;
                continue;
            },
            error.PeerClosed => return error.ClosedBeforeEnd,
            else => return err,
        };
        const message = read orelse break;
        const expected = script.events[index].message;
        try testing.expectEqual(expected.tag, message.tag);
        var payload: [800]u8 = undefined;
        fixture.pattern(payload[0..expected.size], expected.tag);
        const same = std.mem.eql(u8, payload[0..expected.size], message.payload);
        if (!same) return error.PayloadDiffers;
        index += 1;
    }
    if (reader.ended()) {
        try testing.expectEqual(.end, std.meta.activeTag(script.events[index]));
        return index + 1;
    }
    // The peer is attached, or is not yet: there is nothing more now. After it is marked failed,
    // the reader reports peer.failed.
    segment.fail(segment.ownerOf(0), .peer_lost, &fixture.clockwork);
    try testing.expectError(error.PeerFailed, reader.tryRead(&storage));
    try testing.expectEqual(.peer_lost, reader.reason().?);
    return index;
}

/// Returns how many events lie before `head`. If the stand-in left off in the middle of the message
/// that is given up, brings the reader into the same state.
fn resumeAt(reader: *millrace.Reader, storage: []u8, script: *const Script, head: u32) !usize {
    var index: usize = 0;
    while (index < script.count) : (index += 1) {
        const after: i32 = @bitCast(head -% script.behind[index]);
        if (after < 0) break;
    }
    const begins = if (index == 0) start else script.behind[index - 1];
    if (head == begins) return index;
    // Only the message that is given up is released before it is complete.
    try testing.expectEqual(.cancelled, std.meta.activeTag(script.events[index]));
    reader.progress = .{ .kind = 1, .codec = 0, .tag = 999, .total = 2000, .received = 0 };
    reader.progress.?.uncounted = true;
    reader.parts = storage;
    return index;
}

const Stepped = struct { instructions: u64, images: u64, prefixes: u64 };

/// Steps a child that runs `child`, and examines every image.
fn step(
    memory: *align(128) Image,
    comptime child: fn (*align(128) Image) void,
    script: *const Script,
) !Stepped {
    // On one processor, because a switch between two costs ten times as much as the step itself.
    const everywhere = try pin();
    defer linux.sched_setaffinity(0, &everywhere) catch {};
    const forked = linux.fork();
    if (linux.errno(forked) != .SUCCESS) return error.ForkFailed;
    if (forked == 0) {
        if (linux.errno(linux.ptrace(linux.PTRACE.TRACEME, 0, 0, 0, 0)) != .SUCCESS) {
            linux.exit_group(100);
        }
        _ = linux.kill(linux.getpid(), .STOP);
        child(memory);
        linux.exit_group(0);
    }
    const pid: linux.pid_t = @intCast(forked);
    var finished = false;
    defer if (!finished) {
        _ = linux.kill(pid, .KILL);
        var status: i32 = 0;
        _ = linux.wait4(pid, &status, 0, null);
    };
    var before: Image align(128) = memory.*;
    var seen: std.bit_set.Static(128) = .empty;
    var result: Stepped = .{ .instructions = 0, .images = 0, .prefixes = 0 };
    while (true) {
        var raw: i32 = 0;
        if (linux.errno(linux.wait4(pid, &raw, 0, null)) != .SUCCESS) return error.WaitFailed;
        const status: u32 = @bitCast(raw);
        if (linux.W.IFEXITED(status)) {
            finished = true;
            if (linux.W.EXITSTATUS(status) == 100) return error.NotPermitted;
            try testing.expectEqual(0, linux.W.EXITSTATUS(status));
            break;
        }
        if (linux.W.IFSIGNALED(status)) {
            finished = true;
            return error.ChildKilled;
        }
        result.instructions += 1;
        if (!std.mem.eql(u8, memory, &before)) {
            before = memory.*;
            var copy: Image align(128) = before;
            result.images += 1;
            seen.set(try examine(&copy, script));
        }
        const stepped = linux.ptrace(linux.PTRACE.SINGLESTEP, pid, 0, 0, 0);
        if (linux.errno(stepped) != .SUCCESS) return error.NotPermitted;
    }
    result.prefixes = seen.count();
    return result;
}

/// Keeps this thread, and the processes that it forks, on the first processor that it may use.
/// Returns the processors that it might use before.
fn pin() !linux.cpu_set_t {
    var before: linux.cpu_set_t = @splat(0);
    const got = linux.sched_getaffinity(0, @sizeOf(linux.cpu_set_t), &before);
    if (linux.errno(got) != .SUCCESS) return error.NotPermitted;
    var one: linux.cpu_set_t = @splat(0);
    for (before, &one) |word, *only| {
        only.* = word & (~word +% 1);
        if (only.* != 0) break;
    }
    linux.sched_setaffinity(0, &one) catch {};
    return before;
}

fn mapShared() !*align(128) Image {
    const mapped = linux.mmap(
        null,
        memory_size,
        .{ .READ = true, .WRITE = true },
        .{ .TYPE = .SHARED, .ANONYMOUS = true },
        -1,
        0,
    );
    if (linux.errno(mapped) != .SUCCESS) return error.MapFailed;
    return @ptrFromInt(mapped);
}

fn skip(why: []const u8) error{SkipZigTest} {
    std.debug.print("skipped: death at every instruction: {s}\n", .{why});
    return error.SkipZigTest;
}

fn format(memory: *align(128) Image) !void {
    const channels = fixture.pipeGeometry(capacity, start);
    try millrace.Segment.format(memory, .{ .endpoint_count = 2, .channels = &channels });
}

test "a writer that dies at any instruction leaves whole published messages only" {
    if (builtin.os.tag != .linux) return skip("needs ptrace");
    const memory = try mapShared();
    defer _ = linux.munmap(@ptrCast(memory), memory_size);
    try format(memory);
    var script: Script = .{};
    try runWorkload(memory, &script);
    try format(memory);
    const Child = struct {
        fn run(image: *align(128) Image) void {
            runWorkload(image, null) catch linux.exit_group(1);
        }
    };
    const result = step(memory, Child.run, &script) catch |err| switch (err) {
        error.NotPermitted => return skip("ptrace is not permitted here"),
        else => return err,
    };
    const line = "death at every instruction: {} instructions, {} images, {} prefixes of {}\n";
    std.debug.print(line, .{
        result.instructions,
        result.images,
        result.prefixes,
        script.count + 1,
    });
    // Nothing is published at first, and something after every store of `tail`; a batch counts
    // once.
    try testing.expect(result.prefixes > script.count / 2);
    try testing.expect(result.instructions > 10_000);
}

test "canary: a writer that publishes before it copies is caught" {
    if (builtin.os.tag != .linux) return skip("needs ptrace");
    const memory = try mapShared();
    defer _ = linux.munmap(@ptrCast(memory), memory_size);
    try format(memory);
    var script: Script = .{};
    script.add(.{ .message = .{ .tag = 0, .size = 40 } }, start +% 64);
    const Broken = struct {
        fn run(image: *align(128) Image) void {
            write(image) catch linux.exit_group(1);
        }

        fn write(image: *align(128) Image) !void {
            var channels: [1]millrace.Channel = undefined;
            const segment: millrace.Segment = try .attach(image, &channels, .none);
            var endpoint: millrace.Endpoint = try .attach(&segment, 0, .{
                .host = &fixture.clockwork,
                .spin_us = 0,
            });
            var writer: millrace.Writer = try .init(&endpoint, &segment, 0);
            const bytes = try writer.claim(40, .none);
            writer.finish(40, .{});
            writer.publish();
            fixture.pattern(bytes, 0);
        }
    };
    if (step(memory, Broken.run, &script)) |_| {
        return error.CanarySurvived;
    } else |err| switch (err) {
        error.NotPermitted => return skip("ptrace is not permitted here"),
        error.PayloadDiffers => {},
        else => return err,
    }
}
