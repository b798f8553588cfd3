import { describe, expect, it } from 'vitest';
import { type CacheNamespace, namespaceKey } from '../../src/prefix/namespace.js';

describe('namespaceKey', () => {
  it('CA-100: nothing set is no namespace; an empty string is unset', () => {
    const unset: readonly (CacheNamespace | undefined)[] = [
      undefined,
      {},
      { cacheSalt: '', extraKey: '', lora: '' },
      { cacheSalt: undefined, lora: undefined },
    ];
    for (const namespace of unset) expect(namespaceKey(namespace)).toBeUndefined();
    expect(namespaceKey({ cacheSalt: 'a', extraKey: '' })).toBe(namespaceKey({ cacheSalt: 'a' }));
  });

  it('LB-42: a field that is no string is refused by its name, whatever it reads as', () => {
    for (const value of [0, 1, false, true, Number.NaN, {}, [], 0n]) {
      const cacheSalt = value as unknown as string;
      expect(() => namespaceKey({ cacheSalt })).toThrow(/^namespace\.cacheSalt: expected a string, got /);
      expect(() => namespaceKey({ cacheSalt, lora: 'a' })).toThrow(TypeError);
    }
    expect(() => namespaceKey('salt' as CacheNamespace)).toThrow(/^namespace: expected an object/);
  });

  it('CA-102: the same value in another field, and shifted borders, are other namespaces', () => {
    const distinct: readonly CacheNamespace[] = [
      { cacheSalt: 'a' },
      { extraKey: 'a' },
      { lora: 'a' },
      { cacheSalt: 'a', extraKey: 'a' },
      { cacheSalt: 'a', lora: 'a' },
      { extraKey: 'a', lora: 'a' },
      { cacheSalt: 'a', extraKey: 'a', lora: 'a' },
      { cacheSalt: 'ab', extraKey: 'c' },
      { cacheSalt: 'a', extraKey: 'bc' },
      { cacheSalt: 'a11:b' },
      { cacheSalt: 'a', extraKey: 'b' },
      { cacheSalt: '0' },
      { cacheSalt: '\u0000' },
      { cacheSalt: '\ud800' },
      { cacheSalt: '\ud801' },
    ];
    expect(new Set(distinct.map(namespaceKey)).size).toBe(distinct.length);
  });

  it('CA-106: it is a hash of fixed form, the same every time', () => {
    const secret = 'tenant-secret-'.repeat(1000);
    const key = namespaceKey({ cacheSalt: secret }) as string;
    expect(key).toMatch(/^[0-9a-f]{16}$/);
    expect(key).toBe(namespaceKey({ cacheSalt: secret }));
  });

  it('LB-34: it is the same in every instance and version, since placements carry it', () => {
    const namespaces = [{ cacheSalt: 'tenant-1' }, { extraKey: 'tenant-1', lora: 'a' }, { lora: '\ud83d😀' }];
    expect(namespaces.map(namespaceKey)).toEqual(['af8acb5389c4dbac', 'e40b77a72628d924', '9ce2047fdb76514d']);
  });

  it('CA-102: 100 000 salts give as many keys', () => {
    const keys = new Set(Array.from({ length: 100_000 }, (_, i) => namespaceKey({ cacheSalt: `user-${i}` })));
    expect(keys.size).toBe(100_000);
  });
});
