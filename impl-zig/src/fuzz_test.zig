//! The fuzz targets, one for each place where this implementation reads bytes that a peer wrote;
//! and the hostile peers, which write while it reads.
//!
//! In the tests, each target gets the memories of the static cases and thousands of mutants of
//! them. `zig build fuzz --fuzz=10K` passes them to the compiler's fuzzer.

test {
    _ = @import("testing/fuzz_fixture.zig");
    _ = @import("testing/fuzz_segment_test.zig");
    _ = @import("testing/fuzz_pipe_test.zig");
    _ = @import("testing/fuzz_write_test.zig");
    _ = @import("testing/fuzz_mailbox_test.zig");
    _ = @import("testing/scribble_test.zig");
    _ = @import("testing/scribble_flip_test.zig");
}

// A parser with a planted fault, for the machinery of the other targets to find: if it does not,
// the other targets prove nothing.

const std = @import("std");
const builtin = @import("builtin");
const fuzz = @import("testing/fuzz_fixture.zig");
const layout = @import("memory/layout.zig");
const testing = std.testing;

/// More mutants than are needed to find it; other targets get as many by default.
const mutant_count = 10_000;

test "fuzz: a canary that trusts a frame's size is caught" {
    // Under the fuzzer only on request, because the fault ends the fuzzer at once.
    if (@import("test_options").canary) return fuzz.fuzz(Canary, 0);
    if (builtin.fuzz) return error.SkipZigTest;
    var corpus: fuzz.Corpus = try .load();
    defer corpus.deinit();
    const inputs = try fuzz.inputsOf(Canary, &corpus);
    for (0..mutant_count) |seed| {
        fuzz.checkMutant(Canary, inputs, seed) catch |err| {
            try testing.expectEqual(error.OutOfBounds, err);
            return;
        };
    }
    return error.NotCaught;
}

/// Walks the frames of an area as a careless reader would.
const Canary = struct {
    pub const name = "canary";
    pub const quiet = true;
    pub const size_max = 1024;

    pub fn seed(case: fuzz.Case, target: []u8) ?usize {
        if (case.role != .reader or case.memory.len < 1280) return null;
        const tail = fuzz.wordAt(case.memory, 512);
        if (tail > 256) return null;
        @memcpy(target[0..tail], case.memory[1024..][0..tail]);
        // Some of the cases that must be refused have this very fault.
        check(target[0..tail]) catch return null;
        return tail;
    }

    pub fn check(input: []const u8) !void {
        var offset: usize = 0;
        while (offset + layout.frame_header_size <= input.len) {
            const size = fuzz.wordAt(input, offset + layout.frame_size_offset);
            const kind = input[offset + layout.frame_kind_offset];
            // The fault: only messages are checked against the available size. Frames that are
            // skipped are not.
            const is_message = kind == layout.frame_kind_data;
            const end = offset + layout.frame_header_size + @as(usize, size);
            if (is_message and end > input.len) return;
            if (kind < layout.frame_kind_extension_min and !is_message) return;
            if (end > input.len) return error.OutOfBounds;
            offset = std.mem.alignForward(usize, end, layout.frame_align);
        }
    }
};
