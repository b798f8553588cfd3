/** The index of a key among the keys of the map, in the order in which they came; a new key is added at the end. */
export function indexIn<Key>(indexes: Map<Key, number>, key: Key): number {
  const known = indexes.get(key);
  if (known !== undefined) return known;
  indexes.set(key, indexes.size);
  return indexes.size - 1;
}
