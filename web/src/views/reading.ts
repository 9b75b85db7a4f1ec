// What a token or word gives to every other, or gets from it: weights of units, from the weights of their tokens.
import { back } from "../written";
import { allows, type LoadedMask } from "../attention/mask";
import { decode } from "../data/bytes";
import { farthestOf } from "../parts/numbers";
import type { Text } from "../data/format";
import type { Side, PageState } from "../page_state.svelte";
import { weightsOfUnits, type Unit } from "../words";

export interface Wanted {
  call: number;
  head: number | null;
  side: Side;
  unit: Unit;
  units: Unit[]; // of the other side
  norms: boolean; // where it gives: weights times the norm of each key's contribution
}

export class Reader {
  private readonly norms = new Map<number, Promise<Float32Array>>();

  constructor(private readonly shared: PageState) {}

  /** Read the number of every unit, as `weightsOfUnits` has them. */
  async read(wanted: Wanted, signal?: AbortSignal): Promise<Float32Array> {
    const { attention } = this.shared;
    const { call, head, side, unit, units } = wanted;
    const gives = side === "gives";
    const first = gives ? Math.min(Math.max(unit[0], back(this.shared, call)), unit[1] - 1) : unit[0]; // that has a row
    const own: Unit[] = [[0, unit[1] - first]];
    const lines = await Promise.all(
      Array.from({ length: own[0]![1] }, (_, n) =>
        gives ? attention.row(call, head, first + n, signal) : attention.column(call, head, first + n, signal),
      ),
    );
    const norms = wanted.norms && head !== null ? await this.normsOf(call) : null;
    if (!gives) return weightsOfUnits((query, n) => lines[n]![query]!, units, own);
    const size = lines[0]!.length;
    return weightsOfUnits((n, key) => lines[n]![key]! * (norms ? norms[head! * size + key]! : 1), own, units);
  }

  private normsOf(call: number): Promise<Float32Array> {
    const { norms } = this.shared.page.calls[call]!;
    let found = this.norms.get(call);
    if (!found) {
      found = decode(norms!, this.shared.source.bytes(norms!.at)) as Promise<Float32Array>;
      this.norms.set(call, found);
    }
    return found;
  }
}

/** Which units stand apart: special tokens and sinks, whose weights would drown the others'. */
export function apartOf(text: Text, units: Unit[]): boolean[] {
  const apart = new Set([...text.tokens.special, ...text.tokens.sinks]);
  return units.map(([start, end]) => end - start === 1 && apart.has(start));
}

/** What units are that stand apart: "special", "sink" or nothing. */
export function marksOf(text: Text, units: Unit[]): string[] {
  const [special, sinks] = [new Set(text.tokens.special), new Set(text.tokens.sinks)];
  return units.map(([start, end]) => (end - start > 1 ? "" : special.has(start) ? "special" : sinks.has(start) ? "sink" : ""));
}

/** Which units a mask keeps wholly apart from a unit: none of their tokens may attend. */
export function maskedOf(mask: LoadedMask | null, { head, side, unit, units }: Pick<Wanted, "head" | "side" | "unit" | "units">): boolean[] {
  const any = ([top, bottom]: Unit, [left, right]: Unit) => {
    for (let i = top; i < bottom; i++) for (let j = left; j < right; j++) if (allows(mask, head, i, j)) return true;
    return false;
  };
  return units.map((other) => !(side === "gives" ? any(unit, other) : any(other, unit)));
}

/** The largest value among those that do not stand apart, or of all where no other has any. */
export function largestOf(values: Float32Array, apart: boolean[]): number {
  return farthestOf(values.filter((_, n) => !apart[n])) || farthestOf(values);
}

/** What every token gets where all get the same; those that stand apart are left out. */
export function evenShare(values: Float32Array, apart: boolean[]): number {
  const shown = values.filter((_, n) => !apart[n]);
  return shown.reduce((a, b) => a + b, 0) / (shown.length || 1);
}
