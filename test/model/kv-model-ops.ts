/**
 * How many operations the model tests of the KV and hash indexes run: a few thousand by default, `KVROUTE_MODEL_OPS` for
 * more (1 000 000 takes some minutes).
 */
const wanted = Number(process.env.KVROUTE_MODEL_OPS ?? 10_000);

/** Property runs that make up that number when a run has this many operations on average. */
export function runsFor(operationsPerRun: number): number {
  return Math.max(20, Math.ceil(wanted / operationsPerRun));
}

/** Milliseconds such a test may take, also on a busy machine. */
export const modelTimeoutMs: number = 60_000 + 4 * wanted;
