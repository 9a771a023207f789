// Enqueues or drains events with pg-boss: node pg-boss.mjs fill|drain EVENTS

import { PgBoss } from "pg-boss";
import { BATCH, batches, main } from "./events.mjs";

const QUEUE = "events";

async function start() {
  const boss = new PgBoss(process.env.DATABASE_URL);
  boss.on("error", console.error);
  await boss.start();
  return boss;
}

// Fetches at once while batches are full, which its documentation calls a burst.
const settings = { batchSize: BATCH, localConcurrency: 4, burstWhenBatchFull: true };

await main({
  async fill(events) {
    const boss = await start();
    await boss.createQueue(QUEUE);
    for (const batch of batches(events)) {
      await boss.insert(QUEUE, batch.map((data) => ({ data })));
    }
    await boss.stop();
  },
  prepare: start,
  begin: (calls, boss) =>
    boss.work(QUEUE, settings, async (jobs) => {
      for (const { data } of jobs) calls.count(data.number);
    }),
  end: (_, boss) => boss.stop(),
  pending: "select from pgboss.job where name = 'events' and state < 'completed'",
});
