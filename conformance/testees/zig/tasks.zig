//! The tasks of live runs: many messages of a workload, against another testee on the same memory.

const std = @import("std");
const millrace = @import("millrace");
const properties = @import("properties.zig");
const protocol = @import("protocol.zig");
const Allocator = std.mem.Allocator;
const Deadline = millrace.host.Deadline;
const Message = @import("workload.zig").Message;
const Session = @import("session.zig").Session;
const Timeout = millrace.Timeout;
const Transcript = @import("workload.zig").Transcript;
const Workload = @import("workload.zig").Workload;

/// Between two looks of a task that polls.
const poll_ns = 100_000;
/// A mailbox's payload around its text: `[[4294967295,""]]`.
const payload_size_extra = 32;

/// Whether a session can do a task; otherwise why not.
pub fn unfit(session: *const Session, task: protocol.Task) ?[]const u8 {
    if (task.wait == .event or task.role == .cross) return "no event loop";
    if (task.role == .tree and session.calling == null) return "no calls here";
    const reads = task.role != .write;
    const writes = task.role == .write or task.role == .echo or task.role == .drive;
    const is_property = session.role == .property_reader or session.role == .property_writer;
    if (is_property) {
        const role: protocol.TaskRole = if (session.role == .property_reader) .read else .write;
        return if (task.role == role) null else "not for this role";
    }
    if (reads and !session.hasReader()) return "not for this role";
    if (writes and !session.hasWriter()) return "not for this role";
    return null;
}

/// Does a task to its end, whatever that is. Only what is no affair of the port is an error.
///
/// Asserts that it fits.
pub fn run(
    session: *Session,
    arena: Allocator,
    task: protocol.Task,
    timeout: Timeout,
) !protocol.Ran {
    std.debug.assert(unfit(session, task) == null);
    const size_max = Workload.sizeMax(task.capacity) + payload_size_extra;
    try session.reserve(size_max);
    session.rest = null;
    const before = session.counted();
    var runner: Runner = .{
        .session = session,
        .arena = arena,
        .task = task,
        .timeout = timeout,
        .transcript = .{ .record = if (task.record) .empty else null },
        .workload = .init(task.seed, task.capacity),
        .scratch = try arena.alloc(u8, size_max),
    };
    var failure: ?protocol.Failure = null;
    const end = if (runner.perform()) |end| @tagName(end) else |err| end: {
        failure = session.failureOf(err) orelse return err;
        break :end failure.?.code;
    };
    const after = session.counted();
    return .{
        .count = runner.transcript.count,
        .size = runner.transcript.size,
        .crc32 = runner.transcript.crc32(),
        .end = end,
        .reason = if (failure) |what| what.reason else null,
        .parks = if (after.parks) |parks| parks - before.parks.? else null,
        .wakes = if (after.wakes) |wakes| wakes - before.wakes.? else null,
        .late_wakes = if (after.late_wakes) |wakes| wakes - before.late_wakes.? else null,
        .lost = if (task.lossy) runner.lost else null,
        .record = if (runner.transcript.record) |record| record.items else null,
    };
}

const End = enum { done, ended };
const Incoming = struct {
    payload: []const u8,
    envelope: millrace.Envelope,
};

const Runner = struct {
    session: *Session,
    arena: Allocator,
    task: protocol.Task,
    timeout: Timeout,
    transcript: Transcript,
    workload: Workload,
    scratch: []u8,
    /// What is left of a mailbox's payload.
    rest: ?millrace.codec.Batch = null,
    /// Bytes of payload that were written and have not come back.
    under_way: u64 = 0,
    /// Messages of which only a report came.
    lost: u64 = 0,

    fn perform(runner: *Runner) !End {
        const end = switch (runner.task.role) {
            .write => try runner.writeAll(),
            .read => if (runner.session.role == .property_reader)
                try runner.getAll()
            else
                try runner.readAll(),
            .echo => try runner.readAll(),
            .drive => try runner.drive(),
            .tree => try runner.growTrees(),
            .cross => unreachable,
        };
        switch (runner.task.then) {
            .stay => {},
            .close => runner.session.close(),
            .end => if (runner.task.role != .drive and runner.task.role != .tree) {
                try runner.endOwn();
            },
        }
        return end;
    }

    fn writeAll(runner: *Runner) !End {
        var index: u64 = 0;
        while (index < runner.task.count.?) : (index += 1) {
            runner.pause(index);
            try runner.writeNext(true);
        }
        return .done;
    }

    fn readAll(runner: *Runner) !End {
        var index: u64 = 0;
        while (index < runner.task.count orelse std.math.maxInt(u64)) : (index += 1) {
            runner.pause(index);
            const found = runner.read() catch |err| {
                if (!runner.task.lossy or !costsOneMessage(err)) return err;
                const is_count = err == error.MessageLost;
                const lost = if (is_count) runner.session.fanout_reader.lost() else 0;
                if (lost > 0) try runner.transcript.addNone(runner.arena, @intCast(lost));
                runner.lost += @max(lost, 1);
                continue;
            };
            const message = found orelse return .ended;
            try runner.transcript.add(runner.arena, message.envelope.tag, message.payload);
            if (runner.task.role == .echo) try runner.write(message.payload, message.envelope);
        }
        return .done;
    }

    /// Gets each value that is another one than the last, up to the version that is the count.
    fn getAll(runner: *Runner) !End {
        const session = runner.session;
        const reader = &session.property_reader;
        var kept: std.ArrayList(u8) = .empty;
        var last: struct { version: u32 = 0, is_none: bool = true } = .{};
        var deadline: Deadline = .init(runner.timeout);
        while (true) {
            const found = reader.get(session.storage) catch |err| {
                if (err == error.PropertyBusy) continue;
                return err;
            };
            const bytes = found.bytes orelse "";
            const is_none = found.bytes == null;
            const is_same = found.version == last.version and is_none == last.is_none and
                std.mem.eql(u8, bytes, kept.items);
            if (found.version != 0 and !is_same) {
                last = .{ .version = found.version, .is_none = is_none };
                kept.clearRetainingCapacity();
                try kept.appendSlice(runner.arena, bytes);
                if (is_none)
                    try runner.transcript.addNone(runner.arena, last.version)
                else
                    try runner.transcript.add(runner.arena, last.version, bytes);
                deadline = .init(runner.timeout);
            }
            if (runner.task.count) |count| if (last.version == count) return .ended;
            if (runner.task.wait == .block) {
                if (!try reader.wait(runner.timeout)) return error.Timeout;
            } else if (deadline.passed(session.host)) return error.Timeout;
        }
    }

    fn drive(runner: *Runner) !End {
        const count = runner.task.count.?;
        var written: u64 = 0;
        while (written < count or runner.transcript.count < count) {
            if (written < count and runner.under_way <= runner.task.capacity) {
                runner.pause(written);
                try runner.writeNext(false);
                written += 1;
            } else if (!try runner.takeBack(.wait)) {
                return .ended; // too early, as the transcript shows
            }
        }
        try runner.endOwn();
        if (try runner.read()) |more| { // what must not come is in the transcript
            try runner.transcript.add(runner.arena, more.envelope.tag, more.payload);
        }
        return .ended;
    }

    /// Makes trees of calls, and serves those of the peer until both are done.
    fn growTrees(runner: *Runner) !End {
        const task = runner.task;
        const calling = runner.session.calling.?;
        var draws: Workload = .{ .state = task.seed, .capacity = 0 };
        for (0..@intCast(task.count.?)) |index| {
            const number: u32 = @intCast(index);
            var word: [4]u8 = undefined;
            std.mem.writeInt(u32, &word, number, .little);
            if (task.plain) try runner.session.write(&word, .{}, runner.timeout);
            const arguments = .{ draws.random(), task.depth, task.width };
            const value = try calling.valueOf(runner.arena, arguments, runner.timeout);
            std.mem.writeInt(u32, &word, value, .little);
            try runner.transcript.add(runner.arena, number, &word);
        }
        try runner.session.write("", .{}, runner.timeout);
        while (try runner.read()) |message| {
            if (message.payload.len == 0) break;
            try runner.transcript.add(runner.arena, message.envelope.tag, message.payload);
        }
        try runner.endOwn();
        while (try runner.read()) |more| {
            try runner.transcript.add(runner.arena, more.envelope.tag, more.payload);
        }
        return .ended;
    }

    /// Ends the own stream, where there is one.
    fn endOwn(runner: *Runner) !void {
        const writes = runner.session.writer != null or runner.session.role == .fanout_writer;
        if (writes) try runner.session.end();
    }

    /// Reads a message that comes back to who drives. Returns false at the end of the stream, or
    /// where nothing has come.
    fn takeBack(runner: *Runner, how: enum { wait, look }) !bool {
        const found = if (how == .wait) try runner.read() else try runner.tryRead();
        const message = found orelse return false;
        try runner.transcript.add(runner.arena, message.envelope.tag, message.payload);
        runner.under_way -|= message.payload.len;
        return true;
    }

    fn writeNext(runner: *Runner, counts: bool) !void {
        const message = runner.workload.next();
        if (runner.session.isMailbox()) {
            const text = try runner.writeLetters(message);
            return runner.transcript.add(runner.arena, message.tag, text);
        }
        const payload = message.fill(runner.scratch);
        runner.under_way += message.size;
        try runner.write(payload, .{ .tag = message.tag });
        if (counts) try runner.transcript.add(runner.arena, message.tag, payload);
    }

    fn write(runner: *Runner, payload: []const u8, envelope: millrace.Envelope) !void {
        const session = runner.session;
        if (session.role == .property_writer and payload.len == 0) return properties.clear(session);
        // A message that never fits the ring at once has no call that does not wait.
        const polls = runner.task.wait == .poll and
            (session.writer == null or payload.len <= session.writer.?.trySizeMax());
        if (!polls) return session.write(payload, envelope, runner.timeout);
        var deadline: Deadline = .init(runner.timeout);
        while (true) {
            session.write(payload, envelope, .none) catch |err| {
                if (err != error.Timeout) return err;
                // Calls that do not wait do not read either: who drives must, or both sides stand
                // before full rings.
                if (runner.task.role == .drive and try runner.takeBack(.look)) continue;
                try runner.pausePoll(&deadline);
                continue;
            };
            return;
        }
    }

    /// Writes a message to a mailbox, and returns its text.
    fn writeLetters(runner: *Runner, message: Message) ![]const u8 {
        const session = runner.session;
        const head = try std.fmt.bufPrint(runner.scratch, "[[{d},\"", .{message.tag});
        const text = message.fillLetters(runner.scratch[head.len..]);
        const size = head.len + text.len;
        const tail = "\"]]";
        @memcpy(runner.scratch[size..][0..tail.len], tail);
        const payload = runner.scratch[0 .. size + tail.len];
        if (runner.task.wait == .block) {
            try session.write(payload, .{}, runner.timeout);
            return text;
        }
        var deadline: Deadline = .init(runner.timeout);
        while (true) {
            const outcome = if (session.mailbox_writer.partial())
                session.resumeWrite(.none)
            else
                session.write(payload, .{}, .none);
            outcome catch |err| {
                if (err != error.Timeout) return err;
                try runner.pausePoll(&deadline);
                continue;
            };
            return text;
        }
    }

    /// Returns the next message, or null at the end of the stream.
    fn read(runner: *Runner) !?Incoming {
        if (runner.task.wait == .block) {
            if (try runner.readWithin(runner.timeout)) |message| return message;
            return if (runner.session.ended()) null else error.Timeout;
        }
        var deadline: Deadline = .init(runner.timeout);
        while (true) {
            if (try runner.tryRead()) |message| return message;
            if (runner.session.ended()) return null;
            try runner.pausePoll(&deadline);
        }
    }

    fn tryRead(runner: *Runner) !?Incoming {
        return runner.readWithin(.none);
    }

    fn readWithin(runner: *Runner, timeout: Timeout) !?Incoming {
        if (runner.session.isMailbox()) return runner.readLetters(timeout);
        const session = runner.session;
        if (session.role == .fanout_reader) {
            const reader = &session.fanout_reader;
            const message = (try reader.read(session.storage, timeout)) orelse return null;
            return .{ .payload = message.payload, .envelope = .{ .tag = message.tag } };
        }
        const message = (try session.readMessage(timeout)) orelse return null;
        return .{
            .payload = message.payload,
            .envelope = .{ .kind = message.kind, .codec = message.codec, .tag = message.tag },
        };
    }

    /// Of a mailbox's payload, one message at a time: `[tag, text]`.
    fn readLetters(runner: *Runner, timeout: Timeout) !?Incoming {
        if (runner.rest == null) {
            const payload = (try runner.session.readPayload(timeout)) orelse return null;
            runner.rest = .init(payload);
        }
        const element = (try runner.rest.?.next()) orelse {
            runner.rest = null;
            return runner.readLetters(timeout);
        };
        const tag, const text = protocol.parse(
            struct { u32, []const u8 },
            runner.arena,
            element,
        ) catch |err| return if (err == error.OutOfMemory) err else error.MessageJson;
        return .{ .payload = text, .envelope = .{ .tag = tag } };
    }

    /// Whether an error is the report of a lost message.
    fn costsOneMessage(err: anyerror) bool {
        return switch (err) {
            error.MessageCancelled,
            error.MessageTruncated,
            error.MessageSize,
            error.MessageKind,
            error.MessageLost,
            => true,
            else => false,
        };
    }

    fn pause(runner: *const Runner, index: u64) void {
        const delay_us = runner.task.delay_us orelse return;
        if (index % runner.task.delay_every == 0) runner.session.host.pause(delay_us * 1_000);
    }

    fn pausePoll(runner: *const Runner, deadline: *Deadline) !void {
        const host = runner.session.host;
        if (deadline.passed(host)) return error.Timeout;
        host.pause(@min(poll_ns, deadline.left(host)));
    }
};
