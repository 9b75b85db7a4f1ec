// What is chosen in one view alone: it is kept while another view is looked at, and is part of a link.
import { untrack } from "svelte";
import type { PageState } from "./page_state.svelte";

/** A choice that a view binds its fields to. */
export interface Choice<T> {
  value: T;
}

/** Make the choice of a name, which begins with first; what a link says of it counts where it is valid. */
export function choice<T>(shared: PageState, name: string, first: T, valid: (value: unknown) => boolean): Choice<T> {
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  const now = (): T => {
    const value = shared.choices[name];
    return value !== undefined && valid(value) ? (value as T) : first;
  };
  return {
    get value() {
      return now();
    },
    set value(value) {
      if (same(value, untrack(now))) return; // effects set it, too
      const others = Object.entries(untrack(() => shared.choices)).filter(([each]) => each !== name);
      shared.choices = Object.fromEntries(same(value, first) ? others : [...others, [name, value]]);
    },
  };
}

export function below(count: number): (value: unknown) => boolean {
  return (value) => typeof value === "number" && Number.isInteger(value) && value >= 0 && value < count;
}

export function oneOf(...all: unknown[]): (value: unknown) => boolean {
  return (value) => all.includes(value);
}
