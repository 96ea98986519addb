"""Prompt texts: one `<name>.md` each, with front matter (name, variables, reply schema). No model is used yet."""
