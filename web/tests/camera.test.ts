// What a canvas shows, moved by wheel, drag, two fingers and keys: always within the whole.
import { beforeEach, expect, test } from "vitest";
import { under, WHOLE, Zoom } from "../src/zoom";

let canvas: HTMLCanvasElement;
let zoom: Zoom;
let told: number;

beforeEach(() => {
  canvas = Object.assign(new EventTarget(), { style: {}, setPointerCapture() {} }) as unknown as HTMLCanvasElement;
  Object.assign(globalThis, { WheelEvent: { DOM_DELTA_PIXEL: 0, DOM_DELTA_LINE: 1 } });
  told = 0;
  zoom = new Zoom(canvas, () => told++);
  zoom.bound([[10, 10], [110, 110]], [[10, 10], [110, 110]], [1, 8]); // prettier-ignore
});

/** Let an event reach the canvas; returns it. */
function send(name: string, given: object): Event {
  const event = Object.assign(new Event(name, { cancelable: true }), given);
  canvas.dispatchEvent(event);
  return event;
}

const pointer = (pointerId: number, offsetX: number, offsetY: number) => ({ pointerId, offsetX, offsetY, button: 0, ctrlKey: false });

test("the wheel keeps what is under it, and stops at the ends", () => {
  const before = under(zoom.now, [40, 60]);
  const event = send("wheel", { offsetX: 40, offsetY: 60, deltaY: -500, deltaMode: 0, ctrlKey: false });
  expect(event.defaultPrevented).toBe(true);
  expect(zoom.now.k).toBeCloseTo(2, 12);
  under(zoom.now, [40, 60]).forEach((at, n) => expect(at).toBeCloseTo(before[n]!, 10));
  send("wheel", { offsetX: 40, offsetY: 60, deltaY: -1e6, deltaMode: 0, ctrlKey: false });
  expect(zoom.now.k).toBe(8);
  send("wheel", { offsetX: 40, offsetY: 60, deltaY: 1e6, deltaMode: 0, ctrlKey: false });
  expect(zoom.now.k).toBe(1);
  under(zoom.now, [10, 10]).forEach((at) => expect(at).toBeCloseTo(10, 10));
});

test("at its end the wheel scrolls the page", () => {
  const event = send("wheel", { offsetX: 40, offsetY: 60, deltaY: 100, deltaMode: 0, ctrlKey: false });
  expect([event.defaultPrevented, zoom.now, told]).toEqual([false, WHOLE, 0]);
});

test("a drag moves what is held, not beyond the whole, and is no click", () => {
  zoom.scaleBy(4, [60, 60]);
  let clicks = 0;
  canvas.addEventListener("click", () => clicks++);
  send("pointerdown", pointer(1, 50, 50));
  const held = under(zoom.now, [50, 50]);
  send("pointermove", pointer(1, 58, 44));
  under(zoom.now, [58, 44]).forEach((at, n) => expect(at).toBeCloseTo(held[n]!, 10));
  send("pointermove", pointer(1, 5000, 44));
  expect(under(zoom.now, [10, 10])[0]).toBeCloseTo(10, 10); // the left edge
  send("pointerup", pointer(1, 5000, 44));
  send("click", {});
  expect(clicks).toBe(0);
  send("pointerdown", pointer(1, 50, 50));
  send("pointerup", pointer(1, 51, 50));
  send("click", {});
  expect(clicks).toBe(1);
});

test("two fingers zoom by how far they go apart", () => {
  send("pointerdown", pointer(1, 50, 60));
  send("pointerdown", pointer(2, 70, 60));
  send("pointermove", pointer(1, 40, 60));
  send("pointermove", pointer(2, 80, 60));
  expect(zoom.now.k).toBeCloseTo(2, 10);
  expect(under(zoom.now, [60, 60])[0]).toBeCloseTo(60, 10);
  send("pointerup", pointer(1, 40, 60));
  const held = under(zoom.now, [80, 60]);
  send("pointermove", pointer(2, 85, 60));
  expect(under(zoom.now, [85, 60])[0]).toBeCloseTo(held[0], 10);
  expect(zoom.now.k).toBeCloseTo(2, 10);
});

test("what is smaller than the window stands in its middle", () => {
  zoom.bound([[0, 0], [100, 100]], [[0, 0], [100, 20]], [1, 8]); // prettier-ignore
  zoom.set(WHOLE);
  expect([zoom.now.x, zoom.now.y]).toEqual([0, 40]);
});

test("a camera that is gone hears nothing", () => {
  zoom.stop();
  send("wheel", { offsetX: 40, offsetY: 60, deltaY: -500, deltaMode: 0, ctrlKey: false });
  expect(told).toBe(0);
});
