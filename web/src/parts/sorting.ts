// The order of a table's rows, and how its cells are written.
import type { Cell, Column, InContext } from "../data/format";
import { readable } from "../words";
import { farthestOf, fixed, withSign } from "./numbers";

/** A column of a table: of texts, where it has no decimals. */
export type Titled = Pick<Column, "name"> & Partial<Column>;

const collator = new Intl.Collator(undefined, { numeric: true });

/** The numbers of rows, sorted by a column (null: as they are). What is no number and no text comes last both ways. */
export function ordered(rows: Cell[][], by: number | null, descending: boolean): number[] {
  const order = [...rows.keys()];
  if (by === null) return order;
  const turn = descending ? -1 : 1;
  return order.sort((m, n) => {
    const [a, b] = [rows[m]![by] ?? null, rows[n]![by] ?? null];
    if (a === null || b === null) return Number(a === null) - Number(b === null) || m - n;
    return turn * compared(a, b) || m - n;
  });
}

/** A cell as it is read: line breaks and texts of blanks by marks, numbers with their column's decimals, with a sign where it has signs; – where there is nothing. */
export function formatted(cell: Cell, column: Titled): string {
  if (typeof cell !== "number") return cell === null ? "–" : cell && readable(textOf(cell));
  return (column.signed ? withSign : fixed)(cell, column.digits ?? 3, column.unbounded);
}

/** What a cell reads as. */
export function textOf(cell: string | InContext): string {
  return typeof cell === "string" ? cell : cell.left + cell.form + cell.right;
}

function compared(a: string | number | InContext, b: string | number | InContext): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(typeof a === "number" ? String(a) : textOf(a), typeof b === "number" ? String(b) : textOf(b));
}

/** The row and column of the number that is farthest from 0; null where there is no number. */
export function largestCell(values: (number | null)[][]): [number, number] | null {
  let [most, at]: [number, [number, number] | null] = [-1, null];
  values.forEach((row, r) =>
    row.forEach((value, c) => {
      if (value === null || Math.abs(value) <= most) return;
      [most, at] = [Math.abs(value), [r, c]];
    }),
  );
  return at;
}

const ROOM = 8.8; // of a cell: a digit takes 2, a point or a sign 1

/** Numbers as they stand in cells of a picture: with as many decimals as all of them have room for; "" for none and for
 *  what is nearly 0, and null where the largest would not be told by two digits. */
export function numbersIn(values: ArrayLike<number | null>[], columns: number, digits: number, unbounded = false): string[][] | null {
  const every = values.map((row) => Array.from({ length: columns }, (_, c) => row[c] ?? null));
  const most = farthestOf(every.flat());
  for (let decimals = digits; decimals >= 0; decimals--) {
    const found = every.map((row) => row.map((value) => (value === null || (value && !+value.toFixed(decimals)) ? "" : fixed(value, decimals, unbounded))));
    if (found.flat().some((text) => text.length + text.replace(/\D/g, "").length > ROOM)) continue;
    return decimals === digits || most * 10 ** decimals >= 10 ? found : null;
  }
  return null;
}
