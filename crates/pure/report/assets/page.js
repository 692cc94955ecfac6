// What a page can do beyond being read: sort its tables, show the value under a pointer, choose what is drawn large, and print
// what is folded. Nothing is missing without it.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  document.documentElement.classList.add("scripted");

  // Tables. A column is sorted by data-sort as a number where a cell has it, else by its text, as a number where it is one. Cells
  // without a value stay last in either direction.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return null;
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const text = cell.firstChild ? cell.firstChild.textContent : "";
    if (text === "" || text === "–") return null;
    const number = Number(text.replaceAll(",", ""));
    return Number.isNaN(number) ? cell.textContent : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const sort = (header) => {
    const table = header.closest("table");
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of all("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: keyOf(row, header.cellIndex) }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return down ? compare(b.key, a.key) : compare(a.key, b.key);
    });
    table.tBodies[0].append(...rows.map((entry) => entry.row));
  };
  for (const header of all("th[data-sorts]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.setAttribute("aria-sort", "none");
    header.append(button);
  }

  // Values: what is next to the pointer, within a finger's breadth.
  const REACH_PX = 24;
  const reading = document.createElement("div");
  reading.className = "reading";
  reading.hidden = true;
  document.body.append(reading);
  const known = new WeakMap();
  const marksOf = (chart) => {
    if (!known.has(chart)) {
      const titles = all("title", chart).filter((title) => title.parentElement !== chart);
      known.set(chart, titles.map((title) => {
        const mark = { element: title.parentElement, text: title.textContent };
        title.remove();
        return mark;
      }));
    }
    return known.get(chart);
  };
  const beyond = (from, to, at) => Math.max(from - at, 0, at - to);
  const read = (event) => {
    reading.hidden = true;
    const chart = event.target.closest ? event.target.closest("svg.chart:not(.sample)") : null;
    if (!chart) return;
    let nearest = null;
    let least = REACH_PX;
    for (const mark of marksOf(chart)) {
      const box = mark.element.getBoundingClientRect();
      const across = beyond(box.left, box.right, event.clientX);
      const distance = Math.hypot(across, beyond(box.top, box.bottom, event.clientY));
      // Of those that overlap the last is on top.
      if (distance <= least) [nearest, least] = [mark, distance];
    }
    if (!nearest) return;
    reading.textContent = nearest.text;
    reading.hidden = false;
    const { width, height } = reading.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const top = event.clientY - height - 12;
    reading.style.left = `${Math.max(8, left)}px`;
    reading.style.top = `${top < 8 ? event.clientY + 18 : top}px`;
  };
  document.addEventListener("pointermove", read);
  document.addEventListener("pointerdown", read);

  // Variants: the chosen one is shown large, the others stay where they are folded away.
  for (const drawing of all(".drawing[data-choice]")) {
    const [shown, others] = [drawing.querySelector(".shown"), drawing.querySelector(".multiples")];
    const variants = all(".variant", drawing).sort((a, b) => a.dataset.at - b.dataset.at);
    const label = document.createElement("label");
    const select = document.createElement("select");
    for (const variant of variants) select.append(new Option(variant.querySelector("h4").textContent, variant.dataset.at));
    select.value = shown.firstElementChild.dataset.at;
    select.addEventListener("change", () => {
      const chosen = variants.find((variant) => variant.dataset.at === select.value);
      others.append(...variants.filter((variant) => variant !== chosen));
      shown.append(chosen);
    });
    label.className = "choice";
    const name = drawing.dataset.choice;
    label.append(name[0].toUpperCase() + name.slice(1), " ", select);
    drawing.prepend(label);
  }

  // Paper has no folds. Browsers that know ::details-content need no help.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
})();
