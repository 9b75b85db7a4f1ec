// Where the letters of a text stand: in runs that go one way along one line, as a browser has laid them out.
import type { Box } from "./shapes";

export interface Run {
  text: string;
  box: Box; // in the window
  turned: boolean; // it goes from right to left, or in a column upwards
  upright: boolean; // of a column: letters that stand as they are, one below the other
}

export interface Lines {
  column: boolean; // they go from top to bottom
  turned: boolean; // as a whole they go from right to left
  keepsBlanks: boolean;
}

export interface Cut {
  box: Box; // what is outside of it is not shown, and "…" says so
  sign: number; // how long "…" is
  turned: boolean; // the text begins at the right
  done: boolean;
}

const TURNED = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1eeff}]/u;
const UPRIGHT = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Extended_Pictographic}\u3000-\u303f\uff01-\uff60]/u;
const ONWARDS = /[\p{L}\p{N}]/u; // no bracket, which opens to where the line goes
const UNSEEN = /[\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // they tell which way letters go: runs go one way
const NEAR = 1.5; // px between letters that stand side by side

/** The runs of a text node. cut: where an ellipsis ends it. */
export function runsOf(node: Text, { column, turned, keepsBlanks }: Lines, cut: Cut | null): Run[] {
  const { data } = node;
  const first = data.search(/[^ \t\r\n\f]/);
  if (first < 0 || cut?.done) return [];
  const end = data.length - /[ \t\r\n\f]*$/.exec(data)![0].length;
  const range = document.createRange();
  range.setStart(node, first);
  range.setEnd(node, end);
  const boxes = [...range.getClientRects()].filter((each) => each.width > 0 && each.height > 0);
  const whole = data.slice(first, end);
  const plain = boxes.length === 1 && !turned && !TURNED.test(whole) && !(column && UPRIGHT.test(whole)) && !(cut && !within(boxes[0]!, cut, column));
  const runs = plain ? [{ text: whole, box: boxOf(boxes[0]!), turned: false, upright: false }] : byLetters(node, range, [first, end], column, turned, cut);
  return runs.map((run) => ({ ...run, text: cleaned(run.text, keepsBlanks) })).filter((run) => run.text);
}

function cleaned(text: string, keepsBlanks: boolean): string {
  const seen = text.replace(UNSEEN, "");
  return keepsBlanks ? seen.replace(/[\r\n]/g, "") : seen.replace(/[ \t\r\n\f]+/g, " ").trim();
}

function boxOf({ left, top, right, bottom }: DOMRect): Box {
  return { left, top, right, bottom };
}

/** Whether letters are not cut off. room: px that have to be left for "…". */
function within(box: Box, cut: Cut, column: boolean, room = 0): boolean {
  if (column) return box.bottom <= cut.box.bottom - room + 0.5;
  return cut.turned ? box.left >= cut.box.left + room - 0.5 : box.right <= cut.box.right - room + 0.5;
}

/** Letter by letter: a run ends with its line, where the letters turn, and where the next one stands apart. */
function byLetters(node: Text, range: Range, [first, end]: [number, number], column: boolean, turned: boolean, cut: Cut | null): Run[] {
  const runs: Run[] = [];
  const all = range.getBoundingClientRect();
  const fits = !cut || within(all, cut, column);
  let run: (Run & { way: 0 | 1 | -1; last: Box; blanks: string }) | null = null;
  for (let at = first; at < end; ) {
    const letter = String.fromCodePoint(node.data.codePointAt(at)!);
    range.setStart(node, at);
    range.setEnd(node, at + letter.length);
    at += letter.length;
    const found = [...range.getClientRects()].find((each) => each.width > 0 && each.height > 0);
    if (!found) {
      if (run && !/[ \t\r\n\f]/.test(letter)) run.text += letter; // a mark on the letter before
      continue;
    }
    const box = boxOf(found);
    if (!fits && !within(box, cut, column, cut.sign)) {
      cut.done = true;
      const { bottom, left, right, top } = run?.last ?? box;
      const sign = column ? { left, right, top: bottom, bottom: bottom + cut.sign } : cut.turned ? { top, bottom, left: left - cut.sign, right: left } : { top, bottom, left: right, right: right + cut.sign };
      if (run) [run.text, run.box] = [`${run.text}…`, joined(run.box, sign)];
      else runs.push({ text: "…", box: sign, turned: false, upright: false });
      break;
    }
    const upright = column && UPRIGHT.test(letter);
    const way = run && run.upright === upright ? wayTo(run.last, box, column) : null;
    const blank = /\s/.test(letter);
    if (run && !upright && way !== null && (run.way === 0 || way === 0 || way === run.way)) {
      run.way ||= way;
      run.last = box;
      if (blank) run.blanks += letter; // shown where something follows it
      else {
        run.text += run.blanks + letter;
        run.blanks = "";
        run.box = joined(run.box, box);
        run.turned = run.way < 0;
      }
    } else if (blank) run = null;
    else {
      run = { text: letter, box, turned: TURNED.test(letter) || (turned && !ONWARDS.test(letter)), upright, way: 0, last: box, blanks: "" };
      runs.push(run);
    }
  }
  return runs;
}

/** Which way the next letter lies of a letter: 1 onwards, −1 back, 0 over it; null: on another line or apart. */
function wayTo(from: Box, to: Box, column: boolean): 0 | 1 | -1 | null {
  const [start, end, nextStart, nextEnd] = column ? [from.top, from.bottom, to.top, to.bottom] : [from.left, from.right, to.left, to.right];
  const [side, other] = column ? [from.left, to.left] : [from.top, to.top];
  const size = column ? from.right - from.left : from.bottom - from.top;
  if (Math.abs(side - other) > size / 2) return null;
  if (Math.abs(nextStart - start) < 0.01 && Math.abs(nextEnd - end) < 0.01) return 0;
  if (Math.abs(nextStart - end) <= NEAR) return 1;
  return Math.abs(nextEnd - start) <= NEAR ? -1 : null;
}

function joined(a: Box, b: Box): Box {
  return { left: Math.min(a.left, b.left), top: Math.min(a.top, b.top), right: Math.max(a.right, b.right), bottom: Math.max(a.bottom, b.bottom) };
}
