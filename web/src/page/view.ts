/** The page: what is known, tools, cards, and two columns together. */

import { html, nothing, svg, type TemplateResult } from "lit-html";
import { classMap } from "lit-html/directives/class-map.js";
import { live } from "lit-html/directives/live.js";
import { repeat } from "lit-html/directives/repeat.js";
import { card, type Folding } from "./card.ts";
import { rows } from "./copy.ts";
import type { Explorer, Sort } from "./explorer.ts";
import { heat } from "./heat.ts";
import { type Condition, hasDensity } from "./known.ts";
import { chance, gapPhrase, percent, phrase, sentence, visible } from "./words.ts";

/** Below this, answers rest on what hardly ever happens. */
const RARE = Math.log(1e-6);
const NAMES = ["A", "B"];
const SORTED: Record<Sort, string> = {
  table: "as in the table",
  name: "by name",
  moved: "by how far they moved",
  ask: "by what they tell of",
};

export interface Tools extends Folding {
  copy(what: "python" | "command" | "table" | "svg" | "link"): void;
  /** Whether there is an address to copy. */
  readonly linked: boolean;
  readonly id: string;
}

export function view(explorer: Explorer, tools: Tools): TemplateResult {
  const { conditions, active } = explorer.situation.value;
  return html`
    <header class="top">
      <div class="line">
        <h1><bdi>${visible(explorer.model.title || "Joint density", 80)}</bdi></h1>
        <div class="tools" role="toolbar" aria-label="Steps and copies">
          <button type="button" data-do="undo" ?disabled=${!explorer.past.value.length} title="Undo (Ctrl+Z)" @click=${() => explorer.undo()}>Undo</button>
          <button type="button" data-do="redo" ?disabled=${!explorer.future.value.length} title="Redo (Ctrl+Shift+Z)" @click=${() => explorer.redo()}>Redo</button>
          <button type="button" data-do="compare" aria-pressed=${conditions.length > 1} @click=${() => explorer.compare()}>Compare</button>
          <details class="menu"><summary>Copy as</summary><div class="list">
            ${(["python", "command", "table", "svg", ...(tools.linked ? (["link"] as const) : [])] as const).map(
              (what) =>
                html`<button type="button" data-copy=${what} @click=${(event: Event) => {
                  (event.target as Element).closest("details")?.removeAttribute("open");
                  tools.copy(what);
                }}>${{ python: "Python", command: "Command", table: "Table", svg: "SVG", link: "Link" }[what]}</button>`,
            )}</div></details>
        </div>
      </div>
      ${conditions.map((condition, i) => known(explorer, condition, i, conditions.length > 1, i === active))}
    </header>
    <main>
      ${pairPanel(explorer)}
      ${bar(explorer, tools)}
      ${explorer.rows ? html`<p class="hint holds">This page holds ${explorer.rows.length} rows of data, drawn as strokes and dots${explorer.condition.size ? `; ${explorer.agreeing.length} of them agree with what is known` : ""}.</p>` : nothing}
      ${cards(explorer, tools)}
      ${table(explorer, tools)}
    </main>
    <p class="unseen" role="status" aria-live="polite">${spoken(explorer)}</p>`;
}

// ---- what is known -------------------------------------------------------------------------------------------------

function known(explorer: Explorer, condition: Condition, i: number, two: boolean, on: boolean): TemplateResult {
  const answers = explorer.answers.value[i];
  const forget = (n: number) => {
    if (!on) explorer.activate(i);
    explorer.know(n, undefined);
  };
  return html`<div class=${classMap({ given: true, on: on && two, b: i === 1 })}>
    ${
      two
        ? html`<button class="name" type="button" aria-pressed=${on} @click=${() => explorer.activate(i)}
      aria-label=${`Change condition ${NAMES[i]}`}>${NAMES[i]}</button>`
        : nothing
    }
    <ul class="chips" role="list" aria-label=${two ? `Known in ${NAMES[i]}` : "Known"}>
      ${condition.size ? nothing : html`<li class="hint">${two ? "nothing known" : "Click a bar or drag across a curve: every other column follows."}</li>`}
      ${repeat(
        condition,
        ([n]) => n,
        ([n, each]) => {
          const column = explorer.columns[n];
          const words = column.gapOf >= 0 ? gapPhrase(explorer.columns[column.gapOf], each) : phrase(column, each, 28);
          return html`<li><button class="chip" type="button" title="Forget this" aria-label=${`Forget ${words}`} @click=${() => forget(n)}>
            <bdi>${words}</bdi><span aria-hidden="true">×</span></button></li>`;
        },
      )}
      ${condition.size > 1 && on ? html`<li><button class="quiet" type="button" data-do="clear" @click=${() => explorer.clear()}>Clear all</button></li>` : nothing}
    </ul>
    <p class="evidence" data-evidence=${i}>${condition.size && answers.ready ? evidence(explorer, condition, answers.logEvidence) : nothing}</p>
  </div>`;
}

function evidence(explorer: Explorer, condition: Condition, log: number): TemplateResult {
  if (log === Number.NEGATIVE_INFINITY)
    return html`<strong class="warn">impossible under the model: forget something</strong>`;
  if (hasDensity(explorer.columns, condition)) {
    return html`density <b>${Math.exp(log).toPrecision(3)}</b>${log < RARE * 2 ? html` <strong class="warn">rarely met: the answers extrapolate</strong>` : nothing}`;
  }
  return html`probability <b>${chance(log)}</b>${log < RARE ? html` <strong class="warn">rarely met: the answers extrapolate</strong>` : nothing}`;
}

/** What a screen reader says after each change. */
function spoken(explorer: Explorer): string {
  const { condition, shown, cards } = explorer;
  if (!condition.size) return "Nothing is known.";
  if (!shown.possible) return `Given ${sentence(explorer.columns, condition)}: impossible under the model.`;
  const most = cards
    .filter((n) => !condition.has(n) && explorer.moved(n) > 0.05)
    .sort((a, b) => explorer.moved(b) - explorer.moved(a))
    .slice(0, 3)
    .map((n) => `${visible(explorer.columns[n].name)} by ${percent(explorer.moved(n))}`);
  const far = most.length ? ` Moved most: ${most.join(", ")}.` : " Nothing else moved much.";
  return `Given ${sentence(explorer.columns, condition)}, probability ${chance(shown.logEvidence)}.${far}`;
}

// ---- tools ---------------------------------------------------------------------------------------------------------

function bar(explorer: Explorer, tools: Tools): TemplateResult {
  const { id } = tools;
  const asks = explorer.sort.value === "ask";
  return html`<div class="bar-of-tools">
    <label class="unseen" for=${`${id}-search`}>Find a column</label>
    <input id=${`${id}-search`} class="find" type="search" placeholder=${`Find among ${explorer.cards.length} columns`} data-find
      .value=${live(explorer.search.value)} @input=${(event: Event) => {
        explorer.search.value = (event.target as HTMLInputElement).value;
      }}>
    <label for=${`${id}-sort`}>Sorted</label>
    <select id=${`${id}-sort`} data-sort .value=${live(explorer.sort.value)} @change=${(event: Event) => {
      const sort = (event.target as HTMLSelectElement).value as Sort;
      if (sort === "ask" && explorer.target.value < 0)
        explorer.target.value = explorer.cards[explorer.cards.length - 1];
      explorer.sort.value = sort;
    }}>${Object.entries(SORTED).map(([value, words]) => html`<option value=${value} ?selected=${explorer.sort.value === value}>${words}</option>`)}</select>
    ${
      asks
        ? html`<label class="unseen" for=${`${id}-target`}>Target</label>
      <select id=${`${id}-target`} data-target @change=${(event: Event) => {
        explorer.target.value = Number((event.target as HTMLSelectElement).value);
      }}>${explorer.cards.map((n) => html`<option value=${n} ?selected=${n === explorer.target.value}>${visible(explorer.columns[n].name, 40)}</option>`)}</select>`
        : nothing
    }
    <p class="legend" aria-hidden="true"><span class="key now"></span>now<span class="key before"></span>${explorer.situation.value.conditions.length > 1 ? `condition ${NAMES[1 - explorer.situation.value.active]}` : "before"}</p>
  </div>`;
}

// ---- cards ---------------------------------------------------------------------------------------------------------

/** The last order of each page, which stays while something is dragged or computed: cards do not run away. */
const orders = new WeakMap<Explorer, { sort: Sort; list: readonly number[] }>();

/** The columns in the order asked for, without those that the search leaves out. */
export function listed(explorer: Explorer): readonly number[] {
  const wanted = explorer.search.value.trim().toLowerCase();
  const { columns } = explorer;
  const chosen = explorer.cards.filter((n) => !wanted || columns[n].name.toLowerCase().includes(wanted));
  const sort = explorer.sort.value;
  const last = orders.get(explorer);
  if (last?.sort === sort && last.list.length === chosen.length && (explorer.dragging || explorer.busy.value)) {
    const before = new Set(last.list);
    if (chosen.every((n) => before.has(n))) return last.list;
  }
  const list = sorted(explorer, chosen);
  orders.set(explorer, { sort, list });
  return list;
}

function sorted(explorer: Explorer, list: number[]): number[] {
  const { columns } = explorer;
  const by = (value: (n: number) => number) => list.sort((a, b) => value(b) - value(a) || a - b);
  switch (explorer.sort.value) {
    case "name":
      return list.sort((a, b) => columns[a].name.localeCompare(columns[b].name) || a - b);
    case "moved":
      return by((n) => explorer.moved(n));
    case "ask": {
      const { value: told } = explorer.told;
      return by((n) => (n === explorer.target.value ? Number.POSITIVE_INFINITY : (told.get(n) ?? -1)));
    }
    default:
      return list;
  }
}

function cards(explorer: Explorer, tools: Tools): TemplateResult {
  const list = listed(explorer);
  return html`<section class="cards" aria-label="Columns">
    ${repeat(
      list,
      (n) => n,
      (n) => card(explorer, tools, n, tools.id),
    )}
    ${list.length ? nothing : html`<p class="hint">No column is called that.</p>`}
  </section>`;
}

function pairPanel(explorer: Explorer): TemplateResult | typeof nothing {
  const { value } = explorer.pair;
  if (!value.length) return nothing;
  if (value.length === 1) {
    return html`<p class="hint pairing">${svg``}<bdi>${visible(explorer.columns[value[0]].name)}</bdi> with: press the same button on another card.</p>`;
  }
  return heat(explorer, value[0], value[1]);
}

/** All columns as a table, for screen readers and for print. */
function table(explorer: Explorer, tools: Tools): TemplateResult | typeof nothing {
  if (explorer.cards.length > 60 || explorer.busy.value) return nothing;
  const [heads, ...body] = rows(explorer);
  return html`<table class="unseen" aria-label=${`All columns given ${sentence(explorer.columns, explorer.condition)}`} id=${`${tools.id}-table`}>
    <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
    <tbody>${body.map((row) => html`<tr><th scope="row">${visible(row[0])}</th>${row.slice(1).map((cell) => html`<td>${visible(cell)}</td>`)}</tr>`)}</tbody>
  </table>`;
}
