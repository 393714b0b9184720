"""Functions with type hints: their schemas need not be written down."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import List, Literal, Optional

__all__ = ["summarize", "count_words", "rename"]


@dataclass
class WordCount:
    """How often a word stands in a text."""

    word: str
    count: int


def summarize(text: str, max_words: int = 50) -> str:
    """Keep the first words of a text.

    Args:
        text: The text to shorten.
        max_words: How many words are kept.
    """
    words = text.split()
    return " ".join(words[:max_words]) + ("…" if len(words) > max_words else "")


def count_words(text: str, least: int = 1) -> List[WordCount]:
    """Count the words of a text, the most frequent first.

    Args:
        text: The text.
        least: Words that stand there less often are left out.
    """
    counted = Counter(re.findall(r"\w+", text.lower()))
    return [WordCount(word, count) for word, count in counted.most_common() if count >= least]


def rename(
    name: str,
    style: Literal["snake", "kebab", "camel"] = "snake",
    prefix: Optional[str] = None,
) -> str:
    """Write a name in another style.

    Args:
        name: The name, such as "HTTP status code".
        style: How its words are joined.
        prefix: A word to put in front of it.
    """
    words = re.findall(r"[A-Za-z0-9]+", f"{prefix or ''} {name}")
    words = [word.lower() for word in words]
    if style == "camel":
        return "".join([words[0]] + [word.capitalize() for word in words[1:]]) if words else ""
    return {"snake": "_", "kebab": "-"}[style].join(words)
