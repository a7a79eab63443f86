/** A mixture of products: f(x) = Σ_r λ_r Π_n Σ_l B_n[l, r] d_{n,l}(x_n). */

import type { Dictionary } from "./atoms.ts";
import type { Column } from "./columns.ts";
import type { Matrix } from "./container.ts";
import { type Coefficients, type Evidence, type Expert, Factors, type Posterior } from "./expert.ts";
import { logSumExp } from "./special.ts";

export interface ProductParts {
  kind: "product";
  weights: Matrix;
  coefficients: Coefficients[];
  dictionaries: number[];
}

export class Product implements Expert {
  private readonly logWeights: Float64Array;
  private readonly factors: Factors;

  constructor(parts: ProductParts, columns: readonly Column[], dictionaries: readonly Dictionary[]) {
    this.logWeights = Float64Array.from(parts.weights.data, Math.log);
    this.factors = new Factors(
      this.logWeights.length,
      columns,
      new Map(parts.dictionaries.map((d, n) => [n, dictionaries[d]])),
      new Map(parts.coefficients.map((b, n) => [n, b])),
    );
  }

  given(evidence: Evidence): Posterior {
    const logs = this.weigh(evidence);
    return {
      logEvidence: logSumExp(logs),
      margin: (n) => this.factors.margin(n, evidence.has(n) ? this.weigh(evidence, n) : logs, evidence.get(n)),
    };
  }

  /** Log-weights of the components given the evidence, but that of one column. */
  private weigh(evidence: Evidence, but = -1): Float64Array {
    const out = this.logWeights.slice();
    for (const [n, region] of evidence) {
      if (n === but) continue;
      const logs = this.factors.logLikelihood(n, region);
      for (let r = 0; r < out.length; r++) out[r] += logs[r];
    }
    return out;
  }
}
