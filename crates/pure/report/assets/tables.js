// Sorts a table by the header that is activated: by data-sort as a number where a cell has it, else by
// its text, as a number where it is one. Cells without a value stay last in either direction.
"use strict";
(() => {
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
    for (const other of table.tHead.rows[0].cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: keyOf(row, header.cellIndex) }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return down ? compare(b.key, a.key) : compare(a.key, b.key);
    });
    table.tBodies[0].append(...rows.map((entry) => entry.row));
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("table.sortable th button");
    if (button) sort(button.closest("th"));
  });

  // Long tables that are folded away stand there packed.
  for (const packed of document.querySelectorAll("details script[data-filled]")) {
    const place = packed.parentElement;
    unpack(packed).then((rows) => place.insertAdjacentHTML("beforeend", rows));
  }
})();
