//! Digests for C. `millrace_digest.h` says what each call promises.

const arguments = @import("arguments.zig");
const digest_file = @import("../digest/digest.zig");
const Status = arguments.Status;

/// `MILLRACE_SHA1` and `MILLRACE_SHA256`.
const kind_sha1 = 1;
const kind_sha256 = 2;

const Body = union(enum) {
    sha1: digest_file.Sha1,
    sha256: digest_file.Sha256,
};

const Object = arguments.Object(Body, .digest);

pub export fn millrace_digest_size() usize {
    return @sizeOf(Object);
}

pub export fn millrace_digest_begin(digest: ?*anyopaque, kind: u32) Status {
    const object = Object.blank(digest) orelse return arguments.invalid;
    object.body = switch (kind) {
        kind_sha1 => .{ .sha1 = .empty },
        kind_sha256 => .{ .sha256 = .empty },
        else => return arguments.invalid,
    };
    object.seal();
    return arguments.done;
}

pub export fn millrace_digest_update(
    digest: ?*anyopaque,
    bytes: ?*const anyopaque,
    size: usize,
) Status {
    const object = Object.known(digest) orelse return arguments.invalid;
    const given = arguments.bytesAt(bytes, size) orelse return arguments.invalid;
    switch (object.body) {
        inline else => |*known| known.update(given),
    }
    return arguments.done;
}

pub export fn millrace_digest_result(
    digest: ?*anyopaque,
    result: ?*anyopaque,
    capacity: usize,
) Status {
    const object = Object.known(digest) orelse return arguments.invalid;
    const storage = arguments.storageAt(result, capacity) orelse return arguments.invalid;
    switch (object.body) {
        inline else => |*known| {
            const bytes = known.result();
            if (storage.len < bytes.len) return arguments.invalid;
            @memcpy(storage[0..bytes.len], &bytes);
        },
    }
    return arguments.done;
}

pub export fn millrace_digest_leave(digest: ?*anyopaque) Status {
    const object = Object.known(digest) orelse return arguments.invalid;
    object.forget();
    return arguments.done;
}
