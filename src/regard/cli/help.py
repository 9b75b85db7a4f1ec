"""Write the help: verbs and options in sections, with each option's default as a sentence."""

import re
from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand

Rows = list[tuple[str, str]]
NAME_WIDTH = 27  # after a longer name, the text starts on the next line
DEFAULT = re.compile(r"\s*\[(?:default: \(?(.*?)\)?(?:; required)?|(required))\]$")
TABLE = """\
Input
--target-text TEXT  Set an encoder-decoder's target text. Repeat for each text.
--second TEXT  Read this text together with TEXT, as one input. Repeat for each text.
--window N  Read the text in overlapping windows of N tokens.
--stride N  Start a window every N tokens.
--open FILE  Read a file written by --save instead of a text.
--image FILE  Read an image, with or without a TEXT (needs --model). Repeat for several.
--chat FILE  Read a JSON list of messages, each with role and content, instead of a TEXT.
--store STORE  Use this embedding index, a folder written by regard embed.
--pairs FILE  Learn to translate, from lines of source<tab>target.
--repeated  Train on repeated random letters, to learn induction.
--text-column NAME  Read texts from this column of a table.
--id-column NAME  Read text ids from this column of a table.
--prune  Remove documents whose files no longer exist.
--follow-links  Follow symbolic links in folders.
--text TEXT  Check on this text. Repeat for several.
Model
--model MODEL  Use this model folder, GGUF file or hub name.
--tokenizer words|cl100k_base|MODEL  Tokenize with a dictionary of the texts' words, with tiktoken, or as MODEL does.
What to show
--top K  Show K entries of each list.
--full  Print every table and column.
Running
--shard N  Process N characters of text at a time.
--workers N  Run N single-threaded processes.
--exercises  Answer the lesson's exercises.
--step  Wait for Enter before each piece of code.
Output
--figure FILE  Save a figure: .png, .svg or .pdf.
--shape slide|column  With --figure: draw a 16:9 slide, or a column of a paper, 85 mm wide.
--csv FILE  Save a table that spreadsheets can open safely: .csv.
--json FILE  Save all results at full precision: .json, or - for standard output.
--html FILE  Save an interactive page as an offline file: .html.
--html-with PART,PART  With --html: add steps (values, hidden states), or keep layers=0,3-5 only.
--save FILE  Save the traces, to read them with --open: .safetensors.
--save-layers N,N-N  Save the attention of these layers only.
--save-dtype float16|bfloat16  Save in half precision.
--save-attention-outputs  Also save attention outputs, to compute contributions later.
--parquet FILE  Save the table of --csv: .parquet.
--out FOLDER  Write to this folder, a new one or one to continue.
--tensorboard  Also log to TensorBoard (needs regard[tensorboard]).
--figures FOLDER  Save the figures in this folder.
Rest
--word WORD  Examine this word.
--compare WORD,WORD  Compare the word with these words, which need not be in your texts.
--control FILE  With --compare: read neutral sentences from this file, one per line, with {} for the word.
--layer N  Select a layer, counted from 0 (-1: the last).
--head N  Select a head, counted from 0 (-1: the last).
--logit-lens  Show the next token that each layer predicts.
--remove blank|mean|blur  With --image: ablate each region in turn and show the effect.
--tests  Also test the heads on repeated random tokens and on shuffled tokens.
--seed N  Set the random seed.
--far N  List pairs of tokens more than N tokens apart.
--port N  Listen on this port of 127.0.0.1.
--to TOKEN  Measure this next token, or a classifier's label.
--edge WORD:WORD  Split an attention score, from the first word (query) to the second (key).
--part encoder|decoder|cross  Select the attention of an encoder-decoder.
--method removal|edges|contribution|weight  Measure with this method.
--towards TEXT  Also generate with the hidden states steered towards this text.
--away TEXT  With --towards: steer away from this text.
--strength S  With --towards: scale the steering vector.
--max-new-tokens N  Write at most N tokens.
--temperature T  Sample with this temperature.
--top-k K  Sample from the K most likely tokens.
--samples N  Paint N images, each from different noise.
--steps N  Take N steps.
--resume  Continue the run in --out, or start it.
--config FILE  Read settings from a .toml or .json file.
--set NAME=VALUE  Change a setting, for example layers=6. Repeat for several.
--watch SENTENCE  Save traces of this sentence (with --pairs: source<tab>target) during training.
--prompt TEXT  Start each sample that is generated during training with this text.
--layers N,N-N  Use these layers only, counted from 0.
--unit words|tokens  Embed words (mean of their tokens) or tokens.
--where word=W,W  Keep only these words (or lemma=W,W) and the tokens they attend to most.
--lemma LANGUAGE  Add lemmas for this language, for example en.
--dtype float16|float32  Store vectors in this precision.
--statistics/--no-statistics  Store attention statistics, such as entropy and distance.
--like TEXT  Sort by cosine to the word in this sentence.
--everywhere  With --like: search all words of the index.
--sort meaning|source|left|right  Sort the lines.
--lookup word|lemma  Match WORD with words as written or with lemmas.
--context N  Show N characters on each side.
--k N  Look for N senses.
--examples N  Show N examples of each sense.
--words N  Show N context words that mark each sense.
--checked N  Verify each context word (--words) by ablating it in N occurrences (0: skip).
--column NAME  Compare parts of an index by this metadata column.
--values A,B  With --column: compare these two values.
--rounds N  Draw N permutations for the test.
"""  # options by section, except those of a single question, which `regard.questions` declares
OPTIONS: dict[str, tuple[str | None, str]] = {}  # name: metavar and help
SECTIONS: dict[str, str] = {}  # name: section
_section = ""
for _line in TABLE.splitlines():
    _named, _, _text = _line.partition("  ")
    if _text:
        _name, _, _metavar = _named.partition(" ")
        OPTIONS[_name], SECTIONS[_name] = (_metavar or None, _text), _section
    else:
        _section = _line
REST = {  # the verb's heading for the section Rest. Default: "What to show"
    "train": "Training", "embed": "What to store", "generate": "Generation", "paint": "Painting", "serve": "Server",
    "check": "Running",
}  # fmt: skip


def write_sections(formatter: Any, sections: Mapping[str, Rows]) -> None:
    """Write rows of (name, text) under their headings, with all texts aligned."""
    lengths = [len(name) for rows in sections.values() for name, _ in rows]
    width = max((length for length in lengths if length <= NAME_WIDTH), default=0)
    for heading, rows in sections.items():
        with formatter.section(heading):
            for name, text in rows:
                lines = wrap(text, formatter.width - width - 4, break_on_hyphens=False)
                for start, line in zip([name, *[""] * len(lines)], [""] * (len(name) > width) + lines, strict=False):
                    formatter.write(f"  {start:{width}}  {line}".rstrip() + "\n")


def rows_of_options(parameters: Iterable[Any], ctx: Any) -> Rows:
    """Return (name, help text) of arguments or options, with the default as a sentence."""
    records = [option.get_help_record(ctx) or ("", "") for option in parameters]
    return [(name.partition(" <")[0], DEFAULT.sub(default_sentence, text)) for name, text in records]


def default_sentence(match: "re.Match[str]") -> str:
    """Convert typer's '[default: …]' to a sentence."""
    default = match[1] or match[2]
    return f" {default.capitalize()}." if default.startswith("required") else f" Default: {default}."


class VerbWithSections(TyperCommand):
    """A typer command whose help lists its options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options to the help, section by section."""
        rest = REST.get(self.name or "", "What to show")
        sections: dict[str, Rows] = {name: [] for name in ("Input", "Model", rest, "What to show", "Running", "Output")}
        for option, row in zip(self.params, rows_of_options(self.params, ctx), strict=True):
            section = SECTIONS.get(option.opts[0], "Rest" if option.opts[0].startswith("--") else "Input")
            sections[rest if section == "Rest" else section].append(row)
        write_sections(formatter, {name: rows for name, rows in sections.items() if rows})

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments of the usage line, without typer's braces and repeated dots."""
        return [re.sub(r"[{}]|(?<=[]}.])\.\.\.$", "", piece) for piece in super().collect_usage_pieces(ctx)]
