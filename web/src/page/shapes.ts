/** Geometry of the picture of a number: cells as a stepped area, with room for what lies beyond both ends. */

import { type ScaleLinear, scaleLinear } from "d3-scale";
import { area, curveStepAfter, line } from "d3-shape";
import type { Column } from "../model/model.ts";
import { dateText, shown } from "./words.ts";

export const WIDTH = 320;
export const HEIGHT = 108;
/** Where the axis lies, and the margin at both sides, in which the open cells are drawn. */
export const BASE = 90;
export const SIDE = 14;
export const TOP = 6;
const TAIL = 9;

export interface Shape {
  readonly area: string;
  readonly line: string;
  /** Masses beyond the first and the last edge, as heights. */
  readonly tails: readonly [number, number];
}

/** What stays the same of a column's picture. */
const scales = new WeakMap<Column, ScaleLinear<number, number>>();
const allTicks = new WeakMap<Column, readonly Tick[]>();

export interface Tick {
  readonly x: number;
  readonly text: string;
}

export function xScale(column: Column): ScaleLinear<number, number> {
  let found = scales.get(column);
  if (!found) {
    const { edges } = column;
    found = scaleLinear([edges[0], edges[edges.length - 1]], [SIDE, WIDTH - SIDE]);
    scales.set(column, found);
  }
  return found;
}

/** Mass per width of each cell, in units of the mean width; the open cells count as if they had it. */
export function heights(column: Column, cells: Float64Array): Float64Array {
  const { edges } = column;
  const mean = (edges[edges.length - 1] - edges[0]) / (edges.length - 1);
  const out = new Float64Array(edges.length + 1);
  for (let k = 0; k < out.length; k++) {
    const inner = k > 0 && k < edges.length;
    out[k] = inner ? (cells[k] * mean) / (edges[k] - edges[k - 1]) : cells[k];
  }
  return out;
}

/** The shape of some heights, of which `most` reaches the top. */
export function shape(column: Column, tall: Float64Array, most: number): Shape {
  const x = xScale(column);
  const y = scaleLinear([0, most || 1], [BASE, TOP]);
  const { edges } = column;
  const points: [number, number][] = [];
  for (let k = 0; k < edges.length; k++) points.push([x(edges[k]), y(k + 1 < edges.length ? tall[k + 1] : 0)]);
  const outline: [number, number][] = [[x(edges[0]), BASE], ...points];
  return {
    area: area<[number, number]>().y0(BASE).curve(curveStepAfter)(points) ?? "",
    line: line<[number, number]>().curve(curveStepAfter)(outline) ?? "",
    tails: [BASE - y(tall[0]), BASE - y(tall[edges.length])],
  };
}

/** Rectangles of the two open cells. */
export function tailBoxes(tails: readonly [number, number]): { x: number; y: number; width: number; height: number }[] {
  return tails
    .map((height, i) => ({ x: i ? WIDTH - SIDE + 2 : SIDE - 2 - TAIL, y: BASE - height, width: TAIL, height }))
    .filter((box) => box.height > 0.4);
}

/** Places and words of the ticks. */
export function ticks(column: Column): readonly Tick[] {
  let found = allTicks.get(column);
  if (!found) {
    found = findTicks(column);
    allTicks.set(column, found);
  }
  return found;
}

function findTicks(column: Column): Tick[] {
  const x = xScale(column);
  const [low, high] = x.domain();
  if (!column.temporal) return x.ticks(5).map((value) => ({ x: x(value), text: tickText(column, value, x) }));
  const days = high - low;
  const years = days / 365.25;
  if (years < 0.15)
    return x.ticks(3).map((value) => ({ x: x(value), text: dateText(column, value).slice(5, days < 3 ? 16 : 10) }));
  const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400].find((step) => (years * 12) / step <= 6) ?? 6000;
  const first = new Date(low * 86_400_000);
  let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
  const out: { x: number; text: string }[] = [];
  for (let i = 0; i < 12; i++, month += months) {
    const day = Date.UTC(Math.floor(month / 12), month % 12, 1) / 86_400_000;
    if (day >= low && day <= high) {
      out.push({ x: x(day), text: months >= 12 ? String(Math.floor(month / 12)) : dateText(column, day).slice(0, 7) });
    }
  }
  return out;
}

function tickText(column: Column, value: number, x: ScaleLinear<number, number>): string {
  const size = Math.max(...x.domain().map(Math.abs));
  if (size >= 1e7 || size < 1e-3) return x.tickFormat(5, ".2s")(value);
  if (size >= 1e4 && x.ticks(5).every((tick) => tick % 1000 === 0)) return `${value / 1000}k`;
  return column.kind === "integer" ? shown(column, value) : x.tickFormat(5)(value);
}

/** The edge nearest to a place. */
export function nearestEdge(column: Column, place: number): number {
  const x = xScale(column);
  const { edges } = column;
  let best = 0;
  for (let k = 1; k < edges.length; k++) if (Math.abs(x(edges[k]) - place) < Math.abs(x(edges[best]) - place)) best = k;
  return best;
}
