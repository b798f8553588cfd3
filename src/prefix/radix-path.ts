/**
 * Where the descent for one request ended. A tree keeps the one of its last match, so that the insert that usually
 * follows continues instead of descending again.
 */
import type { RadixNode } from './radix-node.js';

export class RadixPath<Label> {
  /** The last node that agrees with the request completely, or the root; undefined when the namespace has no root. */
  last: RadixNode<Label> | undefined = undefined;
  /** Storage units that agree down to there. */
  position = 0;
  /** A child of `last` that agrees for `agreed` storage units only. */
  partial: RadixNode<Label> | undefined = undefined;
  agreed = 0;
  /** Units of the request the tree knows, for any tenant, also a removed one. */
  knownUnits = 0;
  /** What a match may report: the same as far as living tenants go, and the node where that ends. */
  matchedUnits = 0;
  deepest: RadixNode<Label> | undefined = undefined;
  /** Of the whole request. */
  requestUnits = 0;
}
