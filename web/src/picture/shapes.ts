// Writes the shapes of a picture as SVG, in order, and keeps how far they reach.
import type { Paint } from "./colour";

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export type Attributes = Record<string, string | number | undefined>;

/** Numbers as a picture needs them: to a hundredth of a pixel. */
export function round(value: number): string {
  return String(Math.round(value * 100) / 100 || 0); // no −0
}

// XML has no way to write these
const UNWRITABLE = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\p{Surrogate}]/gu;

/** A text as it may stand in XML, between quotes too; control characters as their pictures: ␛. */
export function escaped(text: string): string {
  const seen = text.replace(UNWRITABLE, (each) => (each < " " ? String.fromCharCode(0x2400 + each.charCodeAt(0)) : "\ufffd"));
  return seen.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** An element's opening tag without its end. */
export function opening(name: string, attributes: Attributes): string {
  let out = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) out += ` ${key}="${typeof value === "number" ? round(value) : escaped(value)}"`;
  }
  return out;
}

/** What fills or strokes a shape. */
export function painted(name: "fill" | "stroke", { colour, opacity }: Paint): Attributes {
  return { [name]: colour, [`${name}-opacity`]: opacity < 1 ? opacity : undefined };
}

export class Shapes {
  readonly reach: Box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  private readonly parts: string[] = [];
  private readonly definitions: string[] = [];
  private readonly clips: Box[] = [];

  /** x, y: where the picture's own begin, in the window. */
  constructor(
    private readonly x: number,
    private readonly y: number,
  ) {}

  /** A box of the window as a box of the picture. */
  place({ left, top, right, bottom }: Box): Box {
    return { left: left - this.x, top: top - this.y, right: right - this.x, bottom: bottom - this.y };
  }

  /** Write an element that covers a box of the picture. content: XML inside of it. */
  add(name: string, attributes: Attributes, covers: Box, content = ""): void {
    this.parts.push(`${opening(name, attributes)}${content ? `>${content}</${name}>` : "/>"}`);
    const clip = this.clips.at(-1);
    this.reach.left = Math.min(this.reach.left, clip ? Math.max(clip.left, covers.left) : covers.left);
    this.reach.top = Math.min(this.reach.top, clip ? Math.max(clip.top, covers.top) : covers.top);
    this.reach.right = Math.max(this.reach.right, clip ? Math.min(clip.right, covers.right) : covers.right);
    this.reach.bottom = Math.max(this.reach.bottom, clip ? Math.min(clip.bottom, covers.bottom) : covers.bottom);
  }

  /** Fill a box of the picture; radius: of its corners. */
  rect(box: Box, fill: Attributes, radius = 0): void {
    const [width, height] = [box.right - box.left, box.bottom - box.top];
    if (!(width > 0) || !(height > 0)) return;
    this.add("rect", { x: box.left, y: box.top, width, height, rx: radius ? Math.min(radius, width / 2, height / 2) : undefined, ...fill }, box);
  }

  /** Define something to be used by name; returns the name. make: its XML, by its name. */
  define(make: (id: string) => string): string {
    const id = `regard-${this.definitions.length + 1}`;
    this.definitions.push(make(id));
    return id;
  }

  /** Open a group, whose end `close` writes. clip: what lies outside of this box of the picture is not shown. */
  open(attributes: Attributes, clip?: Box): void {
    const within = this.clips.at(-1);
    if (clip) {
      const { left, top, right, bottom } = clip;
      const id = this.define((id) => `<clipPath id="${id}">${opening("rect", { x: left, y: top, width: right - left, height: bottom - top })}/></clipPath>`);
      attributes = { ...attributes, "clip-path": `url(#${id})` };
    }
    this.clips.push(
      clip && within
        ? { left: Math.max(clip.left, within.left), top: Math.max(clip.top, within.top), right: Math.min(clip.right, within.right), bottom: Math.min(clip.bottom, within.bottom) }
        : (clip ?? within ?? { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity }),
    );
    this.parts.push(`${opening("g", attributes)}>`);
  }

  close(): void {
    this.clips.pop();
    this.parts.push("</g>");
  }

  /** All that was defined, and all that was written. */
  written(): { definitions: string; shapes: string } {
    return { definitions: this.definitions.join(""), shapes: this.parts.join("\n") };
  }
}
