/** KV events that make a worker hold the full blocks of token sequences. */
import type { KvEvent } from 'kvroute';
import { type StateRow, tokensOf } from './row.js';

type Sequences = Required<StateRow>['kvIndex'][string];

/** One stored event a sequence. Equal prefixes get equal block names, as an engine would name them. */
export function blocksOf(sequences: Sequences, blockSize: number): KvEvent[] {
  const names = new Map<string, number>();
  return sequences.map((sequence) => {
    const tokens = 'length' in sequence ? [...sequence] : (tokensOf(sequence) ?? []);
    const blocks = [];
    for (let end = blockSize; end <= tokens.length; end += blockSize) {
      const prefix = tokens.slice(0, end).join();
      if (!names.has(prefix)) names.set(prefix, names.size + 1);
      blocks.push({ hash: names.get(prefix) as number, tokens: tokens.slice(end - blockSize, end) });
    }
    return { type: 'stored', blocks, blockSize };
  });
}
