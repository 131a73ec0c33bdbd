//! What the addon keeps for each environment of Node: the main thread is one, and so is each
//! worker.

const std = @import("std");
const linux = std.os.linux;
const napi = @import("napi.zig");
const Sleepers = @import("sleepers.zig").Sleepers;

pub const path_size_max = linux.PATH_MAX;

pub const Environment = struct {
    env: napi.Env,
    /// The descriptors that were opened here and not closed yet: no others are touched, and what
    /// is left of them at the end is closed, so that the locks of a worker that was ended go.
    descriptors: std.ArrayList(i32) = .empty,
    /// Made when it is first needed.
    sleepers: ?*Sleepers = null,
    /// Whether the system refuses to have them.
    cannot_sleep: bool = false,
    /// The paths of the call that is being made.
    paths: [2][path_size_max:0]u8 = undefined,
    path_count: usize = 0,

    const allocator = std.heap.page_allocator;

    pub fn create(env: napi.Env) ?*Environment {
        const environment = allocator.create(Environment) catch return null;
        environment.* = .{ .env = env };
        if (napi.napi_add_env_cleanup_hook(env, end, environment) == .ok) return environment;
        allocator.destroy(environment);
        return null;
    }

    fn end(given: ?*anyopaque) callconv(.c) void {
        const environment: *Environment = @ptrCast(@alignCast(given.?));
        for (environment.descriptors.items) |fd| _ = linux.close(fd);
        environment.descriptors.deinit(allocator);
        allocator.destroy(environment);
    }

    /// Takes charge of what a call has opened. Returns the call's answer.
    pub fn keep(environment: *Environment, answer: usize) usize {
        if (linux.errno(answer) != .SUCCESS) return answer;
        const fd: i32 = @intCast(answer);
        environment.descriptors.append(allocator, fd) catch {
            _ = linux.close(fd);
            return @bitCast(-@as(isize, @backingInt(linux.E.NOMEM)));
        };
        return answer;
    }

    pub fn has(environment: *const Environment, fd: i32) bool {
        return std.mem.findScalar(i32, environment.descriptors.items, fd) != null;
    }

    pub fn close(environment: *Environment, fd: i32) usize {
        const index = std.mem.findScalar(i32, environment.descriptors.items, fd).?;
        _ = environment.descriptors.swapRemove(index);
        return linux.close(fd);
    }

    pub fn sleepersOf(environment: *Environment) ?*Sleepers {
        if (environment.cannot_sleep) return null;
        if (environment.sleepers == null) {
            environment.sleepers = Sleepers.create(environment.env);
            environment.cannot_sleep = environment.sleepers == null;
        }
        return environment.sleepers;
    }
};
