// What is drawn on canvases: as cells where it is cells, else as an image of the canvas's own pixels.
import type { Grid } from "../data/format";
import type { Rgb } from "../parts/colours";
import { hex } from "./colour";
import { round, type Box, type Shapes } from "./shapes";

const CELLS = 10_000; // of a grid that is drawn cell by cell
const SHARP = 2; // pixels of an image for each px, at least
const INK = 0.65; // how dark it is, of 1: what lies over it is to be seen
const LARGEST = 8192; // pixels of a side of such an image

export type Painter = (canvas: HTMLCanvasElement, ratio: number) => void;

const painters = new WeakMap<HTMLCanvasElement, Painter>();
const grids = new WeakMap<HTMLCanvasElement, ImageData>();

/** Tell how what a canvas shows is painted on another one, in any number of pixels a px: a picture has it sharp. */
export function keepPainter(canvas: HTMLCanvasElement, paint: Painter): void {
  painters.set(canvas, paint);
}

/** Draw cells on a canvas, a pixel each: a picture draws them one by one. colour: of a cell, null leaves it transparent.
 *  picture: what they lie over, 0 paper to 1 ink, in its own pixels. */
export function drawCells(canvas: HTMLCanvasElement, rows: number, columns: number, colour: (row: number, column: number) => Rgb | null, picture?: Grid): void {
  if (!rows || !columns) return;
  const [high, wide] = picture ? [picture.length, picture[0]!.length] : [rows, columns];
  const cells = new ImageData(wide, high);
  const { data } = cells; // read once: there may be many
  for (let y = 0, n = 0; y < high; y++) {
    const row = Math.floor((y * rows) / high);
    for (let x = 0; x < wide; x++, n += 4) {
      const found = colour(row, picture ? Math.floor((x * columns) / wide) : x);
      if (!found) continue;
      const light = picture ? 1 - INK * picture[y]![x]! : 1;
      for (let c = 0; c < 3; c++) data[n + c] = found[c]! * light;
      data[n + 3] = 255;
    }
  }
  [canvas.width, canvas.height] = [wide, high];
  canvas.getContext("2d")!.putImageData(cells, 0, 0);
  grids.set(canvas, cells);
}

/** Draw what a canvas shows into its box of the picture. */
export function drawCanvas(shapes: Shapes, canvas: HTMLCanvasElement, box: Box): void {
  const cells = grids.get(canvas);
  if (!canvas.width || !canvas.height || !(box.right > box.left)) return;
  if (cells && cells.width * cells.height <= CELLS) drawGrid(shapes, cells, box);
  else drawImage(shapes, cells ? enlarged(canvas, box) : sharpened(canvas), box);
}

/** Cells, those of one colour as one path. What is transparent is no cell. */
function drawGrid(shapes: Shapes, { width, height, data }: ImageData, box: Box): void {
  const [wide, tall] = [(box.right - box.left) / width, (box.bottom - box.top) / height];
  const paths = new Map<string, string[]>();
  for (let n = 0; n < width * height; n++) {
    if (!data[4 * n + 3]) continue;
    const colour = hex(data[4 * n]!, data[4 * n + 1]!, data[4 * n + 2]!);
    const [x, y] = [box.left + (n % width) * wide, box.top + Math.floor(n / width) * tall];
    if (!paths.has(colour)) paths.set(colour, []);
    paths.get(colour)!.push(`M${round(x)} ${round(y)}h${round(wide)}v${round(tall)}h${round(-wide)}z`);
  }
  shapes.open({ "shape-rendering": "crispEdges" });
  for (const [colour, cells] of paths) shapes.add("path", { d: cells.join(""), fill: colour }, box);
  shapes.close();
}

/** A canvas in the pixels of a picture, or where nothing tells how it is painted, in those that it has. */
function sharpened(canvas: HTMLCanvasElement): HTMLCanvasElement {
  const paint = painters.get(canvas);
  if (!paint || devicePixelRatio >= SHARP) return canvas;
  const sharp = document.createElement("canvas");
  paint(sharp, SHARP);
  return sharp;
}

function drawImage(shapes: Shapes, canvas: HTMLCanvasElement, box: Box): void {
  const place = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
  shapes.add("image", { ...place, preserveAspectRatio: "none", href: canvas.toDataURL("image/png") }, box);
}

/** A grid with as many pixels for each cell as it needs to be seen sharply: programs blur what they enlarge. */
function enlarged(canvas: HTMLCanvasElement, box: Box): HTMLCanvasElement {
  const times = (cells: number, px: number) => Math.max(1, Math.min(Math.ceil((SHARP * px) / cells), Math.floor(LARGEST / cells)));
  const large = document.createElement("canvas");
  large.width = canvas.width * times(canvas.width, box.right - box.left);
  large.height = canvas.height * times(canvas.height, box.bottom - box.top);
  const pen = large.getContext("2d")!;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, 0, 0, large.width, large.height);
  return large;
}
