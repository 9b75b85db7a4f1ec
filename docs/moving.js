// The numbers of a lesson that a reader moves: softmax in the page, in float64, from the numbers the lesson computed.
const softmax = (scores) => {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top)); // exp(-Infinity) is 0: masked
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
};
const dot = (a, b) => a.reduce((sum, x, n) => sum + x * b[n], 0);
const fixed = (x, digits) => (x.toFixed(digits) === "-" + (0).toFixed(digits) ? (0).toFixed(digits) : x.toFixed(digits));

const element = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "line", "circle", "text"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

// A row for each key: its name, its numbers, a bar as long as its weight.
const rows = (table, heads, names, columns, weights) => {
  const cells = (n) => columns.map(([values, digits]) => element("td", {}, fixed(values[n], digits)));
  const bar = (n) => element("td", { class: "bar" }, element("i", { style: `width: ${100 * weights[n]}%` }));
  table.replaceChildren(
    element("tr", {}, element("th"), ...heads.map((head) => element("th", { scope: "col" }, head))),
    ...names.map((name, n) => element("tr", {}, element("th", { scope: "row" }, name), ...cells(n), bar(n))),
  );
};

const temperature = (box, { names, products, divisor, query }) => {
  // the slider is a logarithm: 0.5 to 100, with √d_k exactly where it begins
  const slider = element("input", { type: "range", min: Math.log(0.5), max: Math.log(100), step: "any", "aria-label": "divisor" });
  slider.value = Math.log(divisor);
  let by = divisor;
  const said = element("output");
  const table = element("table", { class: "numbers" });
  const back = element("button", { type: "button", class: "md-button" }, `√d = ${fixed(divisor, 2)}`);
  const draw = () => {
    const scores = products.map((product) => product / by);
    said.textContent = fixed(by, 2);
    slider.setAttribute("aria-valuetext", said.textContent);
    rows(table, ["q · k", "divided", "weight"], names, [[products, 2], [scores, 2], [softmax(scores), 4]], softmax(scores));
  };
  slider.addEventListener("input", () => { by = Math.exp(slider.valueAsNumber); draw(); });
  back.addEventListener("click", () => { by = divisor; slider.value = Math.log(by); draw(); });
  box.replaceChildren(element("p", {}, `Weights of “${query}”. Divide its scores by less, and one word takes all.`));
  box.append(element("label", {}, "divided by", slider, said, back), table);
  draw();
};

const query = (box, { names, query: start, key, value }) => {
  const edge = 1.8;
  const svg = element("svg", { viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}`, tabindex: 0, role: "application", "aria-label": "the query: drag it, or move it with the arrow keys" });
  const arrow = element("line", { class: "arrow", x1: 0, y1: 0 });
  const point = element("circle", { class: "query", r: 0.1 });
  svg.append(element("line", { x1: -edge, x2: edge, y1: 0, y2: 0, "stroke-width": 0.01 }), element("line", { y1: -edge, y2: edge, x1: 0, x2: 0, "stroke-width": 0.01 }), arrow);
  key.forEach(([x, y], n) => svg.append(element("circle", { class: "key", cx: x, cy: -y, r: 0.07 }), element("text", { x: x + 0.12, y: -y + (n % 2 ? 0.05 : -0.1) + (n > 1 ? 0.35 : 0) }, names[n])));
  svg.append(point);
  const told = element("p", { "aria-live": "polite" });
  const table = element("table", { class: "numbers" });
  let q = [...start];
  const draw = () => {
    for (const [name, v] of [["cx", q[0]], ["cy", -q[1]]]) point.setAttribute(name, v);
    for (const [name, v] of [["x2", q[0]], ["y2", -q[1]]]) arrow.setAttribute(name, v);
    const scores = key.map((k) => dot(q, k) / Math.SQRT2);
    const weights = softmax(scores);
    const mixed = value[0].map((_, n) => dot(weights, value.map((row) => row[n])));
    rows(table, ["q · k / √2", "weight"], names, [[scores, 3], [weights, 3]], weights);
    told.textContent = `query (${q.map((x) => fixed(x, 2)).join(", ")}) → output (${mixed.map((x) => fixed(x, 3)).join(", ")})`;
  };
  const put = (x, y) => { q = [x, y].map((c) => Math.round(100 * Math.min(edge, Math.max(-edge, c))) / 100); draw(); };
  const move = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    put(at.x, -at.y);
  };
  svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); move(event); });
  svg.addEventListener("pointermove", (event) => svg.hasPointerCapture(event.pointerId) && move(event));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!step) return;
    event.preventDefault();
    put(q[0] + step[0], q[1] + step[1]);
  });
  box.replaceChildren(element("p", {}, "Drag the query. It attends most to the key that lies farthest in its direction."));
  box.append(element("div", { class: "columns" }, svg, table), told);
  draw();
};

const mask = (box, { names, scores }) => {
  const on = element("input", { type: "checkbox", checked: "" });
  const table = element("table", { class: "weights" });
  const draw = () => {
    const weights = scores.map((row, n) => softmax(row.map((score, m) => (on.checked && m > n ? -Infinity : score))));
    table.replaceChildren(
      element("tr", {}, element("th"), ...names.map((name) => element("th", { scope: "col" }, name))),
      ...weights.map((row, n) => element("tr", {}, element("th", { scope: "row" }, names[n]), ...row.map((weight) => {
        const share = `color-mix(in srgb, var(--md-accent-fg-color) ${(85 * Math.sqrt(weight)).toFixed(1)}%, transparent)`;
        return element("td", { style: `background: ${share}` }, fixed(weight, 3));
      }))),
    );
  };
  on.addEventListener("change", draw);
  box.replaceChildren(element("label", {}, on, "causal mask: no word sees a later one"), element("div", { class: "scroll" }, table));
  draw();
};

document$.subscribe(() => {
  const kinds = { temperature, query, mask };
  for (const box of document.querySelectorAll(".moving[data-kind]")) kinds[box.dataset.kind](box, JSON.parse(box.dataset.numbers));
});
