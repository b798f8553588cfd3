/**
 * A reader of the Prometheus text exposition, for the few series a report needs (LR-17, LR-18).
 *
 * Labels are tokenised with their escapes, so a `}`, `,` or `\"` inside a value is data. Lines end in LF or CRLF; comments,
 * malformed lines and unparsable values are skipped; a time stamp or exemplar behind the value is ignored. A value that
 * is not finite is skipped too, but its series counts as seen. One pass, linear in the text however hostile: lines of
 * unwanted series are left after their name.
 */

/** One sample of a series. */
export interface Sample {
  readonly value: number;
  readonly labels: ReadonlyMap<string, string>;
}

/** The samples of the wanted series in order of appearance; a series that appears only with NaN has an empty list. */
export function readSamples(text: string, wanted: ReadonlySet<string>): Map<string, Sample[]> {
  const samples = new Map<string, Sample[]>();
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline < 0 ? text.length : newline;
    const nameStart = skipBlanks(text, start, end);
    const nameEnd = endOfName(text, nameStart, end);
    const name = text.slice(nameStart, nameEnd);
    if (wanted.has(name)) collect(samples, name, text.slice(nameEnd, end));
    start = end + 1;
  }
  return samples;
}

function collect(samples: Map<string, Sample[]>, name: string, rest: string): void {
  // `name.x` or `name-5` is not this series: only a blank or the labels end a name.
  if (!/^[\s{]/.test(rest)) return;
  const line = new Line(rest);
  const labels = line.labels();
  if (labels === undefined) return;
  const value = parseValue(line.word());
  if (value === undefined) return;
  const series = samples.get(name) ?? [];
  if (series.length === 0) samples.set(name, series);
  if (Number.isFinite(value)) series.push({ value, labels });
}

/** The number of a value token; undefined when it is none. Hex, underscores and the empty token are none. */
function parseValue(token: string): number | undefined {
  if (/^[-+.0-9eE]+$/.test(token)) {
    const value = Number(token);
    return Number.isNaN(value) ? undefined : value;
  }
  return /^(?:nan|[-+]?inf(?:inity)?)$/i.test(token) ? Number.NaN : undefined;
}

const quote = 34;
const comma = 44;
const equals = 61;
const openBrace = 123;
const backslash = 92;

/** What follows a metric name: labels, value, and whatever else. A cursor that only moves forward. */
class Line {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The labels, empty when there are none; undefined when they are malformed. */
  labels(): Map<string, string> | undefined {
    const labels = new Map<string, string>();
    this.#skipBlanks();
    if (!this.#take(openBrace)) return labels;
    for (;;) {
      this.#skipBlanks();
      if (this.#text[this.#at] === '}') {
        this.#at += 1;
        return labels;
      }
      const name = this.#labelName();
      const value = name === undefined ? undefined : this.#quoted();
      if (name === undefined || value === undefined) return undefined;
      labels.set(name, value);
      this.#skipBlanks();
      if (!this.#take(comma) && this.#text[this.#at] !== '}') return undefined;
    }
  }

  /** The characters up to the next blank. */
  word(): string {
    this.#skipBlanks();
    const start = this.#at;
    while (this.#at < this.#text.length && this.#text.charCodeAt(this.#at) > 32) this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  #labelName(): string | undefined {
    const start = this.#at;
    this.#at = endOfName(this.#text, start, this.#text.length);
    const name = this.#text.slice(start, this.#at);
    this.#skipBlanks();
    if (name === '' || !this.#take(equals)) return undefined;
    this.#skipBlanks();
    return name;
  }

  #quoted(): string | undefined {
    if (!this.#take(quote)) return undefined;
    let value = '';
    let start = this.#at;
    for (; this.#at < this.#text.length; this.#at++) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit === quote) {
        value += this.#text.slice(start, this.#at);
        this.#at += 1;
        return value;
      }
      if (unit === backslash) {
        value += this.#text.slice(start, this.#at) + unescaped(this.#text[this.#at + 1]);
        this.#at += 1;
        start = this.#at + 1;
      }
    }
    return undefined;
  }

  #take(unit: number): boolean {
    if (this.#text.charCodeAt(this.#at) !== unit) return false;
    this.#at += 1;
    return true;
  }

  #skipBlanks(): void {
    this.#at = skipBlanks(this.#text, this.#at, this.#text.length);
  }
}

/** The three escapes of the format; anything else behind a backslash stays as written. */
function unescaped(character = ''): string {
  if (character === 'n') return '\n';
  return character === '"' || character === '\\' ? character : `\\${character}`;
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && text.charCodeAt(at) <= 32) at++;
  return at;
}

/** End of a metric or label name: letters, digits, `_` and `:`. */
function endOfName(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isNameUnit(text.charCodeAt(at))) at++;
  return at;
}

function isNameUnit(unit: number): boolean {
  return (
    (unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90) || (unit >= 48 && unit <= 58) || unit === 95 // 58 is ':'
  );
}
