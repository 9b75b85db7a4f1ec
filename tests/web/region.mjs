// Compares the blocked loop over a region with the plain one over rows, for what one JSON line on standard input says.
import { registerHooks } from "node:module";
import { readFileSync } from "node:fs";

registerHooks({
  resolve: (name, context, next) => next(name.startsWith("./") && !name.endsWith(".ts") ? `${name}.ts` : name, context),
});
const source = process.argv[2];
const { region, exp } = await import(`${source}/attention/region.ts`);
const { row } = await import(`${source}/attention/weights.ts`);

const given = JSON.parse(readFileSync(0, "utf8"));
if (given.exp) {
  console.log(JSON.stringify(given.exp.map(exp)));
} else {
  const { call, part } = given;
  for (const name of ["query", "key", "rowMax", "rowSum"]) call[name] = Float32Array.from(call[name].map((x) => x ?? -Infinity));
  if (call.mask?.kind === "runs") for (const name of ["first", "starts", "ends"]) call.mask[name] = Int32Array.from(call.mask[name]);
  if (call.bias) call.bias.values = Float32Array.from(call.bias.values);
  call.ablated = new Set(call.ablated);
  const rows = Array.from({ length: call.length }, (_, i) => [...row(call, part.head, i)]);
  console.log(JSON.stringify({ region: [...region(call, part)], rows }));
}
