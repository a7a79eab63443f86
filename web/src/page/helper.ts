/** A thread that computes. It works on one question at a time, and only on questions that someone waits for. */

import type { Evidence } from "../model/model.ts";
import type { Answer, Message, Question, Reply } from "../worker.ts";

/** The script of the page runs in the thread as well; its libraries want to see a document. */
const STAND_IN = "self.jointwiseThread = true; self.document = { createComment() {}, createTreeWalker() {} };\n";

/** Whether this is such a thread. */
export function isThread(): boolean {
  return "jointwiseThread" in globalThis;
}

interface Task extends Question {
  readonly take: (reply: Reply) => void;
}

export class Helper {
  private worker: Worker | undefined;
  private current: Task | undefined;
  private waiting: Task[] = [];
  private count = 0;
  /** Whether the thread has the model, and can be asked. */
  ready = false;
  /** Whether threads cannot be had here: then the page computes by itself. */
  private failed = false;
  /** What to do when threads turn out not to work: whoever listens computes by itself. */
  onFailure: () => void = () => {};

  constructor(
    /** The script of the page. */
    private readonly script: string,
    private readonly packed: string,
  ) {}

  /** Start, unless that is done already. */
  prepare(): void {
    if (this.worker || this.failed) return;
    try {
      this.worker = this.start();
      this.send({ packed: this.packed });
    } catch {
      this.stop();
    }
  }

  /** Ask for the cells of some columns given evidence, which `key` names; what is asked twice is answered once. */
  ask(key: string, evidence: Evidence, columns: readonly number[], take: (reply: Reply) => void): void {
    const asked = [this.current, ...this.waiting].flatMap((task) => (task?.key === key ? task.columns : []));
    const left = asked.length ? columns.filter((n) => !asked.includes(n)) : columns;
    if (!left.length && columns.length) return;
    this.waiting.push({ id: ++this.count, key, evidence, columns: left, take });
    this.next();
  }

  /** Forget the questions that nobody waits for any more. */
  keep(keys: readonly string[]): void {
    this.waiting = this.waiting.filter((task) => keys.includes(task.key));
    if (this.current && !keys.includes(this.current.key)) this.current = undefined;
    this.next();
  }

  /** Whether an answer is still to come. */
  get busy(): boolean {
    return this.current !== undefined || this.waiting.length > 0;
  }

  private next(): void {
    if (this.current || !this.ready) return;
    this.current = this.waiting.shift();
    if (!this.current) return;
    const { take: _, ...question } = this.current;
    this.send(question);
  }

  private start(): Worker {
    // Chromium runs no modules in threads of a page from disk, so what makes it one is taken away
    const plain = this.script.replace(/export\s*\{[^{}]*\};?\s*$/, "");
    const worker = new Worker(URL.createObjectURL(new Blob([STAND_IN, plain], { type: "text/javascript" })));
    worker.addEventListener("error", () => this.stop());
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
      if (data === "ready") {
        this.ready = true;
        performance.mark("jointwise helper ready");
      } else this.receive(data);
    });
    return worker;
  }

  private receive(reply: Reply): void {
    const task = this.current;
    if (task?.id !== reply.id) return; // of a question that was forgotten
    if (reply.done) {
      this.current = undefined;
      performance.mark("jointwise helped");
    }
    task.take(reply);
    this.next();
  }

  private send(message: Message): void {
    this.worker?.postMessage(message);
  }

  private stop(): void {
    [this.failed, this.ready] = [true, false];
    this.worker?.terminate();
    [this.worker, this.current, this.waiting] = [undefined, undefined, []];
    this.onFailure();
  }
}
