"""Learn from plain passes what interventions need to know of a model, and translate them with it.

That is: its stacks of layers, the modules that give feed-forward outputs, and what those gave in a trace.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from jaxtyping import Float
from torch import Tensor, nn

from regard.capture.build_trace import CapturedPass
from regard.capture.interventions import feed_forward
from regard.capture.interventions.names import Part
from regard.capture.interventions.resolve import Changes, Pass, check_patch_source_states, needs_stacks, resolve
from regard.capture.interventions.states import Stacks, StateHooks
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

# (source, target of an encoder-decoder, what is opened around the model's forward) -> the plain pass of one text
PlainPass = Callable[[Encoded, Encoded | None, Callable[[], AbstractContextManager[None]]], CapturedPass]


class ModelStructure:
    """What one model's plain passes showed; each is made once, when it is first needed."""

    def __init__(self, model: nn.Module, name: str, *, pairs: bool, plain_pass: PlainPass) -> None:
        self._model, self._name, self._pairs, self._pass = model, name, pairs, plain_pass
        self._stacks: Stacks | None = None
        self._attention: list[str] = []
        self._feed_forwards: feed_forward.FeedForwardPaths | None = None
        self._outputs: WeakKeyDictionary[Trace, dict[tuple[int, int], Tensor]] = WeakKeyDictionary()

    def stacks(self, source: Encoded, target: Encoded | None) -> Stacks:
        """The paths of the model's stacks of layers and how many layers run, learned from these texts."""
        if self._stacks is None:
            done = self._pass(source, target, nullcontext)
            stacks = list(done.stacks.values())
            if not self._pairs:
                stacks = [max(stacks, key=lambda stack: stack.count)] if stacks else []
            assert done.call_ids is not None
            modules = dict(self._model.named_modules())
            for stack in stacks:
                # as in XLM, which has no list of layers, or XLNet, whose layers give states of another shape
                if not isinstance(modules.get(stack.path), nn.ModuleList):
                    raise RegardError(
                        f"interventions: no modules of one list give the states between the {stack.count - 1} layers "
                        f"of {self._name}, as it reports them: they cannot be changed"
                    )
            self._attention = sorted({path for path, _ in done.call_ids.ids})
            self._stacks = [(stack.path, stack.count - 1) for stack in stacks]
        return self._stacks

    def feed_forwards(self, source: Encoded, target: Encoded | None) -> feed_forward.FeedForwardPaths:
        """The modules that give feed-forward outputs, by (stack, layer), learned from these texts."""
        if self._feed_forwards is None:
            stacks = self.stacks(source, target)
            paths: feed_forward.FeedForwardPaths = {}

            @contextmanager
            def watched() -> Iterator[None]:
                with feed_forward.finding(self._model, stacks, self._attention) as seen:
                    yield
                paths.update(seen)

            self._pass(source, target, watched)
            self._feed_forwards = paths
        return self._feed_forwards

    def feed_forward_outputs(self, source: Trace | PairTrace, part: Part | None, layer: int) -> Float[Tensor, "L M"]:
        """What the feed-forward block of a layer added in a trace, found by running its tokens again."""
        stack = 1 if part == "decoder" else 0
        last = source.sides[-1]  # a pair cannot be a key
        if last not in self._outputs:
            self._outputs[last] = self._run_again(source)
        outputs = self._outputs[last]
        if (stack, layer) not in outputs:
            raise RegardError(feed_forward.feed_forward_not_found(layer, self._name))
        return outputs[stack, layer]

    def changes(
        self, sources: Sequence[Encoded], targets: Sequence[Encoded] | None, interventions: Sequence[Sequence[Any]]
    ) -> Changes:
        """What interventions mean for each text of a batch; see `resolve`."""
        changes = Changes()
        for n, (source, of_text) in enumerate(zip(sources, interventions, strict=True)):
            target = None if targets is None else targets[n]
            stacks = self.stacks(source, target) if needs_stacks(of_text) else ()
            resolved = resolve(of_text, Pass(source, target, n, self._name, stacks, self.feed_forward_outputs))
            changes.calls += resolved.calls
            changes.states += resolved.states
        return changes

    def hooks(self, changes: Changes, source: Encoded, target: Encoded | None) -> StateHooks:
        """What makes the changes of states in a pass. source, target: a text, for what has to be learned first."""
        if not changes.states:
            return StateHooks(self._model, (), (), {}, self._name)
        fed = any(change.feed_forward for change in changes.states)
        paths = self.feed_forwards(source, target) if fed else {}
        for change in changes.states:
            if change.feed_forward and (change.stack, change.number) not in paths:
                raise RegardError(feed_forward.feed_forward_not_found(change.number, self._name))
        return StateHooks(self._model, changes.states, self.stacks(source, target), paths, self._name)

    def _run_again(self, trace: Trace | PairTrace) -> dict[tuple[int, int], Tensor]:
        sides = trace.sides
        if (len(sides) == 2) != self._pairs:
            needs = "the pair of an encoder-decoder" if self._pairs else "the trace of one text"
            raise RegardError(f"source: {self._name} needs {needs} to take feed-forward outputs from")
        texts = [Encoded(side.text, side.tokens, None, (), ()) for side in sides]
        source, target = texts[0], texts[1] if self._pairs else None
        paths, recorded_outputs = self.feed_forwards(source, target), {}

        @contextmanager
        def recorded() -> Iterator[None]:
            with feed_forward.recording(self._model, self.stacks(source, target), paths) as outputs:
                yield
            recorded_outputs.update(outputs)

        done = self._pass(source, target, recorded)
        for side, (path, _) in zip(sides, self.stacks(source, target), strict=True):
            check_patch_source_states([state[0] for state in done.stacks[path].hidden_states], side, self._name)
        return {key: output[0] for key, output in recorded_outputs.items()}
