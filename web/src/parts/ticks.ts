// An axis: round numbers, and a little room around the values.
import { rounded } from "./numbers";

const REACH = 24; // pixels

export interface Axis {
  low: number;
  high: number;
  ticks: { value: number; label: string }[];
}

/** Two axes' values, one of them widened about its middle so that a unit is as long on both. width, height: in pixels. */
export function evenRanges(xs: number[], ys: number[], width: number, height: number): [number[], number[]] {
  const [across, up] = [ends(xs), ends(ys)];
  const unit = Math.max((across[1] - across[0]) / width, (up[1] - up[0]) / height);
  const widened = ([low, high]: [number, number], pixels: number) => {
    const [middle, half] = [(low + high) / 2, (unit * pixels) / 2];
    return [middle - half, middle + half];
  };
  return unit > 0 && Number.isFinite(unit) && width > 0 ? [widened(across, width), widened(up, height)] : [xs, ys];
}

/** The axis of some values: about five ticks at multiples of 1, 2 or 5 times a power of ten. */
export function ticksOf(values: number[]): Axis {
  const known = values.filter(Number.isFinite);
  let [low, high] = known.length ? ends(known) : [0, 1];
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5];
  const room = (high - low) * 0.06;
  [low, high] = [low - room, high + room];
  return { low, high, ticks: ticksBetween(low, high) };
}

/** Where a value lies, of an axis that goes from one pixel to another. */
export function onAxis({ low, high }: Axis, value: number, from: number, to: number): number {
  return from + ((value - low) / (high - low)) * (to - from);
}

/** The place that is nearest to a pointer, of those within reach of it; -1 where there is none. */
export function nearest(places: [number, number][], event: PointerEvent, drawing: Element): number {
  const { left, top } = drawing.getBoundingClientRect();
  let [found, least] = [-1, REACH];
  places.forEach(([x, y], n) => {
    const far = Math.hypot(x - event.clientX + left, y - event.clientY + top);
    if (far < least) [found, least] = [n, far];
  });
  return found;
}

/** About five ticks between two numbers, at multiples of 1, 2 or 5 times a power of ten. */
export function ticksBetween(low: number, high: number): Axis["ticks"] {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) {
    const value = n * step;
    ticks.push({ value, label: digits > 6 || Math.abs(value) >= 1e7 ? value.toExponential(1) : rounded(value, digits) });
  }
  return ticks;
}

/** The smallest and the largest; of any number of values, more than a call can take as its arguments. */
function ends(values: number[]): [number, number] {
  return [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
}
