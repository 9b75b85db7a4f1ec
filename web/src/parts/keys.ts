// Where the arrow keys lead.

/** Steps to the right and down, by the key. */
export const ARROWS: Record<string, [number, number] | undefined> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** The place that a key leads to from one of so many in a row, Enter and blank to itself; undefined where it leads to none. turned: of a row from right to left. */
export function along(event: KeyboardEvent, from: number, count: number, turned: boolean): number | undefined {
  const [right, down] = ARROWS[event.key] ?? [];
  const to = down === undefined ? { Home: 0, End: count - 1, Enter: from, " ": from }[event.key] : from + down + (turned ? -right! : right!);
  if (to === undefined || to < 0 || to >= count) return undefined;
  event.preventDefault();
  return to;
}
