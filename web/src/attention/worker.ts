// Computes weights off the page's own thread: it holds the calls that were sent to it and answers one question at a time.
import { answerer, type Question } from "./answer";

const answer = answerer();

self.onmessage = async (event: MessageEvent<{ id: number; question: Question }>) => {
  const { id, question } = event.data;
  try {
    const value = await answer(question);
    self.postMessage({ id, value }, { transfer: value ? [value.buffer] : [] });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
};
