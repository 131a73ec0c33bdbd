//! The workers of a pool, as the thread with the tasks sees them. That thread has endpoint 0 of a
//! hub; the other endpoints are the seats of workers.
//!
//! Invariant: a worker has no more tasks than fit its ring of tasks, and its ring of answers has
//! room for all their answers. So nobody ever waits for room.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const frame = @import("../ring/frame.zig");
const host_file = @import("../wait/mechanism.zig");
const pipe = @import("../pipe/ends.zig");
const revive = @import("../more/revive.zig");
const pool_worker = @import("work.zig");
const segment_file = @import("../memory/segment.zig");
const select = @import("../more/select.zig");
const wait_file = @import("../wait/endpoint.zig");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;
const Channel = segment_file.Channel;
const Endpoint = wait_file.Endpoint;
const Reader = pipe.Reader;
const Row = @import("task.zig").Row;
const Segment = segment_file.Segment;
const Shared = pool_worker.Shared;
const StartError = @import("pool.zig").StartError;
const Timeout = host_file.Timeout;
const Writer = pipe.Writer;

/// How many workers there may be, and what each of them gets.
pub const Options = struct {
    least: u32,
    most: u32,
    /// The most tasks that one worker has at a time.
    given_max: u32,
    endpoint: Endpoint.Options,
    thread: std.Thread.SpawnConfig,
};

/// The workers that run `handler`.
pub fn Crew(comptime handler: anytype) type {
    const Handled = pool_worker.Shape(handler);
    return struct {
        options: Options,
        memory: []align(layout.segment_align) u8,
        channels: []Channel,
        segment: Segment,
        endpoint: Endpoint,
        seats: []Seat,
        /// The readers of the living workers.
        readers: []*Reader,
        selected: select.Select,
        alive: u32,
        deaths: u64,

        const Self = @This();

        /// The place for a worker, whether there is one or not.
        pub const Seat = struct {
            shared: Shared,
            reader: Reader,
            writer: Writer,
            thread: std.Thread,
            alive: bool,
            /// Whether its worker was found dead, after all its answers were taken.
            dead: bool,
            /// The tasks of its worker; the one that it runs comes first.
            given: Row,
            /// How many of the tasks that its worker has begun are answered, modulo 2^32.
            answered: u32,
            /// When its worker last had a task.
            busy_ns: u64,
        };

        pub fn init(crew: *Self, gpa: Allocator, options: Options) StartError!void {
            crew.options = options;
            crew.alive = 0;
            crew.deaths = 0;
            crew.channels = try gpa.alloc(Channel, 2 * options.most);
            errdefer gpa.free(crew.channels);
            for (crew.channels, 0..) |*channel, index| {
                const worker: u32 = @intCast(1 + index / 2);
                const tasks = index % 2 == 0;
                channel.* = .{
                    .writer = if (tasks) 0 else worker,
                    .reader = if (tasks) worker else 0,
                    .data_size = try capacityFor(
                        if (tasks) @sizeOf(Handled.Value) else @sizeOf(Handled.Reply),
                        options.given_max,
                    ),
                };
            }
            const geometry: segment_file.Geometry = .{
                .endpoint_count = 1 + options.most,
                .channels = crew.channels,
            };
            const size = try segment_file.sizeOf(geometry);
            const alignment = comptime std.mem.Alignment.fromByteUnits(layout.segment_align);
            crew.memory = try gpa.alignedAlloc(u8, alignment, size);
            errdefer gpa.free(crew.memory);
            try Segment.format(crew.memory, geometry);
            // Nobody else has seen it.
            crew.segment = Segment.attach(crew.memory, crew.channels, .none) catch unreachable;
            crew.endpoint = Endpoint.attach(&crew.segment, 0, options.endpoint) catch unreachable;
            crew.readers = try gpa.alloc(*Reader, options.most);
            errdefer gpa.free(crew.readers);
            crew.selected = .{ .readers = &.{} };
            crew.seats = try gpa.alloc(Seat, options.most);
            errdefer gpa.free(crew.seats);
            for (crew.seats, 0..) |*seat, index| {
                errdefer for (crew.seats[0..index]) |*made| made.given.deinit(gpa);
                try crew.initSeat(gpa, seat, @intCast(index));
            }
        }

        fn initSeat(crew: *Self, gpa: Allocator, seat: *Seat, index: u32) StartError!void {
            const segment = &crew.segment;
            seat.* = .{
                .shared = .{
                    .segment = segment,
                    .index = 1 + index,
                    .options = crew.options.endpoint,
                    .task_channel = 2 * index,
                    .reply_channel = 2 * index + 1,
                },
                .reader = Reader.init(&crew.endpoint, segment, 2 * index + 1) catch unreachable,
                .writer = Writer.init(&crew.endpoint, segment, 2 * index) catch unreachable,
                .thread = undefined,
                .alive = false,
                .dead = false,
                .given = try .init(gpa, crew.options.given_max),
                .answered = 0,
                .busy_ns = 0,
            };
        }

        /// Ends all workers, each after the task that it runs.
        pub fn deinit(crew: *Self, gpa: Allocator) void {
            crew.endpoint.close();
            for (crew.seats) |*seat| {
                if (seat.alive) seat.thread.join();
                seat.given.deinit(gpa);
            }
            gpa.free(crew.seats);
            gpa.free(crew.readers);
            gpa.free(crew.memory);
            gpa.free(crew.channels);
            crew.* = undefined;
        }

        /// Starts a worker at a free seat.
        ///
        /// Asserts that there is a free seat.
        pub fn start(
            crew: *Self,
            context: anytype,
            comptime flagOf: fn (@TypeOf(context), u32) *const std.atomic.Value(bool),
        ) error{PoolStart}!void {
            for (crew.seats) |*seat| {
                if (!seat.alive) return crew.startAt(seat, context, flagOf);
            }
            unreachable;
        }

        /// Starts a worker at this seat.
        pub fn startAt(
            crew: *Self,
            seat: *Seat,
            context: anytype,
            comptime flagOf: fn (@TypeOf(context), u32) *const std.atomic.Value(bool),
        ) error{PoolStart}!void {
            assert(!seat.alive and seat.given.count == 0);
            seat.shared.owner = crew.segment.ownerOf(seat.shared.index);
            seat.shared.begun.store(0, .monotonic);
            seat.answered = 0;
            seat.busy_ns = crew.endpoint.host.now();
            const Thread = struct {
                fn main(shared: *Shared, of: @TypeOf(context)) void {
                    pool_worker.work(handler, shared, of, flagOf);
                }
            };
            const arguments = .{ &seat.shared, context };
            seat.thread = std.Thread.spawn(crew.options.thread, Thread.main, arguments) catch
                return error.PoolStart;
            seat.alive = true;
            crew.count();
        }

        /// Takes the next answer of a worker. Returns null if there is none, or if the worker is
        /// dead.
        pub fn answer(crew: *Self, seat: *Seat) ?Handled.Reply {
            var reply: Handled.Reply = undefined;
            const message = seat.reader.tryRead(std.mem.asBytes(&reply)) catch {
                seat.dead = true;
                return null;
            } orelse return null;
            // The worker's thread answers tasks in the order in which it got them.
            assert(message.tag == seat.given.first().?);
            seat.answered +%= 1;
            if (seat.given.count == 1) seat.busy_ns = crew.endpoint.host.now();
            return reply;
        }

        /// Gives a task to a worker. If the worker is dead, and was not found dead yet, it gets the
        /// task too.
        pub fn give(crew: *Self, seat: *Seat, index: u32, value: *const Handled.Value) void {
            assert(seat.given.count < crew.options.given_max);
            seat.given.append(index);
            const bytes = std.mem.asBytes(value);
            const written = seat.writer.tryWrite(bytes, .{ .tag = index }) catch return;
            assert(written);
        }

        /// Returns the living worker that has the fewest tasks.
        pub fn shortest(crew: *Self) ?*Seat {
            var found: ?*Seat = null;
            for (crew.seats) |*seat| {
                if (!seat.alive) continue;
                if (found) |other| if (other.given.count <= seat.given.count) continue;
                found = seat;
            }
            return found;
        }

        /// Returns how many tasks every living worker has at least, apart from the one that it
        /// runs.
        pub fn fewest(crew: *Self) u32 {
            const seat = crew.shortest() orelse return 0;
            return @intCast(seat.given.count -| 1);
        }

        /// Ends a worker that has no task.
        pub fn end(crew: *Self, seat: *Seat) void {
            assert(seat.given.count == 0);
            seat.writer.end() catch {}; // if the worker has just died, that is as good
            crew.clear(seat);
        }

        /// Frees the seat of a worker that ends or is dead: waits for its thread, and vacates its
        /// endpoint for the next worker [segment.vacate_peer].
        pub fn clear(crew: *Self, seat: *Seat) void {
            seat.thread.join();
            seat.alive = false;
            seat.dead = false;
            crew.count();
            // The thread has ended and its answers were read, so this read finds only the end.
            var reply: Handled.Reply = undefined;
            if (seat.reader.tryRead(std.mem.asBytes(&reply))) |message| {
                assert(message == null);
            } else |_| {}
            const given_back = revive.vacate(&.{&seat.reader}, &.{&seat.writer});
            assert(given_back);
        }

        /// Waits until a worker has answered or died, at most for `limit_ns`.
        pub fn wait(crew: *Self, limit_ns: u64) void {
            // This thread may block; otherwise it would have no pool.
            _ = crew.selected.wait(.ns(limit_ns)) catch unreachable;
        }

        fn count(crew: *Self) void {
            crew.alive = 0;
            for (crew.seats) |*seat| {
                if (!seat.alive) continue;
                crew.readers[crew.alive] = &seat.reader;
                crew.alive += 1;
            }
            crew.selected.readers = crew.readers[0..crew.alive];
        }
    };
}

/// Returns the capacity of a ring with room for so many messages of one size. Each message takes at
/// most half of the ring, and pads take less than one more message.
fn capacityFor(payload_size: usize, message_count: u32) error{SegmentSize}!u32 {
    const header_size = layout.frame_header_size;
    if (payload_size > layout.ring_capacity_max / 2 - header_size) return error.SegmentSize;
    const extent: u64 = frame.extentOf(@intCast(payload_size));
    const needed = extent * (message_count + 2) + layout.ring_reserve;
    if (needed > layout.ring_capacity_max) return error.SegmentSize;
    const capacity = std.math.ceilPowerOfTwoAssert(u64, needed);
    return @intCast(@max(capacity, layout.ring_capacity_min));
}
