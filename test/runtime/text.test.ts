import { describe, expect, it } from 'vitest';
import { countCodePoints } from '../../src/runtime/text.js';
import { fc } from '../support/property.js';

describe('BU-3, PH-2: code points', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['héllo', 5],
    ['你好', 2],
    ['😀', 1],
    ['a😀b😀', 4],
    ['\ud83d', 1],
    ['\ude00\ud83d', 2],
    ['\ud83d\ud83d\ude00', 2],
    ['e\u0301', 2],
  ])('counts %j as %i', (text, count) => {
    expect(countCodePoints(text)).toBe(count);
  });

  it('agrees with the language for any string, well-formed or not', () => {
    const unit = fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd800, max: 0xdfff }));
    const text = fc.array(unit, { maxLength: 40 }).map((units) => String.fromCharCode(...units));
    fc.assert(fc.property(text, (sample) => countCodePoints(sample) === Array.from(sample).length));
  });

  it('B90: 5 MB in one line', () => {
    expect(countCodePoints('x'.repeat(5_000_000))).toBe(5_000_000);
    expect(countCodePoints('😀'.repeat(2_500_000))).toBe(2_500_000);
  });
});
