/** The size ranges of `bucket` as pure functions. */
import { describe, expect, it } from 'vitest';
import { bucketRecompute, initialBucketRanges } from '../../src/policies/bucket-boundaries.js';

describe('BU-4: the even split', () => {
  it.each([
    [1, [[0, Infinity]]],
    [
      2,
      [
        [0, 2047],
        [2048, Infinity],
      ],
    ],
    [
      3,
      [
        [0, 1364],
        [1365, 2729],
        [2730, Infinity],
      ],
    ],
  ])('of %i workers', (count, expected) => {
    expect(initialBucketRanges(count).map(({ low, high }) => [low, high])).toEqual(expected);
  });

  it('gives everybody a size of its own in fleets beyond the base range', () => {
    const ranges = initialBucketRanges(5000);
    expect(ranges[4998]).toEqual({ low: 4998, high: 4998 });
    expect(ranges[4999]).toEqual({ low: 4999, high: Infinity });
  });
});

describe('BU-10, BU-11: recomputing ranges', () => {
  it.each([
    {
      sizes: [5, 10, 15, 20, 24, 26],
      previous: 0,
      share: 33,
      ranges: [
        [0, 20],
        [21, 26],
        [27, Infinity],
      ],
    },
    {
      sizes: [57, 20, 30, 45, 40, 10],
      previous: 33,
      share: 67,
      ranges: [
        [0, 40],
        [41, 57],
        [58, Infinity],
      ],
    },
    {
      sizes: [33, 34, 34],
      previous: 0,
      share: 33,
      ranges: [
        [0, 33],
        [34, 67],
        [68, Infinity],
      ],
    },
    {
      sizes: [20],
      previous: 0,
      share: 6,
      ranges: [
        [0, 20],
        [21, 27],
        [28, Infinity],
      ],
    },
    {
      sizes: [7],
      previous: 6,
      share: 2,
      ranges: [
        [0, 7],
        [8, 10],
        [11, Infinity],
      ],
    },
    {
      sizes: [100, 200, 300, 400, 3000],
      previous: 0,
      share: 1333,
      ranges: [
        [0, 3000],
        [3001, 4334],
        [4335, Infinity],
      ],
    },
    {
      sizes: [50, 50, 50, 50],
      previous: 0,
      share: 66,
      ranges: [
        [0, 50],
        [51, 117],
        [118, Infinity],
      ],
    },
    {
      sizes: [0, 0, 0],
      previous: 0,
      share: 0,
      ranges: [
        [0, 0],
        [1, 1],
        [2, Infinity],
      ],
    },
    // A share of 0 is reached by the first size, be it 0.
    {
      sizes: [0, 1, 0],
      previous: 0,
      share: 0,
      ranges: [
        [0, 0],
        [1, 1],
        [2, Infinity],
      ],
    },
  ])('$sizes after a share of $previous', ({ sizes, previous, share, ranges }) => {
    const given = [...sizes];
    const adjusted = bucketRecompute(3, given, previous);
    expect(adjusted?.share).toBe(share);
    expect(adjusted?.ranges.map(({ low, high }) => [low, high])).toEqual(ranges);
    expect(given).toEqual(sizes);
  });

  it('BU-9b: a share within a factor of two changes nothing', () => {
    expect(bucketRecompute(3, [10, 20, 30, 32, 45, 55], 33)).toBeUndefined();
    expect(bucketRecompute(1, [66], 33)).toBeUndefined();
    expect(bucketRecompute(1, [33], 66)).toBeUndefined();
    expect(bucketRecompute(1, [67], 33)?.share).toBe(67);
    expect(bucketRecompute(1, [17], 33)).toBeUndefined();
    expect(bucketRecompute(1, [16], 33)?.share).toBe(16);
  });

  it('BU-9a: without traffic or workers nothing changes', () => {
    expect(bucketRecompute(3, [], 0)).toBeUndefined();
    expect(bucketRecompute(0, [5], 0)).toBeUndefined();
  });
});

describe('LB-42: arguments of the wrong type', () => {
  it.each([-1, 1.5, Number.NaN, '3', undefined])('refuses %j workers', (count) => {
    expect(() => bucketRecompute(count as number, [5], 0)).toThrow(TypeError);
    expect(() => bucketRecompute(count as number, [5], 0)).toThrow(/^workerCount: expected an integer ≥ 0, got /);
  });

  it('refuses a share that is no number', () => {
    expect(() => bucketRecompute(3, [5], '6' as never)).toThrow('previousShare: expected a number, got "6"');
  });

  it.each([null, undefined, 5, '55', { length: 1, 0: 5 }, new DataView(new ArrayBuffer(8))])(
    'refuses sizes that are no list of numbers: %j',
    (sizes) => {
      expect(() => bucketRecompute(3, sizes as never, 0)).toThrow(TypeError);
      expect(() => bucketRecompute(3, sizes as never, 0)).toThrow(/^sizes: expected an array of numbers, got /);
    },
  );

  it('refuses a typed array of other values than numbers', () => {
    expect(() => bucketRecompute(3, BigInt64Array.of(20n) as never, 0)).toThrow(
      'sizes: expected an array of numbers, got an object',
    );
  });

  it('names the first size that is no number', () => {
    expect(() => bucketRecompute(3, [5, '6' as never], 0)).toThrow('sizes[1]: expected a number, got "6"');
  });

  it('takes typed arrays for lists of numbers', () => {
    expect(bucketRecompute(3, Uint32Array.of(20), 0)).toEqual(bucketRecompute(3, [20], 0));
    expect(bucketRecompute(3, new Float64Array(0), 0)).toBeUndefined();
  });
});
