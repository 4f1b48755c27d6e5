"""Two thousand varied strings, the same on every run: what people and programs put into prompts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable


def _words(text: str) -> list[str]:
    return text.split()


_CODE = (
    "def f(x, y=1):\n    return x*y  # ok\n",
    "for (int i = 0; i < 10; ++i) {\n\t\ta[i] += 1;\n}",
    "SELECT * FROM t WHERE a='b';",
    "if __name__ == '__main__':\n        main()\n\n\n",
    '<div class="a">\r\n  <p>&amp;</p>\r\n</div>',
    "x = [1, 2,   3]\n\n",
    'fn main() { println!("{:?}", vec![1u8; 3]); }',
    "#include <stdio.h>\n#define A(x) ((x)<<2)",
    "import numpy as np\nnp.sum(a, axis=-1)",
)
_PLAIN = _words(
    "the of intermediate https://example.com/a?b=c don't I'll WE'VE 12345 3.14159 0xFF a_b camelCase SCREAMING e.g. "
    "über Straße Größe naïve café Übung Fußgängerübergänge Donaudampfschifffahrt #tag @user "
    "\u201cquoted\u201d \u2018it\u2019s\u2019 \u2014 \u2026"
)
_CHINESE = "我们的世界很大，今天天气怎么样？这是一个测试。數據結構與演算法「引用」１２３ＡＢＣ日本語テキスト한국어"
_MARKS = (
    "e\u0301a\u0308n\u0303o\u0302 ก็ำที่นี่ สวัสดี हिन्दी עִבְרִית العربية \u1e9b\u0323 \u212b \uac00 \u1100\u1161 \ufb01 \u00bd"
)
_EMOJI = _words(
    "🎉 👩\u200d👩\u200d👧\u200d👦 🇩🇪 👍🏽 ❤\ufe0f \u2764 🤖🦾 1\ufe0f\u20e3 🏴\U000e0067\U000e0062\U000e007f"
)
_SPECIAL = [
    "<|im_start|>user\n",
    "<|start_header_id|>system<|end_header_id|>\n\n",
    *_words(
        "<|endoftext|> <|im_end|> <s> </s> [INST] [/INST] <unk> <pad> <bos> <eos> <start_of_turn> <|eot_id|> <think>"
    ),
    *_words("<|begin_of_text|> </think> <tool_call> <0x0A> <0xC3> [PAD151665] <unused5> <|reserved_200000|> <| |>"),
    *_words("<jupyter_script> [control_8] <SPECIAL_20> <image_soft_token> ##ing ▁ ▁▁the Ġthe Ċ"),
]
_WHITE = [
    *(" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n", "\n        ", "\t\t", "\v\f"),
    *("\u00a0", "\u3000", "\u2028", "\u200b", " " * 17, " " * 40),
]


def _json(pick: random.Random) -> str:
    value = {pick.choice(_PLAIN): [pick.randrange(10**6), pick.random(), None, True, {"k": pick.choice(_PLAIN)}]}
    return json.dumps(value, ensure_ascii=pick.random() < 0.5, indent=pick.choice((None, 1, 2, 4)))


def _span(source: str) -> Callable[[random.Random], str]:
    def cut(pick: random.Random) -> str:
        start = pick.randrange(len(source))
        return source[start : start + pick.randrange(1, 12)]

    return cut


def _control(pick: random.Random) -> str:
    return "".join(chr(pick.choice((*range(0x20), *range(0x7F, 0xA0)))) for _ in range(pick.randrange(1, 5)))


def _anything(pick: random.Random) -> str:
    ranges = (
        (0x20, 0x7F),
        (0xA0, 0x250),
        (0x370, 0x600),
        (0x4E00, 0x9FFF),
        (0x1F300, 0x1FAFF),
        (0xE000, 0xE100),
        (0xFFF0, 0xFFFF),
    )
    ranges += ((0x30000, 0x30100), (0x40000, 0x40100), (0xF0000, 0xF0100), (0x10FF00, 0x10FFFF))
    return "".join(chr(pick.randint(*pick.choice(ranges))) for _ in range(pick.randrange(1, 6)))


_MAKERS: tuple[Callable[[random.Random], str], ...] = (
    lambda pick: pick.choice(_CODE),
    _json,
    lambda pick: " ".join(pick.choice(_PLAIN) for _ in range(pick.randrange(1, 8))),
    _span(_CHINESE),
    _span(_MARKS),
    lambda pick: pick.choice(_EMOJI),
    lambda pick: pick.choice(_SPECIAL),
    lambda pick: pick.choice(_WHITE),
    lambda pick: str(pick.randrange(10 ** pick.randrange(1, 12))),
    _control,
    _anything,
)


def varied(count: int = 2000, seed: int = 7) -> list[str]:
    """Return `count` different strings: one kind each at first, then mixtures of several kinds."""
    pick = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        parts = 1 if len(found) < count // 4 else pick.randrange(2, 7)
        found["".join(pick.choice(_MAKERS)(pick) for _ in range(parts))] = None
    return list(found)
