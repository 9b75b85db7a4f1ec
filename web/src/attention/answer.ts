// The questions that a worker, or where there is none the page itself, answers about attention calls.
import type { Call } from "../data/format";
import { load, type LoadedCall } from "./loaded";
import { region, type Region } from "./region";
import { rowSteps, vectors } from "./row_steps";
import { column, row, rowOfHeads, whole } from "./weights";

export type Question =
  | { kind: "load"; call: number; description: Call; bytes: Map<number, Uint8Array> }
  | { kind: "forget"; call: number }
  | { kind: "row"; call: number; head: number | null; query: number }
  | { kind: "rowOfHeads"; call: number; query: number }
  | { kind: "whole"; call: number }
  | { kind: "column"; call: number; head: number | null; key: number }
  | { kind: "rowSteps"; call: number; head: number; query: number }
  | { kind: "vectors"; call: number; head: number; query: number; keys: number[] }
  | { kind: "region"; call: number; region: Region };

export type Answer = (question: Question) => Promise<Float32Array | null>;

/** Make what answers questions about the calls that it was told to load; null to what has no answer but its being done. */
export function answerer(): Answer {
  const loaded = new Map<number, Promise<LoadedCall>>();
  return (question) => answer(loaded, question);
}

async function answer(loaded: Map<number, Promise<LoadedCall>>, question: Question): Promise<Float32Array | null> {
  if (question.kind === "load") {
    loaded.set(question.call, load(question.description, question.bytes));
    return null;
  }
  if (question.kind === "forget") {
    loaded.delete(question.call);
    return null;
  }
  const call = await loaded.get(question.call);
  if (!call) throw new Error(`call ${question.call} was not loaded`);
  if (question.kind === "row") return row(call, question.head, question.query);
  if (question.kind === "rowOfHeads") return rowOfHeads(call, question.query);
  if (question.kind === "whole") return whole(call);
  if (question.kind === "column") return column(call, question.head, question.key);
  if (question.kind === "rowSteps") return rowSteps(call, question.head, question.query);
  if (question.kind === "vectors") return vectors(call, question.head, question.query, question.keys);
  return region(call, question.region);
}
