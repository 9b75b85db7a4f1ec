// Which row of a translation's token is shown: the one that wrote it, or its own, which wrote the next.
import { choice, oneOf, type Choice } from "./choice";
import type { PageState } from "./page_state.svelte";

/** The choice between them, which all views share. */
export function rowsOf(shared: PageState): Choice<"written" | "read"> {
  return choice<"written" | "read">(shared, "alignment rows", "written", oneOf("written", "read"));
}

/** How many rows before its own a token's row is: in cross-attention row i reads token i and writes token i + 1, so the row before
 *  a token writes it, and that one is shown unless one wants those that read. A server's tiles are of rows as they read. */
export function back(shared: PageState, call = shared.call): number {
  const { part, served } = shared.page.calls[call]!;
  return part === "cross" && !served && rowsOf(shared).value === "written" ? 1 : 0;
}

/** Which row of a token is shown, where it has two: to be said behind what it looks at, or what looks at another. shifted: back of it. */
export function how(shared: PageState, call = shared.call, shifted = back(shared, call)): string {
  if (shared.page.calls[call]!.part !== "cross") return "";
  return `, ${shared.side === "gives" ? "" : "each "}when the model ${shifted ? "writes it" : "reads it"}`;
}
