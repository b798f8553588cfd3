/**
 * Metrics of decisions: OB-10, OB-20, OB-21, OB-30 to OB-34 and OB-41. Everything is read off the decision record. Branch
 * labels are closed sets: a branch the table does not name (a custom policy's, or one of OB-83) is not counted.
 */
import type { DecisionRecord } from '../selection.js';
import type { MetricSink } from './adapter.js';
import { type LabelsOf, metricTable, type NameOf } from './metric-table.js';
import type { MetricsSource, Subscribe } from './metrics-source.js';
import type { ModelLabels } from './model-labels.js';

/** The counters that have a `branch` label alone. */
type BranchCounter = {
  [N in NameOf<'counter'>]: LabelsOf<N> extends { readonly branch: string } ? N : never;
}[NameOf<'counter'>];

export function bindSelectionMetrics(
  router: MetricsSource,
  on: Subscribe,
  sink: MetricSink,
  models: ModelLabels,
): void {
  const branches = new Map(metricTable.map(({ name, values: { branch } = {} }) => [name, new Set(branch)]));
  const countBranch = (name: BranchCounter, branch: string | undefined): boolean => {
    if (branch === undefined || !branches.get(name)?.has(branch)) return false;
    sink.count(name, { branch });
    return true;
  };
  const tellPins = (): void => sink.set('smg_manual_policy_cache_entries', {}, router.pinCount);

  const countDecision = (record: DecisionRecord): void => {
    const { policy, branch, source } = record;
    // These two read keys themselves; any other policy has a source only when the override decided (OB-34).
    if (policy === 'consistent_hashing') {
      countBranch('smg_consistent_hashing_policy_branch_total', branch);
      return;
    }
    const overridden = source !== undefined && policy !== 'manual';
    if (policy === 'manual' || overridden) {
      const counted = countBranch('smg_manual_policy_branch_total', branch);
      if (counted) tellPins();
      if (counted && overridden) sink.count('smg_routing_key_source_total', { source });
    }
    const own = overridden ? record.policyBranch : branch;
    if (policy === 'prefix_hash') countBranch('smg_prefix_hash_policy_branch_total', own);
    // Only the trees have a ratio: KV events, the hash index and KV pressure stay out (OB-83).
    if (policy === 'cache_aware' && record.matchedRatio !== undefined) {
      countBranch('smg_cache_aware_policy_branch_total', own);
      sink.observe('smg_cache_aware_match_ratio', {}, record.matchedRatio);
    }
  };

  on('selected', ({ worker, record }) => {
    sink.count('smg_worker_selection_total', {
      worker_type: worker.kind,
      // Requests to ZMQ workers count as gRPC ones, unlike in the size of the pool (WK-5).
      connection_mode: worker.connectionMode === 'zmq' ? 'grpc' : worker.connectionMode,
      model: models.of(record.model),
      policy: record.policy,
    });
    countDecision(record);
  });
  on('notSelected', ({ stage, record }) => {
    if (stage !== undefined) sink.count('smg_worker_overload_shed_total', { stage });
    // A refusal at dispatch carries the record of a decision that was counted when it was made.
    if (stage === undefined || stage === 'selection') countDecision(record);
  });
  tellPins();
}
