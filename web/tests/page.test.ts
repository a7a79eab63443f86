/** What the page says and keeps, without a browser. */

import { describe, expect, test } from "vitest";
import { Column } from "../src/model/columns.ts";
import { between, cellAt, moved } from "../src/page/brush.ts";
import { readCondition, regionOf, setOf, written } from "../src/page/known.ts";
import { distance, divergence, summary } from "../src/page/summary.ts";
import { chance, dateText, daysOf, percent, phrase, shown, visible } from "../src/page/words.ts";

const array = (values: number[]) => ({ data: Float64Array.from(values), shape: [values.length] });
const range = (from: number, to: number, step = 1) =>
  Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => from + i * step);
const pay = new Column({
  name: "pay",
  kind: "continuous",
  dtype: "float64",
  edges: array(range(0, 100, 10)),
  ends: [-5, 105],
  spikes: array([0]),
  step: 0,
});
const price = new Column({
  name: "price",
  kind: "continuous",
  dtype: "float64",
  edges: array(range(-0.05, 2.05, 0.1)),
  ends: [-1, 3],
  spikes: array([]),
  step: 0.1,
});
const rooms = new Column({
  name: "rooms",
  kind: "integer",
  dtype: "int64",
  edges: array(range(0.5, 6.5)),
  ends: [0, 8],
  spikes: array([]),
});
const day = new Column({
  name: "day",
  kind: "continuous",
  dtype: "date",
  edges: array(range(-0.5, 99.5, 10)),
  ends: [-10, 110],
  spikes: array([]),
  step: 1,
});
const job = new Column({ name: "job", kind: "categorical", dtype: "string", categories: ["cook", "nurse", "clerk"] });
const columns = [pay, price, rooms, day, job];

describe("conditions", () => {
  test("survive the address", () => {
    for (const text of ["0r12.5~40_4s0.2", "0r~40", "2v3", "3r10~", "1r-1e-7~2e+21", "2s-1.3.5", ""]) {
      expect(written(readCondition(text, columns))).toBe(text);
    }
  });
  test("leave out what cannot be", () => {
    expect(written(readCondition("9s1_4s7_4sx_0vNaN_0r~_0s1_2s1e400.x_junk_2r5~3", columns))).toBe("2r3~5");
  });
  test("hold several integers", () => {
    const known = readCondition("2s5.3.3", columns).get(2)!;
    expect(known).toEqual({ kind: "set", codes: [3, 5] });
    expect(regionOf(rooms, known)).toEqual({ kind: "values", values: [3, 5] });
    expect(phrase(rooms, known)).toBe("rooms = 3 or 5");
    expect(setOf([4])).toEqual({ kind: "value", value: 4 });
    expect([pay.few, rooms.few]).toEqual([[], [1, 2, 3, 4, 5, 6]]);
  });
  test("of rounded numbers hold what is rounded into them", () => {
    const found = regionOf(price, { kind: "range", low: 0.3, high: 0.5 });
    expect(found).toMatchObject({ kind: "interval" });
    if (found.kind === "interval") {
      expect(found.low).toBeCloseTo(0.25, 12);
      expect(found.high).toBeCloseTo(0.55, 12);
    }
  });
});

describe("the brush", () => {
  test("gives values, not edges", () => {
    expect(between(pay, 2, 5)).toEqual({ kind: "range", low: 20, high: 50 });
    expect(between(rooms, 1, 3)).toEqual({ kind: "range", low: 2, high: 3 });
    expect(between(price, 4, 6)).toEqual({ kind: "range", low: 0.4, high: 0.5 });
    expect(between(day, 1, 2)).toEqual({ kind: "range", low: 10, high: 19 });
    expect(between(pay, 0, 10)).toBeUndefined();
    expect(between(pay, 3, 3)).toBeUndefined();
  });
  test("moves by keys", () => {
    const first = moved(pay, undefined, 0, "ArrowRight");
    expect(first).toEqual({ kind: "range", low: 10, high: null });
    expect(moved(pay, first ?? undefined, 1, "PageDown")).toEqual({ kind: "range", low: 10, high: 50 });
    expect(moved(pay, first ?? undefined, 0, "Home")).toBeNull();
    expect(moved(pay, undefined, 0, "a")).toBeUndefined();
  });
  test("takes a cell", () => {
    expect(cellAt(rooms, 20)).toEqual({ kind: "value", value: 1 });
    expect(cellAt(pay, 2)).toEqual({ kind: "range", low: null, high: 0 });
  });
});

describe("words", () => {
  test("numbers and dates", () => {
    expect([0, 0.0001, 0.056, 0.4, 0.99999, 1].map(percent)).toEqual(["0%", "<0.1%", "5.6%", "40%", ">99.9%", "100%"]);
    expect([-0.1, -8, -20].map(chance)).toEqual(["90%", "1 in 3\u202f000", "1 in 5·10^8"]);
    expect(dateText(day, 10)).toBe("1970-01-11");
    expect(daysOf("1970-01-11")).toBe(10);
    expect(shown(rooms, 3)).toBe("3");
    expect(phrase(job, { kind: "set", codes: [0, 2] })).toBe("job = cook or clerk");
    expect(phrase(pay, { kind: "range", low: null, high: 12.5 })).toBe("pay ≤ 12.5");
  });
  test("hidden signs are seen", () => {
    expect(visible("a\u202eb\u0000c\ud800")).toBe("a\\u202eb\\u0000c\\ud800");
    expect(visible("\u{1f9d1}\u200d\u{1f680}")).toBe("\u{1f9d1}\u200d\u{1f680}");
    expect(visible("x".repeat(100), 10)).toBe("xxxxxxxxx…");
  });
});

describe("summaries", () => {
  test("of an even law", () => {
    const cells = new Float64Array(pay.size);
    cells.fill(0.1, 1, pay.edges.length); // neither the open cells nor the spike
    const found = summary(pay, cells);
    expect(found.mean).toBeCloseTo(50, 10);
    expect([found.low, found.median, found.high].map(Math.round)).toEqual([10, 50, 90]);
  });
  test("distances", () => {
    const [a, b] = [Float64Array.of(0.5, 0.5), Float64Array.of(1, 0)];
    expect(distance(a, b)).toBe(0.5);
    expect(divergence(b, a)).toBe(1);
  });
});
