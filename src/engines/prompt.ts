/**
 * The prompt of a request body in routing order (CA-4): text parts as they come, joined by newlines; token ids of the
 * first sequence; whether there is media. Roles, tool definitions, calls and results, and reasoning do not count.
 *
 * Parts nest one level at most, so depth costs nothing; O(size of the body).
 */
import type { TokenIds } from '../prefix/token-ids.js';
import { asRecord, type JsonRecord, own } from './payload.js';
import { readTokenIds } from './token-ids.js';

const textTypes: readonly unknown[] = [undefined, 'text', 'input_text', 'output_text'];

const mediaTypes: readonly string[] = [
  'image',
  'image_url',
  'image_embeds',
  'input_image',
  'audio',
  'audio_url',
  'audio_embeds',
  'input_audio',
  'video',
  'video_url',
  'input_video',
  'file',
  'input_file',
  'document',
];

/** Collects the prompt while a body is walked. */
export class Prompt {
  /** Token ids of the first sequence, when the body has them. May be empty. */
  tokens: TokenIds | undefined;
  hasMedia = false;
  readonly #texts: string[] = [];

  /** The text parts joined by newlines; undefined when there is none. */
  get text(): string | undefined {
    return this.#texts.length === 0 ? undefined : this.#texts.join('\n');
  }

  /** A text; an empty one and any other type add nothing. */
  addText(value: unknown): void {
    if (typeof value === 'string' && value !== '') this.#texts.push(value);
  }

  /** Messages, or the items of a Responses input: each has a `content`, or is a part itself. */
  addMessages(messages: unknown): void {
    if (!Array.isArray(messages)) return;
    for (const item of messages) {
      const message = asRecord(item);
      if (message !== undefined && Object.hasOwn(message, 'content')) this.addContent(own(message, 'content'));
      else this.#addPart(item);
    }
  }

  /** A string or a list of parts. */
  addContent(content: unknown): void {
    if (Array.isArray(content)) for (const part of content) this.#addPart(part);
    else this.addText(content);
  }

  /**
   * The `prompt`, `input` or `text` of a completion: a text, a list of token ids, or a batch of either. A batch routes
   * on its first sequence (CA-4).
   */
  addSequences(value: unknown): void {
    if (!Array.isArray(value)) {
      this.addText(value);
    } else if (typeof value[0] === 'number' || Array.isArray(value[0])) {
      this.addTokens(value);
    } else {
      this.#addPart(value[0]);
    }
  }

  /** Token ids, or a batch of them; ids out of range or of the wrong type leave the request without ids. */
  addTokens(value: unknown): void {
    this.tokens = readTokenIds(Array.isArray(value) && Array.isArray(value[0]) ? value[0] : value);
  }

  /** A field that holds media when it is neither null nor empty. */
  addMedia(value: unknown): void {
    this.hasMedia ||= Array.isArray(value) ? value.some(isPresent) : isPresent(value);
  }

  #addPart(value: unknown): void {
    const part = asRecord(value);
    if (part === undefined) {
      this.addText(value);
      return;
    }
    if (textTypes.includes(own(part, 'type'))) this.addText(own(part, 'text'));
    this.hasMedia ||= isMedia(part) || holdsMedia(own(part, 'content'));
  }
}

function isMedia(part: JsonRecord): boolean {
  const type = own(part, 'type');
  return type === undefined
    ? mediaTypes.some((name) => isPresent(own(part, name)))
    : mediaTypes.includes(type as string);
}

/** A tool result may hold media among its parts. */
function holdsMedia(content: unknown): boolean {
  if (!Array.isArray(content)) return false;
  return content.some((value) => {
    const part = asRecord(value);
    return part !== undefined && isMedia(part);
  });
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
