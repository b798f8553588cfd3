/** The requests that the contract of policies is checked with: ordinary ones, and what may arrive from outside (LB-42). */
import type { RouteRequest } from '../request.js';

/** Requests of every sort that policies read. */
export const requests: readonly RouteRequest[] = [
  {},
  { text: '' },
  { text: 'You are a helpful assistant. Summarize the following text.' },
  { text: 'You are a helpful assistant. 你好😀' },
  { tokens: [] },
  { tokens: Uint32Array.from({ length: 40 }, (_, i) => i) },
  { tokens: [1, 2, 3], text: 'abc' },
  { headers: { 'X-SMG-Routing-Key': 'session-a' } },
  { headers: { 'x-smg-routing-key': ['', 'session-b'] }, text: 'abc' },
  { headers: { authorization: 'Bearer secret' } },
  { headers: { 'x-smg-routing-tokens': '1,2,3' } },
  { rid: 'conversation_t3' },
  { model: 'm', leg: 'decode', text: 'abc', routingKey: 'session-c' },
  { namespace: { cacheSalt: 's' }, text: 'abc' },
];

/** Request data as it may arrive: malformed, huge, of the wrong type, with ids of object built-ins. */
export const hostileRequests: readonly unknown[] = [
  null,
  'text',
  { text: 5 },
  { text: '\ud800' },
  { text: '__proto__', routingKey: '__proto__', rid: 'constructor' },
  { tokens: 'abc' },
  { tokens: [1.5, -1, Number.NaN] },
  { tokens: [2 ** 33] },
  { tokens: { length: 3 } },
  { headers: 'x' },
  { headers: { 'x-smg-routing-key': 7, 'x-smg-routing-tokens': '1,,2', 'x-smg-target-worker': {} } },
  { headers: { 'x-smg-routing-key': 'k'.repeat(100_000), 'x-smg-routing-tokens': '9'.repeat(5000) } },
  {
    headers: () => {
      throw new Error('unreadable');
    },
  },
  { headers: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, 'v'])) },
  { rid: 9 },
  { rid: ['conversation_t1', 4] },
  { rid: 'k'.repeat(100_000) },
  { model: {} },
  { leg: 'middle' },
  { routingKey: 1 },
  { namespace: 4 },
  { namespace: { cacheSalt: 5 } },
  { exclude: 'a' },
  { exclude: [null, 3, {}] },
  { text: 'x'.repeat(5_000_000) },
];
