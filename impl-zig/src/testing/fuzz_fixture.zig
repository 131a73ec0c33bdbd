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
