import { describe, expect, it } from 'vitest';
import { composePinKey, keyOfPin } from '../../src/sticky/pin-key.js';
import { pinPieces, restorePins } from '../../src/sticky/pin-snapshot.js';
import { PinMap } from '../../src/sticky/pins.js';
import { keyHash } from '../../src/sticky/routing-key.js';

const unlimited = { spent: () => false };
const used = { spent: () => true };

function pinKey(key: string): string {
  return composePinKey('m', 'single', key);
}

describe('PinMap', () => {
  it('B77: keys written over 3 s are all gone from a sweep after their idle time, and one touched every 9 s stays', () => {
    const pins = new PinMap({ maxPins: 1_000_000, maxIdleMs: 10_000, evictionIntervalMs: 1000 });
    for (let i = 0; i < 6000; i++) pins.put(pinKey(`k${i}`), 'w1', undefined, i / 2);
    pins.put(pinKey('kept'), 'w2', undefined, 3000);
    pins.put(pinKey('kept'), 'w2', undefined, 12_000);
    pins.maintain(14_000, unlimited);
    expect(pins.size).toBe(1);
    expect(pins.find(pinKey('kept'), 21_999)?.primary).toBe('w2');
    expect(pins.find(pinKey('kept'), 22_000)).toBeUndefined();
  });

  it('ST-60a: a pin idle for maxIdleMs is absent on lookup, swept or not, and can be pinned anew', () => {
    const pins = new PinMap({ maxPins: 10, maxIdleMs: 100, evictionIntervalMs: 1_000_000 });
    pins.put('k', 'w1', 'w2', 0);
    expect(pins.find('k', 99)).toMatchObject({ primary: 'w1', secondary: 'w2' });
    expect(pins.find('k', 100)).toBeUndefined();
    expect(pins.size).toBe(1);
    pins.put('k', 'w3', undefined, 100);
    expect(pins.find('k', 199)).toMatchObject({ primary: 'w3', secondary: undefined });
    expect(pins.size).toBe(1);
  });

  it.each([
    { maxIdleMs: 0, evictionIntervalMs: 10 },
    { maxIdleMs: 10, evictionIntervalMs: 0 },
  ])('ST-60: 0 in either duration keeps idle pins: %j', (durations) => {
    const pins = new PinMap({ maxPins: 10, ...durations });
    pins.put('k', 'w1', undefined, 0);
    expect(pins.maintain(1e12, unlimited)).toBe(false);
    expect(pins.find('k', 1e12)?.primary).toBe('w1');
  });

  it('ST-60: sweeps come every evictionIntervalMs', () => {
    const pins = new PinMap({ maxPins: 10, maxIdleMs: 10, evictionIntervalMs: 100 });
    pins.put('a', 'w1', undefined, 0);
    pins.maintain(99, unlimited);
    expect(pins.size).toBe(1);
    pins.maintain(100, unlimited);
    expect(pins.size).toBe(0);
    pins.put('b', 'w1', undefined, 110);
    pins.maintain(199, unlimited);
    expect(pins.size).toBe(1);
    pins.maintain(200, unlimited);
    expect(pins.size).toBe(0);
  });

  it('LB-5: a sweep goes on in bounded steps while work is left', () => {
    const pins = new PinMap({ maxPins: 1000, maxIdleMs: 10, evictionIntervalMs: 100 });
    for (let i = 0; i < 200; i++) pins.put(pinKey(`k${i}`), 'w1', undefined, 0);
    expect(pins.maintain(100, used)).toBe(true);
    expect(pins.size).toBe(136);
    expect(pins.maintain(101, used)).toBe(true);
    expect(pins.maintain(102, used)).toBe(true);
    expect(pins.maintain(103, used)).toBe(false);
    expect(pins.size).toBe(0);
  });

  it('MA-10: a full map drops the pin used longest ago', () => {
    const pins = new PinMap({ maxPins: 3, maxIdleMs: 0, evictionIntervalMs: 0 });
    for (const key of ['a', 'b', 'c']) pins.put(key, 'w1', undefined, 0);
    pins.put('a', 'w1', undefined, 0);
    pins.put('d', 'w1', undefined, 0);
    expect([...pins.entries()].map((pin) => pin.pinKey)).toEqual(['c', 'a', 'd']);
  });

  it('LB-35: a lower maxPins is reached in steps and keeps what was used last', () => {
    const limits = { maxPins: 1000, maxIdleMs: 0, evictionIntervalMs: 0 };
    const pins = new PinMap(limits);
    for (let i = 0; i < 300; i++) pins.put(`k${i}`, 'w1', undefined, i);
    pins.configure({ ...limits, maxPins: 100 }, 300);
    expect(pins.size).toBe(300);
    pins.put('new', 'w1', undefined, 300);
    expect(pins.size).toBe(293);
    expect(pins.maintain(301, used)).toBe(true);
    expect(pins.maintain(301, unlimited)).toBe(false);
    expect(pins.size).toBe(100);
    expect(pins.find('k201', 301)).toBeDefined();
    expect(pins.find('k200', 301)).toBeUndefined();
  });

  it('LB-35: a shorter interval takes effect at once', () => {
    const pins = new PinMap({ maxPins: 10, maxIdleMs: 1000, evictionIntervalMs: 1_000_000 });
    pins.put('k', 'w1', undefined, 0);
    pins.configure({ maxPins: 10, maxIdleMs: 10, evictionIntervalMs: 20 }, 5);
    pins.maintain(24, unlimited);
    expect(pins.size).toBe(1);
    pins.maintain(25, unlimited);
    expect(pins.size).toBe(0);
  });

  const forever = { maxPins: 10, maxIdleMs: 0, evictionIntervalMs: 0 };

  /** Pins `a` to `d` used at these times, walked through with `change` after the pin `at`. */
  function walk(times: readonly number[], at: string, change: (pins: PinMap) => void): string[] {
    const pins = new PinMap(forever);
    for (const [i, time] of times.entries()) pins.put('abcd'.charAt(i), 'w1', undefined, time);
    const seen: string[] = [];
    for (const { pinKey } of pins.entries()) {
      if (pinKey === at && !seen.includes(at)) change(pins);
      seen.push(pinKey);
    }
    return seen;
  }

  it('LB-33: a walk goes on behind a pin that was forgotten while it rested there', () => {
    const without =
      (...keys: string[]) =>
      (pins: PinMap) =>
        keys.map((key) => pins.delete(key));
    expect(walk([1, 2, 3, 4], 'b', without('b'))).toEqual(['a', 'b', 'c', 'd']);
    expect(walk([1, 2, 3, 4], 'b', without('b', 'c'))).toEqual(['a', 'b', 'd']);
    expect(walk([1, 2, 3, 4], 'd', without('d'))).toEqual(['a', 'b', 'c', 'd']);
    expect(walk([1, 2, 3, 4], 'c', without('a', 'b', 'c', 'd'))).toEqual(['a', 'b', 'c']);
  });

  it('LB-33: pins used in the same instant as one that changed are not missed', () => {
    expect(walk([1, 1, 1, 1], 'a', (pins) => pins.delete('a'))).toEqual(['a', 'b', 'c', 'd']);
    expect(walk([1, 1, 1, 2], 'b', (pins) => pins.put('b', 'w2', undefined, 3))).toEqual([
      'a',
      'b',
      'a',
      'c',
      'd',
      'b',
    ]);
  });

  it('LB-33: the order of use holds after a pin was restored into the middle, and after that one went', () => {
    const pins = new PinMap(forever);
    const restore = (pinKey: string, lastUsedAt: number) =>
      pins.restore({ pinKey, primary: 'w1', secondary: undefined, lastUsedAt });
    const order = (): string => [...pins.entries()].map(({ pinKey }) => pinKey).join('');
    pins.put('a', 'w1', undefined, 10);
    pins.put('d', 'w1', undefined, 40);
    restore('b', 20);
    pins.put('e', 'w1', undefined, 50);
    expect(order()).toBe('abde');
    pins.delete('b');
    restore('c', 30);
    expect(order()).toBe('acde');
    pins.put('a', 'w1', undefined, 60);
    restore('b', 20);
    expect(order()).toBe('bcdea');
  });

  it('OB-93: evictions are told with the hash of the key, the cause and what remains', () => {
    const told: unknown[] = [];
    const limits = { maxPins: 2, maxIdleMs: 10, evictionIntervalMs: 10 };
    const pins = new PinMap(limits, { pinEvicted: (evicted) => told.push(evicted) });
    for (const key of ['a', 'b', 'c']) pins.put(pinKey(key), 'w1', undefined, 0);
    pins.delete(pinKey('b'));
    pins.delete(pinKey('b'));
    pins.maintain(10, unlimited);
    expect(told).toEqual([
      { keyHash: keyHash('a'), cause: 'capacity', remaining: 2 },
      { keyHash: keyHash('b'), cause: 'removed', remaining: 1 },
      { keyHash: keyHash('c'), cause: 'idle', remaining: 0 },
    ]);
  });
});

describe('pin snapshots', () => {
  const limits = { maxPins: 10_000, maxIdleMs: 1000, evictionIntervalMs: 1000 };

  it('LB-33: come in pieces of 1 000, survive JSON, and give the same pins at the same age in another map', () => {
    const pins = new PinMap(limits);
    for (let i = 0; i < 2500; i++) pins.put(pinKey(`k${i}`), `w${i % 7}`, i % 2 ? 'w9' : undefined, 500 + i / 10);
    const pieces = JSON.parse(JSON.stringify([...pinPieces(pins, 800)])) as unknown[][];
    expect(pieces.map((piece) => piece.length)).toEqual([1000, 1000, 500]);
    const other = new PinMap(limits);
    for (const piece of pieces) expect(restorePins(other, piece, () => true, 50).skipped).toBe(0);
    expect([...other.entries()].map(({ pinKey, primary, secondary }) => [pinKey, primary, secondary])).toEqual(
      [...pins.entries()].map(({ pinKey, primary, secondary }) => [pinKey, primary, secondary]),
    );
    // k0 was 300 ms idle at the snapshot.
    expect(other.find(pinKey('k0'), 749)).toBeDefined();
    expect(other.find(pinKey('k0'), 750)).toBeUndefined();
  });

  it('LB-33: the map may change between pieces: pins that stay as they are come once, and it ends', () => {
    const pins = new PinMap({ maxPins: 10_000, maxIdleMs: 0, evictionIntervalMs: 0 });
    for (let i = 0; i < 3000; i++) pins.put(pinKey(`k${i}`), 'w1', undefined, i);
    const seen: string[] = [];
    let now = 3000;
    for (const piece of pinPieces(pins, now)) {
      seen.push(...piece.map(([key]) => key));
      now += 1;
      // The last pin of the piece, and one that is still to come, are used; the one after it is forgotten.
      const last = Number(keyOfPin(seen.at(-1) as string).slice(1));
      pins.put(pinKey(`k${last}`), 'w1', undefined, now);
      pins.put(pinKey(`k${last + 5}`), 'w1', undefined, now);
      pins.delete(pinKey(`k${last + 1}`));
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBe(2996);
    expect(seen).toContain(pinKey('k2999'));
  });

  it('ST-60a: idle pins are not part of a snapshot', () => {
    const pins = new PinMap(limits);
    pins.put(pinKey('old'), 'w1', undefined, 0);
    pins.put(pinKey('new'), 'w1', undefined, 900);
    expect([...pinPieces(pins, 1000)]).toEqual([[[pinKey('new'), 'w1', null, 100]]]);
  });

  it('LB-33: a pin used at the moment of the snapshot is part of it, one used later is not', () => {
    const pins = new PinMap(limits);
    pins.put(pinKey('now'), 'w1', undefined, 900);
    pins.put(pinKey('later'), 'w1', undefined, 901);
    expect([...pinPieces(pins, 900)]).toEqual([[[pinKey('now'), 'w1', null, 0]]]);
  });

  it('LB-33: unknown workers, pinned keys and malformed records are skipped and counted', () => {
    const pins = new PinMap(limits);
    pins.put(pinKey('mine'), 'w1', undefined, 100);
    const piece = [
      [pinKey('a'), 'gone', 'w2', 0],
      [composePinKey('a-longer-model', 'single', 'k'), 'w1', null, 0],
      [pinKey('b'), 'gone', null, 0],
      [pinKey('mine'), 'w2', null, 0],
      ['no scope', 'w1', null, 0],
      [pinKey('c'), 7, null, 0],
      [pinKey('d'), 'w1', null, -1],
      [pinKey('e'), 'w1', null, Number.NaN],
      [pinKey('f'), 'w1', null, null],
      [pinKey('g'), 'w1', null, Infinity],
      [[pinKey('h')], 'w1', null, 0],
      [`x${pinKey('i')}`, 'w1', null, 0],
      'text',
      null,
    ];
    expect(restorePins(pins, piece, (id) => id !== 'gone', 200)).toEqual({ restored: 2, skipped: 12 });
    expect(pins.find(pinKey('a'), 200)).toMatchObject({ primary: 'w2', secondary: undefined });
    expect(pins.find(pinKey('mine'), 200)?.primary).toBe('w1');
    expect(restorePins(pins, { length: 3 }, () => true, 200)).toEqual({ restored: 0, skipped: 1 });
  });
});
