/** Gaussians: their masses in cells, conditioning, regression; covariances are square arrays by rows. */

import { fastNdtr, intervalMass, logInterval } from "./special.ts";

const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number;
/** Gaussians with means closer than this, in standard deviations, become one with the same moments: to about 1e-5. */
const BIN = 0.3;
const MOST_BINS = 512;

/** Add a Gaussian's mass to the cells between edges. */
export function addGaussian(edges: Float64Array, mean: number, scale: number, weight: number, out: Float64Array): void {
  let before = 0;
  const slope = 1 / scale;
  const last = edges.length;
  const top = mean + 7 * scale;
  for (let k = firstAbove(edges, mean - 7 * scale); k < last; k++) {
    if (edges[k] > top) {
      out[k] += weight * (1 - before);
      return;
    }
    const below = fastNdtr((edges[k] - mean) * slope);
    out[k] += weight * (below - before);
    before = below;
  }
  out[last] += weight * (1 - before);
}

function firstAbove(edges: Float64Array, value: number): number {
  let low = 0;
  let high = edges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Add a Gaussian cut to a window; its weight is that of the law inside the window if `inside`, else of the whole. */
export function addCut(
  edges: Float64Array,
  mean: number,
  scale: number,
  low: number,
  high: number,
  log: number,
  weight: number,
  out: Float64Array,
  inside: boolean,
): void {
  const total = inside ? logInterval((low - mean) / scale, (high - mean) / scale) : 0;
  for (let k = 0; k <= edges.length; k++) {
    const from = Math.max(k ? edges[k - 1] : NEGATIVE_INFINITY, low);
    const to = Math.min(k < edges.length ? edges[k] : POSITIVE_INFINITY, high);
    if (from < to) out[k] += weight * Math.exp(log - total) * intervalMass((from - mean) / scale, (to - mean) / scale);
  }
}

/** Gaussians with means close together as one: mean, weight and standard deviation of each. */
export function binned(means: Float64Array, weights: Float64Array, scale: number): [number, number, number][] {
  let [least, most] = [POSITIVE_INFINITY, NEGATIVE_INFINITY];
  for (let i = 0; i < means.length; i++) {
    if (!(weights[i] > 0)) continue;
    if (means[i] < least) least = means[i];
    if (means[i] > most) most = means[i];
  }
  if (!(least <= most)) return [];
  const size = Math.min(Math.floor((most - least) / (BIN * scale)) + 1, MOST_BINS);
  const width = size > 1 ? (size - 1e-9) / (most - least) : 0;
  const sums = new Float64Array(3 * size);
  for (let i = 0; i < means.length; i++) {
    const w = weights[i];
    if (!(w > 0)) continue;
    const at = 3 * Math.floor((means[i] - least) * width);
    const offset = means[i] - least;
    sums[at] += w;
    sums[at + 1] += w * offset;
    sums[at + 2] += w * offset * offset;
  }
  const out: [number, number, number][] = [];
  for (let at = 0; at < sums.length; at += 3) {
    const w = sums[at];
    if (!(w > 0)) continue;
    const offset = sums[at + 1] / w;
    out.push([least + offset, w, Math.sqrt(scale * scale + Math.max(sums[at + 2] / w - offset * offset, 0))]);
  }
  return out;
}

/** Condition a Gaussian on values of some coordinates, in place; returns their log-density. */
export function condition(
  mean: Float64Array,
  covariance: Float64Array,
  at: readonly number[],
  values: readonly number[],
): number {
  const d = mean.length;
  let log = 0;
  // one coordinate after the other
  for (let k = 0; k < at.length; k++) {
    const c = at[k];
    const variance = covariance[c * d + c];
    const offset = values[k] - mean[c];
    log -= 0.5 * ((offset * offset) / variance + Math.log(2 * Math.PI * variance));
    const column = Float64Array.from({ length: d }, (_, i) => covariance[i * d + c]);
    for (let i = 0; i < d; i++) {
      const gain = column[i] / variance;
      mean[i] += gain * offset;
      for (let j = 0; j < d; j++) covariance[i * d + j] -= gain * column[j];
    }
    mean[c] = values[k];
  }
  for (const c of at) {
    for (let i = 0; i < d; i++) covariance[i * d + c] = covariance[c * d + i] = 0;
    covariance[c * d + c] = 1;
  }
  return log;
}

/** Coefficients of coordinate c on others, and the standard deviation that they leave. */
export function regression(
  covariance: Float64Array,
  d: number,
  others: readonly number[],
  c: number,
): { gain: Float64Array; scale: number } {
  const k = others.length;
  const root = new Float64Array(k * k);
  const gain = new Float64Array(k);
  for (let i = 0; i < k; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = covariance[others[i] * d + others[j]];
      for (let m = 0; m < j; m++) sum -= root[i * k + m] * root[j * k + m];
      root[i * k + j] =
        i === j ? Math.sqrt(Math.max(sum, 1e-14 * covariance[others[i] * d + others[i]])) : sum / root[j * k + j];
    }
    let sum = covariance[others[i] * d + c];
    for (let m = 0; m < i; m++) sum -= root[i * k + m] * gain[m];
    gain[i] = sum / root[i * k + i];
  }
  let explained = 0;
  for (const value of gain) explained += value * value;
  for (let i = k - 1; i >= 0; i--) {
    let sum = gain[i];
    for (let m = i + 1; m < k; m++) sum -= root[m * k + i] * gain[m];
    gain[i] = sum / root[i * k + i];
  }
  const variance = covariance[c * d + c];
  return { gain, scale: Math.sqrt(Math.max(variance - explained, 1e-12 * variance)) };
}

/** Largest eigenvalue of D^½ Σ⁻¹ D^½, with D the variances of some coordinates; by powers. */
export function largestRatio(
  covariance: Float64Array,
  d: number,
  left: readonly number[],
  at: readonly number[],
  variance: readonly number[],
): number {
  if (!at.length) return 0;
  const k = left.length;
  const root = new Float64Array(k * k);
  for (let i = 0; i < k; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = covariance[left[i] * d + left[j]];
      for (let m = 0; m < j; m++) sum -= root[i * k + m] * root[j * k + m];
      root[i * k + j] = i === j ? Math.sqrt(Math.max(sum, 1e-300)) : sum / root[j * k + j];
    }
  }
  const places = at.map((c) => left.indexOf(c));
  let vector = new Float64Array(at.length).fill(1);
  let value = 0;
  for (let step = 0; step < 60; step++) {
    const y = new Float64Array(k);
    places.forEach((p, i) => {
      y[p] = Math.sqrt(variance[i]) * vector[i];
    });
    for (let i = 0; i < k; i++) {
      for (let m = 0; m < i; m++) y[i] -= root[i * k + m] * y[m];
      y[i] /= root[i * k + i];
    }
    for (let i = k - 1; i >= 0; i--) {
      for (let m = i + 1; m < k; m++) y[i] -= root[m * k + i] * y[m];
      y[i] /= root[i * k + i];
    }
    const next = Float64Array.from(places, (p, i) => Math.sqrt(variance[i]) * y[p]);
    const norm = Math.hypot(...next);
    const before = value;
    value = norm / Math.hypot(...vector);
    vector = next.map((x) => x / norm);
    if (Math.abs(value - before) < 1e-9 * value) break;
  }
  return value;
}
