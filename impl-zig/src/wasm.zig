//! `millrace.wasm`: a blocking port for hosts of WebAssembly, such as JavaScript and wasmtime.
//! `wasm.ts` wraps these exports for JavaScript.
//!
//! The module imports its memory (`env.memory`, shared) and one function, `millrace.now_us() ->
//! f64`, a clock in microseconds that never goes back, such as `() => performance.now() * 1000`.
//!
//! Where things lie. The stack occupies [0, stack size), the module's own data follows, and
//! everything from `millrace_heap_base()` on is the host's: segments, ports, payloads. Every
//! instance on one memory starts with the same stack pointer: before the second instance runs
//! anything else, give each one a stack of its own above that address, by
//! `exports.__stack_pointer.value = top` (a multiple of 16; the stack grows down). 128 KiB suffice:
//! `millrace_port_attach` takes 36 of them, everything else less than 2.
//!
//! Who wakes whom. The same instruction wakes agents of JavaScript under a JavaScript engine and
//! guests under wasmtime, and the module cannot tell which it is; so the host says it whenever it
//! makes a port. `thread` holds the mechanism [wait.mechanism], which is also all that the endpoint
//! then claims to ring [wait.wakes]: 1 (`agent`), 4 (`wasmtime`), or 0 for none, to poll; and 256
//! where the calling thread must not block, such as a browser's main thread [wait.no_block]. Who
//! shares the memory from outside of the engine polls, and can ring by `millrace_notify`.
//!
//! Addresses, sizes and codes are `u32`; a timeout is an `f64` in milliseconds, where Infinity
//! waits for ever and 0 tries once. A status is
//!   1 done, or a message; 0 nothing yet, or timed out; 2 the end of the stream;
//!   below 0 the negated reason code of spec/layout.json; -256 the caller's mistake, such as an
//!   address that is outside the memory or not aligned: an object needs a multiple of 16, what a
//!   call fills in a multiple of 8.
//! The mailbox is a module of its own: `wasm_mailbox.zig`.

const std = @import("std");
const layout = @import("memory/layout.zig");
const host_file = @import("wait/mechanism.zig");
const pipe = @import("pipe/ends.zig");
const port_file = @import("port/port.zig");
const arguments = @import("wasm_arguments.zig");
const Port = port_file.Port;
const bytesAt = arguments.bytesAt;
const endpointOf = arguments.endpointOf;
const lies = arguments.lies;
const statusOf = arguments.statusOf;
const timeoutOf = arguments.timeoutOf;
const status_done = arguments.status_done;
const status_invalid = arguments.status_invalid;
const status_nothing = arguments.status_nothing;
const status_end = 2;

pub const panic = std.debug.no_panic;

/// What `millrace_port_read` and `millrace_port_peek` fill in.
const Message = extern struct {
    /// Where the payload lies: the caller's storage, or, lent, in the ring or the inbox.
    address: u32,
    /// Bytes of the payload.
    size: u32,
    /// Bytes of the whole message.
    total: u64,
    tag: u32,
    kind: u8,
    /// 1: the first frame of its message; 2: the last. A message that was read has both.
    flags: u8,
    codec: u8,
    reserved: u8 = 0,
};

comptime {
    std.debug.assert(@sizeOf(Message) == 24);
    std.debug.assert(@offsetOf(Message, "tag") == 16);
    std.debug.assert(@offsetOf(Message, "codec") == 22);
    std.debug.assert(@alignOf(Object) <= 16);
}

const Object = struct {
    port: Port,
    /// A stale handle, or memory that never was a port, is refused.
    magic: u32,

    const magic_attached = 0x4d_52_50_54;
};

/// Returns the version of the layout: major * 65536 + minor.
export fn millrace_version() u32 {
    return layout.version_major << 16 | layout.version_minor;
}

/// Returns the first address that is the host's, a multiple of 128. Needs no stack.
export fn millrace_heap_base() u32 {
    return @intCast(host_file.heapBase());
}

/// Returns the bytes that the host must set aside for a port object, at a multiple of 16.
export fn millrace_port_size() u32 {
    return @sizeOf(Object);
}

/// Returns the bytes of a segment for a port with rings of these capacities; 0 if there is none.
export fn millrace_segment_size(capacity0: u32, capacity1: u32) u32 {
    const rings = ringsOf(capacity0, capacity1, 0, 0);
    if (!rings.valid()) return 0;
    return rings.segmentSize() catch 0;
}

/// Makes the blank memory at `base` a port and attaches to endpoint 0; or attaches when it is one
/// with the same geometry already. Status -1 (`segment.size`) refuses a `base` that is no multiple
/// of 128.
export fn millrace_port_create(
    object: u32,
    base: u32,
    size: u32,
    capacity0: u32,
    capacity1: u32,
    start0: u32,
    start1: u32,
    thread: u32,
) i32 {
    const port = objectBlank(object) orelse return status_invalid;
    const endpoint = endpointOf(thread) orelse return status_invalid;
    if (refusal(base, size)) |status| return status;
    const rings = ringsOf(capacity0, capacity1, start0, start1);
    if (!rings.valid()) return status_invalid;
    const options: Port.Options = .{ .endpoint = endpoint };
    port.port.create(memoryAt(base, size), rings, 0, options) catch |err| return statusOf(err);
    port.magic = Object.magic_attached;
    return status_done;
}

/// Attaches to an endpoint of the port at `base`, waiting until it is formatted.
export fn millrace_port_attach(
    object: u32,
    base: u32,
    size: u32,
    index: u32,
    thread: u32,
    timeout_ms: f64,
) i32 {
    const port = objectBlank(object) orelse return status_invalid;
    const endpoint = endpointOf(thread) orelse return status_invalid;
    if (refusal(base, size)) |status| return status;
    const options: Port.Options = .{ .endpoint = endpoint, .timeout = timeoutOf(timeout_ms) };
    port.port.attach(memoryAt(base, size), index, options) catch |err| return statusOf(err);
    port.magic = Object.magic_attached;
    return status_done;
}

/// Gives the port storage for messages that arrive while it waits for room. To be called once,
/// before the first write.
export fn millrace_port_set_inbox(object: u32, base: u32, size: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    if (!port.inbox.empty()) return status_invalid;
    if (size > 0 and !lies(base, size, 16)) return status_invalid;
    port.setInbox(if (size > 0) @as([*]align(16) u8, @ptrFromInt(base))[0..size] else &.{});
    return status_done;
}

/// Writes one message. With timeout 0 all of it is written or nothing.
export fn millrace_port_write(
    object: u32,
    address: u32,
    size: u32,
    codec: u32,
    tag: u32,
    timeout_ms: f64,
) i32 {
    const port = portOf(object) orelse return status_invalid;
    const envelope = envelopeOf(codec, tag) orelse return status_invalid;
    const payload = bytesAt(address, size) orelse return status_invalid;
    if (port.writer.isClaimed()) return status_invalid;
    const timeout = timeoutOf(timeout_ms);
    if (timeout == .none and size > port.writer.trySizeMax()) return status_invalid;
    if (envelope.codec == .json_batch and size > port.writer.frameSizeMax()) return status_invalid;
    port.write(payload, envelope, timeout) catch |err| return failed(port, err);
    return status_done;
}

/// Reads one message into the storage. Status -50 (`message.size`) drops a message that is larger;
/// after status 0 in the middle of a message, pass the same storage again.
export fn millrace_port_read(
    object: u32,
    address: u32,
    capacity: u32,
    out: u32,
    timeout_ms: f64,
) i32 {
    const port = portOf(object) orelse return status_invalid;
    const storage = bytesAt(address, capacity) orelse return status_invalid;
    if (!port.storageFits(storage)) return status_invalid;
    const result = resultAt(Message, out) orelse return status_invalid;
    const found = port.read(storage, timeoutOf(timeout_ms)) catch |err|
        return failed(port, err);
    const message = found orelse return nothing(port);
    result.* = .{
        // Where it was copied to; a slice of nothing has no address that means anything.
        .address = address,
        .size = @intCast(message.payload.len),
        .total = message.payload.len,
        .tag = message.tag,
        .kind = @intCast(@backingInt(message.kind)),
        .flags = layout.frame_flag_first | layout.frame_flag_last,
        .codec = @intCast(@backingInt(message.codec)),
    };
    return status_done;
}

/// Lends the place of a message of one frame: returns its address, or a status of 0 or below.
export fn millrace_port_claim(object: u32, size: u32, timeout_ms: f64) i64 {
    const port = portOf(object) orelse return status_invalid;
    if (size > port.writer.frameSizeMax() or port.writer.isClaimed()) return status_invalid;
    const bytes = port.claim(size, timeoutOf(timeout_ms)) catch |err| return failed(port, err);
    return @intCast(@intFromPtr(bytes.ptr));
}

/// Completes the claimed message with its final size, and makes it visible.
export fn millrace_port_publish(
    object: u32,
    size: u32,
    codec: u32,
    tag: u32,
) i32 {
    const port = portOf(object) orelse return status_invalid;
    const envelope = envelopeOf(codec, tag) orelse return status_invalid;
    if (unclaimed(port)) |status| return status;
    if (size > port.writer.ring.claimed - layout.frame_header_size) return status_invalid;
    port.finish(size, envelope);
    port.publish();
    return status_done;
}

/// Takes an open claim back.
export fn millrace_port_abandon(object: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    if (unclaimed(port)) |status| return status;
    port.abandon();
    return status_done;
}

/// Why there is no open claim: there was none, or the port was closed meanwhile [pipe.close].
fn unclaimed(port: *Port) ?i32 {
    if (port.writer.isClaimed()) return null;
    if (port.writer.ring.claimed == 0) return status_invalid;
    port.abandon();
    return failed(port, error.PipeClosed);
}

/// Lends the next frame where it lies, until `millrace_port_release`. For trusted peers only.
export fn millrace_port_peek(object: u32, out: u32, timeout_ms: f64) i32 {
    const port = portOf(object) orelse return status_invalid;
    if (!port.peekFits()) return status_invalid;
    const result = resultAt(Message, out) orelse return status_invalid;
    const found = port.peek(timeoutOf(timeout_ms)) catch |err| return failed(port, err);
    const lent = found orelse return nothing(port);
    const first: u8 = if (lent.first) layout.frame_flag_first else 0;
    const last: u8 = if (lent.last) layout.frame_flag_last else 0;
    result.* = .{
        .address = @intCast(@intFromPtr(lent.payload.ptr)),
        .size = @intCast(lent.payload.len),
        .total = lent.total,
        .tag = lent.tag,
        .kind = @intCast(@backingInt(lent.kind)),
        .flags = first | last,
        .codec = @intCast(@backingInt(lent.codec)),
    };
    return status_done;
}

/// Takes the lent frame back.
export fn millrace_port_release(object: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    if (!port.lent()) return status_invalid;
    port.release();
    return status_done;
}

/// Ends the outgoing stream; reading goes on. Never waits.
export fn millrace_port_end(object: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    if (port.writer.isClaimed()) return status_invalid;
    port.end() catch |err| return failed(port, err);
    return status_done;
}

/// Closes both directions. May be called on another thread's instance of the same memory.
export fn millrace_port_close(object: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    port.close();
    return status_done;
}

/// Sets how long the port spins before it sleeps; 0 makes it sleep at once.
export fn millrace_port_set_spin(object: u32, microseconds: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    port.endpoint.setSpin(microseconds);
    return status_done;
}

/// Fills in four u64: wakes made, wakes elided, parks, late wakes.
export fn millrace_port_stats(object: u32, out: u32) i32 {
    const port = portOf(object) orelse return status_invalid;
    const result = resultAt([4]u64, out) orelse return status_invalid;
    const stats = port.stats();
    result.* = .{ stats.wakes, stats.wakes_elided, stats.parks, stats.late_wakes };
    return status_done;
}

/// Wakes all that sleep on the word at this address, and returns how many did. For a host that
/// shares the memory from outside of the engine and has moved the word, a peer's bell, by itself
/// [wait.ring].
export fn millrace_notify(address: u32) i32 {
    if (!lies(address, @sizeOf(u32), @alignOf(u32))) return status_invalid;
    return asm volatile (
        \\local.get %[address]
        \\i32.const -1
        \\memory.atomic.notify 0
        \\local.set %[result]
        : [result] "=r" (-> i32),
        : [address] "r" (address),
        : .{ .memory = true });
}

/// Returns the reason code of the last status of -65 (`peer.failed`) or -81 (`pipe.failed`), as
/// it stood there; 0 where there was none.
export fn millrace_port_reason(object: u32) u32 {
    const port = portOf(object) orelse return 0;
    return if (port.reason()) |reason| @backingInt(reason) else 0;
}

fn objectBlank(address: u32) ?*Object {
    if (!lies(address, @sizeOf(Object), 16)) return null;
    const blank: *Object = @ptrFromInt(address);
    blank.magic = 0;
    return blank;
}

fn portOf(address: u32) ?*Port {
    if (!lies(address, @sizeOf(Object), 16)) return null;
    const known: *Object = @ptrFromInt(address);
    if (known.magic != Object.magic_attached) return null;
    return &known.port;
}

fn resultAt(comptime T: type, address: u32) ?*T {
    return if (lies(address, @sizeOf(T), 8)) @ptrFromInt(address) else null;
}

/// Why there is no segment in this memory, if that shows before any byte of it is looked at.
fn refusal(base: u32, size: u32) ?i32 {
    if (!lies(base, size, 1)) return status_invalid;
    // The first check of all, a creator's too [segment.check] [segment.claim_checked].
    return if (base % layout.segment_align != 0) statusOf(error.SegmentSize) else null;
}

fn memoryAt(base: u32, size: u32) []align(128) u8 {
    return @as([*]align(128) u8, @ptrFromInt(base))[0..size];
}

fn ringsOf(capacity0: u32, capacity1: u32, start0: u32, start1: u32) port_file.Rings {
    return .{
        .capacities = .{ capacity0, capacity1 },
        .starts = .{ start0, start1 },
    };
}

fn envelopeOf(codec: u32, tag: u32) ?pipe.Envelope {
    if (codec > std.math.maxInt(u8)) return null;
    return .{ .codec = @fromBackingInt(codec), .tag = tag };
}

fn nothing(port: *const Port) i32 {
    return if (port.ended()) status_end else status_nothing;
}

fn failed(port: *const Port, err: anyerror) i32 {
    return arguments.failed(port.reason(), err);
}
