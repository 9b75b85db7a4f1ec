// The colours of weights, of numbers of both signs, and of what stands apart (special tokens and sinks).
//
// ColorBrewer's Blues, RdBu and Greys (Harrower and Brewer 2003), at steps of equal length in CIELAB: those of the
// library's pictures. On a dark page the maps begin at its background, and weights go through the hue of text 1; differences grow lighter towards both ends in the
// red and blue that they have, where RdBu itself would end in cream and pale blue.

export type Scale = "weights" | "differences" | "apart" | "heat";
export type Rgb = readonly [number, number, number];

const HEAT = "ff 4076ff"; // over a picture, on a dark page too
const STOPS: Record<"light" | "dark", Partial<Record<Scale, string>> & { weights: string }> = {
  light: {
    weights: "f7fbff e3eef8 cfe1f2 b8d5ea 9fcbe2 8abfdd 74b3d8 5fa6d1 4b98c9 3b8bc2 2e7ebc 2272b5 1764ab 0c56a0 084990 083c7d 08306b",
    differences: "053061 134b86 2267ac 337eb8 4a97c5 74b2d4 a0cce2 cde3ef f7 fcdfcd f8c0a4 f2a17f e17a61 cf5246 b41d2d 8d0c25 67001f",
    apart: "ff f8 f1 e9 e2 db d4 cd c6 bf b9 b2 ab a4 9e 97 91",
  },
  dark: {
    weights: "14191f 172431 192f44 1c3c59 204a6e 245985 29699b 337bb1 3f8ec6 4ca2dc 5bb6f0 77c2f4 92cff8 acdbfb c4e6fc dbf0fe f2faff",
    differences: "5faaf6 3b90d8 2b75bc 1d5c9e 11457e 053061 13284a 162034 14191f 2e191f 45151f 5c0a1f 780522 9b1329 be2b31 df513f ff7a5c",
    apart: "14191f 1a1f25 20252a 272b30 2d3136 34383c 3b3e42 424549 494c4f 505256 57595c 5f6063 666869 6e6f70 757677 7d7e7e 85",
  },
};
const GROUPS = {
  light: "0b6ca6 bf420b b48787 191b22",
  dark: "6499c7 c03b42 f8b954 ffffff",
};
const TINTS = { light: ["fbfaf6", "0b6ca6", "bf420b", "0b5d3b", "8a8f99"], dark: ["11131a", "58b4f0", "ff9560", "8ff0b0", "868d9c"] }; // ground, texts 1 to 3, what stands apart: page.css
export const SHADES = 256;

const parsed: Record<string, Rgb> = {}; // colours of tints
const tables: Record<"light" | "dark", Partial<Record<Scale, Rgb[]>>> = { light: {}, dark: {} };

/** The 256 colours of a scale. */
export function table(scale: Scale, dark: boolean): Rgb[] {
  const mode = dark ? "dark" : "light";
  if (!tables[mode][scale]) {
    const stops = (STOPS[mode][scale] ?? HEAT).split(" ").map(rgb);
    tables[mode][scale] = Array.from({ length: SHADES }, (_, n) => {
      const at = (n / (SHADES - 1)) * (stops.length - 1);
      const below = Math.min(Math.floor(at), stops.length - 2);
      const mix = (c: 0 | 1 | 2) => Math.round(stops[below]![c] + (stops[below + 1]![c] - stops[below]![c]) * (at - below));
      return [mix(0), mix(1), mix(2)] as const;
    });
  }
  return tables[mode][scale]!;
}

/** The shade of a weight: by its square root, so that small weights that differ can be told apart beside large ones. */
export function shade(value: number, largest: number): number {
  if (!(value > 0) || !(largest > 0)) return 0;
  return Math.round(Math.sqrt(Math.min(1, value / largest)) * (SHADES - 1));
}

/** The shade of a weight in equal steps: among the tokens of a text, a shade half as dark is half the weight. */
export function evenShade(value: number, largest: number): number {
  if (!(value > 0) || !(largest > 0)) return 0;
  return Math.round(Math.min(1, value / largest) * (SHADES - 1));
}

export const BY_ROOT = "(shades by square root)"; // what `shade` does, beside the colours

/** The shade of a number of either sign, in equal steps: 0 in the middle. */
export function signedShade(value: number, largest: number): number {
  if (!(largest > 0) || Number.isNaN(value)) return SHADES / 2;
  return Math.round((Math.max(-1, Math.min(1, value / largest)) + 1) * 0.5 * (SHADES - 1));
}

/** The colour of a number on a scale. root: whether shades of one sign go by its square root. */
export function colourOf(value: number, largest: number, scale: Scale, dark: boolean, root = false): Rgb {
  return table(scale, dark)[scale === "differences" ? signedShade(value, largest) : (root ? shade : evenShade)(Math.abs(value), largest)]!;
}

/** The colours of groups: those of the library's pictures, on a dark page of the same hues; each at least 3:1 on its background. */
export function groupColours(dark: boolean): string[] {
  return GROUPS[dark ? "dark" : "light"].split(" ").map((hex) => `#${hex}`);
}

/** A part of a text's hue on the page's ground; text null: of what stands apart. */
export function tint(text: number | null, part: number, dark: boolean): Rgb {
  const [ground, ...hues] = TINTS[dark ? "dark" : "light"].map((hex) => (parsed[hex] ??= rgb(hex)));
  const hue = hues[text ?? 3]!;
  return ground!.map((own, c) => Math.round(own + (hue[c]! - own) * part)) as unknown as Rgb;
}

/** What lies over a grey picture where there is this part of the most: blue, or grey where it stands apart. */
export function heat(part: number, apart = false): string {
  return `rgb(${apart ? "90 90 90" : "0 72 255"} / ${(0.75 * Math.min(1, part)).toFixed(3)})`;
}

/** As CSS writes it. */
export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

/** Black or white, whichever reads better on a colour (WCAG's contrast). */
export function ink(colour: Rgb): string {
  return luminance(colour) > 0.179 ? "#000" : "#fff";
}

/** Relative luminance (WCAG 2). */
export function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

/** A colour of six digits, or a grey of two. */
function rgb(hex: string): Rgb {
  return [0, 2, 4].map((at) => parseInt(hex.slice(at % hex.length).slice(0, 2), 16)) as unknown as Rgb;
}
