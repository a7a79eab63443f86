/** What the page computes is what Python computes: the file is written by `python -m tests.explore.parity`. */

import { createReadStream, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { unpacked } from "../src/model/container.ts";
import { Model, type ModelParts, type Region } from "../src/model/model.ts";

interface Line {
  sort: string;
  seed: number;
  model: string;
  answers: {
    evidence: [number, Region | { kind: "interval"; low: number | null; high: number | null }][];
    log: number | null;
    windows: number;
    margins: Record<string, number[]>;
  }[];
}

const file = process.env.PARITY_FILE ?? "";
/** Largest difference of a probability: with no window, one, and more. */
const TOLERANCES: Record<string, [number, number, number]> = {
  product: [1e-6, 1e-6, 1e-6],
  forest: [1e-6, 1e-6, 1e-6],
  sum: [1e-6, 1e-6, 1e-6],
  block: [1e-5, 1e-4, 1e-3],
  given: [1e-3, 1e-3, 1e-3],
  short: [1e-6, 1e-6, 1e-6],
};

function region(given: Line["answers"][number]["evidence"][number][1]): Region {
  if (given.kind !== "interval") return given;
  return { kind: "interval", low: given.low ?? Number.NEGATIVE_INFINITY, high: given.high ?? Number.POSITIVE_INFINITY };
}

test.skipIf(!existsSync(file))("marginals and probabilities equal Python's", { timeout: 600_000 }, async () => {
  const worst: Record<string, { error: number; log: number; events: number; where: string }> = {};
  const densities: Record<string, number> = {};
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const line = JSON.parse(text) as Line;
    densities[line.sort] = (densities[line.sort] ?? 0) + 1;
    const model = new Model((await unpacked(line.model)) as ModelParts);
    for (const [k, answer] of line.answers.entries()) {
      const windows = Math.min(answer.windows, 2);
      const key = ["block", "given"].includes(line.sort)
        ? `${line.sort}, ${["no", "one", "more"][windows]} windows`
        : line.sort;
      worst[key] ??= { error: 0, log: 0, events: 0, where: "" };
      const own = worst[key];
      own.events++;
      const posterior = model.given(new Map(answer.evidence.map(([n, each]) => [n, region(each)])));
      if (answer.log !== null) own.log = Math.max(own.log, Math.abs(posterior.logEvidence - answer.log));
      for (const [n, expected] of Object.entries(answer.margins)) {
        const found = posterior.margin(Number(n));
        expect(found.length).toBe(expected.length);
        for (let i = 0; i < found.length; i++) {
          const error = Math.abs(found[i] - expected[i]);
          if (!(error <= own.error)) {
            own.error = error;
            own.where = `density ${line.seed}, event ${k}, column ${n}, cell ${i}: ${found[i]} for ${expected[i]}`;
          }
        }
      }
    }
  }
  console.log(JSON.stringify({ densities, worst }, null, 1));
  for (const [key, own] of Object.entries(worst)) {
    const [sort, windows] = key.split(", ");
    const place = windows ? ["no windows", "one windows", "more windows"].indexOf(windows) : 0;
    expect(own.error, `${key}: ${own.where}`).toBeLessThan(TOLERANCES[sort][place]);
  }
});
