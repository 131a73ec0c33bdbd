//! Pools: every task has one outcome, whatever happens to the workers.

const std = @import("std");
const builtin = @import("builtin");
const millrace = @import("../root.zig");
const pool_table = @import("../pool/task.zig");
const Pool = millrace.Pool;
const Turn = millrace.pool.Turn;
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const gpa = std.testing.allocator;

/// Longer than any of these waits takes.
const patience: millrace.Timeout = .ms(20_000);

fn square(n: u64) u64 {
    return n * n;
}

/// Waits for the next outcome. Fails if there is none.
fn must(pool: anytype) !@TypeOf(pool.*).Done {
    return (try pool.next(patience)) orelse error.NothingCame;
}

test "Pool: outcomes come in the order of submission, each with its value" {
    var pool: Pool(square) = undefined;
    try pool.init(gpa, .{ .most = 3, .least = 3, .room = 50 });
    defer pool.deinit();
    var submitted: u64 = 0;
    var taken: u64 = 0;
    while (taken < 500) {
        while (submitted < 500 and !pool.isFull()) : (submitted += 1) {
            _ = try pool.submit(submitted, .{});
        }
        const done = try must(&pool);
        try expectEqual(taken, done.value);
        try expectEqual(taken * taken, done.outcome.result);
        taken += 1;
    }
    try expectEqual(null, try pool.next(.forever)); // nothing is open
    const stats = pool.stats();
    try expectEqual(500, stats.done);
    try expectEqual(500, stats.service.count);
    try expectEqual(500, stats.wait.count);
    try expectEqual(0, stats.waiting + stats.given + stats.ready);
}

var gate: std.atomic.Value(u32) = .init(0);

/// Waits for the gate if it is asked to, so that other tasks overtake it.
fn held(wait_for: u32) !u32 {
    for (0..20_000) |_| {
        if (gate.load(.seq_cst) >= wait_for) return wait_for;
        millrace.Host.native.pause(1_000_000);
    }
    return error.GateShut;
}

test "Pool: with order finished, who is done first comes first; with submitted, it waits" {
    for ([_]millrace.pool.Order{ .finished, .submitted }) |order| {
        gate.store(0, .seq_cst);
        var pool: Pool(held) = undefined;
        try pool.init(gpa, .{ .least = 2, .most = 2, .order = order });
        defer pool.deinit();
        defer gate.store(1, .seq_cst);
        _ = try pool.submit(1, .{});
        const short = try pool.submit(0, .{});
        if (order == .finished) {
            try expectEqual(short, (try must(&pool)).id);
        } else {
            for (0..20_000) |_| {
                if (pool.stats().ready > 0) break;
                try expectEqual(null, try pool.next(.ms(1)));
            } else return error.NeverReady;
            // The outcome is ready, and may be asked for.
            try expectEqual(0, (try pool.nextOf(short, patience)).?.outcome.result);
            try expectEqual(null, try pool.nextOf(short, patience));
        }
        gate.store(1, .seq_cst);
        try expectEqual(1, (try must(&pool)).outcome.result);
    }
}

const task_count = 10_000;
/// How many times each task was begun, and which tasks kill their worker when they first begin.
var begun: [task_count]std.atomic.Value(u8) = @splat(.init(0));
var deadly: [task_count]bool = @splat(false);

fn fragile(n: u32) !u32 {
    const times = begun[n].fetchAdd(1, .monotonic);
    if (times > 0 or !deadly[n]) return n ^ 1;
    const can_panic = builtin.os.tag == .linux and !builtin.link_libc and
        !builtin.sanitize_thread;
    if (can_panic and n % 2 == 0) millrace.pool.panic("deadly", null);
    return error.WorkerDied;
}

/// Kills workers while there are many tasks. Returns how many outcomes were not results.
fn kill(seed: u64, order: millrace.pool.Order, retry: u32) !u32 {
    var random: std.Random.DefaultPrng = .init(seed);
    for (&begun, &deadly) |*times, *kills| {
        times.store(0, .monotonic);
        kills.* = false;
    }
    const deaths = 6;
    for (0..deaths) |index| {
        const part = task_count / deaths;
        deadly[index * part + random.random().uintLessThan(usize, part)] = true;
    }
    var pool: Pool(fragile) = undefined;
    try pool.init(gpa, .{ .least = 2, .most = 2, .order = order, .retry = retry, .room = 300 });
    defer pool.deinit();
    var seen: [task_count]bool = @splat(false);
    var died: u32 = 0;
    var submitted: u32 = 0;
    for (0..task_count) |turn| {
        while (submitted < task_count and !pool.isFull()) : (submitted += 1) {
            _ = try pool.submit(submitted, .{});
        }
        const done = try must(&pool);
        if (order == .submitted) try expectEqual(turn, done.value);
        try expect(!seen[done.value]);
        seen[done.value] = true;
        switch (done.outcome) {
            .result => |result| try expectEqual(done.value ^ 1, result),
            .died => {
                try expect(deadly[done.value]);
                died += 1;
            },
            else => return error.Unexpected,
        }
    }
    try expectEqual(null, try pool.next(.none));
    for (begun, deadly) |times, kills| {
        try expectEqual(1 + @as(u8, @intFromBool(kills and retry > 0)), times.load(.monotonic));
    }
    const stats = pool.stats();
    try expectEqual(deaths, stats.deaths);
    try expectEqual(2, stats.workers); // dead workers were replaced
    try expectEqual(died, stats.died);
    try expectEqual(task_count - died, stats.done);
    return died;
}

test "Pool: workers that die in the middle of 10,000 tasks lose none, and none is handled twice" {
    try expectEqual(6, try kill(1, .submitted, 0));
    try expectEqual(6, try kill(2, .finished, 0));
}

test "Pool: with retry, what a dead worker had begun is run once more" {
    try expectEqual(0, try kill(3, .finished, 1));
    try expectEqual(0, try kill(4, .submitted, 1));
}

fn deadlyAlways(_: void) !void {
    return error.WorkerDied;
}

test "Pool: a task that kills every worker is repeated as often as asked, and then has died" {
    var pool: Pool(deadlyAlways) = undefined;
    try pool.init(gpa, .{ .most = 1 });
    defer pool.deinit();
    const id = try pool.submit({}, .{ .retry = 2 });
    try expectEqual(.died, std.meta.activeTag((try pool.nextOf(id, patience)).?.outcome));
    try expectEqual(3, pool.stats().deaths);
    try expectEqual(1, pool.stats().workers);
}

fn halve(n: u32) error{Odd}!u32 {
    return if (n % 2 == 0) n / 2 else error.Odd;
}

test "Pool: an error of the handler is the outcome of that task, and its worker goes on" {
    var pool: Pool(halve) = undefined;
    try pool.init(gpa, .{ .most = 1 });
    defer pool.deinit();
    try expectEqual(error.Odd, (try pool.run(3)).failed);
    try expectEqual(2, (try pool.run(4)).result);
    try expectEqual(1, pool.stats().failed);
    try expectEqual(0, pool.stats().deaths);
}

test "Pool: no more tasks are open than there is room for, and map takes no more values" {
    var pool: Pool(square) = undefined;
    try pool.init(gpa, .{ .most = 2, .room = 8 });
    defer pool.deinit();
    for (0..8) |n| _ = try pool.submit(n, .{});
    try expectEqual(error.PoolFull, pool.submit(8, .{}));
    while (try pool.next(patience)) |_| {}
    const Flow = struct {
        produced: u64 = 0,
        consumed: u64 = 0,

        pub fn next(flow: *@This()) !?u64 {
            if (flow.produced - flow.consumed > 8) return error.TooMany;
            if (flow.produced == 2_000) return null;
            flow.produced += 1;
            return flow.produced;
        }

        pub fn take(flow: *@This(), done: Pool(square).Done) !void {
            flow.consumed += 1;
            try expectEqual(flow.consumed * flow.consumed, done.outcome.result);
        }
    };
    var flow: Flow = .{};
    try pool.map(&flow, &flow);
    try expectEqual(2_000, flow.consumed);
}

var began: std.atomic.Value(u32) = .init(0);

/// Runs until it is given up, or until the gate opens.
fn stubborn(n: u32, turn: Turn) !u32 {
    _ = began.fetchAdd(1, .seq_cst);
    for (0..20_000) |_| {
        if (turn.isCancelled()) return error.Cancelled;
        if (gate.load(.seq_cst) > 0) return n;
        millrace.Host.native.pause(1_000_000);
    }
    return error.GateShut;
}

/// Waits until a worker runs `stubborn`.
fn awaitBegun() !void {
    for (0..20_000) |_| {
        if (began.load(.seq_cst) > 0) return;
        millrace.Host.native.pause(1_000_000);
    }
    return error.NothingBegan;
}

test "Pool: a task that is given up is cancelled at once, whether it waits or runs" {
    gate.store(0, .seq_cst);
    began.store(0, .seq_cst);
    var pool: Pool(stubborn) = undefined;
    try pool.init(gpa, .{ .most = 1, .ahead = 1, .room = 3, .order = .finished });
    defer pool.deinit();
    defer gate.store(1, .seq_cst);
    var ids: [3]millrace.pool.Id = undefined;
    for (&ids, 0..) |*id, n| id.* = try pool.submit(@intCast(n), .{});
    try awaitBegun();
    // The first task runs, the second is in the ring, the third waits.
    try expectEqual(2, pool.stats().given);
    // The running task is cancelled last, because its worker then goes on with the next one at
    // once.
    const order = [_]millrace.pool.Id{ ids[1], ids[2], ids[0] };
    for (order) |id| try expect(pool.cancel(id));
    for (order) |id| try expect(!pool.cancel(id));
    for (order) |id| {
        const done = (try pool.next(.none)).?;
        try expectEqual(id, done.id);
        try expectEqual(.cancelled, std.meta.activeTag(done.outcome));
    }
    // Their places are free again when the worker has answered; the task in the ring was not begun.
    gate.store(1, .seq_cst);
    for (0..3) |n| {
        const id = for (0..20_000) |_| {
            break pool.submit(@intCast(n), .{}) catch {
                _ = try pool.next(.ms(1));
                millrace.Host.native.pause(1_000_000);
                continue;
            };
        } else return error.NoRoom;
        try expectEqual(@as(u32, @intCast(n)), (try pool.nextOf(id, patience)).?.outcome.result);
    }
    try expectEqual(4, began.load(.seq_cst));
    try expectEqual(3, pool.stats().cancelled);
    try expectEqual(3, pool.stats().done);
}

test "Pool: tasks go to the shortest queue" {
    gate.store(0, .seq_cst);
    var pool: Pool(held) = undefined;
    try pool.init(gpa, .{ .least = 3, .most = 3, .ahead = 2 });
    defer pool.deinit();
    defer gate.store(1, .seq_cst);
    for (0..5) |_| _ = try pool.submit(1, .{});
    var counts: [3]usize = undefined;
    for (&counts, pool.crew.seats) |*count, *seat| count.* = seat.given.count;
    std.mem.sort(usize, &counts, {}, std.sort.asc(usize));
    try expectEqual([_]usize{ 1, 2, 2 }, counts);
    for (0..5) |_| _ = try pool.submit(1, .{});
    try expectEqual(1, pool.stats().waiting); // 9 are given
}

test "Pool: it starts workers while tasks wait, and ends those that have none" {
    gate.store(0, .seq_cst);
    var pool: Pool(held) = undefined;
    const options: millrace.pool.Options =
        .{ .least = 1, .most = 3, .ahead = 0, .patience_ms = 0, .idle_ms = 0 };
    try pool.init(gpa, options);
    defer pool.deinit();
    defer gate.store(1, .seq_cst);
    try expectEqual(1, pool.stats().workers);
    for (0..9) |_| _ = try pool.submit(1, .{});
    for (0..20_000) |_| {
        if (pool.stats().workers == 3) break;
        try expectEqual(null, try pool.next(.ms(1)));
    }
    try expectEqual(3, pool.stats().workers);
    try expectEqual(6, pool.stats().waiting);
    gate.store(1, .seq_cst);
    for (0..9) |_| _ = try must(&pool);
    for (0..20_000) |_| {
        if (pool.stats().workers == 1) break;
        _ = try pool.next(.none);
    }
    try expectEqual(1, pool.stats().workers);
    // Workers that were ended are started again, in the same seats.
    gate.store(0, .seq_cst);
    for (0..9) |_| _ = try pool.submit(1, .{});
    for (0..20_000) |_| {
        if (pool.stats().workers == 3) break;
        _ = try pool.next(.ms(1));
    }
    try expectEqual(3, pool.stats().workers);
    gate.store(1, .seq_cst);
    for (0..9) |_| _ = try must(&pool);
    try expectEqual(18, pool.stats().done);
}

test "Pool: deinit gives up what is open" {
    gate.store(0, .seq_cst);
    began.store(0, .seq_cst);
    var pool: Pool(stubborn) = undefined;
    try pool.init(gpa, .{ .least = 2, .most = 2 });
    for (0..100) |n| _ = try pool.submit(@intCast(n), .{});
    try awaitBegun();
    pool.deinit();
    try expect(began.load(.seq_cst) <= 4);
}

test "Pool: values and results of any size, and none" {
    const Page = struct { bytes: [5_000]u8 };
    const turned = struct {
        fn turned(page: Page) Page {
            var other = page;
            std.mem.reverse(u8, &other.bytes);
            return other;
        }
    }.turned;
    var pool: Pool(turned) = undefined;
    try pool.init(gpa, .{ .most = 2 });
    defer pool.deinit();
    var page: Page = undefined;
    for (&page.bytes, 0..) |*byte, index| byte.* = @truncate(index *% 7);
    const other = (try pool.run(page)).result;
    std.mem.reverse(u8, &page.bytes);
    try std.testing.expectEqualSlices(u8, &page.bytes, &other.bytes);
}

test "Table: what comes back from a worker goes to the next one in its order, before the others" {
    const Table = pool_table.Table(u8, u8);
    var table: Table = try .init(gpa, 5);
    defer table.deinit(gpa);
    for ("abcde") |value| _ = table.submit(value, 0, 0).?;
    try expectEqual(null, table.submit('f', 0, 0));
    var given: [3]u32 = undefined;
    for (&given) |*index| index.* = table.give();
    try expect(table.settle(given[0], 'A'));
    for ([_]u32{ given[2], given[1] }) |index| table.takeBack(index);
    for ("bcde") |value| try expectEqual(value, table.places[table.give()].value);
    try expectEqual('A', table.tell(table.nextReady(true).?).outcome);
    try expectEqual(null, table.nextReady(true));
    // A task that was given up while a worker had it keeps its place until the worker has answered.
    try expect(table.giveUp(given[1], 'X'));
    try expectEqual('X', table.tell(given[1]).outcome);
    try expectEqual(1, table.free.count);
    try expect(!table.settle(given[1], 'B'));
    try expectEqual(2, table.free.count);
}

test "Row: what is taken out of the middle leaves the others in their order" {
    var random: std.Random.DefaultPrng = .init(9);
    const rand = random.random();
    var row: pool_table.Row = try .init(gpa, 16);
    defer row.deinit(gpa);
    var model: std.ArrayList(u32) = .empty;
    defer model.deinit(gpa);
    for (0..5_000) |turn| {
        const number: u32 = @intCast(turn);
        switch (rand.uintLessThan(u32, 5)) {
            0, 1 => if (model.items.len < 16) {
                try model.append(gpa, number);
                row.append(number);
            },
            2 => if (model.items.len < 16) {
                try model.insert(gpa, 0, number);
                row.prepend(number);
            },
            3 => if (model.items.len > 0) {
                const index = rand.uintLessThan(usize, model.items.len);
                row.remove(model.orderedRemove(index));
            },
            else => if (model.items.len > 0) {
                if (rand.boolean()) {
                    try expectEqual(model.orderedRemove(0), row.take());
                } else {
                    try expectEqual(model.pop().?, row.takeLast());
                }
            },
        }
        try expectEqual(model.items.len, row.count);
        const first = if (model.items.len == 0) null else model.items[0];
        try expectEqual(first, row.first());
    }
}
