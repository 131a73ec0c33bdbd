/*
 * Millrace: messages between threads, runtimes and processes through shared memory.
 *
 * A *segment* is shared bytes, in memory of yours or in a file. It has *endpoints*, one for each
 * thread that takes part, and *channels*, rings of bytes that lead from one endpoint to another. A
 * *port* is an endpoint in use: it writes whole messages to one channel and reads them from
 * another. The specification is in spec/; names in brackets, such as [pipe.close], are its clauses.
 *
 *   millrace_channel both[2] = {{0, 1, 65536, 0, 0, 0, NULL}, {1, 0, 65536, 0, 0, 0, NULL}};
 *   millrace_segment *segment = malloc(millrace_segment_size());
 *   millrace_port *port = malloc(millrace_port_size());
 *   millrace_segment_create_file(segment, "/dev/shm/my-service", 2, both, 2, 0, 1000);
 *   millrace_port_attach(port, segment, 0);
 *   millrace_port_write(port, "hello", 5, MILLRACE_CODEC_TEXT, 0, 1000);
 *
 * examples/echo.c is a complete program, and examples/echo.py is the same in Python. Other headers
 * have more: millrace_stream.h ports over sockets and pipes, millrace_call.h calls,
 * millrace_property.h the latest values of things, millrace_fanout.h messages to many readers,
 * millrace_meter.h how busy a port is and how long messages wait, millrace_digest.h digests.
 *
 * Status. Calls return an int32_t:
 *    1  MILLRACE_DONE: done, or a message was read;
 *    0  MILLRACE_NOTHING: nothing yet, or the time was over;
 *    2  MILLRACE_END: the peer has ended its stream, and everything before the end was read;
 *   -1 to -255: the negated reason code of spec/layout.json, such as
 *      -MILLRACE_REASON_PEER_CLOSED; each call says which ones it returns;
 *   -256  MILLRACE_INVALID: the caller's mistake, and nothing was done: a pointer that is NULL or
 *      misaligned where an object or storage must be, or leads to something that is not such an
 *      object; a number out of range; or a call that does not fit what was done before;
 *   -257 and below: an error of the operating system.
 * Everything that can go wrong because of a peer is reported as a status: the bytes that the peer
 * wrote are checked before they are used. No library can check that the process has memory at an
 * address.
 *
 * Objects (millrace_segment, millrace_port, millrace_mailbox and so on). The library allocates
 * nothing, except that calls take memory from a function of yours. An object lies in your storage.
 * The storage needs the size that its ..._size() returns and the alignment that malloc gives (at
 * least 8 bytes), and may hold any bytes. A call that creates, opens or attaches makes it an
 * object; if that call fails, it is still plain storage. ..._leave() makes it plain storage again;
 * before that, it must not be freed or moved. Leave ports before the segment through which they
 * have attached.
 *
 * Times. timeout_ms is how long a call may wait, in milliseconds: 0 only tries, -1 waits for ever.
 * Before a call sleeps, it spins for up to 50 us: it looks again and again [wait.spin]; see
 * millrace_port_set_spin.
 *
 * Threads. An object belongs to one thread at a time, except for the calls that say "any thread".
 * Nothing may use it while or after it is left.
 *
 * Processes. Objects belong to the process that made them. In a child of fork(), calls that read,
 * write, wait or attach to a file of the parent return -MILLRACE_REASON_PIPE_FORKED, and closing or
 * leaving an object has no effect on the parent. The child attaches endpoints of its own, and opens
 * files anew [segment.forked]. Mailboxes are the exception: they do not notice a fork. The locks of
 * a file last until the child is gone too, or has called exec.
 */
#ifndef MILLRACE_H
#define MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct millrace_segment millrace_segment;
typedef struct millrace_port millrace_port;
typedef struct millrace_mailbox millrace_mailbox;

/* Statuses that are not reason codes. */
enum {
  MILLRACE_DONE = 1,
  MILLRACE_NOTHING = 0,
  MILLRACE_END = 2,
  MILLRACE_INVALID = -256,
  /* This system does not support segments in files: it is not 64-bit Linux. Or it does not support
     streams: it is neither Linux nor one of Apple's systems. */
  MILLRACE_UNSUPPORTED = -257,
  /* The file cannot be created, because a directory of its path is missing. */
  MILLRACE_NOT_FOUND = -258,
  MILLRACE_ACCESS_DENIED = -259,
  MILLRACE_NAME_TOO_LONG = -260,
  /* The file system, or the user's share of it, is full. */
  MILLRACE_NO_SPACE = -261,
  /* There are too many open files, or there is no memory. */
  MILLRACE_NO_RESOURCES = -262,
  /* The system refused for an unforeseen reason. */
  MILLRACE_SYSTEM = -263
};

/* Reason codes, as they stand in shared memory. A status is a negated reason code. */
/* generated: reasons all */
enum {
  /* The memory is too small, too large or not aligned for what the header or the caller
     states. */
  MILLRACE_REASON_SEGMENT_SIZE = 1,
  /* Nobody finished formatting the segment before the deadline. */
  MILLRACE_REASON_SEGMENT_UNREADY = 2,
  /* This memory does not hold a Millrace segment. */
  MILLRACE_REASON_SEGMENT_MAGIC = 3,
  /* The segment has another major version. */
  MILLRACE_REASON_SEGMENT_VERSION = 4,
  /* The segment requires a feature that this endpoint does not know. */
  MILLRACE_REASON_SEGMENT_FEATURE = 5,
  /* A count is out of range, or a table does not fit the segment. */
  MILLRACE_REASON_SEGMENT_TABLE = 6,
  /* A channel descriptor is out of range, misaligned, or overlaps something. */
  MILLRACE_REASON_SEGMENT_CHANNEL = 7,
  /* The segment is ready, with another geometry than the caller asked for. */
  MILLRACE_REASON_SEGMENT_GEOMETRY = 8,
  /* The endpoint does not exist, or is not vacant. */
  MILLRACE_REASON_SEGMENT_ENDPOINT = 9,
  /* An endpoint's state word holds a value that no endpoint may store. */
  MILLRACE_REASON_SEGMENT_STATE = 10,
  /* The file cannot be trusted: not a regular one, of another user, or open to others. */
  MILLRACE_REASON_SEGMENT_FILE = 11,
  /* There is no file at this path. */
  MILLRACE_REASON_SEGMENT_MISSING = 12,
  /* A cursor moved out of its bounds or lost its alignment. */
  MILLRACE_REASON_RING_CURSOR = 16,
  /* A frame's kind is invalid or unknown. */
  MILLRACE_REASON_FRAME_KIND = 32,
  /* A frame's flags are unknown, or do not go with its kind, codec or size. */
  MILLRACE_REASON_FRAME_FLAGS = 33,
  /* A reserved byte of a frame or a preamble is not 0. */
  MILLRACE_REASON_FRAME_RESERVED = 34,
  /* A frame reaches beyond what was published, beyond the byte area, or above half the
     capacity; or its size does not go with its kind. */
  MILLRACE_REASON_FRAME_SIZE = 35,
  /* A pad does not reach exactly to the end of the byte area. */
  MILLRACE_REASON_FRAME_PAD = 36,
  /* A frame does not continue the message in progress, or continues one that was never begun. */
  MILLRACE_REASON_FRAME_SEQUENCE = 37,
  /* The chunks of a message do not add up to the total in its preamble. */
  MILLRACE_REASON_FRAME_TOTAL = 38,
  /* The header extension of a frame is smaller than 16 bytes, no multiple of 16, or reaches
     beyond the payload. */
  MILLRACE_REASON_FRAME_EXTENSION = 39,
  /* The section is not aligned to 4, or too small to hold a part. */
  MILLRACE_REASON_MAILBOX_SIZE = 40,
  /* A control word holds a value that no endpoint may store. */
  MILLRACE_REASON_MAILBOX_SIGNAL = 41,
  /* A part is empty, or larger than the byte area. */
  MILLRACE_REASON_MAILBOX_LENGTH = 42,
  /* A part is not the one that must come next. */
  MILLRACE_REASON_MAILBOX_PART = 43,
  /* The writer gave up in the middle of a message; its chunks were dropped. */
  MILLRACE_REASON_MESSAGE_CANCELLED = 48,
  /* The stream ended in the middle of a message; its chunks were dropped. */
  MILLRACE_REASON_MESSAGE_TRUNCATED = 49,
  /* A message is larger than the reader's limit; it was dropped. */
  MILLRACE_REASON_MESSAGE_SIZE = 50,
  /* A message is of a kind that this reader does not offer; it was dropped. */
  MILLRACE_REASON_MESSAGE_KIND = 51,
  /* A message has a codec that this reader does not know, or that failed to decode it; it was
     dropped. */
  MILLRACE_REASON_MESSAGE_CODEC = 52,
  /* A text or JSON message is not valid UTF-8; it was dropped. */
  MILLRACE_REASON_MESSAGE_TEXT = 53,
  /* A JSON message does not parse, or a batch is not a non-empty array; it was dropped. */
  MILLRACE_REASON_MESSAGE_JSON = 54,
  /* A list of values is not made as the chapter says; it was dropped. */
  MILLRACE_REASON_MESSAGE_VALUES = 55,
  /* The reader was overrun: messages were overwritten before it read them; their number stands
     beside this code. */
  MILLRACE_REASON_MESSAGE_LOST = 56,
  /* The peer closed its endpoint without an `end`, or no longer reads. */
  MILLRACE_REASON_PEER_CLOSED = 64,
  /* The peer's endpoint is marked failed. */
  MILLRACE_REASON_PEER_FAILED = 65,
  /* The peer's supervisor ended it, or saw it end. */
  MILLRACE_REASON_PEER_TERMINATED = 66,
  /* The peer's process died: its lock on the endpoint record is gone, or its stream broke off. */
  MILLRACE_REASON_PEER_LOST = 67,
  /* This endpoint is closed; nothing can be read or written any more. */
  MILLRACE_REASON_PIPE_CLOSED = 80,
  /* This endpoint was marked failed by its peer or its supervisor. */
  MILLRACE_REASON_PIPE_FAILED = 81,
  /* The writer has ended its stream and cannot write any more. */
  MILLRACE_REASON_PIPE_ENDED = 82,
  /* This process was forked from the one that attached this endpoint: attach another one. */
  MILLRACE_REASON_PIPE_FORKED = 83,
  /* The deadline passed before the call could be done. */
  MILLRACE_REASON_WAIT_TIMEOUT = 96,
  /* The caller's signal aborted the call. */
  MILLRACE_REASON_WAIT_ABORTED = 97,
  /* This thread must not block; use the asynchronous call. */
  MILLRACE_REASON_WAIT_FORBIDDEN = 98,
  /* What arrives is not a Millrace stream. */
  MILLRACE_REASON_STREAM_MAGIC = 104,
  /* The stream has another major version. */
  MILLRACE_REASON_STREAM_VERSION = 105,
  /* The stream requires a feature that this endpoint does not know. */
  MILLRACE_REASON_STREAM_FEATURE = 106,
  /* The window, or the largest frame, of a preface is out of range or misaligned. */
  MILLRACE_REASON_STREAM_PREFACE = 107,
  /* A frame goes beyond the credit of its writer, or a credit beyond what was written. */
  MILLRACE_REASON_STREAM_CREDIT = 108,
  /* A call, or an answer, is not made as the chapter says. */
  MILLRACE_REASON_CALL_FORM = 112,
  /* A call has the id of another one that is not answered yet; it was dropped. */
  MILLRACE_REASON_CALL_DUPLICATE = 113,
  /* An answer belongs to no call; it was dropped. */
  MILLRACE_REASON_CALL_ANSWER = 114,
  /* Too many calls are under way. */
  MILLRACE_REASON_CALL_LIMIT = 115,
  /* Too many methods wait for one another on one thread. */
  MILLRACE_REASON_CALL_DEPTH = 116,
  /* The callee serves no method of this name. */
  MILLRACE_REASON_CALL_METHOD = 117,
  /* The arguments are not those that the method takes. */
  MILLRACE_REASON_CALL_ARGUMENTS = 118,
  /* What the method gave cannot be written as a value. */
  MILLRACE_REASON_CALL_RESULT = 119,
  /* The method failed; its error stands beside this code. */
  MILLRACE_REASON_CALL_THROWN = 120,
  /* The call was given up by its caller. */
  MILLRACE_REASON_CALL_CANCELLED = 121,
  /* The peer has ended its stream, so that no answer can come. */
  MILLRACE_REASON_CALL_ENDED = 122,
  /* More items came than were allowed, or items where one result was asked for. */
  MILLRACE_REASON_CALL_ITEMS = 123,
  /* The inbox is full, and the answer stands after other messages. */
  MILLRACE_REASON_CALL_INBOX = 124,
  /* The channel is no property, or its areas or ends are not those of one. */
  MILLRACE_REASON_PROPERTY_CHANNEL = 128,
  /* A value is larger than a slot takes; nothing was changed. */
  MILLRACE_REASON_PROPERTY_SIZE = 129,
  /* A slot holds what no writer may store. */
  MILLRACE_REASON_PROPERTY_SLOT = 130,
  /* The value was overwritten each time that it was read; nothing is wrong, and it can be read
     again. */
  MILLRACE_REASON_PROPERTY_BUSY = 131,
  /* A message has another number than the one that must come. */
  MILLRACE_REASON_FANOUT_NUMBER = 136
};
/* /generated */

/* The format of a payload. Codecs from 128 to 255 belong to the application. The library passes
   payload and codec on as they are; the writer has to make sure that text is UTF-8 and that JSON is
   JSON [codec.text] [codec.json] [codec.batch].
   A TypeScript peer that posts twice in one job sends both messages as one of codec
   MILLRACE_CODEC_JSON_BATCH, unless its port has the option `batch: false`: see
   millrace_batch_next. */
/* generated: enum codec */
enum {
  /* Bytes, as they are. */
  MILLRACE_CODEC_BYTES = 0,
  /* Text in UTF-8. */
  MILLRACE_CODEC_TEXT = 1,
  /* One JSON text in UTF-8. */
  MILLRACE_CODEC_JSON = 2,
  /* A JSON array of one or more messages, in order, in one frame. */
  MILLRACE_CODEC_JSON_BATCH = 3,
  /* A list of values, each with a codec of its own: the chapter call. */
  MILLRACE_CODEC_VALUES = 4,
  /* One data item of RFC 8949 (CBOR). */
  MILLRACE_CODEC_CBOR = 5
};
/* /generated */

/* The kind of a message. Ports write and read data; with millrace_port_write_kind and
   millrace_port_set_calls, they also write and read calls, returns and throws. The other kinds are
   not messages. */
/* generated: enum frame_kind */
enum {
  /* Never written: blank memory is no frame. */
  MILLRACE_FRAME_KIND_INVALID = 0,
  /* A message, or a chunk of one. */
  MILLRACE_FRAME_KIND_DATA = 1,
  /* The writer is done; nothing follows. */
  MILLRACE_FRAME_KIND_END = 2,
  /* A request, or a chunk of one. */
  MILLRACE_FRAME_KIND_CALL = 3,
  /* The result of a call, or a chunk of one. */
  MILLRACE_FRAME_KIND_RETURN = 4,
  /* The failure of a call, or a chunk of one. */
  MILLRACE_FRAME_KIND_THROW = 5,
  /* Fills the byte area exactly to its end. */
  MILLRACE_FRAME_KIND_PAD = 6
};
/* /generated */

/* Which part of its message a frame is. */
/* generated: flags frame_flag */
enum {
  /* The first frame of a message. */
  MILLRACE_FRAME_FLAG_FIRST = 1,
  /* The last frame of a message. */
  MILLRACE_FRAME_FLAG_LAST = 2,
  /* With `last`: the writer gave up; drop the chunks of this message. */
  MILLRACE_FRAME_FLAG_CANCEL = 4,
  /* The payload begins with a `header_extension`. */
  MILLRACE_FRAME_FLAG_EXTENDED = 8
};
/* /generated */

/* The kind of a channel: a ring, for which 0 may be given too; a property, see millrace_property.h;
   or a fanout, see millrace_fanout.h. */
/* generated: enum channel_kind */
enum {
  /* A ring of frames. */
  MILLRACE_CHANNEL_KIND_RING = 1,
  /* A latest-value register: the chapter property, which is optional. */
  MILLRACE_CHANNEL_KIND_PROPERTY = 2,
  /* One writer, and every reader gets every message: the chapter fanout, which is optional. */
  MILLRACE_CHANNEL_KIND_FANOUT = 3
};
/* /generated */

/* No endpoint: the `reader` of a property, which every endpoint may read. */
#define MILLRACE_NOBODY ((uint32_t)0xffffffffu)

/* The version of the layout of segments, not of this library. */
/* generated: version layout */
enum {
  /* Major * 65,536 + minor; `millrace_version` must have the same major. */
  MILLRACE_VERSION = 65536
};
/* /generated */

/* ---- Versions and names ---- */

/* Returns the version of the layout that the library was built for. Any thread. */
uint32_t millrace_version(void);

/* Returns what a status means, as a sentence in English. Never NULL. Any thread. */
const char *millrace_status_text(int32_t status);

/* Returns the name of a reason code, such as "peer.lost", or "unknown". Any thread. */
const char *millrace_reason_name(uint32_t reason);

/* Returns what a reason code means, as a sentence in English. Never NULL. Any thread. */
const char *millrace_reason_text(uint32_t reason);

/* ---- Segments ---- */

/* A channel: a ring of bytes from one endpoint to another, or a channel of another kind. Two rings,
   {0, 1, ...} and {1, 0, ...}, make a port [port.layout]. */
typedef struct millrace_channel {
  uint32_t writer;   /* the endpoints, by index */
  uint32_t reader;   /* a property: MILLRACE_NOBODY; a fanout: the last endpoint that reads */
  uint32_t capacity; /* bytes: a power of two from 256 to 2^30; a property: its largest value */
  uint32_t label;    /* a number that you choose */
  uint32_t start;    /* the position at which its cursors start: 0, or a multiple of 16; for a
                        fanout, with MILLRACE_FANOUT_LOSE added for that mode */
  uint32_t kind;     /* 0, or MILLRACE_CHANNEL_KIND_... */
  const char *name;  /* a property: NULL, or at most 124 bytes of UTF-8 [property.name] */
} millrace_channel;

/* Returns the bytes of storage for a millrace_segment: about 37,000. */
size_t millrace_segment_size(void);

/* Returns the bytes of memory that a segment with these endpoints (1 to 256) and channels (at most
   1,024) needs. Returns 0 if there is a mistake in a channel, or the segment would be larger than 4
   GiB [segment.place]. Any thread. */
uint32_t millrace_memory_size(uint32_t endpoint_count, const millrace_channel *channels,
                              uint32_t channel_count);

/* Formats memory as a segment, whatever it holds. Nobody else may have seen the memory yet. Both
   sides then attach. Returns -MILLRACE_REASON_SEGMENT_SIZE if `memory` is not at a multiple of 128,
   or too small, and MILLRACE_INVALID for a geometry for which millrace_memory_size returns 0. Never
   waits. */
int32_t millrace_memory_format(void *memory, size_t memory_size, uint32_t endpoint_count,
                               const millrace_channel *channels, uint32_t channel_count);

/* Formats blank memory as a segment, or attaches to it if another side has formatted it with the
   same geometry [segment.claim]. The memory must outlive the object. Waits while another side is
   formatting; returns -MILLRACE_REASON_SEGMENT_UNREADY at the timeout. Refuses memory that holds
   anything else with -MILLRACE_REASON_SEGMENT_... [segment.check]. Takes 105 KiB of stack. */
int32_t millrace_segment_create(millrace_segment *segment, void *memory, size_t memory_size,
                                uint32_t endpoint_count, const millrace_channel *channels,
                                uint32_t channel_count, int32_t timeout_ms);

/* Attaches to a segment in memory that another side formats, after all checks of it
   [segment.check]. Waits and refuses as millrace_segment_create does. */
int32_t millrace_segment_attach(millrace_segment *segment, void *memory, size_t memory_size,
                                int32_t timeout_ms);

/* Makes a file with a segment, of mode 0600. If a file with the same geometry is at the path and in
   use, opens that one; so either process may come first. A segment in which no two endpoints can
   meet any more is replaced, even while clients of a server that has closed or died still have it
   open [segment.file_left]. Returns -MILLRACE_REASON_SEGMENT_FILE for a file that is not a segment,
   or that others than its owner can open [segment.file_replace] [segment.file_own].
   Locks one endpoint for the caller; a port can attach to no other one. Returns
   -MILLRACE_REASON_SEGMENT_ENDPOINT if somebody else has it. From then on, a peer that waits finds
   the death of another peer's process within two slices of 100 ms [segment.file_dead].
   Waits for processes that are about to open or replace the file; returns MILLRACE_NOTHING at the
   timeout.
   Making the file shorter (truncate, or `> file` in a shell) ends every process that uses it: the
   next access beyond the new end raises SIGBUS, in any call, and the library neither prevents nor
   catches that. Processes of the same user can do it, and those of root; nobody can with memory of
   millrace_segment_create_sealed. To unlink or replace the file does no harm.
   Threads of one process open the file once each. Takes 105 KiB of stack. */
int32_t millrace_segment_create_file(millrace_segment *segment, const char *path,
                                     uint32_t endpoint_count, const millrace_channel *channels,
                                     uint32_t channel_count, uint32_t endpoint,
                                     int32_t timeout_ms);

/* Makes a segment in memory without a name. Nobody can change its size, and it is gone with the
   last process that has it open [segment.file_sealed]. Otherwise does what
   millrace_segment_create_file does, but never waits for others, and replaces nothing. */
int32_t millrace_segment_create_sealed(millrace_segment *segment, uint32_t endpoint_count,
                                       const millrace_channel *channels, uint32_t channel_count,
                                       uint32_t endpoint);

/* Bytes of storage for the path of sealed memory. */
enum { MILLRACE_HANDED_PATH_SIZE = 31 };

/* Fills in the path of sealed memory, "/proc/PID/fd/N", with its final zero. Processes of the same
   user can open it by millrace_segment_open_file until this object is left. Returns
   MILLRACE_INVALID if there are fewer than MILLRACE_HANDED_PATH_SIZE bytes, or if the segment is
   not in sealed memory. */
int32_t millrace_segment_handed_path(millrace_segment *segment, char *path, size_t path_size);

/* Opens the file at a path, whatever its geometry. Does not wait for the file to appear: if there
   is none, returns -MILLRACE_REASON_SEGMENT_MISSING at once [segment.file_missing]. A path
   "/proc/PID/fd/N" names descriptor N of process PID, or of your own process if PID is "self";
   returns -MILLRACE_REASON_SEGMENT_FILE if what it leads to is not sealed [segment.file_handed].
   Otherwise does what millrace_segment_create_file does. */
int32_t millrace_segment_open_file(millrace_segment *segment, const char *path, uint32_t endpoint,
                                   int32_t timeout_ms);

/* Gives up the object, and for a file also the lock and the mapping. The file stays: a later create
   at its path replaces it when nobody uses it any more. Returns MILLRACE_INVALID while a port is
   attached through this object. */
int32_t millrace_segment_leave(millrace_segment *segment);

/* For a supervisor: returns the number of the owner that an endpoint has, or, if it is vacant, of
   its next owner. The first owner has number 0; the number grows when the endpoint passes to
   another owner. Call it before the owner's thread starts, or while the owner is known to live:
   after its death, the endpoint may belong to the next owner already. Returns 0 if there is no such
   endpoint. Any thread. */
uint32_t millrace_segment_owner(millrace_segment *segment, uint32_t endpoint);

/* For a supervisor that knows that the thread of an endpoint's owner is gone: marks the endpoint
   failed and rings its peers, whose calls then fail with -MILLRACE_REASON_PEER_FAILED and this
   reason [pipe.supervisor]. The reason is MILLRACE_REASON_PEER_TERMINATED or
   MILLRACE_REASON_PEER_LOST; `owner` is what millrace_segment_owner has returned. A state that is
   final already does not change, nor does the state of another owner [segment.state_owner]. Any
   thread. */
int32_t millrace_segment_fail_endpoint(millrace_segment *segment, uint32_t endpoint,
                                       uint32_t owner, uint32_t reason);

/* Closes an attached endpoint on its owner's behalf. The owner's calls end with
   -MILLRACE_REASON_PIPE_CLOSED. Its peers read what was published, and then get
   -MILLRACE_REASON_PEER_CLOSED. An endpoint that nobody has attached stays vacant, and the endpoint
   of another owner than `owner`, which millrace_segment_owner has returned, does not change. Any
   thread. */
int32_t millrace_segment_close_endpoint(millrace_segment *segment, uint32_t endpoint,
                                        uint32_t owner);

/* ---- Ports ----
 *
 * What ends a port, in the order in which a call checks for it [pipe.first_answer]:
 *   -MILLRACE_REASON_PIPE_CLOSED    this end was closed;
 *   -MILLRACE_REASON_FRAME_..., _RING_...  the peer broke the layout; every later call reports it;
 *   -MILLRACE_REASON_PIPE_FAILED    this end was marked failed: see millrace_port_reason;
 *   -MILLRACE_REASON_PEER_CLOSED    the peer closed without an end, or has stopped reading;
 *   -MILLRACE_REASON_PEER_FAILED    the peer is marked failed: see millrace_port_reason, which
 *                                   returns MILLRACE_REASON_PEER_LOST if its process has died.
 * A call that reads returns what was published before it reports one of the last three
 * [pipe.drain].
 */

/* The first of several channels of an endpoint. */
#define MILLRACE_FIRST ((uint32_t)0xffffffffu)

/* Bytes to write. */
typedef struct millrace_bytes {
  const void *address; /* may be NULL if the size is 0 */
  size_t size;
} millrace_bytes;

/* A message, or a frame of one. */
typedef struct millrace_message {
  const void *payload; /* the caller's storage, which may be NULL; lent: in the ring or the inbox */
  size_t size;         /* bytes of the payload */
  uint64_t total;      /* bytes of the whole message; lent: 2^64 - 1 if not known yet */
  uint32_t tag;        /* the application's number, or the id of a call */
  uint8_t kind;        /* MILLRACE_FRAME_KIND_DATA, _CALL, _RETURN or _THROW */
  uint8_t codec;       /* MILLRACE_CODEC_..., or one of the application's, as the writer set it */
  uint8_t flags;       /* MILLRACE_FRAME_FLAG_FIRST, _LAST; a whole message has both */
  uint8_t reserved;
} millrace_message;

/* What an endpoint has counted since it attached. */
typedef struct millrace_stats {
  uint64_t wakes;        /* bells rung because a peer asked for it: system calls */
  uint64_t wakes_elided; /* cursors stored while the peer had not asked to be rung */
  uint64_t parks;        /* times that it slept or paused */
  uint64_t late_wakes;   /* sleeps that ended without a ring, with something there */
} millrace_stats;

/* Returns the bytes of storage for a millrace_port: about 600. */
size_t millrace_port_size(void);

/* Takes an endpoint, with the first channel that it writes and the first that it reads [port.find].
   Returns -MILLRACE_REASON_SEGMENT_ENDPOINT if there is no such endpoint, or somebody has it, and
   -MILLRACE_REASON_SEGMENT_CHANNEL if it does not have both channels, with the same peer. Never
   waits. Several threads may attach through one segment in memory at the same time. */
int32_t millrace_port_attach(millrace_port *port, millrace_segment *segment, uint32_t endpoint);

/* Takes an endpoint only to write, to the channel with this index, or MILLRACE_FIRST. On such a
   port, calls that read are MILLRACE_INVALID. Otherwise does what millrace_port_attach does. */
int32_t millrace_port_attach_writer(millrace_port *port, millrace_segment *segment,
                                    uint32_t endpoint, uint32_t channel);

/* Takes an endpoint only to read, from the channel with this index, or MILLRACE_FIRST. On such a
   port, calls that write are MILLRACE_INVALID. Otherwise does what millrace_port_attach does. */
int32_t millrace_port_attach_reader(millrace_port *port, millrace_segment *segment,
                                    uint32_t endpoint, uint32_t channel);

/* Takes an endpoint without any ring, to open properties and fanouts through it. On such a port,
   calls that write or read are MILLRACE_INVALID. Otherwise does what millrace_port_attach does. */
int32_t millrace_port_attach_endpoint(millrace_port *port, millrace_segment *segment,
                                      uint32_t endpoint);

/* Sets storage for messages that arrive while the port waits for room, so that two sides that both
   write do not wait for each other [port.inbox]. A message takes 16 bytes more than its payload,
   rounded up to a multiple of 16. The storage must outlive the port; size 0 takes it away. Returns
   MILLRACE_INVALID while the present storage holds messages. Without storage, write and read in
   turn. */
int32_t millrace_port_set_inbox(millrace_port *port, void *storage, size_t size);

/* Sets how many microseconds a call spins before it sleeps. 0 makes it sleep at once; the default
   is 50 with two or more processors, otherwise 0 [wait.spin]. */
int32_t millrace_port_set_spin(millrace_port *port, uint32_t microseconds);

/* With 0, declares that the thread must not block: a call that would have to sleep then returns
   -MILLRACE_REASON_WAIT_FORBIDDEN [wait.no_block]. */
int32_t millrace_port_set_blocking(millrace_port *port, int32_t blocking);

/* With anything but 0, the port also reads calls, returns and throws; `kind` of millrace_message
   tells them apart. Otherwise, and by default, each of them costs -MILLRACE_REASON_MESSAGE_KIND
   once and is dropped [pipe.unknown_kind]. */
int32_t millrace_port_set_calls(millrace_port *port, int32_t calls);

/* Writes one message of data. Waits for room. When the call returns MILLRACE_DONE, the message is
   visible to the reader. With timeout 0, writes either all of it or nothing; a message that is too
   large for that in any case is MILLRACE_INVALID [pipe.try_write]. With time to wait, a message may
   be larger than the ring. If the time is over in the middle of it, returns MILLRACE_NOTHING, and
   the reader drops the part that it has [frame.cancel]. After millrace_port_end, returns
   -MILLRACE_REASON_PIPE_ENDED. MILLRACE_INVALID also while a claim is open, for a codec above 255,
   and for a MILLRACE_CODEC_JSON_BATCH larger than half the ring [frame.batch_whole]. */
int32_t millrace_port_write(millrace_port *port, const void *payload, size_t size, uint32_t codec,
                            uint32_t tag, int32_t timeout_ms);

/* Writes one message of any kind: MILLRACE_FRAME_KIND_DATA, _CALL, _RETURN or _THROW. The last
   three carry the id of their call as tag. Any other kind is MILLRACE_INVALID. Otherwise does what
   millrace_port_write does. */
int32_t millrace_port_write_kind(millrace_port *port, uint32_t kind, const void *payload,
                                 size_t size, uint32_t codec, uint32_t tag, int32_t timeout_ms);

/* Writes many messages of data, and makes them visible with few stores, at most 64 messages at a
   time. Sets `written` to how many were written when the time was over (MILLRACE_NOTHING); if the
   call failed, at least so many were written. Otherwise does what millrace_port_write does. A
   mistake in any message is reported before the first one is written. */
int32_t millrace_port_write_many(millrace_port *port, const millrace_bytes *payloads, size_t count,
                                 uint32_t codec, uint32_t tag, int32_t timeout_ms,
                                 size_t *written);

/* Lends the place for one message in the ring, to be filled in place. Waits for room. A message of
   more than half the ring less 16 bytes is MILLRACE_INVALID, and so is a second claim. Then publish
   or abandon it; until then, no other call may write. */
int32_t millrace_port_claim(millrace_port *port, uint32_t size, int32_t timeout_ms, void **place);

/* Makes the claimed message visible, as data, with its final size. That is at most the claimed size
   rounded up to a multiple of 16. Never waits. If the port was closed meanwhile, drops the message
   and returns -MILLRACE_REASON_PIPE_CLOSED, once. MILLRACE_INVALID if there is no claim. */
int32_t millrace_port_publish(millrace_port *port, uint32_t size, uint32_t codec, uint32_t tag);

/* Takes an open claim back: nobody sees it. Otherwise does what millrace_port_publish does. */
int32_t millrace_port_abandon(millrace_port *port);

/* Ends the outgoing stream: the reader gets everything written so far, and then MILLRACE_END.
   Reading goes on. Ending again does nothing. Ending also does nothing if the peer has closed or
   failed, or if somebody else has closed this end or marked it failed [pipe.end_closed]. Never
   waits [pipe.end_now]. */
int32_t millrace_port_end(millrace_port *port);

/* Copies the next message into the storage and describes it in `message`, whose `payload` is then
   `storage`; that may be NULL if the capacity is 0. A message larger than the capacity is
   -MILLRACE_REASON_MESSAGE_SIZE once and is dropped [pipe.limit]. _MESSAGE_CANCELLED,
   _MESSAGE_TRUNCATED and _MESSAGE_KIND cost one message too, and the next call goes on. After
   MILLRACE_NOTHING, pass the same storage again: it may hold the first parts of a message, and then
   another storage is MILLRACE_INVALID [pipe.keep_parts]. So is a call while a frame is lent. Unless
   the call returns MILLRACE_DONE, `message` is all 0. */
int32_t millrace_port_read(millrace_port *port, void *storage, size_t capacity, int32_t timeout_ms,
                           millrace_message *message);

/* Hands out the next element of a payload of codec MILLRACE_CODEC_JSON_BATCH, or of a mailbox: a
   message of codec MILLRACE_CODEC_JSON, with the tag of the whole message [codec.batch_read]. Set
   `at` to 0 for the first element; the call moves it to the next one. `element` lies within the
   payload, which must be a copy that a read has made. Returns MILLRACE_END after the last element,
   and -MILLRACE_REASON_MESSAGE_JSON if the payload is not an array of at least one element.
   MILLRACE_INVALID if `at` is not the place of an element. Any thread.
     size_t at = 0;
     while (millrace_batch_next(storage, message.size, &at, &element) == MILLRACE_DONE)
       use(element.address, element.size); */
int32_t millrace_batch_next(const void *payload, size_t size, size_t *at, millrace_bytes *element);

/* Lends the next frame, a whole message or a part of one, where it lies in the ring, until
   millrace_port_release. No limit applies. The address of an empty payload may be that after the
   ring's last byte. For peers that you trust, because they can change the bytes meanwhile
   [pipe.lend]. MILLRACE_INVALID while a frame is lent, or while a read is in the middle of a
   message. Otherwise does what millrace_port_read does. */
int32_t millrace_port_peek(millrace_port *port, int32_t timeout_ms, millrace_message *message);

/* Gives the room of the lent frame back to its writer. MILLRACE_INVALID if no frame is lent. */
int32_t millrace_port_release(millrace_port *port);

/* Vacates the endpoint of a dead peer, so that another owner can attach to it. This end then starts
   again with the next owner: messages for it can be written at once. Messages that the dead peer
   has not read are dropped, and so are a claim, a message that was read in part, and an end. Call
   it only if you know that no thread will touch the segment as that peer any more, as a supervisor
   of threads does [segment.vacate_dead]; in a file, the peer's lock shows it.
   Returns MILLRACE_INVALID, and does nothing, unless the peer has closed or was marked failed, and
   this end has read everything that it published: a read has returned MILLRACE_NOTHING,
   MILLRACE_END, or what ends the port. Also MILLRACE_INVALID while a frame is lent; if this end is
   closed or failed; if the peer has other channels than those of this port; and in a file, while
   the peer's process lives [segment.vacate_peer] [segment.vacate_read]. Never waits. */
int32_t millrace_port_vacate(millrace_port *port);

/* For a thread that never waits, with a segment in a file: marks the peers failed whose process is
   gone, which the next call then reports. Makes one system call for each peer. A call that waits
   does this by itself. */
int32_t millrace_port_check_peers(millrace_port *port);

/* Returns the reason code for the last -MILLRACE_REASON_PEER_FAILED or
   -MILLRACE_REASON_PIPE_FAILED, such as MILLRACE_REASON_PEER_LOST: the number that was found, known
   or not; 0 if there was none [pipe.failed_reason]. */
uint32_t millrace_port_reason(millrace_port *port);

/* Fills in what this endpoint has counted since it attached. */
int32_t millrace_port_stats(millrace_port *port, millrace_stats *stats);

/* Closes both directions at once. A wait of the port's thread ends with
   -MILLRACE_REASON_PIPE_CLOSED [port.close]. The peer reads what was published. Closing again does
   nothing. Any thread. */
int32_t millrace_port_close(millrace_port *port);

/* Closes the port and gives up the object: its storage is the caller's again. */
int32_t millrace_port_leave(millrace_port *port);

/* ---- Mailboxes ----
 *
 * The layout of sab-message-port 1.0, one way: a payload is a JSON array of messages, cut into
 * parts if it is larger than the section. The section is at least 33 bytes of shared memory at a
 * multiple of 4, which must be blank before either side first uses it.
 *
 * What ends a mailbox: -MILLRACE_REASON_PIPE_CLOSED (this side closed it), _PEER_CLOSED, or
 * _MAILBOX_... (the peer broke the layout).
 */

/* Returns the bytes of storage for a millrace_mailbox: about 160. */
size_t millrace_mailbox_size(void);

/* Becomes the writer of the mailbox in a section, which must outlive the object. Returns
   -MILLRACE_REASON_MAILBOX_SIZE if the section is misaligned or too small [mailbox.section]. */
int32_t millrace_mailbox_attach_writer(millrace_mailbox *mailbox, void *memory, size_t memory_size);

/* Becomes the reader of the mailbox in a section; otherwise as millrace_mailbox_attach_writer. */
int32_t millrace_mailbox_attach_reader(millrace_mailbox *mailbox, void *memory, size_t memory_size);

/* Does what millrace_port_set_spin does. */
int32_t millrace_mailbox_set_spin(millrace_mailbox *mailbox, uint32_t microseconds);

/* Writes one payload, a JSON array of at least one message in UTF-8. Returns when its last part is
   in the mailbox. A payload cannot be given up after its first part: after MILLRACE_NOTHING, while
   millrace_mailbox_partial returns 1, pass the same payload again [mailbox.begun]. Any other
   payload is then MILLRACE_INVALID. So is a payload that is not an array. */
int32_t millrace_mailbox_write(millrace_mailbox *mailbox, const void *payload, size_t size,
                               int32_t timeout_ms);

/* Copies the next payload into the storage, and sets `size` to its size. A payload larger than the
   capacity is -MILLRACE_REASON_MESSAGE_SIZE once and is dropped. A payload that is not UTF-8
   (_MESSAGE_TEXT) or not an array (_MESSAGE_JSON) is dropped too, and the next call goes on
   [mailbox.bad_payload]. After MILLRACE_NOTHING, while millrace_mailbox_partial returns 1, pass the
   same storage again [mailbox.keep_parts]. */
int32_t millrace_mailbox_read(millrace_mailbox *mailbox, void *storage, size_t capacity,
                              int32_t timeout_ms, size_t *size);

/* Returns 1 while a payload is under way, otherwise 0. */
int32_t millrace_mailbox_partial(millrace_mailbox *mailbox);

/* Closes the mailbox: every call of either side ends. Any thread. */
int32_t millrace_mailbox_close(millrace_mailbox *mailbox);

/* Closes the mailbox and gives up the object: its storage is the caller's again. */
int32_t millrace_mailbox_leave(millrace_mailbox *mailbox);

#ifdef __cplusplus
}
#endif

#endif
