"""A transformer of ours and its tokenizer, with the methods that a pretrained model has."""

import difflib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from regard.capture.options import CaptureOptions
from regard.capture.regard_attention import RegardSession
from regard.errors import RegardError
from regard.generation.generate import Generated
from regard.generation.settings import SAMPLING, stops
from regard.models.model import Model
from regard.nn.decoding import OPTIONS, Choice, translate, write
from regard.nn.folder import save_model
from regard.nn.transformer import Transformer
from regard.text.continuation import begun, continued
from regard.text.reader import Ids
from regard.text.tokens import Encoded


class Trained(Model):
    """What `regard.load` gives for a `regard.Transformer` and for the folder of one; traces are the same."""

    def __init__(self, model: Transformer, tokenizer: Any, *, name: str, notes: tuple[str, ...] = ()) -> None:
        super().__init__(model, tokenizer, name=name, notes=notes)
        self._passes = RegardSession(model, name=name, filler=self._passes.filler, pairs=self.pairs)

    def __repr__(self) -> str:
        return f"Trained({self.name!r}, {self.model.config.kind}, limit={self.limit})"

    def save(self, folder: str | Path) -> None:
        """Write the folder that `regard.load` opens: config.json, model.safetensors, and the tokenizer's files.

        Raises:
            RegardError: the folder cannot be made or written to.
        """
        save_model(folder, self.model, self.tokenizer)

    def generate(
        self,
        prompt: str | Sequence[str] | None = None,
        *,
        ids: Ids | None = None,
        new_tokens: int = 20,
        seed: int | None = None,
        cache: str = "dynamic",
        stop: str | Sequence[str] = (),
        **options: Any,
    ) -> Any:
        """Let the model write, and trace all of it in one pass at the end.

        Args:
            prompt: what the text begins with; for an encoder-decoder the text that it reads. Several are written to one
                after another.
            ids: the token ids of a prompt (or of several) instead of it.
            new_tokens: the most tokens to write, special ones included.
            seed: of the random numbers of each text; None takes them as they come.
            cache: "dynamic", the one way to keep keys and values here.
            stop: strings at which to stop.
            options: do_sample, temperature, top_k, top_p; greedy without do_sample.

        Returns a `Generated` for one prompt, a list of them for several: text, ids, and one trace of all the tokens.

        Raises:
            RegardError: the model does not write text, there is no room for so many tokens, or an option does not
                exist, has no effect or cannot have its value.
        """
        if (prompt is None) == (ids is None):
            raise RegardError(f"generate: needs either a prompt or its ids, given {'none' if ids is None else 'both'}")
        model = self.model
        if model.decoder is None or model.head is None:
            raise RegardError(f"generate: {self.name} has no decoder with a language head: it cannot generate")
        if cache != "dynamic":
            raise RegardError(f"generate: cache: given {cache!r}, needs 'dynamic'")
        if isinstance(new_tokens, bool) or not isinstance(new_tokens, int) or new_tokens < 1:
            raise RegardError(f"generate: new_tokens: given {new_tokens!r}, needs a whole number of 1 or more")
        choice = _choice(options, seed)
        strings = stops(stop, self.tokenizer, self.name)
        single, prompts = self._reader.read("prompt", prompt, ids)
        prompts = [self._begun(each) for each in prompts]
        for each in prompts:
            self._check_room(each, new_tokens)
        made = [self._written(each, new_tokens, choice, strings) for each in prompts]
        return made[0] if single else made

    def _written(self, prompt: Encoded, new_tokens: int, choice: Choice, strings: Sequence[str]) -> Generated:
        started, model, tokenizer = time.perf_counter(), self.model, self.tokenizer
        end = getattr(tokenizer, "eos_token_id", None)
        before = begun(tokenizer, model.config.start) if self.pairs else prompt
        first = torch.tensor([prompt.ids], device=model.device)

        def stopped(new: list[int]) -> bool:
            return any(string in continued(tokenizer, before, new).text[len(before.text) :] for string in strings)

        until = stopped if strings else None
        if self.pairs:
            new = translate(model, first, new_tokens=new_tokens, end=end, choose=choice.chooser(), until=until)[0]
        else:
            new = write(model, first, new_tokens=new_tokens, end=end, choose=choice.chooser(), until=until)[0]
        whole = continued(tokenizer, before, new)
        sources, targets = ([prompt], [whole]) if self.pairs else ([whole], None)
        ((_, trace),) = self._traces(sources, targets, (), CaptureOptions())
        for status in (trace.encoder.status, trace.decoder.status) if self.pairs else (trace.status,):
            status.seconds = time.perf_counter() - started
        ended: Literal["end", "stop", "length"] = "length"
        if new[-1] == end:
            ended = "end"
        elif strings and stopped(new):
            ended = "stop"
        text = whole.text[len(before.text) :]
        ids = tuple(whole.ids)
        return Generated(whole.text, text if before.text else text.lstrip(), ids, len(before.tokens), ended, trace)

    def _begun(self, prompt: Encoded) -> Encoded:
        """A prompt that is to be gone on with: without the end token that the tokenizer puts behind whole texts."""
        end = getattr(self.tokenizer, "eos_token_id", None)
        if self.pairs or len(prompt.tokens) < 2 or prompt.ids[-1] != end:
            return prompt
        return replace(prompt, tokens=prompt.tokens[:-1], segments=None)

    def _check_room(self, prompt: Encoded, new_tokens: int) -> None:
        taken = 1 if self.pairs else len(prompt.tokens)
        if self.limit is not None and taken + new_tokens > self.limit:
            raise RegardError(
                f"generate: {taken} tokens and {new_tokens} new ones are more than the {self.limit} that {self.name} "
                f"takes: new_tokens can be {max(0, self.limit - taken)} at most"
            )


def _choice(options: dict[str, Any], seed: int | None) -> Choice:
    """How tokens are chosen, from a person's options."""
    for option in options:
        if option not in OPTIONS:
            near = difflib.get_close_matches(option, OPTIONS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(OPTIONS)}"
            raise RegardError(f"generate: there is no option {option!r}: {hint}")
    choice = Choice(**options, seed=seed)
    idle = [option for option in SAMPLING if option in options]
    if idle and not choice.do_sample:
        raise RegardError(f"generate: {idle[0]} has no effect on a greedy choice: give do_sample=True with it")
    return choice
