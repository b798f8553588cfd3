/** Reported faults of load reports, of the clients that fetch them and of the scores they feed: one test an id. */
import { leastLoad, powerOfTwo, type RankLoad, type Router } from 'kvroute';
import {
  type LoadReportKind,
  type LoadReportOptions,
  loadRoutesToAsk,
  parseLoadReport,
  readLoadResponse,
  rememberLoadRoute,
  unknownLoadRoutes,
} from 'kvroute/engines';
import { distribution, fakeCandidate, fakeFleet, fakeReport, manualClock } from 'kvroute/testing';
import { describe, expect, it } from 'vitest';
import { payloads } from './recorded.js';
import { fleet, names, pick, tally, times } from './support.js';

/** The ranks of a payload, or the reason why it gives no report. */
function ranks(kind: LoadReportKind, payload: unknown, options?: LoadReportOptions): readonly RankLoad[] | string {
  const result = parseLoadReport(kind, payload, options);
  return result.ok ? result.report.ranks : result.reason;
}

/** The terms a router's scorer reads from a worker's last report. */
function termsOf(router: Router, id: string) {
  return router.explain({}).policy.scores?.find((terms) => terms.worker === id);
}

/** Reports a payload to `w1`, beside an honest idle `w2`, and tells who is chosen 20 times. */
async function besideIdle(payload: unknown): Promise<Set<string>> {
  const router = await fleet(names(2), { policy: 'least_load' });
  const result = parseLoadReport('sglang_loads', payload);
  for (const id of names(2)) router.begin(id);
  return new Set(
    times(20, () => {
      router.reportLoads([
        ['w1', result.ok ? result.report : null],
        ['w2', fakeReport()],
      ]);
      return pick(router);
    }),
  );
}

describe('load reports', () => {
  it('B36: a report that is not renewed counts no longer than the staleness horizon', async () => {
    const time = manualClock();
    const start = async (): Promise<Router> => {
      const router = await fleet(names(2), { policy: 'least_load', clock: time.clock });
      router.begin('w1');
      router.reportLoads([
        ['w1', fakeReport({ waitingTokens: 0 })],
        ['w2', fakeReport({ waitingTokens: 10_000 })],
      ]);
      expect(pick(router)).toBe('w1');
      return router;
    };
    // The host tells of the failure, or merges only what succeeded: either way nothing stays of the old numbers.
    for (const failed of [[['w1', null]], []] as const) {
      const router = await start();
      for (let interval = 0; interval < 5; interval++) {
        time.advance(10_000);
        router.reportLoads([...failed, ['w2', fakeReport({ waitingTokens: 10_000 })]]);
      }
      expect(router.worker('w1')?.report).toBeUndefined();
      expect(termsOf(router, 'w1')?.basis).toBe('baseline');
      expect(times(20, () => pick(router))).not.toContain('w1');
    }
  });

  it('B38: a queue without a count of its tokens is estimated from its depth', () => {
    const queue = (waitingRequests: number, waitingTokens?: number) => ({
      report: { waitingRequests, waitingTokens, tokensPerSecond: 100, kvCacheUsage: 0 },
    });
    const deep = fakeCandidate({ id: 'a', ...queue(64) });
    const shallow = fakeCandidate({ id: 'b', ...queue(6) });
    const policy = leastLoad({ seed: 1, clock: () => 0 });
    const { scores } = policy.explain({}, [deep, shallow]).policy;
    expect(scores?.map(({ score }) => score)).toEqual([655.36, 61.44]);
    for (let i = 0; i < 20; i++)
      expect(policy.selectWorker({}, [deep, shallow])).toMatchObject({ worker: { id: 'b' } });
    // A count above 0 wins over the estimate, and an empty queue is empty.
    const counted = [fakeCandidate({ id: 'c', ...queue(200, 500) }), fakeCandidate({ id: 'd', ...queue(1, 8000) })];
    expect(distribution(leastLoad, {}, counted).reachable).toEqual(['c']);
    const empty = fakeCandidate({ id: 'e', ...queue(0, 0) });
    expect(policy.explain({}, [empty]).policy.scores?.[0]?.queuedTokens).toBe(0);
  });

  it('B39: work sent since the last report counts, until the next report', async () => {
    for (const policy of ['power_of_two', 'least_load'] as const) {
      const router = await fleet(names(2), { policy });
      const tick = () => router.reportLoads(names(2).map((id) => [id, fakeReport()]));
      tick();
      const counts = tally(times(20, () => pick(router)));
      expect([counts.get('w1'), counts.get('w2')]).toEqual([10, 10]);
      expect(router.workers().map((worker) => worker.creditRequests)).toEqual([10, 10]);
      tick();
      expect(router.workers().map((worker) => [worker.creditTokens, worker.creditRequests])).toEqual([
        [0, 0],
        [0, 0],
      ]);
    }
  });

  it('B41: every engine has its own load route and body; what is unknown is no report, told once', async () => {
    const legacy = [
      { dp_rank: 0, num_reqs: 6, num_waiting_reqs: 2, num_tokens: 4096 },
      { dp_rank: 1, num_reqs: 1, num_waiting_reqs: 0, num_tokens: 512 },
    ];
    for (const body of payloads('loads/get_load_legacy_array.json', legacy)) {
      const parsed = ranks('sglang_get_load', body);
      expect(parsed).toHaveLength(2);
      expect((parsed as RankLoad[]).map(({ dpRank, waitingRequests }) => [dpRank, waitingRequests])).toEqual([
        [0, 2],
        [1, 0],
      ]);
      expect((parsed as RankLoad[]).reduce((sum, rank) => sum + (rank.totalRequests ?? 0), 0)).toBe(7);
      expect((parsed as RankLoad[]).every(({ kvCacheUsage }) => kvCacheUsage === undefined)).toBe(true);
    }
    for (const body of payloads('loads/get_load_legacy_object.json', { load: 7 })) {
      expect(ranks('sglang_get_load', body)).toBe('no_kv_usage');
    }
    for (const body of payloads('loads/vllm_load.json', { server_load: 4 })) {
      expect(ranks('vllm_load', body)).toBe('no_kv_usage');
    }
    const other = { object: 'list', data: [{ id: 'some-model', object: 'model' }] };
    for (const body of payloads('loads/not_a_load_body_200.json', other)) {
      for (const kind of ['sglang_loads', 'sglang_get_load', 'vllm_load'] as const)
        expect(ranks(kind, body)).toBe('not_a_report');
      expect(readLoadResponse(200, body)).toMatchObject({ outcome: 'absent', reason: 'not_a_report' });
    }
    // Handed over unread, such a body is no report either: never an idle worker, never an exception.
    const router = await fleet(names(2), { policy: 'least_load' });
    const warned: string[] = [];
    router.on('warning', ({ code, worker }) => warned.push(`${code} ${worker}`));
    router.begin('w1');
    for (const body of ['<html>', { ranks: 'x' }, { ranks: [{ waitingRequests: '0' }] }]) {
      router.reportLoad('w1', body as never);
      expect(router.worker('w1')?.report).toBeUndefined();
    }
    expect(warned).toEqual(['invalidReport w1']);
    router.reportLoad('w2', fakeReport());
    expect(pick(router)).toBe('w2');
  });

  it('B42: ranks are summed, and a value that cannot be makes no worker attractive', async () => {
    const rank = (dp_rank: number, running: number, waiting: number, tokens: number, usage: number) => ({
      dp_rank,
      num_running_reqs: running,
      num_waiting_reqs: waiting,
      num_waiting_uncached_tokens: tokens,
      token_usage: usage,
      gen_throughput: 1500,
    });
    const two = { dp_rank_count: 2, loads: [rank(0, 12, 3, 5120, 0.37), rank(1, 9, 0, 0, 0.23)] };
    for (const body of payloads('loads/v1_loads_dp2.json', two)) {
      const parsed = parseLoadReport('sglang_loads', body);
      if (!parsed.ok) throw new Error(parsed.reason);
      const running = parsed.report.ranks.reduce((sum, { runningRequests = 0 }) => sum + runningRequests, 0);
      const waiting = parsed.report.ranks.reduce((sum, { waitingRequests = 0 }) => sum + waitingRequests, 0);
      expect([running, waiting]).toEqual([21, 3]);
      const router = await fleet(['w1'], { policy: 'least_load' });
      router.reportLoad('w1', parsed.report);
      expect(termsOf(router, 'w1')).toMatchObject({ queuedTokens: 5120, kvCacheUsage: 0.3 });
    }
    const twice = { dp_rank_count: 2, loads: [rank(0, 3, 0, 0, 0.2), rank(0, 4, 0, 0, 0.4)] };
    for (const body of payloads('loads/v1_loads_duplicate_rank.json', twice)) {
      expect(ranks('sglang_loads', body)).toBe('invalid');
      expect(await besideIdle(body)).toEqual(new Set(['w2']));
    }
    const negative = { loads: [rank(0, -1, -5, -100, -0.2)] };
    for (const body of payloads('loads/v1_loads_negative.json', negative)) {
      expect(ranks('sglang_loads', body)).toBe('invalid');
      expect(await besideIdle(body)).toEqual(new Set(['w2']));
    }
    const missing = { dp_rank_count: 2, loads: [rank(0, 3, 0, 0, 0.2)] };
    expect(ranks('sglang_loads', missing)).toBe('invalid');
    // And a sentinel that reaches the router all the same reads 0, not less.
    const router = await fleet(['w1'], { policy: 'least_load' });
    router.reportLoad('w1', { waitingRequests: -1, waitingTokens: -1, kvCacheUsage: -1, tokensPerSecond: -1 });
    expect(termsOf(router, 'w1')).toMatchObject({ score: 0, queuedTokens: 0, kvCacheUsage: 0, tokensPerSecond: 2000 });
  });

  it('B43: metrics are found under their older and their newer names', () => {
    const vllm = (gauge: string, waiting: number, running: number, usage: string): string =>
      `vllm:num_requests_waiting{model_name="m"} ${waiting}.0\n` +
      `vllm:num_requests_running{model_name="m"} ${running}.0\nvllm:${gauge}{model_name="m"} ${usage}\n`;
    for (const text of payloads('prom/vllm_v0_single.prom', vllm('gpu_cache_usage_perc', 2, 3, '0.75'))) {
      expect(ranks('vllm_metrics', text)).toMatchObject([
        { runningRequests: 3, waitingRequests: 2, kvCacheUsage: 0.75 },
      ]);
    }
    const newer = vllm('kv_cache_usage_perc', 0, 0, '9.75010481363281e-06');
    for (const text of payloads('prom/vllm_v1_engine0.prom', newer)) {
      expect(ranks('vllm_metrics', text)).toMatchObject([{ kvCacheUsage: 9.75010481363281e-6, waitingRequests: 0 }]);
    }
    const both = `${vllm('gpu_cache_usage_perc', 0, 0, '0.9')}vllm:kv_cache_usage_perc{model_name="m"} 0.2\n`;
    expect(ranks('vllm_metrics', both)).toMatchObject([{ kvCacheUsage: 0.2 }]);
    const sglang = (prefix: string, running: number, waiting: number, usage: number, more = ''): string =>
      `${prefix}num_running_reqs{model_name="m"} ${running}\n${prefix}num_queue_reqs{model_name="m"} ${waiting}\n` +
      `${prefix}token_usage{model_name="m"} ${usage}\n${more}`;
    const colon = sglang('sglang:', 3, 4, 0.284, 'sglang:gen_throughput{model_name="m"} 117.3\n');
    for (const text of payloads('prom/sglang_v053_colon.prom', colon)) {
      const expected = { runningRequests: 3, waitingRequests: 4, kvCacheUsage: 0.284, tokensPerSecond: 117.3 };
      expect(ranks('sglang_metrics', text)).toMatchObject([expected]);
    }
    for (const text of payloads('prom/sglang_v054_underscore.prom', sglang('sglang_', 7, 1, 0.5))) {
      expect(ranks('sglang_metrics', text)).toMatchObject([
        { runningRequests: 7, waitingRequests: 1, kvCacheUsage: 0.5 },
      ]);
    }
  });

  it('B44: a route that did not answer is asked again, one that is not there is not', () => {
    const body = { loads: [{ dp_rank: 0, num_waiting_reqs: 4, token_usage: 0.25 }] };
    const route = '/v1/loads';
    let memo = unknownLoadRoutes;
    const poll = (status: number | undefined, answer: unknown = body): string => {
      if (!loadRoutesToAsk(memo, [route]).includes(route)) return 'not asked';
      const outcome = readLoadResponse(status, answer);
      memo = rememberLoadRoute(memo, route, outcome);
      return outcome.outcome;
    };
    expect([poll(503), poll(503), poll(200)]).toEqual(['inconclusive', 'inconclusive', 'report']);
    for (const status of [undefined, 401, 403, 408, 429, 500, 504]) expect(poll(status)).toBe('inconclusive');
    expect(poll(200, { loads: [] })).toBe('inconclusive');
    expect(poll(200)).toBe('report');
    for (const gone of [() => poll(404), () => poll(405), () => poll(501), () => poll(200, '<html>')]) {
      memo = unknownLoadRoutes;
      expect([gone(), poll(200), poll(200)]).toEqual(['absent', 'not asked', 'not asked']);
    }
    // The worker is registered anew: its memo is a new one.
    memo = unknownLoadRoutes;
    expect(poll(200)).toBe('report');
  });

  it('B46: series of several models on one worker are read for the model that is asked for', () => {
    const text =
      'vllm:num_requests_waiting{model_name="base"} 1\nvllm:num_requests_waiting{model_name="adapter-a"} 9\n' +
      'vllm:kv_cache_usage_perc{model_name="base"} 0.20\nvllm:kv_cache_usage_perc{model_name="adapter-a"} 0.80\n';
    for (const payload of payloads('prom/vllm_two_models_one_worker.prom', text)) {
      const read = (model?: string) => ranks('vllm_metrics', payload, { model });
      expect(read('base')).toMatchObject([{ waitingRequests: 1, kvCacheUsage: 0.2 }]);
      expect(read('adapter-a')).toMatchObject([{ waitingRequests: 9, kvCacheUsage: 0.8 }]);
      expect(read()).toMatchObject([{ waitingRequests: 10, kvCacheUsage: 0.5 }]);
    }
  });

  it('B47: counts of ranks add up, fractions are averaged, and no KV gauge is no report', async () => {
    const text =
      'vllm:num_requests_running{engine="0"} 5.0\nvllm:num_requests_running{engine="1"} 3.0\n' +
      'vllm:num_requests_waiting{engine="0"} 2.0\nvllm:num_requests_waiting{engine="1"} 0.0\n' +
      'vllm:kv_cache_usage_perc{engine="0"} 0.45\nvllm:kv_cache_usage_perc{engine="1"} 0.32\n';
    for (const payload of payloads('prom/vllm_v1_dp2.prom', text)) {
      const [rank] = ranks('vllm_metrics', payload) as RankLoad[];
      expect(rank).toMatchObject({ runningRequests: 8, waitingRequests: 2 });
      expect(rank?.kvCacheUsage).toBeCloseTo(0.385, 12);
    }
    const silent = 'vllm:num_requests_running{engine="0"} 4.0\nvllm:num_requests_waiting{engine="0"} 7.0\n';
    for (const payload of payloads('prom/vllm_no_kv_gauge.prom', silent)) {
      expect(ranks('vllm_metrics', payload)).toBe('no_kv_usage');
    }
  });

  it('B48: neither NaN nor infinity reaches a comparison', async () => {
    const full = [
      fakeCandidate({ id: 'w1', report: fakeReport({ kvCacheUsage: 1 }) }),
      fakeCandidate({ id: 'w2', report: fakeReport({ kvCacheUsage: 0.5 }) }),
    ];
    for (const policy of [leastLoad, powerOfTwo]) expect(distribution(policy, {}, full).reachable).toEqual(['w2']);
    const terms = leastLoad().explain({}, full).policy.scores?.[0];
    expect(terms?.kvCacheUsage).toBe(0.999);
    expect(Number.isFinite(terms?.score)).toBe(true);

    const router = await fleet(names(2), { policy: 'least_load' });
    for (const kvCacheUsage of [Number.NaN, Infinity, -Infinity]) {
      router.reportLoad('w1', fakeReport());
      const tick = router.reportLoad('w1', fakeReport({ kvCacheUsage }));
      expect(tick).toEqual({ applied: 0, lost: 1, invalid: 1, ignored: 0 });
      expect(router.worker('w1')?.report).toBeUndefined();
    }
    router.reportLoad('w2', fakeReport({ tokensPerSecond: 0, waitingTokens: 4000 }));
    expect(termsOf(router, 'w2')).toMatchObject({ tokensPerSecond: 2000, score: 2 });
    expect(ranks('vllm_metrics', 'vllm:kv_cache_usage_perc NaN\nvllm:num_requests_waiting +Inf\n')).toBe('no_kv_usage');
    expect(() => leastLoad({ kvPressureWeight: Number.NaN })).toThrow(/^kvPressureWeight: /);
    expect(() => leastLoad({ kvPressureWeight: -1 })).toThrow(/^kvPressureWeight: /);

    // Averages over nobody.
    const nobody = leastLoad().explain({}, []);
    expect(nobody.selection).toMatchObject({ ok: false, record: { expectedWaitSeconds: undefined } });
    expect(JSON.stringify(nobody)).not.toMatch(/NaN|null/);
    expect(router.explain({}, []).selection).toMatchObject({ ok: false, record: { expectedWaitSeconds: undefined } });
    const dark = leastLoad().selectWorker({}, fakeFleet(2));
    expect(dark.record.expectedWaitSeconds).toBeUndefined();
  });

  it('B49: only evidence excludes a worker, and the exclusion of all is an outcome with a reason', async () => {
    const router = await fleet(names(2), { policy: 'random', workerOverloadTokenUsage: 0.9 });
    const seen = (): Set<string> => new Set(times(100, () => pick(router)));
    expect(seen()).toEqual(new Set(['w1', 'w2']));
    router.reportLoads([
      ['w1', fakeReport({ kvCacheUsage: 0.95 })],
      ['w2', null],
    ]);
    expect(seen()).toEqual(new Set(['w2']));
    router.reportLoads([
      ['w1', null],
      ['w2', null],
    ]);
    expect(seen()).toEqual(new Set(['w1', 'w2']));
    router.reportLoads(names(2).map((id) => [id, fakeReport({ kvCacheUsage: 0.95 })]));
    expect(router.selectWorker({})).toMatchObject({
      ok: false,
      reason: 'overloaded',
      code: 'worker_overload_protection_shed',
      retryable: false,
    });
  });
});
