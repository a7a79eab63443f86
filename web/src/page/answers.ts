/** Answers of the model given one condition, and the rows that a page may hold. */

import type { Matrix } from "../model/container.ts";
import type { Model, Posterior } from "../model/model.ts";
import type { Reply } from "../worker.ts";
import { type Condition, evidenceOf } from "./known.ts";

/** The answers given one condition: computed when asked for, or by another thread, and kept. */
export class Answers {
  private posterior: Posterior | undefined;
  private log: number | undefined;
  private readonly margins = new Map<number, Float64Array>();
  /** Milliseconds that it took to find them here. */
  cost = 0;

  /** With `wait`, nothing is computed here unless it is asked for. */
  constructor(
    private readonly model: Model,
    readonly condition: Condition,
    wait: boolean,
  ) {
    if (!wait) this.settled();
  }

  /** Whether the probability of the condition is known yet. */
  get ready(): boolean {
    return this.log !== undefined;
  }

  /** Whether margins that are not there can be computed here without further ado. */
  get local(): boolean {
    return this.posterior !== undefined;
  }

  private settled(): Posterior {
    if (!this.posterior) {
      const begin = performance.now();
      this.posterior = this.model.given(evidenceOf(this.model.columns, this.condition));
      this.log = this.posterior.logEvidence;
      this.cost += performance.now() - begin;
    }
    return this.posterior;
  }

  get logEvidence(): number {
    return this.log ?? this.settled().logEvidence;
  }

  get possible(): boolean {
    return this.logEvidence > Number.NEGATIVE_INFINITY;
  }

  has(n: number): boolean {
    return this.ready && (!this.possible || this.margins.has(n));
  }

  margin(n: number): Float64Array {
    let found = this.margins.get(n);
    if (!found) {
      const posterior = this.settled();
      const begin = performance.now();
      found = posterior.margin(n);
      this.cost += performance.now() - begin;
      this.margins.set(n, found);
    }
    return found;
  }

  /** A margin if it is there already. */
  peek(n: number): Float64Array | undefined {
    return this.margins.get(n);
  }

  /** What another thread has found. */
  take({ logEvidence, columns, margins }: Reply): void {
    this.log = logEvidence;
    margins.forEach((margin, i) => {
      this.margins.set(columns[i], margin);
    });
  }
}

/** Rows of a table, encoded as the model's numbers; NaN for a gap. */
export class Rows {
  readonly length: number;
  constructor(private readonly matrix: Matrix) {
    this.length = matrix.shape[0];
  }
  at(row: number, n: number): number {
    return this.matrix.data[row * this.matrix.shape[1] + n];
  }
}
