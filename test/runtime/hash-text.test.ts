import { describe, expect, it } from 'vitest';
import { hashText } from '../../src/runtime/hash-text.js';

describe('hashText', () => {
  it('LB-33, LB-34: the digits are pinned, since snapshots and placements carry them', () => {
    expect(['', 'worker-1', '😀 é'].map((text) => hashText(text))).toEqual([
      '8a10d75a3688dd92',
      '0c911acc5fb5de43',
      'ee0c77bac695513c',
    ]);
    expect(hashText('worker-1', 7)).toBe('8b25c18ca737656c');
  });

  it('LB-31: ids that differ in one character, or in their length, get other digits', () => {
    const ids = Array.from({ length: 65_536 }, (_, i) => `http://10.0.${i >> 8}.${i & 255}:8000`);
    const zeros = Array.from({ length: 1000 }, (_, i) => '\0'.repeat(i));
    expect(new Set([...ids, ...zeros].map((text) => hashText(text))).size).toBe(66_536);
  });
});
