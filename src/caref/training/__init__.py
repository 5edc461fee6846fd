"""The objective inside transformers' Trainer: settings and presets, tokenizing, callbacks."""
