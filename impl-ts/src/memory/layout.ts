// Generated from spec/layout.json by tools/generate.ts; do not edit.

/**
 * Every offset, size, flag, kind, state and reason code of the Millrace segment and stream. All
 * integers are little-endian. Offsets and sizes are in bytes.
 *
 * @module
 */

/**
 * The numbers of the layout. An `enum`, because bundlers put its members where their names stand,
 * in other modules too, which they do not do with constants.
 */
export const enum layout {
  // The version of the layout.

  /** Major version of the layout described here. */
  VERSION_MAJOR = 1,
  /** Minor version of the layout described here. */
  VERSION_MINOR = 0,

  // `segment_header`: The first bytes of a segment.

  /** Bytes of `segment_header`. */
  SEGMENT_HEADER_SIZE = 128,
  /** Alignment of `segment_header`, in bytes. */
  SEGMENT_HEADER_ALIGN = 128,
  /** u8[8]. The ASCII bytes `MILLRACE`. */
  SEGMENT_MAGIC_OFFSET = 0,
  /** Bytes of `magic`. */
  SEGMENT_MAGIC_SIZE = 8,
  /**
   * u32, atomic. Where the formatting stands: one of `segment_ready`. The only header word that
   * changes.
   */
  SEGMENT_READY_OFFSET = 8,
  /** Index of `ready` among the 32-bit words of `segment_header`. */
  SEGMENT_READY_WORD = 2,
  /** u16. Major version of the layout. A reader of another major version refuses the segment. */
  SEGMENT_VERSION_MAJOR_OFFSET = 12,
  /**
   * u16. Minor version of the layout. Informative: what a reader must know is in
   * `required_features`.
   */
  SEGMENT_VERSION_MINOR_OFFSET = 14,
  /** u32. Bytes of the whole segment, a multiple of 128, at most the memory it lies in. */
  SEGMENT_SIZE_OFFSET = 16,
  /** u32. Bits of features without which the segment cannot be used. None is defined yet. */
  SEGMENT_REQUIRED_FEATURES_OFFSET = 20,
  /** u32. Bits of features that an endpoint may ignore. None is defined yet. */
  SEGMENT_OPTIONAL_FEATURES_OFFSET = 24,
  /** u32. Endpoint records, from 1 to 256. */
  SEGMENT_ENDPOINT_COUNT_OFFSET = 28,
  /** u32. Channel descriptors, from 0 to 1,024. */
  SEGMENT_CHANNEL_COUNT_OFFSET = 32,
  /** u8[92]. Written as 0, ignored by readers. */
  SEGMENT_RESERVED_OFFSET = 36,

  // `endpoint_record`: One per endpoint, on a cache line of its own. The first stands at
  // `endpoint_table_offset`.

  /** Bytes of `endpoint_record`. */
  ENDPOINT_RECORD_SIZE = 128,
  /** Alignment of `endpoint_record`, in bytes. */
  ENDPOINT_RECORD_ALIGN = 128,
  /**
   * u32, atomic. Event count on which the endpoint sleeps. Whoever wakes it adds 1 and notifies.
   */
  ENDPOINT_BELL_OFFSET = 0,
  /** Index of `bell` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_BELL_WORD = 0,
  /**
   * u32, atomic. Low byte: one of `endpoint_state`. Upper 24 bits: of failed the reason code,
   * otherwise the low bits of `generation`.
   */
  ENDPOINT_STATE_OFFSET = 4,
  /** Index of `state` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_STATE_WORD = 1,
  /** u32, atomic. Bits of `wake_mechanism` that this endpoint can ring. */
  ENDPOINT_WAKES_OFFSET = 8,
  /** Index of `wakes` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_WAKES_WORD = 2,
  /** u32, atomic. Process or thread id, informative; 0 where there is none. */
  ENDPOINT_AGENT_OFFSET = 12,
  /** Index of `agent` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_AGENT_WORD = 3,
  /** u32, atomic. How often the endpoint was vacated. */
  ENDPOINT_GENERATION_OFFSET = 16,
  /** Index of `generation` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_GENERATION_WORD = 4,
  /**
   * u32, atomic. Bits of what this endpoint understands beyond this version. None is defined yet.
   */
  ENDPOINT_FEATURES_OFFSET = 20,
  /** Index of `features` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_FEATURES_WORD = 5,
  /**
   * u32[8], atomic. Which endpoints rang: bit `i` modulo 32 of word `i` / 32 is that of endpoint
   * `i`.
   */
  ENDPOINT_RUNG_OFFSET = 24,
  /** Index of `rung` among the 32-bit words of `endpoint_record`. */
  ENDPOINT_RUNG_WORD = 6,
  /** Bytes of `rung`. */
  ENDPOINT_RUNG_SIZE = 32,
  /** u8[72]. Written as 0, ignored by readers. */
  ENDPOINT_RESERVED_OFFSET = 56,

  // `channel_descriptor`: One per channel, after the endpoint records. Immutable once the segment
  // is ready.

  /** Bytes of `channel_descriptor`. */
  CHANNEL_DESCRIPTOR_SIZE = 64,
  /** Alignment of `channel_descriptor`, in bytes. */
  CHANNEL_DESCRIPTOR_ALIGN = 64,
  /** u32. One of `channel_kind`. Unknown kinds are range-checked and left alone. */
  CHANNEL_KIND_OFFSET = 0,
  /**
   * u32. Index of the endpoint that writes; `endpoint_none` where there is none, or where any may.
   */
  CHANNEL_WRITER_OFFSET = 4,
  /**
   * u32. Index of the endpoint that reads; `endpoint_none` where there is none, or where any may.
   */
  CHANNEL_READER_OFFSET = 8,
  /** u32. Offset of the control words from the start of the segment, a multiple of 128. */
  CHANNEL_CONTROL_OFFSET_OFFSET = 12,
  /** u32. Bytes of the control area. */
  CHANNEL_CONTROL_SIZE_OFFSET = 16,
  /** u32. Offset of the byte area from the start of the segment, a multiple of 128. */
  CHANNEL_DATA_OFFSET_OFFSET = 20,
  /** u32. Bytes of the byte area. For a ring, its capacity. */
  CHANNEL_DATA_SIZE_OFFSET = 24,
  /** u32. The application's own number for the channel. */
  CHANNEL_LABEL_OFFSET = 28,
  /**
   * u32. Ring: the position at which both cursors begin, a multiple of 16. Fanout: its position and
   * its mode. Otherwise 0.
   */
  CHANNEL_START_OFFSET = 32,
  /** u8[28]. Written as 0, ignored by readers. */
  CHANNEL_RESERVED_OFFSET = 36,

  // `ring_control`: The four control words of a ring, each on a 128-byte line of its own.

  /** Bytes of `ring_control`. */
  RING_CONTROL_SIZE = 512,
  /** Alignment of `ring_control`, in bytes. */
  RING_CONTROL_ALIGN = 128,
  /** u32, atomic. Position after the last published byte. Stored by the writer only. */
  RING_TAIL_OFFSET = 0,
  /** Index of `tail` among the 32-bit words of `ring_control`. */
  RING_TAIL_WORD = 0,
  /**
   * u32, atomic. Position of the first byte that the reader still holds. Stored by the reader only.
   */
  RING_HEAD_OFFSET = 128,
  /** Index of `head` among the 32-bit words of `ring_control`. */
  RING_HEAD_WORD = 32,
  /** u32, atomic. 0, or the `tail` at which the reader wants its bell rung, with bit 0 set. */
  RING_READER_WANTS_OFFSET = 256,
  /** Index of `reader_wants` among the 32-bit words of `ring_control`. */
  RING_READER_WANTS_WORD = 64,
  /** u32, atomic. 0, or the `head` at which the writer wants its bell rung, with bit 0 set. */
  RING_WRITER_WANTS_OFFSET = 384,
  /** Index of `writer_wants` among the 32-bit words of `ring_control`. */
  RING_WRITER_WANTS_WORD = 96,

  // `frame_header`: Stands before every payload.

  /** Bytes of `frame_header`. */
  FRAME_HEADER_SIZE = 16,
  /** Alignment of `frame_header`, in bytes. */
  FRAME_HEADER_ALIGN = 16,
  /** u32. Bytes of the payload that follows. */
  FRAME_SIZE_OFFSET = 0,
  /** u8. One of `frame_kind`. */
  FRAME_KIND_OFFSET = 4,
  /** u8. Bits of `frame_flag`; the rest are 0. */
  FRAME_FLAGS_OFFSET = 5,
  /** u8. How the payload of the message is written: one of `codec`. */
  FRAME_CODEC_OFFSET = 6,
  /** u8. 0. */
  FRAME_RESERVED_OFFSET = 7,
  /** u32. Application tag of a data message; id of a call. */
  FRAME_TAG_OFFSET = 8,
  /** u32. When the frame was finished: Unix epoch in microseconds, modulo 2^32. 0 means none. */
  FRAME_TIME_OFFSET = 12,

  // `header_extension`: What stands before the payload of an extended frame; more of it may follow.

  /** Bytes of `header_extension`. */
  HEADER_EXTENSION_SIZE = 16,
  /** Alignment of `header_extension`, in bytes. */
  HEADER_EXTENSION_ALIGN = 16,
  /** u32. Bytes of the whole extension, these included: a multiple of 16, at least 16. */
  EXTENSION_SIZE_OFFSET = 0,
  /**
   * u32. What it holds: one of `extension_kind`, or the application's own. A reader skips what it
   * does not know.
   */
  EXTENSION_KIND_OFFSET = 4,
  /** u8[8]. The first bytes of what it holds. */
  EXTENSION_CONTENT_OFFSET = 8,
  /** Bytes of `content`. */
  EXTENSION_CONTENT_SIZE = 8,

  // `message_preamble`: The first payload bytes of the first chunk of a multipart message.

  /** Bytes of `message_preamble`. */
  MESSAGE_PREAMBLE_SIZE = 16,
  /** Alignment of `message_preamble`, in bytes. */
  MESSAGE_PREAMBLE_ALIGN = 16,
  /**
   * u64. Bytes of the whole message, preamble not counted; 2^64 - 1 where they are not known yet.
   */
  PREAMBLE_TOTAL_OFFSET = 0,
  /** u8[8]. 0. */
  PREAMBLE_RESERVED_OFFSET = 8,

  // `values_header`: The first bytes of a list of values; an entry for each of them follows.

  /** Bytes of `values_header`. */
  VALUES_HEADER_SIZE = 8,
  /** Alignment of `values_header`, in bytes. */
  VALUES_HEADER_ALIGN = 8,
  /** u32. Values in the list, from 1 to `values_count_max`. */
  VALUES_COUNT_OFFSET = 0,
  /** u8[4]. 0. */
  VALUES_RESERVED_OFFSET = 4,

  // `value_entry`: What one value of a list is.

  /** Bytes of `value_entry`. */
  VALUE_ENTRY_SIZE = 8,
  /** Alignment of `value_entry`, in bytes. */
  VALUE_ENTRY_ALIGN = 8,
  /** u32. Bytes of the value. */
  VALUE_SIZE_OFFSET = 0,
  /** u8. How it is written: one of `codec`, but neither `json_batch` nor `values`. */
  VALUE_CODEC_OFFSET = 4,
  /** u8[3]. 0. */
  VALUE_RESERVED_OFFSET = 5,

  // `mailbox_header`: The eight words of a mailbox; its byte area follows them, up to the end of
  // the section.

  /** Bytes of `mailbox_header`. */
  MAILBOX_HEADER_SIZE = 32,
  /** Alignment of `mailbox_header`, in bytes. */
  MAILBOX_HEADER_ALIGN = 4,
  /** u32, atomic. One of `mailbox_status`. */
  MAILBOX_STATUS_OFFSET = 0,
  /** Index of `status` among the 32-bit words of `mailbox_header`. */
  MAILBOX_STATUS_WORD = 0,
  /** u32, atomic. Whose turn it is: one of `mailbox_signal`. */
  MAILBOX_SIGNAL_OFFSET = 4,
  /** Index of `signal` among the 32-bit words of `mailbox_header`. */
  MAILBOX_SIGNAL_WORD = 1,
  /** u32, atomic. Bytes of the part in the byte area. */
  MAILBOX_LENGTH_OFFSET = 8,
  /** Index of `length` among the 32-bit words of `mailbox_header`. */
  MAILBOX_LENGTH_WORD = 2,
  /** u32, atomic. Parts of the payload. */
  MAILBOX_PART_COUNT_OFFSET = 12,
  /** Index of `part_count` among the 32-bit words of `mailbox_header`. */
  MAILBOX_PART_COUNT_WORD = 3,
  /** u32, atomic. Which part this is, from 0. */
  MAILBOX_PART_INDEX_OFFSET = 16,
  /** Index of `part_index` among the 32-bit words of `mailbox_header`. */
  MAILBOX_PART_INDEX_WORD = 4,
  /** u8[12]. Not read. Written by the original when it closes. */
  MAILBOX_RESERVED_OFFSET = 20,

  // `property_control`: The control area of a property: what its writer stores, what its watchers
  // do, and its name.

  /** Bytes of `property_control`. */
  PROPERTY_CONTROL_SIZE = 384,
  /** Alignment of `property_control`, in bytes. */
  PROPERTY_CONTROL_ALIGN = 128,
  /**
   * u32, atomic. Number of the last complete value; 0 where none was ever set. Stored by the writer
   * only.
   */
  PROPERTY_VERSION_OFFSET = 0,
  /** Index of `version` among the 32-bit words of `property_control`. */
  PROPERTY_VERSION_WORD = 0,
  /**
   * u32[8], atomic. Who wants to be rung: bit `i` modulo 32 of word `i` / 32 is that of endpoint
   * `i`.
   */
  PROPERTY_WATCHERS_OFFSET = 128,
  /** Index of `watchers` among the 32-bit words of `property_control`. */
  PROPERTY_WATCHERS_WORD = 32,
  /** Bytes of `watchers`. */
  PROPERTY_WATCHERS_SIZE = 32,
  /** u32. Bytes of the name, at most 124; 0 where it has none. */
  PROPERTY_NAME_SIZE_OFFSET = 256,
  /** u8[124]. The name in UTF-8; bytes after it are 0. */
  PROPERTY_NAME_OFFSET = 260,
  /** Bytes of `name`. */
  PROPERTY_NAME_SIZE = 124,

  // `property_slot`: The first bytes of each slot of a property; the value follows them.

  /** Bytes of `property_slot`. */
  PROPERTY_SLOT_SIZE = 16,
  /** Alignment of `property_slot`, in bytes. */
  PROPERTY_SLOT_ALIGN = 16,
  /** u32, atomic. Number of the value that was begun here last. */
  SLOT_SEQUENCE_OFFSET = 0,
  /** Index of `sequence` among the 32-bit words of `property_slot`. */
  SLOT_SEQUENCE_WORD = 0,
  /** u32. Bytes of the value. */
  SLOT_SIZE_OFFSET = 4,
  /** u8. 1 where there is a value, 0 where there is none. */
  SLOT_PRESENT_OFFSET = 8,
  /** u8. How the value is written: one of `codec`; 0 where there is none. */
  SLOT_CODEC_OFFSET = 9,
  /** u8[6]. 0. */
  SLOT_RESERVED_OFFSET = 10,

  // `fanout_control`: The first words of the control area of a fanout; the records of its readers
  // follow.

  /** Bytes of `fanout_control`. */
  FANOUT_CONTROL_SIZE = 256,
  /** Alignment of `fanout_control`, in bytes. */
  FANOUT_CONTROL_ALIGN = 128,
  /** u32, atomic. Position after the last published byte. Stored by the writer only. */
  FANOUT_TAIL_OFFSET = 0,
  /** Index of `tail` among the 32-bit words of `fanout_control`. */
  FANOUT_TAIL_WORD = 0,
  /**
   * u32, atomic. Mode `lose`: position of the oldest frame that is still there. Stored by the
   * writer only.
   */
  FANOUT_FLOOR_OFFSET = 4,
  /** Index of `floor` among the 32-bit words of `fanout_control`. */
  FANOUT_FLOOR_WORD = 1,
  /**
   * u32, atomic. Mode `lose`: how often `floor` has passed a multiple of 2^31. Stored by the writer
   * only.
   */
  FANOUT_ERA_OFFSET = 8,
  /** Index of `era` among the 32-bit words of `fanout_control`. */
  FANOUT_ERA_WORD = 2,
  /**
   * u32, atomic. 0, or, when the writer has ended, the position after its `end`, with bit 0 set.
   * Stored by the writer only.
   */
  FANOUT_ENDED_OFFSET = 12,
  /** Index of `ended` among the 32-bit words of `fanout_control`. */
  FANOUT_ENDED_WORD = 3,
  /**
   * u32[8], atomic. Which readers want to be rung: bit `i` modulo 32 of word `i` / 32 is that of
   * record `i`.
   */
  FANOUT_READERS_WANT_OFFSET = 128,
  /** Index of `readers_want` among the 32-bit words of `fanout_control`. */
  FANOUT_READERS_WANT_WORD = 32,
  /** Bytes of `readers_want`. */
  FANOUT_READERS_WANT_SIZE = 32,

  // `fanout_reader`: The record of one reader of a fanout.

  /** Bytes of `fanout_reader`. */
  FANOUT_READER_SIZE = 128,
  /** Alignment of `fanout_reader`, in bytes. */
  FANOUT_READER_ALIGN = 128,
  /**
   * u32, atomic. Mode `hold`: 0, `fanout_joining`, or the position of the first byte that the
   * reader holds, with bit 0 set. Stored by the reader only.
   */
  FANOUT_READER_HEAD_OFFSET = 0,
  /** Index of `head` among the 32-bit words of `fanout_reader`. */
  FANOUT_READER_HEAD_WORD = 0,
  /**
   * u32, atomic. Mode `hold`: 0, or the position of this reader at which the writer wants its bell
   * rung, with bit 0 set.
   */
  FANOUT_READER_WRITER_WANTS_OFFSET = 64,
  /** Index of `writer_wants` among the 32-bit words of `fanout_reader`. */
  FANOUT_READER_WRITER_WANTS_WORD = 16,

  // `stream_preface`: The first bytes of each direction of a stream.

  /** Bytes of `stream_preface`. */
  STREAM_PREFACE_SIZE = 32,
  /** Alignment of `stream_preface`, in bytes. */
  STREAM_PREFACE_ALIGN = 16,
  /** u8[8]. The bytes `4d 49 4c 4c ff 0d 0a 0a`: `MILL`, a byte that is no text, and line ends. */
  STREAM_MAGIC_OFFSET = 0,
  /** Bytes of `magic`. */
  STREAM_MAGIC_SIZE = 8,
  /** u16. Major version of the layout, 1. A reader of another major version refuses the stream. */
  STREAM_VERSION_MAJOR_OFFSET = 8,
  /** u16. Minor version of the layout, 0. Informative. */
  STREAM_VERSION_MINOR_OFFSET = 10,
  /** u32. Largest extent of a frame that this side accepts: a multiple of 16, from 128 on. */
  STREAM_LARGEST_OFFSET = 12,
  /**
   * u32. Bytes of frames that the peer may send beyond what was given back: a multiple of 16, from
   * `largest` on.
   */
  STREAM_WINDOW_OFFSET = 16,
  /** u32. Bits of features without which the stream cannot be used. None is defined yet. */
  STREAM_REQUIRED_FEATURES_OFFSET = 20,
  /** u32. Bits of features that the peer may ignore. None is defined yet. */
  STREAM_OPTIONAL_FEATURES_OFFSET = 24,
  /** u8[4]. Written as 0, ignored by readers. */
  STREAM_RESERVED_OFFSET = 28,

  // `segment_ready`: Values of the `ready` word.

  /** Nobody has formatted this memory. */
  SEGMENT_READY_BLANK = 0,
  /** Somebody has claimed the formatting and is at it. */
  SEGMENT_READY_FORMATTING = 1,
  /** The header, the records and the descriptors are complete. */
  SEGMENT_READY_READY = 2,

  // `endpoint_state`: Low byte of an endpoint's `state` word. `closed` and `failed` are final.

  /** Nobody has attached yet, or again. */
  ENDPOINT_STATE_VACANT = 0,
  /** A thread owns the endpoint. */
  ENDPOINT_STATE_ATTACHED = 1,
  /** The owner, or its supervisor, has closed it. */
  ENDPOINT_STATE_CLOSED = 2,
  /** Somebody found it dead or faulty; the upper 24 bits say why. */
  ENDPOINT_STATE_FAILED = 3,

  // `channel_kind`: What a channel is.

  /** A ring of frames. */
  CHANNEL_KIND_RING = 1,
  /** A latest-value register: the chapter property, which is optional. */
  CHANNEL_KIND_PROPERTY = 2,
  /** One writer, and every reader gets every message: the chapter fanout, which is optional. */
  CHANNEL_KIND_FANOUT = 3,

  // `extension_kind`: What a header extension holds. A reader skips what it does not know.

  /** The number of the message, a `u64` in `content`: how many its writer has written before it. */
  EXTENSION_KIND_NUMBER = 1,

  // `mailbox_status`: Values of a mailbox's `status`.

  /** In use; also what blank memory says. */
  MAILBOX_STATUS_ACTIVE = 0,
  /** Closed by either side, for ever. */
  MAILBOX_STATUS_DISPOSED = -1,

  // `mailbox_signal`: Values of a mailbox's `signal`, the word on which both sides sleep.

  /** The byte area is the writer's. */
  MAILBOX_SIGNAL_MAY_WRITE = 0,
  /** The byte area holds a part for the reader. */
  MAILBOX_SIGNAL_MAY_READ = 1,
  /** Closed. */
  MAILBOX_SIGNAL_DISPOSED = -1,

  // `frame_kind`: What a frame is. 128 to 255 are extensions that a reader skips; every other value
  // not listed is corrupt.

  /** Never written: blank memory is no frame. */
  FRAME_KIND_INVALID = 0,
  /** A message, or a chunk of one. */
  FRAME_KIND_DATA = 1,
  /** The writer is done; nothing follows. */
  FRAME_KIND_END = 2,
  /** A request, or a chunk of one. */
  FRAME_KIND_CALL = 3,
  /** The result of a call, or a chunk of one. */
  FRAME_KIND_RETURN = 4,
  /** The failure of a call, or a chunk of one. */
  FRAME_KIND_THROW = 5,
  /** Fills the byte area exactly to its end. */
  FRAME_KIND_PAD = 6,

  // `codec`: How a payload is written. 128 to 255 belong to the application.

  /** Bytes, as they are. */
  CODEC_BYTES = 0,
  /** Text in UTF-8. */
  CODEC_TEXT = 1,
  /** One JSON text in UTF-8. */
  CODEC_JSON = 2,
  /** A JSON array of one or more messages, in order, in one frame. */
  CODEC_JSON_BATCH = 3,
  /** A list of values, each with a codec of its own: the chapter call. */
  CODEC_VALUES = 4,
  /** One data item of RFC 8949 (CBOR). */
  CODEC_CBOR = 5,

  // `stream_kind`: Frames that a stream has beside those of `frame_kind`, except pads.

  /** All up to the position in `tag` was given back: the peer may write on. */
  STREAM_KIND_CREDIT = 16,
  /** Who writes it has closed: it writes and reads nothing any more. */
  STREAM_KIND_CLOSE = 17,
  /** Who writes it has marked its peer failed; `tag` is the reason code. */
  STREAM_KIND_FAIL = 18,

  // `frame_flag`: Bits of a frame's `flags`.

  /** The first frame of a message. */
  FRAME_FLAG_FIRST = 1,
  /** The last frame of a message. */
  FRAME_FLAG_LAST = 2,
  /** With `last`: the writer gave up; drop the chunks of this message. */
  FRAME_FLAG_CANCEL = 4,
  /** The payload begins with a `header_extension`. */
  FRAME_FLAG_EXTENDED = 8,
  /** Every bit of `frame_flag`. */
  FRAME_FLAG_ALL = 15,

  // `call_mark`: Bits of the tag of a call, a return or a throw; the others are the id.

  /** On a call: the caller has given the call of this id up. */
  CALL_MARK_CANCEL = 1_073_741_824,
  /** On a return: an item, and not the last answer. On a call: room for `call_grant` items more. */
  CALL_MARK_MORE = 2_147_483_648,
  /** Every bit of `call_mark`. */
  CALL_MARK_ALL = 3_221_225_472,

  // `wake_mechanism`: Bits of `wakes`: whose sleepers an endpoint can wake.

  /** Agents of one JavaScript agent cluster, and the WebAssembly in it. */
  WAKE_MECHANISM_AGENT = 1,
  /** Threads that sleep in the Linux futex, without the PRIVATE flag, on one mapping. */
  WAKE_MECHANISM_FUTEX = 2,
  /** Guests of one wasmtime engine. */
  WAKE_MECHANISM_WASMTIME = 4,
  /** Every bit of `wake_mechanism`. */
  WAKE_MECHANISM_ALL = 7,

  // Limits.

  /** Alignment of a segment, of its size, and of every area in it. */
  SEGMENT_ALIGN = 128,
  /** Smallest segment: a header and one endpoint record. */
  SEGMENT_SIZE_MIN = 256,
  /** Largest segment. */
  SEGMENT_SIZE_MAX = 4_294_967_168,
  /** Where the endpoint records begin. */
  ENDPOINT_TABLE_OFFSET = 128,
  /** The end of a channel that names no endpoint. */
  ENDPOINT_NONE = 4_294_967_295,
  /** Most endpoints of a segment. */
  ENDPOINT_COUNT_MAX = 256,
  /** Most channels of a segment. */
  CHANNEL_COUNT_MAX = 1024,
  /** Most attempts at one change of a `state`. */
  STATE_TRIES = 3,
  /** The bits of `state` that hold an `endpoint_state`. */
  STATE_MASK = 255,
  /** How far the reason code, or the generation, stands above the state in `state`. */
  REASON_SHIFT = 8,
  /** Longest park while a peer is vacant or could be found dead. */
  WAIT_SLICE_MS = 100,
  /** Longest park while every peer is attached and none could be found dead. */
  WAIT_SLICE_ATTACHED_MS = 1000,
  /** Longest park in which a writer may ask for more space than it needs. */
  WAIT_MORE_MS = 10,
  /** Longest pause of an endpoint that polls. */
  WAIT_POLL_MS = 5,
  /** Most looks of one call on a thread that must not block. */
  WAIT_NO_BLOCK_LOOKS = 128,
  /** Default time to spin before parking, with two or more processors. */
  WAIT_SPIN_US = 50,
  /** Bit 0 of an armed `wants` word. */
  WANTS_ARMED = 1,
  /** Smallest ring. */
  RING_CAPACITY_MIN = 256,
  /** Largest ring. */
  RING_CAPACITY_MAX = 1_073_741_824,
  /** Bytes that only an `end` frame may take. */
  RING_RESERVE = 16,
  /** Alignment of every frame and of every cursor. */
  FRAME_ALIGN = 16,
  /** First kind of a `header_extension` that belongs to the application. */
  EXTENSION_APPLICATION_MIN = 2_147_483_648,
  /** First frame kind that a reader skips without knowing it. */
  FRAME_KIND_EXTENSION_MIN = 128,
  /** Smallest section: eight words and one byte. */
  MAILBOX_SIZE_MIN = 33,
  /** Most parts of a payload. */
  MAILBOX_PART_COUNT_MAX = 2_147_483_647,
  /** First codec number that belongs to the application. */
  CODEC_APPLICATION_MIN = 128,
  /** Most arrays, maps and tags around an item of CBOR. */
  CBOR_DEPTH_MAX = 1024,
  /** Alignment of every value of a list, from the beginning of the list. */
  VALUES_ALIGN = 8,
  /** Most values of a list: the name of a method and 255 arguments. */
  VALUES_COUNT_MAX = 256,
  /** Last id of a call, and the mask of the id in a tag; 0 is that of a notice. */
  CALL_ID_MAX = 1_073_741_823,
  /** Most calls of one side under way that were not given up, and most that a side serves. */
  CALL_UNDER_WAY_MAX = 1024,
  /** Most calls of one side under way, given up or not. */
  CALL_UNANSWERED_MAX = 2048,
  /** Most methods that stand on the stack of one thread, one called while the other waits. */
  CALL_DEPTH_MAX = 128,
  /** Most items of a call before the first `more`. */
  CALL_WINDOW = 16,
  /** Items that each `more` allows beyond that. */
  CALL_GRANT = 8,
  /** Largest name of a method or of an error. */
  CALL_NAME_SIZE_MAX = 255,
  /** Largest text of an error. */
  CALL_TEXT_SIZE_MAX = 4096,
  /** Slots of a property: a fourth of the byte area each. */
  PROPERTY_SLOT_COUNT = 4,
  /** Smallest byte area of a property; a larger one is a multiple of it. */
  PROPERTY_DATA_UNIT = 512,
  /** Largest name of a property. */
  PROPERTY_NAME_SIZE_MAX = 124,
  /** Tries before a reader may give up. */
  PROPERTY_TRIES_MIN = 16,
  /** Tries after which a reader gives up. */
  PROPERTY_TRIES_MAX = 1024,
  /** Most readers of a fanout. */
  FANOUT_READERS_MAX = 255,
  /** Bit 0 of `start`: the mode is `lose`. */
  FANOUT_LOSE = 1,
  /** Bit 0 of `head`: the reader has joined. */
  FANOUT_JOINED = 1,
  /** The `head` of a reader that is about to join. */
  FANOUT_JOINING = 2,
  /** Bytes from one `era` to the next. */
  FANOUT_ERA_SIZE = 2_147_483_648,
  /** Most looks between two looks at the deadline that a writer may spoil. */
  FANOUT_TRIES = 8,
  /** Smallest `largest`. */
  STREAM_LARGEST_MIN = 128,
  /** Largest `window`, and so the largest `largest`. */
  STREAM_WINDOW_MAX = 1_073_741_824,
  /**
   * Position at which both directions begin: 256 bytes before 2^32, so that each stream shows what
   * happens there.
   */
  STREAM_START = 4_294_967_040,
  /** How long an endpoint that has closed goes on taking in what arrives. */
  STREAM_LINGER_MS = 2000,

  // Reason codes.

  /** The memory is too small, too large or not aligned for what the header or the caller states. */
  REASON_SEGMENT_SIZE = 1,
  /** Nobody finished formatting the segment before the deadline. */
  REASON_SEGMENT_UNREADY = 2,
  /** This memory does not hold a Millrace segment. */
  REASON_SEGMENT_MAGIC = 3,
  /** The segment has another major version. */
  REASON_SEGMENT_VERSION = 4,
  /** The segment requires a feature that this endpoint does not know. */
  REASON_SEGMENT_FEATURE = 5,
  /** A count is out of range, or a table does not fit the segment. */
  REASON_SEGMENT_TABLE = 6,
  /** A channel descriptor is out of range, misaligned, or overlaps something. */
  REASON_SEGMENT_CHANNEL = 7,
  /** The segment is ready, with another geometry than the caller asked for. */
  REASON_SEGMENT_GEOMETRY = 8,
  /** The endpoint does not exist, or is not vacant. */
  REASON_SEGMENT_ENDPOINT = 9,
  /** An endpoint's state word holds a value that no endpoint may store. */
  REASON_SEGMENT_STATE = 10,
  /** The file cannot be trusted: not a regular one, of another user, or open to others. */
  REASON_SEGMENT_FILE = 11,
  /** There is no file at this path. */
  REASON_SEGMENT_MISSING = 12,
  /** A cursor moved out of its bounds or lost its alignment. */
  REASON_RING_CURSOR = 16,
  /** A frame's kind is invalid or unknown. */
  REASON_FRAME_KIND = 32,
  /** A frame's flags are unknown, or do not go with its kind, codec or size. */
  REASON_FRAME_FLAGS = 33,
  /** A reserved byte of a frame or a preamble is not 0. */
  REASON_FRAME_RESERVED = 34,
  /**
   * A frame reaches beyond what was published, beyond the byte area, or above half the capacity; or
   * its size does not go with its kind.
   */
  REASON_FRAME_SIZE = 35,
  /** A pad does not reach exactly to the end of the byte area. */
  REASON_FRAME_PAD = 36,
  /** A frame does not continue the message in progress, or continues one that was never begun. */
  REASON_FRAME_SEQUENCE = 37,
  /** The chunks of a message do not add up to the total in its preamble. */
  REASON_FRAME_TOTAL = 38,
  /**
   * The header extension of a frame is smaller than 16 bytes, no multiple of 16, or reaches beyond
   * the payload.
   */
  REASON_FRAME_EXTENSION = 39,
  /** The section is not aligned to 4, or too small to hold a part. */
  REASON_MAILBOX_SIZE = 40,
  /** A control word holds a value that no endpoint may store. */
  REASON_MAILBOX_SIGNAL = 41,
  /** A part is empty, or larger than the byte area. */
  REASON_MAILBOX_LENGTH = 42,
  /** A part is not the one that must come next. */
  REASON_MAILBOX_PART = 43,
  /** The writer gave up in the middle of a message; its chunks were dropped. */
  REASON_MESSAGE_CANCELLED = 48,
  /** The stream ended in the middle of a message; its chunks were dropped. */
  REASON_MESSAGE_TRUNCATED = 49,
  /** A message is larger than the reader's limit; it was dropped. */
  REASON_MESSAGE_SIZE = 50,
  /** A message is of a kind that this reader does not offer; it was dropped. */
  REASON_MESSAGE_KIND = 51,
  /**
   * A message has a codec that this reader does not know, or that failed to decode it; it was
   * dropped.
   */
  REASON_MESSAGE_CODEC = 52,
  /** A text or JSON message is not valid UTF-8; it was dropped. */
  REASON_MESSAGE_TEXT = 53,
  /** A JSON message does not parse, or a batch is not a non-empty array; it was dropped. */
  REASON_MESSAGE_JSON = 54,
  /** A list of values is not made as the chapter says; it was dropped. */
  REASON_MESSAGE_VALUES = 55,
  /**
   * The reader was overrun: messages were overwritten before it read them; their number stands
   * beside this code.
   */
  REASON_MESSAGE_LOST = 56,
  /** The peer closed its endpoint without an `end`, or no longer reads. */
  REASON_PEER_CLOSED = 64,
  /** The peer's endpoint is marked failed. */
  REASON_PEER_FAILED = 65,
  /** The peer's supervisor ended it, or saw it end. */
  REASON_PEER_TERMINATED = 66,
  /** The peer's process died: its lock on the endpoint record is gone, or its stream broke off. */
  REASON_PEER_LOST = 67,
  /** This endpoint is closed; nothing can be read or written any more. */
  REASON_PIPE_CLOSED = 80,
  /** This endpoint was marked failed by its peer or its supervisor. */
  REASON_PIPE_FAILED = 81,
  /** The writer has ended its stream and cannot write any more. */
  REASON_PIPE_ENDED = 82,
  /** This process was forked from the one that attached this endpoint: attach another one. */
  REASON_PIPE_FORKED = 83,
  /** The deadline passed before the call could be done. */
  REASON_WAIT_TIMEOUT = 96,
  /** The caller's signal aborted the call. */
  REASON_WAIT_ABORTED = 97,
  /** This thread must not block; use the asynchronous call. */
  REASON_WAIT_FORBIDDEN = 98,
  /** What arrives is not a Millrace stream. */
  REASON_STREAM_MAGIC = 104,
  /** The stream has another major version. */
  REASON_STREAM_VERSION = 105,
  /** The stream requires a feature that this endpoint does not know. */
  REASON_STREAM_FEATURE = 106,
  /** The window, or the largest frame, of a preface is out of range or misaligned. */
  REASON_STREAM_PREFACE = 107,
  /** A frame goes beyond the credit of its writer, or a credit beyond what was written. */
  REASON_STREAM_CREDIT = 108,
  /** A call, or an answer, is not made as the chapter says. */
  REASON_CALL_FORM = 112,
  /** A call has the id of another one that is not answered yet; it was dropped. */
  REASON_CALL_DUPLICATE = 113,
  /** An answer belongs to no call; it was dropped. */
  REASON_CALL_ANSWER = 114,
  /** Too many calls are under way. */
  REASON_CALL_LIMIT = 115,
  /** Too many methods wait for one another on one thread. */
  REASON_CALL_DEPTH = 116,
  /** The callee serves no method of this name. */
  REASON_CALL_METHOD = 117,
  /** The arguments are not those that the method takes. */
  REASON_CALL_ARGUMENTS = 118,
  /** What the method gave cannot be written as a value. */
  REASON_CALL_RESULT = 119,
  /** The method failed; its error stands beside this code. */
  REASON_CALL_THROWN = 120,
  /** The call was given up by its caller. */
  REASON_CALL_CANCELLED = 121,
  /** The peer has ended its stream, so that no answer can come. */
  REASON_CALL_ENDED = 122,
  /** More items came than were allowed, or items where one result was asked for. */
  REASON_CALL_ITEMS = 123,
  /** The inbox is full, and the answer stands after other messages. */
  REASON_CALL_INBOX = 124,
  /** The channel is no property, or its areas or ends are not those of one. */
  REASON_PROPERTY_CHANNEL = 128,
  /** A value is larger than a slot takes; nothing was changed. */
  REASON_PROPERTY_SIZE = 129,
  /** A slot holds what no writer may store. */
  REASON_PROPERTY_SLOT = 130,
  /**
   * The value was overwritten each time that it was read; nothing is wrong, and it can be read
   * again.
   */
  REASON_PROPERTY_BUSY = 131,
  /** A message has another number than the one that must come. */
  REASON_FANOUT_NUMBER = 136,
}

/** The name of a reason code: what is wrong, in one word. */
export type ReasonCode =
  | "segment.size"
  | "segment.unready"
  | "segment.magic"
  | "segment.version"
  | "segment.feature"
  | "segment.table"
  | "segment.channel"
  | "segment.geometry"
  | "segment.endpoint"
  | "segment.state"
  | "segment.file"
  | "segment.missing"
  | "ring.cursor"
  | "frame.kind"
  | "frame.flags"
  | "frame.reserved"
  | "frame.size"
  | "frame.pad"
  | "frame.sequence"
  | "frame.total"
  | "frame.extension"
  | "mailbox.size"
  | "mailbox.signal"
  | "mailbox.length"
  | "mailbox.part"
  | "message.cancelled"
  | "message.truncated"
  | "message.size"
  | "message.kind"
  | "message.codec"
  | "message.text"
  | "message.json"
  | "message.values"
  | "message.lost"
  | "peer.closed"
  | "peer.failed"
  | "peer.terminated"
  | "peer.lost"
  | "pipe.closed"
  | "pipe.failed"
  | "pipe.ended"
  | "pipe.forked"
  | "wait.timeout"
  | "wait.aborted"
  | "wait.forbidden"
  | "stream.magic"
  | "stream.version"
  | "stream.feature"
  | "stream.preface"
  | "stream.credit"
  | "call.form"
  | "call.duplicate"
  | "call.answer"
  | "call.limit"
  | "call.depth"
  | "call.method"
  | "call.arguments"
  | "call.result"
  | "call.thrown"
  | "call.cancelled"
  | "call.ended"
  | "call.items"
  | "call.inbox"
  | "property.channel"
  | "property.size"
  | "property.slot"
  | "property.busy"
  | "fanout.number";

/**
 * The reason codes: the number of the first, what stands before the point, and what stands after
 * the point of that one and of all that follow it without a gap.
 */
const REASONS: string =
  "1 segment size unready magic version feature table channel geometry endpoint state file " +
  "missing 16 ring cursor 32 frame kind flags reserved size pad sequence total extension 40 " +
  "mailbox size signal length part 48 message cancelled truncated size kind codec text json " +
  "values lost 64 peer closed failed terminated lost 80 pipe closed failed ended forked 96 wait " +
  "timeout aborted forbidden 104 stream magic version feature preface credit 112 call form " +
  "duplicate answer limit depth method arguments result thrown cancelled ended items inbox 128 " +
  "property channel size slot busy 136 fanout number";

/** Every reason code, at the index by which it stands in shared memory. */
function reasons(): ReasonCode[] {
  const names: string[] = [];
  let group = "";
  for (const word of REASONS.split(" ")) {
    if (+word) {
      names.length = +word;
      group = "";
    } else if (group) names.push(`${group}.${word}`);
    else group = word;
  }
  return names as ReasonCode[];
}

/** Returns the name of a reason code, or `undefined` where this version knows none. */
export function reasonName(value: number): ReasonCode | undefined {
  return reasons()[value];
}

/** Returns the number of a reason code, or `undefined` where the name is none. */
export function reasonValue(name: string): number | undefined {
  const value = (reasons() as string[]).indexOf(name);
  return value < 0 ? undefined : value;
}
