/** KV events in examples/custom-gateway: they lead decisions; gaps are replayed or given up (CA-80 to CA-97). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RouterEvents } from 'kvroute';
import { afterEach, describe, expect, it } from 'vitest';
import { chatFormat } from '../../examples/shared/engine-simulator/formats.js';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import { blockTokens, gateway, pairs, type Stand } from './custom-stand.js';
import { chatBody, post, scriptedWorker, undoAll } from './gateway-helpers.js';

afterEach(undoAll);

describe('KV events', () => {
  const long = (about: string) => `${about} `.repeat(40);
  const counts = ({ router }: Stand) => router.kvEvents.counts;
  const ask = async (stand: Stand, content: string) => (await post(stand.url, chatBody(1, content))).text();

  it('CA-80, CA-83: what an engine tells leads the next request with the same beginning to it', async () => {
    const { prefills, decodes } = await pairs(3, 1);
    const stand = await gateway(prefills, decodes);
    await ask(stand, long('one prompt'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    await ask(stand, `${long('one prompt')} and a question`);
    await ask(stand, long('another prompt'));
    const prefillDecisions = stand.decisions.filter((decision) => decision.startsWith('prefill'));
    expect(prefillDecisions.slice(1)).toEqual(['prefill event_hit', 'prefill event_miss']);
    const cached = prefills.reduce((sum, { totals }) => sum + totals.cachedTokens, 0);
    expect(cached).toBeGreaterThanOrEqual(Math.floor(long('one prompt').length / 4 / blockTokens) * blockTokens - 1);
  });

  it('CA-97: a gateway that starts late learns what engines hold, and follows workers that come later', async () => {
    const { prefills, decodes } = await pairs(2, 1);
    const [one, two] = prefills as [EngineServer, EngineServer];
    const before = await gateway([one], decodes);
    await ask(before, long('known before'));
    const stand = await gateway([two], decodes);
    stand.router.addWorker({ url: one.url, kind: 'prefill', bootstrapPort: one.bootstrapPort, models: ['demo'] });
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    await ask(stand, `${long('known before')} go on`);
    expect(stand.decisions[0]).toBe('prefill event_hit');
    expect(one.totals.requests).toBe(2);
  });

  it('CA-92, CA-93: a gap is replayed from where it began', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    const gaps: RouterEvents['kvEventGap'][] = [];
    stand.router.on('kvEventGap', (gap) => gaps.push(gap));
    await ask(stand, long('seen'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    prefills[0]?.faults.loseKvEvents(2);
    await ask(stand, long('lost'));
    await ask(stand, long('lost too'));
    await ask(stand, long('seen again'));
    await until(() => counts(stand).appliedBatches === 4, 10_000);
    expect(gaps).toEqual([{ worker: prefills[0]?.url, expected: 1, received: 3 }]);
    await ask(stand, `${long('lost')} go on`);
    expect(stand.decisions.at(-2)).toBe('prefill event_hit');
  });

  it('CA-93: what cannot be replayed is given up, and live events go on', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    await ask(stand, long('seen'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    prefills[0]?.faults.loseKvEvents(1);
    await ask(stand, long('lost'));
    prefills[0]?.faults.forgetKvEvents();
    await ask(stand, long('seen again'));
    await until(() => counts(stand).gaps === 1, 10_000);
    // The batch that showed the gap can be replayed no more than the lost one: the next one is the new beginning.
    await until(() => prefillHolds(stand, long('seen')) === false, 10_000);
    await sleep(50);
    await ask(stand, long('fresh'));
    await until(() => prefillHolds(stand, long('fresh')), 10_000);
    expect(prefillHolds(stand, long('seen'))).toBe(false);
  });

  it('CA-93: a stream that breaks off is taken up where it ended', async () => {
    const { prefills, decodes } = await pairs(1, 1);
    const stand = await gateway(prefills, decodes);
    await ask(stand, long('before'));
    await until(() => counts(stand).appliedBatches === 1, 10_000);
    prefills[0]?.faults.breakKvEvents();
    await ask(stand, long('meanwhile'));
    await until(() => counts(stand).appliedBatches === 2, 10_000);
    expect(counts(stand)).toMatchObject({ gaps: 0, staleBatches: 0, rejectedBatches: 0 });
    expect(prefillHolds(stand, long('before'))).toBe(true);
  });

  it('CA-92, B87: a restart and a line that cannot be read drop what was known, and nothing more', async () => {
    const stored = (id: number, token: number) => ['BlockStored', [id], null, Array(4).fill(token), 4];
    let stream: ServerResponse | undefined;
    const { worker, paths } = await tellingWorker((_path, res) => {
      res.writeHead(200).flushHeaders();
      stream = res;
    });
    const stand = await gateway([{ url: worker }], [{ url: 'http://127.0.0.1:1' }]);
    const holds = (token: number) => holdsTokens(stand, Array(5).fill(token));
    const write = (line: string) => stream?.write(`${line}\n`);
    await until(() => stream !== undefined, 10_000);
    write(JSON.stringify([7, [0, [stored(1, 1)]]]));
    await until(() => holds(1), 10_000);
    write(JSON.stringify([0, [0, [stored(1, 2)]]]));
    await until(() => holds(2), 10_000);
    expect([holds(1), counts(stand).restarts]).toEqual([false, 1]);
    write('{ "no": batch');
    write(JSON.stringify([5, [0, [['Unheard-of'], stored(1, 3)]]]));
    await until(() => holds(3), 10_000);
    expect([holds(2), counts(stand).rejectedBatches, counts(stand).gaps]).toEqual([false, 1, 0]);
    expect(paths).toEqual(['/kv_events?from=0']);
  });

  it('CA-93: an engine that tells no events is asked once; one that fails is asked again', async () => {
    const silent = await tellingWorker((_path, res) => res.writeHead(501).end());
    const failing = await tellingWorker((_path, res) => res.writeHead(503).end());
    await gateway([{ url: silent.worker }, { url: failing.worker }], []);
    await until(() => failing.paths.length === 3, 2_000);
    expect(failing.paths).toEqual(Array(3).fill('/kv_events?from=0'));
    expect(silent.paths).toHaveLength(1);
  });

  it('CA-95: a removed worker is followed no longer', async () => {
    let open = 0;
    const { worker } = await tellingWorker((_path, res) => {
      res.writeHead(200).flushHeaders();
      open++;
      res.once('close', () => open--);
    });
    const stand = await gateway([{ url: worker }], []);
    await until(() => open === 1, 10_000);
    stand.router.removeWorker(worker);
    await until(() => open === 0, 10_000);
  });

  /** A prefill worker of which only the event stream exists. */
  async function tellingWorker(answer: (path: string, res: ServerResponse) => void) {
    const paths: string[] = [];
    const worker = await scriptedWorker(
      (_req, res) => res.writeHead(500).end(),
      (req: IncomingMessage, res) => {
        if (!req.url?.startsWith('/kv_events')) return res.writeHead(404).end();
        paths.push(req.url);
        return answer(req.url, res);
      },
    );
    return { worker, paths };
  }

  function prefillHolds(stand: Stand, content: string): boolean {
    return holdsTokens(stand, chatFormat.read(JSON.parse(chatBody(1, content)))?.prompt as number[]);
  }

  function holdsTokens({ router }: Stand, tokens: readonly number[]): boolean {
    const { policy } = router.explain({ model: 'demo', leg: 'prefill', tokens });
    return policy.match?.index === 'kv_events' && policy.match.matchedUnits > 0;
  }
});
