/** The state of a page: what is known, what came before, and the answers as far as they are computed. */

import { batch, computed, effect, type ReadonlySignal, type Signal, signal, untracked } from "@preact/signals-core";
import { type Column, Model, type ModelParts, type Region } from "../model/model.ts";
import { byGroups, type Group, groups } from "../model/pairs.ts";
import { Answers, Rows } from "./answers.ts";
import type { Helper } from "./helper.ts";
import { type Condition, evidenceOf, type Known, readCondition, written } from "./known.ts";
import { distance, divergence } from "./summary.ts";

/** One condition, or two to compare; `active` is the one that changes. */
export interface Situation {
  readonly conditions: readonly Condition[];
  readonly active: number;
}

export type Sort = "table" | "name" | "moved" | "ask";
export const SORTS: readonly Sort[] = ["table", "name", "moved", "ask"];

/** Milliseconds of work between two frames. */
const SLICE = 30;
const LITTLE = 3;
/** Milliseconds of a step above which another thread computes those that are like it. */
const SLOW = 30;
/** Milliseconds that a drawing waits for the answers, so that there is but one. */
const SOON = 60;
/** Milliseconds after which cards are drawn though others in view are not there yet. */
const PATIENCE = 150;
/** Groups of the target when columns are asked what they tell, and cells of a heat map in each direction. */
const TOLD_GROUPS = 12;
const HEAT_GROUPS = 24;
const MOST_PAST = 200;
/** Cards that are all computed at once. */
const FEW = 60;
const NOTHING: Condition = new Map();

export interface Heat {
  readonly rows: readonly Group[];
  readonly columns: readonly Group[];
  /** Probability of each pair of groups, by rows; rows that are not computed yet are zero. */
  readonly table: Float64Array;
  readonly done: boolean;
}

export class Explorer {
  readonly model: Model;
  readonly situation: Signal<Situation> = signal({ conditions: [NOTHING], active: 0 });
  readonly sort: Signal<Sort> = signal<Sort>("table");
  readonly target: Signal<number> = signal(-1);
  readonly pair: Signal<readonly number[]> = signal([]);
  readonly search: Signal<string> = signal("");
  readonly past: Signal<readonly Situation[]> = signal([]);
  readonly future: Signal<readonly Situation[]> = signal([]);
  /** Grows whenever there are new answers to draw. */
  readonly version: Signal<number> = signal(0);
  readonly busy: Signal<boolean> = signal(false);
  readonly heat: Signal<Heat | undefined> = signal(undefined);
  /** Bits that each column would tell of the target. */
  readonly told: Signal<ReadonlyMap<number, number>> = signal(new Map());
  readonly answers: ReadonlySignal<readonly Answers[]>;
  readonly prior: Answers;
  /** A sample of rows, if the page holds any. */
  readonly rows: Rows | undefined;
  private readonly agreed: ReadonlySignal<readonly number[]>;
  /** Columns with a card of their own: all but those that tell gaps of another. */
  readonly cards: readonly number[];
  /** For columns whose gaps are part of the model, the column that tells them. */
  readonly gaps: ReadonlyMap<number, number>;
  private readonly seen = new Set<number>();
  private readonly kept = new Map<string, Answers>();
  private jobs: Generator<void>[] = [];
  private waiting = false;
  private asked = -1;
  /** Whether all cards in view have their answers, and when they were drawn last. */
  private complete = false;
  private drawn = 0;
  /** When the last change was made. */
  private began = 0;

  private last: Answers | undefined;
  /** Milliseconds that steps of each sort took of late, wherever they were computed. */
  private readonly costs = new Map<string, number>();
  private readonly weighed = new WeakSet<Answers>();

  constructor(
    parts: ModelParts,
    private readonly helper?: Helper,
  ) {
    this.model = new Model(parts);
    if (helper) helper.onFailure = () => this.again();
    const { columns } = this.model;
    this.gaps = new Map(
      columns.flatMap((column, n): [number, number][] => (column.gapOf >= 0 ? [[column.gapOf, n]] : [])),
    );
    this.cards = columns.map((_, n) => n).filter((n) => columns[n].gapOf < 0);
    this.prior = this.answersOf(NOTHING);
    this.rows = parts.rows ? new Rows(parts.rows) : undefined;
    this.agreed = computed(() => this.agree(this.condition));
    this.answers = computed(() => this.situation.value.conditions.map((condition) => this.answersOf(condition)));
    effect(() => {
      void this.answers.value;
      const [sort, target, pair] = [this.sort.value, this.target.value, this.pair.value];
      untracked(() => this.restart(sort, target, pair));
    });
  }

  get columns(): readonly Column[] {
    return this.model.columns;
  }

  /** Whether another thread can compute. */
  private get helped(): boolean {
    return this.helper?.ready ?? false;
  }

  /** Whether another thread is to find the answers: if those of the same sort took long, or there were none yet. */
  private leaves(condition: Condition): boolean {
    return this.helped && (this.costs.get(sortOf(this.columns, condition)) ?? Number.POSITIVE_INFINITY) > SLOW;
  }

  /** Answers of a condition, from before if it was asked lately. */
  private answersOf(condition: Condition): Answers {
    const key = written(condition);
    let found = this.kept.get(key);
    if (!found) {
      found = new Answers(this.model, condition, this.leaves(condition));
      if (this.kept.size > 60) for (const old of [...this.kept.keys()].slice(1, 30)) this.kept.delete(old);
      this.kept.set(key, found);
    }
    return found;
  }

  // ---- what is known -----------------------------------------------------------------------------------------------

  get condition(): Condition {
    const { conditions, active } = this.situation.value;
    return conditions[active];
  }

  /** Set what is known of a column, or forget it. While something is dragged, no step is kept. */
  know(n: number, known: Known | undefined, step = true): void {
    const { conditions, active } = this.situation.value;
    const next = new Map(conditions[active]);
    if (known) next.set(n, known);
    else next.delete(n);
    this.put({ conditions: conditions.map((each, i) => (i === active ? next : each)), active }, step);
  }

  private before: Situation | undefined;

  /** Whether something is being dragged. */
  get dragging(): boolean {
    return this.before !== undefined;
  }

  put(next: Situation, step = true): void {
    const before = this.before ?? this.situation.value;
    this.before = step ? undefined : before;
    if (step && situationText(before) !== situationText(next)) {
      this.move(next, [...this.past.value, before].slice(-MOST_PAST), []);
    } else this.situation.value = next;
  }

  /** Change the situation and the steps around it together, so that nothing is drawn in between. */
  private move(next: Situation, past: readonly Situation[], future: readonly Situation[]): void {
    batch(() => {
      this.situation.value = next;
      this.past.value = past;
      this.future.value = future;
    });
  }

  undo(): void {
    const last = this.past.value.at(-1);
    if (!last) return;
    this.move(last, this.past.value.slice(0, -1), [...this.future.value, this.situation.value]);
  }

  redo(): void {
    const next = this.future.value.at(-1);
    if (!next) return;
    this.move(next, [...this.past.value, this.situation.value], this.future.value.slice(0, -1));
  }

  clear(): void {
    const { conditions, active } = this.situation.value;
    this.put({ conditions: conditions.map((each, i) => (i === active ? NOTHING : each)), active });
  }

  /** Put a second condition beside the first, which it begins as, or take it away. */
  compare(): void {
    const { conditions, active } = this.situation.value;
    this.put(
      conditions.length > 1
        ? { conditions: [conditions[active]], active: 0 }
        : { conditions: [conditions[0], conditions[0]], active: 1 },
    );
  }

  activate(active: number): void {
    this.put({ ...this.situation.value, active });
  }

  /** Positions of the rows that agree with what is known. */
  get agreeing(): readonly number[] {
    return this.agreed.value;
  }

  private agree(condition: Condition): number[] {
    const { rows, columns } = this;
    const regions = [...evidenceOf(columns, condition)];
    return Array.from({ length: rows?.length ?? 0 }, (_, row) => row).filter((row) =>
      regions.every(([n, region]) => holds(region, rows!.at(row, n))),
    );
  }

  // ---- the address -------------------------------------------------------------------------------------------------

  get address(): string {
    const { conditions, active } = this.situation.value;
    const parts = new Map<string, string>();
    if (conditions[0].size) parts.set("a", written(conditions[0]));
    if (conditions.length > 1) parts.set("b", written(conditions[1]));
    if (active) parts.set("on", "b");
    if (this.sort.value !== "table") parts.set("sort", this.sort.value);
    if (this.target.value >= 0) parts.set("of", String(this.target.value));
    if (this.pair.value.length) parts.set("pair", this.pair.value.join("."));
    return [...parts].map(([key, value]) => `${key}=${encodeURI(value)}`).join("&");
  }

  set address(text: string) {
    let plain = "";
    try {
      plain = decodeURI(text.replace(/^#/, ""));
    } catch {
      // an address that cannot be read says nothing
    }
    const parts = new Map(plain.split("&").map((part) => [part.split("=")[0], part.split("=").slice(1).join("=")]));
    const conditions = ["a", "b"].filter((key) => key === "a" || parts.has(key));
    const sort = parts.get("sort") as Sort;
    const position = (value: string | undefined) => (value && this.cards.includes(Number(value)) ? Number(value) : -1);
    const pair = (parts.get("pair") ?? "").split(".").map(position);
    batch(() => {
      this.sort.value = SORTS.includes(sort) ? sort : "table";
      this.target.value = position(parts.get("of"));
      this.pair.value = pair.filter((n) => n >= 0).slice(0, 2);
      this.put({
        conditions: conditions.map((key) => readCondition(parts.get(key) ?? "", this.columns)),
        active: parts.get("on") === "b" && conditions.length > 1 ? 1 : 0,
      });
    });
  }

  // ---- what is drawn -----------------------------------------------------------------------------------------------

  /** The answers that the filled shapes show. */
  get shown(): Answers {
    const current = this.answers.value[this.situation.value.active];
    if (current.ready || !this.last) this.last = current;
    return this.last;
  }

  /** Those behind them: the other condition, or nothing known. */
  get ghost(): Answers {
    const { conditions, active } = this.situation.value;
    const other = this.answers.value[1 - active];
    return conditions.length > 1 && other.ready ? other : this.prior;
  }

  /** How much a column has moved, if that is known already. */
  moved(n: number): number {
    const [now, before] = [this.shown.peek(n), this.ghost.peek(n)];
    return now && before ? distance(now, before) : 0;
  }

  /** A card has come into view, or has left it. */
  see(n: number, visible: boolean): void {
    if (visible === this.seen.has(n)) return;
    if (visible) this.seen.add(n);
    else this.seen.delete(n);
    if (visible && this.draws(n)) this.work();
    this.version.value++;
  }

  isSeen(n: number): boolean {
    return this.seen.has(n);
  }

  private draws(n: number): boolean {
    const all = [n, ...(this.gaps.has(n) ? [this.gaps.get(n)!] : [])];
    return all.some((m) => [...this.answers.value, this.prior].some((answers) => answers.ready && !answers.has(m)));
  }

  /** Milliseconds that drawing can wait, since the answers for the cards in view may come any moment. */
  get patience(): number {
    return this.hasAll() ? 0 : Math.max(this.began + SOON - performance.now(), 0);
  }

  // ---- work --------------------------------------------------------------------------------------------------------

  private restart(sort: Sort, target: number, pair: readonly number[], begins = true): void {
    this.complete = false;
    if (begins) this.began = this.drawn = performance.now();
    this.consult();
    this.jobs = [this.inView()];
    if (this.answers.value.some((answers) => !answers.ready)) {
      this.work();
      return; // the rest begins again when they are
    }
    this.jobs.push(this.everything());
    if (pair.length === 2) this.jobs.splice(1, 0, this.drawHeat(pair));
    else this.heat.value = undefined;
    if (sort === "ask" && target >= 0) this.jobs.splice(1, 0, this.ask(target));
    this.work();
  }

  private again(): void {
    untracked(() => this.restart(this.sort.value, this.target.value, this.pair.value, false));
  }

  /** Ask the other thread for what is not ready; without one, compute it here. */
  private consult(): void {
    const { value } = this.answers;
    this.helper?.keep(value.map((answers) => written(answers.condition)));
    for (const answers of value.filter((each) => !each.ready)) {
      if (this.helped) this.request(answers, this.wanted());
      else void answers.logEvidence;
    }
  }

  /** Columns whose answers are wanted at once: those in view, and all if they are few. */
  private wanted(): number[] {
    const cards = this.cards.length <= FEW ? this.cards : [...this.seen];
    return [...cards, ...cards.flatMap((n) => this.gaps.get(n) ?? [])];
  }

  private request(answers: Answers, columns: readonly number[]): void {
    const { condition, ready } = answers;
    this.helper?.ask(written(condition), evidenceOf(this.columns, condition), columns, (reply) => {
      answers.take(reply);
      if (reply.done && !ready) {
        this.learn(condition, reply.milliseconds);
        this.again();
      } else {
        if (reply.done) this.jobs.push(this.everything());
        this.work();
      }
    });
  }

  /** Ask the other thread for columns of the answers that it began; of those it has not been asked for yet. */
  private requestMissing(columns: readonly number[]): void {
    for (const answers of this.helped ? this.answers.value : []) {
      const missing = columns.filter((n) => answers.ready && !answers.has(n));
      if (missing.length && !answers.local) this.request(answers, missing.slice(0, FEW));
    }
  }

  /** Do what is left in slices, so that the page stays awake; what is in view comes first, and mostly at once. */
  private work(): void {
    if (!this.jobs.length || !this.seesAll()) this.jobs.unshift(this.inView());
    this.busy.value = true;
    this.spend(SLICE);
    // mostly nothing is left once the cards in view are there: then one drawing is enough
    if (this.seesAll()) this.spend(LITTLE);
    const over = !this.jobs.length && !this.helper?.busy;
    // cards in view are drawn together, when all are there; only slow ones are drawn one after the other
    const complete = this.hasAll();
    const late = !complete && performance.now() > this.drawn + PATIENCE;
    if ((complete && !this.complete) || late || over) {
      this.drawn = performance.now();
      this.version.value++;
    }
    this.complete = complete;
    if (over) {
      this.busy.value = false;
      this.weigh();
    } else if (this.jobs.length && !this.waiting) {
      this.waiting = true;
      setTimeout(() => {
        this.waiting = false;
        this.work();
      }, 0);
    }
  }

  /** Learn what the answers cost that were computed here; if one took long, start another thread. */
  private weigh(): void {
    for (const answers of this.answers.value) {
      if (!answers.local || this.weighed.has(answers)) continue;
      this.weighed.add(answers);
      // the first answers wait for the browser to compile, so they tell little of others
      if (answers !== this.prior) this.learn(answers.condition, answers.cost);
      if (answers.cost > SLOW) this.helper?.prepare();
    }
  }

  private learn(condition: Condition, milliseconds: number): void {
    const sort = sortOf(this.columns, condition);
    this.costs.set(sort, 0.5 * ((this.costs.get(sort) ?? milliseconds) + milliseconds));
  }

  private spend(milliseconds: number): void {
    const end = performance.now() + milliseconds;
    while (this.jobs.length && performance.now() < end) if (this.jobs[0].next().done) this.jobs.shift();
  }

  private seesAll(): boolean {
    return ![...this.seen].some((n) => this.draws(n));
  }

  /** Whether the answers for all cards in view are there. */
  private hasAll(): boolean {
    return this.answers.value.every((answers) => answers.ready) && this.seesAll();
  }

  private *inView(): Generator<void> {
    this.requestMissing(this.wanted());
    for (const n of [...this.seen]) yield* this.fill(n);
  }

  /** Margins of all columns, if there are not so many that it would take long. */
  private *everything(): Generator<void> {
    const wanted = this.cards.length <= FEW || this.sort.value === "moved" || this.condition.size > 0;
    if (wanted) this.requestMissing([...this.cards, ...this.gaps.values()]);
    for (const n of wanted ? this.cards : []) yield* this.fill(n);
  }

  private *fill(n: number): Generator<void> {
    for (const m of [n, ...(this.gaps.has(n) ? [this.gaps.get(n)!] : [])]) {
      for (const answers of [...this.answers.value, this.prior]) {
        if (answers.has(m) || !answers.ready || (this.helped && !answers.local)) continue;
        answers.margin(m);
        yield;
      }
    }
  }

  private *ask(target: number): Generator<void> {
    if (this.asked !== target) this.told.value = new Map();
    this.asked = target;
    const { columns, condition } = this;
    const known = evidenceOf(columns, condition);
    if (!this.shown.possible || this.settled(target)) {
      this.told.value = new Map();
      return;
    }
    const found = groups(columns[target], this.shown.margin(target), TOLD_GROUPS, known.get(target));
    const others = this.cards.filter((n) => n !== target && !this.settled(n));
    const bits = new Map<number, number>(others.map((n) => [n, 0]));
    for (const { group, margins } of byGroups(this.model, known, target, found, others)) {
      for (const [n, margin] of margins) {
        bits.set(n, bits.get(n)! + group.mass * divergence(margin, this.shown.margin(n)));
      }
      yield;
    }
    this.told.value = bits;
  }

  /** Whether a column has one value only. */
  settled(n: number): boolean {
    const known = this.condition.get(n);
    return known?.kind === "value" || (known?.kind === "set" && known.codes.length === 1);
  }

  private *drawHeat([a, b]: readonly number[]): Generator<void> {
    const { columns, condition } = this;
    const known = evidenceOf(columns, condition);
    if (!this.shown.possible) return;
    const size = HEAT_GROUPS;
    const rows = groups(columns[b], this.shown.margin(b), size, known.get(b), true);
    const across = groups(columns[a], this.shown.margin(a), size, known.get(a), true);
    const table = new Float64Array(rows.length * across.length);
    let at = 0;
    let drawn = performance.now();
    for (const { group, margins } of byGroups(this.model, known, a, across, [b])) {
      const margin = margins.get(b)!;
      const column = across.indexOf(group, at);
      at = column + 1;
      rows.forEach((row, i) => {
        let sum = 0;
        for (const cell of row.cells) sum += margin[cell];
        table[i * across.length + column] = sum * group.mass;
      });
      yield;
      if (performance.now() < drawn + PATIENCE) continue;
      drawn = performance.now();
      this.heat.value = { rows, columns: across, table, done: false };
    }
    this.heat.value = { rows, columns: across, table, done: true };
  }
}

function holds(region: Region, value: number): boolean {
  if (region.kind === "interval") return region.low <= value && value <= region.high;
  return region.kind === "point" ? region.value === value : region.values.includes(value);
}

/** How many numbers are known as ranges and as values: conditions with as many of both take about as long. */
function sortOf(columns: readonly Column[], condition: Condition): string {
  const numbers = [...condition].filter(([n]) => !columns[n].categories);
  const values = numbers.filter(([, known]) => known.kind === "value").length;
  return `${numbers.length - values} ${values}`;
}

function situationText({ conditions, active }: Situation): string {
  return `${conditions.map(written).join("|")} ${active}`;
}
