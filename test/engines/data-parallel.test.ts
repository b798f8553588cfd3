import { dataParallelWorkers, splitRank } from 'kvroute/engines';
import { describe, expect, it } from 'vitest';
import { RoutingConfigError } from '../../src/errors.js';

describe('data-parallel workers', () => {
  it('WK-15: one engine of size N becomes N workers that differ in url and id only', () => {
    expect(dataParallelWorkers({ url: 'http://h:30000', models: ['m'] }, 3)).toStrictEqual([
      { url: 'http://h:30000@0', models: ['m'] },
      { url: 'http://h:30000@1', models: ['m'] },
      { url: 'http://h:30000@2', models: ['m'] },
    ]);
    expect(dataParallelWorkers({ id: 'w', url: 'grpc://h:1' }, 1)).toStrictEqual([{ id: 'w@0', url: 'grpc://h:1@0' }]);
    expect(dataParallelWorkers({ id: 'w' }, 2).map(({ id }) => id)).toStrictEqual(['w@0', 'w@1']);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('WK-15: size %s is a configuration error', (size) => {
    expect(() => dataParallelWorkers({ id: 'w' }, size)).toThrow(RoutingConfigError);
  });

  it.each([
    ['http://h:30000@1', 'http://h:30000', 1],
    ['http://h:30000@0', 'http://h:30000', 0],
    ['http://user@h:1@12', 'http://user@h:1', 12],
    ['http://h:30000', 'http://h:30000', undefined],
    ['http://user@h:30000', 'http://user@h:30000', undefined],
    ['http://h@', 'http://h@', undefined],
    ['http://h@-1', 'http://h@-1', undefined],
    ['http://h@1.5', 'http://h@1.5', undefined],
    ['http://h@9999999999', 'http://h@9999999999', undefined],
    ['@1', '@1', undefined],
    ['7', '7', undefined],
    ['', '', undefined],
  ])('WK-16: %j is sent to %j with rank %s', (address, url, rank) => {
    expect(splitRank(address)).toStrictEqual({ url, rank });
  });
});

it('LB-42: a size that an engine gives wrongly is refused before it takes all memory', () => {
  expect(dataParallelWorkers({ id: 'w' }, 65_536)).toHaveLength(65_536);
  for (const size of [65_537, 2 ** 32, Infinity]) {
    expect(() => dataParallelWorkers({ id: 'w' }, size)).toThrow(RoutingConfigError);
  }
  expect(() => dataParallelWorkers({ id: Symbol('w') as never }, 1)).toThrow(/^id: expected a string, got a symbol/);
});
