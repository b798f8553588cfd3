/** A clock the test moves by hand. Starts at an odd instant, so that nothing rests on zero. */
export interface ManualTime {
  readonly clock: () => number;
  now: number;
  advance(ms: number): void;
}

export function manualTime(start = 12_345): ManualTime {
  const time: ManualTime = {
    clock: () => time.now,
    now: start,
    advance(ms) {
      time.now += ms;
    },
  };
  return time;
}
