/**
 * Routing keys: where they come from (ST-10..ST-24), what makes one valid, and how a rid leads to its conversation.
 *
 * Pure functions, nothing throws. Each looks at no more than the end of a rid or 128 units of a value, so that a huge
 * one costs nothing. Keys can be credentials: outside the pin map they appear only as `keyHash` (OB-93).
 */
import type { RequestView } from '../request.js';
import { hashText } from '../runtime/mix.js';

/** Longest routing key, in bytes of UTF-8 (ST-12, ST-20). */
export const maxRoutingKeyBytes = 128;

/** A key that decides a request, and its origin: a key the host passed as `routingKey` stands in the header's place. */
export interface RoutingKey {
  readonly key: string;
  readonly source: 'rid' | 'header';
}

/** Where a key may come from. */
export interface KeyRules {
  /** Let the body's request id be a key (ST-10). */
  readonly rid: boolean;
  /** Header names in lower case, in order of preference (ST-20). */
  readonly headers: readonly string[];
  /** Strip turn and retry suffixes from header values too (ST-21). */
  readonly stripHeaders: boolean;
}

/**
 * The key of a request: the host's own `routingKey` (LM-32a), else the rid's, else the headers' (ST-24); undefined when
 * there is no valid one. With `rid` and `stripHeaders` set to whether the override is on, this is the effective
 * key a lease counts (WK-40).
 */
export function resolveRoutingKey(request: RequestView, rules: KeyRules): RoutingKey | undefined {
  const own = request.routingKey;
  if (own !== undefined && isValidRoutingKey(own)) return { key: own, source: 'header' };
  if (rules.rid && request.rid !== undefined) {
    const key = ridKey(request.rid);
    if (key !== undefined) return { key, source: 'rid' };
  }
  const header = headerRoutingKey(request, rules.headers);
  if (header === undefined) return undefined;
  return { key: rules.stripHeaders ? stripLineage(header) : header, source: 'header' };
}

/**
 * The key of a request id: its lineage suffixes go, then 1 to 128 bytes must be left (ST-11, ST-12); undefined otherwise.
 * `conv_t2_r1` → `conv`.
 */
export function ridKey(rid: string): string | undefined {
  const key = stripLineage(rid);
  return key !== '' && utf8Length(key) <= maxRoutingKeyBytes ? key : undefined;
}

/**
 * Removes one retry suffix `_r<digits>`, then one turn suffix `_t<digits>`, from the very end; a value that consists of
 * nothing else stays whole (ST-11, ST-21).
 */
export function stripLineage(key: string): string {
  const stripped = stripSuffix(stripSuffix(key, 'r'), 't');
  return stripped === '' ? key : stripped;
}

function stripSuffix(text: string, letter: string): string {
  let digits = text.length;
  while (digits > 0 && isDigit(text.charCodeAt(digits - 1))) digits -= 1;
  const found = digits < text.length && text[digits - 1] === letter && text[digits - 2] === '_';
  return found ? text.slice(0, digits - 2) : text;
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57;
}

/**
 * The first valid value of the named headers, without the spaces and tabs around it (ST-20, ST-22a); an invalid one is
 * skipped, an array yields its first valid element.
 */
export function headerRoutingKey(request: RequestView, names: readonly string[]): string | undefined {
  if (!request.hasHeaders) return undefined;
  for (const name of names) {
    const value = firstUsable(request.headerValues(name), isValidRoutingKey);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** The first element that passes `isUsable` after trimming. */
export function firstUsable(
  value: string | readonly string[] | undefined,
  isUsable: (text: string) => boolean,
): string | undefined {
  if (value === undefined) return undefined;
  for (const element of typeof value === 'string' ? [value] : value) {
    if (typeof element !== 'string') continue;
    const trimmed = trimBlanks(element);
    if (isUsable(trimmed)) return trimmed;
  }
  return undefined;
}

/** Whether a value may be a routing key: 1 to 128 bytes of UTF-8, spaces and tabs around it not counted (ST-20, ST-22a). */
export function isValidRoutingKey(value: string): boolean {
  const trimmed = trimBlanks(value);
  return trimmed !== '' && isWellFormed(trimmed) && utf8Length(trimmed) <= maxRoutingKeyBytes;
}

/** Stands for a key in records, events and logs: 16 hex digits (OB-93). */
export function keyHash(key: string): string {
  return hashText(key, 0x6b76_6b65);
}

function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(unit: number): boolean {
  return unit === 32 || unit === 9;
}

/** Bytes of the UTF-8 form; `Infinity` for text whose units alone exceed the limit, which is then not read. */
function utf8Length(text: string): number {
  if (text.length > maxRoutingKeyBytes) return Infinity;
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // Half a surrogate pair is two bytes of the pair's four; a lone one is written as U+FFFD, three bytes.
    if (unit >= 0x80) bytes += unit < 0x800 || (isSurrogate(unit) && !isLone(text, i)) ? 1 : 2;
  }
  return bytes;
}

/** False when a lone surrogate makes the text no UTF-8 (ST-20). Reads no further than the longest valid key. */
function isWellFormed(text: string): boolean {
  const end = Math.min(text.length, maxRoutingKeyBytes);
  for (let i = 0; i < end; i++) if (isSurrogate(text.charCodeAt(i)) && isLone(text, i)) return false;
  return true;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

/** Whether the surrogate at `i` has no partner. */
function isLone(text: string, i: number): boolean {
  const isHigh = text.charCodeAt(i) < 0xdc00;
  const partner = text.charCodeAt(isHigh ? i + 1 : i - 1);
  return isHigh ? !(partner >= 0xdc00 && partner <= 0xdfff) : !(partner >= 0xd800 && partner <= 0xdbff);
}
