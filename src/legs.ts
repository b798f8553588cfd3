/**
 * Disaggregated requests: a prefill/decode pair, and encode workers for the media (LM-30 to LM-36). All legs are placed
 * in one call; nothing is recorded for a leg unless every leg found its worker.
 */
import type { RouterCore } from './core.js';
import { type Attempt, type DrawFrom, decide, emptyOutcome, recordOfAttempt, scopeOf, workerOf } from './decide.js';
import { checkObject, refuse } from './errors.js';
import type { Leg } from './policies/policy.js';
import type { Scope } from './pools.js';
import { RequestView, type RouteRequest } from './request.js';
import { allOf } from './runtime/all-of.js';
import { finish, type Selected, tell } from './select.js';
import { type NotSelected, notSelected, type SelectionReason } from './selection.js';
import type { WorkerId } from './workers/candidate.js';
import { pairingFacts } from './workers/pairing.js';
import type { WorkerState } from './workers/worker.js';

/** What the legs need to know beside the request. */
export interface LegOptions {
  /**
   * One stable text for each media item, for example the hash of its content: each item gets an encode worker of its
   * own, the same for the same item (LM-34). Absent or empty: no encode leg. Only in `epd` mode.
   */
  readonly media?: readonly string[] | undefined;
}

/** A worker for every leg. Each is begun and ended by itself (WK-32). */
export interface SelectedLegs {
  readonly ok: true;
  readonly prefill: Selected;
  readonly decode: Selected;
  /** One for each media item, in their order. */
  readonly encode: readonly Selected[];
}

/** All legs, or which one is missing and why. */
export type LegsSelection = SelectedLegs | NotSelected;

/** @throws TypeError in `regular` mode, and for request data of the wrong type */
export function selectLegs(core: RouterCore, request: RouteRequest, options: LegOptions): LegsSelection {
  if (core.plan.options.mode === 'regular') throw refuse('mode', "a router with mode 'pd' or 'epd'", 'regular');
  if (typeof request !== 'object' || request === null) throw refuse('request', 'an object', request);
  const media = checkMedia(core, checkObject(options).media);
  const views = { prefill: legView(request, 'prefill'), decode: legView(request, 'decode') };
  const now = core.advance();
  const scopes = { prefill: scopeOf(core, views.prefill), decode: scopeOf(core, views.decode) };
  const draw = (view: RequestView, from: DrawFrom): Attempt => decide(core, view, now, core.random, from);

  const pairs = core.pools.pairs(scopes.prefill, scopes.decode);
  const { viable, hasPair } = pairs.viablePrefill(now, views.decode.exclude);
  const prefill = draw(views.prefill, { scope: scopes.prefill, narrowed: viable });
  const chosen = workerOf(prefill.decision);
  if (chosen === undefined) return refuseLegs(core, prefill, draw(views.decode, { scope: scopes.decode }), hasPair);

  const partners: Scope = { pool: scopes.decode.pool, list: pairs.partnersOf(chosen) };
  const decode = draw(views.decode, { scope: partners });
  if (decode.decision.worker === undefined) return finish(core, decode) as NotSelected;

  const drawEncode = (item: string): Attempt => {
    const view = legView({ ...request, routingKey: item }, 'encode');
    const scope = scopeOf(core, view);
    return draw(view, { scope, narrowed: sameRuntime(scope, chosen) });
  };
  const [firstItem, ...otherItems] = media;
  const first = firstItem === undefined ? undefined : drawEncode(firstItem);
  if (first !== undefined && first.decision.worker === undefined) return finish(core, first) as NotSelected;

  const selected = (attempt: Attempt): Selected => finish(core, attempt) as Selected;
  return core.hub.afterwards(() => ({
    ok: true,
    prefill: selected(prefill),
    decode: selected(decode),
    // Where one item found a worker every item does. Each is decided when those before it are recorded, so that a
    // rotation moves on from item to item.
    encode: first === undefined ? [] : [selected(first), ...otherItems.map((item) => selected(drawEncode(item)))],
  }));
}

function legView(request: RouteRequest, leg: Leg): RequestView {
  return new RequestView({ ...request, leg });
}

function checkMedia(core: RouterCore, media: unknown): readonly string[] {
  if (media === undefined) return [];
  if (!Array.isArray(media) || !allOf(media, (item) => typeof item === 'string' && item !== '')) {
    throw refuse('media', 'an array of non-empty strings', media);
  }
  if (media.length > 0 && core.plan.options.mode !== 'epd') throw refuse('media', "mode 'epd'", core.plan.options.mode);
  return media;
}

/** Why no prefill worker was chosen: its own leg, the decode leg, or that none of them pair (LM-32, LM-32a). */
function refuseLegs(core: RouterCore, prefill: Attempt, decode: Attempt, hasPair: boolean): NotSelected {
  // The prefill leg as it is without regard to partners.
  const alone: Attempt = { ...prefill, narrowed: undefined, available: prefill.scope.list.current(prefill.ctx.now) };
  if (alone.available.size === 0) return toldEmpty(core, alone);
  if (prefill.available.size > 0) return finish(core, prefill) as NotSelected;
  if (decode.scope.list.size > 0 && !hasPair) return toldAs(core, prefill, 'no_compatible_pair');
  if (decode.available.size === 0) return toldEmpty(core, { ...decode, candidates: decode.available });
  return toldAs(core, decode, 'no_available_workers', decode.available.size - decode.candidates.size);
}

function toldEmpty(core: RouterCore, attempt: Attempt): NotSelected {
  return told(core, emptyOutcome(core, attempt));
}

function toldAs(core: RouterCore, attempt: Attempt, reason: SelectionReason, excluded = 0): NotSelected {
  return told(core, notSelected(reason, excluded, { ...recordOfAttempt(attempt), inFlight: undefined }));
}

function told(core: RouterCore, selection: NotSelected): NotSelected {
  tell(core, selection);
  return selection;
}

/** One runtime serves all legs of a request (LM-34): ids of the encode workers of that runtime; undefined = all. */
function sameRuntime(scope: Scope, prefill: WorkerState): ReadonlySet<WorkerId> | undefined {
  const { runtime } = pairingFacts(prefill);
  if (runtime === undefined) return undefined;
  const ids = new Set<WorkerId>();
  for (const worker of scope.list.members()) {
    const other = pairingFacts(worker).runtime;
    if (other === undefined || other === runtime) ids.add(worker.id);
  }
  return ids.size === scope.list.size ? undefined : ids;
}
