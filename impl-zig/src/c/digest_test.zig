const std = @import("std");
const digests = @import("digest.zig");
const digest_file = @import("../digest/digest.zig");
const fixture = @import("fixture.zig");
const arguments = @import("arguments.zig");
const testing = std.testing;
const expectStatus = fixture.expectStatus;

const Place = struct { bytes: [256]u8 align(8) = @splat(0) };

test "c_abi: a digest bit by bit, asked for twice" {
    inline for (.{ digest_file.Sha1, digest_file.Sha256 }, 1..) |Digest, kind| {
        var place: Place = .{};
        try testing.expect(digests.millrace_digest_size() <= place.bytes.len);
        try expectStatus(arguments.done, digests.millrace_digest_begin(&place.bytes, kind));
        for ([_][]const u8{ "a trans", "", "cript" }) |part| {
            const status = digests.millrace_digest_update(&place.bytes, part.ptr, part.len);
            try expectStatus(arguments.done, status);
        }
        for (0..2) |_| {
            var result: [Digest.size]u8 = undefined;
            const status = digests.millrace_digest_result(&place.bytes, &result, result.len);
            try expectStatus(arguments.done, status);
            try testing.expectEqual(Digest.of("a transcript"), result);
        }
        try expectStatus(arguments.done, digests.millrace_digest_leave(&place.bytes));
    }
}

test "c_abi: a digest refuses what is none, another kind, and too little room" {
    const invalid = arguments.invalid;
    var place: Place = .{};
    var result: [32]u8 = undefined;
    try expectStatus(invalid, digests.millrace_digest_update(&place.bytes, "a", 1));
    try expectStatus(invalid, digests.millrace_digest_begin(null, 1));
    try expectStatus(invalid, digests.millrace_digest_begin(&place.bytes, 0));
    try expectStatus(invalid, digests.millrace_digest_begin(&place.bytes, 3));
    try expectStatus(arguments.done, digests.millrace_digest_begin(&place.bytes, 2));
    try expectStatus(invalid, digests.millrace_digest_begin(&place.bytes, 2));
    try expectStatus(invalid, digests.millrace_digest_update(&place.bytes, null, 1));
    try expectStatus(invalid, digests.millrace_digest_result(&place.bytes, &result, 31));
    try expectStatus(invalid, digests.millrace_digest_result(&place.bytes, null, 32));
    try expectStatus(arguments.done, digests.millrace_digest_leave(&place.bytes));
    try expectStatus(invalid, digests.millrace_digest_leave(&place.bytes));
}
