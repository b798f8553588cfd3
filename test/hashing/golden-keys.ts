/** The fleet and the keys whose placement `ring-golden.json` pins (B60). */
export const goldenIds: readonly string[] = Array.from({ length: 12 }, (_, i) => `http://10.0.0.${i + 1}:8000`);
export const goldenKeys: readonly string[] = Array.from({ length: 2000 }, (_, i) => `conversation-${i}`);
