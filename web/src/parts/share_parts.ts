// The parts that a layer's step is split into, and what they are called.
import type { Path } from "../data/format";

export type Part = "attention" | "cross" | "rest";
export const PARTS: Record<Part, string> = { attention: "attention", cross: "cross-attention", rest: "feed-forward" };

/** The parts that some step of some path has. */
export function partsOf(paths: Path[]): Part[] {
  return (Object.keys(PARTS) as Part[]).filter((part) => paths.some((path) => path.steps?.some((step) => step[part] !== null)));
}
