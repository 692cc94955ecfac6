// The text of an element, which stands there deflated, each four bytes as five digits of base 85 from
// "#" on, with "x" in place of "<". What fills up the last four is cut off: streams refuse it.
"use strict";
const unpack = async (packed) => {
  const text = packed.textContent;
  const bytes = new DataView(new ArrayBuffer((text.length / 5) * 4));
  for (let five = 0; five < text.length / 5; five++) {
    let value = 0;
    for (let digit = 5 * five; digit < 5 * five + 5; digit++) {
      const code = text.charCodeAt(digit);
      value = 85 * value + (code === 120 ? 60 : code) - 35;
    }
    bytes.setUint32(4 * five, value);
  }
  packed.remove();
  const filled = new Blob([bytes.buffer.slice(0, bytes.byteLength - Number(packed.dataset.filled))]);
  return new Response(filled.stream().pipeThrough(new DecompressionStream("deflate"))).text();
};
