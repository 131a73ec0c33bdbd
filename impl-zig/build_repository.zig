//! The steps of build.zig that take the whole repository: the tests, and the programs that the
//! tests, the conformance kit and the benchmarks run.

const std = @import("std");
const package = @import("../build.zig");
const Mode = std.builtin.OptimizeMode;
const Step = std.Build.Step;
const Target = std.Build.ResolvedTarget;

/// What the steps have in common.
pub const Context = struct {
    b: *std.Build,
    target: Target,
    /// What -Doptimize says; null where it says nothing, and each program has a mode of its own.
    optimize: ?Mode,
    /// What -Dstrip says; null where it says nothing.
    strip: ?bool,
    module: *std.Build.Module,
    /// The static one, for C.
    library: *Step.Compile,
    version: std.SemanticVersion,

    fn import(context: Context) std.Build.Module.Import {
        return .{ .name = "millrace", .module = context.module };
    }

    fn strips(context: Context, optimize: Mode) bool {
        return context.strip orelse (optimize != .debug);
    }
};

/// With debug information an optimized program takes two to three times as long to compile: it then
/// holds, optimized as well, what reads such information to print the trace of a panic.
pub const about_strip =
    "Leave debug information out of the tests and of what they run, so that panics name no " ++
    "lines. Default: in all of them that are optimized, but not in step fuzz";

pub fn add(context: Context) void {
    const b = context.b;
    addDemo(context);
    addFilePeer(context);
    addNodeAddons(context);
    const test_step = b.step("test", "Run the tests, natively");
    // For `./millrace test`, which compiles beside the parts that need none of it.
    const programs = b.step("programs", "Build everything that the tests run");
    addTestees(context, test_step);
    addBench(context, test_step, programs);
    const native = addTests(context, test_step, programs);
    addTestCross(b, native);
    addWasi(context, native);
    for ([_][]const u8{
        "wasm",        "wasi",      "lib",  "lib-cross",    "testee",     "testee-guest",
        "testee-wasi", "file-peer", "demo", "bench-native", "node-addon",
    }) |name| programs.dependOn(&b.top_level_steps.get(name).?.step);
}

fn addDemo(context: Context) void {
    const b = context.b;
    const demo = package.addWasmWorker(b, .{
        .name = "demo_worker",
        .root_source_file = b.path("bench/demo/worker.zig"),
        .optimize = context.optimize orelse .fast,
        .imports = &.{context.import()},
    });
    b.step("demo", "Build the demo's worker").dependOn(&b.addInstallArtifact(demo, .{}).step);
}

fn addFilePeer(context: Context) void {
    const b = context.b;
    // What optimized code makes of the same memory, the kit's testee shows.
    const optimize = context.optimize orelse .debug;
    const file_peer = b.addExecutable(.{
        .name = "file_peer",
        .root_module = b.createModule(.{
            .root_source_file = b.path("conformance/interop/file_peer.zig"),
            .target = context.target,
            .optimize = optimize,
            .strip = context.strips(optimize),
            .imports = &.{context.import()},
        }),
    });
    b.step("file-peer", "Build the process that meets the other implementation in a file")
        .dependOn(&b.addInstallArtifact(file_peer, .{}).step);
}

/// The addons for Node of all platforms that have one: `zig-out/node/PLATFORM/millrace.node`. They
/// need no certain C library, so that each is for all systems of its processor.
fn addNodeAddons(context: Context) void {
    const b = context.b;
    const step = b.step("node-addon", "Build the addons for Node in zig-out/node");
    for ([_]struct { []const u8, std.Target.Cpu.Arch }{
        .{ "linux-x64", .x86_64 },
        .{ "linux-arm64", .aarch64 },
    }) |entry| {
        const platform, const arch = entry;
        const optimize = context.optimize orelse .safe;
        const addon = b.addLibrary(.{
            .name = "millrace_node",
            .linkage = .dynamic,
            .root_module = b.createModule(.{
                .root_source_file = b.path("impl-zig/node/addon.zig"),
                .target = b.resolveTargetQuery(.{ .cpu_arch = arch, .os_tag = .linux }),
                .optimize = optimize,
                .strip = optimize != .debug,
                .link_libc = false,
            }),
        });
        // The Node-API, and threads, are those of the process that loads it.
        addon.linker_allow_shlib_undefined = true;
        const name = b.fmt("node/{s}/millrace.node", .{platform});
        step.dependOn(&b.addInstallFile(addon.getEmittedBin(), name).step);
    }
}

/// The testees of the conformance kit (see `conformance/testees/zig`).
fn addTestees(context: Context, test_step: *Step) void {
    const b = context.b;
    const optimize = context.optimize orelse .safe;
    const options = b.addOptions();
    options.addOption([]const u8, "version", b.fmt("{f}", .{context.version}));
    const imports: []const std.Build.Module.Import = &.{
        context.import(), .{ .name = "options", .module = options.createModule() },
    };
    const wasi = b.resolveTargetQuery(.{ .cpu_arch = .wasm32, .os_tag = .wasi });
    for ([_]struct { []const u8, []const u8, Target }{
        .{ "testee", "Build the conformance kit's testee", context.target },
        .{ "testee-wasi", "Build it as a WASI command", wasi },
    }) |entry| {
        const step_name, const about, const place = entry;
        // In one thread: debug, which is compiled in a tenth of the time.
        const is_wasi = place.result.os.tag == .wasi;
        const mode = if (is_wasi) context.optimize orelse .debug else optimize;
        const testee = b.addExecutable(.{
            .name = if (is_wasi) "testee_wasi" else "testee",
            .root_module = b.createModule(.{
                .root_source_file = b.path("conformance/testees/zig/main.zig"),
                .target = place,
                .optimize = mode,
                // WebAssembly of any kind: it is compiled at every start.
                .strip = is_wasi or context.strips(mode),
                .imports = imports,
            }),
        });
        b.step(step_name, about).dependOn(&b.addInstallArtifact(testee, .{}).step);
    }
    const guest = package.addWasmWorker(b, .{
        .name = "testee_guest",
        .root_source_file = b.path("conformance/testees/zig/guest.zig"),
        .imports = imports,
        .optimize = optimize,
        // As little as it needs and as much as there can be: the memory is the kit's.
        .memory_size = 16 * package.wasm_page,
        .memory_size_max = 65_536 * package.wasm_page,
    });
    b.step("testee-guest", "Build it as a guest with shared memory")
        .dependOn(&b.addInstallArtifact(guest, .{}).step);
    const tests = b.addTest(.{
        .name = "testee",
        .root_module = b.createModule(.{
            .root_source_file = b.path("conformance/testees/zig/testee.zig"),
            .target = context.target,
            .optimize = context.optimize orelse .debug,
            .imports = &.{context.import()},
        }),
    });
    test_step.dependOn(runOf(b, tests));
}

fn addBench(context: Context, test_step: *Step, programs: *Step) void {
    const b = context.b;
    const root = b.path("bench/native/main.zig");
    const optimize = context.optimize orelse .fast;
    const bench = b.addExecutable(.{
        .name = "millrace-bench-native",
        .root_module = b.createModule(.{
            .root_source_file = root,
            .target = context.target,
            .optimize = optimize,
            .strip = context.strips(optimize),
            .imports = &.{context.import()},
        }),
    });
    const tests = b.addTest(.{
        .name = "bench_native",
        .root_module = b.createModule(.{
            .root_source_file = root,
            .target = context.target,
            .optimize = context.optimize orelse .debug,
            .imports = &.{context.import()},
        }),
        .filters = &.{ "histogram.test", "payload.test", "protocol.test" },
    });
    for ([_]*Step.Compile{ bench, tests }) |each| each.root_module.linkLibrary(context.library);
    test_step.dependOn(runOf(b, tests));
    programs.dependOn(&tests.step);
    b.step("bench-native", "Build the benchmark driver for threads and processes")
        .dependOn(&b.addInstallArtifact(bench, .{}).step);
}

/// A machine, and how the tests are compiled for it.
const Place = struct {
    target: Target,
    optimize: Mode,
    /// Null where that goes by the mode.
    strip: ?bool = null,
    link_libc: ?bool = null,
    sanitize_thread: ?bool = null,
    /// The program that runs what is compiled for another processor than this one's.
    emulator: ?[]const u8 = null,

    fn module(place: Place, b: *std.Build, path: []const u8, optimize: Mode) *std.Build.Module {
        return b.createModule(.{
            .root_source_file = b.path(path),
            .target = place.target,
            .optimize = optimize,
            .strip = place.strip orelse (optimize != .debug),
            .link_libc = place.link_libc,
            .sanitize_thread = place.sanitize_thread,
        });
    }

    /// A program that the tests start.
    fn process(place: Place, b: *std.Build, name: []const u8, optimize: Mode) *Step.Compile {
        const root = place.module(b, "impl-zig/src/process_fixture.zig", optimize);
        const options = b.addOptions();
        options.addOption([]const u8, "name", name);
        root.addOptions("process_options", options);
        return b.addExecutable(.{ .name = name, .root_module = root });
    }
};

/// The tests of the implementation, in every place. Returns what those of this machine import.
fn addTests(context: Context, test_step: *Step, programs: *Step) *Step.Options {
    const b = context.b;
    const filters = b.option(
        []const []const u8,
        "test-filter",
        "Run only the tests of the implementation whose name contains this",
    ) orelse &.{};
    const about = "Let the fuzzer meet the canary too, which ends it at once";
    const canary = b.option(bool, "fuzz-canary", about) orelse false;
    const native: Place = .{
        .target = context.target,
        .optimize = context.optimize orelse .debug,
        .strip = context.strip,
    };
    const options = optionsOf(b, native, canary);
    for ([_]*Step.Compile{
        addCoreTests(b, native, options, filters),
        addAbiTests(b, native, options),
        addFuzzTests(context, native, options, &.{ ".test.fuzz:", ".test.scribble:" }),
    }) |tests| {
        programs.dependOn(&tests.step);
        test_step.dependOn(runOf(b, tests));
    }
    // The fuzzer shows what it has covered, by lines.
    var watched = native;
    watched.strip = context.strip orelse false;
    const targets = addFuzzTests(context, watched, options, &.{".test.fuzz:"});
    b.step("fuzz", "Run the fuzz targets; with --fuzz=10K, under the fuzzer")
        .dependOn(&b.addRunArtifact(targets).step);
    addTestMusl(context, filters);
    addTestEmulated(context, .aarch64, filters);
    addTestEmulated(context, .riscv64, filters);
    addTestRace(context, options);
    return options;
}

/// What tests import of this script.
fn optionsOf(b: *std.Build, place: Place, canary: bool) *Step.Options {
    const options = b.addOptions();
    options.addOption(bool, "canary", canary);
    options.addOption(?[]const u8, "emulator", place.emulator);
    // The other process of the tests between processes.
    const segment_peer = place.process(b, "segment_peer", place.optimize);
    options.addOptionPath("segment_peer", segment_peer.getEmittedBin());
    if (place.emulator != null) return options;
    // Few instructions, because a test steps through them; and what applications run.
    const segment_kill = place.process(b, "segment_kill", .fast);
    options.addOptionPath("segment_kill", segment_kill.getEmittedBin());
    return options;
}

fn addCoreTests(
    b: *std.Build,
    place: Place,
    options: *Step.Options,
    filters: []const []const u8,
) *Step.Compile {
    const module = place.module(b, "impl-zig/src/root.zig", place.optimize);
    module.addOptions("test_options", options);
    return b.addTest(.{ .root_module = module, .filters = filters });
}

fn addAbiTests(b: *std.Build, place: Place, options: *Step.Options) *Step.Compile {
    const module = place.module(b, "impl-zig/src/c.zig", place.optimize);
    module.addOptions("test_options", options);
    // The core's tests have run already.
    return b.addTest(.{ .name = "c_abi", .root_module = module, .filters = &.{".test.c_abi:"} });
}

/// The fuzz targets and the hostile peers: in a mode that is fast and checks all the same.
fn addFuzzTests(
    context: Context,
    place: Place,
    options: *Step.Options,
    filters: []const []const u8,
) *Step.Compile {
    const b = context.b;
    const optimize = if (place.emulator != null) place.optimize else context.optimize orelse .safe;
    const module = place.module(b, "impl-zig/src/fuzz_test.zig", optimize);
    module.addOptions("test_options", options);
    return b.addTest(.{ .name = "fuzz", .root_module = module, .filters = filters });
}

/// With the C library that static programs have, and its threads.
fn addTestMusl(context: Context, filters: []const []const u8) void {
    const b = context.b;
    const step = b.step("test-musl", "Run the tests as a static program with musl");
    const place: Place = .{
        .target = b.resolveTargetQuery(.{ .os_tag = .linux, .abi = .musl }),
        .optimize = context.optimize orelse .debug,
        .strip = context.strip,
        .link_libc = true,
    };
    const options = optionsOf(b, place, false);
    step.dependOn(runOf(b, addCoreTests(b, place, options, filters)));
    step.dependOn(runOf(b, addAbiTests(b, place, options)));
}

/// On another processor, as qemu's user mode plays it: its instructions, with this machine's order
/// of memory accesses, threads, futexes and locks. Always debug by default: Zig 0.17's own test
/// runner crashes as safe code for riscv64, with no test in it.
fn addTestEmulated(
    context: Context,
    arch: std.Target.Cpu.Arch,
    filters: []const []const u8,
) void {
    const b = context.b;
    const step = b.step(
        b.fmt("test-{t}", .{arch}),
        b.fmt("Run the tests for {t}, elsewhere by qemu-{t}", .{ arch, arch }),
    );
    const emulator = if (b.graph.host.result.cpu.arch == arch) null else b.fmt("qemu-{t}", .{arch});
    const place: Place = .{
        .target = b.resolveTargetQuery(.{ .cpu_arch = arch, .os_tag = .linux, .abi = .musl }),
        .optimize = context.optimize orelse .debug,
        .strip = context.strip,
        .emulator = emulator,
    };
    const options = optionsOf(b, place, false);
    for ([_]*Step.Compile{
        addCoreTests(b, place, options, filters),
        addAbiTests(b, place, options),
        addFuzzTests(context, place, options, &.{ ".test.fuzz:", "scribble_flip_test" }),
    }) |tests| step.dependOn(runBy(b, tests, emulator));
}

/// Threads under ThreadSanitizer: peers that keep to the rules, and somebody who closes them.
fn addTestRace(context: Context, options: *Step.Options) void {
    const b = context.b;
    const step = b.step("test-race", "Run the tests with threads under ThreadSanitizer");
    const place: Place = .{
        .target = context.target,
        .optimize = context.optimize orelse .debug,
        .strip = context.strip,
        // Its runtime watches the threads of a C library.
        .link_libc = true,
        .sanitize_thread = true,
    };
    const filters = &.{
        ".test.race:",      "port.port.test",      "pipe.ends.test",
        "more.select.test", "memory.segment.test", "pool_test",
    };
    step.dependOn(runOf(b, addCoreTests(b, place, options, filters)));
    const path = "impl-zig/src/testing/race_canary_fixture.zig";
    const canary = b.addExecutable(.{
        .name = "race_canary",
        .root_module = place.module(b, path, place.optimize),
    });
    canary.root_module.addImport("millrace", b.modules.get("millrace").?);
    const run_canary = b.addRunArtifact(canary);
    // Otherwise a second run is answered from the cache.
    run_canary.has_side_effects = true;
    run_canary.expectStdErrMatch("WARNING: ThreadSanitizer: data race");
    run_canary.expectExitCode(66);
    step.dependOn(&run_canary.step);
}

/// A run whose output is passed on: the tests print figures, which the build runner takes for a
/// failure otherwise; and so a second run is not answered from the cache.
fn runOf(b: *std.Build, tests: *Step.Compile) *Step {
    const run = b.addRunArtifact(tests);
    run.stdio = .inherit;
    return &run.step;
}

/// The same by an emulator, where there has to be one: by its name, since the tests start other
/// processes by it too.
fn runBy(b: *std.Build, tests: *Step.Compile, emulator: ?[]const u8) *Step {
    const run = b.addSystemCommand(&.{emulator orelse return runOf(b, tests)});
    run.addArtifactArg(tests);
    run.setName(b.fmt("run {s} {s}", .{ emulator.?, tests.name }));
    run.stdio = .inherit;
    return &run.step;
}

/// The tests for systems on which they are not run: that they compile there, in seconds.
fn addTestCross(b: *std.Build, options: *Step.Options) void {
    const step = b.step("test-cross", "Compile the tests for the other systems");
    for ([_]std.Target.Query{
        .{ .cpu_arch = .aarch64, .os_tag = .linux },
        .{ .cpu_arch = .arm, .os_tag = .linux, .abi = .musleabihf },
        .{ .cpu_arch = .aarch64, .os_tag = .macos },
        .{ .cpu_arch = .x86_64, .os_tag = .windows },
        .{ .cpu_arch = .wasm32, .os_tag = .wasi },
    }) |query| {
        const target = b.resolveTargetQuery(query);
        for ([_][]const u8{ "root", "fuzz_test" }) |name| {
            const tests = b.addTest(.{
                .name = b.fmt("{s}-{t}-{t}", .{ name, query.cpu_arch.?, query.os_tag.? }),
                .root_module = b.createModule(.{
                    .root_source_file = b.path(b.fmt("impl-zig/src/{s}.zig", .{name})),
                    .target = target,
                    .optimize = .debug,
                }),
            });
            tests.root_module.addOptions("test_options", options);
            // Nobody asks for the program, so that all is checked and no code is made.
            step.dependOn(&tests.step);
        }
    }
}

/// As a command for any WASI runtime: what needs no threads, which WASI does not have.
fn addWasi(context: Context, options: *Step.Options) void {
    const b = context.b;
    const tests = b.addTest(.{
        .name = "millrace_wasi",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/root.zig"),
            .target = b.resolveTargetQuery(.{ .cpu_arch = .wasm32, .os_tag = .wasi }),
            .optimize = context.optimize orelse .debug,
            .strip = true,
        }),
        .filters = &.{
            "codec.codec.test",   "ring.frame.test",      "ring.side.test",
            "pipe.incoming.test", "mailbox.mailbox.test", "mailbox.side.test",
        },
    });
    tests.root_module.addOptions("test_options", options);
    b.step("wasi", "Build zig-out/bin/millrace_wasi.wasm, tests for a WASI runtime")
        .dependOn(&b.addInstallArtifact(tests, .{}).step);
}
