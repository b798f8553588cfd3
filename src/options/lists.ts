/** The readers of the lists among the options (LB-40). Each returns a copy: the caller's list may change later. */
import { show } from '../errors.js';
import type { ListReader } from './spec.js';

/** Positive integers in strictly ascending order. */
export const ascending: ListReader<number> = (value, wrong) => {
  const isAscending = (item: unknown, i: number, list: readonly number[]): boolean =>
    Number.isSafeInteger(item) && (item as number) > (i === 0 ? 0 : (list[i - 1] as number));
  if (!Array.isArray(value) || !value.every(isAscending)) {
    throw wrong('must be an array of positive integers in strictly ascending order');
  }
  return [...value];
};

// RFC 9110 token characters.
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Legal HTTP header names; they come back in lower case. */
export const headerNames: ListReader<string> = (value, wrong) => {
  if (!Array.isArray(value)) throw wrong('must be an array of header names');
  return value.map((name) => {
    if (typeof name === 'string' && headerName.test(name)) return name.toLowerCase();
    throw wrong(`must hold legal header names, ${show(name)} is none`);
  });
};

/** HTTP status codes. */
export const statusCodes: ListReader<number> = (value, wrong) => {
  const fits = Array.isArray(value) && value.every((code) => Number.isInteger(code) && code >= 100 && code <= 599);
  if (!fits) throw wrong('must be an array of HTTP status codes, 100–599');
  return [...value];
};
