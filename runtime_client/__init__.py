"""The SDK of the runtime: what programs, tools and training scripts import. Imports nothing else of ours."""
