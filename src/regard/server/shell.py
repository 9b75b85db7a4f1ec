"""The HTML that a browser gets first: it carries nothing but the names of the program and its style sheet."""

SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>regard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/live.css">
<script defer src="/live.js"></script>
</head>
<body>
<div id="regard-live"><noscript><p>JavaScript is off: with it, texts typed here are traced, and this page shows what
every token of them pays attention to. It loads nothing from anywhere but this machine.</p></noscript></div>
</body>
</html>
"""


def shell_html() -> str:
    """The page's HTML."""
    return SHELL
