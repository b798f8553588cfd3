/**
 * The node of a prefix tree and the keeping of its children. A label is never empty except a root's, and no two
 * children of a node start alike. A key is a 32-bit stand-in for a label's first unit or page; children whose keys
 * collide are chained as twins. Most nodes have one child, which is kept inline; a `Map` comes with the second key.
 * All operations are O(1) for keys without twins.
 */

/** @typeParam Label a string in the string tree, the slab that holds the ids in the token tree */
export class RadixNode<Label> {
  label: Label;
  /** String tree: length of the string the label is a part of. Token tree: where the label starts in its slab. */
  extent = 0;
  /** String tree: length of the label in code units, which takes long to ask a string of any kind. Token tree: unused. */
  length = 0;
  /** Length of the label in units: code points, or token ids. */
  units = 0;
  /** Undefined for roots and for nodes that were removed. */
  parent: RadixNode<Label> | undefined;
  /** The next child of the same parent with the same key. */
  twin: RadixNode<Label> | undefined = undefined;
  /** Whether any of its children has ever had a twin. */
  hasTwins = false;
  /** The first child with the only key; undefined when there is none, or more than one key. */
  child: RadixNode<Label> | undefined = undefined;
  childKey = 0;
  children: Map<number, RadixNode<Label>> | undefined = undefined;
  /** How many tenants hold the node. This and the next four are kept by `Holders` and `Ends`. */
  holders = 0;
  /** The holding with the latest use; 0 = none. */
  newestHolding = 0;
  /** Its tenant; −1 = none. What most inserts need to know of a node is here, in memory the descent just touched. */
  newestTenant = -1;
  /** Its use. */
  newestUse = 0;
  /** Whether it is an end. */
  endsHere = false;
  /** Holdings by tenant, once there are many. */
  holdingIndex: Map<number, number> | undefined = undefined;

  constructor(label: Label, parent: RadixNode<Label> | undefined) {
    this.label = label;
    this.parent = parent;
  }
}

/** The first child with this key; others may follow as twins. */
export function childOf<Label>(node: RadixNode<Label>, key: number): RadixNode<Label> | undefined {
  if (node.children !== undefined) return node.children.get(key);
  return node.childKey === key ? node.child : undefined;
}

export function addChild<Label>(node: RadixNode<Label>, key: number, child: RadixNode<Label>): void {
  const first = childOf(node, key);
  if (first === undefined) {
    setFirst(node, key, child);
  } else {
    node.hasTwins = true;
    child.twin = first.twin;
    first.twin = child;
  }
}

/** Puts `replacement`, of the same key, in the place of `child`. */
export function replaceChild<Label>(
  node: RadixNode<Label>,
  key: number,
  child: RadixNode<Label>,
  replacement: RadixNode<Label>,
): void {
  const before = node.hasTwins ? twinBefore(node, key, child) : undefined;
  if (before === undefined) setFirst(node, key, replacement);
  else before.twin = replacement;
  replacement.twin = child.twin;
  child.twin = undefined;
}

export function removeChild<Label>(node: RadixNode<Label>, key: number, child: RadixNode<Label>): void {
  const before = node.hasTwins ? twinBefore(node, key, child) : undefined;
  if (before !== undefined) before.twin = child.twin;
  else if (child.twin !== undefined) setFirst(node, key, child.twin);
  else removeKey(node, key);
  child.twin = undefined;
}

export function hasChildren<Label>(node: RadixNode<Label>): boolean {
  return node.child !== undefined || node.children !== undefined;
}

/** The child of a node that has exactly one. */
export function onlyChild<Label>(node: RadixNode<Label>): RadixNode<Label> | undefined {
  return node.child?.twin === undefined ? node.child : undefined;
}

export function childrenOf<Label>(node: RadixNode<Label>): RadixNode<Label>[] {
  const found: RadixNode<Label>[] = [];
  for (const first of node.children?.values() ?? [node.child]) {
    for (let child = first; child !== undefined; child = child.twin) found.push(child);
  }
  return found;
}

function twinBefore<Label>(node: RadixNode<Label>, key: number, child: RadixNode<Label>): RadixNode<Label> | undefined {
  let before: RadixNode<Label> | undefined;
  for (let twin = childOf(node, key); twin !== undefined && twin !== child; twin = twin.twin) before = twin;
  return before;
}

function setFirst<Label>(node: RadixNode<Label>, key: number, child: RadixNode<Label>): void {
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

function removeKey<Label>(node: RadixNode<Label>, key: number): void {
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
