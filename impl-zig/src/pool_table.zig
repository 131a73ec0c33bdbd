//! The tasks of a pool, from when they are submitted until their outcome is handed out.
//!
//! Invariant: a task has a place for as long as its outcome was not handed out, or a worker may
//! still answer for it.

const std = @import("std");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;

/// Names one task of one pool; that of a task whose outcome was handed out names none.
pub const Id = struct { place: u32, turn: u32 };

/// Numbers in a row, in memory that is taken once.
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

    /// Takes a number out of the middle. It is usually among the first.
    ///
    /// Asserts that it is there.
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

/// The tasks of a pool, by their place.
pub fn Table(comptime Value: type, comptime Outcome: type) type {
    return struct {
        places: []Place,
        free: Row,
        /// In the order in which they were submitted, and as far as they were not handed out.
        submitted: Row,
        /// Those of them whose outcome is known, in the order in which it became known.
        ready: Row,
        /// Those that no worker has, the next one first.
        waiting: Row,

        const Self = @This();

        pub const Place = struct {
            turn: u32 = 0,
            value: Value = undefined,
            /// Once it is known.
            outcome: ?Outcome = null,
            /// Whether its outcome was handed out, or nobody has submitted anything.
            told: bool = true,
            /// Whether a worker has it.
            given: bool = false,
            retry: u32 = 0,
            submitted_ns: u64 = 0,
            /// Whether it was given up: what its worker may ask.
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

        /// Takes a task in; null where there is no place for it.
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

        /// The place of a task whose outcome was not handed out.
        pub fn find(table: *const Self, id: Id) ?u32 {
            if (id.place >= table.places.len) return null;
            const place = &table.places[id.place];
            return if (place.turn == id.turn and !place.told) id.place else null;
        }

        pub fn idOf(table: *const Self, index: u32) Id {
            return .{ .place = index, .turn = table.places[index].turn };
        }

        /// The next task that waits goes to a worker.
        pub fn give(table: *Self) u32 {
            const index = table.waiting.take();
            table.places[index].given = true;
            return index;
        }

        /// A task comes back from a worker that has not answered, to be given to the next one.
        pub fn takeBack(table: *Self, index: u32) void {
            const place = &table.places[index];
            assert(place.given);
            place.given = false;
            if (place.outcome != null) return table.freeIfOver(index); // given up meanwhile
            table.waiting.prepend(index);
        }

        /// A worker has answered for it, or never will. Returns whether that is what becomes of it:
        /// a task that was given up has its outcome already.
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

        /// Gives a task up: its outcome is known at once, and its place is taken until its worker
        /// has answered. Returns false where its outcome was known before.
        pub fn giveUp(table: *Self, index: u32, outcome: Outcome) bool {
            const place = &table.places[index];
            if (place.outcome != null) return false;
            place.outcome = outcome;
            place.cancelled.store(true, .monotonic);
            if (!place.given) table.waiting.remove(index);
            table.ready.append(index);
            return true;
        }

        /// The task whose outcome is to be handed out next.
        pub fn nextReady(table: *const Self, ordered: bool) ?u32 {
            if (!ordered) return table.ready.first();
            const index = table.submitted.first() orelse return null;
            return if (table.places[index].outcome == null) null else index;
        }

        /// Hands an outcome out.
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
