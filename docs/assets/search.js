// Dashes before a word exclude it from a search; whoever looks for an option means the option.
for (const kind of ["input", "keyup"]) {
  document.addEventListener(kind, ({ target }) => {
    if (target.name === "query" && /(^|\s)-+\w/.test(target.value)) target.value = target.value.replace(/(^|\s)-+(?=\w)/g, "$1");
  }, true);
}

// The theme leaves the search and some lists of pages without names for those who hear the page.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  const taken = new Set();
  for (const list of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
    const label = list.parentElement.querySelector("a, label")?.textContent.trim() || "Pages";
    let name = label;
    for (let number = 2; taken.has(name); number++) name = `${label} ${number}`;
    taken.add(name);
    list.removeAttribute("aria-labelledby");
    list.setAttribute("aria-label", name);
  }
  // These the theme makes later: the buttons of a text, and the frames in which wide tables scroll.
  const late = () => {
    document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((each) => {
      each.setAttribute("aria-label", `Text ${taken.size}`);
      taken.add(`Text ${taken.size}`);
    });
    document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((each) => { each.tabIndex = 0; });
  };
  new MutationObserver(late).observe(document.body, { childList: true, subtree: true });
  late();
});
