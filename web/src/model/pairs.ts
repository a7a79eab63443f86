/** Two columns together, and what columns would tell of another: by conditioning on groups of cells of one of them. */

import type { Column } from "./columns.ts";
import type { Evidence } from "./expert.ts";
import type { Model, Region } from "./model.ts";

/** Cells of a column taken together. */
export interface Group {
  readonly cells: readonly number[];
  readonly region: Region;
  readonly mass: number;
}

/**
 * Groups of the cells of a column: neighbours of about equal mass, or the most probable categories and the others together.
 * `even` groups by width instead of mass.
 */
export function groups(
  column: Column,
  cells: Float64Array,
  most: number,
  known: Region | undefined,
  even = false,
): Group[] {
  const order = Array.from({ length: column.size }, (_, i) => i).filter((i) => cells[i] > 1e-9);
  if (column.categories) {
    order.sort((a, b) => cells[b] - cells[a]);
    if (even && order.length <= most) order.sort((a, b) => a - b);
    const lists =
      order.length <= most
        ? order.map((i) => [i])
        : [...order.slice(0, most - 1).map((i) => [i]), order.slice(most - 1)];
    return lists.map((list) => group(list, cells, { kind: "values", values: [...list].sort((a, b) => a - b) }));
  }
  const intervals = order.filter((i) => i <= column.edges.length);
  const out: Group[] = [];
  let list: number[] = [];
  let mass = 0;
  const total = intervals.reduce((sum, i) => sum + cells[i], 0);
  const least = even ? 0 : total / most;
  const longest = even ? Math.ceil(column.edges.length / most) : Number.POSITIVE_INFINITY;
  const close = () => {
    if (list.length) out.push(group(list, cells, span(column, list, known)));
    [list, mass] = [[], 0];
  };
  for (const i of intervals) {
    if (even && list.length && (list.length >= longest || i !== list[list.length - 1] + 1)) close();
    list.push(i);
    mass += cells[i];
    if (!even && mass >= least) close();
  }
  close();
  const spikes = order.filter((i) => i > column.edges.length);
  for (const i of spikes) {
    const value = column.spikes[i - column.edges.length - 1];
    const place = out.findIndex((each) => each.region.kind === "interval" && each.region.high > value);
    out.splice(place < 0 ? out.length : place, 0, group([i], cells, { kind: "values", values: [value] }));
  }
  return out;
}

function group(cells: readonly number[], masses: Float64Array, region: Region): Group {
  return { cells, region, mass: cells.reduce((sum, i) => sum + masses[i], 0) };
}

/** The interval that neighbouring cells make, inside what is known. */
function span(column: Column, cells: readonly number[], known: Region | undefined): Region {
  let [low] = column.endsOf(cells[0]);
  let [, high] = column.endsOf(cells[cells.length - 1]);
  if (known?.kind === "interval") {
    low = Math.max(low, known.low);
    high = Math.min(high, known.high);
  }
  return { kind: "interval", low, high, bare: column.spikes.length > 0 };
}

/** Columns given each group of another, one group after the other, so that a page can do other things in between. */
export function* byGroups(
  model: Model,
  evidence: Evidence,
  n: number,
  found: readonly Group[],
  columns: readonly number[],
): Generator<{ group: Group; margins: Map<number, Float64Array> }> {
  for (const each of found) {
    const posterior = model.given(new Map([...evidence, [n, each.region]]));
    if (posterior.logEvidence === Number.NEGATIVE_INFINITY) continue;
    yield { group: each, margins: new Map(columns.map((m) => [m, posterior.margin(m)])) };
  }
}
