// Enqueues or drains events with Graphile Worker: node graphile-worker.mjs fill|drain EVENTS

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { batches, main } from "./events.mjs";

// Drops what is below a warning: a line for each job would be what is measured.
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(message);
});

// The settings of its documentation, under "Performance".
const worker = {
  connectionString: process.env.DATABASE_URL,
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  logger,
};

await main({
  async fill(events) {
    const utils = await makeWorkerUtils({ preset: { worker } });
    await utils.migrate();
    for (const batch of batches(events)) {
      await utils.addJobs(batch.map((payload) => ({ identifier: "event", payload })));
    }
    await utils.release();
  },
  begin: (calls) => run({ preset: { worker }, taskList: { event: ({ number }) => calls.count(number) } }),
  end: (runner) => runner.stop(),
  pending: "select from graphile_worker._private_jobs",
});
