/*
 * Two processes that call one another: a service that adds, counts and greets, and a client that
 * asks it, and is asked back.
 *
 *   call service PATH           serves until the client ends
 *   call client PATH COUNT      makes COUNT calls, measures them, and then tries the rest
 *
 * PATH is that of a file through which both share memory, or, with `unix:` before it, of a socket:
 * how they come to a port differs, and what they do with it is the same. Either may start first.
 * Build it from the folder of build.zig, after `zig build lib`:
 *   cc -Izig-out/include impl-zig/examples/call.c zig-out/lib/libmillrace.a -o call
 */
#define _POSIX_C_SOURCE 200112L
#include <millrace_call.h>
#include <millrace_stream.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SERVICE = 0, CLIENT = 1, PATIENCE_MS = 10000 };

/* Memory for calls: as much as they need, given back when they end. */
static void *allocate(void *context, void *memory, size_t size) {
  (void)context;
  if (memory == NULL) return malloc(size);
  free(memory);
  return NULL;
}

static millrace_value json(const char *text) {
  millrace_value value = {NULL, 0, MILLRACE_CODEC_JSON};
  value.payload = text;
  value.size = strlen(text);
  return value;
}

static millrace_value text(const char *words) {
  millrace_value value = json(words);
  value.codec = MILLRACE_CODEC_TEXT;
  return value;
}

/* An integer that came as JSON; what it is not, is 0. */
static long number(const millrace_value *value) {
  char digits[24] = {0};
  if (value->codec != MILLRACE_CODEC_JSON || value->size >= sizeof digits) return 0;
  memcpy(digits, value->payload, value->size);
  return strtol(digits, NULL, 10);
}

static int is(const char *known, const void *name, size_t size) {
  return strlen(known) == size && memcmp(known, name, size) == 0;
}

/* What the service serves. */
static int32_t serve(void *context, millrace_calls *calls, size_t serving, const void *name,
                     size_t name_size, const millrace_value *values, size_t count) {
  char answer[96];
  millrace_value result;
  (void)context;
  if (is("add", name, name_size)) {
    if (count != 2) return -MILLRACE_REASON_CALL_ARGUMENTS;
    snprintf(answer, sizeof answer, "%ld", number(&values[0]) + number(&values[1]));
    result = json(answer);
  } else if (is("count", name, name_size)) { /* a result in pieces */
    long i, most = count == 1 ? number(&values[0]) : 0;
    for (i = 0; i < most; i++) {
      int32_t status;
      snprintf(answer, sizeof answer, "%ld", i);
      result = json(answer);
      status = millrace_serve_item(calls, serving, &result, PATIENCE_MS);
      if (status != MILLRACE_DONE) return status;
    }
    return MILLRACE_DONE;
  } else if (is("greet", name, name_size)) { /* asks its caller back, who waits for this answer */
    int32_t status = millrace_call(calls, "name", NULL, 0, PATIENCE_MS, NULL, &result);
    if (status != MILLRACE_DONE) return status;
    snprintf(answer, sizeof answer, "Hello, %.*s!", (int)result.size, (const char *)result.payload);
    result = text(answer);
  } else if (is("fail", name, name_size)) {
    millrace_serve_throw(calls, serving, "Oops", "It broke.", NULL);
    return MILLRACE_DONE;
  } else {
    return -MILLRACE_REASON_CALL_METHOD;
  }
  return millrace_serve_return(calls, serving, &result);
}

/* What the client serves. */
static int32_t serve_name(void *context, millrace_calls *calls, size_t serving, const void *name,
                          size_t name_size, const millrace_value *values, size_t count) {
  const millrace_value own = text(context);
  (void)values;
  (void)count;
  if (!is("name", name, name_size)) return -MILLRACE_REASON_CALL_METHOD;
  return millrace_serve_return(calls, serving, &own);
}

static int32_t add_up(void *context, const millrace_value *item) {
  *(long *)context += number(item);
  return 1;
}

static int failed(const char *what, int32_t status) {
  fprintf(stderr, "Cannot %s: %s\n", what, millrace_status_text(status));
  return 1;
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int ask(millrace_calls *calls, long count) {
  millrace_value both[2], hundred = json("100"), result;
  millrace_failure failure;
  double begin = 0;
  long i, sum = 0;
  int32_t status;
  for (i = 0; i < count; i++) {
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", i);
    both[0] = json(digits);
    both[1] = json("1");
    status = millrace_call(calls, "add", both, 2, PATIENCE_MS, NULL, &result);
    if (status != MILLRACE_DONE) return failed("add", status);
    if (number(&result) != i + 1) return failed("add up", MILLRACE_INVALID);
    if (i == 0) begin = now_us();
  }
  if (count > 1) printf("%.2f us for a call\n", (now_us() - begin) / (double)(count - 1));
  status = millrace_call_items(calls, "count", &hundred, 1, PATIENCE_MS, NULL, add_up, &sum,
                               &result);
  if (status != MILLRACE_DONE) return failed("count", status);
  printf("0 to 99 are %ld\n", sum);
  status = millrace_call(calls, "greet", NULL, 0, PATIENCE_MS, NULL, &result);
  if (status != MILLRACE_DONE) return failed("greet", status);
  printf("%.*s\n", (int)result.size, (const char *)result.payload);
  status = millrace_call(calls, "fail", NULL, 0, PATIENCE_MS, NULL, &result);
  if (status != -MILLRACE_REASON_CALL_THROWN) return failed("fail", status);
  millrace_call_thrown(calls, &failure);
  printf("%.*s: %.*s\n", (int)failure.name_size, (const char *)failure.name,
         (int)failure.text_size, (const char *)failure.text);
  status = millrace_call(calls, "nothing", NULL, 0, PATIENCE_MS, NULL, &result);
  printf("%s\n", millrace_status_text(status));
  return 0;
}

/* A port, and what it stands on: a segment, or a stream and its memory. */
struct end {
  millrace_port *port;
  millrace_segment *segment;
  millrace_stream *stream;
  void *memory;
};

/* Connects to a socket that the service makes, or makes it and takes the first who comes; -1 where
   that fails. */
static int join(const char *path, int is_client) {
  const struct timespec pause = {0, 10000000};
  struct sockaddr_un address = {0};
  int i, joined = -1, own = socket(AF_UNIX, SOCK_STREAM, 0);
  if (own < 0 || strlen(path) >= sizeof address.sun_path) return -1;
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path);
  if (is_client) {
    for (i = 0; i < PATIENCE_MS / 10; i++) {
      if (connect(own, (struct sockaddr *)&address, sizeof address) == 0) return own;
      nanosleep(&pause, NULL);
    }
  } else if (bind(own, (struct sockaddr *)&address, sizeof address) == 0) {
    if (listen(own, 1) == 0) joined = accept(own, NULL, NULL);
    unlink(path);
  }
  close(own);
  return joined;
}

static int32_t open_end(struct end *end, const char *path, int is_client) {
  const millrace_channel channels[2] = {{0, 1, 65536, 0, 0, 0, NULL}, {1, 0, 65536, 0, 0, 0, NULL}};
  uint32_t side = is_client ? CLIENT : SERVICE;
  end->port = malloc(millrace_port_size());
  if (strncmp(path, "unix:", 5) == 0) {
    size_t size = millrace_stream_memory_size(NULL);
    int descriptor = join(path + 5, is_client);
    if (descriptor < 0) return MILLRACE_NOT_FOUND;
    end->stream = malloc(millrace_stream_size());
    if (posix_memalign(&end->memory, 128, size) != 0) return MILLRACE_NO_RESOURCES;
    return millrace_stream_open(end->stream, end->port, descriptor, descriptor, end->memory, size,
                                NULL);
  } else {
    int32_t status;
    end->segment = malloc(millrace_segment_size());
    status = millrace_segment_create_file(end->segment, path, 2, channels, 2, side, 1000);
    return status == MILLRACE_DONE ? millrace_port_attach(end->port, end->segment, side) : status;
  }
}

static void leave_end(struct end *end) {
  if (end->stream != NULL) {
    millrace_stream_leave(end->stream);
  } else {
    millrace_port_leave(end->port);
    millrace_segment_leave(end->segment);
  }
  free(end->memory);
  free(end->stream);
  free(end->segment);
  free(end->port);
}

int main(int argc, char **argv) {
  int is_client = argc == 4 && strcmp(argv[1], "client") == 0;
  millrace_calls *calls = malloc(millrace_calls_size());
  struct end end = {NULL, NULL, NULL, NULL};
  millrace_message message;
  int32_t status;
  int code = 0;
  if (!is_client && (argc != 3 || strcmp(argv[1], "service") != 0)) {
    fprintf(stderr, "Usage: call service PATH | call client PATH COUNT\n");
    return 2;
  }
  status = open_end(&end, argv[2], is_client);
  if (status == MILLRACE_DONE) status = millrace_calls_attach(calls, end.port, allocate, NULL);
  if (status != MILLRACE_DONE) return failed("begin", status);

  if (is_client) {
    millrace_serve(calls, serve_name, "the client");
    code = ask(calls, strtol(argv[3], NULL, 10));
    millrace_calls_end(calls, PATIENCE_MS);
  } else {
    millrace_serve(calls, serve, NULL);
  }
  /* Serves until the peer has ended its stream. */
  do
    status = millrace_calls_read(calls, NULL, 0, PATIENCE_MS, &message);
  while (status == MILLRACE_DONE);
  if (status != MILLRACE_END) code = failed("serve", status);
  if (!is_client) millrace_calls_end(calls, PATIENCE_MS);

  millrace_calls_leave(calls);
  leave_end(&end);
  free(calls);
  return code;
}
