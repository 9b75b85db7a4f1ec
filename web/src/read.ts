// Numbers that a view asks for, which may come after something else is wanted.

/** Ask, and put the answer where it belongs, or tell what failed ("" where nothing did), unless it is not wanted any more.
 *  The function that comes back ends that: an effect returns it. */
export function read<T>(ask: (signal: AbortSignal) => Promise<T>, put: (answer: T) => void, tell: (trouble: string) => void): () => void {
  const wanted = new AbortController();
  const unless = (then: () => void) => {
    if (!wanted.signal.aborted) then();
  };
  ask(wanted.signal).then(
    (answer) => unless(() => (tell(""), put(answer))),
    (error: unknown) => unless(() => tell(error instanceof Error ? error.message : String(error))),
  );
  return () => wanted.abort();
}
