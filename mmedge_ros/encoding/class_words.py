"""What data sets and networks call the classes that the rest of the package knows."""

from __future__ import annotations

CLASS_WORDS = {
    'person': ('person', 'people', 'pedestrian', 'human', 'man', 'woman'),
    'cyclist': ('cyclist', 'bicyclist', 'rider'),
    'car': ('car',),
    'dog': ('dog',),
}
# Labels by what they are called, as people write it.
LABEL_OF = {
    written: label
    for label, words in CLASS_WORDS.items()
    for word in words
    for written in (word, word.capitalize(), word.upper())
}


def known_class(name: str) -> str | None:
    """Return what the class of a data set or network is called here, if it is known."""
    return LABEL_OF.get(name.strip().lower())
