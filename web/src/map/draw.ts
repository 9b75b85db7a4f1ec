// Paints the map on a canvas: pictures of tiles, numbers in large cells, names or numbers of tokens along the axes.
import { nameOf, readable } from "../words";
import type { Text } from "../data/format";
import { ink } from "../parts/colours";
import { hexOf } from "../picture/colour";
import { cellOf, SIDE, type Window } from "./pyramid";
import { rgbOf } from "./shades";
import type { Picture } from "./tiles";
import { fixed } from "../parts/numbers";

/** Where the matrix lies on the canvas, in CSS pixels. */
export interface Plot {
  left: number; // of the plot's corner
  top: number;
  window: Window;
  length: number;
  size: number;
}

export interface Look {
  back: string;
  ink: string;
  quiet: string;
  line: string;
  followed: string;
}

/** The page's colours, as its styles have them. */
export function lookOf(canvas: HTMLCanvasElement): Look {
  const style = getComputedStyle(canvas);
  const of = (name: string) => hexOf(style.getPropertyValue(name).trim());
  return { back: of("--back"), ink: of("--ink"), quiet: of("--quiet"), line: of("--line"), followed: of("--followed") };
}

const NAMES = 13; // pixels a cell needs for its token's name
const NAMED = 44; // tokens that have names along the whole map
const NUMBERS = 34; // and for its number

export function xOf({ left, window }: Plot, key: number): number {
  return left + (key - window.left) * window.pixels;
}

export function yOf({ top, window }: Plot, query: number): number {
  return top + (query - window.top) * window.pixels;
}

/** A token's name on one line. */
export function nameOn(text: Text, n: number): string {
  return readable(n in text.tokens.text ? nameOf(text, [n, n + 1]) : "");
}

const fontOf = (pixels: number) => `${Math.max(11, Math.min(14, pixels * 0.66))}px system-ui, sans-serif`;

/** The pixels that names need beside the matrix, up to twelve letters of them. */
export function marginOf(canvas: HTMLCanvasElement, queries: Text, keys: Text): number {
  const [context, names] = [canvas.getContext("2d")!, [queries, keys].flatMap((text) => text.tokens.text.map((_, n) => nameOn(text, n)))];
  if (Math.max(queries.tokens.text.length, keys.tokens.text.length) > NAMED) return 62;
  context.font = fontOf((canvas.parentElement!.clientWidth - 62) / keys.tokens.text.length);
  return Math.max(62, Math.min(96, 12 + Math.max(...names.map((name) => context.measureText(name).width))));
}

/** Confine what is painted to the matrix as far as it is in the window. */
export function clip(context: CanvasRenderingContext2D, plot: Plot): void {
  const { window, left, top } = plot;
  const [x, y] = [Math.max(left, xOf(plot, 0)), Math.max(top, yOf(plot, 0))];
  const right = Math.min(left + window.width, xOf(plot, plot.size));
  const bottom = Math.min(top + window.height, yOf(plot, plot.length));
  context.beginPath();
  context.rect(x, y, Math.max(0, right - x), Math.max(0, bottom - y));
  context.clip();
}

/** Paint the picture of a tile where it belongs. */
export function paintTile(context: CanvasRenderingContext2D, plot: Plot, { tile, canvas }: Picture): void {
  const side = SIDE * cellOf(tile.level);
  const wide = side * plot.window.pixels;
  context.drawImage(canvas, xOf(plot, tile.col * side), yOf(plot, tile.row * side), wide, wide);
}

/** Write the weights into cells that are large enough; none where the mask forbids it. allowed: whether it does not.
 *  colours: those that cells have; greys: those of keys that stand apart. */
export function paintNumbers(
  context: CanvasRenderingContext2D,
  plot: Plot,
  allowed: (query: number, key: number) => boolean,
  apart: boolean[],
  pictures: Picture[],
  colours: Uint32Array,
  greys: Uint32Array,
): void {
  const { pixels } = plot.window;
  if (pixels < NUMBERS) return;
  const [keys, queries] = shown(plot);
  context.font = `${Math.min(13, pixels / 3)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const { tile, values, there } of pictures) {
    if (tile.level !== 0) continue;
    const [down, right] = [tile.row * SIDE, tile.col * SIDE];
    for (let i = Math.max(queries[0], down); i < Math.min(queries[1], down + SIDE); i++) {
      if (!there[i - down]) continue;
      for (let j = Math.max(keys[0], right); j < Math.min(keys[1], right + SIDE); j++) {
        const value = values[(i - down) * SIDE + j - right]!;
        if (!allowed(i, j) || value < 0.005) continue; // the colour says so much
        context.fillStyle = ink(rgbOf(value, apart[j] ? greys : colours));
        context.fillText(short(value), xOf(plot, j + 0.5), yOf(plot, i + 0.5));
      }
    }
  }
}

function short(value: number): string {
  return fixed(value, 2).replace(/^(\D*)0\./, "$1.");
}

/** Outline a cell of queries × keys. */
export function paintCell(context: CanvasRenderingContext2D, plot: Plot, [i, rows]: [number, number], [j, cols]: [number, number], look: Look): void {
  const { pixels } = plot.window;
  const [wide, high] = [Math.max(3, cols * pixels), Math.max(3, rows * pixels)];
  context.lineWidth = 2;
  context.strokeStyle = look.followed;
  context.strokeRect(xOf(plot, j) - 1, yOf(plot, i) - 1, wide + 2, high + 2);
}

/** Mark the row or the column of the chosen token by its two edges. */
export function paintChosen(context: CanvasRenderingContext2D, plot: Plot, token: number, side: "gives" | "receives", look: Look): void {
  const { left, top, window } = plot;
  context.fillStyle = look.followed;
  const thick = Math.max(1, window.pixels);
  if (side === "gives") {
    for (const y of [yOf(plot, token) - 1, yOf(plot, token) + thick]) context.fillRect(left, y, window.width, 1);
  } else {
    for (const x of [xOf(plot, token) - 1, xOf(plot, token) + thick]) context.fillRect(x, top, 1, window.height);
  }
}

/** Write what stands along the two axes: names of tokens where there is room, else their numbers. */
export function paintAxes(context: CanvasRenderingContext2D, plot: Plot, queries: Text, keys: Text, at: { i: number; j: number } | null, look: Look): void {
  const { window, left, top } = plot;
  const [along, down] = shown(plot);
  const named = window.pixels >= NAMES;
  const step = named ? 1 : stepOf(window.pixels);
  context.font = fontOf(named ? window.pixels : 0);
  context.textBaseline = "middle";
  const write = (label: string, colour: string, room: number, x: number, y: number, turned: boolean) => {
    context.save();
    context.translate(x, y);
    if (turned) context.rotate(-Math.PI / 2);
    context.fillStyle = colour;
    context.fillText(fitted(context, label, room), 0, 0);
    context.restore();
  };
  context.textAlign = "center";
  if (!named) write("token looked at (key) →", look.quiet, window.width, left + window.width / 2, 12, false);
  if (!named) write("← token that looks (query)", look.quiet, window.height, 12, top + window.height / 2, true);
  const near = (n: number, cursor: number | undefined) => !named && cursor !== undefined && n !== cursor && Math.abs(n - cursor) * window.pixels < 14; // the cursor's own name stands there
  context.textAlign = "right";
  if (!named && at && at.i >= down[0] && at.i < down[1]) write(nameOn(queries, at.i), look.followed, left - 22, left - 6, yOf(plot, at.i + 0.5), false);
  for (let i = Math.ceil(down[0] / step) * step; i < down[1]; i += step) {
    const y = yOf(plot, i + (named ? 0.5 : 0));
    if (y >= top && y <= top + window.height && !near(i, at?.i) && (named || i !== at?.i)) write(named ? nameOn(queries, i) : String(i), i === at?.i ? look.followed : look.ink, left - 10, left - 6, y, false);
  }
  context.textAlign = "left";
  if (!named && at && at.j >= along[0] && at.j < along[1]) write(nameOn(keys, at.j), look.followed, top - 22, xOf(plot, at.j + 0.5), top - 6, true);
  for (let j = Math.ceil(along[0] / step) * step; j < along[1]; j += step) {
    const x = xOf(plot, j + (named ? 0.5 : 0));
    if (x >= left && x <= left + window.width && !near(j, at?.j) && (named || j !== at?.j)) write(named ? nameOn(keys, j) : String(j), j === at?.j ? look.followed : look.ink, top - 10, x, top - 6, true);
  }
  context.strokeStyle = look.line;
  context.lineWidth = 1;
  context.strokeRect(left - 0.5, top - 0.5, window.width + 1, window.height + 1);
}

/** A name cut to the room there is, its end told by an ellipsis. */
function fitted(context: CanvasRenderingContext2D, label: string, room: number): string {
  if (context.measureText(label).width <= room) return label;
  const characters = Array.from(label);
  while (characters.length > 1 && context.measureText(characters.join("") + "…").width > room) characters.pop();
  return characters.join("") + "…";
}

/** Every how many tokens a number stands: 1, 2 or 5 of a power of ten, at least 40 pixels apart. */
function stepOf(pixels: number): number {
  const least = 40 / pixels;
  const power = 10 ** Math.floor(Math.log10(least));
  return Math.max(1, Math.ceil([1, 2, 5, 10].map((n) => n * power).find((n) => n >= least)!));
}

/** The keys and the queries that the window shows, each [first, end). */
export function shown({ window, length, size }: Plot): [[number, number], [number, number]] {
  const range = (from: number, wide: number, end: number): [number, number] => [
    Math.max(0, Math.floor(from)),
    Math.min(end, Math.ceil(from + wide)),
  ];
  return [range(window.left, window.width / window.pixels, size), range(window.top, window.height / window.pixels, length)];
}
