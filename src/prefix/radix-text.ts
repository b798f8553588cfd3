/**
 * Text for the string tree: comparing, cutting and storing it. Storage units are UTF-16 code units, units are code
 * points; no boundary ever falls inside a surrogate pair, and a surrogate without partner is a unit of its own (CA-30).
 *
 * Engines keep a substring as a view that holds its whole parent. A label is therefore copied, and a cut label is copied
 * again as soon as it is less than half of the string behind it: no label keeps a prompt alive, and labels take at most
 * twice their length.
 */
import { countCodePoints, isPairAt } from '../runtime/text.js';
import type { Labels } from './radix-core.js';
import type { RadixNode } from './radix-node.js';

/** From this length on, comparing substrings is faster than comparing units; engines copy shorter ones by themselves. */
const longText = 16;

/** What `textKey` returns in the middle of a surrogate pair. */
export const insidePair = -1;

/** The key of the unit at `position`: its code point. */
export function textKey(text: string, position: number): number {
  const unit = text.charCodeAt(position);
  // A 32-bit integer on both ways: compiled look-ups of children rely on that.
  return (unit & 0xf800) === 0xd800 ? surrogateKey(text, position) | 0 : unit;
}

function surrogateKey(text: string, position: number): number {
  return position > 0 && isPairAt(text, position - 1) ? insidePair : (text.codePointAt(position) as number);
}

/**
 * How many of the first `limit` code units of `label` the text agrees with from `position` on, never ending inside a
 * surrogate pair of either. They are known to agree in the first code point. The engine compares many units at a time
 * when it is given substrings, so the difference is found by bisection.
 */
export function agreement(text: string, position: number, label: string, limit: number): number {
  let agreed = 0;
  while (agreed < longText && agreed < limit) {
    if (text.charCodeAt(position + agreed) !== label.charCodeAt(agreed))
      return wholeUnits(text, position, label, agreed);
    agreed++;
  }
  let step = 2 * longText;
  while (agreed + step < limit && sameText(text, position + agreed, label, agreed, step)) {
    agreed += step;
    step *= 2;
  }
  // The first difference, or the end, is within `step` units from here.
  step = Math.min(step, limit - agreed);
  while (step > longText) {
    const half = step >> 1;
    if (sameText(text, position + agreed, label, agreed, half)) {
      agreed += half;
      step -= half;
    } else {
      step = half;
    }
  }
  while (agreed < limit && text.charCodeAt(position + agreed) === label.charCodeAt(agreed)) agreed++;
  return wholeUnits(text, position, label, agreed);
}

/** A pair that goes on differently, or in one of the two only, does not count with its first half. */
function wholeUnits(text: string, position: number, label: string, agreed: number): number {
  const splitsPair = isPairAt(text, position + agreed - 1) || isPairAt(label, agreed - 1);
  return splitsPair ? agreed - 1 : agreed;
}

function sameText(text: string, position: number, label: string, from: number, length: number): boolean {
  return text.substring(position, position + length) === label.substring(from, from + length);
}

/** Code points in the first `length` code units of a node's label. */
export function codePointsOf(node: RadixNode<string>, length: number): number {
  // No pairs in all, no pairs in part.
  return node.units === node.length ? length : countCodePoints(node.label.substring(0, length));
}

/** A copy of `text` from `start` to `end` that holds no other string. */
export function copyText(text: string, start: number, end: number): string {
  if (end - start < longText) return text.substring(start, end);
  // Only joining two parts makes every engine write a new string: substring, concat and repeat may return views or ropes.
  const second = start + 1;
  return [text.substring(start, second), text.substring(second, end)].join('');
}

/** The labels of the string tree, for `RadixCore`. `extent` is the length of the string behind a label. */
export const textLabels: Labels<string> = {
  empty: '',

  keyOf(node: RadixNode<string>): number {
    return node.label.codePointAt(0) as number;
  },

  split(node: RadixNode<string>, head: RadixNode<string>, length: number): void {
    const { label, extent, length: whole, units } = node;
    head.units = codePointsOf(node, length);
    setPart(head, label, 0, length, extent);
    setPart(node, label, length, whole, extent);
    node.units = units - head.units;
  },

  join(head: RadixNode<string>, tail: RadixNode<string>): void {
    tail.label = [head.label, tail.label].join('');
    tail.length += head.length;
    tail.extent = tail.length;
    tail.units += head.units;
  },

  // Strings are the garbage collector's.
  release(): void {},

  compact(): void {},

  compactSome(): boolean {
    return false;
  },
};

function setPart(node: RadixNode<string>, label: string, start: number, end: number, extent: number): void {
  const length = end - start;
  const isMost = 2 * length >= extent;
  node.label = isMost ? label.substring(start, end) : copyText(label, start, end);
  node.length = length;
  node.extent = isMost ? extent : length;
}
