// Drawings that are SVG on the page: copied with what style sheets say about them.
import { paintOf } from "./colour";
import { familyOf } from "./texts";
import { escaped, opening, painted, round, type Attributes, type Box, type Shapes } from "./shapes";

const OWN = ["d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "width", "height", "points", "transform", "dx", "dy"];
const LEFT_OUT = new Set(["title", "desc", "script", "style", "foreignObject"]);

/** Draw an SVG element of the page into its box of the picture. */
export function drawSvg(shapes: Shapes, svg: SVGSVGElement, box: Box): void {
  const view = svg.viewBox.baseVal;
  const scale = view && view.width > 0 ? (box.right - box.left) / view.width : 1;
  const [x, y] = [box.left - scale * (view?.x ?? 0), box.top - scale * (view?.y ?? 0)];
  const content = [...svg.children].map(copied).join("");
  if (!content) return;
  shapes.add("g", { transform: `translate(${round(x)} ${round(y)})${scale === 1 ? "" : ` scale(${scale})`}` }, box, content);
}

function copied(element: Element): string {
  const style = getComputedStyle(element);
  if (LEFT_OUT.has(element.tagName) || style.display === "none" || style.visibility !== "visible") return "";
  const own: Attributes = {};
  for (const name of OWN) own[name] = element.getAttribute(name) ?? undefined;
  if (style.opacity !== "1") own.opacity = Number(style.opacity);
  const content = [...element.childNodes].map((node) => (node instanceof Element ? copied(node) : node.nodeType === Node.TEXT_NODE ? escaped(node.textContent!) : "")).join("");
  const write = (looks: Attributes) => `${opening(element.tagName, { ...own, ...looks })}${content ? `>${content}</${element.tagName}>` : "/>"}`;
  if (element.tagName === "g" || element.tagName === "defs" || element.tagName === "clipPath") return write({});
  const letters = element instanceof SVGTextContentElement ? lettersOf(style) : {};
  const [fill, stroke] = [style.fill === "none" ? { fill: "none" } : painted("fill", paintOf(style.fill)), strokeOf(style)];
  // A stroke that lies behind its shape is drawn before it: many programs know no paint-order
  if (stroke.stroke && style.paintOrder.startsWith("stroke")) return write({ ...letters, fill: "none", ...stroke, "stroke-linejoin": "round" }) + write({ ...letters, ...fill });
  return write({ ...letters, ...fill, ...stroke });
}

function strokeOf(style: CSSStyleDeclaration): Attributes {
  if (style.stroke === "none" || !parseFloat(style.strokeWidth)) return {};
  return {
    ...painted("stroke", paintOf(style.stroke)),
    "stroke-width": parseFloat(style.strokeWidth),
    "stroke-dasharray": style.strokeDasharray === "none" ? undefined : style.strokeDasharray.replaceAll("px", ""),
  };
}

function lettersOf(style: CSSStyleDeclaration): Attributes {
  return {
    "text-anchor": style.textAnchor === "start" ? undefined : style.textAnchor,
    "font-family": familyOf(style.fontFamily),
    "font-size": parseFloat(style.fontSize),
    "font-weight": style.fontWeight === "400" ? undefined : style.fontWeight,
    "unicode-bidi": style.unicodeBidi === "plaintext" ? "plaintext" : undefined,
  };
}
