// Draws lines from tokens on the left to tokens on the right, each in the shade of its weight, the strongest on top.
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
  const { from, values, apart, largest, row, width, height, dark } = lines;
  const sharp = Math.min(window.devicePixelRatio || 1, 16000 / Math.max(1, height)); // a canvas has its limits
  canvas.width = Math.max(1, Math.round(width * sharp));
  canvas.height = Math.max(1, Math.round(height * sharp));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d")!;
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const count = apart.length;
  const shades: number[][] = Array.from({ length: 256 }, () => []);
  for (let n = 0; n < from.length * count; n++) {
    if (values[n]! > 0 && values[n]! >= FAINTEST * largest) shades[(lines.root ? rootShade : evenShade)(values[n]!, largest)]!.push(n);
  }
  shades.forEach((those, shade) => {
    for (const grey of [true, false]) {
      pen.beginPath();
      for (const n of those) {
        if (apart[n % count] !== grey) continue;
        pen.moveTo(0, (from[Math.floor(n / count)]! + 0.5) * row);
        pen.lineTo(width, ((n % count) + 0.5) * row);
      }
      pen.strokeStyle = css(table(grey ? "apart" : "weights", dark)[shade]!);
      pen.lineWidth = Math.max(0.5, lines.thick * (shade / 255) ** (lines.root ? 2 : 1));
      pen.stroke();
    }
  });
}
