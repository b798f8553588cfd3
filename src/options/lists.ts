/** The readers of the lists among the options (LB-40). Each returns a copy: the caller's list may change later. */
import { show } from '../errors.js';
import { allOf } from '../runtime/all-of.js';
import type { ListReader } from './spec.js';

/** Positive integers in strictly ascending order. */
export const ascending: ListReader<number> = (value, wrong) => {
  let last = 0;
  const isNext = (item: unknown): boolean => {
    const isAscending = Number.isSafeInteger(item) && (item as number) > last;
    last = item as number;
    return isAscending;
  };
  if (!Array.isArray(value) || !allOf(value, isNext)) {
    throw wrong('must be an array of positive integers in strictly ascending order');
  }
  return [...value];
};

// RFC 9110 token characters.
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Legal HTTP header names; they come back in lower case. */
export const headerNames: ListReader<string> = (value, wrong) => {
  if (!Array.isArray(value)) throw wrong('must be an array of header names');
  return Array.from(value, (name: unknown) => {
    if (typeof name === 'string' && headerName.test(name)) return name.toLowerCase();
    throw wrong(`must hold legal header names, ${show(name)} is none`);
  });
};

/** HTTP status codes. */
export const statusCodes: ListReader<number> = (value, wrong) => {
  const isCode = (code: unknown): boolean =>
    Number.isInteger(code) && (code as number) >= 100 && (code as number) <= 599;
  if (!Array.isArray(value) || !allOf(value, isCode)) throw wrong('must be an array of HTTP status codes, 100–599');
  return [...value];
};
