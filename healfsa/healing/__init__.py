"""Healing: where a prompt is cut, what may cover the owed bytes, and with which probability."""

from healfsa.healing.boundary import Boundary, heal

__all__ = ["Boundary", "heal"]
