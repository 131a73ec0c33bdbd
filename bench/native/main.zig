//! The native driver: measures Millrace, its rivals and the machine's floors between two threads,
//! and between two processes, as the runner asks for it line by line. See `bench/README.md`.

const std = @import("std");
const builtin = @import("builtin");
const digest = @import("digest.zig");
const ends = @import("ends.zig");
const memcpy = @import("memcpy.zig");
const pool = @import("pool.zig");
const protocol = @import("protocol.zig");
const runs = @import("runs.zig");
const serve = @import("serve.zig");
const serve_calls = @import("serve_calls.zig");
const Histogram = @import("histogram.zig").Histogram;

const peers = .{
    .{ "millrace-zig", @import("peer_millrace.zig").Copying },
    .{ "millrace-zig-lend", @import("peer_millrace.zig").Lending },
    .{ "millrace-digest", digest },
    .{ "millrace-pool", pool.Peer(2) },
    .{ "millrace-pool-one", pool.Peer(1) },
    .{ "millrace-c", @import("peer_c.zig").Peer },
    .{ "floor-cacheline", @import("peer_floor.zig").CacheLine },
    .{ "floor-frame", @import("peer_frame.zig").Peer },
    .{ "floor-futex", @import("peer_floor.zig").Futex },
    .{ "floor-memcpy", memcpy },
    .{ "mutex-queue", @import("peer_queue.zig").Peer },
    .{ "unix-socket", @import("peer_kernel.zig").Socket },
    .{ "fifo", @import("peer_kernel.zig").Fifo },
    .{ "pipe", @import("peer_kernel.zig").Pipe },
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
        if (std.mem.eql(u8, word, "serve")) return serve.main(&arguments);
        if (std.mem.eql(u8, word, "calls")) {
            return serve_calls.main(init.gpa, init.io, &arguments);
        }
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
    const declined = if (Peer == memcpy or Peer == digest)
        Peer.run(&plan, &outcome)
    else if (Peer == pool.Peer(2) or Peer == pool.Peer(1))
        try Peer.run(&plan, &outcome)
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
