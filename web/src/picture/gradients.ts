// Straight gradients of CSS: as plain boxes where they are steps of one colour each, else as gradients of SVG.
import { paintOf, type Paint } from "./colour";
import { opening, painted, round, type Box, type Shapes } from "./shapes";

interface Stop {
  paint: Paint;
  at: number; // px along the gradient's line
}

/** Draw one background image of an element into a box of the picture; what is no straight gradient is not drawn. */
export function drawGradient(shapes: Shapes, box: Box, css: string, radius: number): void {
  const found = /^(repeating-)?linear-gradient\((.*)\)$/s.exec(css);
  if (!found) return;
  const parts = apart(found[2]!);
  const angle = angleOf(parts[0]!);
  if (angle !== null) parts.shift();
  const turn = ((angle ?? 180) * Math.PI) / 180;
  const [u, v] = [Math.sin(turn), -Math.cos(turn)]; // where it goes to
  const [width, height] = [box.right - box.left, box.bottom - box.top];
  const long = Math.abs(width * u) + Math.abs(height * v);
  const stops = stopsOf(parts, long);
  if (!stops.length || !(long > 0)) return;
  const repeats = found[1] !== undefined;
  if (!repeats && isSteps(stops) && (Math.abs(u) < 1e-9 || Math.abs(v) < 1e-9)) {
    drawSteps(shapes, box, stops, long, [u, v]);
    return;
  }
  const [x, y] = [(box.left + box.right - u * long) / 2, (box.top + box.bottom - v * long) / 2];
  const [first, last] = repeats ? [stops[0]!.at, stops.at(-1)!.at] : [0, long];
  const id = shapes.define((id) => {
    const line = { id, gradientUnits: "userSpaceOnUse", x1: x + u * first, y1: y + v * first, x2: x + u * last, y2: y + v * last, spreadMethod: repeats ? "repeat" : undefined };
    const marks = stops.map(({ paint, at }) => `<stop offset="${Math.round(((at - first) / (last - first)) * 1e5) / 1e5}" stop-color="${paint.colour}"${paint.opacity < 1 ? ` stop-opacity="${round(paint.opacity)}"` : ""}/>`);
    return `${opening("linearGradient", line)}>${marks.join("")}</linearGradient>`;
  });
  shapes.rect(box, { fill: `url(#${id})` }, radius);
}

/** Split at the commas outside of brackets. */
export function apart(text: string): string[] {
  const out: string[] = [];
  let [depth, from] = [0, 0];
  for (let n = 0; n < text.length; n++) {
    if (text[n] === "(") depth++;
    else if (text[n] === ")") depth--;
    else if (text[n] === "," && !depth) {
      out.push(text.slice(from, n).trim());
      from = n + 1;
    }
  }
  out.push(text.slice(from).trim());
  return out;
}

function angleOf(text: string): number | null {
  const degrees = /^(-?[\d.]+)deg$/.exec(text);
  if (degrees) return Number(degrees[1]);
  return { "to top": 0, "to right": 90, "to bottom": 180, "to left": 270 }[text] ?? null;
}

/** Stops with all their places: what has none lies evenly between its neighbours, none lies before the one before. */
function stopsOf(parts: string[], long: number): Stop[] {
  const stops: { paint: Paint; at: number | null }[] = [];
  for (const part of parts) {
    const places: number[] = [];
    let rest = part;
    for (let found; (found = /\s(-?[\d.]+)(px|%)$/.exec(rest)); rest = rest.slice(0, found.index)) {
      places.unshift(found[2] === "%" ? (Number(found[1]) / 100) * long : Number(found[1]));
    }
    const paint = paintOf(rest);
    if (!places.length) stops.push({ paint, at: null });
    for (const at of places) stops.push({ paint, at });
  }
  if (!stops.length) return [];
  stops[0]!.at ??= 0;
  stops.at(-1)!.at ??= long;
  let before = -Infinity;
  for (const stop of stops) if (stop.at !== null) before = stop.at = Math.max(before, stop.at);
  for (let n = 1; n < stops.length; n++) {
    if (stops[n]!.at !== null) continue;
    const next = stops.findIndex((stop, m) => m > n && stop.at !== null);
    const from = stops[n - 1]!.at!;
    stops[n]!.at = from + (stops[next]!.at! - from) / (next - n + 1);
  }
  return stops as Stop[];
}

/** Whether colours change at once, from one to the next. */
function isSteps(stops: Stop[]): boolean {
  return stops.every((stop, n) => {
    const next = stops[n + 1];
    return !next || next.at === stop.at || (next.paint.colour === stop.paint.colour && next.paint.opacity === stop.paint.opacity);
  });
}

function drawSteps(shapes: Shapes, box: Box, stops: Stop[], long: number, [u, v]: [number, number]): void {
  const steps = stops.map((stop, n) => ({ paint: stop.paint, from: n ? stop.at : 0, to: stops[n + 1]?.at ?? long }));
  for (const { paint, from, to } of steps) {
    const [start, end] = [Math.max(0, from), Math.min(long, to)];
    if (!paint.opacity || end <= start) continue;
    const [low, high] = u + v > 0 ? [start, end] : [long - end, long - start];
    const across = Math.abs(u) > 0.5;
    shapes.rect(
      across ? { ...box, left: box.left + low, right: box.left + high } : { ...box, top: box.top + low, bottom: box.top + high },
      painted("fill", paint),
    );
  }
}
