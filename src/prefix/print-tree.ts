/** A prefix tree as text, for debugging. */
import { show } from '../errors.js';
import type { RadixCore } from './radix-core.js';
import { childrenOf, type RadixNode } from './radix-node.js';
import type { LabelReader } from './tree-snapshot.js';

/** One line for each node: its label, then its tenants with their uses, newest first. */
export function printTree<Label, Part>(core: RadixCore<Label>, reader: LabelReader<Label, Part, unknown>): string {
  const lines: string[] = [];
  for (const root of core.roots.all()) {
    const namespace = core.roots.namespaceOf(root);
    lines.push(namespace === undefined ? '(no namespace)' : `(namespace ${show(namespace)})`);
    const waiting: [RadixNode<Label>, number][] = [[root, 0]];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [node, depth] = next;
      if (node !== root)
        lines.push(`${'  '.repeat(depth)}${JSON.stringify(reader.partOf(node))} ${holders(core, node)}`);
      for (const child of childrenOf(node)) waiting.push([child, depth + 1]);
    }
  }
  return lines.join('\n');
}

function holders<Label>(core: RadixCore<Label>, node: RadixNode<Label>): string {
  const shown: string[] = [];
  for (let holding = node.newestHolding; holding !== 0; holding = core.holders.older(holding)) {
    const worker = core.tenants.workerOf(core.holdings.tenant(holding));
    if (worker !== undefined) shown.push(`${worker}@${core.holdings.use(holding)}`);
  }
  return shown.join(' ');
}
