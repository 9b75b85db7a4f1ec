// Paints a cloud of any number of points on a canvas, frame by frame while it is moved.
import { groupColours } from "../parts/colours";
import { placeLabels } from "../parts/place_labels";
import { ticksBetween } from "../parts/ticks";
import { lookOf, type Look } from "../map/draw";
import { BOTTOM, Camera, LEFT, RIGHT, TOP, type Sight } from "./camera";
import { endsOf, gridOf, nearest, type Grid } from "./grid";
import { fit, put, stampOf, type Picture, type Stamp } from "./stamps";

const PAPER = 3; // pixels a px on paper
const FONT = 12;
const REACH = 24; // pixels within which a point is meant
const [LEAST, STEP] = [0.4, 0.1]; // of the size of marks: the least, and the next larger one
const MANY = 10_000; // points in sight from which on marks lie on each other: an outline would tell none apart

export interface Points {
  xy: Float32Array; // x and y of each, one after the other
  of: Uint16Array; // the group of each; points of one group stand side by side
  groups: string[];
  x: string; // what the axes are
  y: string;
}

export class Scene {
  at: number | null = null; // the point that is looked at
  readonly count: number;
  readonly camera: Camera;
  readonly firsts: number[]; // the first point of each group that has any
  private readonly grid: Grid;
  private readonly mixed: { xs: Float32Array; ys: Float32Array; groups: Uint16Array }; // in the order in which they are painted
  private readonly seen: { columns: Int32Array; rows: Int32Array; numbers: Uint16Array }; // pixels and groups of those in sight
  private stamps = new Map<number, Stamp>();
  private ready = ""; // what the stamps are for
  private buffer: ImageData | null = null;
  private frame = 0;
  private dark = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly points: Points,
    onmoved: () => void,
  ) {
    this.count = points.of.length;
    this.grid = gridOf(points.xy);
    this.mixed = mixed(points);
    this.seen = { columns: new Int32Array(this.count), rows: new Int32Array(this.count), numbers: new Uint16Array(this.count) };
    this.firsts = points.groups.map((_, group) => points.of.indexOf(group)).filter((first) => first >= 0);
    addEventListener("beforeprint", this.print); // after the page's own, which came first and turned light
    addEventListener("afterprint", this.printed);
    this.camera = new Camera(canvas, endsOf(points.xy), () => (this.draw(), onmoved()));
  }

  /** Fit the canvas, whose size the page gives it. */
  resize(sight: Sight | null = null): void {
    this.camera.resize(this.canvas.clientWidth, this.canvas.clientHeight, sight);
    this.draw();
  }

  set look(dark: boolean) {
    this.dark = dark;
    this.draw();
  }

  /** The point that is meant by a place on the canvas; -1 where none is near. */
  near(px: number, py: number): number {
    if (!this.camera.has(px, py)) return -1;
    return nearest(this.grid, this.camera.dataX(px), this.camera.dataY(py), REACH * this.camera.pixel);
  }

  /** Look at a point, and bring it into sight. */
  go(point: number, move: boolean): void {
    this.at = point;
    if (move) this.camera.bringIntoSight(...this.pointAt(point));
    this.draw();
  }

  pointAt(point: number): [number, number] {
    return [this.points.xy[2 * point]!, this.points.xy[2 * point + 1]!];
  }

  /** Where a point lies on the canvas. */
  placeOf(point: number): [number, number] {
    const [x, y] = this.pointAt(point);
    return [this.camera.x(x), this.camera.y(y)];
  }

  /** Ask for a new picture at the next frame. */
  draw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  stop(): void {
    removeEventListener("beforeprint", this.print);
    removeEventListener("afterprint", this.printed);
    cancelAnimationFrame(this.frame);
    this.camera.stop();
  }

  private readonly print = () => this.paint(Math.max(PAPER, devicePixelRatio)); // at once, with the finer dots of paper
  private readonly printed = () => this.draw();

  private paint(ratio = devicePixelRatio): void {
    this.frame = 0;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width || !height) return;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    const context = this.canvas.getContext("2d")!;
    const look = lookOf(this.canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.back;
    context.fillRect(0, 0, width, height);
    context.font = `${FONT}px ${getComputedStyle(this.canvas).fontFamily}`;
    this.paintPoints(context, look, ratio);
    this.paintAxes(context, look, width, height);
    this.paintNames(context, look);
    if (this.at !== null) this.paintHere(context, look);
  }

  /** All points, in an order without meaning: where marks lie on each other, no group is always on top. */
  private paintPoints(context: CanvasRenderingContext2D, look: Look, ratio: number): void {
    const { camera } = this;
    const [wide, high] = [Math.ceil(camera.width * ratio), Math.ceil(camera.height * ratio)];
    if (this.buffer?.width !== wide || this.buffer.height !== high) this.buffer = context.createImageData(wide, high);
    const picture: Picture = { pixels: new Int32Array(this.buffer.data.buffer), width: wide, height: high };
    picture.pixels.fill(pixelOf(look.back));
    this.paintRules(picture, look, ratio);
    // a point's pixel: from × its number + to
    const fromX = ratio / camera.pixel;
    const [toX, toY] = [(camera.x(0) - LEFT) * ratio, (camera.y(0) - TOP) * ratio];
    const edge = 12 * ratio; // a mark whose middle is farther outside is not seen
    let [shown, seen] = [0, 0];
    const { xs, ys, groups } = this.mixed;
    const { columns, rows, numbers } = this.seen;
    for (let n = 0; n < xs.length; n++) {
      const x = fromX * xs[n]! + toX;
      const y = toY - fromX * ys[n]!;
      if (x < -edge || y < -edge || x > wide + edge || y > high + edge) continue;
      columns[seen] = Math.floor(x);
      rows[seen] = Math.floor(y);
      numbers[seen++] = groups[n]!;
      if (x >= 0 && y >= 0 && x < wide && y < high) shown++;
    }
    const stamps = this.stampsFor(shown, look, ratio).map((stamp) => fit(stamp, wide));
    for (let n = 0; n < seen; n++) put(picture, stamps[numbers[n]!]!, columns[n]!, rows[n]!);
    context.putImageData(this.buffer, Math.round(LEFT * ratio), Math.round(TOP * ratio));
  }

  /** Each group's mark, the smaller the more points are in sight. */
  private stampsFor(shown: number, look: Look, ratio: number): Stamp[] {
    const size = Math.max(LEAST, Math.min(1, Math.sqrt(300 / Math.max(1, shown))));
    const scale = Math.round(size / STEP) * STEP * ratio;
    const ready = `${look.back} ${this.dark} ${ratio}`;
    if (this.ready !== ready) this.stamps.clear();
    this.ready = ready;
    const colours = groupColours(this.dark);
    return this.points.groups.map((_, group) => {
      const key = (2 * Math.round(100 * scale) + Number(shown > MANY)) * this.points.groups.length + group;
      let found = this.stamps.get(key);
      if (!found) this.stamps.set(key, (found = stampOf(group, colours[group % colours.length]!, shown > MANY ? null : look.back, scale)));
      return found;
    });
  }

  private paintRules(picture: Picture, look: Look, ratio: number): void {
    const line = pixelOf(look.line);
    const { across, up } = this.ticks;
    for (const { place } of across) {
      const x = Math.round((place - LEFT) * ratio);
      if (x >= 0 && x < picture.width) for (let y = 0; y < picture.height; y++) picture.pixels[y * picture.width + x] = line;
    }
    for (const { place } of up) {
      const y = Math.round((place - TOP) * ratio);
      if (y >= 0 && y < picture.height) picture.pixels.fill(line, y * picture.width, (y + 1) * picture.width);
    }
  }

  private get ticks() {
    const { camera } = this;
    const across = ticksBetween(camera.dataX(LEFT), camera.dataX(LEFT + camera.width));
    const up = ticksBetween(camera.dataY(TOP + camera.height), camera.dataY(TOP));
    return {
      across: across.map(({ value, label }) => ({ label, place: camera.x(value) })),
      up: up.map(({ value, label }) => ({ label, place: camera.y(value) })),
    };
  }

  private paintAxes(context: CanvasRenderingContext2D, look: Look, width: number, height: number): void {
    const { across, up } = this.ticks;
    context.fillStyle = look.ink;
    context.textAlign = "center";
    let free = LEFT - 8; // labels of deep zooms are long: those that would lie on the one before are left out
    for (const { label, place } of across) {
      const half = context.measureText(label).width / 2;
      if (place - half < free) continue;
      context.fillText(label, place, height - BOTTOM + 16);
      free = place + half + 8;
    }
    context.fillText(this.points.x, (LEFT + width - RIGHT) / 2, height - 8);
    context.textAlign = "end";
    for (const { label, place } of up) context.fillText(label, LEFT - 6, place + 4, LEFT - 22);
    context.save();
    context.textAlign = "center";
    context.translate(13, (TOP + height - BOTTOM) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(this.points.y, 0, 0);
    context.restore();
  }

  /** Each group's name beside its first point, where that is in sight. */
  private paintNames(context: CanvasRenderingContext2D, look: Look): void {
    if (this.firsts.length < 2) return;
    const { camera } = this;
    const named = this.firsts.map((n) => ({ name: this.points.groups[this.points.of[n]!]!, place: this.placeOf(n) })).filter(({ place }) => camera.has(...place));
    context.save();
    context.font = `bold ${context.font}`;
    const widths = named.map(({ name }) => context.measureText(name).width + 2);
    const frame = { x: LEFT, y: TOP, width: camera.width, height: camera.height };
    const boxes = placeLabels(named.map(({ place }) => place), widths, FONT + 2, frame, 6);
    context.textAlign = "start";
    context.lineJoin = "round";
    [context.lineWidth, context.strokeStyle, context.fillStyle] = [3, look.back, look.ink];
    boxes.forEach((box, n) => {
      if (!box) return;
      context.strokeText(named[n]!.name, box.x + 1, box.y + FONT - 1);
      context.fillText(named[n]!.name, box.x + 1, box.y + FONT - 1);
    });
    context.restore();
  }

  private paintHere(context: CanvasRenderingContext2D, look: Look): void {
    const [x, y] = this.placeOf(this.at!);
    if (!this.camera.has(x, y)) return;
    context.beginPath();
    context.arc(x, y, 10, 0, 2 * Math.PI);
    [context.lineWidth, context.strokeStyle] = [4, look.back];
    context.stroke();
    [context.lineWidth, context.strokeStyle] = [2, look.followed];
    context.stroke();
  }
}

/** The points in an order without meaning, the same each time (Fisher and Yates, with a small generator). */
function mixed({ xy, of }: Points): { xs: Float32Array; ys: Float32Array; groups: Uint16Array } {
  const order = Uint32Array.from(of, (_, n) => n);
  let state = 1;
  for (let n = order.length - 1; n > 0; n--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const m = Math.floor((state / 2 ** 32) * (n + 1));
    [order[n], order[m]] = [order[m]!, order[n]!];
  }
  return {
    xs: Float32Array.from(order, (n) => xy[2 * n]!),
    ys: Float32Array.from(order, (n) => xy[2 * n + 1]!),
    groups: Uint16Array.from(order, (n) => of[n]!),
  };
}

const pixelsOf = new Map<string, number>();

/** A colour as a pixel of ImageData. */
function pixelOf(colour: string): number {
  let found = pixelsOf.get(colour);
  if (found === undefined) {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
    pixelsOf.set(colour, (found = (0xff << 24) | (blue! << 16) | (green! << 8) | red!));
  }
  return found;
}
