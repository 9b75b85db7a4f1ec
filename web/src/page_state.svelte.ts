// One selection runs through all views: which attention call, which head, which token, seen from which side.
import type { Source } from "./data/bytes";
import type { Call, Page, Text } from "./data/format";
import type { Sight } from "./cloud/camera";
import type { Place, Sight as MapSight } from "./map/camera";
import type { ScaleName } from "./map/shades";
import type { Attention } from "./attention/client";
import type { LoadedMask } from "./attention/mask";
import { choice, oneOf } from "./choice";
import type { Bundle } from "./views";
import { headNumber, lastWord, sameWord } from "./words";

/** What a view shows, where it is not the chosen layer and head alone: a picture is called by it. */
export interface Shows {
  where?: string; // layer and heads; "" for all of them
  what?: string;
  token?: string;
}

export type Side = "gives" | "receives"; // what a token looks at, or what looks at it

/** What is in sight of the map of one matrix, where its cursor is, and how its weights are coloured. */
export interface MapLook extends MapSight {
  place: Place | null;
  token: number | null; // that was chosen then
  scale: ScaleName;
  shape: [number, number]; // queries and keys of the matrix
}

/** The calls of one kind over one pair of texts: what the first choice, "text", chooses between. */
export interface Group {
  name: string;
  label: string; // its name, and how its text begins and ends: what one chooses by
  calls: number[]; // of the page's calls, by layer
}

export class PageState {
  readonly id = `regard-${Math.random().toString(36).slice(2)}`; // for elements' ids and names: a notebook may show several pages
  page: Page; // with what comes of it: another one where a server renews it
  private weights: Attention | undefined;
  private masks: ((call: number) => Promise<LoadedMask | null>) | undefined;
  source: Source;
  groups: Group[];

  view = $state("");
  call = $state(0);
  head = $state<number | null>(null); // null: the mean of heads
  token = $state<number | null>(null); // of the queries' text where side is "gives", else of the keys'
  side = $state<Side>("gives");
  words = $state(false); // tokens of one word taken together
  dark = $state(false);
  shows = $state.raw<Shows>({}); // by the view
  cut = $state.raw<((link: { query: number; key: number } | null) => void) | null>(null); // the chosen head, or a link of it, where a server can
  readonly before = new Set<() => Promise<unknown>>(); // what views have to compute before a picture of them is whole
  choices = $state.raw<Record<string, unknown>>({}); // in single views (choice.ts)
  readonly rows = choice<"written" | "read">(this, "alignment rows", "written", oneOf("written", "read")); // of a translation's tokens
  map = $state.raw<MapLook | null>(null); // null: the whole
  cloud = $state.raw<(Sight & { point: number | null }) | null>(null); // what is in sight of a cloud of points, and which is looked at

  constructor(
    page: Page,
    source: Source,
    readonly bundle: Bundle,
  ) {
    this.page = $state.raw(page);
    this.source = $state.raw(source);
    this.weights = $state.raw(this.attend());
    this.masks = $state.raw(bundle.attention?.maskReader(page, source));
    this.groups = $state.raw(groupsOf(page));
    this.view = page.opening.view;
    this.call = page.opening.call;
    this.head = page.opening.head;
    this.token = page.opening.token;
  }

  /** Show a newer page of the same kind, and keep of view, call, head and token what it has as well. Who is where a page opens
   *  is taken to where the newer one does. */
  renew(page: Page, source: Source): void {
    const panel = /^panel (\d+)$/.exec(this.view);
    const name = panel && this.page.panels[Number(panel[1])]?.name;
    const opening = this.view === this.page.opening.view;
    const same = name ? page.panels.findIndex((each) => each.name === name) : -1;
    this.stop();
    if (this.call >= page.calls.length) [this.call, this.head, this.token] = [0, null, null];
    [this.page, this.source] = [page, source];
    this.weights = this.attend();
    [this.masks, this.groups] = [this.bundle.attention?.maskReader(page, source), groupsOf(page)];
    if (opening) this.view = page.opening.view;
    else if (same >= 0) this.view = `panel ${same}`;
  }

  private attend(): Attention | undefined {
    return this.bundle.attention?.attend(this.page, this.source, (call) => this.back(call));
  }

  /** How many rows before its own a token's row is: in cross-attention row i reads token i and writes token i + 1, so the row before
   *  a token writes it, and that one is shown unless one wants those that read. A server's tiles are of rows as they read. */
  back(call = this.call): number {
    const { part, served } = this.page.calls[call]!;
    return part === "cross" && !served && this.rows.value === "written" ? 1 : 0;
  }

  /** Which row of a token is shown, where it has two: to be said behind what it looks at, or what looks at another. */
  how(call = this.call): string {
    if (this.page.calls[call]!.part !== "cross") return "";
    return `, ${this.side === "gives" ? "" : "each "}as it was ${this.back(call) ? "written (the row before it)" : "read (its own row)"}`;
  }

  /** What computes weights: a bundle without it shows pages without attention alone. */
  get attention(): Attention {
    return this.weights!;
  }

  /** Which keys a call's queries may attend to. */
  maskOf(call: number): Promise<LoadedMask | null> {
    return this.masks!(call);
  }

  /** End the workers. */
  stop(): void {
    this.weights?.stop();
  }

  get description(): Call {
    return this.page.calls[this.call]!;
  }

  get queries(): Text {
    return this.page.texts[this.description.queries]!;
  }

  get keys(): Text {
    return this.page.texts[this.description.keys]!;
  }

  /** The text that the chosen token is of. */
  get own(): Text {
    return this.side === "gives" ? this.queries : this.keys;
  }

  /** The text whose tokens are coloured. */
  get other(): Text {
    return this.side === "gives" ? this.keys : this.queries;
  }

  get group(): number {
    return this.groups.findIndex((group) => group.calls.includes(this.call));
  }

  /** Choose a group: its call of the layer that is chosen now, else its first. */
  chooseGroup(number: number): void {
    this.choose(this.sameCall(number));
  }

  /** A group's call of the layer that is chosen now, else its first. */
  sameCall(group: number): number {
    const { layer, nth } = this.description;
    const { calls } = this.groups[group]!;
    return calls.find((each) => this.page.calls[each]!.layer === layer && this.page.calls[each]!.nth === nth) ?? calls[0]!;
  }

  /** Choose a call, and keep of head and token what it has as well: of another text the same word, else its last. */
  choose(call: number, head: number | null = this.head): void {
    const { own, token } = this;
    const sameText = this.page.calls[call]!.queries === this.description.queries && this.page.calls[call]!.keys === this.description.keys;
    this.call = call;
    this.head = head !== null && head < this.description.heads ? head : null;
    if (!sameText && token !== null) this.token = sameWord(own, token, this.own) ?? lastWord(this.own);
  }

  /** Look from the other side. The token stays where both sides are of one text. */
  turn(side: Side): void {
    if (side === this.side) return;
    if (this.description.queries !== this.description.keys) this.token = null;
    this.side = side;
  }

  /** The number that a head of the chosen call has in the model. */
  numberOf(head: number): number {
    return headNumber(this.description, head);
  }

  /** What a view shows now, in a line: its name, text, layer, head and token. */
  said({ name, own = false }: { name: string; own?: boolean }): string {
    const text = this.groups.length > 1 ? this.groups[this.group]!.name : "";
    const where = this.shows.where ?? (own ? "" : `${this.description.name}, ${this.headName}`);
    return [name, own ? "" : text, where, this.shows.what ?? ""].filter(Boolean).join(" · ");
  }

  get headName(): string {
    const { heads, head_numbers } = this.description;
    if (this.head === null && head_numbers && heads > 1) return `mean of heads ${head_numbers.join(", ")}`;
    return this.head === null ? (heads === 1 ? "its one head" : `mean of ${heads} heads`) : `head ${this.numberOf(this.head)}`;
  }
}

const [BEGINNING, END] = [8, 18]; // characters of a text that tell it from others

function groupOf(queries: Text, keys: Text): Group {
  if (queries !== keys) return { name: `${queries.name} → ${keys.name}`, label: `${queries.name} → ${keys.name}`, calls: [] };
  const characters = Array.from(queries.text.replaceAll(/\s+/g, " ").trim());
  const short = characters.length <= BEGINNING + END + 3;
  const shown = short ? characters.join("") : `${characters.slice(0, BEGINNING).join("").trim()} … ${characters.slice(-END).join("").trim()}`;
  return { name: queries.name, label: shown ? `${queries.name}: ${shown}` : queries.name, calls: [] };
}

function groupsOf(page: Page): Group[] {
  const groups = new Map<string, Group>();
  page.calls.forEach((call, number) => {
    const key = `${call.part} ${call.queries} ${call.keys}`;
    if (!groups.has(key)) groups.set(key, groupOf(page.texts[call.queries]!, page.texts[call.keys]!));
    groups.get(key)!.calls.push(number);
  });
  return [...groups.values()];
}
