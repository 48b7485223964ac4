// A graph: boxes in layers from top to bottom, each below all that it reads, and arrows between them; plain SVG.

const BOX = { width: 240, height: 74, gapX: 26, gapY: 40 };

const diagram = {};

diagram.svg = (name, attributes) => {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  return found;
};

// Returns for each node its layer and its place in it: below its sources, in the order of their middles.
diagram.places = (nodes, edges) => {
  const layer = nodes.map(() => 0);
  for (const [from, to] of [...edges].sort((one, other) => one[1] - other[1])) layer[to] = Math.max(layer[to], layer[from] + 1);
  const layers = [];
  nodes.forEach((_, number) => { (layers[layer[number]] ||= []).push(number); });
  const place = nodes.map(() => 0);
  for (const own of layers) {
    const middle = (number) => {
      const before = edges.filter(([, to]) => to === number).map(([from]) => place[from]);
      return before.length ? before.reduce((sum, each) => sum + each, 0) / before.length : 0;
    };
    const middles = new Map(own.map((number) => [number, middle(number)]));
    own.sort((one, other) => middles.get(one) - middles.get(other) || one - other);
    own.forEach((number, k) => { place[number] = k - (own.length - 1) / 2; });
  }
  return { layer, place, layers };
};

page.blocks.diagram = (block) => {
  const { layer, place, layers } = diagram.places(block.nodes, block.edges);
  const most = Math.max(...layers.map((own) => own.length));
  const width = most * (BOX.width + BOX.gapX) + BOX.gapX;
  const height = layers.length * (BOX.height + BOX.gapY);
  const words = block.nodes.map(({ name, lines, word }) => [name, ...lines, word].filter(Boolean).join(", ")).join("; ");
  const found = diagram.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words });
  const left = (number) => width / 2 + place[number] * (BOX.width + BOX.gapX) - BOX.width / 2;
  const top = (number) => 4 + layer[number] * (BOX.height + BOX.gapY);
  for (const [from, to, what] of block.edges) {
    const [x1, y1, x2, y2] = [left(from) + BOX.width / 2, top(from) + BOX.height, left(to) + BOX.width / 2, top(to)];
    const line = diagram.svg("path", { class: "edge",
      d: `M${x1} ${y1}C${x1} ${y1 + BOX.gapY / 2} ${x2} ${y2 - BOX.gapY / 2} ${x2} ${y2 - 5}` });
    const head = diagram.svg("path", { class: "head", d: `M${x2} ${y2}l-4 -7h8z` });
    const told = diagram.svg("title", {});
    told.textContent = what;
    page.add(found, page.add(line, told), head);
  }
  block.nodes.forEach(({ name, lines, word, tone }, number) => {
    const [x, y] = [left(number), top(number)];
    const box = page.add(diagram.svg("g", {}),
      diagram.svg("rect", { class: "box", x, y, width: BOX.width, height: BOX.height, rx: 7 }));
    if (tone) page.add(box, diagram.svg("rect", { x, y, width: 8, height: BOX.height, rx: 3, style: `fill:var(--tone-${tone})` }));
    [name, lines.join(", "), word].forEach((text, row) => {
      const shown = diagram.svg("text", { x: x + 16, y: y + 20 + 20 * row, class: row ? "" : "name" });
      shown.textContent = text.length > 29 ? `${text.slice(0, 28)}\u2026` : text;
      const whole = diagram.svg("title", {});
      whole.textContent = text;
      page.add(box, page.add(shown, whole));
    });
    page.add(found, box);
  });
  const frame = page.add(page.make("div", "wide diagram"), found);
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", block.caption);
  return page.framed(block, frame);
};
