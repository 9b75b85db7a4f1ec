// A field above each folded table: what is typed there finds rows. A link into a folded section opens it.
document$.subscribe(() => {
  for (const box of document.querySelectorAll("details.rows:not(.has-field)")) {
    box.classList.add("has-field");
    const rows = [...box.querySelectorAll("tbody tr")];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const summary = box.querySelector("summary");
    const all = summary.textContent;
    const field = document.createElement("input");
    field.type = "search";
    field.className = "find-rows";
    field.placeholder = "Find rows, such as " + rows[0].cells[0].textContent;
    field.setAttribute("aria-label", "Find rows of the table");
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      rows.forEach((row, n) => {
        row.hidden = !words.every((word) => texts[n].includes(word));
        count += row.hidden ? 0 : 1;
      });
      box.open = words.length > 0;
      summary.textContent = words.length ? `${count} of ${rows.length} rows` : all;
    });
    box.before(field);
  }
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let box = target; box; box = box.parentElement?.closest("details")) if (box.tagName === "DETAILS") box.open = true;
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  open();
});
