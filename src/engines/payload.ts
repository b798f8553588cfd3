/**
 * Payloads as a host has them: text, bytes, or already parsed JSON. Nothing here throws, whatever the bytes; what cannot
 * be read is `undefined`. Fields are looked up as own properties only, so names such as `__proto__` or `constructor`
 * are ordinary (LB-31, LB-42). Linear in the payload.
 */

/** The part of the global scope that turns bytes into text; every supported runtime has it. */
interface DecoderScope {
  readonly TextDecoder: new () => { decode(bytes: ArrayBufferView): string };
}

/** A JSON object, or what a decoder made of a map. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** A payload as text: strings as they are, bytes as UTF-8 (malformed sequences become U+FFFD). */
export function readText(payload: unknown): string | undefined {
  if (typeof payload === 'string') return payload;
  if (!ArrayBuffer.isView(payload)) return undefined;
  try {
    return new (globalThis as unknown as DecoderScope).TextDecoder().decode(payload);
  } catch {
    // Longer than a string can be, detached, or shared memory: unreadable either way.
    return undefined;
  }
}

/** A payload as a JSON value; `undefined` when it is text or bytes that do not parse. Other values are taken as parsed. */
export function readJson(payload: unknown): unknown {
  const text = readText(payload);
  if (text === undefined) return ArrayBuffer.isView(payload) ? undefined : payload;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The value when it is an object and no array. */
export function asRecord(value: unknown): JsonRecord | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined;
}

/** An own property; `undefined` when there is none. */
export function own(record: JsonRecord, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
