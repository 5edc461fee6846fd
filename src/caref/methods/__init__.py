"""Which weights move: a table of methods, each one file and one line here."""

from __future__ import annotations

from caref.methods.method import Method
from caref.registry import Registry

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "base": "caref.methods.base:Base",
        "dec": "caref.methods.dec:Dec",
        "aqkv": "caref.methods.aqkv:Aqkv",
        "laq": "caref.methods.laq:Laq",
        "aq": "caref.methods.aq:Aq",
        "lora": "caref.methods.lora:Lora",
    },
)

__all__ = ["METHODS", "Method"]
