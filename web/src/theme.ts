// Light or dark: as the system says, in a file; as what stands behind the page is coloured, in a notebook.
import { luminance } from "./parts/colours";

/** Tells whether it is dark, now and whenever that changes; returns how to end it. */
export type Theme = (tell: (dark: boolean) => void) => () => void;

/** What the system prefers. */
export const systemTheme: Theme = (tell) => {
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  const changed = () => tell(darkness.matches);
  changed();
  darkness.addEventListener("change", changed);
  return () => darkness.removeEventListener("change", changed);
};

/** The same theme, but light while the page is printed, as paper is. flush: puts what was told on the page, which is drawn at once. */
export function lightOnPaper(theme: Theme, flush: () => void): Theme {
  return (tell) => {
    let [dark, printing] = [false, false];
    const print = (now: boolean) => {
      printing = now;
      tell(dark && !printing);
      flush();
    };
    const [before, after] = [() => print(true), () => print(false)];
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    const unfollow = theme((now) => tell((dark = now) && !printing));
    return () => {
      unfollow();
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  };
}

/** The colour that an element stands on, whatever the host calls its themes. They are switched by attributes, or by style sheets. */
export function themeBehind(element: HTMLElement): Theme {
  return (tell) => {
    let [was, soon]: [boolean | null, number | undefined] = [null, undefined];
    const look = () => {
      const dark = isDark(element);
      if (dark !== was) tell((was = dark));
    };
    const changed = () => {
      clearTimeout(soon);
      look();
      soon = setTimeout(look, 300); // a colour may change step by step, or when a style sheet has been read
    };
    const watch = new MutationObserver(changed);
    for (const each of [document.documentElement, document.body]) watch.observe(each, { attributes: true });
    watch.observe(document.head, { childList: true });
    const ended = systemTheme(changed);
    const seen = new IntersectionObserver(changed); // at first the element may stand nowhere
    seen.observe(element);
    return () => {
      clearTimeout(soon);
      watch.disconnect();
      seen.disconnect();
      ended();
    };
  };
}

/** The element around one, out of shadow trees too, in which some hosts put widgets. */
function above(element: Element): Element | null {
  return element.parentElement ?? (element.getRootNode() as Partial<ShadowRoot>).host ?? null;
}

function isDark(element: HTMLElement): boolean {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext("2d", { willReadFrequently: true })!;
  for (let each = above(element); each; each = above(each)) {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = getComputedStyle(each).backgroundColor; // in whatever notation
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b, opacity] = paint.getImageData(0, 0, 1, 1).data;
    if (opacity! > 127) return luminance([r!, g!, b!]) < 0.179;
  }
  return false; // an empty page is white
}
