//! What the kit and a testee say to one another: the JSON of `conformance/protocol/README.md`.
//!
//! A member that is not here has no meaning; one that is, and is of the wrong type, the kit never
//! sends, and a testee dies of it.

const std = @import("std");
const millrace = @import("millrace");
const streams = @import("streams.zig");
const Stringify = std.json.Stringify;

pub const version = 1;

pub const Carrier = enum { bytes, file, shared, mapped, stream };
pub const Kind = enum { attach, create };
pub const Role = enum {
    segment,
    reader,
    writer,
    port,
    mailbox_reader,
    mailbox_writer,
    property_reader,
    property_writer,
    fanout_reader,
    fanout_writer,
};
pub const Wait = enum { block, poll, event };

/// What every command has.
pub const Head = struct { id: u64, command: []const u8 };

/// The commands that are known.
pub const Name = enum {
    start,
    open,
    read,
    peek,
    release,
    write,
    claim,
    finish,
    abandon,
    publish,
    end,
    @"resume",
    call,
    notify,
    give_up,
    outcome,
    item,
    told,
    get,
    clear,
    changed,
    close,
    vacate,
    leave,
    join,
    patch,
    dump,
    drop,
    run,
};

/// The members of all commands but `start`; which of them a command has, the schema says.
pub const Command = struct {
    handle: u32,
    carrier: Carrier = .bytes,
    memory: Image = .{ .size = 0, .bytes = &.{} },
    memory_offset: usize = 0,
    path: []const u8 = "",
    name: []const u8 = "",
    transport: streams.Transport = .unix,
    tcp_port: u16 = 0,
    path_out: []const u8 = "",
    largest: u32 = 0,
    window: u32 = 0,
    kind: Kind = .attach,
    geometry: Geometry = .{ .endpoints = 0, .channels = &.{} },
    sole_owner: bool = false,
    role: Role = .segment,
    endpoint: ?u32 = null,
    channel: ?u32 = null,
    property: []const u8 = "",
    limit: ?usize = null,
    oldest: bool = false,
    calls: bool = false,
    values: bool = false,
    serves: bool = false,
    methods: bool = true,
    first_id: u32 = 1,
    spin_us: ?u32 = null,
    inbox: ?usize = null,
    timeout_ms: ?u32 = null,
    count: ?usize = null,
    wait: ?Wait = null,
    message: Outgoing = .{ .kind = 1, .codec = 0, .tag = 0, .hex = "" },
    size: ?usize = null,
    abandon: bool = false,
    open: bool = false,
    bytes: []const Run = &.{},
    from: usize = 0,
    task: ?Task = null,
};

/// The members of the commands of the chapter `call`.
pub const Calling = struct {
    name: []const u8 = "",
    values: []const Value = &.{},
    items: bool = false,
    call: usize = 0,
    timeout_ms: ?u32 = null,
};

/// A value of a list: exactly one of the first three, or none for an absent one.
pub const Value = struct {
    text: ?[]const u8 = null,
    /// Empty where there is none: null is a value.
    json: Raw = .{ .text = "" },
    hex: ?[]const u8 = null,
    codec: u32 = 0,
};

pub const Image = struct { size: usize, bytes: []const Run };
pub const Run = struct { offset: usize, hex: []const u8 };

pub const Geometry = struct {
    endpoints: u32,
    channels: []const Ring,

    pub const Ring = struct {
        writer: u32,
        reader: u32,
        capacity: u32,
        label: u32 = 0,
        start: u32 = 0,
        kind: u32 = millrace.layout.channel_kind_ring,
        name: []const u8 = "",
        /// Of a fanout.
        readers: ?u32 = null,
    };
};

/// A message to write: its encoded payload, whatever its codec.
pub const Outgoing = struct {
    kind: u32,
    codec: u32,
    tag: u32,
    hex: []const u8,

    pub fn envelope(message: Outgoing) millrace.Envelope {
        return .{
            .kind = @fromBackingInt(message.kind),
            .codec = @fromBackingInt(message.codec),
            .tag = message.tag,
        };
    }
};

pub const Task = struct {
    role: TaskRole,
    seed: u32,
    capacity: u32,
    count: ?u64 = null,
    wait: Wait,
    then: Then,
    delay_us: ?u64 = null,
    delay_every: u64 = 1,
    lossy: bool = false,
    record: bool = false,
    depth: u32 = 0,
    width: u32 = 1,
    plain: bool = false,
};

pub const TaskRole = enum { write, read, echo, drive, cross, tree };
pub const Then = enum { end, close, stay };

/// Reads JSON into a structure of this file, in memory of the arena.
pub fn parse(comptime T: type, arena: std.mem.Allocator, text: []const u8) !T {
    return std.json.parseFromSliceLeaky(T, arena, text, .{ .ignore_unknown_fields = true });
}

/// Returns the bytes that a text in hexadecimal stands for.
pub fn fromHex(arena: std.mem.Allocator, hex: []const u8) ![]u8 {
    return std.fmt.hexToBytes(try arena.alloc(u8, hex.len / 2), hex);
}

/// What a command comes to.
pub const Reply = union(enum) {
    hello: Hello,
    done: struct { outcome: Outcome },
    taken: struct { item: Item },
    taken_many: TakenMany,
    end: struct { end: End },
    bytes: struct { hex: Hex },
    ran: Ran,
    settled: Settled,
    told: struct { count: u32 },
    gotten: struct { version: u32, item: ?Item = null },
    @"error": Failure,
    /// Why the testee cannot do it.
    decline: []const u8,

    pub const ok: Reply = outcome(.ok);
    pub const full: Reply = outcome(.full);
    pub const refused: Reply = outcome(.refused);

    fn outcome(of: Outcome) Reply {
        return .{ .done = .{ .outcome = of } };
    }

    /// Writes the reply to the command with this id, without a line break.
    pub fn write(reply: Reply, id: u64, writer: *std.Io.Writer) !void {
        var json: Stringify = .{
            .writer = writer,
            .options = .{ .emit_null_optional_fields = false },
        };
        try json.beginObject();
        try json.objectField("id");
        try json.write(id);
        try json.objectField(switch (reply) {
            .@"error" => "error",
            .decline => "decline",
            else => "result",
        });
        switch (reply) {
            inline else => |what| try json.write(what),
        }
        try json.endObject();
    }
};

pub const Outcome = enum { ok, full, refused };
pub const End = enum { nothing, ended };

/// The chapters that this implementation has wherever it runs.
pub const nouns = [_][]const u8{
    "segment", "wait",     "frame",  "ring", "mailbox", "codec", "pipe", "port",
    "call",    "property", "fanout",
};

/// What a testee says of itself. Lists of names as they stand in the protocol.
pub const Hello = struct {
    protocol: u32 = version,
    name: []const u8,
    version: []const u8,
    language: []const u8 = "Zig",
    levels: []const []const u8,
    nouns: []const []const u8 = &nouns,
    carriers: []const Carrier,
    waits: []const Wait = &.{ .block, .poll },
    streams: ?streams.Hello = null,
    // Its types demand aligned memory; it moves bytes, and so knows every codec; and the parser of
    // the standard library, which judges JSON here, takes half of a surrogate pair for an error.
    lacks: []const []const u8 = &.{
        "alignment",
        "unknown_codec",
        "cbor",
        "surrogates",
    },
    offers: []const []const u8 = &.{ "read_many", "ways", "inbox", "lossy" },
};

/// A message as it is told: exactly one of the last three.
pub const Item = struct {
    kind: u32,
    codec: u32,
    tag: u32,
    hex: ?Hex = null,
    text: ?[]const u8 = null,
    json: ?Raw = null,

    /// A copy that stays when the next message is read to where this one lies.
    pub fn dupe(item: Item, arena: std.mem.Allocator) !Item {
        var copy = item;
        if (item.hex) |hex| copy.hex = .{ .bytes = try arena.dupe(u8, hex.bytes) };
        if (item.text) |text| copy.text = try arena.dupe(u8, text);
        if (item.json) |json| copy.json = .{ .text = try arena.dupe(u8, json.text) };
        return copy;
    }
};

/// What many reads gave, and what ended them where not as much came as was asked for.
pub const TakenMany = struct {
    items: []const Entry,
    end: ?[]const u8 = null,
    reason: ?Reason = null,

    pub const Entry = union(enum) {
        item: Item,
        lost: struct { report: [:0]const u8 },

        pub fn jsonStringify(entry: Entry, json: *Stringify) !void {
            switch (entry) {
                inline else => |what| try json.write(what),
            }
        }
    };
};

/// What has come of a call.
pub const Settled = struct {
    outcome: []const u8,
    value: ?Shown = null,
    @"error": ?Thrown = null,

    pub const Thrown = struct { name: []const u8, text: []const u8, data: ?Shown = null };
};

/// A value of a list, as it is told: none of these for an absent one.
pub const Shown = struct {
    json: ?Raw = null,
    hex: ?Hex = null,
    codec: ?u32 = null,
};

pub const Failure = struct {
    code: [:0]const u8,
    reason: ?Reason = null,
    /// Beside `message.lost`.
    count: ?u64 = null,
};

/// What stands beside `pipe.failed` and `peer.failed`.
pub const Reason = union(enum) {
    name: [:0]const u8,
    number: u32,

    pub fn of(found: ?millrace.Reason) Reason {
        const reason = found orelse return .{ .name = "none" };
        return switch (reason) {
            _ => .{ .number = @backingInt(reason) },
            else => .{ .name = reason.name() },
        };
    }

    pub fn jsonStringify(reason: Reason, json: *Stringify) !void {
        switch (reason) {
            inline else => |what| try json.write(what),
        }
    }
};

/// What an end has counted, as far as that is known.
pub const Counted = struct {
    parks: ?u64 = null,
    wakes: ?u64 = null,
    late_wakes: ?u64 = null,
};

/// How a task went.
pub const Ran = struct {
    count: u64,
    size: u64,
    crc32: u32,
    end: [:0]const u8,
    reason: ?Reason = null,
    parks: ?u64 = null,
    wakes: ?u64 = null,
    late_wakes: ?u64 = null,
    lost: ?u64 = null,
    record: ?[]const [3]u32 = null,
};

/// Bytes, in lower case and without spaces.
pub const Hex = struct {
    bytes: []const u8,

    pub fn jsonStringify(hex: Hex, json: *Stringify) !void {
        try json.beginWriteRaw();
        try json.writer.print("\"{x}\"", .{hex.bytes});
        json.endWriteRaw();
    }
};

/// Valid JSON without white space, so that it stands on one line.
pub const Raw = struct {
    text: []const u8,

    /// Takes any value as it stands, except white space.
    pub fn jsonParse(
        arena: std.mem.Allocator,
        source: anytype,
        options: std.json.ParseOptions,
    ) !Raw {
        const parsed: std.json.Value = try .jsonParse(arena, source, options);
        return .{ .text = try std.json.Stringify.valueAlloc(arena, parsed, .{}) };
    }

    pub fn jsonStringify(raw: Raw, json: *Stringify) !void {
        try json.beginWriteRaw();
        try json.writer.writeAll(raw.text);
        json.endWriteRaw();
    }
};
