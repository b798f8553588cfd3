import { describe, expect, it } from 'vitest';
import { RequestView, type RouteRequest } from '../../src/request.js';
import {
  headerRoutingKey,
  isValidRoutingKey,
  keyHash,
  resolveRoutingKey,
  ridKey,
  stripLineage,
} from '../../src/sticky/routing-key.js';

const k = (count: number) => 'k'.repeat(count);

describe('ridKey', () => {
  it.each([
    ['conv', 'conv'],
    ['conv_t2', 'conv'],
    ['conv123_t12', 'conv123'],
    ['conv_t2_r1', 'conv'],
    ['conv_r1', 'conv'],
    ['conv_r1_t2', 'conv_r1'],
    ['conv_t1_t2', 'conv_t1'],
    ['conv_r1_r2', 'conv_r1'],
    ['conv_t1_r2_r3', 'conv_t1_r2'],
    ['conv_t', 'conv_t'],
    ['conv_tx1', 'conv_tx1'],
    ['conv_t1x', 'conv_t1x'],
    ['conv_T2', 'conv_T2'],
    ['conv_R2', 'conv_R2'],
    ['conv-t2', 'conv-t2'],
    ['conv_turn2', 'conv_turn2'],
    ['under_scored_id', 'under_scored_id'],
    ['_t1', '_t1'],
    ['_r1', '_r1'],
    ['_t1_r1', '_t1_r1'],
    ['_r1_t1', '_r1'],
    ['conv_t٣', 'conv_t٣'],
    ['t1', 't1'],
    ['1', '1'],
    // The digits are 0 to 9 and not their neighbours in ASCII.
    ['conv_t0', 'conv'],
    ['conv_t9_r0', 'conv'],
    ['conv_t/', 'conv_t/'],
    ['conv_t:', 'conv_t:'],
    ['', undefined],
  ])('ST-13: %j → %j', (rid, key) => {
    expect(ridKey(rid)).toBe(key);
  });

  it('ST-12: 128 bytes of UTF-8 are the limit, checked after stripping', () => {
    expect(ridKey(`${k(200)}_t1`)).toBeUndefined();
    expect(ridKey(`${k(128)}_t1`)).toBe(k(128));
    expect(ridKey(k(129))).toBeUndefined();
    expect(ridKey('é'.repeat(64))).toBe('é'.repeat(64));
    expect(ridKey('é'.repeat(65))).toBeUndefined();
    expect(ridKey('漢'.repeat(42))).toBe('漢'.repeat(42));
    expect(ridKey('漢'.repeat(43))).toBeUndefined();
    expect(ridKey('🌊'.repeat(32))).toBe('🌊'.repeat(32));
    expect(ridKey('🌊'.repeat(33))).toBeUndefined();
    expect(ridKey('\ud800'.repeat(42))).toBe('\ud800'.repeat(42));
    expect(ridKey('\ud800'.repeat(43))).toBeUndefined();
  });

  it.each([
    ['\u007f', 1],
    ['\u0080', 2],
    ['\u07ff', 2],
    ['\u0800', 3],
    ['\uffff', 3],
    ['\u{10000}', 4],
  ])('ST-12: %j counts %d', (character, bytes) => {
    const most = character.repeat(Math.floor(128 / bytes));
    expect(ridKey(most)).toBe(most);
    const filler = k(128 - bytes * Math.floor(128 / bytes));
    expect(ridKey(most + filler)).toBe(most + filler);
    expect(ridKey(`${most}${filler}k`)).toBeUndefined();
  });

  it('LB-42: a rid that is no string is no key', () => {
    for (const rid of [7, null, {}, ['conv']]) expect(ridKey(rid as never)).toBeUndefined();
  });

  it('ST-11: any number of digits is one suffix', () => {
    expect(ridKey(`conv_r${'1'.repeat(1_000_000)}`)).toBe('conv');
  });

  it('ST-21: header values are stripped the same way and stay whole when nothing would be left', () => {
    expect(stripLineage('a_t1_r2')).toBe('a');
    expect(stripLineage('_t1_r2')).toBe('_t1_r2');
  });
});

describe('isValidRoutingKey', () => {
  it('ST-20: 1 to 128 bytes of UTF-8', () => {
    expect(isValidRoutingKey('user-1')).toBe(true);
    expect(isValidRoutingKey(k(128))).toBe(true);
    expect(isValidRoutingKey(k(129))).toBe(false);
    expect(isValidRoutingKey('')).toBe(false);
    expect(isValidRoutingKey('é'.repeat(64))).toBe(true);
    expect(isValidRoutingKey('é'.repeat(65))).toBe(false);
    expect(isValidRoutingKey('🌊'.repeat(32))).toBe(true);
  });

  it('ST-20: a lone surrogate is no UTF-8', () => {
    expect(isValidRoutingKey('a\ud83c')).toBe(false);
    expect(isValidRoutingKey('\udf0aa')).toBe(false);
    expect(isValidRoutingKey('\ud83c\ud83c\udf0a')).toBe(false);
    expect(isValidRoutingKey('\ud83c\udf0a')).toBe(true);
    for (const lone of ['\ud800', '\udbff', '\udc00', '\udfff']) expect(isValidRoutingKey(lone)).toBe(false);
    for (const neighbour of ['\ud7ff', '\ue000', '\ufb01']) expect(isValidRoutingKey(neighbour)).toBe(true);
  });

  it('LB-42: what is no string is no key', () => {
    for (const value of [7, null, undefined, {}, ['k']]) expect(isValidRoutingKey(value as never)).toBe(false);
  });

  it('ST-22a: spaces and tabs around the value do not count, blank is empty', () => {
    expect(isValidRoutingKey(` \t${k(128)}\t `)).toBe(true);
    expect(isValidRoutingKey(' \t ')).toBe(false);
  });
});

describe('headerRoutingKey', () => {
  const read = (headers: RouteRequest['headers'], names = ['x-smg-routing-key']) =>
    headerRoutingKey(new RequestView({ headers }), names);

  it('B79: every shape of headers, whatever the case of the name', () => {
    expect(read({ 'X-SMG-Routing-Key': 'k' })).toBe('k');
    expect(read({ 'x-smg-routing-key': ['k'] })).toBe('k');
    expect(read(new Headers({ 'X-Smg-Routing-Key': 'k' }))).toBe('k');
    expect(read(new Map([['X-SMG-ROUTING-KEY', 'k']]))).toBe('k');
    expect(read((name: string) => (name === 'x-smg-routing-key' ? 'k' : undefined))).toBe('k');
    expect(read({ 'x-smg-routing-key': k(129) })).toBeUndefined();
    expect(read({})).toBeUndefined();
    expect(read(undefined)).toBeUndefined();
  });

  it('ST-20: the first name with a valid value wins, an invalid value is skipped', () => {
    const names = ['x-a', 'x-b', 'x-c'];
    expect(read({ 'x-b': 'b', 'x-a': 'a' }, names)).toBe('a');
    expect(read({ 'x-a': k(129), 'x-b': ' ', 'x-c': 'c' }, names)).toBe('c');
    expect(read({ 'x-smg-routing-key': 'k' }, names)).toBeUndefined();
  });

  it('ST-22a: an array yields its first valid element; values come trimmed', () => {
    expect(read({ 'x-smg-routing-key': ['', ' ', k(129), '\tgood ', 'later'] })).toBe('good');
    expect(read({ 'x-smg-routing-key': [7, null, 'good'] as never })).toBe('good');
    expect(read({ 'x-smg-routing-key': [] })).toBeUndefined();
  });
});

describe('resolveRoutingKey', () => {
  const headers = { 'x-smg-routing-key': 'head_t1' };
  const on = { rid: true, headers: ['x-smg-routing-key'], stripHeaders: true };
  const off = { rid: false, headers: ['x-smg-routing-key'], stripHeaders: false };
  const resolve = (request: RouteRequest, rules: typeof on) => resolveRoutingKey(new RequestView(request), rules);

  it('ST-24: rid key, else header key, else none', () => {
    expect(resolve({ rid: 'conv_t2', headers }, on)).toEqual({ key: 'conv', source: 'rid' });
    expect(resolve({ rid: '', headers }, on)).toEqual({ key: 'head', source: 'header' });
    expect(resolve({ rid: k(129), headers }, on)).toEqual({ key: 'head', source: 'header' });
    expect(resolve({ rid: ['conv_t2', 'other'] }, on)).toEqual({ key: 'conv', source: 'rid' });
    expect(resolve({ rid: 7 as never }, on)).toBeUndefined();
    expect(resolve({}, on)).toBeUndefined();
  });

  it('ST-10, ST-21: with the override off no rid counts and header values are raw', () => {
    expect(resolve({ rid: 'conv_t2', headers }, off)).toEqual({ key: 'head_t1', source: 'header' });
    expect(resolve({ rid: 'conv_t2' }, off)).toBeUndefined();
  });

  it('ST-22: the length of a header value is checked before stripping', () => {
    expect(resolve({ headers: { 'x-smg-routing-key': `${k(126)}_t1` } }, on)).toBeUndefined();
    expect(resolve({ headers: { 'x-smg-routing-key': `${k(125)}_t1` } }, on)?.key).toBe(k(125));
  });

  it("LM-32a: the host's own routing key wins and is taken as it is", () => {
    expect(resolve({ rid: 'conv', headers, routingKey: 'media_t1' }, on)).toEqual({
      key: 'media_t1',
      source: 'header',
    });
    expect(resolve({ rid: 'conv', routingKey: k(129) }, on)).toEqual({ key: 'conv', source: 'rid' });
  });
});

describe('keyHash', () => {
  it('OB-93: 16 hex digits, leading zeros kept, equal keys alike and different ones apart', () => {
    const hashes = Array.from({ length: 5000 }, (_, i) => keyHash(`key-${i}`));
    for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{16}$/);
    expect(new Set(hashes).size).toBe(5000);
    expect(hashes.some((hash) => hash.startsWith('0'))).toBe(true);
    expect(keyHash('key-7')).toBe(hashes[7]);
  });
});
