/** What a person knows of a column, as they say it, and as the model takes it. */

import type { Column, Evidence, Region } from "../model/model.ts";

/** Some categories (or some values of an integer), a closed range (null for an open end), or one value. */
export type Known =
  | { readonly kind: "set"; readonly codes: readonly number[] }
  | { readonly kind: "range"; readonly low: number | null; readonly high: number | null }
  | { readonly kind: "value"; readonly value: number };

export type Condition = ReadonlyMap<number, Known>;

/** Largest distance from a multiple of the step, in steps, that is taken for rounding. */
const SLACK = 1e-6;

/** A range or a value of a number; undefined if it says nothing. */
export function range(low: number | null, high: number | null): Known | undefined {
  if (low === null && high === null) return undefined;
  if (low !== null && low === high) return { kind: "value", value: low };
  return low !== null && high !== null && low > high
    ? { kind: "range", low: high, high: low }
    : { kind: "range", low, high };
}

/** One of several integers; undefined if there is none. */
export function setOf(values: readonly (number | null)[]): Known | undefined {
  const found = [...new Set(values)].filter((value) => Number.isSafeInteger(value)) as number[];
  if (found.length < 2) return found.length ? { kind: "value", value: found[0] } : undefined;
  return { kind: "set", codes: found.sort((a, b) => a - b) };
}

/** The region of the model's numbers. */
export function regionOf(column: Column, known: Known): Region {
  if (known.kind === "set") {
    return known.codes.length === 1
      ? { kind: "point", value: known.codes[0] }
      : { kind: "values", values: known.codes };
  }
  if (known.kind === "value") return { kind: "point", value: known.value };
  let low = known.low ?? Number.NEGATIVE_INFINITY;
  let high = known.high ?? Number.POSITIVE_INFINITY;
  const { step } = column;
  if (step) {
    // the numbers that are rounded into the range
    low = Math.ceil(low / step - SLACK) * step - step / 2;
    high = Math.floor(high / step + SLACK) * step + step / 2;
  }
  return { kind: "interval", low, high };
}

export function evidenceOf(columns: readonly Column[], condition: Condition): Evidence {
  return new Map([...condition].map(([n, known]) => [n, regionOf(columns[n], known)]));
}

/** Whether the evidence names a single value of a number, so that it has a density and no probability. */
export function hasDensity(columns: readonly Column[], condition: Condition): boolean {
  return [...condition].some(([n, known]) => {
    if (known.kind !== "value" || columns[n].kind !== "continuous") return false;
    return !Array.prototype.includes.call(columns[n].spikes, known.value);
  });
}

// ---- in the address ------------------------------------------------------------------------------------------------

/** A condition as a short text: `0r12.5~14_3s0.2_5v1`. */
export function written(condition: Condition): string {
  return [...condition]
    .map(([n, known]) => {
      if (known.kind === "set") return `${n}s${known.codes.join(".")}`;
      if (known.kind === "value") return `${n}v${known.value}`;
      return `${n}r${known.low ?? ""}~${known.high ?? ""}`;
    })
    .join("_");
}

/** What `written` wrote; whatever cannot be read, or does not fit the columns, is left out. */
export function readCondition(text: string, columns: readonly Column[]): Condition {
  const found = new Map<number, Known>();
  for (const part of text.split("_")) {
    const match = /^(\d{1,6})([srv])(.*)$/.exec(part);
    const column = match && columns[Number(match[1])];
    if (!match || !column) continue;
    const known = readKnown(match[2], match[3], column);
    if (known) found.set(Number(match[1]), known);
  }
  return found;
}

function readKnown(kind: string, text: string, column: Column): Known | undefined {
  const { categories } = column;
  if (categories) {
    const codes =
      kind === "s"
        ? text
            .split(".")
            .filter((each) => /^\d+$/.test(each))
            .map(Number)
        : [];
    const known = [...new Set(codes)].filter((code) => code < categories.length).sort((a, b) => a - b);
    return known.length ? { kind: "set", codes: known } : undefined;
  }
  if (kind === "s") return column.kind === "integer" ? setOf(text.split(".").map(number)) : undefined;
  if (kind === "v") return number(text) === null ? undefined : { kind: "value", value: Number(text) };
  const [low, high] = text.split("~").map(number);
  return kind === "r" ? range(low ?? null, high ?? null) : undefined;
}

function number(text: string): number | null {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
}
