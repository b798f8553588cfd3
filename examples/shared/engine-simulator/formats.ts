/** The three request formats of a simulated engine: how a body becomes a prompt and tokens become an answer. */
import type { GenerationResult } from './engine.js';
import { type ChatMessage, tokenize, tokenizeChat } from './tokenizer.js';

type Body = Readonly<Record<string, unknown>>;

export interface GenerationRequest {
  readonly prompt: readonly number[];
  readonly maxNewTokens: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** Renders one answer. */
export interface AnswerFormat {
  /** Payload of one streamed token; `text` is everything so far. */
  chunk(word: string, text: string): object;
  /** Payloads that end a stream. */
  last(text: string, result: GenerationResult): object[];
  /** An answer that is not streamed. */
  whole(text: string, result: GenerationResult): object;
}

export interface ApiFormat {
  /** Undefined when the body has no prompt of this format. */
  read(body: Body): GenerationRequest | undefined;
  answer(request: GenerationRequest, model: string): AnswerFormat;
}

let nextId = 1;

export const chatFormat: ApiFormat = {
  read(body) {
    if (!Array.isArray(body.messages)) return undefined;
    const messages = body.messages.filter((message) => typeof message?.role === 'string') as ChatMessage[];
    return openAiRequest(body, tokenizeChat(messages));
  },
  answer: (request, model) =>
    openAiAnswer(request, model, 'chatcmpl', 'chat.completion.chunk', 'chat.completion', {
      part: (content) => ({ delta: content === '' ? {} : { role: 'assistant', content } }),
      whole: (content) => ({ message: { role: 'assistant', content } }),
    }),
};

export const completionFormat: ApiFormat = {
  read(body) {
    const prompt = tokensOf(body.prompt);
    return prompt && openAiRequest(body, prompt);
  },
  answer: (request, model) =>
    openAiAnswer(request, model, 'cmpl', 'text_completion', 'text_completion', {
      part: (text) => ({ text }),
      whole: (text) => ({ text }),
    }),
};

/** SGLang's own format: `text` or `input_ids`; streamed chunks repeat the whole text so far. */
export const generateFormat: ApiFormat = {
  read(body) {
    const prompt = tokensOf(body.input_ids) ?? tokensOf(body.text);
    const parameters = (body.sampling_params ?? {}) as Body;
    if (prompt === undefined) return undefined;
    const maxNewTokens = positiveInteger(parameters.max_new_tokens) ?? defaultMaxNewTokens;
    return { prompt, maxNewTokens, stream: body.stream === true, includeUsage: true };
  },
  answer() {
    const id = `gen-${nextId++}`;
    const whole = (text: string, result: GenerationResult) => ({
      text,
      meta_info: {
        id,
        finish_reason: { type: 'length', length: result.completionTokens },
        prompt_tokens: result.promptTokens,
        completion_tokens: result.completionTokens,
        cached_tokens: result.cachedTokens,
      },
    });
    return {
      chunk: (_word, text) => ({ text, meta_info: { id, finish_reason: null } }),
      last: (text, result) => [whole(text, result)],
      whole,
    };
  },
};

const defaultMaxNewTokens = 16;

function openAiRequest(body: Body, prompt: readonly number[]): GenerationRequest {
  const limit = positiveInteger(body.max_completion_tokens) ?? positiveInteger(body.max_tokens);
  const options = body.stream_options as Body | null | undefined;
  return {
    prompt,
    maxNewTokens: limit ?? defaultMaxNewTokens,
    stream: body.stream === true,
    includeUsage: options?.include_usage === true,
  };
}

function openAiAnswer(
  request: GenerationRequest,
  model: string,
  idPrefix: string,
  chunkObject: string,
  wholeObject: string,
  choice: { part(text: string): object; whole(text: string): object },
): AnswerFormat {
  const head = { id: `${idPrefix}-${nextId++}`, created: Math.floor(Date.now() / 1000), model };
  const chunk = (text: string, finishReason: string | null) => ({
    ...head,
    object: chunkObject,
    choices: [{ index: 0, ...choice.part(text), finish_reason: finishReason }],
  });
  return {
    chunk: (word) => chunk(word, null),
    last: (_text, result) => [
      chunk('', 'length'),
      ...(request.includeUsage ? [{ ...head, object: chunkObject, choices: [], usage: usageOf(result) }] : []),
    ],
    whole: (text, result) => ({
      ...head,
      object: wholeObject,
      choices: [{ index: 0, ...choice.whole(text), finish_reason: 'length' }],
      usage: usageOf(result),
    }),
  };
}

function usageOf(result: GenerationResult): object {
  return {
    prompt_tokens: result.promptTokens,
    completion_tokens: result.completionTokens,
    total_tokens: result.promptTokens + result.completionTokens,
    prompt_tokens_details: { cached_tokens: result.cachedTokens },
  };
}

function tokensOf(value: unknown): readonly number[] | undefined {
  if (typeof value === 'string') return tokenize(value);
  return Array.isArray(value) && value.every(Number.isInteger) ? value : undefined;
}

function positiveInteger(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) > 0 ? (value as number) : undefined;
}
