/** Load reports from Prometheus text of vLLM, SGLang, TensorRT-LLM and Triton (LR-15 to LR-19). */
import { describe, expect, it } from 'vitest';
import { ranks, reason } from './read-report.js';

describe('vLLM metrics', () => {
  it('LR-15, LR-18: sums and truncates counts, averages fractions, leaves the rest absent', () => {
    const text = [
      '# TYPE vllm:num_requests_running gauge',
      'vllm:num_requests_running{engine="0"} 5.75',
      'vllm:num_requests_running{engine="1"} 3.5',
      'vllm:num_requests_waiting{engine="0"} 10',
      'vllm:num_requests_waiting{engine="1"} 30',
      'vllm:kv_cache_usage_perc{engine="0"} 0.25',
      'vllm:kv_cache_usage_perc{engine="1"} 0.75',
      'vllm:gpu_prefix_cache_hit_rate 0.5',
    ].join('\n');
    const rank = { dpRank: 0, kvCacheUsage: 0.5, runningRequests: 9, waitingRequests: 40, cacheHitRate: 0.5 };
    expect(ranks('vllm_metrics', text)).toStrictEqual([rank]);
    expect(ranks('vllm_metrics', new TextEncoder().encode(text))).toStrictEqual([rank]);
  });

  it('B43: the newer gauge name wins, the older one is read when it is alone or the newer has no sample', () => {
    const old = 'vllm:gpu_cache_usage_perc 0.75\n';
    expect(ranks('vllm_metrics', old)[0]?.kvCacheUsage).toBe(0.75);
    expect(ranks('vllm_metrics', `${old}vllm:kv_cache_usage_perc 0.25\n`)[0]?.kvCacheUsage).toBe(0.25);
    expect(ranks('vllm_metrics', `${old}vllm:kv_cache_usage_perc NaN\n`)[0]?.kvCacheUsage).toBe(0.75);
  });

  it('B47: without a KV gauge there is no report; a text of another engine is none either', () => {
    expect(reason('vllm_metrics', 'vllm:num_requests_waiting 7\n')).toBe('no_kv_usage');
    expect(reason('vllm_metrics', 'vllm:kv_cache_usage_perc NaN\n')).toBe('no_kv_usage');
    expect(reason('vllm_metrics', 'sglang:token_usage 0.5\n')).toBe('not_a_report');
    expect(reason('vllm_metrics', '<html>\n<p>vllm:kv_cache_usage_perc 5</p>\n</html>')).toBe('not_a_report');
    expect(reason('vllm_metrics', { loads: [] })).toBe('not_a_report');
  });

  it('LR-18, B46: with a model only series of its label count', () => {
    const text = [
      'vllm:kv_cache_usage_perc{model_name="a"} 0.2',
      'vllm:kv_cache_usage_perc{model="b"} 0.8',
      'vllm:kv_cache_usage_perc{engine="9"} 0.5',
      'vllm:num_requests_waiting{model_name="a"} 1',
    ].join('\n');
    expect(ranks('vllm_metrics', text, 'a')).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.2, waitingRequests: 1 }]);
    expect(ranks('vllm_metrics', text, 'b')).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.8 }]);
    expect(ranks('vllm_metrics', text)).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.5, waitingRequests: 1 }]);
    expect(reason('vllm_metrics', text, 'c')).toBe('no_kv_usage');
  });

  it('LR-11a, B48: a negative or overflowing series is invalid', () => {
    expect(reason('vllm_metrics', 'vllm:kv_cache_usage_perc -1\n')).toBe('invalid');
    expect(reason('vllm_metrics', 'vllm:kv_cache_usage_perc 0\nvllm:num_requests_waiting -1\n')).toBe('invalid');
    const huge = 'vllm:num_requests_running{e="1"} 1.7e308\nvllm:num_requests_running{e="2"} 1.7e308\n';
    expect(reason('vllm_metrics', `vllm:kv_cache_usage_perc 0\n${huge}`)).toBe('invalid');
  });
});

describe('SGLang, TensorRT-LLM and Triton metrics', () => {
  const sglang = (p: string, usage: string) =>
    `${p}token_usage ${usage}\n${p}num_running_reqs 3\n${p}num_queue_reqs 4\n${p}gen_throughput{a="1"} 100\n` +
    `${p}gen_throughput{a="2"} 50\n${p}cache_hit_rate 0.5\n${p}utilization 0.25\n`;

  it.each(['sglang:', 'sglang_'])('LR-16, B43: SGLang with prefix %s; throughput is a mean', (prefix) => {
    expect(ranks('sglang_metrics', sglang(prefix, '0.5'))).toStrictEqual([
      {
        dpRank: 0,
        kvCacheUsage: 0.5,
        runningRequests: 3,
        waitingRequests: 4,
        tokensPerSecond: 75,
        cacheHitRate: 0.5,
        utilization: 0.25,
      },
    ]);
  });

  it('LR-16: the first prefix with a token usage is the only one read', () => {
    const both = `sglang_num_queue_reqs 9\n${sglang('sglang_', '0.75')}sglang:token_usage 0.25\n`;
    expect(ranks('sglang_metrics', both)).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.25 }]);
    expect(reason('sglang_metrics', 'sglang:num_queue_reqs 4\n')).toBe('no_kv_usage');
  });

  it('LR-18: series that differ only in tp_rank mirror one scheduler, the largest counts once', () => {
    const text = [
      'sglang:token_usage{dp="0",tp_rank="0"} 0.25',
      'sglang:token_usage{tp_rank="1",dp="0"} 0.5',
      'sglang:token_usage{dp="1",tp_rank="0"} 1',
      'sglang:num_queue_reqs{dp="0",tp_rank="0"} 3',
      'sglang:num_queue_reqs{dp="0",tp_rank="1"} 11',
      'sglang:num_queue_reqs{dp="1",tp_rank="0"} 2',
      'sglang:num_queue_reqs{dp="2"} 5',
    ].join('\n');
    expect(ranks('sglang_metrics', text)).toStrictEqual([{ dpRank: 0, kvCacheUsage: 0.75, waitingRequests: 18 }]);
  });

  it('LR-19: TensorRT-LLM', () => {
    const text =
      'trtllm_num_requests_waiting 2\ntrtllm_num_requests_running 3\ntrtllm_kv_cache_utilization{model_name="m"} 0.5';
    expect(ranks('tensorrt_llm_metrics', text)).toStrictEqual([
      { dpRank: 0, kvCacheUsage: 0.5, runningRequests: 3, waitingRequests: 2 },
    ]);
    expect(reason('tensorrt_llm_metrics', 'trtllm_num_requests_waiting 2\n')).toBe('no_kv_usage');
  });

  it('LR-19: Triton picks its series by label', () => {
    const text = [
      'nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 2',
      'nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 3',
      'nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 512',
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.5',
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m"} 400',
    ].join('\n');
    const rank = { dpRank: 0, kvCacheUsage: 0.5, runningRequests: 3, waitingRequests: 2 };
    expect(ranks('triton_metrics', text)).toStrictEqual([rank]);
    expect(ranks('triton_metrics', text, 'm')).toStrictEqual([rank]);
    expect(reason('triton_metrics', text, 'n')).toBe('no_kv_usage');
  });
});
