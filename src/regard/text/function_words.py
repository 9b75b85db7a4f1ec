"""English function words: articles, pronouns, prepositions, conjunctions, auxiliaries and particles.

Links to content words ("tired", "animal") say more than links to "because" or "the", so rankings put these last. Words
of other languages all count as content words.
"""

_AUXILIARIES = """
am is are was were be been being do does did have has had having can could may might must shall should will would
"""
_PRONOUNS = """
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves this that these those who whom whose which one
"""
_OTHERS = """
a an the some any each every either neither both all such no another other what ones something anything nothing
about above across after against along among around as at before behind below beneath beside between beyond by despite
down during except for from in inside into like near of off on onto out outside over past since than through to toward
towards under until up upon via with within without
and or nor but so yet if because although though while whereas unless when where whether how why then there here
not never only also just even very too more most less least quite rather again once ever still already
"""
PRONOUNS = frozenset(_PRONOUNS.split())
FUNCTION_WORDS = PRONOUNS | {*_AUXILIARIES.split(), *_OTHERS.split(), *(f"{w}n't" for w in _AUXILIARIES.split())}
FUNCTION_WORDS |= {"can't", "won't", "shan't"}


def is_content_word(word: str) -> bool:
    """Tell whether a word has a letter or a digit and is no English function word."""
    return word.strip().casefold().replace("’", "'") not in FUNCTION_WORDS and any(map(str.isalnum, word))
