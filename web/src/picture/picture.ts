// Makes a picture of a view that stands on its own: SVG with a title, of what the view shows at this moment.
import { paintOf } from "./colour";
import { unscroll } from "./scrolls";
import { escaped, opening, round, Shapes } from "./shapes";
import { Rulers } from "./texts";
import { drawElement } from "./walk";

export interface Picture {
  svg: string;
  width: number; // px
  height: number;
  hidden: number; // parts that scroll, of which it shows what is in sight
}

export interface Said {
  title: string; // what the picture is of
  line: string; // which view, layer, head and token
  about: string; // how it came about, for programs and for who cannot see it
}

const MARGIN = 16; // px around the picture

/** Make a picture of a view as it stands in the document now. */
export function pictureOf(view: HTMLElement, said: Said): Picture {
  const height = view.style.minHeight;
  view.style.minHeight = `${view.offsetHeight}px`; // so that the page stays where it is scrolled
  view.dataset.picture = ""; // page.css: what is for hands alone takes no room
  const head = headOf(said);
  view.prepend(head);
  const scrolls = unscroll(view);
  try {
    const { left, top } = view.getBoundingClientRect();
    const shapes = new Shapes(left, top);
    const style = getComputedStyle(view.closest(".regard")!);
    const way = { shapes, rulers: new Rulers(view), clipped: scrolls.clipped };
    for (const element of [...view.children]) drawElement(way, element);
    return framed(shapes, said, paintOf(style.backgroundColor).colour, scrolls.clipped.size);
  } finally {
    scrolls.restore();
    head.remove();
    delete view.dataset.picture;
    view.style.minHeight = height;
  }
}

/** The title as it stands above the view while the picture is made: laid out by the browser, as all is. */
function headOf({ title, line }: Said): HTMLElement {
  const head = document.createElement("div");
  head.className = "pictured";
  for (const [name, text] of [["b", title], ["span", line]] as const) {
    const element = document.createElement(name);
    element.dir = "auto";
    element.textContent = text;
    if (text) head.append(element);
  }
  return head;
}

function framed(shapes: Shapes, said: Said, back: string, hidden: number): Picture {
  const { reach } = shapes;
  const { definitions, shapes: drawn } = shapes.written();
  const [left, top] = [Math.min(0, Math.floor(reach.left)) - MARGIN, Math.min(0, Math.floor(reach.top)) - MARGIN];
  const width = Math.max(1, Math.ceil(reach.right) + MARGIN - left);
  const height = Math.max(1, Math.ceil(reach.bottom) + MARGIN - top);
  const attributes = { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: [left, top, width, height].map(round).join(" "), role: "img" };
  const svg = [
    `${opening("svg", attributes)}>`,
    `<title>${escaped([said.title, said.line].filter(Boolean).join(" · "))}</title>`,
    `<desc>${escaped(said.about)}</desc>`,
    ...(definitions ? [`<defs>${definitions}</defs>`] : []),
    `${opening("rect", { x: left, y: top, width, height, fill: back })}/>`,
    drawn,
    "</svg>\n",
  ].join("\n");
  return { svg, width, height, hidden };
}
