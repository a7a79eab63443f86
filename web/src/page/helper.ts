/** A thread that computes, started when it is first asked; one question at a time, and only the newest ones wait. */

import type { Evidence } from "../model/model.ts";
import type { Question, Reply } from "../worker.ts";

/** The script of the page runs in the thread as well; its libraries want to see a document. */
const STAND_IN = "self.jointwiseThread = true; self.document = { createComment() {}, createTreeWalker() {} };\n";

/** Whether this is such a thread. */
export function isThread(): boolean {
  return "jointwiseThread" in globalThis;
}

interface Task {
  readonly key: string;
  readonly evidence: Evidence;
  readonly columns: readonly number[];
  readonly done: (reply: Reply) => void;
}

export class Helper {
  private worker: Worker | undefined;
  private current: Task | undefined;
  private waiting: Task[] = [];
  /** Whether threads cannot be had here: then the page computes by itself. */
  failed = false;

  constructor(
    /** The script of the page. */
    private readonly script: string,
    private readonly packed: string,
  ) {}

  /** Ask for the cells of some columns; what is asked twice is answered once. */
  ask(key: string, evidence: Evidence, columns: readonly number[], done: (reply: Reply) => void): void {
    if (this.current?.key === key || this.waiting.some((task) => task.key === key)) return;
    this.waiting.push({ key, evidence, columns, done });
    this.next();
  }

  /** Start, so that the first question need not wait for that. */
  prepare(): void {
    try {
      this.worker ??= this.start();
    } catch {
      this.stop();
    }
  }

  /** Forget the questions that nobody waits for any more. */
  keep(keys: readonly string[]): void {
    this.waiting = this.waiting.filter((task) => keys.includes(task.key));
  }

  /** Whether an answer is still to come. */
  get busy(): boolean {
    return this.current !== undefined || this.waiting.length > 0;
  }

  private next(): void {
    if (this.current || this.failed) return;
    const task = this.waiting.shift();
    if (!task) return;
    this.prepare();
    if (this.failed) return;
    this.current = task;
    this.send({ evidence: task.evidence, columns: task.columns });
  }

  private start(): Worker {
    // Chromium runs no modules in threads of a page from disk, so what makes it one is taken away
    const plain = this.script.replace(/export\s*\{[^{}]*\};?\s*$/, "");
    const worker = new Worker(URL.createObjectURL(new Blob([STAND_IN, plain], { type: "text/javascript" })));
    this.worker = worker;
    worker.addEventListener("error", () => this.stop());
    worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
      const task = this.current;
      this.current = undefined;
      performance.mark("jointwise helped");
      task?.done(data);
      this.next();
    });
    this.send({ packed: this.packed });
    return worker;
  }

  private send(question: Question): void {
    this.worker?.postMessage(question);
  }

  /** What to do when threads turn out not to work: whoever listens computes by itself. */
  onFailure: () => void = () => {};

  private stop(): void {
    this.failed = true;
    this.worker?.terminate();
    [this.worker, this.current, this.waiting] = [undefined, undefined, []];
    this.onFailure();
  }
}
