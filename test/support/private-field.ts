/**
 * Reads a `#private` field through the debugger's eyes, for tests that check bounds of what no public member shows: only
 * `node:inspector` sees such fields. Slow (a millisecond): keep what it returns.
 */
import { Session } from 'node:inspector';

const session = new Session();
const exchange: { value: unknown } = { value: undefined };
const exchangeName = '__kvrouteTestExchange';

/** @throws Error when the object has no such field */
export function privateField(owner: object, name: `#${string}`): unknown {
  const scope = globalThis as Record<string, unknown>;
  exchange.value = owner;
  scope[exchangeName] = exchange;
  session.connect();
  try {
    const ownerId = remoteId(`${exchangeName}.value`);
    const field = privatePropertiesOf(ownerId).find((property) => property.name === name);
    if (field === undefined) throw new Error(`${owner.constructor.name} has no field ${name}`);
    if (field.value?.objectId === undefined) return field.value?.value;
    call('Runtime.callFunctionOn', {
      objectId: field.value.objectId,
      functionDeclaration: `function () { ${exchangeName}.value = this; }`,
    });
    return exchange.value;
  } finally {
    session.disconnect();
    exchange.value = undefined;
    delete scope[exchangeName];
  }
}

interface PrivateProperty {
  readonly name: string;
  readonly value?: { readonly objectId?: string; readonly value?: unknown };
}

function remoteId(expression: string): string {
  const { result } = call('Runtime.evaluate', { expression, objectGroup: exchangeName }) as {
    readonly result: { readonly objectId: string };
  };
  return result.objectId;
}

function privatePropertiesOf(objectId: string): readonly PrivateProperty[] {
  const { privateProperties } = call('Runtime.getProperties', { objectId, ownProperties: true }) as {
    readonly privateProperties?: readonly PrivateProperty[];
  };
  return privateProperties ?? [];
}

/** A session in the same thread answers before `post` returns. */
function call(method: string, parameters: object): unknown {
  let answer: unknown;
  let failure: Error | null = null;
  session.post(method, parameters, (error, result) => {
    failure = error;
    answer = result;
  });
  if (failure !== null) throw failure;
  return answer;
}
