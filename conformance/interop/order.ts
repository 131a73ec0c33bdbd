// What the interop test tells its workers, and what they answer.

/** Which program runs in the worker. */
export type Language = "typescript" | "zig";

/**
 * What it does: `write` and `read` one way; `echo` writes everything back, and `drive` writes and
 * takes the echo.
 */
export type Role = "write" | "read" | "echo" | "drive";

export interface Order {
  readonly role: Role;
  /** The shared memory, and where in it the formatted segment lies. */
  readonly memory: WebAssembly.Memory;
  readonly offset: number;
  readonly size: number;
  readonly endpoint: 0 | 1;
  /** Capacity of both rings, from which the sizes of the workload follow. */
  readonly capacity: number;
  readonly seed: number;
  readonly count: number;
  /** Microseconds to spin; 0 makes every wait a sleep. */
  readonly spin: number;
  /** Bounds each call. */
  readonly timeout: number;
  /** The Zig program; for Zig's workers only. */
  readonly module?: WebAssembly.Module;
}

/** `fault` is empty where everything was as the seed says. */
export interface Answer {
  readonly fault: string;
  readonly parks: number;
}
