import { describe, expect, it } from 'vitest';
import { BlockChain } from '../../src/prefix/block-chain.js';
import { range } from './kv-helpers.js';

describe('BlockChain', () => {
  it('CA-81: block by block or several at once, from a plain list or a typed one, the chain is the same', () => {
    const tokens = range(0, 12);
    for (const list of [tokens, Uint32Array.from(tokens)]) {
      const chain = new BlockChain(4);
      const steps = range(0, 3).flatMap(() => {
        chain.next(list);
        return [chain.low, chain.high];
      });
      expect(new Set(steps).size).toBe(6);
      const whole = new BlockChain(4);
      // Three blocks and not a token further: the list ends there.
      expect([...whole.lanesOf(list, 3).subarray(0, 6)]).toEqual(steps);
      expect([whole.low, whole.high]).toEqual(steps.slice(4));
      const second = new BlockChain(4);
      second.startAfter(steps[0] as number, steps[1] as number);
      expect([...second.lanesOf(list.slice(4), 2).subarray(0, 4)]).toEqual(steps.slice(2));
    }
  });

  it('LB-42: a list is refused at the first entry that is no token id', () => {
    const chain = new BlockChain(2);
    expect(() => chain.next([-1, 0])).toThrow(new TypeError('tokens: expected ids from 0 to 4294967295, got -1 at 0'));
    expect(() => chain.lanesOf([1, 2, 3, 0.5], 2)).toThrow(
      new TypeError('tokens: expected ids from 0 to 4294967295, got 0.5 at 3'),
    );
  });
});
