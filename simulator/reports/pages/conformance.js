// Conformance: a matrix of formats by formats, or of casts by targets; a cell tells its instructions, modes and where it
// fails. Packed are `cells`, `answers`, `commands`, `casts`: the cells of the JSON, and of each cell its answer, the
// command that plans it alone, and its cast in words.

const WAYS = {
  native: { sign: "N", tone: "sound", name: "native: one instruction" },
  "native with options": { sign: "O", tone: "optional", name: "native with options: one instruction with modes or options" },
  chain: { sign: "2", tone: "chained", name: "chain: this many instructions" },
  copy: { sign: "=", tone: "mixed", name: "copy: no bit changes" },
  wrong: { sign: "\u00d7", tone: "bad", name: "none found: the closest chain fails on a value" },
  "none found": { sign: "\u2013", tone: "", name: "no chain found" },
  impossible: { sign: "\u2013", tone: "", name: "impossible: no elements of the width" },
};

const conformance = {};

conformance.way = (cell) => WAYS[cell.way === "none found" && cell.counterexample ? "wrong" : cell.way];

conformance.fails = (cell) => cell.way === "none found" || cell.way === "impossible";

conformance.sign = (cell) => {
  const sign = cell.way === "chain" ? String(cell.instructions.length) : conformance.way(cell).sign;
  if (conformance.fails(cell)) return sign;
  return `${sign}${cell.verdict === "exact" ? "" : "\u2248"}${cell.proven ? "" : "~"}`;
};

conformance.attributes = (cell) =>
  Object.entries(cell.attributes).map(([name, value]) => `${name}=${value}`).join(", ") || "defaults";

page.blocks.conformance = page.view((_, data, host) => {
  const cells = data.cells.map((cell, number) => ({ ...cell, number, setting: conformance.attributes(cell) }));
  const targets = page.distinct(cells.map((cell) => cell.target));
  const settings = page.distinct(cells.map((cell) => cell.setting)).sort((a, b) => (b === "defaults") - (a === "defaults"));
  const frame = page.make("div");
  const detail = page.telling("Click a cell, or go to one with the arrow keys and press Enter.");
  const list = page.make("details");
  page.add(list, page.make("summary", "", "the chosen cells as a table"));
  const [tools, chosen] = page.choices([
    { name: "target", values: targets, all: "all: casts by targets", chosen: targets[0] },
    { name: "attributes", values: settings },
    { name: "way", values: page.distinct(cells.map((cell) => cell.way)), all: "all" },
  ], () => show());
  const state = { cells, chosen, data, detail, targets };
  const show = () => {
    const kept = cells.filter((cell) => (!chosen.target || cell.target === chosen.target) &&
      (!chosen.target || cell.setting === chosen.attributes));
    frame.replaceChildren(conformance.matrix(state, kept));
    const rows = kept.filter((cell) => !chosen.way || cell.way === chosen.way);
    host.dataset.cells = String(rows.length);
    list.replaceChildren(list.firstChild, page.plainTable("", ["cast", "target", "answer"],
      rows.map((cell) => [data.casts[cell.number], cell.target, data.answers[cell.number]]), []));
  };
  page.add(host, tools, conformance.legend(), frame, detail, list);
  show();
});

conformance.legend = () => {
  const list = page.legend(Object.values(WAYS).map(({ sign, tone, name }) => ({ name: `${sign} ${name}`, tone: tone || "empty" })));
  return page.add(list, page.make("li", "", "\u2248 within tolerance"), page.make("li", "", "~ rests on samples"));
};

conformance.matrix = (state, cells) => {
  const byTarget = !state.chosen.target;
  const down = (cell) => (byTarget ? state.data.casts[cell.number] : cell.src);
  const across = (cell) => (byTarget ? cell.target : cell.dst);
  const rows = page.distinct(cells.map(down));
  const columns = page.distinct(cells.map(across));
  const places = new Map(cells.map((cell) => [`${rows.indexOf(down(cell))} ${columns.indexOf(across(cell))}`, cell]));
  const table = page.make("table", "matrix");
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", byTarget ? "casts by targets" : "casts from the format of a row to that of a column");
  const head = page.add(page.make("tr"), page.make("td", "corner", byTarget ? "" : "from \\ to"));
  for (const name of columns) {
    const cell = page.add(head, page.make("th", "upright", name)).lastChild;
    cell.scope = "col";
  }
  page.add(table, page.add(page.make("thead"), head));
  const body = page.make("tbody");
  rows.forEach((name, row) => {
    const line = page.add(body, page.make("tr")).lastChild;
    page.add(line, page.make("th", "", name)).lastChild.scope = "row";
    columns.forEach((_, column) => page.add(line, conformance.cell(state, places.get(`${row} ${column}`), row, column)));
  });
  conformance.keys(page.add(table, body));
  const first = table.querySelector("[data-cell]");
  if (first) first.tabIndex = 0;
  return page.add(page.make("div", "wide"), table);
};

conformance.cell = (state, cell, row, column) => {
  const found = page.make("td", "way");
  if (!cell) return found;
  const way = conformance.way(cell);
  found.textContent = conformance.sign(cell);
  const answer = state.data.answers[cell.number];
  found.title = `${cell.src} \u2192 ${cell.dst} on ${cell.target}: ${answer}`;
  found.setAttribute("aria-label", found.title);
  found.setAttribute("role", "gridcell");
  found.tabIndex = -1;
  Object.assign(found.dataset, { cell: cell.number, row, column, way: cell.way });
  if (state.chosen.way && cell.way !== state.chosen.way) found.classList.add("faded");
  if (way.tone) found.style.background = `var(--tone-${way.tone})`;
  else found.classList.add("nothing");
  found.addEventListener("click", () => conformance.select(state, found, cell));
  return found;
};

// Arrow keys go from cell to cell, Enter and the space bar select.
conformance.keys = (table) => {
  table.addEventListener("keydown", (event) => {
    const from = event.target.closest("[data-cell]");
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!from || !(by || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (!by) { from.click(); return; }
    const limits = [table.tBodies[0].rows.length, table.tHead.rows[0].cells.length - 1];
    const at = [Number(from.dataset.row), Number(from.dataset.column)];
    do { at[0] += by[0]; at[1] += by[1]; } while (at.every((place, k) => place >= 0 && place < limits[k]) &&
      !table.querySelector(`[data-row="${at[0]}"][data-column="${at[1]}"]`));
    const to = table.querySelector(`[data-row="${at[0]}"][data-column="${at[1]}"]`);
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
};

conformance.select = (state, element, cell) => {
  for (const other of document.querySelectorAll(".way[aria-selected]")) other.removeAttribute("aria-selected");
  element.setAttribute("aria-selected", "true");
  const { answers, commands, casts } = state.data;
  const options = Object.entries(cell.options).map(([name, value]) => `${name}=${value}`).join(", ");
  const verdict = conformance.fails(cell) ? "no chain found conforms"
    : `${cell.verdict}, ${cell.proven ? "proven" : "not proven"}${cell.method ? ` (${cell.method})` : ""}`;
  const lines = [[`${casts[cell.number]} on ${cell.target}: ${cell.way}`, "strong"], [answers[cell.number], ""],
    [verdict, "dim"], options ? [`with options of the target: ${options}`, ""] : null,
    cell.cycles_per_element === null ? null : [`${page.number(cell.cycles_per_element)} cycles per element`, ""],
    [commands[cell.number], "code"]].filter(Boolean);
  const steps = cell.instructions.map(({ instruction, options: modes }, k) => [k + 1, instruction, modes]);
  page.tell(state.detail, ...lines.map(([text, tone]) => page.make(tone === "code" ? "code" : "p", `line ${tone}`, text)),
    steps.length ? page.plainTable(`way: ${cell.path.join(" \u2192 ")}`, ["step", "instruction", "mode"], steps, [0]) : null,
    ...conformance.failure(cell.counterexample));
};

// Tells of a value on which a chain fails: what becomes of it, and what would be right.
conformance.failure = (found) => {
  if (!found) return [];
  const { lowest, highest, further, nan } = found.required;
  const told = ({ value, bits }) => `${page.number(value)} (${bits})`;
  const right = [];
  if (lowest && highest) right.push(lowest.bits === highest.bits ? told(lowest) : `${told(lowest)} to ${told(highest)}`);
  if (further) right.push(told(further));
  if (nan) right.push("NaN");
  const rows = found.values.map(({ step, format, bits, value }) => [step || "input", format, bits, value]);
  return [page.plainTable("the smallest value on which it fails, and every value on its way",
    ["after", "format", "bits", "value"], rows, [2, 3]), page.make("p", "line warning", `right would be ${right.join(" or ")}`)];
};
