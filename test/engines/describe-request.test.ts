import { describeRequest, type RequestKind } from 'kvroute/engines';
import { describe, expect, it } from 'vitest';
import { RequestView, type RouteRequest } from '../../src/request.js';

const plain = { hasMedia: false, stream: false };

describe('OpenAI chat', () => {
  it('CA-4: text parts of the messages in order, joined by newlines; roles, tools and media do not count', () => {
    const body = {
      model: 'm',
      stream: true,
      messages: [
        { role: 'system', content: 'be brief' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
            { type: 'text', text: 'this?' },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 'look', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c', content: 'a cat' },
        { role: 'assistant', content: '' },
        { role: 'user', content: ['and', 'that?'] },
      ],
      tools: [{ type: 'function', function: { name: 'look' } }],
    };
    const expected = {
      model: 'm',
      text: 'be brief\nwhat is\nthis?\na cat\nand\nthat?',
      hasMedia: true,
      stream: true,
    };
    expect(describeRequest('openai_chat', body)).toStrictEqual(expected);
    expect(describeRequest('openai_chat', JSON.stringify(body))).toStrictEqual(expected);
    expect(describeRequest('openai_chat', new TextEncoder().encode(JSON.stringify(body)))).toStrictEqual(expected);
  });

  it('CA-100: the partition fields; empty strings are unset; headers are passed on', () => {
    const headers = { 'x-smg-routing-key': 'k' };
    const body = { messages: [{ content: 'x' }], cache_salt: 's', extra_key: '', lora_path: 'l', lora_id: 'ignored' };
    expect(describeRequest('openai_chat', body, headers)).toStrictEqual({
      text: 'x',
      headers,
      namespace: { cacheSalt: 's', lora: 'l' },
      ...plain,
    });
    expect(describeRequest('openai_chat', { cache_salt: '', lora_id: 'x' })).toStrictEqual(plain);
  });

  it.each([
    [{ type: 'input_audio', input_audio: {} }, true],
    [{ type: 'video_url', video_url: {} }, true],
    [{ type: 'file', file: {} }, true],
    [{ image_url: 'http://x' }, true],
    [{ image_url: null, text: 'x' }, false],
    [{ type: 'refusal', refusal: 'no' }, false],
    [{ type: 'unknown' }, false],
  ])('LB-44: the part %j is media: %s', (part, hasMedia) => {
    expect(describeRequest('openai_chat', { messages: [{ content: [part] }] }).hasMedia).toBe(hasMedia);
  });
});

describe('OpenAI completions and embeddings', () => {
  it.each<[unknown, Partial<RouteRequest>]>([
    ['one', { text: 'one' }],
    [['one', 'two'], { text: 'one' }],
    [[1, 2, 3], { tokens: new Uint32Array([1, 2, 3]) }],
    [[[4, 5], [6]], { tokens: new Uint32Array([4, 5]) }],
    [[[]], { tokens: new Uint32Array(0) }],
    [[], {}],
    [[0, 4294967295], { tokens: new Uint32Array([0, 4294967295]) }],
    [[1, 4294967296], {}],
    [[1, -1], {}],
    [[1, 1.5], {}],
    [[1, '2'], {}],
    [7, {}],
    [null, {}],
  ])('LB-44, CA-4: the prompt %j', (prompt, expected) => {
    expect(describeRequest('openai_completions', { prompt })).toStrictEqual({ ...expected, ...plain });
    expect(describeRequest('openai_embeddings', { input: prompt })).toStrictEqual({ ...expected, ...plain });
  });

  it('CA-100: completions have a partition, embeddings have none', () => {
    const body = { prompt: 'p', input: 'p', cache_salt: 's', rid: 'r' };
    expect(describeRequest('openai_completions', body)).toStrictEqual({
      text: 'p',
      rid: 'r',
      namespace: { cacheSalt: 's' },
      ...plain,
    });
    expect(describeRequest('openai_embeddings', body)).toStrictEqual({ text: 'p', rid: 'r', ...plain });
  });

  it('LB-44: embeddings of messages and of parts', () => {
    const messages = [{ content: [{ type: 'text', text: 'a' }, { type: 'image_url' }] }];
    expect(describeRequest('openai_embeddings', { messages })).toStrictEqual({ ...plain, text: 'a', hasMedia: true });
    const input = [{ text: 'a', image: 'data:' }];
    expect(describeRequest('openai_embeddings', { input })).toStrictEqual({ ...plain, text: 'a', hasMedia: true });
  });
});

describe('OpenAI responses', () => {
  it('CA-4, ST-10: instructions come first, input is text or items, there is no rid and no partition', () => {
    const body = {
      model: 'm',
      rid: 'r',
      cache_salt: 's',
      input: [
        { role: 'user', content: 'hello' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'again' }, { type: 'input_image' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'yes' }] },
        { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hidden' }] },
        { type: 'function_call', name: 'f', arguments: '{}' },
        { type: 'function_call_output', output: 'result' },
        { type: 'input_text', text: 'bare' },
      ],
      instructions: 'be brief',
    };
    expect(describeRequest('openai_responses', body)).toStrictEqual({
      model: 'm',
      text: 'be brief\nhello\nagain\nyes\nbare',
      hasMedia: true,
      stream: false,
    });
    expect(describeRequest('openai_responses', { input: 'x' })).toStrictEqual({ text: 'x', ...plain });
  });
});

describe('Anthropic messages', () => {
  it('CA-4: the system field comes first, tool blocks and thinking do not count', () => {
    const body = {
      messages: [
        { role: 'user', content: 'one' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm' },
            { type: 'text', text: 'two' },
            { type: 'tool_use', id: 't', name: 'f', input: {} },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'no' }] }] },
      ],
      system: [
        { type: 'text', text: 'sys' },
        { type: 'text', text: 'tem' },
      ],
      model: 'c',
      rid: ['r1', 'r2'],
    };
    expect(describeRequest('anthropic_messages', body)).toStrictEqual({
      model: 'c',
      text: 'sys\ntem\none\ntwo',
      rid: 'r1',
      ...plain,
    });
    expect(describeRequest('anthropic_messages', { system: 's' }).text).toBe('s');
  });

  it('LB-44: images, documents and images in tool results are media', () => {
    const hasMedia = (part: unknown) =>
      describeRequest('anthropic_messages', { messages: [{ content: [part] }] }).hasMedia;
    expect(hasMedia({ type: 'image', source: {} })).toBe(true);
    expect(hasMedia({ type: 'document', source: {} })).toBe(true);
    expect(hasMedia({ type: 'tool_result', content: [5, { type: 'image' }] })).toBe(true);
    expect(hasMedia({ type: 'tool_result', content: [{ type: 'text', text: 'x' }] })).toBe(false);
    expect(hasMedia({ type: 'tool_result', content: 'image' })).toBe(false);
  });
});

describe('SGLang generate', () => {
  it('CA-4, CA-100: ids, text, rid and partition; of a batch the first', () => {
    const body = {
      text: ['a', 'b'],
      input_ids: [[1, 2], [3]],
      rid: ['r_t1', 'r_t2'],
      extra_key: ['e', 'f'],
      lora_id: ['l'],
      stream: true,
    };
    expect(describeRequest('sglang_generate', body)).toStrictEqual({
      text: 'a',
      tokens: new Uint32Array([1, 2]),
      rid: 'r_t1',
      namespace: { extraKey: 'e', lora: 'l' },
      hasMedia: false,
      stream: true,
    });
    expect(describeRequest('sglang_generate', { lora_path: 'p', lora_id: 'l' }).namespace).toStrictEqual({ lora: 'p' });
  });

  it('CA-4: an empty id list is present; ids of the wrong type are not', () => {
    expect(describeRequest('sglang_generate', { text: 'x', input_ids: [] })).toStrictEqual({
      text: 'x',
      tokens: new Uint32Array(0),
      ...plain,
    });
    expect(describeRequest('sglang_generate', { text: 'x', input_ids: '1,2' })).toStrictEqual({ text: 'x', ...plain });
  });

  it.each([
    [{ image_data: 'data:' }, true],
    [{ audio_data: [null, 'x'] }, true],
    [{ video_data: ['x'] }, true],
    [{ image_data: null }, false],
    [{ image_data: [] }, false],
    [{ image_data: [null] }, false],
  ])('LB-44: %j carries media: %s', (body, hasMedia) => {
    expect(describeRequest('sglang_generate', body).hasMedia).toBe(hasMedia);
  });
});

const kinds: RequestKind[] = [
  'openai_chat',
  'openai_completions',
  'openai_embeddings',
  'openai_responses',
  'anthropic_messages',
  'sglang_generate',
];

describe.each(kinds)('hostile bodies as %s', (kind) => {
  it.each([
    undefined,
    null,
    5,
    '',
    '{',
    '[]',
    'null',
    '"text"',
    [],
    new Uint8Array([0xff]),
    '{"__proto__":{"prompt":"x","input":"x","text":"x","messages":[{"content":"x"}]}}',
    { messages: 5, prompt: {}, input: true, text: {}, system: 5, model: 5, rid: {}, cache_salt: [], stream: 'true' },
    { messages: [null, 5, [], { content: 5 }, { content: [null, 5, [], { type: 5, text: 5 }] }], rid: [], model: '' },
  ])('LB-42: %j gives an empty view', (body) => {
    expect(describeRequest(kind, body)).toStrictEqual(plain);
  });

  it('LB-42: a 5 MB line with lone surrogates is kept as it is', () => {
    const text = '\ud800x'.repeat(2_500_000);
    const body =
      kind === 'openai_embeddings'
        ? { input: text }
        : { messages: [{ content: text }], prompt: text, input: text, text };
    expect(describeRequest(kind, body).text === text).toBe(true);
  });

  it('LB-42: deep nesting costs nothing', () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const body = `{"messages":[{"content":${deep}}],"prompt":${deep},"input":${deep},"input_ids":${deep},"rid":${deep}}`;
    expect(describeRequest(kind, body)).toStrictEqual(plain);
  });

  it('LB-44: the result is a request the router accepts', () => {
    const body = { model: 'm', messages: [{ content: 'x' }], prompt: [[1]], input: 'x', text: 'x', rid: ['r'] };
    expect(new RequestView(describeRequest(kind, body)).model).toBe('m');
  });
});

describe('an unknown kind', () => {
  it('LB-44: gives what every kind has', () => {
    expect(describeRequest('ollama' as RequestKind, { model: 'm', prompt: 'x' })).toStrictEqual({
      model: 'm',
      ...plain,
    });
  });
});
