//! A message of codec `cbor`, read by hand: one map of which the form is known. What is not known
//! so well is for a package of CBOR, to which `message.payload` goes as it is.

const std = @import("std");
const millrace = @import("millrace");

/// Reads CBOR (RFC 8949) head by head: a type, and a number, a length, or the bits of a float. It
/// believes no length.
const Cbor = struct {
    rest: []const u8,

    const Head = struct { major: u3, info: u5, value: u64 };

    fn take(cbor: *Cbor, size: u64) error{EndOfStream}![]const u8 {
        if (size > cbor.rest.len) return error.EndOfStream;
        defer cbor.rest = cbor.rest[@intCast(size)..];
        return cbor.rest[0..@intCast(size)];
    }

    fn head(cbor: *Cbor) error{ EndOfStream, Unsupported }!Head {
        const first = (try cbor.take(1))[0];
        const info: u5 = @truncate(first);
        const value: u64 = switch (info) {
            0...23 => info,
            24...27 => std.mem.readVarInt(
                u64,
                try cbor.take(@as(u64, 1) << @intCast(info - 24)),
                .big,
            ),
            else => return error.Unsupported, // a length that is not known
        };
        return .{ .major = @intCast(first >> 5), .info = info, .value = value };
    }
};

test "one map of CBOR, by hand" {
    var memory: [8192]u8 align(128) = @splat(0);
    const rings: millrace.Rings = .{ .capacities = .{ 1024, 1024 } };
    var ends: [2]millrace.Port = undefined;
    for (&ends, 0..) |*port, index| try port.create(&memory, rings, @intCast(index), .{});
    defer for (&ends) |*port| port.close();
    // { id: 7, name: "ada", scale: 1.5 }
    const payload = "\xa3\x62id\x07\x64name\x63ada\x65scale\xfb\x3f\xf8\x00\x00\x00\x00\x00\x00";
    try ends[0].write(payload, .{ .codec = .cbor }, .none);

    var storage: [256]u8 = undefined;
    const message = (try ends[1].read(&storage, .none)).?;
    try std.testing.expectEqual(.cbor, message.codec);
    var cbor: Cbor = .{ .rest = message.payload };
    const map = try cbor.head();
    if (map.major != 5) return error.Unsupported;
    var id: u64 = 0;
    var name: []const u8 = "";
    var scale: f64 = 0;
    for (0..@intCast(map.value)) |_| {
        const key = try cbor.take((try cbor.head()).value);
        const item = try cbor.head();
        if (std.mem.eql(u8, key, "id") and item.major == 0) {
            id = item.value;
        } else if (std.mem.eql(u8, key, "name") and item.major == 3) {
            name = try cbor.take(item.value);
        } else if (std.mem.eql(u8, key, "scale") and item.major == 7) {
            scale = switch (item.info) {
                26 => @as(f32, @bitCast(@as(u32, @intCast(item.value)))),
                27 => @as(f64, @bitCast(item.value)),
                else => return error.Unsupported,
            };
        } else return error.Unsupported;
    }
    try std.testing.expectEqual(7, id);
    try std.testing.expectEqualStrings("ada", name);
    try std.testing.expectEqual(1.5, scale);
}
