"""Check generation settings, named as in transformers, and ignore defaults that don't apply."""

import copy
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, first_line

if TYPE_CHECKING:
    from transformers import GenerationConfig

# Type and condition of numbers and switches. transformers checks all others. The options in SAMPLING have no effect on
# greedy decoding.
CHECKS: Mapping[str, tuple[Any, Callable[[Any], bool], str]] = {
    "do_sample": (bool, lambda value: True, "True or False"),
    "temperature": (int | float, lambda n: 0 < n < math.inf, "a number above 0"),
    "top_k": (int, lambda n: n >= 0, "a whole number of 0 (all tokens) or more"),
    "top_p": (int | float, lambda n: 0 < n <= 1, "a number above 0, at most 1"),
    "min_p": (int | float, lambda n: 0 <= n <= 1, "a number from 0 to 1"),
    "typical_p": (int | float, lambda n: 0 < n <= 1, "a number above 0, at most 1"),
    "epsilon_cutoff": (int | float, lambda n: 0 <= n < 1, "a number from 0, below 1"),
    "eta_cutoff": (int | float, lambda n: 0 <= n < 1, "a number from 0, below 1"),
    "repetition_penalty": (int | float, lambda n: 0 < n < math.inf, "a number above 0"),
    "no_repeat_ngram_size": (int, lambda n: n >= 0, "a whole number of 0 (off) or more"),
    "min_new_tokens": (int, lambda n: n >= 0, "a whole number of 0 or more"),
    "num_beams": (int, lambda n: n == 1, "1, because regard writes a single text"),
    "num_return_sequences": (int, lambda n: n == 1, "1: generate again with another seed for another text"),
}
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")
OTHERS = (
    "bad_words_ids", "begin_suppress_tokens", "eos_token_id", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "pad_token_id", "renormalize_logits", "sequence_bias", "suppress_tokens",
)  # fmt: skip
# Unsupported settings, and the value that disables each: they choose among texts or need several passes per token.
UNUSED: Mapping[str, Any] = {
    "num_beams": 1, "num_beam_groups": None, "num_return_sequences": 1, "penalty_alpha": None, "dola_layers": None,
    "prompt_lookup_num_tokens": None, "assistant_early_exit": None, "guidance_scale": None, "constraints": None,
    "force_words_ids": None, "token_healing": False, "prefill_chunk_size": None,
}  # fmt: skip
QUIETLY = {  # reset without a note: regard chooses outputs, caches and compilation itself
    "cache_implementation": None, "cache_config": None, "compile_config": None, "early_stopping": False,
    "length_penalty": 1.0, "max_length": None, "max_time": None, "output_attentions": False,
    "output_hidden_states": False, "output_logits": False, "output_scores": False, "return_dict_in_generate": False,
    "stop_strings": None, "use_cache": True,
}  # fmt: skip


def check_generation_options(options: Mapping[str, Any], samples: bool | None = False) -> None:
    """Raise RegardError for unknown, wrong or ineffective options. samples: whether the model samples by default."""
    for option, value in options.items():
        check_option_name(option, sorted((*CHECKS, *OTHERS)))
        if option in CHECKS:
            kind, allows, expected = CHECKS[option]
            if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool) or not allows(value):
                raise RegardError(f"generate: {option}: got {value!r}, expected {expected}")
    unused = [option for option in SAMPLING if option in options]
    if unused and not options.get("do_sample", samples):
        raise RegardError(f"generate: {unused[0]} has no effect on greedy decoding: pass do_sample=True as well")


def check_option_name(option: str, allowed: Sequence[str]) -> None:
    """Raise RegardError for an unknown option. The message names a similar option, or all options."""
    if option not in allowed:
        renamed = option in ("new_tokens", "max_length", "max_tokens")
        matches = ["max_new_tokens"] if renamed else difflib.get_close_matches(option, allowed, n=1)
        hint = f"did you mean {matches[0]!r}?" if matches else f"there are {', '.join(allowed)}"
        raise RegardError(f"generate: there is no option {option!r}: {hint}")


def settings(
    defaults: "GenerationConfig", options: Mapping[str, Any], max_new_tokens: int, name: str
) -> "tuple[GenerationConfig, tuple[str, ...]]":
    """Return the settings as transformers' GenerationConfig, and notes on ignored defaults.

    defaults: the model's own settings for options that aren't passed.
    """
    check_generation_options(options, defaults.do_sample)
    if (least := options.get("min_new_tokens", 0)) > max_new_tokens:
        raise RegardError(f"generate: min_new_tokens: got {least}, but max_new_tokens is {max_new_tokens}")
    config, notes = copy.deepcopy(defaults), []
    for option, off in UNUSED.items():
        value = getattr(config, option, None)
        if value is not None and value != off and not (option == "guidance_scale" and value == 1):
            notes.append(f"The model's setting {option}={value} isn't used: one text is written, token by token.")
        if value is not None:
            setattr(config, option, off)
    for option, value in QUIETLY.items():
        setattr(config, option, value)
    try:
        config.update(**options, max_new_tokens=max_new_tokens)
    except (ValueError, TypeError) as error:
        raise RegardError(f"generate: {name}: {first_line(error)}") from error
    return config, tuple(notes)


def stops(stop: str | Sequence[str], tokenizer: Any, name: str) -> list[str]:
    """Check the stop strings and return them as a list."""
    strings = [stop] if isinstance(stop, str) and stop else list(stop)
    if any(not isinstance(string, str) or not string for string in strings):
        raise RegardError(f"generate: stop: got {stop!r}, expected strings that are not empty")
    if strings and tokenizer is None:
        raise RegardError(f"generate: stop: {name} has no tokenizer that spells {strings[0]!r}")
    return strings
