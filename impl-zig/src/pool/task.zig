//! The tasks of a pool, from submitting one until its outcome is handed out.
//!
//! Invariant: a task has a place until its outcome was handed out and no worker may still answer
//! for it.

const std = @import("std");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;

/// Identifies one task of one pool. After the task's outcome was handed out, it identifies none.
pub const Id = struct { place: u32, turn: u32 };

/// A queue of numbers, in memory that is allocated once.
pub const Row = struct {
    numbers: []u32,
    begin: usize = 0,
    count: usize = 0,

    pub fn init(gpa: Allocator, most: usize) error{OutOfMemory}!Row {
        return .{ .numbers = try gpa.alloc(u32, most) };
    }

    pub fn deinit(row: *Row, gpa: Allocator) void {
        gpa.free(row.numbers);
        row.* = undefined;
    }

    pub fn first(row: *const Row) ?u32 {
        return if (row.count == 0) null else row.at(0).*;
    }

    pub fn append(row: *Row, number: u32) void {
        assert(row.count < row.numbers.len);
        row.count += 1;
        row.at(row.count - 1).* = number;
    }

    pub fn prepend(row: *Row, number: u32) void {
        assert(row.count < row.numbers.len);
        row.begin = (row.begin + row.numbers.len - 1) % row.numbers.len;
        row.count += 1;
        row.at(0).* = number;
    }

    pub fn take(row: *Row) u32 {
        const number = row.at(0).*;
        row.begin = (row.begin + 1) % row.numbers.len;
        row.count -= 1;
        return number;
    }

    pub fn takeLast(row: *Row) u32 {
        const number = row.at(row.count - 1).*;
        row.count -= 1;
        return number;
    }

    /// Removes a number from the middle. It is usually among the first.
    ///
    /// Asserts that the number is there.
    pub fn remove(row: *Row, number: u32) void {
        var index: usize = 0;
        while (row.at(index).* != number) index += 1;
        while (index > 0) : (index -= 1) row.at(index).* = row.at(index - 1).*;
        _ = row.take();
    }

    fn at(row: *const Row, index: usize) *u32 {
        assert(index < row.count);
        return &row.numbers[(row.begin + index) % row.numbers.len];
    }
};

/// The tasks of a pool, each in its place.
pub fn Table(comptime Value: type, comptime Outcome: type) type {
    return struct {
        places: []Place,
        free: Row,
        /// The tasks whose outcome was not handed out, in the order in which they were submitted.
        submitted: Row,
        /// Those of them whose outcome is known, in the order in which it became known.
        ready: Row,
        /// Those of them that no worker has; the next one to give comes first.
        waiting: Row,

        const Self = @This();

        pub const Place = struct {
            turn: u32 = 0,
            value: Value = undefined,
            /// Null while it is not known.
            outcome: ?Outcome = null,
            /// Whether the outcome was handed out; also true of a place that never had a task.
            told: bool = true,
            /// Whether a worker has the task.
            given: bool = false,
            retry: u32 = 0,
            submitted_ns: u64 = 0,
            /// Whether the task was given up; its worker may look at this.
            cancelled: std.atomic.Value(bool) = .init(false),
        };

        pub fn init(gpa: Allocator, room: u32) error{OutOfMemory}!Self {
            const places = try gpa.alloc(Place, room);
            errdefer gpa.free(places);
            @memset(places, .{});
            var rows: [4]Row = undefined;
            for (&rows, 0..) |*row, index| {
                errdefer for (rows[0..index]) |*made| made.deinit(gpa);
                row.* = try .init(gpa, room);
            }
            for (0..room) |index| rows[0].append(@intCast(index));
            return .{
                .places = places,
                .free = rows[0],
                .submitted = rows[1],
                .ready = rows[2],
                .waiting = rows[3],
            };
        }

        pub fn deinit(table: *Self, gpa: Allocator) void {
            for ([_]*Row{ &table.free, &table.submitted, &table.ready, &table.waiting }) |row| {
                row.deinit(gpa);
            }
            gpa.free(table.places);
            table.* = undefined;
        }

        /// Accepts a task; returns null if there is no place for it.
        pub fn submit(table: *Self, value: Value, retry: u32, now_ns: u64) ?Id {
            if (table.free.count == 0) return null;
            const index = table.free.take();
            const place = &table.places[index];
            assert(place.told and !place.given);
            place.* = .{
                .turn = place.turn +% 1,
                .value = value,
                .told = false,
                .retry = retry,
                .submitted_ns = now_ns,
            };
            table.submitted.append(index);
            table.waiting.append(index);
            return .{ .place = index, .turn = place.turn };
        }

        /// Returns the place of a task whose outcome was not handed out.
        pub fn find(table: *const Self, id: Id) ?u32 {
            if (id.place >= table.places.len) return null;
            const place = &table.places[id.place];
            return if (place.turn == id.turn and !place.told) id.place else null;
        }

        pub fn idOf(table: *const Self, index: u32) Id {
            return .{ .place = index, .turn = table.places[index].turn };
        }

        /// Takes the next waiting task, to give it to a worker.
        pub fn give(table: *Self) u32 {
            const index = table.waiting.take();
            table.places[index].given = true;
            return index;
        }

        /// Takes a task back from a worker that has not answered, to give it to another one.
        pub fn takeBack(table: *Self, index: u32) void {
            const place = &table.places[index];
            assert(place.given);
            place.given = false;
            if (place.outcome != null) return table.freeIfOver(index); // it was given up meanwhile
            table.waiting.prepend(index);
        }

        /// Notes that a worker has answered for a task, or never will. Returns whether that decides
        /// the outcome of the task: one that was given up has its outcome already.
        pub fn settle(table: *Self, index: u32, outcome: Outcome) bool {
            const place = &table.places[index];
            assert(place.given);
            place.given = false;
            if (place.outcome != null) {
                table.freeIfOver(index);
                return false;
            }
            place.outcome = outcome;
            table.ready.append(index);
            return true;
        }

        /// Gives a task up. Its outcome is known at once, and its place stays taken until its
        /// worker has answered. Returns false if its outcome was known already.
        pub fn giveUp(table: *Self, index: u32, outcome: Outcome) bool {
            const place = &table.places[index];
            if (place.outcome != null) return false;
            place.outcome = outcome;
            place.cancelled.store(true, .monotonic);
            if (!place.given) table.waiting.remove(index);
            table.ready.append(index);
            return true;
        }

        /// Returns the task whose outcome is to be handed out next.
        pub fn nextReady(table: *const Self, ordered: bool) ?u32 {
            if (!ordered) return table.ready.first();
            const index = table.submitted.first() orelse return null;
            return if (table.places[index].outcome == null) null else index;
        }

        /// Hands out an outcome.
        pub fn tell(table: *Self, index: u32) struct { value: Value, outcome: Outcome } {
            const place = &table.places[index];
            table.submitted.remove(index);
            table.ready.remove(index);
            place.told = true;
            defer table.freeIfOver(index);
            return .{ .value = place.value, .outcome = place.outcome.? };
        }

        fn freeIfOver(table: *Self, index: u32) void {
            const place = &table.places[index];
            if (place.told and !place.given) table.free.append(index);
        }
    };
}
