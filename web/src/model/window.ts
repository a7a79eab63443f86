/**
 * Gaussian vectors inside windows: probabilities, and points with weights that stand for them.
 *
 * One coordinate has Gauss-Legendre points; two have them one inside the other. With more, each coordinate is drawn
 * inside its window given those before it (Genz), at the points of a fixed lattice.
 */

import { fastNdtr, logInterval, ndtr, ndtri } from "./special.ts";

const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number;
/** Beyond this many standard deviations there is nothing to add. */
const REACH = 8.5;

/** Points inside a window. */
export interface Nodes {
  /** Log-probability of the window. */
  readonly logMass: number;
  /** Points by rows of k coordinates. */
  readonly points: Float64Array;
  /** Weights of the points, which sum to one. */
  readonly weights: Float64Array;
}

/** Nodes and weights of Gauss-Legendre quadrature on [-1, 1], by Newton's method. */
const legendre = new Map<number, [Float64Array, Float64Array]>();
export function gaussLegendre(n: number): [Float64Array, Float64Array] {
  let found = legendre.get(n);
  if (found) return found;
  const [nodes, weights] = [new Float64Array(n), new Float64Array(n)];
  for (let i = 0; i < n; i++) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (n + 0.5));
    let slope = 1;
    for (let step = 0; step < 100; step++) {
      let [p, before] = [1, 0];
      for (let k = 1; k <= n; k++) [p, before] = [((2 * k - 1) * x * p - (k - 1) * before) / k, p];
      slope = (n * (x * p - before)) / (x * x - 1);
      const change = p / slope;
      x -= change;
      if (Math.abs(change) < 1e-15) break;
    }
    nodes[i] = x;
    weights[i] = 2 / ((1 - x * x) * slope * slope);
  }
  found = [nodes, weights];
  legendre.set(n, found);
  return found;
}

/** Standard Gaussian between two ends: points, and the log of their unnormalised weights. */
function interval(a: number, b: number, n: number, each: (z: number, logWeight: number) => void): void {
  // the part of the window that matters lies near its point of highest density
  const peak = Math.min(Math.max(0, a), b);
  const fall = Math.sqrt(peak * peak + REACH * REACH);
  const low = Math.max(a, peak > 0 ? peak - REACH : -fall);
  const high = Math.min(b, peak < 0 ? peak + REACH : fall);
  const [nodes, weights] = gaussLegendre(n);
  const half = 0.5 * (high - low);
  for (let i = 0; i < n; i++) {
    const z = low + half * (1 + nodes[i]);
    each(z, Math.log(half * weights[i]) - 0.5 * z * z);
  }
}

/**
 * Points of a Gaussian vector inside its window.
 *
 * `mean` and `low`, `high` have k entries, `covariance` k × k. `steep` tells how fast what is averaged changes, in units of
 * a standard deviation; `budget` is the number of points where they are those of a lattice.
 */
export function windowNodes(
  mean: ArrayLike<number>,
  covariance: ArrayLike<number>,
  low: ArrayLike<number>,
  high: ArrayLike<number>,
  steep: number,
  budget: number,
): Nodes {
  const k = mean.length;
  const { order, root } = ordered(mean, covariance, low, high);
  const y = new Float64Array(k);
  const [a, b] = ends(0);
  // a coordinate that the second window cuts sharply needs more points
  const sharp = k === 2 ? Math.abs(root[k]) / root[k + 1] : 0;
  const even = k === 1 || (k === 2 && Math.max(sharp, steep) < STEEPEST);
  const few = budget < FEW ? 0.5 : 1;
  const n = even ? Math.min(count(a, b, Math.max(sharp, steep)) * few, k === 1 ? 96 : 40) : budget;
  const found = new Collected(k, k === 1 || !even ? n : n * 24);
  const keep = (log: number) => {
    const start = found.length * k;
    for (let j = 0; j < k; j++) {
      let x = mean[order[j]];
      for (let i = 0; i <= j; i++) x += root[j * k + i] * y[i];
      found.points[start + order[j]] = x;
    }
    found.logs[found.length++] = log;
  };
  function ends(j: number): [number, number] {
    let centre = mean[order[j]];
    for (let i = 0; i < j; i++) centre += root[j * k + i] * y[i];
    const scale = root[j * k + j];
    return [(low[order[j]] - centre) / scale, (high[order[j]] - centre) / scale];
  }
  if (even) {
    interval(a, b, n, (z, log) => {
      y[0] = z;
      if (k === 1) {
        keep(log - LOG_ROOT_TAU);
        return;
      }
      const [c, d] = ends(1);
      if (!(c < d && logInterval(c, d) + log > -60)) return;
      interval(c, d, Math.min(count(c, d, steep) * few, 24), (u, more) => {
        y[1] = u;
        keep(log + more - 2 * LOG_ROOT_TAU);
      });
    });
    return found.summed(1);
  }
  lattice(k, budget, (u) => {
    let log = 0;
    for (let j = 0; j < k; j++) {
      const [from, to] = ends(j);
      const [logMass, point] = drawn(from, to, u[j]);
      log += logMass;
      if (!(log > NEGATIVE_INFINITY)) return;
      y[j] = point;
    }
    keep(log);
  });
  return found.summed(budget);
}

const LOG_ROOT_TAU = 0.5 * Math.log(2 * Math.PI);
/** Above this steepness, evenly placed points would be too many. */
const STEEPEST = 8;
/** Least weight of a point. */
const LEAST = 1e-9;
/** A vector with fewer points than this matters little. */
const FEW = 256;

/** A multiple of eight, since rules are kept. */
function count(a: number, b: number, steep: number): number {
  const width = Math.min(b, REACH) - Math.max(a, -REACH);
  const wide = Math.min(Math.max(width, 0), 2 * REACH);
  return Math.max(Math.ceil((8 + 1.5 * wide + 2 * wide * Math.min(steep, 20)) / 8) * 8, 8);
}

/** log P(a < Z ≤ b), and the point inside with a share u of it below. */
function drawn(a: number, b: number, u: number): [number, number] {
  if (Math.min(Math.abs(a), Math.abs(b)) < 4.5) {
    const [below, upto] = a + b > 0 ? [fastNdtr(-b), fastNdtr(-a)] : [fastNdtr(a), fastNdtr(b)];
    const mass = upto - below;
    if (mass > 1e-5) {
      const z = a + b > 0 ? -ndtri(upto - u * mass, false) : ndtri(below + u * mass, false);
      return [Math.log(mass), Math.min(Math.max(z, a), b)];
    }
  }
  const log = logInterval(a, b);
  return [log, log > NEGATIVE_INFINITY ? inside(a, b, u) : 0];
}

/** Points as they are found. */
class Collected {
  length = 0;
  readonly points: Float64Array;
  readonly logs: Float64Array;
  constructor(
    private readonly k: number,
    most: number,
  ) {
    this.points = new Float64Array(most * k);
    this.logs = new Float64Array(most);
  }

  /** The points with weights that sum to one; `n` is the number that a mean is taken over. */
  summed(n: number): Nodes {
    const logs = this.logs.subarray(0, this.length);
    let top = NEGATIVE_INFINITY;
    for (const log of logs) if (log > top) top = log;
    const weights = new Float64Array(logs.length);
    let total = 0;
    for (let i = 0; i < logs.length; i++) {
      weights[i] = Math.exp(logs[i] - top);
      total += weights[i];
    }
    const logMass = logs.length ? Math.min(top + Math.log(total / n), 0) : NEGATIVE_INFINITY;
    // points that weigh nothing are left out, the others move up
    let kept = 0;
    for (let i = 0; i < weights.length; i++) {
      const weight = weights[i] / total;
      if (weight < LEAST) continue;
      weights[kept] = weight;
      if (kept < i) this.points.copyWithin(kept * this.k, i * this.k, (i + 1) * this.k);
      kept++;
    }
    return { logMass, points: this.points.subarray(0, kept * this.k), weights: weights.subarray(0, kept) };
  }
}

/** Coordinates in the order of Genz, the least probable window first, and the root of the covariance in that order. */
function ordered(
  mean: ArrayLike<number>,
  covariance: ArrayLike<number>,
  low: ArrayLike<number>,
  high: ArrayLike<number>,
): { order: number[]; root: Float64Array } {
  const k = mean.length;
  const order = Array.from({ length: k }, (_, j) => j);
  const root = new Float64Array(k * k);
  const expected = new Float64Array(k);
  for (let j = 0; j < k; j++) {
    let best = j;
    let least = POSITIVE_INFINITY;
    for (let i = j; i < k; i++) {
      const at = order[i];
      let variance = covariance[at * k + at];
      let centre = mean[at];
      for (let m = 0; m < j; m++) {
        variance -= root[i * k + m] ** 2;
        centre += root[i * k + m] * expected[m];
      }
      const scale = Math.sqrt(Math.max(variance, 1e-14 * covariance[at * k + at]));
      const log = logInterval((low[at] - centre) / scale, (high[at] - centre) / scale);
      if (log < least) [best, least] = [i, log];
    }
    [order[j], order[best]] = [order[best], order[j]];
    for (let m = 0; m < j; m++) {
      [root[j * k + m], root[best * k + m]] = [root[best * k + m], root[j * k + m]];
    }
    const at = order[j];
    let variance = covariance[at * k + at];
    let centre = mean[at];
    for (let m = 0; m < j; m++) {
      variance -= root[j * k + m] ** 2;
      centre += root[j * k + m] * expected[m];
    }
    const scale = Math.sqrt(Math.max(variance, 1e-14 * covariance[at * k + at]));
    root[j * k + j] = scale;
    for (let i = j + 1; i < k; i++) {
      let sum = covariance[order[i] * k + at];
      for (let m = 0; m < j; m++) sum -= root[i * k + m] * root[j * k + m];
      root[i * k + j] = sum / scale;
    }
    expected[j] = inside((low[at] - centre) / scale, (high[at] - centre) / scale, 0.5);
  }
  return { order, root };
}

/** The point of a standard Gaussian inside a window with a share u of the window's probability below it. */
export function inside(a: number, b: number, u: number): number {
  if (a + b > 0) return -inside(-b, -a, 1 - u);
  // now the nearer end is b, at or below zero or beyond it
  if (b < -7) {
    // far in the tail the density falls like exp(b (z - b))
    const width = a === NEGATIVE_INFINITY ? POSITIVE_INFINITY : b - a;
    const share = u + (1 - u) * Math.exp(b * width);
    return b - Math.log(share) / b;
  }
  const below = ndtr(a);
  const z = ndtri(below + u * (ndtr(b) - below));
  return Math.min(Math.max(z, a), b);
}

/** Calls back with the points of a lattice in k dimensions, folded so that what is summed need not be periodic. */
function lattice(k: number, n: number, each: (u: Float64Array) => void): void {
  const u = new Float64Array(k);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < k; j++) {
      const t = ((i + 0.5) * ROOTS[j % ROOTS.length] + 0.5 / (j + 1)) % 1;
      u[j] = Math.min(Math.max(1 - Math.abs(2 * t - 1), 1e-12), 1 - 1e-12);
    }
    each(u);
  }
}

/** Roots of primes: their multiples, modulo one, fill a cube evenly (Richtmyer). */
const ROOTS = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97].map(
  (p) => Math.sqrt(p),
);
