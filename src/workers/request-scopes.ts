/**
 * Request scopes by request id (CB-32): for hosts whose attempts of one request do not share a variable, such as a
 * retrying proxy in front of the gateway. The last 4 096 ids are remembered; a request that is retried after so many
 * others is charged anew, as one without a scope would be.
 */
import { LRUCache } from 'lru-cache';
import { RequestScope } from './outcome-class.js';

/** Request ids remembered at a time. */
const maxRequests = 4096;
/** A longer id is refused: it comes from outside and is kept. */
const maxIdLength = 256;

/** The scopes of the requests seen last. */
export class RequestScopes {
  // Made when first asked for: the cache allocates its slots at once, and most hosts share a scope object instead.
  #byId: LRUCache<string, RequestScope> | undefined;

  /** The scope of a request id, the same for the same id. */
  of(requestId: string): RequestScope {
    this.#byId ??= new LRUCache({ max: maxRequests });
    const known = this.#byId.get(requestId);
    if (known !== undefined) return known;
    const scope = new RequestScope();
    this.#byId.set(requestId, scope);
    return scope;
  }

  /** Whether a value can be a scope: one made by `new RequestScope()`, or a request id of 1 to 256 characters. */
  static accepts(value: unknown): value is RequestScope | string {
    if (typeof value === 'string') return value.length > 0 && value.length <= maxIdLength;
    return value instanceof RequestScope;
  }
}
