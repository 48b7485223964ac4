// The lines in which two programs differ, by effect. Packed are `lines` of the JSON with the pipe cycles spent, and `timelines`, the section of both timelines,
// empty if there is none.

page.blocks.changes = page.view((_, data, host) => {
  const [tools, chosen] = page.choices([
    { name: "change", values: page.distinct(data.lines.map((line) => line.change)), all: "all" }], () => show());
  const place = page.wide("lines that differ");
  const show = () => {
    const kept = data.lines.filter((line) => !chosen.change || line.change === chosen.change);
    host.dataset.lines = String(kept.length);
    place.replaceChildren(changes.table(kept, data.timelines));
  };
  page.add(host, tools, place);
  show();
});

const changes = {};

changes.table = (lines, timelines) => {
  const head = page.headRow(["pipe cycles A", "pipe cycles B", "B \u2212 A"], ["A", "B", "change"], ["text"]);
  const body = page.make("tbody");
  for (const line of lines) page.add(body, changes.row(line, timelines));
  return page.add(page.make("table", "changes"), page.add(page.make("thead"), head), body);
};

changes.row = (line, timelines) => {
  const found = page.make("tr");
  found.dataset.change = line.change;
  const more = (line.spent_b || 0) - (line.spent_a || 0);
  const known = line.spent_a !== null || line.spent_b !== null;
  page.add(found, changes.number(line.line_a, timelines, 0), changes.number(line.line_b, timelines, 1),
    page.make("td", "", line.change), changes.cycles("A", page.number(line.spent_a)),
    changes.cycles("B", page.number(line.spent_b)),
    changes.cycles("", known ? `${more > 0 ? "+" : ""}${page.number(more)}` : ""));
  const text = page.make("td", "change");
  const say = (sign, content, tone) => page.add(text, page.make("div", tone, `${sign} ${content}`));
  if (line.text_a === line.text_b || (line.change === "moved" && line.text_a !== null)) say(" ", line.text_a, "");
  else {
    if (line.text_a !== null) say("-", line.text_a, "minus");
    if (line.text_b !== null) say("+", line.text_b, "plus");
  }
  return page.add(found, text);
};

// A cell of cycles; where there is no room for the head of the table it says whose they are.
changes.cycles = (side, text) => {
  const found = page.make("td", "number", text);
  if (text) found.dataset.side = side;
  return found;
};

// The number of a line, as a button that leads to what it did on its side.
changes.number = (line, timelines, side) => {
  const found = page.make("td", "number");
  if (line === null) return found;
  const view = timelines ? lanes.views[timelines][side] : null;
  if (!view) found.textContent = String(line);
  else page.add(found, page.button(String(line), `line ${line} in the timeline of ${"AB"[side]}`, () => lanes.goToLine(view, line)));
  return found;
};
