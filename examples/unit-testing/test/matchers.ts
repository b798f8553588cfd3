/** Teaches `expect` to talk about routing. Imported by the tests; a setup file does as well. */
import { type KvrouteMatchers, kvrouteMatchers } from 'kvroute/testing';
import { expect } from 'vitest';

declare module 'vitest' {
  // biome-ignore lint/suspicious/noExplicitAny: vitest declares it so, and both declarations must agree
  interface Matchers<T = any> extends KvrouteMatchers<T> {}
}

expect.extend(kvrouteMatchers);
