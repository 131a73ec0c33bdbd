/*
 * Millrace: ports without shared memory.
 *
 * The same messages over a socket, or over two pipes. All calls of ports do what they do
 * elsewhere, but millrace_port_vacate, which refuses, and millrace_port_leave, whose place
 * millrace_stream_leave takes. What breaks the stream is a reason of MILLRACE_REASON_PEER_FAILED or
 * _PIPE_FAILED, such as _STREAM_MAGIC, _FRAME_SIZE, or _PEER_LOST where the peer's bytes have ended
 * without a close.
 *
 * It has no thread of its own: the calls of the port do the work. A thread that is in none takes
 * nothing in, and lets its peer wait. A call with a timeout goes on until the system has taken what
 * it wrote. Whoever only tries, or has an event loop, calls millrace_stream_pump.
 *
 * Calls: millrace_calls_attach gives such a port calls, as any other; see millrace_call.h. With an
 * event loop, millrace_calls_read without time serves what has come, after each
 * millrace_stream_pump.
 */
#ifndef MILLRACE_STREAM_H
#define MILLRACE_STREAM_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object as the others are. */
typedef struct millrace_stream millrace_stream;

/* What a side chooses. */
typedef struct millrace_stream_sizes {
  uint32_t largest; /* the largest frame of the peer: a multiple of 16, from 128 on */
  uint32_t window;  /* what it may write ahead: a multiple of 16, from `largest` to 2^28 */
  uint32_t queue;   /* room for what goes out: a power of two from 512 on; half of it is a frame */
} millrace_stream_sizes;

/* Bytes of storage for a millrace_stream: about 700. */
size_t millrace_stream_size(void);

/* Returns the bytes of memory that a stream of these sizes takes, or 0 where there can be none.
   NULL stands for 16 KiB, 64 KiB and 64 KiB. Any thread. */
size_t millrace_stream_memory_size(const millrace_stream_sizes *sizes);

/* Begins a stream, and a port over it: `input` is read and `output` written. Both may be one
   connected socket, Unix or TCP. The stream makes them such that they do not block, and closes
   them; where the call fails they stay the caller's. The memory, at a multiple of 128, must outlive
   the stream, else -MILLRACE_REASON_SEGMENT_SIZE, and so is too little of it. Never waits. */
int32_t millrace_stream_open(millrace_stream *stream, millrace_port *port, int32_t input,
                             int32_t output, void *memory, size_t memory_size,
                             const millrace_stream_sizes *sizes);

/* Waits until the peer has said how large a frame it takes, which bounds millrace_port_claim and a
   JSON batch; before that it is 128 bytes. Nobody has to wait for it otherwise. MILLRACE_NOTHING
   where it has not, by the deadline or because the stream is over. */
int32_t millrace_stream_await_ready(millrace_stream *stream, int32_t timeout_ms);

/* Takes in what has arrived, and gives the system what it takes; never waits. Returns what to wait
   for before the next call: 1 for something to read, 2 for room to write, 3 for either, 0 where
   nothing will come any more. */
int32_t millrace_stream_pump(millrace_stream *stream);

/* Closes the port where it is not closed yet, goes on until the system has everything and the peer
   has ended too, or 2 s have passed [stream.linger], and closes the descriptors. Both objects may
   still be asked. MILLRACE_NOTHING where the time was over before: then call it again. */
int32_t millrace_stream_finish(millrace_stream *stream, int32_t timeout_ms);

/* Finishes, which takes 2 s at most, and gives up both objects: the stream and its port.
   MILLRACE_INVALID while the port has calls: leave them first. */
int32_t millrace_stream_leave(millrace_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
