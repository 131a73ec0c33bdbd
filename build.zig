//! Builds the Zig implementation: `zig build` installs `zig-out/bin/millrace*.wasm`, `zig build
//! lib` the library for C, `zig build docs` the reference; `zig build test` runs the tests. As a
//! package it offers the module "millrace", `wasmTarget` and `addWasmWorker`.

const std = @import("std");

/// The version of this implementation; that of the layout is in `spec/layout.json`.
const version = std.SemanticVersion.parse(@import("build.zig.zon").version) catch unreachable;

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});

    // No target of its own: it is compiled for whoever imports it.
    const module = b.addModule("millrace", .{
        .root_source_file = b.path("impl-zig/src/root.zig"),
    });

    const wasm_optimize = b.option(
        std.builtin.OptimizeMode,
        "wasm-optimize",
        "How millrace.wasm and millrace_mailbox.wasm are optimized (default: small)",
    ) orelse .small;
    const wasm_step = b.step("wasm", "Build zig-out/bin/millrace.wasm and millrace_mailbox.wasm");
    for ([_]WasmWorker{
        .{
            .name = "millrace",
            .root_source_file = b.path("impl-zig/src/wasm.zig"),
            .optimize = wasm_optimize,
        },
        .{
            .name = "millrace_mailbox",
            .root_source_file = b.path("impl-zig/src/wasm_mailbox.zig"),
            .optimize = wasm_optimize,
            // Behind the data of the other, so that both can have one memory.
            .global_base = 320 * 1024,
        },
    }) |options| {
        const install = b.addInstallArtifact(addWasmWorker(b, options), .{});
        b.getInstallStep().dependOn(&install.step);
        wasm_step.dependOn(&install.step);
    }

    const imports: []const std.Build.Module.Import = &.{.{ .name = "millrace", .module = module }};
    const demo = addWasmWorker(b, .{
        .name = "demo_worker",
        .root_source_file = b.path("bench/demo/worker.zig"),
        .imports = imports,
    });
    b.step("demo", "Build the demo's worker").dependOn(&b.addInstallArtifact(demo, .{}).step);
    const file_peer = b.addExecutable(.{
        .name = "file_peer",
        .root_module = b.createModule(.{
            .root_source_file = b.path("conformance/interop/file_peer.zig"),
            .target = target,
            .optimize = .safe,
            .imports = imports,
        }),
    });
    b.step("file-peer", "Build the process that meets the other implementation in a file")
        .dependOn(&b.addInstallArtifact(file_peer, .{}).step);

    const lib_options: Library = .{
        .target = target,
        .optimize = b.option(
            std.builtin.OptimizeMode,
            "lib-optimize",
            "How libmillrace is optimized (default: fast)",
        ) orelse .fast,
    };
    const lib_step = b.step("lib", "Build libmillrace for C in zig-out/lib and zig-out/include");
    for ([_]std.builtin.LinkMode{ .static, .dynamic }) |linkage| {
        const library = addLibrary(b, lib_options, linkage);
        const has_implib = linkage == .dynamic and target.result.os.tag == .windows;
        const install = b.addInstallArtifact(library, .{
            // It has the name of the static library.
            .implib_dir = if (has_implib) .{ .override = .{ .custom = "lib/dll" } } else .default,
        });
        lib_step.dependOn(&install.step);
    }
    const header = b.addInstallHeaderFile(b.path("impl-zig/include/millrace.h"), "millrace.h");
    lib_step.dependOn(&header.step);
    addCross(b);

    const docs = b.addObject(.{
        .name = "millrace",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/root.zig"),
            .target = target,
            .optimize = .debug,
        }),
    });
    const install_docs = b.addInstallDirectory(.{
        .source_dir = docs.getEmittedDocs(),
        .install_dir = .prefix,
        .install_subdir = "docs",
    });
    b.step("docs", "Build the reference in zig-out/docs").dependOn(&install_docs.step);

    const test_filters = b.option(
        []const []const u8,
        "test-filter",
        "Run only the tests whose name contains this",
    ) orelse &.{};
    const test_step = b.step("test", "Run the tests, natively");
    // For `./millrace test`, which compiles beside the parts that need none of it.
    const programs = b.step("programs", "Build everything that the tests run");
    const test_module = b.createModule(.{
        .root_source_file = b.path("impl-zig/src/root.zig"),
        .target = target,
        .optimize = optimize,
    });
    // The other process of the tests between processes.
    const segment_peer = b.addExecutable(.{
        .name = "segment_peer",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/segment_peer_fixture.zig"),
            .target = target,
            .optimize = optimize,
        }),
    });
    const test_options = b.addOptions();
    test_options.addOptionPath("segment_peer", segment_peer.getEmittedBin());
    const segment_kill = b.addExecutable(.{
        .name = "segment_kill",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/segment_kill_fixture.zig"),
            .target = target,
            // Few instructions, because a test steps through them; and what applications run.
            .optimize = .fast,
        }),
    });
    test_options.addOptionPath("segment_kill", segment_kill.getEmittedBin());
    test_module.addOptions("test_options", test_options);
    const tests = b.addTest(.{ .root_module = test_module, .filters = test_filters });
    const run_tests = b.addRunArtifact(tests);
    // The tests print figures, which the build runner takes for a failure unless it passes all
    // output on; and so a second run is not answered from the cache.
    run_tests.stdio = .inherit;
    test_step.dependOn(&run_tests.step);

    const c_abi_tests = b.addTest(.{
        .name = "c_abi",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/c_abi.zig"),
            .target = target,
            .optimize = optimize,
        }),
        // The core's tests have run already.
        .filters = &.{".test.c_abi:"},
    });
    const run_c_abi_tests = b.addRunArtifact(c_abi_tests);
    run_c_abi_tests.stdio = .inherit;
    test_step.dependOn(&run_c_abi_tests.step);

    addFuzz(b, target, test_step, programs);
    addTestCross(b, test_options);
    addTestees(b, target, imports, test_step);

    // As a command for any WASI runtime: what needs no threads, which WASI does not have.
    const wasi_tests = b.addTest(.{
        .name = "millrace_wasi",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/root.zig"),
            .target = b.resolveTargetQuery(.{ .cpu_arch = .wasm32, .os_tag = .wasi }),
            .optimize = .safe,
            .strip = true,
        }),
        .filters = &.{
            "codec.test",       "frame_test",   "ring_test",
            "pipe_answer_test", "mailbox_test", "mailbox_close_test",
        },
    });
    wasi_tests.root_module.addOptions("test_options", test_options);
    b.step("wasi", "Build zig-out/bin/millrace_wasi.wasm, tests for a WASI runtime")
        .dependOn(&b.addInstallArtifact(wasi_tests, .{}).step);

    const bench = b.addExecutable(.{
        .name = "millrace-bench-native",
        .root_module = b.createModule(.{
            .root_source_file = b.path("bench/native/main.zig"),
            .target = target,
            .optimize = .fast,
            .imports = imports,
        }),
    });
    const bench_tests = b.addTest(.{
        .name = "bench_native",
        .root_module = b.createModule(.{
            .root_source_file = b.path("bench/native/main.zig"),
            .target = target,
            .optimize = optimize,
            .imports = imports,
        }),
        .filters = &.{ "histogram.test", "payload.test", "protocol.test" },
    });
    const bench_library = addLibrary(b, lib_options, .static);
    for ([_]*std.Build.Step.Compile{ bench, bench_tests }) |each| {
        each.root_module.linkLibrary(bench_library);
    }
    const run_bench_tests = b.addRunArtifact(bench_tests);
    run_bench_tests.stdio = .inherit;
    test_step.dependOn(&run_bench_tests.step);
    b.step("bench-native", "Build the benchmark driver for threads and processes")
        .dependOn(&b.addInstallArtifact(bench, .{}).step);

    for ([_]*std.Build.Step.Compile{
        segment_peer, segment_kill, tests, c_abi_tests, bench_tests,
    }) |each| programs.dependOn(&each.step);
    for ([_][]const u8{
        "wasm",        "wasi",      "lib",  "lib-cross",    "testee", "testee-guest",
        "testee-wasi", "file-peer", "demo", "bench-native",
    }) |name| programs.dependOn(&b.top_level_steps.get(name).?.step);
}

/// The fuzz targets and the hostile peers: with the tests in a mode that is fast and checks all the
/// same, and the targets alone for the compiler's fuzzer (`zig build fuzz --fuzz=10K`).
fn addFuzz(
    b: *std.Build,
    target: std.Build.ResolvedTarget,
    test_step: *std.Build.Step,
    programs: *std.Build.Step,
) void {
    const options = b.addOptions();
    const about = "Let the fuzzer meet the canary too, which ends it at once";
    options.addOption(bool, "canary", b.option(bool, "fuzz-canary", about) orelse false);
    const module = b.createModule(.{
        .root_source_file = b.path("impl-zig/src/fuzz_test.zig"),
        .target = target,
        .optimize = .safe,
        .imports = &.{.{ .name = "fuzz_options", .module = options.createModule() }},
    });
    const all = b.addTest(.{
        .name = "fuzz",
        .root_module = module,
        .filters = &.{ ".test.fuzz:", ".test.scribble:" },
    });
    programs.dependOn(&all.step);
    const run_all = b.addRunArtifact(all);
    run_all.stdio = .inherit;
    test_step.dependOn(&run_all.step);
    const targets = b.addTest(.{
        .name = "fuzz_targets",
        .root_module = module,
        .filters = &.{".test.fuzz:"},
    });
    b.step("fuzz", "Run the fuzz targets; with --fuzz=10K, under the fuzzer")
        .dependOn(&b.addRunArtifact(targets).step);
}

/// The testees of the conformance kit (see `conformance/testees/zig`).
fn addTestees(
    b: *std.Build,
    target: std.Build.ResolvedTarget,
    imports: []const std.Build.Module.Import,
    test_step: *std.Build.Step,
) void {
    const options = b.addOptions();
    options.addOption([]const u8, "version", b.fmt("{f}", .{version}));
    const with_options = std.mem.concat(b.allocator, std.Build.Module.Import, &.{
        imports, &.{.{ .name = "options", .module = options.createModule() }},
    }) catch @panic("OOM");
    const wasi = b.resolveTargetQuery(.{ .cpu_arch = .wasm32, .os_tag = .wasi });
    for ([_]struct { []const u8, []const u8, std.Build.ResolvedTarget }{
        .{ "testee", "Build the conformance kit's testee", target },
        .{ "testee-wasi", "Build it as a WASI command", wasi },
    }) |entry| {
        const step_name, const about, const place = entry;
        const testee = b.addExecutable(.{
            .name = if (place.result.os.tag == .wasi) "testee_wasi" else "testee",
            .root_module = b.createModule(.{
                .root_source_file = b.path("conformance/testees/zig/main.zig"),
                .target = place,
                .optimize = .safe,
                // Compiled at every start where it is WebAssembly.
                .strip = place.result.os.tag == .wasi,
                .imports = with_options,
            }),
        });
        b.step(step_name, about).dependOn(&b.addInstallArtifact(testee, .{}).step);
    }
    const guest = addWasmWorker(b, .{
        .name = "testee_guest",
        .root_source_file = b.path("conformance/testees/zig/guest.zig"),
        .imports = with_options,
        .optimize = .safe,
        // As little as it needs and as much as there can be: the memory is the kit's.
        .memory_size = 16 * wasm_page,
        .memory_size_max = 65_536 * wasm_page,
    });
    b.step("testee-guest", "Build it as a guest with shared memory")
        .dependOn(&b.addInstallArtifact(guest, .{}).step);
    const tests = b.addTest(.{
        .name = "testee",
        .root_module = b.createModule(.{
            .root_source_file = b.path("conformance/testees/zig/testee.zig"),
            .target = target,
            .imports = imports,
        }),
    });
    const run_tests = b.addRunArtifact(tests);
    run_tests.stdio = .inherit;
    test_step.dependOn(&run_tests.step);
}

/// The tests for systems on which they are not run: that they compile there, in seconds.
fn addTestCross(b: *std.Build, test_options: *std.Build.Step.Options) void {
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
            tests.root_module.addOptions("test_options", test_options);
            const options = b.addOptions();
            options.addOption(bool, "canary", false);
            tests.root_module.addOptions("fuzz_options", options);
            // Nobody asks for the program, so that all is checked and no code is made.
            step.dependOn(&tests.step);
        }
    }
}

const Library = struct {
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
};

/// The library for C (see `impl-zig/include/millrace.h`).
fn addLibrary(
    b: *std.Build,
    options: Library,
    linkage: std.builtin.LinkMode,
) *std.Build.Step.Compile {
    const library = b.addLibrary(.{
        .name = "millrace",
        .linkage = linkage,
        .version = version,
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/c_abi.zig"),
            .target = options.target,
            .optimize = options.optimize,
            .strip = options.optimize != .debug,
            // So that programs and libraries of any kind can take the static one in.
            .pic = true,
            // On Linux it needs no certain one: whatever process takes it in has `getauxval`.
            .link_libc = switch (options.target.result.os.tag) {
                .linux, .windows => false,
                else => true,
            },
        }),
    });
    // For linkers that do not know where Zig keeps it.
    library.bundle_compiler_rt = true;
    return library;
}

/// Compiles the library for systems that the tests may not run on.
fn addCross(b: *std.Build) void {
    const step = b.step("lib-cross", "Compile libmillrace for the other systems");
    for ([_]std.Target.Query{
        .{ .cpu_arch = .aarch64, .os_tag = .linux },
        .{ .cpu_arch = .aarch64, .os_tag = .macos },
        .{ .cpu_arch = .x86_64, .os_tag = .windows },
    }) |query| {
        const target = b.resolveTargetQuery(query);
        // The dynamic one, because that is linked too.
        const library = addLibrary(b, .{ .target = target, .optimize = .safe }, .dynamic);
        // Without it nothing asks for what is compiled.
        _ = library.getEmittedBin();
        step.dependOn(&library.step);
    }
    // What these compile to is of no use: they check which mechanism is the default.
    for ([_]std.Target.Os.Tag{ .freestanding, .wasi }) |os_tag| {
        for ([_][]const u8{ "host_fixture", "host_chosen_fixture" }) |name| {
            const fixture = b.addObject(.{
                .name = name,
                .root_module = b.createModule(.{
                    .root_source_file = b.path(b.fmt("impl-zig/src/{s}.zig", .{name})),
                    .target = wasmTargetOn(b, os_tag),
                    .optimize = .safe,
                }),
            });
            _ = fixture.getEmittedBin();
            step.dependOn(&fixture.step);
        }
    }
}

/// The target on which Millrace blocks in WebAssembly: freestanding, with atomics.
///
/// For other packages' build scripts: `@import("millrace").wasmTarget(b)`.
pub fn wasmTarget(b: *std.Build) std.Build.ResolvedTarget {
    return wasmTargetOn(b, .freestanding);
}

fn wasmTargetOn(b: *std.Build, os_tag: std.Target.Os.Tag) std.Build.ResolvedTarget {
    return b.resolveTargetQuery(.{
        .cpu_arch = .wasm32,
        .os_tag = os_tag,
        .cpu_model = .{ .explicit = &std.Target.wasm.cpu.generic },
        .cpu_features_add = std.Target.wasm.featureSet(&.{ .atomics, .bulk_memory, .simd128 }),
    });
}

pub const WasmWorker = struct {
    name: []const u8,
    root_source_file: std.Build.LazyPath,
    optimize: std.builtin.OptimizeMode = .fast,
    imports: []const std.Build.Module.Import = &.{},
    /// Leaves names and debug information away: three quarters of a module's bytes.
    strip: bool = true,
    /// What the module states of the shared memory that it imports as `env.memory`. The host's
    /// memory must begin with at least `memory_size` and end with at most `memory_size_max`.
    memory_size: u64 = 64 * wasm_page,
    memory_size_max: u64 = 16_384 * wasm_page,
    stack_size: u64 = 256 * 1024,
    /// Where the module's data begin; behind the stack if null.
    global_base: ?u64 = null,
};

const wasm_page = 64 * 1024;

/// A module without an entry that exports its `export fn`s and imports one shared memory, for any
/// number of workers: each gives its instance a stack of its own (see `impl-zig/src/wasm.zig`).
pub fn addWasmWorker(b: *std.Build, options: WasmWorker) *std.Build.Step.Compile {
    const worker = b.addExecutable(.{
        .name = options.name,
        .root_module = b.createModule(.{
            .root_source_file = options.root_source_file,
            .target = wasmTarget(b),
            .optimize = options.optimize,
            .strip = options.strip,
            .imports = options.imports,
        }),
    });
    worker.entry = .disabled;
    worker.rdynamic = true;
    worker.import_memory = true;
    worker.shared_memory = true;
    worker.initial_memory = options.memory_size;
    worker.max_memory = options.memory_size_max;
    worker.stack_size = options.stack_size;
    worker.global_base = options.global_base;
    return worker;
}
