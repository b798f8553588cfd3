/**
 * Payloads of the fault tests. Each is written out in the test; where the recorded one lies next to the checkout, it is
 * read as well and has to give the same. So no test depends on that folder.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const data = new URL('../../../shared/data/', import.meta.url);

/** The payload, and the recorded one of that name as text where there is one. */
export function payloads(name: string, inline: string | object): string[] {
  const text = typeof inline === 'string' ? inline : JSON.stringify(inline);
  const path = fileURLToPath(new URL(name, data));
  return existsSync(path) ? [text, readFileSync(path, 'utf8')] : [text];
}
