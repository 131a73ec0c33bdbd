//! Generated from spec/layout.json by tools/generate.ts; do not edit.
//!
//! Every offset, size, flag, kind, state and reason code of the Millrace segment and stream. All
//! integers are little-endian. Offsets and sizes are in bytes. The constants are comptime integers,
//! so that they fit every integer type that can hold them.

// The version of the layout.

/// Major version of the layout described here.
pub const version_major = 1;
/// Minor version of the layout described here.
pub const version_minor = 0;

// `segment_header`: The first bytes of a segment.

/// Bytes of `segment_header`.
pub const segment_header_size = 128;
/// Alignment of `segment_header`, in bytes.
pub const segment_header_align = 128;
/// u8[8]. The ASCII bytes `MILLRACE`.
pub const segment_magic_offset = 0;
/// Bytes of `magic`.
pub const segment_magic_size = 8;
/// u32, atomic. Where the formatting stands: one of `segment_ready`. The only header word that
/// changes.
pub const segment_ready_offset = 8;
/// Index of `ready` among the 32-bit words of `segment_header`.
pub const segment_ready_word = 2;
/// u16. Major version of the layout. A reader of another major version refuses the segment.
pub const segment_version_major_offset = 12;
/// u16. Minor version of the layout. Informative: what a reader must know is in
/// `required_features`.
pub const segment_version_minor_offset = 14;
/// u32. Bytes of the whole segment, a multiple of 128, at most the memory it lies in.
pub const segment_size_offset = 16;
/// u32. Bits of features without which the segment cannot be used. None is defined yet.
pub const segment_required_features_offset = 20;
/// u32. Bits of features that an endpoint may ignore. None is defined yet.
pub const segment_optional_features_offset = 24;
/// u32. Endpoint records, from 1 to 256.
pub const segment_endpoint_count_offset = 28;
/// u32. Channel descriptors, from 0 to 1,024.
pub const segment_channel_count_offset = 32;
/// u8[92]. Written as 0, ignored by readers.
pub const segment_reserved_offset = 36;

// `endpoint_record`: One per endpoint, on a cache line of its own. The first stands at
// `endpoint_table_offset`.

/// Bytes of `endpoint_record`.
pub const endpoint_record_size = 128;
/// Alignment of `endpoint_record`, in bytes.
pub const endpoint_record_align = 128;
/// u32, atomic. Event count on which the endpoint sleeps. Whoever wakes it adds 1 and notifies.
pub const endpoint_bell_offset = 0;
/// Index of `bell` among the 32-bit words of `endpoint_record`.
pub const endpoint_bell_word = 0;
/// u32, atomic. Low byte: one of `endpoint_state`. Upper 24 bits: of failed the reason code,
/// otherwise the low bits of `generation`.
pub const endpoint_state_offset = 4;
/// Index of `state` among the 32-bit words of `endpoint_record`.
pub const endpoint_state_word = 1;
/// u32, atomic. Bits of `wake_mechanism` that this endpoint can ring.
pub const endpoint_wakes_offset = 8;
/// Index of `wakes` among the 32-bit words of `endpoint_record`.
pub const endpoint_wakes_word = 2;
/// u32, atomic. Process or thread id, informative; 0 where there is none.
pub const endpoint_agent_offset = 12;
/// Index of `agent` among the 32-bit words of `endpoint_record`.
pub const endpoint_agent_word = 3;
/// u32, atomic. How often the endpoint was vacated.
pub const endpoint_generation_offset = 16;
/// Index of `generation` among the 32-bit words of `endpoint_record`.
pub const endpoint_generation_word = 4;
/// u32, atomic. Bits of what this endpoint understands beyond this version. None is defined yet.
pub const endpoint_features_offset = 20;
/// Index of `features` among the 32-bit words of `endpoint_record`.
pub const endpoint_features_word = 5;
/// u32[8], atomic. Which endpoints rang: bit `i` modulo 32 of word `i` / 32 is that of endpoint
/// `i`.
pub const endpoint_rung_offset = 24;
/// Index of `rung` among the 32-bit words of `endpoint_record`.
pub const endpoint_rung_word = 6;
/// Bytes of `rung`.
pub const endpoint_rung_size = 32;
/// u8[72]. Written as 0, ignored by readers.
pub const endpoint_reserved_offset = 56;

// `channel_descriptor`: One per channel, after the endpoint records. Immutable once the segment is
// ready.

/// Bytes of `channel_descriptor`.
pub const channel_descriptor_size = 64;
/// Alignment of `channel_descriptor`, in bytes.
pub const channel_descriptor_align = 64;
/// u32. One of `channel_kind`. Unknown kinds are range-checked and left alone.
pub const channel_kind_offset = 0;
/// u32. Index of the endpoint that writes; `endpoint_none` where there is none, or where any may.
pub const channel_writer_offset = 4;
/// u32. Index of the endpoint that reads; `endpoint_none` where there is none, or where any may.
pub const channel_reader_offset = 8;
/// u32. Offset of the control words from the start of the segment, a multiple of 128.
pub const channel_control_offset_offset = 12;
/// u32. Bytes of the control area.
pub const channel_control_size_offset = 16;
/// u32. Offset of the byte area from the start of the segment, a multiple of 128.
pub const channel_data_offset_offset = 20;
/// u32. Bytes of the byte area. For a ring, its capacity.
pub const channel_data_size_offset = 24;
/// u32. The application's own number for the channel.
pub const channel_label_offset = 28;
/// u32. Ring: the position at which both cursors begin, a multiple of 16. Fanout: its position and
/// its mode. Otherwise 0.
pub const channel_start_offset = 32;
/// u8[28]. Written as 0, ignored by readers.
pub const channel_reserved_offset = 36;

// `ring_control`: The four control words of a ring, each on a 128-byte line of its own.

/// Bytes of `ring_control`.
pub const ring_control_size = 512;
/// Alignment of `ring_control`, in bytes.
pub const ring_control_align = 128;
/// u32, atomic. Position after the last published byte. Stored by the writer only.
pub const ring_tail_offset = 0;
/// Index of `tail` among the 32-bit words of `ring_control`.
pub const ring_tail_word = 0;
/// u32, atomic. Position of the first byte that the reader still holds. Stored by the reader only.
pub const ring_head_offset = 128;
/// Index of `head` among the 32-bit words of `ring_control`.
pub const ring_head_word = 32;
/// u32, atomic. 0, or the `tail` at which the reader wants its bell rung, with bit 0 set.
pub const ring_reader_wants_offset = 256;
/// Index of `reader_wants` among the 32-bit words of `ring_control`.
pub const ring_reader_wants_word = 64;
/// u32, atomic. 0, or the `head` at which the writer wants its bell rung, with bit 0 set.
pub const ring_writer_wants_offset = 384;
/// Index of `writer_wants` among the 32-bit words of `ring_control`.
pub const ring_writer_wants_word = 96;

// `frame_header`: Stands before every payload.

/// Bytes of `frame_header`.
pub const frame_header_size = 16;
/// Alignment of `frame_header`, in bytes.
pub const frame_header_align = 16;
/// u32. Bytes of the payload that follows.
pub const frame_size_offset = 0;
/// u8. One of `frame_kind`.
pub const frame_kind_offset = 4;
/// u8. Bits of `frame_flag`; the rest are 0.
pub const frame_flags_offset = 5;
/// u8. How the payload of the message is written: one of `codec`.
pub const frame_codec_offset = 6;
/// u8. 0.
pub const frame_reserved_offset = 7;
/// u32. Application tag of a data message; id of a call.
pub const frame_tag_offset = 8;
/// u32. When the frame was finished: Unix epoch in microseconds, modulo 2^32. 0 means none.
pub const frame_time_offset = 12;

// `header_extension`: What stands before the payload of an extended frame; more of it may follow.

/// Bytes of `header_extension`.
pub const header_extension_size = 16;
/// Alignment of `header_extension`, in bytes.
pub const header_extension_align = 16;
/// u32. Bytes of the whole extension, these included: a multiple of 16, at least 16.
pub const extension_size_offset = 0;
/// u32. What it holds: one of `extension_kind`, or the application's own. A reader skips what it
/// does not know.
pub const extension_kind_offset = 4;
/// u8[8]. The first bytes of what it holds.
pub const extension_content_offset = 8;
/// Bytes of `content`.
pub const extension_content_size = 8;

// `message_preamble`: The first payload bytes of the first chunk of a multipart message.

/// Bytes of `message_preamble`.
pub const message_preamble_size = 16;
/// Alignment of `message_preamble`, in bytes.
pub const message_preamble_align = 16;
/// u64. Bytes of the whole message, preamble not counted; 2^64 - 1 where they are not known yet.
pub const preamble_total_offset = 0;
/// u8[8]. 0.
pub const preamble_reserved_offset = 8;

// `values_header`: The first bytes of a list of values; an entry for each of them follows.

/// Bytes of `values_header`.
pub const values_header_size = 8;
/// Alignment of `values_header`, in bytes.
pub const values_header_align = 8;
/// u32. Values in the list, from 1 to `values_count_max`.
pub const values_count_offset = 0;
/// u8[4]. 0.
pub const values_reserved_offset = 4;

// `value_entry`: What one value of a list is.

/// Bytes of `value_entry`.
pub const value_entry_size = 8;
/// Alignment of `value_entry`, in bytes.
pub const value_entry_align = 8;
/// u32. Bytes of the value.
pub const value_size_offset = 0;
/// u8. How it is written: one of `codec`, but neither `json_batch` nor `values`.
pub const value_codec_offset = 4;
/// u8[3]. 0.
pub const value_reserved_offset = 5;

// `mailbox_header`: The eight words of a mailbox; its byte area follows them, up to the end of the
// section.

/// Bytes of `mailbox_header`.
pub const mailbox_header_size = 32;
/// Alignment of `mailbox_header`, in bytes.
pub const mailbox_header_align = 4;
/// u32, atomic. One of `mailbox_status`.
pub const mailbox_status_offset = 0;
/// Index of `status` among the 32-bit words of `mailbox_header`.
pub const mailbox_status_word = 0;
/// u32, atomic. Whose turn it is: one of `mailbox_signal`.
pub const mailbox_signal_offset = 4;
/// Index of `signal` among the 32-bit words of `mailbox_header`.
pub const mailbox_signal_word = 1;
/// u32, atomic. Bytes of the part in the byte area.
pub const mailbox_length_offset = 8;
/// Index of `length` among the 32-bit words of `mailbox_header`.
pub const mailbox_length_word = 2;
/// u32, atomic. Parts of the payload.
pub const mailbox_part_count_offset = 12;
/// Index of `part_count` among the 32-bit words of `mailbox_header`.
pub const mailbox_part_count_word = 3;
/// u32, atomic. Which part this is, from 0.
pub const mailbox_part_index_offset = 16;
/// Index of `part_index` among the 32-bit words of `mailbox_header`.
pub const mailbox_part_index_word = 4;
/// u8[12]. Not read. Written by the original when it closes.
pub const mailbox_reserved_offset = 20;

// `property_control`: The control area of a property: what its writer stores, what its watchers do,
// and its name.

/// Bytes of `property_control`.
pub const property_control_size = 384;
/// Alignment of `property_control`, in bytes.
pub const property_control_align = 128;
/// u32, atomic. Number of the last complete value; 0 where none was ever set. Stored by the writer
/// only.
pub const property_version_offset = 0;
/// Index of `version` among the 32-bit words of `property_control`.
pub const property_version_word = 0;
/// u32[8], atomic. Who wants to be rung: bit `i` modulo 32 of word `i` / 32 is that of endpoint
/// `i`.
pub const property_watchers_offset = 128;
/// Index of `watchers` among the 32-bit words of `property_control`.
pub const property_watchers_word = 32;
/// Bytes of `watchers`.
pub const property_watchers_size = 32;
/// u32. Bytes of the name, at most 124; 0 where it has none.
pub const property_name_size_offset = 256;
/// u8[124]. The name in UTF-8; bytes after it are 0.
pub const property_name_offset = 260;
/// Bytes of `name`.
pub const property_name_size = 124;

// `property_slot`: The first bytes of each slot of a property; the value follows them.

/// Bytes of `property_slot`.
pub const property_slot_size = 16;
/// Alignment of `property_slot`, in bytes.
pub const property_slot_align = 16;
/// u32, atomic. Number of the value that was begun here last.
pub const slot_sequence_offset = 0;
/// Index of `sequence` among the 32-bit words of `property_slot`.
pub const slot_sequence_word = 0;
/// u32. Bytes of the value.
pub const slot_size_offset = 4;
/// u8. 1 where there is a value, 0 where there is none.
pub const slot_present_offset = 8;
/// u8. How the value is written: one of `codec`; 0 where there is none.
pub const slot_codec_offset = 9;
/// u8[6]. 0.
pub const slot_reserved_offset = 10;

// `fanout_control`: The first words of the control area of a fanout; the records of its readers
// follow.

/// Bytes of `fanout_control`.
pub const fanout_control_size = 256;
/// Alignment of `fanout_control`, in bytes.
pub const fanout_control_align = 128;
/// u32, atomic. Position after the last published byte. Stored by the writer only.
pub const fanout_tail_offset = 0;
/// Index of `tail` among the 32-bit words of `fanout_control`.
pub const fanout_tail_word = 0;
/// u32, atomic. Mode `lose`: position of the oldest frame that is still there. Stored by the writer
/// only.
pub const fanout_floor_offset = 4;
/// Index of `floor` among the 32-bit words of `fanout_control`.
pub const fanout_floor_word = 1;
/// u32, atomic. Mode `lose`: how often `floor` has passed a multiple of 2^31. Stored by the writer
/// only.
pub const fanout_era_offset = 8;
/// Index of `era` among the 32-bit words of `fanout_control`.
pub const fanout_era_word = 2;
/// u32, atomic. 0, or, when the writer has ended, the position after its `end`, with bit 0 set.
/// Stored by the writer only.
pub const fanout_ended_offset = 12;
/// Index of `ended` among the 32-bit words of `fanout_control`.
pub const fanout_ended_word = 3;
/// u32[8], atomic. Which readers want to be rung: bit `i` modulo 32 of word `i` / 32 is that of
/// record `i`.
pub const fanout_readers_want_offset = 128;
/// Index of `readers_want` among the 32-bit words of `fanout_control`.
pub const fanout_readers_want_word = 32;
/// Bytes of `readers_want`.
pub const fanout_readers_want_size = 32;

// `fanout_reader`: The record of one reader of a fanout.

/// Bytes of `fanout_reader`.
pub const fanout_reader_size = 128;
/// Alignment of `fanout_reader`, in bytes.
pub const fanout_reader_align = 128;
/// u32, atomic. Mode `hold`: 0, `fanout_joining`, or the position of the first byte that the reader
/// holds, with bit 0 set. Stored by the reader only.
pub const fanout_reader_head_offset = 0;
/// Index of `head` among the 32-bit words of `fanout_reader`.
pub const fanout_reader_head_word = 0;
/// u32, atomic. Mode `hold`: 0, or the position of this reader at which the writer wants its bell
/// rung, with bit 0 set.
pub const fanout_reader_writer_wants_offset = 64;
/// Index of `writer_wants` among the 32-bit words of `fanout_reader`.
pub const fanout_reader_writer_wants_word = 16;

// `stream_preface`: The first bytes of each direction of a stream.

/// Bytes of `stream_preface`.
pub const stream_preface_size = 32;
/// Alignment of `stream_preface`, in bytes.
pub const stream_preface_align = 16;
/// u8[8]. The bytes `4d 49 4c 4c ff 0d 0a 0a`: `MILL`, a byte that is no text, and line ends.
pub const stream_magic_offset = 0;
/// Bytes of `magic`.
pub const stream_magic_size = 8;
/// u16. Major version of the layout, 1. A reader of another major version refuses the stream.
pub const stream_version_major_offset = 8;
/// u16. Minor version of the layout, 0. Informative.
pub const stream_version_minor_offset = 10;
/// u32. Largest extent of a frame that this side accepts: a multiple of 16, from 128 on.
pub const stream_largest_offset = 12;
/// u32. Bytes of frames that the peer may send beyond what was given back: a multiple of 16, from
/// `largest` on.
pub const stream_window_offset = 16;
/// u32. Bits of features without which the stream cannot be used. None is defined yet.
pub const stream_required_features_offset = 20;
/// u32. Bits of features that the peer may ignore. None is defined yet.
pub const stream_optional_features_offset = 24;
/// u8[4]. Written as 0, ignored by readers.
pub const stream_reserved_offset = 28;

// `segment_ready`: Values of the `ready` word.

/// Nobody has formatted this memory.
pub const segment_ready_blank = 0;
/// Somebody has claimed the formatting and is at it.
pub const segment_ready_formatting = 1;
/// The header, the records and the descriptors are complete.
pub const segment_ready_ready = 2;

// `endpoint_state`: Low byte of an endpoint's `state` word. `closed` and `failed` are final.

/// Nobody has attached yet, or again.
pub const endpoint_state_vacant = 0;
/// A thread owns the endpoint.
pub const endpoint_state_attached = 1;
/// The owner, or its supervisor, has closed it.
pub const endpoint_state_closed = 2;
/// Somebody found it dead or faulty; the upper 24 bits say why.
pub const endpoint_state_failed = 3;

// `channel_kind`: What a channel is.

/// A ring of frames.
pub const channel_kind_ring = 1;
/// A latest-value register: the chapter property, which is optional.
pub const channel_kind_property = 2;
/// One writer, and every reader gets every message: the chapter fanout, which is optional.
pub const channel_kind_fanout = 3;

// `extension_kind`: What a header extension holds. A reader skips what it does not know.

/// The number of the message, a `u64` in `content`: how many its writer has written before it.
pub const extension_kind_number = 1;

// `mailbox_status`: Values of a mailbox's `status`.

/// In use; also what blank memory says.
pub const mailbox_status_active = 0;
/// Closed by either side, for ever.
pub const mailbox_status_disposed = -1;

// `mailbox_signal`: Values of a mailbox's `signal`, the word on which both sides sleep.

/// The byte area is the writer's.
pub const mailbox_signal_may_write = 0;
/// The byte area holds a part for the reader.
pub const mailbox_signal_may_read = 1;
/// Closed.
pub const mailbox_signal_disposed = -1;

// `frame_kind`: What a frame is. 128 to 255 are extensions that a reader skips; every other value
// not listed is corrupt.

/// Never written: blank memory is no frame.
pub const frame_kind_invalid = 0;
/// A message, or a chunk of one.
pub const frame_kind_data = 1;
/// The writer is done; nothing follows.
pub const frame_kind_end = 2;
/// A request, or a chunk of one.
pub const frame_kind_call = 3;
/// The result of a call, or a chunk of one.
pub const frame_kind_return = 4;
/// The failure of a call, or a chunk of one.
pub const frame_kind_throw = 5;
/// Fills the byte area exactly to its end.
pub const frame_kind_pad = 6;

// `codec`: How a payload is written. 128 to 255 belong to the application.

/// Bytes, as they are.
pub const codec_bytes = 0;
/// Text in UTF-8.
pub const codec_text = 1;
/// One JSON text in UTF-8.
pub const codec_json = 2;
/// A JSON array of one or more messages, in order, in one frame.
pub const codec_json_batch = 3;
/// A list of values, each with a codec of its own: the chapter call.
pub const codec_values = 4;
/// One data item of RFC 8949 (CBOR).
pub const codec_cbor = 5;

// `stream_kind`: Frames that a stream has beside those of `frame_kind`, except pads.

/// All up to the position in `tag` was given back: the peer may write on.
pub const stream_kind_credit = 16;
/// Who writes it has closed: it writes and reads nothing any more.
pub const stream_kind_close = 17;
/// Who writes it has marked its peer failed; `tag` is the reason code.
pub const stream_kind_fail = 18;

// `frame_flag`: Bits of a frame's `flags`.

/// The first frame of a message.
pub const frame_flag_first = 1;
/// The last frame of a message.
pub const frame_flag_last = 2;
/// With `last`: the writer gave up; drop the chunks of this message.
pub const frame_flag_cancel = 4;
/// The payload begins with a `header_extension`.
pub const frame_flag_extended = 8;
/// Every bit of `frame_flag`.
pub const frame_flag_all = 15;

// `call_mark`: Bits of the tag of a call, a return or a throw; the others are the id.

/// On a call: the caller has given the call of this id up.
pub const call_mark_cancel = 1_073_741_824;
/// On a return: an item, and not the last answer. On a call: room for `call_grant` items more.
pub const call_mark_more = 2_147_483_648;
/// Every bit of `call_mark`.
pub const call_mark_all = 3_221_225_472;

// `wake_mechanism`: Bits of `wakes`: whose sleepers an endpoint can wake.

/// Agents of one JavaScript agent cluster, and the WebAssembly in it.
pub const wake_mechanism_agent = 1;
/// Threads that sleep in the Linux futex, without the PRIVATE flag, on one mapping.
pub const wake_mechanism_futex = 2;
/// Guests of one wasmtime engine.
pub const wake_mechanism_wasmtime = 4;
/// Every bit of `wake_mechanism`.
pub const wake_mechanism_all = 7;

// Limits.

/// Alignment of a segment, of its size, and of every area in it.
pub const segment_align = 128;
/// Smallest segment: a header and one endpoint record.
pub const segment_size_min = 256;
/// Largest segment.
pub const segment_size_max = 4_294_967_168;
/// Where the endpoint records begin.
pub const endpoint_table_offset = 128;
/// The end of a channel that names no endpoint.
pub const endpoint_none = 4_294_967_295;
/// Most endpoints of a segment.
pub const endpoint_count_max = 256;
/// Most channels of a segment.
pub const channel_count_max = 1024;
/// Most attempts at one change of a `state`.
pub const state_tries = 3;
/// The bits of `state` that hold an `endpoint_state`.
pub const state_mask = 255;
/// How far the reason code, or the generation, stands above the state in `state`.
pub const reason_shift = 8;
/// Longest park while a peer is vacant or could be found dead.
pub const wait_slice_ms = 100;
/// Longest park while every peer is attached and none could be found dead.
pub const wait_slice_attached_ms = 1000;
/// Longest park in which a writer may ask for more space than it needs.
pub const wait_more_ms = 10;
/// Longest pause of an endpoint that polls.
pub const wait_poll_ms = 5;
/// Most looks of one call on a thread that must not block.
pub const wait_no_block_looks = 128;
/// Default time to spin before parking, with two or more processors.
pub const wait_spin_us = 50;
/// Bit 0 of an armed `wants` word.
pub const wants_armed = 1;
/// Smallest ring.
pub const ring_capacity_min = 256;
/// Largest ring.
pub const ring_capacity_max = 1_073_741_824;
/// Bytes that only an `end` frame may take.
pub const ring_reserve = 16;
/// Alignment of every frame and of every cursor.
pub const frame_align = 16;
/// First kind of a `header_extension` that belongs to the application.
pub const extension_application_min = 2_147_483_648;
/// First frame kind that a reader skips without knowing it.
pub const frame_kind_extension_min = 128;
/// Smallest section: eight words and one byte.
pub const mailbox_size_min = 33;
/// Most parts of a payload.
pub const mailbox_part_count_max = 2_147_483_647;
/// First codec number that belongs to the application.
pub const codec_application_min = 128;
/// Most arrays, maps and tags around an item of CBOR.
pub const cbor_depth_max = 1024;
/// Alignment of every value of a list, from the beginning of the list.
pub const values_align = 8;
/// Most values of a list: the name of a method and 255 arguments.
pub const values_count_max = 256;
/// Last id of a call, and the mask of the id in a tag; 0 is that of a notice.
pub const call_id_max = 1_073_741_823;
/// Most calls of one side under way that were not given up, and most that a side serves.
pub const call_under_way_max = 1024;
/// Most calls of one side under way, given up or not.
pub const call_unanswered_max = 2048;
/// Most methods that stand on the stack of one thread, one called while the other waits.
pub const call_depth_max = 128;
/// Most items of a call before the first `more`.
pub const call_window = 16;
/// Items that each `more` allows beyond that.
pub const call_grant = 8;
/// Largest name of a method or of an error.
pub const call_name_size_max = 255;
/// Largest text of an error.
pub const call_text_size_max = 4096;
/// Slots of a property: a fourth of the byte area each.
pub const property_slot_count = 4;
/// Smallest byte area of a property; a larger one is a multiple of it.
pub const property_data_unit = 512;
/// Largest name of a property.
pub const property_name_size_max = 124;
/// Tries before a reader may give up.
pub const property_tries_min = 16;
/// Tries after which a reader gives up.
pub const property_tries_max = 1024;
/// Most readers of a fanout.
pub const fanout_readers_max = 255;
/// Bit 0 of `start`: the mode is `lose`.
pub const fanout_lose = 1;
/// Bit 0 of `head`: the reader has joined.
pub const fanout_joined = 1;
/// The `head` of a reader that is about to join.
pub const fanout_joining = 2;
/// Bytes from one `era` to the next.
pub const fanout_era_size = 2_147_483_648;
/// Most looks between two looks at the deadline that a writer may spoil.
pub const fanout_tries = 8;
/// Smallest `largest`.
pub const stream_largest_min = 128;
/// Largest `window`, and so the largest `largest`.
pub const stream_window_max = 1_073_741_824;
/// Position at which both directions begin: 256 bytes before 2^32, so that each stream shows what
/// happens there.
pub const stream_start = 4_294_967_040;
/// How long an endpoint that has closed goes on taking in what arrives.
pub const stream_linger_ms = 2000;

// Reason codes.

/// The memory is too small, too large or not aligned for what the header or the caller states.
pub const reason_segment_size = 1;
/// Nobody finished formatting the segment before the deadline.
pub const reason_segment_unready = 2;
/// This memory does not hold a Millrace segment.
pub const reason_segment_magic = 3;
/// The segment has another major version.
pub const reason_segment_version = 4;
/// The segment requires a feature that this endpoint does not know.
pub const reason_segment_feature = 5;
/// A count is out of range, or a table does not fit the segment.
pub const reason_segment_table = 6;
/// A channel descriptor is out of range, misaligned, or overlaps something.
pub const reason_segment_channel = 7;
/// The segment is ready, with another geometry than the caller asked for.
pub const reason_segment_geometry = 8;
/// The endpoint does not exist, or is not vacant.
pub const reason_segment_endpoint = 9;
/// An endpoint's state word holds a value that no endpoint may store.
pub const reason_segment_state = 10;
/// The file cannot be trusted: not a regular one, of another user, or open to others.
pub const reason_segment_file = 11;
/// There is no file at this path.
pub const reason_segment_missing = 12;
/// A cursor moved out of its bounds or lost its alignment.
pub const reason_ring_cursor = 16;
/// A frame's kind is invalid or unknown.
pub const reason_frame_kind = 32;
/// A frame's flags are unknown, or do not go with its kind, codec or size.
pub const reason_frame_flags = 33;
/// A reserved byte of a frame or a preamble is not 0.
pub const reason_frame_reserved = 34;
/// A frame reaches beyond what was published, beyond the byte area, or above half the capacity; or
/// its size does not go with its kind.
pub const reason_frame_size = 35;
/// A pad does not reach exactly to the end of the byte area.
pub const reason_frame_pad = 36;
/// A frame does not continue the message in progress, or continues one that was never begun.
pub const reason_frame_sequence = 37;
/// The chunks of a message do not add up to the total in its preamble.
pub const reason_frame_total = 38;
/// The header extension of a frame is smaller than 16 bytes, no multiple of 16, or reaches beyond
/// the payload.
pub const reason_frame_extension = 39;
/// The section is not aligned to 4, or too small to hold a part.
pub const reason_mailbox_size = 40;
/// A control word holds a value that no endpoint may store.
pub const reason_mailbox_signal = 41;
/// A part is empty, or larger than the byte area.
pub const reason_mailbox_length = 42;
/// A part is not the one that must come next.
pub const reason_mailbox_part = 43;
/// The writer gave up in the middle of a message; its chunks were dropped.
pub const reason_message_cancelled = 48;
/// The stream ended in the middle of a message; its chunks were dropped.
pub const reason_message_truncated = 49;
/// A message is larger than the reader's limit; it was dropped.
pub const reason_message_size = 50;
/// A message is of a kind that this reader does not offer; it was dropped.
pub const reason_message_kind = 51;
/// A message has a codec that this reader does not know, or that failed to decode it; it was
/// dropped.
pub const reason_message_codec = 52;
/// A text or JSON message is not valid UTF-8; it was dropped.
pub const reason_message_text = 53;
/// A JSON message does not parse, or a batch is not a non-empty array; it was dropped.
pub const reason_message_json = 54;
/// A list of values is not made as the chapter says; it was dropped.
pub const reason_message_values = 55;
/// The reader was overrun: messages were overwritten before it read them; their number stands
/// beside this code.
pub const reason_message_lost = 56;
/// The peer closed its endpoint without an `end`, or no longer reads.
pub const reason_peer_closed = 64;
/// The peer's endpoint is marked failed.
pub const reason_peer_failed = 65;
/// The peer's supervisor ended it, or saw it end.
pub const reason_peer_terminated = 66;
/// The peer's process died: its lock on the endpoint record is gone, or its stream broke off.
pub const reason_peer_lost = 67;
/// This endpoint is closed; nothing can be read or written any more.
pub const reason_pipe_closed = 80;
/// This endpoint was marked failed by its peer or its supervisor.
pub const reason_pipe_failed = 81;
/// The writer has ended its stream and cannot write any more.
pub const reason_pipe_ended = 82;
/// This process was forked from the one that attached this endpoint: attach another one.
pub const reason_pipe_forked = 83;
/// The deadline passed before the call could be done.
pub const reason_wait_timeout = 96;
/// The caller's signal aborted the call.
pub const reason_wait_aborted = 97;
/// This thread must not block; use the asynchronous call.
pub const reason_wait_forbidden = 98;
/// What arrives is not a Millrace stream.
pub const reason_stream_magic = 104;
/// The stream has another major version.
pub const reason_stream_version = 105;
/// The stream requires a feature that this endpoint does not know.
pub const reason_stream_feature = 106;
/// The window, or the largest frame, of a preface is out of range or misaligned.
pub const reason_stream_preface = 107;
/// A frame goes beyond the credit of its writer, or a credit beyond what was written.
pub const reason_stream_credit = 108;
/// A call, or an answer, is not made as the chapter says.
pub const reason_call_form = 112;
/// A call has the id of another one that is not answered yet; it was dropped.
pub const reason_call_duplicate = 113;
/// An answer belongs to no call; it was dropped.
pub const reason_call_answer = 114;
/// Too many calls are under way.
pub const reason_call_limit = 115;
/// Too many methods wait for one another on one thread.
pub const reason_call_depth = 116;
/// The callee serves no method of this name.
pub const reason_call_method = 117;
/// The arguments are not those that the method takes.
pub const reason_call_arguments = 118;
/// What the method gave cannot be written as a value.
pub const reason_call_result = 119;
/// The method failed; its error stands beside this code.
pub const reason_call_thrown = 120;
/// The call was given up by its caller.
pub const reason_call_cancelled = 121;
/// The peer has ended its stream, so that no answer can come.
pub const reason_call_ended = 122;
/// More items came than were allowed, or items where one result was asked for.
pub const reason_call_items = 123;
/// The inbox is full, and the answer stands after other messages.
pub const reason_call_inbox = 124;
/// The channel is no property, or its areas or ends are not those of one.
pub const reason_property_channel = 128;
/// A value is larger than a slot takes; nothing was changed.
pub const reason_property_size = 129;
/// A slot holds what no writer may store.
pub const reason_property_slot = 130;
/// The value was overwritten each time that it was read; nothing is wrong, and it can be read
/// again.
pub const reason_property_busy = 131;
/// A message has another number than the one that must come.
pub const reason_fanout_number = 136;

/// Values of the `ready` word.
pub const SegmentReady = enum(u32) {
    /// Nobody has formatted this memory.
    blank = 0,
    /// Somebody has claimed the formatting and is at it.
    formatting = 1,
    /// The header, the records and the descriptors are complete.
    ready = 2,
    _,
};

/// Low byte of an endpoint's `state` word. `closed` and `failed` are final.
pub const EndpointState = enum(u32) {
    /// Nobody has attached yet, or again.
    vacant = 0,
    /// A thread owns the endpoint.
    attached = 1,
    /// The owner, or its supervisor, has closed it.
    closed = 2,
    /// Somebody found it dead or faulty; the upper 24 bits say why.
    failed = 3,
    _,
};

/// What a channel is.
pub const ChannelKind = enum(u32) {
    /// A ring of frames.
    ring = 1,
    /// A latest-value register: the chapter property, which is optional.
    property = 2,
    /// One writer, and every reader gets every message: the chapter fanout, which is optional.
    fanout = 3,
    _,
};

/// What a header extension holds. A reader skips what it does not know.
pub const ExtensionKind = enum(u32) {
    /// The number of the message, a `u64` in `content`: how many its writer has written before it.
    number = 1,
    _,
};

/// Values of a mailbox's `status`.
pub const MailboxStatus = enum(i32) {
    /// In use; also what blank memory says.
    active = 0,
    /// Closed by either side, for ever.
    disposed = -1,
    _,
};

/// Values of a mailbox's `signal`, the word on which both sides sleep.
pub const MailboxSignal = enum(i32) {
    /// The byte area is the writer's.
    may_write = 0,
    /// The byte area holds a part for the reader.
    may_read = 1,
    /// Closed.
    disposed = -1,
    _,
};

/// What a frame is. 128 to 255 are extensions that a reader skips; every other value not listed is
/// corrupt.
pub const FrameKind = enum(u32) {
    /// Never written: blank memory is no frame.
    invalid = 0,
    /// A message, or a chunk of one.
    data = 1,
    /// The writer is done; nothing follows.
    end = 2,
    /// A request, or a chunk of one.
    call = 3,
    /// The result of a call, or a chunk of one.
    @"return" = 4,
    /// The failure of a call, or a chunk of one.
    throw = 5,
    /// Fills the byte area exactly to its end.
    pad = 6,
    _,
};

/// How a payload is written. 128 to 255 belong to the application.
pub const Codec = enum(u32) {
    /// Bytes, as they are.
    bytes = 0,
    /// Text in UTF-8.
    text = 1,
    /// One JSON text in UTF-8.
    json = 2,
    /// A JSON array of one or more messages, in order, in one frame.
    json_batch = 3,
    /// A list of values, each with a codec of its own: the chapter call.
    values = 4,
    /// One data item of RFC 8949 (CBOR).
    cbor = 5,
    _,
};

/// Frames that a stream has beside those of `frame_kind`, except pads.
pub const StreamKind = enum(u8) {
    /// All up to the position in `tag` was given back: the peer may write on.
    credit = 16,
    /// Who writes it has closed: it writes and reads nothing any more.
    close = 17,
    /// Who writes it has marked its peer failed; `tag` is the reason code.
    fail = 18,
    _,
};

/// What is wrong, as it stands in shared memory.
pub const Reason = enum(u32) {
    /// The memory is too small, too large or not aligned for what the header or the caller states.
    segment_size = 1,
    /// Nobody finished formatting the segment before the deadline.
    segment_unready = 2,
    /// This memory does not hold a Millrace segment.
    segment_magic = 3,
    /// The segment has another major version.
    segment_version = 4,
    /// The segment requires a feature that this endpoint does not know.
    segment_feature = 5,
    /// A count is out of range, or a table does not fit the segment.
    segment_table = 6,
    /// A channel descriptor is out of range, misaligned, or overlaps something.
    segment_channel = 7,
    /// The segment is ready, with another geometry than the caller asked for.
    segment_geometry = 8,
    /// The endpoint does not exist, or is not vacant.
    segment_endpoint = 9,
    /// An endpoint's state word holds a value that no endpoint may store.
    segment_state = 10,
    /// The file cannot be trusted: not a regular one, of another user, or open to others.
    segment_file = 11,
    /// There is no file at this path.
    segment_missing = 12,
    /// A cursor moved out of its bounds or lost its alignment.
    ring_cursor = 16,
    /// A frame's kind is invalid or unknown.
    frame_kind = 32,
    /// A frame's flags are unknown, or do not go with its kind, codec or size.
    frame_flags = 33,
    /// A reserved byte of a frame or a preamble is not 0.
    frame_reserved = 34,
    /// A frame reaches beyond what was published, beyond the byte area, or above half the capacity;
    /// or its size does not go with its kind.
    frame_size = 35,
    /// A pad does not reach exactly to the end of the byte area.
    frame_pad = 36,
    /// A frame does not continue the message in progress, or continues one that was never begun.
    frame_sequence = 37,
    /// The chunks of a message do not add up to the total in its preamble.
    frame_total = 38,
    /// The header extension of a frame is smaller than 16 bytes, no multiple of 16, or reaches
    /// beyond the payload.
    frame_extension = 39,
    /// The section is not aligned to 4, or too small to hold a part.
    mailbox_size = 40,
    /// A control word holds a value that no endpoint may store.
    mailbox_signal = 41,
    /// A part is empty, or larger than the byte area.
    mailbox_length = 42,
    /// A part is not the one that must come next.
    mailbox_part = 43,
    /// The writer gave up in the middle of a message; its chunks were dropped.
    message_cancelled = 48,
    /// The stream ended in the middle of a message; its chunks were dropped.
    message_truncated = 49,
    /// A message is larger than the reader's limit; it was dropped.
    message_size = 50,
    /// A message is of a kind that this reader does not offer; it was dropped.
    message_kind = 51,
    /// A message has a codec that this reader does not know, or that failed to decode it; it was
    /// dropped.
    message_codec = 52,
    /// A text or JSON message is not valid UTF-8; it was dropped.
    message_text = 53,
    /// A JSON message does not parse, or a batch is not a non-empty array; it was dropped.
    message_json = 54,
    /// A list of values is not made as the chapter says; it was dropped.
    message_values = 55,
    /// The reader was overrun: messages were overwritten before it read them; their number stands
    /// beside this code.
    message_lost = 56,
    /// The peer closed its endpoint without an `end`, or no longer reads.
    peer_closed = 64,
    /// The peer's endpoint is marked failed.
    peer_failed = 65,
    /// The peer's supervisor ended it, or saw it end.
    peer_terminated = 66,
    /// The peer's process died: its lock on the endpoint record is gone, or its stream broke off.
    peer_lost = 67,
    /// This endpoint is closed; nothing can be read or written any more.
    pipe_closed = 80,
    /// This endpoint was marked failed by its peer or its supervisor.
    pipe_failed = 81,
    /// The writer has ended its stream and cannot write any more.
    pipe_ended = 82,
    /// This process was forked from the one that attached this endpoint: attach another one.
    pipe_forked = 83,
    /// The deadline passed before the call could be done.
    wait_timeout = 96,
    /// The caller's signal aborted the call.
    wait_aborted = 97,
    /// This thread must not block; use the asynchronous call.
    wait_forbidden = 98,
    /// What arrives is not a Millrace stream.
    stream_magic = 104,
    /// The stream has another major version.
    stream_version = 105,
    /// The stream requires a feature that this endpoint does not know.
    stream_feature = 106,
    /// The window, or the largest frame, of a preface is out of range or misaligned.
    stream_preface = 107,
    /// A frame goes beyond the credit of its writer, or a credit beyond what was written.
    stream_credit = 108,
    /// A call, or an answer, is not made as the chapter says.
    call_form = 112,
    /// A call has the id of another one that is not answered yet; it was dropped.
    call_duplicate = 113,
    /// An answer belongs to no call; it was dropped.
    call_answer = 114,
    /// Too many calls are under way.
    call_limit = 115,
    /// Too many methods wait for one another on one thread.
    call_depth = 116,
    /// The callee serves no method of this name.
    call_method = 117,
    /// The arguments are not those that the method takes.
    call_arguments = 118,
    /// What the method gave cannot be written as a value.
    call_result = 119,
    /// The method failed; its error stands beside this code.
    call_thrown = 120,
    /// The call was given up by its caller.
    call_cancelled = 121,
    /// The peer has ended its stream, so that no answer can come.
    call_ended = 122,
    /// More items came than were allowed, or items where one result was asked for.
    call_items = 123,
    /// The inbox is full, and the answer stands after other messages.
    call_inbox = 124,
    /// The channel is no property, or its areas or ends are not those of one.
    property_channel = 128,
    /// A value is larger than a slot takes; nothing was changed.
    property_size = 129,
    /// A slot holds what no writer may store.
    property_slot = 130,
    /// The value was overwritten each time that it was read; nothing is wrong, and it can be read
    /// again.
    property_busy = 131,
    /// A message has another number than the one that must come.
    fanout_number = 136,
    _,

    /// The name of the reason, or `unknown` where this version knows none.
    pub fn name(reason: Reason) [:0]const u8 {
        return switch (reason) {
            .segment_size => "segment.size",
            .segment_unready => "segment.unready",
            .segment_magic => "segment.magic",
            .segment_version => "segment.version",
            .segment_feature => "segment.feature",
            .segment_table => "segment.table",
            .segment_channel => "segment.channel",
            .segment_geometry => "segment.geometry",
            .segment_endpoint => "segment.endpoint",
            .segment_state => "segment.state",
            .segment_file => "segment.file",
            .segment_missing => "segment.missing",
            .ring_cursor => "ring.cursor",
            .frame_kind => "frame.kind",
            .frame_flags => "frame.flags",
            .frame_reserved => "frame.reserved",
            .frame_size => "frame.size",
            .frame_pad => "frame.pad",
            .frame_sequence => "frame.sequence",
            .frame_total => "frame.total",
            .frame_extension => "frame.extension",
            .mailbox_size => "mailbox.size",
            .mailbox_signal => "mailbox.signal",
            .mailbox_length => "mailbox.length",
            .mailbox_part => "mailbox.part",
            .message_cancelled => "message.cancelled",
            .message_truncated => "message.truncated",
            .message_size => "message.size",
            .message_kind => "message.kind",
            .message_codec => "message.codec",
            .message_text => "message.text",
            .message_json => "message.json",
            .message_values => "message.values",
            .message_lost => "message.lost",
            .peer_closed => "peer.closed",
            .peer_failed => "peer.failed",
            .peer_terminated => "peer.terminated",
            .peer_lost => "peer.lost",
            .pipe_closed => "pipe.closed",
            .pipe_failed => "pipe.failed",
            .pipe_ended => "pipe.ended",
            .pipe_forked => "pipe.forked",
            .wait_timeout => "wait.timeout",
            .wait_aborted => "wait.aborted",
            .wait_forbidden => "wait.forbidden",
            .stream_magic => "stream.magic",
            .stream_version => "stream.version",
            .stream_feature => "stream.feature",
            .stream_preface => "stream.preface",
            .stream_credit => "stream.credit",
            .call_form => "call.form",
            .call_duplicate => "call.duplicate",
            .call_answer => "call.answer",
            .call_limit => "call.limit",
            .call_depth => "call.depth",
            .call_method => "call.method",
            .call_arguments => "call.arguments",
            .call_result => "call.result",
            .call_thrown => "call.thrown",
            .call_cancelled => "call.cancelled",
            .call_ended => "call.ended",
            .call_items => "call.items",
            .call_inbox => "call.inbox",
            .property_channel => "property.channel",
            .property_size => "property.size",
            .property_slot => "property.slot",
            .property_busy => "property.busy",
            .fanout_number => "fanout.number",
            _ => "unknown",
        };
    }
};
