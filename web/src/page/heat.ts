/** Two columns together: darker where both are more probable, and the same without what ties them. */

import { html, svg, type TemplateResult } from "lit-html";
import type { Column } from "../model/model.ts";
import type { Group } from "../model/pairs.ts";
import type { Explorer, Heat } from "./explorer.ts";
import { percent, shown, visible } from "./words.ts";

const SIZE = 360;
const LEFT = 96;
const BELOW = 34;
const HIGH = 260;

export function heat(explorer: Explorer, a: number, b: number): TemplateResult {
  const [across, up] = [explorer.columns[a], explorer.columns[b]];
  const found = explorer.heat.value;
  const title = `${visible(across.name)} and ${visible(up.name)}`;
  return html`<section class="pair" aria-label=${`Joint distribution of ${title}`}>
    <header><h2><bdi>${visible(across.name)}</bdi> and <bdi>${visible(up.name)}</bdi></h2>
      <button type="button" class="quiet" data-do="unpair" @click=${() => {
        explorer.pair.value = [];
      }}>Close</button></header>
    ${found ? html`<div class="beside">${map(found, across, up, title, dots(explorer, found, a, b))}${told(found, across, up)}</div>` : html`<p class="hint">…</p>`}
  </section>`;
}

function map(found: Heat, across: Column, up: Column, title: string, path: string): TemplateResult {
  const { rows, columns, table } = found;
  const wide = SIZE / columns.length;
  const tall = HIGH / rows.length;
  let most = 0;
  for (const value of table) if (value > most) most = value;
  const cells = [];
  for (let i = 0; i < rows.length; i++) {
    for (let j = 0; j < columns.length; j++) {
      const value = table[i * columns.length + j];
      if (value < most * 0.004) continue;
      const y = up.categories ? i * tall : HIGH - (i + 1) * tall;
      cells.push(
        svg`<rect x=${LEFT + j * wide} y=${y} width=${wide} height=${tall} opacity=${Math.sqrt(value / most).toFixed(3)}><title>${groupText(across, columns[j])}, ${groupText(up, rows[i])}: ${percent(value)}</title></rect>`,
      );
    }
  }
  return html`<svg class="heat" viewBox=${`0 0 ${LEFT + SIZE + 8} ${HIGH + BELOW}`} role="img" aria-label=${`Heat map of ${title}`}>
    <g class="cells">${cells}</g>
    <path class="dots" d=${path}></path>
    <rect class="frame" x=${LEFT} y="0" width=${SIZE} height=${HIGH}></rect>
    ${some(rows, 8).map((i) => svg`<text class="end" x=${LEFT - 6} y=${(up.categories ? i + 0.5 : rows.length - i - 0.5) * tall + 4}>${shortText(up, rows[i])}</text>`)}
    ${some(columns, across.categories ? 6 : 5).map((j) => svg`<text x=${LEFT + (j + 0.5) * wide} y=${HIGH + 16}>${shortText(across, columns[j])}</text>`)}
  </svg>`;
}

/** Rows that agree with what is known, as dots, if the page holds any. */
function dots(explorer: Explorer, found: Heat, a: number, b: number): string {
  const { rows, columns } = explorer;
  if (!rows) return "";
  let path = "";
  for (const row of explorer.agreeing) {
    const x = place(columns[a], found.columns, rows.at(row, a), row);
    const y = place(columns[b], found.rows, rows.at(row, b), row * 7 + 3);
    if (x === undefined || y === undefined) continue;
    path += `M${(LEFT + x * SIZE).toFixed(1)} ${((columns[b].categories ? y : 1 - y) * HIGH).toFixed(1)}h0`;
  }
  return path;
}

/** Where a value lies along groups of equal width, from 0 to 1; categories are scattered by the row. */
function place(column: Column, groups: readonly Group[], value: number, row: number): number | undefined {
  if (Number.isNaN(value)) return undefined;
  const at = groups.findIndex((group) => group.cells.includes(column.cellOf(value)));
  if (at < 0) return undefined;
  const { cells } = groups[at];
  const [low, high] = [column.endsOf(cells[0])[0], column.endsOf(cells[cells.length - 1])[1]];
  const scattered = 0.15 + 0.7 * ((row * 0.618033988749895) % 1);
  const share =
    column.categories || !Number.isFinite(low) || !Number.isFinite(high) ? scattered : (value - low) / (high - low);
  return (at + Math.min(Math.max(share, 0), 1)) / groups.length;
}

/** The strongest cells in words, which a screen reader can tell. */
function told(found: Heat, across: Column, up: Column): TemplateResult {
  const { rows, columns, table } = found;
  const order = Array.from(table, (_, k) => k)
    .sort((x, y) => table[y] - table[x])
    .slice(0, 6);
  return html`<table class="top-pairs"><caption>Most probable together${found.done ? "" : " (so far)"}</caption>
    <thead><tr><th scope="col"><bdi>${visible(across.name, 24)}</bdi></th><th scope="col"><bdi>${visible(up.name, 24)}</bdi></th><th scope="col">share</th></tr></thead>
    <tbody>${order.map((k) => html`<tr><td>${groupText(across, columns[k % columns.length])}</td><td>${groupText(up, rows[Math.floor(k / columns.length)])}</td><td>${percent(table[k])}</td></tr>`)}</tbody></table>`;
}

/** Evenly spaced positions among some groups, few enough for their words. */
function some(groups: readonly Group[], most: number): number[] {
  const every = Math.max(1, Math.ceil(groups.length / most));
  const single = (i: number) => groups[i]?.region.kind === "values" && groups.length > most;
  return groups.map((_, i) => i).filter((i) => single(i) || (i % every === 0 && !single(i - 1) && !single(i + 1)));
}

function shortText(column: Column, group: Group): string {
  if (column.categories) return visible(groupText(column, group), 13);
  const [low, high] = [column.endsOf(group.cells[0])[0], column.endsOf(group.cells[group.cells.length - 1])[1]];
  if (group.region.kind === "values") return `= ${shown(column, group.region.values[0], true)}`;
  const half = column.kind === "integer" ? 0.5 : column.step / 2;
  return shown(column, Number.isFinite(low) ? low + half : high - half);
}

function groupText(column: Column, group: Group): string {
  if (column.categories) {
    return group.cells.length === 1 ? visible(column.categories[group.cells[0]], 40) : `${group.cells.length} others`;
  }
  if (group.region.kind === "values") return `exactly ${shown(column, group.region.values[0], true)}`;
  const low = column.endsOf(group.cells[0])[0];
  const high = column.endsOf(group.cells[group.cells.length - 1])[1];
  const half = column.kind === "integer" ? 0.5 : column.step / 2;
  if (!Number.isFinite(low)) return `below ${shown(column, high)}`;
  if (!Number.isFinite(high)) return `above ${shown(column, low)}`;
  const [from, to] = [shown(column, low + half), shown(column, high - half)];
  return from === to ? from : `${from} to ${to}`;
}
