// Gives pictures to who looks at the page, as files: SVG as it is, PNG drawn from it.
import type { Picture } from "./picture";

const SHARP = 2; // pixels for each px
const SIDE = 32_767; // pixels that a canvas may have on a side
const AREA = 2 ** 28; // and in all

/** Raise an Error where a picture would have more pixels than a browser draws. */
export function checkPng(width: number, height: number): void {
  if (SHARP * Math.max(width, height) > SIDE || SHARP * SHARP * width * height > AREA) {
    throw new Error(`This view is too large for a PNG (${(SHARP * width).toLocaleString("en")} × ${(SHARP * height).toLocaleString("en")} pixels): save SVG, or show fewer rows.`);
  }
}

/** A picture in pixels, two for each px. */
export async function pngOf({ svg, width, height }: Picture): Promise<Blob> {
  checkPng(width, height);
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SHARP * width, SHARP * height];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((told) => canvas.toBlob(told, "image/png"));
    if (!blob) throw new Error("This browser can't draw such a large PNG: save SVG.");
    return blob;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Save a file where the browser saves downloads. */
export function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // a browser may ask where to, before it reads
}

/** A file's name that tells what it holds, of letters and digits: "Layer 3, head 5" is layer-3-head-5. */
export function fileName(parts: string[], ending: string): string {
  const words = parts.map((part) => part.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]+/gu, "-").replace(/^-|-$/g, "")).filter(Boolean);
  return `${Array.from(["regard", ...words].join("-")).slice(0, 100).join("").replace(/-$/, "")}.${ending}`;
}
