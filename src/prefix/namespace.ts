/**
 * Cache partitions (section G of spec 05): requests whose engine caches are separate never match each other. Client
 * values are hashed at once and never stored (CA-106).
 */
import { hashText } from '../runtime/mix.js';

/** The fields that separate engine caches (CA-100). An empty string counts as unset. */
export interface CacheNamespace {
  /** `cache_salt` of the request body. */
  readonly cacheSalt?: string | undefined;
  /** `extra_key` of the request body. */
  readonly extraKey?: string | undefined;
  /** The LoRA adapter: `lora_path`, or `lora_id` on `/generate`. */
  readonly lora?: string | undefined;
}

/** The partition's key, or undefined when no field is set: such requests are routed as if partitions did not exist. */
export function namespaceKey(namespace: CacheNamespace | undefined): string | undefined {
  if (namespace === undefined) return undefined;
  const { cacheSalt, extraKey, lora } = namespace;
  if (!cacheSalt && !extraKey && !lora) return undefined;
  // Lengths before values: the same characters in another field, or with shifted borders, differ (CA-102).
  const framed = [cacheSalt, extraKey, lora].map((field) => (field ? `1${field.length}:${field}` : '0')).join('');
  return hashText(framed, 0x6b76_6e73);
}
