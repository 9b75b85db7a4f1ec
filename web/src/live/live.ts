// Opens the page that a server serves. The link's token is taken out of the address bar: a cookie carries it from here.
import { mount } from "svelte";
import Live from "./Live.svelte";
import "../page.css";
import "../paper.css";

if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", `/${location.hash}`);
const target = document.getElementById("regard-live")!;
target.replaceChildren();
mount(Live, { target });
