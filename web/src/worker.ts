/** The mathematics in a thread of its own, for models whose steps would keep the page waiting. */

import { unpacked } from "./model/container.ts";
import { type Evidence, Model, type ModelParts } from "./model/model.ts";

/** First the packed model, then questions; each gets one answer, in order. */
export type Question =
  | { readonly packed: string }
  | { readonly evidence: Evidence; readonly columns: readonly number[] };

export interface Reply {
  readonly logEvidence: number;
  /** Cells of the columns asked for; none if the evidence is impossible. */
  readonly margins: readonly Float64Array[];
  /** How long it took to find them. */
  readonly milliseconds: number;
}

/** Answer questions from now on: what the script does where there is no page. */
export function serve(): void {
  let model: Promise<Model> | undefined;
  addEventListener("message", async ({ data }: MessageEvent<Question>) => {
    if ("packed" in data) {
      model = unpacked(data.packed).then((parts) => new Model(parts as ModelParts));
      return;
    }
    const ready = (await model)!;
    const begin = performance.now();
    const posterior = ready.given(data.evidence);
    const possible = posterior.logEvidence > Number.NEGATIVE_INFINITY;
    const margins = possible ? data.columns.map((n) => posterior.margin(n)) : [];
    const reply: Reply = { logEvidence: posterior.logEvidence, margins, milliseconds: performance.now() - begin };
    postMessage(reply, { transfer: margins.map((margin) => margin.buffer) });
  });
}
