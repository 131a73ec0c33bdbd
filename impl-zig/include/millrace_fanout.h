/*
 * Millrace: fanouts.
 *
 * One endpoint writes, and every reader gets every message, of which there is one copy
 * [spec/fanout.md]. The endpoints behind the writer read, in order, up to the one that the
 * millrace_channel names as its reader; behind the last endpoint stands endpoint 0. From endpoint 0
 * to endpoints 1, 2 and 3:
 *
 *   millrace_channel all = {0, 3, 65536, 0, 0, MILLRACE_CHANNEL_KIND_FANOUT, NULL};
 *
 * Usually the slowest reader holds the writer back, and one that has not joined, has left, has
 * closed or was marked failed is not counted: mode `hold`. With MILLRACE_FANOUT_LOSE as `start` the
 * writer never waits, and a reader that was too slow is told how many messages it lost.
 *
 * An endpoint may write and read any number of fanouts, beside its rings and properties or without
 * any: all are opened through its port, and belong to its thread. Leave them before it: until then
 * millrace_port_leave is MILLRACE_INVALID.
 *
 * What ends them is the end of their port, -MILLRACE_REASON_PIPE_CLOSED or _PIPE_FAILED, or, for a
 * reader, that of the writer, _PEER_CLOSED or _PEER_FAILED; behind the failed ones stands
 * millrace_port_reason. A writer goes on whatever becomes of its readers [fanout.no_readers].
 */
#ifndef MILLRACE_FANOUT_H
#define MILLRACE_FANOUT_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is added to `start` of a millrace_channel. */
/* generated: limit fanout_lose */
enum {
  /* Bit 0 of `start`: the mode is `lose`. */
  MILLRACE_FANOUT_LOSE = 1
};
/* /generated */

/* An object as the others are. */
typedef struct millrace_fanout millrace_fanout;

/* A message as it was read. */
typedef struct millrace_fanout_message {
  size_t size;     /* bytes in the caller's storage */
  uint64_t number; /* mode `lose`: how many its writer has written before it; else 0 */
  uint64_t lost;   /* with -MILLRACE_REASON_MESSAGE_LOST: how many messages were lost; else 0 */
  uint32_t tag;    /* the application's own number */
  uint32_t codec;  /* MILLRACE_CODEC_..., or one of the application's, as the writer gave it */
} millrace_fanout_message;

/* Bytes of storage for a millrace_fanout: about 12,000. */
size_t millrace_fanout_size(void);

/* Looks for the fanout that this endpoint would write: `channel`, or, for MILLRACE_FIRST, the first
   one; `found` becomes its channel. Changes nothing: ask before millrace_port_attach_endpoint, so
   that an endpoint that is of no use is not taken [fanout.find] [fanout.find_none].
   -MILLRACE_REASON_SEGMENT_ENDPOINT where there is no such endpoint or somebody has it, and
   -MILLRACE_REASON_SEGMENT_CHANNEL where there is no such fanout. */
int32_t millrace_fanout_find_writer(millrace_segment *segment, uint32_t endpoint, uint32_t channel,
                                    uint32_t *found);

/* Looks for the fanout that this endpoint would read. Otherwise as millrace_fanout_find_writer. */
int32_t millrace_fanout_find_reader(millrace_segment *segment, uint32_t endpoint, uint32_t channel,
                                    uint32_t *found);

/* Begins to write a fanout, through the port of its writer: once. `channel` as above.
   -MILLRACE_REASON_SEGMENT_CHANNEL where there is none that this endpoint writes; a port over a
   stream is MILLRACE_INVALID, and so is a second end at one place. */
int32_t millrace_fanout_open_writer(millrace_fanout *fanout, millrace_port *port,
                                    uint32_t channel);

/* Joins a fanout, through the port of one of its readers: at what is published by then, or, where
   `oldest` is not 0, at the oldest message that is there, which only mode `lose` allows
   [fanout.join] [fanout.begin]. Otherwise as millrace_fanout_open_writer. */
int32_t millrace_fanout_open_reader(millrace_fanout *fanout, millrace_port *port, uint32_t channel,
                                    int32_t oldest);

/* Returns the bytes of the largest message: a little less than half of the capacity, in mode `lose`
   than a quarter. 0 where there is no such object. */
uint32_t millrace_fanout_size_max(millrace_fanout *fanout);

/* Writes one message of data to all readers; it is visible to them when this returns MILLRACE_DONE.
   In mode `hold` it waits until the slowest has made room, in mode `lose` never.
   -MILLRACE_REASON_MESSAGE_SIZE where it is larger than millrace_fanout_size_max, and nothing is
   changed [fanout.size]; behind millrace_fanout_end -MILLRACE_REASON_PIPE_ENDED. MILLRACE_INVALID
   for a codec above 255. */
int32_t millrace_fanout_write(millrace_fanout *fanout, const void *payload, size_t size,
                              uint32_t codec, uint32_t tag, int32_t timeout_ms);

/* Writes many messages of data and makes them visible with few stores, 64 at a time at most.
   `written` is how many were written when the time was over (MILLRACE_NOTHING), or at least how
   many where the call failed. Otherwise as millrace_fanout_write, whose mistakes come first. */
int32_t millrace_fanout_write_many(millrace_fanout *fanout, const millrace_bytes *payloads,
                                   size_t count, uint32_t codec, uint32_t tag, int32_t timeout_ms,
                                   size_t *written);

/* Ends the fanout: every reader gets everything written so far, then MILLRACE_END. Ending again
   does nothing. Never waits [pipe.end_now]. */
int32_t millrace_fanout_end(millrace_fanout *fanout);

/* Copies the next message into the storage and describes it in `message`. The storage may be NULL
   where the capacity is 0. The capacity is the limit: a larger message is
   -MILLRACE_REASON_MESSAGE_SIZE, once, and dropped [pipe.limit]. Other reasons that cost messages,
   and the next call goes on: _MESSAGE_KIND, and _MESSAGE_LOST where this reader was overrun, by
   `message->lost` messages; the next call gives the oldest that is there [fanout.overrun].
   -MILLRACE_REASON_FRAME_..., _RING_... or _FANOUT_NUMBER: the writer broke the layout; kept, and
   reported again. MILLRACE_INVALID for a reader that has left. With anything but MILLRACE_DONE and
   _MESSAGE_LOST, `message` is all 0. */
int32_t millrace_fanout_read(millrace_fanout *fanout, void *storage, size_t capacity,
                             int32_t timeout_ms, millrace_fanout_message *message);

/* With 0, leaves a fanout of mode `hold`, so that its writer does not wait for this reader; with
   anything else, joins it again, at what is published by then [fanout.leave] [fanout.join]. Does
   nothing where it has already. MILLRACE_INVALID in mode `lose`. */
int32_t millrace_fanout_set_joined(millrace_fanout *fanout, int32_t joined);

/* Gives the object up; a reader leaves. A writer is MILLRACE_INVALID until its port is closed. */
int32_t millrace_fanout_leave(millrace_fanout *fanout);

#ifdef __cplusplus
}
#endif

#endif
