import { describe, expect, it } from 'vitest';
import { roomIn } from '../../src/prefix/scratch.js';

describe('roomIn', () => {
  it('LB-60: keeps the array for the next call while it has room', () => {
    const scratch = roomIn(new Int32Array(0), 1);
    expect(scratch.length).toBe(128);
    expect(roomIn(scratch, 0)).toBe(scratch);
    expect(roomIn(scratch, 128)).toBe(scratch);
    expect(roomIn(scratch, 129).length).toBe(129);
  });

  it('LB-31: keeps no array of more than 32 768 integers', () => {
    const largest = roomIn(new Int32Array(0), 32_768);
    expect(roomIn(largest, 5)).toBe(largest);
    const larger = roomIn(largest, 32_769);
    expect(larger.length).toBe(32_769);
    expect(roomIn(larger, 32_769)).not.toBe(larger);
    expect(roomIn(larger, 5).length).toBe(128);
  });
});
