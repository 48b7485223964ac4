// Blocks without charts: texts, figures, tables, the program.

page.blocks.text = (block) => {
  const found = page.make("div");
  for (const { text, tone } of block.lines) page.add(found, page.withCode(page.make("p", `line ${tone}`), text));
  return found;
};

page.blocks.figures = (block) => {
  const found = page.make("div", "figures");
  for (const { label, value, unit, note } of block.items) {
    const shown = page.make("div", "value", page.number(value));
    if (unit) page.add(shown, page.make("span", "unit", ` ${unit}`));
    const figure = page.add(page.make("div", "figure"), page.make("div", "label", label), shown);
    figure.dataset.value = String(value);
    if (note) page.add(figure, page.make("div", "note", note));
    page.add(found, figure);
  }
  return found;
};

const SEARCHED = 8; // rows from which on a table has a field that chooses among them

// A table whose headings sort it. It shows `most` rows until all are asked for, or those that hold what was typed.
page.blocks.table = (block) => {
  const found = page.make("div");
  if (block.caption) page.add(found, page.make("p", "caption", block.caption));
  const rows = page.plain(block.rows);
  const numeric = new Set(block.numbers);
  const most = block.heat === null ? 0 : Math.max(0, ...rows.map((row) => row[block.heat] || 0));
  const view = { rows, made: new Map(), wanted: "", all: rows.length <= block.most, sorted: -1, up: true };
  const body = page.make("tbody");
  const count = page.make("span", "count");
  count.setAttribute("aria-live", "polite");
  const rest = page.button("", "", () => { view.all = true; show(); });
  const element = (row) => {
    if (!view.made.has(row)) {
      view.made.set(row, page.add(page.tableRow(block, row, numeric, most)));
      view.made.get(row).unfold = () => { view.all = true; view.wanted = field.value = ""; show(); };
    }
    return view.made.get(row);
  };
  const show = () => {
    const kept = view.rows.filter((row) => !view.wanted || row.some((cell) => page.number(cell).toLowerCase().includes(view.wanted)));
    const limit = view.all ? kept.length : block.most;
    kept.forEach((row, number) => { if (number < limit || view.made.has(row)) element(row).hidden = number >= limit; });
    body.replaceChildren(...kept.filter((row) => view.made.has(row)).map(element));
    count.textContent = view.wanted ? `${page.number(kept.length)} of ${page.number(rows.length)} rows` : "";
    rest.hidden = kept.length <= limit;
    rest.textContent = `Show ${page.number(kept.length - limit)} more row${kept.length - limit === 1 ? "" : "s"}`;
  };
  const field = page.make("input");
  field.type = "search";
  field.placeholder = "Search this table";
  field.setAttribute("aria-label", `search ${block.caption || "this table"}`);
  field.addEventListener("input", () => { view.wanted = field.value.trim().toLowerCase(); show(); });
  const head = page.tableHead(block, numeric, rows.length > 2, (column) => {
    [view.sorted, view.up] = [column, view.sorted === column ? !view.up : true];
    view.rows = [...rows].sort((one, other) => (view.up ? 1 : -1) * page.order(one[column], other[column]));
    [...head.cells].forEach((cell, k) => {
      if (k === column) cell.setAttribute("aria-sort", view.up ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
    show();
  });
  const table = page.add(page.make("table"), page.add(page.make("thead"), head), body);
  const lines = () => [block.columns, ...view.rows].map((row) => row.map((cell) => cell ?? "").join("\t")).join("\n");
  const copy = page.copyButton("the table", lines);
  page.add(found, page.add(page.make("div", "tools"), ...(rows.length >= SEARCHED ? [field, count] : []), rows.length > 2 && copy),
    page.wide(block.caption || "table", table), rest);
  show();
  if (!view.all) page.partial.push((line) => { if (line !== undefined) return; rows.forEach((row) => { if (!view.made.has(row)) element(row).hidden = true; }); show(); });
  addEventListener("beforeprint", () => { if (!view.all && rows.length - block.most <= 100) { view.all = true; show(); } });
  return found;
};

// The order of two cells: numbers by size, also those in texts; empty cells last.
page.order = (one, other) => {
  const [empty, empties] = [one, other].map((cell) => cell === null || cell === "");
  if (empty || empties) return empty - empties;
  return typeof one === "number" && typeof other === "number" ? one - other
    : String(one).localeCompare(String(other), "en", { numeric: true });
};

// A row of headings: those of columns of numbers have texts on both sides.
page.headRow = (numbers, before, behind) => {
  const cells = [...before, ...numbers, ...behind].map((name) => page.make("th", numbers.includes(name) ? "number" : "", name));
  for (const cell of cells) cell.scope = "col";
  return page.add(page.make("tr"), ...cells);
};

// The headings of a table; as buttons that sort it where it has several rows.
page.tableHead = (block, numeric, sorts, sort) => {
  const head = page.make("tr");
  block.columns.forEach((name, column) => {
    const cell = page.make(name ? "th" : "td", numeric.has(column) ? "number" : "", name && sorts ? null : name);
    if (name) cell.scope = "col";
    if (name && sorts) {
      const button = page.button(name, "", () => sort(column));
      button.className = "sort";
      button.title = "sort by this column";
      page.add(cell, button);
    }
    page.add(head, cell);
  });
  return head;
};

// A frame that scrolls what is wider than it, by keys too.
page.wide = (name, content) => {
  const frame = page.add(page.make("div", "wide"), content);
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", name);
  frame.tabIndex = 0;
  const watch = new ResizeObserver(() => {
    if (!frame.clientWidth || frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0; else frame.removeAttribute("tabindex");
  });
  watch.observe(frame);
  if (content) watch.observe(content);
  return frame;
};

const LONG = /\S{18}/; // with a word that paper may break

page.tableRow = (block, row, numeric, most) => {
  const found = page.make("tr");
  row.forEach((value, column) => {
    const isLine = column === block.lines && typeof value === "number" && value > 0;
    const kind = numeric.has(column) ? "number" : `${LONG.test(value) ? "long" : ""} ${String(value).length > 60 ? "words" : ""}`.trim();
    const cell = page.make("td", kind, isLine ? null : page.number(value));
    if (isLine) page.add(cell, page.lineButton(value));
    if (column === block.heat && most) {
      cell.classList.add("heat");
      cell.style.backgroundSize = `${(100 * (value || 0)) / most}% 100%`;
    }
    page.add(found, cell);
  });
  return found;
};

const FOLDED = 3;

page.blocks.program = (block) => {
  const found = page.make("div");
  if (block.caption) page.add(found, page.make("p", "caption", block.caption));
  const frame = page.make("div", "program");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "program text with the cycles of each line");
  const table = page.make("table");
  const head = page.headRow(["line", "cycles", "occupied", "times"], [], ["causes", "source"]);
  const lines = page.plain(block.rows);
  const most = lines.reduce((largest, line) => Math.max(largest, line.share || 0), 1e-9);
  const coloured = page.coloured(block.grammar);
  table.setAttribute("aria-rowcount", lines.length + 1);
  page.add(frame, page.add(table, page.add(page.make("thead"), head)));
  const show = (shown) => {
    for (const body of [...table.tBodies]) body.remove();
    for (let k = 0; k < shown.length; k += ROWS_AT_ONCE) page.add(table, page.programPart(shown.slice(k, k + ROWS_AT_ONCE), most, coloured, frame));
  };
  show(lines);
  const tools = page.hottest(lines) || page.make("div", "tools");
  const sort = page.button("By cycles", "sort the lines by cycles", () => {
    const isByLine = sort.textContent === "By cycles";
    show(isByLine ? [...lines].sort((one, other) => (other.cycles || 0) - (one.cycles || 0)) : lines);
    sort.textContent = isByLine ? "By line" : "By cycles";
    sort.setAttribute("aria-label", isByLine ? "sort the lines by number" : "sort the lines by cycles");
  });
  const copy = page.copyButton("the program", () => lines.map((row) => row.text).join("\n"));
  return page.add(found, page.add(tools, sort, copy), frame);
};

const ROWS_AT_ONCE = 200;
const ROW_HEIGHT = 22;

// Returns a part of a program, whose rows are made when it comes near or is wanted: by an address, the search, or paper.
page.programPart = (lines, most, coloured, frame) => {
  const body = page.make("tbody");
  const numbers = new Set(lines.map((line) => line.number));
  const waiting = page.add(body, page.make("tr")).lastChild;
  waiting.style.height = `${ROW_HEIGHT * lines.length}px`;
  page.add(waiting, page.make("td")).lastChild.colSpan = 6;
  const fill = () => {
    if (!waiting.isConnected) return;
    near.disconnect();
    body.replaceChildren(...page.programRows(lines, most, coloured));
  };
  const near = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) fill();
  }, { root: frame, rootMargin: "600px" });
  near.observe(waiting);
  page.partial.push((line) => { if (line === undefined || numbers.has(line)) fill(); });
  addEventListener("beforeprint", fill);
  return body;
};

// Colours words by the grammar that editors use, [class, pattern] in order: the first that matches counts.
page.coloured = (grammar) => {
  if (!grammar.length) return (text) => page.make("code", "", text);
  const pattern = new RegExp(grammar.map(([, each]) => `(${each})`).join("|"), "g");
  return (text) => {
    const found = page.make("code");
    let at = 0;
    for (const match of text.matchAll(pattern)) {
      if (!match[0]) continue;
      page.add(found, document.createTextNode(text.slice(at, match.index)));
      page.add(found, page.make("span", grammar[match.findIndex((each, k) => k && each !== undefined) - 1][0], match[0]));
      at = match.index + match[0].length;
    }
    return page.add(found, document.createTextNode(text.slice(at)));
  };
};

// A button that leads to the line that occupies a pipe longest, then to the next one.
page.hottest = (lines) => {
  const hot = lines.filter((row) => row.share).sort((one, other) => other.share - one.share);
  let next = 0;
  if (!hot.length) return null;
  return page.add(page.make("div", "tools"), page.button("Hottest line", "hottest line: go to the line that occupies a pipe longest, then to the next",
    () => { page.goToLine(hot[next].number); next = (next + 1) % hot.length; }));
};

// Rows of lines; of several that fold, a row that opens them.
page.programRows = (lines, most, coloured) => {
  const found = [];
  for (let k = 0; k < lines.length;) {
    let end = k;
    while (end < lines.length && lines[end].folds) end += 1;
    if (end - k >= FOLDED) {
      const folded = lines.slice(k, end).map((line) => page.programRow(line, most, coloured));
      for (const row of folded) row.hidden = true;
      const cell = page.make("td");
      cell.colSpan = 6;
      const opener = page.add(page.make("tr", "fold"), cell);
      const open = () => { for (const row of folded) row.hidden = false; opener.remove(); };
      for (const row of folded) row.unfold = open;
      page.add(cell, page.button(`lines ${lines[k].number} .. ${lines[end - 1].number}: ${end - k} constants`, "", open));
      found.push(opener, ...folded);
      k = end;
    } else {
      found.push(page.programRow(lines[k], most, coloured));
      k += 1;
    }
  }
  return found;
};

page.programRow = (row, most, coloured) => {
  const found = page.make("tr", row.cycles === null ? "" : "cost");
  found.dataset.line = row.number;
  found.setAttribute("aria-rowindex", row.number + 1);
  if (row.cycles !== null) {
    found.dataset.cycles = row.cycles;
    found.style.setProperty("--share", String(Math.min(0.55, (0.55 * (row.share || 0)) / most)));
  }
  const share = row.share === null ? "" : `${(100 * row.share).toFixed(1)} %`;
  const number = page.make("td", "number", row.executions ? null : row.number);
  if (row.executions) page.add(number, page.timelineButton(row.number));
  page.add(found, number);
  for (const text of [page.number(row.cycles), share, page.number(row.executions)]) {
    page.add(found, page.make("td", "number", text));
  }
  page.add(found, page.add(page.make("td"), page.mix(row)));
  const source = page.add(page.make("td"), coloured(row.text));
  if (row.note) page.add(source, page.make("div", "line dim", row.note));
  return page.add(found, source);
};

// The number of a line, which leads to the first thing that it did in the timeline.
page.timelineButton = (line) => {
  const found = page.button(String(line), `line ${line} in the timeline`, () => {
    const [view] = lanes.views.timeline || [];
    if (!view) return;
    page.writeAddress({ line: String(line) });
    lanes.goToLine(view, line);
  });
  found.className = "plain";
  return found;
};

// A narrow stacked bar of the causes of a line, told in words to those who point at it or cannot see it.
page.mix = (row) => {
  if (!row.causes.length) return null;
  const total = row.causes.reduce((sum, each) => sum + each[2], 0);
  const words = row.causes.map(([, name, amount]) => `${name} ${page.number(amount)}`).join(", ");
  const found = page.make("div", "mix");
  found.title = words;
  found.setAttribute("role", "img");
  found.setAttribute("aria-label", words);
  const parts = row.causes.map(([tone, , amount]) => {
    const part = page.make("span");
    part.style.width = `${(100 * amount) / total}%`;
    page.add(found, part);
    return [part, tone];
  });
  const paint = () => { for (const [part, tone] of parts) page.paint(part, tone); };
  paint();
  page.onTheme(paint);
  return found;
};

page.blocks.folded = (block, section) => {
  const found = page.make("details", "offer");
  page.add(found, page.make("summary", "", block.title));
  for (const each of block.blocks) page.add(found, page.blocks[each.kind](each, section));
  const isShort = (each) => each.kind === "listing" && page.plain(each.text).split("\n").length <= 40;
  if (block.blocks.some(isShort)) { // paper shows a change, not its title alone
    let wasOpen = false;
    addEventListener("beforeprint", () => { wasOpen = found.open; found.open = true; });
    addEventListener("afterprint", () => { found.open = wasOpen; });
  }
  return found;
};

// A text whose lines count; those of a diff are told apart.
page.blocks.listing = (block) => {
  const found = page.make("div");
  if (block.caption) page.add(found, page.make("p", "caption", block.caption));
  const frame = page.make("div", "program");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  page.listings = (page.listings || 0) + 1;
  frame.setAttribute("aria-label", `text ${page.listings}: ${block.caption || "listing"}`);
  const code = page.make("code");
  const text = page.plain(block.text);
  const isDiff = text.startsWith("--- ");
  text.split("\n").forEach((line, k) => {
    const tone = !isDiff ? "" : { "+": " plus", "-": " minus" }[line[0]] || "";
    page.add(code, page.make("span", `source${tone}`, k ? `\n${line}` : line));
  });
  const tools = page.add(page.make("div", "tools"), page.copyButton(block.caption || "the text", () => text));
  return page.add(found, tools, page.add(frame, page.add(page.make("pre"), code)));
};
