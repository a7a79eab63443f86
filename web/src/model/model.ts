/** A density on the page: a weighted sum of mixtures, which answers with the probabilities of cells. */

import { Dictionary, type FamilyParts } from "./atoms.ts";
import { Block, type BlockParts } from "./block.ts";
import { Column, type ColumnParts } from "./columns.ts";
import type { Matrix } from "./container.ts";
import type { Evidence, Expert, Posterior } from "./expert.ts";
import { Forest, type ForestParts } from "./forest.ts";
import { Product, type ProductParts } from "./product.ts";
import { logSumExp } from "./special.ts";

export type { Region } from "./atoms.ts";
export { Column } from "./columns.ts";
export type { Evidence, Posterior } from "./expert.ts";

export interface ModelParts {
  version: number;
  title: string;
  columns: ColumnParts[];
  dictionaries: FamilyParts[][];
  shares: Matrix;
  experts: (ProductParts | BlockParts | ForestParts)[];
  /** A sample of rows, only if it was asked for. */
  rows?: Matrix;
}

/** Only this version of the packed form is read. */
const VERSION = 1;

export class Model {
  readonly title: string;
  readonly columns: readonly Column[];
  private readonly logShares: Float64Array;
  private readonly experts: readonly Expert[];
  /** For each mixture, by column: whether a value counts for nothing, since others have a point mass there. */
  private readonly foreign: readonly ((n: number, value: number) => boolean)[];

  constructor(parts: ModelParts) {
    if (parts.version !== VERSION)
      throw new Error(`The model has version ${parts.version}; this page reads ${VERSION}.`);
    this.title = parts.title;
    this.columns = parts.columns.map((column) => new Column(column));
    const dictionaries = parts.dictionaries.map((families) => new Dictionary(families));
    this.logShares = Float64Array.from(parts.shares.data, Math.log);
    this.experts = parts.experts.map((expert) => this.expert(expert, dictionaries));
    this.foreign = parts.experts.map((expert) => foreign(expert, this.columns, dictionaries));
  }

  private expert(parts: ModelParts["experts"][number], dictionaries: readonly Dictionary[]): Expert {
    switch (parts.kind) {
      case "product":
        return new Product(parts, this.columns, dictionaries);
      case "forest":
        return new Forest(parts, this.columns, dictionaries);
      case "block":
        return new Block(parts, this.columns, dictionaries);
    }
  }

  /** The density given evidence. */
  given(evidence: Evidence): Posterior {
    const posteriors = this.experts.map((expert) => expert.given(evidence));
    const logs = posteriors.map((posterior, k) => {
      for (const [n, region] of evidence) {
        if (region.kind === "point" && this.foreign[k](n, region.value)) return Number.NEGATIVE_INFINITY;
      }
      return this.logShares[k] + posterior.logEvidence;
    });
    const logEvidence = logSumExp(logs);
    return {
      logEvidence,
      margin: (n) => {
        const out = new Float64Array(this.columns[n].size);
        for (let k = 0; k < posteriors.length; k++) {
          const share = Math.exp(logs[k] - logEvidence);
          if (!(share > 1e-12)) continue;
          const margin = posteriors[k].margin(n);
          for (let i = 0; i < out.length; i++) out[i] += share * margin[i];
        }
        return out;
      },
    };
  }
}

/** Where other mixtures have point masses and this one a density. */
function foreign(
  parts: ModelParts["experts"][number],
  columns: readonly Column[],
  dictionaries: readonly Dictionary[],
): (n: number, value: number) => boolean {
  const own = columns.map((_, n): { has(value: number): boolean } => {
    if (parts.kind !== "block") return dictionaries[parts.dictionaries[n]].spikes;
    const c = parts.columns.indexOf(n);
    if (c >= 0) return new Set(parts.spikes[c].data);
    const before = parts.columns.filter((each) => each < n).length;
    return dictionaries[parts.dictionaries[n - before]].spikes;
  });
  return (n, value) =>
    columns[n].kind === "continuous" && Array.prototype.includes.call(columns[n].spikes, value) && !own[n].has(value);
}
