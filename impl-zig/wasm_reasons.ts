// Generated from spec/layout.json by tools/generate.ts; do not edit.

/**
 * What the statuses of `millrace.wasm` below 0 mean.
 *
 * @module
 */

/** The name of every reason code, by its number. */
export const REASON_NAMES: Readonly<Record<number, string>> = Object.freeze({
  1: "segment.size",
  2: "segment.unready",
  3: "segment.magic",
  4: "segment.version",
  5: "segment.feature",
  6: "segment.table",
  7: "segment.channel",
  8: "segment.geometry",
  9: "segment.endpoint",
  10: "segment.state",
  11: "segment.file",
  12: "segment.missing",
  16: "ring.cursor",
  32: "frame.kind",
  33: "frame.flags",
  34: "frame.reserved",
  35: "frame.size",
  36: "frame.pad",
  37: "frame.sequence",
  38: "frame.total",
  39: "frame.extension",
  40: "mailbox.size",
  41: "mailbox.signal",
  42: "mailbox.length",
  43: "mailbox.part",
  48: "message.cancelled",
  49: "message.truncated",
  50: "message.size",
  51: "message.kind",
  52: "message.codec",
  53: "message.text",
  54: "message.json",
  64: "peer.closed",
  65: "peer.failed",
  66: "peer.terminated",
  67: "peer.lost",
  80: "pipe.closed",
  81: "pipe.failed",
  82: "pipe.ended",
  96: "wait.timeout",
  97: "wait.aborted",
  98: "wait.forbidden",
});
