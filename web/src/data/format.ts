// What a page carries: the JSON of <script id="regard-data"> and the numbers beside it. src/regard/web writes it.
//
// Shapes are letters, as in the library: H query heads, G key heads (H % G == 0), L queries, S keys, D width of queries
// and keys, E width of values, M width of the model. Layers, heads and tokens are numbered from 0.

export const FORMAT = "regard page";
export const VERSION = 1;

/** Numbers: the text of <script id="numbers-{at}"> is base64 of zlib-deflated byte planes, lowest bytes first: byte 0 of
 *  all numbers, then byte 1 of all, and so on; little-endian; shape is in C order. In a notebook the same bytes come
 *  without base64. */
export interface Numbers {
  at: number;
  dtype: "int16" | "uint16" | "int32" | "float32";
  shape: number[];
}

/** Vectors: int16 numbers with one scale per vector: number = int16 × scale of its vector. */
export interface Vectors {
  values: Numbers; // (…, vectors, width)
  scales: Numbers; // (…, vectors)
}

export interface Page {
  format: typeof FORMAT;
  version: number;
  made_by: string; // "regard 0.1.0"
  title: string; // one line
  model: string | null; // its name, or those of several; null where there is none
  findings: string[]; // what was found, in sentences
  status: string[]; // how it was computed, how exact it is, what was left out
  opening: Opening;
  texts: Text[];
  calls: Call[];
  heads: HeadScores[]; // one for each text that has them
  panels: Panel[]; // numbers of the library's own: tables, heat maps, scatters
  alignment: Alignment[];
  steps: StepsData[];
  comparisons: Comparison[];
  overview: Opened | null; // what the first view needs beside them; null where there is no stage for the texts
}

/** What the first view shows, each kind with a stage of its own (src/regard/web/page.py chooses). */
export type Opened = OfTexts | OfWriting | { kind: "image" } | { kind: "pair" };

/** Texts that a model wrote, from the token `first` on; words: the names of tokens. Of each step, which wrote a token: its probability, the others that were
 *  likeliest, its most distinctive links, and for each state, none without a logit lens: the token's rank and probability there, then the numbers (of words)
 *  and probabilities of the likeliest tokens. unusual: as OfTexts has it, of queries alone, from the token before the first on. */
export interface OfWriting {
  kind: "writing";
  texts: { text: number; first: number; steps: { probability: number; others: [string, number][]; links: [key: number, call: number, head: number, weight: number][]; lens: number[][] }[]; unusual: Numbers | null }[];
  words: string[];
}

/** Texts. chosen: whether the page opens at a layer or head that was asked for. links: of each text, for each two of its tokens, the head
 *  in which one attends most distinctively to the other, those that sentences name first. tokens: each occurrence of the followed word, or none; rows: the text that it is in. difference:
 *  of two reference words, the cosine to the first minus that to the second, in neutral sentences, state by state. */
export interface OfTexts {
  kind: "texts";
  chosen: boolean;
  links: ([query: number, key: number, call: number, head: number, weight: number, expected: number][] | null)[]; // null: of a long text
  unusual: (Numbers | null)[]; // uint16 (2, 2, calls, H, L): of each token as a query and as a key, in each head, the largest divergence in thousandths of a nat, and the token at the other end
  tokens: number[];
  rows: number[];
  difference: { words: [string, string]; low: (number | null)[]; high: (number | null)[] } | null;
}

/** Where the page opens. */
export interface Opening {
  view: "overview" | "map" | "compare" | "tokens" | "steps" | `panel ${number}`;
  call: number; // of calls
  head: number | null; // null: the mean of heads
  token: number | null; // a query of that call
  key?: number; // that it attends to: where the map's cursor is
}

/** A picture, as a text of patches: rows × columns of them, row by row, from the token `first` on. */
export interface Picture {
  src: string; // "data:image/jpeg;base64,…"
  size: [number, number]; // width and height of what was given, in pixels
  rows: number;
  columns: number;
  first: number;
  seen: [number, number, number, number]; // left, top, right, bottom of what the model saw, in parts of width and height
}

/** A text: of an encoder-decoder, its source and its target are two; of a text read in windows, each window is one. */
export interface Text {
  name: string; // "text 1", "source", "target", "window 2 of 5"
  text: string;
  direction: "ltr" | "rtl";
  tokens: {
    text: string[]; // as a person reads it
    start: number[]; // characters (code points) of text
    end: number[];
    special: number[]; // the numbers of special tokens
    sinks: number[]; // the numbers of attention sinks
    turn?: string[]; // of a chat: in which message each token is, "user 1"
    word: (number | null)[]; // tokens with the same number, side by side, are one word
  };
  picture?: Picture; // where it is none, but a picture
}

/** One attention call. score = softcap · tanh(scale · q·k / softcap) + bias, -∞ where the mask forbids;
 *  weight = exp(score − row maximum) / row sum. Maxima and sums are of the numbers carried here, sinks included. */
export interface Call {
  name: string; // "layer 3", "layer 3, cross"
  layer: number;
  nth: number; // which of the layer's calls of this part
  part: "self" | "cross";
  queries: number; // of texts: whose tokens ask
  keys: number; // of texts: whose tokens are looked at
  heads: number; // H
  head_numbers: number[] | null; // which of the model's heads they are; null: all, in their order
  key_heads: number; // G
  width: number; // D
  query: Vectors; // (H, L, D)
  key: Vectors; // (G, S, D)
  row_max: Numbers; // float32 (H, L); -inf where there is no key
  row_sum: Numbers; // float32 (H, L)
  scale: number;
  softcap: number | null;
  mask: Mask | null;
  bias: Bias | null;
  sinks: number[] | null; // (H,) scores that join the denominator only
  ablated: number[]; // heads whose weights are all 0
  difference: number; // largest |weight here − weight of the library| of all weights
  overview: Overview | null; // of a large map
  small: Overview | null; // a picture the size of a stamp: of each cell, the largest mean of the overview's cells in it
  given?: true; // a program computed its weights: bias has their logarithms, query and key are 0
  served?: true; // its numbers are not here: a server computes its weights, tile by tile
  norms: Numbers | null; // float32 (H, S): ‖W_O · value of key j through head h‖; weight × norm is the contribution's size
}

/** Which keys a query may attend to. */
export type Mask =
  | { kind: "band"; low: number | null; high: number | null } // low ≤ j − i ≤ high
  | {
      kind: "runs"; // query i of head h may attend to keys [starts[r], ends[r]) for r from first[h', i] to first[h', i + 1]
      heads: number; // 1 or H: h' = min(h, heads − 1)
      first: Numbers; // int32 (heads, L + 1), counting through all heads
      starts: Numbers; // int32 (runs,)
      ends: Numbers;
    };

export type Bias =
  | { kind: "offsets"; heads: number; values: Numbers } // float32 (1 or H, L + S − 1): of j − i + L − 1
  | { kind: "keys"; heads: number; values: Numbers } // float32 (1 or H, S)
  | { kind: "dense"; heads: number; values: Numbers }; // float32 (1 or H, L, S)

/** The map as a small picture: the true mean weight of each of rows × cols cells, the library's. Cell r has the queries
 *  from ⌊r · L / rows⌋ to ⌊(r + 1) · L / rows⌋. Coded: weight = largest[h] · (value / 65535)². */
export interface Overview {
  rows: number;
  cols: number;
  values: Numbers; // uint16 (H, rows, cols)
  largest: number[]; // (H,)
}

export interface HeadScores {
  text: number; // of texts
  names: string[]; // previous, next, same, special, first, sinks, duplicate, induction
  meanings: string[]; // one sentence for each
  calls: number[]; // of calls, one a row
  values: (number | null)[][][]; // [name][row][head]; null where the head does not exist or the text has no such key
}

/** A sorted list, a grid of colours, a cloud of points, paths, lines: components that know no attention. name: of its tab, short.
 *  caption: a sentence that neither title nor note says. total: the row of all. places: its rows or points are places in a corpus, of which a server tells the text. */
export type Panel = { name: string; title: string; note: string; caption?: string; tab?: string; places?: true; unbounded?: true } & (
  | { kind: "table"; columns: Column[]; rows: Cell[][]; total?: Cell[] | null }
  | BarsData
  | HeatData
  | { kind: "scatter"; x: string; y: string; points: Point[]; called: Called }
  | CloudData
  | PathsData
  | { kind: "curves"; x: string; y: string; series: Series[]; digits: number }
  | { kind: "strip"; tokens: string[]; values: (number | null)[]; signed: boolean; unit: string; digits: number; special: number[]; largest: number | null }
);
export type Heat = Panel & HeatData;
export type Paths = Panel & PathsData;
export type Cloud = Panel & CloudData;

/** A cloud of any number of points, which a server alone gives: what each of them is, it says when it is asked. */
interface CloudData {
  kind: "cloud";
  x: string;
  y: string;
  points: Numbers; // float32 (points, 2): x and y, on axes of one scale
  groups: string[];
  of: Numbers; // uint16 (points,): of groups; points of one group stand side by side
  called: Called;
  most: number; // points that a file without a server shows: one of more cannot be saved as one
}

/** Named numbers in their order. part, unit: what a name names and what a number is. whole: what all sum to, where that means something.
 *  others: how many there are that the page does not have, and what they sum to. */
interface BarsData {
  kind: "bars";
  parts: [string, number | null][];
  others: [number, number | null] | null;
  part: string;
  unit: string;
  whole: number | null;
  signed: boolean; // numbers of both signs
  digits: number;
}

interface HeatData {
  kind: "heat";
  rows: string[];
  columns: string[];
  values: Grid;
  signed: boolean;
  unit: string;
  largest: number | null; // the value of the darkest colour, null for the largest there is
  digits: number; // decimals of the numbers
  axes: [string, string] | null; // what rows and columns are
  said: string[][] | null; // a sentence for each cell, where row, column and number do not say it
  sums: Sums | null;
  behind: Behind | null;
  over?: Over | null;
  under?: string; // the name of the panel whose numbers are a picture, 0 paper to 1 ink, that this is laid over; its own: it is the picture
  grey?: [number, number][]; // cells in greys, which the note tells apart
}
/** A grid at each place of one more axis, such as the steps of a training: the title there, and its numbers. The last are those of the grid. */
export interface Over {
  titles: string[];
  values: Grid[];
}
export type Grid = (number | null)[][]; // [row][column]
/** What the rows and the columns of a grid sum to, and all of it. across, down: what a row's and a column's sum is called. */
export interface Sums {
  rows: number[];
  columns: number[];
  all: number;
  across: string;
  down: string;
  name: string;
}
/** What each cell of a grid is made of: a number for each token of a text. of: the text of each row. */
export interface Behind {
  note: string;
  texts: { tokens: string[]; direction: "ltr" | "rtl" }[];
  of: number[];
  values: (number[] | null)[][]; // [row][column], null where there is no such cell
}

/** Paths through the layers: cosines state by state, and what made each step from one state to the next. */
interface PathsData {
  kind: "paths";
  digits: number;
  states: string[]; // what they are
  paths: Path[];
  curves: CosineCurve[]; // at least one
  compared: boolean; // whether they are of reference words
  nearness: string; // what the curves are
  sentences: string[]; // what the cosines do not say, or are not compared with
  between: number[][][] | null; // cosines of [path][an earlier one][state]; null where there are too many paths
  shares: string; // what the shares of a step are
}
/** Cosines of every path to one reference word, state by state, and of the word in neutral sentences. */
export interface CosineCurve {
  label: string;
  paths: (number | null)[][]; // [path][state]
  neutral: { sentences: number; mean: (number | null)[]; low: (number | null)[]; high: (number | null)[] } | null;
}
export interface Path {
  label: string;
  of: string; // "text 1"
  context: InContext;
  before: (number | null)[]; // cosine of each state to the one before
  steps: PathStep[] | null; // from state n to n + 1; null: refused says why
  refused: string | null;
}
/** Shares of a step, which sum to 1; null for a part that a layer has not, or where nothing moved. */
export interface PathStep {
  length: number | null;
  attention: number | null;
  cross: number | null;
  rest: number | null; // the feed-forward part, with norms
  most: string; // the tokens that gave most of it through attention
}

/** A line over the axis that all share. since: where a point is the mean of several, the first x of each; low, high: their least and largest. */
export interface Series {
  name: string;
  x: number[]; // rising
  y: (number | null)[];
  since: number[] | null;
  low: (number | null)[] | null;
  high: (number | null)[] | null;
}

export type Cell = string | number | null | InContext;
export interface Column {
  name: string;
  digits: number | null; // of a number's decimals; null: text
  bar: boolean; // numbers are drawn as bars as well
  signed?: boolean; // numbers have a sign, as differences do
  unbounded?: boolean; // numbers are no fractions, as scores are none
  detail?: boolean; // a page has it, a terminal's first screen does not
}
export interface Point {
  x: number;
  y: number;
  label: string;
  group: string; // points of one group share a colour and mark
  after: number | null; // the number of the point that this one moved from: joined by an arrow
  context: InContext | null; // where the point is a word in a text
}
/** A word as it stands in a text, marked where it is shown. */
export interface InContext {
  left: string;
  form: string;
  right: string;
}
/** What a cloud's labels, groups and contexts are called in its sentence and its table. drawn says which of labels and groups stand
 *  in the picture; equal, whether both axes have one scale, so that distances can be compared. */
export interface Called {
  label: string;
  group: string;
  context: string;
}

/** A translation: the words of both texts, and the calls whose weights align them. */
export interface Alignment {
  calls: number[]; // of calls, cross-attention of one pair
  best: { call: number; head: number | null }; // what the library's alignment chose
}

/** What Steps needs beside queries and keys, of the calls where it was asked for. */
export interface StepsData {
  call: number;
  value: Vectors; // (G, S, E)
  projection: Numbers | null; // float32 (M, H · E), W_O; null where it could not be verified: refused says why
  projected: Vectors | null; // (H, S, M): W_O · value of each head and key, in the place of W_O where that is larger
  projection_bias: Numbers | null; // float32 (M,)
  projection_scale: number;
  residual: Vectors | null; // (L, M): what attention's output is added to
  kind: "post-norm" | "pre-norm" | "parallel" | null; // what stands around attention, as AttentionOutput; null where refused
  norm: { kind: "layer norm" | "rms norm"; weight: Numbers | null; bias: Numbers | null; epsilon: number } | null; // behind the residual; float32 (M,)
  entering: Vectors | null; // (L, M): the hidden states that enter the layer
  refused: string | null;
}

/** Two calls side by side: of two texts, or of one text before and after an ablation. */
export interface Comparison {
  name: string; // "before and after: layer 3 head 5 ablated"
  before: number[]; // of calls
  after: number[];
}
