//! Shared by the fuzz targets. A target checks a claim about any bytes at all. `fuzz` passes it the
//! bytes of the static cases, and then many inputs that differ a little from them.
//!
//! In an ordinary run, the differences come from a seed, which is printed if a check fails. Under
//! `zig build fuzz --fuzz`, the compiler's own fuzzer makes them, guided by the code that they
//! reach.

const std = @import("std");
const builtin = @import("builtin");
const layout = @import("../memory/layout.zig");
const assert = std.debug.assert;
const Random = std.Random;
const Reason = layout.Reason;
const Smith = std.testing.Smith;

/// The memory of a static case, and the endpoint that looks at it.
pub const Case = struct {
    id: []const u8,
    role: Role,
    endpoint: u32,
    /// Null if the case names no channel.
    channel: ?u32,
    limit: u32,
    calls: bool,
    memory: []const u8,

    pub const Role = enum { segment, reader, writer, port, mailbox_reader, mailbox_writer };
};

/// The static cases, as `fuzz_corpus.txt` tells them.
pub const Corpus = struct {
    arena: std.heap.ArenaAllocator,
    cases: []const Case,

    const text = @embedFile("fuzz_corpus.txt");

    pub fn load() !Corpus {
        // Not the allocator of the tests, which the fuzzer resets for each input.
        var arena: std.heap.ArenaAllocator = .init(std.heap.page_allocator);
        errdefer arena.deinit();
        const allocator = arena.allocator();
        var cases: std.ArrayList(Case) = .empty;
        var by_id: std.StringHashMap([]const u8) = .init(allocator);
        var lines = std.mem.tokenizeScalar(u8, text, '\n');
        while (lines.next()) |line| {
            if (line[0] == '#') continue;
            const case = try parse(allocator, line, &by_id);
            try by_id.put(case.id, case.memory);
            try cases.append(allocator, case);
        }
        return .{ .arena = arena, .cases = cases.items };
    }

    pub fn deinit(corpus: *Corpus) void {
        corpus.arena.deinit();
    }

    fn parse(
        allocator: std.mem.Allocator,
        line: []const u8,
        by_id: *const std.StringHashMap([]const u8),
    ) !Case {
        var words = std.mem.tokenizeScalar(u8, line, ' ');
        const id = words.next().?;
        const role = std.meta.stringToEnum(Case.Role, words.next().?).?;
        var numbers: [5]i64 = undefined;
        for (&numbers) |*number| number.* = try std.fmt.parseInt(i64, words.next().?, 10);
        const memory = try allocator.alloc(u8, @intCast(numbers[4]));
        @memset(memory, 0);
        while (words.next()) |word| {
            if (word[0] == '=') {
                @memcpy(memory, by_id.get(word[1..]).?);
                continue;
            }
            const colon = std.mem.findScalar(u8, word, ':').?;
            const offset = try std.fmt.parseInt(usize, word[0..colon], 10);
            _ = try std.fmt.hexToBytes(memory[offset..], word[colon + 1 ..]);
        }
        return .{
            .id = id,
            .role = role,
            .endpoint = @intCast(numbers[0]),
            .channel = if (numbers[1] < 0) null else @intCast(numbers[1]),
            .limit = @intCast(numbers[2]),
            .calls = numbers[3] != 0,
            .memory = memory,
        };
    }
};

/// Runs a target: a struct with
///   `name`: for reports;
///   `size_max`: the largest input;
///   `seed(case, target) ?usize`: writes the input that stands for a static case into `target`, of
///     `size_max` bytes, and returns its size, or null where the case has nothing to do with it;
///   `check(input) !void`: fails where something that is said about every input does not hold;
///   `quiet`: whether a failure is not reported, being what the test wants;
///   `tokens`, optional: bytes that are inserted where the inputs are texts of some kind;
///   `more`, optional: inputs that stand for no case.
pub fn fuzz(comptime Target: type, mutation_count: usize) !void {
    var corpus: Corpus = try .load();
    defer corpus.deinit();
    const inputs = try inputsOf(Target, &corpus);
    try std.testing.fuzz({}, struct {
        fn one(_: void, smith: *Smith) anyerror!void {
            var buffer: [Target.size_max]u8 = undefined;
            const input = buffer[0..smith.slice(&buffer)];
            Target.check(input) catch |err| {
                std.debug.print("{s}: {t} for {x}\n", .{ Target.name, err, input });
                return err;
            };
        }
    }.one, .{ .corpus = inputs });
    if (builtin.fuzz) return;
    for (0..mutation_count) |seed| try checkMutant(Target, inputs, seed);
}

/// Returns the inputs in the form that the fuzzer expects, with the size before the bytes.
pub fn inputsOf(comptime Target: type, corpus: *Corpus) ![]const []const u8 {
    const allocator = corpus.arena.allocator();
    var inputs: std.ArrayList([]const u8) = .empty;
    for (corpus.cases) |case| {
        var buffer: [4 + Target.size_max]u8 = undefined;
        const size = Target.seed(case, buffer[4..]) orelse continue;
        std.mem.writeInt(u32, buffer[0..4], @intCast(size), .little);
        try inputs.append(allocator, try allocator.dupe(u8, buffer[0 .. 4 + size]));
    }
    if (@hasDecl(Target, "more")) for (Target.more) |input| {
        const sized = try allocator.alloc(u8, 4 + input.len);
        std.mem.writeInt(u32, sized[0..4], @intCast(input.len), .little);
        @memcpy(sized[4..], input);
        try inputs.append(allocator, sized);
    };
    assert(inputs.items.len > 0);
    return inputs.items;
}

/// Checks the mutant with that number.
pub fn checkMutant(comptime Target: type, inputs: []const []const u8, seed: usize) !void {
    var prng: Random.DefaultPrng = .init(seed);
    const random = prng.random();
    var buffer: [Target.size_max]u8 = undefined;
    const parent = inputs[random.uintLessThan(usize, inputs.len)][4..];
    const other = inputs[random.uintLessThan(usize, inputs.len)][4..];
    @memcpy(buffer[0..parent.len], parent);
    const tokens: []const []const u8 = if (@hasDecl(Target, "tokens")) Target.tokens else &.{};
    const input = buffer[0..mutate(random, &buffer, parent.len, other, tokens)];
    Target.check(input) catch |err| {
        const report = "{s}: {t} for mutant {}: {x}\n";
        if (!Target.quiet) std.debug.print(report, .{ Target.name, err, seed, input });
        return err;
    };
}

/// Numbers at which checks change their result.
const edges = [_]u32{
    0,   1,    2,    3,           4,           5,           6,           7,
    8,   15,   16,   17,          31,          32,          33,          48,
    64,  96,   111,  112,         113,         127,         128,         129,
    240, 255,  256,  257,         272,         384,         511,         512,
    513, 1023, 1024, 1280,        2048,        4096,        0xffff,      0x1_0000,
    47,  34,   35,   0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_0000,
    36,  37,   100,  0xffff_ff00, 0xffff_ff80, 0xffff_fff0, 0xffff_fffe, 0xffff_ffff,
};

/// Changes a few places of the input in the buffer. Returns its new size.
fn mutate(
    random: Random,
    buffer: []u8,
    size: usize,
    other: []const u8,
    tokens: []const []const u8,
) usize {
    var len = size;
    // Usually one change, because most inputs should pass all checks but one.
    const change_count = @as(usize, 1) << random.uintLessThan(u3, 5) >> 1;
    for (0..@max(1, change_count)) |_| {
        if (len < 4) {
            random.bytes(buffer[len..4]);
            len = 4;
        }
        len = if (tokens.len > 0 and random.boolean())
            insert(random, buffer, len, tokens[random.uintLessThan(usize, tokens.len)])
        else
            change(random, buffer, len, other);
    }
    return len;
}

fn insert(random: Random, buffer: []u8, size: usize, token: []const u8) usize {
    if (size + token.len > buffer.len) return size;
    const at = random.uintAtMost(usize, size);
    @memmove(buffer[at + token.len ..][0 .. size - at], buffer[at..size]);
    @memcpy(buffer[at..][0..token.len], token);
    return size + token.len;
}

fn change(random: Random, buffer: []u8, size: usize, other: []const u8) usize {
    const input = buffer[0..size];
    const at = random.uintLessThan(usize, size);
    const word = input[random.uintLessThan(usize, size / 4) * 4 ..][0..4];
    const old = std.mem.readInt(u32, word, .little);
    switch (random.uintLessThan(u32, 13)) {
        0 => input[at] ^= @as(u8, 1) << random.int(u3),
        1 => input[at] = random.int(u8),
        2 => input[at] = @truncate(edges[random.uintLessThan(usize, edges.len)]),
        3, 4 => std.mem.writeInt(u32, word, edges[random.uintLessThan(usize, edges.len)], .little),
        5 => std.mem.writeInt(u32, word, old +% 16, .little),
        6 => std.mem.writeInt(u32, word, old -% 16, .little),
        7 => std.mem.writeInt(u32, word, old +% random.uintLessThan(u32, 9) -% 4, .little),
        8 => copyRows(random, input),
        // A part of another input, at the same place or at another one.
        9 => if (other.len > 0) {
            const from = random.uintLessThan(usize, other.len);
            const to = if (random.boolean()) @min(from, at) else at;
            const count = random.uintAtMost(usize, @min(64, other.len - from, size - to));
            @memcpy(input[to..][0..count], other[from..][0..count]);
        },
        10 => @memset(input[at..][0..random.uintAtMost(usize, @min(64, size - at))], 0),
        11 => random.bytes(input[at..@min(size, at + 4)]),
        else => {
            if (random.boolean()) return @max(1, at);
            const count = random.uintAtMost(usize, @min(64, buffer.len - size));
            random.bytes(buffer[size..][0..count]);
            return size + count;
        },
    }
    return size;
}

/// Copies rows of 16 bytes to another place; frames and descriptors consist of such rows.
fn copyRows(random: Random, input: []u8) void {
    const row_count = input.len / 16;
    if (row_count == 0) return;
    const from = random.uintLessThan(usize, row_count) * 16;
    const to = random.uintLessThan(usize, row_count) * 16;
    const size = 16 * random.intRangeAtMost(usize, 1, 5);
    const count = @min(size, input.len - @max(from, to));
    @memmove(input[to..][0..count], input[from..][0..count]);
}

/// Takes little-endian numbers from the front of an input; 0 after its end.
pub const Source = struct {
    rest: []const u8,

    pub fn int(source: *Source, comptime T: type) T {
        var bytes: [@sizeOf(T)]u8 = @splat(0);
        const size = @min(bytes.len, source.rest.len);
        @memcpy(bytes[0..size], source.rest[0..size]);
        source.rest = source.rest[size..];
        return std.mem.readInt(T, &bytes, .little);
    }

    /// Returns a number below `limit`.
    pub fn below(source: *Source, limit: u32) u32 {
        return source.int(u16) % limit;
    }
};

pub fn wordAt(bytes: []const u8, offset: usize) u32 {
    return std.mem.readInt(u32, bytes[offset..][0..4], .little);
}

pub fn putWord(bytes: []u8, offset: usize, value: u32) void {
    std.mem.writeInt(u32, bytes[offset..][0..4], value, .little);
}

/// The reasons that the inputs of a target have led to: a target that never passes the first check
/// tests nothing.
pub const Reached = struct {
    counts: [128]u64 = @splat(0),

    pub fn add(reached: *Reached, why: layout.Reason) void {
        reached.counts[@backingInt(why)] += 1;
    }

    /// Fails unless each of these reasons was reached. Not under the fuzzer, which measures
    /// coverage itself and starts with few inputs.
    pub fn expect(reached: *const Reached, reasons: []const layout.Reason) !void {
        if (builtin.fuzz) return;
        for (reasons) |why| {
            if (reached.counts[@backingInt(why)] > 0) continue;
            std.debug.print("never reached: {s}\n", .{why.name()});
            return error.NeverReached;
        }
    }
};

test "fuzz: the corpus holds the memories of the static cases, and each change of them" {
    var corpus: Corpus = try .load();
    defer corpus.deinit();
    try std.testing.expect(corpus.cases.len > 400);
    for (corpus.cases) |case| {
        if (!std.mem.eql(u8, case.id, "segment/major_two")) continue;
        try std.testing.expectEqual(2, case.memory[layout.segment_version_major_offset]);
        try std.testing.expectEqualStrings("MILLRACE", case.memory[0..8]);
        return;
    }
    return error.NoCase;
}

// What the table in spec/segment.md says of a segment, row by row: slow and obvious, to be
// compared with the implementation.

/// Returns the code of the first check that fails for an endpoint that does not wait, or null.
pub fn judge(memory: []const u8) ?Reason {
    if (memory.len < layout.segment_size_min) return .segment_size;
    const ready = wordAt(memory, layout.segment_ready_offset);
    if (ready > layout.segment_ready_ready) return .segment_magic;
    if (ready != layout.segment_ready_ready) return .segment_unready;
    if (!std.mem.eql(u8, memory[0..8], "MILLRACE")) return .segment_magic;
    const major = wordAt(memory, layout.segment_version_major_offset) & 0xffff;
    if (major != 1) return .segment_version;
    if (wordAt(memory, layout.segment_required_features_offset) != 0) return .segment_feature;
    const size = wordAt(memory, layout.segment_size_offset);
    if (size % 128 != 0 or size > memory.len) return .segment_size;
    const endpoint_count = wordAt(memory, layout.segment_endpoint_count_offset);
    const channel_count = wordAt(memory, layout.segment_channel_count_offset);
    if (endpoint_count < 1 or endpoint_count > 256 or channel_count > 1024) return .segment_table;
    const tables_end = 128 + 128 * @as(u64, endpoint_count) + 64 * @as(u64, channel_count);
    if (tables_end > size) return .segment_table;
    for (0..channel_count) |index| {
        const channel = channelAt(memory, @intCast(index));
        for (channel.areas) |area| {
            if (area.offset % 128 != 0 or area.offset < tables_end) return .segment_channel;
            if (area.offset + area.size > size) return .segment_channel;
        }
        if (channel.kind == layout.channel_kind_ring) {
            const capacity = channel.areas[1].size;
            if (channel.writer >= endpoint_count) return .segment_channel;
            if (channel.reader >= endpoint_count) return .segment_channel;
            if (channel.writer == channel.reader) return .segment_channel;
            if (channel.areas[0].size < 512) return .segment_channel;
            if (capacity < 256 or capacity > 1 << 30) return .segment_channel;
            if (@popCount(capacity) != 1) return .segment_channel;
            if (channel.start % 16 != 0) return .segment_channel;
        }
    }
    for (0..2 * channel_count) |first| {
        for (first + 1..2 * channel_count) |second| {
            const a = channelAt(memory, @intCast(first / 2)).areas[first % 2];
            const b = channelAt(memory, @intCast(second / 2)).areas[second % 2];
            if (a.size == 0 or b.size == 0) continue;
            const apart = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset;
            if (!apart) return .segment_channel;
        }
    }
    return null;
}

pub const Area = struct { offset: u64, size: u64 };

pub const Channel = struct {
    kind: u32,
    writer: u32,
    reader: u32,
    /// The control area and the byte area.
    areas: [2]Area,
    start: u32,
};

/// Returns what a descriptor says. The descriptor must lie in the memory.
pub fn channelAt(memory: []const u8, index: u32) Channel {
    const endpoint_count = wordAt(memory, layout.segment_endpoint_count_offset);
    const descriptor = memory[128 + 128 * endpoint_count + 64 * index ..];
    return .{
        .kind = wordAt(descriptor, layout.channel_kind_offset),
        .writer = wordAt(descriptor, layout.channel_writer_offset),
        .reader = wordAt(descriptor, layout.channel_reader_offset),
        .areas = .{
            .{
                .offset = wordAt(descriptor, layout.channel_control_offset_offset),
                .size = wordAt(descriptor, layout.channel_control_size_offset),
            },
            .{
                .offset = wordAt(descriptor, layout.channel_data_offset_offset),
                .size = wordAt(descriptor, layout.channel_data_size_offset),
            },
        },
        .start = wordAt(descriptor, layout.channel_start_offset),
    };
}

// What a reader must find in a ring, by the tables of spec/frame.md, spec/ring.md and
// spec/pipe.md, row by row: slow and obvious, to be compared with the implementation.

/// The total of a message whose size the writer did not know.
const unknown = 0xffff_ffff_ffff_ffff;

pub const Message = struct { payload: []const u8, kind: u8, codec: u8, tag: u32 };

/// What one call finds.
pub const Found = union(enum) {
    message: Message,
    /// A message that was lost.
    report: Reason,
    nothing,
    ended,
    fault: Reason,
};

/// A reader of a ring whose `tail` does not move.
pub const Model = struct {
    area: []const u8,
    /// The position of the next frame, and the end of what was published.
    head: u32,
    tail: u32,
    /// The largest message that is accepted.
    limit: u64,
    calls: bool,
    ended: bool = false,
    fault: ?Reason = null,
    progress: ?Progress = null,
    parts: [8192]u8 = undefined,
    /// Where the first frames that passed all checks start, in order.
    begins: [256]u32 = undefined,
    begin_count: usize = 0,

    const Progress = struct {
        kind: u8,
        codec: u8,
        tag: u32,
        total: u64,
        size: u64,
        /// Dropped, with its loss reported.
        dropped: bool,
    };

    const Frame = struct {
        size: u32,
        kind: u8,
        flags: u8,
        codec: u8,
        reserved: u8,
        tag: u32,
        offset: u32,

        fn isMessage(frame: Frame) bool {
            return frame.kind == 1 or frame.kind >= 3 and frame.kind <= 5;
        }

        fn extent(frame: Frame) u64 {
            return 16 + (@as(u64, frame.size) + 15) / 16 * 16;
        }

        /// The flags without `extended`.
        fn part(frame: Frame) u8 {
            return frame.flags & ~@as(u8, 8);
        }
    };

    pub fn next(model: *Model) Found {
        if (model.fault) |why| return .{ .fault = why };
        if (model.ended) return .ended;
        if (cursorFault(model.head, model.tail, model.area.len)) {
            model.fault = .ring_cursor;
            return model.next();
        }
        while (model.head != model.tail) {
            const frame = model.frameAt();
            if (model.judge(frame)) |why| {
                model.fault = why;
                return model.next();
            }
            if (model.begin_count < model.begins.len) {
                model.begins[model.begin_count] = model.head;
                model.begin_count += 1;
            }
            model.head +%= @intCast(frame.extent());
            if (model.take(frame)) |found| return found;
        }
        return .nothing;
    }

    fn cursorFault(head: u32, tail: u32, capacity: usize) bool {
        return tail % 16 != 0 or tail -% head > capacity;
    }

    fn frameAt(model: *const Model) Frame {
        const offset: u32 = @intCast(model.head % model.area.len);
        const header = model.area[offset..][0..16];
        return .{
            .size = std.mem.readInt(u32, header[0..4], .little),
            .kind = header[4],
            .flags = header[5],
            .codec = header[6],
            .reserved = header[7],
            .tag = std.mem.readInt(u32, header[8..12], .little),
            .offset = offset,
        };
    }

    /// The table of frame.md, in its order.
    fn judge(model: *const Model, frame: Frame) ?Reason {
        const capacity = model.area.len;
        const available = model.tail -% model.head;
        const to_end = capacity - frame.offset;
        const kind = frame.kind;
        if (!(kind >= 1 and kind <= 6 or kind >= 128)) return .frame_kind;
        if (kind <= 6 and frame.reserved != 0) return .frame_reserved;
        if ((kind == 2 or kind == 6) and frame.flags != 0) return .frame_flags;
        if (frame.isMessage()) {
            switch (frame.flags) {
                0, 1, 2, 3, 6, 8, 9, 10, 11 => {},
                else => return .frame_flags,
            }
            if (frame.codec == 3 and frame.part() != 3) return .frame_flags;
        }
        if (frame.extent() > available or frame.extent() > to_end) return .frame_size;
        if (kind != 6 and frame.extent() > capacity / 2) return .frame_size;
        if (kind == 6 and frame.extent() != to_end) return .frame_pad;
        if (kind == 2 and frame.size != 0) return .frame_size;
        if (!frame.isMessage()) return null;
        if (frame.flags & 8 != 0) {
            if (frame.size < 16) return .frame_extension;
            const extension = model.extensionOf(frame);
            if (extension < 16 or extension % 16 != 0) return .frame_extension;
            if (extension > frame.size) return .frame_extension;
        }
        const size = frame.size - model.extensionOf(frame);
        switch (frame.part()) {
            6 => if (size != 0) return .frame_size,
            1 => if (size < 16) return .frame_size,
            0, 2 => if (size < 1) return .frame_size,
            else => {},
        }
        const is_first = frame.flags & 1 != 0;
        if (is_first != (model.progress == null)) return .frame_sequence;
        if (!is_first) {
            const progress = model.progress.?;
            if (kind != progress.kind) return .frame_sequence;
            if (frame.codec != progress.codec) return .frame_sequence;
            if (frame.tag != progress.tag) return .frame_sequence;
        }
        if (frame.part() == 1) {
            const preamble = model.payloadOf(frame);
            if (!std.mem.allEqual(u8, preamble[8..16], 0)) return .frame_reserved;
            const total = std.mem.readInt(u64, preamble[0..8], .little);
            if (total != unknown and size - 16 > total) return .frame_total;
        }
        if ((frame.part() == 0 or frame.part() == 2) and !model.progress.?.dropped) {
            const sum = model.progress.?.size + size;
            const total = model.progress.?.total;
            if (total != unknown and sum > total) return .frame_total;
            if (total != unknown and frame.part() == 2 and sum != total) return .frame_total;
        }
        return null;
    }

    /// Bytes of the header extension.
    fn extensionOf(model: *const Model, frame: Frame) u32 {
        if (frame.flags & 8 == 0) return 0;
        return std.mem.readInt(u32, model.area[frame.offset + 16 ..][0..4], .little);
    }

    /// Returns the payload without its header extension.
    fn payloadOf(model: *const Model, frame: Frame) []const u8 {
        return model.area[frame.offset + 16 ..][0..frame.size][model.extensionOf(frame)..];
    }

    /// Handles a valid frame. Returns null if the caller learns nothing of it.
    fn take(model: *Model, frame: Frame) ?Found {
        if (frame.kind == 6 or frame.kind >= 128) return null;
        if (frame.kind == 2) {
            model.ended = true;
            const progress = model.progress orelse return .ended;
            model.progress = null;
            return if (progress.dropped) .ended else .{ .report = .message_truncated };
        }
        const payload = model.payloadOf(frame);
        const strange = frame.kind != 1 and !model.calls;
        switch (frame.part()) {
            3 => {
                if (strange) return .{ .report = .message_kind };
                if (payload.len > model.limit) return .{ .report = .message_size };
                return model.deliver(frame, payload);
            },
            1 => {
                const total = std.mem.readInt(u64, payload[0..8], .little);
                const known = if (total == unknown) payload.len - 16 else total;
                const why: ?Reason = if (strange)
                    .message_kind
                else if (known > model.limit) .message_size else null;
                model.progress = .{
                    .kind = frame.kind,
                    .codec = frame.codec,
                    .tag = frame.tag,
                    .total = total,
                    .size = 0,
                    .dropped = why != null,
                };
                if (why) |reason| return .{ .report = reason };
                model.keep(payload[16..]);
                return null;
            },
            6 => {
                const dropped = model.progress.?.dropped;
                model.progress = null;
                return if (dropped) null else .{ .report = .message_cancelled };
            },
            else => {
                const last = frame.part() == 2;
                const before = model.progress.?;
                const large = before.total == unknown and before.size + payload.len > model.limit;
                if (large and !before.dropped) {
                    if (last) model.progress = null else model.progress.?.dropped = true;
                    return .{ .report = .message_size };
                }
                if (!before.dropped) model.keep(payload);
                if (!last) return null;
                const progress = model.progress.?;
                model.progress = null;
                if (progress.dropped) return null;
                return model.deliver(frame, model.parts[0..@intCast(progress.size)]);
            },
        }
    }

    fn keep(model: *Model, part: []const u8) void {
        const progress = &model.progress.?;
        @memcpy(model.parts[@intCast(progress.size)..][0..part.len], part);
        progress.size += part.len;
    }

    fn deliver(_: *const Model, frame: Frame, payload: []const u8) Found {
        return .{ .message = .{
            .payload = payload,
            .kind = frame.kind,
            .codec = frame.codec,
            .tag = frame.tag,
        } };
    }
};
