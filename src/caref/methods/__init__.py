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
        "lora-r4": "caref.methods.lora:LoraR4",
        "lora-r128": "caref.methods.lora:LoraR128",
        "adalora": "caref.methods.adalora:AdaLora",
        "ia3": "caref.methods.ia3:Ia3",
        "prefix": "caref.methods.prefix:Prefix",
        "prompt": "caref.methods.prompt:Prompt",
        "peft": "caref.methods.peft_file:PeftFile",
    },
)

__all__ = ["METHODS", "Method"]
