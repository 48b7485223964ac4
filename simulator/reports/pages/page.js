// What every part of a page uses: making elements, numbers as text, colours of the theme.
// Texts of the report get into the page by `textContent` alone.

const page = { blocks: {}, themed: [], sized: [] };

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

page.short = (value) => page.number(+value.toPrecision(3));

page.percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "0.0 %");

// Colours by tone: [light, dark]. Kinds of work are blue and green, waits for others grey, what slows a pipe itself
// from yellow to red.
const TONES = {
  busy: ["#2b6cb0", "#5a9fe0"],
  fill: ["#63a375", "#79c08d"],
  drain: ["#9ac7a6", "#4e8a62"],
  operand_wait: ["#a9a1c9", "#7d74a8"],
  flag_wait: ["#b6bcc6", "#5f6b7a"],
  barrier: ["#8b93a0", "#8e9aab"],
  bank_conflict: ["#c0392b", "#ef6a5b"],
  port: ["#e08a1e", "#f0a64a"],
  initiation_interval: ["#d9b310", "#e5c94a"],
  loop_turnaround: ["#b5651d", "#d08a4a"],
  serialising_branch: ["#8e44ad", "#b87bd6"],
  memory_latency: ["#d35f8d", "#e58bb0"],
  memory_bandwidth: ["#a93b66", "#d0638f"],
  empty: ["#e9edf2", "#2a323d"],
  mixed: ["#5f6b7a", "#98a5b6"],
  window: ["#8fb4dc", "#3d6896"],
  chain: ["#a93b66", "#e58bb0"],
  live: ["#bcd2ea", "#33506f"],
  read: ["#63a375", "#79c08d"],
  write: ["#e08a1e", "#f0a64a"],
  first: ["#2b6cb0", "#5a9fe0"],
  second: ["#e08a1e", "#f0a64a"],
  good: ["#3f8f5a", "#6cc088"],
  sound: ["#2f7a49", "#6cc088"],
  bad: ["#c0392b", "#ef6a5b"],
};
const SPARE = ["busy", "write", "fill", "serialising_branch", "memory_latency", "initiation_interval", "bank_conflict"];

page.isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

page.colour = (tone, number = 0) => {
  const pair = Object.hasOwn(TONES, tone) ? TONES[tone] : TONES[SPARE[number % SPARE.length]];
  return pair[page.isDark() ? 1 : 0];
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

// The address of the page says which line is shown.
page.followAddress = () => {
  const line = /^#line-(\d+)$/.exec(location.hash);
  if (line) page.showLine(line[1]);
};

page.goToLine = (line) => {
  page.showLine(line);
  if (page.rowOfLine(line)) location.hash = `line-${line}`;
};

page.showLine = (line) => {
  const row = page.rowOfLine(line);
  if (!row) return;
  if (row.unfold && row.hidden) row.unfold();
  for (const other of document.querySelectorAll("tr.found")) other.classList.remove("found");
  row.classList.add("found");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
};

page.lineButton = (line) => page.button(`line ${line}`, `go to line ${line} of the program`, () => page.goToLine(line));
