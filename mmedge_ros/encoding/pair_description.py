"""What the manifest of a folder says of a pair of networks that share a space.

One embeds pictures, the other one texts. It is the section ``memory_encoder``::

    name: my_pair
    domain: real
    memory_encoder:
      format: 1
      image: {weights: image.onnx, sha256: 5f70bf18a086...}
      text: {weights: text.onnx, sha256: 3e23e8160039...}
      tokenizer: {weights: tokenizer.json, sha256: 2c624232cc60...}
      input: {size: [224, 224], mean: [...], deviation: [...], rgb: true, square: true}
      tokens: {length: 77, pad: 49407}
      prompt: a photo of {}

``length`` is that of the sequence of tokens, which is cut and filled to it with ``pad`` (0). With
``square`` a picture is filled to a square with its mean colour, and not stretched. ``domain`` and
``prompt``, what words are put into, are optional.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmedge_ros.core.untrusted_files import is_number, shown
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import BundleFile, Manifest
from mmedge_ros.encoding.bundle.model_bundle import REAL, SIMULATED, domain_of
from mmedge_ros.encoding.classifier_description import SECTION as RECOGNISER
from mmedge_ros.encoding.classifier_description import form_of
from mmedge_ros.encoding.crops import CropForm

SECTION = 'memory_encoder'
FORMAT = 1
_ENTRIES = ('format', 'image', 'text', 'tokenizer', 'input', 'tokens', 'prompt')
_MOST_TOKENS, _LARGEST_TOKEN, _LONGEST_PROMPT = 1024, 2**31 - 1, 200
_PLACE = '{}'


@dataclass(frozen=True)
class PairDescription:
    """What a manifest says of a pair; files are checked when they are used.

    A text is ``length`` tokens, filled up with ``pad``. ``prompt`` holds ``{}`` once, for words.
    """

    image: BundleFile
    text: BundleFile
    tokenizer: BundleFile
    form: CropForm
    length: int
    pad: int
    prompt: str = _PLACE

    def prompted(self, words: str) -> str:
        """Return what the text network is given for words."""
        return self.prompt.replace(_PLACE, words)


def describe_pair(folder: Path) -> PairDescription | None:
    """Return what a manifest says of its pair; None if it has none.

    :raises EncodingError: if the manifest, or this section of it, cannot be used
    """
    manifest = Manifest(folder)
    if not manifest.has(SECTION):
        return None
    remedy = 'write it for this version (docs/memory.md)'
    section = manifest.section_of_format(SECTION, FORMAT, remedy)
    for name in section:
        if name not in _ENTRIES:
            raise EncodingError(
                f'{manifest.path} has {SECTION}.{name[:80]}, which nothing reads; it may have '
                f'{", ".join(_ENTRIES)}'
            )
    if manifest.has(RECOGNISER):
        raise EncodingError(
            f'{manifest.path} has both {RECOGNISER} and {SECTION}, and a memory is made by one of '
            'them; move one into a folder of its own'
        )
    return PairDescription(
        manifest.file(SECTION, 'image'),
        manifest.file(SECTION, 'text'),
        manifest.file(SECTION, 'tokenizer'),
        form_of(manifest, SECTION),
        *_tokens(manifest, section.get('tokens')),
        _prompt(manifest, section.get('prompt', _PLACE)),
    )


def pair_warning(folder: Path, source_is_simulated: bool) -> str:
    """Return a sentence if a pair was trained on other pictures than these; '' if not.

    :raises EncodingError: if the manifest cannot be read
    """
    if describe_pair(folder) is None:
        return ''
    domain = domain_of(Manifest(folder))
    if domain == REAL and source_is_simulated:
        return (
            f'the encoder in {folder} was trained on real pictures, and these are simulated: '
            'expect words to find less; without --encoder the recogniser of a bundle embeds'
        )
    if domain == SIMULATED and not source_is_simulated:
        return (
            f'the encoder in {folder} has only ever seen simulated pictures, and these come from '
            'a real camera: expect words to find little; name one that was trained on real ones'
        )
    return ''


def _tokens(manifest: Manifest, entry: Any) -> tuple[int, int]:
    """Return the length of a text in tokens, and what it is filled up with."""
    given = dict(entry) if isinstance(entry, dict) else {}
    length, pad = given.pop('length', None), given.pop('pad', 0)
    if given or not (_is_whole(length, 1, _MOST_TOKENS) and _is_whole(pad, 0, _LARGEST_TOKEN)):
        raise EncodingError(
            f'{manifest.path} has {SECTION}.tokens {shown(entry)}; it must be like '
            f'{{length: 77, pad: 0}}, with a length of 1 to {_MOST_TOKENS}'
        )
    return length, pad


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and is_number(value, least, most)


def _prompt(manifest: Manifest, entry: Any) -> str:
    is_text = isinstance(entry, str) and len(entry) <= _LONGEST_PROMPT and entry.isprintable()
    if not is_text or entry.count(_PLACE) != 1:
        raise EncodingError(
            f'{manifest.path} has {SECTION}.prompt {shown(entry)}; it must be a text with {{}} '
            "where words go, such as 'a photo of {}' (quoted)"
        )
    return str(entry)
