// From what a page carries to typed arrays: base64, zlib, byte planes.
import type { Component } from "svelte";
import type { PageState } from "../page_state.svelte";
import type { Cloud, InContext, Numbers } from "./format";

export type Values = Int16Array | Uint16Array | Int32Array | Float32Array;

/** Where the deflated bytes of numbers come from: the page's own scripts, a notebook's buffers, or a server. */
export interface Source {
  bytes(at: number): Uint8Array | Promise<Uint8Array>;
  served?: Served; // of a page from a server: the weights of calls that are computed there
  places?: Places; // and what the points and rows of its panels are, where they are places in a corpus
}

/** Places in a corpus that a panel shows as points or rows, by their numbers. */
export interface Places {
  /** What some of them are, from number `first` on. */
  told(panel: number, first: number, count: number, signal?: AbortSignal): Promise<Told[]>;
  /** Show the text that one of them was read in. */
  open(panel: number, place: number): void;
  /** What draws a cloud of them: a file, which has none, does not carry it. */
  readonly Cloud: Component<{ panel: Cloud; number: number; shared: PageState }>;
}

/** A place: the document, its first character there, and the word in its context. */
export interface Told {
  document: string;
  start: number;
  context: InContext;
}

/** Weights that a server computes. head null: the mean of all heads. */
export interface Served {
  /** Have the matrix gone through once; tiles are there afterwards. Tells the share that is done. */
  pass(call: number, tell: (share: number, waits: boolean) => void, signal: AbortSignal): Promise<void>;
  /** The (SIDE, SIDE) means of a tile's cells of 2^level × 2^level weights. */
  tile(call: number, head: number | null, level: number, row: number, col: number, signal?: AbortSignal): Promise<Float32Array>;
  /** What a query gives to every key. */
  row(call: number, head: number | null, query: number, signal?: AbortSignal): Promise<Float32Array>;
  /** What a key gets from every query. */
  column(call: number, head: number | null, key: number, signal?: AbortSignal): Promise<Float32Array>;
}

const KINDS = { int16: Int16Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array };

/** Decode base64. */
export function fromBase64(text: string): Uint8Array {
  const own = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array };
  if (own.fromBase64) return own.fromBase64(text); // ten times as fast, where the browser has it
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let n = 0; n < bytes.length; n++) bytes[n] = characters.charCodeAt(n);
  return bytes;
}

/** Inflate zlib-deflated bytes. */
export async function inflate(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Put the bytes of numbers together again from their planes. */
export function fromPlanes(planes: Uint8Array, dtype: Numbers["dtype"]): Values {
  const kind = KINDS[dtype];
  const size = kind.BYTES_PER_ELEMENT;
  const count = planes.length / size;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane++) {
    const from = plane * count;
    for (let n = 0; n < count; n++) bytes[n * size + plane] = planes[from + n]!;
  }
  return new kind(bytes.buffer); // little-endian, as every browser's machine is today
}

/** Decode numbers. Throws where their count is not that of their shape. */
export async function decode(numbers: Numbers, bytes: Uint8Array | Promise<Uint8Array>): Promise<Values> {
  const values = fromPlanes(await inflate(await bytes), numbers.dtype);
  const count = numbers.shape.reduce((a, b) => a * b, 1);
  if (values.length !== count) throw new Error(`numbers ${numbers.at}: ${values.length} where ${count} were meant`);
  return values;
}

/** The numbers of a page's own scripts, <script id="numbers-{at}">, which a browser may still be reading when the page is opened. */
export class ScriptSource implements Source {
  async bytes(at: number): Promise<Uint8Array> {
    for (;;) {
      const script = document.getElementById(`numbers-${at}`);
      if (script?.nextSibling) return fromBase64(script.textContent ?? ""); // read to its end
      if (document.readyState !== "loading") throw new Error(`numbers ${at} are missing: the page is incomplete`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
