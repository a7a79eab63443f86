/**
 * A mixture whose components are Gaussian over a block of columns, each seen through a warp, and products over the others.
 *
 * A value of a block column conditions the Gaussians, an interval is a window on them. A column with spikes is at one of
 * those that a region holds, where its Gaussian coordinate is free, or at none of them: so a component may have several
 * branches, one for each such choice.
 */

import type { Dictionary, Region } from "./atoms.ts";
import type { Column } from "./columns.ts";
import type { Matrix } from "./container.ts";
import { type Coefficients, type Evidence, type Expert, Factors, normalised, type Posterior } from "./expert.ts";
import { addCut, addGaussian, Bins, condition, largestRatio, type Regression, regression } from "./gaussian.ts";
import { intervalMass, logInterval, logSumExp } from "./special.ts";
import { Warp, type WarpParts } from "./warp.ts";
import { type Nodes, windowNodes } from "./window.ts";

const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number;
/** A branch that is this much below the best, in nats, has no say. */
const NO_SAY = 14;
/** Most choices between spikes and numbers. */
const MOST_CHOICES = 256;

export interface BlockParts {
  kind: "block";
  weights: Matrix;
  columns: number[];
  warps: WarpParts[];
  means: Matrix;
  roots: Matrix;
  spikes: Matrix[];
  spike_weights: Matrix[];
  whole: boolean[];
  low: Matrix | null;
  high: Matrix | null;
  log_inside: Matrix | null;
  coefficients: Coefficients[];
  dictionaries: number[];
}

/** What a choice says of a column of the block. */
type Choice =
  | { readonly at: "spikes"; readonly held: readonly number[] }
  | { readonly at: "value"; readonly value: number }
  | { readonly at: "window"; readonly low: number; readonly high: number };

/** A component given one choice for each column with evidence. */
interface Branch {
  readonly component: number;
  readonly choices: ReadonlyMap<number, Choice>;
  logWeight: number;
  readonly mean: Float64Array;
  readonly covariance: Float64Array;
  /** Coordinates with a window, and the windows. */
  readonly inside: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  /** About how much of all there is: what has little share needs few points. */
  share: number;
  nodes?: Nodes;
  /** Every coordinate by those inside windows. */
  regression?: Regression;
}

export class Block implements Expert {
  private readonly size: number;
  /** Number of coordinates, visible and hidden. */
  private readonly depth: number;
  private readonly logWeights: Float64Array;
  private readonly warps: readonly Warp[];
  private readonly means: ArrayLike<number>;
  private readonly covariances: readonly Float64Array[];
  private readonly factors: Factors;
  /** Place in the block of each column, or undefined. */
  private readonly places: ReadonlyMap<number, number>;
  /** Edges of the cells of each block column, as coordinates. */
  private readonly edges: readonly Float64Array[];
  private readonly rounds: boolean;
  private readonly latent: (Float64Array | undefined)[];
  /** Probability in each component that a column is at none of its spikes, by columns of the block. */
  private readonly free: readonly Float64Array[];
  private readonly visible: readonly number[];
  private readonly bins = new Bins();

  constructor(
    private readonly parts: BlockParts,
    private readonly columns: readonly Column[],
    dictionaries: readonly Dictionary[],
  ) {
    [this.size, this.depth] = parts.means.shape as [number, number];
    const before = parts.log_inside?.data;
    this.logWeights = Float64Array.from(parts.weights.data, (w, r) => Math.log(w) - (before ? before[r] : 0));
    this.warps = parts.warps.map((warp) => new Warp(warp));
    this.means = parts.means.data;
    this.covariances = Array.from({ length: this.size }, (_, r) => this.covariance(r));
    this.places = new Map(parts.columns.map((n, c) => [n, c]));
    const others = columns.map((_, n) => n).filter((n) => !this.places.has(n));
    this.factors = new Factors(
      this.size,
      columns,
      new Map(others.map((n, k) => [n, dictionaries[parts.dictionaries[k]]])),
      new Map(others.map((n, k) => [n, parts.coefficients[k]])),
    );
    this.edges = parts.columns.map((n, c) => Float64Array.from(columns[n].edges, (edge) => this.warps[c].at(edge)));
    this.rounds = parts.whole.some(Boolean);
    this.latent = new Array(this.size);
    this.free = parts.columns.map((_, c) => Float64Array.from({ length: this.size }, (_, r) => this.atNone(c, r)));
    this.visible = parts.columns.map((_, c) => c);
  }

  private covariance(r: number): Float64Array {
    const d = this.depth;
    const start = (r * d * (d + 1)) / 2;
    const root = this.parts.roots.data;
    const out = new Float64Array(d * d);
    for (let i = 0; i < d; i++) {
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (let k = 0; k <= j; k++) sum += root[start + (i * (i + 1)) / 2 + k] * root[start + (j * (j + 1)) / 2 + k];
        out[i * d + j] = out[j * d + i] = sum;
      }
    }
    return out;
  }

  given(evidence: Evidence): Posterior {
    const logRest = this.logWeights.slice();
    for (const [n, region] of evidence) {
      if (!this.factors.has(n)) continue;
      const logs = this.factors.logLikelihood(n, region);
      for (let r = 0; r < this.size; r++) logRest[r] += logs[r];
    }
    const branches = this.branches(evidence, logRest);
    const logs = branches.map((branch) => branch.logWeight);
    const logEvidence = logSumExp(logs);
    return {
      logEvidence,
      margin: (n) => {
        const c = this.places.get(n);
        return normalised(
          c === undefined ? this.looseMargin(n, branches, evidence) : this.margin(c, branches, logEvidence),
        );
      },
    };
  }

  /** Cells of a column outside the block. */
  private looseMargin(n: number, branches: readonly Branch[], evidence: Evidence): Float64Array {
    const region = evidence.get(n);
    const own = region && this.factors.logLikelihood(n, region);
    const logs = new Float64Array(this.size).fill(NEGATIVE_INFINITY);
    for (const { component: r, logWeight } of branches) {
      const log = logWeight - (own ? own[r] : 0);
      logs[r] = logs[r] === NEGATIVE_INFINITY ? log : logSumExp([logs[r], log]);
    }
    return this.factors.margin(n, logs, region);
  }

  // ---- branches ----------------------------------------------------------------------------------------------------

  private branches(evidence: Evidence, logRest: Float64Array): Branch[] {
    const found: Branch[] = [];
    for (const choices of this.choices(evidence)) {
      for (let r = 0; r < this.size; r++) {
        const branch = logRest[r] > NEGATIVE_INFINITY ? this.branch(r, choices, logRest[r]) : undefined;
        if (branch) found.push(branch);
      }
    }
    return this.weighed(found);
  }

  /** Every combination of what columns of the block may be, given the evidence. */
  private choices(evidence: Evidence): ReadonlyMap<number, Choice>[] {
    let found: ReadonlyMap<number, Choice>[] = [new Map()];
    for (const [n, region] of evidence) {
      const c = this.places.get(n);
      if (c === undefined) continue;
      const options = this.options(c, region);
      found = found.flatMap((chosen) => options.map((option) => new Map([...chosen, [c, option]])));
      if (found.length > MOST_CHOICES) found.length = MOST_CHOICES;
    }
    return found;
  }

  private options(c: number, region: Region): Choice[] {
    const spikes = this.parts.spikes[c].data;
    const whole = this.parts.whole[c];
    const held: number[] = [];
    const windows: [number, number][] = [];
    if (region.kind === "point") {
      const { value } = region;
      for (let s = 0; s < spikes.length; s++) if (spikes[s] === value) held.push(s);
      const possible = !whole || value === Math.round(value);
      const out: Choice[] = held.length ? [{ at: "spikes", held }] : [];
      if (possible && (whole || !held.length)) out.push({ at: "value", value });
      return out;
    }
    if (region.kind === "interval") {
      for (let s = 0; s < spikes.length && !region.bare; s++) {
        if (region.low <= spikes[s] && spikes[s] <= region.high) held.push(s);
      }
      windows.push(whole ? [Math.ceil(region.low) - 0.5, Math.floor(region.high) + 0.5] : [region.low, region.high]);
    } else {
      for (let s = 0; s < spikes.length; s++) if (region.values.includes(spikes[s])) held.push(s);
      for (const value of [...region.values].sort((a, b) => a - b)) {
        if (!whole || value !== Math.round(value)) continue;
        const last = windows.at(-1);
        if (last && last[1] === value - 0.5) last[1] = value + 0.5;
        else windows.push([value - 0.5, value + 0.5]);
      }
    }
    const out: Choice[] = windows
      .filter(([low, high]) => low < high)
      .map(([low, high]) => ({ at: "window", low: this.warps[c].at(low), high: this.warps[c].at(high) }));
    return held.length ? [{ at: "spikes", held }, ...out] : out;
  }

  private spikeWeight(c: number, s: number, r: number): number {
    return this.parts.spike_weights[c].data[s * this.size + r];
  }

  private atNone(c: number, r: number): number {
    let sum = 0;
    for (let s = 0; s < this.parts.spikes[c].data.length; s++) sum += this.spikeWeight(c, s, r);
    return Math.max(1 - sum, 0);
  }

  /** A component given one choice for each column, or nothing if it is impossible. */
  private branch(r: number, choices: ReadonlyMap<number, Choice>, logWeight: number): Branch | undefined {
    const d = this.depth;
    let log = logWeight;
    const low = new Float64Array(d).fill(NEGATIVE_INFINITY);
    const high = new Float64Array(d).fill(POSITIVE_INFINITY);
    for (let c = 0; c < d && this.parts.low && this.parts.high; c++) {
      low[c] = this.parts.low.data[r * d + c];
      high[c] = this.parts.high.data[r * d + c];
    }
    const settled: number[] = [];
    const values: number[] = [];
    for (const [c, choice] of choices) {
      if (choice.at === "spikes") {
        let sum = 0;
        for (const s of choice.held) sum += this.spikeWeight(c, s, r);
        log += Math.log(sum);
        continue;
      }
      log += Math.log(this.free[c][r]);
      if (choice.at === "window") {
        low[c] = Math.max(low[c], choice.low);
        high[c] = Math.min(high[c], choice.high);
        if (!(low[c] < high[c])) return undefined;
      } else {
        const z = this.warps[c].at(choice.value);
        if (z < low[c] || z > high[c]) return undefined;
        settled.push(c);
        values.push(z);
        [low[c], high[c]] = [NEGATIVE_INFINITY, POSITIVE_INFINITY];
        log += this.warps[c].logSlope(choice.value);
      }
    }
    const mean = new Float64Array(d);
    for (let i = 0; i < d; i++) mean[i] = this.means[r * d + i];
    let covariance = this.covariances[r];
    if (settled.length) {
      covariance = covariance.slice();
      log += condition(mean, covariance, settled, values);
    }
    if (!(log > NEGATIVE_INFINITY)) return undefined;
    if (this.rounds) covariance = this.unrounded(r, mean, covariance, settled);
    const inside: number[] = [];
    for (let c = 0; c < d; c++) if (low[c] > NEGATIVE_INFINITY || high[c] < POSITIVE_INFINITY) inside.push(c);
    const [lows, highs] = [inside.map((c) => low[c]), inside.map((c) => high[c])];
    return { component: r, choices, logWeight: log, mean, covariance, inside, low: lows, high: highs, share: 1 };
  }

  /** Covariance of the numbers that are rounded to integers: less by what rounding adds. */
  private unrounded(r: number, mean: Float64Array, covariance: Float64Array, settled: readonly number[]): Float64Array {
    const known = settled.length ? undefined : this.latent[r];
    if (known) return known;
    const d = this.depth;
    const at: number[] = [];
    const variance: number[] = [];
    this.parts.whole.forEach((whole, c) => {
      if (!whole || settled.includes(c)) return;
      const slope = Math.exp(this.warps[c].logSlope(this.warps[c].inverse(mean[c])));
      at.push(c);
      variance.push((slope * slope) / 12);
    });
    const out = covariance.slice();
    const left = Array.from({ length: d }, (_, i) => i).filter((i) => !settled.includes(i));
    const largest = largestRatio(covariance, d, left, at, variance);
    const share = Math.min(1, 0.5 / Math.max(largest, 1e-300));
    at.forEach((c, k) => {
      out[c * d + c] -= share * variance[k];
    });
    if (!settled.length) this.latent[r] = out;
    return out;
  }

  /** Branches with the probabilities of their windows, without those that have no say. */
  private weighed(branches: Branch[]): Branch[] {
    const d = this.depth;
    const bounds = branches.map((branch) => {
      let least = 0;
      branch.inside.forEach((c, j) => {
        const scale = Math.sqrt(branch.covariance[c * d + c]);
        const log = logInterval((branch.low[j] - branch.mean[c]) / scale, (branch.high[j] - branch.mean[c]) / scale);
        least = Math.min(least, log);
      });
      return branch.logWeight + least;
    });
    const order = branches.map((_, i) => i).sort((i, j) => bounds[j] - bounds[i]);
    const total = logSumExp(bounds);
    let best = NEGATIVE_INFINITY;
    const found: Branch[] = [];
    for (const i of order) {
      const branch = branches[i];
      if (bounds[i] < best - NO_SAY || bounds[i] === NEGATIVE_INFINITY) break;
      branch.share = Math.exp(bounds[i] - total);
      if (branch.inside.length === 1) branch.logWeight = bounds[i];
      else if (branch.inside.length > 1) branch.logWeight += this.nodes(branch).logMass;
      if (branch.logWeight === NEGATIVE_INFINITY) continue;
      best = Math.max(best, branch.logWeight);
      found.push(branch);
    }
    return found.filter((branch) => branch.logWeight > best - NO_SAY);
  }

  private nodes(branch: Branch): Nodes {
    if (!branch.nodes) {
      const { inside, mean, covariance, low, high, share } = branch;
      const k = inside.length;
      const own = new Float64Array(k * k);
      for (let i = 0; i < k; i++) {
        for (let j = 0; j < k; j++) own[i * k + j] = covariance[inside[i] * this.depth + inside[j]];
      }
      const means = inside.map((c) => mean[c]);
      branch.nodes = windowNodes(means, own, low, high, k <= 2 ? this.steepness(branch) : 0, share);
    }
    return branch.nodes;
  }

  private regression(branch: Branch): Regression {
    branch.regression ??= regression(branch.covariance, this.depth, branch.inside, this.visible);
    return branch.regression;
  }

  /** How fast the law of some column changes with the coordinates inside windows, by standard deviations of both. */
  private steepness(branch: Branch): number {
    const { inside, covariance, choices } = branch;
    const { gains, scales } = this.regression(branch);
    let most = 0;
    for (let c = 0; c < scales.length; c++) {
      if (inside.includes(c) || choices.get(c)?.at === "value") continue;
      for (let j = 0; j < inside.length; j++) {
        const scale = Math.sqrt(covariance[inside[j] * this.depth + inside[j]]);
        most = Math.max(most, (Math.abs(gains[c * inside.length + j]) * scale) / scales[c]);
      }
    }
    return most;
  }

  // ---- margins -----------------------------------------------------------------------------------------------------

  private margin(c: number, branches: readonly Branch[], logEvidence: number): Float64Array {
    const column = this.columns[this.parts.columns[c]];
    const spikes = this.parts.spikes[c].data;
    const all = Array.from(spikes, (_, s) => s);
    const out = new Float64Array(column.size);
    for (const branch of branches) {
      const weight = Math.exp(branch.logWeight - logEvidence);
      const choice = branch.choices.get(c);
      const free = this.free[c][branch.component];
      if (choice?.at === "value") out[column.cellOf(choice.value)] += weight;
      else if (choice?.at === "window") this.addLaw(branch, c, weight, out);
      else {
        const held = choice?.held ?? all;
        let total = choice ? 0 : 1;
        if (choice) for (const s of held) total += this.spikeWeight(c, s, branch.component);
        for (const s of held) {
          out[column.cellOf(spikes[s])] += (weight * this.spikeWeight(c, s, branch.component)) / total;
        }
        if (!choice && free > 0) this.addLaw(branch, c, weight * free, out);
      }
    }
    return out;
  }

  /** Add the law of coordinate c of a branch to the cells of its column. */
  private addLaw(branch: Branch, c: number, weight: number, out: Float64Array): void {
    const { bins } = this;
    const { mean, covariance, inside } = branch;
    const edges = this.edges[c];
    const k = inside.length;
    const own = inside.indexOf(c);
    if (k === (own < 0 ? 0 : 1)) {
      const scale = Math.sqrt(covariance[c * this.depth + c]);
      if (own < 0) addGaussian(edges, mean[c], scale, weight, out);
      else addCut(edges, mean[c], scale, branch.low[own], branch.high[own], weight, out, true);
      return;
    }
    const nodes = this.nodes(branch);
    if (own < 0) {
      const { gains, scales } = this.regression(branch);
      bins.gather(nodes, nodes.weights, this.intercept(branch, c, gains, c * k), gains, c * k, scales[c], weight);
      for (let i = 0; i < bins.length; i++) {
        addGaussian(edges, bins.means[i], bins.scales[i], weight * bins.weights[i], out);
      }
      return;
    }
    const { gains, scale } = this.byOthers(branch, c, own);
    const start = this.intercept(branch, c, gains, 0);
    const [low, high] = [branch.low[own], branch.high[own]];
    const cut = weightsOfCuts(nodes, start, gains, scale, low, high);
    bins.gather(nodes, cut, start, gains, 0, scale, weight);
    for (let i = 0; i < bins.length; i++) {
      addCut(edges, bins.means[i], bins.scales[i], low, high, weight * bins.weights[i], out, false);
    }
  }

  /** What is left of the mean of coordinate c where those inside windows are zero. */
  private intercept({ mean, inside }: Branch, c: number, gains: Float64Array, at: number): number {
    let out = mean[c];
    for (let j = 0; j < inside.length; j++) out -= gains[at + j] * mean[inside[j]];
    return out;
  }

  /** Coordinate c by the others inside windows, with nothing for itself. */
  private byOthers({ inside, covariance }: Branch, c: number, own: number): { gains: Float64Array; scale: number } {
    const others = inside.filter((i) => i !== c);
    const found = regression(covariance, this.depth, others, [c]);
    const gains = new Float64Array(inside.length);
    gains.set(found.gains.subarray(0, own));
    gains.set(found.gains.subarray(own), own + 1);
    return { gains, scale: found.scales[0] };
  }
}

/** Weights of points, divided by the mass in a window of Gaussians with means `start + Σ_j gain_j x_j` at the points x. */
function weightsOfCuts(
  { points, weights }: Nodes,
  start: number,
  gains: Float64Array,
  scale: number,
  low: number,
  high: number,
): Float64Array {
  const out = new Float64Array(weights.length);
  const k = gains.length;
  for (let i = 0, p = 0; i < out.length; i++) {
    let centre = start;
    for (let j = 0; j < k; j++) centre += gains[j] * points[p++];
    out[i] = weights[i] / intervalMass((low - centre) / scale, (high - centre) / scale);
  }
  return out;
}
