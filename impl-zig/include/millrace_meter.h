/*
 * Millrace: meters.
 *
 * A meter counts and times what a port does [spec/meter.md]. While it is attached, the calls of the
 * port itself are metered: there are no others to write and read by. A port without one reads no
 * clock for it, and does nothing more than before. What a report says, and in which units, stands
 * in the specification; its form is that of all implementations [meter.report].
 *
 * How long messages have waited knows a reader whose writer meters too: that stores when each
 * message was finished [meter.time].
 *
 * A meter belongs to the thread of its port, and so do its calls.
 */
#ifndef MILLRACE_METER_H
#define MILLRACE_METER_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object as the others are. */
typedef struct millrace_meter millrace_meter;

enum {
  /* Bytes that any report fits, with its zero. */
  MILLRACE_METER_REPORT_SIZE = 4096
};

/* Bytes of storage for a millrace_meter: about 60,000, for the distributions. */
size_t millrace_meter_size(void);

/* Attaches a meter to a port, of both directions or of one, and begins to count. MILLRACE_INVALID
   where that has a meter, calls, or no ring, or is over a stream. Until the meter is left, so are
   millrace_port_leave and millrace_calls_attach. */
int32_t millrace_meter_attach(millrace_meter *meter, millrace_port *port);

/* The service of the message that was read last is over: for who does something else before the
   next call that reads, which otherwise ends it. MILLRACE_INVALID on a port that does not read. */
int32_t millrace_meter_done(millrace_meter *meter);

/* The next value of the batch that was read last is handed out now: before each millrace_batch_next
   but the first [meter.batch]. MILLRACE_INVALID on a port that does not read. */
int32_t millrace_meter_next_value(millrace_meter *meter);

/* Begins anew: all counts are 0. */
int32_t millrace_meter_reset(millrace_meter *meter);

/* Fills the storage with what was counted, as JSON in ASCII with a zero behind it; `size` is
   without the zero. The queue is counted now, frame by frame. MILLRACE_INVALID where the capacity
   is below MILLRACE_METER_REPORT_SIZE. */
int32_t millrace_meter_report(millrace_meter *meter, char *storage, size_t capacity, size_t *size);

/* Gives the meter up: its storage is the caller's again, and the port goes on without. */
int32_t millrace_meter_leave(millrace_meter *meter);

#ifdef __cplusplus
}
#endif

#endif
