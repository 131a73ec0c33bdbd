//! An allocator in one piece of memory, for guests that share theirs with others and may not ask
//! for more.
//!
//! Invariant: blocks stand side by side from the beginning to the end of the region, and no two
//! free ones touch. First fit: what is asked for are a few large blocks at a time.

const std = @import("std");
const assert = std.debug.assert;
const Alignment = std.mem.Alignment;
const Allocator = std.mem.Allocator;

pub const Region = struct {
    first: *Block,

    /// In front of what is handed out.
    const Block = struct {
        /// With this head.
        size: usize,
        free: bool,
        next: ?*Block,

        fn content(block: *Block) [*]u8 {
            return @as([*]u8, @ptrCast(block)) + head_size;
        }

        /// Joins the free blocks that stand after it.
        fn join(block: *Block) void {
            assert(block.free);
            while (block.next) |behind| {
                if (!behind.free) return;
                block.size += behind.size;
                block.next = behind.next;
            }
        }

        /// Cuts it after so many bytes, if what is left is worth a block.
        fn cut(block: *Block, size: usize) void {
            assert(size % unit == 0);
            if (block.size < size + 2 * head_size) return;
            const rest: *Block = @ptrCast(@alignCast(@as([*]u8, @ptrCast(block)) + size));
            rest.* = .{ .size = block.size - size, .free = true, .next = block.next };
            block.* = .{ .size = size, .free = block.free, .next = rest };
            rest.join();
        }
    };

    /// Of every block; the largest alignment that is asked for is that of a segment.
    const unit = 128;
    const head_size = unit;

    comptime {
        assert(@sizeOf(Block) <= head_size);
    }

    pub fn init(memory: []align(unit) u8) Region {
        const first: *Block = @ptrCast(memory.ptr);
        const size = memory.len - memory.len % unit;
        assert(size > head_size);
        first.* = .{ .size = size, .free = true, .next = null };
        return .{ .first = first };
    }

    pub fn allocator(region: *Region) Allocator {
        return .{ .ptr = region, .vtable = &.{
            .alloc = alloc,
            .resize = resize,
            .remap = remap,
            .free = free,
        } };
    }

    fn sizeFor(len: usize) usize {
        return head_size + std.mem.alignForward(usize, len, unit);
    }

    fn alloc(context: *anyopaque, len: usize, alignment: Alignment, _: usize) ?[*]u8 {
        if (alignment.toByteUnits() > unit) return null;
        const region: *Region = @ptrCast(@alignCast(context));
        const size = sizeFor(len);
        var place: ?*Block = region.first;
        while (place) |block| : (place = block.next) {
            if (!block.free or block.size < size) continue;
            block.cut(size);
            block.free = false;
            return block.content();
        }
        return null;
    }

    fn resize(_: *anyopaque, memory: []u8, _: Alignment, len: usize, _: usize) bool {
        const block = blockOf(memory);
        const size = sizeFor(len);
        if (size > block.size) {
            const behind = block.next orelse return false;
            if (!behind.free or block.size + behind.size < size) return false;
            block.size += behind.size;
            block.next = behind.next;
        }
        block.cut(size);
        return true;
    }

    fn remap(
        context: *anyopaque,
        memory: []u8,
        alignment: Alignment,
        len: usize,
        address: usize,
    ) ?[*]u8 {
        return if (resize(context, memory, alignment, len, address)) memory.ptr else null;
    }

    fn free(context: *anyopaque, memory: []u8, _: Alignment, _: usize) void {
        const region: *Region = @ptrCast(@alignCast(context));
        const freed = blockOf(memory);
        assert(!freed.free);
        freed.free = true;
        freed.join();
        var place: ?*Block = region.first;
        while (place) |block| : (place = block.next) {
            if (block.next == freed and block.free) return block.join();
        }
    }

    fn blockOf(memory: []u8) *Block {
        return @ptrCast(@alignCast(memory.ptr - head_size));
    }
};

test "Region: whatever is taken and given back, it is one free block in the end" {
    var memory: [64 * 1024]u8 align(128) = undefined;
    var region: Region = .init(&memory);
    const gpa = region.allocator();
    var random: std.Random.DefaultPrng = .init(1);
    var taken: [16][]u8 = @splat(&.{});
    for (0..10_000) |_| {
        const index = random.random().uintLessThan(u8, taken.len);
        const size = random.random().uintLessThan(usize, 6000);
        for (taken[index]) |byte| try std.testing.expectEqual(index, byte);
        if (random.random().boolean() and gpa.resize(taken[index], size)) {
            taken[index].len = size;
        } else {
            gpa.free(taken[index]);
            taken[index] = &.{};
            taken[index] = gpa.alloc(u8, size) catch continue;
        }
        @memset(taken[index], index);
    }
    for (taken) |bytes| gpa.free(bytes);
    try std.testing.expectEqual(memory.len, region.first.size);
    try std.testing.expect(region.first.free);
}

test "Region: no more than there is" {
    var memory: [1024]u8 align(128) = undefined;
    var region: Region = .init(&memory);
    const gpa = region.allocator();
    try std.testing.expectError(error.OutOfMemory, gpa.alloc(u8, 1024));
    const most = try gpa.alignedAlloc(u8, .fromByteUnits(128), 1024 - 128);
    try std.testing.expectError(error.OutOfMemory, gpa.alloc(u8, 1));
    gpa.free(most);
}
