// The numbers of a page that a server keeps: fetched when a view first needs them, and the weights that it computes.
import type { Served, Source } from "../data/bytes";
import { ask, askLong, askNumbers } from "./server";

export class ServerSource implements Source {
  readonly served: Served;
  private readonly held = new Map<number, Promise<Uint8Array>>();

  constructor(private readonly page: string) {
    const at = (call: number) => `/api/pages/${page}/calls/${call}`;
    const of = (head: number | null) => (head === null ? "" : `?head=${head}`);
    this.served = {
      pass: async (call, tell, signal) => void (await askLong(`${at(call)}/pass`, null, ({ done }) => tell(done), signal)),
      tile: (call, head, level, row, col, signal) => askNumbers(`${at(call)}/tiles/${level}/${row}/${col}${of(head)}`, signal),
      row: (call, head, query, signal) => askNumbers(`${at(call)}/rows/${query}${of(head)}`, signal),
      column: (call, head, key, signal) => askNumbers(`${at(call)}/columns/${key}${of(head)}`, signal),
    };
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
