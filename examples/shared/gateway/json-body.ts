/** Reads the body of a request. */

/** The object that a body is in JSON; undefined for bytes that are none, and for what is no bytes at all. */
export function parseJsonBody(bytes: unknown): Record<string, unknown> | undefined {
  if (!Buffer.isBuffer(bytes)) return undefined;
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof body === 'object' && body !== null && !Array.isArray(body)
      ? (body as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
