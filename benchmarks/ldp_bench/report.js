"use strict";
// A click on a column's header sorts its table; another click reverses the order. Headers get buttons, so that
// the keyboard does the same. Cells without text stay at the end in both orders. Numbers are set flush right.
const number = (text) => {
  const found = /^-?(\d[\d,]*(\.\d+)?(e[-+]?\d+)?|∞)/.exec(text);
  return found ? Number(found[0].replaceAll(",", "").replace("∞", "Infinity")) : NaN;
};
const compareText = new Intl.Collator("en", { numeric: true }).compare;

for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];

  const sort = (column) => {
    const descending = headers[column].ariaSort === "ascending";
    for (const header of headers) header.ariaSort = "none";
    headers[column].ariaSort = descending ? "descending" : "ascending";
    const text = (row) => row.cells[column].textContent;
    const compare = (one, other) => {
      const [a, b] = [number(text(one)), number(text(other))];
      return isNaN(a) || isNaN(b) ? compareText(text(one), text(other)) : a - b || 0;
    };
    const rows = [...body.rows];
    const full = rows.filter((row) => text(row) !== "");
    full.sort((one, other) => compare(one, other) * (descending ? -1 : 1));
    body.append(...full, ...rows.filter((row) => text(row) === ""));
  };

  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.ariaSort = "none";
    button.addEventListener("click", () => sort(column));
    const cells = [...body.rows].map((row) => row.cells[column]);
    if (cells.some((cell) => cell.textContent) && cells.every((cell) => /^([-\d[∞]|$)/.test(cell.textContent)))
      for (const cell of [header, ...cells]) cell.classList.add("number");
    for (const cell of cells) if (cell.textContent.length > 60) cell.classList.add("wrap");
  });
}
