// The numbers of a page that a server keeps: fetched when a view first needs them, and the weights that it computes.
import type { Places, Served, Source, Told } from "../data/bytes";
import Cloud from "../parts/Cloud.svelte";
import { ask, askJson, askLong, askNumbers, type Progress } from "./server";

const LEFT = 1500; // ms that a pass goes on for nobody: a click elsewhere in the page asks for it again at once
type Tell = Parameters<Served["pass"]>[1];
interface Pass {
  tells: Set<Tell>;
  now: Parameters<Tell>;
  over: Promise<void>;
  end?: () => void;
}

export class ServerSource implements Source {
  readonly served: Served;
  readonly places: Places;
  private readonly passes = new Map<number, Pass>();
  private readonly held = new Map<number, Promise<Uint8Array>>();

  /** open: shows the text that a place of a panel was read in. */
  constructor(
    private readonly page: string,
    open: Places["open"],
  ) {
    const at = (call: number) => `/api/pages/${page}/calls/${call}`;
    const of = (head: number | null) => (head === null ? "" : `?head=${head}`);
    this.served = {
      pass: (call, tell, signal) => this.pass(call, `${at(call)}/pass`, tell, signal),
      tile: (call, head, level, row, col, signal) => askNumbers(`${at(call)}/tiles/${level}/${row}/${col}${of(head)}`, signal),
      row: (call, head, query, signal) => askNumbers(`${at(call)}/rows/${query}${of(head)}`, signal),
      column: (call, head, key, signal) => askNumbers(`${at(call)}/columns/${key}${of(head)}`, signal),
    };
    this.places = {
      told: async (panel, first, count, signal) =>
        (await askJson<{ places: Told[] }>(`/api/pages/${page}/panels/${panel}/places?first=${first}&count=${count}`, { signal })).places,
      open,
      Cloud,
    };
  }

  /** Make the pass over a call's matrix, or join the one that runs; it ends once nobody has waited for it for a while. */
  private pass(call: number, path: string, tell: Tell, signal: AbortSignal): Promise<void> {
    let running = this.passes.get(call);
    if (!running) {
      const [tells, wanted] = [new Set<Tell>(), new AbortController()];
      const made: Pass = { tells, now: [0, true], over: Promise.resolve() };
      const told = ({ done, waits }: Progress) => {
        made.now = [done, waits];
        tells.forEach((each) => each(done, waits));
      };
      made.over = askLong(path, null, told, wanted.signal).then(() => {}).finally(() => this.passes.get(call) === made && this.passes.delete(call));
      made.end = () => (wanted.abort(), this.passes.delete(call));
      this.passes.set(call, (running = made));
    }
    const { tells, now, over, end } = running;
    tells.add(tell);
    tell(...now);
    signal.addEventListener("abort", () => (tells.delete(tell), setTimeout(() => tells.size || end!(), LEFT)));
    return over;
  }

  bytes(at: number): Promise<Uint8Array> {
    if (!this.held.has(at)) {
      const asked = ask(`/api/pages/${this.page}/numbers/${at}`).then(async (answer) => new Uint8Array(await answer.arrayBuffer()));
      asked.catch(() => this.held.delete(at)); // it may be asked for again
      this.held.set(at, asked);
    }
    return this.held.get(at)!;
  }
}
