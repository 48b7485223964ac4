// What every part of a page uses: making elements, numbers as text, colours of the theme.
// Texts of the report get into the page by `textContent` alone.

const page = { blocks: {}, themed: [], sized: [], partial: [], places: new Map() };

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

// Colours by tone and of other things, each [light, dark, hatching], which come with the page: they are the same everywhere.
const TONES = {};
const SERIES = [];

page.isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

page.shade = (tone, number = 0) => (Object.hasOwn(TONES, tone) ? TONES[tone] : SERIES[number % SERIES.length]);

page.colour = (tone, number) => page.shade(tone, number)[page.isDark() ? 1 : 0];

page.isBright = (colour) => {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 125;
};

// What is written on a colour.
page.onColour = (colour) => (page.isBright(colour) ? "#0c1117" : "#ffffff");

const HATCHES = { "/": [135], "\\": [45], "|": [90], "-": [0], x: [45, 135], "+": [0, 90], ".": ["1"], o: ["2"] };

// Colours an element, with the hatching of its tone.
page.paint = (element, tone, number) => {
  const colour = page.colour(tone, number);
  const [, , hatch] = page.shade(tone, number);
  const ink = page.isBright(colour) ? "rgb(0 0 0 / .5)" : "rgb(255 255 255 / .6)";
  const step = hatch.length > 1 ? 3 : 5;
  const layers = (HATCHES[hatch[0]] || []).map((mark) => (typeof mark === "number"
    ? `repeating-linear-gradient(${mark}deg, ${ink} 0 1px, transparent 1px ${step}px)`
    : `radial-gradient(circle, ${ink} ${mark}px, transparent ${mark}.4px) 0 0 / ${step}px ${step}px`));
  element.style.background = [...layers, colour].join(", ");
};

const TILES = {};

// A colour as charts fill with it, with its hatching.
page.fill = (tone, number) => {
  const colour = page.colour(tone, number);
  const [, , hatch] = page.shade(tone, number);
  if (!hatch) return colour;
  return (TILES[colour + hatch] ||= { image: page.tile(colour, hatch), repeat: "repeat" });
};

page.tile = (colour, hatch) => {
  const tile = page.make("canvas");
  const size = hatch.length > 1 ? 5 : 8;
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = pen.fillStyle = page.isBright(colour) ? "rgb(0 0 0 / .45)" : "rgb(255 255 255 / .5)";
  for (const mark of HATCHES[hatch[0]]) {
    pen.beginPath();
    if (typeof mark === "string") pen.arc(size / 2, size / 2, Number(mark), 0, 7);
    else if (mark % 90) for (const by of [-size, 0, size]) {
      pen.moveTo(by - 1, mark === 45 ? -1 : size + 1);
      pen.lineTo(by + size + 1, mark === 45 ? size + 1 : -1);
    } else if (mark) { pen.moveTo(size / 2, 0); pen.lineTo(size / 2, size); }
    else { pen.moveTo(0, size / 2); pen.lineTo(size, size / 2); }
    if (typeof mark === "string") pen.fill(); else pen.stroke();
  }
  return tile;
};

// The tones of names in one chart: a name with a tone of its own, or with a word that has one (a chip), always has it;
// all others have the colours that are left, the same name the same one wherever that is free.
page.tonesOf = (names) => {
  const own = names.map((name) => [name, ...String(name).split(/[\s,=]+/)].find((word) => Object.hasOwn(TONES, word)));
  const taken = new Set(own.filter(Boolean).map((tone) => TONES[tone][0]));
  return names.map((name, k) => {
    if (own[k]) return { tone: own[k], number: 0 };
    let number = page.places.get(name) ?? page.places.set(name, page.places.size).get(name);
    for (let tried = 0; taken.has(page.shade("", number)[0]) && tried < SERIES.length; tried += 1) number += 1;
    taken.add(page.shade("", number)[0]);
    return { tone: "", number };
  });
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
  const marks = entries.map(({ name, tone, number: at }, number) => {
    const mark = page.make("i");
    page.add(list, page.add(page.make("li"), mark, document.createTextNode(name)));
    return [mark, tone, at ?? number];
  });
  const paint = () => { for (const [mark, tone, number] of marks) page.paint(mark, tone, number); };
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
page.rowOfLine = (line) => {
  for (const complete of page.partial) complete(Number(line));
  return document.querySelector(`tr[data-line="${Number(line)}"]`);
};

// Adds a text to an element; "line 39" and each number of "lines 16, 17" lead there where the page shows the program.
page.withLinks = (found, text) => {
  const listed = page.data.sections.some(({ blocks }) => blocks.some(({ kind }) => kind === "program"));
  const link = (part, line) => {
    const made = page.add(found, page.make("a", "", part)).lastChild;
    made.href = `#line-${line}`;
  };
  const parts = listed ? text.split(/\b([Ll]ine \d+|[Ll]ines \d+(?:(?:, | and | -> )\d+\b(?! more))*)/) : [text];
  parts.forEach((part, number) => {
    if (!(number % 2)) page.add(found, document.createTextNode(part));
    else if (/^line /i.test(part)) link(part, part.slice(5));
    else part.split(/(\d+)/).forEach((piece, k) => (k % 2 ? link(piece, piece) : page.add(found, document.createTextNode(piece))));
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
    if (text) for (const complete of page.partial) complete(); // rows that are not made yet
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
