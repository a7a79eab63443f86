/** An increasing map of the line: a rational quadratic spline, straight beyond its ends (Gregory and Delbourgo). */

import type { Matrix } from "./container.ts";

export interface WarpParts {
  x: Matrix;
  w: Matrix;
  slopes: Matrix;
}

export class Warp {
  private readonly x: ArrayLike<number>;
  private readonly w: ArrayLike<number>;
  private readonly slopes: ArrayLike<number>;

  constructor(parts: WarpParts) {
    this.x = parts.x.data;
    this.w = parts.w.data;
    this.slopes = parts.slopes.data;
  }

  /** w(x). */
  at(x: number): number {
    if (!Number.isFinite(x)) return x;
    const k = piece(this.x, x);
    const width = this.x[k + 1] - this.x[k];
    const rise = this.w[k + 1] - this.w[k];
    const t = (x - this.x[k]) / width;
    const [s, d0, d1] = [rise / width, this.slopes[k], this.slopes[k + 1]];
    if (t < 0) return this.w[k] + t * width * d0;
    if (t > 1) return this.w[k + 1] + (t - 1) * width * d1;
    const both = t * (1 - t);
    return this.w[k] + (rise * (s * t * t + d0 * both)) / (s + (d0 + d1 - 2 * s) * both);
  }

  /** log w'(x). */
  logSlope(x: number): number {
    const k = piece(this.x, x);
    const width = this.x[k + 1] - this.x[k];
    const s = (this.w[k + 1] - this.w[k]) / width;
    const t = Math.min(Math.max((x - this.x[k]) / width, 0), 1);
    const [d0, d1, both] = [this.slopes[k], this.slopes[k + 1], t * (1 - t)];
    const top = d1 * t * t + 2 * s * both + d0 * (1 - t) * (1 - t);
    return 2 * Math.log(s) + Math.log(top) - 2 * Math.log(s + (d0 + d1 - 2 * s) * both);
  }

  /** x with w(x) = w. */
  inverse(w: number): number {
    const k = piece(this.w, w);
    const rise = this.w[k + 1] - this.w[k];
    const width = this.x[k + 1] - this.x[k];
    const share = (w - this.w[k]) / rise;
    const s = rise / width;
    if (share <= 0) return this.x[k] + (share * rise) / this.slopes[k];
    if (share >= 1) return this.x[k + 1] + ((share - 1) * rise) / this.slopes[k + 1];
    const [first, last] = [this.slopes[k] / s, this.slopes[k + 1] / s];
    const bend = share * (first + last - 2);
    const [a, b, c] = [1 - first + bend, first - bend, -share];
    const t = (2 * c) / (-b - Math.sqrt(Math.max(b * b - 4 * a * c, 0)));
    return this.x[k] + width * Math.min(Math.max(t, 0), 1);
  }
}

/** The piece between knots that holds a value, the first or last for values outside. */
function piece(knots: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = knots.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (knots[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}
