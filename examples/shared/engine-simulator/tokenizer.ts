/**
 * A tokenizer that is good enough to simulate prefix caching: four characters are one token, and a chat is cut message
 * by message, so a conversation that grows keeps the tokens of its earlier turns. Generated tokens are four-character
 * words, so an answer that comes back in the next turn has the tokens it was generated with.
 */

export interface ChatMessage {
  readonly role: string;
  readonly content?: string | null | readonly { readonly type?: string; readonly text?: string }[];
}

const charactersPerToken = 4;

/** Token ids of a text: one for every four characters, the rest is one more. */
export function tokenize(text: string): number[] {
  const tokens: number[] = [];
  for (let i = 0; i < text.length; i += charactersPerToken) tokens.push(tokenId(text, i, i + charactersPerToken));
  return tokens;
}

/** Token ids of a chat, with a token where each message begins and ends, and one that asks for the answer. */
export function tokenizeChat(messages: readonly ChatMessage[]): number[] {
  const tokens: number[] = [];
  for (const message of messages) {
    tokens.push(markerId(message.role));
    for (const token of tokenize(textOf(message))) tokens.push(token);
    tokens.push(markerId('end'));
  }
  tokens.push(markerId('assistant'));
  return tokens;
}

const words = 'the and for you was let new old low key far try run sum map set hot red big day way may ask all'.split(
  ' ',
);

/** The n-th word of the answer to a prompt: the same on every engine, so that all policies serve the same traffic. */
export function answerToken(promptHash: number, n: number): { readonly id: number; readonly text: string } {
  const pick = Math.imul(promptHash ^ Math.imul(n + 1, 0x9e3779b1), 0x85ebca6b) >>> 8;
  const text = `${words[pick % words.length]} `;
  return { id: tokenId(text, 0, text.length), text };
}

/** A 32-bit hash of a prompt. */
export function hashTokens(tokens: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const token of tokens) hash = Math.imul(hash ^ token, 0x01000193);
  return hash >>> 0;
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part) => part.text ?? '').join('\n') : '';
}

function markerId(name: string): number {
  const marker = `<|${name}|>`;
  return tokenId(marker, 0, marker.length);
}

function tokenId(text: string, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to && i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
