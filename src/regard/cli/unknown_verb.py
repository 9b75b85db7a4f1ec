"""A verb that there is not, and what was meant: another one, or a text without its verb."""

import difflib
from typing import Any

from typer.core import TyperGroup

from regard.errors import RegardError

NOW = {  # verbs that there were, and what does their work
    "stats": "heads --store STORE",
    "steer": "generate TEXT --towards A --away B --layer N",
}
LONGEST = 60  # characters of a text that are said again


class Verbs(TyperGroup):
    """The command's verbs in the order they were added, with a suggestion where one is misspelt or left out."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the first argument names.

        Raises:
            RegardError: there is none of that name; the nearest is suggested, or `regard see` for a text.
        """
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise RegardError(f"No such command {args[0]!r}. {suggestion(args[0], list(self.commands))}")
        return super().resolve_command(ctx, args)


def suggestion(given: str, verbs: list[str]) -> str:
    """What may have been meant by something that is no verb."""
    if given.lower() in NOW:
        return f"Use regard {NOW[given.lower()]}"
    near = difflib.get_close_matches(given.lower(), verbs, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    simple = len(given) <= LONGEST and not set(given) & set('"\\$`!\n')
    text = f'"{given}"' if simple else "TEXT"
    known = "" if " " in given else f"There are {', '.join(verbs)}. "
    return f"{known}To look at a text: regard see {text}"
