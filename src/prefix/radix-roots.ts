/**
 * The roots of a prefix tree: one for requests without a namespace, which is always there, and one for each namespace as
 * long as something is held in it. All share the budget of the tree (CA-106).
 */
import { RadixNode } from './radix-node.js';

export class Roots<Label> {
  readonly #empty: Label;
  readonly #plain: RadixNode<Label>;
  readonly #byNamespace = new Map<string, RadixNode<Label>>();
  readonly #namespaces = new Map<RadixNode<Label>, string>();

  /** @param empty the label of roots */
  constructor(empty: Label) {
    this.#empty = empty;
    this.#plain = new RadixNode(empty, undefined);
  }

  /** Undefined when nothing is held in the namespace. */
  of(namespace: string | undefined): RadixNode<Label> | undefined {
    return namespace === undefined ? this.#plain : this.#byNamespace.get(namespace);
  }

  /** Makes the root of a namespace that has none. */
  add(namespace: string): RadixNode<Label> {
    const root = new RadixNode(this.#empty, undefined);
    this.#byNamespace.set(namespace, root);
    this.#namespaces.set(root, namespace);
    return root;
  }

  namespaceOf(root: RadixNode<Label>): string | undefined {
    return this.#namespaces.get(root);
  }

  /** That of requests without a namespace first. */
  all(): RadixNode<Label>[] {
    return [this.#plain, ...this.#byNamespace.values()];
  }

  /** Nothing is held below the root any more. */
  drop(root: RadixNode<Label>): void {
    const namespace = this.#namespaces.get(root);
    if (namespace === undefined) return;
    this.#namespaces.delete(root);
    this.#byNamespace.delete(namespace);
  }
}
