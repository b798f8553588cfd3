/** The `x-smg-routing-tokens` hint (section H of spec 05). */
import type { TokenIds } from './token-ids.js';

const maxIds = 512;
const maxBytes = 4096;
const comma = 44;
const digit0 = 48;
const digit9 = 57;

/**
 * Reads the hint: comma-separated decimal ids without spaces, signs or empty items; at most 512 ids and 4096 bytes;
 * leading zeros are accepted (CA-110). Anything else is as if the header were absent.
 */
export function parseRoutingTokens(header: string | undefined): TokenIds | undefined {
  if (typeof header !== 'string' || header.length === 0 || header.length > maxBytes) return undefined;
  const ids = new Uint32Array(maxIds);
  let count = 0;
  /** -1 = the item has no digit yet. */
  let id = -1;
  for (let i = 0; i <= header.length; i++) {
    const unit = i < header.length ? header.charCodeAt(i) : comma;
    if (unit >= digit0 && unit <= digit9) {
      id = (id < 0 ? 0 : id) * 10 + (unit - digit0);
      if (id > 0xffffffff) return undefined;
    } else if (unit === comma && id >= 0 && count < maxIds) {
      ids[count++] = id;
      id = -1;
    } else {
      return undefined;
    }
  }
  return ids.slice(0, count);
}
