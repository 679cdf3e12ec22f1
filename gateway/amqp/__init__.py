"""The fence around proton: facts in, calls out."""
