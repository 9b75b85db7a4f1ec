// The tiles of one head's map: asked for in bands, kept for a while, coloured, and given up where they are no longer wanted.
import type { Attention } from "../attention/client";
import type { Call } from "../data/format";
import { bandsOf, cellOf, children, keyOf, partOf, SIDE, type Tile } from "./pyramid";
import { colour } from "./shades";

const KEPT = 600; // tiles: 192 kB each with their pictures

export interface Picture {
  tile: Tile;
  values: Float32Array; // (SIDE, SIDE) means, as far as they are there
  canvas: HTMLCanvasElement;
  pixels: ImageData;
  there: Uint8Array; // (SIDE,) 1 for rows that are
  coloured: Uint32Array | null; // the colours it was coloured with
  missing: number; // bands
  wanted: AbortController | null; // of the bands that are on their way
}

export interface Which {
  call: number;
  head: number | null;
}

export class Tiles {
  readonly length: number;
  readonly size: number;
  private readonly kept = new Map<string, Picture>(); // the last used last
  private colours: Uint32Array | null = null;
  greys: Uint32Array | null = null;
  private apart: boolean[] = []; // keys in greys, where cells are single weights

  constructor(
    private readonly attention: Attention,
    private readonly description: Call,
    private readonly which: Which,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {
    this.length = description.query.values.shape[1]!;
    this.size = description.key.values.shape[1]!;
  }

  /** Ask for these tiles, in this order, and for no others any more. Returns how many bands of them are missing. */
  want(tiles: Tile[]): number {
    const names = new Set(tiles.map(keyOf));
    for (const [name, picture] of this.kept) {
      if (!picture.wanted || names.has(name)) continue;
      picture.wanted.abort();
      this.kept.delete(name);
    }
    let missing = 0;
    for (const tile of tiles) {
      const name = keyOf(tile);
      const picture = this.kept.get(name) ?? this.fromChildren(tile) ?? this.begin(tile);
      if (picture.missing && !picture.wanted) this.ask(picture);
      this.kept.delete(name);
      this.kept.set(name, picture);
      missing += picture.missing;
    }
    for (const [name, picture] of this.kept) {
      if (this.kept.size <= KEPT) break;
      if (!picture.wanted) this.kept.delete(name);
    }
    return missing;
  }

  /** All tiles that are there, or partly there. */
  all(): Iterable<Picture> {
    return this.kept.values();
  }

  /** A tile, or as much of it as is there, in the colours of now. */
  picture(tile: Tile): Picture | undefined {
    const picture = this.kept.get(keyOf(tile));
    if (picture && this.colours && picture.coloured !== this.colours) this.paint(picture, 0, SIDE);
    return picture;
  }

  /** Use other colours from now on. */
  recolour(colours: Uint32Array, greys: Uint32Array, apart: boolean[]): void {
    [this.colours, this.greys, this.apart] = [colours, greys, apart];
  }

  /** Give up what is on its way; what is there stays, and what is asked for again goes on from it. */
  halt(): void {
    for (const picture of this.kept.values()) {
      picture.wanted?.abort();
      picture.wanted = null;
    }
  }

  /** Give up what is on its way, and what is there. */
  stop(): void {
    this.halt();
    this.kept.clear();
  }

  private bands(tile: Tile): [number, number][] {
    if (this.description.served) return [[0, SIDE]];
    return bandsOf(tile, this.description, this.length, this.size, this.which.head === null ? this.description.heads : 1);
  }

  /** A tile of which nothing is there yet but what the mask forbids. */
  private begin(tile: Tile): Picture {
    const bands = this.bands(tile);
    const picture = this.empty(tile, bands.length);
    for (const [first, last] of bands) picture.there.fill(0, first, last);
    return picture;
  }

  /** Ask for the bands that a tile has not got. */
  private ask(picture: Picture): void {
    const { queries, keys } = partOf(picture.tile);
    const cell = cellOf(picture.tile.level);
    const bands = this.bands(picture.tile).filter(([first]) => !picture.there[first]);
    const wanted = (picture.wanted = new AbortController());
    const { call, head } = this.which;
    for (const [first, last] of bands) {
      const part = {
        head,
        queries: [queries[0] + first * cell, queries[0] + last * cell] as [number, number],
        keys,
        rows: last - first,
        cols: SIDE,
      };
      const means = this.description.served
        ? this.attention.tile(call, head, picture.tile.level, picture.tile.row, picture.tile.col, wanted.signal)
        : this.attention.region(call, part, wanted.signal);
      means.then(
        (means) => {
          if (wanted.signal.aborted) return;
          picture.values.set(means, first * SIDE);
          picture.there.fill(1, first, last);
          if (--picture.missing === 0) picture.wanted = null;
          if (this.colours) this.paint(picture, first, last);
          this.changed();
        },
        (error: unknown) => {
          if (!wanted.signal.aborted) this.failed(error);
        },
      );
    }
  }

  /** A tile from the four finer ones, where all of them are there: the mean of means, each counted by its weights. */
  private fromChildren(tile: Tile): Picture | null {
    if (tile.level === 0) return null;
    const finer = children(tile, this.length, this.size).map((each) => this.kept.get(keyOf(each)));
    if (finer.some((each) => !each || each.missing > 0)) return null;
    const picture = this.empty(tile, 0);
    const cell = cellOf(tile.level - 1);
    const { queries, keys } = partOf(tile);
    for (const each of finer as Picture[]) {
      const [down, right] = [(each.tile.row - 2 * tile.row) * (SIDE / 2), (each.tile.col - 2 * tile.col) * (SIDE / 2)];
      for (let r = 0; r < SIDE; r += 2) {
        const [a, b] = [this.there(queries[0], 2 * down + r, cell, this.length), this.there(queries[0], 2 * down + r + 1, cell, this.length)];
        for (let c = 0; c < SIDE; c += 2) {
          const [x, y] = [this.there(keys[0], 2 * right + c, cell, this.size), this.there(keys[0], 2 * right + c + 1, cell, this.size)];
          const n = r * SIDE + c;
          const v = each.values;
          const sum = a * (x * v[n]! + y * v[n + 1]!) + b * (x * v[n + SIDE]! + y * v[n + SIDE + 1]!);
          const count = (a + b) * (x + y);
          if (count) picture.values[(down + r / 2) * SIDE + right + c / 2] = sum / count;
        }
      }
    }
    if (this.colours) this.paint(picture, 0, SIDE);
    return picture;
  }

  /** How many tokens cell n has from `first` on, of those that there are. */
  private there(first: number, n: number, cell: number, end: number): number {
    return Math.max(0, Math.min(cell, end - first - n * cell));
  }

  private empty(tile: Tile, missing: number): Picture {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = SIDE;
    return {
      tile,
      values: new Float32Array(SIDE * SIDE),
      canvas,
      pixels: new ImageData(SIDE, SIDE),
      there: new Uint8Array(SIDE).fill(1),
      coloured: null,
      missing,
      wanted: null,
    };
  }

  /** Colour rows of cells; those that are not there stay transparent, so that a coarser picture shows through. */
  private paint(picture: Picture, first: number, last: number): void {
    if (picture.coloured !== this.colours) [first, last] = [0, SIDE];
    const pixels = new Uint32Array(picture.pixels.data.buffer);
    const keys = picture.tile.level ? [] : this.apart.slice(picture.tile.col * SIDE, (picture.tile.col + 1) * SIDE);
    for (let r = first; r < last; r++) {
      if (!picture.there[r]) continue;
      colour(picture.values, this.colours!, pixels, r * SIDE, (r + 1) * SIDE);
      keys.forEach((grey, c) => grey && colour(picture.values, this.greys!, pixels, r * SIDE + c, r * SIDE + c + 1));
    }
    picture.canvas.getContext("2d")!.putImageData(picture.pixels, 0, 0, 0, first, SIDE, last - first);
    picture.coloured = this.colours;
  }
}
