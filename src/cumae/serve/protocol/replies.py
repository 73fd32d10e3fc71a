"""Answers as bytes, whose length follows from the number of rows and never from the answers.

Somebody who sees encrypted packets sees their lengths. So each answer takes as much room as the
longest class does: JSON may have spaces between its values, and a reply with binary data gets them
at the end of its header.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.claims import claim

ABSTAINED = -1  # the answer to a row that could not be used
OUTPUT = "answer"


@claim("SERVE")
class Labels:
    """The classes of a model, as they are written in each protocol.

    Parameters
    ----------
    classes : list
        The declared classes.
    """

    def __init__(self, classes: list[Any]) -> None:
        self._whole = all(isinstance(one, int) for one in classes)  # true and false are 1 and 0
        given = [*classes, ABSTAINED]
        values = [int(one) for one in given] if self._whole else given
        texts = [json.dumps(one, ensure_ascii=False) for one in values]
        width = max(len(text.encode()) for text in texts)
        self._json = {one: _padded(text, width) for one, text in zip(given, texts, strict=True)}
        self.datatype = "INT64" if self._whole else "BYTES"
        words = [str(one) for one in values]
        longest = max(len(word.encode()) for word in words)
        self._words = {
            one: _padded(json.dumps(word, ensure_ascii=False), longest + _escapes(words))
            for one, word in zip(given, words, strict=True)
        }
        self._binary = {
            one: struct.pack("<I", len(word.encode())) + word.encode()
            for one, word in zip(given, words, strict=True)
        }
        self._most_bytes = max(map(len, self._binary.values()))

    def json_values(self, answers: NDArray[Any]) -> str:
        """Return answers as values of JSON, with commas between them."""
        known = self._json
        return ",".join([known[one] for one in answers.tolist()])

    def json_data(self, answers: NDArray[Any]) -> str:
        """Return answers as the data of a tensor in JSON: whole numbers or texts."""
        known = self._json if self._whole else self._words
        return ",".join([known[one] for one in answers.tolist()])

    def binary(self, answers: NDArray[Any]) -> bytes:
        """Return answers as the data of a binary tensor."""
        if self._whole:
            return answers.astype("<i8").tobytes()
        known = self._binary
        return b"".join([known[one] for one in answers.tolist()])

    def most_binary(self, count: int) -> int:
        """Return the length of so many answers of the longest class, as a binary tensor."""
        return count * (8 if self._whole else self._most_bytes)


def _padded(text: str, width: int) -> str:
    """Return a value of JSON with spaces before it, up to a number of bytes."""
    return " " * (width - len(text.encode())) + text


def _escapes(words: list[str]) -> int:
    """Return how many more bytes than its text the longest JSON of a text may have."""
    longest = max(len(word.encode()) for word in words)
    return max(len(json.dumps(word, ensure_ascii=False).encode()) for word in words) - longest


@claim("SERVE")
def predictions(labels: Labels, answers: NDArray[Any]) -> bytes:
    """Return the reply of KServe's first protocol, and of MLflow."""
    return b'{"predictions":[%b]}' % labels.json_values(answers).encode()


@claim("SERVE")
def tensor_reply(
    labels: Labels, answers: NDArray[Any], head: dict[str, str], *, binary: bool
) -> tuple[bytes, int]:
    """Return the reply of the Open Inference Protocol.

    Parameters
    ----------
    labels : Labels
        The classes.
    answers : array
        One for each row.
    head : dict of str to str
        Its first entries: the model, its version and the id of the request.
    binary : bool
        Whether the data follow the JSON as bytes.

    Returns
    -------
    bytes, int
        The body, and the length of its JSON if binary data follow; else 0.
    """
    count = len(answers)
    begin = json.dumps(head)[:-1]
    common = f'"name":"{OUTPUT}","datatype":"{labels.datatype}","shape":[{count}]'
    if not binary:
        data = labels.json_data(answers)
        return f'{begin},"outputs":[{{{common},"data":[{data}]}}]}}'.encode(), 0
    data_bytes = labels.binary(answers)

    def header(size: int) -> bytes:
        size_part = f'"parameters":{{"binary_data_size":{size}}}'
        return f'{begin},"outputs":[{{{common},{size_part}}}]}}'.encode()

    most = labels.most_binary(count)
    whole = len(header(most)) + most
    made = header(len(data_bytes))
    made += b" " * (whole - len(made) - len(data_bytes))
    return made + data_bytes, len(made)


def plain(value: Any) -> bytes:
    """Return anything else as JSON."""
    return json.dumps(value, ensure_ascii=False, default=_number).encode()


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError("nothing that JSON can hold")
