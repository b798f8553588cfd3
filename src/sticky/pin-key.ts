/**
 * The key of a pin: model, leg and routing key in one string that no other triple makes (ST-32). Leases count under it
 * too (WK-42), so one pin of one model on one leg is what the in-flight cap sees.
 *
 * The concatenation is also a copy: a key cut from a huge rid or header does not keep that alive.
 */
import type { Leg } from '../policies/policy.js';
import { hashText } from '../runtime/hash-text.js';
import { unknownModel } from '../workers/worker-spec.js';

/** Characters of a model name that are kept as they are. */
const longestModel = 256;

/** The key of a pin. An empty model counts as `unknown` (WK-12). */
export function composePinKey(model: string, leg: Leg, key: string): string {
  return scopeOf(model, leg) + key;
}

/** Composes pin keys for one pool, whose model and leg seldom change: half the cost of composing is remembered. */
export class PinKeyComposer {
  #model = '';
  #leg: Leg = 'single';
  #scope: string = scopeOf(this.#model, this.#leg);

  compose(model: string, leg: Leg, key: string): string {
    if (model !== this.#model || leg !== this.#leg) {
      this.#model = model;
      this.#leg = leg;
      this.#scope = scopeOf(model, leg);
    }
    return this.#scope + key;
  }
}

/**
 * A model and a leg as the beginning of a key: `length:model`, the leg and a colon. The length keeps any two keys apart,
 * whatever follows. An empty model counts as `unknown` (WK-12).
 */
export function scopeOf(model: string, leg: Leg): string {
  const scope = model === '' ? unknownModel : boundedModel(model);
  return `${scope.length}:${scope}${leg}:`;
}

/** The routing key within a pin key. */
export function keyOfPin(pinKey: string): string {
  const modelStart = pinKey.indexOf(':') + 1;
  const legStart = modelStart + Number.parseInt(pinKey, 10);
  return pinKey.slice(pinKey.indexOf(':', legStart) + 1);
}

/**
 * The model a pin is scoped by: that of the pool, or, in the pool of workers without a model, the one the request named
 * (WK-13a).
 */
export function pinModel(poolModel: string, requestedModel: string | undefined): string {
  return poolModel === unknownModel ? (requestedModel ?? poolModel) : poolModel;
}

/** A request may name any model: a very long name is held as its hash. */
function boundedModel(model: string): string {
  return model.length <= longestModel ? model : `\u0001${hashText(model)}`;
}
