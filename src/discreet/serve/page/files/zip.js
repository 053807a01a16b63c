// ZIP archives for spreadsheets: a few files, packed by the browser, without folders or passwords.

const POLYNOMIAL = 0xedb88320;
const TABLE = Uint32Array.from({ length: 256 }, (_, start) => {
  let left = start;
  for (let bit = 0; bit < 8; bit += 1) left = left & 1 ? (left >>> 1) ^ POLYNOMIAL : left >>> 1;
  return left;
});

function checksum(bytes) {
  let left = 0xffffffff;
  for (const byte of bytes) left = TABLE[(left ^ byte) & 0xff] ^ (left >>> 8);
  return (left ^ 0xffffffff) >>> 0;
}

async function packed(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Little-endian numbers, each with its width in bytes. */
function record(...pairs) {
  const bytes = [];
  for (const [value, width] of pairs)
    for (let k = 0; k < width; k += 1) bytes.push(Math.floor(value / 256 ** k) & 0xff);
  return Uint8Array.from(bytes);
}

const DEFLATED = 8;
const NEEDED = 20; // version 2.0 of the format
const DAY = 33; // 1 January 1980, the first day that the format knows

/** An archive of texts by their names. */
export async function zipped(files, type) {
  const parts = [];
  const entries = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const [title, body] = [new TextEncoder().encode(name), new TextEncoder().encode(text)];
    const held = await packed(body);
    const method = [NEEDED, 0, DEFLATED, 0, DAY].map((value) => [value, 2]);
    const sizes = [checksum(body), held.length, body.length].map((value) => [value, 4]);
    const about = [...method, ...sizes, [title.length, 2], [0, 2]];
    const local = record([0x04034b50, 4], ...about);
    parts.push(local, title, held);
    entries.push(record([0x02014b50, 4], [NEEDED, 2], ...about, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]), title);
    offset += local.length + title.length + held.length;
  }
  const size = entries.reduce((sum, part) => sum + part.length, 0);
  const count = entries.length / 2;
  const end = record([0x06054b50, 4], [0, 2], [0, 2], [count, 2], [count, 2], [size, 4], [offset, 4], [0, 2]);
  return new Blob([...parts, ...entries, end], { type });
}
