/** The mathematics in a thread of its own, for models whose steps would keep the page waiting. */

import { unpacked } from "./model/container.ts";
import { type Evidence, Model, type ModelParts, type Posterior } from "./model/model.ts";

/** What the page sends: first the packed model, then questions; a new one ends the one before it. */
export type Message = { readonly packed: string } | Question;

export interface Question {
  /** Number of the question. */
  readonly id: number;
  /** What is known as a text: of the same text the evidence is the same. */
  readonly key: string;
  readonly evidence: Evidence;
  readonly columns: readonly number[];
}

/** What comes back: that questions can be asked, then replies, each with some of the columns. */
export type Answer = "ready" | Reply;

export interface Reply {
  readonly id: number;
  readonly logEvidence: number;
  /** Columns, and their cells; none if the evidence is impossible. */
  readonly columns: readonly number[];
  readonly margins: readonly Float64Array[];
  /** Milliseconds that were spent on the question, and whether these are the last columns. */
  readonly milliseconds: number;
  readonly done: boolean;
}

/** Milliseconds of work after which a part of the answer is sent, and a newer question is looked for. */
const PART = 40;
/** Milliseconds to get used to the model, at most, once that is exceeded. */
const PRACTICE = 300;
/** Posteriors that are kept for further columns: one of each condition that is compared. */
const KEPT = 2;

/** Answer questions from now on: what the script does where there is no page. */
export function serve(): void {
  let server: Promise<Server> | undefined;
  addEventListener("message", ({ data }: MessageEvent<Message>) => {
    if ("packed" in data) server = start(data.packed);
    else void server?.then((each) => each.answer(data)).catch(fail);
  });
}

async function start(packed: string): Promise<Server> {
  const model = new Model((await unpacked(packed)) as ModelParts);
  practise(model);
  send("ready");
  return new Server(model);
}

function send(answer: Answer, transfer: Transferable[] = []): void {
  postMessage(answer, { transfer });
}

/** Tell the page of an error, which a promise would keep. */
function fail(error: unknown): void {
  setTimeout(() => {
    throw error;
  });
}

/** Answer some questions for nobody, so that the browser has compiled what later ones need. */
function practise(model: Model): void {
  const begin = performance.now();
  const numbers = model.columns.map((_, n) => n).filter((n) => !model.columns[n].categories);
  for (let k = 0; performance.now() < begin + PRACTICE && k < 12; k++) {
    const some = numbers.slice(0, 1 + (k % 3));
    const evidence: Evidence = new Map(
      some.map((n) => {
        const { edges } = model.columns[n];
        const at = (share: number) => edges[Math.floor(share * (edges.length - 1))];
        return [n, { kind: "interval", low: at(0.1 + 0.02 * k), high: at(0.7) }];
      }),
    );
    const posterior = model.given(evidence);
    if (posterior.logEvidence === Number.NEGATIVE_INFINITY) continue;
    for (let n = 0; n < model.columns.length; n++) posterior.margin(n);
  }
}

class Server {
  private newest = 0;
  private readonly kept = new Map<string, Posterior>();

  constructor(private readonly model: Model) {}

  /** Send the cells of columns in parts, until a newer question comes. */
  async answer({ id, key, evidence, columns }: Question): Promise<void> {
    this.newest = id;
    let begin = performance.now();
    const posterior = this.posterior(key, evidence);
    const { logEvidence } = posterior;
    let left = logEvidence > Number.NEGATIVE_INFINITY ? columns : [];
    let milliseconds = 0;
    do {
      const margins: Float64Array[] = [];
      while (margins.length < left.length && performance.now() < begin + PART) {
        margins.push(posterior.margin(left[margins.length]));
      }
      milliseconds += performance.now() - begin;
      const some = left.slice(0, margins.length);
      left = left.slice(margins.length);
      const reply: Reply = { id, logEvidence, columns: some, margins, milliseconds, done: !left.length };
      send(
        reply,
        margins.map((margin) => margin.buffer),
      );
      if (left.length) await new Promise((resolve) => setTimeout(resolve));
      begin = performance.now();
    } while (left.length && this.newest === id);
  }

  private posterior(key: string, evidence: Evidence): Posterior {
    const found = this.kept.get(key) ?? this.model.given(evidence);
    this.kept.delete(key);
    this.kept.set(key, found);
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value!);
    return found;
  }
}
