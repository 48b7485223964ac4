// Points of a search: cycles against bytes of the buffer, the front, the ranking. Packed are `rows` of the JSON, and
// `commands`, which run the simulated ones.

page.blocks.tuning = page.view((_, data, host) => {
  const rows = data.rows.map((row, number) => ({ ...row, number }));
  const names = Object.keys(rows[0].choices);
  const [tools, chosen] = page.choices(names.map((name) =>
    ({ name, values: page.distinct(rows.map((row) => String(row.choices[name]))), all: "all" })), () => show());
  const table = page.make("div");
  const detail = page.telling("Click a point, or focus the chart and press an arrow key.");
  let kept = rows;
  const placed = (wanted, cycles) => kept.filter((row) => row.buffer_bytes !== null && wanted(row))
    .map((row) => [row.buffer_bytes, cycles(row), row.number]);
  const waits = (row) => row.cycles === null && row.at_least !== null && !row.reason;
  const series = () => [
    { name: "front", tone: "sound", line: true, points: placed((row) => row.pareto, (row) => row.cycles)
      .sort((one, other) => one[0] - other[0]) },
    { name: "not simulated: cycles at least", tone: "flag_wait", hollow: true, points: placed(waits, (row) => row.at_least) },
    { name: "simulated", tone: "first", points: placed((row) => row.cycles !== null && !row.pareto, (row) => row.cycles) },
    { name: "on the front", tone: "sound", size: 11, points: placed((row) => row.pareto, (row) => row.cycles) },
  ];
  const plot = page.points({ x: "bytes of the buffer", y: "cycles", series, pick: (item) => page.tell(detail,
    ...(item < 0 ? ["Nothing selected."] : tuning.words(rows[item])).map((text) => page.make("p", "line", text)),
    item >= 0 && data.commands[item] ? page.make("code", "line", data.commands[item]) : null),
  words: (item) => tuning.words(rows[item]) });
  const show = () => {
    kept = rows.filter((row) => names.every((name) => !chosen[name] || String(row.choices[name]) === chosen[name]));
    host.dataset.rows = String(kept.length);
    table.replaceChildren(tuning.ranking(names, kept));
    plot.redraw();
  };
  page.add(host, tools, page.legend(series().slice(1).filter((each) => each.points.length)), plot.host, detail,
    page.make("h3", "", "Ranking"), table);
  show();
});

const tuning = {};

tuning.words = (row) => [
  Object.entries(row.choices).map(([name, value]) => `${name}=${value}`).join(", "),
  row.cycles === null ? `not simulated, at least ${page.number(row.at_least)} cycles` : `${page.number(row.cycles)} cycles`,
  `${page.number(row.buffer_bytes)} bytes of the buffer${row.cycles_per_element === null ? ""
    : `, ${page.number(row.cycles_per_element)} cycles per element`}`,
  ...(row.bound_by ? [`bound by ${row.bound_by}`] : []), ...(row.pareto ? ["on the front"] : []),
  ...(row.reason ? [row.reason] : []),
];

tuning.ranking = (names, rows) => page.blocks.table({
  caption: "", lines: null, heat: names.length + 1, most: 50,
  columns: ["rank", ...names, "cycles", "at least", "per element", "buffer bytes", "bound by", "front", "remark"],
  numbers: [0, ...[1, 2, 3, 4].map((k) => names.length + k)],
  rows: rows.map((row) => [row.cycles === null ? null : row.number + 1, ...names.map((name) => row.choices[name]), row.cycles,
    row.at_least, row.cycles_per_element, row.buffer_bytes, row.bound_by, row.pareto ? "*" : "",
    row.reason || (row.cycles === null ? "not simulated" : "")]),
});
