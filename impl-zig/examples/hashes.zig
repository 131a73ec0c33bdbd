//! Hashes the files of a folder with one worker, with two, and so on up to the processors of the
//! machine; prints the SHA-256 of each, and what every worker more has brought.
//!
//!     hashes FOLDER

const std = @import("std");
const millrace = @import("millrace");

/// A panic in a task costs that task alone.
pub const panic = std.debug.FullPanic(millrace.pool.panic);

const Task = struct { io: std.Io, folder: std.Io.Dir, path: []const u8 };
const Hashed = struct { digest: [32]u8, size: u64 };

/// Runs on the threads of the workers. Each file is read piece by piece.
fn hash(task: Task, turn: millrace.pool.Turn) !Hashed {
    const file = try task.folder.openFile(task.io, task.path, .{});
    defer file.close(task.io);
    var digest: millrace.Sha256 = .empty;
    var piece: [64 * 1024]u8 = undefined;
    while (!turn.isCancelled()) {
        const size = try file.readPositionalAll(task.io, &piece, digest.length);
        digest.update(piece[0..size]);
        if (size < piece.len) break;
    }
    return .{ .digest = digest.result(), .size = digest.length };
}

/// What goes into the pool, and what comes out of it.
const Flow = struct {
    tasks: []const Task,
    next_index: usize = 0,
    bytes: u64 = 0,
    /// Where the digests go, if anywhere.
    output: ?*std.Io.Writer,

    pub fn next(flow: *Flow) !?Task {
        if (flow.next_index == flow.tasks.len) return null;
        defer flow.next_index += 1;
        return flow.tasks[flow.next_index];
    }

    pub fn take(flow: *Flow, done: millrace.Pool(hash).Done) !void {
        switch (done.outcome) {
            .result => |hashed| {
                flow.bytes += hashed.size;
                const output = flow.output orelse return;
                try output.print("{x}  {s}\n", .{ &hashed.digest, done.value.path });
            },
            .failed => |err| std.log.warn("{s}: {t}", .{ done.value.path, err }),
            .died => std.log.warn("{s}: its worker has died", .{done.value.path}),
            .cancelled => unreachable,
        }
    }
};

pub fn main(init: std.process.Init) !void {
    const arena = init.arena.allocator();
    const arguments = try init.minimal.args.toSlice(arena);
    if (arguments.len != 2) return error.NeedsFolder;
    const folder = try std.Io.Dir.cwd().openDir(init.io, arguments[1], .{ .iterate = true });
    var tasks: std.ArrayList(Task) = .empty;
    var walker = try folder.walk(arena);
    while (try walker.next(init.io)) |entry| {
        if (entry.kind != .file) continue;
        const path = try arena.dupe(u8, entry.path);
        try tasks.append(arena, .{ .io = init.io, .folder = folder, .path = path });
    }
    std.mem.sort(Task, tasks.items, {}, earlier);
    var storage: [4096]u8 = undefined;
    var output = std.Io.File.stdout().writer(init.io, &storage);
    // So that the first one does not wait for the disk, and the others find what it has read.
    for (0..1 + millrace.Host.native.processor_count()) |count| {
        const workers: u32 = @intCast(@max(1, count));
        var pool: millrace.Pool(hash) = undefined;
        try pool.init(init.gpa, .{ .least = workers, .most = workers });
        defer pool.deinit();
        var flow: Flow = .{
            .tasks = tasks.items,
            .output = if (count == 0) &output.interface else null,
        };
        const begun_ns = millrace.Host.native.now();
        try pool.map(&flow, &flow);
        const took_ns = @max(1, millrace.Host.native.now() - begun_ns);
        const stats = pool.stats();
        if (count > 0) try output.interface.print(
            "{d} workers: {d} files, {d} bytes, {d} MB/s, {d:.0} us a file, waited {d:.0} us\n",
            .{
                workers,            stats.done,      flow.bytes, flow.bytes * 1_000 / took_ns,
                stats.service.mean, stats.wait.mean,
            },
        );
    }
    try output.interface.flush();
}

fn earlier(_: void, a: Task, b: Task) bool {
    return std.mem.lessThan(u8, a.path, b.path);
}
