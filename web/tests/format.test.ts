// What a page carries, read as the library writes it: base64 of deflated byte planes.
import { expect, test } from "vitest";
import { decode, fromBase64, fromPlanes } from "../src/data/bytes";
import { scaled } from "../src/attention/loaded";

/** The planes of numbers, lowest bytes first. */
function planes(values: Int16Array | Int32Array | Float32Array): Uint8Array {
  const [bytes, size] = [new Uint8Array(values.buffer), values.BYTES_PER_ELEMENT];
  return Uint8Array.from(bytes, (_, n) => bytes[(n % values.length) * size + Math.floor(n / values.length)]!);
}

test("base64 gives every byte back", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
  expect(fromBase64(btoa(String.fromCharCode(...bytes)))).toEqual(bytes);
  expect(fromBase64("")).toHaveLength(0);
});

test.each([
  ["int16", Int16Array.of(0, 1, -1, 32767, -32767, 258)],
  ["int32", Int32Array.of(0, -1, 2 ** 31 - 1, 66051)],
  ["float32", Float32Array.of(0, -0, 1.5, -Infinity, 3.4e38, 1e-45)],
] as const)("planes of %s are put together again", (dtype, values) => {
  expect(fromPlanes(planes(values), dtype)).toEqual(values);
});

test("numbers are inflated, and refused where some are missing", async () => {
  const values = Float32Array.of(1, 2, 3, 4, 5, 6);
  const deflated = new Blob([planes(values) as BlobPart]).stream().pipeThrough(new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(deflated).arrayBuffer());
  expect(await decode({ at: 7, dtype: "float32", shape: [2, 3] }, bytes)).toEqual(values);
  await expect(decode({ at: 7, dtype: "float32", shape: [2, 4] }, bytes)).rejects.toThrow("numbers 7: 6 where 8 were meant");
});

test("a vector is its int16 numbers times its own scale", () => {
  expect([...scaled(Int16Array.of(1, -2, 3, 4), Float32Array.of(0.5, 2), 2)]).toEqual([0.5, -1, 6, 8]);
});
