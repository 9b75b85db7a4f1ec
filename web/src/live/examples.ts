// Texts to begin with, where somebody has none at hand.
import type { ServerState } from "./server";

export interface Example {
  name: string;
  model: number; // of the server's
  texts: string[];
  word: string | null; // that is followed through the layers
  beside?: string[]; // reference words
  written: number | null; // tokens that the model is to write
}

const LONG = `The river comes down from the hills in a hurry and slows where the valley opens. On its left bank stands the old mill, which has not ground any flour for sixty years; on its right bank the town has put benches under the willows. Every spring the water rises over the lowest of them, and every summer children jump from the same bench into the same water. The bank in the market square lent the money for the benches. Its manager, who swims there on Sundays, likes to say that it was the only loan on which nobody ever paid interest. When the mill was to be sold, the town asked her again, and she asked what a mill was worth that could not turn. The miller's granddaughter brought her to the bank at dusk, when the swallows hunt low over the weir and the wheel, wet and black, looks as if it might start. They sat there until it was dark. On Monday the bank signed, and a year later the wheel turned again. It grinds no flour now. It lights the lamps along the water, and the benches, and the window of the room in which the contract hangs.`;

/** What the first screen offers: the contrast of two senses, a text that the model goes on where one can, and a long one. */
export function examplesOf({ models }: ServerState): Example[] {
  const reads = Math.max(0, models.findIndex((each) => !each.pairs && each.pictures !== "alone"));
  const writes = models.findIndex((each) => each.writes && !each.pairs);
  const one: Example =
    writes >= 0
      ? { name: "A sentence that the model goes on", model: writes, texts: ["Once upon a time there was a little"], word: null, written: 20 }
      : { name: "What “it” looks at", model: reads, texts: ["The animal did not cross the street because it was too tired."], word: "it", written: null };
  return [
    { name: "Two senses of “bank”", model: reads, texts: ["I sat down by the river bank to rest.", "I deposited my money at the bank."], word: "bank", beside: ["river", "money"], written: null },
    one,
    { name: "A long text", model: reads, texts: [LONG], word: null, written: null },
  ];
}
