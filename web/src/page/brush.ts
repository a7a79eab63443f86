/** A range chosen on the picture of a number: by dragging, by its two thumbs, or by keys. */

import type { Column } from "../model/model.ts";
import { type Known, range } from "./known.ts";
import { nearestEdge, SIDE, WIDTH, xScale } from "./shapes.ts";

/** Positions of the thumbs among the edges; null for an open end. */
export interface Thumbs {
  readonly low: number | null;
  readonly high: number | null;
}

/** Half of what separates values from edges, where values are rounded. */
function half(column: Column): number {
  return column.kind === "integer" ? 0.5 : column.step / 2;
}

/** Whether dates are whole days, so that a range ends on the day before an edge. */
function lastOf(column: Column): number {
  return column.dtype === "date" && !half(column) ? 1 : 0;
}

/** What is known if the range goes from one edge to another; open at the ends of the picture. */
export function between(column: Column, from: number, to: number): Known | undefined {
  const last = column.edges.length - 1;
  const [a, b] = [Math.min(from, to), Math.max(from, to)];
  if (a === b) return undefined;
  const low = a === 0 ? null : tidy(column, column.edges[a] + half(column));
  const high = b === last ? null : tidy(column, column.edges[b] - half(column) - lastOf(column));
  return range(low, high);
}

/** Without the noise of sums such as 0.1 + 0.2. */
function tidy(column: Column, value: number): number {
  const { edges } = column;
  const width = Math.abs(edges[1] - edges[0]) || 1;
  return Number(value.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(width)) + 3, 0), 15)));
}

/** Ends of what is known, on the scale of the edges. */
export function ends(column: Column, known: Known | undefined): [number | null, number | null] {
  if (!known || known.kind === "set") return [null, null];
  if (known.kind === "value") {
    const room = column.few.includes(known.value) ? half(column) : 0;
    return [known.value - room, known.value + room];
  }
  return [
    known.low === null ? null : known.low - half(column),
    known.high === null ? null : known.high + half(column) + lastOf(column),
  ];
}

/** Places of the thumbs on the picture. */
export function places(column: Column, known: Known | undefined): [number, number] {
  const x = xScale(column);
  const [low, high] = ends(column, known);
  const inside = (place: number) => Math.min(Math.max(place, SIDE), WIDTH - SIDE);
  return [low === null ? SIDE : inside(x(low)), high === null ? WIDTH - SIDE : inside(x(high))];
}

/** A step of a thumb by a key; undefined for keys that do nothing. */
export function moved(column: Column, known: Known | undefined, which: 0 | 1, key: string): Known | null | undefined {
  const last = column.edges.length - 1;
  const now = places(column, known).map((place) => nearestEdge(column, place));
  const steps: Record<string, number> = {
    ArrowLeft: -1,
    ArrowDown: -1,
    ArrowRight: 1,
    ArrowUp: 1,
    PageDown: -5,
    PageUp: 5,
    Home: -last,
    End: last,
  };
  if (key === "Delete" || key === "Backspace") return null;
  if (!(key in steps)) return undefined;
  const next = Math.min(Math.max(now[which] + steps[key], which ? now[0] + 1 : 0), which ? last : now[1] - 1);
  return which ? (between(column, now[0], next) ?? null) : (between(column, next, now[1]) ?? null);
}

/** The cell under a place, as what is known if it is clicked. */
export function cellAt(column: Column, place: number): Known | undefined {
  const x = xScale(column);
  const { edges } = column;
  const last = edges.length - 1;
  const value = x.invert(place);
  if (value < edges[0]) return range(null, tidy(column, edges[0] - half(column) - lastOf(column)));
  if (value > edges[last]) return range(tidy(column, edges[last] + half(column)), null);
  let k = 0;
  while (k < last - 1 && edges[k + 1] <= value) k++;
  const low = tidy(column, edges[k] + half(column));
  const high = tidy(column, edges[k + 1] - half(column) - lastOf(column));
  return range(low, high);
}
