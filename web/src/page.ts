// Opens the page in a file: reads what it carries and puts the views where the sentences stand.
import { mount } from "svelte";
import App from "./App.svelte";
import { ScriptSource } from "./data/bytes";
import { FORMAT, VERSION, type Page } from "./data/format";
import { keepAddress } from "./kept_address.svelte";
import { PageState } from "./page_state.svelte";
import type { Bundle } from "./views";
import "./page.css";
import "./paper.css";

/** Open the page. bundle: the views that this file carries. */
export function open(bundle: Bundle): void {
  const page = JSON.parse(document.getElementById("regard-data")!.textContent!) as Page;
  const target = document.getElementById("regard-page")!;
  if (page.format !== FORMAT || page.version !== VERSION) {
    target.append(`This file carries ${page.format} version ${page.version}; its own script reads ${FORMAT} version ${VERSION}.`);
    return;
  }
  target.replaceChildren();
  const shared = new PageState(page, new ScriptSource(), bundle);
  keepAddress(shared);
  mount(App, { target, props: { page, shared } });
}
