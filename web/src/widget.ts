// The page in a notebook: anywidget calls `render` for every place where the widget is shown.
import { mount, unmount } from "svelte";
import App from "./App.svelte";
import { EVERYTHING } from "./bundles/everything";
import type { Source } from "./data/bytes";
import { FORMAT, VERSION, type Page } from "./data/format";
import { keepEqual, type Model } from "./equal_traits.svelte";
import { PageState } from "./page_state.svelte";
import { themeBehind } from "./theme";
import { viewsOf } from "./views";
import "./page.css";
import "./paper.css";
import "./bare.css";

/** The numbers that came with the widget, as bytes. */
class BufferSource implements Source {
  constructor(private readonly model: Model) {}

  bytes(at: number): Uint8Array {
    const view = (this.model.get("numbers") as (DataView | undefined)[])[at];
    if (!view) throw new Error(`numbers ${at} are missing: the widget is incomplete`);
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  }
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const page = model.get("page") as Page;
  if (page.format !== FORMAT || page.version !== VERSION) {
    el.append(`The widget carries ${page.format} version ${page.version}; its own script reads ${FORMAT} version ${VERSION}.`);
    return () => el.replaceChildren();
  }
  const shared = new PageState(page, new BufferSource(model), EVERYTHING);
  const views = viewsOf(page, EVERYTHING).flatMap((view) => view.shows ?? [view.id]);
  model.set("views", views);
  const unlink = keepEqual(shared, model, views);
  el.classList.toggle("regard-bare", !!model.get("_bare"));
  const app = mount(App, { target: el, props: { page, shared, theme: themeBehind(el) } });
  const freed = keepKeys(el);
  const covered = coverStatic(model.get("_static_id") as string);
  return () => {
    covered();
    freed();
    unlink();
    void unmount(app);
  };
}

/** Keep keys that move through the page from being a notebook's commands as well. */
function keepKeys(el: HTMLElement): () => void {
  const keep = (event: KeyboardEvent) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && event.key !== "Escape") event.stopPropagation();
  };
  el.dataset.lmSuppressShortcuts = "true"; // as JupyterLab reads it
  el.addEventListener("keydown", keep);
  return () => el.removeEventListener("keydown", keep);
}

/** Hide the sentences that a saved notebook shows, while the page itself is there. */
function coverStatic(id: string): () => void {
  const style = document.createElement("style");
  style.textContent = `.${CSS.escape(id)} { display: none }`;
  document.head.append(style);
  return () => style.remove();
}

export default { render };
