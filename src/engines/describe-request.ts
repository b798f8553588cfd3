/**
 * From a request body to what the router reads (LB-44): the prompt in routing order (CA-4), model, request id (ST-10)
 * and cache partition (CA-100). The body stays the host's; nothing of it is kept but strings and a copy of the ids.
 *
 * Unknown shapes give what was recognised; wrong types count as absent; nothing throws (LB-42). O(size of the body).
 */
import type { RequestHeaders } from '../headers.js';
import type { CacheNamespace } from '../prefix/namespace.js';
import type { TokenIds } from '../prefix/token-ids.js';
import type { RouteRequest } from '../request.js';
import { asRecord, type JsonRecord, own, readJson } from './payload.js';
import { Prompt } from './prompt.js';

/** The API a body belongs to. */
export type RequestKind =
  | 'openai_chat'
  | 'openai_completions'
  | 'openai_embeddings'
  | 'openai_responses'
  | 'anthropic_messages'
  | 'sglang_generate';

/** A `RouteRequest` made from a body. Fields that the body does not have are absent; add `leg`, `exclude` and the like. */
export interface DescribedRequest extends RouteRequest {
  readonly model?: string | undefined;
  /** Text parts in order, a separate system field first, joined by newlines; roles, tools and media do not count. */
  readonly text?: string | undefined;
  /** Token ids of the first sequence. Absent when any id is no integer from 0 to 2³²−1. */
  readonly tokens?: TokenIds | undefined;
  readonly headers?: RequestHeaders | undefined;
  /** The `rid`, of a list the first. The Responses API has none (ST-10). */
  readonly rid?: string | undefined;
  /** Only for chat, completions, messages and generate (CA-100). */
  readonly namespace?: CacheNamespace | undefined;
  /** True when the body carries images, audio, video or files. */
  readonly hasMedia: boolean;
  /** True when the body asks for a streamed answer. */
  readonly stream: boolean;
}

/**
 * Describes a request body for `selectWorker`.
 *
 * @param body parsed JSON, JSON text, or its UTF-8 bytes; what cannot be parsed is a body without fields
 * @param headers the request's headers in any shape, passed on as they are (LB-43)
 */
export function describeRequest(kind: RequestKind, body: unknown, headers?: RequestHeaders): DescribedRequest {
  const fields = asRecord(readJson(body)) ?? {};
  const prompt = new Prompt();
  readPrompt(kind, fields, prompt);
  const { text, tokens, hasMedia } = prompt;
  const model = nonEmpty(own(fields, 'model'));
  const rid = kind === 'openai_responses' ? undefined : nonEmpty(firstOf(own(fields, 'rid')));
  const namespace = readNamespace(kind, fields);
  return {
    ...(model !== undefined && { model }),
    ...(text !== undefined && { text }),
    ...(tokens !== undefined && { tokens }),
    ...(headers !== undefined && { headers }),
    ...(rid !== undefined && { rid }),
    ...(namespace !== undefined && { namespace }),
    hasMedia,
    stream: own(fields, 'stream') === true,
  };
}

function readPrompt(kind: RequestKind, fields: JsonRecord, prompt: Prompt): void {
  switch (kind) {
    case 'openai_chat':
      prompt.addMessages(own(fields, 'messages'));
      break;
    case 'anthropic_messages':
      prompt.addContent(own(fields, 'system'));
      prompt.addMessages(own(fields, 'messages'));
      break;
    case 'openai_responses':
      prompt.addText(own(fields, 'instructions'));
      prompt.addText(own(fields, 'input'));
      prompt.addMessages(own(fields, 'input'));
      break;
    case 'openai_completions':
      prompt.addSequences(own(fields, 'prompt'));
      break;
    case 'openai_embeddings':
      prompt.addSequences(own(fields, 'input'));
      prompt.addMessages(own(fields, 'messages'));
      break;
    case 'sglang_generate':
      prompt.addText(firstOf(own(fields, 'text')));
      prompt.addTokens(own(fields, 'input_ids'));
      for (const name of ['image_data', 'audio_data', 'video_data']) prompt.addMedia(own(fields, name));
      break;
  }
}

/** The fields that separate engine caches; an empty string is unset, of a batch the first element counts (CA-100). */
function readNamespace(kind: RequestKind, fields: JsonRecord): CacheNamespace | undefined {
  if (kind === 'openai_embeddings' || kind === 'openai_responses') return undefined;
  const cacheSalt = nonEmpty(firstOf(own(fields, 'cache_salt')));
  const extraKey = nonEmpty(firstOf(own(fields, 'extra_key')));
  const loraId = kind === 'sglang_generate' ? nonEmpty(firstOf(own(fields, 'lora_id'))) : undefined;
  const lora = nonEmpty(firstOf(own(fields, 'lora_path'))) ?? loraId;
  if (cacheSalt === undefined && extraKey === undefined && lora === undefined) return undefined;
  return {
    ...(cacheSalt !== undefined && { cacheSalt }),
    ...(extraKey !== undefined && { extraKey }),
    ...(lora !== undefined && { lora }),
  };
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : value;
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
