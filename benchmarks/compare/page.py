"""Write what was measured into the pages: every figure of theirs about other tools comes from measured.json.

A page has a place for each table, between `<!-- compared: NAME -->` and `<!-- end -->`.
"""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.compare.tools import TOOLS
from regard.files import whole

ROOT = Path(__file__).parents[2]
MEASURED = Path(__file__).parent / "measured.json"
PAGES = [ROOT / "docs" / "compare.md", ROOT / "README.md"]
PLACE = re.compile(r"(<!-- compared: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
WRITTEN_OUT, ROW = [name for name in TOOLS if name.startswith("regard")]
PLACES = ("machine", "encoder-512", "decoder-512", "decoder-4096", "better", "long", "files", "summary")
JOBS = {"layer": "one layer", "all": "all layers"}
CLEAR = 0.9  # of regard's figure, from which on another is called better: less is the machine's noise

Found = dict[str, Any]


def keep(found: Found) -> None:
    """Keep what was measured, and write the pages from it."""
    with whole(MEASURED) as temporary:
        temporary.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for page in PAGES:
        text = filled(page.read_text(encoding="utf-8"), found)
        with whole(page) as temporary:
            temporary.write_text(text, encoding="utf-8")


def filled(text: str, found: Found) -> str:
    """A page with what was measured in its places."""
    told = sections(found)
    return PLACE.sub(lambda place: f"{place[1]}{told[place[2]]}\n{place[3]}", text)


def sections(found: Found) -> dict[str, str]:
    """Every table and list, by the name of its place; of a part that was not measured it says that."""
    told = dict.fromkeys(PLACES, "Not measured yet.")
    for kind in ("encoder", "decoder"):
        for length in found.get(kind, {}).get("lengths", ()):
            told[f"{kind}-{length}"] = table(found[kind]["rows"], str(length))
    writers = {"long": (long, "long"), "files": (files, "files")}
    told |= {name: write(found[part]) for name, (write, part) in writers.items() if part in found}
    if "encoder" in found:
        told["better"] = better(found)
        told["summary"] = summary(found)
    if {"encoder", "decoder"} <= set(found):
        told["machine"] = machine(found)
    return told


def machine(found: Found) -> str:
    """Where and when it was measured, and of which models."""
    about = found["decoder"]
    return (
        f"Measured on {about['date']} on one thread of an {about['machine']} that other work shared, with torch "
        f"{about['torch']} and\ntransformers {about['transformers']}. "
        f"Encoder: {found['encoder']['name']}. Decoder: {about['name']}."
    )


def table(rows: Found, length: str) -> str:
    """A text's table: a row a tool."""
    lines = [
        "| | largest error | one layer: time | memory | all layers: time | memory |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        version = f" {row['version']}" if row.get("version") and not name.startswith("regard") else ""
        told, at = f"| {name.replace(',', f'{version},', 1) if ',' in name else name + version} |", row.get(length)
        if "failed" in row or at is None:
            lines.append(f"{told} {row.get('failed') or 'stopped on the shorter text'} | | | | |")
            continue
        error = f"{at['layer']['error']:.0e}" if "error" in at["layer"] else ""
        lines.append(f"{told} {error} | {cells(at['layer'])} | {cells(at.get('all', {}))} |")
    return "\n".join(lines)


def cells(job: Found) -> str:
    """Time and memory of one job."""
    if "seconds" in job:
        times = f"{job['seconds']:.2f} s, {ratio(job['ratio'])} ×" + (", one run" if job["rounds"] == 1 else "")
        return f"{times} | {job['mib']:,.0f} MiB"
    return f"{ended(job)} |" if job else "not tried |"


def ratio(number: float) -> str:
    """A ratio with two digits, more of large ones."""
    return f"{number:.2f}" if number < 10 else f"{number:.0f}"


def ended(job: Found) -> str:
    """Why there is no figure."""
    if "stopped" in job:
        return f"stopped after {job['stopped']} s"
    wanted = re.search(r"tried to allocate (\d+) bytes", job["failed"])
    if wanted:
        return f"no memory: it tried to allocate {int(wanted[1]) / 2**30:,.0f} GiB at once"
    return job["failed"].replace("|", "/")


def better(found: Found) -> str:
    """Where another tool is clearly better than regard with all weights written out, as a list."""
    lines = []
    for kind in (kind for kind in ("encoder", "decoder") if kind in found):
        for length in found[kind]["lengths"]:
            rows = {name: row[str(length)] for name, row in found[kind]["rows"].items() if str(length) in row}
            for job, said in JOBS.items():
                ours = rows[WRITTEN_OUT][job]
                for field, words in {"seconds": "time", "mib": "memory", "error": "error"}.items():
                    others = {
                        name: row[job][field] / ours[field]
                        for name, row in rows.items()
                        if not name.startswith("regard") and field in row.get(job, {}) and field in ours
                    }
                    told = [f"{name} {each:.2f} ×" for name, each in others.items() if each < CLEAR]
                    if told:
                        lines.append(f"- {kind}, {length:,} tokens, {said}, {words} of regard's: {', '.join(told)}")
    return "\n".join(lines) or f"- Nowhere by more than a {1 - CLEAR:.0%} of regard's figure."


def long(found: Found) -> str:
    """What is seen of 100,000 tokens."""
    seen, length = found["seen"], found["length"]
    took = seen["seconds"]
    matrix = length * length * 4 / 2**30
    lines = [
        f"| of {length:,} tokens | |", "|---|---|",
        f"| regard: the trace | {took['trace']:.0f} s, {seen['mib']:,.0f} MiB with all that follows |",
        f"| attention of the last token, all {length:,} weights | {took['row']:.2f} s |",
        f"| a region of 256 × 256 weights | {took['region']:.2f} s |",
        f"| the whole as a picture of 256 × 256 true means, the 8 largest weights and entropy of every token | "
        f"{took['whole']:.0f} s |",
    ]  # fmt: skip
    for name in (name for name in TOOLS if not name.startswith("regard")):
        row = found["rows"].get(name, {"failed": "not measured yet"})
        end = f"{row['mib']:,.0f} MiB, {row['seconds']:.0f} s" if "seconds" in row else ended(row)
        lines.append(f"| {name}: the matrix ({matrix:.0f} GiB) | {end} |")
    return "\n".join(lines)


def files(found: Found) -> str:
    """The sizes of the files that show all heads."""
    version = {f" {each['BertViz']['version']}" for each in found["texts"].values() if "bytes" in each["BertViz"]}
    lines = [
        f"| all heads of the encoder, in one file | BertViz{''.join(version)}, `model_view` | regard, `save_page` |",
        "|---|---|---|",
    ]
    for length, each in found["texts"].items():
        theirs = f"{each['BertViz']['bytes'] / 1e6:.1f} MB" if "bytes" in each["BertViz"] else ended(each["BertViz"])
        lines.append(f"| {int(length):,} tokens | {theirs} | {each['regard'] / 1e6:.1f} MB |")
    return "\n".join(lines)


def summary(found: Found) -> str:
    """The longest text that was measured in one line a tool, for the front pages."""
    kind = "decoder" if "decoder" in found else "encoder"
    length = found[kind]["lengths"][-1]
    lines = [
        f"| {kind}, {length:,} tokens, {found[kind]['layers']} layers | time, × eager | memory | largest error |",
        "|---|---|---|---|",
    ]
    for name, row in found[kind]["rows"].items():
        at = row.get(str(length), {})
        if "seconds" in at.get("all", {}):
            job, error = at["all"], at["layer"]["error"]
            lines.append(f"| {name} | {ratio(job['ratio'])} | {job['mib']:,.0f} MiB | {error:.0e} |")
        else:
            job, of = next(((each, f"{JOBS[job]}: ") for job, each in at.items() if "seconds" not in each), (row, ""))
            lines.append(f"| {name} | {of}{ended(job)} | | |")
    return "\n".join(lines)
