//! The native driver: measures Millrace, its rivals and the machine's floors between two threads,
//! and between two processes, as the runner asks for it line by line. See `bench/README.md`.

const std = @import("std");
const builtin = @import("builtin");
const alone = @import("alone.zig");
const ends = @import("ends.zig");
const peer_floor = @import("peer_floor.zig");
const peer_millrace = @import("peer_millrace.zig");
const peer_rival = @import("peer_rival.zig");
const protocol = @import("protocol.zig");
const runs = @import("runs.zig");
const serve = @import("serve.zig");
const Histogram = @import("histogram.zig").Histogram;

const peers = .{
    .{ "millrace-zig", peer_millrace.Copying },
    .{ "millrace-zig-lend", peer_millrace.Lending },
    .{ "millrace-digest", alone.Digest },
    .{ "millrace-pool", alone.Workers(2) },
    .{ "millrace-pool-one", alone.Workers(1) },
    .{ "millrace-c", peer_millrace.C },
    .{ "floor-cacheline", peer_floor.CacheLine },
    .{ "floor-frame", peer_floor.Frames },
    .{ "floor-futex", peer_floor.Futex },
    .{ "floor-memcpy", alone.Copy },
    .{ "mutex-queue", peer_rival.MutexQueue },
    .{ "unix-socket", peer_rival.Socket },
    .{ "fifo", peer_rival.Fifo },
    .{ "pipe", peer_rival.Pipe },
};

const peer_names: [peers.len][]const u8 = names: {
    var names: [peers.len][]const u8 = undefined;
    for (peers, &names) |peer, *name| name.* = peer[0];
    break :names names;
};

const line_size_max = 64 << 10;
var histograms: [3]Histogram = undefined;

pub fn main(init: std.process.Init) !void {
    var arguments = init.minimal.args.iterate();
    _ = arguments.skip();
    if (arguments.next()) |word| {
        if (std.mem.eql(u8, word, "serve")) return serve.echo(&arguments);
        if (std.mem.eql(u8, word, "calls")) return serve.call(init.gpa, init.io, &arguments);
        std.debug.print("Cannot run the driver: unknown argument {s}\n", .{word});
        std.process.exit(2);
    }
    var line_storage: [line_size_max]u8 = undefined;
    var reader = std.Io.File.stdin().reader(init.io, &line_storage);
    var answer_storage: [line_size_max]u8 = undefined;
    var writer = std.Io.File.stdout().writer(init.io, &answer_storage);
    try protocol.writeHello(&writer.interface, .{ .driver = .{
        .name = "zig-native",
        .version = builtin.zig_version_string,
        .peers = &peer_names,
    } });
    while (try reader.interface.takeDelimiter('\n')) |line| {
        if (line.len == 0) continue;
        var arena: std.heap.ArenaAllocator = .init(init.gpa);
        defer arena.deinit();
        const options: std.json.ParseOptions = .{ .ignore_unknown_fields = true };
        const request = std.json.parseFromSliceLeaky(
            protocol.Request,
            arena.allocator(),
            line,
            options,
        ) catch |err| {
            std.debug.print("Cannot read a request: {t}: {s}\n", .{ err, line });
            std.process.exit(2);
        };
        const answer = perform(arena.allocator(), init.io, &request) catch |err|
            protocol.Answer{ .@"error" = @errorName(err) };
        try protocol.writeAnswer(&writer.interface, request.id, answer);
    }
}

fn perform(
    allocator: std.mem.Allocator,
    io: std.Io,
    request: *const protocol.Request,
) !protocol.Answer {
    const scenario = &request.scenario;
    // Of calls, these peers move as many bytes.
    if (!std.mem.eql(u8, scenario.format, "bytes") and !scenario.is("calls")) {
        return .{ .decline = "to a native peer all messages are bytes" };
    }
    if (!scenario.inProcesses() and !std.mem.eql(u8, scenario.ends, "threads")) {
        return .{ .decline = "native ends are threads or processes" };
    }
    if (scenario.size == 0 or scenario.rate == 0 or scenario.burst == 0 or scenario.window == 0) {
        return .{ .@"error" = "size, rate, burst and window must be at least 1" };
    }
    inline for (peers) |peer| {
        if (std.mem.eql(u8, peer[0], request.peer)) {
            return performWith(peer[1], allocator, io, scenario);
        }
    }
    return .{ .@"error" = "this driver has no such peer" };
}

fn performWith(
    comptime Peer: type,
    allocator: std.mem.Allocator,
    io: std.Io,
    scenario: *const protocol.Scenario,
) !protocol.Answer {
    var plan: ends.Plan = undefined;
    try plan.init(scenario, io);
    defer plan.deinit();
    var outcome: runs.Outcome = .{
        .latency = &histograms[0],
        .waiting = &histograms[1],
        .service = &histograms[2],
    };
    outcome.clear();
    const Declined = anyerror!?[]const u8;
    // A peer that plays by itself has no two ends.
    const declined = if (@hasDecl(Peer, "run"))
        try @as(Declined, Peer.run(&plan, &outcome))
    else
        try runs.run(Peer, &plan, &outcome);
    if (declined) |why| return .{ .decline = why };
    return .{ .result = try write(allocator, scenario, &outcome) };
}

fn write(
    allocator: std.mem.Allocator,
    scenario: *const protocol.Scenario,
    outcome: *const runs.Outcome,
) !protocol.Result {
    var result: protocol.Result = .{
        .count = outcome.count,
        .elapsed_ns = outcome.elapsed_ns,
        .bytes = outcome.bytes,
    };
    if (outcome.latency.total > 0) result.latency = try outcome.latency.sparse(allocator);
    if (outcome.waiting.total > 0) result.waiting = try outcome.waiting.sparse(allocator);
    if (outcome.service.total > 0) result.service = try outcome.service.sparse(allocator);
    if (outcome.usage) |usage| {
        result.sleeps = usage.sleeps;
        result.cpu_ms = @as(f64, @floatFromInt(usage.cpu_ns)) / 1e6;
        if (scenario.is("memory")) result.bytes_allocated = usage.faults * std.heap.pageSize();
    }
    return result;
}

test {
    _ = protocol;
    _ = @import("histogram.zig");
    _ = @import("payload.zig");
}
