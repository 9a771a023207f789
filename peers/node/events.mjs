// The events, the calls of their handler, and the end of a drain: what the peers in JavaScript share.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const PAYLOAD = 200;
export const BATCH = 1_000;

/** An event of 200 bytes as JSON, whose digits do not repeat, because the database would compress those that do. */
function event(number) {
  const data = PAYLOAD - JSON.stringify({ number, data: "" }).length;
  const digits = createHash("shake256", { outputLength: PAYLOAD / 2 }).update(String(number)).digest("hex");
  return { number, data: digits.slice(0, data) };
}

export function* batches(events) {
  for (let first = 0; first < events; first += BATCH) {
    const length = Math.min(BATCH, events - first);
    yield Array.from({ length }, (_, next) => event(first + next));
  }
}

/** Counts the calls for each event. */
export class Calls {
  #ofEvent;
  #all = 0;
  #complete = Promise.withResolvers();

  constructor(events) {
    this.#ofEvent = new Uint32Array(events);
  }

  count(number) {
    this.#ofEvent[number] += 1;
    this.#all += 1;
    if (this.#all === this.#ofEvent.length) this.#complete.resolve();
  }

  /** Waits for as many calls as there are events. */
  complete() {
    return this.#complete.promise;
  }

  check() {
    const wrong = this.#ofEvent.filter((calls) => calls !== 1).length;
    if (wrong > 0) throw new Error(`${wrong} events were not handled exactly once`);
  }
}

/**
 * Runs the task that the command line names, `fill|drain EVENTS`. A drain prints its seconds, from the call that begins it until
 * the database has every event done, and fails unless the handler was called exactly once for each.
 */
export async function main({ fill, prepare, begin, end, pending }) {
  const [task, number] = process.argv.slice(2);
  const events = Number(number);
  if (task === "fill") return fill(events);
  const client = new pg.Client(process.env.DATABASE_URL);
  await client.connect();
  const calls = new Calls(events);
  const prepared = await prepare?.(calls);
  const started = performance.now();
  const begun = await begin(calls, prepared);
  await calls.complete();
  // The last completions are still being written.
  while ((await client.query(`select exists (${pending}) as pending`)).rows[0].pending) await sleep(5);
  const seconds = (performance.now() - started) / 1_000;
  await end(begun, prepared);
  await client.end();
  calls.check();
  console.log(seconds.toFixed(4));
}
