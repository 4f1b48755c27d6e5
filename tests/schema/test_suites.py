"""Ratchets over the public suites: what was right stays right. Skipped where the suites are not at hand."""

from __future__ import annotations

import pytest

from tests.schema.suites import MASKBENCH, STANDARD, groups, maskbench, right, standard_verdict, verdict, wrong

needs_maskbench = pytest.mark.skipif(not MASKBENCH.exists(), reason="the suite is not here")
needs_standard = pytest.mark.skipif(not STANDARD.exists(), reason="the suite is not here")


def mistakes(names: list[str], style: str) -> list[tuple[str, str]]:
    found = []
    for name in names:
        job = maskbench(name)
        kind = verdict(job["schema"], job["tests"], style)
        if kind:
            found.append((kind, name))
    return found


@pytest.mark.shared
@needs_maskbench
def test_a_sample_of_real_schemas() -> None:
    assert mistakes(right("default")[::90], "default") == []


@pytest.mark.slow
@pytest.mark.shared
@needs_maskbench
@pytest.mark.parametrize("style", ["default", "ordered"])
def test_all_real_schemas(style: str) -> None:
    assert mistakes(right(style), style) == []


@pytest.mark.slow
@pytest.mark.shared
@needs_maskbench
def test_what_an_order_refuses_is_refused_for_its_order() -> None:
    names = [name for name, kind in wrong("maskbench_ordered").items() if kind == "key-order"]
    assert len(names) > 100
    assert mistakes(names, "default") == []


@pytest.mark.shared
@needs_standard
def test_a_sample_of_the_standard_suite() -> None:
    ratchet = wrong("jsts")
    for draft, name, group in list(groups())[::40]:
        if name not in ratchet:
            assert standard_verdict(draft, group) == "", name


@pytest.mark.slow
@pytest.mark.shared
@needs_standard
def test_the_standard_suite() -> None:
    ratchet = wrong("jsts")
    worse = [(name, kind) for draft, name, group in groups() if (kind := standard_verdict(draft, group))]
    assert [(name, kind) for name, kind in worse if ratchet.get(name) != kind] == []
