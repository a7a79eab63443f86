/** The state as text to take elsewhere: Python, a command, a table. */

import type { Column } from "../model/model.ts";
import type { Explorer } from "./explorer.ts";
import type { Condition, Known } from "./known.ts";
import { argmax, summary } from "./summary.ts";
import { dateText, percent, plain, shown } from "./words.ts";

/** A text as Python writes it. */
function pythonText(text: string): string {
  // JSON's escapes are Python's, but for those of signs beyond the first plane, which JSON leaves as they are
  return JSON.stringify(text)
    .replace(/[\u007f-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replace(/\\ud([89ab][0-9a-f]{2})\\ud([c-f][0-9a-f]{2})/g, (_, high, low) => {
      const code = 0x10000 + ((Number.parseInt(high, 16) - 0x800) << 10) + (Number.parseInt(low, 16) - 0xc00);
      return `\\U${code.toString(16).padStart(8, "0")}`;
    });
}

/** A date or time; one of a column with a zone is in UTC. */
function moment(column: Column, value: number): string {
  return dateText(column, value) + (column.dtype.includes(",") ? "+00:00" : "");
}

function pythonValue(column: Column, value: number): string {
  return column.temporal ? pythonText(moment(column, value)) : plain(value);
}

function pythonCategory(column: Column, code: number): string {
  const value = column.categories ? column.values[code] : code;
  if (typeof value === "string") return pythonText(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  return String(value);
}

function pythonKnown(column: Column, known: Known): string {
  if (known.kind === "set") {
    const values = known.codes.map((code) => pythonCategory(column, code));
    return values.length === 1 ? values[0] : `{${values.join(", ")}}`;
  }
  if (known.kind === "value") return pythonValue(column, known.value);
  const ends = [known.low, known.high].map((end) => (end === null ? "None" : pythonValue(column, end)));
  return `(${ends.join(", ")})`;
}

/** `density.condition({...})`, one line for each condition. */
export function asPython(explorer: Explorer): string {
  const lines = explorer.situation.value.conditions.map((condition) => {
    if (!condition.size) return "density";
    const parts = [...condition].map(([n, known]) => {
      const column = explorer.columns[n];
      return `${pythonText(column.name)}: ${pythonKnown(column, known)}`;
    });
    return `density.condition({${parts.join(", ")}})`;
  });
  return lines.join("\n");
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function asked(column: Column, known: Known): string {
  const name = quoted(column.name);
  if (known.kind === "set") {
    const values = known.codes.map((code) => (column.categories ? quoted(column.label(code)) : column.label(code)));
    return values.length === 1 ? `${name} = ${values[0]}` : `${name} in {${values.join(", ")}}`;
  }
  const text = (value: number) => (column.temporal ? moment(column, value) : plain(value));
  if (known.kind === "value") return `${name} = ${text(known.value)}`;
  return `${name} in ${known.low === null ? "" : text(known.low)}..${known.high === null ? "" : text(known.high)}`;
}

function question(columns: readonly Column[], condition: Condition, about: number): string {
  const given = [...condition].map(([n, known]) => asked(columns[n], known)).join(", ");
  return quoted(columns[about].name) + (given ? ` | ${given}` : "");
}

/** `jointwise query MODEL '...'`, which asks for the column that moved most. */
export function asCommand(explorer: Explorer): string {
  const { columns, cards, condition } = explorer;
  const free = cards.filter((n) => !condition.has(n));
  const chosen =
    explorer.sort.value === "ask" && explorer.target.value >= 0
      ? explorer.target.value
      : free[argmax(free.map((n) => explorer.moved(n)))];
  const text = question(columns, condition, chosen ?? cards[0]);
  return `jointwise query MODEL '${text.replaceAll("'", `'\\''`)}'`;
}

/** Rows of the summary table: the name of each column, and what is said of it now and before. */
export function rows(explorer: Explorer): string[][] {
  const heads = ["column", "known", "mean", "median", "10%", "90%", "most probable", "before", "moved"];
  const { shown: now, ghost, condition } = explorer;
  const body = explorer.cards.map((n) => {
    const column = explorer.columns[n];
    const [cells, old] = [now.possible ? now.margin(n) : undefined, ghost.possible ? ghost.margin(n) : undefined];
    const known = condition.get(n);
    const mark = known ? "yes" : "";
    if (column.categories) {
      return [
        column.name,
        mark,
        "",
        "",
        "",
        "",
        top(column, cells),
        top(column, old),
        cells && old ? percent(explorer.moved(n)) : "",
      ];
    }
    const text = (value: number) => shown(column, value);
    const facts = cells && summary(column, cells);
    const before = old && summary(column, old);
    const numbers = facts ? [facts.mean, facts.median, facts.low, facts.high].map(text) : ["", "", "", ""];
    return [
      column.name,
      mark,
      ...numbers,
      "",
      before ? text(before.median) : "",
      cells && old ? percent(explorer.moved(n)) : "",
    ];
  });
  return [heads, ...body];
}

function top(column: Column, cells: Float64Array | undefined): string {
  if (!cells) return "";
  const best = argmax(cells);
  return `${column.categories![best]} ${percent(cells[best])}`;
}

/** Tab-separated rows, as spreadsheets take them. */
export function asTable(explorer: Explorer): string {
  // a cell that begins like a formula is text
  const cell = (text: string) =>
    (/^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text).replace(/[\t\r\n]/g, " ");
  return rows(explorer)
    .map((row) => row.map(cell).join("\t"))
    .join("\n");
}
