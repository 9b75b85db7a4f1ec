// The licences of the packages whose code a built file carries stand at its head, as they ask for; equal ones once.
import { readdirSync, readFileSync } from "node:fs";

export function licences() {
  return {
    name: "licences",
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        const names = new Map();
        for (const id of Object.keys(chunk.modules)) {
          const found = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(id.replace("\0", ""));
          if (found === null) continue;
          const [, folder, name] = found;
          const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
          if (file === undefined) this.error(`${name} has no licence file: what is carried of it needs one`);
          const text = readFileSync(`${folder}/${file}`, "utf8").trim().replaceAll("*/", "* /");
          names.set(text, (names.get(text) ?? new Set()).add(name));
        }
        const all = [...names].map(([text, of]) => `${[...of].sort().join(", ")}\n\n${text}`).sort();
        if (all.length > 0) chunk.code = `/*! This file carries code of\n\n${all.join("\n\n\n")}\n*/\n${chunk.code}`;
      }
    },
  };
}
