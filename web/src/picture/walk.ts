// Walks through what a view shows and draws it: boxes, texts, canvases and drawings, in the document's order.
import { boxesOf, drawBehind, drawOutline, inner } from "./boxes";
import { drawCanvas } from "./canvases";
import { drawSvg } from "./drawings";
import type { Cut } from "./letters";
import type { Box, Shapes } from "./shapes";
import { cutOf, drawText, type Rulers } from "./texts";

interface Way {
  shapes: Shapes;
  rulers: Rulers;
  clipped: Set<Element>; // these show what is in sight alone
}

/** Draw an element with all that is in it. cut: where a text that it stands in ends with "…". */
export function drawElement(way: Way, element: Element, cut: Cut | null = null): void {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility !== "visible" || style.opacity === "0") return;
  const { shapes } = way;
  const boxes = style.display === "contents" ? [] : boxesOf(element, style);
  const faint = style.opacity !== "1";
  if (faint) shapes.open({ opacity: Number(style.opacity) });
  for (const box of boxes) drawBehind(shapes, box, style);
  if (element instanceof HTMLCanvasElement) {
    if (boxes[0]) drawCanvas(shapes, element, shapes.place(inner(boxes[0], style)));
  } else if (element instanceof SVGSVGElement) {
    if (boxes[0]) drawSvg(shapes, element, shapes.place(boxes[0]));
  } else drawContent(way, element, style, boxes[0], cut);
  for (const box of boxes) drawOutline(shapes, box, style);
  if (faint) shapes.close();
}

function drawContent(way: Way, element: Element, style: CSSStyleDeclaration, box: Box | undefined, cut: Cut | null): void {
  const { shapes, rulers } = way;
  const own = (box && cutOf(rulers, element, style, box)) ?? cut;
  const clips = box && own === cut && (way.clipped.has(element) || hides(element, style));
  if (clips) shapes.open({}, shapes.place(box));
  for (const node of element.childNodes) {
    if (node instanceof Text) drawText(shapes, rulers, node, style, own);
    else if (node instanceof Element) drawElement(way, node, own);
  }
  if (clips) shapes.close();
}

/** Whether an element hides a part of what it holds, so that it cannot be scrolled to. */
function hides(element: Element, style: CSSStyleDeclaration): boolean {
  if (style.display === "inline") return false;
  const hidden = (overflow: string) => overflow === "hidden" || overflow === "clip";
  return (hidden(style.overflowX) && element.scrollWidth > element.clientWidth + 1) || (hidden(style.overflowY) && element.scrollHeight > element.clientHeight + 1);
}
