//! The root of the two programs that the tests between processes start. It stands here because the
//! tests import what is in them too, and a file belongs to one module.

const std = @import("std");
const program = @field(struct {
    const segment_kill = @import("testing/segment_kill_fixture.zig");
    const segment_peer = @import("testing/segment_process_test.zig");
}, @import("process_options").name);

pub const main = program.main;

pub const panic = if (@hasDecl(program, "panic"))
    program.panic
else
    std.debug.FullPanic(std.debug.defaultPanic);
