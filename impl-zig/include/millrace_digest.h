/*
 * Millrace: SHA-1 and SHA-256 of bytes that come bit by bit and are read where they lie.
 *
 * SHA-1 is for transcripts and tests, not for security: whoever wants to can make two texts with
 * the same SHA-1. A digest belongs to one thread at a time. What another thread writes into the
 * bytes while they are read is in the digest or not, byte for byte.
 */
#ifndef MILLRACE_DIGEST_H
#define MILLRACE_DIGEST_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An object as the others are. */
typedef struct millrace_digest millrace_digest;

/* Which digest: its result has 20 bytes, or 32. */
enum { MILLRACE_SHA1 = 1, MILLRACE_SHA256 = 2 };

/* Bytes of storage for a millrace_digest: about 130. */
size_t millrace_digest_size(void);

/* Begins a digest of nothing. MILLRACE_INVALID for a kind that there is not. */
int32_t millrace_digest_begin(millrace_digest *digest, uint32_t kind);

/* Takes the bytes in, as if they stood behind all that were given before. */
int32_t millrace_digest_update(millrace_digest *digest, const void *bytes, size_t size);

/* Writes the digest of all bytes so far. It changes nothing: more bytes can follow.
   MILLRACE_INVALID where there is less room than the result has bytes. */
int32_t millrace_digest_result(millrace_digest *digest, void *result, size_t capacity);

/* Gives up the object. */
int32_t millrace_digest_leave(millrace_digest *digest);

#ifdef __cplusplus
}
#endif

#endif
