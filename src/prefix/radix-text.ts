/**
 * Text for the string tree: comparing, cutting and storing it. Storage units are UTF-16 code units, units are code
 * points; no boundary ever falls inside a surrogate pair, and a surrogate without partner is a unit of its own (CA-30).
 *
 * Engines keep a substring as a view that holds its whole parent. A label is therefore copied, and a cut label is copied
 * again as soon as it is less than half of the string behind it: no label keeps a prompt alive, and labels take at most
 * twice their length.
 */
import { countCodePoints } from '../runtime/text.js';
import type { Labels } from './radix-core.js';
import type { RadixNode } from './radix-node.js';

/** Below this length comparing unit by unit is faster; engines also copy shorter substrings by themselves. */
const shortText = 16;

function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}

/** The key of the unit at `position`: its code point. */
export function textKey(text: string, position: number): number {
  const unit = text.charCodeAt(position);
  return isHighSurrogate(unit) ? (text.codePointAt(position) as number) : unit;
}

/**
 * How many code units of `label` the text agrees with from `position` on, never ending inside a surrogate pair of
 * either. The first code point is known to agree.
 */
export function agreement(text: string, position: number, label: string): number {
  const limit = Math.min(label.length, text.length - position);
  let agreed = agreedUnits(text, position, label, limit);
  if (agreed > 0 && isHighSurrogate(label.charCodeAt(agreed - 1))) {
    // The pair goes on differently, or in one of the two only: its first half does not count.
    const textPairs = (text.charCodeAt(position + agreed) & 0xfc00) === 0xdc00;
    const labelPairs = (label.charCodeAt(agreed) & 0xfc00) === 0xdc00;
    if (textPairs || labelPairs) agreed--;
  }
  return agreed;
}

/** Equality of long substrings is compared by the engine, many units at a time; a difference is found by bisection. */
function agreedUnits(text: string, position: number, label: string, limit: number): number {
  let agreed = 0;
  if (limit >= shortText) {
    if (text.substring(position, position + limit) === (limit === label.length ? label : label.substring(0, limit))) {
      return limit;
    }
    while (agreed < shortText) {
      if (text.charCodeAt(position + agreed) !== label.charCodeAt(agreed)) return agreed;
      agreed++;
    }
    let step = 2 * shortText;
    while (agreed + step < limit && sameText(text, position + agreed, label, agreed, step)) {
      agreed += step;
      step *= 2;
    }
    // The first difference is within `step` units from here.
    step = Math.min(step, limit - agreed);
    while (step > shortText) {
      const half = step >> 1;
      if (sameText(text, position + agreed, label, agreed, half)) {
        agreed += half;
        step -= half;
      } else {
        step = half;
      }
    }
  }
  while (agreed < limit && text.charCodeAt(position + agreed) === label.charCodeAt(agreed)) agreed++;
  return agreed;
}

function sameText(text: string, position: number, label: string, from: number, length: number): boolean {
  return text.substring(position, position + length) === label.substring(from, from + length);
}

/** A copy of `text` from `start` to `end` that holds no other string. */
export function copyText(text: string, start: number, end: number): string {
  if (end - start < shortText) return text.substring(start, end);
  // Only joining makes every engine write a new string: substring, concat and repeat may all return views or ropes.
  const middle = (start + end) >> 1;
  return [text.substring(start, middle), text.substring(middle, end)].join('');
}

/** The labels of the string tree, for `RadixCore`. `extent` is the length of the string behind a label. */
export const textLabels: Labels<string> = {
  empty: '',

  keyOf(node: RadixNode<string>): number {
    return textKey(node.label, 0);
  },

  split(node: RadixNode<string>, head: RadixNode<string>, length: number): void {
    const { label, extent, units } = node;
    setPart(head, label, 0, length, extent);
    head.units = countCodePoints(head.label);
    setPart(node, label, length, label.length, extent);
    node.units = units - head.units;
  },

  join(head: RadixNode<string>, tail: RadixNode<string>): void {
    tail.label = [head.label, tail.label].join('');
    tail.extent = tail.label.length;
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
  const isMost = 2 * (end - start) >= extent;
  node.label = isMost ? label.substring(start, end) : copyText(label, start, end);
  node.extent = isMost ? extent : end - start;
}
