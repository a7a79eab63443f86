/** Columns of a page and their cells: categories, or intervals between edges, and spikes. */

import type { Dictionary, Region } from "./atoms.ts";
import type { Matrix } from "./container.ts";

/** A column as it is packed. */
export interface ColumnParts {
  name: string;
  kind: "continuous" | "integer" | "categorical";
  dtype: string;
  gap?: number;
  categories?: string[];
  values?: (string | number | boolean)[] | null;
  ordered?: boolean;
  edges?: Matrix;
  ends?: [number, number];
  spikes?: Matrix;
  step?: number;
}

/** Most values of an integer that act like categories. */
const MOST_FEW = 12;

export class Column {
  readonly name: string;
  readonly kind: ColumnParts["kind"];
  readonly dtype: string;
  /** Labels of the categories; null for a number. */
  readonly categories: readonly string[] | null;
  /** Categories as Python has them. */
  readonly values: readonly (string | number | boolean)[];
  readonly ordered: boolean;
  /** Inner edges of the intervals. */
  readonly edges: ArrayLike<number>;
  readonly ends: readonly [number, number];
  readonly spikes: ArrayLike<number>;
  readonly step: number;
  /** Position of the column whose gaps this one tells, or -1. */
  readonly gapOf: number;
  /** Number of cells. */
  readonly size: number;
  /** Values of an integer that takes few of them: each has a cell of its own, and several may be known at once. */
  readonly few: readonly number[];
  /** Dense masses of the cells under each atom, by dictionary. */
  private readonly known = new WeakMap<Dictionary, Float64Array>();

  constructor(parts: ColumnParts) {
    this.name = parts.name;
    this.kind = parts.kind;
    this.dtype = parts.dtype;
    this.categories = parts.categories ?? null;
    this.values = parts.values ?? parts.categories ?? [];
    this.ordered = parts.ordered ?? false;
    this.edges = parts.edges?.data ?? [];
    this.ends = parts.ends ?? [0, 0];
    this.spikes = parts.spikes?.data ?? [];
    this.step = parts.step ?? 0;
    this.gapOf = parts.gap ?? -1;
    this.size = this.categories ? this.categories.length : this.edges.length + 1 + this.spikes.length;
    this.few = this.kind === "integer" && !this.temporal && this.edges.length <= MOST_FEW + 1 ? this.wholes() : [];
  }

  /** The integers between the edges, if these are one apart. */
  private wholes(): number[] {
    const out = Array.from(this.edges, (edge) => edge + 0.5).slice(0, -1);
    return out.every((value, k) => Number.isInteger(value) && this.edges[k + 1] === value + 0.5) ? out : [];
  }

  /** What a category, or a value of an integer, is called. */
  label(code: number): string {
    return this.categories ? this.categories[code] : String(code);
  }

  get temporal(): boolean {
    return this.dtype.startsWith("date");
  }

  /** Lower and upper end of an interval cell. */
  endsOf(cell: number): [number, number] {
    const low = cell ? this.edges[cell - 1] : Number.NEGATIVE_INFINITY;
    return [low, cell < this.edges.length ? this.edges[cell] : Number.POSITIVE_INFINITY];
  }

  /** The cell that a value lies in. */
  cellOf(value: number): number {
    if (this.categories) return value;
    for (let s = 0; s < this.spikes.length; s++) if (this.spikes[s] === value) return this.edges.length + 1 + s;
    let low = 0;
    let high = this.edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.edges[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether some of a cell lies in a region. */
  meets(cell: number, region: Region): boolean {
    if (region.kind === "point") return this.cellOf(region.value) === cell;
    if (region.kind === "values") return region.values.some((value) => this.cellOf(value) === cell);
    if (this.categories) return region.low <= cell && cell <= region.high;
    if (cell > this.edges.length) {
      const spike = this.spikes[cell - this.edges.length - 1];
      return region.low <= spike && spike <= region.high;
    }
    const [low, high] = this.endsOf(cell);
    return low < region.high && region.low < high;
  }

  /**
   * Probabilities of the cells from weights of atoms, inside a region if there is one.
   *
   * The weights need not sum to one; the result sums to Σ_l weight_l P_l(region).
   */
  spread(dictionary: Dictionary, weights: ArrayLike<number>, region?: Region): Float64Array {
    const out = new Float64Array(this.size);
    if (this.categories) {
      this.spreadCategories(dictionary, weights, out, region);
      return out;
    }
    if (region && region.kind !== "interval") {
      for (const value of region.kind === "point" ? [region.value] : region.values) {
        const mass = dictionary.masses({ kind: "point", value });
        let sum = 0;
        for (let l = 0; l < mass.length; l++) sum += mass[l] * weights[l];
        out[this.cellOf(value)] += sum;
      }
      return out;
    }
    const table = region ? dictionary.cells(this.edges, this.spikes, region.low, region.high) : this.table(dictionary);
    const n = dictionary.size;
    for (let k = 0; k < this.size; k++) {
      let sum = 0;
      const start = k * n;
      for (let l = 0; l < n; l++) sum += table[start + l] * weights[l];
      out[k] = sum;
    }
    return out;
  }

  private table(dictionary: Dictionary): Float64Array {
    let found = this.known.get(dictionary);
    if (!found) {
      found = dictionary.cells(this.edges, this.spikes, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
      this.known.set(dictionary, found);
    }
    return found;
  }

  private spreadCategories(
    dictionary: Dictionary,
    weights: ArrayLike<number>,
    out: Float64Array,
    region?: Region,
  ): void {
    const codes = dictionary.codes();
    for (let l = 0; l < codes.length; l++) {
      if (!region || this.meets(codes[l], region)) out[codes[l]] += weights[l];
    }
  }
}
