/** The gateway of examples/custom-gateway when a client or a worker goes away: both legs are given back (B29 to B35). */
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../../examples/shared/until.js';
import { failures, gateway, pairs, total } from './custom-stand.js';
import { chatBody, firstData, inFlight, path, post, rawPost, undoAll } from './gateway-helpers.js';

afterEach(undoAll);

describe('clients that leave', () => {
  it('B31: in mid-stream, give all counts back within 100 ms and stop the engine', async () => {
    const { prefills, decodes } = await pairs(2, 2);
    const stand = await gateway(prefills, decodes);
    const sockets = decodes.map(() => rawPost(stand.url, path, chatBody(3_000)));
    await Promise.all(sockets.map(firstData));
    await until(() => inFlight(stand.router).join() === '0,0,1,1', 10_000);
    for (const socket of sockets) socket.destroy();
    expect(await until(() => total(stand.router) === 0, 10_000)).toBeLessThan(100);
    await until(() => decodes.every(({ totals }) => totals.cancelled === 1), 10_000);
    expect(failures(stand.router)).toEqual([0, 0, 0, 0]);
  });

  it('B33: while both workers are silent, give both counts back at once', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    prefills[0]?.faults.stallNext(1);
    const stand = await gateway(prefills, decodes);
    const socket = rawPost(stand.url, path, chatBody(5));
    await until(() => inFlight(stand.router).join() === '1,1', 10_000);
    socket.destroy();
    expect(await until(() => total(stand.router) === 0, 10_000)).toBeLessThan(100);
    expect(stand.leaseEnds.map(({ end }) => end)).toEqual(['aborted', 'aborted']);
    expect(failures(stand.router)).toEqual([0, 0]);
  });
});

describe('workers that fail', () => {
  it('CB-25: a decode worker that breaks off in mid-stream ends the client’s stream with an error and is charged', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    decodes[0]?.faults.breakNext(1, 3);
    const stand = await gateway(prefills, decodes);
    const response = await post(stand.url, chatBody(50));
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(inFlight(stand.router)).toEqual([0, 0]);
    expect(stand.leaseEnds.at(-1)).toMatchObject({ worker: { kind: 'decode' }, outcome: { error: 'body' } });
    expect(failures(stand.router)).toEqual([0, 1]);
  });

  it('LM-35, WK-34, CB-33: a prefill refusal leads to another pair; the decode worker is not blamed', async () => {
    const { prefills, decodes } = await pairs(2, 1);
    const stand = await gateway(prefills, decodes);
    let most = 0;
    stand.router.on('leaseBegan', () => {
      most = Math.max(most, stand.router.leases().open);
    });
    prefills[0]?.faults.failNext(100, 503);
    for (let i = 0; i < 20 && failures(stand.router)[0] === 0; i++) {
      const response = await post(stand.url, chatBody(2, `question ${i}`));
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(failures(stand.router)).toEqual([1, 0, 0]);
    expect(most).toBe(2);
    expect(stand.meter.read('smg_worker_retries_total', { worker_type: 'prefill', endpoint: path })).toBe(1);
    expect(total(stand.router)).toBe(0);
  });

  it('a decode worker that is not there leads to another one', async () => {
    const { prefills, decodes } = await pairs(1, 2);
    await decodes[0]?.close();
    const stand = await gateway(prefills, decodes);
    for (let i = 0; i < 3; i++) {
      const response = await post(stand.url, chatBody(2));
      expect([response.status, response.headers.get('x-smg-routed-worker-id')]).toEqual([200, decodes[1]?.url]);
      await response.text();
    }
    expect(failures(stand.router)[0]).toBe(0);
    expect(failures(stand.router)[1]).toBeGreaterThan(0);
    expect(total(stand.router)).toBe(0);
  });

  it('a refusal that no other worker would answer better is passed on', async () => {
    const { prefills, decodes } = await pairs(2, 2);
    for (const { faults } of prefills) faults.failNext(1, 422);
    const stand = await gateway(prefills, decodes);
    const response = await post(stand.url, chatBody(2));
    expect([response.status, await response.json()]).toMatchObject([422, { error: { message: 'injected' } }]);
    expect(stand.leaseEnds.map(({ outcome }) => outcome)).toEqual([{ status: 422 }, { aborted: true }]);
  });

  it('CB-30: when nobody answers the client is told so, and one request is one failure', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    await prefills[0]?.close();
    const stand = await gateway(prefills, decodes);
    const response = await post(stand.url, chatBody(2));
    expect([response.status, response.headers.get('x-smg-error-code')]).toEqual([502, 'service_unavailable']);
    expect(stand.leaseEnds).toHaveLength(6);
    expect(failures(stand.router)).toEqual([1, 0]);
    expect(stand.meter.read('smg_worker_retries_exhausted_total', { worker_type: 'prefill', endpoint: path })).toBe(1);
  });
});
