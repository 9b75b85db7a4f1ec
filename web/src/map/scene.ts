// The map on its canvas: the tiles that are wanted of what the camera sees, their colours, and a picture a frame.
import { farthestOf } from "../parts/numbers";
import { keepPainter } from "../picture/canvases";
import type { Attention } from "../attention/client";
import type { Source } from "../data/bytes";
import type { Call, Text } from "../data/format";
import { Camera, type Place, type Sight } from "./camera";
import { clip, marginOf, paintAxes, paintCell, paintChosen, paintNumbers, paintTile, xOf, yOf, lookOf, type Look } from "./draw";
import { coarseOf, coarsePicture, type Coarse } from "./overview";
import { cellOf, inWindow, levelFor, SIDE, tilesIn, topLevel } from "./pyramid";
import { palette } from "./shades";
import { settle, type Settled } from "./settled";
import { Tiles, type Picture } from "./tiles";

export interface Shown {
  call: number;
  head: number | null;
  description: Call;
  queries: Text;
  keys: Text;
}

export interface Told {
  onplace(place: Place): void; // the cursor went to another cell, by the mouse or by keys
  onchoose(place: Place): void;
  onmoving(): void;
  onsettled(settled: Settled): void; // nothing moves, and what could be computed is
  onmissing(bands: number): void; // how many pieces are still on their way
  ontrouble(error: unknown): void;
}

const GATHER = 80; // ms
const REST = 120; // ms without a move: the map is at rest
const FEW = 8;
const PAPER = 3; // pixels a px on paper

export class Scene {
  place: Place | null = null;
  chosen: { token: number; side: "gives" | "receives" } | null = null;
  allowed: (query: number, key: number) => boolean = () => true; // where the mask does not forbid a weight
  apart: boolean[] = []; // keys whose columns are grey, and count for no colour, where cells are single weights
  private shown: Shown | null = null;
  private tiles: Tiles | null = null;
  private coarse: Coarse | null = null;
  private coarsePicture: HTMLCanvasElement | null = null; // in the colours of now
  private darkest = -1; // value of the darkest colour, once known
  private colours: Uint32Array | null = null;
  private readonly camera: Camera;
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
    this.camera = new Camera(canvas, () => this.moved());
    addEventListener("beforeprint", this.print); // after the page's own, which came first
    addEventListener("afterprint", this.printed);
    keepPainter(canvas, (other, ratio) => this.paintOn(other, ratio));
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && !event.buttons) this.point(event);
    });
    canvas.addEventListener("click", (event) => {
      this.point(event);
      if (this.place && this.camera.placeAt(event)) told.onchoose(this.place);
    });
  }

  /** Show a head's map; where the texts are the same as before, the part of it that is shown now. */
  show(shown: Shown, dark: boolean): void {
    const same = this.shown?.queries === shown.queries && this.shown.keys === shown.keys;
    this.tiles?.stop();
    this.shown = shown;
    this.dark = dark;
    this.coarse = this.coarsePicture = null;
    this.colours = null;
    this.tiles = new Tiles(this.attention, shown.description, shown, () => this.arrived(), this.told.ontrouble);
    const { overview } = shown.description;
    if (overview) coarseOf(overview, shown.head, this.source).then((coarse) => {
      if (this.shown !== shown) return;
      this.coarse = coarse;
      if (!this.colours) {
        this.darkest = farthestOf(coarse.values);
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
    this.camera.resize(this.tiles.length, this.tiles.size, home, marginOf(this.canvas, this.shown.queries, this.shown.keys));
    this.moved();
  }

  home(): void {
    this.camera.home();
  }

  get sight(): Sight {
    return this.camera.sight;
  }

  /** Show what was in sight before, with the cursor where it was. */
  look(sight: Sight, place: Place | null): void {
    this.camera.look(sight);
    const { length, size } = this.plot;
    const there = place && Number.isInteger(place.i) && Number.isInteger(place.j) && place.i >= 0 && place.j >= 0 && place.i < length && place.j < size;
    if (there) this.place = place;
    this.draw();
  }

  /** Zoom around the cursor where it is in sight, else around the middle. */
  zoomBy(factor: number): void {
    this.camera.zoomBy(factor, this.place);
  }

  /** Move the window by a share of its size. */
  panBy(right: number, down: number): void {
    this.camera.panBy(right, down);
  }

  /** Move the cursor by cells, and the window with it; the first time to the middle. */
  step(right: number, down: number): void {
    const cell = cellOf(this.level);
    this.go(this.place ? { i: this.place.i + down * cell, j: this.place.j + right * cell } : this.camera.middle);
    this.told.onplace(this.place!);
  }

  /** Put the cursor on a weight, and the weight into sight. */
  go({ i, j }: Place): void {
    const { length, size } = this.plot;
    this.place = { i: Math.max(0, Math.min(length - 1, i)), j: Math.max(0, Math.min(size - 1, j)) };
    if (this.camera.inSight(this.place)) this.draw();
    else this.camera.bringIntoSight(this.place);
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

  setDark(dark: boolean): void {
    this.dark = dark;
    this.recolour();
    this.draw();
  }

  /** Draw for paper at once: the page has turned light, and its dots are finer. */
  private readonly print = () => this.paintOn(this.canvas, Math.max(PAPER, devicePixelRatio));
  private readonly printed = () => this.draw();

  /** Ask for a new picture at the next frame. */
  draw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  stop(): void {
    removeEventListener("beforeprint", this.print);
    removeEventListener("afterprint", this.printed);
    this.tiles?.stop();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    clearTimeout(this.gathering);
    this.camera.stop();
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

  private get plot() {
    return this.camera.plot;
  }

  get level(): number {
    return Math.min(levelFor(this.plot.window.pixels, devicePixelRatio), topLevel(this.plot.length, this.plot.size));
  }

  private get wanted() {
    return tilesIn(this.plot.window, this.level, this.plot.length, this.plot.size);
  }

  private moved(): void {
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
      const settled = settle(this.plot, this.level, pictures, FEW, missing === 0, this.apart);
      if (missing && this.colours) return; // the colours of before stay until all is there
      if (settled.darkest < 0) return;
      this.darkest = settled.darkest;
      this.recolour();
      this.draw();
      if (!missing) this.told.onsettled(settled);
    }, after);
  }

  private recolour(): void {
    if (this.darkest < 0) return;
    this.colours = palette(this.darkest, this.dark);
    this.tiles?.recolour(this.colours, palette(this.darkest, this.dark, "apart"), this.apart);
    this.paintCoarse();
  }

  private paintCoarse(): void {
    if (this.coarse && this.colours) this.coarsePicture = coarsePicture(this.coarse, this.colours);
  }

  private paint(): void {
    this.frame = 0;
    this.paintOn(this.canvas, devicePixelRatio);
  }

  /** Paint what is shown on a canvas, in so many pixels a px. */
  private paintOn(canvas: HTMLCanvasElement, ratio: number): void {
    if (!this.shown || !this.tiles) return;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    const context = canvas.getContext("2d")!;
    const look = lookOf(this.canvas);
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
    if (this.coarsePicture) {
      const { window, size, length } = this.plot;
      context.drawImage(this.coarsePicture, xOf(this.plot, 0), yOf(this.plot, 0), size * window.pixels, length * window.pixels);
    }
    const tiles = this.wanted;
    const level = this.level;
    const now = tiles.map((tile) => this.tiles!.picture(tile)).filter((picture): picture is Picture => !!picture);
    if (now.some((picture) => picture.missing)) {
      const others = [...this.tiles!.all()].filter((picture) => picture.tile.level !== level && inWindow(picture.tile, this.plot.window));
      others.sort((a, b) => b.tile.level - a.tile.level);
      for (const { tile } of others) paintTile(context, this.plot, this.tiles!.picture(tile)!);
    }
    for (const picture of now) paintTile(context, this.plot, picture);
    if (!level) paintNumbers(context, this.plot, this.allowed, this.apart, now, this.colours, this.tiles!.greys!);
  }

  private paintPlace(context: CanvasRenderingContext2D, { i, j }: Place, look: Look): void {
    const cell = cellOf(this.level);
    paintCell(context, this.plot, [i - (i % cell), cell], [j - (j % cell), cell], look);
  }

  private point(event: MouseEvent): void {
    const at = this.camera.placeAt(event);
    if (!at || (this.place?.i === at.i && this.place.j === at.j)) return;
    this.place = at;
    this.told.onplace(at);
    this.draw();
  }
}
