// What every part of a page uses: making elements, numbers as text, colours of the theme.
// Texts of the report get into the page by `textContent` alone.

const page = { blocks: {}, themed: [], sized: [], partial: [] };

// Returns a value of the data, which may be deflated.
page.plain = (value) => (value && value.packed ? inflate.json(value.packed).value : value);

page.make = (name, className, text) => {
  const found = document.createElement(name);
  if (className) found.className = className;
  if (text !== undefined && text !== null) found.textContent = String(text);
  return found;
};

page.add = (parent, ...children) => {
  for (const child of children) if (child) parent.appendChild(child);
  return parent;
};

page.button = (text, label, act) => {
  const found = page.make("button", "", text);
  found.type = "button";
  if (label) found.setAttribute("aria-label", label);
  found.addEventListener("click", act);
  return found;
};

page.number = (value) => {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  if (Number.isInteger(value)) return value.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return Math.abs(value) >= 0.001 && Math.abs(value) < 1e6 ? String(+value.toPrecision(6)) : value.toExponential(4);
};

page.short = (value) => page.number(Number.isInteger(value) && Math.abs(value) < 1e5 ? value : +value.toPrecision(3));

page.percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "0.0 %");

// Colours by tone: [light, dark]; those of causes come with the page, for they are the same everywhere.
const TONES = {
  mixed: ["#5f6b7a", "#98a5b6"],
  window: ["#8fb4dc", "#3d6896"],
  chain: ["#222b38", "#e8edf4"], // no cause has it
  live: ["#bcd2ea", "#33506f"],
  read: ["#63a375", "#79c08d"],
  write: ["#e08a1e", "#f0a64a"],
  first: ["#2b6cb0", "#5a9fe0"],
  second: ["#e08a1e", "#f0a64a"],
  good: ["#3f8f5a", "#6cc088"],
  sound: ["#2f7a49", "#6cc088"],
  bad: ["#c0392b", "#ef6a5b"],
};
// Of Okabe and Ito, "Color Universal Design" (2008), but for black: colour-blind readers tell them apart.
const SERIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#999999"];

page.isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

page.colour = (tone, number = 0) => {
  return Object.hasOwn(TONES, tone) ? TONES[tone][page.isDark() ? 1 : 0] : SERIES[number % SERIES.length];
};

// Gives the tones to the style sheet too, each as `--tone-NAME`.
page.paintTones = () => {
  const { style } = document.documentElement;
  for (const tone of Object.keys(TONES)) style.setProperty(`--tone-${tone}`, page.colour(tone));
  style.setProperty("--on-tone", page.isDark() ? "#0c1117" : "#ffffff");
};

page.ink = () => {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return { ink: value("--ink"), dim: value("--dim"), rule: value("--rule"), paper: value("--paper"),
           panel: value("--panel"), accent: value("--accent") };
};

// Draws again what has colours, after the theme has changed.
page.onTheme = (draw) => { page.themed.push(draw); };

page.legend = (entries) => {
  const list = page.make("ul", "legend");
  const marks = entries.map(({ name, tone }, number) => {
    const mark = page.make("i");
    page.add(list, page.add(page.make("li"), mark, document.createTextNode(name)));
    return [mark, tone, number];
  });
  const paint = () => { for (const [mark, tone, number] of marks) mark.style.background = page.colour(tone, number); };
  paint();
  page.onTheme(paint);
  return list;
};

page.showTheme = (button) => {
  const names = { "": "system", light: "light", dark: "dark" };
  button.textContent = `Theme: ${names[document.documentElement.dataset.theme || ""]}`;
};

page.nextTheme = (button) => {
  const root = document.documentElement;
  const next = { "": "dark", dark: "light", light: "" }[root.dataset.theme || ""];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  page.showTheme(button);
  for (const draw of page.themed) draw();
};

// Adds a text, in which backquotes hold code.
page.withCode = (found, text) => {
  text.split(/`([^`]+)`/).forEach((part, number) => (number % 2 ? page.add(found, page.make("code", "", part)) : page.withLinks(found, part)));
  return found;
};

// Leads to a line of the program, if the page shows it.
page.rowOfLine = (line) => document.querySelector(`tr[data-line="${Number(line)}"]`);

// Adds a text to an element; "line 39" leads there where the page shows the program.
page.withLinks = (found, text) => {
  const listed = page.data.sections.some(({ blocks }) => blocks.some(({ kind }) => kind === "program"));
  const parts = listed ? text.split(/\b([Ll]ine \d+)\b/) : [text];
  parts.forEach((part, number) => {
    const link = number % 2 ? page.make("a", "", part) : document.createTextNode(part);
    if (number % 2) link.href = `#line-${part.slice(5)}`;
    page.add(found, link);
  });
  return found;
};

// The address of the page says which line, which cycles of the timeline and which operation are shown:
// #line-39&cycles-100-900&operation-7. Names of sections stand alone.
page.address = {};

page.followAddress = () => {
  const found = {};
  for (const part of location.hash.slice(1).split("&")) {
    const [, name, first, last] = /^(line|cycles|operation)-(\d+)(?:-(\d+))?$/.exec(part) || [];
    if (name) found[name] = name === "cycles" ? `${first}-${last}` : first;
  }
  if (!Object.keys(found).length) return;
  page.address = found;
  if (found.line) page.showLine(found.line);
  if (page.blocks.lanes && (found.cycles || found.operation)) lanes.follow(found);
};

// Puts what is shown into the address; `changes` of undefined are taken out.
page.writeAddress = (changes) => {
  const wanted = { ...page.address, ...changes };
  page.address = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
  const parts = ["line", "cycles", "operation"].filter((name) => page.address[name] !== undefined);
  const hash = parts.map((name) => `${name}-${page.address[name]}`).join("&");
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
};

page.goToLine = (line) => {
  page.showLine(line);
  if (page.rowOfLine(line)) page.writeAddress({ line: String(line) });
};

// Copies a text; where that is not allowed, says so.
page.copyButton = (what, text) => {
  const found = page.button("Copy", `copy ${what}`, async () => {
    try {
      await navigator.clipboard.writeText(text());
      found.textContent = "Copied";
    } catch {
      found.textContent = "Not allowed here";
    }
    setTimeout(() => { found.textContent = "Copy"; }, 1500);
  });
  return found;
};

// Marks the next row, line or listing that holds what was typed, and says how many there are; opens what is folded.
page.startSearch = () => {
  const field = document.getElementById("search");
  const told = field.nextElementSibling;
  let at = -1;
  let places = [];
  const find = () => {
    const text = field.value.trim().toLowerCase();
    for (const complete of page.partial.splice(0)) complete(); // rows that tables have not made yet
    const all = text ? [...document.querySelectorAll("main tr, main .line, main .source")] : [];
    places = all.filter((each) => each.textContent.toLowerCase().includes(text));
    at = -1;
    told.textContent = text ? `${page.number(places.length)} found` : "";
  };
  const go = (by) => {
    if (!places.length) return;
    at = (at + by + places.length) % places.length;
    const place = places[at];
    told.textContent = `${page.number(at + 1)} of ${page.number(places.length)}`;
    if (place.unfold && place.hidden) place.unfold();
    for (let above = place; above; above = above.parentElement) if (above.tagName === "DETAILS") above.open = true;
    for (const other of document.querySelectorAll(".found")) other.classList.remove("found");
    place.classList.add("found");
    place.scrollIntoView({ block: "center" });
  };
  field.addEventListener("input", find);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { field.value = ""; find(); }
  });
};

page.showLine = (line) => {
  const row = page.rowOfLine(line);
  if (!row) return;
  if (row.unfold && row.hidden) row.unfold();
  for (const other of document.querySelectorAll(".found")) other.classList.remove("found");
  row.classList.add("found");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
};

page.lineButton = (line) => page.button(`line ${line}`, `go to line ${line} of the program`, () => page.goToLine(line));
