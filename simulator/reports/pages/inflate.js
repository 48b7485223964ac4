// Inflates zlib data (RFC 1950, 1951) at once: paper cannot wait for a stream of the browser.

const inflate = {};

inflate.BASES = [[3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258],
  [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193,
    12289, 16385, 24577]];
inflate.EXTRA = [[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0],
  [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13]];
inflate.ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

// Returns a canonical Huffman code by its lengths: how many codes there are of each, and the symbols in order.
inflate.code = (lengths) => {
  const counts = new Uint16Array(16);
  for (const length of lengths) counts[length] += 1;
  counts[0] = 0;
  const first = new Uint16Array(17);
  for (let bits = 1; bits < 16; bits += 1) first[bits + 1] = first[bits] + counts[bits];
  const symbols = new Uint16Array(lengths.length);
  lengths.forEach((length, symbol) => { if (length) { symbols[first[length]] = symbol; first[length] += 1; } });
  return { counts, symbols };
};

// Returns the value of deflated JSON in base 64.
inflate.json = (text) => JSON.parse(inflate.text(Uint8Array.from(atob(text), (char) => char.charCodeAt(0))));

// Returns the text of zlib data.
inflate.text = (data) => {
  let at = 2; // behind the header
  let bit = 0;
  let out = new Uint8Array(Math.max(1024, 8 * data.length));
  let size = 0;
  const room = (more) => {
    if (size + more <= out.length) return;
    const wider = new Uint8Array(2 * (size + more));
    wider.set(out);
    out = wider;
  };
  const bits = (count) => {
    let found = 0;
    for (let k = 0; k < count; k += 1) {
      found |= ((data[at] >> bit) & 1) << k;
      bit += 1;
      if (bit === 8) { bit = 0; at += 1; }
    }
    return found;
  };
  const symbol = ({ counts, symbols }) => {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length < 16; length += 1) {
      code |= (data[at] >> bit) & 1;
      bit += 1;
      if (bit === 8) { bit = 0; at += 1; }
      const count = counts[length];
      if (code - first < count) return symbols[index + code - first];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("the data of this page are damaged");
  };
  const codes = (kind) => {
    if (kind === 1) {
      const fixed = (k) => (k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8);
      return [inflate.code(Array.from({ length: 288 }, (_, k) => fixed(k))), inflate.code(new Array(30).fill(5))];
    }
    const [literals, distances, count] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const own = new Array(19).fill(0);
    for (let k = 0; k < count; k += 1) own[inflate.ORDER[k]] = bits(3);
    const code = inflate.code(own);
    const lengths = [];
    while (lengths.length < literals + distances) {
      const found = symbol(code);
      if (found < 16) lengths.push(found);
      else {
        const again = found === 16 ? lengths[lengths.length - 1] : 0;
        for (let times = found === 16 ? 3 + bits(2) : found === 17 ? 3 + bits(3) : 11 + bits(7); times; times -= 1) lengths.push(again);
      }
    }
    return [inflate.code(lengths.slice(0, literals)), inflate.code(lengths.slice(literals))];
  };
  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      if (bit) { bit = 0; at += 1; }
      const length = data[at] | (data[at + 1] << 8);
      room(length);
      out.set(data.subarray(at + 4, at + 4 + length), size);
      size += length;
      at += 4 + length;
      continue;
    }
    const [literals, distances] = codes(kind);
    for (let found = symbol(literals); found !== 256; found = symbol(literals)) {
      if (found < 256) { room(1); out[size] = found; size += 1; continue; }
      const length = inflate.BASES[0][found - 257] + bits(inflate.EXTRA[0][found - 257]);
      const far = symbol(distances);
      const back = inflate.BASES[1][far] + bits(inflate.EXTRA[1][far]);
      room(length);
      for (let k = 0; k < length; k += 1) { out[size] = out[size - back]; size += 1; }
    }
  }
  return new TextDecoder().decode(out.subarray(0, size));
};
