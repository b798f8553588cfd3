/**
 * Cache partitions (section G of spec 05): requests whose engine caches are separate never match each other. Client
 * values are hashed at once and never stored (CA-106). Trees and the hash index know a partition by its key only, there
 * called `namespace`.
 */
import { checkObject, refuse } from '../errors.js';
import { hashText } from '../runtime/hash-text.js';

/** Seed of the hash, so that no other use of it gives a partition's key (CA-102). */
const domainTag = 0x6b76_6e73;

/** Three unset fields. */
const nothingSet = '000';

/** The fields that separate engine caches (CA-100). An empty string counts as unset. */
export interface CacheNamespace {
  /** `cache_salt` of the request body. */
  readonly cacheSalt?: string | undefined;
  /** `extra_key` of the request body. */
  readonly extraKey?: string | undefined;
  /** The LoRA adapter: `lora_path`, or `lora_id` on `/generate`. */
  readonly lora?: string | undefined;
}

/**
 * The partition's key, or undefined when no field is set: such requests are routed as if partitions did not exist.
 *
 * @returns 16 hex digits, the same in every process: placements and snapshots carry them (LB-33, LB-34)
 * @throws TypeError naming a field that is no string (LB-42)
 */
export function namespaceKey(namespace: CacheNamespace | undefined): string | undefined {
  if (namespace === undefined || namespace === null) return undefined;
  const { cacheSalt, extraKey, lora } = checkObject(namespace, 'namespace');
  const framed = framedField('cacheSalt', cacheSalt) + framedField('extraKey', extraKey) + framedField('lora', lora);
  return framed === nothingSet ? undefined : hashText(framed, domainTag);
}

/** @throws TypeError on `namespace` for a key that is no string (LB-42) */
export function checkNamespace(namespace: string | undefined): void {
  if (namespace !== undefined && typeof namespace !== 'string') throw refuse('namespace', 'a string', namespace);
}

/** The length before the value: the same characters in another field, or with shifted borders, differ (CA-102). */
function framedField(name: string, value: string | undefined): string {
  if (value === undefined || value === null || value === '') return '0';
  if (typeof value !== 'string') throw refuse(`namespace.${name}`, 'a string', value);
  return `1${value.length}:${value}`;
}
