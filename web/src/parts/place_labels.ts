// Places for the labels of points, so that none lies on another or on a point; a label without a free place is left out.
export interface Box {
  x: number; // left
  y: number; // top
  width: number;
  height: number;
}

/** The box of each point's label, or null where there is no room for it. Earlier points choose first.
 *  points: [x, y]. widths: of the labels. height: of all. frame: what they must stay within. around: the points' radius. */
export function placeLabels(points: [number, number][], widths: number[], height: number, frame: Box, around: number): (Box | null)[] {
  const marks = points.map(([x, y]) => ({ x: x - around, y: y - around, width: 2 * around, height: 2 * around }));
  const taken = new Grid(40);
  marks.forEach((mark) => taken.add(mark));
  return points.map(([x, y], n) => {
    const width = widths[n]!;
    const gap = around + 2;
    const middle = y - height / 2;
    const candidates = [
      [x + gap, middle],
      [x - gap - width, middle],
      [x - width / 2, y - gap - height],
      [x - width / 2, y + gap],
      [x + gap * 0.8, y - gap - height + 3],
      [x + gap * 0.8, y + gap - 3],
      [x - gap * 0.8 - width, y - gap - height + 3],
      [x - gap * 0.8 - width, y + gap - 3],
    ];
    for (const [left, top] of candidates) {
      const box = { x: left!, y: top!, width, height };
      if (!within(box, frame) || taken.meets(box)) continue;
      taken.add(box);
      return box;
    }
    return null;
  });
}

/** Boxes by the squares they lie in, so that a box is held against its neighbours alone. */
class Grid {
  private readonly squares = new Map<string, Box[]>();
  private readonly side: number;

  constructor(side: number) {
    this.side = side;
  }

  add(box: Box): void {
    for (const key of this.keys(box)) {
      const found = this.squares.get(key);
      if (found) found.push(box);
      else this.squares.set(key, [box]);
    }
  }

  meets(box: Box): boolean {
    return this.keys(box).some((key) => (this.squares.get(key) ?? []).some((other) => overlap(box, other)));
  }

  private keys({ x, y, width, height }: Box): string[] {
    const keys: string[] = [];
    for (let c = Math.floor(x / this.side); c <= Math.floor((x + width) / this.side); c++)
      for (let r = Math.floor(y / this.side); r <= Math.floor((y + height) / this.side); r++) keys.push(`${c} ${r}`);
    return keys;
  }
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

function within(box: Box, frame: Box): boolean {
  return box.x >= frame.x && box.y >= frame.y && box.x + box.width <= frame.x + frame.width && box.y + box.height <= frame.y + frame.height;
}
