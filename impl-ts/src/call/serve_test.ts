/** What `serve` hands out of an object, and what it does not. */

import { assertEquals, assertThrows } from "@std/assert";
import { EventEmitter } from "node:events";
import { createContext, runInContext } from "node:vm";
import { serve } from "./call.ts";
import { Port } from "../port/port.ts";
import { CALL, RETURN, withRaw } from "./fixture.ts";

/** What Object.prototype and its like have, and nobody means to serve. */
const LANGUAGE = [
  ...["toString", "valueOf", "toLocaleString", "hasOwnProperty", "isPrototypeOf", "constructor"],
  ...["propertyIsEnumerable", "__defineGetter__", "__lookupGetter__", "__lookupSetter__"],
  ...["__defineSetter__", "__proto__", "prototype", "call", "apply", "bind"],
];

/** Which of some names the peer can call, of an object that is served. */
function servedOf(api: object, names: string[]): string[] {
  const [port, raw] = withRaw({ capacity: 1 << 16 });
  using _port = port;
  serve(port, api);
  for (const [index, name] of names.entries()) raw.send(CALL, index + 1, name);
  assertEquals(port.tryRead(), undefined);
  return raw.take().filter(([kind]) => kind === RETURN).map(([, id]) => names[id as number - 1]!);
}

/** What another realm makes of a source: an iframe, or a context of node:vm. */
function elsewhere(source: string): object {
  return runInContext(source, createContext({}));
}

Deno.test("[call.served_only] of an object of another realm, what is its own", () => {
  const api = elsewhere(`
    class Base { base() {} static made() {} }
    class Api extends Base { own() {} get hidden() { return () => 1; } field = () => 1; }
    ({ plain() {}, inner: { deep() {} }, api: new Api(), list: [() => 1], map: new Map() })
  `);
  const names = ["plain", "inner.deep", "api.own", "api.base", "api.field"];
  const others = ["api.hidden", "api.made", "list.0", "map.get", "map.clear"];
  const inside = LANGUAGE.flatMap((name) => [name, `inner.${name}`, `api.${name}`, `list.${name}`]);
  assertEquals(servedOf(api, [...names, ...others, ...inside]), names);
  const instance = elsewhere("class Api { own() {} }; new Api()");
  assertEquals(servedOf(instance, ["own", ...LANGUAGE]), ["own"]);
  const bare = elsewhere("Object.assign(Object.create(null), { own() {} })");
  assertEquals(servedOf(bare, ["own", ...LANGUAGE]), ["own"]);
});

Deno.test("[call.served_only] of an event emitter or target, nothing that it is one by", () => {
  const emitter = Object.getOwnPropertyNames(EventEmitter.prototype);
  const target = ["addEventListener", "removeEventListener", "dispatchEvent", "when"];
  const names = [...emitter, ...target, "_events.ring", ...LANGUAGE];
  class Bell extends EventEmitter {
    ring = () => this.emit("ring");
    silent() {}
  }
  const bell = new Bell();
  bell.on("ring", () => {});
  bell.on("other", () => {});
  assertEquals(servedOf(bell, ["ring", "silent", ...names]), ["ring", "silent"]);
  const bare = Object.assign(new EventEmitter(), { own() {} });
  assertEquals(servedOf(bare, ["own", ...names]), ["own"]);
  class Door extends EventTarget {
    open() {}
  }
  assertEquals(servedOf(new Door(), ["open", ...names]), ["open"]);
  // One that a library or another realm has made, of which nothing but its methods tells.
  const foreign = elsewhere(`
    class Target { addEventListener() {} removeEventListener() {} dispatchEvent() {} }
    class Emitter extends Target {
      on() {} off() {} emit() {} addListener() {} removeListener() {} removeAllListeners() {}
      listeners() {} eventNames() {}
    }
    new (class Api extends Emitter { own() {} })()
  `);
  assertEquals(servedOf(foreign, ["own", ...names]), ["own"]);
});

Deno.test("[call.served_only] of a class of the language or the runtime, nothing", () => {
  class Store extends Map {
    load() {}
  }
  class Signal extends EventTarget {}
  const api = { store: new Store(), signal: new Signal(), date: new Date(), set: new Set() };
  const natives = ["get", "set", "clear", "delete", "has", "forEach", "keys", "entries"];
  const names = Object.keys(api).flatMap((key) =>
    [...natives, ...LANGUAGE, "dispatchEvent", "getTime"].map((name) => `${key}.${name}`)
  );
  assertEquals(servedOf(api, ["store.load", ...names]), ["store.load"]);
  assertEquals(servedOf(new Store(), ["load", ...natives, ...LANGUAGE]), ["load"]);
  const socket = Object.create(WebSocket.prototype);
  assertEquals(servedOf(socket, ["send", "close", ...LANGUAGE]), []);
});

Deno.test("[call.served_only] of a class itself, its static methods", () => {
  class Tools {
    static make() {}
    use() {}
  }
  const names = ["make", "use", "prototype.use", ...LANGUAGE];
  assertEquals(servedOf(Tools, names), ["make"]);
});

Deno.test("instances in plain objects are served, and not what instances work with", () => {
  class Database {
    drop() {}
  }
  class Users {
    readonly database = new Database();
    readonly tools = { trim() {}, database: this.database };
    list() {}
  }
  const api = { users: new Users(), admin: { users: new Users() } };
  const names = ["users.list", "admin.users.list", "users.tools.trim"];
  const others = ["users.database.drop", "users.tools.database.drop", "users.constructor"];
  assertEquals(servedOf(api, [...names, ...others]), names);
  assertEquals(servedOf(new Users(), ["list", "tools.trim", "database.drop"]), [
    "list",
    "tools.trim",
  ]);
});

Deno.test("serve refuses names that nobody could call, and a promise", () => {
  const [port] = withRaw();
  using _port = port;
  class Api {
    notify() {}
  }
  const refused = [
    { notify() {} },
    { with: () => {} },
    { sync: { deep: () => {} } },
    { *iterate() {} },
    new Api(),
    { add() {}, then() {} },
    Promise.resolve({}),
  ];
  for (const api of refused) {
    assertThrows(() => serve(port, api), TypeError, "Cannot serve");
  }
  serve(port, { add() {}, deep: { notify() {}, with() {} }, notify: 1 }).stop();
});

Deno.test("[port.inbox] a port that serves lets its thread go on, its inbox full", async () => {
  using here = Port.create<number>({ inboxCount: 4 });
  using there = Port.attach<number>(here.memory);
  serve(here, {});
  for (let round = 0; round < 2; round++) { // what comes later finds the inbox full
    for (let n = 0; n < 10; n++) there.write(n);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const numbers: unknown[] = [];
  for (let n; (n = here.tryRead()) !== undefined;) numbers.push(n);
  const all = Array.from({ length: 10 }, (_, n) => n);
  assertEquals(numbers, [...all, ...all]);
});
