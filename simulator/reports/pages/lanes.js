// Lanes: intervals in rows, to zoom, move and select in by mouse, touch and keys. Lanes of one section over the same axis
// move together.

const ROW = 26;
const MOST_SHOWN = 8;

page.blocks.lanes = (block, section) => {
  const found = page.framed(block);
  const host = page.make("div", "chart");
  const views = lanes.views[section.name] ||= [];
  host.id = `${section.name}-lanes${views.length ? `-${views.length + 1}` : ""}`;
  host.style.height = `${ROW * block.rows.length + 92}px`;
  host.tabIndex = 0;
  host.setAttribute("role", "application");
  host.setAttribute("aria-label", `${section.title}: ${block.rows.join(", ")}. Plus and minus zoom, left and right ` +
    "move, comma and period select the previous and the next operation, up and down change the row, escape clears.");
  const detail = page.make("div", "detail");
  detail.setAttribute("aria-live", "polite");
  const view = { block, host, detail, from: block.start, to: block.end, selected: -1, chart: null, data: null, views };
  views.push(view);
  const tools = page.add(page.make("div", "tools"),
    page.button("+", "zoom in", () => lanes.zoom(view, 0.5)),
    page.button("\u2212", "zoom out", () => lanes.zoom(view, 2)),
    page.button("\u25c0", "move left", () => lanes.move(view, -0.25)),
    page.button("\u25b6", "move right", () => lanes.move(view, 0.25)),
    page.button("All", "show all", () => lanes.show(view, block.start, block.end)),
    page.make("span", "line dim", "Zoom: Ctrl and wheel, or + \u2212. Move: drag, or \u2190 \u2192. Select: click, or , and ."));
  for (const note of block.notes) page.add(found, page.make("p", "line dim", note));
  page.add(found, host, page.legend(block.tones.filter((tone) => tone.name)), tools, detail);
  lanes.say(view, ["Nothing selected."]);
  lanes.whenNear(view);
  return found;
};

lanes.whenNear = (view) => {
  const draw = () => {
    if (view.data) return;
    near.disconnect();
    const data = lanes.unpack(view.block.packed);
    const rows = view.block.rows.map((_, number) => lanes.row(data, number, view.block.start));
    const operations = data.operations ? lanes.operations(data, rows, view.block.start) : null;
    view.data = { rows, operations, texts: data.texts || [] };
    lanes.start(view);
    if (view.wanted) lanes.goToLine(view, view.wanted);
    if (view.followed) lanes.follow(view.followed);
  };
  const near = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) draw();
  }, { rootMargin: "300px" });
  near.observe(view.host);
  addEventListener("beforeprint", draw);
};

lanes.start = (view) => {
  view.chart = echarts.init(view.host, null, { renderer: "canvas" });
  view.host.addEventListener("wheel", (event) => { // without Ctrl it is the page that moves, which the library prevents
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  }, { capture: true, passive: true });
  lanes.draw(view);
  view.chart.on("datazoom", () => {
    const zoom = view.chart.getOption().dataZoom[0];
    view.from = zoom.startValue;
    view.to = zoom.endValue;
    lanes.refresh(view);
    for (const other of view.views) if (lanes.isBehind(other, view)) lanes.show(other, view.from, view.to);
  });
  view.chart.on("click", (at) => { if (at.seriesId === "work") lanes.pick(view, at.data); });
  view.host.addEventListener("keydown", (event) => lanes.key(view, event));
  page.onTheme(() => lanes.draw(view));
  page.sized.push(() => { view.chart.resize(); lanes.draw(view); });
};

lanes.isBeside = (other, view) => other.block.start === view.block.start && other.block.end === view.block.end;

// Whether lanes over the same axis show something else.
lanes.isBehind = (other, view) => lanes.isBeside(other, view) &&
  (Math.abs(other.from - view.from) > 1e-6 || Math.abs(other.to - view.to) > 1e-6);

lanes.left = (view) => {
  const beside = view.views.filter((other) => lanes.isBeside(other, view));
  const wide = Math.max(...beside.flatMap((other) => other.block.rows.map((row) => row.length)));
  return Math.min(view.host.clientWidth / 3.2, 16 + 7.4 * wide);
};

lanes.draw = (view) => {
  const ink = page.ink();
  const { block } = view;
  const left = lanes.left(view);
  view.ink = ink;
  view.chart.setOption({
    animation: false,
    grid: { left, right: 16, top: 6, bottom: 80 },
    tooltip: { ...page.tooltip(ink), trigger: "item", formatter: (at) => page.tip(lanes.words(view, at.data)) },
    xAxis: page.axis(ink, { type: "value", min: block.start, max: Math.max(block.end, block.start + 1), minInterval: 1,
      name: block.unit, nameLocation: "middle", nameGap: 22, axisLabel: { color: ink.dim, hideOverlap: true,
        showMaxLabel: false, formatter: page.wholeTick } }),
    yAxis: page.axis(ink, { type: "category", data: block.rows, inverse: true, axisTick: { show: false },
      splitLine: { show: true, lineStyle: { color: ink.rule, opacity: 0.5 } },
      axisLabel: { color: ink.ink, width: left - 10, overflow: "truncate", interval: 0 } }),
    dataZoom: [
      { type: "inside", filterMode: "none", startValue: view.from, endValue: view.to, minValueSpan: 4,
        zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, moveOnMouseMove: true },
      { type: "slider", filterMode: "none", startValue: view.from, endValue: view.to, minValueSpan: 4, height: 20,
        bottom: 8, left, right: 16, showDataShadow: false, textStyle: { color: ink.dim }, borderColor: ink.rule,
        labelFormatter: (value) => page.number(Math.round(value)) },
    ],
    series: [
      { id: "work", type: "custom", renderItem: (_, api) => lanes.box(view, api), encode: { x: [1, 2], y: 0 },
        data: [], clip: true, progressive: 0 },
      { id: "edges", type: "custom", renderItem: (_, api) => lanes.arrow(view, api), encode: { x: [1, 3], y: 0 },
        data: [], clip: true, silent: true, z: 5 },
    ],
  }, true);
  lanes.refresh(view);
};

lanes.refresh = (view) => {
  const width = Math.max(50, view.host.clientWidth - lanes.left(view) - 16);
  view.shown = lanes.visible(view.data.rows, view.from, view.to, (view.to - view.from) / width);
  view.chart.setOption({ series: [{ id: "work", data: view.shown }, { id: "edges", data: lanes.edges(view) }] });
  const whole = view.from <= view.block.start && view.to >= view.block.end;
  page.showing(view.host.parentElement, view.block, whole ? null : [view.from, view.to]);
  Object.assign(view.host.dataset, { from: view.from, to: view.to, drawn: view.shown.length });
  lanes.tellAddress(view);
};

// The address has what the timeline shows, unless that is everything.
lanes.tellAddress = (view) => {
  if (view.host.id !== "timeline-lanes" || !view.data) return;
  const { start, end } = view.block;
  const whole = view.from <= start && view.to >= end;
  const cycles = whole ? undefined : `${Math.max(0, Math.round(view.from))}-${Math.round(view.to)}`;
  const { operations } = view.data;
  const operation = view.selected < 0 || !operations ? undefined : String(operations.index[view.selected]);
  if (cycles === page.address.cycles && operation === page.address.operation) return;
  clearTimeout(view.telling);
  view.telling = setTimeout(() => page.writeAddress({ cycles, operation }), 150);
};

// Shows the cycles and the operation that an address names.
lanes.follow = ({ cycles, operation }) => {
  const view = (lanes.views.timeline || [])[0];
  if (!view) return;
  view.host.scrollIntoView({ block: "center" });
  if (!view.data) { view.followed = { cycles, operation }; return; }
  view.followed = null;
  const item = operation === undefined || !view.data.operations ? -1 : view.data.operations.index.indexOf(Number(operation));
  if (cycles) lanes.show(view, ...cycles.split("-").map(Number));
  if (item >= 0) lanes.select(view, item);
};

lanes.box = (view, api) => {
  const [left, top] = api.coord([api.value(1), api.value(0)]);
  const right = api.coord([api.value(2), api.value(0)])[0];
  const tone = view.block.tones[api.value(3)].tone;
  const colour = page.colour(tone);
  const item = api.value(4) - 1;
  const height = ROW - 8;
  const area = view.chart.getModel().getComponent("grid").coordinateSystem.getRect();
  const shape = echarts.graphic.clipRectByRect(
    { x: left, y: top - height / 2, width: Math.max(1, right - left - (right - left > 4 ? 0.6 : 0)), height }, area);
  if (!shape) return null;
  const { operations } = view.data;
  const own = operations && item >= 0 && view.selected >= 0 &&
    operations.execution[item] === operations.execution[view.selected];
  const children = [{ type: "rect", shape, style: { fill: shape.width > 3 ? page.fill(tone) : colour, stroke: own ? view.ink.accent : null,
    lineWidth: own ? 2.5 : 0 } }];
  if (shape.width > 46 && item >= 0 && ["busy", "write", "read"].includes(tone)) {
    const text = operations ? operations.names[operations.name[item]] : (view.data.texts[item] || [""])[0];
    children.push({ type: "text", silent: true, style: { text, x: shape.x + 4, y: top, fill: page.onColour(colour),
      stroke: colour, lineWidth: 3, textVerticalAlign: "middle", fontSize: 11, width: shape.width - 8, overflow: "truncate" } });
  }
  return { type: "group", children };
};

lanes.edges = (view) => {
  const { operations } = view.data;
  if (!operations || view.selected < 0) return [];
  const execution = operations.execution[view.selected];
  const all = [...(operations.needs.get(execution) || []), ...(operations.needed.get(execution) || [])];
  return all.map(({ producer, consumer }) => [operations.row[producer], operations.to[producer],
    operations.row[consumer], operations.from[consumer]]);
};

lanes.arrow = (view, api) => {
  const [x1, y1] = api.coord([api.value(1), api.value(0)]);
  const [x2, y2] = api.coord([api.value(3), api.value(2)]);
  const bend = Math.max(14, Math.abs(x2 - x1) / 3);
  const stroke = { stroke: view.ink.accent, lineWidth: 1.6, fill: null };
  return { type: "group", children: [
    { type: "bezierCurve", shape: { x1, y1, x2, y2, cpx1: x1 + bend, cpy1: y1, cpx2: x2 - bend, cpy2: y2 },
      style: stroke },
    { type: "polygon", shape: { points: [[x2, y2], [x2 - 7, y2 - 4], [x2 - 7, y2 + 4]] },
      style: { fill: view.ink.accent } },
  ] };
};

// Returns what to say of a drawn interval.
lanes.words = (view, shown) => {
  const [row, from, to, tone, item, count] = shown;
  const where = `${view.block.rows[row]}, cycles ${page.number(from)} to ${page.number(to)}`;
  if (count > 1) return [`${count} intervals, mostly ${view.block.tones[tone].name}`, where, "Zoom in to see each one."];
  const here = `${view.block.tones[tone].name}: ${page.number(to - from)} ${view.block.unit}`;
  if (item < 1) return [here, where];
  if (view.data.operations) return [...lanes.describe(view.block, view.data, item - 1), `here: ${here}`];
  return [...(view.data.texts[item - 1] || []), here, where];
};

lanes.pick = (view, shown) => {
  if (shown[5] > 1) lanes.show(view, shown[1] - (shown[2] - shown[1]), shown[2] + (shown[2] - shown[1]));
  else if (shown[4] < 1 || !view.data.operations) lanes.say(view, lanes.words(view, shown));
  else lanes.select(view, shown[4] - 1);
};

lanes.say = (view, lines) => {
  view.detail.replaceChildren(...lines.map((line) => page.make("p", "", line)));
};

lanes.select = (view, item) => {
  const { operations } = view.data;
  view.selected = item;
  view.host.dataset.selected = item < 0 ? "" : String(operations.index[item]);
  if (item < 0) lanes.say(view, ["Nothing selected."]);
  else {
    lanes.say(view, lanes.describe(view.block, view.data, item));
    const execution = operations.execution[item];
    const { line } = operations.instructions[operations.instruction[execution]];
    if (line && page.rowOfLine(line)) page.add(view.detail, page.lineButton(line));
    lanes.others(view, "needs", operations.needs.get(execution), "producer");
    lanes.others(view, "is needed by", operations.needed.get(execution), "consumer");
    const [from, to] = [operations.from[item], operations.to[item]];
    const span = view.to - view.from;
    if (to < view.from || from > view.to) { lanes.show(view, from - span / 2, from + span / 2); return; }
  }
  lanes.refresh(view);
};

// Selects what a line did first, as soon as it is drawn, and shows some of what is around it.
lanes.goToLine = (view, line) => {
  view.wanted = line;
  view.host.scrollIntoView({ block: "center" });
  view.host.focus({ preventScroll: true });
  const { operations } = view.data || {};
  if (!operations) { if (view.data) lanes.goToText(view, `line ${line}`); return; }
  const isIt = (_, item) => operations.instructions[operations.instruction[operations.execution[item]]].line === line;
  const first = operations.from.findIndex(isIt);
  if (first < 0) return;
  let item = first; // of its operations the longest
  for (let k = first; k < operations.count && operations.execution[k] === operations.execution[first]; k += 1) {
    if (operations.to[k] - operations.from[k] > operations.to[item] - operations.from[item]) item = k;
  }
  const span = Math.min(view.to - view.from, 20 * Math.max(operations.to[item] - operations.from[item], 10));
  lanes.show(view, operations.from[item] - span / 4, operations.from[item] + (3 * span) / 4);
  lanes.select(view, item);
};

// The same for intervals that have texts alone.
lanes.goToText = (view, text) => {
  for (const [number, row] of view.data.rows.entries()) {
    const k = row.item.findIndex((item) => item > 0 && view.data.texts[item - 1].includes(text));
    if (k < 0) continue;
    const [from, to] = [row.from[k], row.to[k]];
    const span = Math.min(view.to - view.from, 20 * Math.max(to - from, 10));
    lanes.show(view, from - span / 4, from + (3 * span) / 4);
    lanes.say(view, lanes.words(view, [number, from, to, row.tone[k], row.item[k], 1]));
    return;
  }
};

lanes.others = (view, verb, edges, which) => {
  if (!edges) return;
  const { operations } = view.data;
  const list = page.add(page.make("p", "", `${verb}: `));
  for (const edge of edges.slice(0, MOST_SHOWN)) {
    const other = edge[which];
    const name = `${operations.names[operations.name[other]]} (${edge.why})`;
    page.add(list, page.button(name, "", () => lanes.select(view, other)));
  }
  if (edges.length > MOST_SHOWN) page.add(list, document.createTextNode(`and ${edges.length - MOST_SHOWN} more`));
  page.add(view.detail, list);
};

lanes.show = (view, from, to) => {
  const { start, end } = view.block;
  const span = Math.min(Math.max(to - from, 4), Math.max(end - start, 1));
  const first = Math.min(Math.max(from, start), Math.max(start, end - span));
  view.from = first;
  view.to = first + span;
  if (!view.chart) return;
  view.chart.dispatchAction({ type: "dataZoom", startValue: view.from, endValue: view.to });
};

lanes.zoom = (view, factor) => {
  const { operations } = view.data || {};
  const inside = view.selected >= 0 && operations.to[view.selected] > view.from && operations.from[view.selected] < view.to;
  const middle = inside ? Math.max(view.from, Math.min(view.to, operations.from[view.selected])) : (view.from + view.to) / 2;
  const span = (view.to - view.from) * factor;
  lanes.show(view, middle - span / 2, middle + span / 2);
};

lanes.move = (view, part) => {
  const by = (view.to - view.from) * part;
  lanes.show(view, view.from + by, view.to + by);
};

// Selects the operation before or behind the selected one in its row, or the one of another row at the same time; rows
// that show operations of other rows once more are left out.
lanes.step = (view, along, across) => {
  const { rows, operations } = view.data;
  if (!operations) return;
  const old = view.selected;
  const owners = [...new Set(operations.row)].sort((one, other) => one - other);
  const number = old < 0 ? owners[0]
    : owners[(owners.indexOf(operations.row[old]) + across + owners.length) % owners.length];
  const row = rows[number];
  const by = along < 0 ? -1 : 1;
  let k = old >= 0 && !across ? operations.segments[old] : -1;
  if (k < 0) k = lanes.firstBehind(row, old < 0 ? view.from : operations.from[old]);
  while (row.item[k] !== undefined && (row.item[k] === 0 || row.item[k] - 1 === old)) k += by;
  if (row.item[k] > 0) lanes.select(view, row.item[k] - 1);
};

lanes.key = (view, event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !view.chart) return;
  const acts = {
    "+": () => lanes.zoom(view, 0.5), "=": () => lanes.zoom(view, 0.5), "-": () => lanes.zoom(view, 2),
    ArrowLeft: () => lanes.move(view, -0.25), ArrowRight: () => lanes.move(view, 0.25),
    ArrowUp: () => lanes.step(view, 0, -1), ArrowDown: () => lanes.step(view, 0, 1),
    ",": () => lanes.step(view, -1, 0), ".": () => lanes.step(view, 1, 0),
    Home: () => lanes.show(view, view.block.start, view.block.start + view.to - view.from),
    End: () => lanes.show(view, view.block.end - view.to + view.from, view.block.end),
    0: () => lanes.show(view, view.block.start, view.block.end), Escape: () => lanes.select(view, -1),
  };
  if (!Object.hasOwn(acts, event.key)) return;
  event.preventDefault();
  acts[event.key]();
};
