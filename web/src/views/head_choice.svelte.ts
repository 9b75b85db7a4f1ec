// Which heads are shown together: all, one, or some; one and all are the page's own choice of head.
import { below, choice, type Choice } from "../choice";
import type { PageState } from "../page_state.svelte";

export class HeadChoice {
  private readonly some: Choice<number[] | null>; // null: as the page's choice says

  constructor(private readonly shared: PageState) {
    this.some = choice<number[] | null>(shared, "lines heads", null, (value) => Array.isArray(value) && value.every(below(Infinity)));
    $effect(() => {
      if (shared.head !== null) this.some.value = null;
    });
  }

  /** The heads that are shown, in order. */
  get shown(): number[] {
    const { head, description } = this.shared;
    if (head !== null) return [head];
    const some = this.some.value?.filter((each) => each < description.heads);
    return some?.length ? some : Array.from({ length: description.heads }, (_, h) => h);
  }

  /** Switch a head on or off; the last one stays on. */
  turn(head: number): void {
    const { shown } = this;
    const next = shown.includes(head) ? shown.filter((each) => each !== head) : [...shown, head].sort((a, b) => a - b);
    if (next.length) this.choose(next);
  }

  /** Show some heads, or all. */
  choose(heads: number[] | null): void {
    const count = this.shared.description.heads;
    const one = heads?.length === 1 && count > 1;
    this.some.value = heads === null || one || heads.length === count ? null : heads;
    this.shared.head = one ? heads[0]! : null;
  }

  /** What they are called together. */
  get name(): string {
    const { shown } = this;
    const count = this.shared.description.heads;
    if (shown.length === 1) return count === 1 ? "its one head" : `head ${this.shared.numberOf(shown[0]!)}`;
    return shown.length === count ? `mean of ${count} heads` : `mean of heads ${shown.map((head) => this.shared.numberOf(head)).join(", ")}`;
  }
}
