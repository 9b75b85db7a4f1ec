"""What `regard embed` read and wrote, in a terminal."""

from rich.console import Console

from regard.corpus.embed_texts import EmbedReport

# What the model did not read as it stands, by its kind in spans.parquet.
KINDS = {
    "unknown": "places that the tokenizer does not know: read as its token for unknown text",
    "dropped": "stretches that the tokenizer drops: no vector",
    "special": "stretches that are read as special tokens: no vector",
    "long": "words longer than two windows share: no vector",
}


def show_embedded(report: EmbedReport, console: Console, most: int, missing: str = "") -> None:
    """Print what a store holds, what was left out and why.

    most: documents in quarantine that are named. missing: which words have no row, as `missing_words` says it.
    """
    counts = report.counts

    def put(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    rows, tokens = counts.get("rows", 0), counts.get("tokens", 0)
    documents = counts.get("documents", 0)
    put(f"{documents:,} document{'s' * (documents != 1)}, {tokens:,} tokens, {rows:,} rows in {report.store}", "bold")
    if missing:
        put(missing, "yellow")
    if report.built:
        rate = report.new_tokens / max(report.seconds, 1e-9)
        put(f"read in {report.seconds:,.0f} s, {rate:,.0f} tokens a second with the model's loading")
    else:
        put("everything was there already: nothing was read with the model")
    cut = counts.get("parts", 0) - counts.get("documents", 0)
    if cut > 0:
        put(f"{cut:,} times a document was cut into parts: attention does not reach across (texts.parquet)")
    for note in report.notes:
        put(note, "yellow")
    for kind, meaning in KINDS.items():
        if counts.get(kind):
            put(f"{counts[kind]:,} {meaning} (spans.parquet)", "yellow")
    if report.rejected:
        put(f"{len(report.rejected):,} could not be read (quarantine.parquet):", "yellow")
        for each in report.rejected[:most]:
            place = each.source if each.line is None else f"{each.source}:{each.line}"
            put(f"  {place}: {each.reason}", "yellow")
        if len(report.rejected) > most:
            put(f"  … and {len(report.rejected) - most:,} more", "yellow")
