/** Text of the string tree, piece by piece: keys, agreement, copies, cuts and joins. */
import { describe, expect, it } from 'vitest';
import { RadixNode } from '../../src/prefix/radix-node.js';
import { agreement, codePointsOf, copyText, insidePair, textKey, textLabels } from '../../src/prefix/radix-text.js';
import { countCodePoints, isPairAt } from '../../src/runtime/text.js';
import { heapAfterCollection } from '../support/heap.js';
import { fc } from '../support/property.js';

const high = '\ud83d';
const low = '\ude00';
const pair = `${high}${low}`;

/** A node as the tree makes it, whose label is all of a string. */
function labelled(label: string): RadixNode<string> {
  const node = new RadixNode(label, undefined);
  node.length = label.length;
  node.extent = label.length;
  node.units = countCodePoints(label);
  return node;
}

const measuresOf = (node: RadixNode<string>): unknown => [node.label, node.length, node.extent, node.units];

describe('textKey', () => {
  it('CA-30: is the code point at the position, also of a lone surrogate, and tells the middle of a pair', () => {
    const text = `a${pair}${high}é${low}`;
    expect([0, 1, 2, 3, 4, 5].map((position) => textKey(text, position))).toEqual([
      0x61,
      0x1f600,
      insidePair,
      0xd83d,
      0xe9,
      0xde00,
    ]);
    expect(textKey(`${low}a`, 0)).toBe(0xde00);
  });
});

describe('agreement', () => {
  /** Unit by unit, then a pair that would be cut given back. */
  function agreementByUnits(text: string, position: number, label: string, limit: number): number {
    let agreed = 0;
    while (agreed < limit && text[position + agreed] === label[agreed]) agreed++;
    return isPairAt(text, position + agreed - 1) || isPairAt(label, agreed - 1) ? agreed - 1 : agreed;
  }

  const borders = [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 111, 112, 113, 127, 128, 129, 239, 240, 241];

  it.each(borders)('CA-31: finds a difference after %d units, and stops at a limit of as many', (length) => {
    // No piece of it repeats.
    const shared = Array.from({ length: 600 }, (_, i) => String.fromCharCode(0x4e00 + i)).join('');
    const label = `${shared.slice(0, length)}!${shared.slice(length + 1)}`;
    const longerText = `before${shared}`;
    expect(agreement(longerText, 6, label, label.length)).toBe(length);
    expect(agreement(longerText, 6, label, length + 1)).toBe(length);
    expect(agreement(longerText, 6, shared, length)).toBe(length);
    // The text ends inside the label; the label is all of the text that is left.
    expect(agreement(longerText.slice(0, 6 + length), 6, shared, length)).toBe(length);
    expect(agreement(longerText, 6, shared.slice(0, length), length)).toBe(length);
  });

  it('CA-31: compares what stands at the position, not the same text elsewhere', () => {
    const piece = (first: number): string =>
      Array.from({ length: 16 }, (_, i) => String.fromCharCode(first + i)).join('');
    const [a, b, c] = [piece(0x4e00), piece(0x4f00), piece(0x5000)];
    // What follows in the label stands before the position in the text, or twice in the label.
    for (const rest of ['', c, c.repeat(10)]) {
      expect(agreement(`${a}${b}${c}${c}${rest}`, 16, `${b}${a}${b}${rest}`, 48)).toBe(16);
      expect(agreement(`${a}${b}${c}${c}${c}${c}${rest}`, 16, `${b}${a}${b}${c}${rest}`, 64)).toBe(16);
      expect(agreement(`${a}${a}${c}${c}${rest}`, 0, `${a}${c}${c}${c}${rest}`, 48)).toBe(16);
    }
  });

  it('CA-30: a pair that only one of the two has, or that goes on differently, does not count with its half', () => {
    for (const start of ['a', 'a'.repeat(16), 'a'.repeat(100)]) {
      const { length } = start;
      expect(agreement(`${start}${pair}`, 0, `${start}${high}\ude01`, length + 2)).toBe(length);
      expect(agreement(`${start}${pair}`, 0, `${start}${high}b`, length + 2)).toBe(length);
      expect(agreement(`${start}${high}b`, 0, `${start}${pair}`, length + 2)).toBe(length);
      expect(agreement(`${start}${high}`, 0, `${start}${pair}`, length + 1)).toBe(length);
      expect(agreement(`${start}${pair}b`, 0, `${start}${pair}c`, length + 3)).toBe(length + 2);
      expect(agreement(`${start}${high}b`, 0, `${start}${high}c`, length + 2)).toBe(length + 1);
    }
  });

  it('CA-30, CA-31: equals a comparison unit by unit', () => {
    const units = fc.string({ unit: fc.constantFrom('a', 'b', high, low), maxLength: 300 });
    fc.assert(
      fc.property(units, units, units, units, fc.nat(600), (before, shared, text, label, some) => {
        const ours = `a${shared}${label}`;
        const whole = `${before}a${shared}${text}`;
        const limit = Math.min(ours.length, whole.length - before.length, 1 + some);
        const expected = agreementByUnits(whole, before.length, ours, limit);
        expect(agreement(whole, before.length, ours, limit)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('copyText', () => {
  it('CA-30: copies any part, also none', () => {
    const text = `0123456789${pair}0123456789abcdef`;
    for (let start = 0; start <= text.length; start++) {
      for (let end = start; end <= text.length; end++) expect(copyText(text, start, end)).toBe(text.slice(start, end));
    }
  });

  it.each([16, 17, 1000])('LB-31: a copy of %d units does not keep the text alive', (length) => {
    const before = heapAfterCollection();
    const copies = Array.from({ length: 10 }, (_, i) => {
      // What a host gets from a JSON body: 300 kB each.
      const body = JSON.parse(JSON.stringify(`${i}${'x'.repeat(300_000)}`)) as string;
      return copyText(body, 0, length);
    });
    expect(heapAfterCollection() - before).toBeLessThan(1_000_000);
    expect(copies.length).toBe(10);
  });
});

describe('codePointsOf', () => {
  it('CA-30: counts the pairs of the part', () => {
    expect([0, 1, 3].map((length) => codePointsOf(labelled('abc'), length))).toEqual([0, 1, 3]);
    expect([0, 1, 3, 4, 6].map((length) => codePointsOf(labelled(`a${pair}b${pair}`), length))).toEqual([
      0, 1, 2, 3, 4,
    ]);
  });
});

describe('textLabels', () => {
  it('CA-39: a cut divides label and code points; a part of less than half of the string behind it is copied', () => {
    const node = labelled(`${'a'.repeat(18)}${pair}`);
    const cut = (length: number): RadixNode<string> => {
      const head = new RadixNode(textLabels.empty, undefined);
      textLabels.split(node, head, length);
      return head;
    };
    // Of 20 units, 9 and 11: only the longer part still has the whole string behind it.
    expect(measuresOf(cut(9))).toEqual(['a'.repeat(9), 9, 9, 9]);
    expect(measuresOf(node)).toEqual([`${'a'.repeat(9)}${pair}`, 11, 20, 10]);
    // Of these 11 units 1 and 10: half of the string is enough to stay with it.
    expect(measuresOf(cut(1))).toEqual(['a', 1, 1, 1]);
    expect(measuresOf(node)).toEqual([`${'a'.repeat(8)}${pair}`, 10, 20, 9]);
    expect(measuresOf(cut(8))).toEqual(['a'.repeat(8), 8, 8, 8]);
    expect(measuresOf(node)).toEqual([pair, 2, 2, 1]);
  });

  it('B07: a join puts the upper label in front, as a string of its own', () => {
    const upper = labelled(`ab${pair}`);
    const lower = labelled('cdef');
    const tail = new RadixNode(textLabels.empty, undefined);
    textLabels.split(lower, tail, 3);
    expect(measuresOf(tail)).toEqual(['cde', 3, 4, 3]);
    textLabels.join(upper, tail);
    expect(measuresOf(tail)).toEqual([`ab${pair}cde`, 7, 7, 6]);
    expect(textLabels.keyOf(tail)).toBe(0x61);
    expect(textLabels.keyOf(labelled(pair))).toBe(0x1f600);
  });

  it('LB-5: strings leave nothing to move', () => {
    expect(textLabels.compactSome()).toBe(false);
  });
});
