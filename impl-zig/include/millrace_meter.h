/*
 * Millrace: meters.
 *
 * A meter counts and times what a port does [spec/meter.md]. While it is attached, it meters the
 * port's own calls; write and read as before. A port without a meter reads no clock, and does
 * nothing else for it. The specification says what a report contains and in which units; its form
 * is the same in all implementations [meter.report].
 *
 * A reader's meter knows how long messages have waited only if their writer has a meter too: that
 * one stores in each message when it was finished [meter.time].
 *
 * A meter and its calls belong to the thread of its port.
 */
#ifndef MILLRACE_METER_H
#define MILLRACE_METER_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object like the others: see millrace.h. */
typedef struct millrace_meter millrace_meter;

enum {
  /* A size that suffices for any report, with its final zero. */
  MILLRACE_METER_REPORT_SIZE = 4096
};

/* Returns the bytes of storage for a millrace_meter: about 60,000, for the distributions. */
size_t millrace_meter_size(void);

/* Attaches a meter to a port with one direction or both, and begins to count. MILLRACE_INVALID if
   the port has a meter, calls, or no ring, or is over a stream. Until the meter is left,
   millrace_port_leave and millrace_calls_attach are MILLRACE_INVALID. */
int32_t millrace_meter_attach(millrace_meter *meter, millrace_port *port);

/* Notes that the service of the message that was read last is over. Call it before doing something
   else than the next read, which otherwise ends the service. MILLRACE_INVALID on a port that does
   not read. */
int32_t millrace_meter_done(millrace_meter *meter);

/* Notes that the next value of the batch that was read last is handed out now. Call it before each
   millrace_batch_next except the first [meter.batch]. MILLRACE_INVALID on a port that does not
   read. */
int32_t millrace_meter_next_value(millrace_meter *meter);

/* Starts again: all counts are 0. */
int32_t millrace_meter_reset(millrace_meter *meter);

/* Fills the storage with the figures so far, as JSON in ASCII with a final zero. Sets `size` to the
   size without the zero. To count the queue, goes through the frames in the ring. MILLRACE_INVALID
   if the capacity is below MILLRACE_METER_REPORT_SIZE. */
int32_t millrace_meter_report(millrace_meter *meter, char *storage, size_t capacity, size_t *size);

/* Gives up the meter: its storage is the caller's again, and the port goes on without it. */
int32_t millrace_meter_leave(millrace_meter *meter);

#ifdef __cplusplus
}
#endif

#endif
