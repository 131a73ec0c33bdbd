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
    _ = @import("testing/fuzz_codec_test.zig");
    _ = @import("testing/fuzz_canary_test.zig");
    _ = @import("testing/scribble_test.zig");
    _ = @import("testing/scribble_flip_test.zig");
}
