// Calls functions of the page's source: each line of standard input names a module, a function and what it is given.
import { registerHooks } from "node:module";
import { createInterface } from "node:readline";

registerHooks({
  resolve: (name, context, next) => next(name.startsWith(".") && !name.endsWith(".ts") ? `${name}.ts` : name, context),
});

const numbers = (values) => values.map((x) => x ?? -Infinity);
const made = (_, value) =>
  value?.float32 ? Float32Array.from(numbers(value.float32))
  : value?.int32 ? Int32Array.from(value.int32)
  : value?.set ? new Set(value.set)
  : value;

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { module, name, given } = JSON.parse(line, made);
    const found = (await import(`${process.argv[2]}/${module}.ts`))[name](...given);
    answer = { found: ArrayBuffer.isView(found) ? [...found] : (found ?? null) };
  } catch (error) {
    answer = { error: String(error.stack) };
  }
  console.log(JSON.stringify(answer));
}
