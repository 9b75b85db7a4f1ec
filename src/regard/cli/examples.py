"""Say at the end of each verb's help how it is called: two examples, which run where their files and models are."""

EXAMPLES = """\
see "A man on a river bank." "Money in a bank." --word bank
see "A man on a river bank." --html look.html
why "He sat on a river bank, fishing." --word bank
why "He sat on a river bank, fishing." --edge bank:river
attribute "He sat on a river bank." --word bank --like river
attribute "The capital of France is" --to Paris --model MODEL
heads "The old man walked along the river bank." --html heads.html
heads --store texts.store
patch "A river bank." "A money bank." --word bank
patch "A river bank." "A money bank." --word bank --what head_outputs
serve "We sat on the quiet river bank."
serve --run runs/book
run net.py
run --figure first.png net.py --seed 3
map page.txt --figure map.png
map book.txt --layer 2 --window 512 --json map.json
tokens "fishing on a riverbank"
tokens "Life is short, eat dessert first" --tokenizer words
steps "A man on a river bank." --word bank --layer 0 --head 4
steps "A man on a river bank." --word bank --figure steps.png
train book.txt --out runs/book --steps 2000
train --repeated --out runs/induction
paint pipeline/ "a cat on the mat" --steps 30
paint pipeline/ "a cat on the mat" --html painted.html
generate "Once upon a time" --model runs/book --max-new-tokens 40
generate "Once" --model runs/book --temperature 0.8 --seed 1
translate "the river bank" --model runs/translator
translate "A river bank." --model opus-mt-en-fr --figure aligned.png
evolve runs/book --layer 1 --figure formed.png
evolve runs/book --layer 1 --head 0 --csv formed.csv
embed texts/ --out texts.store
embed texts/ --out bank.store --where word=bank
find bank --store bank.store --sort right
find bank --store bank.store --like "Money in the bank." --top 20
senses bank --store bank.store --k 2
senses bank --store bank.store --html senses.html
shift bank --store bank.store --column period
shift bank --store old.store --store new.store --csv shift.csv
check
check MODEL --json check.json
lesson 4 --step
lesson 4 --exercises
article
article 1 --step
fetch smollm2
fetch all
"""


def examples_of(verb: str) -> list[str]:
    """The examples of a verb."""
    return [f"regard {example}" for example in EXAMPLES.splitlines() if example.split()[0] == verb]


def epilog(verb: str) -> str:
    """What stands below a verb's options; \\b keeps its lines as they are."""
    return "\n".join(("\b", "Examples:", *(f"  {example}" for example in examples_of(verb))))
