import { describe, expect, it } from 'vitest';
import { parseRoutingTokens } from '../../src/prefix/routing-tokens.js';

const parsed = (header: string | undefined): number[] | undefined => {
  const ids = parseRoutingTokens(header);
  return ids === undefined ? undefined : Array.from(ids);
};

describe('parseRoutingTokens', () => {
  it('CA-110, CA-112: reads comma-separated ids, leading zeros included', () => {
    expect(parsed('1,2,3')).toEqual([1, 2, 3]);
    expect(parsed('0')).toEqual([0]);
    expect(parsed('007,00')).toEqual([7, 0]);
    expect(parsed('4294967295')).toEqual([4294967295]);
    expect(parsed(`${'0'.repeat(4095)}7`)).toEqual([7]);
  });

  it('CA-110, CA-112: anything else is as if the header were absent', () => {
    const ignored: readonly (string | undefined)[] = [
      undefined,
      '',
      ',',
      '1,,3',
      ',1',
      '1,',
      '1, 2',
      ' 1',
      '1 ',
      '+1',
      '-1',
      '1.0',
      '1e3',
      '0x1',
      '4294967296',
      '99999999999999999999999999',
      '１',
      '1;2',
      '\u00ff',
      '1,\ufffd',
      '1\u0000',
      'Infinity',
      'NaN',
    ];
    for (const header of ignored) expect(parsed(header)).toBeUndefined();
  });

  it('CA-110: at most 512 ids and 4096 bytes', () => {
    const list = (count: number, id = '7'): string => new Array<string>(count).fill(id).join();
    expect(parsed(list(512))?.length).toBe(512);
    expect(parsed(list(513))).toBeUndefined();
    // 372 ids of 10 digits and their commas are 4091 bytes.
    const long = list(372, '1234567890');
    expect(long.length).toBe(4091);
    expect(parsed(`${long},123`)?.length).toBe(373);
    expect(parsed(`${long},1234`)?.length).toBe(373);
    expect(parsed(`${long},12345`)).toBeUndefined();
    expect(parsed('0'.repeat(4097))).toBeUndefined();
  });
});
