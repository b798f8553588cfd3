import { describe, expect, it } from 'vitest';
import { composePinKey, keyOfPin, PinKeyComposer, pinModel } from '../../src/sticky/pin-key.js';
import { fc } from '../support/property.js';

const leg = fc.constantFrom('single' as const, 'prefill' as const, 'decode' as const, 'encode' as const);
// Few characters, those of the composition among them, so that borders shift often.
const text = fc.string({ unit: fc.constantFrom('a', ':', '1', '0', 'single', 'decode'), maxLength: 6 });
const triple = fc.tuple(text, leg, text);

describe('composePinKey', () => {
  it('ST-32: different (model, leg, key) triples make different pin keys', () => {
    fc.assert(
      fc.property(triple, triple, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other);
        expect(composePinKey(...one) === composePinKey(...other)).toBe(same);
      }),
      { numRuns: 2000 },
    );
  });

  it('ST-32: the routing key can be read back', () => {
    fc.assert(
      fc.property(triple, ([model, leg, key]) => {
        expect(keyOfPin(composePinKey(model, leg, key))).toBe(key);
      }),
    );
  });

  it('ST-32, LB-31: a model of up to 256 characters is held as it is, a longer one as a hash of fixed length', () => {
    const longest = 'm'.repeat(256);
    expect(composePinKey(longest, 'single', 'k')).toBe(`256:${longest}single:k`);
    const hashed = composePinKey(`${longest}m`, 'single', 'k');
    expect(hashed.length).toBeLessThan(40);
    expect(keyOfPin(hashed)).toBe('k');
    expect(hashed).not.toBe(composePinKey(`${longest}n`, 'single', 'k'));
  });

  it('WK-12: an empty model is unknown', () => {
    expect(composePinKey('', 'single', 'k')).toBe(composePinKey('unknown', 'single', 'k'));
  });

  it('WK-13a: a model name of any length takes bounded room and stays apart from others', () => {
    const long = 'm'.repeat(1_000_000);
    const pinKey = composePinKey(long, 'single', 'k');
    expect(pinKey.length).toBeLessThan(64);
    expect(keyOfPin(pinKey)).toBe('k');
    expect(composePinKey(`${long}n`, 'single', 'k')).not.toBe(pinKey);
  });

  it('ST-32: a composer that remembers its scope gives the same keys', () => {
    const composer = new PinKeyComposer();
    fc.assert(
      fc.property(triple, (one) => {
        expect(composer.compose(...one)).toBe(composePinKey(...one));
      }),
    );
  });
});

describe('pinModel', () => {
  it('WK-13a: pins are scoped by the pool, or by the requested model in the pool without one', () => {
    expect(pinModel('llama', 'alias-of-llama')).toBe('llama');
    expect(pinModel('unknown', 'unregistered')).toBe('unregistered');
    expect(pinModel('unknown', undefined)).toBe('unknown');
  });
});
