// The theme searches for all words as they are typed, and takes dashes before a word as "not". Here questions lose the
// words that say nothing, words their endings, options their dashes; a word as it is written counts more than its stem.
const SILENT = new Set(("a an and are as at be between by can castsim do does find for from get give given gives has have how i if in into is it its " +
  "make many me much my of on or out should so take takes than that the there this to use using was what when where which who why will with you").split(" "));
const NAMES = [[/^(u?)int(\d+)$/, (_, unsigned, bits) => `${unsigned || "i"}${bits}`], [/^(?:fp|float)(16|32|64)$/, "f$1"], [/^bfloat16$/, "bf16"]];
const ENDINGS = /(ators?|ations?|ating|ates?|ated|ings?|ions?|ies|ed|es|e|s)$/;
const plain = (query) => {
  const words = query.toLowerCase().split(/(?:\s|[,:;!?=[\]()"`/>]|-|\.(?!\d))+/).filter(Boolean);
  const telling = words.filter((word) => !SILENT.has(word));
  return (telling.length ? telling : words).map((word) => {
    const name = NAMES.reduce((text, [pattern, into]) => text.replace(pattern, into), word.length > 6 ? word.replace(/iz(e|at|ing)/, "is$1") : word);
    const stem = name.length > 5 ? name.replace(ENDINGS, "") : name.replace(/(?<=\w{3})s$/, "");
    return `${name}^4 ${stem}`;
  }).join(" ");
};
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  return post.call(this, message?.type === 2 ? { ...message, data: plain(message.data) } : message, ...rest);
};

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
