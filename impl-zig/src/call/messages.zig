//! The messages of a port with calls: how they are taken out of its ring, each into memory of its
//! own, what becomes of them, and how this side's are written.
//!
//! Invariant: what was dropped, for its size or because its writer gave it up, is still told, with
//! kind, tag and why: whose call it was must hear of it [call.refused] [call.bad_answer].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const frame = @import("../ring/frame.zig");
const call_error = @import("error.zig");
const call_values = @import("values.zig");
const callee = @import("callee.zig");
const host = @import("../wait/mechanism.zig");
const call_file = @import("call.zig");
const Allocator = std.mem.Allocator;
const Call = @import("caller.zig").Call;
const CallError = call_error.CallError;
const Calls = call_file.Calls;
const CancelToken = @import("caller.zig").CancelToken;
const Deadline = host.Deadline;
const Envelope = pipe.Envelope;
const Lent = pipe.Lent;
const Patience = pipe.Reader.Patience;
const Reader = pipe.Reader;
const Reason = layout.Reason;
const Serving = callee.Serving;
const Timeout = host.Timeout;
const assert = std.debug.assert;
const mark_more = layout.call_mark_more;
const reasonOf = @import("../error.zig").reasonOf;

/// A message that was taken, or the report of one that was lost.
pub const Note = struct {
    /// Aligned as a payload is that is lent.
    next: ?*Note align(layout.frame_align) = null,
    kind: layout.FrameKind,
    codec: layout.Codec,
    tag: u32,
    /// Why it was dropped, if it was.
    fault: ?layout.Reason = null,
    /// Whether its writer has not completed it.
    broken: bool = false,
    /// Of a call or a notice: what serves it.
    serving: ?*Serving = null,
    /// It lies after this structure.
    payload: []u8,

    const alignment: std.mem.Alignment = .of(Note);

    pub fn create(gpa: Allocator, lent: Lent, size: usize) Allocator.Error!*Note {
        const block = try gpa.alignedAlloc(u8, alignment, @sizeOf(Note) + size);
        const note: *Note = @ptrCast(block.ptr);
        note.* = .{
            .kind = lent.kind,
            .codec = lent.codec,
            .tag = lent.tag,
            .payload = block[@sizeOf(Note)..],
        };
        return note;
    }

    pub fn destroy(note: *Note, gpa: Allocator) void {
        const begin: [*]align(alignment.toByteUnits()) u8 = @ptrCast(note);
        gpa.free(begin[0 .. @sizeOf(Note) + note.payload.len]);
    }

    /// The same without its payload, whose memory is given back where that is possible.
    pub fn emptied(note: *Note, gpa: Allocator) *Note {
        const begin: [*]align(alignment.toByteUnits()) u8 = @ptrCast(note);
        const block = begin[0 .. @sizeOf(Note) + note.payload.len];
        const left = gpa.realloc(block, @sizeOf(Note)) catch return note;
        const moved: *Note = @ptrCast(left.ptr);
        moved.payload = left[@sizeOf(Note)..];
        return moved;
    }

    pub fn id(note: *const Note) u32 {
        return note.tag & layout.call_id_max;
    }
};

/// First in, first out.
pub fn Queue(comptime T: type, comptime link: []const u8) type {
    return struct {
        first: ?*T = null,
        last: ?*T = null,
        count: u32 = 0,

        const Self = @This();

        pub fn push(queue: *Self, item: *T) void {
            @field(item, link) = null;
            if (queue.last) |last| @field(last, link) = item else queue.first = item;
            queue.last = item;
            queue.count += 1;
        }

        pub fn pop(queue: *Self) ?*T {
            const item = queue.first orelse return null;
            queue.first = @field(item, link);
            if (queue.first == null) queue.last = null;
            queue.count -= 1;
            return item;
        }
    };
}

pub const Intake = struct {
    gpa: Allocator,
    reader: *Reader,
    /// The largest message that is taken.
    limit: usize,
    /// The message of many frames that is being taken, unless nobody needs to hear of it any more.
    note: ?*Note = null,
    received: usize = 0,

    pub const Taken = union(enum) {
        nothing,
        /// What is there was not admitted, and stays.
        left,
        note: *Note,
    };

    /// Takes the next message as far as one load of the cursor shows it; `loaded` says whether that
    /// was made. `gate.admits(lent)` is asked with the first frame of each. Where memory ends, the
    /// message stays.
    pub fn take(
        intake: *Intake,
        loaded: *bool,
        gate: anytype,
    ) (pipe.ReadError || Allocator.Error)!Taken {
        const reader = intake.reader;
        while (true) {
            const found = reader.peekNow(loaded) catch |err| {
                if (intake.broken(err)) |note| return .{ .note = note };
                switch (err) {
                    error.MessageCancelled, error.MessageTruncated => continue,
                    else => |other| return other,
                }
            };
            const lent = found orelse return .nothing;
            if (lent.first) {
                if (!gate.admits(lent)) {
                    reader.leave(lent);
                    return .left;
                }
                intake.begin(lent) catch |err| {
                    reader.leave(lent);
                    return err;
                };
            }
            intake.add(lent);
            reader.release();
            const note = intake.note orelse continue;
            // A plain message that is dropped is reported at once [pipe.limit].
            const told = note.fault != null and note.kind == .data;
            if (!lent.last and !told) continue;
            intake.note = null;
            return .{ .note = note };
        }
    }

    /// Whether parts of a message were taken whose rest has not come yet.
    pub fn partial(intake: *const Intake) bool {
        return intake.reader.inProgress();
    }

    /// Forgets the message of which parts were taken.
    pub fn drop(intake: *Intake) void {
        const note = intake.note orelse return;
        intake.note = null;
        intake.free(note);
    }

    /// Gives back a message and what was to serve it.
    pub fn free(intake: *Intake, note: *Note) void {
        if (note.serving) |serving| intake.gpa.destroy(serving);
        note.destroy(intake.gpa);
    }

    fn begin(intake: *Intake, lent: Lent) Allocator.Error!void {
        assert(intake.note == null);
        const known = lent.total != frame.total_unknown;
        const least: u64 = if (known) lent.total else lent.payload.len;
        const large = least > intake.limit;
        const note = try Note.create(intake.gpa, lent, if (large) 0 else @intCast(least));
        errdefer note.destroy(intake.gpa);
        const is_served = lent.kind == .call and lent.tag & layout.call_mark_all == 0;
        if (is_served) note.serving = try intake.gpa.create(Serving);
        if (large) intake.tooLarge(note);
        intake.note = note;
        intake.received = 0;
    }

    fn tooLarge(intake: *Intake, note: *Note) void {
        note.fault = .message_size; // [pipe.limit]
        intake.reader.uncount();
    }

    fn add(intake: *Intake, lent: Lent) void {
        const note = intake.note orelse return;
        if (note.fault != null) return;
        const end = intake.received + lent.payload.len;
        if (end > note.payload.len) {
            intake.grow(end) catch return;
        }
        @memcpy(intake.note.?.payload[intake.received..end], lent.payload);
        intake.received = end;
    }

    /// Of a message whose size its writer did not know [pipe.limit_unknown].
    fn grow(intake: *Intake, size: usize) error{TooLarge}!void {
        const old = intake.note.?;
        const begin_size = @sizeOf(Note) + old.payload.len;
        const bytes: [*]align(Note.alignment.toByteUnits()) u8 = @ptrCast(old);
        const grown = if (size > intake.limit)
            null
        else
            intake.gpa.realloc(bytes[0..begin_size], @sizeOf(Note) + size) catch null;
        if (grown) |block| {
            const note: *Note = @ptrCast(block.ptr);
            note.payload = block[@sizeOf(Note)..];
            intake.note = note;
            return;
        }
        intake.tooLarge(old);
        return error.TooLarge;
    }

    /// The message in progress that its writer gave up, or did not complete; null where nobody has
    /// to hear of it [pipe.report_once].
    fn broken(intake: *Intake, err: pipe.ReadError) ?*Note {
        const note = intake.note orelse return null;
        intake.note = null;
        const why: layout.Reason = switch (err) {
            error.MessageCancelled => .message_cancelled,
            error.MessageTruncated => .message_truncated,
            else => {
                intake.free(note);
                return null;
            },
        };
        note.broken = true;
        if (note.fault == null) {
            note.fault = why;
            return note;
        }
        // A call that was dropped before was never made, and nobody hears of it.
        if (note.kind != .call) return note;
        intake.free(note);
        return null;
    }
};

// What becomes of a message that has come to a port with calls [spec/call.md, "Messages",
// "Serving"].
//
// Invariant: whatever the peer's bytes hold, a message goes to the call that it belongs to, is
// refused, or is reported once.

/// Which messages a port takes out of its ring at the moment.
pub const Gate = struct {
    calls: *Calls,
    /// Whether calls are begun as they come, and what is to be read is read at once: neither then
    /// needs a place in the inbox.
    begins: bool,
    delivers: bool,
    /// Whether plain messages are to be lent where they are.
    lends: bool = false,

    /// Says so of a message of which the first frame is there [call.takes_in].
    pub fn admits(gate: Gate, lent: Lent) bool {
        const calls = gate.calls;
        const has_room = calls.hasRoom();
        const marks = lent.tag & layout.call_mark_all;
        const id = lent.tag & layout.call_id_max;
        switch (lent.kind) {
            .data => if (gate.lends) return false,
            .call => {
                if (marks == 0) {
                    const most = layout.call_under_way_max;
                    return gate.begins or has_room and calls.pending.count < most;
                }
                const empty = lent.total == 0 and lent.codec == .values;
                if (id != 0 and marks != layout.call_mark_all and empty) return true;
            },
            .@"return", .throw => if (calls.findOwn(id) != null) return true,
            else => {},
        }
        // To be read, or to be reported.
        return gate.delivers or has_room;
    }
};

/// Hands a message to whom it is for.
pub fn sort(calls: *Calls, note: *Note) void {
    switch (note.kind) {
        .call => if (note.serving) |serving|
            sortCall(calls, note, serving)
        else
            sortMark(calls, note),
        .@"return", .throw => sortAnswer(calls, note),
        else => calls.keep(note),
    }
}

fn sortCall(calls: *Calls, note: *Note, serving: *Serving) void {
    const duplicate = note.tag != 0 and findServing(calls, note.tag) != null;
    if (note.broken or duplicate) {
        note.serving = null;
        calls.gpa.destroy(serving);
        // One that was taken back in the middle has never been made.
        return calls.report(note, if (duplicate) .call_duplicate else note.fault.?);
    }
    serving.init(calls, note);
    calls.servings.append(&serving.node);
    if (calls.mute and !serving.isNotice()) return serving.conclude();
    calls.kept_bytes += Calls.weightOf(note);
    calls.pending.push(serving);
}

/// A cancel or a `more`, or a message that no row has [call.stray].
fn sortMark(calls: *Calls, note: *Note) void {
    const mark = note.tag & layout.call_mark_all;
    const fits = mark != layout.call_mark_all and note.id() != 0 and note.fault == null and
        note.codec == .values and note.payload.len == 0;
    if (!fits) return stray(calls, note);
    defer note.destroy(calls.gpa);
    // [call.crossed]
    const serving = findServing(calls, note.id()) orelse return;
    if (mark == mark_more) {
        serving.allowed +|= layout.call_grant;
    } else {
        cancel(calls, serving);
    }
}

fn sortAnswer(calls: *Calls, note: *Note) void {
    const marks = note.tag & layout.call_mark_all;
    const fits = marks == 0 or marks == mark_more and note.kind == .@"return";
    if (!fits or note.id() == 0) return stray(calls, note);
    // [call.unmatched]
    const own = calls.findOwn(note.id()) orelse return calls.report(note, .call_answer);
    own.arrive(note);
}

fn stray(calls: *Calls, note: *Note) void {
    const code = if (note.broken) note.fault.? else Reason.call_form;
    calls.report(note, code);
}

fn findServing(calls: *const Calls, id: u32) ?*Serving {
    var node = calls.servings.first;
    while (node) |each| : (node = each.next) {
        const serving: *Serving = @alignCast(@fieldParentPtr("node", each));
        if (serving.id == id and serving.isUnderWay()) return serving;
    }
    return null;
}

/// [call.cancelled] [call.stops]
fn cancel(calls: *Calls, serving: *Serving) void {
    if (serving.isCancelled()) return;
    if (serving.state != .arrived) return tell(serving);
    serving.token.tell();
    serving.refusal = .call_cancelled;
    calls.kept_bytes -= Calls.weightOf(serving.note);
    serving.note = serving.note.emptied(calls.gpa);
}

/// Tells a method that has begun, once.
pub fn tell(serving: *Serving) void {
    if (serving.isCancelled()) return;
    serving.token.tell();
    if (serving.state != .later) return;
    if (serving.on_cancel) |told| told(serving);
}

/// Begins the call that has waited longest for it, or refuses it [call.order].
pub fn beginNext(calls: *Calls, serving: *Serving) void {
    if (!serving.isCancelled()) calls.kept_bytes -= Calls.weightOf(serving.note);
    if (serving.silent) return serving.conclude();
    const method = judge(calls, serving) catch |err|
        // Memory that is not there is no fault of the call's.
        return serving.refuse(if (err == error.OutOfMemory) .call_limit else reasonOf(err).?);
    serving.state = .running;
    serving.on_stack = true;
    calls.served_count += 1;
    calls.served_bytes += serving.note.payload.len;
    calls.stack.depth += 1;
    defer calls.stack.depth -= 1;
    if (method(calls.options.methods.context, serving)) {
        if (serving.state == .running) serving.answer({});
    } else |err| {
        if (serving.state == .running or serving.state == .later) serving.throw(err);
    }
    serving.returned();
}

/// Says why a call is refused, by the rows of the table in their order [call.refused].
fn judge(calls: *Calls, serving: *Serving) !callee.Methods.Method {
    if (serving.refusal) |code| return call_error.errorOf(code);
    const note = serving.note;
    if (note.codec != .values) return error.MessageCodec;
    const list: call_values.List = try .check(calls.gpa, note.payload);
    const name = list.at(0);
    if (list.count == 0 or name.codec != .text) return error.CallForm;
    if (name.payload.len == 0) return error.CallForm;
    if (name.payload.len > layout.call_name_size_max) return error.CallForm;
    serving.list = list;
    if (calls.served_count >= layout.call_under_way_max) return error.CallLimit;
    if (calls.served_bytes +| note.payload.len > calls.options.serving_size) {
        return error.CallLimit;
    }
    if (calls.stack.depth >= layout.call_depth_max) return error.CallDepth;
    const methods = calls.options.methods;
    return methods.find(methods.context, name.payload) orelse error.CallMethod;
}

// What a port with calls writes: messages one after the other, and before them what was accepted
// and what is owed [port.posted] [call.cancel_owed].
//
// Invariant: nothing comes between the frames of a message, whatever is taken in meanwhile.

/// Waits until all that was accepted, or is owed, is placed.
pub fn clear(calls: *Calls, deadline: *Deadline, token: ?*const CancelToken) CallError!void {
    assert(!calls.sending);
    while (true) {
        settle(calls);
        const size = calls.need orelse return;
        try call_file.awaitRoom(calls, size, deadline, token);
    }
}

/// Writes a message, after all that was accepted.
pub fn send(
    calls: *Calls,
    payload: []const u8,
    envelope: Envelope,
    deadline: *Deadline,
    token: ?*const CancelToken,
) CallError!void {
    try clear(calls, deadline, token);
    if (try calls.writer.writeNow(payload, envelope)) return;
    const at_once = deadline.timeout == .none;
    if (at_once and payload.len > calls.writer.trySizeMax()) return error.MessageSize;
    var message: pipe.Send = .init(&.{payload}, envelope, deadline.timeout);
    calls.sending = true;
    defer {
        calls.sending = false;
        settle(calls);
    }
    while (true) {
        const size = (try calls.writer.placeAccepted(&message)) orelse return;
        call_file.awaitRoom(calls, size, deadline, token) catch |err| {
            if (message.sent_any) calls.writer.owed = envelope;
            return err;
        };
    }
}

/// [call.window]
pub fn sendItem(
    calls: *Calls,
    serving: *Serving,
    payload: []const u8,
    timeout: Timeout,
) CallError!void {
    var patience: Patience = .init(timeout);
    try call_file.awaitWindow(calls, serving, &patience);
    const tag = serving.id | layout.call_mark_more;
    const envelope: Envelope = .{ .kind = .@"return", .codec = .values, .tag = tag };
    send(calls, payload, envelope, &patience.deadline, &serving.token) catch |err|
        return if (err == error.Aborted) error.CallCancelled else err;
    serving.sent += 1;
    return call_file.awaitSent(calls, &patience.deadline, &serving.token);
}

/// Places an answer if there is room at once, and nothing before it. True as well where no
/// answer can be written any more.
pub fn placeAnswer(calls: *Calls, payload: []const u8, envelope: Envelope) bool {
    settle(calls);
    if (calls.mute) return true;
    if (calls.sending or calls.need != null) return false;
    return calls.writer.writeNow(payload, envelope) catch {
        calls.silence();
        return true;
    };
}

/// Places what was accepted and what is owed, as far as there is room; never waits.
pub fn settle(calls: *Calls) void {
    if (calls.sending or calls.mute) return;
    calls.need = placeAll(calls) catch {
        calls.silence();
        return;
    };
}

fn placeAll(calls: *Calls) pipe.WriteError!?u32 {
    while (true) {
        const serving = calls.posted.first;
        const begun = serving != null and serving.?.send.sent_any;
        // What is owed comes before the next message [call.cancel_owed].
        if (!begun) if (calls.owed.first) |node| {
            const own: *Call = @alignCast(@fieldParentPtr("owed_node", node));
            if (!try placeMark(calls, own)) return 0;
            continue;
        };
        const first = serving orelse return null;
        if (try calls.writer.placeAccepted(&first.send)) |size| return size;
        _ = calls.posted.pop();
        first.conclude();
    }
}

/// Places one cancel, or one `more`.
fn placeMark(calls: *Calls, own: *Call) pipe.WriteError!bool {
    const mark: u32 = if (own.owes_cancel) layout.call_mark_cancel else layout.call_mark_more;
    const envelope: Envelope = .{ .kind = .call, .codec = .values, .tag = own.id | mark };
    var message: pipe.Send = .init(&.{}, envelope, .forever);
    if (try calls.writer.placeAccepted(&message) != null) return false;
    own.placed();
    return true;
}

// Tests.
//
// Tests of calls on a port that is lost, vacated, or short of memory.

const millrace = @import("../root.zig");
const fixture = @import("../testing/fixture.zig");
const testing = std.testing;
const Duel = @import("fixture.zig").Duel;

const none: Calls.CallOptions = .{ .timeout = .none };
const json_one: millrace.Value = .{ .codec = .json, .payload = "1" };

/// A peer whose own marks what happens to it.
const Loss = enum { ends, closes, fails, breaks, own_close, own_failure };

fn lose(duel: *Duel, loss: Loss) !void {
    const segment: millrace.Segment = segment: {
        var channels: [2]millrace.Channel = undefined;
        break :segment try .attach(&duel.memory, &channels, .none);
    };
    switch (loss) {
        .ends => try duel.peer.end(),
        .closes => duel.peer.close(),
        .fails => segment.fail(segment.ownerOf(0), .peer_terminated, &fixture.clockwork),
        .breaks => {
            const ring = &duel.peer.writer.ring;
            const offset = ring.tail & (ring.capacity - 1);
            const header: frame.Header = .{ .size = 0, .kind = 99 };
            header.store(@alignCast(ring.area[offset..][0..16]));
            ring.tail +%= 16;
            ring.publish();
        },
        .own_close => duel.port.close(),
        .own_failure => segment.fail(segment.ownerOf(1), .peer_lost, &fixture.clockwork),
    }
}

test "Calls: each loss ends all calls with its code, after what was published [call.lost]" {
    const cases = [_]struct { Loss, anyerror, ?millrace.Reason }{
        .{ .ends, error.CallEnded, null },
        .{ .closes, error.PeerClosed, null },
        .{ .fails, error.PeerFailed, .peer_terminated },
        .{ .breaks, error.Corrupt, .frame_kind },
        .{ .own_close, error.PipeClosed, null },
        .{ .own_failure, error.PipeFailed, .peer_lost },
    };
    for (cases) |case| {
        const loss, const expected, const reason = case;
        var duel: Duel = undefined;
        try duel.init(4096, .{});
        defer duel.deinit();
        const answered = try duel.calls.begin("one", .{}, none);
        defer answered.release();
        const pending = try duel.calls.begin("one", .{}, none);
        defer pending.release();
        try duel.ask(9, "hold");
        try duel.say(.@"return", 1, &.{json_one});
        try lose(&duel, loss);
        try testing.expectError(expected, pending.finish(.ms(5), null));
        try testing.expectEqual(reason, if (reason != null) duel.port.reason() else null);
        // The own close drops what was not delivered [pipe.close].
        if (loss == .own_close) {
            try testing.expectError(expected, answered.result(u32));
        } else {
            try testing.expectEqual(1, try answered.result(u32));
            // A peer that has ended its stream still reads.
            try testing.expectEqual(loss != .ends, duel.served.told == 1);
        }
        try testing.expectEqual(0, duel.calls.under_way_count);
        for (0..2) |_| {
            try testing.expectError(expected, duel.calls.call(u32, "one", .{}, .{}));
            try testing.expectError(expected, duel.calls.notify("one", .{}, .{}));
        }
        const serving = duel.served.holds[0] orelse continue;
        serving.answer(5);
        if (loss != .ends) continue;
        try duel.expect(.call, 1, "one");
        try duel.expect(.call, 2, "one");
        try duel.expect(.@"return", 9, "5");
    }
}

test "Calls: a method that waits on the stack ends with the port [call.told]" {
    for ([_]Loss{ .ends, .closes, .fails, .breaks, .own_failure }) |loss| {
        var duel: Duel = undefined;
        try duel.init(4096, .{});
        defer duel.deinit();
        try duel.ask(9, "back");
        try lose(&duel, loss);
        const found = duel.calls.read(&duel.storage, .ms(5));
        if (loss == .ends) {
            try testing.expectEqual(null, try found);
            try testing.expectEqual(error.CallEnded, duel.served.back_ended.?);
            try duel.expect(.call, 1, "back");
            try duel.expect(.throw, 9, "call.ended");
        } else {
            try testing.expectEqual(duel.served.back_ended.?, (found catch |err| err));
        }
    }
}

test "Calls: why a call has ended stays its own, whatever the peer's state becomes [call.lost]" {
    // A fault fails the peer with a reason, which the peer overwrites: failed without one, and an
    // invalid state.
    for ([_]u32{ layout.endpoint_state_failed, 77 }) |word| {
        var duel: Duel = undefined;
        try duel.init(4096, .{});
        defer duel.deinit();
        const finished = try duel.calls.begin("one", .{}, none);
        defer finished.release();
        const asked = try duel.calls.begin("one", .{}, none);
        defer asked.release();
        var items = try duel.calls.items(u32, "count", .{}, none);
        defer items.deinit();
        try lose(&duel, .breaks);
        try testing.expectError(error.Corrupt, duel.calls.read(&duel.storage, .none));
        @atomicStore(u32, &duel.peer.endpoint.record.state, word, .seq_cst);
        for (0..2) |_| {
            try testing.expectError(error.Corrupt, finished.finish(.none, null));
            try testing.expectEqual(.frame_kind, duel.port.reason());
            // Nothing of the ring says why by now.
            try testing.expectError(error.PeerFailed, duel.port.write("text", .{}, .none));
            try testing.expect(duel.port.reason() != .frame_kind);
            try testing.expectError(error.Corrupt, asked.result(u32));
            try testing.expectEqual(.frame_kind, duel.port.reason());
            try testing.expectError(error.PeerFailed, duel.port.write("text", .{}, .none));
            try testing.expectError(error.Corrupt, items.next());
            try testing.expectEqual(.frame_kind, duel.port.reason());
            try testing.expectError(error.PeerFailed, duel.port.write("text", .{}, .none));
        }
    }
}

test "Calls.end: nobody is called any more, and the methods are told [call.told]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    const call = try duel.calls.begin("one", .{}, none);
    defer call.release();
    try duel.ask(9, "hold");
    try duel.serve();
    try duel.calls.end(.none);
    try testing.expectEqual(1, duel.served.told);
    try testing.expectError(error.PipeEnded, duel.calls.begin("one", .{}, none));
    try duel.say(.@"return", 1, &.{json_one});
    try duel.ask(10, "one");
    try duel.serve();
    try testing.expectEqual(1, try call.result(u32));
    duel.served.holds[0].?.answer(1);
    try duel.expect(.call, 1, "one");
    try duel.expectNothing();
    try testing.expect(duel.peer.ended());
}

test "Calls.end: what was accepted comes before the end" {
    var duel: Duel = undefined;
    try duel.init(256, .{});
    defer duel.deinit();
    while (try duel.port.tryWrite("", .{})) {}
    try duel.ask(9, "one");
    try duel.serve();
    while (try duel.peer.read(&duel.storage, .none)) |_| {}
    try duel.calls.end(.none);
    try duel.expect(.@"return", 9, "1");
    try duel.expectNothing();
    try testing.expect(duel.peer.ended());
}

test "Calls.vacate: the next owner of the peer's endpoint meets no call [call.vacated]" {
    for ([_]bool{ false, true }) |ends| try vacateBehind(ends);
}

test "Calls.vacate: calls end by the state that the peer had, read or not [call.lost]" {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    const call = try duel.calls.begin("one", .{}, none);
    defer call.release();
    try lose(&duel, .fails);
    try testing.expect(duel.calls.vacate());
    try testing.expectError(error.PeerFailed, call.result(u32));
    try testing.expectEqual(.peer_terminated, duel.port.reason().?);
}

fn vacateBehind(ends: bool) !void {
    var duel: Duel = undefined;
    try duel.init(4096, .{});
    defer duel.deinit();
    try testing.expect(!duel.calls.vacate());
    const call = try duel.calls.begin("one", .{}, none);
    call.release();
    try duel.ask(1, "hold");
    try duel.serve();
    try duel.peer.write("plain", .{}, .none);
    try duel.ask(2, "hold");
    if (ends) try lose(&duel, .ends);
    try lose(&duel, .fails);
    _ = (try duel.calls.read(&duel.storage, .none)).?;
    const behind = duel.calls.read(&duel.storage, .none);
    if (ends) {
        try testing.expectEqual(null, try behind);
    } else {
        try testing.expectError(error.PeerFailed, behind);
    }
    try testing.expect(duel.calls.vacate());
    try duel.peer.attach(&duel.memory, 0, .{
        .endpoint = .{ .host = &fixture.clockwork },
        .calls = true,
    });
    // The same ids, in both directions, mean other calls.
    try duel.ask(1, "one");
    const again = try duel.calls.begin("one", .{}, none);
    defer again.release();
    try duel.say(.@"return", 1, &.{json_one});
    try duel.serve();
    try testing.expectEqual(1, try again.result(u32));
    for (duel.served.holds[0..2]) |serving| serving.?.answer("to nobody");
    try duel.expect(.call, 1, "one");
    try duel.expect(.@"return", 1, "1");
    try duel.expectNothing();
}

test "Calls: where memory ends nothing leaks, and nothing is lost that has come" {
    try testing.checkAllAllocationFailures(testing.allocator, struct {
        fn run(gpa: std.mem.Allocator) !void {
            var duel: Duel = undefined;
            try duel.initWith(gpa, 1024, .{});
            defer duel.deinit();
            var large: [3000]u8 = @splat('x');
            const call = try duel.calls.begin("one", .{ "text", 5, .{ .a = 1 } }, none);
            defer call.release();
            try duel.say(.call, 9, &.{ .text("one"), .{ .codec = .json, .payload = "[[[]]]" } });
            try duel.say(.@"return", 1, &.{.text("text")});
            try testing.expectEqual(null, try duel.calls.read(&duel.storage, .none));
            const result = try call.result([]const u8);
            result.deinit();
            const write: Calls.CallOptions = .{ .timeout = .ms(5) };
            const given: millrace.Bytes = .{ .bytes = &large };
            const found = duel.calls.begin("one", .{given}, write) catch |err| switch (err) {
                error.Timeout => return,
                else => return err,
            };
            found.release();
        }
    }.run, .{});
}

test "CancelToken.cancel: another thread ends a call that waits" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    // Whoever is not woken finds it by the end of a slice, every time; on a busy machine others do
    // now and then.
    for (0..20) |_| {
        if (try lateCancels() == 0) break;
    } else return error.NeverWoken;
}

/// Cancels two calls that wait; returns how often that was found by the end of a slice.
fn lateCancels() !u64 {
    const Other = struct {
        fn cancel(token: *millrace.CancelToken) void {
            millrace.Host.native.pause(20_000_000);
            token.cancel();
        }
    };
    var memory: [8192]u8 align(layout.segment_align) = @splat(0);
    const rings: millrace.Rings = .{ .capacities = .{ 256, 256 } };
    var port: millrace.Port = undefined;
    try port.create(&memory, rings, 0, .{});
    defer port.close();
    var calls: Calls = undefined;
    calls.init(&port, testing.allocator, .{});
    defer calls.deinit();
    for (0..2) |round| {
        var token: millrace.CancelToken = .init(&port.endpoint);
        const thread: std.Thread = try .spawn(.{}, Other.cancel, .{&token});
        defer thread.join();
        // One waits for its answer, the other for room.
        const large: [1000]u8 = @splat(0);
        const given: millrace.Bytes = .{ .bytes = large[0..if (round == 0) 0 else large.len] };
        const options: Calls.CallOptions = .{ .token = &token, .timeout = .ms(10_000) };
        try testing.expectError(error.Aborted, calls.call(void, "one", .{given}, options));
    }
    return port.stats().late_wakes;
}
