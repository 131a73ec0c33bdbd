//! One end that was opened, in memory or in a file, and what can be done with it.
//!
//! A port's failure is returned as it is; `reasonBeside` and `codeOf` say what it means to the kit.
//! `error.Refused` is the caller's mistake, and `error.Unoffered` what the role does not have.

const std = @import("std");
const millrace = @import("millrace");
const calling = @import("calling.zig");
const properties = @import("properties.zig");
const protocol = @import("protocol.zig");
const streams = @import("streams.zig");
const value = @import("value.zig");
const Allocator = std.mem.Allocator;
const Item = protocol.Item;
const Timeout = millrace.Timeout;
const layout = millrace.layout;

/// Where a message goes whose size nobody has limited.
const limit_default = 256 * 1024;
/// An inbox takes what its ring can hold, within these.
const inbox_size_min = 4096;
const inbox_size_max = 1 << 20;
/// What a port with calls keeps of messages that come while it waits for an answer.
const inbox_size_calls = 1 << 16;

pub const Session = struct {
    gpa: Allocator,
    host: *const millrace.Host,
    role: protocol.Role,
    values: bool,
    limited: bool,
    /// The private copy of the descriptors.
    channels: []millrace.Channel = &.{},
    endpoint: millrace.Endpoint = undefined,
    own_reader: millrace.Reader = undefined,
    own_writer: millrace.Writer = undefined,
    own_port: millrace.Port = undefined,
    /// That, or the one of a stream.
    port: *millrace.Port = undefined,
    connection: ?*streams.Connection = null,
    /// Of a port that offers calls.
    calling: ?*calling.Calling = null,
    mailbox_reader: millrace.MailboxReader = undefined,
    mailbox_writer: millrace.MailboxWriter = undefined,
    property_reader: millrace.PropertyReader = undefined,
    property_writer: millrace.PropertyWriter = undefined,
    fanout_reader: millrace.Fanout.Reader = undefined,
    fanout_writer: millrace.Fanout.Writer = undefined,
    seats: []millrace.Fanout.Writer.Seat = &.{},
    /// The directions of a pipe or a port that it has.
    reader: ?*millrace.Reader = null,
    writer: ?*millrace.Writer = null,
    storage: []u8 = &.{},
    inbox: []align(16) u8 = &.{},
    /// What a mailbox's writer has begun must stay where it was [mailbox.begun].
    written: []u8 = &.{},
    /// What is claimed.
    place: ?[]u8 = null,
    /// What was not asked for yet of a batch that was read.
    rest: ?value.Rest = null,
    opened: bool = false,

    /// Nothing is open yet.
    pub fn init(
        gpa: Allocator,
        host: *const millrace.Host,
        command: *const protocol.Command,
    ) Session {
        return .{
            .gpa = gpa,
            .host = host,
            .role = command.role,
            .values = command.values,
            .limited = command.limit != null,
        };
    }

    /// Returns storage for the descriptors of any segment.
    pub fn channelStorage(session: *Session) ![]millrace.Channel {
        if (session.channels.len == 0) {
            session.channels = try session.gpa.alloc(millrace.Channel, layout.channel_count_max);
        }
        return session.channels;
    }

    /// Takes an endpoint of a segment. It must stay where it is until `deinit`.
    pub fn openSegment(
        session: *Session,
        segment: *const millrace.Segment,
        command: *const protocol.Command,
    ) !void {
        const gpa = session.gpa;
        const endpoint: millrace.Endpoint.Options = .{
            .host = session.host,
            .spin_us = command.spin_us,
        };
        switch (command.role) {
            .port => {
                const index = command.endpoint orelse return error.Refused;
                const capacity = capacityRead(segment, index);
                try session.allocate(command.limit);
                session.inbox = try gpa.alignedAlloc(u8, .@"16", command.inbox orelse @min(
                    @max(4 * capacity, inbox_size_min),
                    inbox_size_max,
                ));
                session.port = &session.own_port;
                try session.port.init(segment, index, .{
                    .endpoint = endpoint,
                    .inbox = session.inbox,
                    .calls = command.calls,
                });
                return session.begin(command);
            },
            .reader => {
                const index = command.endpoint orelse 1;
                const channel = try millrace.Reader.find(segment, index, command.channel);
                try session.allocate(command.limit);
                session.endpoint = try .attach(segment, index, endpoint);
                session.own_reader = try .init(&session.endpoint, segment, channel);
                session.own_reader.calls = command.calls;
                session.reader = &session.own_reader;
            },
            .writer => {
                const index = command.endpoint orelse 0;
                const channel = try millrace.Writer.find(segment, index, command.channel);
                session.endpoint = try .attach(segment, index, endpoint);
                session.own_writer = try .init(&session.endpoint, segment, channel);
                session.writer = &session.own_writer;
            },
            .property_reader => try properties.openReader(session, segment, command, endpoint),
            .property_writer => try properties.openWriter(session, segment, command, endpoint),
            .fanout_reader => {
                const index = command.endpoint orelse 1;
                const channel = try millrace.Fanout.Reader.find(segment, index, command.channel);
                try session.allocate(command.limit);
                session.endpoint = try .attach(segment, index, endpoint);
                const from: millrace.Fanout.Reader.Begin = if (command.oldest) .oldest else .tail;
                session.fanout_reader = .init(&session.endpoint, segment, channel, from);
            },
            .fanout_writer => {
                const index = command.endpoint orelse 0;
                const channel = try millrace.Fanout.Writer.find(segment, index, command.channel);
                const Seat = millrace.Fanout.Writer.Seat;
                session.seats = try gpa.alloc(Seat, layout.fanout_readers_max);
                session.endpoint = try .attach(segment, index, endpoint);
                session.fanout_writer = .init(&session.endpoint, segment, channel, session.seats);
            },
            .segment, .mailbox_reader, .mailbox_writer => unreachable,
        }
        session.opened = true;
    }

    /// Begins with a port that was opened.
    fn begin(session: *Session, command: *const protocol.Command) !void {
        session.opened = true;
        session.reader = &session.port.reader;
        session.writer = &session.port.writer;
        if (command.serves) session.calling = try .create(session.gpa, session.port, .{
            .message_size = session.storage.len,
            .inbox_size = command.inbox orelse inbox_size_calls,
            .first_id = command.first_id,
        }, command.methods);
    }

    /// Begins one side of a stream over a transport, and waits for nothing.
    pub fn openStream(session: *Session, command: *const protocol.Command) !void {
        try session.allocate(command.limit);
        const inbox_size = command.inbox orelse inbox_size_min;
        session.inbox = try session.gpa.alignedAlloc(u8, .@"16", inbox_size);
        session.connection = try .open(session.gpa, command, .{
            .endpoint = .{ .host = session.host, .spin_us = command.spin_us },
            .inbox = session.inbox,
            .calls = command.calls,
        });
        session.port = &session.connection.?.stream.port;
        try session.begin(command);
    }

    /// Takes one side of a mailbox, which is all of the memory.
    pub fn openMailbox(session: *Session, memory: []u8, command: *const protocol.Command) !void {
        const side: millrace.Endpoint.Options = .{
            .host = session.host,
            .spin_us = command.spin_us,
        };
        if (command.role == .mailbox_reader) {
            session.mailbox_reader = try .init(memory, side);
            try session.allocate(command.limit);
        } else {
            session.mailbox_writer = try .init(memory, side);
        }
        session.opened = true;
    }

    /// Closes the end, where that has not happened, and gives its memory back.
    pub fn deinit(session: *Session) void {
        if (session.opened) session.close();
        if (session.calling) |own| own.destroy();
        if (session.connection) |connection| connection.destroy();
        session.gpa.free(session.channels);
        session.gpa.free(session.storage);
        session.gpa.free(session.seats);
        session.gpa.free(session.inbox);
        session.gpa.free(session.written);
        session.* = undefined;
    }

    fn allocate(session: *Session, limit: ?usize) !void {
        session.storage = try session.gpa.alloc(u8, limit orelse limit_default);
    }

    /// Makes room for messages of that size, unless a limit says otherwise or the storage is in
    /// use.
    pub fn reserve(session: *Session, size: usize) !void {
        if (session.limited or session.storage.len >= size) return;
        if (!session.hasReader() or session.partial()) return;
        session.gpa.free(session.storage);
        session.storage = &.{};
        session.storage = try session.gpa.alloc(u8, size);
        session.rest = null;
    }

    pub fn isMailbox(session: *const Session) bool {
        return session.role == .mailbox_reader or session.role == .mailbox_writer;
    }

    pub fn hasReader(session: *const Session) bool {
        return session.reader != null or session.role == .mailbox_reader or
            session.role == .fanout_reader;
    }

    pub fn hasWriter(session: *const Session) bool {
        return session.writer != null or session.role == .mailbox_writer or
            session.role == .fanout_writer;
    }

    fn partial(session: *const Session) bool {
        if (session.role == .mailbox_reader) return session.mailbox_reader.partial();
        if (session.role == .fanout_reader) return false;
        return session.reader.?.partial();
    }

    /// Reads one message into the storage, or null where there is none; of a pipe or a port.
    pub fn readMessage(session: *Session, timeout: Timeout) !?millrace.Message {
        if (session.calling) |own| return own.read(session.storage, timeout);
        if (session.role == .port) {
            if (!session.port.storageFits(session.storage)) return error.Refused;
            return session.port.read(session.storage, timeout);
        }
        const reader = session.reader orelse return error.Unoffered;
        if (reader.isLent() or reader.inProgress() and !reader.partial()) return error.Refused;
        return reader.read(session.storage, timeout);
    }

    /// Reads one message of a fanout into the storage.
    fn readFanout(session: *Session, timeout: Timeout) !?Item {
        const fanout = &session.fanout_reader;
        if (!fanout.readFits()) return error.Refused;
        const message = (try fanout.read(session.storage, timeout)) orelse return null;
        return .{
            .kind = @backingInt(message.kind),
            .codec = @backingInt(message.codec),
            .tag = message.tag,
            .hex = .{ .bytes = message.payload },
        };
    }

    /// Leaves a fanout that holds its writer back, and joins it again.
    pub fn leave(session: *Session) !void {
        if (session.role != .fanout_reader) return error.Unoffered;
        session.fanout_reader.leave();
    }

    pub fn join(session: *Session) !void {
        if (session.role != .fanout_reader) return error.Unoffered;
        if (session.fanout_reader.is_joined) return error.Refused;
        session.fanout_reader.join();
    }

    /// Reads one payload of a mailbox into the storage.
    pub fn readPayload(session: *Session, timeout: Timeout) !?[]u8 {
        return session.mailbox_reader.read(session.storage, timeout);
    }

    /// Reads what an application would see next, or null.
    pub fn read(session: *Session, arena: Allocator, timeout: Timeout) !?Item {
        if (!session.hasReader()) return error.Unoffered;
        if (session.role == .fanout_reader) return session.readFanout(timeout);
        if (try value.next(arena, &session.rest)) |item| return item;
        if (session.isMailbox()) {
            const payload = (try session.readPayload(timeout)) orelse return null;
            session.rest = try value.begin(arena, payload, 1, 0);
            return value.next(arena, &session.rest);
        }
        const message = (try session.readMessage(timeout)) orelse return null;
        if (session.values) return try value.decode(arena, message, &session.rest);
        return .{
            .kind = @backingInt(message.kind),
            .codec = @backingInt(message.codec),
            .tag = message.tag,
            .hex = .{ .bytes = message.payload },
        };
    }

    /// Reads again and again, up to a count of messages and of reports of lost ones.
    pub fn readMany(
        session: *Session,
        arena: Allocator,
        count: usize,
        timeout: Timeout,
    ) !protocol.Reply {
        const Entry = protocol.TakenMany.Entry;
        var entries: std.ArrayList(Entry) = .empty;
        var many: protocol.TakenMany = .{ .items = &.{} };
        while (entries.items.len < count and many.end == null) {
            const read_one = session.read(arena, timeout) catch |err| {
                const failure = session.failureOf(err) orelse return err;
                const is_report = std.mem.startsWith(u8, failure.code, "message.") or
                    std.mem.startsWith(u8, failure.code, "call.");
                if (is_report) {
                    try entries.append(arena, .{ .lost = .{ .report = failure.code } });
                } else {
                    many.end = failure.code;
                    many.reason = failure.reason;
                }
                continue;
            };
            if (read_one) |item| {
                try entries.append(arena, .{ .item = try item.dupe(arena) });
            } else {
                many.end = if (session.ended()) "ended" else "nothing";
            }
        }
        many.items = entries.items;
        return .{ .taken_many = many };
    }

    /// Whether the stream that it reads has ended. A mailbox has no such end.
    pub fn ended(session: *const Session) bool {
        if (session.calling) |own| return own.calls.ended();
        if (session.role == .fanout_reader) return session.fanout_reader.ended();
        if (session.role == .port) return session.port.ended();
        return if (session.reader) |reader| reader.ended() else false;
    }

    /// The reply that a read or a look gives.
    pub fn told(session: *const Session, item: ?Item) protocol.Reply {
        if (item) |there| return .{ .taken = .{ .item = there } };
        return .{ .end = .{ .end = if (session.ended()) .ended else .nothing } };
    }

    /// Borrows the next frame, without waiting.
    pub fn peek(session: *Session) !?Item {
        const reader = session.reader orelse return error.Unoffered;
        if (session.calling) |own| {
            if (own.calls.isLent()) return error.Refused;
            const lent = (try own.calls.peek(.none)) orelse return null;
            return .{
                .kind = @backingInt(lent.kind),
                .codec = @backingInt(lent.codec),
                .tag = lent.tag,
                .hex = .{ .bytes = lent.payload },
            };
        }
        const is_port = session.role == .port;
        const fits = if (is_port)
            session.port.peekFits()
        else
            !reader.isLent() and !reader.partial();
        if (!fits) return error.Refused;
        const found = if (is_port) try session.port.peek(.none) else try reader.peek(.none);
        const lent = found orelse return null;
        return .{
            .kind = @backingInt(lent.kind),
            .codec = @backingInt(lent.codec),
            .tag = lent.tag,
            .hex = .{ .bytes = lent.payload },
        };
    }

    /// Gives back what was borrowed.
    pub fn release(session: *Session) !void {
        const reader = session.reader orelse return error.Unoffered;
        if (session.calling) |own| {
            if (!own.calls.reader.isLent() and !own.calls.lent_note) return error.Refused;
            return own.calls.release();
        }
        if (session.role == .port) {
            if (!session.port.lent()) return error.Refused;
            return session.port.release();
        }
        if (!reader.isLent()) return error.Refused;
        reader.release();
    }

    /// Writes one message and waits for room. `error.Refused` where the caller must not ask.
    pub fn write(
        session: *Session,
        payload: []const u8,
        envelope: millrace.Envelope,
        timeout: Timeout,
    ) !void {
        if (session.isMailbox()) return session.writePayload(payload, timeout);
        if (session.role == .property_writer) {
            return properties.set(session, payload, envelope.codec);
        }
        if (session.role == .fanout_writer) {
            if (!envelope.valid()) return error.Refused;
            return session.fanout_writer.write(payload, envelope, timeout);
        }
        const writer = session.writer orelse return error.Unoffered;
        if (session.place != null) return error.Refused;
        // What follows is asserted by the writer, whose caller asks first.
        if (!envelope.valid()) return error.Refused;
        const is_batch = envelope.codec == .json_batch;
        if (is_batch and payload.len > writer.frameSizeMax()) return error.Refused;
        if (timeout == .none and payload.len > writer.trySizeMax()) return error.Refused;
        if (session.calling) |own| return own.calls.write(payload, envelope, timeout);
        if (session.role == .port) return session.port.write(payload, envelope, timeout);
        return writer.write(payload, envelope, timeout);
    }

    /// Writes a payload to a mailbox from a copy that stays, as long as it is under way.
    fn writePayload(session: *Session, payload: []const u8, timeout: Timeout) !void {
        if (session.role != .mailbox_writer) return error.Unoffered;
        if (session.mailbox_writer.partial()) return error.Refused;
        session.gpa.free(session.written);
        session.written = &.{};
        session.written = try session.gpa.dupe(u8, payload);
        if (!session.mailbox_writer.fits(session.written)) return error.Refused;
        return session.mailbox_writer.write(session.written, timeout);
    }

    /// Goes on with the payload that timed out, if one did.
    pub fn resumeWrite(session: *Session, timeout: Timeout) !void {
        if (session.role != .mailbox_writer) return error.Unoffered;
        if (!session.mailbox_writer.partial()) return;
        return session.mailbox_writer.write(session.written, timeout);
    }

    /// Claims `size` bytes where there is room now.
    pub fn claim(session: *Session, envelope: millrace.Envelope, size: usize) !void {
        const writer = session.writer orelse return error.Unoffered;
        if (session.place != null) return error.Refused;
        if (!envelope.valid() or size > writer.frameSizeMax()) return error.Refused;
        session.place = try writer.claim(@intCast(size), .none);
    }

    /// Fills the payload into the claimed place, and finishes the message.
    pub fn finish(session: *Session, payload: []const u8, envelope: millrace.Envelope) !void {
        const writer = session.writer orelse return error.Unoffered;
        const place = session.place orelse return error.Refused;
        if (payload.len > place.len) return error.Refused;
        @memcpy(place[0..payload.len], payload);
        session.place = null;
        writer.finish(@intCast(payload.len), envelope);
    }

    /// Gives the claimed place up.
    pub fn abandon(session: *Session) !void {
        const writer = session.writer orelse return error.Unoffered;
        if (session.place == null) return error.Refused;
        session.place = null;
        writer.abandon();
    }

    /// Publishes what is finished, if anything is.
    pub fn publish(session: *Session) !void {
        const writer = session.writer orelse return error.Unoffered;
        writer.publish();
    }

    /// Ends the stream that it writes.
    pub fn end(session: *Session) !void {
        if (session.role == .fanout_writer) return session.fanout_writer.end();
        const writer = session.writer orelse return error.Unoffered;
        if (session.place != null) return error.Refused;
        if (session.calling) |own| return own.calls.end(.none);
        return writer.end();
    }

    /// Gives the peer's endpoint back, whose owner is dead.
    pub fn vacate(session: *Session) !void {
        const given = switch (session.role) {
            .port => if (session.calling) |own| own.calls.vacate() else session.port.vacate(),
            .reader => millrace.vacate(&.{session.reader.?}, &.{}),
            .writer => millrace.vacate(&.{}, &.{session.writer.?}),
            else => return error.Unoffered,
        };
        if (!given) return error.Refused;
        session.place = null;
    }

    /// Closes the end; what follows is answered by the port.
    pub fn close(session: *Session) void {
        // The own close drops what was not delivered, and a batch was not as a whole [pipe.close].
        session.rest = null;
        session.place = null;
        switch (session.role) {
            .segment => {},
            .reader,
            .writer,
            .property_reader,
            .property_writer,
            .fanout_reader,
            .fanout_writer,
            => session.endpoint.close(),
            .port => {
                if (session.calling) |own| own.calls.close() else session.port.close();
                // For 2 s at most; nobody else does it.
                if (session.connection) |connection| connection.stream.deinit();
            },
            .mailbox_reader => session.mailbox_reader.close(),
            .mailbox_writer => session.mailbox_writer.close(),
        }
    }

    /// What was counted since it was opened. Nobody counts the wakes of a mailbox, and nobody
    /// anything of a stream.
    pub fn counted(session: *const Session) protocol.Counted {
        if (session.connection != null) return .{};
        return switch (session.role) {
            .mailbox_reader => countedSide(&session.mailbox_reader.side),
            .mailbox_writer => countedSide(&session.mailbox_writer.side),
            .port => countedEnd(session.port.stats()),
            else => countedEnd(session.endpoint.stats),
        };
    }

    fn countedSide(side: anytype) protocol.Counted {
        return .{ .parks = side.parks, .late_wakes = side.late_wakes };
    }

    fn countedEnd(stats: millrace.Stats) protocol.Counted {
        return .{ .parks = stats.parks, .wakes = stats.wakes, .late_wakes = stats.late_wakes };
    }

    /// What an error of the port is called, or null where it is none of the port's.
    pub fn failureOf(session: *const Session, err: anyerror) ?protocol.Failure {
        const behind = session.reason();
        const code = millrace.reasonOf(err) orelse {
            if (err != error.Corrupt) return null;
            return .{ .code = behind.?.name() };
        };
        const is_lost = code == .message_lost;
        return .{
            .code = code.name(),
            .reason = switch (code) {
                .pipe_failed, .peer_failed => .of(behind),
                else => null,
            },
            .count = if (is_lost) session.fanout_reader.lost() else null,
        };
    }

    fn reason(session: *const Session) ?millrace.Reason {
        if (!session.opened) return null;
        return switch (session.role) {
            .mailbox_reader => session.mailbox_reader.reason(),
            .mailbox_writer => session.mailbox_writer.reason(),
            .port => session.port.reason(),
            else => session.endpoint.behind,
        };
    }
};

/// The capacity of the ring that an endpoint reads; 0 where there is none, as the port will say.
fn capacityRead(segment: *const millrace.Segment, index: u32) usize {
    for (segment.channels) |channel| {
        if (channel.kind == .ring and channel.reader == index) return channel.data_size;
    }
    return 0;
}
