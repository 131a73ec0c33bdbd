/**
 * What machine this is, and how busy others keep it.
 *
 * @module
 */

/** A machine, and what else went on in it. */
export interface Machine {
  /** Equal for two runs only on one machine. */
  readonly id: string;
  readonly processor: string;
  readonly processors: number;
  readonly memory_gb: number;
  readonly system: string;
  /** Load averages over one minute, before and after the run. */
  readonly load: readonly number[];
  /** Before the run: per cent of all processors that other programs used. */
  readonly busy_percent: number;
  /** During the run: per cent of its time that the processors were taken away by the host. */
  readonly steal_percent: number;
}

/** Processor time since the machine started, in ticks. */
interface Ticks {
  readonly busy: number;
  readonly steal: number;
  readonly all: number;
}

const LOOK_MS = 500;
/** Looks at the machine during a run. */
export class MachineWatch {
  readonly #ticks = readTicks();
  readonly #load = Deno.loadavg()[0] as number;
  #busy = 0;

  /** Looks for a moment how busy others are; nothing of ours must run meanwhile. */
  static async start(): Promise<MachineWatch> {
    const before = readTicks();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const watch = new MachineWatch();
    const after = watch.#ticks;
    watch.#busy = percent(after.busy - before.busy, after.all - before.all);
    return watch;
  }

  /** The machine as it was up to now. */
  async describe(): Promise<Machine> {
    const after = readTicks();
    const cpu = read("/proc/cpuinfo");
    const processor = /^model name\s*:\s*(.+)$/m.exec(cpu)?.[1] ?? Deno.build.arch;
    const gb = Math.round(Deno.systemMemoryInfo().total / 2 ** 30);
    const own = {
      processor,
      processors: navigator.hardwareConcurrency,
      memory_gb: gb,
      system: `${Deno.build.os} ${Deno.osRelease()}`,
    };
    const text = `${JSON.stringify(own)} ${read("/etc/machine-id")}`;
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    const id = [...new Uint8Array(digest)].slice(0, 8)
      .map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return {
      id,
      ...own,
      load: [this.#load, Deno.loadavg()[0] as number].map((load) => Number(load.toFixed(2))),
      busy_percent: this.#busy,
      steal_percent: percent(after.steal - this.#ticks.steal, after.all - this.#ticks.all),
    };
  }
}

function percent(part: number, whole: number): number {
  return whole <= 0 ? 0 : Number((100 * part / whole).toFixed(1));
}

function readTicks(): Ticks {
  const line = /^cpu\s+(.+)$/m.exec(read("/proc/stat"))?.[1] ?? "0 0 0 1 0 0 0 0";
  const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0] = line
    .split(" ").map(Number);
  const busy = user + nice + system + irq + soft;
  return { busy, steal, all: busy + idle + wait + steal };
}

function read(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
