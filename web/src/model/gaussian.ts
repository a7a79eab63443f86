/** Gaussians: their masses in cells, conditioning, regression; covariances are square arrays by rows. */

import { fastNdtr, intervalMass, logInterval } from "./special.ts";
import type { Nodes } from "./window.ts";

const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number;
/**
 * Gaussians with means closer than this, in standard deviations, become one with the same moments: to about 1e-5. Those
 * that count for little may be farther apart by this factor.
 */
const [BIN, WIDEST] = [0.3, 5];
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

/** Add a Gaussian cut to a window, and divided by its mass there if `inside`. */
export function addCut(
  edges: Float64Array,
  mean: number,
  scale: number,
  low: number,
  high: number,
  weight: number,
  out: Float64Array,
  inside: boolean,
): void {
  const [a, b] = [(low - mean) / scale, (high - mean) / scale];
  const mass = intervalMass(a, b);
  const first = firstAbove(edges, low);
  if (mass > 1e-4) {
    // from the side where the tail is short
    const sign = a + b > 0 ? -1 : 1;
    const unit = sign * (inside ? weight / mass : weight);
    let before = fastNdtr(sign * a);
    let k = first;
    for (; k < edges.length && edges[k] < high; k++) {
      const below = fastNdtr((sign * (edges[k] - mean)) / scale);
      out[k] += unit * (below - before);
      before = below;
    }
    out[k] += unit * (fastNdtr(sign * b) - before);
    return;
  }
  // far out, where masses are small, each is found by itself
  const total = inside ? logInterval(a, b) : 0;
  for (let k = first; k <= edges.length; k++) {
    const from = Math.max(k ? edges[k - 1] : NEGATIVE_INFINITY, low);
    const to = Math.min(k < edges.length ? edges[k] : POSITIVE_INFINITY, high);
    if (from < to) out[k] += weight * Math.exp(logInterval((from - mean) / scale, (to - mean) / scale) - total);
  }
}

/** Gaussians with means close together as one: mean, weight and standard deviation of each. */
export class Bins {
  length = 0;
  readonly means = new Float64Array(MOST_BINS);
  readonly weights = new Float64Array(MOST_BINS);
  readonly scales = new Float64Array(MOST_BINS);
  private readonly sums = new Float64Array(3 * MOST_BINS);

  /**
   * Gathers Gaussians of one scale with means `mean + Σ_j gain_j x_j` at points x.
   *
   * `weights` may differ from those of the points; `share` is how much all of it counts: what counts for little has wide
   * bins, whose error grows with the third power of their width.
   */
  gather(
    nodes: Nodes,
    weights: Float64Array,
    mean: number,
    gains: Float64Array,
    at: number,
    scale: number,
    share: number,
  ): void {
    const { points, least, most } = nodes;
    const k = least.length;
    let [low, high] = [mean, mean];
    for (let j = 0; j < k; j++) {
      const gain = gains[at + j];
      low += gain * (gain > 0 ? least[j] : most[j]);
      high += gain * (gain > 0 ? most[j] : least[j]);
    }
    const width = BIN * Math.min(1 / Math.cbrt(share), WIDEST);
    const size = Math.min(Math.floor((high - low) / (width * scale)) + 1, MOST_BINS);
    if (size === 1 && weights === nodes.weights) {
      this.gatherAll(moments(nodes), mean, gains, at, scale);
      return;
    }
    const unit = size > 1 ? (size - 1e-9) / (high - low) : 0;
    const { sums } = this;
    sums.fill(0, 0, 3 * size);
    const start = mean - low;
    for (let i = 0, p = 0; i < weights.length; i++) {
      let offset = start;
      for (let j = 0; j < k; j++) offset += gains[at + j] * points[p++];
      const place = 3 * Math.min(Math.max(Math.floor(offset * unit), 0), size - 1);
      const w = weights[i];
      sums[place] += w;
      sums[place + 1] += w * offset;
      sums[place + 2] += w * offset * offset;
    }
    this.length = 0;
    for (let place = 0; place < 3 * size; place += 3) {
      const w = sums[place];
      if (!(w > 0)) continue;
      const offset = sums[place + 1] / w;
      this.means[this.length] = low + offset;
      this.weights[this.length] = w;
      this.scales[this.length++] = Math.sqrt(scale * scale + Math.max(sums[place + 2] / w - offset * offset, 0));
    }
  }

  /** All as one, from the moments of the points alone. */
  private gatherAll(
    { means, covariance }: Moments,
    mean: number,
    gains: Float64Array,
    at: number,
    scale: number,
  ): void {
    let centre = mean;
    let variance = scale * scale;
    for (let j = 0, place = 0; j < means.length; j++, place++) {
      const gain = gains[at + j];
      centre += gain * means[j];
      for (let m = 0; m < j; m++) variance += 2 * gain * gains[at + m] * covariance[place++];
      variance += gain * gain * covariance[place];
    }
    this.means[0] = centre;
    this.weights[0] = 1;
    this.scales[0] = Math.sqrt(variance);
    this.length = 1;
  }
}

/** Means of the coordinates of points, and their covariance, in half of a square: by rows up to the diagonal. */
interface Moments {
  readonly means: Float64Array;
  readonly covariance: Float64Array;
}

const known = new WeakMap<Nodes, Moments>();

/** Moments of points, found once. */
function moments(nodes: Nodes): Moments {
  let found = known.get(nodes);
  if (found) return found;
  const { points, weights, least } = nodes;
  const k = least.length;
  const means = new Float64Array(k);
  const covariance = new Float64Array((k * (k + 1)) / 2);
  for (let i = 0, p = 0; i < weights.length; i++) for (let j = 0; j < k; j++) means[j] += weights[i] * points[p++];
  for (let i = 0, p = 0; i < weights.length; i++, p += k) {
    for (let j = 0, at = 0; j < k; j++) {
      const weighed = weights[i] * (points[p + j] - means[j]);
      for (let m = 0; m <= j; m++) covariance[at++] += weighed * (points[p + m] - means[m]);
    }
  }
  found = { means, covariance };
  known.set(nodes, found);
  return found;
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

/** Coefficients of coordinates on others, by rows of as many as there are others, and the deviations that they leave. */
export interface Regression {
  readonly gains: Float64Array;
  readonly scales: Float64Array;
}

/** Regress some coordinates on others. */
export function regression(
  covariance: Float64Array,
  d: number,
  others: readonly number[],
  some: readonly number[],
): Regression {
  const k = others.length;
  const root = new Float64Array(k * k);
  for (let i = 0; i < k; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = covariance[others[i] * d + others[j]];
      for (let m = 0; m < j; m++) sum -= root[i * k + m] * root[j * k + m];
      root[i * k + j] =
        i === j ? Math.sqrt(Math.max(sum, 1e-14 * covariance[others[i] * d + others[i]])) : sum / root[j * k + j];
    }
  }
  const gains = new Float64Array(k * some.length);
  const scales = new Float64Array(some.length);
  for (let s = 0; s < some.length; s++) {
    const c = some[s];
    const at = s * k;
    let explained = 0;
    for (let i = 0; i < k; i++) {
      let sum = covariance[others[i] * d + c];
      for (let m = 0; m < i; m++) sum -= root[i * k + m] * gains[at + m];
      const gain = sum / root[i * k + i];
      gains[at + i] = gain;
      explained += gain * gain;
    }
    for (let i = k - 1; i >= 0; i--) {
      let sum = gains[at + i];
      for (let m = i + 1; m < k; m++) sum -= root[m * k + i] * gains[at + m];
      gains[at + i] = sum / root[i * k + i];
    }
    const variance = covariance[c * d + c];
    scales[s] = Math.sqrt(Math.max(variance - explained, 1e-12 * variance));
  }
  return { gains, scales };
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
