"""Why a job failed and what to change: by rules first, by a model second, or that it could not be told."""
