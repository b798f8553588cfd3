/** The traffic of the demo in examples/express-gateway. */
import { afterEach, describe, expect, it } from 'vitest';
import { newMeasurements, runTraffic } from '../../examples/express-gateway/driver.js';
import { makeTraffic } from '../../examples/express-gateway/traffic.js';
import type { EngineServer } from '../../examples/shared/engine-simulator/server.js';
import { until } from '../../examples/shared/until.js';
import { expressGateway } from './express-stand.js';
import { inFlight, startEngines, undoAll } from './gateway-helpers.js';

afterEach(undoAll);

describe('the demo’s traffic', () => {
  it('is the same for a seed, and another for another', () => {
    const options = { seed: 1, products: 3, conversations: 12, rampMs: 100 };
    expect(makeTraffic(options)).toEqual(makeTraffic(options));
    expect(makeTraffic({ ...options, seed: 2 })).not.toEqual(makeTraffic(options));
    const traffic = makeTraffic(options);
    expect(new Set(traffic.map(({ system }) => system)).size).toBe(3);
    expect(traffic.flatMap(({ turns }) => turns.map(({ abort }) => abort)).filter(Boolean)).toEqual([
      { afterMs: 40 },
      { afterChunks: 4 },
    ]);
  });

  it('ends with every request answered or aborted, nothing in flight, and more prefix hits where prefixes decide', async () => {
    const traffic = makeTraffic({ seed: 5, products: 6, conversations: 9, rampMs: 400 });
    const turns = traffic.flatMap((conversation) => conversation.turns).length;
    const run = async (policy: 'cache_aware' | 'round_robin') => {
      const started = await startEngines(2, {
        kvCapacityTokens: 8_000,
        prefillTokensPerSecond: 50_000,
        decodeStepMs: 8, // No answer, of ten tokens or more, ends before the user who leaves after 40 ms.
      });
      const stand = await expressGateway(
        started.map(({ url }) => url),
        { policy },
        { loadPollIntervalMs: 100 },
      );
      const measured = newMeasurements();
      await runTraffic(stand.url, traffic, measured, new AbortController().signal);
      expect(measured.failures).toEqual([]);
      expect([measured.succeeded, measured.aborted]).toEqual([turns - 1, 1]);
      expect(measured.timeToFirstTokenMs).toHaveLength(turns - 1);
      expect(inFlight(stand.router)).toEqual([0, 0]);
      const prompt = started.reduce((sum, { totals }) => sum + totals.promptTokens, 0);
      return started.reduce((sum, { totals }) => sum + totals.cachedTokens, 0) / prompt;
    };
    const [aware, blind] = await Promise.all([run('cache_aware'), run('round_robin')]);
    expect(aware).toBeGreaterThan(0.7);
    expect(aware).toBeGreaterThan(blind + 0.1);
  });

  it('breaks off when it is told to', async () => {
    const [engine] = (await startEngines(1, { decodeStepMs: 50 })) as [EngineServer];
    const stand = await expressGateway([engine.url]);
    const stop = new AbortController();
    const measured = newMeasurements();
    const traffic = makeTraffic({ seed: 5, products: 2, conversations: 4, rampMs: 0 });
    const running = runTraffic(stand.url, traffic, measured, stop.signal);
    await until(() => inFlight(stand.router)[0] === 4, 10_000);
    stop.abort();
    await expect(running).rejects.toMatchObject({ name: 'AbortError' });
    expect(await until(() => inFlight(stand.router)[0] === 0, 10_000)).toBeLessThan(100);
    expect(measured.failures).toEqual([]);
  });
});
