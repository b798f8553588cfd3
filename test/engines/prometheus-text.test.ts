import { describe, expect, it } from 'vitest';
import { readSamples } from '../../src/engines/prometheus-text.js';

const wanted = new Set(['m', 'a:b_1']);

function read(text: string) {
  return (readSamples(text, wanted).get('m') ?? []).map(({ value, labels }) => [value, Object.fromEntries(labels)]);
}

describe('Prometheus text', () => {
  it.each([
    ['plain', 'm 1', [[1, {}]]],
    [
      'CRLF',
      'm 1\r\nm{a="b"} 2\r\n',
      [
        [1, {}],
        [2, { a: 'b' }],
      ],
    ],
    ['blanks around', ' \t m\t1 \n', [[1, {}]]],
    [
      'time stamp and exemplar',
      'm 1 1719849600000\nm{a="b"} 2 # {trace="}"} 9',
      [
        [1, {}],
        [2, { a: 'b' }],
      ],
    ],
    ['blanks in the labels', 'm { a = "b" , c = "d" , } 3', [[3, { a: 'b', c: 'd' }]]],
    ['empty labels, no blank behind', 'm{}4', [[4, {}]]],
    [
      'exponents and signs',
      'm 1e3\nm +2.5E-1\nm -.5',
      [
        [1000, {}],
        [0.25, {}],
        [-0.5, {}],
      ],
    ],
    ['no newline at the end', '\n\nm 5', [[5, {}]]],
    ['other series', 'm_total 1\nn{m="1"} 2\nm{a="x"} 3', [[3, { a: 'x' }]]],
  ])('LR-17: %s', (_, text, expected) => {
    expect(read(text)).toStrictEqual(expected);
  });

  it('LR-18: braces, commas and escapes inside a value are data', () => {
    const line = String.raw`m{a="x}y,{\"\\",b="1\n2\t"} 7`;
    expect(read(line)).toStrictEqual([[7, { a: 'x}y,{"\\', b: '1\n2\\t' }]]);
  });

  it.each([
    'm',
    'm ',
    'm{a="b"}',
    'm x',
    'm 0x10',
    'm 1_000',
    'm 1e',
    'm --1',
    '# m 1',
    'm{a=b} 1',
    'm{a="b} 1',
    'm{a="b\\',
    'm{="b"} 1',
    'm{a} 1',
    'm{a="b" c="d"} 1',
    'm{a="b"',
    'm{',
    '{m} 1',
    'm-1 2',
    'm.5 3',
    'Xm 1',
  ])('LR-17: the line %j is skipped', (line) => {
    expect(readSamples(`${line}\n`, wanted).has('m')).toBe(false);
    expect(read(`${line}\nm 1`)).toStrictEqual([[1, {}]]);
  });

  it.each(['NaN', 'nan', '+Inf', '-Inf', 'inf', 'Infinity', '1e999'])(
    'LR-18: %s is skipped, its series is seen',
    (value) => {
      expect(readSamples(`m ${value}`, wanted).get('m')).toStrictEqual([]);
      expect(read(`m ${value}\nm{a="b"} 1\nm ${value}`)).toStrictEqual([[1, { a: 'b' }]]);
    },
  );

  it('LR-17: names may hold colons, digits and underscores', () => {
    expect(readSamples('a:b_1 3\na:b_10 4', wanted).get('a:b_1')).toStrictEqual([{ value: 3, labels: new Map() }]);
  });
});
