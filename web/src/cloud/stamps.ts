// Puts many marks into a picture: each group's mark is painted once, and its pixels are written wherever a point lies.
//
// A picture is 32-bit pixels as ImageData has them: red in the lowest byte, opacity in the highest, as all of today's
// machines order them. Marks are mixed with what is behind them at their edges; what is behind is opaque.
import { MARKS } from "../parts/marks";

const OPAQUE = 0xff000000 | 0;
const ROOM = 9; // pixels from the middle of a mark that its shape and outline stay within, at scale 1

/** The pixels of one mark around its middle: those that cover what is behind come first, then those that mix with it. */
export interface Stamp {
  reach: number; // pixels from the middle to the farthest
  covering: number; // how many cover
  across: Int16Array;
  down: Int16Array;
  at: Int32Array; // how far behind the middle's each stands, in a picture of `width`
  width: number;
  opacity: Int32Array; // 0 to 256
  colour: Int32Array; // times the opacity
}

/** A picture that stamps are put into. */
export interface Picture {
  pixels: Int32Array;
  width: number;
  height: number;
}

/** Paint a group's mark once. scale: 1 for 10 pixels. outline: in this colour around it, null for none. */
export function stampOf(group: number, colour: string, outline: string | null, scale: number): Stamp {
  const half = Math.ceil(ROOM * scale);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 2 * half + 1;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.translate(half + 0.5, half + 0.5);
  context.scale(scale, scale);
  const shape = new Path2D(MARKS[group % MARKS.length]!);
  context.lineWidth = 1.5;
  if (outline !== null) {
    context.strokeStyle = outline;
    context.stroke(shape);
  }
  context.fillStyle = colour;
  context.fill(shape);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const found: { across: number; down: number; opacity: number; colour: number }[] = [];
  for (let n = 0; n < data.length / 4; n++) {
    const opacity = Math.round((data[4 * n + 3]! * 256) / 255);
    if (opacity < 8) continue;
    const colour = times(data[4 * n]! + (data[4 * n + 1]! << 8) + (data[4 * n + 2]! << 16), opacity);
    found.push({ across: (n % canvas.width) - half, down: Math.floor(n / canvas.width) - half, opacity, colour });
  }
  found.sort((a, b) => Number(b.opacity === 256) - Number(a.opacity === 256));
  return {
    reach: found.reduce((most, each) => Math.max(most, Math.abs(each.across), Math.abs(each.down)), 0),
    covering: found.filter((each) => each.opacity === 256).length,
    across: Int16Array.from(found, (each) => each.across),
    down: Int16Array.from(found, (each) => each.down),
    at: new Int32Array(found.length),
    width: 0,
    opacity: Int32Array.from(found, (each) => each.opacity),
    colour: Int32Array.from(found, (each) => each.colour),
  };
}

/** Make a stamp ready for pictures of a width. */
export function fit(stamp: Stamp, width: number): Stamp {
  if (stamp.width !== width) for (let n = 0; n < stamp.at.length; n++) stamp.at[n] = stamp.down[n]! * width + stamp.across[n]!;
  stamp.width = width;
  return stamp;
}

/** Put a stamp that fits into a picture, its middle at pixel (x, y); what lies beside the picture is left out. */
export function put(picture: Picture, stamp: Stamp, x: number, y: number): void {
  const { pixels, width, height } = picture;
  const { covering, at, opacity, colour, reach } = stamp;
  const middle = y * width + x;
  if (x >= reach && y >= reach && x < width - reach && y < height - reach) {
    for (let n = 0; n < covering; n++) pixels[middle + at[n]!] = OPAQUE | colour[n]!;
    for (let n = covering; n < at.length; n++) {
      const place = middle + at[n]!;
      pixels[place] = OPAQUE | (colour[n]! + times(pixels[place]!, 256 - opacity[n]!));
    }
    return;
  }
  for (let n = 0; n < at.length; n++) {
    const px = x + stamp.across[n]!;
    const py = y + stamp.down[n]!;
    if (px < 0 || py < 0 || px >= width || py >= height) continue;
    pixels[middle + at[n]!] = OPAQUE | (colour[n]! + times(pixels[middle + at[n]!]!, 256 - opacity[n]!));
  }
}

/** A colour times a share of 256, without its opacity. */
function times(colour: number, share: number): number {
  const redBlue = (Math.imul(colour & 0xff00ff, share) >>> 8) & 0xff00ff;
  const green = (Math.imul(colour & 0x00ff00, share) >>> 8) & 0x00ff00;
  return redBlue | green;
}
