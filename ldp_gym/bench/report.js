"use strict";
// A click on a column's header sorts its table by it; another click turns the order round. Headers hold
// buttons, so that the keyboard does the same. Cells without a value stay at the end in both orders.
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  const compareText = new Intl.Collator("en", { numeric: true }).compare;

  const compare = (one, other) =>
    "value" in one.dataset && "value" in other.dataset
      ? Number(one.dataset.value) - Number(other.dataset.value) || 0 // inf - inf is no number
      : compareText(one.textContent, other.textContent);

  const sort = (column) => {
    const descending = headers[column].ariaSort === "ascending";
    for (const header of headers) header.ariaSort = "none";
    headers[column].ariaSort = descending ? "descending" : "ascending";
    const body = table.tBodies[0];
    const cell = (row) => row.cells[column];
    const rows = [...body.rows];
    const full = rows.filter((row) => cell(row).textContent !== "");
    const empty = rows.filter((row) => cell(row).textContent === "");
    full.sort((one, other) => compare(cell(one), cell(other)) * (descending ? -1 : 1));
    body.append(...full, ...empty);
  };

  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => sort(column));
  });
}
