// Parts of a view that scroll: a picture has all of what they hold where there is room for it, else what is in sight.

/** How the parts that scroll are drawn. */
export interface Scrolls {
  clipped: Set<Element>; // these show what is in sight alone
  restore(): void; // puts all back to where they were scrolled
}

/** Scroll all parts of a view to their beginning whose rest has room beside them. */
export function unscroll(view: Element): Scrolls {
  const scrollers = [...view.querySelectorAll("*")].filter(scrolls);
  const before = scrollers.map((each) => [each, each.scrollLeft, each.scrollTop] as const);
  for (const each of scrollers) [each.scrollLeft, each.scrollTop] = [0, 0];
  const clipped = new Set(scrollers.filter((each) => !isFree(view, each)));
  for (const [each, left, top] of before) if (clipped.has(each)) [each.scrollLeft, each.scrollTop] = [left, top];
  return {
    clipped,
    restore() {
      for (const [each, left, top] of before) [each.scrollLeft, each.scrollTop] = [left, top];
    },
  };
}

/** Whether an element holds more than it shows, and can be scrolled to it. */
function scrolls(element: Element): boolean {
  const wide = element.scrollWidth > element.clientWidth + 1;
  const tall = element.scrollHeight > element.clientHeight + 1;
  if (!wide && !tall) return false;
  const { overflowX, overflowY } = getComputedStyle(element);
  return (wide && /auto|scroll/.test(overflowX)) || (tall && /auto|scroll/.test(overflowY) && overflowY !== overflowX) || (tall && wide && /auto|scroll/.test(overflowY));
}

/** Whether nothing else of the view stands where the rest would be. */
function isFree(view: Element, scroller: Element): boolean {
  const { left, top } = scroller.getBoundingClientRect();
  const [right, bottom] = [left + scroller.scrollWidth, top + scroller.scrollHeight];
  for (const each of view.querySelectorAll("*")) {
    if (each.childElementCount || each.contains(scroller) || scroller.contains(each)) continue;
    const box = each.getBoundingClientRect();
    if (box.width && box.height && box.left < right - 1 && box.right > left + 1 && box.top < bottom - 1 && box.bottom > top + 1) return false;
  }
  return true;
}
