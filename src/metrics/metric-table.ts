/**
 * The metrics of spec 09 as data (OB-1): everything a metrics library wants to know before the first sample. An adapter
 * registers them by walking `metricTable`; `bindMetrics` and `hostMetrics` set them under these names and labels.
 *
 * Invariants: names are unique, and every sample carries exactly the labels of its row. The types below are read off the
 * rows, so a wrong name or a missing label does not compile.
 */

/** One metric. */
export interface MetricRow {
  /** The statement that defines it. */
  readonly id: string;
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** One line for the metrics library; gauges say here what their special values mean. */
  readonly help: string;
  /** Label names; every sample has all of them, as strings. */
  readonly labels: readonly string[];
  /** The closed set of values of a label, where there is one: enough to start every series at 0. */
  readonly values?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
  /** `library`: set by `bindMetrics`. `host`: about things only the host sees; set by it, or through `hostMetrics`. */
  readonly setBy: 'library' | 'host';
}

const rows = [
  {
    id: 'OB-10',
    name: 'smg_worker_selection_total',
    type: 'counter',
    help: 'Workers selected, by configured policy.',
    labels: ['worker_type', 'connection_mode', 'model', 'policy'],
    values: { worker_type: ['regular', 'prefill', 'decode', 'encode'], connection_mode: ['http', 'grpc'] },
    setBy: 'library',
  },
  {
    id: 'OB-11',
    name: 'smg_worker_requests_active',
    type: 'gauge',
    help: 'Requests in flight on the worker.',
    labels: ['worker'],
    setBy: 'library',
  },
  {
    id: 'OB-12',
    name: 'smg_worker_routing_keys_active',
    type: 'gauge',
    help: 'Distinct routing keys in flight on the worker.',
    labels: ['worker'],
    setBy: 'library',
  },
  {
    id: 'OB-13',
    name: 'smg_worker_health',
    type: 'gauge',
    help: '1 ready, 0 any other state, -1 removed.',
    labels: ['worker'],
    setBy: 'library',
  },
  {
    id: 'OB-14',
    name: 'smg_worker_pool_size',
    type: 'gauge',
    help: 'Registered workers, available or not.',
    labels: ['worker_type', 'connection_mode', 'model'],
    values: { worker_type: ['regular', 'prefill', 'decode', 'encode'], connection_mode: ['http', 'grpc', 'zmq'] },
    setBy: 'library',
  },
  {
    id: 'OB-15',
    name: 'smg_worker_health_checks_total',
    type: 'counter',
    help: 'Health probes sent to workers.',
    labels: ['worker_type', 'result'],
    values: { worker_type: ['regular', 'prefill', 'decode', 'encode'], result: ['success', 'failure'] },
    setBy: 'host',
  },
  {
    id: 'OB-20',
    name: 'smg_cache_aware_policy_branch_total',
    type: 'counter',
    help: 'Decisions of cache_aware by its prefix trees.',
    labels: ['branch'],
    values: { branch: ['tree_match', 'spill', 'expected_wait_fallback', 'first_healthy_fallback'] },
    setBy: 'library',
  },
  {
    id: 'OB-21',
    name: 'smg_cache_aware_match_ratio',
    type: 'histogram',
    help: 'Share of the request that a prefix tree knew, 0 to 1.',
    labels: [],
    buckets: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
    setBy: 'library',
  },
  {
    id: 'OB-22',
    name: 'smg_cache_tree_chars',
    type: 'gauge',
    help: 'Characters in the string trees, summed over workers, after the last eviction pass.',
    labels: ['model'],
    setBy: 'library',
  },
  {
    id: 'OB-22',
    name: 'smg_cache_tree_tokens',
    type: 'gauge',
    help: 'Tokens in the token trees, summed over workers, after the last eviction pass.',
    labels: ['model'],
    setBy: 'library',
  },
  {
    id: 'OB-23',
    name: 'smg_cache_tree_tenants',
    type: 'gauge',
    help: 'Workers known to the prefix trees, after the last eviction pass.',
    labels: ['model', 'tree'],
    values: { tree: ['string', 'token'] },
    setBy: 'library',
  },
  {
    id: 'OB-24',
    name: 'smg_cache_placement_entries',
    type: 'gauge',
    help: 'Prompt heads with a live holder in the hash index, after the last sweep.',
    labels: ['model'],
    setBy: 'library',
  },
  {
    id: 'OB-25',
    name: 'smg_kv_event_subscription_failures_total',
    type: 'counter',
    help: 'KV-event subscriptions that failed.',
    labels: ['worker', 'reason'],
    values: { reason: ['panic', 'join_error', 'intern_failed'] },
    setBy: 'host',
  },
  {
    id: 'OB-30',
    name: 'smg_prefix_hash_policy_branch_total',
    type: 'counter',
    help: 'Decisions of prefix_hash.',
    labels: ['branch'],
    values: {
      branch: ['ring_hit', 'load_balance_walk', 'fallback_least_load', 'no_routing_key', 'no_healthy_workers'],
    },
    setBy: 'library',
  },
  {
    id: 'OB-31',
    name: 'smg_consistent_hashing_policy_branch_total',
    type: 'counter',
    help: 'Decisions of consistent_hashing.',
    labels: ['branch'],
    values: {
      branch: ['target_worker_hit', 'target_worker_miss', 'routing_key_hit', 'random_fallback', 'no_healthy_workers'],
    },
    setBy: 'library',
  },
  {
    id: 'OB-32',
    name: 'smg_manual_policy_branch_total',
    type: 'counter',
    help: 'Decisions of manual, and keyed ones of the routing-key override.',
    labels: ['branch'],
    values: {
      branch: ['occupied_hit', 'occupied_miss', 'vacant', 'cap_respill', 'no_routing_id', 'no_healthy_workers'],
    },
    setBy: 'library',
  },
  {
    id: 'OB-33',
    name: 'smg_manual_policy_cache_entries',
    type: 'gauge',
    help: 'Pins held, after the last decision counted in smg_manual_policy_branch_total.',
    labels: [],
    setBy: 'library',
  },
  {
    id: 'OB-34',
    name: 'smg_routing_key_source_total',
    type: 'counter',
    help: 'Keyed decisions of the routing-key override, by where the key came from.',
    labels: ['source'],
    values: { source: ['rid', 'header'] },
    setBy: 'library',
  },
  {
    id: 'OB-40',
    name: 'smg_workers_overloaded',
    type: 'gauge',
    help: 'Workers vetoed by overload protection.',
    labels: ['model'],
    setBy: 'library',
  },
  {
    id: 'OB-41',
    name: 'smg_worker_overload_shed_total',
    type: 'counter',
    help: 'Requests shed; stage pd_admission is counted by the host.',
    labels: ['stage'],
    values: { stage: ['selection', 'dispatch', 'pd_admission'] },
    setBy: 'library',
  },
  {
    id: 'OB-42',
    name: 'smg_pd_admission_waits_total',
    type: 'counter',
    help: 'Disaggregated requests that waited for a place in the window of their decode worker.',
    labels: [],
    setBy: 'host',
  },
  {
    id: 'OB-42',
    name: 'smg_pd_admission_sheds_total',
    type: 'counter',
    help: 'Disaggregated requests shed for want of a place in the window of their decode worker.',
    labels: [],
    setBy: 'host',
  },
  {
    id: 'OB-50',
    name: 'smg_worker_cb_state',
    type: 'gauge',
    help: 'Circuit breaker: 0 closed, 1 open, 2 half-open, -1 worker removed.',
    labels: ['worker'],
    setBy: 'library',
  },
  {
    id: 'OB-51',
    name: 'smg_worker_cb_transitions_total',
    type: 'counter',
    help: 'Changes of state of circuit breakers.',
    labels: ['worker', 'from', 'to'],
    values: { from: ['closed', 'open', 'half_open'], to: ['closed', 'open', 'half_open'] },
    setBy: 'library',
  },
  {
    id: 'OB-52',
    name: 'smg_worker_cb_outcomes_total',
    type: 'counter',
    help: 'Outcomes that circuit breakers counted.',
    labels: ['worker', 'outcome'],
    values: { outcome: ['success', 'failure'] },
    setBy: 'library',
  },
  {
    id: 'OB-53',
    name: 'smg_worker_cb_consecutive_failures',
    type: 'gauge',
    help: 'Current streak of failed requests.',
    labels: ['worker'],
    setBy: 'library',
  },
  {
    id: 'OB-53',
    name: 'smg_worker_cb_consecutive_successes',
    type: 'gauge',
    help: 'Current streak of successes.',
    labels: ['worker'],
    setBy: 'library',
  },
  {
    id: 'OB-60',
    name: 'smg_engine_running_requests',
    type: 'gauge',
    help: 'Requests the engine executes; -1 when the worker is removed or not ready.',
    labels: ['worker', 'model', 'dp_rank'],
    setBy: 'library',
  },
  {
    id: 'OB-60',
    name: 'smg_engine_waiting_requests',
    type: 'gauge',
    help: 'Requests queued in the engine; -1 when the worker is removed or not ready.',
    labels: ['worker', 'model', 'dp_rank'],
    setBy: 'library',
  },
  {
    id: 'OB-60',
    name: 'smg_engine_token_usage',
    type: 'gauge',
    help: 'KV-cache usage, 0 to 1; -1 when the worker is removed or not ready.',
    labels: ['worker', 'model', 'dp_rank'],
    setBy: 'library',
  },
  {
    id: 'OB-60',
    name: 'smg_engine_gen_throughput',
    type: 'gauge',
    help: 'Generated tokens per second; -1 when the worker is removed or not ready.',
    labels: ['worker', 'model', 'dp_rank'],
    setBy: 'library',
  },
  {
    id: 'OB-60',
    name: 'smg_engine_cache_hit_rate',
    type: 'gauge',
    help: 'Share of prompt tokens served from cache, 0 to 1; -1 when the worker is removed or not ready.',
    labels: ['worker', 'model', 'dp_rank'],
    setBy: 'library',
  },
  {
    id: 'OB-61',
    name: 'smg_engine_pd_kv_transfer_latency_ms',
    type: 'gauge',
    help: 'KV transfer latency in milliseconds; -1 when the worker is removed or not ready.',
    labels: ['worker', 'role', 'dp_rank'],
    values: { role: ['prefill', 'decode', 'null'] },
    setBy: 'library',
  },
  {
    id: 'OB-61',
    name: 'smg_engine_pd_kv_transfer_speed_gb_s',
    type: 'gauge',
    help: 'KV transfer speed in GB/s; -1 when the worker is removed or not ready.',
    labels: ['worker', 'role', 'dp_rank'],
    values: { role: ['prefill', 'decode', 'null'] },
    setBy: 'library',
  },
  {
    id: 'OB-61',
    name: 'smg_engine_pd_prefill_queue_reqs',
    type: 'gauge',
    help: 'Requests in the prefill queues; -1 when the worker is removed or not ready.',
    labels: ['worker', 'role', 'dp_rank'],
    values: { role: ['prefill', 'decode', 'null'] },
    setBy: 'library',
  },
  {
    id: 'OB-61',
    name: 'smg_engine_pd_decode_queue_reqs',
    type: 'gauge',
    help: 'Requests in the decode queues; -1 when the worker is removed or not ready.',
    labels: ['worker', 'role', 'dp_rank'],
    values: { role: ['prefill', 'decode', 'null'] },
    setBy: 'library',
  },
  {
    id: 'OB-70',
    name: 'smg_worker_retries_total',
    type: 'counter',
    help: 'Attempts after the first.',
    labels: ['worker_type', 'endpoint'],
    values: { worker_type: ['regular', 'prefill', 'decode', 'encode'] },
    setBy: 'host',
  },
  {
    id: 'OB-70',
    name: 'smg_worker_retries_exhausted_total',
    type: 'counter',
    help: 'Requests whose last attempt failed.',
    labels: ['worker_type', 'endpoint'],
    values: { worker_type: ['regular', 'prefill', 'decode', 'encode'] },
    setBy: 'host',
  },
  {
    id: 'OB-71',
    name: 'smg_router_request_body_path_total',
    type: 'counter',
    help: 'Request bodies buffered for routing or streamed through, and why.',
    labels: ['path', 'reason'],
    values: { path: ['buffered', 'streamed'] },
    setBy: 'host',
  },
] as const;

/** Every metric of spec 09, in its order. */
export const metricTable: readonly MetricRow[] = rows;

type Row = (typeof rows)[number];

/** The name of one of the metrics. */
export type MetricName = Row['name'];
/** The name of a metric of one type. */
export type NameOf<T extends MetricRow['type']> = Extract<Row, { readonly type: T }>['name'];
/** The labels of one metric: exactly those of its row. */
export type LabelsOf<N extends MetricName> = {
  readonly [L in Extract<Row, { readonly name: N }>['labels'][number]]: string;
};
