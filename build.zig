//! Builds the Zig implementation: `zig build` installs the library for C, with its headers and
//! what `pkg-config` reads, and `zig-out/bin/millrace*.wasm`; `zig build lib` and `zig build wasm`
//! one of these. `zig build docs` makes the reference, `zig build test` runs the tests. As a
//! package it offers the module "millrace", `wasmTarget` and `addWasmWorker`. The steps that need
//! more than the package are in `impl-zig/build_repository.zig`.

const std = @import("std");
const repository = @import("impl-zig/build_repository.zig");

/// The version of this implementation; that of the layout is in `spec/layout.json`.
const version = std.SemanticVersion.parse(@import("build.zig.zon").version) catch unreachable;

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = optimizeOption(b);
    // No target of its own: it is compiled for whoever imports it.
    const module = b.addModule("millrace", .{
        .root_source_file = b.path("impl-zig/src/root.zig"),
    });
    addModules(b, optimize orelse .small);
    const library = addLibraries(b, .{ .target = target, .optimize = optimize orelse .fast });
    addCross(b);
    addDocs(b, target);
    repository.add(.{
        .b = b,
        .target = target,
        .optimize = optimize,
        .strip = b.option(bool, "strip", repository.about_strip),
        .module = module,
        .library = library,
        .version = version,
    });
}

/// How to optimize what is built; null where nobody says so.
fn optimizeOption(b: *std.Build) ?std.builtin.OptimizeMode {
    const about =
        "How all that is built is optimized. Default: the library and the benchmarks fast, " ++
        "modules of WebAssembly small, testees but that for WASI and fuzz tests safe, other " ++
        "tests debug. Always fast: the process that the tests kill at each of its stores";
    if (b.option(std.builtin.OptimizeMode, "optimize", about)) |mode| return mode;
    return switch (b.graph.release_mode) {
        .off => null,
        .any, .fast => .fast,
        .safe => .safe,
        .small => .small,
    };
}

/// The modules of WebAssembly.
fn addModules(b: *std.Build, optimize: std.builtin.OptimizeMode) void {
    const step = b.step("wasm", "Build zig-out/bin/millrace.wasm and millrace_mailbox.wasm");
    for ([_]WasmWorker{
        .{
            .name = "millrace",
            .root_source_file = b.path("impl-zig/src/wasm.zig"),
            .optimize = optimize,
        },
        .{
            .name = "millrace_mailbox",
            .root_source_file = b.path("impl-zig/src/wasm_mailbox.zig"),
            .optimize = optimize,
            // After the data of the other, so that both can have one memory.
            .global_base = 320 * 1024,
        },
    }) |options| {
        const install = b.addInstallArtifact(addWasmWorker(b, options), .{});
        b.getInstallStep().dependOn(&install.step);
        step.dependOn(&install.step);
    }
}

fn addDocs(b: *std.Build, target: std.Build.ResolvedTarget) void {
    const docs = b.addObject(.{
        .name = "millrace",
        .root_module = b.createModule(.{
            .root_source_file = b.path("impl-zig/src/root.zig"),
            .target = target,
            .optimize = .debug,
        }),
    });
    const install = b.addInstallDirectory(.{
        .source_dir = docs.getEmittedDocs(),
        .install_dir = .prefix,
        .install_subdir = "docs",
    });
    b.step("docs", "Build the reference in zig-out/docs").dependOn(&install.step);
}

const Library = struct {
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
    /// Null where that goes by the mode.
    strip: ?bool = null,
};

/// The library for C, and its headers (see `impl-zig/include/millrace.h`). Returns the static one.
fn addLibraries(b: *std.Build, options: Library) *std.Build.Step.Compile {
    const step = b.step("lib", "Build libmillrace for C in zig-out/lib and zig-out/include");
    b.getInstallStep().dependOn(step);
    const static = addLibrary(b, options, .static);
    const dynamic = addLibrary(b, options, .dynamic);
    step.dependOn(&b.addInstallArtifact(static, .{}).step);
    const is_windows = options.target.result.os.tag == .windows;
    const install = b.addInstallArtifact(dynamic, .{
        // It has the name of the static library.
        .implib_dir = if (is_windows) .{ .override = .{ .custom = "lib/dll" } } else .default,
    });
    step.dependOn(&install.step);
    const parts = [_][]const u8{
        "", "_call", "_fanout", "_stream", "_digest", "_property", "_meter",
    };
    for (parts) |part| {
        const name = b.fmt("millrace{s}.h", .{part});
        const path = b.path(b.fmt("impl-zig/include/{s}", .{name}));
        step.dependOn(&b.addInstallHeaderFile(path, name).step);
    }
    const described = b.addWriteFiles().add("millrace.pc", pkgConfig(b));
    const install_described = b.addInstallFileWithDir(described, .lib, "pkgconfig/millrace.pc");
    step.dependOn(&install_described.step);
    return static;
}

/// What `pkg-config` is told of the library, wherever its folder is moved to.
fn pkgConfig(b: *std.Build) []const u8 {
    return b.fmt(
        \\prefix=${{pcfiledir}}/../..
        \\libdir=${{prefix}}/lib
        \\includedir=${{prefix}}/include
        \\
        \\Name: millrace
        \\Description: Messages between threads, runtimes and processes through shared memory
        \\Version: {f}
        \\Libs: -L${{libdir}} -lmillrace
        \\Cflags: -I${{includedir}}
        \\
    , .{version});
}

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
            .root_source_file = b.path("impl-zig/src/c.zig"),
            .target = options.target,
            .optimize = options.optimize,
            .strip = options.strip orelse (options.optimize != .debug),
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
        .{ .cpu_arch = .arm, .os_tag = .linux, .abi = .musleabihf },
        .{ .cpu_arch = .aarch64, .os_tag = .macos },
        .{ .cpu_arch = .x86_64, .os_tag = .windows },
        // With no more instructions than all of them have, which Zig's own backend minds.
        .{ .cpu_arch = .x86_64, .os_tag = .linux },
    }) |query| {
        const target = b.resolveTargetQuery(query);
        const options: Library = .{
            .target = target,
            // It is of no use, and optimized would take three times as long.
            .optimize = .debug,
            .strip = true,
        };
        // The dynamic one, because that is linked too.
        const library = addLibrary(b, options, .dynamic);
        // Without it nothing asks for what is compiled.
        _ = library.getEmittedBin();
        step.dependOn(&library.step);
    }
    // What these compile to is of no use: they check which mechanism is the default.
    for ([_]std.Target.Os.Tag{ .freestanding, .wasi }) |os_tag| {
        for ([_][]const u8{ "host_fixture", "host_chosen_fixture" }) |name| {
            const millrace = b.modules.get("millrace").?;
            const fixture = b.addObject(.{
                .name = name,
                .root_module = b.createModule(.{
                    .root_source_file = b.path(b.fmt("impl-zig/src/testing/{s}.zig", .{name})),
                    .target = wasmTargetOn(b, os_tag),
                    .optimize = .safe,
                    .imports = &.{.{ .name = "millrace", .module = millrace }},
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
    /// Where the module's data begin; after the stack if null.
    global_base: ?u64 = null,
};

pub const wasm_page = 64 * 1024;

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
