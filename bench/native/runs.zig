//! The scenarios, written once for every peer.
//!
//! A peer is a type with
//!   `moves_payload`: false for a floor, which only signals;
//!   `declines(plan)`: why it cannot do a scenario, or null;
//!   `Link`: what both ends need before they begin, with `init(plan)` and `deinit()`;
//!   `End`: one end, with `open(link, plan, side, storage)` and `close()`; `place(size)`, which
//!     returns where to make a message, and `commit(payload)`, which sends what was made there;
//!     `send(payload)` for bytes that lie elsewhere; `take()`, which waits for the next message,
//!     and `done()`, after its last use.

const std = @import("std");
const ends = @import("ends.zig");
const payload_file = @import("payload.zig");
const Histogram = @import("histogram.zig").Histogram;
const Board = ends.Board;
const Command = ends.Command;
const Other = ends.Other;
const Plan = ends.Plan;
const Usage = ends.Usage;
const now = ends.now;

const ns_per_ms = 1_000_000;
/// Bytes of storage that one end has for making, and for reading, a message.
pub const storage_size = 64 << 20;

/// What a run gave, before it is written down. Static, because it is large.
pub const Outcome = struct {
    count: u64 = 0,
    elapsed_ns: u64 = 0,
    bytes: ?u64 = null,
    usage: ?Usage = null,
    /// Whether the processor time is that of the parked end alone.
    idle: bool = false,
    latency: *Histogram,
    waiting: *Histogram,
    service: *Histogram,

    pub fn clear(outcome: *Outcome) void {
        outcome.latency.clear();
        outcome.waiting.clear();
        outcome.service.clear();
    }
};

/// Storage of each end for making and reading messages. In pages that nobody has touched, so that
/// it costs nothing where it is not used.
var storages: [2][2][storage_size]u8 align(64) = undefined;

fn storageOf(side: u1) [2][]align(64) u8 {
    return .{ &storages[side][0], &storages[side][1] };
}

/// Runs a scenario, or returns why this peer cannot.
pub fn run(comptime Peer: type, plan: *Plan, outcome: *Outcome) !?[]const u8 {
    const scenario = plan.scenario;
    if (scenario.pin == .@"one-core" and scenario.wait == .spin) {
        return "two that spin on one core wait for the scheduler";
    }
    if (scenario.size > storage_size) return "larger than any message of this driver";
    if (scenario.awaited) return "a native write never returns a promise";
    if (Peer.declines(plan)) |why| return why;
    const scenarios = .{
        .{ "echo", Echo },
        .{ "calls", Echo },
        .{ "stream", Stream },
        .{ "large", Stream },
        .{ "burst", Burst },
        .{ "load", Load },
        .{ "idle", Idle },
        .{ "memory", Echo },
    };
    if (scenario.is("load") and scenario.size < 8) return "no room for the time it was due";
    inline for (scenarios) |entry| {
        // A floor only plays the first.
        const plays = Peer.moves_payload or entry[1] == Echo;
        if (plays and scenario.is(entry[0])) {
            try runAs(Peer, entry[1](Peer), plan, outcome);
            return null;
        }
    }
    return "this driver does not play that scenario";
}

fn runAs(comptime Peer: type, comptime Play: type, plan: *Plan, outcome: *Outcome) !void {
    var link: Peer.Link = undefined;
    try link.init(plan);
    defer link.deinit();
    const Guest = struct {
        fn play(shared: *Peer.Link, own: *const Plan) !void {
            var end: Peer.End = undefined;
            try end.open(shared, own, 1, storageOf(1));
            defer end.close();
            try Play.other(&end, own);
            own.board.awaitFinish();
        }
    };
    const other: Other = try .start(plan, Guest.play, .{ &link, plan });
    var end: Peer.End = undefined;
    try end.open(&link, plan, 0, storageOf(0));
    {
        // Not before the other has ended: it may still read what was sent to it.
        defer end.close();
        {
            defer plan.board.finish();
            try Play.measure(&end, plan, outcome);
        }
        try other.join();
    }
    const own = outcome.usage orelse return;
    outcome.usage = own.plus(plan.board.usage);
}

/// What the other end keeps to know what the measuring end wants.
const Listener = struct {
    board: *Board,
    seen: Command = .warm_up,
    before: Usage = .{},

    /// Returns false when the other end is to stop.
    inline fn goesOn(listener: *Listener) bool {
        const told = listener.board.told();
        if (told == listener.seen) return true;
        return listener.hear(told);
    }

    noinline fn hear(listener: *Listener, told: Command) bool {
        listener.seen = told;
        switch (told) {
            .warm_up => unreachable,
            .measure => listener.before = .current(),
            .stop => listener.board.usage = listener.before.since(),
        }
        return told != .stop;
    }
};

/// A time that is measured, after one to warm up.
const Watch = struct {
    until_ns: u64,
    begin_ns: u64 = 0,

    fn begin(milliseconds: u32) Watch {
        const begin_ns = now();
        return .{ .begin_ns = begin_ns, .until_ns = begin_ns + @as(u64, milliseconds) * ns_per_ms };
    }
};

/// One message there, and the same back.
fn Echo(comptime Peer: type) type {
    return struct {
        fn other(end: *Peer.End, plan: *const Plan) !void {
            var listener: Listener = .{ .board = plan.board };
            while (true) {
                const payload = try end.take();
                if (!listener.goesOn()) break;
                try end.send(payload);
                end.done();
            }
        }

        fn measure(end: *Peer.End, plan: *const Plan, outcome: *Outcome) !void {
            const size = plan.scenario.size;
            var number: u64 = 0;
            const warm: Watch = .begin(plan.scenario.warmup_ms);
            while (now() < warm.until_ns) : (number += 1) try turn(end, plan, number);
            plan.board.tell(.measure);
            // The other hears it with the next message.
            try turn(end, plan, number);
            const first = number + 1;
            number = first;
            outcome.clear();
            const before: Usage = .current();
            const watch: Watch = .begin(plan.scenario.duration_ms);
            // One reading of the clock for each lap: its end is the beginning of the next.
            const turns = turnsOf(warm, first);
            var at_ns = watch.begin_ns;
            while (at_ns < watch.until_ns) : (number += turns) {
                for (0..turns) |index| try turn(end, plan, number + index);
                const then_ns = now();
                outcome.latency.recordMany((then_ns - at_ns) / turns, turns);
                at_ns = then_ns;
            }
            outcome.usage = before.since();
            outcome.count = number - first;
            outcome.elapsed_ns = at_ns - watch.begin_ns;
            outcome.bytes = outcome.count * size * plan.scenario.trips();
            plan.board.tell(.stop);
            const place = try end.place(size);
            try end.commit(place);
        }

        /// Turns of a lap: as many as make the cost of the clock, 20 to 40 ns, next to nothing. A
        /// trip that sleeps is a lap of its own.
        fn turnsOf(warm: Watch, count: u64) u64 {
            const turn_ns = @max(1, (now() - warm.begin_ns) / @max(1, count));
            return std.math.clamp(2_000 / turn_ns, 1, 64);
        }

        inline fn turn(end: *Peer.End, plan: *const Plan, number: u64) !void {
            for (0..plan.scenario.trips()) |_| try once(end, plan.scenario.size, number);
        }

        inline fn once(end: *Peer.End, size: u32, number: u64) !void {
            const place = try end.place(size);
            if (Peer.moves_payload) mark(place, number);
            try end.commit(place);
            const payload = try end.take();
            if (Peer.moves_payload and !marked(payload, size, number)) return error.WrongAnswer;
            end.done();
        }
    };
}

/// An answer must be that to this question; the bytes between are checked by the streams.
inline fn mark(payload: []u8, number: u64) void {
    const low: u8 = @truncate(number);
    payload[0] = low;
    payload[payload.len - 1] = low;
}

inline fn marked(payload: []const u8, size: u32, number: u64) bool {
    const low: u8 = @truncate(number);
    return payload.len == size and payload[0] == low and payload[size - 1] == low;
}

/// Messages one way, as fast as they go. The reader checks every byte and decides when it is over.
fn Stream(comptime Peer: type) type {
    return struct {
        fn other(end: *Peer.End, plan: *const Plan) !void {
            var listener: Listener = .{ .board = plan.board };
            const size = plan.scenario.size;
            var number: u64 = 0;
            while (listener.goesOn()) : (number += 1) try write(end, size, number);
            // The last one is still to come, so that the reader learns of it in time.
            @atomicStore(u64, &plan.board.last, number + 1, .release);
            try write(end, size, number);
        }

        inline fn write(end: *Peer.End, size: u32, number: u64) !void {
            const place = try end.place(size);
            payload_file.fill(place, number);
            try end.commit(place);
        }

        fn measure(end: *Peer.End, plan: *const Plan, outcome: *Outcome) !void {
            const size = plan.scenario.size;
            const stride = @max(1, (64 << 10) / size);
            var number: u64 = 0;
            const warm: Watch = .begin(plan.scenario.warmup_ms);
            while (true) {
                try read(end, size, number, stride);
                number += stride;
                if (now() >= warm.until_ns) break;
            }
            plan.board.tell(.measure);
            const first = number;
            const before: Usage = .current();
            const watch: Watch = .begin(plan.scenario.duration_ms);
            var at_ns = watch.begin_ns;
            while (at_ns < watch.until_ns) : (at_ns = now()) {
                try read(end, size, number, stride);
                number += stride;
            }
            outcome.usage = before.since();
            outcome.count = number - first;
            outcome.elapsed_ns = at_ns - watch.begin_ns;
            outcome.bytes = outcome.count * size;
            plan.board.tell(.stop);
            const last = &plan.board.last;
            while (number < @atomicLoad(u64, last, .acquire)) : (number += 1) {
                try read(end, size, number, 1);
            }
        }

        inline fn read(end: *Peer.End, size: u32, number: u64, count: u64) !void {
            for (0..count) |index| {
                const payload = try end.take();
                if (payload.len != size) return error.WrongSize;
                if (!payload_file.matches(payload, number + index)) return error.WrongBytes;
                end.done();
            }
        }
    };
}

/// Many messages at once, and one answer when all of them have been read and checked.
fn Burst(comptime Peer: type) type {
    return struct {
        fn other(end: *Peer.End, plan: *const Plan) !void {
            var listener: Listener = .{ .board = plan.board };
            const burst = plan.scenario.burst;
            while (true) {
                for (0..burst) |number| {
                    const payload = try end.take();
                    if (!listener.goesOn()) return;
                    if (!payload_file.matches(payload, number)) return error.WrongBytes;
                    end.done();
                }
                try end.commit(try end.place(plan.scenario.size));
            }
        }

        fn measure(end: *Peer.End, plan: *const Plan, outcome: *Outcome) !void {
            const scenario = plan.scenario;
            const warm: Watch = .begin(scenario.warmup_ms);
            while (now() < warm.until_ns) try once(end, plan);
            plan.board.tell(.measure);
            try once(end, plan);
            outcome.clear();
            const before: Usage = .current();
            const watch: Watch = .begin(scenario.duration_ms);
            var at_ns = watch.begin_ns;
            while (at_ns < watch.until_ns) {
                try once(end, plan);
                const then_ns = now();
                outcome.latency.record(then_ns - at_ns);
                at_ns = then_ns;
                outcome.count += scenario.burst;
            }
            outcome.usage = before.since();
            outcome.elapsed_ns = at_ns - watch.begin_ns;
            outcome.bytes = outcome.count * scenario.size;
            plan.board.tell(.stop);
            try end.commit(try end.place(scenario.size));
        }

        fn once(end: *Peer.End, plan: *const Plan) !void {
            const size = plan.scenario.size;
            for (0..plan.scenario.burst) |number| {
                const place = try end.place(size);
                payload_file.fill(place, number);
                try end.commit(place);
            }
            _ = try end.take();
            end.done();
        }
    };
}

/// Messages that are due at times that were fixed before. One that is written late counts from the
/// time at which it was due, so that no stall is hidden.
fn Load(comptime Peer: type) type {
    return struct {
        fn other(end: *Peer.End, plan: *const Plan) !void {
            const scenario = plan.scenario;
            const total = totalOf(plan);
            @atomicStore(u64, &plan.board.last, total, .release);
            // Or else the kernel may wake us 50 us late.
            const exactly = 1;
            const slack = @backingInt(std.os.linux.PR.SET_TIMERSLACK);
            _ = std.os.linux.prctl(slack, exactly, 0, 0, 0);
            const before: Usage = .current();
            const begin_ns = now() + ns_per_ms;
            @atomicStore(u64, &plan.board.begin_ns, begin_ns, .release);
            for (0..total) |number| {
                const due_ns = begin_ns + number * 1_000_000_000 / scenario.rate;
                awaitTime(due_ns, scenario.wait == .spin);
                const place = try end.place(scenario.size);
                payload_file.fill(place, number);
                @as(*align(1) u64, @ptrCast(place[0..8])).* = due_ns;
                try end.commit(place);
            }
            plan.board.usage = before.since();
        }

        fn totalOf(plan: *const Plan) u64 {
            const scenario = plan.scenario;
            const ms = @as(u64, scenario.warmup_ms) + scenario.duration_ms;
            return @max(1, ms * scenario.rate / 1_000);
        }

        fn awaitTime(due_ns: u64, spins: bool) void {
            while (now() < due_ns) {
                if (spins) continue;
                const due: std.os.linux.timespec = .{
                    .sec = @intCast(due_ns / 1_000_000_000),
                    .nsec = @intCast(due_ns % 1_000_000_000),
                };
                _ = std.os.linux.clock_nanosleep(.MONOTONIC, .{ .ABSTIME = true }, &due, null);
            }
        }

        fn measure(end: *Peer.End, plan: *const Plan, outcome: *Outcome) !void {
            const scenario = plan.scenario;
            const warmup_ns = @as(u64, scenario.warmup_ms) * ns_per_ms;
            outcome.clear();
            const before: Usage = .current();
            var first_ns: ?u64 = null;
            var done_ns: u64 = 0;
            for (0..totalOf(plan)) |number| {
                const payload = try end.take();
                const taken_ns = now();
                const due_ns = @as(*align(1) const u64, @ptrCast(payload[0..8])).*;
                // The first block without the time in it.
                if (!payload_file.matchesBehind(payload, number, 8)) return error.WrongBytes;
                end.done();
                done_ns = now();
                const busy_ns = @as(u64, scenario.service_us) * 1_000;
                while (done_ns - taken_ns < busy_ns) done_ns = now();
                const begin_ns = @atomicLoad(u64, &plan.board.begin_ns, .acquire);
                if (due_ns - begin_ns < warmup_ns) continue;
                if (first_ns == null) first_ns = due_ns;
                outcome.count += 1;
                outcome.waiting.record(taken_ns - due_ns);
                outcome.service.record(done_ns - taken_ns);
                outcome.latency.record(done_ns - due_ns);
            }
            outcome.usage = before.since();
            outcome.elapsed_ns = done_ns - (first_ns orelse done_ns);
            outcome.bytes = outcome.count * scenario.size;
        }
    };
}

/// Nothing for a while: what it costs the end that waits for a message.
fn Idle(comptime Peer: type) type {
    return struct {
        fn other(end: *Peer.End, plan: *const Plan) !void {
            _ = try end.take();
            end.done();
            try end.commit(try end.place(plan.scenario.size));
            const before: Usage = .current();
            _ = try end.take();
            end.done();
            plan.board.usage = before.since();
        }

        fn measure(end: *Peer.End, plan: *const Plan, outcome: *Outcome) !void {
            // So that both are there.
            try end.commit(try end.place(plan.scenario.size));
            _ = try end.take();
            end.done();
            const begin_ns = now();
            const duration_ns = @as(u64, plan.scenario.duration_ms) * ns_per_ms;
            @import("millrace").Host.native.pause(duration_ns);
            outcome.elapsed_ns = now() - begin_ns;
            try end.commit(try end.place(plan.scenario.size));
            outcome.count = 1;
            outcome.usage = .{};
            outcome.idle = true;
        }
    };
}
