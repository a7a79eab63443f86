/** A mixture of trees over the states of the columns: f(x) = Σ_r λ_r Σ_s Π_n p_r(s_n | s_parent) d_{n,s_n}(x_n). */

import type { Dictionary } from "./atoms.ts";
import type { Column } from "./columns.ts";
import type { Matrix } from "./container.ts";
import { type Evidence, type Expert, normalised, type Posterior, shares } from "./expert.ts";
import { logSumExp } from "./special.ts";

export interface ForestParts {
  kind: "forest";
  weights: Matrix;
  dictionaries: number[];
  trees: { variables: number[]; parents: number[]; states: number[]; tables: Matrix }[];
}

export class Forest implements Expert {
  private readonly logWeights: Float64Array;
  private readonly dictionaries: readonly Dictionary[];
  private readonly trees: readonly Tree[];

  constructor(
    parts: ForestParts,
    private readonly columns: readonly Column[],
    dictionaries: readonly Dictionary[],
  ) {
    this.logWeights = Float64Array.from(parts.weights.data, Math.log);
    this.dictionaries = parts.dictionaries.map((d) => dictionaries[d]);
    this.trees = parts.trees.map((tree) => new Tree(tree));
  }

  given(evidence: Evidence): Posterior {
    const likelihoods = new Map<number, Float64Array>();
    let scale = 0;
    for (const [n, region] of evidence) {
      const found = this.dictionaries[n].likelihoods(region);
      const top = found.reduce((a, b) => Math.max(a, b), 0);
      likelihoods.set(n, scaled(found));
      scale += Math.log(top);
    }
    const messages = this.trees.map((tree) => new Messages(tree, likelihoods));
    const logs = this.logWeights.map((log, r) => log + scale + messages[r].logLikelihood);
    const weights = shares(logs);
    return {
      logEvidence: logSumExp(logs),
      margin: (n) => {
        const states = new Float64Array(this.dictionaries[n].size);
        for (let r = 0; r < weights.length; r++) {
          if (weights[r] > 0) messages[r].addStates(n, weights[r], states);
        }
        return normalised(this.columns[n].spread(this.dictionaries[n], states, evidence.get(n)));
      },
    };
  }
}

/** One tree: nodes with states, each given its parent's. Parents come before their children. */
class Tree {
  readonly size: number;
  readonly parents: readonly number[];
  readonly states: readonly number[];
  readonly variables: readonly number[];
  readonly children: readonly number[][];
  /** Node of each variable. */
  readonly nodes: readonly number[];
  readonly tables: readonly ArrayLike<number>[];

  constructor(parts: ForestParts["trees"][number]) {
    ({ parents: this.parents, states: this.states, variables: this.variables } = parts);
    this.size = this.parents.length;
    const children: number[][] = this.parents.map(() => []);
    const nodes: number[] = [];
    const tables: ArrayLike<number>[] = [];
    let start = 0;
    for (let m = 0; m < this.size; m++) {
      const parent = this.parents[m];
      if (parent >= 0) children[parent].push(m);
      if (this.variables[m] >= 0) nodes[this.variables[m]] = m;
      const length = (parent < 0 ? 1 : this.states[parent]) * this.states[m];
      tables.push(parts.tables.data.subarray(start, start + length));
      start += length;
    }
    this.children = children;
    this.nodes = nodes;
    this.tables = tables;
  }
}

/** Sums over the states of a tree given evidence: up to the roots, and down again for the states of each node. */
class Messages {
  readonly logLikelihood: number;
  /** Likelihood of the evidence at a node itself. */
  private readonly own: (Float64Array | undefined)[];
  /** Messages to the parent; none where nothing is known below. */
  private readonly up: (Float64Array | undefined)[];
  /** Likelihoods of states by all but what is at the node and below it. */
  private down: Float64Array[] | undefined;

  constructor(
    private readonly tree: Tree,
    likelihoods: ReadonlyMap<number, Float64Array>,
  ) {
    this.own = new Array(tree.size);
    this.up = new Array(tree.size);
    for (const [n, each] of likelihoods) this.own[tree.nodes[n]] = each;
    let log = 0;
    for (let m = tree.size - 1; m >= 0; m--) {
      const belief = this.belief(m, -1);
      if (!belief) continue;
      const message = times(tree.tables[m], belief);
      let top = 0;
      for (const value of message) if (value > top) top = value;
      log += Math.log(top);
      if (top > 0) for (let s = 0; s < message.length; s++) message[s] /= top;
      this.up[m] = message;
    }
    this.logLikelihood = log;
  }

  /** Likelihoods of the states of a node by what is at it and below it, but for one child; undefined if nothing is. */
  private belief(m: number, but: number): Float64Array | undefined {
    let out = this.own[m]?.slice();
    for (const child of this.tree.children[m]) {
      const message = child === but ? undefined : this.up[child];
      if (!message) continue;
      if (!out) out = message.slice();
      else for (let s = 0; s < out.length; s++) out[s] *= message[s];
    }
    return out;
  }

  /** Add weight P(state | evidence), without the evidence of the variable itself, to `out`. */
  addStates(variable: number, weight: number, out: Float64Array): void {
    this.down ??= this.downwards();
    const m = this.tree.nodes[variable];
    const law = this.down[m].slice();
    for (const child of this.tree.children[m]) {
      const message = this.up[child];
      if (message) for (let s = 0; s < law.length; s++) law[s] *= message[s];
    }
    const own = this.own[m];
    let total = 0;
    for (let s = 0; s < law.length; s++) total += law[s] * (own ? own[s] : 1);
    if (total > 0) for (let s = 0; s < law.length; s++) out[s] += (weight * law[s]) / total;
  }

  private downwards(): Float64Array[] {
    const { parents, tables, states, size, children } = this.tree;
    const found: Float64Array[] = new Array(size);
    for (let m = 0; m < size; m++) if (parents[m] < 0) found[m] = Float64Array.from(tables[m]);
    for (let p = 0; p < size; p++) {
      const below = children[p];
      // what siblings say, from the left and from the right, so that a node with many children is no trouble
      const left: Float64Array[] = [];
      let product: Float64Array = found[p].slice();
      const own = this.own[p];
      if (own) for (let s = 0; s < product.length; s++) product[s] *= own[s];
      for (const child of below) {
        left.push(product);
        product = this.with(product, child);
      }
      let right: Float64Array | undefined;
      for (let k = below.length - 1; k >= 0; k--) {
        const child = below[k];
        const outside = left[k].slice();
        if (right) for (let s = 0; s < outside.length; s++) outside[s] *= right[s];
        found[child] = scaled(timesLeft(outside, tables[child], states[child]));
        const message = this.up[child];
        if (message) {
          if (!right) right = message.slice();
          else for (let s = 0; s < right.length; s++) right[s] *= message[s];
        }
      }
    }
    return found;
  }

  private with(values: Float64Array, child: number): Float64Array {
    const message = this.up[child];
    if (!message) return values;
    const out = values.slice();
    for (let s = 0; s < out.length; s++) out[s] *= message[s];
    return out;
  }
}

/** table · vector. */
function times(table: ArrayLike<number>, vector: Float64Array): Float64Array {
  const n = vector.length;
  const out = new Float64Array(table.length / n);
  for (let p = 0, at = 0; p < out.length; p++) {
    let sum = 0;
    for (let s = 0; s < n; s++, at++) sum += table[at] * vector[s];
    out[p] = sum;
  }
  return out;
}

/** vector · table. */
function timesLeft(vector: Float64Array, table: ArrayLike<number>, n: number): Float64Array {
  const out = new Float64Array(n);
  for (let p = 0, at = 0; p < vector.length; p++) {
    const weight = vector[p];
    if (weight === 0) {
      at += n;
      continue;
    }
    for (let s = 0; s < n; s++, at++) out[s] += weight * table[at];
  }
  return out;
}

function scaled(values: Float64Array): Float64Array {
  let top = 0;
  for (const value of values) if (value > top) top = value;
  if (top > 0) for (let s = 0; s < values.length; s++) values[s] /= top;
  return values;
}
