//! The calls of Linux that segments in files need, for Node: what `impl-ts/src/host/calls.ts`
//! describes. Made by hand on the Node-API and the kernel's own calls, and so without any C
//! library: one file serves every Node on Linux of its processor, with glibc or musl.
//!
//! No argument crashes it. A wrong one throws, and what the system refuses is a number below 0.

const std = @import("std");
const linux = std.os.linux;
const napi = @import("napi.zig");
const method = @import("method.zig");
const Environment = @import("environment.zig").Environment;
const Mapping = @import("mapping.zig").Mapping;
const Descriptor = method.Descriptor;
const Path = method.Path;
const Size = method.Size;
const Span = method.Span;

/// Of the functions below: who loads another refuses it.
const interface_version = 1;

const read_size_max = 64 * 1024;

pub const panic = std.debug.FullPanic(die);

/// Only a fault of this file leads here.
fn die(message: []const u8, _: ?usize) noreturn {
    const head = "millrace addon: ";
    _ = linux.write(2, head, head.len);
    _ = linux.write(2, message.ptr, message.len);
    _ = linux.write(2, "\n", 1);
    @trap();
}

export fn node_api_module_get_api_version_v1() i32 {
    return napi.version;
}

/// Called once for each environment.
export fn napi_register_module_v1(env: napi.Env, exports: napi.Value) ?napi.Value {
    const environment = Environment.create(env) orelse {
        const message = "Cannot load addon: there is no memory";
        _ = napi.napi_throw_error(env, "ERR_MILLRACE_ADDON", message);
        return null;
    };
    var version: napi.Value = undefined;
    if (napi.napi_create_double(env, interface_version, &version) != .ok) return null;
    if (napi.napi_set_named_property(env, exports, "version", version) != .ok) return null;
    inline for (@typeInfo(calls).@"struct".decl_names) |name| {
        const callback = method.callback(name, @field(calls, name));
        var function: napi.Value = undefined;
        const made = napi.napi_create_function(
            env,
            name.ptr,
            name.len,
            callback,
            environment,
            &function,
        );
        if (made != .ok) return null;
        if (napi.napi_set_named_property(env, exports, name, function) != .ok) return null;
    }
    return exports;
}

const calls = struct {
    pub fn open(environment: *Environment, path: Path, flags: u32, mode: u32) usize {
        const cwd: u32 = @bitCast(@as(i32, linux.AT.FDCWD));
        return environment.keep(linux.syscall4(
            .openat,
            cwd,
            @intFromPtr(path.bytes),
            flags | @as(u32, @bitCast(linux.O{ .CLOEXEC = true })),
            mode,
        ));
    }

    pub fn openMemory(environment: *Environment, name: Path, flags: u32) usize {
        return environment.keep(linux.memfd_create(name.bytes, flags | linux.MFD.CLOEXEC));
    }

    pub fn close(environment: *Environment, fd: Descriptor) usize {
        return environment.close(fd.number);
    }

    pub fn link(_: *Environment, from: Path, to: Path, flags: u32) usize {
        return linux.linkat(linux.AT.FDCWD, from.bytes, linux.AT.FDCWD, to.bytes, flags);
    }

    pub fn unlink(_: *Environment, path: Path) usize {
        return linux.unlinkat(linux.AT.FDCWD, path.bytes, 0);
    }

    pub fn setMode(_: *Environment, fd: Descriptor, mode: u32) usize {
        return linux.fchmod(fd.number, @intCast(mode & 0o7777));
    }

    pub fn addSeals(_: *Environment, fd: Descriptor, seals: u32) usize {
        return linux.fcntl(fd.number, f_add_seals, seals);
    }

    pub fn getSeals(_: *Environment, fd: Descriptor) usize {
        return linux.fcntl(fd.number, f_get_seals, 0);
    }

    pub fn reserve(_: *Environment, fd: Descriptor, size: Size) usize {
        return linux.fallocate(fd.number, 0, 0, size);
    }

    pub fn lock(_: *Environment, fd: Descriptor, start: Size, size: Size) usize {
        return setLock(fd, linux.F.WRLCK, start, size);
    }

    pub fn unlock(_: *Environment, fd: Descriptor, start: Size, size: Size) usize {
        return setLock(fd, linux.F.UNLCK, start, size);
    }

    pub fn isLocked(_: *Environment, fd: Descriptor, start: Size, size: Size) usize {
        var record = toRecord(linux.F.WRLCK, start, size);
        const answer = linux.fcntl(fd.number, f_ofd_getlk, @intFromPtr(&record));
        if (linux.errno(answer) != .SUCCESS) return answer;
        return @intFromBool(record.type != linux.F.UNLCK);
    }

    pub fn user(_: *Environment) usize {
        return linux.geteuid();
    }

    pub fn statusOf(environment: *Environment, fd: Descriptor) method.Error!napi.Value {
        return toStatus(environment.env, fd.number, "", linux.AT.EMPTY_PATH);
    }

    pub fn statusAt(environment: *Environment, path: Path, flags: u32) method.Error!napi.Value {
        return toStatus(environment.env, linux.AT.FDCWD, path.bytes, flags);
    }

    pub fn read(environment: *Environment, fd: Descriptor, size: Size) method.Error!napi.Value {
        if (size > read_size_max) return error.NoSuchBytes;
        var bytes: [read_size_max]u8 = undefined;
        const answer = linux.pread(fd.number, &bytes, size, 0);
        if (linux.errno(answer) != .SUCCESS) return method.give(environment.env, answer);
        return toBuffer(environment.env, bytes[0..answer]);
    }

    /// `{ memory, buffer }`, or the number of an error.
    pub fn map(environment: *Environment, fd: Descriptor, size: Size) method.Error!napi.Value {
        const env = environment.env;
        var status: linux.Statx = undefined;
        const found = statx(fd.number, "", linux.AT.EMPTY_PATH, &status);
        if (linux.errno(found) != .SUCCESS) return method.give(env, found);
        // A touch of what lies after the end would end the process.
        if (size == 0 or size > status.size) return error.NoSuchBytes;
        var errno: linux.E = .SUCCESS;
        const mapping = Mapping.create(fd.number, size, &errno) orelse {
            return method.give(env, method.toAnswer(errno));
        };
        return mapping.toObject(env);
    }

    /// The memory stays, and can be used; the file is let go.
    pub fn release(_: *Environment, mapping: *Mapping) usize {
        const answer = mapping.empty();
        return if (linux.errno(answer) == .SUCCESS) 0 else answer;
    }

    pub fn sleep(
        _: *Environment,
        mapping: *Mapping,
        offset: Size,
        expected: i32,
        span: Span,
    ) method.Error!usize {
        const word = mapping.word(offset) orelse return error.NoSuchBytes;
        const ns: u64 = @intFromFloat(span.ms * std.time.ns_per_ms);
        const limit: linux.timespec = .{
            .sec = @intCast(ns / std.time.ns_per_s),
            .nsec = @intCast(ns % std.time.ns_per_s),
        };
        const wait: linux.FUTEX_OP = .{ .cmd = .WAIT, .private = false };
        return linux.futex_4arg(word, wait, @bitCast(expected), &limit);
    }

    /// The promise of a boolean, or undefined.
    pub fn sleepAsync(
        environment: *Environment,
        mapping: *Mapping,
        offset: Size,
        expected: i32,
        span: Span,
        keeps: bool,
    ) method.Error!napi.Value {
        const word = mapping.word(offset) orelse return error.NoSuchBytes;
        if (environment.sleepersOf()) |sleepers| {
            const wanted: u32 = @bitCast(expected);
            if (sleepers.sleepAsync(mapping, word, wanted, span.ms, keeps)) |promise| {
                return promise;
            }
        }
        var nothing: napi.Value = undefined;
        if (napi.napi_get_undefined(environment.env, &nothing) != .ok) return error.Refused;
        return nothing;
    }

    pub fn wake(_: *Environment, mapping: *Mapping, offset: Size) method.Error!usize {
        const word = mapping.word(offset) orelse return error.NoSuchBytes;
        const everybody = std.math.maxInt(i32);
        return linux.futex_3arg(word, .{ .cmd = .WAKE, .private = false }, everybody);
    }
};

// Of `fcntl`, the same on all processors.
const f_ofd_getlk = 36;
const f_ofd_setlk = 37;
const f_add_seals = 1033;
const f_get_seals = 1034;

fn toRecord(kind: i16, start: Size, size: Size) linux.Flock {
    var record = std.mem.zeroes(linux.Flock);
    record.type = kind;
    record.start = start;
    record.len = size;
    return record;
}

fn setLock(fd: Descriptor, kind: i16, start: Size, size: Size) usize {
    const record = toRecord(kind, start, size);
    return linux.fcntl(fd.number, f_ofd_setlk, @intFromPtr(&record));
}

fn statx(fd: i32, path: [*:0]const u8, flags: u32, status: *linux.Statx) usize {
    return linux.statx(fd, path, flags, linux.STATX.BASIC_STATS, status);
}

/// `struct statx`, or the number of an error.
fn toStatus(env: napi.Env, fd: i32, path: [*:0]const u8, flags: u32) method.Error!napi.Value {
    var status = std.mem.zeroes(linux.Statx);
    const answer = statx(fd, path, flags, &status);
    if (linux.errno(answer) != .SUCCESS) return method.give(env, answer);
    return toBuffer(env, std.mem.asBytes(&status));
}

fn toBuffer(env: napi.Env, content: []const u8) method.Error!napi.Value {
    var bytes: ?[*]u8 = null;
    var buffer: napi.Value = undefined;
    if (napi.napi_create_arraybuffer(env, content.len, &bytes, &buffer) != .ok) {
        return error.Refused;
    }
    if (content.len > 0) @memcpy(bytes.?[0..content.len], content);
    return buffer;
}
