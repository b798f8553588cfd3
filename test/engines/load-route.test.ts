import {
  type LoadRouteMemo,
  loadRoutesToAsk,
  readLoadResponse,
  rememberLoadRoute,
  unknownLoadRoutes,
} from 'kvroute/engines';
import { describe, expect, it } from 'vitest';

const body = '{"loads":[{"dp_rank":0,"num_waiting_reqs":4,"token_usage":0.25}]}';

describe('native load route', () => {
  it.each([200, 204, 299])('LR-11: %i with ranks is the report', (status) => {
    expect(readLoadResponse(status, body)).toStrictEqual({
      outcome: 'report',
      report: { ranks: [{ dpRank: 0, waitingRequests: 4, kvCacheUsage: 0.25 }] },
    });
  });

  it.each([404, 405, 501])('LR-11: %i is an absent route, whatever its body', (status) => {
    expect(readLoadResponse(status, body)).toStrictEqual({ outcome: 'absent' });
  });

  it.each([undefined, 100, 199, 300, 301, 401, 403, 408, 429, 500, 502, 503, 504, 0, Number.NaN])(
    'LR-11, B44: %s is inconclusive',
    (status) => {
      expect(readLoadResponse(status, body)).toStrictEqual({ outcome: 'inconclusive' });
    },
  );

  it.each([
    ['<html>nope</html>', 'absent', 'not_a_report'],
    [undefined, 'absent', 'not_a_report'],
    ['{"object":"list"}', 'absent', 'not_a_report'],
    ['{"loads":[]}', 'inconclusive', 'empty'],
    ['{"loads":[{"token_usage":-1}]}', 'inconclusive', 'invalid'],
  ])('LR-11: 200 with %s is %s (%s)', (text, outcome, reason) => {
    expect(readLoadResponse(200, text)).toMatchObject({ outcome, reason });
  });
});

describe('memory of load routes', () => {
  const routes = ['/v1/loads', '/loads'];
  const memoAfter = (memo: LoadRouteMemo, route: string, status: number) =>
    rememberLoadRoute(memo, route, readLoadResponse(status, body));

  it('B44: 503, 503, 200 on three polls: the third uses the route, and later polls ask it alone', () => {
    let memo = unknownLoadRoutes;
    for (const status of [503, 503]) {
      expect(loadRoutesToAsk(memo, routes)).toStrictEqual(routes);
      memo = memoAfter(memo, '/v1/loads', status);
    }
    expect(memo).toBe(unknownLoadRoutes);
    memo = memoAfter(memo, '/v1/loads', 200);
    expect(loadRoutesToAsk(memo, routes)).toStrictEqual(['/v1/loads']);
    expect(memoAfter(memo, '/v1/loads', 503)).toBe(memo);
    expect(memoAfter(memo, '/v1/loads', 200)).toBe(memo);
  });

  it('B44: after one 404 a route is not asked again; a new memo asks everything', () => {
    const memo = memoAfter(unknownLoadRoutes, '/v1/loads', 404);
    expect(loadRoutesToAsk(memo, routes)).toStrictEqual(['/loads']);
    expect(memoAfter(memo, '/v1/loads', 404).absent).toStrictEqual(['/v1/loads']);
    expect(loadRoutesToAsk(memoAfter(memo, '/loads', 405), routes)).toStrictEqual([]);
    expect(loadRoutesToAsk(unknownLoadRoutes, routes)).toStrictEqual(routes);
  });

  it('LR-10: a route that answered and then vanished gives way to the others', () => {
    const memo = memoAfter(memoAfter(unknownLoadRoutes, '/v1/loads', 200), '/v1/loads', 404);
    expect(loadRoutesToAsk(memo, routes)).toStrictEqual(['/loads']);
    const other = memoAfter(memo, '/loads', 200);
    expect(loadRoutesToAsk(other, routes)).toStrictEqual(['/loads']);
    expect(memoAfter(other, '/v1/loads', 404).answered).toBe('/loads');
    expect(memoAfter(other, '/v1/loads', 200)).toStrictEqual({ answered: '/v1/loads', absent: [] });
  });

  it('LR-10: a remembered route that the host no longer asks is left out', () => {
    expect(loadRoutesToAsk({ answered: '/old', absent: [] }, routes)).toStrictEqual(routes);
  });
});
