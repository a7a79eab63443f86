/** What the page asks of a mixture, and what mixtures of products and the loose columns of blocks share. */

import type { Dictionary, Region } from "./atoms.ts";
import type { Column } from "./columns.ts";
import type { Matrix } from "./container.ts";

/** What is known: a region for some of the columns, by position. */
export type Evidence = ReadonlyMap<number, Region>;

/** A mixture given evidence. */
export interface Posterior {
  /** Logarithm of the probability (of the density, where a number has one value) of the evidence. */
  readonly logEvidence: number;
  /** Probabilities of the cells of a column; they sum to one. */
  margin(column: number): Float64Array;
}

export interface Expert {
  given(evidence: Evidence): Posterior;
}

/** Coefficients of atoms by components as they are packed: as such, or by components as ratios to their margins. */
export type Coefficients = Matrix | { readonly margin: Matrix; readonly ratios: Matrix };

function dense(packed: Coefficients): ArrayLike<number> {
  if ("data" in packed) return packed.data;
  const { margin, ratios } = packed;
  const [size, length] = ratios.shape;
  const out = new Float32Array(size * length);
  for (let r = 0, at = 0; r < size; r++) {
    for (let l = 0; l < length; l++, at++) out[l * size + r] = ratios.data[at] * margin.data[l];
  }
  return out;
}

/** Columns that are independent given the component: coefficients of atoms by components. */
export class Factors {
  private readonly known = new Map<string, Float64Array>();
  private readonly coefficients: ReadonlyMap<number, ArrayLike<number>>;

  constructor(
    readonly size: number,
    private readonly columns: readonly Column[],
    private readonly dictionaries: ReadonlyMap<number, Dictionary>,
    packed: ReadonlyMap<number, Coefficients>,
  ) {
    this.coefficients = new Map([...packed].map(([n, each]) => [n, dense(each)]));
  }

  has(n: number): boolean {
    return this.dictionaries.has(n);
  }

  /** Log-likelihood of what is known of a column in each component. */
  logLikelihood(n: number, region: Region): Float64Array {
    const key = `${n} ${JSON.stringify(region)}`;
    let found = this.known.get(key);
    if (!found) {
      const atoms = this.dictionaries.get(n)!.likelihoods(region);
      found = this.byComponent(n, atoms).map(Math.log);
      if (this.known.size > 256) this.known.clear();
      this.known.set(key, found);
    }
    return found;
  }

  private byComponent(n: number, atoms: Float64Array): Float64Array {
    const data = this.coefficients.get(n)!;
    const out = new Float64Array(this.size);
    for (let l = 0; l < atoms.length; l++) {
      const a = atoms[l];
      if (a === 0) continue;
      const start = l * this.size;
      for (let r = 0; r < this.size; r++) out[r] += a * data[start + r];
    }
    return out;
  }

  /** Probabilities of the cells from the log-weights of components, without what is known of the column itself. */
  margin(n: number, logWeights: ArrayLike<number>, region?: Region): Float64Array {
    const dictionary = this.dictionaries.get(n)!;
    const cells = this.columns[n].spread(dictionary, this.atomWeights(n, shares(logWeights)), region);
    return normalised(cells);
  }

  private atomWeights(n: number, weights: Float64Array): Float64Array {
    const data = this.coefficients.get(n)!;
    const out = new Float64Array(data.length / this.size);
    for (let l = 0; l < out.length; l++) {
      const start = l * this.size;
      let sum = 0;
      for (let r = 0; r < this.size; r++) sum += data[start + r] * weights[r];
      out[l] = sum;
    }
    return out;
  }
}

/** exp(logs), divided by the largest. */
export function shares(logs: ArrayLike<number>): Float64Array {
  let top = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < logs.length; i++) if (logs[i] > top) top = logs[i];
  const out = new Float64Array(logs.length);
  if (top > Number.NEGATIVE_INFINITY) for (let i = 0; i < logs.length; i++) out[i] = Math.exp(logs[i] - top);
  return out;
}

/** Values divided by their sum, in place. */
export function normalised(values: Float64Array): Float64Array {
  let sum = 0;
  for (const value of values) sum += value;
  if (sum > 0) for (let i = 0; i < values.length; i++) values[i] /= sum;
  return values;
}
