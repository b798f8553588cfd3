/**
 * The node of a prefix tree and the keeping of its children. A label is never empty except a root's, and no two
 * children of a node start alike. A key is a short stand-in for a label's first unit or page; most nodes have one
 * child, which is kept inline, and get a `Map` with the second. All operations are O(1).
 */

/** @typeParam Label a string in the string tree, a block of ids in the token tree */
export class RadixNode<Label> {
  label: Label;
  /** String tree: length of the string the label is a part of. Token tree: where the label starts in its block. */
  extent: number;
  /** Length of the label in units: code points, or token ids. */
  units: number;
  /** Undefined for roots and for nodes that were removed. */
  parent: RadixNode<Label> | undefined;
  /** The only child, or undefined when there is none or more than one. */
  child: RadixNode<Label> | undefined = undefined;
  childKey = 0;
  children: Map<number, RadixNode<Label>> | undefined = undefined;
  /** The holding with the latest use; the others follow in `Holdings`. 0 = none. */
  newestHolding = 0;
  /** Holdings by tenant, once there are many. */
  holdingIndex: Map<number, number> | undefined = undefined;

  constructor(label: Label, extent: number, units: number, parent: RadixNode<Label> | undefined) {
    this.label = label;
    this.extent = extent;
    this.units = units;
    this.parent = parent;
  }
}

export function childOf<Label>(node: RadixNode<Label>, key: number): RadixNode<Label> | undefined {
  if (node.children !== undefined) return node.children.get(key);
  return node.childKey === key ? node.child : undefined;
}

/** Adds a child, or puts another node in the place of the one with that key. */
export function setChild<Label>(node: RadixNode<Label>, key: number, child: RadixNode<Label>): void {
  if (node.children !== undefined) {
    node.children.set(key, child);
  } else if (node.child === undefined || node.childKey === key) {
    node.child = child;
    node.childKey = key;
  } else {
    node.children = new Map([
      [node.childKey, node.child],
      [key, child],
    ]);
    node.child = undefined;
  }
}

export function removeChild<Label>(node: RadixNode<Label>, key: number): void {
  const children = node.children;
  if (children === undefined) {
    node.child = undefined;
    return;
  }
  children.delete(key);
  if (children.size > 1) return;
  // Back to the inline form.
  for (const [onlyKey, only] of children) {
    node.childKey = onlyKey;
    node.child = only;
  }
  node.children = undefined;
}

export function hasChildren<Label>(node: RadixNode<Label>): boolean {
  return node.child !== undefined || node.children !== undefined;
}
