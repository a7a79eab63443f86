/** The mathematics against SciPy's figures and against itself. */

import { describe, expect, test } from "vitest";
import { Dictionary, type FamilyParts } from "../src/model/atoms.ts";
import { addCut, Bins } from "../src/model/gaussian.ts";
import {
  betainc,
  fastNdtr,
  gammainc,
  gammaln,
  intervalMass,
  logInterval,
  logNdtr,
  ndtr,
  ndtri,
} from "../src/model/special.ts";
import { Warp } from "../src/model/warp.ts";
import { gaussLegendre, inside, windowNodes } from "../src/model/window.ts";

const array = (...values: number[]) => ({ data: Float64Array.from(values), shape: [values.length] });
const near = (found: number, expected: number, relative = 1e-12) =>
  expect(Math.abs(found - expected)).toBeLessThanOrEqual(relative * Math.abs(expected));

describe("special functions", () => {
  test.each([
    [-30, 4.906713927148187e-198],
    [-8, 6.22096057427174e-16],
    [-1.5, 0.06680720126885807],
    [0.3, 0.6179114221889526],
  ])("ndtr(%d)", (x, expected) => near(ndtr(x), expected));
  test("log_ndtr", () => {
    near(logNdtr(-40), -804.6084420137538);
    near(logNdtr(-3), -6.607726221510349);
    near(logNdtr(2), -0.023012909328963486);
  });
  test("the table of ndtr", () => {
    for (let x = -8.5; x < 8.5; x += 0.0137) expect(Math.abs(fastNdtr(x) - ndtr(x))).toBeLessThan(2e-11);
  });
  test("intervals in the middle, in a tail and narrow", () => {
    near(Math.exp(logInterval(-1, 2)), ndtr(2) - ndtr(-1));
    near(logInterval(40, Number.POSITIVE_INFINITY), -804.6084420137538);
    near(logInterval(-3, -2.9999), Math.log(1e-4) - 0.5 * 2.99995 ** 2 - 0.5 * Math.log(2 * Math.PI), 1e-8);
    expect(logInterval(1, 1)).toBe(Number.NEGATIVE_INFINITY);
    near(intervalMass(5, 6), Math.exp(logInterval(5, 6)), 1e-7);
  });
  test("ndtri undoes ndtr", () => {
    for (const x of [-7, -2.5, -0.1, 0.4, 3]) expect(ndtri(ndtr(x))).toBeCloseTo(x, 9);
  });
  test("gamma and beta", () => {
    near(gammaln(0.1), 2.252712651734206);
    near(gammaln(150), 600.0094705553274);
    near(gammainc(0.5, 0.1)[0], 0.34527915398142306);
    near(gammainc(3, 10)[1], 0.0027693957155115767);
    near(gammainc(100, 80)[0], 0.0171083130351331, 1e-10);
    near(betainc(0.5, 0.5, 0.2), 0.2951672353008665);
    near(betainc(30, 70, 0.1), 1.8929897218613885e-8, 1e-10);
  });
});

/** By scipy.stats.multivariate_normal. */
const BOX_TWO = 0.3320076908968947;
const BOX_THREE = 0.2012635453;

describe("windows", () => {
  const covariance = [1, 0.5, 0.3, 0.5, 1, -0.2, 0.3, -0.2, 1];
  test("Gauss and Legendre", () => {
    const [nodes, weights] = gaussLegendre(8);
    near(
      nodes.reduce((sum, x, i) => sum + weights[i] * x ** 14, 0),
      2 / 15,
      1e-12,
    );
  });
  test("one, two and three coordinates", () => {
    const one = windowNodes([0], [1], [-1], [1], 0, 1);
    near(Math.exp(one.logMass), ndtr(1) - ndtr(-1), 1e-9);
    const two = windowNodes([0, 0], [1, 0.5, 0.5, 1], [-1, 0], [1, 2], 0, 1);
    near(Math.exp(two.logMass), BOX_TWO, 1e-7);
    const three = windowNodes([0, 0, 0], covariance, [-1, 0, -0.5], [1, 2, 3], 0, 1);
    near(Math.exp(three.logMass), BOX_THREE, 1e-4);
    for (let i = 0; i < three.weights.length; i++) {
      expect(three.points[3 * i]).toBeGreaterThanOrEqual(-1);
      expect(three.points[3 * i + 1]).toBeLessThanOrEqual(2);
    }
  });
  test("open windows have finite points, and those that count for little have few", () => {
    const [open, end] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    const full = windowNodes([0, 0, 0], covariance, [open, open, 0.5], [1, end, end], 0, 1);
    const slight = windowNodes([0, 0, 0], covariance, [open, open, 0.5], [1, end, end], 0, 1e-3);
    for (const { points, weights } of [full, slight]) {
      expect(points.every(Number.isFinite)).toBe(true);
      near(
        weights.reduce((sum, w) => sum + w, 0),
        1,
        1e-12,
      );
    }
    expect(slight.weights.length).toBeLessThan(0.01 * full.weights.length);
    near(slight.logMass, full.logMass, 0.05);
  });
  test("a point inside a window, even far out", () => {
    for (const [a, b] of [
      [-1, 2],
      [10, 12],
      [-40, -39],
      [30, Number.POSITIVE_INFINITY],
    ]) {
      const z = inside(a, b, 0.5);
      expect(z).toBeGreaterThan(a);
      expect(z).toBeLessThan(b);
      expect(logInterval(a, z) - logInterval(a, b)).toBeCloseTo(Math.log(0.5), 1);
    }
  });
});

describe("Gaussians in cells", () => {
  const edges = Float64Array.of(-2, -0.5, 0, 0.75, 3);
  test("a cut Gaussian, by the table and far out", () => {
    for (const [mean, scale, low, high] of [
      [0.2, 1, -0.5, 0.75],
      [0.2, 1, -0.3, Number.POSITIVE_INFINITY],
      [9, 1, -1.5, 0.4],
      [-30, 1, 0.1, 0.6],
    ]) {
      const out = new Float64Array(edges.length + 1);
      addCut(edges, mean, scale, low, high, 1, out, true);
      const whole = logInterval((low - mean) / scale, (high - mean) / scale);
      for (let k = 0; k < out.length; k++) {
        const from = Math.max(k ? edges[k - 1] : Number.NEGATIVE_INFINITY, low);
        const to = Math.min(k < edges.length ? edges[k] : Number.POSITIVE_INFINITY, high);
        const expected = from < to ? Math.exp(logInterval((from - mean) / scale, (to - mean) / scale) - whole) : 0;
        expect(Math.abs(out[k] - expected)).toBeLessThan(1e-7);
      }
    }
  });
  test("means close together become one Gaussian with the same moments", () => {
    const nodes = windowNodes([0.5], [2], [-1], [3], 0, 1);
    const bins = new Bins();
    bins.gather(nodes, nodes.weights, 0.3, Float64Array.of(0.8), 0, 0.4, 1);
    const moments = [0, 1, 2].map((power) =>
      Array.from(bins.weights.subarray(0, bins.length)).reduce((sum, w, i) => {
        const [mean, variance] = [bins.means[i], bins.scales[i] ** 2];
        return sum + w * [1, mean, mean * mean + variance][power];
      }, 0),
    );
    const each = (f: (mean: number) => number) =>
      nodes.weights.reduce((sum, w, i) => sum + w * f(0.3 + 0.8 * nodes.points[i]), 0);
    near(moments[0], 1, 1e-12);
    near(
      moments[1],
      each((mean) => mean),
      1e-12,
    );
    near(
      moments[2],
      each((mean) => mean * mean + 0.16),
      1e-12,
    );
  });
});

describe("warps and atoms", () => {
  const warp = new Warp({ x: array(-2, 0, 1, 5), w: array(-3, 0, 0.5, 4), slopes: array(1, 1, 0.4, 2) });
  test("a warp and its inverse", () => {
    for (let x = -6; x < 9; x += 0.37) {
      expect(warp.inverse(warp.at(x))).toBeCloseTo(x, 10);
      const slope = (warp.at(x + 1e-6) - warp.at(x - 1e-6)) / 2e-6;
      expect(Math.exp(warp.logSlope(x))).toBeCloseTo(slope, 4);
    }
  });
  const families: FamilyParts[] = [
    { family: "gaussian", loc: array(0), scale: array(1.5) },
    { family: "laplace", loc: array(0.5), scale: array(1) },
    { family: "student_t", df: array(4.5), loc: array(0), scale: array(1) },
    { family: "cauchy", loc: array(0), scale: array(1) },
    { family: "logistic", loc: array(0), scale: array(1) },
    { family: "generalized_gaussian", shape: array(1.4), loc: array(0), scale: array(1) },
    { family: "uniform", low: array(-1), high: array(2) },
    { family: "exponential", origin: array(0), scale: array(2), direction: array(-1) },
    { family: "gamma", shape: array(2.5), scale: array(1), origin: array(-1) },
    { family: "log_normal", log_mean: array(0), log_std: array(0.6), origin: array(-1) },
    { family: "beta", a: array(2), b: array(1.5), low: array(-1), high: array(3) },
    { family: "truncated", base: { family: "gaussian", loc: array(0), scale: array(1) }, low: -1, high: null },
  ];
  test.each(families)("the density of $family is the slope of its mass", (parts) => {
    const dictionary = new Dictionary([parts]);
    for (const x of [-0.7, 0.3, 1.4]) {
      const [mass] = dictionary.masses({ kind: "interval", low: x - 1e-4, high: x + 1e-4 });
      expect(mass / 2e-4).toBeCloseTo(dictionary.densities(x)[0], 5);
    }
    const whole = { kind: "interval", low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY } as const;
    expect(dictionary.masses(whole)[0]).toBeCloseTo(1, 12);
  });
  test("integers and spikes", () => {
    const lattice = new Dictionary([{ family: "lattice", base: families[0] }]);
    const [at] = lattice.masses({ kind: "values", values: [0, 1] });
    expect(at).toBeCloseTo(lattice.masses({ kind: "interval", low: 0, high: 1 })[0], 14);
    expect(lattice.densities(0.5)[0]).toBe(0);
    const spiked = new Dictionary([families[0], { family: "point_mass", loc: array(0) }]);
    expect([...spiked.densities(0)]).toEqual([0, 1]);
    expect([...spiked.masses({ kind: "interval", low: -1, high: 1, bare: true })][1]).toBe(0);
  });
});
