/**
 * The simulated engine over real sockets: its cache, its queue, its three formats, its load payloads and its faults.
 * The examples and their numbers are only as honest as this engine.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { BlockCache, blockKeys } from '../../examples/shared/engine-simulator/block-cache.js';
import type { EngineOptions } from '../../examples/shared/engine-simulator/engine.js';
import { type EngineServer, startEngine } from '../../examples/shared/engine-simulator/server.js';
import { spawnEngine } from '../../examples/shared/engine-simulator/spawn-engine.js';
import { tokenize, tokenizeChat } from '../../examples/shared/engine-simulator/tokenizer.js';
import { until } from '../../examples/shared/until.js';

let engines: EngineServer[] = [];

async function start(options: EngineOptions = {}): Promise<EngineServer> {
  const engine = await startEngine({ decodeStepMs: 2, ...options });
  engines.push(engine);
  return engine;
}

afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  engines = [];
});

function post(engine: EngineServer, path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(engine.url + path, { method: 'POST', body: JSON.stringify(body), signal: signal ?? null });
}

interface ChatAnswer {
  choices: { message: { content: string }; finish_reason: string }[];
  usage: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details: { cached_tokens: number } };
}

async function chat(engine: EngineServer, messages: object[], maxTokens = 8): Promise<ChatAnswer> {
  const response = await post(engine, '/v1/chat/completions', { messages, max_tokens: maxTokens });
  expect(response.status).toBe(200);
  return (await response.json()) as ChatAnswer;
}

async function sseEvents(response: Response): Promise<string[]> {
  return (await response.text())
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''));
}

const prompt = (characters: number, letter = 'x') => letter.repeat(characters);

describe('the tokenizer', () => {
  it('keeps the tokens of earlier turns when a chat grows', () => {
    const first = [
      { role: 'system', content: 'You are terse.' },
      { role: 'user', content: 'Hello there' },
    ];
    const second = [...first, { role: 'assistant', content: 'the fox ' }, { role: 'user', content: 'again' }];
    const before = tokenizeChat(first);
    expect(tokenizeChat(second).slice(0, before.length)).toEqual(before);
    expect(tokenize('abcdefghi')).toHaveLength(3);
  });
});

describe('the block cache', () => {
  it('evicts the least recently used idle blocks, leaves first, and never pinned ones', () => {
    const cache = new BlockCache(4);
    const store = (keys: string[]) => {
      const hold = cache.acquire(keys, 0);
      if (hold === undefined) throw new Error('no room');
      cache.commit(hold, keys);
      return hold;
    };
    cache.release(store(['a', 'b']));
    cache.release(store(['c', 'd']));
    expect([cache.usedBlocks, cache.idleBlocks]).toEqual([0, 4]);

    const pinned = store(['a', 'b']);
    expect(pinned.hitBlocks).toBe(2);
    cache.release(store(['e']));
    expect(cache.match(['c', 'd'])).toBe(1);
    expect(cache.match(['a', 'b'])).toBe(2);

    // Two pinned, two evictable: three new blocks do not fit, and asking changes nothing.
    expect(cache.acquire(['f', 'g', 'h'], 0)).toBeUndefined();
    expect([cache.usedBlocks, cache.idleBlocks]).toEqual([2, 2]);
    cache.release(pinned);
    expect([cache.usedBlocks, cache.idleBlocks]).toEqual([0, 4]);
  });

  it('shares blocks that two requests computed at the same time', () => {
    const cache = new BlockCache(8);
    const keys = blockKeys([1, 2, 3, 4, 5], 2);
    expect(keys).toEqual(['1,2', '3,4']);
    const one = cache.acquire(keys, 1);
    const two = cache.acquire(keys, 1);
    if (one === undefined || two === undefined) throw new Error('no room');
    expect(cache.usedBlocks).toBe(6);
    cache.commit(one, keys);
    cache.commit(two, keys);
    expect(cache.usedBlocks).toBe(4);
    cache.release(one);
    cache.release(two);
    expect([cache.usedBlocks, cache.idleBlocks]).toEqual([0, 2]);
  });
});

describe('the engine', () => {
  it('serves the earlier turns of a chat from its cache, answer included', async () => {
    const engine = await start();
    const messages = [
      { role: 'system', content: prompt(400) },
      { role: 'user', content: prompt(40, 'y') },
    ];
    const first = await chat(engine, messages);
    expect(first.usage).toMatchObject({
      prompt_tokens: 115, // 102 + 12 tokens of the two messages and their markers, 1 that asks for the answer
      completion_tokens: 8,
      prompt_tokens_details: { cached_tokens: 0 },
    });
    const content = first.choices[0]?.message.content ?? '';
    expect(tokenize(content)).toHaveLength(8);

    const next = [...messages, { role: 'assistant', content }, { role: 'user', content: 'more' }];
    const second = await chat(engine, next);
    // 115 prompt and 8 answer tokens were kept, in 7 full blocks of 16.
    expect(second.usage.prompt_tokens_details.cached_tokens).toBe(112);
    expect(engine.totals).toMatchObject({ requests: 2, cachedTokens: 112, generatedTokens: 16, cancelled: 0 });
  });

  it('takes prefill time in proportion to the uncached tokens', async () => {
    const engine = await start({ prefillTokensPerSecond: 4_000 });
    const timed = async () => {
      const from = performance.now();
      await chat(engine, [{ role: 'user', content: prompt(3_200) }], 1);
      return performance.now() - from;
    };
    const cold = await timed();
    const warm = await timed();
    expect(cold).toBeGreaterThan(195); // 803 tokens at 4 000 a second
    expect(warm).toBeLessThan(cold / 2);
  });

  it('forgets what does not fit into its memory', async () => {
    const engine = await start({ kvCapacityTokens: 512 });
    const ask = async (letter: string) =>
      (await chat(engine, [{ role: 'user', content: prompt(1_200, letter) }], 1)).usage.prompt_tokens_details
        .cached_tokens;
    expect(await ask('a')).toBe(0);
    expect(await ask('a')).toBe(288);
    expect(await ask('b')).toBe(0);
    expect(await ask('a')).toBeLessThan(288);
  });

  it('refuses what can never fit', async () => {
    const engine = await start({ kvCapacityTokens: 512 });
    const response = await post(engine, '/generate', { text: prompt(4_000) });
    expect(response.status).toBe(400);
    expect(engine.totals.requests).toBe(0);
  });

  it('queues beyond its running window and says so in /v1/loads and /metrics', async () => {
    const engine = await start({ maxRunningRequests: 2, decodeStepMs: 100, kvCapacityTokens: 4_096 });
    const all = ['a', 'b', 'c', 'd'].map((letter) =>
      chat(engine, [{ role: 'user', content: prompt(396, letter) }], 12),
    );
    await until(() => {
      const { runningRequests, waitingRequests } = engine.engine.load();
      return runningRequests === 2 && waitingRequests === 2;
    }, 5_000);
    const report = (await (await fetch(`${engine.url}/v1/loads`)).json()) as { loads: Record<string, number>[] };
    expect(report.loads).toHaveLength(1);
    expect(report.loads[0]).toMatchObject({
      dp_rank: 0,
      num_running_reqs: 2,
      num_waiting_reqs: 2,
      num_waiting_uncached_tokens: 204, // 2 × (99 tokens of text, 2 markers, 1 that asks for the answer)
      num_total_reqs: 4,
      num_used_tokens: 256, // 2 × 8 blocks for 102 prompt and 12 answer tokens
      max_total_num_tokens: 4_096,
      token_usage: 0.0625,
      max_running_requests: 2,
    });
    const metrics = await (await fetch(`${engine.url}/metrics`)).text();
    expect(metrics).toContain('sglang_num_running_reqs{model_name="demo"} 2\n');
    expect(metrics).toContain('sglang_num_queue_reqs{model_name="demo"} 2\n');
    expect(metrics).toContain('sglang_token_usage{model_name="demo"} 0.0625\n');
    await Promise.all(all);
    expect(engine.engine.load()).toMatchObject({ runningRequests: 0, waitingRequests: 0, usedTokens: 0 });
  });

  it('reports the throughput of its decode steps', async () => {
    const engine = await start({ decodeStepMs: 5 });
    await chat(engine, [{ role: 'user', content: 'hi' }], 40);
    expect(engine.engine.load().tokensPerSecond).toBeCloseTo(200, 0);
  });

  it('streams one event a token, the usage when asked, and [DONE]', async () => {
    const engine = await start();
    const body = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 3, stream: true };
    const plain = await sseEvents(await post(engine, '/v1/chat/completions', body));
    expect(plain).toHaveLength(5);
    expect(plain.at(-1)).toBe('[DONE]');
    expect(JSON.parse(plain[0] ?? '')).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: null }],
    });
    expect(JSON.parse(plain[3] ?? '')).toMatchObject({ choices: [{ delta: {}, finish_reason: 'length' }] });

    const counted = await sseEvents(
      await post(engine, '/v1/chat/completions', { ...body, stream_options: { include_usage: true } }),
    );
    expect(JSON.parse(counted.at(-2) ?? '')).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
  });

  it('answers text completions and /generate, from text or token ids', async () => {
    const engine = await start();
    const completion = await post(engine, '/v1/completions', { prompt: prompt(80), max_tokens: 2 });
    expect(await completion.json()).toMatchObject({
      object: 'text_completion',
      choices: [{ text: expect.stringMatching(/^\w{3} \w{3} $/), finish_reason: 'length' }],
      usage: { prompt_tokens: 20, completion_tokens: 2 },
    });
    const ids = Array.from({ length: 40 }, (_, i) => i);
    const parameters = { sampling_params: { max_new_tokens: 2 } };
    const generated = await post(engine, '/generate', { input_ids: ids, ...parameters });
    expect(await generated.json()).toMatchObject({
      text: expect.any(String),
      meta_info: { prompt_tokens: 40, completion_tokens: 2, cached_tokens: 0 },
    });
    const streamed = await sseEvents(await post(engine, '/generate', { input_ids: ids, stream: true, ...parameters }));
    expect(streamed).toHaveLength(4);
    expect(JSON.parse(streamed[2] ?? '')).toMatchObject({ meta_info: { cached_tokens: 32, completion_tokens: 2 } });
  });

  it('answers hostile requests with a status, never with a crash', async () => {
    const engine = await start();
    const raw = (path: string, body: string) => fetch(engine.url + path, { method: 'POST', body });
    expect((await raw('/v1/chat/completions', '{')).status).toBe(400);
    expect((await raw('/v1/chat/completions', '"x"')).status).toBe(400);
    expect((await raw('/v1/chat/completions', '{"messages":[null]}')).status).toBe(200);
    expect((await raw('/v1/completions', '{"prompt":""}')).status).toBe(400);
    expect((await raw('/generate', '{"input_ids":[[1]]}')).status).toBe(400);
    expect((await raw('/elsewhere', '{}')).status).toBe(404);
    expect((await fetch(`${engine.url}/health`)).status).toBe(200);
  });

  it('gives slot and memory back when a client leaves, running or waiting', async () => {
    const engine = await start({ maxRunningRequests: 1, decodeStepMs: 20 });
    const leave = new AbortController();
    const gone = ['a', 'b'].map((letter) =>
      post(
        engine,
        '/v1/chat/completions',
        { messages: [{ role: 'user', content: prompt(200, letter) }], max_tokens: 200 },
        leave.signal,
      ).catch((error: Error) => error.name),
    );
    await until(() => engine.engine.load().waitingRequests === 1, 1_000);
    leave.abort();
    expect(await Promise.all(gone)).toEqual(['AbortError', 'AbortError']);
    await until(() => engine.totals.cancelled === 2, 1_000);
    expect(engine.engine.load()).toMatchObject({ runningRequests: 0, waitingRequests: 0, usedTokens: 0 });
    expect((await chat(engine, [{ role: 'user', content: 'still there?' }])).usage.completion_tokens).toBe(8);
  });

  it('fails, breaks off and stalls on demand', async () => {
    const engine = await start();
    const body = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 6, stream: true };
    const path = '/v1/chat/completions';

    engine.faults.failNext(2, 503);
    expect([(await post(engine, path, body)).status, (await post(engine, path, body)).status]).toEqual([503, 503]);
    expect((await sseEvents(await post(engine, path, body))).at(-1)).toBe('[DONE]');

    engine.faults.breakNext(1, 2);
    await expect(post(engine, path, body).then((response) => response.text())).rejects.toThrow('terminated');

    engine.faults.stallNext(1);
    await expect(post(engine, path, body, AbortSignal.timeout(50))).rejects.toThrow(/timeout/);

    engine.faults.failLoads(500);
    expect((await fetch(`${engine.url}/v1/loads`)).status).toBe(500);
    engine.faults.failLoads(undefined);
    expect((await fetch(`${engine.url}/v1/loads`)).status).toBe(200);
  });

  it('gives the same answer on every engine', async () => {
    const [one, two] = [await start(), await start({ blockTokens: 4 })];
    const messages = [{ role: 'user', content: 'the same question' }];
    const [first, second] = [await chat(one, messages), await chat(two, messages)];
    expect(first.choices).toEqual(second.choices);
  });
});

describe('what an engine tells of its cache', () => {
  const events = async (engine: EngineServer, from: number, lines: number) => {
    const response = await fetch(`${engine.url}/kv_events?from=${from}`);
    expect(response.status).toBe(200);
    let text = '';
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      if (text.split('\n').length > lines) break;
    }
    return text
      .split('\n')
      .slice(0, lines)
      .map((line) => JSON.parse(line) as [number, [number, unknown[], number]]);
  };
  const generate = (engine: EngineServer, ids: number[]) =>
    post(engine, '/generate', { input_ids: ids, sampling_params: { max_new_tokens: 1 } }).then((response) =>
      response.text(),
    );

  it('names stored blocks with parent and tokens, and removed ones, in numbered batches that can be replayed', async () => {
    const engine = await start({ blockTokens: 2, kvCapacityTokens: 8 });
    await generate(engine, [1, 2, 3, 4, 5]);
    await generate(engine, [1, 2, 6, 7, 8]);
    const told = await events(engine, 0, 3);
    expect(told.map(([sequence]) => sequence)).toEqual([0, 1, 2]);
    expect(told[0]?.[1][1]).toEqual([
      ['BlockStored', [1, 2], null, [1, 2, 3, 4], 2, null, 'GPU'],
      // The answer's token fills the third block.
      ['BlockStored', [3], 2, [5, expect.any(Number)], 2, null, 'GPU'],
    ]);
    // Room is made when a request is admitted, and filled when its prompt was computed.
    expect(told[1]?.[1][1]).toEqual([['BlockRemoved', [3], 'GPU']]);
    expect(told[2]?.[1][1]).toEqual([
      ['BlockStored', [4], 1, [6, 7], 2, null, 'GPU'],
      ['BlockStored', [5], 4, [8, expect.any(Number)], 2, null, 'GPU'],
    ]);
    expect((await events(engine, 1, 1))[0]?.[0]).toBe(1);
    const status = async (query: string) => (await fetch(`${engine.url}/kv_events${query}`)).status;
    expect(await status('?from=4')).toBe(410);
    engine.faults.forgetKvEvents();
    expect(await status('?from=0')).toBe(410);
  });
});

describe('a pair of engines', () => {
  it('hands the KV of a prompt from one to the other, or says that it will not come', async () => {
    const prefill = await startEngine({}, 'prefill');
    const decode = await startEngine({}, 'decode');
    engines.push(prefill, decode);
    const body = (room: number) => ({
      input_ids: Array.from({ length: 40 }, (_, i) => i),
      sampling_params: { max_new_tokens: 3 },
      bootstrap_host: '127.0.0.1',
      bootstrap_port: prefill.bootstrapPort,
      bootstrap_room: room,
    });
    const whole = async (response: Promise<Response>) => {
      const { status } = await response;
      return [status, await (await response).json()];
    };
    const waiting = whole(post(decode, '/generate', body(1)));
    expect(await whole(post(prefill, '/generate', body(1)))).toMatchObject([
      200,
      { meta_info: { completion_tokens: 1 } },
    ]);
    expect(await waiting).toMatchObject([200, { meta_info: { completion_tokens: 3 } }]);

    prefill.faults.failNext(1, 503);
    expect((await whole(post(prefill, '/generate', body(2))))[0]).toBe(503);
    expect((await whole(post(decode, '/generate', body(2))))[0]).toBe(500);
    expect(decode.totals.requests).toBe(1);
  });
});

describe('the engine as a process', () => {
  it('listens, serves, starts afresh, and is gone after stop', async () => {
    const engine = await spawnEngine({ model: 'spawned', decodeStepMs: 1 });
    const models = (await (await fetch(`${engine.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data[0]?.id).toBe('spawned');
    const served = async () =>
      /num_requests_total\{.*\} (\d+)/.exec(await (await fetch(`${engine.url}/metrics`)).text())?.[1];
    await fetch(`${engine.url}/generate`, { method: 'POST', body: '{"text":"hello"}' });
    expect(await served()).toBe('1');
    const before = engine.url;
    await engine.renew();
    expect(await served()).toBe('0');
    if (engine.url !== before) await expect(fetch(before)).rejects.toThrow();
    await engine.stop();
    expect(() => process.kill(engine.pid, 0)).toThrow('ESRCH');
    await engine.stop();
  });
});
