// Texts to begin with: the first is shown before anybody has typed one.
import type { Asked } from "./address";
import type { ServerState } from "./server";

export type Example = Pick<Asked, "model" | "texts" | "followed" | "written"> & { name: string };

const LONG = `The river comes down from the hills in a hurry and slows where the valley opens. On its left bank stands the old mill, which has not ground any flour for sixty years; on its right bank the town has put benches under the willows. Every spring the water rises over the lowest of them, and every summer children jump from the same bench into the same water. The bank in the market square lent the money for the benches. Its manager, who swims there on Sundays, likes to say that it was the only loan on which nobody ever paid interest. When the mill was to be sold, the town asked her again, and she asked what a mill was worth that could not turn. The miller's granddaughter brought her to the bank at dusk, when the swallows hunt low over the weir and the wheel, wet and black, looks as if it might start. They sat there until it was dark. On Monday the bank signed, and a year later the wheel turned again. It grinds no flour now. It lights the lamps along the water, and the benches, and the window of the room in which the contract hangs.`;

/** What suits the models: a sentence with a pronoun, two senses of a word, and a text that the model goes on, or a long one. */
export function examplesOf({ models }: ServerState): Example[] {
  const model = Math.max(0, models.findIndex((each) => !each.pairs && each.pictures !== "alone"));
  const writes = models.findIndex((each) => each.writes && !each.pairs);
  const plain = { model, followed: null, written: null };
  return [
    { ...plain, name: "What “it” looks at", texts: [writes === model ? "The trophy didn't fit in the suitcase because it was too big." : "The animal didn't cross the street because it was too tired."] },
    { ...plain, name: "Two senses of “bank”", texts: ["We sat on the river bank.", "I made a deposit at the bank."], followed: { word: "bank", references: writes === model ? [] : ["river", "deposit"] } }, // a large model would take seconds for 39 neutral sentences
    writes >= 0 ? { ...plain, name: "A story to continue", model: writes, texts: ["Once upon a time there was a little"], written: 20 } : { ...plain, name: "A long text", texts: [LONG] },
  ];
}
