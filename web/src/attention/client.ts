// Asks workers for weights. Rows and columns, which a hover waits for, go before regions, which fill a picture.
import type { Source } from "../data/bytes";
import type { Page } from "../data/format";
import { answerer, type Answer, type Question } from "./answer";
import { numbersOf } from "./loaded";
import type { Region } from "./region";
import { unpackRow, type RowSteps } from "./row_steps";
import AttentionWorker from "./worker?worker&inline";

type Asked = Exclude<Question, { kind: "load" } | { kind: "forget" }>;
const UNWRITTEN = "Nothing wrote this token: the text starts with it.";
const KEPT = 8; // calls that a worker holds decoded at once

interface Job {
  question: Asked;
  resolve: (value: Float32Array) => void;
  reject: (reason: unknown) => void;
  signal?: AbortSignal;
}

interface Waiting {
  question: Question;
  resolve: (value: Float32Array | null) => void;
  reject: (error: Error) => void;
}

/** One place where questions are answered, one at a time: a worker, or the page's own thread. */
class Desk {
  private worker: Worker | null;
  private here: Answer | null = null; // the page's own thread, where there is no worker
  private answers = 0; // of the worker, so far
  private readonly waiting = new Map<number, Waiting>();
  private readonly held: number[] = []; // calls, the last used last
  private next = 0;
  busy = false;

  constructor(
    private readonly page: Page,
    private readonly source: Source,
  ) {
    this.worker = start();
    if (!this.worker) return;
    this.worker.onmessage = ({ data }: MessageEvent<{ id: number; value: Float32Array | null; error?: string }>) => {
      const asked = this.waiting.get(data.id);
      this.answers++;
      this.waiting.delete(data.id);
      if (data.error === undefined) asked?.resolve(data.value);
      else asked?.reject(new Error(data.error));
    };
    this.worker.onerror = (event) => {
      const unanswered = [...this.waiting.values()];
      this.waiting.clear();
      if (this.answers === 0) {
        event.preventDefault(); // it could not be started, as where a host forbids workers: do its work here
        this.worker = null;
        for (const asked of unanswered) this.send(asked.question).then(asked.resolve, asked.reject);
      } else {
        for (const asked of unanswered) asked.reject(new Error(event.message || "a worker failed"));
      }
    };
  }

  async ask(question: Asked): Promise<Float32Array> {
    await this.hold(question.call);
    return (await this.send(question))!;
  }

  stop(): void {
    this.worker?.terminate();
  }

  private async hold(call: number): Promise<void> {
    const place = this.held.indexOf(call);
    if (place >= 0) {
      this.held.push(...this.held.splice(place, 1));
      return;
    }
    this.held.push(call); // before anything is waited for: a desk has one question at a time
    const description = this.page.calls[call]!;
    const all = numbersOf(description).map(async (each): Promise<[number, Uint8Array]> => [each.at, await this.source.bytes(each.at)]);
    const bytes = new Map(await Promise.all(all));
    await this.send({ kind: "load", call, description: plainCopy(description), bytes });
    if (this.held.length > KEPT) await this.send({ kind: "forget", call: this.held.shift()! });
  }

  private send(question: Question): Promise<Float32Array | null> {
    if (!this.worker) return new Promise((resolve) => setTimeout(resolve)).then(() => (this.here ??= answerer())(question));
    const id = this.next++;
    const answered = new Promise<Float32Array | null>((resolve, reject) => this.waiting.set(id, { question, resolve, reject }));
    this.worker.postMessage({ id, question });
    return answered;
  }
}

/** A plain copy, which can be sent to a worker whatever wraps the original. */
function plainCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

function start(): Worker | null {
  try {
    return new AttentionWorker();
  } catch {
    return null; // a browser that allows no workers here: the page computes itself, and waits meanwhile
  }
}

/** The weights of a page's calls. head null: the mean of all heads. */
export class Attention {
  private readonly desks: Desk[] = []; // each begun when there is work for it
  private readonly queue: Job[] = [];
  private readonly soon: Job[] = [];

  constructor(
    private readonly page: Page,
    private readonly source: Source,
    private readonly back: (call: number) => number = () => 0, // how many rows before its own a query's row is
    private workers = 1 + Math.max(1, Math.min(4, navigator.hardwareConcurrency || 2)),
  ) {}

  /** What a query gives to every key, (S,). */
  async row(call: number, head: number | null, token: number, signal?: AbortSignal): Promise<Float32Array> {
    const query = this.rowOf(call, token);
    if (this.isServed(call)) return this.source.served!.row(call, head, query, signal);
    return this.ask({ kind: "row", call, head, query }, signal);
  }

  /** What a query gives to every key in every head, (H, S). */
  async rowOfHeads(call: number, token: number, signal?: AbortSignal): Promise<Float32Array> {
    return this.ask({ kind: "rowOfHeads", call, query: this.rowOf(call, token) }, signal);
  }

  /** All weights of every head of a call of a short text, (H, L, S). */
  whole(call: number, signal?: AbortSignal): Promise<Float32Array> {
    return this.ask({ kind: "whole", call }, signal);
  }

  /** What a key gets from every query, (L,). */
  async column(call: number, head: number | null, key: number, signal?: AbortSignal): Promise<Float32Array> {
    if (this.isServed(call)) return this.source.served!.column(call, head, key, signal);
    const back = this.back(call);
    const own = await this.ask({ kind: "column", call, head, key }, signal);
    return own.map((_, n) => own[n - back] ?? 0);
  }

  /** The row that is shown of a token. */
  private rowOf(call: number, token: number): number {
    const query = token - this.back(call);
    if (query < 0) throw Error(UNWRITTEN);
    return query;
  }

  /** Every step of a query's own row in one head, from q · k to the weights. */
  async rowSteps(call: number, head: number, query: number, signal?: AbortSignal): Promise<RowSteps> {
    return unpackRow(await this.ask({ kind: "rowSteps", call, head, query }, signal));
  }

  /** A query of a head and some of its keys, (1 + keys, D). */
  vectors(call: number, head: number, query: number, keys: number[], signal?: AbortSignal): Promise<Float32Array> {
    return this.ask({ kind: "vectors", call, head, query, keys }, signal);
  }

  /** The mean weight of every cell of a region, (rows, cols). An aborted one is not computed, where it still waits. */
  region(call: number, part: Region, signal?: AbortSignal): Promise<Float32Array> {
    const back = this.back(call);
    const queries: [number, number] = [part.queries[0] - back, part.queries[1] - back];
    return this.ask({ kind: "region", call, region: { ...part, queries } }, signal);
  }

  /** Whether a server computes the weights of a call. */
  isServed(call: number): boolean {
    return this.page.calls[call]!.served === true;
  }

  /** The mean weight of every cell of a tile, (SIDE, SIDE), of a call that a server computes. */
  tile(call: number, head: number | null, level: number, row: number, col: number, signal?: AbortSignal): Promise<Float32Array> {
    return this.source.served!.tile(call, head, level, row, col, signal);
  }

  /** End the workers. */
  stop(): void {
    this.workers = 0;
    for (const desk of this.desks) desk?.stop();
  }

  private ask(question: Asked, signal?: AbortSignal): Promise<Float32Array> {
    return new Promise((resolve, reject) => {
      (question.kind === "region" ? this.queue : this.soon).push({ question, resolve, reject, signal });
      this.go();
    });
  }

  /** Give waiting questions to desks that are free. The first desk takes no regions: a hover never waits for a picture. */
  private go(): void {
    for (let number = 0; number < this.workers; number++) {
      if (this.desks[number]?.busy) continue;
      const job = this.take(this.soon) ?? (number > 0 ? this.take(this.queue) : undefined);
      if (!job) continue;
      const desk = (this.desks[number] ??= new Desk(this.page, this.source));
      desk.busy = true;
      desk
        .ask(job.question)
        .then(job.resolve, job.reject)
        .finally(() => {
          desk.busy = false;
          this.go();
        });
    }
  }

  private take(jobs: Job[]): Job | undefined {
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      if (!job.signal?.aborted) return job;
      job.reject(new DOMException("no longer wanted", "AbortError"));
    }
    return undefined;
  }
}
