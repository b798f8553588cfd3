/** What a call with hostile values may do: refuse by naming the field, or give a normal result. Nothing else. */
import { KvRouteError, RoutingConfigError } from 'kvroute';
import { OwnError } from './hostile.js';

/** What became of a call. */
export type Verdict =
  | { readonly refused: false; readonly result: unknown }
  | { readonly refused: true; readonly error: unknown };

/** No call takes this long, whatever it is given. Milliseconds, with room for a busy machine. */
const longestCallMs = 20_000;

/** What was called how often, and how many calls were refused. */
export class Tally {
  readonly callsOf = new Map<string, number>();
  refusals = 0;

  get calls(): number {
    let calls = 0;
    for (const count of this.callsOf.values()) calls += count;
    return calls;
  }

  count(name: string, calls = 1): void {
    this.callsOf.set(name, (this.callsOf.get(name) ?? 0) + calls);
  }

  add(other: Tally): void {
    for (const [name, calls] of other.callsOf) this.count(name, calls);
    this.refusals += other.refusals;
  }
}

/** Calls and judges; `name` is an export or a method of one. @throws what is no refusal */
export function judge(name: string, call: () => unknown, tally: Tally): Verdict {
  tally.count(name);
  const started = performance.now();
  try {
    return { refused: false, result: call() };
  } catch (error) {
    return refusal(name, error, tally);
  } finally {
    checkDuration(name, started);
  }
}

/** As `judge`, for a call that answers later. */
export async function judgeLater(name: string, call: () => Promise<unknown>, tally: Tally): Promise<Verdict> {
  tally.count(name);
  const started = performance.now();
  try {
    return { refused: false, result: await call() };
  } catch (error) {
    return refusal(name, error, tally);
  } finally {
    checkDuration(name, started);
  }
}

function refusal(name: string, error: unknown, tally: Tally): Verdict {
  if (!isRefusal(error)) throw new Error(`${name} failed with what is no refusal`, { cause: error });
  tally.refusals += 1;
  return { refused: true, error };
}

function checkDuration(name: string, started: number): void {
  const took = performance.now() - started;
  if (took > longestCallMs) throw new Error(`${name} took ${Math.round(took)} ms`);
}

/** A typed error that names a field, or the very error that a value of the host threw when it was read. */
function isRefusal(error: unknown): boolean {
  if (isOwn(error)) return true;
  if (error instanceof RoutingConfigError) return /^[^\s:]+/.test(error.field) && error.message.startsWith(error.field);
  if (error instanceof KvRouteError) return true;
  if (!(error instanceof TypeError) && !(error instanceof RangeError)) return false;
  return /^(?:[\w.[\]-]+: )?expected ./.test(error.message);
}

/** Whether the host's own value failed: one that throws when it is read, or a proxy that was revoked. */
export function isOwn(error: unknown): boolean {
  return (
    error instanceof OwnError || (error instanceof TypeError && error.message.endsWith('proxy that has been revoked'))
  );
}
