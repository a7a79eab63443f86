/** The cards as one SVG text with its own colours, to take into a document. */

import type { Explorer } from "./explorer.ts";
import { BASE, HEIGHT, heights, SIDE, shape, tailBoxes, ticks, WIDTH } from "./shapes.ts";
import { summary } from "./summary.ts";
import { listed } from "./view.ts";
import { percent, sentence, shown, visible } from "./words.ts";

const [ACROSS, GAP, HEAD, MOST, FEW] = [3, 24, 40, 24, 8];
const TALL = HEIGHT + 52;
const [INK, SOFT, ACCENT, FILL] = ["#1b1b1b", "#5c5c5c", "#0072b2", "#bfdcec"];

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function text(
  x: number,
  y: number,
  words: string,
  size: number,
  colour: string,
  anchor = "start",
  weight = 400,
): string {
  return `<text x="${x}" y="${y}" font-size="${size}" font-weight="${weight}" fill="${colour}" text-anchor="${anchor}">${escaped(words)}</text>`;
}

export function asSvg(explorer: Explorer): string {
  const list = listed(explorer).slice(0, MOST);
  const columns = Math.min(ACROSS, list.length);
  const width = columns * (WIDTH + GAP) + GAP;
  const height = HEAD + Math.ceil(list.length / columns) * (TALL + GAP);
  const parts = list.map((n, i) => {
    const x = GAP + (i % columns) * (WIDTH + GAP);
    const y = HEAD + Math.floor(i / columns) * (TALL + GAP);
    return `<g transform="translate(${x} ${y})">${one(explorer, n)}</g>`;
  });
  const head = explorer.condition.size
    ? `Given ${sentence(explorer.columns, explorer.condition)}`
    : visible(explorer.model.title, 80);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif">${text(GAP, 26, head, 15, INK, "start", 600)}${parts.join("")}</svg>`;
}

function one(explorer: Explorer, n: number): string {
  const column = explorer.columns[n];
  const name = text(0, 14, visible(column.name, 40), 13, INK, "start", 600);
  const { shown: now, ghost } = explorer;
  if (!now.possible) return name;
  const [cells, before] = [now.margin(n), ghost.possible ? ghost.margin(n) : undefined];
  if (column.categories) {
    const order = Array.from(cells, (_, i) => i);
    if (cells.length > FEW) order.sort((a, b) => cells[b] - cells[a]);
    const chosen = order.slice(0, FEW);
    const most = Math.max(...chosen.map((i) => Math.max(cells[i], before?.[i] ?? 0)), 1e-9);
    const bars = chosen.map((i, k) => {
      const y = 24 + k * 14;
      const mark = before ? `<path d="M${110 + (160 * before[i]) / most} ${y}v11" stroke="${SOFT}"/>` : "";
      return `${text(104, y + 9, visible(column.categories![i], 18), 10, INK, "end")}<rect x="110" y="${y + 1}" width="${(160 * cells[i]) / most}" height="9" fill="${ACCENT}"/>${mark}${text(WIDTH, y + 9, percent(cells[i]), 10, SOFT, "end")}`;
    });
    return name + bars.join("");
  }
  const tall = heights(column, cells);
  const old = before && heights(column, before);
  const most = Math.max(...tall, ...(old ?? []), 1e-12);
  const [filled, line] = [shape(column, tall, most), old && shape(column, old, most)];
  const boxes = tailBoxes(filled.tails).map(
    (box) => `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" fill="${FILL}"/>`,
  );
  const marks = ticks(column).map((tick) => text(tick.x, BASE + 14, tick.text, 10, SOFT, "middle"));
  const facts = summary(column, cells);
  const words = `median ${shown(column, facts.median)}, 80% ${shown(column, facts.low)} – ${shown(column, facts.high)}`;
  return `${name}<g transform="translate(0 20)"><path d="${filled.area}" fill="${FILL}"/><path d="${filled.line}" fill="none" stroke="${ACCENT}" stroke-width="1.5"/>${boxes.join("")}${line ? `<path d="${line.line}" fill="none" stroke="${SOFT}" stroke-dasharray="2 2"/>` : ""}<path d="M${SIDE} ${BASE}H${WIDTH - SIDE}" stroke="${SOFT}"/>${marks.join("")}${text(SIDE, BASE + 32, words, 10, SOFT)}</g>`;
}
