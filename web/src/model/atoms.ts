/** Atoms of dictionaries: one-dimensional laws in closed form, as families of Python's package have them. */

import type { Matrix } from "./container.ts";
import { betainc, gammainc, gammaln, ndtr } from "./special.ts";
import { Warp, type WarpParts } from "./warp.ts";

const LOG_ROOT_TAU = 0.5 * Math.log(2 * Math.PI);
const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number;

/** A family as it is packed: its name, and its parameters. */
export type FamilyParts = { family: string; base?: FamilyParts } & Record<string, unknown>;

/** A batch of laws. */
export interface Family {
  readonly size: number;
  /** Whether the base measure counts points. */
  readonly discrete: boolean;
  /** Location of atom i if it is a single point. */
  readonly points?: ArrayLike<number>;
  /** P(low ≤ X ≤ high) of atom i. */
  mass(i: number, low: number, high: number): number;
  /** Log-density of atom i, or the logarithm of its mass at x. */
  logpdf(i: number, x: number): number;
}

/** A continuous law by its two tails, each exact, and its log-density. */
interface Law {
  size: number;
  cdf(i: number, x: number): number;
  sf(i: number, x: number): number;
  logpdf(i: number, x: number): number;
}

class Continuous implements Family {
  readonly discrete = false;
  constructor(private readonly law: Law) {}
  get size(): number {
    return this.law.size;
  }
  mass(i: number, low: number, high: number): number {
    if (!(low < high)) return 0;
    if (low === NEGATIVE_INFINITY) return high === POSITIVE_INFINITY ? 1 : this.law.cdf(i, high);
    if (high === POSITIVE_INFINITY) return this.law.sf(i, low);
    const below = this.law.cdf(i, low);
    return Math.max(below > 0.5 ? this.law.sf(i, low) - this.law.sf(i, high) : this.law.cdf(i, high) - below, 0);
  }
  logpdf(i: number, x: number): number {
    return this.law.logpdf(i, x);
  }
}

type Values = ArrayLike<number>;

function values(parts: FamilyParts, name: string): Values {
  return (parts[name] as Matrix).data;
}

/** A law of loc + scale Z with Z symmetric about zero. */
function symmetric(
  parts: FamilyParts,
  cdf: (z: number, i: number) => number,
  log: (z: number, i: number) => number,
): Law {
  const [loc, scale] = [values(parts, "loc"), values(parts, "scale")];
  return {
    size: loc.length,
    cdf: (i, x) => cdf((x - loc[i]) / scale[i], i),
    sf: (i, x) => cdf((loc[i] - x) / scale[i], i),
    logpdf: (i, x) => log((x - loc[i]) / scale[i], i) - Math.log(scale[i]),
  };
}

function studentCdf(z: number, df: number): number {
  const square = z * z;
  const tail = 0.5 * betainc(0.5 * df, 0.5, df / (df + square), square / (df + square));
  return z < 0 ? tail : 1 - tail;
}

const LAWS: Record<string, (parts: FamilyParts) => Law> = {
  gaussian: (parts) => symmetric(parts, ndtr, (z) => -0.5 * z * z - LOG_ROOT_TAU),
  laplace: (parts) =>
    symmetric(
      parts,
      (z) => (z < 0 ? 0.5 * Math.exp(z) : 1 - 0.5 * Math.exp(-z)),
      (z) => -Math.abs(z) - Math.LN2,
    ),
  cauchy: (parts) =>
    symmetric(
      parts,
      (z) => (z < -1 ? Math.atan(-1 / z) / Math.PI : 0.5 + Math.atan(z) / Math.PI),
      (z) => -Math.log(Math.PI * (1 + z * z)),
    ),
  logistic: (parts) =>
    symmetric(
      parts,
      (z) => (z < 0 ? Math.exp(z) / (1 + Math.exp(z)) : 1 / (1 + Math.exp(-z))),
      (z) => -Math.abs(z) - 2 * Math.log1p(Math.exp(-Math.abs(z))),
    ),
  student_t: (parts) => {
    const df = values(parts, "df");
    return symmetric(
      parts,
      (z, i) => studentCdf(z, df[i]),
      (z, i) =>
        gammaln(0.5 * (df[i] + 1)) -
        gammaln(0.5 * df[i]) -
        0.5 * Math.log(Math.PI * df[i]) -
        0.5 * (df[i] + 1) * Math.log1p((z * z) / df[i]),
    );
  },
  generalized_gaussian: (parts) => {
    const shape = values(parts, "shape");
    return symmetric(
      parts,
      (z, i) => {
        const tail = 0.5 * gammainc(1 / shape[i], Math.abs(z) ** shape[i])[1];
        return z < 0 ? tail : 1 - tail;
      },
      (z, i) => -(Math.abs(z) ** shape[i]) - gammaln(1 / shape[i]) + Math.log(0.5 * shape[i]),
    );
  },
  uniform: (parts) => {
    const [low, high] = [values(parts, "low"), values(parts, "high")];
    const share = (t: number) => Math.min(Math.max(t, 0), 1);
    return {
      size: low.length,
      cdf: (i, x) => share((x - low[i]) / (high[i] - low[i])),
      sf: (i, x) => share((high[i] - x) / (high[i] - low[i])),
      logpdf: (i, x) => (low[i] <= x && x <= high[i] ? -Math.log(high[i] - low[i]) : NEGATIVE_INFINITY),
    };
  },
  exponential: (parts) => {
    const [origin, scale, direction] = ["origin", "scale", "direction"].map((name) => values(parts, name));
    const distance = (i: number, x: number) => (direction[i] * (x - origin[i])) / scale[i];
    const near = (z: number) => (z > 0 ? -Math.expm1(-z) : 0);
    const far = (z: number) => (z > 0 ? Math.exp(-z) : 1);
    return {
      size: origin.length,
      cdf: (i, x) => (direction[i] > 0 ? near : far)(distance(i, x)),
      sf: (i, x) => (direction[i] > 0 ? far : near)(distance(i, x)),
      logpdf: (i, x) => (distance(i, x) >= 0 ? -distance(i, x) - Math.log(scale[i]) : NEGATIVE_INFINITY),
    };
  },
  gamma: (parts) => {
    const [shape, scale, origin] = ["shape", "scale", "origin"].map((name) => values(parts, name));
    return {
      size: shape.length,
      cdf: (i, x) => gammainc(shape[i], (x - origin[i]) / scale[i])[0],
      sf: (i, x) => gammainc(shape[i], (x - origin[i]) / scale[i])[1],
      logpdf: (i, x) => {
        if (x < origin[i]) return NEGATIVE_INFINITY;
        const z = Math.max((x - origin[i]) / scale[i], shape[i] < 1 ? 2.2250738585072014e-308 : 0);
        const power = shape[i] === 1 ? 0 : (shape[i] - 1) * Math.log(z);
        return power - z - gammaln(shape[i]) - Math.log(scale[i]);
      },
    };
  },
  log_normal: (parts) => {
    const [mean, deviation, origin] = ["log_mean", "log_std", "origin"].map((name) => values(parts, name));
    const standard = (i: number, x: number) =>
      x > origin[i] ? (Math.log(x - origin[i]) - mean[i]) / deviation[i] : NEGATIVE_INFINITY;
    return {
      size: mean.length,
      cdf: (i, x) => ndtr(standard(i, x)),
      sf: (i, x) => ndtr(-standard(i, x)),
      logpdf: (i, x) => {
        if (x <= origin[i]) return NEGATIVE_INFINITY;
        const y = standard(i, x);
        return -0.5 * y * y - Math.log(x - origin[i]) - Math.log(deviation[i]) - LOG_ROOT_TAU;
      },
    };
  },
  beta: (parts) => {
    const [a, b, low, high] = ["a", "b", "low", "high"].map((name) => values(parts, name));
    const power = (u: number, exponent: number) =>
      exponent === 0 ? 0 : exponent * Math.log(exponent < 0 ? Math.max(u, 2.2250738585072014e-308) : u);
    const up = (i: number, x: number) => Math.min(Math.max((x - low[i]) / (high[i] - low[i]), 0), 1);
    const down = (i: number, x: number) => Math.min(Math.max((high[i] - x) / (high[i] - low[i]), 0), 1);
    return {
      size: a.length,
      cdf: (i, x) => betainc(a[i], b[i], up(i, x), down(i, x)),
      sf: (i, x) => betainc(b[i], a[i], down(i, x), up(i, x)),
      logpdf: (i, x) => {
        if (x < low[i] || x > high[i]) return NEGATIVE_INFINITY;
        const kernel = power(up(i, x), a[i] - 1) + power(down(i, x), b[i] - 1);
        return kernel - gammaln(a[i]) - gammaln(b[i]) + gammaln(a[i] + b[i]) - Math.log(high[i] - low[i]);
      },
    };
  },
};

/** The points that a family consists of. */
class Points implements Family {
  readonly discrete = true;
  constructor(readonly points: Values) {}
  get size(): number {
    return this.points.length;
  }
  mass(i: number, low: number, high: number): number {
    return low <= this.points[i] && this.points[i] <= high ? 1 : 0;
  }
  logpdf(i: number, x: number): number {
    return this.points[i] === x ? 0 : NEGATIVE_INFINITY;
  }
}

/** A continuous family cut to intervals. */
class Truncated implements Family {
  readonly discrete = false;
  private readonly total: Float64Array;
  constructor(
    private readonly base: Family,
    private readonly low: (i: number) => number,
    private readonly high: (i: number) => number,
  ) {
    this.total = Float64Array.from({ length: base.size }, (_, i) => base.mass(i, low(i), high(i)));
  }
  get size(): number {
    return this.base.size;
  }
  mass(i: number, low: number, high: number): number {
    const part = this.base.mass(i, Math.max(low, this.low(i)), Math.min(high, this.high(i)));
    return Math.min(part / this.total[i], 1);
  }
  logpdf(i: number, x: number): number {
    if (x < this.low(i) || x > this.high(i)) return NEGATIVE_INFINITY;
    return this.base.logpdf(i, x) - Math.log(this.total[i]);
  }
}

/** Integers: each has the mass of the base half a unit around it. */
class Lattice implements Family {
  readonly discrete = true;
  constructor(private readonly base: Family) {}
  get size(): number {
    return this.base.size;
  }
  mass(i: number, low: number, high: number): number {
    return this.base.mass(i, Math.ceil(low) - 0.5, Math.floor(high) + 0.5);
  }
  logpdf(i: number, x: number): number {
    return x === Math.floor(x) ? Math.log(this.base.mass(i, x - 0.5, x + 0.5)) : NEGATIVE_INFINITY;
  }
}

/** A family seen through a warp. */
class Warped implements Family {
  readonly discrete = false;
  constructor(
    private readonly base: Family,
    private readonly warp: Warp,
  ) {}
  get size(): number {
    return this.base.size;
  }
  mass(i: number, low: number, high: number): number {
    return this.base.mass(i, this.warp.at(low), this.warp.at(high));
  }
  logpdf(i: number, x: number): number {
    return this.base.logpdf(i, this.warp.at(x)) + this.warp.logSlope(x);
  }
}

function family(parts: FamilyParts): Family {
  const law = LAWS[parts.family];
  if (law) return new Continuous(law(parts));
  switch (parts.family) {
    case "point_mass":
      return new Points(values(parts, "loc"));
    case "category":
      return new Points(values(parts, "code"));
    case "lattice":
      return new Lattice(family(parts.base!));
    case "warped":
      return new Warped(family(parts.base!), new Warp(parts as unknown as WarpParts));
    case "truncated":
      return new Truncated(family(parts.base!), end(parts.low, NEGATIVE_INFINITY), end(parts.high, POSITIVE_INFINITY));
    default:
      throw new Error(`The page does not know the family ${parts.family}.`);
  }
}

/** An end of an interval: a number for all atoms, an array, or nothing. */
function end(value: unknown, open: number): (i: number) => number {
  if (value === null || typeof value === "number") return () => (value as number | null) ?? open;
  const { data } = value as Matrix;
  return (i) => data[i];
}

/**
 * What is known of a number: a point, a closed interval, or one of several values. Categories are their codes. A bare
 * interval is without the spikes of its column.
 */
export type Region =
  | { readonly kind: "point"; readonly value: number }
  | { readonly kind: "interval"; readonly low: number; readonly high: number; readonly bare?: boolean }
  | { readonly kind: "values"; readonly values: readonly number[] };

/** The atoms of one column. */
export class Dictionary {
  readonly size: number;
  /** Locations of point masses among densities. */
  readonly spikes: ReadonlySet<number>;
  private readonly families: readonly Family[];
  private readonly continuous: boolean;
  private codeList: readonly number[] | undefined;

  constructor(parts: readonly FamilyParts[]) {
    this.families = parts.map(family);
    this.size = this.families.reduce((sum, each) => sum + each.size, 0);
    this.continuous = this.families.some((each) => !each.discrete);
    this.spikes = new Set(this.families.flatMap((each) => Array.from(each.points ?? [])));
  }

  /** Codes of the atoms of a categorical column. */
  codes(): readonly number[] {
    this.codeList ??= this.families.flatMap((each) => Array.from(each.points ?? []));
    return this.codeList;
  }

  /** P(region) under each atom; a point counts by its probability. */
  masses(region: Region): Float64Array {
    const out = new Float64Array(this.size);
    if (region.kind === "interval") this.addInterval(out, region.low, region.high, region.bare);
    else for (const value of region.kind === "point" ? [region.value] : region.values) this.addPoint(out, value);
    return out;
  }

  /** Likelihood of what is known under each atom: a density at a point, else a probability. */
  likelihoods(region: Region): Float64Array {
    return region.kind === "point" ? this.densities(region.value) : this.masses(region);
  }

  /** Density of each atom at a value; where there is a point mass, only point masses count. */
  densities(value: number): Float64Array {
    const out = new Float64Array(this.size);
    const spike = this.continuous && this.spikes.has(value);
    let start = 0;
    for (const each of this.families) {
      if (!spike || each.discrete) {
        for (let i = 0; i < each.size; i++) out[start + i] = Math.exp(each.logpdf(i, value));
      }
      start += each.size;
    }
    return out;
  }

  /** Masses of the cells of a column that lie in a region, by rows: the intervals between edges, then the spikes. */
  cells(edges: ArrayLike<number>, spikes: ArrayLike<number>, low: number, high: number): Float64Array {
    const n = edges.length + 1;
    const out = new Float64Array((n + spikes.length) * this.size);
    for (let k = 0; k < n; k++) {
      const from = Math.max(k ? edges[k - 1] : NEGATIVE_INFINITY, low);
      const to = Math.min(k < edges.length ? edges[k] : POSITIVE_INFINITY, high);
      if (from > to) continue;
      let start = k * this.size;
      for (const each of this.families) {
        // a point of a column with spikes has a cell of its own
        if (!(each.points && spikes.length))
          for (let i = 0; i < each.size; i++) out[start + i] = each.mass(i, from, to);
        start += each.size;
      }
    }
    for (let s = 0; s < spikes.length; s++) {
      if (spikes[s] < low || spikes[s] > high) continue;
      this.addPoint(out.subarray((n + s) * this.size, (n + s + 1) * this.size), spikes[s]);
    }
    return out;
  }

  private addInterval(out: Float64Array, low: number, high: number, bare?: boolean): void {
    let start = 0;
    for (const each of this.families) {
      if (!(bare && each.points)) for (let i = 0; i < each.size; i++) out[start + i] += each.mass(i, low, high);
      start += each.size;
    }
  }

  private addPoint(out: Float64Array, value: number): void {
    let start = 0;
    for (const each of this.families) {
      if (each.discrete) for (let i = 0; i < each.size; i++) out[start + i] += Math.exp(each.logpdf(i, value));
      start += each.size;
    }
  }
}
