//! Builds the Zig implementation: `zig build` installs `zig-out/bin/millrace*.wasm`, `zig build
//! lib` the library for C, and `zig build test` runs the tests. As a package it offers the module
//! "millrace", `wasmTarget` and `addWasmWorker`.

const std = @import("std");

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
    const interop = addWasmWorker(b, .{
        .name = "interop_worker",
        .root_source_file = b.path("conformance/interop/worker.zig"),
        .imports = imports,
        .optimize = .safe,
    });
    b.step("interop", "Build the worker that meets the other implementation")
        .dependOn(&b.addInstallArtifact(interop, .{}).step);
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
    const static = addWasmWorker(b, .{
        .name = "static_worker",
        .root_source_file = b.path("conformance/static/worker.zig"),
        .imports = imports,
        .optimize = .safe,
    });
    b.step("static", "Build the worker that runs the static cases")
        .dependOn(&b.addInstallArtifact(static, .{}).step);

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

    const test_filters = b.option(
        []const []const u8,
        "test-filter",
        "Run only the tests whose name contains this",
    ) orelse &.{};
    const test_step = b.step("test", "Run the tests, natively");
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
        .name = "millrace-bench",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/bench/bench.zig"),
            .target = target,
            .optimize = .fast,
            .imports = &.{.{ .name = "millrace", .module = module }},
        }),
    });
    const run_bench = b.addRunArtifact(bench);
    b.step("bench", "Measure echo and throughput between two threads").dependOn(&run_bench.step);
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
        .version = .{ .major = 0, .minor = 1, .patch = 0 },
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

/// The target on which Millrace blocks in WebAssembly: freestanding, with atomics.
///
/// For other packages' build scripts: `@import("millrace").wasmTarget(b)`.
pub fn wasmTarget(b: *std.Build) std.Build.ResolvedTarget {
    return b.resolveTargetQuery(.{
        .cpu_arch = .wasm32,
        .os_tag = .freestanding,
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
