//! What becomes of a message that has come to a port with calls [spec/call.md, "Messages",
//! "Serving"].
//!
//! Invariant: whatever the peer's bytes hold, a message goes to the call that it belongs to, is
//! refused, or is reported once.

const layout = @import("../memory/layout.zig");
const call_error = @import("error.zig");
const call_values = @import("values.zig");
const reasonOf = @import("../error.zig").reasonOf;
const call_typed = @import("typed.zig");
const Calls = @import("call.zig").Calls;
const Lent = @import("../pipe/ends.zig").Lent;
const Note = @import("intake.zig").Note;
const Reason = layout.Reason;
const Serving = @import("serving.zig").Serving;

const mark_more = layout.call_mark_more;

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

/// Begins the call that came first of those that wait for it, or refuses it [call.order].
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
fn judge(calls: *Calls, serving: *Serving) !call_typed.Methods.Method {
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
