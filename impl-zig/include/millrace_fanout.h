/*
 * Millrace: fanouts.
 *
 * One endpoint writes, and every reader gets every message, of which there is one copy
 * [spec/fanout.md]. The readers are the endpoints after the writer, in order, up to the one that
 * the millrace_channel names as its reader; endpoint 0 follows the last endpoint. From endpoint 0
 * to endpoints 1, 2 and 3:
 *
 *   millrace_channel all = {0, 3, 65536, 0, 0, MILLRACE_CHANNEL_KIND_FANOUT, NULL};
 *
 * By default, in mode `hold`, the slowest reader holds the writer back. A reader that has not
 * joined, has left, has closed or was marked failed does not count. With MILLRACE_FANOUT_LOSE as
 * `start`, in mode `lose`, the writer never waits, and a slow reader is told how many messages it
 * has lost.
 *
 * An endpoint may write and read any number of fanouts, with or without rings and properties. All
 * are opened through its port, and belong to the port's thread. Leave them before the port: until
 * then, millrace_port_leave is MILLRACE_INVALID.
 *
 * The end of the port ends them, with -MILLRACE_REASON_PIPE_CLOSED or _PIPE_FAILED. A reader also
 * ends with its writer, with _PEER_CLOSED or _PEER_FAILED. millrace_port_reason returns the reason
 * for a failure. A writer goes on whatever happens to its readers [fanout.no_readers].
 */
#ifndef MILLRACE_FANOUT_H
#define MILLRACE_FANOUT_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Added to `start` of a millrace_channel. */
/* generated: limit fanout_lose */
enum {
  /* Bit 0 of `start`: the mode is `lose`. */
  MILLRACE_FANOUT_LOSE = 1
};
/* /generated */

/* An object like the others: see millrace.h. */
typedef struct millrace_fanout millrace_fanout;

/* A message that was read. */
typedef struct millrace_fanout_message {
  size_t size;     /* bytes in the caller's storage */
  uint64_t number; /* mode `lose`: how many messages came before it; else 0 */
  uint64_t lost;   /* with -MILLRACE_REASON_MESSAGE_LOST: how many messages were lost; else 0 */
  uint32_t tag;    /* the application's number */
  uint32_t codec;  /* MILLRACE_CODEC_..., or one of the application's, as the writer set it */
} millrace_fanout_message;

/* Returns the bytes of storage for a millrace_fanout: about 12,000. */
size_t millrace_fanout_size(void);

/* Looks for the fanout that this endpoint can write: `channel`, or the first one for
   MILLRACE_FIRST. Sets `found` to its channel. Changes nothing: call it before
   millrace_port_attach_endpoint, so as not to take an endpoint that is of no use [fanout.find]
   [fanout.find_none]. Returns -MILLRACE_REASON_SEGMENT_ENDPOINT if there is no such endpoint, or
   somebody has it, and -MILLRACE_REASON_SEGMENT_CHANNEL if there is no such fanout. */
int32_t millrace_fanout_find_writer(millrace_segment *segment, uint32_t endpoint, uint32_t channel,
                                    uint32_t *found);

/* Looks for the fanout that this endpoint can read; otherwise as millrace_fanout_find_writer. */
int32_t millrace_fanout_find_reader(millrace_segment *segment, uint32_t endpoint, uint32_t channel,
                                    uint32_t *found);

/* Becomes the writer of a fanout, through the writer's port, which can be done once. `channel` is
   as above. Returns -MILLRACE_REASON_SEGMENT_CHANNEL if there is no fanout that this endpoint
   writes. MILLRACE_INVALID for a port over a stream, and if the port has this end of the fanout
   already. */
int32_t millrace_fanout_open_writer(millrace_fanout *fanout, millrace_port *port,
                                    uint32_t channel);

/* Becomes a reader of a fanout, through the port of one of its readers. It joins at what is
   published by then, or, if `oldest` is not 0, starts at the oldest message left, which only mode
   `lose` allows [fanout.join] [fanout.begin]. Otherwise does what millrace_fanout_open_writer
   does. */
int32_t millrace_fanout_open_reader(millrace_fanout *fanout, millrace_port *port, uint32_t channel,
                                    int32_t oldest);

/* Returns the size of the largest message: a little less than half of the capacity, or in mode
   `lose` a little less than a quarter. Returns 0 if there is no such object. */
uint32_t millrace_fanout_size_max(millrace_fanout *fanout);

/* Writes one message of data to all readers. When the call returns MILLRACE_DONE, the message is
   visible to them. In mode `hold`, waits until the slowest reader has made room; in mode `lose`,
   never waits. Returns -MILLRACE_REASON_MESSAGE_SIZE, and changes nothing, if the message is larger
   than millrace_fanout_size_max [fanout.size]. After millrace_fanout_end, returns
   -MILLRACE_REASON_PIPE_ENDED. MILLRACE_INVALID for a codec above 255. */
int32_t millrace_fanout_write(millrace_fanout *fanout, const void *payload, size_t size,
                              uint32_t codec, uint32_t tag, int32_t timeout_ms);

/* Writes many messages of data, and makes them visible with few stores, at most 64 messages at a
   time. Sets `written` to how many were written when the time was over (MILLRACE_NOTHING); if the
   call failed, at least so many were written. Otherwise does what millrace_fanout_write does. A
   mistake in any message is reported before the first one is written. */
int32_t millrace_fanout_write_many(millrace_fanout *fanout, const millrace_bytes *payloads,
                                   size_t count, uint32_t codec, uint32_t tag, int32_t timeout_ms,
                                   size_t *written);

/* Ends the fanout: every reader gets everything written so far, and then MILLRACE_END. Ending again
   does nothing. Never waits [pipe.end_now]. */
int32_t millrace_fanout_end(millrace_fanout *fanout);

/* Copies the next message into the storage and describes it in `message`. The storage may be NULL
   if the capacity is 0. A message larger than the capacity is -MILLRACE_REASON_MESSAGE_SIZE once
   and is dropped [pipe.limit]. _MESSAGE_KIND costs one message too, and the next call goes on.
   _MESSAGE_LOST means that this reader was overrun, and has lost `message->lost` messages; the next
   call returns the oldest message left [fanout.overrun]. -MILLRACE_REASON_FRAME_..., _RING_... or
   _FANOUT_NUMBER mean that the writer broke the layout; every later call reports it.
   MILLRACE_INVALID for a reader that has left. Unless the call returns MILLRACE_DONE or
   _MESSAGE_LOST, `message` is all 0. */
int32_t millrace_fanout_read(millrace_fanout *fanout, void *storage, size_t capacity,
                             int32_t timeout_ms, millrace_fanout_message *message);

/* With 0, leaves a fanout of mode `hold`, so that its writer does not wait for this reader. With
   anything else, joins it again, at what is published by then [fanout.leave] [fanout.join]. Does
   nothing if the reader has done so already. MILLRACE_INVALID in mode `lose`. */
int32_t millrace_fanout_set_joined(millrace_fanout *fanout, int32_t joined);

/* Gives up the object; a reader leaves. For a writer, MILLRACE_INVALID until its port is closed. */
int32_t millrace_fanout_leave(millrace_fanout *fanout);

#ifdef __cplusplus
}
#endif

#endif
