//! How calls fail: the codes of the chapter as errors, and back [spec/call.md, "Reason codes"].

const std = @import("std");
const layout = @import("../memory/layout.zig");
const pipe = @import("../pipe/ends.zig");
const reasonOf = @import("../error.zig").reasonOf;
const Reason = layout.Reason;

/// Why a call, a notice, or a read on a port with calls has failed.
pub const CallError = pipe.WriteError || pipe.ReadError || error{
    /// The call's token was cancelled.
    Aborted,
    OutOfMemory,
    /// The result is no value of the type that was asked for.
    ResultType,
    /// A list of values is not made as the chapter says.
    MessageValues,
    /// A value has a codec that nobody knows, or a message is no list.
    MessageCodec,
    MessageText,
    MessageJson,
    /// A call, or an answer, is not made as the chapter says.
    CallForm,
    /// A call has the id of another one that is not answered yet.
    CallDuplicate,
    /// An answer belongs to no call.
    CallAnswer,
    /// Too many calls are under way.
    CallLimit,
    /// Too many methods wait for one another on one thread.
    CallDepth,
    /// The callee serves no method of this name.
    CallMethod,
    /// The arguments are not those that the method takes.
    CallArguments,
    /// What the method gave cannot be written as a value.
    CallResult,
    /// The method failed; `Calls.thrown` has its error.
    CallThrown,
    /// The call was given up by its caller.
    CallCancelled,
    /// The peer has ended its stream, so that no answer can come.
    CallEnded,
    /// More items came than were allowed, or items where one result was asked for.
    CallItems,
    /// The inbox is full, and the answer stands after other messages.
    CallInbox,
};

const call_errors = [_]CallError{
    error.MessageCancelled, error.MessageTruncated, error.MessageSize,   error.MessageKind,
    error.MessageCodec,     error.MessageText,      error.MessageJson,   error.MessageValues,
    error.CallForm,         error.CallDuplicate,    error.CallAnswer,    error.CallLimit,
    error.CallDepth,        error.CallMethod,       error.CallArguments, error.CallResult,
    error.CallThrown,       error.CallCancelled,    error.CallEnded,     error.CallItems,
    error.CallInbox,
};

/// The error of a code `call.*` or `message.*`.
///
/// Asserts that it is one.
pub fn errorOf(code: Reason) CallError {
    for (call_errors) |err| {
        if (reasonOf(err) == code) return err;
    }
    unreachable;
}

/// How a call ends that was answered by a throw of this name [call.thrown].
pub fn errorNamed(name: []const u8) CallError {
    for (call_errors) |err| {
        if (std.mem.eql(u8, reasonOf(err).?.name(), name)) return err;
    }
    return error.CallThrown;
}

/// Whether an error says what is wrong with one call, so that a throw may have its code for a name.
pub fn isOfCall(err: anyerror) bool {
    for (call_errors) |known| if (known == err) return true;
    return false;
}

// Tests.

test "every code of calls and of messages has an error, and every error its code" {
    for (std.meta.tags(Reason)) |code| {
        const name = code.name();
        const speaks = std.mem.startsWith(u8, name, "call.") or
            std.mem.startsWith(u8, name, "message.");
        if (!speaks or code == .message_lost) { // Of fanouts alone, over which nobody calls.
            try std.testing.expectEqual(error.CallThrown, errorNamed(name));
            continue;
        }
        try std.testing.expectEqual(code, reasonOf(errorOf(code)).?);
        try std.testing.expectEqual(errorOf(code), errorNamed(name));
    }
}
