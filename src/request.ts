/**
 * The request as the router sees it. `RouteRequest` is what a host passes; `RequestView` is the checked form policies
 * read, with everything that costs something derived on first use.
 *
 * Request data is hostile: what a statement allows to be absent is treated as absent when it is malformed, anything
 * else is refused with a `TypeError` that names the field, before any state changes (LB-42).
 */
import { refuse } from './errors.js';
import { firstValue, headerValue, type RequestHeaders } from './headers.js';
import type { Leg } from './policies/policy.js';
import type { CacheNamespace } from './prefix/namespace.js';
import { parseRoutingTokens } from './prefix/routing-tokens.js';
import type { TokenIds } from './prefix/token-ids.js';
import type { WorkerId } from './workers/candidate.js';

/** What the host knows about one request. Every field is optional. */
export interface RouteRequest {
  /** The requested model. Absent or empty: the request names none and draws from all models (WK-13). */
  readonly model?: string | undefined;
  /** Absent: `single`, or in `pd` and `epd` mode required by `selectWorker` (LM-1). */
  readonly leg?: Leg | undefined;
  /** The prompt text in routing order; `describeRequest` of `kvroute/engines` makes it from a body (CA-4). */
  readonly text?: string | undefined;
  /** Token ids, 0 to 2³²−1 each. They win over `text`; an empty list does not (CA-4). */
  readonly tokens?: TokenIds | undefined;
  /** The request's headers, in any common shape (LB-43). */
  readonly headers?: RequestHeaders | undefined;
  /** The body's request id; for a list the first one counts. Read only when stickiness is on (ST-10). */
  readonly rid?: string | readonly string[] | undefined;
  /** A routing key the host derived itself, taken as it is; it wins over rid and headers (LM-32a). 1–128 bytes of UTF-8. */
  readonly routingKey?: string | undefined;
  /** The cache partition: requests of different partitions never match each other (CA-100). */
  readonly namespace?: CacheNamespace | undefined;
  /** Workers that must not be chosen, for a retry or a hedge (LB-14). */
  readonly exclude?: readonly WorkerId[] | undefined;
}

const legs: readonly string[] = ['single', 'prefill', 'decode', 'encode'];

/** A checked request. One is made per call; fields are plain, derived values are cached on first use. */
export class RequestView {
  /** As requested; undefined when the request names none. */
  readonly model: string | undefined;
  readonly leg: Leg | undefined;
  readonly rid: string | undefined;
  readonly routingKey: string | undefined;
  readonly exclude: readonly WorkerId[] | undefined;
  /** The cache partition; undefined when none is set. A hint replaces tokens and text, not the partition (CA-101, CA-111). */
  readonly namespace: CacheNamespace | undefined;
  readonly #text: string | undefined;
  readonly #bodyTokens: TokenIds | undefined;
  readonly #headers: RequestHeaders | undefined;
  #hint: TokenIds | undefined;
  #hintRead = false;

  /** @throws TypeError naming the field of the wrong type */
  constructor(request: RouteRequest) {
    if (typeof request !== 'object' || request === null) throw refuse('request', 'an object', request);
    this.model = emptyAsAbsent(optionalString(request.model, 'model'));
    this.leg = checkedLeg(request.leg);
    this.#text = optionalString(request.text, 'text');
    this.#bodyTokens = checkedTokens(request.tokens);
    this.#headers = checkedHeaders(request.headers);
    this.rid = checkedRid(request.rid);
    this.routingKey = optionalString(request.routingKey, 'routingKey');
    this.namespace = checkedNamespace(request.namespace);
    this.exclude = checkedExclude(request.exclude);
  }

  /** The prompt text; undefined when a valid tokens hint replaces it (CA-111). */
  get text(): string | undefined {
    return this.#hintedTokens() === undefined ? this.#text : undefined;
  }

  /** Token ids: those of a valid hint, else the body's (CA-111). May be empty. */
  get tokens(): TokenIds | undefined {
    return this.#hintedTokens() ?? this.#bodyTokens;
  }

  /** Token ids when there are any: an empty list leaves the decision to the text (CA-4). */
  get routingTokens(): TokenIds | undefined {
    const tokens = this.tokens;
    return tokens !== undefined && tokens.length > 0 ? tokens : undefined;
  }

  /** All values of a header, `name` in lower case; undefined when absent. */
  headerValues(name: string): string | readonly string[] | undefined {
    return headerValue(this.#headers, name);
  }

  /** The first value of a header, `name` in lower case; undefined when absent. */
  header(name: string): string | undefined {
    return firstValue(headerValue(this.#headers, name));
  }

  get hasHeaders(): boolean {
    return this.#headers !== undefined;
  }

  #hintedTokens(): TokenIds | undefined {
    if (!this.#hintRead) {
      this.#hintRead = true;
      // The hint belongs to the regular path only (CA-111).
      if (this.#headers !== undefined && (this.leg === undefined || this.leg === 'single')) {
        this.#hint = parseRoutingTokens(this.header('x-smg-routing-tokens'));
      }
    }
    return this.#hint;
  }
}

function optionalString(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw refuse(field, 'a string', value);
  return value;
}

function emptyAsAbsent(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function checkedLeg(value: unknown): Leg | undefined {
  if (value === undefined || value === null) return undefined;
  if (!legs.includes(value as string)) throw refuse('leg', 'single, prefill, decode or encode', value);
  return value as Leg;
}

function checkedTokens(value: unknown): TokenIds | undefined {
  if (value === undefined || value === null) return undefined;
  // The length is looked at here, so that a list which cannot be read fails before anything is decided.
  if (!(value instanceof Uint32Array) && !(Array.isArray(value) && value.length >= 0)) {
    throw refuse('tokens', 'a Uint32Array or an array of integers', value);
  }
  return value;
}

function checkedHeaders(value: unknown): RequestHeaders | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' && typeof value !== 'function')
    throw refuse('headers', 'an object or a function', value);
  return value as RequestHeaders;
}

/** A rid of the wrong type yields no key, as a malformed one does (ST-12). */
function checkedRid(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'string' ? first : undefined;
}

function checkedNamespace(value: unknown): CacheNamespace | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object') throw refuse('namespace', 'an object', value);
  const { cacheSalt, extraKey, lora } = value as CacheNamespace;
  optionalString(cacheSalt, 'namespace.cacheSalt');
  optionalString(extraKey, 'namespace.extraKey');
  optionalString(lora, 'namespace.lora');
  // What was checked is what is read later.
  return { cacheSalt, extraKey, lora };
}

function checkedExclude(value: unknown): readonly WorkerId[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw refuse('exclude', 'an array of worker ids', value);
  // A copy: a list that fails when it is read fails here, before anything is done for the request.
  return value.length === 0 ? undefined : value.slice();
}
