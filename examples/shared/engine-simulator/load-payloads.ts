/** What a simulated engine says about its load: SGLang's `/v1/loads` body and its Prometheus text. */
import type { Engine } from './engine.js';

/** The body of `/v1/loads`: one data-parallel rank. */
export function renderLoads(engine: Engine): object {
  const load = engine.load();
  const usage = load.usedTokens / load.capacityTokens;
  return {
    timestamp: new Date().toISOString(),
    version: 'simulator',
    dp_rank_count: 1,
    loads: [
      {
        dp_rank: 0,
        num_running_reqs: load.runningRequests,
        num_waiting_reqs: load.waitingRequests,
        num_waiting_uncached_tokens: load.waitingUncachedTokens,
        num_total_reqs: load.runningRequests + load.waitingRequests,
        num_used_tokens: load.usedTokens,
        max_total_num_tokens: load.capacityTokens,
        token_usage: usage,
        gen_throughput: load.tokensPerSecond,
        cache_hit_rate: load.cacheHitRate,
        utilization: load.runningRequests / engine.options.maxRunningRequests,
        max_running_requests: engine.options.maxRunningRequests,
      },
    ],
  };
}

/** The text of `/metrics`, with the names of SGLang 0.5.4 and later. */
export function renderMetrics(engine: Engine): string {
  const load = engine.load();
  const { totals } = engine;
  const samples: [name: string, type: 'gauge' | 'counter', value: number][] = [
    ['num_running_reqs', 'gauge', load.runningRequests],
    ['num_queue_reqs', 'gauge', load.waitingRequests],
    ['num_used_tokens', 'gauge', load.usedTokens],
    ['token_usage', 'gauge', load.usedTokens / load.capacityTokens],
    ['gen_throughput', 'gauge', load.tokensPerSecond],
    ['cache_hit_rate', 'gauge', load.cacheHitRate],
    ['num_requests_total', 'counter', totals.requests],
    ['num_aborted_requests_total', 'counter', totals.cancelled],
    ['prompt_tokens_total', 'counter', totals.promptTokens],
    ['cached_tokens_total', 'counter', totals.cachedTokens],
    ['generation_tokens_total', 'counter', totals.generatedTokens],
  ];
  const lines = samples.flatMap(([name, type, value]) => [
    `# TYPE sglang_${name} ${type}`,
    `sglang_${name}{model_name="${engine.options.model}"} ${value}`,
  ]);
  return `${lines.join('\n')}\n`;
}
