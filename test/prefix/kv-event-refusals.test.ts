import { describe, expect, it } from 'vitest';
import type { KvEvent } from '../../src/prefix/kv-event.js';
import { KvEventFeed } from '../../src/prefix/kv-event-feed.js';
import { KvEventIndex } from '../../src/prefix/kv-event-index.js';
import { Fleet, stored } from './kv-helpers.js';

const block = (content: number): KvEvent => stored(null, [content, [content, content]]);

/** A call that was given something of the wrong type, and what is said of it. */
type Refusal = readonly [message: string, call: () => unknown];

function expectRefusals(refusals: readonly Refusal[]): void {
  for (const [message, call] of refusals) expect(call, message).toThrow(new TypeError(message));
}

describe('refusals of the KV-event feed', () => {
  it('LB-42: a worker of the wrong type is refused by name, and nobody is registered', () => {
    const { feed } = new Fleet([]);
    expectRefusals([
      ['id: expected a string, got 7', () => feed.addWorker(7 as never, ['m'])],
      ['declaredBlockSize: expected a number, got "16"', () => feed.addWorker('w1', ['m'], '16' as never)],
      ['models: expected an array, got "m"', () => feed.addWorker('w1', 'm' as never)],
      ['models: expected strings, got null', () => feed.addWorker('w1', ['m', null as never])],
    ]);
    const rejected = { result: 'rejected', reason: 'unknown_worker' };
    expect(feed.applyBatch('w1', { sequence: 0, events: [] }, 0)).toEqual(rejected);
    expect(feed.applyBatch(7 as never, { sequence: 0, events: [] }, 0)).toEqual(rejected);
  });

  it('LB-42: a worker that is refused stays as it was', () => {
    const { feed } = new Fleet(['w1']);
    for (const models of ['n', [1], undefined] as never[])
      expect(() => feed.addWorker('w1', models)).toThrow(TypeError);
    expect(() => feed.addWorker('w1', ['n'], null as never)).toThrow(TypeError);
    feed.applyBatch('w1', { sequence: 0, events: [block(1)] }, 0);
    expect([feed.indexFor('m')?.memberships, feed.indexFor('n')]).toEqual([1, undefined]);
  });

  it('LB-42: settings of the wrong type are refused by name', () => {
    const { feed } = new Fleet([]);
    expectRefusals([
      ['model: expected a string, got 7', () => feed.configure(7 as never, {})],
      ['model: expected a string, got undefined', () => feed.forgetModel(undefined as never)],
      ['limits: expected an object, got null', () => feed.configure('m', null as never)],
      ['settings.blockSize: expected a number, got "16"', () => feed.configure('m', { blockSize: '16' as never })],
      ['options: expected an object, got 5', () => new KvEventFeed(5 as never)],
    ]);
    feed.configure('m', { blockSize: undefined });
  });

  it('LB-42: a time that is no number is refused before anything changes', () => {
    const { feed } = new Fleet(['w1']);
    const batch = { sequence: 0, events: [block(1)] };
    expectRefusals([
      ['now: expected a number, got "0"', () => feed.applyBatch('w1', batch, '0' as never)],
      ['now: expected a number, got undefined', () => feed.applyBatch('unknown', batch, undefined as never)],
      ['now: expected a number, got null', () => new KvEventIndex({}, null as never)],
    ]);
    expect([feed.lastSequence('w1'), feed.indexFor('m'), feed.counts.unknownWorkerBatches]).toEqual([
      undefined,
      undefined,
      0,
    ]);
  });

  it('CA-90, B87: an event that fails when it is read is counted, the rest of its batch is applied', () => {
    const fleet = new Fleet(['w1']);
    const failing = {
      get type(): never {
        throw new Error('gone');
      },
    };
    expect(fleet.apply('w1', block(1), failing, block(2))).toEqual({ result: 'applied' });
    expect(fleet.feed.counts.rejectedEvents).toBe(1);
    expect([fleet.overlaps([1, 1]), fleet.overlaps([2, 2])]).toEqual([{ w1: 1 }, { w1: 1 }]);
  });
});
