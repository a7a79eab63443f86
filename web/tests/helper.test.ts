/** The thread that computes, without a browser: a stand-in takes its place, and answers what it is told to. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Helper } from "../src/page/helper.ts";
import type { Answer, Message, Question, Reply } from "../src/worker.ts";

const threads: StandIn[] = [];

class StandIn extends EventTarget {
  readonly sent: Message[] = [];
  ended = false;
  constructor() {
    super();
    threads.push(this);
  }
  postMessage(message: Message): void {
    this.sent.push(structuredClone(message));
  }
  terminate(): void {
    this.ended = true;
  }
  answer(data: Answer): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
  get questions(): Question[] {
    return this.sent.slice(1) as Question[];
  }
  reply(n: number, columns: readonly number[], done = true): void {
    const margins = columns.map(() => Float64Array.of(1));
    this.answer({ id: this.questions[n].id, logEvidence: 0, columns, margins, milliseconds: 1, done });
  }
}

function prepared(): { helper: Helper; thread: StandIn } {
  const helper = new Helper("export { a as default };", "packed");
  helper.prepare();
  helper.prepare();
  const thread = threads.at(-1)!;
  expect(threads.length).toBe(1);
  expect(thread.sent).toEqual([{ packed: "packed" }]);
  expect(helper.ready).toBe(false);
  thread.answer("ready");
  expect(helper.ready).toBe(true);
  return { helper, thread };
}

beforeEach(() => {
  threads.length = 0;
  vi.stubGlobal("Worker", StandIn);
  vi.stubGlobal("URL", { createObjectURL: () => "blob:" });
});
afterEach(() => vi.unstubAllGlobals());

describe("the other thread", () => {
  test("is asked one thing at a time, and nothing twice", () => {
    const { helper, thread } = prepared();
    const taken: Reply[] = [];
    const take = (reply: Reply) => taken.push(reply);
    helper.ask("a", new Map(), [0, 1, 2], take);
    helper.ask("a", new Map(), [1, 2], take);
    helper.ask("a", new Map(), [2, 3], take);
    expect(thread.questions.map((question) => question.columns)).toEqual([[0, 1, 2]]);
    thread.reply(0, [0, 1], false);
    expect([taken.length, helper.busy, thread.questions.length]).toEqual([1, true, 1]);
    thread.reply(0, [2]);
    expect(thread.questions.map((question) => question.columns)).toEqual([[0, 1, 2], [3]]);
    thread.reply(1, [3]);
    expect([taken.length, helper.busy]).toEqual([3, false]);
  });

  test("goes on with a newer question at once, and nobody takes what was forgotten", () => {
    const { helper, thread } = prepared();
    const taken: string[] = [];
    for (const key of ["a", "b", "c"]) {
      helper.keep([key]);
      helper.ask(key, new Map(), [0], () => taken.push(key));
    }
    expect(thread.questions.map((question) => question.key)).toEqual(["a", "b", "c"]);
    thread.reply(0, [0]);
    expect(taken).toEqual([]);
    thread.reply(2, [0]);
    expect(taken).toEqual(["c"]);
    thread.reply(1, [0]);
    expect(taken).toEqual(["c"]);
  });

  test("that fails is left alone", () => {
    const { helper, thread } = prepared();
    const failed = vi.fn();
    helper.onFailure = failed;
    helper.ask("a", new Map(), [0], () => {});
    thread.dispatchEvent(new Event("error"));
    helper.prepare();
    expect([thread.ended, helper.ready, helper.busy, threads.length]).toEqual([true, false, false, 1]);
    expect(failed).toHaveBeenCalledTimes(1);
  });

  test("is done without where there are no threads", () => {
    vi.stubGlobal("Worker", undefined);
    const helper = new Helper("", "");
    const failed = vi.fn();
    helper.onFailure = failed;
    helper.prepare();
    helper.prepare();
    expect([helper.ready, failed.mock.calls.length]).toEqual([false, 1]);
  });
});
