"""Attention and GPT from scratch: the engine (core), the model (gpt) and what the chapters need around it (course)."""
