//! The reason code of each error of this library, as layout.json numbers them.

const layout = @import("memory/layout.zig");

/// Returns the reason code of an error, which means the same in every implementation.
///
/// `error.Corrupt` may have several reasons: ask the pipe or the mailbox for its `reason()`. For
/// that error, and for errors of other libraries, this returns null.
pub fn reasonOf(err: anyerror) ?layout.Reason {
    const code = codeOf(err);
    return if (@backingInt(code) == 0) null else code;
}

/// `reasonOf` with 0 for null, so that the compiler makes a table of numbers; optional values would
/// make it a table of addresses.
noinline fn codeOf(err: anyerror) layout.Reason {
    return switch (err) {
        error.SegmentSize => .segment_size,
        error.SegmentUnready => .segment_unready,
        error.SegmentMagic => .segment_magic,
        error.SegmentVersion => .segment_version,
        error.SegmentFeature => .segment_feature,
        error.SegmentTable, error.ChannelStorage => .segment_table,
        error.SegmentChannel => .segment_channel,
        error.SegmentGeometry => .segment_geometry,
        error.SegmentEndpoint => .segment_endpoint,
        error.SegmentFile => .segment_file,
        error.SegmentMissing => .segment_missing,
        error.RingCursor => .ring_cursor,
        error.FrameKind => .frame_kind,
        error.FrameFlags => .frame_flags,
        error.FrameReserved => .frame_reserved,
        error.FrameSize => .frame_size,
        error.FramePad => .frame_pad,
        error.FrameSequence => .frame_sequence,
        error.FrameTotal => .frame_total,
        error.FrameExtension => .frame_extension,
        error.MailboxSize => .mailbox_size,
        error.MessageCancelled => .message_cancelled,
        error.MessageTruncated => .message_truncated,
        error.MessageSize => .message_size,
        error.MessageKind => .message_kind,
        error.MessageCodec => .message_codec,
        error.MessageText => .message_text,
        error.MessageJson => .message_json,
        error.MessageValues => .message_values,
        error.MessageLost => .message_lost,
        error.FanoutNumber => .fanout_number,
        error.PeerClosed => .peer_closed,
        error.PeerFailed => .peer_failed,
        error.PipeClosed => .pipe_closed,
        error.PipeFailed => .pipe_failed,
        error.PipeForked => .pipe_forked,
        error.PipeEnded => .pipe_ended,
        error.Timeout => .wait_timeout,
        error.Aborted => .wait_aborted,
        error.WaitForbidden => .wait_forbidden,
        error.CallForm => .call_form,
        error.CallDuplicate => .call_duplicate,
        error.CallAnswer => .call_answer,
        error.CallLimit => .call_limit,
        error.CallDepth => .call_depth,
        error.CallMethod => .call_method,
        error.CallArguments => .call_arguments,
        error.CallResult => .call_result,
        error.CallThrown => .call_thrown,
        error.CallCancelled => .call_cancelled,
        error.CallEnded => .call_ended,
        error.CallItems => .call_items,
        error.CallInbox => .call_inbox,
        error.PropertyChannel => .property_channel,
        error.PropertySize => .property_size,
        error.PropertySlot => .property_slot,
        error.PropertyBusy => .property_busy,
        else => @fromBackingInt(0),
    };
}
