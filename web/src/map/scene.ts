// The map on its canvas: zoom and pan, the tiles that are wanted, and a picture a frame.
import { select } from "d3-selection";
import { zoom, zoomIdentity, type D3ZoomEvent, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import type { Attention } from "../attention/client";
import type { Source } from "../data/bytes";
import type { Call, Text } from "../data/format";
import { clip, paintAxes, paintCell, paintChosen, paintNumbers, paintTile, xOf, yOf, type Look, type Plot } from "./draw";
import { coarseOf } from "./overview";
import { cellOf, levelFor, SIDE, tilesIn, topLevel } from "./pyramid";
import { Counts, palette, type ScaleName } from "./shades";
import { settle, type Settled } from "./settled";
import { Tiles, type Picture } from "./tiles";

export interface Shown {
  call: number;
  head: number | null;
  description: Call;
  queries: Text;
  keys: Text;
}

export interface Place {
  i: number; // query
  j: number; // key
}

export interface Told {
  onplace(place: Place): void; // the cursor went to another cell, by the mouse or by keys
  onchoose(place: Place): void;
  onmoving(): void;
  onsettled(settled: Settled): void; // nothing moves, and what could be computed is
  onmissing(bands: number): void; // how many pieces are still on their way
  ontrouble(error: unknown): void;
}

const LARGEST = 64; // pixels a token at most
const GATHER = 80; // ms
const REST = 120; // ms without a move: the map is at rest
const FEW = 8;

export class Scene {
  scale: ScaleName = "square root";
  place: Place | null = null;
  chosen: { token: number; side: "gives" | "receives" } | null = null;
  allowed: (query: number, key: number) => boolean = () => true; // where the mask does not forbid a weight
  private shown: Shown | null = null;
  private tiles: Tiles | null = null;
  private coarse: { canvas: HTMLCanvasElement; rows: number; cols: number; values: Float32Array } | null = null;
  private counts = new Counts();
  private colours: Uint32Array | null = null;
  private transform: ZoomTransform = zoomIdentity;
  private fit = 1; // pixels a token where the whole is shown
  private plot: Plot = { left: 0, top: 0, window: { left: 0, top: 0, pixels: 1, width: 1, height: 1 }, length: 1, size: 1 };
  private readonly behaviour: ZoomBehavior<HTMLCanvasElement, unknown>;
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private dark = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly attention: Attention,
    private readonly source: Source,
    private readonly told: Told,
  ) {
    this.behaviour = zoom<HTMLCanvasElement, unknown>().on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
      this.transform = event.transform;
      this.moved();
    });
    select(canvas).call(this.behaviour).on("dblclick.zoom", null);
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && !event.buttons) this.point(event);
    });
    canvas.addEventListener("click", (event) => {
      this.point(event);
      if (this.place && this.hit(event)) told.onchoose(this.place);
    });
  }

  /** Show a head's map; where the texts are the same as before, the part of it that is shown now. */
  show(shown: Shown, dark: boolean): void {
    const same = this.shown?.queries === shown.queries && this.shown.keys === shown.keys;
    this.tiles?.stop();
    this.shown = shown;
    this.dark = dark;
    this.coarse = null;
    this.colours = null;
    this.tiles = new Tiles(this.attention, shown.description, shown, () => this.arrived(), this.told.ontrouble);
    coarseOf(shown.description, shown.head, this.source).then((coarse) => {
      if (this.shown !== shown || !coarse) return;
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [coarse.cols, coarse.rows];
      this.coarse = { canvas, ...coarse };
      if (!this.colours) {
        this.counts = new Counts();
        this.counts.add(coarse.values, coarse.cols, [0, coarse.rows], [0, coarse.cols]);
        this.recolour();
      } else this.paintCoarse();
      this.draw();
    }, this.told.ontrouble);
    if (same) this.moved();
    else {
      this.place = null;
      this.resize(true);
    }
  }

  /** Fit the canvas into the room that there is. home: and show the whole. */
  resize(home = false): void {
    if (!this.shown || !this.tiles) return;
    const { length, size } = this.tiles;
    const room = this.canvas.parentElement!.clientWidth;
    const margin = room < 500 ? 62 : 96;
    const [wide, high] = [room - margin - 2, Math.max(260, 0.75 * innerHeight)];
    this.fit = Math.min(wide / size, high / length, LARGEST);
    const [width, height] = [Math.max(this.fit * size, Math.min(wide, 260)), Math.max(this.fit * length, 160)];
    this.canvas.style.width = `${margin + width + 2}px`;
    this.canvas.style.height = `${margin + height + 2}px`;
    this.plot = { left: margin, top: margin, window: { left: 0, top: 0, pixels: this.fit, width, height }, length, size };
    const corner: [number, number] = [margin, margin];
    this.behaviour
      .extent([corner, [margin + width, margin + height]])
      .translateExtent([corner, [margin + this.fit * size, margin + this.fit * length]])
      .scaleExtent([1, Math.max(1, LARGEST / this.fit)]);
    if (home) this.home();
    else this.behaviour.transform(select(this.canvas), this.transform);
    this.moved();
  }

  home(): void {
    this.behaviour.transform(select(this.canvas), zoomIdentity);
  }

  /** Zoom around the cursor where it is in sight, else around the middle. */
  zoomBy(factor: number): void {
    const { left, top, window } = this.plot;
    const [x, y] = this.place && this.inSight(this.place) ? this.middle(this.place) : [left + window.width / 2, top + window.height / 2];
    this.behaviour.scaleBy(select(this.canvas), factor, [x, y]);
  }

  /** Move the window by a share of its size. */
  panBy(right: number, down: number): void {
    const { window } = this.plot;
    this.behaviour.translateBy(select(this.canvas), (-right * window.width) / this.transform.k, (-down * window.height) / this.transform.k);
  }

  /** Move the cursor by cells, and the window with it. */
  step(right: number, down: number): void {
    const cell = cellOf(this.level);
    const { window } = this.plot;
    const from = this.place ?? {
      i: Math.floor(window.top + window.height / window.pixels / 2) - down * cell,
      j: Math.floor(window.left + window.width / window.pixels / 2) - right * cell,
    };
    this.go({ i: from.i + down * cell, j: from.j + right * cell });
    this.told.onplace(this.place!);
  }

  /** Put the cursor on a weight, and the weight into sight. */
  go({ i, j }: Place): void {
    const { length, size, window } = this.plot;
    this.place = { i: Math.max(0, Math.min(length - 1, i)), j: Math.max(0, Math.min(size - 1, j)) };
    if (this.inSight(this.place)) this.draw();
    else {
      const over = (at: number, from: number, wide: number) => (at < from ? at - from : at + 1 > from + wide ? at + 1 - from - wide : 0);
      const right = over(this.place.j, window.left, window.width / window.pixels);
      const down = over(this.place.i, window.top, window.height / window.pixels);
      this.behaviour.translateBy(select(this.canvas), -right * this.fit, -down * this.fit);
    }
  }

  /** The mean of the cell that a place lies in, with the cell's queries and keys; null where it is not there yet. */
  cellAt({ i, j }: Place): { queries: [number, number]; keys: [number, number]; mean: number } | null {
    const cell = cellOf(this.level);
    const [r, c] = [Math.floor(i / cell), Math.floor(j / cell)];
    const picture = this.tiles?.picture({ level: this.level, row: Math.floor(r / SIDE), col: Math.floor(c / SIDE) });
    if (!picture?.there[r % SIDE]) return null;
    return {
      queries: [r * cell, Math.min(this.plot.length, (r + 1) * cell)],
      keys: [c * cell, Math.min(this.plot.size, (c + 1) * cell)],
      mean: picture.values[(r % SIDE) * SIDE + (c % SIDE)]!,
    };
  }

  setScale(scale: ScaleName, dark: boolean): void {
    [this.scale, this.dark] = [scale, dark];
    this.recolour();
    this.draw();
  }

  /** Ask for a new picture at the next frame. */
  draw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  stop(): void {
    this.tiles?.stop();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    clearTimeout(this.gathering);
    select(this.canvas).on(".zoom", null);
  }

  /** Compute no more until the map moves, or goes on. */
  pause(): void {
    clearTimeout(this.timer);
    clearTimeout(this.gathering);
    this.gathering = undefined;
    this.tiles?.halt();
    this.draw();
  }

  /** Compute what is still missing. */
  goOn(): void {
    this.moved();
  }

  get level(): number {
    return Math.min(levelFor(this.plot.window.pixels, devicePixelRatio), topLevel(this.plot.length, this.plot.size));
  }

  private get wanted() {
    return tilesIn(this.plot.window, this.level, this.plot.length, this.plot.size);
  }

  private moved(): void {
    const { left, top, window } = this.plot;
    window.pixels = this.fit * this.transform.k;
    window.left = (left - this.transform.x - this.transform.k * left) / window.pixels;
    window.top = (top - this.transform.y - this.transform.k * top) / window.pixels;
    this.told.onmissing(this.tiles?.want(this.wanted) ?? 0);
    this.draw();
    this.rest();
  }

  /** Show what arrived, with what arrives soon after it: a picture for each band would take the workers' time. */
  private arrived(): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = undefined;
      if (!this.tiles) return;
      const missing = this.tiles.want(this.wanted);
      this.told.onmissing(missing);
      this.draw();
      if (!this.colours || !missing) this.rest(this.colours ? REST : 0);
    }, GATHER);
  }

  /** When nothing moves any more: count what is shown, and colour by it. */
  private rest(after = REST): void {
    clearTimeout(this.timer);
    this.told.onmoving();
    this.timer = setTimeout(() => {
      if (!this.tiles) return;
      const tiles = this.wanted;
      const missing = this.tiles.want(tiles);
      const pictures = tiles.map((tile) => this.tiles!.picture(tile)!);
      const settled = settle(this.plot, this.level, pictures, FEW, missing === 0);
      if (missing && this.colours) return; // the colours of before stay until all is there
      if (!settled.counts.total) return;
      this.counts = settled.counts;
      this.recolour();
      this.draw();
      if (!missing) this.told.onsettled(settled);
    }, after);
  }

  private recolour(): void {
    if (!this.counts.total) return;
    this.colours = palette(this.scale, this.counts, this.dark);
    this.tiles?.recolour(this.colours);
    this.paintCoarse();
  }

  private paintCoarse(): void {
    if (!this.coarse || !this.colours) return;
    const { canvas, rows, cols, values } = this.coarse;
    const image = new ImageData(cols, rows);
    const bits = new Uint32Array(values.buffer);
    const pixels = new Uint32Array(image.data.buffer);
    for (let n = 0; n < bits.length; n++) pixels[n] = this.colours[bits[n]! >>> 15]!;
    canvas.getContext("2d")!.putImageData(image, 0, 0);
  }

  private paint(): void {
    this.frame = 0;
    if (!this.shown || !this.tiles) return;
    const ratio = devicePixelRatio;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    const context = this.canvas.getContext("2d")!;
    const look = this.look();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.back;
    context.fillRect(0, 0, width, height);
    context.save();
    clip(context, this.plot);
    context.imageSmoothingEnabled = false;
    this.paintPictures(context);
    context.restore();
    paintAxes(context, this.plot, this.shown.queries, this.shown.keys, this.place, look);
    context.save();
    clip(context, this.plot);
    if (this.chosen) paintChosen(context, this.plot, this.chosen.token, this.chosen.side, look);
    if (this.place) this.paintPlace(context, this.place, look);
    context.restore();
  }

  /** The coarsest first: each finer one over it, and those of this level last. */
  private paintPictures(context: CanvasRenderingContext2D): void {
    if (!this.colours) return;
    if (this.coarse) {
      const { window, size, length } = this.plot;
      context.drawImage(this.coarse.canvas, xOf(this.plot, 0), yOf(this.plot, 0), size * window.pixels, length * window.pixels);
    }
    const tiles = this.wanted;
    const level = this.level;
    const now = tiles.map((tile) => this.tiles!.picture(tile)).filter((picture): picture is Picture => !!picture);
    if (now.some((picture) => picture.missing)) {
      const others = [...this.tiles!.all()].filter((picture) => picture.tile.level !== level && this.visible(picture));
      others.sort((a, b) => b.tile.level - a.tile.level);
      for (const { tile } of others) paintTile(context, this.plot, this.tiles!.picture(tile)!);
    }
    for (const picture of now) paintTile(context, this.plot, picture);
    if (level === 0) paintNumbers(context, this.plot, this.allowed, now, this.colours);
  }

  private visible({ tile }: Picture): boolean {
    const side = SIDE * cellOf(tile.level);
    const { window } = this.plot;
    const [x, y] = [tile.col * side - window.left, tile.row * side - window.top];
    return x < window.width / window.pixels && y < window.height / window.pixels && x + side > 0 && y + side > 0;
  }

  private paintPlace(context: CanvasRenderingContext2D, { i, j }: Place, look: Look): void {
    const cell = cellOf(this.level);
    paintCell(context, this.plot, [i - (i % cell), cell], [j - (j % cell), cell], look);
  }

  private look(): Look {
    const style = getComputedStyle(this.canvas);
    const of = (name: string) => style.getPropertyValue(name).trim();
    return { back: of("--back"), ink: of("--ink"), quiet: of("--quiet"), line: of("--line"), followed: of("--followed") };
  }

  private hit({ offsetX, offsetY }: MouseEvent): boolean {
    const { left, top, window } = this.plot;
    return offsetX >= left && offsetY >= top && offsetX < left + window.width && offsetY < top + window.height;
  }

  private point(event: MouseEvent): void {
    if (!this.hit(event)) return;
    const { left, top, window, length, size } = this.plot;
    const i = Math.floor(window.top + (event.offsetY - top) / window.pixels);
    const j = Math.floor(window.left + (event.offsetX - left) / window.pixels);
    if (i < 0 || j < 0 || i >= length || j >= size || (this.place?.i === i && this.place.j === j)) return;
    this.place = { i, j };
    this.told.onplace(this.place);
    this.draw();
  }

  private inSight({ i, j }: Place): boolean {
    const { window } = this.plot;
    const inside = (at: number, from: number, wide: number) => at >= Math.floor(from) && at < from + wide && (at + 1 <= from + wide || wide < 2);
    return inside(j, window.left, window.width / window.pixels) && inside(i, window.top, window.height / window.pixels);
  }

  private middle({ i, j }: Place): [number, number] {
    return [xOf(this.plot, j + 0.5), yOf(this.plot, i + 0.5)];
  }
}
