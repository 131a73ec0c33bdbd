/*
 * Millrace: calls.
 *
 * Both sides of a port may call the other, and do so while they wait for one another: whoever waits
 * for an answer serves the calls that arrive, on the same stack, up to 128 deep [spec/call.md].
 * From millrace_calls_attach to millrace_calls_leave the port is read and written through its calls
 * alone: what reads or writes it otherwise, and millrace_port_leave, is MILLRACE_INVALID. A port
 * over a socket or pipes (millrace_stream.h) is given calls in the same way:
 *
 *   millrace_stream_open(stream, port, socket, socket, memory, memory_size, NULL);
 *   millrace_calls_attach(calls, port, allocate, NULL);
 *   millrace_serve(calls, serve, NULL);
 *   millrace_call(calls, "add", values, 2, 1000, NULL, &result);
 *   millrace_calls_leave(calls);
 *   millrace_stream_leave(stream);
 *
 * All calls of this header then do what they do over shared memory; millrace_calls_vacate alone is
 * refused. examples/call.c is a whole program, over a file or over a socket.
 *
 * A value is text, JSON, bytes as they are, or absent: JSON of no bytes, which stands for an
 * argument that is left out, and for no result. Lists have at most 255 values beside the name.
 *
 * How a call ends: MILLRACE_DONE with its result; MILLRACE_NOTHING where the time was over, which
 * its callee is told; -MILLRACE_REASON_CALL_THROWN where the method has failed, for which see
 * millrace_call_thrown; another -MILLRACE_REASON_CALL_... or _MESSAGE_... that says what is wrong
 * with the call, or its answer; -MILLRACE_REASON_CALL_ENDED where the peer has ended its stream, or
 * what ends a port; -MILLRACE_REASON_WAIT_ABORTED where its token was cancelled;
 * MILLRACE_NO_RESOURCES without memory.
 */
#ifndef MILLRACE_CALL_H
#define MILLRACE_CALL_H

#include "millrace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Objects as the others are. */
typedef struct millrace_calls millrace_calls;
typedef struct millrace_token millrace_token;

/* One value of a list. */
typedef struct millrace_value {
  const void *payload; /* may be NULL where the size is 0 */
  size_t size;
  uint32_t codec; /* MILLRACE_CODEC_BYTES, _TEXT, _JSON, or one of the application's */
} millrace_value;

/* The error of a method. */
typedef struct millrace_failure {
  const void *name; /* text, without a zero after it, and so is the next */
  size_t name_size;
  const void *text;
  size_t text_size;
  const void *data; /* a value, where has_data is 1 */
  size_t data_size;
  uint32_t data_codec;
  uint32_t has_data;
} millrace_failure;

/* Where `memory` is NULL, gives so many bytes at a multiple of 16, as malloc does on systems of 64
   bits, or NULL where there are none. Else `memory` is what this has returned, and the size 0: it
   is given back, and what is then returned does not matter. */
typedef void *(*millrace_allocate)(void *context, void *memory, size_t size);

/* Serves one call or notice. Name and values are valid until it is answered. `serving` is its
   number, by which it is answered: before this returns, or later, where millrace_serve_later was
   said. Returns MILLRACE_DONE, or a negated reason code with which the call fails, such as
   -MILLRACE_REASON_CALL_METHOD for a name that is not served, or _CALL_ARGUMENTS; _CALL_THROWN
   fails it with the error that millrace_call_thrown gives, name, text and data. One that was not
   answered by then has no result. It may make calls itself. */
typedef int32_t (*millrace_handler)(void *context, millrace_calls *calls, size_t serving,
                                    const void *name, size_t name_size,
                                    const millrace_value *values, size_t count);

/* Takes one item, which is valid until it returns. 0 gives the call up. */
typedef int32_t (*millrace_on_item)(void *context, const millrace_value *item);

/* Bytes of storage for a millrace_calls: about 600. */
size_t millrace_calls_size(void);

/* Gives a port calls. MILLRACE_INVALID where it has some, was attached to write or to read alone,
   or where something is claimed, lent, in its inbox, or read in part. */
int32_t millrace_calls_attach(millrace_calls *calls, millrace_port *port,
                              millrace_allocate allocate, void *context);

/* The largest message that is taken (1 MiB at first); how many bytes are kept of messages that
   nobody has read or begun yet (64 KiB), beside one that always is [call.takes_in]; and how many of
   calls that are being served (64 MiB), beyond which they are refused. */
int32_t millrace_calls_set_limits(millrace_calls *calls, size_t message_size, size_t inbox_size,
                                  size_t serving_size);

/* Ends all calls and gives the object up, and all memory; the port stays. MILLRACE_INVALID from
   within a handler, while a frame is lent, and before the tokens that were made for it are left. */
int32_t millrace_calls_leave(millrace_calls *calls);

/* Serves the calls that come, and copies the next plain message into the storage, as
   millrace_port_read. What is wrong with a call or a notice that cannot be told its caller is a
   status, once, and the next read goes on. */
int32_t millrace_calls_read(millrace_calls *calls, void *storage, size_t capacity,
                            int32_t timeout_ms, millrace_message *message);

/* Serves the calls that come, and lends the next frame of a plain message where it lies, as
   millrace_port_peek; calls are never lent. Until millrace_calls_release nothing is served, and
   what reads, calls, or waits for an answer is MILLRACE_INVALID; so it is after a frame that is
   not the last of its message, except for the next peek [call.whole_first]. MILLRACE_INVALID from
   within a handler. */
int32_t millrace_calls_peek(millrace_calls *calls, int32_t timeout_ms, millrace_message *message);

/* Gives the lent frame back. MILLRACE_INVALID where none is lent. */
int32_t millrace_calls_release(millrace_calls *calls);

/* Writes a plain message, as millrace_port_write, after the answers that have no room yet. */
int32_t millrace_calls_write(millrace_calls *calls, const void *payload, size_t size,
                             uint32_t codec, uint32_t tag, int32_t timeout_ms);

/* Ends the outgoing stream, as millrace_port_end, after the answers that have no room yet: it
   waits for that. From then on nobody is called, and what is served is told [call.told]. */
int32_t millrace_calls_end(millrace_calls *calls, int32_t timeout_ms);

/* As millrace_port_vacate; the next owner of the endpoint meets no call [call.vacated]. */
int32_t millrace_calls_vacate(millrace_calls *calls);

/* Calls a method of the peer, and waits for its result; serves meanwhile [call.serve_waiting]. The
   name has 1 to 255 bytes of UTF-8; what cannot be written is -MILLRACE_REASON_CALL_ARGUMENTS. The
   result is valid until another call through the same object has one, or an item. `token`, which
   may be NULL, was made for the same object, and gives the call up when it is cancelled
   [call.give_up]. */
int32_t millrace_call(millrace_calls *calls, const char *name, const millrace_value *values,
                      size_t count, int32_t timeout_ms, millrace_token *token,
                      millrace_value *result);

/* Makes a call and does not wait for its answer, which every other wait and read of this object
   takes in. `begun` becomes its number, by which it is finished or given up. Time and token are for
   writing it. */
int32_t millrace_call_begin(millrace_calls *calls, const char *name, const millrace_value *values,
                            size_t count, int32_t timeout_ms, millrace_token *token,
                            size_t *begun);

/* The same where the result comes in pieces: millrace_call_next gives them, and then
   millrace_call_finish the result. A caller that takes none lets its callee wait after 16
   [call.window]. */
int32_t millrace_call_begin_items(millrace_calls *calls, const char *name,
                                  const millrace_value *values, size_t count, int32_t timeout_ms,
                                  millrace_token *token, size_t *begun);

/* Waits for the next piece of a call that was begun so, and serves meanwhile. The item is valid
   until another call through the same object has a result or an item. MILLRACE_NOTHING where there
   is none yet; MILLRACE_END after the last, when millrace_call_finish has the result at once: both
   end nothing. All else is as with that. */
int32_t millrace_call_next(millrace_calls *calls, size_t begun, int32_t timeout_ms,
                           millrace_token *token, millrace_value *item);

/* Waits for the result of a call that was begun, and serves meanwhile. MILLRACE_NOTHING where there
   is none yet, which ends nothing: ask again. Neither do -MILLRACE_REASON_WAIT_FORBIDDEN and
   MILLRACE_NO_RESOURCES. After anything else the call has ended, as millrace_call says, and its
   number means nothing any more. MILLRACE_INVALID where no call that is under way, or that was not
   finished, has the number, and where it is waited for already. */
int32_t millrace_call_finish(millrace_calls *calls, size_t begun, int32_t timeout_ms,
                             millrace_token *token, millrace_value *result);

/* Gives a call up that was begun: its callee is told, and its number means nothing any more. A
   finish that waits for it, under the handler that gives it up, ends with
   -MILLRACE_REASON_WAIT_ABORTED. Never waits. */
int32_t millrace_call_give_up(millrace_calls *calls, size_t begun);

/* As millrace_call, where the result comes in pieces, each of which `on_item` takes; the time is
   that for one item. MILLRACE_NOTHING also where `on_item` has given the call up. */
int32_t millrace_call_items(millrace_calls *calls, const char *name, const millrace_value *values,
                            size_t count, int32_t timeout_ms, millrace_token *token,
                            millrace_on_item on_item, void *context, millrace_value *result);

/* Sends a notice: a call that nobody answers. */
int32_t millrace_call_notify(millrace_calls *calls, const char *name, const millrace_value *values,
                             size_t count, int32_t timeout_ms, millrace_token *token);

/* Fills in the error of the last call that a throw has ended, valid until the next one;
   MILLRACE_NOTHING where there is none. */
int32_t millrace_call_thrown(millrace_calls *calls, millrace_failure *failure);

/* Says what serves calls: `handler`, or, for NULL and at first, nothing, so that each is refused.
   */
int32_t millrace_serve(millrace_calls *calls, millrace_handler handler, void *context);

/* Answers with a result; NULL for none. Never waits. One that cannot be written becomes a throw of
   call.result. MILLRACE_INVALID where no call of that number waits for an answer, and so for the
   calls below. */
int32_t millrace_serve_return(millrace_calls *calls, size_t serving, const millrace_value *value);

/* Answers with an error: name, text and data, each of which may be NULL. Never waits. */
int32_t millrace_serve_throw(millrace_calls *calls, size_t serving, const char *name,
                             const char *text, const millrace_value *data);

/* Sends a piece of the result; waits until the caller has taken enough of those before, and serves
   meanwhile [call.window]. -MILLRACE_REASON_CALL_CANCELLED where the caller has given up, or it was
   answered meanwhile. */
int32_t millrace_serve_item(millrace_calls *calls, size_t serving, const millrace_value *value,
                            int32_t timeout_ms);

/* Says, in the handler, that the call is answered later. When its caller gives it up, it is
   answered by itself. */
int32_t millrace_serve_later(millrace_calls *calls, size_t serving);

/* MILLRACE_DONE where the caller has given the call up, or the port is lost or closed, perhaps by
   another thread [call.cancelled] [call.told]; else MILLRACE_NOTHING. One that was to be answered
   later is answered then, and known no more. */
int32_t millrace_serve_cancelled(millrace_calls *calls, size_t serving);

/* Makes the token of a call that is served: it is cancelled when millrace_serve_cancelled says so.
   A method gives it to the calls that it makes itself, so that they are given up as well, and to
   the threads that work for it, which ask it. A handler that returns
   -MILLRACE_REASON_WAIT_ABORTED answers with call.cancelled then. After the answer the token says
   no more; it is the caller's until it is left. */
int32_t millrace_serve_token(millrace_calls *calls, size_t serving, millrace_token *token);

/* Bytes of storage for a millrace_token: about 50. */
size_t millrace_token_size(void);

/* Makes a token, which is not cancelled, for calls through this object. */
int32_t millrace_token_create(millrace_token *token, millrace_calls *calls);

/* Ends the calls that were given this token, and wakes their thread; later ones end at once. Again,
   it does nothing. Any thread. */
int32_t millrace_token_cancel(millrace_token *token);

/* MILLRACE_DONE where it was cancelled; else MILLRACE_NOTHING. Any thread. */
int32_t millrace_token_cancelled(millrace_token *token);

/* Gives the object up, on the thread of its calls and before them. */
int32_t millrace_token_leave(millrace_token *token);

#ifdef __cplusplus
}
#endif

#endif
