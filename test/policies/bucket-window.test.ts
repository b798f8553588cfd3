/** The window of `bucket`: what it charges to whom, and what it forgets. */
import { describe, expect, it } from 'vitest';
import { BucketWindow, type RoutedShare } from '../../src/policies/bucket-window.js';

const share = (): RoutedShare => ({ routed: 0 });

describe('BU-7, BU-8: the window', () => {
  it('charges each size to its owner until it is older than five seconds', () => {
    const window = new BucketWindow();
    const [a, b] = [share(), share()];
    window.push(30, 0, a);
    window.push(4, 1, b);
    window.push(500, 2, a);
    expect([a.routed, b.routed, window.length]).toEqual([530, 4, 3]);
    window.expire(5000);
    expect([a.routed, b.routed, window.length]).toEqual([530, 4, 3]);
    window.expire(5001);
    expect([a.routed, b.routed, window.length]).toEqual([500, 4, 2]);
    window.expire(5002);
    expect([a.routed, b.routed, [...window.sizes()]]).toEqual([500, 0, [500]]);
    window.expire(1e9);
    expect([a.routed, b.routed, window.length]).toEqual([0, 0, 0]);
  });

  it("LB-30: keeps a size that is nobody's", () => {
    const window = new BucketWindow();
    window.push(7, 0, undefined);
    expect([...window.sizes()]).toEqual([7]);
    window.expire(5001);
    expect(window.length).toBe(0);
  });

  it('BU-5: charges nobody any more once owners are forgotten, and keeps the sizes', () => {
    const window = new BucketWindow();
    const [a, b] = [share(), share()];
    window.push(7, 0, a);
    window.push(9, 0, b);
    window.forgetOwners();
    expect([a.routed, b.routed]).toEqual([0, 0]);
    window.push(5, 3000, a);
    window.expire(5001);
    expect([a.routed, b.routed, [...window.sizes()]]).toEqual([5, 0, [5]]);
  });

  it('BU-7: grows past its first 16 entries in order, also where they do not begin at the first slot', () => {
    const window = new BucketWindow();
    const owners = Array.from({ length: 40 }, share);
    const push = (i: number) => window.push(100 + i, i, owners[i]);
    for (let i = 0; i < 10; i++) push(i);
    window.expire(5005);
    // Five left in the middle of the buffer: the next eleven wrap around, the one after them finds it full.
    for (let i = 10; i < 40; i++) push(i);
    const from = (first: number) => owners.map((_, i) => (i < first ? 0 : 100 + i));
    expect(owners.map(({ routed }) => routed)).toEqual(from(5));
    expect([...window.sizes()]).toEqual(from(5).slice(5));
    // Each entry went along with its own time and owner.
    for (let i = 5; i < 40; i++) {
      window.expire(5001 + i);
      expect(owners.map(({ routed }) => routed)).toEqual(from(i + 1));
      expect([...window.sizes()]).toEqual(from(i + 1).slice(i + 1));
    }
  });

  it('BU-7: holds 16 384 entries at most, and drops the oldest for the next', () => {
    const window = new BucketWindow();
    const [old, young] = [share(), share()];
    window.push(1000, 0, old);
    for (let i = 0; i < 16_383; i++) window.push(1, 0, young);
    expect([old.routed, young.routed, window.length]).toEqual([1000, 16_383, 16_384]);
    window.push(1, 0, young);
    expect([old.routed, young.routed, window.length]).toEqual([0, 16_384, 16_384]);
    for (let i = 0; i < 20_000; i++) window.push(1, 0, young);
    expect([young.routed, window.length]).toEqual([16_384, 16_384]);
  });
});
