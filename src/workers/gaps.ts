/** The few positions of a list that are left out of it: how positions with and without them go together. O(gaps). */
export class Gaps {
  /** Positions in the whole list, ascending. */
  readonly positions: readonly number[];

  constructor(positions: Iterable<number>) {
    this.positions = Array.from(positions).sort((a, b) => a - b);
  }

  /** Where the item at `position` of what is left stands in the whole. */
  toWhole(position: number): number {
    let inWhole = position;
    for (const gap of this.positions) {
      if (gap > inWhole) break;
      inWhole += 1;
    }
    return inWhole;
  }

  /** Where the item at `position` of the whole stands in what is left; -1 for one that is left out. */
  fromWhole(position: number): number {
    let before = 0;
    for (const gap of this.positions) {
      if (gap === position) return -1;
      if (gap > position) break;
      before += 1;
    }
    return position - before;
  }

  /** What is left of the whole list. O(n). */
  leftOf<T>(whole: readonly T[]): T[] {
    const left: T[] = [];
    let start = 0;
    for (const end of [...this.positions, whole.length]) {
      for (let i = start; i < end; i++) left.push(whole[i] as T);
      start = end + 1;
    }
    return left;
  }
}
