/*
 * Two processes that exchange messages over a file: one echoes, the other asks and measures.
 *
 *   echo server PATH [SPIN_US]           echoes until the client ends
 *   echo client PATH COUNT [SPIN_US]     sends COUNT messages and checks what comes back
 *
 * Either may start first. SPIN_US is how long a call looks again and again before it sleeps; 0
 * makes it sleep at once.
 *
 * Build it from the folder of build.zig, after `zig build lib`, with any compiler:
 *   cc -Izig-out/include impl-zig/examples/echo.c zig-out/lib/libmillrace.a -o echo
 */
#define _POSIX_C_SOURCE 199309L
#include <millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SERVER = 0, CLIENT = 1, SIZE_MAX_READ = 4096, PATIENCE_MS = 10000 };

/* Says what went wrong, and why where somebody said so. Returns the exit code. */
static int failed(const char *what, int32_t status, millrace_port *port) {
  uint32_t reason = millrace_port_reason(port);
  fprintf(stderr, "Cannot %s: %s", what, millrace_status_text(status));
  if (reason != 0) fprintf(stderr, " (%s)", millrace_reason_name(reason));
  fprintf(stderr, "\n");
  return 1;
}

/* Sends back whatever comes, of any kind, codec and tag, until the client ends its stream. */
static int serve(millrace_port *port) {
  char storage[SIZE_MAX_READ];
  millrace_message message;
  millrace_port_set_calls(port, 1);
  for (;;) {
    int32_t status = millrace_port_read(port, storage, sizeof storage, -1, &message);
    if (status == MILLRACE_END) break;
    if (status != MILLRACE_DONE) return failed("read", status, port);
    status = millrace_port_write_kind(port, message.kind, message.payload, message.size,
                                      message.codec, message.tag, PATIENCE_MS);
    if (status != MILLRACE_DONE) return failed("write", status, port);
  }
  millrace_port_end(port);
  puts("served");
  return 0;
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int ask(millrace_port *port, uint32_t count) {
  char storage[SIZE_MAX_READ];
  char question[64];
  millrace_message message;
  double begin = 0;
  uint32_t index;
  for (index = 0; index < count; index++) {
    size_t size = (size_t)snprintf(question, sizeof question, "{\"question\":%u}", index);
    int32_t status = millrace_port_write(port, question, size, MILLRACE_CODEC_JSON, index,
                                         PATIENCE_MS);
    if (status != MILLRACE_DONE) return failed("write", status, port);
    status = millrace_port_read(port, storage, sizeof storage, PATIENCE_MS, &message);
    if (status != MILLRACE_DONE) return failed("read", status, port);
    if (message.tag != index || message.size != size || message.codec != MILLRACE_CODEC_JSON ||
        memcmp(message.payload, question, size) != 0) {
      fprintf(stderr, "Answer %u is not the question\n", index);
      return 1;
    }
    if (index == 0) { /* which may have waited for the server to start */
      puts("connected");
      fflush(stdout);
      begin = now_us();
    }
  }
  if (count > 1) printf("%.2f us there and back\n", (now_us() - begin) / (count - 1));
  millrace_port_end(port);
  /* Who closes takes back what was not read: wait until the server has read the end. */
  return millrace_port_read(port, storage, sizeof storage, PATIENCE_MS, &message) == MILLRACE_END
             ? 0
             : 1;
}

int main(int argc, char **argv) {
  const millrace_channel channels[2] = {{0, 1, 65536, 0, 0, 0, NULL}, {1, 0, 65536, 0, 0, 0, NULL}};
  int is_client = argc > 1 && strcmp(argv[1], "client") == 0;
  int spin_at = is_client ? 4 : 3;
  uint32_t side = is_client ? CLIENT : SERVER;
  millrace_segment *segment;
  millrace_port *port;
  int32_t status;
  int code;
  if (argc < spin_at || (!is_client && strcmp(argv[1], "server") != 0)) {
    fprintf(stderr, "Usage: echo server PATH [SPIN_US] | echo client PATH COUNT [SPIN_US]\n");
    return 2;
  }
  segment = malloc(millrace_segment_size());
  port = malloc(millrace_port_size());
  if (segment == NULL || port == NULL) return 1;

  status = millrace_segment_create_file(segment, argv[2], 2, channels, 2, side, 1000);
  if (status != MILLRACE_DONE) {
    fprintf(stderr, "Cannot use %s: %s\n", argv[2], millrace_status_text(status));
    return 1;
  }
  status = millrace_port_attach(port, segment, side);
  if (status != MILLRACE_DONE) return failed("attach", status, port);
  if (argc > spin_at) millrace_port_set_spin(port, (uint32_t)strtoul(argv[spin_at], NULL, 10));

  code = is_client ? ask(port, (uint32_t)strtoul(argv[3], NULL, 10)) : serve(port);

  millrace_port_leave(port);
  millrace_segment_leave(segment);
  free(port);
  free(segment);
  return code;
}
