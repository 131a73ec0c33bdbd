//! Plays the testee of `conformance/protocol/` on the implementation, wherever it runs: in goes a
//! command as JSON, out comes the reply. It holds no case and expects nothing.
//!
//! An error of `answer` is no reply: the testee should die of it.

const std = @import("std");
const millrace = @import("millrace");
const files = @import("files.zig");
const properties = @import("properties.zig");
const protocol = @import("protocol.zig");
const streams = @import("streams.zig");
const tasks = @import("tasks.zig");
const Allocator = std.mem.Allocator;
const Command = protocol.Command;
const Reply = protocol.Reply;
const Session = @import("session.zig").Session;
const layout = millrace.layout;

const segment_align = layout.segment_align;

/// What depends on where the testee runs.
pub const Place = struct {
    hello: protocol.Hello,
    host: *const millrace.Host = .native,
};

pub const Testee = struct {
    gpa: Allocator,
    place: Place,
    /// What one command needs; the reply lies there until the next.
    arena: std.heap.ArenaAllocator,
    handles: std.AutoHashMapUnmanaged(u32, *Handle) = .empty,

    pub fn init(gpa: Allocator, place: Place) Testee {
        return .{ .gpa = gpa, .place = place, .arena = .init(gpa) };
    }

    pub fn deinit(testee: *Testee) void {
        var handles = testee.handles.valueIterator();
        while (handles.next()) |handle| handle.*.destroy(testee.gpa);
        testee.handles.deinit(testee.gpa);
        testee.arena.deinit();
        testee.* = undefined;
    }

    /// Answers one command. The reply, without a line break, is good until the next. `shared` is
    /// the memory that an `open` of carrier `shared` names, where it was handed over.
    pub fn answer(testee: *Testee, text: []const u8, shared: ?[]u8) ![]const u8 {
        _ = testee.arena.reset(.free_all);
        const arena = testee.arena.allocator();
        const head = try protocol.parse(protocol.Head, arena, text);
        const reply = try testee.perform(head, text, shared);
        var line: std.Io.Writer.Allocating = .init(arena);
        try reply.write(head.id, &line.writer);
        return line.written();
    }

    fn perform(testee: *Testee, head: protocol.Head, text: []const u8, shared: ?[]u8) !Reply {
        const name = std.meta.stringToEnum(protocol.Name, head.command) orelse
            return .{ .decline = "unknown command" };
        if (name == .start) return .{ .hello = testee.place.hello };
        const arena = testee.arena.allocator();
        switch (name) {
            .call, .notify, .give_up, .outcome, .item, .told => {
                const whose = try protocol.parse(struct { handle: u32 }, arena, text);
                const handle = testee.handles.get(whose.handle) orelse return error.UnknownHandle;
                return testee.performCall(name, text, handle);
            },
            else => {},
        }
        const command = try protocol.parse(Command, arena, text);
        if (name == .open) return testee.open(&command, shared);
        const handle = testee.handles.get(command.handle) orelse return error.UnknownHandle;
        if (name == .drop) {
            _ = testee.handles.remove(command.handle);
            handle.destroy(testee.gpa);
            return .ok;
        }
        return handle.call(arena, name, &command) catch |err|
            (handle.refusal(err) orelse return err);
    }

    /// A command of the chapter `call`.
    fn performCall(testee: *Testee, name: protocol.Name, text: []const u8, handle: *Handle) !Reply {
        const arena = testee.arena.allocator();
        const command = try protocol.parse(protocol.Calling, arena, text);
        const own = handle.session.calling orelse return .{ .decline = "no calls here" };
        return own.perform(arena, name, &command, &handle.session) catch |err|
            (handle.refusal(err) orelse return err);
    }

    fn open(testee: *Testee, command: *const Command, shared: ?[]u8) !Reply {
        if (testee.handles.contains(command.handle)) return error.KnownHandle;
        const takes_file = command.carrier == .file or command.carrier == .mapped;
        if (takes_file and !files.supported) return .{ .decline = "no files here" };
        if (command.carrier == .shared and shared == null) {
            return .{ .decline = "no memory of this name that a guest can reach" };
        }
        if (command.carrier == .stream and !streams.supported) {
            return .{ .decline = "no streams here" };
        }
        const handle = try testee.gpa.create(Handle);
        handle.* = .{ .session = .init(testee.gpa, testee.place.host, command) };
        errdefer handle.destroy(testee.gpa);
        switch (command.carrier) {
            .bytes => {
                handle.owned = try makeMemory(testee.gpa, testee.arena.allocator(), command);
                handle.memory = handle.owned[command.memory_offset..];
            },
            .shared => handle.memory = shared.?,
            .mapped => handle.memory =
                try handle.file.map(testee.arena.allocator(), command.path),
            .file, .stream => {},
        }
        const reply = handle.open(testee.arena.allocator(), command) catch |err|
            (handle.refusal(err) orelse return err);
        // Also where that failed: the kit looks at the memory.
        try testee.handles.put(testee.gpa, command.handle, handle);
        return reply;
    }
};

/// What a number stands for: memory, and what was opened in it.
const Handle = struct {
    session: Session,
    file: files.File = .none,
    /// Where it is not a file.
    memory: ?[]u8 = null,
    /// That memory where it is the testee's own, and a few bytes in front.
    owned: []align(segment_align) u8 = &.{},

    fn destroy(handle: *Handle, gpa: Allocator) void {
        handle.session.deinit();
        handle.file.close();
        gpa.free(handle.owned);
        gpa.destroy(handle);
    }

    fn open(handle: *Handle, arena: Allocator, command: *const Command) !Reply {
        const session = &handle.session;
        if (command.carrier == .stream) {
            if (streams.supported) try session.openStream(command);
            return .ok;
        }
        const geometry: ?millrace.Geometry = if (command.kind == .create)
            try geometryOf(arena, command.geometry)
        else
            null;
        if (session.isMailbox()) {
            // Nothing in a file says how the peer wakes, so both sides poll.
            if (handle.memory == null) session.host = &millrace.host.polling;
            const memory = handle.memory orelse try handle.file.map(arena, command.path);
            try session.openMailbox(memory, command);
            return .ok;
        }
        const storage = try session.channelStorage();
        if (handle.memory == null) {
            const segment = try handle.file.openSegment(arena, command, geometry, storage);
            try session.openSegment(segment, command);
            return .ok;
        }
        if (@intFromPtr(handle.memory.?.ptr) % segment_align != 0) {
            return .{ .decline = "no segment in memory that is not aligned" };
        }
        const memory: millrace.Memory = @alignCast(handle.memory.?);
        if (geometry) |wanted| {
            if (command.sole_owner) {
                try millrace.Segment.format(memory, wanted);
            } else {
                _ = try millrace.Segment.create(memory, wanted, storage, .none);
            }
        }
        const segment: millrace.Segment = try .attach(memory, storage, .none);
        if (command.role != .segment) try session.openSegment(&segment, command);
        return .ok;
    }

    fn call(
        handle: *Handle,
        arena: Allocator,
        name: protocol.Name,
        command: *const Command,
    ) !Reply {
        const session = &handle.session;
        const waits = command.wait == null or command.wait == .block;
        const timeout: millrace.Timeout = .ms(if (waits) command.timeout_ms orelse 0 else 0);
        const envelope = command.message.envelope();
        switch (name) {
            .start, .open, .drop => unreachable,
            .call, .notify, .give_up, .outcome, .item, .told => unreachable,
            .read => return if (command.count) |count|
                session.readMany(arena, count, timeout)
            else
                session.told(try session.read(arena, timeout)),
            .peek => return session.told(try session.peek()),
            .release => try session.release(),
            .write => {
                const payload = try protocol.fromHex(arena, command.message.hex);
                session.write(payload, envelope, timeout) catch |err|
                    return if (err == error.Timeout and (command.timeout_ms == null or !waits))
                        .full
                    else
                        err;
            },
            .claim => {
                session.claim(envelope, command.size.?) catch |err|
                    return if (err == error.Timeout) .full else err;
                if (command.open) return .ok;
                if (command.abandon) {
                    try session.abandon();
                } else {
                    const payload = try protocol.fromHex(arena, command.message.hex);
                    try session.finish(payload, envelope);
                }
            },
            .finish => {
                const payload = try protocol.fromHex(arena, command.message.hex);
                try session.finish(payload, envelope);
            },
            .abandon => try session.abandon(),
            .publish => try session.publish(),
            .end => try session.end(),
            .@"resume" => try session.resumeWrite(timeout),
            .get => return properties.get(session, arena),
            .clear => try properties.clear(session),
            .changed => try properties.changed(session, timeout),
            .close => session.close(),
            .vacate => try session.vacate(),
            .leave => try session.leave(),
            .join => try session.join(),
            .patch => for (command.bytes) |run| {
                const bytes = try protocol.fromHex(arena, run.hex);
                @memcpy(handle.memory.?[run.offset..][0..bytes.len], bytes);
            },
            .dump => {
                const rest = handle.memory.?[command.from..];
                const bytes = rest[0 .. command.size orelse rest.len];
                return .{ .bytes = .{ .hex = .{ .bytes = bytes } } };
            },
            .run => {
                const task = command.task.?;
                if (tasks.unfit(session, task)) |why| return .{ .decline = why };
                return .{ .ran = try tasks.run(session, arena, task, timeout) };
            },
        }
        return .ok;
    }

    /// The reply to an error, or null where it is none of the port's.
    fn refusal(handle: *const Handle, err: anyerror) ?Reply {
        if (err == error.Refused) return .refused;
        if (err == error.Unoffered) return .{ .decline = "not for this role" };
        return .{ .@"error" = handle.session.failureOf(err) orelse return null };
    }
};

/// Makes the memory of a command, 0 except what it states.
fn makeMemory(
    gpa: Allocator,
    arena: Allocator,
    command: *const Command,
) ![]align(segment_align) u8 {
    const size = command.memory_offset + command.memory.size;
    const owned = try gpa.alignedAlloc(u8, .fromByteUnits(segment_align), size);
    errdefer gpa.free(owned);
    @memset(owned, 0);
    for (command.memory.bytes) |run| {
        const bytes = try protocol.fromHex(arena, run.hex);
        @memcpy(owned[command.memory_offset + run.offset ..][0..bytes.len], bytes);
    }
    return owned;
}

/// A geometry that the implementation does not have to assert; `error.Refused` for any other.
fn geometryOf(arena: Allocator, from: protocol.Geometry) !millrace.Geometry {
    if (from.endpoints < 1 or from.endpoints > layout.endpoint_count_max) return error.Refused;
    if (from.channels.len > layout.channel_count_max) return error.Refused;
    const channels = try arena.alloc(millrace.Channel, from.channels.len);
    var names: std.ArrayList(millrace.Geometry.Name) = .empty;
    for (from.channels, channels, 0..) |ring, *channel, index| {
        if (ring.kind == layout.channel_kind_property) {
            channel.* = try propertyOf(from, ring);
            if (ring.name.len > layout.property_name_size_max) return error.Refused;
            if (ring.name.len == 0) continue;
            try names.append(arena, .{ .channel = @intCast(index), .name = ring.name });
            continue;
        }
        if (ring.readers) |readers| {
            channel.* = try fanoutOf(ring, readers);
            continue;
        }
        if (ring.writer >= from.endpoints or ring.reader >= from.endpoints) return error.Refused;
        if (ring.writer == ring.reader) return error.Refused;
        if (ring.capacity < layout.ring_capacity_min) return error.Refused;
        if (ring.capacity > layout.ring_capacity_max) return error.Refused;
        if (!std.math.isPowerOfTwo(ring.capacity)) return error.Refused;
        if (ring.start % layout.frame_align != 0) return error.Refused;
        channel.* = .{
            .writer = ring.writer,
            .reader = ring.reader,
            .data_size = ring.capacity,
            .label = ring.label,
            .start = ring.start,
        };
    }
    return .{
        .endpoint_count = from.endpoints,
        .channels = channels,
        .names = names.items,
    };
}

fn propertyOf(from: protocol.Geometry, property: protocol.Geometry.Ring) !millrace.Channel {
    const unit = layout.property_data_unit;
    if (property.capacity == 0 or property.capacity % unit != 0) return error.Refused;
    if (property.writer >= from.endpoints) return error.Refused;
    if (property.reader != layout.endpoint_none or property.start != 0) return error.Refused;
    const slot_size = property.capacity / layout.property_slot_count;
    const size = slot_size - layout.property_slot_size;
    var channel = millrace.property.channelOf(property.writer, size);
    channel.label = property.label;
    return channel;
}

fn fanoutOf(from: protocol.Geometry.Ring, readers: u32) !millrace.Channel {
    const mode = from.start % layout.frame_align;
    if (readers < 1 or readers > layout.fanout_readers_max) return error.Refused;
    if (mode > layout.fanout_lose) return error.Refused;
    if (from.capacity < layout.ring_capacity_min) return error.Refused;
    if (from.capacity > layout.ring_capacity_max) return error.Refused;
    if (!std.math.isPowerOfTwo(from.capacity)) return error.Refused;
    return millrace.Fanout.channel(.{
        .writer = from.writer,
        .readers = readers,
        .capacity = from.capacity,
        .mode = if (mode == layout.fanout_lose) .lose else .hold,
        .label = from.label,
        .start = from.start - mode,
    });
}

test {
    _ = @import("region.zig");
    _ = @import("value.zig");
    _ = @import("workload.zig");
}
