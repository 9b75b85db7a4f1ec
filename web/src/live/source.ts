// The numbers of a page that a server keeps: fetched when a view first needs them, and the weights that it computes.
import type { Places, Served, Source, Told } from "../data/bytes";
import Cloud from "../parts/Cloud.svelte";
import { ask, askJson, askLong, askNumbers } from "./server";

export class ServerSource implements Source {
  readonly served: Served;
  readonly places: Places;
  private readonly held = new Map<number, Promise<Uint8Array>>();

  /** open: shows the text that a place of a panel was read in. */
  constructor(
    private readonly page: string,
    open: Places["open"],
  ) {
    const at = (call: number) => `/api/pages/${page}/calls/${call}`;
    const of = (head: number | null) => (head === null ? "" : `?head=${head}`);
    this.served = {
      pass: async (call, tell, signal) => void (await askLong(`${at(call)}/pass`, null, ({ done }) => tell(done), signal)),
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

  bytes(at: number): Promise<Uint8Array> {
    if (!this.held.has(at)) {
      const asked = ask(`/api/pages/${this.page}/numbers/${at}`).then(async (answer) => new Uint8Array(await answer.arrayBuffer()));
      asked.catch(() => this.held.delete(at)); // it may be asked for again
      this.held.set(at, asked);
    }
    return this.held.get(at)!;
  }
}
