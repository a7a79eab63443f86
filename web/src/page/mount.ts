/** Puts an explorer into an element: draws when something changes, watches which cards are in view, and listens to keys. */

import { effect, signal } from "@preact/signals-core";
import { render } from "lit-html";
import { asCommand, asPython, asTable } from "./copy.ts";
import { asSvg } from "./drawing.ts";
import type { Explorer } from "./explorer.ts";
import { type Tools, view } from "./view.ts";

let count = 0;

/** Draws the page into `root`; returns what takes it away again. */
export function mount(root: HTMLElement, explorer: Explorer, linked: boolean): () => void {
  root.classList.add("jw");
  const redrawn = signal(0);
  const tools: Tools = {
    open: new Set(),
    wanted: new Map(),
    redraw: () => {
      redrawn.value++;
    },
    copy: (what) => void copy(root, explorer, what),
    linked,
    id: `jw${count++}`,
  };
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries)
        explorer.see(Number((entry.target as HTMLElement).dataset.card), entry.isIntersecting);
    },
    { rootMargin: "400px" },
  );
  const watched = new Set<Element>();
  let asked = false;
  let drawn = false;
  let later: ReturnType<typeof setTimeout> | undefined;
  const draw = () => {
    asked = false;
    if (later !== undefined) return; // something has changed since: there is a drawing to come
    render(view(explorer, tools), root);
    if (!drawn && root.querySelector(".picture, .bars")) {
      drawn = true;
      performance.mark("jointwise drawn");
    }
    root.toggleAttribute("data-busy", explorer.busy.value);
    const cards = new Set(root.querySelectorAll("[data-card]"));
    for (const card of cards) if (!watched.has(card)) watcher.observe(card);
    for (const card of watched) if (!cards.has(card)) watcher.unobserve(card);
    watched.clear();
    for (const card of cards) watched.add(card);
  };
  const ask = () => {
    later = undefined;
    if (asked) return;
    asked = true;
    queueMicrotask(draw);
  };
  const stop = effect(() => {
    // all that the view reads
    const { situation, sort, target, pair, search, version, busy, heat, told, past, future } = explorer;
    for (const each of [situation, sort, target, pair, search, version, busy, heat, told, past, future, redrawn])
      void each.value;
    clearTimeout(later);
    const { patience } = explorer;
    if (patience) {
      // nothing is drawn until then: a frame that shows nothing new would put off the next one
      root.toggleAttribute("data-busy", true);
      later = setTimeout(ask, patience);
    } else ask();
  });
  const keys = (event: KeyboardEvent) => {
    // a page is alone in its window; a widget is not
    if (linked || root.contains(event.target as Node)) pressed(root, explorer, event);
  };
  root.ownerDocument.addEventListener("keydown", keys);
  return () => {
    stop();
    clearTimeout(later);
    watcher.disconnect();
    root.ownerDocument.removeEventListener("keydown", keys);
    render("", root);
  };
}

function pressed(root: HTMLElement, explorer: Explorer, event: KeyboardEvent): void {
  const field = event.target instanceof Element && event.target.closest("input, select, textarea");
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (command && key === "z" && !field) {
    event.preventDefault();
    if (event.shiftKey) explorer.redo();
    else explorer.undo();
  } else if (command && key === "y" && !field) {
    event.preventDefault();
    explorer.redo();
  } else if (event.key === "/" && !field) {
    event.preventDefault();
    root.querySelector<HTMLElement>("[data-find]")?.focus();
  } else if (event.key === "Escape") {
    root.querySelector("details[open]")?.removeAttribute("open");
    root.querySelector(".copied")?.remove();
  }
}

async function copy(
  root: HTMLElement,
  explorer: Explorer,
  what: "python" | "command" | "table" | "svg" | "link",
): Promise<void> {
  const makers = {
    python: asPython,
    command: asCommand,
    table: asTable,
    svg: asSvg,
    link: () => root.ownerDocument.location.href,
  };
  const text = makers[what](explorer);
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = false;
  }
  tell(root, done ? "Copied" : "Copy this text", text);
}

/** Shows what was copied, selected, so that it can be copied by hand too. */
function tell(root: HTMLElement, words: string, text: string): void {
  root.querySelector(".copied")?.remove();
  const { ownerDocument: page } = root;
  const box = page.createElement("div");
  box.className = "copied";
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-label", words);
  const head = page.createElement("p");
  head.textContent = words;
  const area = page.createElement("textarea");
  area.readOnly = true;
  area.value = text;
  area.setAttribute("aria-label", "Copied text");
  const close = page.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => box.remove());
  box.append(head, area, close);
  root.append(box);
  area.focus();
  area.select();
}
