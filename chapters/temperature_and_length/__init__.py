"""Chapter on longer prompts: three scalings of the scores, and heads that are used at another length."""
