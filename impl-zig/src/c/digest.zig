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

// Tests.

const std = @import("std");
const fixture = @import("fixture.zig");
const testing = std.testing;
const expectStatus = fixture.expectStatus;

const Place = struct { bytes: [256]u8 align(8) = @splat(0) };

test "c_abi: a digest bit by bit, asked for twice" {
    inline for (.{ digest_file.Sha1, digest_file.Sha256 }, 1..) |Digest, kind| {
        var place: Place = .{};
        try testing.expect(millrace_digest_size() <= place.bytes.len);
        try expectStatus(arguments.done, millrace_digest_begin(&place.bytes, kind));
        for ([_][]const u8{ "a trans", "", "cript" }) |part| {
            const status = millrace_digest_update(&place.bytes, part.ptr, part.len);
            try expectStatus(arguments.done, status);
        }
        for (0..2) |_| {
            var result: [Digest.size]u8 = undefined;
            const status = millrace_digest_result(&place.bytes, &result, result.len);
            try expectStatus(arguments.done, status);
            try testing.expectEqual(Digest.of("a transcript"), result);
        }
        try expectStatus(arguments.done, millrace_digest_leave(&place.bytes));
    }
}

test "c_abi: a digest refuses what is none, another kind, and too little room" {
    const invalid = arguments.invalid;
    var place: Place = .{};
    var result: [32]u8 = undefined;
    try expectStatus(invalid, millrace_digest_update(&place.bytes, "a", 1));
    try expectStatus(invalid, millrace_digest_begin(null, 1));
    try expectStatus(invalid, millrace_digest_begin(&place.bytes, 0));
    try expectStatus(invalid, millrace_digest_begin(&place.bytes, 3));
    try expectStatus(arguments.done, millrace_digest_begin(&place.bytes, 2));
    try expectStatus(invalid, millrace_digest_begin(&place.bytes, 2));
    try expectStatus(invalid, millrace_digest_update(&place.bytes, null, 1));
    try expectStatus(invalid, millrace_digest_result(&place.bytes, &result, 31));
    try expectStatus(invalid, millrace_digest_result(&place.bytes, null, 32));
    try expectStatus(arguments.done, millrace_digest_leave(&place.bytes));
    try expectStatus(invalid, millrace_digest_leave(&place.bytes));
}
