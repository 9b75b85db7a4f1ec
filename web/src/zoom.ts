// Zooms and moves what a canvas shows: by wheel, by drag, by two fingers, and by who calls it. It stays within bounds.
type Point = [number, number];
type Box = [Point, Point]; // left top, right bottom

/** Where a point p of the whole lies on the canvas: at k · p + (x, y). */
export interface Transform {
  readonly k: number;
  readonly x: number;
  readonly y: number;
}

export const WHOLE: Transform = { k: 1, x: 0, y: 0 };
const ALL = 1.001; // scale up to which all is in sight
const STILL = 3; // pixels that a click may move
const TURN = 150; // milliseconds within which a turn of the wheel goes on

/** The point of the whole that lies at a point of the canvas. */
export function under({ k, x, y }: Transform, at: Point): Point {
  return [(at[0] - x) / k, (at[1] - y) / k];
}

export class Zoom {
  now = WHOLE;
  private window: Box = [[0, 0], [1, 1]]; // prettier-ignore
  private whole = this.window;
  private scales: Point = [1, 1];
  private readonly held = new Map<number, { at: Point; of: Point }>(); // by mouse or finger: a point of the canvas, and what is held there
  private pressed: Point = [0, 0];
  private moved = false;
  private turned = -Infinity;
  private readonly listens = new AbortController();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly tell: () => void,
  ) {
    const { signal } = this.listens;
    canvas.style.userSelect = "none"; // a drag begins no selection of text
    canvas.addEventListener("wheel", (event) => this.turn(event), { passive: false, signal });
    canvas.addEventListener("pointerdown", (event) => this.press(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.drag(event), { signal });
    for (const name of ["pointerup", "pointercancel"] as const) canvas.addEventListener(name, (event) => this.release(event), { signal });
    canvas.addEventListener("click", (event) => this.moved && event.stopImmediatePropagation(), { capture: true, signal }); // a drag chooses nothing
  }

  /** Say where the window is on the canvas, what it may not leave, and the least and the largest scale. */
  bound(window: Box, whole: Box, scales: Point): void {
    [this.window, this.whole, this.scales] = [window, whole, scales];
  }

  /** Show what a transform shows, as far as it is within the bounds. */
  set(to: Transform): void {
    this.go(this.within(to));
    this.grip();
  }

  /** Zoom around a point of the canvas. */
  scaleBy(factor: number, at: Point): void {
    this.set(this.carried(this.clamped(this.now.k * factor), at, under(this.now, at)));
  }

  /** Move by so many pixels of the whole. */
  translateBy(x: number, y: number): void {
    const { now } = this;
    this.set({ k: now.k, x: now.x + now.k * x, y: now.y + now.k * y });
  }

  stop(): void {
    this.listens.abort();
  }

  private turn(event: WheelEvent): void {
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 0.002 : event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 0.05 : 1;
    const k = this.clamped(this.now.k * 2 ** (-event.deltaY * pixels * (event.ctrlKey ? 10 : 1)));
    if (k === this.now.k && event.timeStamp - this.turned > TURN) return; // at its end: the page scrolls
    this.turned = event.timeStamp;
    event.preventDefault();
    const at: Point = [event.offsetX, event.offsetY];
    this.set(this.carried(k, at, under(this.now, at)));
  }

  private press(event: PointerEvent): void {
    if (event.button || event.ctrlKey || this.held.size > 1) return;
    const at: Point = [event.offsetX, event.offsetY];
    if (!this.held.size) [this.pressed, this.moved] = [at, false];
    else this.moved = true; // two fingers choose nothing
    this.held.set(event.pointerId, { at, of: at });
    this.canvas.setPointerCapture(event.pointerId);
    this.grip();
  }

  private drag(event: PointerEvent): void {
    const own = this.held.get(event.pointerId);
    if (!own) return;
    own.at = [event.offsetX, event.offsetY];
    this.moved ||= apart(own.at, this.pressed) > STILL;
    const [one, two] = [...this.held.values()];
    if (!two) this.go(this.carried(this.now.k, one!.at, one!.of));
    else this.go(this.carried(this.clamped(apart(one!.at, two.at) / apart(one!.of, two.of)), middle(one!.at, two.at), middle(one!.of, two.of)));
  }

  private release(event: PointerEvent): void {
    this.held.delete(event.pointerId);
    this.grip();
  }

  /** Hold what lies under the mouse or the fingers now. */
  private grip(): void {
    for (const each of this.held.values()) each.of = under(this.now, each.at);
  }

  private go(to: Transform): void {
    this.now = to;
    this.share();
    this.tell();
  }

  /** Leave a finger to the browser, which scrolls the page, as long as all is in sight; two fingers are always the zoom's. */
  private share(): void {
    this.canvas.style.touchAction = this.now.k > ALL ? "none" : "pan-y";
  }

  private clamped(k: number): number {
    return Math.max(this.scales[0], Math.min(this.scales[1], k || 1));
  }

  /** What brings a point of the whole to a point of the canvas. */
  private carried(k: number, at: Point, of: Point): Transform {
    return this.within({ k, x: at[0] - k * of[0], y: at[1] - k * of[1] });
  }

  /** The nearest transform whose window shows the whole alone; the whole's middle where that is smaller. */
  private within(to: Transform): Transform {
    const [from, until] = [under(to, this.window[0]), under(to, this.window[1])];
    const over = [0, 1].map((n) => {
      const [before, after] = [from[n]! - this.whole[0][n]!, until[n]! - this.whole[1][n]!];
      return after > before ? (before + after) / 2 : Math.min(0, before) || Math.max(0, after);
    });
    return { k: to.k, x: to.x + to.k * over[0]!, y: to.y + to.k * over[1]! };
  }
}

function apart([ax, ay]: Point, [bx, by]: Point): number {
  return Math.hypot(ax - bx, ay - by);
}

function middle([ax, ay]: Point, [bx, by]: Point): Point {
  return [(ax + bx) / 2, (ay + by) / 2];
}
