// Draws lines from tokens on the left to tokens on the right, each in the shade of its weight, the strongest on top.
import { keepStrokes, type Strokes } from "../picture/canvases";
import { css, evenShade, shade as rootShade, table } from "./colours";

export const FAINTEST = 0.01; // of the strongest: what is below cannot be told from the background, and is not drawn

export interface Lines {
  from: number[]; // rows on the left
  values: Float32Array; // (from, rows on the right)
  apart: boolean[]; // of the rows on the right: their lines are grey
  largest: number; // the value of the darkest line
  row: number; // px that a row is high
  width: number;
  height: number;
  thick: number; // px of the strongest line
  root: boolean; // shades by the square root of weights: few lines are all to be seen, of many the strongest
  dark: boolean;
}

/** Draw lines on a canvas, which takes their size. */
export function drawLines(canvas: HTMLCanvasElement, lines: Lines): void {
  const { width, height } = lines;
  const sharp = Math.min(window.devicePixelRatio || 1, 16000 / Math.max(1, height)); // a canvas has its limits
  canvas.width = Math.max(1, Math.round(width * sharp));
  canvas.height = Math.max(1, Math.round(height * sharp));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const strokes = strokesOf(lines);
  const pen = canvas.getContext("2d")!;
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  for (const { colour, width, lines } of strokes) {
    pen.beginPath();
    for (const [x, y, toX, toY] of lines) {
      pen.moveTo(x, y);
      pen.lineTo(toX, toY);
    }
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }
  keepStrokes(canvas, strokes);
}

/** The lines by their shades, the faintest first. */
function strokesOf(lines: Lines): Strokes[] {
  const { from, values, apart, largest, row, width, dark } = lines;
  const count = apart.length;
  const shades: number[][] = Array.from({ length: 256 }, () => []);
  for (let n = 0; n < from.length * count; n++) {
    if (values[n]! > 0 && values[n]! >= FAINTEST * largest) shades[(lines.root ? rootShade : evenShade)(values[n]!, largest)]!.push(n);
  }
  return shades.flatMap((those, shade) =>
    [true, false].map((grey) => ({
      colour: css(grey ? table("apart", dark)[shade >> 1]! : table("weights", dark)[shade]!), // special tokens are not the point
      width: Math.max(0.5, lines.thick * (shade / 255) ** (lines.root ? 2 : 1)),
      lines: those
        .filter((n) => apart[n % count] === grey)
        .map((n): [number, number, number, number] => [0, (from[Math.floor(n / count)]! + 0.5) * row, width, ((n % count) + 0.5) * row]),
    })),
  );
}
