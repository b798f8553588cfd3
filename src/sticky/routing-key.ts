/**
 * Routing keys: where they come from (ST-10..ST-24), what makes one valid, and how a rid leads to its conversation.
 *
 * Pure functions, nothing throws. Each looks at no more than the end of a rid or 128 units of a value, so that a huge
 * one costs nothing. Keys can be credentials: outside the pin map they appear only as `keyHash` (OB-93).
 */
import type { RequestView } from '../request.js';
import { hashText } from '../runtime/hash-text.js';
import { isPairAt } from '../runtime/text.js';

/** Longest routing key, in bytes of UTF-8 (ST-12, ST-20). */
export const maxRoutingKeyBytes = 128;

/** A key that decides a request, and its origin: a key the host passed as `routingKey` stands in the header's place. */
export interface RoutingKey {
  /** As it is pinned or looked up: without the suffixes that were to go. */
  readonly key: string;
  /** What decision records tell (ST-24). */
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
  const own = firstUsable(request.routingKey, isValidRoutingKey);
  if (own !== undefined) return { key: own, source: 'header' };
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
  if (typeof rid !== 'string') return undefined;
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
  if (typeof value !== 'string') return false;
  const trimmed = trimBlanks(value);
  return trimmed !== '' && utf8Length(trimmed) <= maxRoutingKeyBytes && isWellFormed(trimmed);
}

/** Whether a header value is visible ASCII: 0x20–0x7E and tab (MA-1, CH-3). */
export function isVisibleAscii(value: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(value);
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

/** Bytes of the UTF-8 form, a lone surrogate counted as the U+FFFD it becomes; too long a text is not read. */
function utf8Length(text: string): number {
  if (text.length > maxRoutingKeyBytes) return Infinity;
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (isPairAt(text, i)) {
      bytes += 4;
      i += 1;
    } else bytes += 3;
  }
  return bytes;
}

/** False when a lone surrogate makes the text no UTF-8 (ST-20). */
function isWellFormed(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    if (!isPairAt(text, i)) return false;
    i += 1;
  }
  return true;
}
