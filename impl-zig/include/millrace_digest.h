/*
 * Millrace: SHA-1 and SHA-256 of bytes that come in pieces and are read in place.
 *
 * SHA-1 is for transcripts and tests, not for security: anyone who wants to can make two texts with
 * the same SHA-1. A digest belongs to one thread at a time. If another thread writes to bytes while
 * they are read, each byte counts with its old or its new value.
 */
#ifndef MILLRACE_DIGEST_H
#define MILLRACE_DIGEST_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object like the others: see millrace.h. */
typedef struct millrace_digest millrace_digest;

/* The kinds of digests. Their results have 20 and 32 bytes. */
enum { MILLRACE_SHA1 = 1, MILLRACE_SHA256 = 2 };

/* Returns the bytes of storage for a millrace_digest: about 130. */
size_t millrace_digest_size(void);

/* Begins a digest of no bytes. MILLRACE_INVALID for an unknown kind. */
int32_t millrace_digest_begin(millrace_digest *digest, uint32_t kind);

/* Appends bytes to those given before. */
int32_t millrace_digest_update(millrace_digest *digest, const void *bytes, size_t size);

/* Writes the digest of all bytes so far. Changes nothing: more bytes can follow. MILLRACE_INVALID
   if the capacity is smaller than the result. */
int32_t millrace_digest_result(millrace_digest *digest, void *result, size_t capacity);

/* Gives up the object. */
int32_t millrace_digest_leave(millrace_digest *digest);

#ifdef __cplusplus
}
#endif

#endif
