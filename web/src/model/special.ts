/** Special functions: the Gaussian's cdf, incomplete gamma and beta functions, to about 14 digits. */

const ROOT_PI = Math.sqrt(Math.PI);
const ROOT_HALF = Math.SQRT1_2;
const LOG_ROOT_TAU = 0.5 * Math.log(2 * Math.PI);
const TINY = 1e-300;

/** Points t = (k + ½) h of the midpoint rule with h = ½, squared, and exp(-t²): enough of them for 16 digits. */
const SQUARES = Float64Array.from({ length: 13 }, (_, k) => (0.5 * (k + 0.5)) ** 2);
const FALLS = SQUARES.map((square) => Math.exp(-square));

/**
 * exp(x²) erfc(x) for x ≥ 0, that is (x / π) ∫ exp(-t²) / (x² + t²) dt by the midpoint rule.
 *
 * What the rule leaves out is, to 1e-17, what the pole at t = ix adds: 2 exp(x²) / (1 + exp(2πx / h)) (Hunter and Regan).
 */
export function erfcx(x: number): number {
  if (x > 1e8) return 1 / (ROOT_PI * x);
  const square = x * x;
  let sum = 0;
  for (let k = 0; k < 13; k++) sum += FALLS[k] / (square + SQUARES[k]);
  const rule = (x / Math.PI) * sum;
  return x < 2 * Math.PI ? rule + (2 * Math.exp(square)) / (1 + Math.exp(4 * Math.PI * x)) : rule;
}

/** P(Z ≤ x) of a standard Gaussian, exact in the lower tail too. */
export function ndtr(x: number): number {
  if (Number.isNaN(x)) return Number.NaN;
  const z = Math.abs(x) * ROOT_HALF;
  if (z > 27.3) return x > 0 ? 1 : 0;
  const tail = 0.5 * Math.exp(-z * z) * erfcx(z);
  return x > 0 ? 1 - tail : tail;
}

/** log P(Z ≤ x). */
export function logNdtr(x: number): number {
  if (x > -1) return Math.log1p(-ndtr(-x));
  const z = -x * ROOT_HALF;
  return Number.isFinite(z) ? Math.log(0.5 * erfcx(z)) - z * z : Number.NEGATIVE_INFINITY;
}

const NODES = [-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526];
const NODE_WEIGHTS = [0.34785484513745385, 0.6521451548625462, 0.6521451548625462, 0.34785484513745385];

/** log P(a < Z ≤ b): by quadrature if narrow, from the nearer tail if not. */
export function logInterval(a: number, b: number): number {
  if (!(a < b)) return Number.NEGATIVE_INFINITY;
  if (a + b < 0) return logInterval(-b, -a); // now the centre is at or above zero
  const width = b - a;
  if (width * Math.max(1, a) <= 0.1) {
    const middle = a + 0.5 * width;
    let sum = 0;
    for (let i = 0; i < 4; i++) {
      const t = 0.5 * width * NODES[i];
      sum += NODE_WEIGHTS[i] * Math.exp(-t * (middle + 0.5 * t));
    }
    return Math.log(0.5 * width * sum) - 0.5 * middle * middle - LOG_ROOT_TAU;
  }
  if (a >= 0) {
    const near = erfcx(a * ROOT_HALF);
    const far = b === Number.POSITIVE_INFINITY ? 0 : erfcx(b * ROOT_HALF) * Math.exp(-0.5 * width * (a + b));
    return Math.log(0.5 * (near - far)) - 0.5 * a * a;
  }
  return Math.log1p(-(ndtr(a) + ndtr(-b)));
}

// ---- a table of the Gaussian's cdf, for the many cells of a card: 1e-11, absolute -----------------------------------

const STEPS = 128;
const REACH = 8;
const SIZE = 2 * REACH * STEPS + 2;
const CDF = new Float64Array(SIZE);
const PDF = new Float64Array(SIZE);
for (let i = 0; i < SIZE; i++) {
  const x = i / STEPS - REACH;
  CDF[i] = ndtr(x);
  PDF[i] = Math.exp(-0.5 * x * x - LOG_ROOT_TAU) / STEPS;
}

/** P(Z ≤ x) to 1e-11, in a few nanoseconds. */
export function fastNdtr(x: number): number {
  if (!(x > -REACH)) return 0;
  if (x >= REACH) return 1;
  const place = (x + REACH) * STEPS;
  const i = place | 0;
  const t = place - i;
  const u = 1 - t;
  return (1 + 2 * t) * u * u * CDF[i] + t * u * u * PDF[i] + t * t * (3 - 2 * t) * CDF[i + 1] - t * t * u * PDF[i + 1];
}

/** P(a < Z ≤ b) to 1e-7 of itself, by the table unless it is small. */
export function intervalMass(a: number, b: number): number {
  const mass = a + b > 0 ? fastNdtr(-a) - fastNdtr(-b) : fastNdtr(b) - fastNdtr(a);
  return mass > 1e-4 ? mass : Math.exp(logInterval(a, b));
}

/** x with P(Z ≤ x) = p (Acklam), to 1e-9 of x; `exact` adds a step of Halley. */
export function ndtri(p: number, exact = true): number {
  const low = 0.02425;
  let x: number;
  if (p <= 0) return Number.NEGATIVE_INFINITY;
  if (p >= 1) return Number.POSITIVE_INFINITY;
  if (p < low || p > 1 - low) {
    const q = Math.sqrt(-2 * Math.log(p < low ? p : 1 - p));
    const value =
      (((((-7.784894002430293e-3 * q - 0.3223964580411365) * q - 2.400758277161838) * q - 2.549732539343734) * q +
        4.374664141464968) *
        q +
        2.938163982698783) /
      ((((7.784695709041462e-3 * q + 0.3224671290700398) * q + 2.445134137142996) * q + 3.754408661907416) * q + 1);
    x = p < low ? value : -value;
  } else {
    const q = p - 0.5;
    const r = q * q;
    x =
      ((((((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r + 138.357751867269) * r -
        30.66479806614716) *
        r +
        2.506628277459239) *
        q) /
      (((((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r + 66.80131188771972) * r -
        13.28068155288572) *
        r +
        1);
  }
  if (!exact) return x;
  const error = ndtr(x) - p;
  const step = error * Math.exp(0.5 * x * x + LOG_ROOT_TAU);
  return Number.isFinite(step) ? x - step / (1 + 0.5 * x * step) : x;
}

// ---- gamma and beta --------------------------------------------------------------------------------------------------

const LANCZOS = [
  0.9999999999998099, 676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
  -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
];

/** log Γ(x), x > 0. */
export function gammaln(x: number): number {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - gammaln(1 - x);
  if (x > 1e7) return (x - 0.5) * Math.log(x) - x + LOG_ROOT_TAU + 1 / (12 * x);
  let sum = LANCZOS[0];
  for (let i = 1; i < 9; i++) sum += LANCZOS[i] / (x - 1 + i);
  const t = x + 6.5;
  return LOG_ROOT_TAU + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** Regularised incomplete gamma functions of shape a at x: the share below, and the share above. */
export function gammainc(a: number, x: number): [number, number] {
  if (x <= 0) return [0, 1];
  if (x === Number.POSITIVE_INFINITY) return [1, 0];
  if (a > 1e5) {
    // Wilson and Hilferty
    const z = (Math.cbrt(x / a) - 1 + 1 / (9 * a)) * 3 * Math.sqrt(a);
    return [ndtr(z), ndtr(-z)];
  }
  const front = Math.exp(a * Math.log(x) - x - gammaln(a));
  if (x < a + 1) {
    let term = 1 / a;
    let sum = term;
    for (let n = 1; n < 100000 && term > sum * 1e-17; n++) {
      term *= x / (a + n);
      sum += term;
    }
    const low = Math.min(front * sum, 1);
    return [low, 1 - low];
  }
  let b = x + 1 - a;
  let c = 1 / TINY;
  let d = 1 / b;
  let h = d;
  for (let i = 1; i < 100000; i++) {
    const an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (Math.abs(d) < TINY) d = TINY;
    c = b + an / c;
    if (Math.abs(c) < TINY) c = TINY;
    d = 1 / d;
    const delta = d * c;
    h *= delta;
    if (Math.abs(delta - 1) < 1e-16) break;
  }
  const high = Math.min(front * h, 1);
  return [1 - high, high];
}

/** Regularised incomplete beta function I_x(a, b); y is 1 - x, given apart so that it keeps its digits. */
export function betainc(a: number, b: number, x: number, y = 1 - x): number {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const front = Math.exp(gammaln(a + b) - gammaln(a) - gammaln(b) + a * Math.log(x) + b * Math.log(y));
  if (x < (a + 1) / (a + b + 2)) return Math.min((front * betaFraction(a, b, x)) / a, 1);
  return Math.max(1 - (front * betaFraction(b, a, y)) / b, 0);
}

function betaFraction(a: number, b: number, x: number): number {
  let c = 1;
  let d = 1 - ((a + b) * x) / (a + 1);
  if (Math.abs(d) < TINY) d = TINY;
  d = 1 / d;
  let h = d;
  for (let m = 1; m < 100000; m++) {
    for (const even of [true, false]) {
      const an = even
        ? (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
        : (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 + an * d;
      if (Math.abs(d) < TINY) d = TINY;
      c = 1 + an / c;
      if (Math.abs(c) < TINY) c = TINY;
      d = 1 / d;
      h *= d * c;
      if (!even && Math.abs(d * c - 1) < 1e-16) return h;
    }
  }
  return h;
}

/** log Σ exp(values); -∞ for none. */
export function logSumExp(values: ArrayLike<number>): number {
  let top = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < values.length; i++) if (values[i] > top) top = values[i];
  if (top === Number.NEGATIVE_INFINITY) return top;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.exp(values[i] - top);
  return top + Math.log(sum);
}
