/** Token ids and the `x-smg-routing-tokens` hint (section H of spec 05). */

/** Token ids, 0 to 2³²−1. A `Uint32Array` needs no check and is the fastest form. */
export type TokenIds = readonly number[] | Uint32Array;

const maxHintIds = 512;
const maxHintBytes = 4096;

/**
 * Reads the hint: comma-separated decimal ids without spaces, signs or empty items; at most 512 ids and 4096 bytes;
 * leading zeros are accepted (CA-110). Anything else is as if the header were absent.
 */
export function parseRoutingTokens(header: string | undefined): TokenIds | undefined {
  if (header === undefined || header.length === 0 || header.length > maxHintBytes) return undefined;
  const ids = new Uint32Array(maxHintIds);
  let count = 0;
  let id = -1;
  for (let i = 0; i <= header.length; i++) {
    const unit = i < header.length ? header.charCodeAt(i) : 44;
    if (unit >= 48 && unit <= 57) {
      id = (id < 0 ? 0 : id) * 10 + (unit - 48);
      if (id > 0xffffffff) return undefined;
    } else if (unit === 44 && id >= 0 && count < maxHintIds) {
      ids[count++] = id;
      id = -1;
    } else {
      return undefined;
    }
  }
  return ids.slice(0, count);
}
