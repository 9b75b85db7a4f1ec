// Which part of a cloud is in sight: zoom and pan by wheel, pinch, drag and keys, and where a point lies on the canvas.
import { under, WHOLE, Zoom } from "../zoom";

export const [LEFT, RIGHT, TOP, BOTTOM] = [56, 12, 10, 44]; // pixels around the plot
const MOST = 4096; // times that one may zoom in
const ROOM = 1.12; // the whole has a little room around it

/** What is in sight: the place in the middle, and how many times the whole is enlarged. */
export interface Sight {
  x: number;
  y: number;
  zoom: number;
}

export class Camera {
  width = 1; // of the plot, in pixels
  height = 1;
  private unit = 1; // of the axes, a pixel where the whole is shown
  private middle: [number, number] = [0, 0];
  private readonly zoom: Zoom;

  /** ends: the least and the largest x, then those of y. */
  constructor(
    canvas: HTMLCanvasElement,
    private readonly ends: [number, number, number, number],
    moved: () => void,
  ) {
    this.zoom = new Zoom(canvas, moved);
  }

  /** Fit the plot into a canvas of so many pixels, and show what was in sight, or what is given. */
  resize(width: number, height: number, given: Sight | null): void {
    const sight = given ?? this.sight;
    [this.width, this.height] = [Math.max(1, width - LEFT - RIGHT), Math.max(1, height - TOP - BOTTOM)];
    const [left, right, down, up] = this.ends;
    this.middle = [(left + right) / 2, (down + up) / 2];
    this.unit = ROOM * Math.max((right - left) / this.width, (up - down) / this.height) || (Math.abs(left) || 1) / this.width;
    const plot: [[number, number], [number, number]] = [[LEFT, TOP], [LEFT + this.width, TOP + this.height]]; // prettier-ignore
    this.zoom.bound(plot, plot, [1, MOST]);
    this.show(sight);
  }

  get sight(): Sight {
    return { x: this.dataX(LEFT + this.width / 2), y: this.dataY(TOP + this.height / 2), zoom: this.zoom.now.k };
  }

  show({ x, y, zoom: k }: Sight): void {
    const [px, py] = [this.fitX(x), this.fitY(y)];
    const known = Number.isFinite(px) && Number.isFinite(py) && k >= 1;
    this.zoom.set(known ? { k, x: LEFT + this.width / 2 - k * px, y: TOP + this.height / 2 - k * py } : WHOLE);
  }

  home(): void {
    this.zoom.set(WHOLE);
  }

  /** Zoom around a place on the canvas where it is in sight, else around the middle. */
  zoomBy(factor: number, around: [number, number] | null): void {
    const middle: [number, number] = [LEFT + this.width / 2, TOP + this.height / 2];
    this.zoom.scaleBy(factor, around && this.has(...around) ? around : middle);
  }

  /** Move the window by a share of its size. */
  panBy(right: number, down: number): void {
    const { k } = this.zoom.now;
    this.zoom.translateBy((-right * this.width) / k, (-down * this.height) / k);
  }

  /** Bring a place of the axes into sight, into the middle where it is not. */
  bringIntoSight(x: number, y: number): void {
    if (!this.has(this.x(x), this.y(y))) this.show({ x, y, zoom: this.zoom.now.k });
  }

  /** Whether a place on the canvas is within the plot. */
  has(px: number, py: number): boolean {
    return px >= LEFT && py >= TOP && px <= LEFT + this.width && py <= TOP + this.height;
  }

  x(x: number): number {
    return this.zoom.now.k * this.fitX(x) + this.zoom.now.x;
  }

  y(y: number): number {
    return this.zoom.now.k * this.fitY(y) + this.zoom.now.y;
  }

  dataX(px: number): number {
    return this.middle[0] + (under(this.zoom.now, [px, 0])[0] - LEFT - this.width / 2) * this.unit;
  }

  dataY(py: number): number {
    return this.middle[1] - (under(this.zoom.now, [0, py])[1] - TOP - this.height / 2) * this.unit;
  }

  /** Units of the axes a pixel. */
  get pixel(): number {
    return this.unit / this.zoom.now.k;
  }

  stop(): void {
    this.zoom.stop();
  }

  private fitX(x: number): number {
    return LEFT + this.width / 2 + (x - this.middle[0]) / this.unit;
  }

  private fitY(y: number): number {
    return TOP + this.height / 2 - (y - this.middle[1]) / this.unit;
  }
}
