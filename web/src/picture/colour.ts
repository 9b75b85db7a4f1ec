// Colours as every program that draws SVG reads them: six digits, and how opaque.

export interface Paint {
  colour: string; // as #rrggbb
  opacity: number; // 0 to 1
}

const known = new Map<string, Paint>();

/** A colour in whatever notation of CSS. */
export function paintOf(css: string): Paint {
  let found = known.get(css);
  if (!found) known.set(css, (found = read(css)));
  return found;
}

/** Three numbers to 255 as #rrggbb. */
export function hex(r: number, g: number, b: number): string {
  return `#${[r, g, b].map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}

/** A colour of CSS as #rrggbb, those too that a system chooses and may choose anew. */
export function hexOf(css: string): string {
  return /^#[\da-f]{6}$/.test(css) ? css : read(css).colour;
}

let pen: CanvasRenderingContext2D | null = null;

function read(css: string): Paint {
  const plain = /^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/.exec(css);
  if (plain) return { colour: hex(Number(plain[1]), Number(plain[2]), Number(plain[3])), opacity: plain[4] === undefined ? 1 : Number(plain[4]) };
  if (!pen) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    pen = canvas.getContext("2d", { willReadFrequently: true })!;
  }
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = "#0000"; // what is no colour paints nothing
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b, opacity] = pen.getImageData(0, 0, 1, 1).data;
  return { colour: hex(r!, g!, b!), opacity: opacity! / 255 };
}
