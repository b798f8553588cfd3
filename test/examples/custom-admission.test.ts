/** Places on the decode workers of examples/custom-gateway: waiting, sheds, and clients that leave (LM-33). */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../../examples/shared/until.js';
import { failures, gateway, pairs, type Stand, total } from './custom-stand.js';
import { chatBody, firstData, inFlight, path, post, rawPost, undoAll } from './gateway-helpers.js';

afterEach(undoAll);

describe('places on a decode worker', () => {
  const one = (url: string) => ({ url, labels: { max_running_requests: '1' } });

  async function occupied(admissionWaitMs: number): Promise<Stand & { readonly first: Socket }> {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, [one(decodes[0]?.url ?? '')], {}, { admissionWaitMs });
    const first = rawPost(stand.url, path, chatBody(3_000));
    await firstData(first);
    return { ...stand, first };
  }

  it('LM-33: a request waits for a place, first come, first served', async () => {
    const { url, router, meter, first } = await occupied(5_000);
    const ended: string[] = [];
    const ask = async (name: string) => {
      const response = await post(url, chatBody(2));
      await response.text();
      ended.push(`${name} ${response.status}`);
    };
    const second = ask('second');
    await until(() => inFlight(router)[1] === 2, 10_000);
    const third = ask('third');
    await until(() => inFlight(router)[1] === 3, 10_000);
    await sleep(30);
    expect(ended).toEqual([]);
    first.destroy();
    await Promise.all([second, third]);
    expect(ended).toEqual(['second 200', 'third 200']);
    expect(meter.read('smg_pd_admission_waits_total')).toBe(2);
    expect(meter.read('smg_pd_admission_sheds_total')).toBe(0);
    await until(() => total(router) === 0, 10_000);
  });

  it.each([0, 50])(
    'LM-33, OB-41: after %i ms without a place it is shed, and no worker has seen it',
    async (waitMs) => {
      const { url, router, meter } = await occupied(waitMs);
      const response = await post(url, chatBody(2));
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '10']);
      expect(response.headers.get('x-smg-error-code')).toBe('worker_overload_protection_shed');
      expect(inFlight(router)).toEqual([0, 1]);
      expect(failures(router)).toEqual([0, 0]);
      expect(meter.read('smg_pd_admission_waits_total')).toBe(waitMs === 0 ? 0 : 1);
      expect(meter.read('smg_worker_overload_shed_total', { stage: 'pd_admission' })).toBe(1);
    },
  );

  it('B29: a client that leaves while it waits leaves no trace', async () => {
    const { url, router, meter, leaseEnds, first } = await occupied(5_000);
    const waiting = rawPost(url, path, chatBody(2));
    await until(() => inFlight(router)[1] === 2, 10_000);
    waiting.destroy();
    expect(await until(() => inFlight(router)[1] === 1, 10_000)).toBeLessThan(100);
    expect(leaseEnds.slice(-2).map(({ outcome }) => outcome)).toEqual([{ aborted: true }, { aborted: true }]);
    first.destroy();
    await until(() => total(router) === 0, 10_000);
    // The place was not taken along.
    expect((await (await post(url, chatBody(1))).text()).endsWith('[DONE]\n\n')).toBe(true);
    expect(meter.read('smg_pd_admission_sheds_total')).toBe(0);
  });

  it('LM-33: a request wider than the window is shed at once, whoever waits', async () => {
    const { url, router, meter } = await occupied(5_000);
    const waiting = rawPost(url, path, chatBody(2));
    await until(() => inFlight(router)[1] === 2, 10_000);
    const response = await post(url, JSON.stringify({ ...JSON.parse(chatBody(1)), n: 2 }));
    expect(response.status).toBe(503);
    expect(meter.read('smg_pd_admission_waits_total')).toBe(1);
    expect(inFlight(router)[1]).toBe(2);
    waiting.destroy();
  });
});
