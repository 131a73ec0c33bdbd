//! Calls over a port, both ways, and within one another [spec/call.md].
//!
//! Invariant: messages of this side are written one after the other, and no method begins while
//! one stands half written in the ring [call.whole_first]; and each wait takes in what arrives, so
//! that two sides that call one another never wait for each other's reading.

const std = @import("std");
const layout = @import("../memory/layout.zig");
const host = @import("../wait/mechanism.zig");
const wait = @import("../wait/endpoint.zig");
const pipe = @import("../pipe/ends.zig");
const revive = @import("../more/revive.zig");
const call_error = @import("error.zig");
const messages = @import("messages.zig");
const caller = @import("caller.zig");
const callee = @import("callee.zig");
const ring = @import("../ring/side.zig");
const Allocator = std.mem.Allocator;
const CallError = call_error.CallError;
const CancelToken = caller.CancelToken;
const Deadline = host.Deadline;
const Endpoint = wait.Endpoint;
const Envelope = pipe.Envelope;
const Gate = messages.Gate;
const Lent = pipe.Lent;
const List = @import("values.zig").List;
const Message = pipe.Message;
const Note = messages.Note;
const Patience = pipe.Reader.Patience;
const Port = @import("../port/port.zig").Port;
const Reader = pipe.Reader;
const Returned = caller.Returned;
const Timeout = host.Timeout;
const Writer = pipe.Writer;
const assert = std.debug.assert;

pub const Call = caller.Call;
pub const Methods = callee.Methods;
pub const Serving = callee.Serving;

/// How many methods stand on the stack of a thread, one called while the other waits.
pub const Stack = struct { depth: u32 = 0 };

/// Both sides of the calls of a port: those that it makes, and those that it serves.
///
/// While a port has this, it is read and written through this alone. It holds pointers into
/// itself: it must stay where it was initialized.
///
/// Thread safety: belongs to the thread of the port. Another thread may close the port, and cancel
/// a token.
pub const Calls = struct {
    gpa: Allocator,
    endpoint: *Endpoint,
    reader: *Reader,
    writer: *Writer,
    options: Options,
    stack: *Stack,
    own_stack: Stack = .{},
    intake: messages.Intake,
    /// Where lists are put together.
    bytes: std.ArrayList(u8) = .empty,
    /// The calls of this side whose answers were not read yet, the oldest first.
    under_way: std.DoublyLinkedList = .{},
    under_way_count: u32 = 0,
    /// How many of them were given up: these hold up no other [call.gives_room].
    given_up_count: u32 = 0,
    next_id: u32,
    /// Those of them that owe a cancel or a `more` which found no room [call.cancel_owed].
    owed: std.DoublyLinkedList = .{},
    /// The calls and notices of the peer, until they are answered and the answer is placed.
    servings: std.DoublyLinkedList = .{},
    /// Those of them that were not begun yet, and whose answers have no room yet.
    pending: messages.Queue(Serving, "next") = .{},
    posted: messages.Queue(Serving, "next") = .{},
    /// Those that have begun and not answered, and the bytes of their messages.
    served_count: u32 = 0,
    served_bytes: usize = 0,
    /// Plain messages and reports that nobody has read yet.
    inbox: messages.Queue(Note, "next") = .{},
    /// Bytes of what stands there, and of what was not begun.
    kept_bytes: usize = 0,
    /// The payload size of the frame that has no room, of what was accepted or is owed.
    need: ?u32 = null,
    /// Whether a message stands in the ring in part, so that no other may come.
    sending: bool = false,
    /// Why nothing can arrive any more [call.lost], and the reason code for that.
    lost: ?CallError = null,
    lost_behind: ?layout.Reason = null,
    /// Whether no answer can be written any more [call.told].
    mute: bool = false,
    thrown_note: ?*Note = null,
    /// Whether the first of the inbox is lent out, or a message is lent in part.
    lent_note: bool = false,
    lent_part: bool = false,

    /// What may be left to its default.
    pub const Options = struct {
        /// The largest message that is taken, in bytes.
        message_size: usize = 1 << 20,
        /// How many bytes of messages are kept that nobody has read or begun yet. One message is
        /// always kept, whatever its size [call.takes_in].
        inbox_size: usize = 1 << 16,
        /// How many bytes of messages the calls may have that are being served; further ones are
        /// refused with `call.limit`.
        serving_size: usize = 1 << 26,
        /// The id of the first call [call.id].
        first_id: u32 = 1,
        /// Where a thread has several ports with calls: one for all of them [call.depth].
        stack: ?*Stack = null,
        methods: Methods = .none,
    };

    /// How a call waits.
    pub const CallOptions = struct {
        timeout: Timeout = .forever,
        /// Ends the call with `error.Aborted`.
        token: ?*const CancelToken = null,
    };

    /// What is kept beside the payload of each message counts as so much.
    const note_size = 64;

    /// For a port whose messages are read and written from here on through this. The memory that
    /// it takes is bounded by the options, 1,024 calls that it serves, 2,048 of its own, and 16
    /// items of each of those.
    ///
    /// Asserts that nothing is lent, in the inbox of the port, or read in part.
    pub fn init(calls: *Calls, port: *Port, gpa: Allocator, options: Options) void {
        assert(port.inbox.empty());
        calls.initEnds(&port.reader, &port.writer, gpa, options);
    }

    /// The same for a reader and a writer between the same two endpoints, as a hub has for each of
    /// its clients.
    pub fn initEnds(
        calls: *Calls,
        reader: *Reader,
        writer: *Writer,
        gpa: Allocator,
        options: Options,
    ) void {
        assert(reader.ring.endpoint == writer.ring.endpoint);
        assert(!reader.inProgress() and !reader.isLent() and !writer.isClaimed());
        assert(options.first_id > 0 and options.first_id <= layout.call_id_max);
        reader.calls = true;
        calls.* = .{
            .gpa = gpa,
            .endpoint = reader.ring.endpoint,
            .reader = reader,
            .writer = writer,
            .options = options,
            .stack = options.stack orelse &calls.own_stack,
            .intake = .{ .gpa = gpa, .reader = reader, .limit = options.message_size },
            .next_id = options.first_id,
        };
    }

    /// Gives all memory back: all calls end, and what was not read is dropped. The port stays as it
    /// is, and drops what comes of calls from now on.
    ///
    /// Asserts that no method of it stands on the stack. Calls that were not released are lost.
    pub fn deinit(calls: *Calls) void {
        calls.forget();
        calls.reader.calls = false;
        if (calls.thrown_note) |note| note.destroy(calls.gpa);
        calls.bytes.deinit(calls.gpa);
        calls.* = undefined;
    }

    /// Serves the public functions of a struct from now on: see `Methods.of`.
    pub fn serve(calls: *Calls, api: anytype) void {
        calls.options.methods = .of(api);
    }

    /// Calls a method of the peer and waits for its result; it serves the calls that arrive
    /// meanwhile [call.serve_waiting]. A result that points to memory comes as `Owned(T)`.
    ///
    /// The arguments are a tuple, written as `callee.zig` says; what cannot be written is
    /// `error.CallArguments`. With `error.CallThrown`, `thrown` says what the method has failed
    /// with. Where it is the timeout, a token, or a full inbox that ends it, the callee is told.
    ///
    /// Asserts that the name has 1 to 255 bytes.
    pub fn call(
        calls: *Calls,
        comptime T: type,
        name: []const u8,
        arguments: anytype,
        options: CallOptions,
    ) CallError!Returned(T) {
        var patience: Patience = .init(options.timeout);
        const own = try calls.make(name, arguments, false, &patience.deadline, options.token);
        defer own.release();
        try own.finishWith(&patience, options.token);
        return own.result(T);
    }

    /// Makes a call and does not wait for its answer: `Call.wait` does, and every other wait and
    /// read of this port takes it in. The timeout and the token are for writing it.
    pub fn begin(
        calls: *Calls,
        name: []const u8,
        arguments: anytype,
        options: CallOptions,
    ) CallError!*Call {
        var deadline: Deadline = .init(options.timeout);
        const own = try calls.make(name, arguments, false, &deadline, options.token);
        // It is under way: what fails here ends it.
        awaitSent(calls, &deadline, options.token) catch {};
        return own;
    }

    /// Makes a call whose result comes in pieces. The timeout is for writing it, and for each item.
    pub fn items(
        calls: *Calls,
        comptime T: type,
        name: []const u8,
        arguments: anytype,
        options: CallOptions,
    ) CallError!caller.Items(T) {
        var deadline: Deadline = .init(options.timeout);
        const own = try calls.make(name, arguments, true, &deadline, options.token);
        awaitSent(calls, &deadline, options.token) catch {};
        return .{ .call = own, .timeout = options.timeout, .token = options.token };
    }

    /// Sends a notice: a call that nobody answers.
    pub fn notify(
        calls: *Calls,
        name: []const u8,
        arguments: anytype,
        options: CallOptions,
    ) CallError!void {
        try calls.checkLost();
        var bytes = calls.takeBytes();
        defer calls.giveBytes(bytes);
        const payload = try calls.encode(&bytes, name, arguments);
        var deadline: Deadline = .init(options.timeout);
        const envelope: Envelope = .{ .kind = .call, .codec = .values, .tag = 0 };
        try messages.send(calls, payload, envelope, &deadline, options.token);
        return awaitSent(calls, &deadline, options.token);
    }

    /// The error that the last call was answered with which has failed by a throw; valid until the
    /// next does.
    pub fn thrown(calls: *const Calls) ?Serving.Failure {
        const note = calls.thrown_note orelse return null;
        const list: List = .{ .payload = note.payload, .count = countOf(note.payload) };
        return caller.failureOf(list);
    }

    /// Serves the calls that come, and reads the next plain message into `storage`, as `Port.read`:
    /// null when none came by the deadline, or when the stream has ended. What is wrong with a
    /// call, a notice or an answer that nobody waits for is an error `Call…` or `Message…`,
    /// once, and the next read goes on.
    pub fn read(calls: *Calls, storage: []u8, timeout: Timeout) CallError!?Message {
        assert(!calls.isLent()); // [pipe.lend_one]
        var patience: Patience = .init(timeout);
        while (true) {
            if (calls.endpoint.closedHere()) return calls.losing(calls.endpoint.whyClosed());
            const did = try step(calls, &patience.loaded, .read);
            if (did == .did) continue;
            if (did == .delivers) return try calls.deliver(storage);
            const appetite: Appetite = if (did == .left) .full else .hungry;
            if (!try awaitMore(calls, &patience, null, appetite)) return null;
        }
    }

    /// Serves the calls that come, and lends the next frame of a plain message where it lies, as
    /// `Port.peek`; calls are never lent. Until `release`, nothing begins and nothing is taken in.
    ///
    /// Asserts that nothing is lent.
    pub fn peek(calls: *Calls, timeout: Timeout) CallError!?Lent {
        return lendNext(calls, timeout);
    }

    /// As `Port.release`.
    ///
    /// Asserts that a frame is lent.
    pub fn release(calls: *Calls) void {
        if (!calls.lent_note) return calls.reader.release();
        calls.lent_note = false;
        calls.dropKept();
    }

    /// Drops the first of the inbox.
    pub fn dropKept(calls: *Calls) void {
        const note = calls.inbox.pop().?;
        calls.kept_bytes -= weightOf(note);
        note.destroy(calls.gpa);
    }

    /// Whether a frame is lent out, or a message is lent in part, so that nothing else may be read,
    /// and no call be made.
    pub fn isLent(calls: *const Calls) bool {
        return calls.reader.isLent() or calls.lent_note or calls.lent_part;
    }

    /// Writes a plain message, as `Port.write`, and takes in what arrives while it waits; no method
    /// begins meanwhile [call.takes_in]. `error.MessageSize` where it could never be placed without
    /// waiting and the timeout is `.none` [pipe.try_never].
    ///
    /// Asserts that its kind is `data`.
    pub fn write(
        calls: *Calls,
        payload: []const u8,
        envelope: Envelope,
        timeout: Timeout,
    ) CallError!void {
        assert(envelope.kind == .data);
        var deadline: Deadline = .init(timeout);
        try messages.send(calls, payload, envelope, &deadline, null);
        return awaitSent(calls, &deadline, null);
    }

    /// Ends the outgoing pipe, as `Port.end`, after what was accepted, for whose room it waits.
    /// From then on this side calls nobody any more, and the methods that it serves are told.
    pub fn end(calls: *Calls, timeout: Timeout) CallError!void {
        var deadline: Deadline = .init(timeout);
        messages.clear(calls, &deadline, null) catch |err| if (err != error.Timeout) return err;
        if (calls.posted.first) |serving| {
            // [pipe.owed_end] What has no room is left away.
            if (serving.send.sent_any) calls.writer.owed = serving.send.envelope;
        }
        try calls.writer.end();
        calls.silence();
    }

    /// Whether the peer has ended its stream, and everything before that was read.
    pub fn ended(calls: *const Calls) bool {
        return calls.inbox.first == null and calls.reader.ended();
    }

    /// Closes the port; all calls end with `error.PipeClosed`, and the methods are told.
    pub fn close(calls: *Calls) void {
        calls.endpoint.close();
        calls.lose(error.PipeClosed);
    }

    /// As `Port.vacate`: the next owner of the peer's endpoint begins without any call
    /// [call.vacated].
    pub fn vacate(calls: *Calls) bool {
        const peer = &calls.reader.ring.peer;
        // What the calls end with is the state that the peer had, also where nobody has read since.
        const err = if (pipe.checkPeer(calls.endpoint, peer)) return false else |err| err;
        if (!revive.vacate(&.{calls.reader}, &.{calls.writer})) return false;
        calls.lose(err);
        calls.silence();
        calls.intake.drop();
        calls.lent_part = false;
        calls.lost = null;
        calls.mute = false;
        calls.next_id = calls.options.first_id;
        return true;
    }

    // What follows is for the other files of this noun.

    fn make(
        calls: *Calls,
        name: []const u8,
        arguments: anytype,
        takes_items: bool,
        deadline: *Deadline,
        token: ?*const CancelToken,
    ) CallError!*Call {
        try calls.checkLost();
        var bytes = calls.takeBytes();
        defer calls.giveBytes(bytes);
        const payload = try calls.encode(&bytes, name, arguments);
        return calls.start(payload, takes_items, deadline, token);
    }

    fn start(
        calls: *Calls,
        payload: []const u8,
        takes_items: bool,
        deadline: *Deadline,
        token: ?*const CancelToken,
    ) CallError!*Call {
        assert(!calls.isLent());
        try messages.clear(calls, deadline, token);
        const waiting_count = calls.under_way_count - calls.given_up_count;
        if (waiting_count == layout.call_under_way_max) return error.CallLimit;
        // [call.unanswered]
        if (calls.under_way_count == layout.call_unanswered_max) return error.CallLimit;
        const own = try calls.gpa.create(Call);
        own.* = .{ .calls = calls, .id = calls.freeId(), .takes_items = takes_items };
        calls.under_way.append(&own.node);
        calls.under_way_count += 1;
        const envelope: Envelope = .{ .kind = .call, .codec = .values, .tag = own.id };
        messages.send(calls, payload, envelope, deadline, token) catch |err| {
            // It has never been made: the cancel of its frames takes it back.
            if (own.under_way) own.leave();
            own.ended = err;
            own.release();
            return err;
        };
        calls.next_id = if (own.id == layout.call_id_max) 1 else own.id + 1;
        return own;
    }

    /// [call.id]
    fn freeId(calls: *const Calls) u32 {
        var id = calls.next_id;
        while (calls.findOwn(id) != null) id = if (id == layout.call_id_max) 1 else id + 1;
        return id;
    }

    /// The call of this side that is under way with this id.
    pub fn findOwn(calls: *const Calls, id: u32) ?*Call {
        var node = calls.under_way.first;
        while (node) |each| : (node = each.next) {
            const own: *Call = @alignCast(@fieldParentPtr("node", each));
            if (own.id == id) return own;
        }
        return null;
    }

    /// [call.lost]
    fn checkLost(calls: *Calls) CallError!void {
        if (calls.endpoint.closedHere()) return calls.losing(calls.endpoint.whyClosed());
        const err = calls.lost orelse return;
        return calls.again(err, calls.lost_behind);
    }

    /// Fails as something has failed before, for the same reason.
    pub fn again(calls: *const Calls, err: CallError, reason: ?layout.Reason) CallError {
        switch (err) {
            error.Corrupt, error.PeerFailed, error.PipeFailed => calls.endpoint.behind = reason,
            else => {},
        }
        return err;
    }

    fn encode(
        calls: *Calls,
        bytes: *std.ArrayList(u8),
        name: []const u8,
        arguments: anytype,
    ) CallError![]const u8 {
        assert(name.len > 0 and name.len <= layout.call_name_size_max);
        return callee.encodeCall(calls.gpa, bytes, name, arguments) catch |err| switch (err) {
            error.OutOfMemory => |out| return out,
            error.Unwritable => return error.CallArguments,
        };
    }

    /// Memory in which a list is put together, which whoever writes meanwhile leaves alone.
    pub fn takeBytes(calls: *Calls) std.ArrayList(u8) {
        defer calls.bytes = .empty;
        return calls.bytes;
    }

    /// Takes that memory back.
    pub fn giveBytes(calls: *Calls, bytes: std.ArrayList(u8)) void {
        calls.bytes.deinit(calls.gpa);
        calls.bytes = bytes;
    }

    /// Nothing can arrive any more: all calls end, after the answers that were published
    /// [call.lost].
    pub fn lose(calls: *Calls, err: CallError) void {
        if (calls.lost == null) {
            calls.lost = err;
            calls.lost_behind = calls.endpoint.behind;
            calls.intake.drop();
            calls.lent_part = false;
            while (calls.under_way.first) |node| {
                const own: *Call = @alignCast(@fieldParentPtr("node", node));
                own.lose(err);
            }
            // A peer that has ended its stream still reads.
            if (err != error.CallEnded) calls.silence();
        }
    }

    /// As `lose`, and says why.
    pub fn losing(calls: *Calls, err: CallError) CallError {
        calls.lose(err);
        return err;
    }

    /// No answer can be written any more: what is accepted or owed is dropped, and the methods are
    /// told [call.told].
    pub fn silence(calls: *Calls) void {
        if (calls.mute) return;
        while (calls.owed.first) |node| {
            const own: *Call = @alignCast(@fieldParentPtr("owed_node", node));
            own.forgive();
        }
        calls.mute = true;
        calls.need = null;
        while (calls.posted.pop()) |serving| serving.conclude();
        var node = calls.servings.first;
        while (node) |each| {
            node = each.next;
            const serving: *Serving = @alignCast(@fieldParentPtr("node", each));
            if (serving.isNotice()) continue;
            serving.silent = true;
            if (serving.state != .arrived) messages.tell(serving);
        }
    }

    /// Gives back all that it keeps of both sides.
    fn forget(calls: *Calls) void {
        calls.lose(calls.endpoint.whyClosed());
        calls.silence();
        while (calls.pending.pop()) |serving| serving.conclude();
        while (calls.servings.first) |node| {
            const serving: *Serving = @alignCast(@fieldParentPtr("node", node));
            assert(!serving.on_stack);
            serving.conclude();
        }
        while (calls.inbox.pop()) |note| note.destroy(calls.gpa);
    }

    /// Whether the inbox takes one more [call.takes_in].
    pub fn hasRoom(calls: *const Calls) bool {
        return calls.kept_bytes == 0 or calls.kept_bytes < calls.options.inbox_size;
    }

    /// What a message counts in the inbox.
    pub fn weightOf(note: *const Note) usize {
        return note.payload.len + note_size;
    }

    /// Keeps a plain message, or the report of one, for the next read.
    pub fn keep(calls: *Calls, note: *Note) void {
        calls.kept_bytes += weightOf(note);
        calls.inbox.push(note);
    }

    /// Makes a message that was dropped a report, which fails one read.
    pub fn report(calls: *Calls, note: *Note, code: layout.Reason) void {
        assert(note.serving == null);
        note.fault = code;
        calls.keep(note);
    }

    /// Keeps the throw that a call has ended with, for `thrown`.
    pub fn keepThrown(calls: *Calls, note: *Note) void {
        if (calls.thrown_note) |old| old.destroy(calls.gpa);
        calls.thrown_note = note;
    }

    fn countOf(payload: []const u8) u32 {
        return std.mem.readInt(u32, payload[layout.values_count_offset..][0..4], .little);
    }

    fn deliver(calls: *Calls, storage: []u8) CallError!Message {
        defer calls.dropKept();
        const note = calls.inbox.first.?;
        if (note.fault) |code| return call_error.errorOf(code);
        if (note.payload.len > storage.len) return error.MessageSize;
        const payload = storage[0..note.payload.len];
        @memcpy(payload, note.payload);
        return .{ .payload = payload, .kind = note.kind, .codec = note.codec, .tag = note.tag };
    }
};

// How a port with calls waits: what it takes in, and what it serves, meanwhile
// [spec/call.md, "Calls within calls"].

/// For whom a step is done: a read takes plain messages, whoever lends leaves them where they are,
/// and whoever waits for an answer sets them aside.
pub const Purpose = enum { read, lend, answer };

pub const Step = enum {
    did,
    /// A plain message, or a report, is the next to be read.
    delivers,
    nothing,
    /// What is there has no room in the inbox.
    left,
};

/// Does one thing that needs no waiting: begins a call, or takes a message [call.serve_waiting].
/// `loaded` is whether the one load of the cursor was made [ring.one_load].
pub fn step(calls: *Calls, loaded: *bool, purpose: Purpose) CallError!Step {
    messages.settle(calls);
    // [call.whole_first] What was accepted may stand half written in the ring.
    const begins = calls.need == null;
    if (begins) if (calls.pending.pop()) |serving| {
        messages.beginNext(calls, serving);
        return .did;
    };
    const reads = purpose != .answer;
    if (reads and calls.inbox.first != null) return .delivers; // [port.inbox_order]
    const gate: Gate = .{
        .calls = calls,
        .begins = begins,
        .delivers = reads,
        .lends = purpose == .lend,
    };
    return switch (try take(calls, loaded, gate)) {
        .note => .did,
        .left => .left,
        .nothing => .nothing,
    };
}

fn take(calls: *Calls, loaded: *bool, gate: Gate) CallError!messages.Intake.Taken {
    const taken = calls.intake.take(loaded, gate) catch |err| switch (err) {
        error.OutOfMemory => |out| return out,
        else => |final| return calls.losing(final),
    };
    if (taken == .note) messages.sort(calls, taken.note);
    return taken;
}

/// What a wait is for, beside room for what was accepted.
pub const Appetite = enum {
    hungry,
    /// Whatever is there has no room.
    full,
};

/// Waits for something to do; false where the deadline has passed, or the stream has ended.
pub fn awaitMore(
    calls: *Calls,
    patience: *Patience,
    token: ?*const CancelToken,
    appetite: Appetite,
) CallError!bool {
    const reader = calls.reader;
    const next = reader.beforeWait(patience) catch |err| return calls.losing(err);
    switch (next) {
        .again => return true,
        .over => {
            if (reader.ended()) calls.lose(error.CallEnded);
            return false;
        },
        .wait => {},
    }
    if (token) |given| if (given.isCancelled()) return error.Aborted;
    switch (sleep(calls, calls.need, &patience.deadline, token, appetite)) {
        .found => {},
        .timeout => return false,
        .forbidden => return error.WaitForbidden,
    }
    patience.loaded = false;
    return true;
}

fn sleep(
    calls: *Calls,
    need: ?u32,
    deadline: *Deadline,
    token: ?*const CancelToken,
    appetite: Appetite,
) Endpoint.Outcome {
    calls.reader.flush();
    calls.writer.publish();
    const condition: Condition = .{ .token = token, .rings = .{
        .endpoint = calls.endpoint,
        .reader = if (appetite == .hungry) &calls.reader.ring else null,
        .writer = if (need != null) &calls.writer.ring else null,
        .size = need orelse 0,
    } };
    return calls.endpoint.wait(&condition, deadline);
}

/// Waits for room for a frame of this size, and takes in what arrives; begins nothing
/// [call.takes_in].
pub fn awaitRoom(
    calls: *Calls,
    size: u32,
    deadline: *Deadline,
    token: ?*const CancelToken,
) CallError!void {
    calls.writer.publish();
    const appetite = takeIn(calls);
    if (token) |given| if (given.isCancelled()) return error.Aborted;
    if (deadline.over(calls.endpoint.host)) return error.Timeout;
    switch (sleep(calls, size, deadline, token, appetite)) {
        .found => {},
        .timeout => return error.Timeout,
        .forbidden => return error.WaitForbidden,
    }
}

/// Over a stream, goes on until the transport has what was written, or the deadline has passed, so
/// that it does not lie here while the thread does other things; takes in what arrives, and begins
/// nothing. Fails where it never goes out, because the peer is gone.
pub fn awaitSent(
    calls: *Calls,
    deadline: *Deadline,
    token: ?*const CancelToken,
) CallError!void {
    const endpoint = calls.endpoint;
    const link = endpoint.linked() orelse return;
    if (!endpoint.blocking) return;
    while (!link.notes.load(.monotonic).given) {
        try calls.writer.check();
        if (token) |given| if (given.isCancelled()) return;
        const left_ns = deadline.left(endpoint.host);
        if (left_ns == 0) return;
        _ = takeIn(calls);
        calls.reader.flush();
        link.sleep(left_ns);
        link.pump();
    }
}

/// Takes in all that one load of the cursor shows and there is room for. What fails here fails the
/// next read too.
fn takeIn(calls: *Calls) Appetite {
    const gate: Gate = .{ .calls = calls, .begins = false, .delivers = false };
    if (calls.isLent()) return .full;
    var loaded = false;
    while (true) {
        const taken = calls.intake.take(&loaded, gate) catch return .full;
        switch (taken) {
            .note => |note| messages.sort(calls, note),
            .left => return .full,
            .nothing => return if (calls.reader.ended()) .full else .hungry,
        }
    }
}

/// Until when a call is waited for.
pub const Until = enum { done, item };

/// Waits for a call of this side, and serves meanwhile [call.serve_waiting]; false where the
/// deadline has passed.
pub fn awaitOwn(
    calls: *Calls,
    own: *caller.Call,
    until: Until,
    patience: *Patience,
    token: ?*const CancelToken,
) CallError!bool {
    while (true) {
        if (own.isDone() or until == .item and own.items.first != null) return true;
        if (calls.endpoint.closedHere()) {
            calls.lose(calls.endpoint.whyClosed());
            continue;
        }
        const did = step(calls, &patience.loaded, .answer) catch |err| switch (err) {
            error.OutOfMemory => |out| return out,
            // It has ended all calls.
            else => continue,
        };
        if (did == .did) continue;
        if (did == .left and calls.need == null) {
            own.end(error.CallInbox); // [call.set_aside]
            continue;
        }
        const appetite: Appetite = if (did == .left) .full else .hungry;
        const more = awaitMore(calls, patience, token, appetite) catch |err| switch (err) {
            error.Aborted, error.WaitForbidden => |own_fault| return own_fault,
            else => continue,
        };
        if (!more and !own.isDone()) return false;
    }
}

/// Waits until one more item of a call may be sent, and serves meanwhile [call.window].
pub fn awaitWindow(calls: *Calls, serving: *Serving, patience: *Patience) CallError!void {
    while (true) {
        // [call.stops] A method that began meanwhile may have answered it.
        if (serving.isCancelled() or !serving.awaitsAnswer()) return error.CallCancelled;
        if (serving.sent < serving.allowed) return;
        const did = try step(calls, &patience.loaded, .answer);
        if (did == .did) continue;
        if (did == .left and calls.need == null) return error.CallInbox; // [call.set_aside]
        const appetite: Appetite = if (did == .left) .full else .hungry;
        if (try awaitMore(calls, patience, &serving.token, appetite)) continue;
        if (serving.isCancelled()) continue;
        return if (calls.reader.ended()) error.CallEnded else error.Timeout;
    }
}

/// The `condition` of `Endpoint.wait`: the rings, or a token.
const Condition = struct {
    rings: ring.Wait,
    token: ?*const CancelToken,

    pub fn glance(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        return condition.rings.glance(order) or condition.isCancelled();
    }

    pub fn look(condition: *const Condition, comptime order: std.lang.AtomicOrder) bool {
        return condition.rings.look(order) or condition.isCancelled();
    }

    fn isCancelled(condition: *const Condition) bool {
        const token = condition.token orelse return false;
        return token.isCancelled();
    }

    pub fn arm(condition: *const Condition, first: bool) bool {
        return condition.rings.arm(first);
    }

    pub fn disarm(condition: *const Condition) void {
        condition.rings.disarm();
    }

    pub fn slice(condition: *const Condition, mechanism: u32) u64 {
        return condition.rings.slice(mechanism);
    }
};

// Lends plain messages of a port with calls [spec/call.md, "Calls within calls"]: to lend is to
// read, so calls before the next plain message are begun, and never lent.

/// `Calls.peek`.
pub fn lendNext(calls: *Calls, timeout: Timeout) CallError!?Lent {
    assert(!calls.reader.isLent() and !calls.lent_note); // [pipe.lend_one]
    var patience: Patience = .init(timeout);
    while (true) {
        if (calls.endpoint.closedHere()) return calls.losing(calls.endpoint.whyClosed());
        // The next part of a message of which some were lent.
        const did = if (calls.lent_part)
            .left
        else
            try step(calls, &patience.loaded, .lend);
        switch (did) {
            .did => continue,
            .delivers => return try lendKept(calls),
            .left => if (try lendPlain(calls, &patience.loaded)) |lent| return lent,
            .nothing => {},
        }
        const appetite: Appetite = if (did == .left and !calls.lent_part)
            .full
        else
            .hungry;
        if (!try awaitMore(calls, &patience, null, appetite)) return null;
    }
}

fn lendPlain(calls: *Calls, loaded: *bool) CallError!?Lent {
    const found = calls.reader.peekNow(loaded) catch |err| {
        calls.lent_part = false;
        switch (err) {
            error.MessageCancelled, error.MessageTruncated => |lost| return lost,
            else => |final| return calls.losing(final),
        }
    };
    const lent = found orelse return null;
    if (lent.kind != .data) {
        // A call, for which there is no room.
        calls.reader.leave(lent);
        return null;
    }
    calls.lent_part = !lent.last;
    return lent;
}

fn lendKept(calls: *Calls) CallError!Lent {
    const note = calls.inbox.first.?;
    if (note.fault) |code| {
        calls.dropKept();
        return call_error.errorOf(code);
    }
    calls.lent_note = true;
    return .{
        .payload = @alignCast(note.payload),
        .kind = note.kind,
        .codec = note.codec,
        .tag = note.tag,
        .first = true,
        .last = true,
        .total = note.payload.len,
    };
}

test {
    _ = @import("values.zig");
    _ = @import("error.zig");
    _ = @import("caller.zig");
    if (!@import("builtin").single_threaded) _ = @import("../testing/call_nested_test.zig");
    _ = @import("../testing/call_hostile_test.zig");
    _ = @import("messages.zig");
}
