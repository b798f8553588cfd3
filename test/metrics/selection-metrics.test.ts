import { Decision } from 'kvroute';
import { describe, expect, it } from 'vitest';
import { boundRouter } from './recording-adapter.js';

const key = (value: string): { headers: Record<string, string> } => ({ headers: { 'x-smg-routing-key': value } });

describe('selections', () => {
  it('OB-10: one per selection, by worker, connection, model and configured policy', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random' });
    router.addWorker({ url: 'http://a:1', models: ['m'] });
    router.addWorker({ url: 'grpc://b:1', models: ['n'] });
    router.selectWorker({ model: 'm' });
    router.selectWorker({ model: 'm' });
    router.selectWorker({ model: 'n' });
    router.selectWorker({ model: 'nobody' });
    expect(metrics.of('smg_worker_selection_total')).toEqual({
      'worker_type=regular,connection_mode=http,model=m,policy=random': 2,
      'worker_type=regular,connection_mode=grpc,model=n,policy=random': 1,
    });
  });

  it('WK-5, OB-14: ZMQ traffic counts as gRPC in selections and as ZMQ in the size of the pool', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random' });
    router.addWorker({ url: 'ipc:///run/w.sock', models: ['m'] });
    router.selectWorker({ model: 'm' });
    expect(metrics.of('smg_worker_selection_total')).toEqual({
      'worker_type=regular,connection_mode=grpc,model=m,policy=random': 1,
    });
    expect(metrics.of('smg_worker_pool_size')).toEqual({ 'worker_type=regular,connection_mode=zmq,model=m': 1 });
  });

  it('LM-6, OB-10: legs are the worker types, each with its own policy', async () => {
    const { router, metrics } = await boundRouter({
      mode: 'epd',
      policy: 'least_load',
      decodePolicy: 'round_robin',
      encodePolicy: 'random',
    });
    for (const kind of ['prefill', 'decode', 'encode'] as const) {
      router.addWorker({ url: `http://${kind}:1`, kind, models: ['m'] });
    }
    expect(router.selectLegs({ model: 'm' }, { media: ['image'] }).ok).toBe(true);
    expect(metrics.of('smg_worker_selection_total')).toEqual({
      'worker_type=prefill,connection_mode=http,model=m,policy=least_load': 1,
      'worker_type=decode,connection_mode=http,model=m,policy=round_robin': 1,
      'worker_type=encode,connection_mode=http,model=m,policy=random': 1,
    });
  });

  it('LB-12: explain, rank and an acquire that was aborted already count nothing', async () => {
    const { router, metrics } = await boundRouter({ policy: 'prefix_hash' });
    router.addWorker({ id: 'a' });
    metrics.clear();
    router.explain({ text: 'hello' });
    router.rank({ text: 'hello' });
    router.acquire({ text: 'hello' }, { signal: AbortSignal.abort() });
    expect(metrics.of('smg_worker_selection_total')).toEqual({});
    expect(metrics.of('smg_prefix_hash_policy_branch_total')).toEqual({});
  });
});

describe('cache_aware', () => {
  const prompt = 'the quick brown fox jumps';

  it('OB-20, OB-21: tree decisions by branch, with the matched ratio', async () => {
    const { router, metrics } = await boundRouter({ policy: { name: 'cache_aware', balanceAbsThreshold: 1 } });
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'b' });
    const first = router.selectWorker({ text: prompt });
    if (!first.ok) throw new Error('expected a worker');
    const holder = first.worker;
    router.selectWorker({ text: prompt });
    expect(metrics.of('smg_cache_aware_policy_branch_total')).toEqual({
      'branch=expected_wait_fallback': 1,
      'branch=tree_match': 1,
    });
    const leases = Array.from({ length: 4 }, () => router.begin(holder.id));
    router.selectWorker({ text: prompt });
    expect(metrics.of('smg_cache_aware_policy_branch_total')).toEqual({
      'branch=expected_wait_fallback': 1,
      'branch=tree_match': 1,
      'branch=spill': 1,
    });
    expect(metrics.of('smg_cache_aware_match_ratio')).toEqual({ '': [0, 1, 1] });
    for (const lease of leases) lease.end();
  });

  it('OB-83: KV pressure is not in OB-20 and OB-21', async () => {
    const { router, metrics } = await boundRouter({
      policy: { name: 'cache_aware', overloadTokenUsageThreshold: 0.5 },
    });
    router.addWorker({ id: 'a' });
    router.reportLoad('a', { kvCacheUsage: 0.9 });
    const selection = router.selectWorker({ text: prompt });
    expect(selection.record.branch).toBe('kv_pressure_expected_wait');
    expect(metrics.of('smg_cache_aware_policy_branch_total')).toEqual({});
    expect(metrics.of('smg_cache_aware_match_ratio')).toEqual({});
  });

  it('OB-83: the hash index is not in OB-20, although its fallback bears the same name', async () => {
    const { router, metrics } = await boundRouter({
      policy: { name: 'cache_aware', cacheIndex: 'hash', cacheBoundaries: [2] },
    });
    router.addWorker({ id: 'a' });
    expect(router.selectWorker({ tokens: [1, 2, 3] }).record.branch).toBe('expected_wait_fallback');
    expect(router.selectWorker({ tokens: [1, 2, 3] }).record.branch).toBe('hash_hit');
    expect(metrics.of('smg_cache_aware_policy_branch_total')).toEqual({});
    expect(metrics.of('smg_worker_selection_total')).toEqual({
      'worker_type=regular,connection_mode=http,model=unknown,policy=cache_aware': 2,
    });
  });

  it('OB-20, OB-32: under the override the tree branch of a delegated decision counts beside the sticky one', async () => {
    const { router, metrics } = await boundRouter({ policy: 'cache_aware', routingKeyOverride: true });
    router.addWorker({ id: 'a' });
    router.selectWorker({ text: prompt, ...key('k') });
    router.selectWorker({ text: prompt, ...key('k') });
    expect(metrics.of('smg_cache_aware_policy_branch_total')).toEqual({ 'branch=expected_wait_fallback': 1 });
    expect(metrics.of('smg_cache_aware_match_ratio')).toEqual({ '': [0] });
    expect(metrics.of('smg_manual_policy_branch_total')).toEqual({ 'branch=vacant': 1, 'branch=occupied_hit': 1 });
  });
});

describe('prefix_hash', () => {
  it('OB-30: every decision by branch, also one that selects nobody', async () => {
    const { router, metrics } = await boundRouter({
      policy: { name: 'prefix_hash', balanceAbsThreshold: 0, loadFactor: 1 },
    });
    const branch = (request: object): string | undefined => router.selectWorker(request).record.branch;
    expect(branch({ text: 'hello' })).toBe('no_healthy_workers');
    router.addWorker({ id: 'a' });
    router.addWorker({ id: 'b' });
    expect(branch({ text: 'hello' })).toBe('ring_hit');
    expect(branch({})).toBe('no_routing_key');
    const owner = router.explain({ text: 'hello' }).selection;
    if (!owner.ok) throw new Error('expected a worker');
    for (let i = 0; i < 3; i++) router.begin(owner.worker);
    expect(branch({ text: 'hello' })).toBe('load_balance_walk');
    expect(metrics.of('smg_prefix_hash_policy_branch_total')).toEqual({
      'branch=no_healthy_workers': 1,
      'branch=ring_hit': 1,
      'branch=no_routing_key': 1,
      'branch=load_balance_walk': 1,
    });
    expect(metrics.of('smg_manual_policy_branch_total')).toEqual({});
  });
});

describe('consistent_hashing', () => {
  it('OB-31: every decision by branch; a header key is no override decision (OB-34)', async () => {
    const { router, metrics } = await boundRouter({ policy: 'consistent_hashing' });
    router.selectWorker(key('k'));
    router.addWorker({ id: 'a' });
    router.selectWorker(key('k'));
    router.selectWorker({});
    router.selectWorker({ headers: { 'x-smg-target-worker': '0' } });
    router.selectWorker({ headers: { 'x-smg-target-worker': '7' } });
    expect(metrics.of('smg_consistent_hashing_policy_branch_total')).toEqual({
      'branch=no_healthy_workers': 1,
      'branch=routing_key_hit': 1,
      'branch=random_fallback': 1,
      'branch=target_worker_hit': 1,
      'branch=target_worker_miss': 1,
    });
    expect(metrics.of('smg_routing_key_source_total')).toEqual({});
    expect(metrics.of('smg_manual_policy_branch_total')).toEqual({});
  });
});

describe('sticky decisions', () => {
  it('OB-32, OB-33: manual by branch, and the pins after each decision', async () => {
    const { router, metrics } = await boundRouter({ policy: 'manual' });
    router.selectWorker(key('k'));
    router.addWorker({ id: 'a' });
    router.selectWorker({});
    router.selectWorker(key('k'));
    expect(metrics.of('smg_manual_policy_cache_entries')).toEqual({ '': 1 });
    router.selectWorker(key('k'));
    router.selectWorker(key('other'));
    expect(metrics.of('smg_manual_policy_cache_entries')).toEqual({ '': 2 });
    router.addWorker({ id: 'b' });
    router.setStatus('a', 'not_ready');
    router.selectWorker(key('k'));
    expect(metrics.of('smg_manual_policy_branch_total')).toEqual({
      'branch=no_healthy_workers': 1,
      'branch=no_routing_id': 1,
      'branch=vacant': 2,
      'branch=occupied_hit': 1,
      'branch=occupied_miss': 1,
    });
    expect(metrics.of('smg_routing_key_source_total')).toEqual({});
  });

  it('OB-32, OB-34: override decisions by branch and by the source of their key', async () => {
    const { router, metrics } = await boundRouter({ policy: 'round_robin', routingKeyOverride: true });
    router.selectWorker(key('k'));
    router.addWorker({ id: 'a' });
    router.selectWorker({});
    for (let i = 0; i < 2; i++) {
      const selection = router.selectWorker(key('k'));
      if (selection.ok) selection.begin();
    }
    router.selectWorker(key('k'));
    router.selectWorker({ rid: 'conversation_t1' });
    expect(metrics.of('smg_manual_policy_branch_total')).toEqual({
      'branch=no_healthy_workers': 1,
      'branch=vacant': 2,
      'branch=occupied_hit': 1,
      'branch=cap_respill': 1,
    });
    expect(metrics.of('smg_routing_key_source_total')).toEqual({ 'source=header': 4, 'source=rid': 1 });
    expect(metrics.of('smg_manual_policy_cache_entries')).toEqual({ '': 2 });
  });

  it('OB-82: policies without branches have no branch metric', async () => {
    for (const policy of ['random', 'round_robin', 'passthrough', 'least_load', 'power_of_two'] as const) {
      const { router, metrics } = await boundRouter({ policy });
      router.addWorker({ id: 'a' });
      router.addWorker({ id: 'b' });
      router.selectWorker({ text: 'hello' });
      expect([...metrics.series.keys()].filter((name) => name.includes('branch'))).toEqual([]);
    }
  });

  it('OB-80: the branches of a custom policy are counted nowhere, whatever it calls itself', async () => {
    const { router, metrics } = await boundRouter({
      policy: () => ({
        name: 'prefix_hash',
        needs: {},
        decide: (_request, { workers }) => new Decision(workers[0], `made up ${workers.length}`),
      }),
    });
    router.addWorker({ id: 'a' });
    router.selectWorker({});
    expect(metrics.of('smg_prefix_hash_policy_branch_total')).toEqual({});
    expect(metrics.of('smg_worker_selection_total')).toEqual({
      'worker_type=regular,connection_mode=http,model=unknown,policy=prefix_hash': 1,
    });
  });
});

describe('sheds', () => {
  it('OB-41, OV-22: by stage; a refusal at dispatch counts no second decision', async () => {
    const { router, metrics } = await boundRouter({ policy: 'prefix_hash', workerOverloadTokenUsage: 0.8 });
    router.addWorker({ id: 'a', models: ['m'] });
    const selection = router.selectWorker({ model: 'm', text: 'hello' });
    router.reportLoad('a', { kvCacheUsage: 0.9 });
    if (selection.ok) selection.begin({ ifOverloaded: 'refuse' });
    expect(metrics.of('smg_worker_overload_shed_total')).toEqual({ 'stage=dispatch': 1 });
    router.selectWorker({ model: 'm', text: 'hello' });
    router.selectWorker({ model: 'm', text: 'hello' });
    expect(metrics.of('smg_worker_overload_shed_total')).toEqual({ 'stage=dispatch': 1, 'stage=selection': 2 });
    expect(metrics.of('smg_prefix_hash_policy_branch_total')).toEqual({
      'branch=ring_hit': 1,
      'branch=no_healthy_workers': 2,
    });
  });

  it('OV-21: an ordinary empty selection is no shed', async () => {
    const { router, metrics } = await boundRouter({ policy: 'random', workerOverloadTokenUsage: 0.8 });
    router.addWorker({ id: 'a', status: 'pending' });
    expect(router.selectWorker({})).toMatchObject({ reason: 'no_available_workers' });
    expect(metrics.of('smg_worker_overload_shed_total')).toEqual({});
  });
});
