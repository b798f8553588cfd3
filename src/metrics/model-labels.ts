/**
 * The bound of the `model` label (OB-80): model ids come from outside, so the first 1 024 distinct ones keep their name
 * and all later ones share `other`. An id too long to be one is `other` at once, so that the memory is bounded too (LB-31).
 */

/** Distinct values of the label, `other` not counted. */
const maxModelLabels = 1024;
/** Longest model id that becomes a label, in UTF-16 units. */
const maxModelLength = 512;

export class ModelLabels {
  readonly #known = new Set<string>();

  /** The label value of a model. O(1). */
  of(model: string): string {
    if (this.#known.has(model)) return model;
    if (this.#known.size >= maxModelLabels || model.length > maxModelLength) return 'other';
    this.#known.add(model);
    return model;
  }
}
