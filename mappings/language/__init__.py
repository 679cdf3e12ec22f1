"""The language of the tables: strict YAML, its words, its rules, and what they may name."""
