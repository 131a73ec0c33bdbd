/*
 * Millrace: properties.
 *
 * A property holds the latest value of something [spec/property.md]. One endpoint sets it, and
 * waits for nobody; anybody gets it, again and again, also when its writer has gone. An endpoint
 * may set and get any number of them, beside its rings or without any: all are opened through its
 * port, and belong to its thread. Leave them before it: until then millrace_port_leave is
 * MILLRACE_INVALID. On a port without rings, so is whatever writes or reads.
 *
 * A property is named by its channel, and NULL; or by MILLRACE_FIRST and its name, a text that ends
 * with a zero. Anything else is MILLRACE_INVALID.
 *
 * What ends them is the end of their port: -MILLRACE_REASON_PIPE_CLOSED or _PIPE_FAILED; behind
 * that, and _PEER_FAILED, stands millrace_port_reason.
 */
#ifndef MILLRACE_PROPERTY_H
#define MILLRACE_PROPERTY_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object as the others are. */
typedef struct millrace_property millrace_property;

/* A value as it was found. */
typedef struct millrace_property_value {
  size_t size;      /* bytes in the caller's storage */
  uint32_t version; /* grows with each value, and begins anew some time; 0: there was none ever */
  uint32_t codec;   /* MILLRACE_CODEC_..., or one of the application's, as the writer gave it */
} millrace_property_value;

/* Bytes of storage for a millrace_property: 128 in 64 bits. */
size_t millrace_property_size(void);

/* Looks for a property, with or without a port, and changes nothing: `found` becomes its channel.
   `writer` is the endpoint that is to set it, or MILLRACE_NOBODY for who only gets it.
   -MILLRACE_REASON_PROPERTY_CHANNEL where there is none that can be opened so [property.open]
   [property.find]. */
int32_t millrace_property_find(millrace_segment *segment, uint32_t channel, const char *name,
                               uint32_t writer, uint32_t *found);

/* Opens a property to set it, through the port of its writer: once. Not while another thread closes
   the port. -MILLRACE_REASON_PROPERTY_CHANNEL as millrace_property_find; a port over a stream is
   MILLRACE_INVALID. */
int32_t millrace_property_open_writer(millrace_property *property, millrace_port *port,
                                      uint32_t channel, const char *name);

/* Opens a property to get it, through a port of any endpoint. Otherwise as
   millrace_property_open_writer. */
int32_t millrace_property_open_reader(millrace_property *property, millrace_port *port,
                                      uint32_t channel, const char *name);

/* Returns the bytes of the largest value, at least its `capacity`; storage of so many takes any. 0
   where there is no such object. */
uint32_t millrace_property_value_size(millrace_property *property);

/* Sets a value. -MILLRACE_REASON_PROPERTY_SIZE where it is larger than
   millrace_property_value_size, and nothing is changed. MILLRACE_INVALID for
   MILLRACE_CODEC_JSON_BATCH, _VALUES, or a codec above 255 [property.codec]. Never waits; rings
   those who wait for a change. */
int32_t millrace_property_set(millrace_property *property, const void *value, size_t size,
                              uint32_t codec);

/* Takes the value back: there is none from now on. Otherwise as millrace_property_set. */
int32_t millrace_property_clear(millrace_property *property);

/* Copies the last value into the storage and describes it in `value`; MILLRACE_NOTHING where there
   is none, whose version `value` says as well. Never waits, and takes nothing away. What is wrong
   belongs to this call alone: -MILLRACE_REASON_MESSAGE_SIZE where the value is larger than the
   capacity, _PROPERTY_SLOT where its writer broke the layout, and _PROPERTY_BUSY where it was
   faster each time. Then the storage may hold anything, and `value` is all 0. */
int32_t millrace_property_get(millrace_property *property, void *storage, size_t capacity,
                              millrace_property_value *value);

/* Waits until there is a value other than the one that was got last, or none in its place; at first
   for any. -MILLRACE_REASON_PEER_CLOSED or _PEER_FAILED where the writer has gone and nothing has
   changed [property.gone]. */
int32_t millrace_property_wait(millrace_property *property, int32_t timeout_ms);

/* Gives the object up. One that sets is MILLRACE_INVALID until its port is closed, which those who
   wait are told through it [property.close]. */
int32_t millrace_property_leave(millrace_property *property);

#ifdef __cplusplus
}
#endif

#endif
