"""The Triton kernels become machine code for real cards, and the code is what was meant; no card is needed for that."""

from __future__ import annotations

import re
import subprocess

import pytest

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from healfsa.mask import triton_mask, triton_tables, triton_walk

LOGITS = {"logits": "*fp32", "bits": "*i32"}
BITS = {"bitmask": "*i32"}
ROWS = dict(logits="*fp32", states="*i32", words="*i32", records="*i32", data="*u8", offsets="*i32", tokens="*i64")
WHOLE_VECTORS = {("i32", "row_stride"), ("i32", "width")}
ONE = {"column_stride", "state_stride", "bits_column_stride", "token_stride"}
KERNELS = {
    "mask by states": (triton_tables._mask_states, ROWS, {"PAGES": 4}, 4),
    "mask by states, float16": (triton_tables._mask_states, ROWS | {"logits": "*fp16"}, {"PAGES": 4}, 4),
    "mask by states, bfloat16": (triton_tables._mask_states, ROWS | {"logits": "*bf16"}, {"PAGES": 4}, 4),
    "mask of owed bytes": (triton_tables._mask_owed, ROWS, {"SIZE": triton_tables.LANES}, 4),
    "next states": (triton_tables._advance, ROWS, {}, 1),
    "bitmask": (triton_mask._forbid, LOGITS | BITS | {"numbers": "*i32"}, {"SIZE": 4096, "MODE": triton_mask.ALL}, 4),
    "chosen rows": (
        triton_mask._forbid, LOGITS | BITS | {"numbers": "*i64"}, {"SIZE": 4096, "MODE": triton_mask.CHOSEN}, 4
    ),
    "pooled rows": (
        triton_mask._forbid, LOGITS | BITS | {"numbers": "*i32"}, {"SIZE": 4096, "MODE": triton_mask.POOLED}, 4
    ),
    "ranks": (
        triton_walk._mask_ranks, LOGITS | {"rank_of": "*i32", "ranges": "*i32"}, {"SIZE": 32, "HAS_BITS": True}, 4
    ),
    "walk": (
        triton_walk._walk,
        dict.fromkeys(("bits", "unknown", "states", "table", "column_of", "ends", "end_row", "offsets"), "*i32")
        | {"data": "*u8"},
        {"SIZE": 32},
        4,
    ),
}  # fmt: skip


def compiled(name: str, capability: int, ones: bool = False):
    kernel, types, constants, warps = KERNELS[name]
    made_one = {arg: 1 for arg in kernel.arg_names if arg in ONE or (ones and arg not in types)}
    constants = made_one | constants
    signature = {arg: "constexpr" if arg in constants else types.get(arg, "i32") for arg in kernel.arg_names}
    places = {arg: (k,) for k, arg in enumerate(kernel.arg_names)}
    sixteen = [arg for arg, kind in signature.items() if kind[0] == "*" or (kind, arg) in WHOLE_VECTORS]
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs={places[arg]: value for arg, value in constants.items()},
        attrs={places[arg]: [["tt.divisibility", 16]] for arg in sixteen},
    )
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile(name, capability, tmp_path):
    made = compiled(name, capability)
    assert made.asm["cubin"][:4] == b"\x7fELF"
    path = tmp_path / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([triton.knobs.nvidia.cuobjdump.path, "-res-usage", path], capture_output=True, text=True)
    assert re.search(r"STACK:0 .*LOCAL:0 ", report.stdout), "registers must not spill: " + report.stdout
    print(f"{name}, sm_{capability}: {re.findall('REG:([0-9]+)', report.stdout)[-1]} registers")


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_where_every_number_is_one(name):
    """Triton makes constants of numbers that are 1: a vocabulary of one token, say."""
    assert compiled(name, 90, ones=True).asm["cubin"]


def test_nothing_is_compiled_anew_for_another_batch():
    """No number that follows the batch or the pool may become part of the machine code."""
    for kernel, numbers in ((triton_mask._forbid, {"bound"}), (triton_walk._mask_ranks, {"n_ranges"})):
        assert {one.name for one in kernel.params if one.do_not_specialize} == numbers


@pytest.mark.parametrize("name", ["mask by states", "mask of owed bytes", "bitmask", "pooled rows", "ranks"])
def test_neighbouring_lanes_write_neighbouring_logits(name):
    """A store with a mask of its own for every entry must not be spread four entries a lane."""
    text = compiled(name, 90).asm["ttgir"]
    layouts = dict(re.findall(r"(#blocked\d*) = #ttg.blocked<\{sizePerThread = \[([\d, ]+)\]", text))
    stores = re.findall(r"tt.store (\S+), \S+, \S+ : tensor<[^#]*(#blocked\d*)>", text)
    assert stores and all(layouts[layout].split(", ")[-1] == "1" for _, layout in stores)


def test_pages_without_a_bit_are_written_sixteen_bytes_at_a_time():
    assert compiled("mask by states", 90).asm["ptx"].count("st.global.v4") >= 8
