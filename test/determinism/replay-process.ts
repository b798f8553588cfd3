/** Replays the recordings its parent sends and answers with their texts: the second process of the determinism test. */
import { type Recording, replay } from './replay.js';

process.on('message', async (recordings: readonly Recording[]) => {
  const texts: string[] = [];
  for (const recording of recordings) texts.push(await replay(recording));
  process.send?.(texts, () => process.disconnect());
});
