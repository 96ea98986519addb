"""Language models: one protocol, one adapter for any OpenAI-compatible endpoint, what it costs, what it may cost."""
