/** The card of one column. */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import { classMap } from "lit-html/directives/class-map.js";
import { live } from "lit-html/directives/live.js";
import type { Column } from "../model/model.ts";
import { between, cellAt, moved, places } from "./brush.ts";
import type { Explorer } from "./explorer.ts";
import { type Known, range, regionOf, setOf } from "./known.ts";
import { BASE, HEIGHT, heights, nearestEdge, SIDE, shape, TOP, tailBoxes, ticks, WIDTH, xScale } from "./shapes.ts";
import { summary } from "./summary.ts";
import { dateText, daysOf, percent, plain, shown, visible } from "./words.ts";

/** Bars of a column before the rest is folded away. */
const FEW = 8;
const MANY = 200;
/** Spikes before the rest is folded away. */
const FEW_SPIKES = 6;

/** What only this page knows of a card: whether all bars are shown, and which labels are looked for. */
export interface Folding {
  readonly open: Set<number>;
  readonly wanted: Map<number, string>;
  redraw(): void;
}

export function card(explorer: Explorer, folding: Folding, n: number, id: string): TemplateResult {
  const column = explorer.columns[n];
  const known = explorer.condition.get(n);
  const gap = explorer.gaps.get(n);
  const classes = { card: true, known: Boolean(known), paired: explorer.pair.value.includes(n) };
  return html`<article class=${classMap(classes)} data-card=${n} aria-labelledby=${`${id}-${n}`}>
    <header>
      <h2 id=${`${id}-${n}`} title=${visible(column.name, 300)}><bdi>${visible(column.name)}</bdi></h2>
      ${badge(explorer, n)}
      <button class="quiet icon" type="button" aria-pressed=${explorer.pair.value.includes(n)} title="Show with another column"
        aria-label=${`Show ${visible(column.name)} with another column`} @click=${() => pairUp(explorer, n)}>${PAIR}</button>
      <button class="quiet icon" type="button" ?disabled=${!known} title="Forget what is known"
        aria-label=${`Forget what is known of ${visible(column.name)}`} @click=${() => explorer.know(n, undefined)}>${CROSS}</button>
    </header>
    ${explorer.isSeen(n) ? body(explorer, folding, n, id) : html`<div class="room"></div>`}
    ${gap === undefined ? nothing : gapRow(explorer, n, gap)}
  </article>`;
}

const CROSS = svg`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M4 4l8 8M12 4l-8 8"/></svg>`;
const PAIR = svg`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2.5 2.5h11v11h-11zM8 2.5v11M2.5 8h11"/></svg>`;

function body(explorer: Explorer, folding: Folding, n: number, id: string): TemplateResult {
  const column = explorer.columns[n];
  const { shown: now, ghost } = explorer;
  const behind = ghost.possible ? ghost.peek(n) : undefined;
  const cells = now.possible ? (now.peek(n) ?? behind) : undefined;
  if (!cells && !behind) return html`<div class="room"></div>`;
  const before = now === ghost ? undefined : behind;
  return column.categories
    ? bars(explorer, folding, n, cells, before)
    : numberBody(explorer, folding, n, cells, before, id);
}

/** How much the column moved, or what it would tell. */
function badge(explorer: Explorer, n: number): TemplateResult | typeof nothing {
  if (explorer.sort.value === "ask" && explorer.target.value >= 0) {
    if (n === explorer.target.value) return html`<span class="badge">target</span>`;
    const bits = explorer.told.value.get(n);
    return bits === undefined
      ? nothing
      : html`<span class="badge" title="What it would tell of the target, on average">${bits.toFixed(bits < 0.1 ? 3 : 2)} bits</span>`;
  }
  const far = explorer.moved(n);
  return far < 0.005
    ? nothing
    : html`<span class="badge" title="Share of the probability that has moved">moved ${percent(far)}</span>`;
}

function pairUp(explorer: Explorer, n: number): void {
  const { value } = explorer.pair;
  explorer.pair.value = value.includes(n) ? value.filter((each) => each !== n) : [...value, n].slice(-2);
}

// ---- categories ----------------------------------------------------------------------------------------------------

function bars(
  explorer: Explorer,
  folding: Folding,
  n: number,
  cells: Float64Array | undefined,
  before: Float64Array | undefined,
): TemplateResult {
  const column = explorer.columns[n];
  const labels = column.categories!;
  const known = explorer.condition.get(n);
  const codes = known?.kind === "set" ? known.codes : [];
  const order = labels.map((_, i) => i);
  const base = explorer.prior.peek(n) ?? before ?? cells!;
  const long = labels.length > FEW;
  if (long && !column.ordered) order.sort((a, b) => base[b] - base[a] || a - b);
  const wanted = (folding.wanted.get(n) ?? "").toLowerCase();
  const open = folding.open.has(n);
  const found = wanted ? order.filter((i) => labels[i].toLowerCase().includes(wanted)) : order;
  let list = found.slice(0, open || wanted ? MANY : FEW);
  list = [...list, ...codes.filter((code) => !list.includes(code))];
  const rest = found.length - list.length;
  const most = Math.max(1e-9, ...list.map((i) => Math.max(cells?.[i] ?? 0, before?.[i] ?? 0)));
  return html`
    ${long && labels.length > 20 ? finder(folding, n, column) : nothing}
    <ul class="bars" role="list">${list.map((i) => bar(explorer, n, i, cells?.[i], before?.[i], most, codes))}</ul>
    ${
      rest > 0 || (open && long)
        ? html`<button class="quiet more" type="button" aria-expanded=${open} @click=${() => fold(folding, n)}>
      ${open ? (rest > 0 ? `${rest.toLocaleString("en")} more: use the search` : "Show fewer") : `${rest.toLocaleString("en")} more, ${percent(massOf(found.slice(list.length), cells))}`}</button>`
        : nothing
    }`;
}

function massOf(codes: readonly number[], cells: Float64Array | undefined): number {
  return cells ? codes.reduce((sum, i) => sum + cells[i], 0) : 0;
}

function bar(
  explorer: Explorer,
  n: number,
  code: number,
  share: number | undefined,
  before: number | undefined,
  most: number,
  codes: readonly number[],
): TemplateResult {
  const column = explorer.columns[n];
  const pressed = codes.includes(code);
  const label = visible(column.categories![code]);
  const wide = (value: number | undefined) => (100 * (value ?? 0)) / most;
  const words = `${label}, ${share === undefined ? "impossible" : percent(share)}${before === undefined ? "" : `, before ${percent(before)}`}`;
  return html`<li><button class=${classMap({ bar: true, off: codes.length > 0 && !pressed })} type="button" data-code=${code}
    aria-pressed=${pressed} aria-label=${words} @click=${() => pick(explorer, n, code)}>
    <span class="label"><bdi>${label}</bdi></span>
    <svg class="track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="now" x="0" y="1" height="8" width=${wide(share)}></rect>
      ${before === undefined ? nothing : svg`<path class="before" d=${`M${wide(before)} 0V10`}/>`}
    </svg>
    <span class="share">${share === undefined ? "–" : percent(share)}</span>
  </button></li>`;
}

/** Add a category to what is known, or take it out; all of them say nothing. */
function pick(explorer: Explorer, n: number, code: number): void {
  const known = explorer.condition.get(n);
  const codes = known?.kind === "set" ? known.codes : [];
  const next = codes.includes(code) ? codes.filter((each) => each !== code) : [...codes, code].sort((a, b) => a - b);
  const all = next.length === explorer.columns[n].categories!.length;
  explorer.know(n, next.length && !all ? { kind: "set", codes: next } : undefined);
}

/** A gap that is part of the model: unknown, or filled in. */
function gapRow(explorer: Explorer, n: number, gap: number): TemplateResult {
  const cells = explorer.shown.possible ? explorer.shown.peek(gap) : undefined;
  const before = explorer.shown === explorer.ghost ? undefined : explorer.ghost.peek(gap);
  const known = explorer.condition.get(gap);
  const pressed = known?.kind === "set" && known.codes[0] === 1;
  const wide = (value: number | undefined) => 100 * (value ?? 0);
  return html`<ul class="bars gap" role="list"><li><button class="bar" type="button" aria-pressed=${pressed}
    aria-label=${`${visible(explorer.columns[n].name)} unknown, ${cells ? percent(cells[1]) : ""}`}
    @click=${() => explorer.know(gap, pressed ? undefined : { kind: "set", codes: [1] })}>
    <span class="label"><i>unknown</i></span>
    <svg class="track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="now" x="0" y="1" height="8" width=${wide(cells?.[1])}></rect>
      ${before ? svg`<path class="before" d=${`M${wide(before[1])} 0V10`}/>` : nothing}
    </svg>
    <span class="share">${cells ? percent(cells[1]) : "–"}</span></button></li></ul>`;
}

// ---- numbers -------------------------------------------------------------------------------------------------------

function numberBody(
  explorer: Explorer,
  folding: Folding,
  n: number,
  cells: Float64Array | undefined,
  before: Float64Array | undefined,
  id: string,
): TemplateResult {
  const column = explorer.columns[n];
  const known = explorer.condition.get(n);
  return html`${picture(explorer, n, cells, before)} ${spikes(explorer, folding, n, cells)} ${facts(column, cells, before, behindName(explorer), known)}
    ${fields(explorer, n, known, id)}`;
}

function picture(
  explorer: Explorer,
  n: number,
  cells: Float64Array | undefined,
  before: Float64Array | undefined,
): TemplateResult {
  const column = explorer.columns[n];
  const known = explorer.condition.get(n);
  const tall = cells && heights(column, cells);
  const old = before && heights(column, before);
  const most = Math.max(1e-12, ...(tall ?? []), ...(old ?? []));
  const now = tall && shape(column, tall, most);
  const ghost = old && shape(column, old, most);
  const [left, right] = places(column, known);
  return html`<svg class="picture" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label=${`Range of ${visible(column.name)}`}
    @pointerdown=${(event: PointerEvent) => drag(explorer, n, event)}>
    ${
      now
        ? svg`<path class="now" d=${now.area}/><path class="contour" d=${now.line}/>
      ${tailBoxes(now.tails).map((box) => svg`<rect class="now" x=${box.x} y=${box.y} width=${box.width} height=${box.height}/>`)}`
        : nothing
    }
    ${ghost ? svg`<path class="before" d=${ghost.line}/>` : nothing}
    ${cells ? stems(column, cells) : nothing} ${rug(explorer, n)}
    <line class="axis" x1=${SIDE} x2=${WIDTH - SIDE} y1=${BASE} y2=${BASE}></line>
    ${ticks(column).map(
      (tick) => svg`<line class="axis" x1=${tick.x} x2=${tick.x} y1=${BASE} y2=${BASE + 3}/>
      <text x=${tick.x} y=${BASE + 14}>${tick.text}</text>`,
    )}
    ${known && !wholes(known).some((value) => column.few.includes(value)) ? svg`<rect class="chosen" x=${left} y="2" width=${Math.max(right - left, 1)} height=${BASE - 2}/>` : nothing}
    ${column.few.map((value) => whole(explorer, n, value, cells))}
    ${thumb(explorer, n, 0, left)} ${thumb(explorer, n, 1, right)}
  </svg>`;
}

/** A value of an integer that takes few of them: clicked, or chosen by a key, it joins what is known or leaves it. */
function whole(explorer: Explorer, n: number, value: number, cells: Float64Array | undefined): TemplateResult {
  const column = explorer.columns[n];
  const x = xScale(column);
  const pressed = wholes(explorer.condition.get(n)).includes(value);
  const pick = (event: Event) => {
    event.preventDefault();
    pickWhole(explorer, n, value);
  };
  return svg`<rect class=${classMap({ whole: true, chosen: pressed })} x=${x(value - 0.5)} y="2" width=${x(value + 0.5) - x(value - 0.5)}
    height=${BASE - 2} tabindex="0" role="button" data-value=${value} aria-pressed=${pressed}
    aria-label=${`${value}, ${cells ? percent(cells[column.cellOf(value)]) : "impossible"}`}
    @click=${(event: MouseEvent) => event.detail === 0 && pick(event)}
    @keydown=${(event: KeyboardEvent) => (event.key === "Enter" || event.key === " ") && pick(event)}/>` as unknown as TemplateResult;
}

/** The values of an integer that are known one by one. */
function wholes(known: Known | undefined): readonly number[] {
  if (known?.kind === "set") return known.codes;
  return known?.kind === "value" ? [known.value] : [];
}

function pickWhole(explorer: Explorer, n: number, value: number): void {
  const now = wholes(explorer.condition.get(n));
  explorer.know(n, setOf(now.includes(value) ? now.filter((each) => each !== value) : [...now, value]));
}

/** Single values with a probability of their own: as high as the picture if that is one. */
function stems(column: Column, cells: Float64Array): TemplateResult[] {
  const x = xScale(column);
  const first = column.edges.length + 1;
  const found = Array.from(column.spikes, (value, s) => ({ place: x(value), share: cells[first + s] }));
  return found
    .filter(({ place, share }) => share > 0.002 && place >= 0 && place <= WIDTH)
    .map(({ place, share }) => {
      const y = BASE - share * (BASE - TOP);
      return svg`<g class="stem"><line x1=${place} x2=${place} y1=${BASE} y2=${y}/><circle cx=${place} cy=${y} r="2.2"/></g>` as unknown as TemplateResult;
    });
}

/** Rows that agree with what is known, as short strokes above the axis, if the page holds any. */
function rug(explorer: Explorer, n: number): TemplateResult | typeof nothing {
  const { rows, columns } = explorer;
  if (!rows) return nothing;
  const x = xScale(columns[n]);
  let path = "";
  for (const row of explorer.agreeing) {
    const place = x(rows.at(row, n));
    if (place >= 0 && place <= WIDTH) path += `M${place.toFixed(1)} ${BASE - 5}v4`;
  }
  return svg`<path class="rug" d=${path}/>` as unknown as TemplateResult;
}

function thumb(explorer: Explorer, n: number, which: 0 | 1, place: number): TemplateResult {
  const column = explorer.columns[n];
  const known = explorer.condition.get(n);
  const open = !known || known.kind === "set" || (known.kind === "range" && (which ? known.high : known.low) === null);
  const value =
    known?.kind === "value" ? known.value : known?.kind === "range" ? (which ? known.high : known.low) : null;
  const last = column.edges.length - 1;
  const words = value === null ? "open" : shown(column, value, true);
  return svg`<g class=${classMap({ thumb: true, open })} tabindex="0" role="slider" data-thumb=${which}
    aria-label=${`${which ? "Highest" : "Lowest"} ${visible(column.name)}`} aria-valuemin="0" aria-valuemax=${last}
    aria-valuenow=${nearestEdge(column, place)} aria-valuetext=${words}
    @keydown=${(event: KeyboardEvent) => {
      const next = moved(column, known, which, event.key);
      if (next === undefined) return;
      event.preventDefault();
      explorer.know(n, next ?? undefined);
    }}>
    <rect class="grip" x=${place - 10} y="0" width="20" height=${BASE}/>
    <line x1=${place} x2=${place} y1="2" y2=${BASE}/><circle cx=${place} cy=${BASE} r="4.5"/></g>` as unknown as TemplateResult;
}

/** Choose a range with the pointer: a drag from one edge to another, a thumb, or a click on a cell. */
function drag(explorer: Explorer, n: number, event: PointerEvent): void {
  if (event.button !== 0) return;
  const column = explorer.columns[n];
  const picture = event.currentTarget as SVGSVGElement;
  const box = picture.getBoundingClientRect();
  const placeOf = (e: PointerEvent) => ((e.clientX - box.left) / box.width) * WIDTH;
  const known = explorer.condition.get(n);
  const start = placeOf(event);
  const grabbed = (event.target as Element).closest("[data-thumb]");
  const which =
    grabbed && (known || Math.abs(start - SIDE) < 10 || Math.abs(start - WIDTH + SIDE) < 10)
      ? Number(grabbed.getAttribute("data-thumb"))
      : -1;
  const fixed = which >= 0 ? nearestEdge(column, places(column, known)[1 - which]) : nearestEdge(column, start);
  let far = false;
  const move = (e: PointerEvent) => {
    far ||= Math.abs(placeOf(e) - start) > 4;
    if (far) explorer.know(n, between(column, fixed, nearestEdge(column, placeOf(e))), false);
  };
  const stop = (e: PointerEvent) => {
    picture.removeEventListener("pointermove", move);
    picture.removeEventListener("pointerup", stop);
    picture.removeEventListener("pointercancel", stop);
    if (far) explorer.know(n, explorer.condition.get(n));
    else if (e.type === "pointerup") {
      const cell = cellAt(column, start);
      if (cell?.kind === "value" && column.few.includes(cell.value)) pickWhole(explorer, n, cell.value);
      else if (which < 0) explorer.know(n, JSON.stringify(cell) === JSON.stringify(known) ? undefined : cell);
    }
  };
  picture.setPointerCapture(event.pointerId);
  picture.addEventListener("pointermove", move);
  picture.addEventListener("pointerup", stop);
  picture.addEventListener("pointercancel", stop);
}

/** Single values that have a probability of their own: the most probable, and a list of all with a search. */
function spikes(
  explorer: Explorer,
  folding: Folding,
  n: number,
  cells: Float64Array | undefined,
): TemplateResult | typeof nothing {
  const column = explorer.columns[n];
  if (!column.spikes.length) return nothing;
  const first = column.edges.length + 1;
  const known = explorer.condition.get(n);
  const all = Array.from(column.spikes, (value, s) => ({ value, share: cells?.[first + s] ?? 0 }));
  const isKnown = (value: number) => known?.kind === "value" && known.value === value;
  const wanted = (folding.wanted.get(n) ?? "").trim();
  const open = folding.open.has(n);
  const found = open && wanted ? all.filter(({ value }) => shown(column, value, true).includes(wanted)) : all;
  const list = found
    .sort((a, b) => Number(isKnown(b.value)) - Number(isKnown(a.value)) || b.share - a.share)
    .slice(0, open ? MANY : FEW_SPIKES)
    .sort((a, b) => a.value - b.value);
  return html`<div class="spikes">exactly
    ${open && all.length > 20 ? finder(folding, n, column) : nothing}
    ${list.map(({ value, share }) => {
      const pressed = isKnown(value);
      return html`<button class="spike" type="button" aria-pressed=${pressed}
      @click=${() => explorer.know(n, pressed ? undefined : { kind: "value", value })}>${shown(column, value, true)} <b>${percent(share)}</b></button>`;
    })}
    ${
      all.length > FEW_SPIKES
        ? html`<button class="quiet more" type="button" aria-expanded=${open} @click=${() => fold(folding, n)}>
      ${open ? (found.length > list.length ? `${(found.length - list.length).toLocaleString("en")} more: use the search` : "Show fewer") : `${all.length - list.length} more`}</button>`
        : nothing
    }</div>`;
}

/** Show all of a long list, or few of it again. */
function fold(folding: Folding, n: number): void {
  if (folding.open.has(n)) folding.open.delete(n);
  else folding.open.add(n);
  folding.redraw();
}

/** A field that looks for a value. */
function finder(folding: Folding, n: number, column: Column): TemplateResult {
  return html`<input class="find" type="search" placeholder="Find a value" aria-label=${`Find a value of ${visible(column.name)}`}
    .value=${live(folding.wanted.get(n) ?? "")} @input=${(event: Event) => {
      folding.wanted.set(n, (event.target as HTMLInputElement).value);
      folding.redraw();
    }}>`;
}

/** What the dashed shapes are: what was before, or the other condition. */
export function behindName(explorer: Explorer): string {
  const { conditions, active } = explorer.situation.value;
  return conditions.length > 1 ? (active ? "A" : "B") : "was";
}

function facts(
  column: Column,
  cells: Float64Array | undefined,
  before: Float64Array | undefined,
  behind: string,
  known: Known | undefined,
): TemplateResult {
  const now = cells && summary(column, cells, known && regionOf(column, known));
  const old = before && summary(column, before);
  const text = (value: number | undefined) => (value === undefined ? "–" : shown(column, value));
  const average = (value: number | undefined) =>
    value === undefined
      ? "–"
      : column.kind === "integer" && !column.temporal && Math.abs(value) < 1000
        ? value.toFixed(1)
        : text(value);
  const one = (name: string, value: string, was: string) =>
    html`<div><dt>${name}</dt><dd>${value}${was === value || !old ? nothing : html` <small>${behind} ${was}</small>`}</dd></div>`;
  return html`<dl class=${classMap({ facts: true, dates: column.temporal })}>
    ${one("mean", average(now?.mean), average(old?.mean))} ${one("median", text(now?.median), text(old?.median))}
    ${one("80%", now ? `${text(now.low)} – ${text(now.high)}` : "–", old ? `${text(old.low)} – ${text(old.high)}` : "–")}</dl>`;
}

function fields(explorer: Explorer, n: number, known: Known | undefined, id: string): TemplateResult {
  const column = explorer.columns[n];
  const [low, high] =
    known?.kind === "range"
      ? [known.low, known.high]
      : known?.kind === "value"
        ? [known.value, known.value]
        : [null, null];
  const text = (value: number | null) =>
    value === null ? "" : column.temporal ? dateText(column, value) : plain(value);
  const read = (value: string) => (value.trim() === "" ? null : column.temporal ? daysOf(value) : numberOf(value));
  const change = (which: 0 | 1) => (event: Event) => {
    const field = event.target as HTMLInputElement;
    const value = read(field.value);
    if (value === null && field.value.trim() !== "") {
      field.value = text(which ? high : low); // what cannot be read changes nothing
      return;
    }
    explorer.know(n, which ? range(low, value) : range(value, high));
  };
  const kind = column.temporal ? (column.dtype === "date" ? "date" : "datetime-local") : "text";
  const field = (
    which: 0 | 1,
    label: string,
    value: number | null,
  ) => html`<label for=${`${id}-${n}-${which}`}>${label}</label>
    <input id=${`${id}-${n}-${which}`} type=${kind} inputmode="decimal" autocomplete="off" placeholder="any" data-end=${which}
      .value=${live(text(value))} @change=${change(which)}>`;
  return html`<div class=${classMap({ fields: true, dates: column.temporal })}>${field(0, "from", low)} ${field(1, "to", high)}</div>`;
}

function numberOf(text: string): number | null {
  const value = Number(text.trim().replace(",", ".").replaceAll("\u202f", ""));
  return Number.isFinite(value) ? value : null;
}
