// Marks tables that are wider than the page, so that style.css sets them tighter, or says that they scroll.
function markWideTables() {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    wrap.classList.remove("dense", "wide");
    for (const step of ["dense", "wide"]) wrap.classList.toggle(step, wrap.scrollWidth > wrap.clientWidth + 1);
  }
}
for (const event of ["load", "resize", "toggle"]) addEventListener(event, markWideTables, true);

// A picture opens at full size when it is touched.
for (const picture of document.querySelectorAll("article p > img")) {
  const link = document.createElement("a");
  link.href = picture.src;
  picture.replaceWith(link);
  link.append(picture);
}
