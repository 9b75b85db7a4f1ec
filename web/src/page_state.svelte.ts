// One selection runs through all views: which attention call, which head, which token, seen from which side.
import type { Source } from "./data/bytes";
import type { Call, Page, Text } from "./data/format";
import type { Sight } from "./cloud/camera";
import type { Place, Sight as MapSight } from "./map/camera";
import type { Attention } from "./attention/client";
import type { LoadedMask } from "./attention/mask";
import type { Group } from "./groups";
import type { Bundle } from "./views";
import { headNumber, lastWord, sameWord } from "./words";

/** What a view shows, where it is not the chosen layer and head alone: a picture is called by it. */
export interface Shows {
  where?: string; // layer and heads; "" for all of them
  what?: string;
  token?: string;
  head?: string; // what the choice of a head says in the place of "mean", where one is drawn
}

export type Side = "gives" | "receives"; // what a token looks at, or what looks at it

/** A head, a link of it, or one end of it: null what is not meant. */
export interface At {
  call: number;
  head: number | null;
  query: number | null;
  key: number | null;
}

/** What is in sight of the map of one matrix, and where its cursor is. */
export interface MapLook extends MapSight {
  place: Place | null;
  token: number | null; // that was chosen then
  shape: [number, number]; // queries and keys of the matrix
}

export class PageState {
  readonly id = `regard-${Math.random().toString(36).slice(2)}`; // for elements' ids and names: a notebook may show several pages
  private readonly weights: Attention | undefined;
  private readonly masks: ((call: number) => Promise<LoadedMask | null>) | undefined;
  readonly groups: Group[];

  view = $state("");
  call = $state(0);
  head = $state<number | null>(null); // null: the mean of heads
  token = $state<number | null>(null); // of the queries' text where side is "gives", else of the keys'
  found = $state(0); // how often a word was sought and its token chosen
  side = $state<Side>("gives");
  words = $state(false); // tokens of one word taken together
  dark = $state(false);
  shows = $state.raw<Shows>({}); // by the view
  acts: ((at: At) => [says: string, does: () => void][]) | null = null; // what a server can do at a head, a link or a token, in words
  readonly before = new Set<() => Promise<unknown>>(); // what views have to compute before a picture of them is whole
  choices = $state.raw<Record<string, unknown>>({}); // in single views (choice.ts)
  map = $state.raw<MapLook | null>(null); // null: the whole
  cloud = $state.raw<(Sight & { point: number | null }) | null>(null); // what is in sight of a cloud of points, and which is looked at

  constructor(
    readonly page: Page,
    readonly source: Source,
    readonly bundle: Bundle,
  ) {
    this.weights = bundle.attention?.attend(this);
    this.masks = bundle.attention?.maskReader(page, source);
    this.groups = bundle.attention?.groupsOf(page) ?? [];
    this.view = page.opening.view;
    this.call = page.opening.call;
    this.head = page.opening.head;
    this.token = page.opening.token;
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

  /** A group's call of the layer of another call, else its first. */
  sameCall(group: number, call = this.call): number {
    const { layer, nth } = this.page.calls[call]!;
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

  /** What is chosen: a head and one end of its links. */
  get at(): At {
    const { call, head, token, side } = this;
    return { call, head, query: side === "gives" ? token : null, key: side === "gives" ? null : token };
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

  /** What a view shows now: its name, text, layer and head, and what of them. */
  shown({ name, own = false }: { name: string; own?: boolean }): string[] {
    const text = this.groups.length > 1 ? this.groups[this.group]!.name : "";
    const { where = own ? "" : `${this.description.name}, ${this.headName}`, what = "" } = this.shows;
    return [name, own ? "" : text, where, what];
  }

  /** The same in a line. */
  said(view: { name: string; own?: boolean }): string {
    return this.shown(view).filter(Boolean).join(" · ");
  }

  get headName(): string {
    const { heads, head_numbers } = this.description;
    if (this.head === null && head_numbers && heads > 1) return `mean of heads ${head_numbers.join(", ")}`;
    return this.head === null ? (heads === 1 ? "its one head" : `mean of ${heads} heads`) : `head ${this.numberOf(this.head)}`;
  }
}
