/**
 * Gives way to the event loop.
 *
 * @module
 */

const { port1, port2 } = new MessageChannel();
let resume = () => {};
port1.onmessage = () => resume();

/** Lets the event loop turn once; a timer would wait a millisecond. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    resume = resolve;
    port2.postMessage(null);
  });
}
