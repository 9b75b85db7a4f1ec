// Calls one function of the page's source, for what one JSON line on standard input says: its module, name and arguments.
import { registerHooks } from "node:module";
import { readFileSync } from "node:fs";

registerHooks({
  resolve: (name, context, next) => next(name.startsWith(".") && !name.endsWith(".ts") ? `${name}.ts` : name, context),
});
const { module, name, given } = JSON.parse(readFileSync(0, "utf8"));
const found = (await import(`${process.argv[2]}/${module}.ts`))[name](...given);
console.log(JSON.stringify(ArrayBuffer.isView(found) ? [...found] : found));
