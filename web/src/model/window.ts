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
  /** Least and greatest value of each coordinate. */
  readonly least: Float64Array;
  readonly most: Float64Array;
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

/** The part of a window that matters lies near its point of highest density: its two ends, and that point. */
const part = { low: 0, high: 0, peak: 0 };
function matters(a: number, b: number): void {
  part.peak = Math.min(Math.max(0, a), b);
  const fall = Math.sqrt(part.peak * part.peak + REACH * REACH);
  part.low = Math.max(a, part.peak > 0 ? part.peak - REACH : -fall);
  part.high = Math.min(b, part.peak < 0 ? part.peak + REACH : fall);
}

/**
 * Points of a Gaussian vector inside its window.
 *
 * `mean` and `low`, `high` have k entries, `covariance` k × k. `steep` tells how fast what is averaged changes, in units of
 * a standard deviation; `share` is how much the vector counts among others, at most one: one that counts for little has
 * few points.
 */
export function windowNodes(
  mean: ArrayLike<number>,
  covariance: ArrayLike<number>,
  low: ArrayLike<number>,
  high: ArrayLike<number>,
  steep: number,
  share: number,
): Nodes {
  const k = mean.length;
  if (k === 1) return onLine(mean[0], Math.sqrt(covariance[0]), low[0], high[0], steep, share);
  const box: Box = { mean, low, high, ...ordered(mean, covariance, low, high) };
  if (k > 2) return onLattice(box, share);
  // a coordinate that the second window cuts sharply needs more points
  const sharp = Math.max(Math.abs(box.root[2]) / box.root[3], steep);
  return sharp < STEEPEST ? onPlane(box, sharp, steep, share) : onLattice(box, share);
}

/** A window with its coordinates in the order of Genz, and the root of the covariance in that order. */
interface Box {
  readonly mean: ArrayLike<number>;
  readonly low: ArrayLike<number>;
  readonly high: ArrayLike<number>;
  readonly order: readonly number[];
  readonly root: Float64Array;
}

const LOG_ROOT_TAU = 0.5 * Math.log(2 * Math.PI);
/** Above this steepness, evenly placed points would be too many. */
const STEEPEST = 8;
/** Least weight of a point, where it counts in full. */
const LEAST = 1e-9;
/** Points of a lattice, at least, for a vector that counts in full. */
const MOST = 1 << 12;

/** A multiple of eight, since rules are kept; less for what counts for little. */
function count(a: number, b: number, steep: number, share: number): number {
  const width = Math.min(b, REACH) - Math.max(a, -REACH);
  const wide = Math.min(Math.max(width, 0), 2 * REACH);
  const full = Math.max(Math.ceil((8 + 1.5 * wide + 2 * wide * Math.min(steep, 20)) / 8) * 8, 8);
  return full * (share < 1e-3 ? 0.25 : share < 1 / 32 ? 0.5 : 1);
}

/** Points with weights as they are found, before it is known how many are worth keeping. */
let points = new Float64Array(1 << 12);
let weights = new Float64Array(1 << 12);
function roomFor(n: number, k: number): void {
  if (points.length < n * k) points = new Float64Array(n * k);
  if (weights.length < n) weights = new Float64Array(n);
}

/** The first n points that were found, with weights that sum to one; `log` is the logarithm of the unit of weights. */
function collected(n: number, k: number, log: number, share: number): Nodes {
  let total = 0;
  for (let i = 0; i < n; i++) total += weights[i];
  const logMass = total > 0 ? Math.min(log + Math.log(total), 0) : NEGATIVE_INFINITY;
  // points that weigh nothing are left out, the others move up
  const enough = (LEAST / Math.max(share, LEAST)) * total;
  const [least, most] = [new Float64Array(k).fill(POSITIVE_INFINITY), new Float64Array(k).fill(NEGATIVE_INFINITY)];
  let kept = 0;
  for (let i = 0; i < n; i++) {
    if (!(weights[i] > enough)) continue;
    weights[kept] = weights[i] / total;
    for (let j = 0; j < k; j++) {
      const x = points[i * k + j];
      points[kept * k + j] = x;
      if (x < least[j]) least[j] = x;
      if (x > most[j]) most[j] = x;
    }
    kept++;
  }
  return { logMass, points: points.slice(0, kept * k), weights: weights.slice(0, kept), least, most };
}

/** One coordinate: Gauss and Legendre. */
function onLine(mean: number, scale: number, low: number, high: number, steep: number, share: number): Nodes {
  const [a, b] = [(low - mean) / scale, (high - mean) / scale];
  const n = Math.min(count(a, b, steep, share), 96);
  matters(a, b);
  const { low: from, peak } = part;
  const half = 0.5 * (part.high - from);
  const [nodes, rule] = gaussLegendre(n);
  roomFor(n, 1);
  for (let i = 0; i < n; i++) {
    const z = from + half * (1 + nodes[i]);
    points[i] = mean + scale * z;
    weights[i] = rule[i] * Math.exp(0.5 * (peak * peak - z * z));
  }
  return collected(n, 1, Math.log(half) - 0.5 * peak * peak - LOG_ROOT_TAU, share);
}

/** Two coordinates: one rule inside the other. */
function onPlane({ mean, low, high, order, root }: Box, sharp: number, steep: number, share: number): Nodes {
  const [first, second] = order;
  const [s, slope, t] = [root[0], root[2], root[3]];
  const [a, b] = [(low[first] - mean[first]) / s, (high[first] - mean[first]) / s];
  const n = Math.min(count(a, b, sharp, share), 40);
  const [nodes, rule] = gaussLegendre(n);
  matters(a, b);
  const from = part.low;
  const half = 0.5 * (part.high - from);
  roomFor(24 * n, 2);
  // the largest density of all, as a unit of weights
  let least = POSITIVE_INFINITY;
  for (let i = 0; i < n; i++) {
    const z = from + half * (1 + nodes[i]);
    const shift = slope * z;
    const [c, d] = [(low[second] - mean[second] - shift) / t, (high[second] - mean[second] - shift) / t];
    const peak = Math.min(Math.max(0, c), d);
    least = Math.min(least, 0.5 * (z * z + peak * peak));
  }
  let found = 0;
  for (let i = 0; i < n; i++) {
    const z = from + half * (1 + nodes[i]);
    const shift = slope * z;
    const [c, d] = [(low[second] - mean[second] - shift) / t, (high[second] - mean[second] - shift) / t];
    matters(c, d);
    const { low: start, high: stop, peak } = part;
    if (!(start < stop) || 0.5 * (z * z + peak * peak) > least + 40) continue;
    const m = Math.min(count(c, d, steep, share), 24);
    const [within, more] = gaussLegendre(m);
    const narrow = 0.5 * (stop - start);
    for (let j = 0; j < m; j++) {
      const u = start + narrow * (1 + within[j]);
      points[2 * found + first] = mean[first] + s * z;
      points[2 * found + second] = mean[second] + shift + t * u;
      weights[found++] = half * narrow * rule[i] * more[j] * Math.exp(least - 0.5 * (z * z + u * u));
    }
  }
  return collected(found, 2, -least - 2 * LOG_ROOT_TAU, share);
}

/** Any number of coordinates: each is drawn inside its window given those before it, at the points of a lattice. */
function onLattice({ mean, low, high, order, root }: Box, share: number): Nodes {
  const k = mean.length;
  const [n, generator] = LATTICES.find(([size]) => size >= MOST * share) ?? LATTICES[LATTICES.length - 1];
  roomFor(n, k);
  const y = new Float64Array(k);
  const shares = lattice(n, generator, k);
  let top = NEGATIVE_INFINITY;
  for (let i = 0; i < n; i++) {
    let log = 0;
    let mass = 1;
    for (let j = 0; j < k && log > NEGATIVE_INFINITY; j++) {
      let centre = mean[order[j]];
      for (let m = 0; m < j; m++) centre += root[j * k + m] * y[m];
      const scale = root[j * k + j];
      log += draw((low[order[j]] - centre) / scale, (high[order[j]] - centre) / scale, shares[i * k + j]);
      mass *= drawn.mass;
      y[j] = drawn.point;
      points[i * k + order[j]] = centre + scale * y[j];
    }
    weights[i] = log + Math.log(mass);
    if (weights[i] > top) top = weights[i];
  }
  for (let i = 0; i < n; i++) weights[i] = top > NEGATIVE_INFINITY ? Math.exp(weights[i] - top) : 0;
  return collected(n, k, top - Math.log(n), share);
}

const lattices = new Map<string, Float64Array>();
/** Points of a lattice in the unit cube, by rows: folded, and never at an end, which may be infinite. */
function lattice(n: number, generator: number, k: number): Float64Array {
  const key = `${n} ${k}`;
  let found = lattices.get(key);
  if (!found) {
    found = new Float64Array(n * k);
    for (let j = 0, step = 1; j < k; j++, step = (step * generator) % n) {
      for (let i = 0; i < n; i++) {
        found[i * k + j] = Math.min(1 - Math.abs((2 * ((i * step) % n) + 1) / n - 1), 1 - 0.25 / n);
      }
    }
    lattices.set(key, found);
  }
  return found;
}

/** What `draw` has found: a point, and a factor of its probability. */
const drawn = { point: 0, mass: 1 };
/** Draws the point inside a window with a share u of it below; returns the logarithm of what the factor leaves out. */
function draw(a: number, b: number, u: number): number {
  if (Math.min(Math.abs(a), Math.abs(b)) < 4.5) {
    const upper = a + b > 0;
    const below = fastNdtr(upper ? -b : a);
    const mass = fastNdtr(upper ? -a : b) - below;
    if (mass > 1e-5) {
      const z = upper ? -ndtri(below + (1 - u) * mass, false) : ndtri(below + u * mass, false);
      drawn.mass = mass;
      drawn.point = Math.min(Math.max(z, a), b);
      return 0;
    }
  }
  const log = logInterval(a, b);
  drawn.mass = 1;
  drawn.point = log > NEGATIVE_INFINITY ? inside(a, b, u) : 0;
  return log;
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

/**
 * Lattices: numbers of points, and the generators whose powers give their coordinates (Korobov). Those were chosen for
 * the least error of smooth periodic sums in three to twelve coordinates; folding makes what is summed periodic.
 */
const LATTICES = [
  [23, 6],
  [47, 17],
  [97, 23],
  [193, 47],
  [389, 68],
  [769, 279],
  [1543, 174],
  [3079, 1371],
  [6151, 2606],
] as const;
