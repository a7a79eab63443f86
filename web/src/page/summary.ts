/** Means, quantiles and distances from the probabilities of cells. */

import type { Column, Region } from "../model/model.ts";

export interface Summary {
  mean: number;
  median: number;
  low: number;
  high: number;
}

/** Mean, median and 80% interval of a number, in a region; inside a cell the density is taken as even. */
export function summary(column: Column, cells: Float64Array, region?: Region): Summary {
  const parts = pieces(column, cells, region?.kind === "interval" ? region : WHOLE);
  let total = 0;
  let mean = 0;
  for (const { low, high, mass } of parts) {
    total += mass;
    mean += 0.5 * (low + high) * mass;
  }
  const at = (level: number) =>
    quantile(parts, level * total, column.kind === "integer" || column.step > 0, column.step || 1);
  return { mean: mean / total, median: at(0.5), low: at(0.1), high: at(0.9) };
}

const WHOLE = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };

function clipped(value: number, { low, high }: { low: number; high: number }): number {
  return Math.min(Math.max(value, low), high);
}

interface Piece {
  low: number;
  high: number;
  mass: number;
}

/** Cells with finite ends, in order; a spike has no width, an open cell reaches as far as what stands for it and back. */
function pieces(column: Column, cells: Float64Array, inside: { low: number; high: number }): Piece[] {
  const { edges, ends, spikes } = column;
  const out: Piece[] = [];
  for (let k = 0; k <= edges.length; k++) {
    const low = k ? edges[k - 1] : 2 * ends[0] - edges[0];
    const high = k < edges.length ? edges[k] : 2 * ends[1] - edges[edges.length - 1];
    if (cells[k] > 0) out.push({ low: clipped(low, inside), high: clipped(high, inside), mass: cells[k] });
  }
  for (let s = 0; s < spikes.length; s++) {
    const mass = cells[edges.length + 1 + s];
    if (mass > 0) out.push({ low: spikes[s], high: spikes[s], mass });
  }
  return out.sort((a, b) => a.low + a.high - b.low - b.high);
}

function quantile(parts: readonly Piece[], level: number, stepped: boolean, unit: number): number {
  let below = 0;
  for (const { low, high, mass } of parts) {
    if (below + mass >= level) {
      const value = low + (high - low) * Math.min(Math.max((level - below) / mass, 0), 1);
      return stepped
        ? Math.min(Math.max(Math.round(value / unit), Math.ceil(low / unit)), Math.floor(high / unit)) * unit
        : value;
    }
    below += mass;
  }
  return parts.at(-1)?.high ?? Number.NaN;
}

/** How far two laws are apart: the largest difference of the probabilities of any set of cells. */
export function distance(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
  return 0.5 * sum;
}

/** Σ a log2(a / b), in bits. */
export function divergence(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) if (a[i] > 0 && b[i] > 0) sum += a[i] * Math.log2(a[i] / b[i]);
  return Math.max(sum, 0);
}

/** Position of the largest. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
