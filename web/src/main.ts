/** The page in one file, which reads the model that stands in it and keeps its state in the address; and the widget. */

import { effect } from "@preact/signals-core";
import { unpacked } from "./model/container.ts";
import type { ModelParts } from "./model/model.ts";
import { Explorer } from "./page/explorer.ts";
import { Helper, isThread } from "./page/helper.ts";
import { mount } from "./page/mount.ts";
import { serve } from "./worker.ts";

export { default } from "./widget.ts";

async function start(text: string): Promise<void> {
  const root = document.getElementById("explore") as HTMLElement;
  if (typeof DecompressionStream === "undefined") throw new Error("This page needs a browser from 2023 or later.");
  const explorer = new Explorer((await unpacked(text)) as ModelParts, new Helper(ownScript(), text));
  explorer.address = location.hash;
  explorer.past.value = [];
  mount(root, explorer, true);
  effect(() => {
    const { address } = explorer;
    if (location.protocol === "about:") return; // in a frame without an address of its own
    // while something is dragged the address would change too often
    clearTimeout(later);
    later = setTimeout(() => {
      if (`#${address}` !== location.hash && (address || location.hash)) history.replaceState(null, "", `#${address}`);
    }, 120);
  });
  addEventListener("hashchange", () => {
    if (location.hash !== `#${explorer.address}`) explorer.address = location.hash;
  });
}

let later: ReturnType<typeof setTimeout> | undefined;

/** The script of this page, for a second thread. */
function ownScript(): string {
  return document.querySelector('script[type="module"]')?.textContent ?? "";
}

// a thread has no page, and serves; in a notebook there is no such element, and the widget is asked to draw
const model = isThread() ? serve() : document.getElementById("jointwise-model")?.textContent;
if (model) {
  start(model).catch((error: unknown) => {
    const root = document.getElementById("explore");
    if (root)
      root.textContent = `The page could not be drawn: ${error instanceof Error ? error.message : String(error)}`;
  });
}
