/**
 * Ranks the holders of a prefix: a holder's queue may discount its overlap (CA-50), and the best score, or one drawn
 * by softmax, decides who forms the affinity group (CA-45, CA-52).
 *
 * Two parallel arrays that are filled, ranked in place and reused by the next decision: a ranking allocates nothing.
 * At most as many entries as holders; every step is linear in them.
 */
import type { RandomSource } from '../runtime/random.js';
import { freshLoad, type WorkerSignals } from '../workers/candidate.js';

/** What the discount depends on (CA-50). */
export interface OverlapDecay {
  /** The option `overlapDecay`; 0 = no discount. */
  readonly decay: number;
  /** Tokens in a block. */
  readonly blockSize: number;
  /** Blocks of the request, at least 1. */
  readonly requestBlocks: number;
}

export class OverlapRanking {
  /** The holders that take part. After `keepGroup`, the affinity group. */
  readonly workers: WorkerSignals[] = [];
  readonly #scores: number[] = [];

  /** Forgets the previous decision, the references to its workers included (LB-30). */
  clear(): void {
    this.workers.length = 0;
    this.#scores.length = 0;
  }

  /** Adds a holder with its overlap: 1 in a tree, the number of leading blocks in a KV index. */
  add(worker: WorkerSignals, overlap: number): void {
    this.workers.push(worker);
    this.#scores.push(overlap);
  }

  /** Puts the holders in descending order of their positions in the fleet. O(n log n); for lists in no order of their own. */
  arrange(positionOf: (worker: WorkerSignals) => number): void {
    const entries = this.workers.map((worker, i) => ({ worker, score: this.scoreAt(i), position: positionOf(worker) }));
    entries.sort((a, b) => b.position - a.position);
    this.clear();
    for (const { worker, score } of entries) this.add(worker, score);
  }

  /** The score of the holder at a position. */
  scoreAt(index: number): number {
    return this.#scores[index] as number;
  }

  /**
   * Discounts each overlap by the holder's backlog over the smallest one, in requests' worth of blocks. Holders that
   * report no waiting tokens are neither discounted nor part of the minimum.
   */
  discount({ decay, blockSize, requestBlocks }: OverlapDecay, now: number): void {
    if (decay === 0 || this.workers.length < 2) return;
    let least = Infinity;
    for (const worker of this.workers) {
      const backlog = backlogOf(worker, now);
      if (backlog !== undefined && backlog < least) least = backlog;
    }
    for (let i = 0; i < this.workers.length; i++) {
      const backlog = backlogOf(this.workers[i] as WorkerSignals, now);
      if (backlog === undefined) continue;
      const excess = (backlog - least) / blockSize / requestBlocks;
      this.#scores[i] = (this.#scores[i] as number) / (1 + decay * excess);
    }
  }

  /** Reduces the holders to those of the best score, or, above temperature 0, to those of one sampled score (CA-45). */
  keepGroup(temperature: number, random: RandomSource): void {
    const scores = this.#scores;
    if (scores.length < 2) return;
    const best = highest(scores);
    const chosen = temperature > 0 ? sampledScore(scores, best, temperature, random) : best;
    let kept = 0;
    for (let i = 0; i < scores.length; i++) {
      if (scores[i] !== chosen) continue;
      this.workers[kept] = this.workers[i] as WorkerSignals;
      scores[kept] = chosen;
      kept += 1;
    }
    this.workers.length = kept;
    scores.length = kept;
  }

  /** The groups that `keepGroup` may leave: the best one, or above temperature 0 every one, best first. For `explain`. */
  groups(temperature: number): WorkerSignals[][] {
    const byScore = new Map<number, WorkerSignals[]>();
    for (let i = 0; i < this.workers.length; i++) {
      const score = this.scoreAt(i);
      const group = byScore.get(score) ?? [];
      group.push(this.workers[i] as WorkerSignals);
      byScore.set(score, group);
    }
    const bestFirst = [...byScore.keys()].sort((a, b) => b - a).map((score) => byScore.get(score) as WorkerSignals[]);
    return temperature > 0 ? bestFirst : bestFirst.slice(0, 1);
  }
}

function highest(scores: readonly number[]): number {
  let most = -Infinity;
  for (const score of scores) if (score > most) most = score;
  return most;
}

/** Waiting tokens of a holder, or undefined when its engine does not tell. */
function backlogOf(worker: WorkerSignals, now: number): number | undefined {
  const waiting = freshLoad(worker, now)?.waitingTokens;
  return waiting === undefined ? undefined : Math.max(0, waiting);
}

/** Draws one candidate with weight exp(((score − least) / range − 1) / temperature) and returns its score (CA-52). */
function sampledScore(scores: readonly number[], most: number, temperature: number, random: RandomSource): number {
  let least = most;
  for (const score of scores) if (score < least) least = score;
  const range = most - least;
  // Equal scores: whoever is drawn, the group is everybody.
  if (range <= 0) return most;
  const weight = (score: number): number => Math.exp(((score - least) / range - 1) / temperature);
  let total = 0;
  for (const score of scores) total += weight(score);
  let rest = random() * total;
  for (const score of scores) {
    rest -= weight(score);
    if (rest < 0) return score;
  }
  // Rounding used up the draw: the best score has the largest share of it.
  return most;
}
