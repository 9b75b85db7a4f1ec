"""The same examples are drawn every time; `--hypothesis-profile=default` draws others."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")
