/**
 * What is changed in the sources before they are bundled. Lines stay where they are.
 *
 * @module
 */
import type { Plugin } from "esbuild";
import { ENTRIES } from "./build_entries.ts";

/**
 * The functions, methods and getters that every port calls until its first answer is there, or when
 * it waits and spins first, and those that the drop-in calls, by module: V8 compiles them with the
 * module, where it otherwise reads them twice, and compiles each when it is called first. That
 * takes 10 to 20 µs of each. And what was compiled with its module is in the code cache of Deno,
 * which has nothing of what was compiled later (measured: V8 13, 15).
 *
 * No function that a constant of a module is made by, as it is then called before it is there.
 */
export const EARLY: Readonly<Record<string, readonly string[]>> = {
  "call/callee.ts": [
    "Callee.answer",
    "Callee.begin",
    "Callee.conclude",
    "Callee.encode",
    "Callee.enter",
    "Callee.hand",
    "Callee.leave",
    "Callee.leaveInbox",
    "Callee.run",
    "Callee.send",
    "Callee.take",
    "Callee.writeAnswer",
  ],
  "call/caller.ts": [
    "Caller.answer",
    "Caller.call",
    "Caller.free",
    "Caller.match",
    "Caller.read",
    "Caller.write",
    "OwnCall.succeed",
    "nextAfter",
    "requireName",
  ],
  "call/context.ts": ["callContext", "runWith"],
  "call/layer.ts": [
    "CallLayer.begin",
    "CallLayer.block",
    "CallLayer.defer",
    "CallLayer.get isActive",
    "CallLayer.get isDue",
    "CallLayer.get keeps",
    "CallLayer.get waitingCount",
    "CallLayer.get waitingSize",
    "CallLayer.glance",
    "CallLayer.hasMore",
    "CallLayer.hold",
    "CallLayer.letGo",
    "CallLayer.mayBegin",
    "CallLayer.noteLeft",
    "CallLayer.pump",
    "CallLayer.requireBlocking",
    "CallLayer.requireOpen",
    "CallLayer.serve",
    "CallLayer.sort",
    "CallLayer.takeIn",
    "CallLayer.takeNext",
    "CallLayer.takeOne",
    "isAnswer",
    "isOfCalls",
    "requireAnswer",
  ],
  "call/remote.ts": [
    "attend",
    "begin",
    "callLater",
    "callNow",
    "makeFar",
    "makeRemote",
    "valueOf",
  ],
  "call/serve.ts": ["addMethods", "isMethod", "isOfRuntime", "isPlain", "methodsOf"],
  "call/served.ts": ["isInPieces", "isLater"],
  "call/shown.ts": ["takeShown"],
  "call/values.ts": [
    "ValueList.get hasName",
    "ValueList.isText",
    "decodeValue",
    "encodeValues",
    "isTextAt",
    "pieceOf",
    "shortInteger",
    "shortText",
    "sizesOf",
    "word",
    "writePieces",
    "writeText",
  ],
  "call/wire.ts": [
    "CallWire.encode",
    "CallWire.forget",
    "CallWire.get isFree",
    "CallWire.get isStuck",
    "CallWire.send",
  ],
  "codec/codec.ts": [
    "codecTable",
    "copyOut",
    "decodeJson",
    "decodeText",
    "encode",
    "encodeText",
    "firstOf",
    "isWellFormed",
    "makeScratch",
    "requireCodec",
    "takeBytes",
    "takeCopy",
    "textEncoder",
  ],
  "compat/sab_inbox.ts": ["Inbox.read"],
  "compat/sab_outbox.ts": ["Outbox.post", "Outbox.write", "makeBatch", "settle"],
  "compat/sab_pipe.ts": [
    "SABPipe.isDisposed",
    "SABPipe.postMessage",
    "SABPipe.read",
    "requireWire",
    "toSharedMemory",
  ],
  "compat/sab_port.ts": [
    "SABMessagePort.postMessage",
    "SABMessagePort.read",
    "makeInit",
    "requireInit",
  ],
  "compat/sab_queue.ts": ["requireQueueLimit"],
  "compat/sab_wire.ts": ["openSegment", "ringCapacity", "ringGeometry"],
  "compat/sab_wire_ring.ts": [
    "RingReaderWire.tryTake",
    "RingWriterWire.begin",
    "RingWriterWire.carryOn",
    "isRingEndGone",
  ],
  "error.ts": ["assert"],
  "memory/clock.ts": ["findClock"],
  "memory/segment.ts": [
    "isPast",
    "isShared",
    "readyOf",
    "requireTimeout",
    "sharedMemory",
    "sleepBlind",
    "sleepOn",
    "toRegion",
    "wordsOf",
  ],
  "memory/segment_geometry.ts": [
    "areCounts",
    "isCapacity",
    "isIndex",
    "isRing",
    "peersOf",
    "place",
    "readPlan",
    "recordOffset",
    "requireInteger",
    "tablesEnd",
    "tryAddArea",
    "writePlan",
  ],
  "pipe/inbox.ts": ["Inbox.takeOne"],
  "pipe/inlet.ts": [
    "Inlet.#decode",
    "Inlet.get ended",
    "Inlet.get need",
    "Inlet.glance",
    "Inlet.look",
    "Inlet.lookAgain",
    "Inlet.note",
    "Inlet.pull",
    "Inlet.release",
    "Inlet.take",
    "doublesOf",
  ],
  "pipe/outlet.ts": [
    "Outlet.#copy",
    "Outlet.#put",
    "Outlet.check",
    "Outlet.encode",
    "Outlet.get isAnswerDue",
    "Outlet.prepareForAnswer",
    "Outlet.restore",
    "Outlet.send",
    "Outlet.start",
  ],
  "pipe/pipe.ts": [
    "deadlineOf",
    "deadlineOfCall",
    "findRing",
    "requireReaderOptions",
    "requireWait",
    "requireWriterOptions",
  ],
  "pipe/reader.ts": [
    "Reader.#block",
    "Reader.#glance",
    "Reader.#read",
    "Reader.#takeLast",
    "Reader.#try",
    "Reader.get ended",
    "Reader.read",
  ],
  "pipe/writer.ts": [
    "Writer.#begin",
    "Writer.write",
  ],
  "port/delivery.ts": ["requireDeliveryOptions"],
  "port/handoff.ts": ["isHandoff", "makeHandoff"],
  "port/options.ts": ["endpointOf", "findRings", "portGeometry", "requirePortOptions"],
  "port/outbox.ts": ["requireName", "requirePostingOptions"],
  "port/port.ts": ["Port.read", "Port.write"],
  "ring/frame.ts": ["FrameReader.check", "extentOf", "writeHeader"],
  "ring/ring.ts": [
    "Lane.#storeWants",
    "Lane.arm",
    "Lane.disarm",
    "Lane.get hasMoved",
    "Lane.load",
    "Lane.lookAround",
    "Lane.store",
  ],
  "wait/endpoint.ts": [
    "Endpoint.demands",
    "Endpoint.doze",
    "Endpoint.get spinner",
    "Endpoint.hasChanged",
    "Endpoint.isLinked",
    "Endpoint.noteRings",
    "Endpoint.prepare",
    "Endpoint.ring",
    "Endpoint.settle",
    "Endpoint.sliceMs",
    "Endpoint.wait",
    "Endpoint.waitBriefly",
  ],
  "wait/spinner.ts": [
    "Spinner.dip",
    "Spinner.get dips",
    "Spinner.get glances",
    "Spinner.get learns",
    "Spinner.skip",
    "Spinner.slept",
    "Spinner.spin",
    "budgetOf",
    "looks",
    "requireTime",
    "spinFor",
  ],
  "wait/state.ts": ["ring", "ringAround", "stateOf"],
  "wait/wait.ts": [
    "agentMechanism",
    "defaultMechanism",
    "found",
    "mayBlock",
    "processorCount",
  ],
};

/** Gives the sources to the bundler. */
export async function readSources(root: string): Promise<Plugin> {
  const classes = await classNames(root);
  return {
    name: "sources",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
        const text = await Deno.readTextFile(path);
        const early = EARLY[path.slice(`${root}/impl-ts/src/`.length)] ?? [];
        return { contents: hoist(nameClasses(text, classes), early), loader: "ts" };
      });
      const namespace = "set-method";
      build.onResolve({ filter: /^millrace:/ }, ({ path }) => ({ path, namespace }));
      build.onLoad({ filter: /./, namespace }, () => ({ contents: SET_METHOD_TEXT }));
    },
  };
}

/**
 * Has functions and methods of a module compiled with it: V8 takes parentheses around one for a
 * call, but has no such hint for the methods of a class. So they are set in a static block, where
 * private names are known, and the class stands in a call that bundlers may drop, which they must
 * not do with static blocks. A private method becomes a private field that holds the function.
 */
export function hoist(text: string, names: readonly string[]): string {
  const isMethod = (name: string) => name.includes(".");
  const plain = names.filter((name) => !isMethod(name)).reduce(hoistFunction, text);
  const methods = Map.groupBy(names.filter(isMethod), (name) => name.split(".")[0]!);
  if (methods.size === 0) return plain;
  const classes = [...methods].reduce(
    (before, [name, own]) => hoistMethods(before, name, own.map((each) => each.split(".")[1]!)),
    plain,
  );
  return `import { setGetter, setMethod } from "${SET_METHOD}"; ${classes}`;
}

function hoistFunction(text: string, name: string): string {
  const whole = new RegExp(`^((?:export )?)function ${name}\\b(.*?)^}$`, "ms");
  if (!whole.test(text)) throw new Error(`There is no function ${name}`);
  return text.replace(whole, (_, head, rest) => `${head}const ${name} = (function${rest}});`);
}

function hoistMethods(text: string, name: string, methods: readonly string[]): string {
  const whole = new RegExp(`^((?:export )?)(?:abstract )?(class ${name}\\b.*?)^}$`, "ms");
  if (!whole.test(text)) throw new Error(`There is no class ${name}`);
  return text.replace(whole, (_, head, body) => {
    const parts = methods.reduce((before, each) => hoistMethod(before, name, each), body);
    return `${head}const ${name} = ${PURE_NAME}(() => { ${parts}} return ${name}; })();`;
  });
}

function hoistMethod(text: string, owner: string, name: string): string {
  const whole = new RegExp(`^  (?:override )?${name}\\b([(<].*?)^  }$`, "ms");
  const [found = "", rest = ""] = whole.exec(text) ?? [];
  if (found === "" || found.includes("super.")) throw new Error(`There is no method ${name}`);
  const set = `(function${rest}  })`;
  if (name.startsWith("#")) {
    const early = `#early_${name.slice(1)}`;
    return text.replace(found, () => `  static ${early} = ${set}; ${name} = ${owner}.${early};`);
  }
  const [kind, own] = name.startsWith(GET) ? ["Getter", name.slice(GET.length)] : ["Method", name];
  return text.replace(found, () => `  static { set${kind}(this, "${own}", ${set}); }`);
}

/**
 * Says in what was bundled, before a call, that a bundler may drop it where nobody uses its value.
 * The bundler takes such a comment away where it minifies: a name as long, of a function that there
 * is not, stands for it until then, so that the source map stays true.
 */
const PURE_COMMENT = "/*@__PURE__*/";
const PURE_NAME = "PURE_$COMMENT";

/** Completes what was bundled of these sources. */
export function finish(text: string): string {
  return text.replaceAll(PURE_NAME, PURE_COMMENT);
}

/** What sets a method or a getter as a class does. */
const SET_METHOD = "millrace:set-method";
const SET_METHOD_TEXT = `export function setMethod(owner, name, value) {
  Object.defineProperty(owner.prototype, name, { value, configurable: true, writable: true });
}
export function setGetter(owner, name, get) {
  Object.defineProperty(owner.prototype, name, { get, configurable: true });
}`;
/** Before the name of a getter. */
const GET = "get ";

/** The names of the classes that the entries export. */
async function classNames(root: string): Promise<ReadonlySet<string>> {
  const classes = new Set<string>();
  for (const { source } of ENTRIES) {
    for (const value of Object.values(await import(`${root}/${source}`))) {
      if (typeof value === "function" && /^class\b/.test(String(value))) classes.add(value.name);
    }
  }
  return classes;
}

/**
 * Gives the classes that are exported their names at run time too, which the short name of a
 * binding takes away: `port.constructor.name` is what a debugger shows.
 */
function nameClasses(text: string, classes: ReadonlySet<string>): string {
  // An error has its own in the source.
  const head = /^export (?:abstract )?class (\w+)[^{]*\{(?!\s*\/\*\*.*\*\/\s*static .*\bname\b)/gm;
  return text.replace(head, (found, name) => {
    return classes.has(name) ? `${found} static name = "${name}";` : found;
  });
}
