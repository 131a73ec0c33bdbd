//! Generated from spec/layout.json by tools/generate.ts; do not edit.
//!
//! What callers from C are told of reasons, in text that ends with a zero.

const layout = @import("layout.zig");

/// What the reason means.
pub fn text(reason: layout.Reason) [*:0]const u8 {
    return switch (reason) {
        .segment_size => "The memory is too small, too large or not aligned for what the header or the caller states.",
        .segment_unready => "Nobody finished formatting the segment before the deadline.",
        .segment_magic => "This memory does not hold a Millrace segment.",
        .segment_version => "The segment has another major version.",
        .segment_feature => "The segment requires a feature that this endpoint does not know.",
        .segment_table => "A count is out of range, or a table does not fit the segment.",
        .segment_channel => "A channel descriptor is out of range, misaligned, or overlaps something.",
        .segment_geometry => "The segment is ready, with another geometry than the caller asked for.",
        .segment_endpoint => "The endpoint does not exist, or is not vacant.",
        .segment_state => "An endpoint's state word holds a value that no endpoint may store.",
        .segment_file => "The file cannot be trusted: not a regular one, of another user, or open to others.",
        .segment_missing => "There is no file at this path.",
        .ring_cursor => "A cursor moved out of its bounds or lost its alignment.",
        .frame_kind => "A frame's kind is invalid or unknown.",
        .frame_flags => "A frame's flags are unknown, or do not go with its kind, codec or size.",
        .frame_reserved => "A reserved byte of a frame or a preamble is not 0.",
        .frame_size => "A frame reaches beyond what was published, beyond the byte area, or above half the capacity; or its size does not go with its kind.",
        .frame_pad => "A pad does not reach exactly to the end of the byte area.",
        .frame_sequence => "A frame does not continue the message in progress, or continues one that was never begun.",
        .frame_total => "The chunks of a message do not add up to the total in its preamble.",
        .frame_extension => "The header extension of a frame is smaller than 16 bytes, no multiple of 16, or reaches beyond the payload.",
        .mailbox_size => "The section is not aligned to 4, or too small to hold a part.",
        .mailbox_signal => "A control word holds a value that no endpoint may store.",
        .mailbox_length => "A part is empty, or larger than the byte area.",
        .mailbox_part => "A part is not the one that must come next.",
        .message_cancelled => "The writer gave up in the middle of a message; its chunks were dropped.",
        .message_truncated => "The stream ended in the middle of a message; its chunks were dropped.",
        .message_size => "A message is larger than the reader's limit; it was dropped.",
        .message_kind => "A message is of a kind that this reader does not offer; it was dropped.",
        .message_codec => "A message has a codec that this reader does not know, or that failed to decode it; it was dropped.",
        .message_text => "A text or JSON message is not valid UTF-8; it was dropped.",
        .message_json => "A JSON message does not parse, or a batch is not a non-empty array; it was dropped.",
        .peer_closed => "The peer closed its endpoint without an `end`, or no longer reads.",
        .peer_failed => "The peer's endpoint is marked failed.",
        .peer_terminated => "The peer's supervisor ended it, or saw it end.",
        .peer_lost => "The peer's process died: its lock on the endpoint record is gone.",
        .pipe_closed => "This endpoint is closed; nothing can be read or written any more.",
        .pipe_failed => "This endpoint was marked failed by its peer or its supervisor.",
        .pipe_ended => "The writer has ended its stream and cannot write any more.",
        .wait_timeout => "The deadline passed before the call could be done.",
        .wait_aborted => "The caller's signal aborted the call.",
        .wait_forbidden => "This thread must not block; use the asynchronous call.",
        _ => "This version knows no such reason.",
    };
}
