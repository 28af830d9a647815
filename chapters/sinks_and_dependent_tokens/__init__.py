"""The chapter on sinks and on prompts of dependent tokens."""
