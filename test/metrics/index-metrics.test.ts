import { describe, expect, it } from 'vitest';
import { boundRouter } from './recording-adapter.js';

describe('learned state of cache_aware', () => {
  it('OB-22, OB-23: sizes and tenants of the trees by model, told after an eviction pass', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({
      clock: () => now,
      policy: { name: 'cache_aware', evictionIntervalMs: 1000, maxTreeSize: 20, blockSize: 2 },
    });
    router.addWorker({ id: 'a', models: ['m'] });
    router.addWorker({ id: 'b', models: ['n'] });
    router.maintain();
    router.selectWorker({ model: 'm', text: 'naïve 😀' });
    router.selectWorker({ model: 'm', tokens: [1, 2, 3, 4, 5] });
    router.selectWorker({ model: 'n', text: 'abc' });
    expect(metrics.of('smg_cache_tree_chars')).toEqual({});
    now = 1000;
    router.maintain();
    expect(metrics.of('smg_cache_tree_chars')).toEqual({ 'model=m': 7, 'model=n': 3 });
    expect(metrics.of('smg_cache_tree_tokens')).toEqual({ 'model=m': 4 });
    expect(metrics.of('smg_cache_tree_tenants')).toEqual({
      'model=m,tree=string': 1,
      'model=m,tree=token': 1,
      'model=n,tree=string': 1,
    });
    router.selectWorker({ model: 'm', text: '0123456789'.repeat(2) });
    now = 2000;
    router.maintain();
    expect(metrics.of('smg_cache_tree_chars')).toEqual({ 'model=m': 20, 'model=n': 3 });
  });

  it('OB-22, LM-26: the legs of one model add up; a model whose last worker left is told as 0', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({
      clock: () => now,
      mode: 'pd',
      policy: { name: 'cache_aware', evictionIntervalMs: 1000 },
    });
    router.addWorker({ id: 'p', kind: 'prefill', models: ['m'] });
    router.addWorker({ id: 'd', kind: 'decode', models: ['m'] });
    router.maintain();
    router.selectLegs({ model: 'm', text: 'abcde' });
    now = 1000;
    router.maintain();
    expect(metrics.of('smg_cache_tree_chars')).toEqual({ 'model=m': 10 });
    router.removeWorker('p');
    expect(metrics.of('smg_cache_tree_chars')).toEqual({ 'model=m': 5 });
    router.replaceWorker({ id: 'd', kind: 'decode', models: ['other-model'] });
    expect(metrics.of('smg_cache_tree_chars')).toEqual({ 'model=m': 0 });
    expect(metrics.of('smg_cache_tree_tenants')).toEqual({ 'model=m,tree=string': 0 });
  });

  it('OB-22, LB-35, LM-25: what a replaced policy held is told as 0, and so is a token tree that starts anew', async () => {
    let now = 0;
    const policy = { name: 'cache_aware', evictionIntervalMs: 1000, blockSize: 2 } as const;
    const { router, metrics } = await boundRouter({ clock: () => now, policy });
    router.addWorker({ id: 'a', models: ['m'] });
    router.addWorker({ id: 'b', labels: { policy: 'cache_aware' } });
    const learn = (): void => {
      router.maintain();
      router.selectWorker({ model: 'm', text: 'abcde' });
      router.selectWorker({ model: 'm', tokens: [1, 2, 3, 4] });
      router.selectWorker({ text: 'abc' });
      now += 1000;
      router.maintain();
    };
    const sizes = () => [metrics.of('smg_cache_tree_chars'), metrics.of('smg_cache_tree_tokens')];
    learn();
    expect(sizes()).toEqual([{ 'model=m': 5, 'model=unknown': 3 }, { 'model=m': 4 }]);
    router.reconfigure({ policy: { ...policy, blockSize: 4 } });
    expect(sizes()).toEqual([{ 'model=m': 5, 'model=unknown': 3 }, { 'model=m': 0 }]);
    learn();
    expect(sizes()[1]).toEqual({ 'model=m': 4 });
    const replaced: string[] = [];
    router.on('policyReplaced', ({ model, leg, policy: name }) => replaced.push(`${leg} ${model} ${name}`));
    router.reconfigure({ policy: 'random' });
    expect(replaced).toEqual(['single m random']);
    expect(sizes()).toEqual([{ 'model=m': 0, 'model=unknown': 3 }, { 'model=m': 0 }]);
    // The last worker without a model leaves: `unknown` returns to the configured policy.
    router.removeWorker('b');
    expect(replaced).toEqual(['single m random', 'single unknown random']);
    expect(metrics.of('smg_cache_tree_chars')).toEqual({ 'model=m': 0, 'model=unknown': 0 });
    expect(metrics.of('smg_cache_tree_tenants')).toEqual({
      'model=m,tree=string': 0,
      'model=m,tree=token': 0,
      'model=unknown,tree=string': 0,
    });
  });

  it('OB-24: heads with a live holder, told after a sweep', async () => {
    let now = 0;
    const { router, metrics } = await boundRouter({
      clock: () => now,
      policy: {
        name: 'cache_aware',
        cacheIndex: 'hash',
        cacheBoundaries: [2, 4],
        evictionIntervalMs: 1000,
        cacheTtlMs: 1500,
      },
    });
    router.addWorker({ id: 'a', models: ['m'] });
    router.maintain();
    router.selectWorker({ model: 'm', tokens: [1, 2, 3, 4] });
    router.selectWorker({ model: 'm', tokens: [1, 2, 9] });
    now = 1000;
    router.maintain();
    expect(metrics.of('smg_cache_placement_entries')).toEqual({ 'model=m': 2, 'model=unknown': 0 });
    now = 2000;
    router.maintain();
    expect(metrics.of('smg_cache_placement_entries')).toEqual({ 'model=m': 0, 'model=unknown': 0 });
    expect(metrics.of('smg_cache_tree_chars')).toEqual({});
  });
});
