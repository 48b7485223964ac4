// The intervals of lanes: unpacked into typed arrays, searched, and reduced to what a screen can show.

const lanes = { views: {} };

// Inflates the columns of a block.
lanes.unpack = inflate.json;

// Returns the running sums of a column of differences.
lanes.sums = (differences) => {
  const found = new Int32Array(differences.length);
  let sum = 0;
  for (let k = 0; k < differences.length; k += 1) { sum += differences[k]; found[k] = sum; }
  return found;
};

// Cycles may be more than 2^31, so places are doubles.
lanes.row = (columns, number, start) => {
  const gap = columns.gap[number];
  const length = columns.length[number];
  const from = new Float64Array(gap.length);
  const to = new Float64Array(gap.length);
  let at = start;
  for (let k = 0; k < gap.length; k += 1) {
    from[k] = at + gap[k];
    to[k] = from[k] + length[k];
    at = to[k];
  }
  return { from, to, tone: Uint8Array.from(columns.tone[number]), item: lanes.sums(columns.item[number]) };
};

// Returns the number of the first interval of a row that ends behind a place.
lanes.firstBehind = (row, place) => {
  let low = 0;
  let high = row.to.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.to[middle] > place) high = middle; else low = middle + 1;
  }
  return low;
};

// Returns what to draw of [from, to): [row, start, end, tone, item, how many]. Intervals of less than a pixel are put
// together; of these the tone with the most cycles counts, and item is 0.
lanes.visible = (rows, from, to, pixel) => {
  const found = [];
  rows.forEach((row, number) => {
    let bucket = null;
    const flush = () => {
      if (!bucket) return;
      if (bucket.count === 1) found.push([number, bucket.from, bucket.to, bucket.tone, bucket.item, 1]);
      else {
        let tone = 0;
        for (let k = 1; k < bucket.sums.length; k += 1) if (bucket.sums[k] > bucket.sums[tone]) tone = k;
        found.push([number, bucket.from, bucket.to, tone, 0, bucket.count]);
      }
      bucket = null;
    };
    for (let k = lanes.firstBehind(row, from); k < row.to.length && row.from[k] < to; k += 1) {
      const start = row.from[k];
      const end = row.to[k];
      if (end - start >= pixel) {
        flush();
        found.push([number, start, end, row.tone[k], row.item[k], 1]);
        continue;
      }
      if (bucket && (start - bucket.to > pixel || end - bucket.from > 2 * pixel)) flush();
      if (!bucket) bucket = { from: start, to: end, tone: row.tone[k], item: row.item[k], count: 0, sums: [] };
      bucket.sums[row.tone[k]] = (bucket.sums[row.tone[k]] || 0) + end - start;
      for (let tone = 0; tone <= row.tone[k]; tone += 1) bucket.sums[tone] = bucket.sums[tone] || 0;
      bucket.to = end;
      bucket.count += 1;
    }
    flush();
  });
  return found;
};

// The operations that intervals belong to, with their instructions, bytes and dependences.
lanes.operations = (packed, rows, start) => {
  const given = packed.operations;
  const count = given.name.length;
  const from = new Float64Array(count);
  const to = new Float64Array(count);
  let at = start;
  for (let k = 0; k < count; k += 1) { at += given.start[k]; from[k] = at; to[k] = at + given.length[k]; }
  const found = {
    from, to, row: Uint8Array.from(given.row), name: given.name, names: given.names,
    execution: lanes.sums(given.execution), instruction: given.instruction, instructions: given.instructions,
    places: given.places, addresses: given.addresses, templates: given.templates, index: lanes.sums(given.index),
    causes: null, byExecution: null, count,
  };
  found.firstAddress = new Int32Array(given.places.length);
  let sum = 0;
  given.places.forEach((place, k) => {
    found.firstAddress[k] = sum;
    sum += place < 0 ? 0 : given.templates[place].length;
  });
  found.needs = new Map();
  found.needed = new Map();
  const producer = lanes.sums(given.producer);
  const consumer = lanes.sums(given.consumer);
  const put = (map, key, edge) => { if (map.has(key)) map.get(key).push(edge); else map.set(key, [edge]); };
  for (let k = 0; k < producer.length; k += 1) {
    const edge = { producer: producer[k], consumer: consumer[k], why: given.whys[given.why[k]] };
    put(found.needs, found.execution[edge.consumer], edge);
    put(found.needed, found.execution[edge.producer], edge);
  }
  found.segments = lanes.segmentsOf(rows, found);
  return found;
};

// Returns for each operation the place of its first interval in its row, -1 for none.
lanes.segmentsOf = (rows, operations) => {
  const found = new Int32Array(operations.count).fill(-1);
  rows.forEach((row, number) => {
    for (let k = row.item.length - 1; k >= 0; k -= 1) {
      const item = row.item[k] - 1;
      if (item >= 0 && operations.row[item] === number) found[item] = k;
    }
  });
  return found;
};

// Returns the cycles of an operation on its own row by tone.
lanes.causes = (rows, operations, item) => {
  const row = rows[operations.row[item]];
  const found = new Map();
  for (let k = operations.segments[item]; k >= 0 && k < row.item.length; k += 1) {
    if (row.item[k] - 1 !== item) break;
    found.set(row.tone[k], (found.get(row.tone[k]) || 0) + row.to[k] - row.from[k]);
  }
  return found;
};

// Returns the bytes that an execution touches, in words.
lanes.bytes = (operations, execution) => {
  const place = operations.places[execution];
  if (place === undefined || place < 0) return [];
  return operations.templates[place].map(([space, verb, length, shape], k) => {
    const start = operations.addresses[operations.firstAddress[execution] + k];
    return `${verb} ${space} bytes ${page.number(start)} .. ${page.number(start + length - 1)}${shape}`;
  });
};

// Returns what to say of an operation, its head first.
lanes.describe = (block, data, item) => {
  const { operations, rows } = data;
  const execution = operations.execution[item];
  const told = operations.instructions[operations.instruction[execution]];
  const causes = [...lanes.causes(rows, operations, item)].map(
    ([tone, cycles]) => `${block.tones[tone].name} ${page.number(cycles)} ${block.unit}`);
  const lines = [operations.names[operations.name[item]]];
  if (told.text !== lines[0]) lines.push(told.text);
  lines.push(`${told.line ? `line ${told.line}, ` : ""}${block.rows[operations.row[item]]}, operation ` +
    `${operations.index[item]}`);
  const first = operations.segments[item];
  const since = first < 0 ? operations.from[item] : rows[operations.row[item]].from[first];
  const worked = since < operations.from[item] && operations.from[item] < operations.to[item];
  lines.push(`cycles ${page.number(since)} .. ${page.number(operations.to[item])}` +
    (worked ? `, at work from ${page.number(operations.from[item])}` : ""));
  if (causes.length) lines.push(causes.join(", "));
  return [...lines, ...lanes.bytes(operations, execution)];
};
