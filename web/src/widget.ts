/** The same in a notebook: anywidget gives the packed model, and evidence goes both ways. */

import { effect } from "@preact/signals-core";
import { unpacked } from "./model/container.ts";
import type { Column, ModelParts } from "./model/model.ts";
import { Explorer } from "./page/explorer.ts";
import { type Condition, type Known, range, setOf, written } from "./page/known.ts";
import { mount } from "./page/mount.ts";

/** What Python holds: by name, the positions of categories (or some integers), or the ends of a range. */
type Plain = Record<string, { codes: number[] } | { ends: [number | null, number | null] }>;

interface Host {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, call: () => void): void;
  off(event: string, call: () => void): void;
}

function plain(columns: readonly Column[], condition: Condition): Plain {
  return Object.fromEntries(
    [...condition].map(([n, known]): [string, Plain[string]] => {
      if (known.kind === "set") return [columns[n].name, { codes: [...known.codes] }];
      return [columns[n].name, { ends: known.kind === "value" ? [known.value, known.value] : [known.low, known.high] }];
    }),
  );
}

function conditionOf(columns: readonly Column[], given: Plain): Condition {
  const found = new Map<number, Known>();
  const keep = (n: number, known: Known | undefined) => known && found.set(n, known);
  columns.forEach((column, n) => {
    const each = Object.hasOwn(given, column.name) ? given[column.name] : undefined;
    if (!each) return;
    if ("ends" in each) keep(n, range(...each.ends));
    else keep(n, column.categories ? { kind: "set", codes: each.codes } : setOf(each.codes));
  });
  return found;
}

async function render({ model, el }: { model: Host; el: HTMLElement }): Promise<() => void> {
  const explorer = new Explorer((await unpacked(String(model.get("_packed")))) as ModelParts);
  const root = document.createElement("div");
  el.append(root);
  const read = () => {
    const condition = conditionOf(explorer.columns, (model.get("_known") as Plain | null) ?? {});
    if (written(condition) === written(explorer.condition)) return;
    const { conditions, active } = explorer.situation.value;
    explorer.put({ conditions: conditions.map((each, i) => (i === active ? condition : each)), active });
  };
  read();
  const unmount = mount(root, explorer, false);
  model.on("change:_known", read);
  let sent = written(explorer.condition);
  const stop = effect(() => {
    const { condition } = explorer;
    void explorer.situation.value;
    if (written(condition) === sent) return;
    sent = written(condition);
    model.set("_known", plain(explorer.columns, condition));
    model.save_changes();
  });
  return () => {
    stop();
    model.off("change:_known", read);
    unmount();
  };
}

export default { render };
