/**
 * The order of one worker's event stream (CA-92): which batch is the next, a repetition, a restart of the engine, or
 * proof that something was missed. "None yet" is a state of its own, not the number 0.
 */
import { refuse } from '../errors.js';

/** A sequence number: a number when it is a safe integer, else a bigint. */
export type SequenceNumber = number | bigint;

/** What to do with a batch. */
export type SequenceResult = 'apply' | 'restarted' | 'stale' | 'gap' | 'rejected';

/** What a number means after the last one. */
export interface SequenceStep {
  readonly result: SequenceResult;
  /** The last number afterwards; undefined = none yet. */
  readonly last: SequenceNumber | undefined;
  /** With `gap`: the number that should have come. */
  readonly expected?: SequenceNumber | undefined;
  /** The number that came; undefined when it was none. */
  readonly received?: SequenceNumber | undefined;
}

const largest: bigint = 2n ** 63n;

/**
 * The step from one number to the next. The first batch sets the base whatever its number; the successor applies; 0
 * after a larger number means that the engine started again; another number that is not larger is stale; one further on
 * is a gap, and nothing changes. What is no integer from 0 to 2⁶³ is rejected.
 *
 * @param last the last number, or undefined for none yet
 * @param received a number, a bigint, or the 8 big-endian bytes of a frame
 * @throws TypeError when `last` is no sequence number
 */
export function nextSequence(last: SequenceNumber | undefined, received: unknown): SequenceStep {
  if (last !== undefined && readSequence(last) === undefined) {
    throw refuse('last', 'a sequence number', last);
  }
  const number = readSequence(received);
  if (number === undefined) return { result: 'rejected', last };
  if (last === undefined) return { result: 'apply', last: number, received: number };
  if (number === 0 && last > 0) return { result: 'restarted', last: number, received: number };
  if (number <= last) return { result: 'stale', last, received: number };
  const expected = after(last);
  if (number === expected) return { result: 'apply', last: number, received: number };
  return { result: 'gap', last, expected, received: number };
}

function after(last: SequenceNumber): SequenceNumber {
  return last < Number.MAX_SAFE_INTEGER ? Number(last) + 1 : BigInt(last) + 1n;
}

/** One form for each number, so that equal numbers are identical. */
function readSequence(value: unknown): SequenceNumber | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? Math.abs(value) : undefined;
  if (typeof value === 'bigint') return value >= 0n && value <= largest ? shortest(value) : undefined;
  if (!(value instanceof Uint8Array) || value.length !== 8) return undefined;
  const number = new DataView(value.buffer, value.byteOffset, 8).getBigUint64(0);
  return number <= largest ? shortest(number) : undefined;
}

function shortest(value: bigint): SequenceNumber {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}
