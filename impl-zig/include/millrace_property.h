/*
 * Millrace: properties.
 *
 * A property holds the latest value of something [spec/property.md]. One endpoint sets it, without
 * waiting for anybody. Any endpoint gets it, any number of times, even after its writer has gone.
 * An endpoint may set and get any number of properties, with or without rings. All are opened
 * through its port, and belong to the port's thread. Leave them before the port: until then,
 * millrace_port_leave is MILLRACE_INVALID. On a port without rings, calls that write or read are
 * MILLRACE_INVALID too.
 *
 * Name a property either by its channel, with NULL as `name`, or by MILLRACE_FIRST and its name, a
 * text that ends with a zero. Any other combination is MILLRACE_INVALID.
 *
 * The end of the port ends them, with -MILLRACE_REASON_PIPE_CLOSED or _PIPE_FAILED.
 * millrace_port_reason returns the reason for that failure, or for _PEER_FAILED.
 */
#ifndef MILLRACE_PROPERTY_H
#define MILLRACE_PROPERTY_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object like the others: see millrace.h. */
typedef struct millrace_property millrace_property;

/* A value that was read. */
typedef struct millrace_property_value {
  size_t size;      /* bytes in the caller's storage */
  uint32_t version; /* grows with each value, and wraps around; 0: no value was ever set */
  uint32_t codec;   /* MILLRACE_CODEC_..., or one of the application's, as the writer set it */
} millrace_property_value;

/* Returns the bytes of storage for a millrace_property: 128 on 64-bit systems. */
size_t millrace_property_size(void);

/* Looks for a property, with or without a port, and sets `found` to its channel. Changes nothing.
   `writer` is the endpoint that is to set the property, or MILLRACE_NOBODY for one that only gets
   it. Returns -MILLRACE_REASON_PROPERTY_CHANNEL if no property can be opened in this way
   [property.open] [property.find]. */
int32_t millrace_property_find(millrace_segment *segment, uint32_t channel, const char *name,
                               uint32_t writer, uint32_t *found);

/* Opens a property for setting, through the writer's port, which can be done once. Not allowed
   while another thread closes the port. Returns -MILLRACE_REASON_PROPERTY_CHANNEL as
   millrace_property_find does. MILLRACE_INVALID for a port over a stream. */
int32_t millrace_property_open_writer(millrace_property *property, millrace_port *port,
                                      uint32_t channel, const char *name);

/* Opens a property for getting, through the port of any endpoint. Otherwise does what
   millrace_property_open_writer does. */
int32_t millrace_property_open_reader(millrace_property *property, millrace_port *port,
                                      uint32_t channel, const char *name);

/* Returns the size of the largest value, which is at least the channel's `capacity`; storage of
   this size suffices for any value. Returns 0 if there is no such object. */
uint32_t millrace_property_value_size(millrace_property *property);

/* Sets a value. Returns -MILLRACE_REASON_PROPERTY_SIZE, and changes nothing, if the value is larger
   than millrace_property_value_size. MILLRACE_INVALID for MILLRACE_CODEC_JSON_BATCH, _VALUES, or a
   codec above 255 [property.codec]. Never waits; rings those who wait for a change. */
int32_t millrace_property_set(millrace_property *property, const void *value, size_t size,
                              uint32_t codec);

/* Takes the value back: after that, there is none. Otherwise as millrace_property_set. */
int32_t millrace_property_clear(millrace_property *property);

/* Copies the last value into the storage and describes it in `value`. Returns MILLRACE_NOTHING if
   there is none; `value` then still has the version. Never waits, and leaves the value in place. An
   error concerns this call alone: -MILLRACE_REASON_MESSAGE_SIZE if the value is larger than the
   capacity, _PROPERTY_SLOT if its writer broke the layout, and _PROPERTY_BUSY if the value was
   overwritten during each try. The storage may then hold anything, and `value` is all 0. */
int32_t millrace_property_get(millrace_property *property, void *storage, size_t capacity,
                              millrace_property_value *value);

/* Waits until there is another value than the one that was read last, or none instead of it; at
   first, for any value. Returns -MILLRACE_REASON_PEER_CLOSED or _PEER_FAILED if the writer has gone
   and nothing has changed [property.gone]. */
int32_t millrace_property_wait(millrace_property *property, int32_t timeout_ms);

/* Gives up the object. For a writer, MILLRACE_INVALID until its port is closed, because the close
   rings those who wait through this object [property.close]. */
int32_t millrace_property_leave(millrace_property *property);

#ifdef __cplusplus
}
#endif

#endif
