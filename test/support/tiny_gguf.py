"""A language model of half a megabyte with random weights, and a projector for pictures.

They load and answer like real ones; what they say is noise, in printable characters if they
are asked without chance.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HIDDEN, BLOCKS, HEADS = 64, 128, 2, 4
PATCH, SIDE, EYE_WIDTH, EYE_HIDDEN = 16, 64, 32, 64
_SPECIAL = ('<unk>', '<s>', '</s>')
_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6
_TEMPLATE = '{% for m in messages %}{{ m.content }}\n{% endfor %}A: '
_ALIGNMENT = 32
_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9


def write_tiny_gguf(path: Path, seed: int = 0, blocks: int = BLOCKS, width: int = WIDTH) -> Path:
    """Write a decoder whose tokens are bytes."""
    hidden = 2 * width
    tokens = [*_SPECIAL, *(f'<0x{byte:02X}>' for byte in range(256))]
    facts = {
        'general.architecture': 'llama',
        'llama.context_length': 8192,
        'llama.embedding_length': width,
        'llama.feed_forward_length': hidden,
        'llama.block_count': blocks,
        'llama.attention.head_count': HEADS,
        'llama.attention.head_count_kv': HEADS,
        'llama.attention.layer_norm_rms_epsilon': 1e-5,
        'llama.rope.dimension_count': width // HEADS,
        'llama.vocab_size': len(tokens),
        'tokenizer.ggml.model': 'llama',
        'tokenizer.ggml.tokens': tokens,
        'tokenizer.ggml.scores': [0.0] * len(tokens),
        'tokenizer.ggml.token_type': [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256],
        'tokenizer.ggml.bos_token_id': 1,
        'tokenizer.ggml.eos_token_id': 2,
        'tokenizer.chat_template': _TEMPLATE,
    }
    noise = _Noise(seed)
    noise.matrix('token_embd', len(tokens), width)
    noise.matrix('output', len(tokens), width)
    # Never the most likely one where a printable one will do.
    printable = range(len(_SPECIAL) + 32, len(_SPECIAL) + 127)
    rare = [row for row in range(len(tokens)) if row not in printable]
    noise.tensors['output.weight'][rare] = 0.0
    noise.ones('output_norm', width)
    for number in range(blocks):
        block = f'blk.{number}.'
        for name in ('attn_q', 'attn_k', 'attn_v', 'attn_output'):
            noise.matrix(block + name, width, width)
        for name in ('ffn_gate', 'ffn_up'):
            noise.matrix(block + name, hidden, width)
        noise.matrix(f'{block}ffn_down', width, hidden)
        noise.ones(f'{block}attn_norm', width)
        noise.ones(f'{block}ffn_norm', width)
    return _write(path, facts, noise.tensors)


def write_tiny_projector(path: Path, seed: int = 1) -> Path:
    """Write a vision encoder with a projector (mmproj) for that decoder."""
    facts = {
        'general.architecture': 'clip',
        'clip.has_vision_encoder': True,
        'clip.projector_type': 'mlp',
        'clip.use_gelu': True,
        'clip.vision.image_size': SIDE,
        'clip.vision.patch_size': PATCH,
        'clip.vision.embedding_length': EYE_WIDTH,
        'clip.vision.feed_forward_length': EYE_HIDDEN,
        'clip.vision.projection_dim': WIDTH,
        'clip.vision.attention.head_count': 2,
        'clip.vision.block_count': 2,
        'clip.vision.attention.layer_norm_epsilon': 1e-5,
        'clip.vision.image_mean': [0.5, 0.5, 0.5],
        'clip.vision.image_std': [0.5, 0.5, 0.5],
    }
    noise = _Noise(seed)
    noise.add('v.patch_embd.weight', EYE_WIDTH, 3, PATCH, PATCH)
    noise.add('v.class_embd', EYE_WIDTH)
    noise.matrix('v.position_embd', (SIDE // PATCH) ** 2 + 1, EYE_WIDTH)
    noise.norm('v.pre_ln', EYE_WIDTH)
    for number in range(2):
        block = f'v.blk.{number}.'
        for name in ('attn_q', 'attn_k', 'attn_v', 'attn_out'):
            noise.layer(block + name, EYE_WIDTH, EYE_WIDTH)
        noise.layer(f'{block}ffn_up', EYE_HIDDEN, EYE_WIDTH)
        noise.layer(f'{block}ffn_down', EYE_WIDTH, EYE_HIDDEN)
        noise.norm(f'{block}ln1', EYE_WIDTH)
        noise.norm(f'{block}ln2', EYE_WIDTH)
    noise.layer('mm.0', WIDTH, EYE_WIDTH)
    noise.layer('mm.2', WIDTH, WIDTH)
    return _write(path, facts, noise.tensors)


class _Noise:
    def __init__(self, seed: int) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self._random = np.random.default_rng(seed)

    def add(self, name: str, *shape: int) -> None:
        self.tensors[name] = 0.1 * self._random.standard_normal(shape, np.float32)

    def matrix(self, name: str, rows: int, columns: int) -> None:
        self.add(f'{name}.weight', rows, columns)

    def ones(self, name: str, count: int) -> None:
        self.tensors[f'{name}.weight'] = np.ones(count, np.float32)

    def zeros(self, name: str, count: int) -> None:
        self.tensors[f'{name}.bias'] = np.zeros(count, np.float32)

    def layer(self, name: str, rows: int, columns: int) -> None:
        self.matrix(name, rows, columns)
        self.zeros(name, rows)

    def norm(self, name: str, count: int) -> None:
        self.ones(name, count)
        self.zeros(name, count)


def _write(path: Path, facts: dict[str, Any], tensors: dict[str, np.ndarray]) -> Path:
    """Write GGUF version 3: facts, what tensors there are, and their aligned bytes."""
    head = b'GGUF' + struct.pack('<IQQ', 3, len(tensors), len(facts))
    head += b''.join(_string(name) + _typed(value) for name, value in facts.items())
    offset = 0
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        head += _string(name) + struct.pack('<I', len(shape))
        head += struct.pack(f'<{len(shape)}QIQ', *shape, 0, offset)
        offset += _aligned(tensor.nbytes)
    with path.open('wb') as file:
        file.write(head.ljust(_aligned(len(head)), b'\0'))
        for tensor in tensors.values():
            file.write(tensor.astype('<f4').tobytes().ljust(_aligned(tensor.nbytes), b'\0'))
    return path


def _aligned(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT


def _typed(value: Any) -> bytes:
    kind, content = _plain(value)
    return struct.pack('<I', kind) + content


def _plain(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return _BOOL, struct.pack('<?', value)
    if isinstance(value, int):
        return _U32, struct.pack('<I', value)
    if isinstance(value, float):
        return _F32, struct.pack('<f', value)
    if isinstance(value, str):
        return _STRING, _string(value)
    parts = [_plain(one) for one in value]
    kind = _I32 if parts[0][0] == _U32 else parts[0][0]
    begin = struct.pack('<IQ', kind, len(parts))
    return _ARRAY, begin + b''.join(content for _, content in parts)


def _string(text: str) -> bytes:
    return struct.pack('<Q', len(text.encode())) + text.encode()
