// Texts of HTML as texts of the picture: each run where it stands, in a family that every machine has.
import { inner } from "./boxes";
import { paintOf } from "./colour";
import { runsOf, type Cut, type Run } from "./letters";
import { escaped, painted, round, type Attributes, type Box, type Shapes } from "./shapes";

/** What texts are measured by while a picture is made: how far letters reach above their line. */
export class Rulers {
  private readonly ascents = new Map<string, number>();
  private readonly widths = new Map<string, number>();

  /** inside: where rulers may stand, unseen, for a moment. */
  constructor(private readonly inside: Element) {}

  /** How far a font's letters reach above their line, in px. */
  ascent(style: CSSStyleDeclaration): number {
    return this.measured(this.ascents, style, (ruler, text) => {
      const line = document.createElement("span");
      line.style.cssText = "display:inline-block;width:1px;height:0";
      ruler.append(line);
      return line.getBoundingClientRect().bottom - text.getBoundingClientRect().top;
    });
  }

  /** How long "…" is. */
  sign(style: CSSStyleDeclaration): number {
    return this.measured(this.widths, style, (_, text) => text.getBoundingClientRect().width);
  }

  private measured(known: Map<string, number>, style: CSSStyleDeclaration, measure: (ruler: Element, text: Range) => number): number {
    const key = [style.fontFamily, style.fontSize, style.fontWeight, style.fontStyle].join(";");
    let found = known.get(key);
    if (found === undefined) {
      const ruler = document.createElement("span");
      ruler.style.cssText = "position:absolute;visibility:hidden;white-space:pre;line-height:normal;writing-mode:horizontal-tb;direction:ltr;padding:0;border:0";
      Object.assign(ruler.style, { fontFamily: style.fontFamily, fontSize: style.fontSize, fontWeight: style.fontWeight, fontStyle: style.fontStyle });
      ruler.textContent = "…";
      this.inside.append(ruler);
      const text = document.createRange();
      text.selectNodeContents(ruler.firstChild!);
      found = measure(ruler, text);
      ruler.remove();
      known.set(key, found);
    }
    return found;
  }
}

const GENERIC = ["system-ui", "sans-serif", "serif", "monospace", "cursive", "fantasy"];

/** What a text looks like, as SVG says it. */
export function lookOf(style: CSSStyleDeclaration): Attributes {
  const named = (value: string, other: string) => (value === other ? undefined : value);
  return {
    "font-family": familyOf(style.fontFamily),
    "font-size": parseFloat(style.fontSize),
    "font-weight": named(style.fontWeight, "400"),
    "font-style": named(style.fontStyle, "normal"),
    "letter-spacing": style.letterSpacing === "normal" ? undefined : parseFloat(style.letterSpacing),
    style: style.fontVariantNumeric === "normal" ? undefined : `font-variant-numeric:${style.fontVariantNumeric}`,
  };
}

/** Families that no machine lacks: of those that the page names, the generic ones. */
export function familyOf(families: string): string {
  const generic = families.split(",").map((each) => each.trim()).filter((each) => GENERIC.includes(each));
  return generic.length ? generic.join(", ") : "sans-serif";
}

/** Draw the letters of a text node. */
export function drawText(shapes: Shapes, rulers: Rulers, node: Text, style: CSSStyleDeclaration, cut: Cut | null): void {
  const column = style.writingMode.startsWith("vertical");
  const keepsBlanks = style.whiteSpace.startsWith("pre") && style.whiteSpace !== "pre-line";
  const fill = paintOf(style.color);
  if (!fill.opacity) return;
  const [look, ascent] = [{ ...lookOf(style), ...painted("fill", fill) }, rulers.ascent(style)];
  for (const run of runsOf(node, { column, turned: style.direction === "rtl", keepsBlanks }, cut)) {
    const box = shapes.place(run.box);
    if (column && !run.upright) drawColumn(shapes, run, box, look, ascent);
    else drawLine(shapes, run, box, look, ascent, column);
    if (!column) underline(shapes, box, box.top + ascent, style);
  }
}

function drawLine(shapes: Shapes, run: Run, box: Box, look: Attributes, ascent: number, column: boolean): void {
  const middle = column ? { x: (box.left + box.right) / 2, "text-anchor": "middle" } : { x: run.turned ? box.right : box.left };
  const place = { ...middle, y: box.top + ascent, ...along(run, column ? 0 : box.right - box.left) };
  shapes.add("text", { ...place, ...look }, box, escaped(run.text));
}

/** Letters that lie on their side, from top to bottom. */
function drawColumn(shapes: Shapes, run: Run, box: Box, look: Attributes, ascent: number): void {
  const turn = `translate(${round(box.right - ascent)} ${round(run.turned ? box.bottom : box.top)}) rotate(90)`;
  shapes.add("text", { transform: turn, ...along(run, box.bottom - box.top), ...look }, box, escaped(run.text));
}

/** Letters take the room that they have on the page, whatever font a program draws them with. */
function along(run: Run, long: number): Attributes {
  const several = long > 0 && [...run.text].length > 1;
  return {
    direction: run.turned ? "rtl" : undefined,
    "xml:space": / {2}|^ | $/.test(run.text) ? "preserve" : undefined,
    textLength: several ? long : undefined,
    lengthAdjust: several ? "spacingAndGlyphs" : undefined,
  };
}

function underline(shapes: Shapes, box: Box, line: number, style: CSSStyleDeclaration): void {
  if (!style.textDecorationLine.includes("underline") || style.textDecorationStyle !== "solid") return;
  const thick = parseFloat(style.textDecorationThickness) || Math.max(1, parseFloat(style.fontSize) / 14);
  const below = style.textUnderlineOffset === "auto" ? Math.max(1, Math.ceil(thick / 2)) : parseFloat(style.textUnderlineOffset);
  shapes.rect({ left: box.left, right: box.right, top: line + below, bottom: line + below + thick }, painted("fill", paintOf(style.textDecorationColor)));
}

/** Where a text ends with "…", of an element that cuts it; null of others. */
export function cutOf(rulers: Rulers, element: Element, style: CSSStyleDeclaration, box: Box): Cut | null {
  if (style.textOverflow !== "ellipsis" || style.overflowX === "visible") return null;
  const column = style.writingMode.startsWith("vertical");
  const over = column ? element.scrollHeight > element.clientHeight : element.scrollWidth > element.clientWidth;
  return over ? { box: inner(box, style), sign: rulers.sign(style), turned: style.direction === "rtl", done: false } : null;
}

