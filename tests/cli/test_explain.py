"""`healfsa heal --explain`: tables and a picture of the covers of a cut prompt."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from healing.kit import vocabulary
from healing.test_with_engine import Noise

from healfsa.healing import explain, heal


def test_the_picture_has_a_box_for_each_path():
    from healfsa.cli.explain import as_svg

    known = vocabulary("gpt2")
    for prompt in ("The company hired an interm", "x", " <&", ""):
        told = explain(known, heal(known, prompt), Noise(known.size))
        tree = ElementTree.fromstring(as_svg(told))
        boxes = [each for each in tree.iter() if each.get("class") == "node"]
        curves = [each for each in tree.iter() if each.tag.endswith("path")]
        assert len(boxes) == len(told.nodes) and len(curves) == len(told.nodes) - 1
        assert len({(box.get("x"), box.get("y")) for box in boxes}) == len(boxes)


@pytest.mark.model
def test_on_the_model(smollm2, monkeypatch, capsys, tmp_path):
    import healfsa
    from healfsa.cli.explain import run

    monkeypatch.setattr(healfsa.models, "load", lambda name: smollm2)
    picture = tmp_path / "tree.svg"
    run("The capital of Fra", "exact", None, False, "canonical", 5, picture)
    said = capsys.readouterr().out
    assert "' Fra'" in said and "' France'" in said and "lost" in said and "(the kept ids)" in said
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
