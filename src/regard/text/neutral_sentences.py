"""Neutral English sentences that say nothing about a word's meaning: a control for a text's effect on the word.

Two thirds use the word as a noun. The others accept any word. The word comes first, last or in between. By chance, a
40th sentence of this kind would fall outside the range of these 39 in one of twenty cases (2 of 40).
"""

from collections.abc import Sequence

from regard.errors import RegardError
from regard.text.tokens import check_texts, shortened
from regard.text.words import find_spans

SLOT = "{}"  # the position of the word
MIN_SENTENCES = 12  # regard computes no range from fewer sentences
SENTENCES = (
    "Nobody said anything about the {}.",
    "She asked him about the {}.",
    "Here is another {}.",
    "Everyone remembers the {}.",
    "In the end it was only the {}.",
    "I have never seen this {}.",
    "What do you know about the {}?",
    "They were all there because of the {}.",
    "The story begins with the {}.",
    "We talked about the {} for a while.",
    "This is the {} that I mentioned.",
    "There is one {} in this picture.",
    "It was not the first {} that we saw.",
    "He thought of the {} again.",
    "My sister likes the {} more than I do.",
    "I forgot about the {} until today.",
    "Someone told me about the {} yesterday.",
    "You can see the {} from here.",
    "They wrote something about some {} once.",
    "The {} was the same as before.",
    "The {} is what matters here.",
    "That {} is older than this one.",
    "This {} looks like the other one.",
    "Our {} is not like theirs.",
    "One {} was enough for them.",
    "Any {} will do.",
    "The word {} is in this sentence.",
    "I do not know what {} means.",
    "Please read the word {} aloud.",
    "{} was mentioned twice.",
    "He wrote down {} and nothing else.",
    "They call it {} here.",
    "It was {} all along.",
    "It is about {}, as far as I know.",
    "Let us talk about {} now.",
    "Today's topic is {}.",
    "Some people say {} instead.",
    "We heard {} and then something else.",
    "She used {} in every sentence.",
)


def neutral_sentences(word: str, sentences: Sequence[str] = SENTENCES) -> list[str]:
    """Insert a word into neutral sentences. Traces of these sentences are the `control` argument of `regard.see`.

    sentences: each has {} at the position of the word, or the word itself. Default: the package's 39 sentences.

    Raises:
        RegardError: the word is blank, or a sentence has neither the word nor {}. The message names the sentence.
    """
    if not isinstance(word, str) or not word.strip():
        raise RegardError(f"neutral_sentences: got {word!r}, expected a word")
    if isinstance(sentences, str) or not all(isinstance(s, str) for s in check_texts(sentences, "control")):
        raise RegardError(f"control: got {type(sentences).__name__}, expected a list of sentences")
    for number, sentence in enumerate(sentences, 1):
        if problem := slot_problem(sentence, word):
            raise RegardError(f"control: sentence {number}, {problem}")
    return list(dict.fromkeys(sentence.replace(SLOT, word) for sentence in sentences))


def slot_problem(sentence: str, word: str) -> str | None:
    """Return an error message if a sentence has neither the word nor {}, otherwise None."""
    try:
        if SLOT in sentence or find_spans(sentence, word):
            return None
    except RegardError:
        pass
    return f"{shortened(sentence)}, has neither {word!r} nor {SLOT} in its place"
