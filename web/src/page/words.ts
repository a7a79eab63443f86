/** Numbers, dates and conditions as a person reads them. */

import type { Column } from "../model/model.ts";
import type { Condition, Known } from "./known.ts";

const DAY = 86_400_000;
/** Most characters of a name or label that are shown. */
const LONGEST = 60;

/** Text with controls and marks of direction as escapes, cut to a length. */
export function visible(text: string, longest = LONGEST): string {
  const short = text.length > longest ? `${[...text.slice(0, 2 * longest)].slice(0, longest - 1).join("")}…` : text;
  return short.replace(HIDDEN, (sign) => `\\u${sign.codePointAt(0)!.toString(16).padStart(4, "0")}`);
}

/** Controls, marks of direction and halves of pairs; not the joiners, without which some scripts cannot be written. */
const HIDDEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** A share as a percentage. */
export function percent(share: number): string {
  if (!(share >= 0)) return "–";
  if (share === 0) return "0%";
  if (share < 0.0005) return "<0.1%";
  if (share > 0.9995) return share > 1 - 1e-9 ? "100%" : ">99.9%";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

/** Decimals that tell the cells of a column apart. */
function decimals(column: Column): number {
  if (column.kind === "integer") return 0;
  const { edges } = column;
  const width = edges.length > 1 ? (edges[edges.length - 1] - edges[0]) / (edges.length - 1) : 1;
  return Math.min(Math.max(Math.ceil(-Math.log10(width) + 0.3), 0), 12);
}

/** A value of a number or date. */
export function shown(column: Column, value: number, exact = false): string {
  if (column.temporal) return dateText(column, value);
  if (exact) return plain(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-5)) return value.toPrecision(3);
  const digits = decimals(column);
  const text = value.toFixed(digits);
  return size >= 10_000 ? grouped(text) : text.replace(/^-(0(?:\.0*)?)$/, "$1");
}

/** The shortest text of a number. */
export function plain(value: number): string {
  return String(Number.parseFloat(value.toPrecision(12)));
}

function grouped(text: string): string {
  const [whole, part] = text.split(".");
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return part ? `${groups}.${part}` : groups;
}

/** A date, with a time if the column has them. */
export function dateText(column: Column, days: number): string {
  const date = new Date(days * DAY);
  if (Number.isNaN(date.getTime())) return plain(days);
  const text = date.toISOString();
  return column.dtype === "date" ? text.slice(0, text.indexOf("T")) : text.slice(0, 16);
}

/** Days since 1970 of a date as a field gives it; null if it is none. */
export function daysOf(text: string): number | null {
  const time = Date.parse(text.includes("T") ? `${text}Z` : text);
  return Number.isFinite(time) ? time / DAY : null;
}

/** What is known, in words: `alcohol 12.5 to 14`. */
export function phrase(column: Column, known: Known, longest = LONGEST): string {
  const name = visible(column.name, longest);
  if (known.kind === "set") {
    const labels = known.codes.map((code) => visible(column.label(code), 24));
    return `${name} = ${labels.length > 4 ? `${labels.slice(0, 3).join(", ")} and ${labels.length - 3} more` : labels.join(" or ")}`;
  }
  if (known.kind === "value") return `${name} = ${shown(column, known.value, true)}`;
  const [low, high] = [known.low, known.high].map((end) => (end === null ? "" : shown(column, end, true)));
  if (!low) return `${name} ≤ ${high}`;
  return high ? `${name} ${low} to ${high}` : `${name} ≥ ${low}`;
}

export function sentence(columns: readonly Column[], condition: Condition): string {
  const parts = [...condition].map(([n, known]) => {
    const { gapOf } = columns[n];
    return gapOf >= 0 ? gapPhrase(columns[gapOf], known) : phrase(columns[n], known);
  });
  return parts.length ? parts.join(", ") : "nothing";
}

/** A gap in words: `pay unknown`. */
export function gapPhrase(column: Column, known: Known): string {
  const missing = known.kind === "set" && known.codes[0] === 1;
  return `${visible(column.name)} ${missing ? "unknown" : "filled in"}`;
}

/** How probable something is, in words. */
export function chance(log: number): string {
  const p = Math.exp(log);
  if (p >= 0.9995) return "certain";
  if (p >= 0.01) return percent(p);
  if (log < -690) return `1 in 10^${Math.round(-log / Math.LN10)}`;
  const odds = 1 / p;
  if (odds < 1e6) return `1 in ${grouped(String(Number(odds.toPrecision(2))))}`;
  return `1 in ${odds.toExponential(0).replace("e+", "·10^")}`;
}
