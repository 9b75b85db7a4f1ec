// Backgrounds, borders and outlines of HTML as boxes of the picture.
import { paintOf } from "./colour";
import { apart, drawGradient } from "./gradients";
import { painted, type Box, type Shapes } from "./shapes";

const SIDES = ["top", "right", "bottom", "left"] as const;

/** The boxes of an element in the window: one, or of a word that is broken into lines one each. */
export function boxesOf(element: Element, style: CSSStyleDeclaration): Box[] {
  const found = style.display === "inline" ? [...element.getClientRects()] : [element.getBoundingClientRect()];
  return found.filter((each) => each.width > 0 && each.height > 0);
}

/** Draw what lies behind the content of an element's box. */
export function drawBehind(shapes: Shapes, box: Box, style: CSSStyleDeclaration): void {
  const paint = paintOf(style.backgroundColor);
  if (!paint.opacity && style.backgroundImage === "none" && style.borderWidth === "0px") return; // as most of a long table
  const place = shapes.place(box);
  const radius = parseFloat(style.borderTopLeftRadius) || 0;
  const inside = style.backgroundClip === "content-box" ? inner(place, style) : place;
  if (paint.opacity) shapes.rect(inside, painted("fill", paint), radius);
  if (style.backgroundImage !== "none") {
    for (const image of apart(style.backgroundImage).reverse()) drawGradient(shapes, sized(inside, style), image, radius);
  }
  drawBorders(shapes, place, style, radius);
}

/** Draw an element's outline, which lies over its content. */
export function drawOutline(shapes: Shapes, box: Box, style: CSSStyleDeclaration): void {
  if (style.outlineStyle === "none") return;
  const width = parseFloat(style.outlineWidth);
  const paint = paintOf(style.outlineColor);
  if (!width || !paint.opacity) return;
  const out = (parseFloat(style.outlineOffset) || 0) + width / 2;
  const radius = parseFloat(style.borderTopLeftRadius) || 0;
  frame(shapes, grown(shapes.place(box), out), { ...painted("stroke", paint), "stroke-width": width }, radius ? Math.max(0, radius + out) : 0);
}

function frame(shapes: Shapes, box: Box, stroke: Record<string, string | number | undefined>, radius: number): void {
  shapes.rect(box, { fill: "none", ...stroke }, radius);
}

function drawBorders(shapes: Shapes, box: Box, style: CSSStyleDeclaration, radius: number): void {
  const sides = SIDES.map((side) => {
    const shown = style.getPropertyValue(`border-${side}-style`) !== "none";
    return { side, width: shown ? parseFloat(style.getPropertyValue(`border-${side}-width`)) || 0 : 0, colour: style.getPropertyValue(`border-${side}-color`) };
  });
  const { width, colour } = sides[0]!;
  if (sides.every((each) => each.width === width && each.colour === colour)) {
    const paint = paintOf(colour);
    if (width && paint.opacity) frame(shapes, grown(box, -width / 2), { ...painted("stroke", paint), "stroke-width": width }, Math.max(0, radius - width / 2));
    return;
  }
  for (const { side, width, colour } of sides) {
    const paint = paintOf(colour);
    if (!width || !paint.opacity) continue;
    const edge = {
      top: { ...box, bottom: box.top + width },
      bottom: { ...box, top: box.bottom - width },
      left: { ...box, right: box.left + width },
      right: { ...box, left: box.right - width },
    }[side];
    shapes.rect(edge, painted("fill", paint));
  }
}

function grown(box: Box, by: number): Box {
  return { left: box.left - by, top: box.top - by, right: box.right + by, bottom: box.bottom + by };
}

/** A box less its borders and padding. */
export function inner(box: Box, style: CSSStyleDeclaration): Box {
  const [top, right, bottom, left] = SIDES.map((side) => (parseFloat(style.getPropertyValue(`padding-${side}`)) || 0) + (parseFloat(style.getPropertyValue(`border-${side}-width`)) || 0));
  return { left: box.left + left!, top: box.top + top!, right: box.right - right!, bottom: box.bottom - bottom! };
}

/** The part of a box that a background image has, where it has a size and a place of its own and is not repeated. */
function sized(box: Box, style: CSSStyleDeclaration): Box {
  if (style.backgroundRepeat !== "no-repeat") return box;
  const [wide, tall = wide] = style.backgroundSize.split(" ");
  const width = lengthOf(wide!, box.right - box.left);
  const height = lengthOf(tall!, box.bottom - box.top);
  const left = box.left + lengthOf(style.backgroundPositionX, box.right - box.left - width, 0);
  const top = box.top + lengthOf(style.backgroundPositionY, box.bottom - box.top - height, 0);
  return { left, top, right: left + width, bottom: top + height };
}

function lengthOf(text: string, whole: number, other = whole): number {
  if (text.endsWith("%")) return (parseFloat(text) / 100) * whole;
  return text.endsWith("px") ? parseFloat(text) : other;
}
