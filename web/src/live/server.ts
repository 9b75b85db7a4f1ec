// What the page asks its server for: every refusal becomes an error with the server's own line.

export class ServerError extends Error {
  constructor(
    readonly status: number, // 0: there was no answer
    line: string,
  ) {
    super(line);
  }
}

const GONE = "The server doesn't respond. It was probably stopped.";
const OLD = "The server was restarted, so the link that opened this page is out of date.";
const LOOK = 300; // ms between two looks at a job's progress

export interface ServerState {
  version: string;
  format: [string, number];
  models: { name: string; pairs: boolean; limit: number | null; writes: boolean; pictures: "alone" | "in a text" | null }[];
  texts: string[];
  stores: { name: string; rows: number; unit: "words" | "tokens" }[];
  pages: { id: string; title: string }[];
  limits: { characters: number; texts: number; picture: number; seconds: number };
}

/** Ask for something. Throws ServerError for every answer that is not one of success. */
export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ServerError(0, GONE);
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let line = text;
  try {
    line = (JSON.parse(text) as { error: string }).error;
  } catch {
    // what stands before the server's own routes answers in plain text
  }
  throw new ServerError(answer.status, answer.status === 401 ? OLD : line);
}

export async function askJson<T>(path: string, options: RequestInit = {}): Promise<T> {
  return (await (await ask(path, options)).json()) as T;
}

export async function askNumbers(path: string, signal?: AbortSignal): Promise<Float32Array> {
  return new Float32Array(await (await ask(path, { signal })).arrayBuffer()); // little-endian, as every browser's machine is
}

/** The text that a place of a corpus was read in, and which model reads it; start, end: the word's characters in it. */
export interface Passage {
  model: number;
  text: string;
  start: number;
  end: number;
  document: string;
  first: number; // the text's first character in the document
  same: boolean; // whether it has the very tokens that the store read
}

/** The bytes of a file in base64. */
export function inBase64(file: File): Promise<string> {
  return new Promise((give, refuse) => {
    const reader = new FileReader();
    reader.onload = () => give((reader.result as string).split(",")[1] ?? "");
    reader.onerror = () => refuse(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

/** How far a job is: the share that is done, whether it waits for its turn, and what it has written so far. */
export interface Progress {
  done: number;
  waits: boolean;
  said: string;
}

/** Ask for what takes a while. tell: called with how far it is. */
export async function askLong(
  path: string,
  body: unknown,
  tell: (now: Progress) => void,
  signal: AbortSignal,
): Promise<Response> {
  const job = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const stop = () => void fetch(`/api/jobs/${job}`, { method: "DELETE" }).catch(() => {});
  signal.addEventListener("abort", stop);
  let over = false; // what was asked before the answer may come after it
  const timer = setInterval(() => {
    askJson<Progress>(`/api/jobs/${job}`).then(
      (now) => over || tell(now),
      () => {}, // the answer itself tells what is wrong
    );
  }, LOOK);
  try {
    const headers = { "content-type": "application/json", "x-job": job };
    return await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch (error) {
    signal.throwIfAborted(); // what nobody waits for any more is no trouble
    throw error;
  } finally {
    over = true;
    clearInterval(timer);
    signal.removeEventListener("abort", stop);
  }
}
