// Which part of the matrix is in sight: zoom and pan by wheel, pinch, drag and keys, and where a weight lies on the canvas.
import { WHOLE, Zoom } from "../zoom";
import { xOf, yOf, type Plot } from "./draw";

export interface Place {
  i: number; // query
  j: number; // key
}

/** What is in sight: the window's middle, and how many keys it is wide, whatever the screen. */
export interface Sight {
  i: number;
  j: number;
  span: number;
}

const LARGEST = 96; // pixels a token at most
const BELOW = 98; // px below the map: what is exact of it, its colours, keys

export class Camera {
  readonly plot: Plot = { left: 0, top: 0, window: { left: 0, top: 0, pixels: 1, width: 1, height: 1 }, length: 1, size: 1 };
  private fit = 1; // pixels a token where the whole is shown
  private readonly zoom: Zoom;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    moved: () => void,
  ) {
    this.zoom = new Zoom(canvas, () => {
      this.place();
      moved();
    });
  }

  /** Fit the canvas, and on it a matrix of length × size, into the room that there is. home: and show the whole. margin: px of names. */
  resize(length: number, size: number, home: boolean, margin: number): void {
    const room = this.canvas.parentElement!.clientWidth;
    const above = this.canvas.getBoundingClientRect().top + scrollY; // of the page: what is left below it is the map's
    const [wide, high] = [room - margin - 2, Math.max(260, innerHeight - above - margin - BELOW)];
    this.fit = Math.min(wide / size, high / length, LARGEST);
    const [width, height] = [Math.max(this.fit * size, Math.min(wide, 260)), Math.max(this.fit * length, 160)];
    this.canvas.style.width = `${margin + width + 2}px`;
    this.canvas.style.height = `${margin + height + 2}px`;
    this.canvas.parentElement!.parentElement!.style.cssText = `--margin:${margin}px;--wide:${margin + width}px`; // of what is below
    Object.assign(this.plot, { left: margin, top: margin, window: { left: 0, top: 0, pixels: this.fit, width, height }, length, size });
    const corner: [number, number] = [margin, margin];
    const whole: [number, number] = [margin + this.fit * size, margin + this.fit * length];
    this.zoom.bound([corner, [margin + width, margin + height]], [corner, whole], [1, Math.max(1, LARGEST / this.fit)]);
    this.zoom.set(home ? WHOLE : this.zoom.now);
  }

  home(): void {
    this.zoom.set(WHOLE);
  }

  /** Zoom around a weight where it is in sight, else around the middle. */
  zoomBy(factor: number, around: Place | null): void {
    const { left, top, window } = this.plot;
    const middle: [number, number] = [left + window.width / 2, top + window.height / 2];
    const at: [number, number] = around && this.inSight(around) ? [xOf(this.plot, around.j + 0.5), yOf(this.plot, around.i + 0.5)] : middle;
    this.zoom.scaleBy(factor, at);
  }

  /** Move the window by a share of its size. */
  panBy(right: number, down: number): void {
    const { window } = this.plot;
    this.zoom.translateBy((-right * window.width) / this.zoom.now.k, (-down * window.height) / this.zoom.now.k);
  }

  /** Move the window as far as a weight needs to come into sight. */
  bringIntoSight({ i, j }: Place): void {
    const { window } = this.plot;
    const over = (at: number, from: number, wide: number) => (at < from ? at - from : at + 1 > from + wide ? at + 1 - from - wide : 0);
    const right = over(j, window.left, window.width / window.pixels);
    const down = over(i, window.top, window.height / window.pixels);
    this.zoom.translateBy(-right * this.fit, -down * this.fit);
  }

  get sight(): Sight {
    const { left, top, width, height, pixels } = this.plot.window;
    return { i: top + height / pixels / 2, j: left + width / pixels / 2, span: width / pixels };
  }

  /** Bring what was in sight before into sight, on another screen or in another life of the page. */
  look({ i, j, span }: Sight): void {
    if (![i, j, span].every(Number.isFinite) || span <= 0) return; // an address may say anything
    const { left, top, window, length, size } = this.plot;
    const k = Math.max(1, Math.min(window.width / span, LARGEST) / this.fit);
    const pixels = this.fit * k;
    const first = (middle: number, shown: number, all: number) => Math.max(0, Math.min(middle - shown / 2, all - shown));
    const x = left - k * left - first(j, window.width / pixels, size) * pixels;
    const y = top - k * top - first(i, window.height / pixels, length) * pixels;
    this.zoom.set({ k, x, y });
  }

  /** The weight in the middle of the window. */
  get middle(): Place {
    const { window } = this.plot;
    return { i: Math.floor(window.top + window.height / window.pixels / 2), j: Math.floor(window.left + window.width / window.pixels / 2) };
  }

  /** The weight under the mouse; null beside the matrix. */
  placeAt({ offsetX, offsetY }: MouseEvent): Place | null {
    const { left, top, window, length, size } = this.plot;
    if (offsetX < left || offsetY < top || offsetX >= left + window.width || offsetY >= top + window.height) return null;
    const i = Math.floor(window.top + (offsetY - top) / window.pixels);
    const j = Math.floor(window.left + (offsetX - left) / window.pixels);
    return i < 0 || j < 0 || i >= length || j >= size ? null : { i, j };
  }

  inSight({ i, j }: Place): boolean {
    const { window } = this.plot;
    const inside = (at: number, from: number, wide: number) => at >= Math.floor(from) && at < from + wide && (at + 1 <= from + wide || wide < 2);
    return inside(j, window.left, window.width / window.pixels) && inside(i, window.top, window.height / window.pixels);
  }

  stop(): void {
    this.zoom.stop();
  }

  /** Put the window where zoom and pan have it. */
  private place(): void {
    const { left, top, window } = this.plot;
    window.pixels = this.fit * this.zoom.now.k;
    window.left = (left - this.zoom.now.x - this.zoom.now.k * left) / window.pixels;
    window.top = (top - this.zoom.now.y - this.zoom.now.k * top) / window.pixels;
  }
}
